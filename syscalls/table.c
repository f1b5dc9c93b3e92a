/*
 * The dispatch table and the decoding thunks, expanded from syscalls.def. A thunk turns six words
 * into typed arguments without casting function pointers.
 */
#include <errno.h>

#include "syscalls/handlers.h"

/* Words to kinds. */
#define KIND(name, type, printer)                                                                  \
	static inline UNUSED type to_##name(uint64_t w)                                            \
	{                                                                                          \
		union {                                                                            \
			uint64_t word;                                                             \
			type value;                                                                \
		} u = { .word = w };                                                               \
		return u.value; /* little endian: the low bytes are the value */                   \
	}
#define KINDP(name, type, printer)                                                                 \
	static inline UNUSED type to_##name(uint64_t w)                                            \
	{                                                                                          \
		return (type){ .addr = { w } };                                                    \
	}
#include "sentry/kinds.def"
#undef KIND
#undef KINDP

#define THUNK(name, ...)                                                                           \
	static long call_##name(struct task *t, const uint64_t a[6] UNUSED)                        \
	{                                                                                          \
		return sys_##name(t __VA_ARGS__);                                                  \
	}
#define SYSCALL0(nr, name, cov, waits, note) THUNK(name)
#define SYSCALL1(nr, name, cov, waits, note, k1, n1) THUNK(name, , to_##k1(a[0]))
#define SYSCALL2(nr, name, cov, waits, note, k1, n1, k2, n2)                                       \
	THUNK(name, , to_##k1(a[0]), to_##k2(a[1]))
#define SYSCALL3(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3)                               \
	THUNK(name, , to_##k1(a[0]), to_##k2(a[1]), to_##k3(a[2]))
#define SYSCALL4(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4)                       \
	THUNK(name, , to_##k1(a[0]), to_##k2(a[1]), to_##k3(a[2]), to_##k4(a[3]))
#define SYSCALL5(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5)               \
	THUNK(name, , to_##k1(a[0]), to_##k2(a[1]), to_##k3(a[2]), to_##k4(a[3]), to_##k5(a[4]))
#define SYSCALL6(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5, k6, n6)       \
	THUNK(name, , to_##k1(a[0]), to_##k2(a[1]), to_##k3(a[2]), to_##k4(a[3]), to_##k5(a[4]),   \
	      to_##k6(a[5]))
#define NOSYSCALL(nr, name, cov, err, why)
#include "syscalls/syscalls.def"
#undef SYSCALL0
#undef SYSCALL1
#undef SYSCALL2
#undef SYSCALL3
#undef SYSCALL4
#undef SYSCALL5
#undef SYSCALL6
#undef NOSYSCALL

#define WAITS true
#define QUICK false
#define ROW(nr, nm, cov, w, nt, count, ...)                                                        \
	[nr] = { .name = #nm,                                                                      \
		 .call = call_##nm,                                                                \
		 .coverage = COVERAGE_##cov,                                                       \
		 .waits = w,                                                                       \
		 .note = nt,                                                                       \
		 .arg_count = count,                                                               \
		 __VA_ARGS__ },
#define SYSCALL0(nr, name, cov, w, note) ROW(nr, name, cov, w, note, 0)
#define SYSCALL1(nr, name, cov, w, note, k1, n1)                                                   \
	ROW(nr, name, cov, w, note, 1, .arg_kinds = { ARG_##k1 }, .arg_names = { #n1 })
#define SYSCALL2(nr, name, cov, w, note, k1, n1, k2, n2)                                           \
	ROW(nr, name, cov, w, note, 2, .arg_kinds = { ARG_##k1, ARG_##k2 },                        \
	    .arg_names = { #n1, #n2 })
#define SYSCALL3(nr, name, cov, w, note, k1, n1, k2, n2, k3, n3)                                   \
	ROW(nr, name, cov, w, note, 3, .arg_kinds = { ARG_##k1, ARG_##k2, ARG_##k3 },              \
	    .arg_names = { #n1, #n2, #n3 })
#define SYSCALL4(nr, name, cov, w, note, k1, n1, k2, n2, k3, n3, k4, n4)                           \
	ROW(nr, name, cov, w, note, 4, .arg_kinds = { ARG_##k1, ARG_##k2, ARG_##k3, ARG_##k4 },    \
	    .arg_names = { #n1, #n2, #n3, #n4 })
#define SYSCALL5(nr, name, cov, w, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5)                   \
	ROW(nr, name, cov, w, note, 5,                                                             \
	    .arg_kinds = { ARG_##k1, ARG_##k2, ARG_##k3, ARG_##k4, ARG_##k5 },                     \
	    .arg_names = { #n1, #n2, #n3, #n4, #n5 })
#define SYSCALL6(nr, name, cov, w, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5, k6, n6)           \
	ROW(nr, name, cov, w, note, 6,                                                             \
	    .arg_kinds = { ARG_##k1, ARG_##k2, ARG_##k3, ARG_##k4, ARG_##k5, ARG_##k6 },           \
	    .arg_names = { #n1, #n2, #n3, #n4, #n5, #n6 })
#define NOSYSCALL(nr, nm, cov, err, why)                                                           \
	[nr] = { .name = #nm, .coverage = COVERAGE_##cov, .note = why, .fixed_errno = err },

const struct syscall_entry syscall_table[SYSCALL_TABLE_SIZE] = {
#include "syscalls/syscalls.def"
};

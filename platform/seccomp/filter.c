/*
 * The stub's filter, raw BPF because libseccomp cannot compare the instruction pointer.
 *
 *	other architecture (int 0x80, sysenter)  -> TRAP
 *	instruction pointer outside STUB_CODE    -> TRAP (native, x32 and vsyscall alike)
 *	number in stub_calls.def                 -> its policy
 *	else                                     -> KILL_PROCESS
 *
 * seccomp_data.instruction_pointer is the address after the syscall instruction, which in our code
 *is never the end of the page.
 */
#include "platform/seccomp/filter.h"

#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/stub/layout.h"

#define ARG_LO(i) (offsetof(struct seccomp_data, args) + 8u * (i))
#define ARG_HI(i) (ARG_LO(i) + 4u)
#define IP_LO offsetof(struct seccomp_data, instruction_pointer)
#define IP_HI (IP_LO + 4u)

#define HI(x) ((uint32_t)((x) >> 32))
#define LO(x) ((uint32_t)(x))

_Static_assert(HI(STUB_CODE) == HI(STUB_CODE + STUB_CODE_SIZE), "one compare of the high word");
_Static_assert(HI(STUB_BASE) == HI(STUB_TOP), "the region has one high word");

#define SAFE_MMAP_FLAGS                                                                            \
	(MAP_SHARED | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE |     \
	 MAP_LOCKED | MAP_STACK | MAP_FIXED_NOREPLACE)
#define SAFE_PROT (PROT_READ | PROT_WRITE | PROT_EXEC)

static void put(struct filter *f, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	BUG_ON(f->len == FILTER_MAX);
	f->code[f->len++] = (struct sock_filter)BPF_JUMP(code, k, jt, jf);
}

static void load(struct filter *f, size_t off)
{
	put(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)off);
}

static void ret(struct filter *f, uint32_t action)
{
	put(f, BPF_RET | BPF_K, 0, 0, action);
}

static void ret_kill(struct filter *f)
{
	ret(f, SECCOMP_RET_KILL_PROCESS);
}

/* Goes on when argument a, plus argument b unless b < 0, stays below STUB_BASE as an exact 64-bit
 * sum (equal is allowed for the sum, not for a alone); else returns `action`. */
static void require_below(struct filter *f, unsigned a, int b, uint32_t action)
{
	unsigned ub = b < 0 ? a : (unsigned)b;

	/* High words above the user half would let the sum below wrap. */
	load(f, ARG_HI(a));
	put(f, BPF_JMP | BPF_JGT | BPF_K, 5, 0, HI(STUB_BASE));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 2, HI(STUB_BASE));
	load(f, ARG_LO(a));
	put(f, BPF_JMP | BPF_JGE | BPF_K, 2, 0, LO(STUB_BASE));
	load(f, ARG_HI(ub));
	put(f, BPF_JMP | BPF_JGT | BPF_K, 0, 1, HI(STUB_BASE));
	ret(f, action);
	if (b < 0)
		return;
	/* M[0] = low word of the sum, X = carry. */
	load(f, ARG_LO(a));
	put(f, BPF_MISC | BPF_TAX, 0, 0, 0);
	load(f, ARG_LO(ub));
	put(f, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
	put(f, BPF_ST, 0, 0, 0);
	put(f, BPF_JMP | BPF_JGE | BPF_X, 0, 2, 0);
	put(f, BPF_LD | BPF_IMM, 0, 0, 0);
	put(f, BPF_JMP | BPF_JA, 0, 0, 1);
	put(f, BPF_LD | BPF_IMM, 0, 0, 1);
	put(f, BPF_MISC | BPF_TAX, 0, 0, 0);
	/* A = high word of the sum. */
	load(f, ARG_HI(a));
	put(f, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
	put(f, BPF_MISC | BPF_TAX, 0, 0, 0);
	load(f, ARG_HI(ub));
	put(f, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
	put(f, BPF_JMP | BPF_JGT | BPF_K, 3, 0, HI(STUB_BASE));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, HI(STUB_BASE));
	put(f, BPF_LD | BPF_MEM, 0, 0, 0);
	put(f, BPF_JMP | BPF_JGT | BPF_K, 0, 1, LO(STUB_BASE));
	ret(f, action);
}

/* Goes on when no bit outside `bits` is set in the argument; else kills. */
static void require_bits(struct filter *f, unsigned arg, uint32_t bits)
{
	load(f, ARG_HI(arg));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
	load(f, ARG_LO(arg));
	put(f, BPF_JMP | BPF_JSET | BPF_K, 0, 1, ~bits);
	ret_kill(f);
}

static void policy_ALLOW(struct filter *f)
{
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_FUTEX(struct filter *f)
{
	static const uint8_t plain[] = {
		FUTEX_WAIT,        FUTEX_WAKE,    FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET,
		FUTEX_CMP_REQUEUE, FUTEX_REQUEUE, FUTEX_WAKE_OP,
	};

	load(f, ARG_LO(1));
	put(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, (uint32_t)FUTEX_CMD_MASK);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(ARRAY_SIZE(plain) - i), 0, plain[i]);
	ret_kill(f);
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_NOTIFY(struct filter *f)
{
	ret(f, SECCOMP_RET_USER_NOTIF);
}

static void policy_MMAP(struct filter *f)
{
	load(f, ARG_LO(3));
	put(f, BPF_JMP | BPF_JSET | BPF_K, 1, 0, MAP_ANONYMOUS);
	ret(f, SECCOMP_RET_USER_NOTIF);
	require_bits(f, 3, SAFE_MMAP_FLAGS);
	require_bits(f, 2, SAFE_PROT);
	require_below(f, 0, 1, SECCOMP_RET_KILL_PROCESS);
	load(f, ARG_LO(3));
	put(f, BPF_JMP | BPF_JSET | BPF_K, 1, 0, MAP_SHARED);
	ret(f, SECCOMP_RET_ALLOW);
	ret(f, SECCOMP_RET_USER_NOTIF);
}

static void policy_MUNMAP(struct filter *f)
{
	require_below(f, 0, 1, SECCOMP_RET_USER_NOTIF);
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_MPROTECT(struct filter *f)
{
	require_bits(f, 2, SAFE_PROT);
	require_below(f, 0, 1, SECCOMP_RET_KILL_PROCESS);
	load(f, ARG_LO(2));
	put(f, BPF_JMP | BPF_JSET | BPF_K, 1, 0, PROT_WRITE);
	ret(f, SECCOMP_RET_ALLOW);
	ret(f, SECCOMP_RET_USER_NOTIF);
}

static void policy_MREMAP(struct filter *f)
{
	require_below(f, 0, 1, SECCOMP_RET_KILL_PROCESS);
	require_below(f, 0, 2, SECCOMP_RET_KILL_PROCESS);
	require_below(f, 4, 2, SECCOMP_RET_KILL_PROCESS);
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_MLOCK(struct filter *f)
{
	require_below(f, 0, 1, SECCOMP_RET_KILL_PROCESS);
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_MADVISE(struct filter *f)
{
	static const uint8_t harmless[] = {
#define ADVICE(name, number) number,
#include "platform/stub/advice.def"
#undef ADVICE
	};

	load(f, ARG_LO(2));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, MADV_DONTFORK);
	load(f, ARG_LO(3));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, STUB_ASK);
	ret(f, SECCOMP_RET_ALLOW);
	ret(f, SECCOMP_RET_USER_NOTIF);
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(ARRAY_SIZE(harmless) - i), 0,
		    harmless[i]);
	ret_kill(f);
	require_below(f, 0, 1, SECCOMP_RET_KILL_PROCESS);
	ret(f, SECCOMP_RET_ALLOW);
}

static void policy_ARCH_PRCTL(struct filter *f)
{
	/* ARCH_SET_GS 0x1001, ARCH_SET_FS 0x1002, ARCH_GET_FS 0x1003, ARCH_GET_GS 0x1004. */
	load(f, ARG_LO(0));
	put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 2, 0x1001);
	put(f, BPF_JMP | BPF_JGT | BPF_K, 1, 0, 0x1004);
	ret(f, SECCOMP_RET_ALLOW);
	ret_kill(f);
}

/* One row: compare the number; a mismatch jumps over the policy. */
static void row(struct filter *f, uint32_t nr, void (*policy)(struct filter *f))
{
	size_t at = f->len;

	put(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, nr);
	put(f, BPF_JMP | BPF_JA, 0, 0, 0);
	policy(f);
	f->code[at + 1].k = (uint32_t)(f->len - at - 2);
	/* The policy clobbers A only on ways that return; the next row compares the number again.
	 */
}

void filter_build(struct filter *f)
{
	f->len = 0;
	load(f, offsetof(struct seccomp_data, arch));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, AUDIT_ARCH_X86_64);
	load(f, IP_HI);
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, HI(STUB_CODE));
	load(f, IP_LO);
	put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, LO(STUB_CODE));
	put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, LO(STUB_CODE + STUB_CODE_SIZE));
	ret(f, SECCOMP_RET_TRAP);
	load(f, offsetof(struct seccomp_data, nr));
#define STUB_CALL(name, policy, reason) row(f, SYS_##name, policy_##policy);
#include "platform/seccomp/stub_calls.def"
#undef STUB_CALL
	ret_kill(f);
}

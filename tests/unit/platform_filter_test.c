/* The stub's seccomp filter, interpreted here: what it says to calls at the edges of its rules. */
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "platform/seccomp/filter.h"
#include "platform/stub/layout.h"

static struct filter filter;

/* Classic BPF, as much of it as the filter uses. */
static uint32_t interpret(const struct seccomp_data *d)
{
	uint32_t a = 0, x = 0, m[BPF_MEMWORDS] = { 0 };

	for (size_t pc = 0; pc < filter.len; pc++) {
		const struct sock_filter *i = &filter.code[pc];
		uint32_t v = BPF_SRC(i->code) == BPF_X ? x : i->k;
		bool taken;
		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			if (BPF_MODE(i->code) == BPF_ABS)
				memcpy(&a, (const char *)d + i->k, 4);
			else
				a = BPF_MODE(i->code) == BPF_MEM ? m[i->k] : i->k;
			continue;
		case BPF_ST:
			m[i->k] = a;
			continue;
		case BPF_ALU:
			a = BPF_OP(i->code) == BPF_AND ? a & v : a + v;
			continue;
		case BPF_MISC:
			x = a;
			continue;
		case BPF_RET:
			return i->k;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA) {
				pc += i->k;
				continue;
			}
			taken = BPF_OP(i->code) == BPF_JEQ   ? a == v
				: BPF_OP(i->code) == BPF_JGT ? a > v
				: BPF_OP(i->code) == BPF_JGE ? a >= v
							     : (a & v) != 0;
			pc += taken ? i->jt : i->jf;
			continue;
		default:
			fail_msg("instruction %#x", i->code);
		}
	}
	fail_msg("fell off the end");
	return 0;
}

static uint32_t ask(uint64_t ip, uint32_t arch, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
		    uint64_t a3, uint64_t a4)
{
	struct seccomp_data d = { .nr = (int)nr,
				  .arch = arch,
				  .instruction_pointer = ip,
				  .args = { a0, a1, a2, a3, a4, 0 } };

	return interpret(&d);
}

#define IN (STUB_CODE + 100)
#define X64 AUDIT_ARCH_X86_64
#define ALLOW SECCOMP_RET_ALLOW
#define KILL SECCOMP_RET_KILL_PROCESS
#define TRAP SECCOMP_RET_TRAP
#define NOTIF SECCOMP_RET_USER_NOTIF
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)

static void test_where(void **state)
{
	(void)state;
	assert_int_equal(ask(IN, X64, SYS_futex, 0, 0, 0, 0, 0), ALLOW);
	assert_int_equal(ask(STUB_CODE, X64, SYS_futex, 0, 0, 0, 0, 0), ALLOW);
	assert_int_equal(ask(STUB_CODE + STUB_CODE_SIZE - 1, X64, SYS_futex, 0, 0, 0, 0, 0), ALLOW);
	assert_int_equal(ask(STUB_CODE - 1, X64, SYS_futex, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(STUB_CODE + STUB_CODE_SIZE, X64, SYS_futex, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(STUB_CODE & 0xffffffff, X64, SYS_futex, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(STUB_CODE | 1ul << 48, X64, SYS_futex, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(0xffffffffff600000, X64, 96, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(IN, AUDIT_ARCH_I386, SYS_futex, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(0x400000, X64, SYS_exit, 0, 0, 0, 0, 0), TRAP);
	assert_int_equal(ask(IN, X64, SYS_futex | 0x40000000, 0, 0, 0, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_open, 0, 0, 0, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, (uint64_t)-1, 0, 0, 0, 0, 0), KILL);
}

struct edge {
	uint64_t addr, size;
	bool below;
};

static const struct edge edges[] = {
	{ 0x10000, 0x1000, true },
	{ 0, 0, true },
	{ 0, STUB_BASE, true },
	{ 0, STUB_BASE + 1, false },
	{ STUB_BASE - 0x1000, 0x1000, true },
	{ STUB_BASE - 0x1000, 0x1001, false },
	{ STUB_BASE - 0x1000, 0x2000, false },
	{ STUB_BASE, 0, false },
	{ STUB_CODE, 0x1000, false },
	{ STUB_TOP, 0x1000, false },
	{ 0x10000, UINT64_MAX - 0xffff, false },
	{ 0x10000, UINT64_MAX, false },
	{ UINT64_MAX, 1, false },
	{ UINT64_MAX - 0xfff, 0x2000, false },
	{ 0x8000000000000000, 0x8000000000000000, false },
	{ 0x7fff00000000, 0xbfffffff, true },
	{ 0x7fff00000000, 0xc0000000, true },
	{ 0x7fff00000000, 0xc0000001, false },
	{ 0x7ffe80000000, 0x140000000, true },
	{ 0x7ffe80000000, 0x140001000, false },
	{ 0x400080000000, 0x3fff40000000, true },
	{ 0x400080000000, 0x3fff40000001, false },
	{ 0x7fffffffffff, 0x7fffffffffff, false },
};

static void test_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		const struct edge *e = &edges[i];
		uint32_t want = e->below ? ALLOW : KILL;
		assert_int_equal(ask(IN, X64, SYS_mmap, e->addr, e->size, 3, ANON, 0), want);
		assert_int_equal(ask(IN, X64, SYS_mprotect, e->addr, e->size, 5, 0, 0), want);
		assert_int_equal(ask(IN, X64, SYS_mlock, e->addr, e->size, 0, 0, 0), want);
		assert_int_equal(ask(IN, X64, SYS_madvise, e->addr, e->size, MADV_DONTNEED, 0, 0),
				 want);
		assert_int_equal(ask(IN, X64, SYS_munmap, e->addr, e->size, 0, 0, 0),
				 e->below ? ALLOW : NOTIF);
		/* Each of the three ranges of mremap. */
		assert_int_equal(ask(IN, X64, SYS_mremap, e->addr, e->size, 0, 3, 0), want);
		assert_int_equal(ask(IN, X64, SYS_mremap, 0, 0, e->size, 3, e->addr), want);
		assert_int_equal(ask(IN, X64, SYS_mremap, e->addr, 0, e->size, 3, 0), want);
	}
}

static void test_bits(void **state)
{
	(void)state;
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, MAP_SHARED, 3), NOTIF);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1),
			 NOTIF);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, ANON | MAP_SHARED, -1), NOTIF);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, ANON | MAP_HUGETLB, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, ANON | MAP_GROWSDOWN, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 3, ANON | 1ul << 40, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_mmap, 0x10000, 4096, 8, ANON, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_mprotect, 0x10000, 4096, PROT_GROWSDOWN, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_mprotect, 0x10000, 4096, 1ul << 32, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_madvise, STUB_SLOTS, 0x10000, MADV_DONTFORK, 0, 0),
			 ALLOW);
	assert_int_equal(ask(IN, X64, SYS_madvise, STUB_SLOTS, 0x10000, MADV_DONTFORK, STUB_ASK, 0),
			 NOTIF);
	assert_int_equal(ask(IN, X64, SYS_mprotect, 0x10000, 4096, PROT_READ | PROT_EXEC, 0, 0),
			 ALLOW);
	assert_int_equal(ask(IN, X64, SYS_mprotect, 0x10000, 4096, PROT_WRITE, 0, 0), NOTIF);
	assert_int_equal(ask(IN, X64, SYS_mprotect, 0x10000, 4096, 7, 0, 0), NOTIF);
	assert_int_equal(ask(IN, X64, SYS_futex, 0x10000, 0x80 | 9, 0, 0, 0), ALLOW);
	assert_int_equal(ask(IN, X64, SYS_futex, 0x10000, 5, 0, 0, 0), ALLOW);
	for (unsigned op = 0; op < 128; op++) {
		bool pi = op > 10 || (op >= 6 && op <= 8) || op == 2;
		assert_int_equal(ask(IN, X64, SYS_futex, 0x10000, op | 0x180, 0, 0, 0),
				 pi ? KILL : ALLOW);
	}
	assert_int_equal(ask(IN, X64, SYS_madvise, STUB_SLOTS, 0x10000, MADV_DOFORK, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_madvise, 0x10000, 4096, MADV_REMOVE, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_madvise, 0x10000, 4096, 25, 0, 0), ALLOW);
	assert_int_equal(ask(IN, X64, SYS_madvise, 0x10000, 4096, 100, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_arch_prctl, 0x1001, 0, 0, 0, 0), ALLOW);
	assert_int_equal(ask(IN, X64, SYS_arch_prctl, 0x1004, 0, 0, 0, 0), ALLOW);
	assert_int_equal(ask(IN, X64, SYS_arch_prctl, 0x1000, 0, 0, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_arch_prctl, 0x1005, 0, 0, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_arch_prctl, 0x1023, 18, 0, 0, 0), KILL);
	assert_int_equal(ask(IN, X64, SYS_clone, 0, 0, 0, 0, 0), NOTIF);
	assert_int_equal(ask(IN, X64, SYS_prctl, 1, 9, 0, 0, 0), NOTIF);
}

/* Every number without a row kills. */
static void test_all_numbers(void **state)
{
	static const int rows[] = {
#define STUB_CALL(name, policy, reason) SYS_##name,
#include "platform/seccomp/stub_calls.def"
#undef STUB_CALL
	};

	(void)state;
	for (int nr = 0; nr < 1024; nr++) {
		bool known = false;
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			known = known || rows[i] == nr;
		uint32_t got = ask(IN, X64, (uint64_t)nr, 0, 0, 0, 0, 0);
		if (!known)
			assert_int_equal(got, KILL);
		assert_int_equal(ask(0x1000, X64, (uint64_t)nr, 0, 0, 0, 0, 0), TRAP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_all_numbers),
	};

	filter_build(&filter);
	return cmocka_run_group_tests_name("platform: stub filter", tests, NULL, NULL);
}

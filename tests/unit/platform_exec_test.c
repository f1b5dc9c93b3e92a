/* Running guest code: system calls, faults, registers, FP state, threads, interrupts, futexes. */
#include "tests/unit/platform_rig.h"

#include <linux/audit.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* clang-format off */
__asm__(
".pushsection .rodata\n"
".globl g_begin, g_getpid, g_fault, g_entries, g_loop, g_count, g_zmm_set, g_zmm_get, g_fs, g_all, g_spin\n"
".globl g_div, g_ud, g_int3, g_vsyscall, g_write, g_forever, g_end\n"
"g_begin:\n"
"g_getpid:	mov $39,%eax; syscall; mov %rax,%rdi; mov $60,%eax; syscall; hlt\n"
"g_fault:	mov $0x123000,%eax; mov (%rax),%rbx; mov $1,%eax; syscall\n"
"g_div:		xor %ecx,%ecx; mov $1,%eax; xor %edx,%edx; div %ecx\n"
"g_ud:		ud2\n"
"g_int3:	int3; mov $2,%eax; syscall\n"
"g_entries:	mov $20,%eax; int $0x80; mov $0x40000027,%eax; syscall; mov $0xffffffffffffffff,%rax; syscall\n"
"		mov $7777,%eax; syscall\n"
"g_vsyscall:	mov $0xffffffffff600400,%rax; xor %edi,%edi; call *%rax; mov %rax,%rdi; mov $60,%eax; syscall\n"
"g_loop:	mov $39,%eax; syscall; jmp g_loop\n"
"g_forever:	jmp g_forever\n"
"g_count:	lock incq (%rdi); jmp g_count\n"
"g_spin:	cmpl $0,(%rdi); je g_spin; mov $60,%eax; syscall\n"
"g_write:	mov %rsi,(%rdi); mov $60,%eax; syscall\n"
"g_fs:		mov %fs:0,%rdi; mov %gs:8,%rsi; mov $60,%eax; syscall\n"
"g_zmm_set:	vmovdqu64 (%rdi),%zmm0; vmovdqu64 (%rdi),%zmm17; vmovdqu64 (%rdi),%zmm31; mov $0x5a5a,%eax\n"
"		kmovw %eax,%k3; mov $39,%eax; syscall\n"
"g_zmm_get:	vmovdqu64 %zmm0,(%rsi); vmovdqu64 %zmm17,64(%rsi); vmovdqu64 %zmm31,128(%rsi)\n"
"		kmovw %k3,%eax; mov %rax,192(%rsi); mov $60,%eax; syscall\n"
"g_all:		mov $39,%eax; syscall; mov $60,%eax; syscall\n"
"g_end:\n"
".popsection\n");
/* clang-format on */

extern const uint8_t g_begin[], g_getpid[], g_fault[], g_entries[], g_loop[], g_count[],
	g_zmm_set[], g_zmm_get[], g_fs[], g_all[], g_spin[], g_div[], g_ud[], g_int3[],
	g_vsyscall[], g_write[], g_forever[], g_end[];

#define OFF(label) ((size_t)((label)-g_begin))

static void start(struct guest *g, const struct platform_ops *ops, const uint8_t *at)
{
	rig_guest(g, ops, g_begin, (size_t)(g_end - g_begin));
	rig_at(g, OFF(at));
}

static void test_getpid(const struct platform_ops *ops)
{
	struct guest g;

	start(&g, ops, g_getpid);
	rig_syscall(&g, 39);
	CHECK_EQ(g.regs.fs_base, 0);
	CHECK_EQ(g.regs.gs_base, 0);
	CHECK_EQ(g.ev.arch, AUDIT_ARCH_X86_64);
	CHECK_EQ(g.regs.rax, -ENOSYS);
	CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_getpid) + 7);
	rig_return(&g, 1234);
	rig_syscall(&g, 60);
	CHECK_EQ(g.regs.rdi, 1234);
	/* A call that is restarted. */
	g.regs.rax = 231;
	g.regs.rip -= 2;
	rig_syscall(&g, 231);
	rig_free(&g);
}

static void test_registers(const struct platform_ops *ops)
{
	struct guest g;

	start(&g, ops, g_all);
	rig_syscall(&g, 39);
	struct regs *r = &g.regs;
	uint64_t *words = (uint64_t *)r, before[15];
	static const int plain[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 14 };
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		words[plain[i]] = 0x1111111111111111u * (i + 1);
	r->rsp = 0xdead0000beef;
	/* Flags that user code may not set are dropped; DF and AC are kept. */
	r->eflags = 0x202 | 0x400 | 0x40000 | 0x3000 | 0x20000;
	r->cs = 0x10;
	r->ss = 0x18;
	memcpy(before, words, sizeof(before));
	rig_syscall(&g, 60);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		CHECK_EQ(words[plain[i]], before[plain[i]]);
	CHECK_EQ(r->rsp, 0xdead0000beef);
	CHECK_EQ(r->eflags & 0x63000, 0x40000);
	CHECK_EQ(r->eflags & 0x400, 0x400);
	CHECK_EQ(r->cs, 0x33);
	CHECK_EQ(r->ss, 0x2b);
	/* An instruction pointer that no page table has. */
	r->rip = 0x8000000000000000u;
	r->eflags = 0x202;
	ops->run(g.ctx, r, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_FAULT);
	CHECK_EQ(g.ev.signo, SIGSEGV);
	rig_free(&g);
}

static void test_faults(const struct platform_ops *ops)
{
	struct guest g;

	start(&g, ops, g_fault);
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_FAULT);
	CHECK_EQ(g.ev.signo, SIGSEGV);
	CHECK_EQ(g.ev.code, SEGV_MAPERR);
	CHECK_EQ(g.ev.addr, 0x123000);
	CHECK_EQ(g.ev.trapno, 14);
	CHECK_EQ(g.ev.err, 4);
	CHECK_EQ(g.regs.orig_rax, -1);
	CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_fault) + 5);
	/* Mapped now: the instruction succeeds. */
	rig_map_anon(&g, 0x123000, PAGE_SIZE, PROT_READ, 0);
	rig_syscall(&g, 1);
	rig_at(&g, OFF(g_write));
	g.regs.rdi = 0x123008;
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_FAULT);
	CHECK_EQ(g.ev.code, SEGV_ACCERR);
	CHECK_EQ(g.ev.addr, 0x123008);
	/* ptrace cannot tell whether it was a write. */
	CHECK_EQ(g.ev.err & ~2u, 5);
	CHECK(strcmp(ops->name, "seccomp") != 0 || g.ev.err == 7);
	rig_at(&g, OFF(g_div));
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.signo, SIGFPE);
	CHECK_EQ(g.ev.code, FPE_INTDIV);
	rig_at(&g, OFF(g_ud));
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.signo, SIGILL);
	CHECK_EQ(g.ev.addr, RIG_CODE + OFF(g_ud));
	rig_at(&g, OFF(g_int3));
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.signo, SIGTRAP);
	CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_int3) + 1);
	/* Single step by TF. */
	rig_at(&g, OFF(g_getpid));
	g.regs.eflags |= 0x100;
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.signo, SIGTRAP);
	CHECK_EQ(g.ev.code, TRAP_TRACE);
	CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_getpid) + 5);
	CHECK_EQ(g.regs.rax, 39);
	rig_free(&g);
}

static void test_entries(const struct platform_ops *ops)
{
	struct guest g;

	start(&g, ops, g_entries);
	rig_syscall(&g, 20);
	CHECK_EQ(g.ev.arch, AUDIT_ARCH_I386);
	rig_return(&g, (uint64_t)-ENOSYS);
	rig_syscall(&g, 0x40000027);
	rig_return(&g, (uint64_t)-ENOSYS);
	do {
		ops->run(g.ctx, &g.regs, &g.ev);
	} while (g.ev.kind == PLAT_INTERRUPT);
	CHECK_EQ(g.ev.kind, PLAT_SYSCALL);
	CHECK_EQ((int)g.regs.orig_rax, -1);
	rig_return(&g, (uint64_t)-ENOSYS);
	rig_syscall(&g, 7777);
	/* time() through the vsyscall page: a call like any other, or answered by the host
	 * harmlessly, or a fault where the host has no such page. */
	rig_at(&g, OFF(g_vsyscall));
	ops->run(g.ctx, &g.regs, &g.ev);
	if (g.ev.kind == PLAT_SYSCALL && g.regs.orig_rax == 201) {
		CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_vsyscall) + 11);
		rig_return(&g, 4711);
		rig_syscall(&g, 60);
		CHECK_EQ(g.regs.rdi, 4711);
	} else {
		CHECK(g.ev.kind == PLAT_FAULT || g.regs.orig_rax == 60);
	}
	rig_free(&g);
}

static void test_fs_gs(const struct platform_ops *ops)
{
	struct guest g, child;

	start(&g, ops, g_fs);
	rig_poke(&g, RIG_DATA + 0x100, 77);
	rig_poke(&g, RIG_DATA + 0x208, 88);
	g.regs.fs_base = RIG_DATA + 0x100;
	g.regs.gs_base = RIG_DATA + 0x200;
	rig_syscall(&g, 60);
	CHECK_EQ(g.regs.rdi, 77);
	CHECK_EQ(g.regs.rsi, 88);
	CHECK_EQ(g.regs.fs_base, RIG_DATA + 0x100);
	rig_fork(&g, &child);
	rig_poke(&child, RIG_DATA + 0x100, 99);
	child.regs.rip = RIG_CODE + OFF(g_fs);
	rig_syscall(&child, 60);
	CHECK_EQ(child.regs.rdi, 99);
	rig_free(&child);
	/* Not a user address: no harm. */
	g.regs.rip = RIG_CODE + OFF(g_getpid);
	g.regs.fs_base = 0x8000000000000000u;
	rig_syscall(&g, 39);
	rig_free(&g);
}

static void test_fork(const struct platform_ops *ops)
{
	struct guest g, child;

	start(&g, ops, g_getpid);
	rig_poke(&g, RIG_DATA, 1);
	rig_map_anon(&g, 0x700000, PAGE_SIZE, PROT_READ | PROT_WRITE, PLAT_MAP_SHARED);
	rig_syscall(&g, 39);
	rig_fork(&g, &child);
	rig_poke(&g, RIG_DATA, 2);
	CHECK_EQ(rig_peek(&child, RIG_DATA), 1);
	rig_poke(&child, RIG_DATA, 3);
	CHECK_EQ(rig_peek(&g, RIG_DATA), 2);
	rig_poke(&child, 0x700000, 5);
	CHECK_EQ(rig_peek(&g, 0x700000), 5);
	rig_return(&child, 0);
	rig_return(&g, 100);
	rig_syscall(&child, 60);
	CHECK_EQ(child.regs.rdi, 0);
	rig_syscall(&g, 60);
	CHECK_EQ(g.regs.rdi, 100);
	CHECK(ops->host_pid(g.as) != ops->host_pid(child.as));
	rig_free(&g);
	/* The child outlives its parent. */
	rig_at(&child, OFF(g_getpid));
	rig_syscall(&child, 39);
	rig_free(&child);
}

static void test_many_forks(const struct platform_ops *ops)
{
	static struct guest g[201];

	start(&g[0], ops, g_getpid);
	for (int i = 0; i < 200; i++) {
		rig_fork(&g[i], &g[i + 1]);
		rig_poke(&g[i + 1], RIG_DATA, (uint64_t)i + 1);
	}
	for (int i = 0; i <= 200; i++) {
		CHECK_EQ(rig_peek(&g[i], RIG_DATA), i);
		rig_syscall(&g[i], 39);
	}
	for (int i = 0; i <= 200; i++)
		rig_free(&g[i]);
	/* And again: slots and pids are given back. */
	start(&g[0], ops, g_getpid);
	for (int i = 0; i < 100; i++) {
		rig_fork(&g[0], &g[1]);
		rig_syscall(&g[1], 39);
		rig_free(&g[1]);
		rig_at(&g[1], OFF(g_getpid));
	}
	rig_free(&g[0]);
}

struct runner {
	struct guest g;
	atomic_int done;
};

static void *run_once(void *arg)
{
	struct runner *r = arg;

	r->g.ops->run(r->g.ctx, &r->g.regs, &r->g.ev);
	atomic_store(&r->done, 1);
	return NULL;
}

static void wait_done(struct runner *r)
{
	for (int i = 0; i < 5000 && !atomic_load(&r->done); i++)
		usleep(1000);
	CHECK(atomic_load(&r->done));
}

static void test_threads(const struct platform_ops *ops)
{
	static struct runner a, b;
	struct guest g;

	start(&g, ops, g_getpid);
	for (int round = 0; round < 3; round++) {
		rig_clone(&g, &a.g);
		rig_clone(&g, &b.g);
		atomic_store(&a.done, 0);
		atomic_store(&b.done, 0);
		rig_at(&a.g, OFF(g_count));
		a.g.regs.rdi = RIG_DATA;
		rig_at(&b.g, OFF(g_spin));
		b.g.regs.rdi = RIG_DATA;
		rig_poke(&g, RIG_DATA, 0);
		rig_thread(run_once, &b);
		rig_thread(run_once, &a);
		wait_done(&b);
		CHECK_EQ(b.g.ev.kind, PLAT_SYSCALL);
		CHECK(rig_peek(&g, RIG_DATA) > 0);
		CHECK_EQ(atomic_load(&a.done), 0);
		ops->interrupt(a.g.ctx);
		wait_done(&a);
		CHECK_EQ(a.g.ev.kind, PLAT_INTERRUPT);
		CHECK_EQ(a.g.regs.rdi, RIG_DATA);
		/* Mapping calls through any parked thread. */
		rig_map_anon(&b.g, 0x800000, PAGE_SIZE, PROT_READ | PROT_WRITE, 0);
		rig_poke(&g, 0x800000, 1);
		ops->ctx_free(a.g.ctx);
		ops->ctx_free(b.g.ctx);
		rig_at(&g, OFF(g_getpid));
		rig_syscall(&g, 39);
	}
	/* The first thread may go before the others. */
	rig_clone(&g, &a.g);
	ops->ctx_free(g.ctx);
	rig_at(&a.g, OFF(g_getpid));
	rig_syscall(&a.g, 39);
	CHECK_EQ(rig_peek(&a.g, 0x800000), 1);
	rig_clone(&a.g, &b.g);
	rig_at(&b.g, OFF(g_getpid));
	rig_syscall(&b.g, 39);
	ops->ctx_free(b.g.ctx);
	rig_free(&a.g);
}

static void test_interrupt(const struct platform_ops *ops)
{
	static struct runner r;
	struct guest g;

	start(&g, ops, g_forever);
	/* Before: the next run returns at once. */
	ops->interrupt(g.ctx);
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_INTERRUPT);
	CHECK_EQ(g.regs.rip, RIG_CODE + OFF(g_forever));
	r.g = g;
	for (int i = 0; i < 200; i++) {
		atomic_store(&r.done, 0);
		rig_thread(run_once, &r);
		if (i % 3)
			usleep((useconds_t)(i % 7) * 50);
		ops->interrupt(g.ctx);
		wait_done(&r);
		CHECK_EQ(r.g.ev.kind, PLAT_INTERRUPT);
	}
	rig_free(&g);
}

/* A kick that meets a context on its very first way into the guest. */
static void test_newborn(const struct platform_ops *ops)
{
	static struct runner r;
	struct guest parent;

	start(&parent, ops, g_getpid);
	for (int i = 0; i < 150; i++) {
		struct guest g;
		if (i % 3 == 0)
			start(&g, ops, g_forever);
		else if (i % 3 == 1)
			rig_fork(&parent, &g);
		else
			rig_clone(&parent, &g);
		rig_at(&g, OFF(g_forever));
		r.g = g;
		atomic_store(&r.done, 0);
		rig_thread(run_once, &r);
		for (volatile int spin = 0; spin < i * 300; spin++)
			;
		ops->interrupt(g.ctx);
		wait_done(&r);
		CHECK_EQ(r.g.ev.kind, PLAT_INTERRUPT);
		CHECK_EQ(r.g.regs.rip, RIG_CODE + OFF(g_forever));
		if (i % 3 == 2)
			ops->ctx_free(g.ctx);
		else
			rig_free(&g);
	}
	rig_syscall(&parent, 39);
	rig_free(&parent);
}

struct sleeper_arg {
	struct guest g;
	uint64_t args[6];
	struct timespec *timeout;
	long result;
	atomic_int done;
};

static void *futex_once(void *arg)
{
	struct sleeper_arg *s = arg;

	s->result = s->g.ops->futex(s->g.ctx, s->args, s->timeout);
	atomic_store(&s->done, 1);
	return NULL;
}

static void futex_start(struct sleeper_arg *s)
{
	atomic_store(&s->done, 0);
	rig_thread(futex_once, s);
}

static void futex_end(struct sleeper_arg *s, long want)
{
	for (int i = 0; i < 5000 && !atomic_load(&s->done); i++)
		usleep(1000);
	CHECK(atomic_load(&s->done));
	CHECK_EQ(s->result, want);
}

static void test_futex(const struct platform_ops *ops)
{
	static struct sleeper_arg s;
	struct guest g, other;
	struct timespec rel = { 0, 20000000 }, abs;
	uint64_t wake[6] = { RIG_DATA, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1 };

	start(&g, ops, g_getpid);
	rig_clone(&g, &other);
	s.g = other;
	s.args[0] = RIG_DATA;
	s.args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	rig_poke(&g, RIG_DATA, 5);
	s.args[2] = 4;
	futex_start(&s);
	futex_end(&s, -EAGAIN);
	s.args[0] = 0x10000000;
	futex_start(&s);
	futex_end(&s, -EFAULT);
	s.args[0] = RIG_DATA;
	s.args[2] = 5;
	s.timeout = &rel;
	uint64_t t0 = rig_now_ns();
	futex_start(&s);
	futex_end(&s, -ETIMEDOUT);
	CHECK(rig_now_ns() - t0 >= 20000000);
	clock_gettime(CLOCK_MONOTONIC, &abs);
	s.timeout = &abs;
	s.args[1] = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
	s.args[5] = FUTEX_BITSET_MATCH_ANY;
	futex_start(&s);
	futex_end(&s, -ETIMEDOUT);
	s.timeout = NULL;
	for (int i = 0; i < 50; i++) {
		long woken = 0;
		futex_start(&s);
		while (woken == 0) {
			woken = ops->futex(g.ctx, wake, NULL);
			sched_yield();
		}
		CHECK_EQ(woken, 1);
		futex_end(&s, 0);
	}
	for (int i = 0; i < 100; i++) {
		struct plat_event ev;
		struct regs regs = g.regs;
		futex_start(&s);
		if (i % 2)
			usleep((useconds_t)(i % 11) * 30);
		ops->interrupt(other.ctx);
		futex_end(&s, -EINTR);
		/* Sticky until run() has returned. */
		futex_start(&s);
		futex_end(&s, -EINTR);
		ops->run(other.ctx, &regs, &ev);
		CHECK_EQ(ev.kind, PLAT_INTERRUPT);
	}
	s.args[2] = 6;
	futex_start(&s);
	futex_end(&s, -EAGAIN);
	/* Compare and exchange. */
	uint32_t seen = 0;
	CHECK_EQ(ops->cmpxchg32(g.ctx, RIG_DATA, 5, 9, &seen), 0);
	CHECK_EQ(seen, 5);
	CHECK_EQ(rig_peek(&g, RIG_DATA), 9);
	CHECK_EQ(ops->cmpxchg32(g.ctx, RIG_DATA, 5, 10, &seen), 0);
	CHECK_EQ(seen, 9);
	CHECK_EQ(ops->cmpxchg32(g.ctx, 0x10000000, 5, 10, &seen), -EFAULT);
	CHECK_EQ(ops->cmpxchg32(g.ctx, RIG_CODE, 5, 10, &seen), -EFAULT);
	rig_syscall(&g, 39);
	ops->ctx_free(other.ctx);
	rig_free(&g);
}

static void fill(uint8_t *v, uint8_t seed)
{
	for (int i = 0; i < 64; i++)
		v[i] = (uint8_t)(seed + i);
}

static void check_zmm(struct guest *g, uint8_t seed, uint64_t mask)
{
	uint8_t want[64], got[200];

	fill(want, seed);
	g->regs.rip = RIG_CODE + OFF(g_zmm_get);
	g->regs.rsi = RIG_DATA + 0x400;
	rig_syscall(g, 60);
	CHECK_EQ(g->ops->copy_in(g->as, got, RIG_DATA + 0x400, sizeof(got)), sizeof(got));
	CHECK_EQ(memcmp(got, want, 64), 0);
	CHECK_EQ(memcmp(got + 64, want, 64), 0);
	CHECK_EQ(memcmp(got + 128, want, 64), 0);
	CHECK_EQ(memcmp(got + 192, &mask, 8), 0);
}

static void test_fp(const struct platform_ops *ops)
{
	struct guest g, child, thread, blank;
	uint8_t v[64], zero[64] = { 0 };

	if (!__builtin_cpu_supports("avx512f"))
		_exit(77);
	start(&g, ops, g_zmm_set);
	fill(v, 1);
	CHECK_EQ(ops->copy_out(g.as, RIG_DATA, v, 64), 64);
	g.regs.rdi = RIG_DATA;
	rig_syscall(&g, 39);
	rig_fork(&g, &child);
	rig_clone(&g, &thread);
	/* The thread changes its own copy. */
	fill(v, 9);
	CHECK_EQ(ops->copy_out(g.as, RIG_DATA + 0x200, v, 64), 64);
	thread.regs.rip = RIG_CODE + OFF(g_zmm_set);
	thread.regs.rdi = RIG_DATA + 0x200;
	rig_syscall(&thread, 39);
	check_zmm(&g, 1, 0x5a5a);
	check_zmm(&child, 1, 0x5a5a);
	check_zmm(&thread, 9, 0x5a5a);
	/* Images: from one thread to another, and garbage. */
	size_t size = ops->info()->fp_size;
	uint8_t *image = malloc(size), *other = malloc(size);
	CHECK_EQ(ops->fp_get(thread.ctx, image), 0);
	CHECK_EQ(ops->fp_set(g.ctx, image), 0);
	check_zmm(&g, 9, 0x5a5a);
	CHECK_EQ(ops->fp_get(g.ctx, other), 0);
	CHECK_EQ(memcmp(image + 160, other + 160, 256), 0);
	for (size_t i = 0; i < size; i++)
		image[i] = (uint8_t)(i * 37 + 11);
	if (ops->fp_set(g.ctx, image) == 0) {
		g.regs.rip = RIG_CODE + OFF(g_getpid);
		rig_syscall(&g, 39);
	}
	CHECK_EQ(ops->fp_set(g.ctx, other), 0);
	check_zmm(&g, 9, 0x5a5a);
	/* A blank address space starts with fresh state. */
	start(&blank, ops, g_zmm_get);
	blank.regs.rsi = RIG_DATA + 0x400;
	rig_syscall(&blank, 60);
	CHECK_EQ(ops->copy_in(blank.as, v, RIG_DATA + 0x400, 64), 64);
	CHECK_EQ(memcmp(v, zero, 64), 0);
	rig_free(&blank);
	ops->ctx_free(thread.ctx);
	rig_free(&child);
	rig_free(&g);
}

static const struct rig_test tests[] = {
	{ "system call", test_getpid, 0, false },
	{ "registers", test_registers, 0, false },
	{ "faults", test_faults, 0, false },
	{ "entry forms", test_entries, 0, false },
	{ "fs and gs base", test_fs_gs, 0, false },
	{ "fork", test_fork, 0, false },
	{ "200 forks", test_many_forks, 60, false },
	{ "threads", test_threads, 0, false },
	{ "interrupt", test_interrupt, 0, false },
	{ "interrupt of a newborn", test_newborn, 0, false },
	{ "futex", test_futex, 60, false },
	{ "FP state", test_fp, 0, false },
};

int main(void)
{
	return rig_main("platform: execution", tests, ARRAY_SIZE(tests));
}

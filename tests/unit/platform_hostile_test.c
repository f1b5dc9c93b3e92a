/*
 * Guests that attack their stub: jump into our code with chosen registers, write our code, scribble
 * over the shared pages while they are in use. The sentry survives, other guests do not notice, and
 * nothing that the filter must stop happens.
 */
#include "tests/unit/platform_rig.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "platform/seccomp/internal.h"
#include "platform/stub/layout.h"

/* clang-format off */
__asm__(
".pushsection .rodata\n"
".globl h_begin, h_end, h_poke, h_noise, h_store\n"
"h_begin:	mov $39,%eax; syscall; jmp h_begin\n"
"h_store:	mov %rsi,(%rdi); mov $60,%eax; syscall\n"
/* rdi = where, esi = 8-byte words, rdx = seed: random words at random places for ever */
"h_noise:	mov %rdx,%rax; shl $13,%rax; xor %rax,%rdx; mov %rdx,%rax; shr $7,%rax; xor %rax,%rdx\n"
"		mov %rdx,%rax; shl $17,%rax; xor %rax,%rdx\n"
"		mov %edx,%eax; xor %r8d,%r8d; mov %rdx,%r9; xor %edx,%edx; div %esi; mov %rdx,%rcx; mov %r9,%rdx\n"
"		mov %rdx,%r10; test $0x100,%r10d; jz 1f; and $0xf,%r10d\n"
"1:		mov %r10,(%rdi,%rcx,8); jmp h_noise\n"
"h_end:\n"
".popsection\n");
/* clang-format on */

extern const uint8_t h_begin[], h_end[], h_noise[], h_store[];

static void start(struct guest *g, const struct platform_ops *ops)
{
	rig_guest(g, ops, h_begin, (size_t)(h_end - h_begin));
}

static void test_stub_pages(const struct platform_ops *ops)
{
	struct guest g;

	start(&g, ops);
	/* Our code is not writable for the guest ... */
	rig_at(&g, (size_t)(h_store - h_begin));
	g.regs.rdi = STUB_CODE;
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_FAULT);
	CHECK_EQ(g.ev.signo, SIGSEGV);
	CHECK_EQ(g.ev.addr, STUB_CODE);
	/* ... and the copy functions do not reach our region. */
	uint64_t word = 0;
	CHECK_EQ(ops->copy_out(g.as, STUB_SLOTS, &word, 8), -EFAULT);
	CHECK_EQ(ops->copy_in(g.as, &word, STUB_SLOTS, 8), -EFAULT);
	CHECK_EQ(ops->force_out(g.as, STUB_CODE, &word, 8), -EFAULT);
	rig_free(&g);
}

/* A call that guest code tries to make from one of our syscall instructions. */
struct gadget_call {
	const char *what;
	uint64_t nr;
	uint64_t args[6];
	bool kills; /* the filter must end the process; else it may just fail or do no harm */
};

#define CODE_PROT (PROT_READ | PROT_WRITE | PROT_EXEC)

static const struct gadget_call gadget_calls[] = {
	{ "open", SYS_open, { RIG_DATA, O_RDWR | O_CREAT, 0644 }, true },
	{ "openat", SYS_openat, { (uint64_t)-100, RIG_DATA, O_RDONLY }, true },
	{ "socket", SYS_socket, { 2, 1, 0 }, true },
	{ "execve", SYS_execve, { RIG_DATA, 0, 0 }, true },
	{ "kill", SYS_kill, { 1, 0 }, true },
	{ "tgkill", SYS_tgkill, { 1, 1, 9 }, true },
	{ "ptrace", SYS_ptrace, { 16, 1 }, true },
	{ "process_vm_writev", SYS_process_vm_writev, { 1, RIG_DATA, 1, RIG_DATA, 1 }, true },
	{ "fork", SYS_fork, { 0 }, true },
	{ "vfork", SYS_vfork, { 0 }, true },
	{ "clone", SYS_clone, { SIGCHLD, 0 }, true },
	{ "clone thread",
	  SYS_clone,
	  { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES, RIG_DATA + 4096 },
	  true },
	{ "clone3", SYS_clone3, { RIG_DATA, 88 }, true },
	{ "prctl seccomp", SYS_prctl, { PR_SET_SECCOMP, 2, 0 }, true },
	{ "prctl no pdeathsig", SYS_prctl, { PR_SET_PDEATHSIG, 0 }, true },
	{ "prctl hello", SYS_prctl, { PR_SET_PDEATHSIG, SIGKILL, 12345 }, true },
	{ "seccomp", SYS_seccomp, { 1, 8, RIG_DATA }, true },
	{ "mmap fd",
	  SYS_mmap,
	  { 0x10000000, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, 3, 0 },
	  true },
	{ "mmap over our code",
	  SYS_mmap,
	  { STUB_CODE, 4096, CODE_PROT, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, ~0ul, 0 },
	  true },
	{ "mmap into our region",
	  SYS_mmap,
	  { STUB_BASE - 4096, 0x40000, CODE_PROT, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, ~0ul,
	    0 },
	  true },
	{ "mmap huge pages",
	  SYS_mmap,
	  { 0x10000000, 0x200000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, ~0ul, 0 },
	  true },
	{ "munmap our code", SYS_munmap, { STUB_CODE, 4096 }, true },
	{ "munmap everything", SYS_munmap, { 0x10000, STUB_TOP - 0x10000 }, true },
	{ "munmap with wrap", SYS_munmap, { 0x1000, 0xfffffffffffff000 }, true },
	{ "mprotect our code", SYS_mprotect, { STUB_CODE, 4096, CODE_PROT }, true },
	{ "mprotect up to our code",
	  SYS_mprotect,
	  { RIG_DATA, STUB_CODE + 4096 - RIG_DATA, CODE_PROT },
	  true },
	{ "mprotect grows down",
	  SYS_mprotect,
	  { RIG_DATA, 4096, PROT_READ | PROT_GROWSDOWN },
	  true },
	{ "mremap a slot away", SYS_mremap, { STUB_SLOTS, 0x10000, 0x10000, 3, 0x10000000 }, true },
	{ "mremap duplicates a slot", SYS_mremap, { STUB_SLOTS, 0, 0x10000, 3, 0x10000000 }, true },
	{ "mremap onto our code", SYS_mremap, { RIG_DATA, 4096, 4096, 3, STUB_CODE }, true },
	{ "madvise dofork of a slot", SYS_madvise, { STUB_SLOTS, 0x10000, MADV_DOFORK }, true },
	{ "madvise remove", SYS_madvise, { RIG_DATA, 4096, MADV_REMOVE }, true },
	{ "madvise merge", SYS_madvise, { RIG_DATA, 4096, MADV_MERGEABLE }, true },
	{ "arch_prctl amx", SYS_arch_prctl, { 0x1023, 18 }, true },
	{ "arch_prctl cpuid", SYS_arch_prctl, { 0x1012, 0 }, true },
	{ "sched_setaffinity", SYS_sched_setaffinity, { 0, 8, RIG_DATA }, true },
	{ "io_uring_setup", SYS_io_uring_setup, { 8, RIG_DATA }, true },
	{ "bpf", SYS_bpf, { 0, RIG_DATA, 64 }, true },
	{ "x32 open", 0x40000000 | SYS_open, { RIG_DATA, 0 }, true },
	{ "close", SYS_close, { 3 }, false },
	{ "futex wake", SYS_futex, { STUB_SLOTS, 1, 100 }, false },
	{ "exit", SYS_exit, { 0 }, false },
	{ "exit_group", SYS_exit_group, { 0 }, false },
	{ "rt_sigreturn", SYS_rt_sigreturn, { 0 }, false },
	{ "block the kick", SYS_rt_sigprocmask, { 0, RIG_DATA, 0, 8 }, false },
};

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

/* Runs; a guest that does not come back within a moment is interrupted, then killed. */
static void run_bounded(struct runner *r)
{
	atomic_store(&r->done, 0);
	rig_thread(run_once, r);
	for (int i = 0; !atomic_load(&r->done); i++) {
		usleep(200);
		if (i == 500)
			r->g.ops->interrupt(r->g.ctx);
		if (i == 1000 && r->g.ops->host_pid(r->g.as) > 0)
			kill(r->g.ops->host_pid(r->g.as), SIGKILL);
		CHECK(i < 50000);
	}
}

static void test_gadgets(const struct platform_ops *ops)
{
	static struct runner r;
	struct guest bystander;
	size_t size = (size_t)(stub_code_end - stub_code_begin);

	/* On ptrace a call from our code is trapped as any other. */
	if (strcmp(ops->name, "seccomp") != 0)
		_exit(77);
	start(&bystander, ops);
	for (size_t off = 0; off + 2 <= size; off++) {
		if (stub_code_begin[off] != 0x0f || stub_code_begin[off + 1] != 0x05)
			continue;
		/* The boot's and the ptrace platform's gadgets stand for all; the handler's differ
		 * in what follows. */
		for (size_t i = 0; i < ARRAY_SIZE(gadget_calls); i++) {
			const struct gadget_call *c = &gadget_calls[i];
			if (!c->kills && off != (size_t)(stub_syscall - stub_code_begin))
				continue;
			start(&r.g, ops);
			rig_poke(&r.g, RIG_DATA, 1ul << (STUB_KICK - 1));
			r.g.regs.rip = STUB_CODE + off;
			r.g.regs.rax = c->nr;
			r.g.regs.rdi = c->args[0];
			r.g.regs.rsi = c->args[1];
			r.g.regs.rdx = c->args[2];
			r.g.regs.r10 = c->args[3];
			r.g.regs.r8 = c->args[4];
			r.g.regs.r9 = c->args[5];
			r.g.regs.rbx = RIG_DATA;
			r.g.regs.r12 = RIG_DATA;
			run_bounded(&r);
			if (c->kills && r.g.ev.kind != PLAT_DEAD)
				fprintf(stderr, "%s at %#zx: event %d\n", c->what, off,
					r.g.ev.kind);
			CHECK(!c->kills || r.g.ev.kind == PLAT_DEAD);
			rig_free(&r.g);
		}
	}
	rig_syscall(&bystander, 39);
	rig_free(&bystander);
}

/* Jumps to every byte of our code with registers that point at guest memory or at the slots. */
static void test_jumps(const struct platform_ops *ops)
{
	static struct runner r;
	size_t size = (size_t)(stub_code_end - stub_code_begin);
	uint64_t end = rig_now_ns() + 3000000000u;

	for (size_t off = 0; off < size && rig_now_ns() < end; off += 1 + off % 5) {
		uint64_t *words = (uint64_t *)&r.g.regs;
		start(&r.g, ops);
		for (size_t i = 0; i < 15; i++)
			words[i] = (off + i) % 2 ? RIG_DATA + 0x1000
						 : STUB_SLOTS + (off + i) % 4 * STUB_SLOT_SIZE;
		r.g.regs.rsp = RIG_DATA + 0x8000;
		r.g.regs.rip = STUB_CODE + off;
		r.g.regs.orig_rax = (uint64_t)-1;
		run_bounded(&r);
		rig_free(&r.g);
	}
	start(&r.g, ops);
	rig_syscall(&r.g, 39);
	rig_free(&r.g);
}

struct reaper {
	int pidfd;
	atomic_int stop, done;
};

/* Kills after a while what an outside timeout would kill. */
static void *reap_later(void *arg)
{
	struct reaper *r = arg;

	for (int i = 0; i < 300 && !atomic_load(&r->stop); i++)
		usleep(1000);
	syscall(SYS_pidfd_send_signal, r->pidfd, SIGKILL, NULL, 0);
	close(r->pidfd);
	atomic_store(&r->done, 1);
	return NULL;
}

static struct reaper *reaper_start(int pid)
{
	struct reaper *r = calloc(1, sizeof(*r));

	r->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	rig_thread(reap_later, r);
	return r;
}

/* One guest thread writes noise over the shared page and stack of another, which works. */
static void test_noise(const struct platform_ops *ops)
{
	static struct runner noise;
	struct guest g, bystander;
	uint64_t end = rig_now_ns() + 3000000000u;
	int fd = memfd_create("n", 0);

	CHECK_EQ(ftruncate(fd, PAGE_SIZE), 0);
	start(&bystander, ops);
	for (unsigned round = 0; round < 400 && rig_now_ns() < end; round++) {
		start(&g, ops);
		rig_clone(&g, &noise.g);
		rig_at(&noise.g, (size_t)(h_noise - h_begin));
		/* The slots made so far are few: ours are the first ones. Some rounds aim at the
		 * control words. */
		noise.g.regs.rdi = STUB_SLOTS + round % 8 * STUB_SLOT_SIZE;
		noise.g.regs.rsi = round % 3 == 0 ? 16 : round % 3 == 1 ? 96 : STUB_SLOT_SIZE / 8;
		noise.g.regs.rdx = 0x9e3779b97f4a7c15u * (round + 1);
		atomic_store(&noise.done, 0);
		rig_thread(run_once, &noise);
		struct reaper *reaper = reaper_start(ops->host_pid(g.as));
		uint64_t stop = rig_now_ns() + 30000000u;
		for (unsigned i = 0; rig_now_ns() < stop; i++) {
			static struct runner self;
			struct plat_map m = {
				.addr = 0x1000000, .size = PAGE_SIZE, .prot = PROT_READ, .fd = fd
			};
			uint32_t seen;
			self.g = g;
			rig_at(&self.g, 0);
			run_bounded(&self);
			if (self.g.ev.kind == PLAT_DEAD)
				break;
			if (round % 2 && i % 4 == 0) {
				/* A hostile page can hold up an ordered call; only a kill ends
				 * that. */
				if (ops->cmpxchg32(g.ctx, RIG_DATA, 0, 0, &seen) == -ESRCH)
					break;
				if (round % 4 == 3 && ops->map(g.ctx, &m) == -ESRCH)
					break;
			}
		}
		atomic_store(&reaper->stop, 1);
		while (!atomic_load(&reaper->done))
			usleep(100);
		free(reaper);
		while (!atomic_load(&noise.done))
			usleep(100);
		ops->ctx_free(noise.g.ctx);
		rig_free(&g);
		if (round % 16 == 0)
			rig_syscall(&bystander, 39);
	}
	rig_syscall(&bystander, 39);
	rig_free(&bystander);
	close(fd);
}

/* A thread that blocks the kick and spins is taken down with its process. */
static void test_deaf(const struct platform_ops *ops)
{
	struct guest g;
	uint64_t frame[128] = { 0 };

	if (strcmp(ops->name, "seccomp") != 0)
		_exit(77);
	start(&g, ops);
	/* A forged frame: rip loops, all signals blocked. Offsets of struct frame_ucontext. */
	uint64_t at = RIG_DATA + 0x1000;
	frame[0] = 6;
	frame[5 + 15] = RIG_STACK + 0x1000;
	frame[5 + 16] = RIG_DATA + 0x3000;
	frame[5 + 17] = 0x202;
	frame[5 + 18] = 0x002b000000000033;
	frame[5 + 32] = ~0ul;
	CHECK_EQ(ops->copy_out(g.as, at, frame, sizeof(frame)), sizeof(frame));
	CHECK_EQ(ops->copy_out(g.as, RIG_DATA + 0x3000, "\xeb\xfe", 2), 2);
	CHECK_EQ(ops->protect(g.ctx, RIG_DATA + 0x3000, PAGE_SIZE, PROT_READ | PROT_EXEC), 0);
	g.regs.rip = stub_code_addr(stub_restorer);
	g.regs.rsp = at;
	static struct runner r;
	r.g = g;
	atomic_store(&r.done, 0);
	rig_thread(run_once, &r);
	usleep(100000);
	CHECK_EQ(atomic_load(&r.done), 0);
	seccomp_urge_steps = 4;
	ops->interrupt(g.ctx);
	while (!atomic_load(&r.done))
		usleep(10000);
	CHECK_EQ(r.g.ev.kind, PLAT_DEAD);
	rig_free(&g);
}

static const struct rig_test tests[] = {
	{ "stub pages", test_stub_pages, 0, false },
	{ "gadgets", test_gadgets, 60, false },
	{ "jumps into our code", test_jumps, 60, false },
	{ "noise in shared pages", test_noise, 60, false },
	{ "deaf thread", test_deaf, 60, false },
};

int main(void)
{
	return rig_main("platform: hostile guests", tests, ARRAY_SIZE(tests));
}

/*
 * Platform "seccomp": guest code runs natively in a stub process; every system call it makes is
 * turned into SIGSYS by the stub's filter, and the signal handler in the stub hands over to the
 * sentry.
 *
 * run(): the registers go into the signal frame that lies in the thread's slot, the stub does
 * rt_sigreturn, the guest runs. The next signal (SIGSYS, a fault, the kick) makes the kernel write
 * a new frame into the same slot; the stub thread says where, parks and rings; the sentry checks
 * the place, copies registers and siginfo once, and from then on uses its copy only.
 *
 * Limits: force_in/force_out obey page protections, since the sentry can open no /proc/PID/mem. A
 * guest that makes one of its threads deaf to the kick, by jumping into our rt_sigreturn, gets its
 * process killed some time after the next interrupt() (handover.c).
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/log.h"
#include "platform/seccomp/internal.h"
#include "platform/stub/copy.h"

struct seccomp_state sec = { .mu = MUTEX_INIT(RANK_PLATFORM), .listener = -1, .slots_fd = -1 };

/* In a child: can a filter with a listener be installed? Exit status: its errno. */
static NORETURN void probe_child(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog) < 0)
		_exit(errno);
	_exit(0);
}

static int probe_filter(char *why, size_t why_size)
{
	uint32_t actions[] = { SECCOMP_RET_USER_NOTIF, SECCOMP_RET_TRAP, SECCOMP_RET_KILL_PROCESS };
	int status;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]) < 0) {
			snprintf(why, why_size,
				 "the kernel lacks seccomp filters with user notification");
			return -ENOTSUP;
		}
	pid_t pid = fork();
	if (pid == 0)
		probe_child();
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	if (status == 0)
		return 0;
	int err = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
	snprintf(why, why_size, "a seccomp filter with a listener cannot be installed: %s%s",
		 strerror(err), err == EBUSY ? " (this container is itself under one)" : "");
	return -err;
}

/* May we read a child's memory? Yama's ptrace_scope 2 and 3 and some container policies say no. */
static int probe_memory(char *why, size_t why_size)
{
	int word = 1, seen = 0;
	struct iovec here = { &seen, sizeof(seen) }, there = { &word, sizeof(word) };
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ssize_t r = process_vm_readv(pid, &here, 1, &there, 1, 0);
	int err = r < 0 ? -errno : 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (err)
		snprintf(why, why_size,
			 "reading the memory of a child process is not permitted (%s): "
			 "kernel.yama.ptrace_scope is 2 or 3, or the container forbids "
			 "process_vm_readv",
			 strerror(-err));
	return err;
}

static int sec_probe(char *why, size_t why_size)
{
	int err = probe_filter(why, why_size);

	return err ? err : probe_memory(why, why_size);
}

static int sec_start(void)
{
	for (size_t i = 0; i < PID_BUCKETS; i++)
		list_init(&sec.pids[i]);
	list_init(&sec.pending);
	list_init(&sec.newborn);
	sec.own_pid = getpid();
	sec.has_fsgs = regs_has_fsgsbase();
	int err = fp_measure();
	if (!err)
		err = slots_init();
	return err ? err : space_boot();
}

static int sec_ready(void)
{
	int err = space_boot_wait();

	return err ? err : notify_start();
}

static void sec_main_request(void)
{
	/* Every request of this platform is carried out by the thread that has it. */
}

static const struct plat_info *sec_info(void)
{
	return &sec.info;
}

static ssize_t sec_copy_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	return atomic_load(&as->dead) ? -ESRCH : stub_copy_in(atomic_load(&as->pid), dst, addr, n);
}

static ssize_t sec_copy_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	return atomic_load(&as->dead) ? -ESRCH : stub_copy_out(atomic_load(&as->pid), addr, src, n);
}

static int sec_cmpxchg32(struct plat_ctx *via, uint64_t addr, uint32_t old, uint32_t new,
			 uint32_t *seen)
{
	struct stub_shared *sh = via->sh;

	if ((addr & 3) || addr >= STUB_TASK_MAX)
		return -EFAULT;
	sh->cx_addr = addr;
	sh->cx_old = old;
	sh->cx_new = new;
	sh->op = STUB_OP_CMPXCHG;
	if (ctx_ring(via))
		return -ESRCH;
	*seen = __atomic_load_n(&sh->cx_seen, __ATOMIC_RELAXED);
	return __atomic_load_n(&sh->result, __ATOMIC_RELAXED) ? -EFAULT : 0;
}

/* Marks the context as interruptible by a signal; false when an interrupt is already there. */
static bool enter(struct plat_ctx *ctx)
{
	atomic_store(&ctx->running, true);
	if (!atomic_load(&ctx->kicked))
		return true;
	atomic_store(&ctx->running, false);
	return false;
}

static void sec_interrupt(struct plat_ctx *ctx)
{
	uint32_t *turn = &ctx->sh->turn;

	/* Either we see `running`, or enter() sees `kicked`. A kick that comes too late stays
	 * pending in the stub, where it is blocked, and makes one idle PLAT_INTERRUPT. */
	atomic_store(&ctx->kicked, true);
	if (atomic_load(&ctx->running))
		syscall(SYS_tgkill, atomic_load(&ctx->as->pid), ctx->tid, STUB_KICK);
	/* The sentry thread shall know that it waits for a kicked thread (ctx_wait), also when it
	 * sleeps on a value that a hostile guest wrote there. */
	uint32_t t = __atomic_load_n(turn, __ATOMIC_SEQ_CST);
	if (t != TURN_SENTRY && t != TURN_DEAD)
		__atomic_compare_exchange_n(turn, &t, TURN_KICKED, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	futex_wake(turn);
}

/* The wait itself, restarted when a stale kick ended it. */
static long futex_sleep(struct plat_ctx *ctx, const uint64_t args[6],
			const struct timespec *timeout)
{
	struct stub_shared *sh = ctx->sh;

	for (;;) {
		if (!enter(ctx))
			return -EINTR;
		for (int i = 0; i < 6; i++)
			sh->commands[0].args[i] = args[i];
		if (timeout) {
			sh->timeout[0] = timeout->tv_sec;
			sh->timeout[1] = timeout->tv_nsec;
		}
		sh->commands[0].args[3] = timeout ? stub_slot_addr(ctx->slot) + SH_TIMEOUT : 0;
		sh->op = STUB_OP_FUTEX;
		int err = ctx_ring(ctx);
		atomic_store(&ctx->running, false);
		if (err)
			return err;
		int64_t r = __atomic_load_n(&sh->result, __ATOMIC_RELAXED);
		if (r != -EINTR || atomic_load(&ctx->kicked))
			return r < -133 ? -EINVAL : (long)r;
	}
}

static long sec_futex(struct plat_ctx *ctx, const uint64_t args[6], const struct timespec *timeout)
{
	uint64_t a[6];
	struct timespec when;

	memcpy(a, args, sizeof(a));
	int kind = stub_futex_kind(a, timeout, &when);
	if (kind < 0)
		return kind;
	if (kind == STUB_FUTEX_WAITS)
		return futex_sleep(ctx, a, timeout ? &when : NULL);
	return (long)ctx_call(ctx, SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Is [addr, addr + size) inside the signal stack of the slot? Gives the offset in the slot. */
static bool in_stack(const struct plat_ctx *ctx, uint64_t addr, size_t size, uint64_t align,
		     uint32_t *out_off)
{
	uint64_t off = addr - stub_slot_addr(ctx->slot);

	if (off < STUB_STACK_OFF || off > STUB_SLOT_SIZE - size || (off & (align - 1)))
		return false;
	*out_off = (uint32_t)off;
	return true;
}

static void describe(const struct frame_sigcontext *mc, const struct frame_siginfo *si, int signo,
		     struct regs *regs, struct plat_event *ev)
{
	*ev = (struct plat_event){ .kind = PLAT_FAULT, .signo = signo };
	regs->orig_rax = (uint64_t)-1;
	switch (signo) {
	case SIGSYS:
		ev->kind = PLAT_SYSCALL;
		ev->signo = 0;
		ev->arch = si->sys.arch;
		regs->orig_rax = regs->rax;
		regs->rax = (uint64_t)-ENOSYS;
		return;
	case STUB_KICK:
		ev->kind = PLAT_INTERRUPT;
		ev->signo = 0;
		return;
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		break;
	default:
		ev->signo = SIGSEGV;
		break;
	}
	ev->code = si->code;
	ev->addr = si->addr;
	ev->trapno = mc->trapno;
	ev->err = mc->err;
}

/* Copies what the kernel wrote into the slot. False when the stub does not make sense. */
bool seccomp_collect(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev)
{
	const struct stub_shared *sh = ctx->sh;
	const uint8_t *base = (const uint8_t *)sh;
	struct frame_sigcontext mc;
	struct frame_siginfo si;
	uint32_t uc_off, si_off, fp_off;

	int signo = __atomic_load_n(&sh->signo, __ATOMIC_RELAXED);
	uint64_t uc = __atomic_load_n(&sh->uc, __ATOMIC_RELAXED);
	uint64_t info = __atomic_load_n(&sh->si, __ATOMIC_RELAXED);
	if (!in_stack(ctx, uc, sizeof(struct frame_ucontext), 8, &uc_off) ||
	    !in_stack(ctx, info, sizeof(si), 8, &si_off))
		return false;
	memcpy(&mc, base + uc_off + offsetof(struct frame_ucontext, mc), sizeof(mc));
	memcpy(&si, base + si_off, sizeof(si));
	if (!in_stack(ctx, mc.fpstate, fp_size(), 64, &fp_off))
		return false;
	ctx->uc_off = uc_off;
	ctx->fp_off = fp_off;
	if (sec.has_fsgs) {
		ctx->fs_base = __atomic_load_n(&sh->fs, __ATOMIC_RELAXED);
		ctx->gs_base = __atomic_load_n(&sh->gs, __ATOMIC_RELAXED);
	}
	frame_get_regs(&mc, regs);
	regs->fs_base = ctx->fs_base;
	regs->gs_base = ctx->gs_base;
	describe(&mc, &si, signo, regs, ev);
	return true;
}

void seccomp_load_regs(struct plat_ctx *ctx, struct regs *regs)
{
	struct stub_shared *sh = ctx->sh;
	struct frame_ucontext *uc = (struct frame_ucontext *)(void *)((uint8_t *)sh + ctx->uc_off);
	uint32_t flags = 0;

	frame_set_regs(&uc->mc, regs);
	uc->sigmask = 0;
	regs->fs_base = regs_base_sanitise(regs->fs_base);
	regs->gs_base = regs_base_sanitise(regs->gs_base);
	if (regs->fs_base != ctx->fs_base) {
		flags |= STUB_SET_FS;
		sh->fs = ctx->fs_base = regs->fs_base;
	}
	if (regs->gs_base != ctx->gs_base) {
		flags |= STUB_SET_GS;
		sh->gs = ctx->gs_base = regs->gs_base;
	}
	sh->flags = flags;
	sh->op = STUB_OP_RESUME;
}

static void sec_run(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev)
{
	*ev = (struct plat_event){ .kind = PLAT_DEAD };
	if (!enter(ctx)) {
		atomic_store(&ctx->kicked, false);
		ev->kind = PLAT_INTERRUPT;
		return;
	}
	seccomp_load_regs(ctx, regs);
	int err = ctx_ring(ctx);
	atomic_store(&ctx->running, false);
	if (err)
		return;
	if (!seccomp_collect(ctx, regs, ev)) {
		log_debug("a stub gave a bad signal frame and is killed");
		as_kill(ctx->as);
		*ev = (struct plat_event){ .kind = PLAT_DEAD };
	}
	/* Another event may have been there first; the interrupt then still has to end a futex() or
	 * be seen by the next run(), or a signal sent at this moment would be lost on a sleeper. */
	if (ev->kind == PLAT_INTERRUPT)
		atomic_store(&ctx->kicked, false);
}

static int sec_fp_get(struct plat_ctx *ctx, void *buf)
{
	memcpy(buf, (const uint8_t *)ctx->sh + ctx->fp_off, fp_size());
	fp_sanitise(buf);
	return 0;
}

static int sec_fp_set(struct plat_ctx *ctx, const void *buf)
{
	uint8_t *fp = (uint8_t *)ctx->sh + ctx->fp_off;

	memcpy(fp, buf, fp_size());
	fp_sanitise(fp);
	return 0;
}

static int sec_host_pid(struct plat_as *as)
{
	return atomic_load(&as->dead) ? 0 : atomic_load(&as->pid);
}

const struct platform_ops seccomp_platform = {
	.name = "seccomp",
	.summary = "system calls trapped by a seccomp filter, one host process per address space",
	.probe = sec_probe,
	.start = sec_start,
	.ready = sec_ready,
	.spread = space_spread,
	.child_event = space_child_event,
	.main_request = sec_main_request,
	.info = sec_info,
	.as_new = space_new,
	.as_fork = space_fork,
	.as_free = space_as_free,
	.ctx_clone = space_clone,
	.ctx_free = space_ctx_free,
	.map = memory_map,
	.unmap = memory_unmap,
	.protect = memory_protect,
	.remap = memory_remap,
	.advise = memory_advise,
	.resident = memory_resident,
	.lock = memory_lock,
	.copy_in = sec_copy_in,
	.copy_out = sec_copy_out,
	.force_in = sec_copy_in,
	.force_out = sec_copy_out,
	.cmpxchg32 = sec_cmpxchg32,
	.futex = sec_futex,
	.run = sec_run,
	.interrupt = sec_interrupt,
	.fp_get = sec_fp_get,
	.fp_set = sec_fp_set,
	.host_pid = sec_host_pid,
};

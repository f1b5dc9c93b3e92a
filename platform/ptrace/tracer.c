/*
 * The tracing thread's work. Between requests every thread of a stub is stopped, or it runs guest
 * code under PTRACE_SYSEMU (which skips each system call and stops), or it sleeps in an injected
 * futex call.
 *
 * Injection: registers are set so that the thread executes "syscall; int3" in our code page; the
 * next SIGTRAP stop brings the result. The guest's registers need no saving: run() loads all of
 * them. A stale kick that stops the thread in between is swallowed.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "platform/host/fdpass.h"
#include "platform/ptrace/internal.h"
#include "platform/stub/copy.h"
#include "platform/stub/futex.h"

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define FP_BUF_SIZE 16384

struct plat_ctx *tracer_find(int tid)
{
	list_for_each(l, &pt.tids[(unsigned)tid % TID_BUCKETS]) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, tid_link);
		if (ctx->tid == tid)
			return ctx;
	}
	return NULL;
}

void tracer_add(struct plat_ctx *ctx)
{
	list_add(&pt.tids[(unsigned)ctx->tid % TID_BUCKETS], &ctx->tid_link);
	list_add_tail(&ctx->as->ctxs, &ctx->link);
}

int tracer_wait(struct plat_ctx *ctx)
{
	int status;

	/* All stubs are one process group. Others' events are served too: the end of a process is
	 * only told when all its threads have been waited for. */
	while (!ctx->gone) {
		pid_t tid = waitpid(-pt.stub_group, &status, __WALL);
		if (tid == ctx->tid && WIFSTOPPED(status))
			return status >> 8;
		if (tid > 0)
			tracer_event(tid, status);
		else if (errno != EINTR)
			tspace_thread_gone(ctx);
	}
	return -ESRCH;
}

int tracer_wait_newborn(int tid)
{
	int status;

	while (pt.early_tid != tid) {
		pid_t got = waitpid(-pt.stub_group, &status, __WALL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -ESRCH;
		if (got != tid || WIFSTOPPED(status))
			tracer_event(got, status);
		else
			return -ESRCH;
	}
	pt.early_tid = 0;
	return 0;
}

static int set_regs(struct plat_ctx *ctx, const struct regs *regs)
{
	struct regs r = *regs;

	regs_sanitise(&r);
	r.fs_base = regs_base_sanitise(r.fs_base);
	r.gs_base = regs_base_sanitise(r.gs_base);
	r.ds = r.es = r.fs = r.gs = 0;
	/* No system call is under way that the kernel could want to restart. */
	r.orig_rax = (uint64_t)-1;
	return ptrace(PTRACE_SETREGS, ctx->tid, NULL, &r) < 0 ? -ESRCH : 0;
}

int tracer_resume(struct plat_ctx *ctx, const struct regs *regs, int how)
{
	if (ctx->gone || set_regs(ctx, regs))
		return -ESRCH;
	return ptrace(how, ctx->tid, NULL, NULL) < 0 ? -ESRCH : 0;
}

struct regs tracer_blob_regs(const uint8_t *part)
{
	return (struct regs){ .rip = stub_code_addr(part),
			      .rsp = SCRATCH + SCRATCH_SIZE - 64,
			      .eflags = 0x202 };
}

static struct regs call_regs(struct plat_ctx *ctx, uint64_t nr, const uint64_t args[6])
{
	struct regs r = tracer_blob_regs(stub_syscall);
	struct regs now;

	/* The thread pointer stays: a futex call must not lose it, a clone hands it on. */
	if (ptrace(PTRACE_GETREGS, ctx->tid, NULL, &now) == 0) {
		r.fs_base = now.fs_base;
		r.gs_base = now.gs_base;
	}
	r.rax = nr;
	r.rdi = args[0];
	r.rsi = args[1];
	r.rdx = args[2];
	r.r10 = args[3];
	r.r8 = args[4];
	r.r9 = args[5];
	return r;
}

long tracer_call(struct plat_ctx *ctx, uint64_t nr, const uint64_t args[6])
{
	struct regs r = call_regs(ctx, nr, args);
	int stop;

	if (tracer_resume(ctx, &r, PTRACE_CONT))
		return -ESRCH;
	while ((stop = tracer_wait(ctx)) != SIGTRAP) {
		/* A kick that came late, or the event of a clone, which the caller asks about. */
		if (stop < 0 || ptrace(PTRACE_CONT, ctx->tid, NULL, NULL) < 0)
			return -ESRCH;
	}
	if (ptrace(PTRACE_GETREGS, ctx->tid, NULL, &r) < 0)
		return -ESRCH;
	return (long)r.rax;
}

void tracer_report(struct plat_ctx *ctx)
{
	ctx->mode = MODE_PARKED;
	__atomic_store_n(&ctx->event, 1, __ATOMIC_SEQ_CST);
	futex_wake(&ctx->event);
}

/* Fills regs and event from a stop. False when the thread shall just go on. */
static bool describe(struct plat_ctx *ctx, int signo)
{
	struct __ptrace_syscall_info info;
	siginfo_t si;

	ctx->ev = (struct plat_event){ .kind = PLAT_FAULT, .signo = signo };
	if (ptrace(PTRACE_GETREGS, ctx->tid, NULL, &ctx->regs) < 0) {
		ctx->ev.kind = PLAT_DEAD;
		return true;
	}
	switch (signo) {
	case SYSCALL_STOP:
		memset(&info, 0, sizeof(info));
		if (ptrace(PTRACE_GET_SYSCALL_INFO, ctx->tid, sizeof(info), &info) < 0)
			info.arch = 0;
		ctx->ev = (struct plat_event){ .kind = PLAT_SYSCALL, .arch = info.arch };
		return true;
	case STUB_KICK:
		ctx->ev = (struct plat_event){ .kind = PLAT_INTERRUPT };
		break;
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		if (ptrace(PTRACE_GETSIGINFO, ctx->tid, NULL, &si) < 0)
			memset(&si, 0, sizeof(si));
		ctx->ev.code = si.si_code;
		ctx->ev.addr = (uint64_t)si.si_addr;
		break;
	default:
		return false;
	}
	ctx->regs.orig_rax = (uint64_t)-1;
	/* The hardware's error code is not to be had; what it tells apart most can be told without.
	 */
	if (signo == SIGSEGV && si.si_code > 0 && si.si_code != SI_KERNEL) {
		ctx->ev.trapno = 14;
		ctx->ev.err = 4u | (si.si_code == SEGV_ACCERR) |
			      (ctx->ev.addr == ctx->regs.rip ? 0x10u : 0);
	}
	return true;
}

/* A stop while the thread sleeps in a futex call. */
static bool describe_futex(struct plat_ctx *ctx, int signo)
{
	struct regs r;

	if (signo == SIGTRAP) {
		ctx->result = ptrace(PTRACE_GETREGS, ctx->tid, NULL, &r) < 0 ? -ESRCH : (long)r.rax;
		return true;
	}
	if (signo == STUB_KICK && atomic_load(&ctx->kicked)) {
		ctx->result = -EINTR;
		return true;
	}
	return false;
}

bool tracer_event(int tid, int status)
{
	struct plat_ctx *ctx = tracer_find(tid);

	if (!ctx) {
		/* A thread being born may stop before its parent tells of it; one at a time is
		 * born. */
		if (WIFSTOPPED(status))
			pt.early_tid = tid;
		return false;
	}
	if (!WIFSTOPPED(status)) {
		tspace_thread_gone(ctx);
		return true;
	}
	int signo = status >> 8;
	switch (ctx->mode) {
	case MODE_GUEST:
		if (describe(ctx, signo))
			tracer_report(ctx);
		else
			ptrace(PTRACE_SYSEMU, tid, NULL, NULL);
		break;
	case MODE_FUTEX:
		if (describe_futex(ctx, signo))
			tracer_report(ctx);
		else
			ptrace(PTRACE_CONT, tid, NULL, NULL);
		break;
	case MODE_PARKED:
		break;
	}
	return true;
}

int tracer_get_fp(struct plat_ctx *ctx, void *image)
{
	uint8_t buf[FP_BUF_SIZE] = { 0 };
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };

	if (ptrace(PTRACE_GETREGSET, ctx->tid, NT_X86_XSTATE, &iov) < 0)
		return -ESRCH;
	memcpy(image, buf, fp_xsave_size());
	memset((uint8_t *)image + fp_xsave_size(), 0, fp_size() - fp_xsave_size());
	fp_sanitise(image);
	return 0;
}

int tracer_set_fp(struct plat_ctx *ctx, const void *image)
{
	/* The host wants the largest image it knows, with features that this one lacks left at
	 * rest. */
	uint8_t buf[FP_BUF_SIZE] = { 0 };
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };

	memcpy(buf, image, fp_size());
	fp_sanitise(buf);
	memset(buf + fp_xsave_size(), 0, fp_size() - fp_xsave_size());
	if (ptrace(PTRACE_SETREGSET, ctx->tid, NT_X86_XSTATE, &iov) < 0)
		return errno == ESRCH ? -ESRCH : -EINVAL;
	return 0;
}

long tracer_run(struct request *rq)
{
	struct plat_ctx *ctx = rq->ctx;

	ctx->mode = MODE_GUEST;
	if (tracer_resume(ctx, rq->regs, PTRACE_SYSEMU)) {
		ctx->mode = MODE_PARKED;
		return -ESRCH;
	}
	return 0;
}

long tracer_plain_call(struct request *rq)
{
	return tracer_call(rq->ctx, rq->nr, rq->args);
}

/* Writes into our own area of a stub, which the copy functions for guest memory refuse. */
static int scratch_io(struct plat_ctx *ctx, uint64_t addr, void *buf, size_t n, bool write)
{
	struct iovec here = { .iov_base = buf, .iov_len = n };
	struct iovec there = { .iov_base = (void *)addr, .iov_len = n };
	ssize_t r = write ? process_vm_writev(ctx->as->pid, &here, 1, &there, 1, 0)
			  : process_vm_readv(ctx->as->pid, &here, 1, &there, 1, 0);

	return r == (ssize_t)n ? 0 : -ESRCH;
}

long tracer_futex(struct request *rq)
{
	struct plat_ctx *ctx = rq->ctx;

	if (rq->buf) {
		uint64_t at =
			SCRATCH_TIMES + ctx->number % SCRATCH_TIMES_COUNT * sizeof(struct timespec);
		if (scratch_io(ctx, at, rq->buf, sizeof(struct timespec), true))
			return -ESRCH;
		rq->args[3] = at;
	}
	struct regs r = call_regs(ctx, SYS_futex, rq->args);
	ctx->mode = MODE_FUTEX;
	if (tracer_resume(ctx, &r, PTRACE_CONT)) {
		ctx->mode = MODE_PARKED;
		return -ESRCH;
	}
	return 0;
}

/* What recvmsg(2) needs, as one block in the scratch area. */
struct scratch_msg {
	struct msghdr head;
	struct iovec iov;
	char byte;
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
};

/* Has the stub take a descriptor from the channel. Its number there, or -errno. */
static long receive_fd(struct plat_ctx *ctx, int fd)
{
	struct scratch_msg m = {
		.head = {
			.msg_iov = (void *)(SCRATCH + offsetof(struct scratch_msg, iov)),
			.msg_iovlen = 1,
			.msg_control = (void *)(SCRATCH + offsetof(struct scratch_msg, control)),
			.msg_controllen = CMSG_SPACE(sizeof(int)),
		},
		.iov = { .iov_base = (void *)(SCRATCH + offsetof(struct scratch_msg, byte)), .iov_len = 1 },
	};
	uint64_t args[6] = { STUB_FD, SCRATCH, MSG_DONTWAIT };
	int number;

	if (scratch_io(ctx, SCRATCH, &m, sizeof(m), true))
		return -ESRCH;
	int err = host_send_msg(pt.sock, "f", 1, NULL, 0, fd);
	if (err)
		return err;
	long r = tracer_call(ctx, SYS_recvmsg, args);
	if (r != 1)
		return r < 0 ? r : -EIO;
	if (scratch_io(ctx, SCRATCH, &m, sizeof(m), false))
		return -ESRCH;
	if (m.control.head.cmsg_type != SCM_RIGHTS ||
	    m.control.head.cmsg_len != CMSG_LEN(sizeof(int)))
		return -EMFILE;
	memcpy(&number, CMSG_DATA(&m.control.head), sizeof(number));
	return number;
}

long tracer_map(struct request *rq)
{
	const struct plat_map *m = rq->map;
	bool anon = (m->flags & PLAT_MAP_ANON) != 0;
	long fd = anon ? -1 : receive_fd(rq->ctx, m->fd);

	if (!anon && fd < 0)
		return fd;
	uint64_t args[6] = { m->addr,           m->size,
			     (uint64_t)m->prot, stub_map_flags(m->flags),
			     (uint64_t)fd,      anon ? 0 : m->off };
	long r = tracer_call(rq->ctx, SYS_mmap, args);
	if (!anon) {
		uint64_t close_args[6] = { (uint64_t)fd };
		if (tracer_call(rq->ctx, SYS_close, close_args) == -ESRCH)
			return -ESRCH;
	}
	return r;
}

long tracer_cmpxchg(struct request *rq)
{
	struct regs r = tracer_blob_regs(stub_cmpxchg);
	struct regs now;
	int stop;

	if (ptrace(PTRACE_GETREGS, rq->ctx->tid, NULL, &now) < 0)
		return -ESRCH;
	r.fs_base = now.fs_base;
	r.gs_base = now.gs_base;
	r.rdi = rq->args[0];
	r.rax = rq->args[1];
	r.rdx = rq->args[2];
	if (tracer_resume(rq->ctx, &r, PTRACE_CONT))
		return -ESRCH;
	while ((stop = tracer_wait(rq->ctx)) != SIGTRAP) {
		if (stop < 0)
			return -ESRCH;
		if (stop == SIGSEGV || stop == SIGBUS)
			return -EFAULT;
		if (ptrace(PTRACE_CONT, rq->ctx->tid, NULL, NULL) < 0)
			return -ESRCH;
	}
	if (ptrace(PTRACE_GETREGS, rq->ctx->tid, NULL, &r) < 0)
		return -ESRCH;
	rq->args[3] = (uint32_t)r.rax;
	return 0;
}

/* A stopped thread of the process through which memory can be poked. */
static struct plat_ctx *stopped_thread(struct plat_as *as)
{
	list_for_each(l, &as->ctxs) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, link);
		if (ctx->mode == MODE_PARKED && !ctx->gone)
			return ctx;
	}
	return NULL;
}

long tracer_force_in(struct request *rq)
{
	struct plat_ctx *ctx = stopped_thread(rq->as);
	uint64_t addr = rq->args[0], n = rq->args[1], done = 0;

	if (!ctx)
		return -EFAULT;
	while (done < n) {
		uint64_t at = (addr + done) & ~7ul, skip = (addr + done) & 7;
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, ctx->tid, at, NULL);
		if (errno)
			return done ? (long)done : -EFAULT;
		size_t k = MIN(8 - skip, n - done);
		memcpy((char *)rq->buf + done, (char *)&word + skip, k);
		done += k;
	}
	return (long)done;
}

long tracer_force_out(struct request *rq)
{
	struct plat_ctx *ctx = stopped_thread(rq->as);
	uint64_t addr = rq->args[0], n = rq->args[1], done = 0;

	if (!ctx)
		return -EFAULT;
	while (done < n) {
		uint64_t at = (addr + done) & ~7ul, skip = (addr + done) & 7;
		size_t k = MIN(8 - skip, n - done);
		errno = 0;
		long word = k < 8 ? ptrace(PTRACE_PEEKDATA, ctx->tid, at, NULL) : 0;
		if (errno)
			return done ? (long)done : -EFAULT;
		memcpy((char *)&word + skip, (const char *)rq->data + done, k);
		if (ptrace(PTRACE_POKEDATA, ctx->tid, at, word) < 0)
			return done ? (long)done : -EFAULT;
		done += k;
	}
	return (long)done;
}

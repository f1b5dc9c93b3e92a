/*
 * Platform "ptrace": guest code runs in a stub that the sentry's main thread traces. Every system
 * call stops under PTRACE_SYSEMU and is skipped; mappings, forks and futex calls are injected. Slow
 * (several context switches through one thread per event), but it needs nothing beyond ptrace and
 * shares no memory with the stub: the oracle for the other platforms.
 *
 * Limits: a fault's hardware error code is guessed (bit 1, "write", is never set); the time page
 * calls of the vsyscall page are answered by the host without an event.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/ptrace/internal.h"
#include "platform/stub/copy.h"
#include "platform/stub/futex.h"

struct ptrace_state pt = { .mu = MUTEX_INIT(RANK_PLATFORM), .sock = -1 };

static bool is_main_thread(void)
{
	return (int)syscall(SYS_gettid) == pt.main_tid;
}

long request_do(struct request *rq)
{
	if (is_main_thread())
		return rq->fn(rq);
	rq->done = 0;
	mutex_lock(&pt.mu);
	bool first = list_empty(&pt.queue);
	list_add_tail(&pt.queue, &rq->link);
	mutex_unlock(&pt.mu);
	/* One signal per filled queue, so that the host's limit on queued signals is never met. */
	if (first)
		syscall(SYS_tgkill, pt.main_pid, pt.main_tid, PLAT_REQUEST_SIGNAL);
	while (__atomic_load_n(&rq->done, __ATOMIC_SEQ_CST) == 0)
		futex_wait(&rq->done, 0, NULL);
	return rq->result;
}

static void pt_main_request(void)
{
	for (;;) {
		mutex_lock(&pt.mu);
		struct request *rq = NULL;
		if (!list_empty(&pt.queue)) {
			rq = list_first(&pt.queue, struct request, link);
			list_del_init(&rq->link);
		}
		mutex_unlock(&pt.mu);
		if (!rq)
			return;
		rq->result = rq->fn(rq);
		/* The requester's stack may be gone right after this store; the wake is by address
		 * only. */
		uint32_t *done = &rq->done;
		__atomic_store_n(done, 1, __ATOMIC_SEQ_CST);
		futex_wake(done);
	}
}

static int pt_probe(char *why, size_t why_size)
{
	int status = 0, err = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL) < 0) {
		err = -EPERM;
		snprintf(why, why_size,
			 "tracing a child process is not permitted (kernel.yama.ptrace_scope 3, or "
			 "the "
			 "container forbids ptrace)");
	}
	if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, __WALL);
	}
	return err;
}

static int pt_start(void)
{
	for (size_t i = 0; i < TID_BUCKETS; i++)
		list_init(&pt.tids[i]);
	list_init(&pt.queue);
	pt.main_pid = getpid();
	pt.main_tid = (int)syscall(SYS_gettid);
	return tspace_start();
}

static bool pt_child_event(int pid, int status)
{
	return tracer_event(pid, status);
}

static const struct plat_info *pt_info(void)
{
	return &pt.info;
}

static int pt_as_new(struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	struct request rq = { .fn = tspace_new, .out_as = out_as, .out_ctx = out_ctx };

	return (int)request_do(&rq);
}

static int pt_as_fork(struct plat_ctx *caller, struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	struct request rq = {
		.fn = tspace_fork, .ctx = caller, .out_as = out_as, .out_ctx = out_ctx
	};

	return (int)request_do(&rq);
}

static int pt_ctx_clone(struct plat_ctx *caller, struct plat_ctx **out_ctx)
{
	struct request rq = { .fn = tspace_clone, .ctx = caller, .out_ctx = out_ctx };

	return (int)request_do(&rq);
}

static void pt_ctx_free(struct plat_ctx *ctx)
{
	struct request rq = { .fn = tspace_ctx_free, .ctx = ctx };

	request_do(&rq);
}

static void pt_as_free(struct plat_as *as)
{
	struct request rq = { .fn = tspace_as_free, .as = as };

	request_do(&rq);
}

static long call(struct plat_ctx *via, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3, uint64_t a4)
{
	struct request rq = {
		.fn = tracer_plain_call, .ctx = via, .nr = nr, .args = { a0, a1, a2, a3, a4, 0 }
	};

	return request_do(&rq);
}

static int pt_map(struct plat_ctx *via, const struct plat_map *m)
{
	struct request rq = { .fn = tracer_map, .ctx = via, .map = m };

	if (!stub_range_ok(m->addr, m->size) || (m->prot & ~7))
		return -EINVAL;
	long r = request_do(&rq);
	return r == (long)m->addr ? 0 : r < 0 ? (int)r : -EEXIST;
}

static int pt_unmap(struct plat_ctx *via, uint64_t addr, uint64_t size)
{
	if (!stub_range_ok(addr, size))
		return -EINVAL;
	return (int)call(via, SYS_munmap, addr, size, 0, 0, 0);
}

static int pt_protect(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot)
{
	if (!stub_range_ok(addr, size) || (prot & ~7))
		return -EINVAL;
	return (int)call(via, SYS_mprotect, addr, size, (uint64_t)prot, 0, 0);
}

static int pt_remap(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		    uint64_t new_size, bool dontunmap)
{
	uint64_t flags = stub_remap_flags(old_addr, new_addr, dontunmap);

	if (!stub_range_ok(old_addr, old_size ? old_size : PAGE_SIZE) ||
	    !stub_range_ok(new_addr, new_size))
		return -EINVAL;
	long r = call(via, SYS_mremap, old_addr, old_size, new_size, flags, flags ? new_addr : 0);
	return r == (long)new_addr ? 0 : r < 0 ? (int)r : -ESRCH;
}

static int pt_advise(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice)
{
	if (!stub_advice_ok(advice) || !stub_range_ok(addr, size))
		return -EINVAL;
	return (int)call(via, SYS_madvise, addr, size, (uint64_t)advice, 0, 0);
}

/* Reads a part of the scratch area after a call has filled it. */
static long call_mincore(struct request *rq)
{
	struct iovec here = { .iov_base = rq->buf, .iov_len = rq->args[1] / PAGE_SIZE };
	struct iovec there = { .iov_base = (void *)SCRATCH_VEC, .iov_len = here.iov_len };
	long r = tracer_call(rq->ctx, SYS_mincore, rq->args);

	if (r == 0 && process_vm_readv(rq->ctx->as->pid, &here, 1, &there, 1, 0) < 0)
		return -ESRCH;
	return r;
}

static int pt_resident(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec)
{
	if (!stub_range_ok(addr, size))
		return -EINVAL;
	for (uint64_t pages = size / PAGE_SIZE; pages > 0;) {
		uint64_t n = MIN(pages, STUB_WINDOW_SIZE);
		struct request rq = { .fn = call_mincore,
				      .ctx = via,
				      .buf = vec,
				      .args = { addr, n * PAGE_SIZE, SCRATCH_VEC } };
		long err = request_do(&rq);
		if (err)
			return (int)err;
		addr += n * PAGE_SIZE;
		vec += n;
		pages -= n;
	}
	return 0;
}

static int pt_lock(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on)
{
	if (!stub_range_ok(addr, size))
		return -EINVAL;
	return (int)call(via, on ? SYS_mlock : SYS_munlock, addr, size, 0, 0, 0);
}

static ssize_t pt_copy_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	return atomic_load(&as->dead) ? -ESRCH : stub_copy_in(as->pid, dst, addr, n);
}

static ssize_t pt_copy_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	return atomic_load(&as->dead) ? -ESRCH : stub_copy_out(as->pid, addr, src, n);
}

static ssize_t pt_force_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	struct request rq = { .fn = tracer_force_in, .as = as, .buf = dst, .args = { addr, n } };

	if (addr >= STUB_TASK_MAX || n > STUB_TASK_MAX - addr)
		return -EFAULT;
	return request_do(&rq);
}

static ssize_t pt_force_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	struct request rq = { .fn = tracer_force_out, .as = as, .data = src, .args = { addr, n } };

	if (addr >= STUB_TASK_MAX || n > STUB_TASK_MAX - addr)
		return -EFAULT;
	return request_do(&rq);
}

static int pt_cmpxchg32(struct plat_ctx *via, uint64_t addr, uint32_t old, uint32_t new,
			uint32_t *seen)
{
	struct request rq = { .fn = tracer_cmpxchg, .ctx = via, .args = { addr, old, new } };

	if ((addr & 3) || addr >= STUB_TASK_MAX)
		return -EFAULT;
	long err = request_do(&rq);
	if (!err)
		*seen = (uint32_t)rq.args[3];
	return (int)err;
}

static bool enter(struct plat_ctx *ctx)
{
	atomic_store(&ctx->running, true);
	if (!atomic_load(&ctx->kicked))
		return true;
	atomic_store(&ctx->running, false);
	return false;
}

/* Has the tracing thread set the thread going and sleeps until its stop. */
static long go(struct request *rq)
{
	struct plat_ctx *ctx = rq->ctx;

	ctx->event = 0;
	long err = request_do(rq);
	while (!err && __atomic_load_n(&ctx->event, __ATOMIC_SEQ_CST) == 0)
		futex_wait(&ctx->event, 0, NULL);
	atomic_store(&ctx->running, false);
	return err;
}

static void pt_interrupt(struct plat_ctx *ctx)
{
	atomic_store(&ctx->kicked, true);
	if (atomic_load(&ctx->running))
		syscall(SYS_tgkill, ctx->as->pid, ctx->tid, STUB_KICK);
}

static long futex_sleep(struct plat_ctx *ctx, const uint64_t args[6], struct timespec *timeout)
{
	for (;;) {
		struct request rq = { .fn = tracer_futex, .ctx = ctx, .buf = timeout };

		memcpy(rq.args, args, sizeof(rq.args));
		rq.args[3] = 0;
		if (!enter(ctx))
			return -EINTR;
		long err = go(&rq);
		if (err)
			return err;
		if (ctx->result != -EINTR || atomic_load(&ctx->kicked))
			return ctx->result;
	}
}

static long pt_futex(struct plat_ctx *ctx, const uint64_t args[6], const struct timespec *timeout)
{
	uint64_t a[6];
	struct timespec when;

	memcpy(a, args, sizeof(a));
	int kind = stub_futex_kind(a, timeout, &when);
	if (kind < 0)
		return kind;
	if (kind == STUB_FUTEX_WAITS)
		return futex_sleep(ctx, a, timeout ? &when : NULL);
	struct request rq = { .fn = tracer_plain_call, .ctx = ctx, .nr = SYS_futex };
	memcpy(rq.args, a, sizeof(a));
	return request_do(&rq);
}

static void pt_run(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev)
{
	struct request rq = { .fn = tracer_run, .ctx = ctx, .regs = regs };

	*ev = (struct plat_event){ .kind = PLAT_INTERRUPT };
	if (enter(ctx)) {
		if (go(&rq) == 0) {
			*ev = ctx->ev;
			if (ev->kind != PLAT_DEAD)
				*regs = ctx->regs;
		} else {
			ev->kind = PLAT_DEAD;
		}
	}
	/* Another event may have been there first; then a futex() or the next run() has to see it.
	 */
	if (ev->kind == PLAT_INTERRUPT)
		atomic_store(&ctx->kicked, false);
}

static long get_fp(struct request *rq)
{
	return tracer_get_fp(rq->ctx, rq->buf);
}

static long set_fp(struct request *rq)
{
	return tracer_set_fp(rq->ctx, rq->data);
}

static int pt_fp_get(struct plat_ctx *ctx, void *buf)
{
	struct request rq = { .fn = get_fp, .ctx = ctx, .buf = buf };

	return (int)request_do(&rq);
}

static int pt_fp_set(struct plat_ctx *ctx, const void *buf)
{
	struct request rq = { .fn = set_fp, .ctx = ctx, .data = buf };

	return (int)request_do(&rq);
}

static int pt_host_pid(struct plat_as *as)
{
	return atomic_load(&as->dead) ? 0 : as->pid;
}

const struct platform_ops ptrace_platform = {
	.name = "ptrace",
	.summary = "system calls stopped by ptrace; slow, needs nothing else",
	.probe = pt_probe,
	.start = pt_start,
	.child_event = pt_child_event,
	.main_request = pt_main_request,
	.info = pt_info,
	.as_new = pt_as_new,
	.as_fork = pt_as_fork,
	.as_free = pt_as_free,
	.ctx_clone = pt_ctx_clone,
	.ctx_free = pt_ctx_free,
	.map = pt_map,
	.unmap = pt_unmap,
	.protect = pt_protect,
	.remap = pt_remap,
	.advise = pt_advise,
	.resident = pt_resident,
	.lock = pt_lock,
	.copy_in = pt_copy_in,
	.copy_out = pt_copy_out,
	.force_in = pt_force_in,
	.force_out = pt_force_out,
	.cmpxchg32 = pt_cmpxchg32,
	.futex = pt_futex,
	.run = pt_run,
	.interrupt = pt_interrupt,
	.fp_get = pt_fp_get,
	.fp_set = pt_fp_set,
	.host_pid = pt_host_pid,
};

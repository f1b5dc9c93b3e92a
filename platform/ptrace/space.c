/*
 * Birth and death of traced address spaces. New processes and threads are made by injected clone
 * calls; PTRACE_O_TRACEFORK and TRACECLONE have the kernel trace them from their first instruction,
 * and PTRACE_O_EXITKILL ends them all with the sentry. Everything here runs on the tracing thread.
 *
 * The first thread of a process is kept while others live, as on the seccomp platform.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/ptrace/internal.h"
#include "platform/stub/boot.h"

#define TRACE_OPTIONS                                                                              \
	(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE)

static void as_maybe_destroy(struct plat_as *as)
{
	/* The host tells of the first thread's end last. */
	if (!as->freed || !as->reaped)
		return;
	list_for_each_safe(l, &as->ctxs) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, link);
		list_del_init(&ctx->tid_link);
		mem_free(ctx);
	}
	mem_free(as);
}

void tspace_thread_gone(struct plat_ctx *ctx)
{
	struct plat_as *as = ctx->as;
	bool last = ctx->tid == as->pid;

	if (ctx->gone)
		return;
	ctx->gone = true;
	list_del_init(&ctx->tid_link);
	if (ctx->ending)
		return;
	atomic_store(&as->dead, true);
	list_for_each(l, &as->ctxs) {
		struct plat_ctx *c = list_entry(l, struct plat_ctx, link);
		/* A thread of a dying process that was asked for something will not answer. */
		if (c->mode == MODE_PARKED)
			continue;
		c->ev = (struct plat_event){ .kind = PLAT_DEAD };
		c->result = -ESRCH;
		tracer_report(c);
	}
	if (last) {
		as->reaped = true;
		if (ctx == pt.zygote)
			log_warn("the stub zygote was killed; no new program can start");
		as_maybe_destroy(as);
	}
}

static struct plat_ctx *ctx_alloc(struct plat_as *as, int tid)
{
	struct plat_ctx *ctx = mem_zalloc(sizeof(*ctx));

	if (!ctx)
		return NULL;
	list_init(&ctx->link);
	list_init(&ctx->tid_link);
	ctx->as = as;
	ctx->tid = tid;
	return ctx;
}

static struct plat_as *as_alloc(int pid)
{
	struct plat_as *as = mem_zalloc(sizeof(*as));

	if (!as)
		return NULL;
	list_init(&as->ctxs);
	as->pid = pid;
	return as;
}

static void adopt(struct plat_as *as, struct plat_ctx *ctx, int tid)
{
	ctx->tid = tid;
	ctx->number = as->threads_made++;
	as->live++;
	tracer_add(ctx);
}

/* Has `parent` clone; the new thread is stopped when this returns. Its id, or -errno. */
static long inject_clone(struct plat_ctx *parent, uint64_t flags)
{
	uint64_t args[6] = { flags, SCRATCH + SCRATCH_SIZE - 64 };

	pt.early_tid = 0;
	long tid = tracer_call(parent, SYS_clone, args);
	if (tid <= 0)
		return tid == 0 ? -ESRCH : tid;
	return tracer_wait_newborn((int)tid) ? -EAGAIN : tid;
}

static long fork_from(struct plat_ctx *parent, struct request *rq)
{
	struct plat_as *as = as_alloc(0);
	struct plat_ctx *ctx = as ? ctx_alloc(as, 0) : NULL;
	long pid = -ENOMEM;

	if (ctx)
		pid = inject_clone(parent, CLONE_PARENT | SIGCHLD);
	if (pid < 0) {
		mem_free(ctx);
		mem_free(as);
		return pid;
	}
	as->pid = (int)pid;
	adopt(as, ctx, (int)pid);
	*rq->out_as = as;
	*rq->out_ctx = ctx;
	return 0;
}

long tspace_new(struct request *rq)
{
	long err = pt.zygote->gone ? -EAGAIN : fork_from(pt.zygote, rq);

	return err == -ESRCH ? -EAGAIN : err;
}

long tspace_fork(struct request *rq)
{
	return fork_from(rq->ctx, rq);
}

static long copy_fp(struct plat_ctx *from, struct plat_ctx *to)
{
	size_t size = fp_size();
	void *image = mem_alloc(size);
	int err = image ? tracer_get_fp(from, image) : -ENOMEM;

	if (!err)
		err = tracer_set_fp(to, image);
	mem_free(image);
	return err;
}

long tspace_clone(struct request *rq)
{
	struct plat_as *as = rq->ctx->as;

	if (atomic_load(&as->dead))
		return -ESRCH;
	if (as->leader) {
		struct plat_ctx *again = as->leader;
		long err = copy_fp(rq->ctx, again);
		if (err)
			return err;
		as->leader = NULL;
		as->live++;
		atomic_store(&again->kicked, false);
		*rq->out_ctx = again;
		return 0;
	}
	struct plat_ctx *ctx = ctx_alloc(as, 0);
	if (!ctx)
		return -ENOMEM;
	long tid = inject_clone(rq->ctx, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
						 CLONE_THREAD | CLONE_SYSVSEM);
	if (tid < 0) {
		mem_free(ctx);
		return tid;
	}
	adopt(as, ctx, (int)tid);
	*rq->out_ctx = ctx;
	return 0;
}

/* Lets one thread of a living process end and takes its exit status. */
static void end_thread(struct plat_ctx *ctx)
{
	struct regs r = tracer_blob_regs(stub_syscall);

	r.rax = SYS_exit;
	if (tracer_resume(ctx, &r, PTRACE_CONT))
		return;
	ctx->ending = true;
	while (tracer_wait(ctx) >= 0)
		ptrace(PTRACE_CONT, ctx->tid, NULL, NULL);
}

long tspace_ctx_free(struct request *rq)
{
	struct plat_ctx *ctx = rq->ctx;
	struct plat_as *as = ctx->as;
	bool last = --as->live == 0;

	if (last || atomic_load(&as->dead))
		return 0; /* as_maybe_destroy() frees it with the process */
	if (ctx->tid == as->pid) {
		as->leader = ctx;
		return 0;
	}
	end_thread(ctx);
	list_del_init(&ctx->tid_link);
	list_del_init(&ctx->link);
	mem_free(ctx);
	return 0;
}

long tspace_as_free(struct request *rq)
{
	struct plat_as *as = rq->as;

	BUG_ON(as->live != 0);
	as->freed = true;
	if (!as->reaped)
		kill(as->pid, SIGKILL);
	as_maybe_destroy(as);
	return 0;
}

static int prepare_zygote(struct plat_ctx *ctx)
{
	uint64_t unmap[6] = { boot_temp_addr(), BOOT_TEMP_SIZE };
	uint64_t scratch[6] = { SCRATCH,
				SCRATCH_SIZE,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				(uint64_t)-1,
				0 };
	void *image;

	if (tracer_call(ctx, SYS_munmap, unmap) != 0 ||
	    tracer_call(ctx, SYS_mmap, scratch) != (long)SCRATCH)
		return -EIO;
	image = mem_alloc(fp_size());
	if (!image)
		return -ENOMEM;
	fp_init(image);
	int err = tracer_set_fp(ctx, image);
	mem_free(image);
	return err;
}

int tspace_start(void)
{
	int pair[2], status, pid;

	int err = fp_measure();
	if (err)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pt.sock = pair[0];
	struct boot_spec spec = { .slots_fd = -1, .keep_fd = pair[1], .traced = true };
	err = boot_first_stub(&spec, &pt.info, &pid);
	close(pair[1]);
	if (err)
		return err;
	if (waitpid(pid, &status, __WALL) != pid)
		return -errno;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
		log_error("the first stub did not start: status %#x", status);
		return -EIO;
	}
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL, TRACE_OPTIONS) < 0)
		return -errno;
	struct plat_as *as = as_alloc(pid);
	struct plat_ctx *ctx = as ? ctx_alloc(as, pid) : NULL;
	if (!ctx)
		return -ENOMEM;
	adopt(as, ctx, pid);
	pt.zygote = ctx;
	pt.stub_group = pid;
	return prepare_zygote(ctx);
}

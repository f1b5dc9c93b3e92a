/*
 * The notifier: one thread that answers what stubs ask by seccomp user notification.
 *
 * The kernel tells which thread asks (its tid) and with which registers, which cannot change until
 * the answer; nothing is read from memory. A call passes only when the sentry ordered exactly it
 * from exactly that thread, once. A new process, whose pid the sentry does not know yet, announces
 * itself with prctl(PR_SET_PDEATHSIG, SIGKILL, cookie): it passes when the cookie is that of a
 * context being born and the asker is a child of ours that is nobody else. Anything else is killed.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/thread.h"
#include "platform/seccomp/internal.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define NOTIF_SYNC_WAKE_UP 1ul

static struct seccomp_notif *request;
static struct seccomp_notif_resp *response;
static size_t request_size, response_size;

static struct plat_as *find_pid(int pid)
{
	list_for_each(l, &sec.pids[(unsigned)pid % PID_BUCKETS]) {
		struct plat_as *as = list_entry(l, struct plat_as, link);
		if (atomic_load(&as->pid) == pid)
			return as;
	}
	return NULL;
}

/* True when pid is a process that is our own child and not yet reaped. */
static bool is_own_child(int pid)
{
	siginfo_t si;

	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* sec.mu held. */
static bool admit_newborn(const struct seccomp_notif *rq)
{
	list_for_each_safe(l, &sec.newborn) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, pending);
		int pid = (int)rq->pid;
		if (rq->data.args[2] != ctx->cookie || find_pid(pid) || !is_own_child(pid))
			continue;
		list_del_init(&ctx->pending);
		ctx->hello = true;
		ctx->tid = pid;
		atomic_store(&ctx->as->pid, pid);
		list_add(&sec.pids[(unsigned)pid % PID_BUCKETS], &ctx->as->link);
		ctx->as->linked = true;
		return true;
	}
	return false;
}

/* Gives the descriptor to the asker under the agreed number. */
static int lend(uint64_t id, int fd)
{
	struct seccomp_notif_addfd a = {
		.id = id,
		.flags = SECCOMP_ADDFD_FLAG_SETFD,
		.srcfd = (uint32_t)fd,
		.newfd = STUB_FD,
	};

	return ioctl(sec.listener, SECCOMP_IOCTL_NOTIF_ADDFD, &a) < 0 ? -errno : 0;
}

/* Finds the order that allows the call. sec.mu held. */
static struct order *find_order(const struct seccomp_notif *rq)
{
	list_for_each(l, &sec.pending) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, pending);
		if (ctx->tid != (int)rq->pid || ctx->order_next == ctx->order_count)
			continue;
		struct order *o = &ctx->orders[ctx->order_next];
		if (o->nr != (uint64_t)rq->data.nr ||
		    memcmp(o->args, rq->data.args, sizeof(o->args)) != 0)
			return NULL;
		ctx->order_next++;
		return o;
	}
	return NULL;
}

static void answer(const struct seccomp_notif *rq)
{
	memset(response, 0, response_size);
	response->id = rq->id;
	response->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	mutex_lock(&sec.mu);
	if (rq->data.nr == SYS_prctl && rq->data.args[0] == PR_SET_PDEATHSIG &&
	    rq->data.args[1] == SIGKILL && admit_newborn(rq))
		goto out;
	struct order *o = find_order(rq);
	if (!o) {
		/* It waits for us, so the number is still its own. (0 would be us; it cannot be, as
		 * no stub leaves our pid namespace.) */
		if (rq->pid > 0)
			kill((pid_t)rq->pid, SIGKILL);
		response->flags = 0;
		response->error = -EPERM;
		goto out;
	}
	o->done = true;
	o->err = o->lend_fd >= 0 ? lend(rq->id, o->lend_fd) : 0;
	if (o->err) {
		response->flags = 0;
		response->error = o->err;
	}
out:
	mutex_unlock(&sec.mu);
	/* Fails when the asker was killed meanwhile; nobody misses the answer then. */
	ioctl(sec.listener, SECCOMP_IOCTL_NOTIF_SEND, response);
}

static void *notifier(void *arg)
{
	(void)arg;
	atomic_store(&sec.notifier_tid, gettid());
	for (;;) {
		memset(request, 0, request_size);
		if (ioctl(sec.listener, SECCOMP_IOCTL_NOTIF_RECV, request) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			BUG("the stub filter's listener broke");
		}
		answer(request);
	}
	return NULL;
}

int notify_start(void)
{
	struct seccomp_notif_sizes sizes;
	pthread_t thread;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return -errno;
	request_size = MAX(sizes.seccomp_notif, sizeof(*request));
	response_size = MAX(sizes.seccomp_notif_resp, sizeof(*response));
	request = mem_zalloc(request_size);
	response = mem_zalloc(response_size);
	if (!request || !response)
		return -ENOMEM;
	/* Newer kernels: run the woken side at once on this processor. A wish only. */
	ioctl(sec.listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
	return thread_start(&thread, notifier, NULL);
}

/* The end of processes and waiting for it; robust lists and other per-thread registrations. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "fs/vfs.h"
#include "sentry/exit.h"
#include "sentry/pidfd.h"
#include "sentry/task.h"
#include "sentry/timers.h"
#include "syscalls/handlers.h"

#define ROBUST_LIST_HEAD_SIZE 24
#define WAIT_THREAD_FLAGS (__WNOTHREAD | (int)__WCLONE | __WALL)

long sys_exit(struct task *t, int status)
{
	task_exit(t, (status & 0xff) << 8);
}

long sys_exit_group(struct task *t, int status)
{
	task_exit_group(t, (status & 0xff) << 8);
}

static int own_pgrp(struct task *t)
{
	mutex_lock(&tasks_mu);
	int pgrp = t->group->pgrp;
	mutex_unlock(&tasks_mu);
	return pgrp;
}

long sys_wait4(struct task *t, int pid, i32_gp wstatus, int options, rusage_gp rusage)
{
	struct wait_result res;
	int idtype = P_PID, id = pid;

	if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | WAIT_THREAD_FLAGS))
		return -EINVAL;
	if (pid == INT_MIN)
		return -ESRCH;
	if (pid == -1) {
		idtype = P_ALL;
	} else if (pid <= 0) {
		idtype = P_PGID;
		id = pid == 0 ? own_pgrp(t) : -pid;
	}
	int ret = task_wait(t, idtype, id, options | WEXITED, &res);
	if (ret <= 0)
		return ret;
	/* The child is reaped already; a bad address is reported all the same, as Linux does. */
	int32_t status = res.status;
	if (!gaddr_is_null(wstatus.addr) && guest_store(t, wstatus, &status) != 0)
		return -EFAULT;
	if (!gaddr_is_null(rusage.addr) && guest_store(t, rusage, &res.usage) != 0)
		return -EFAULT;
	return res.pid;
}

/* P_PIDFD becomes P_PID. *out_nonblock: the descriptor does not wait. */
static int resolve_pidfd(struct task *t, int fd, int *out_id, bool *out_nonblock)
{
	struct group *g;
	struct file *f = task_file(t, fd);

	if (!f)
		return -EBADF;
	int err = pidfd_group(f, &g);
	if (!err) {
		*out_id = g->tgid;
		*out_nonblock = file_flags(f) & O_NONBLOCK;
		group_put(g);
	}
	file_put(f);
	return err;
}

static int resolve_id(struct task *t, int *idtype, int *id, bool *out_nonblock)
{
	*out_nonblock = false;
	switch (*idtype) {
	case P_ALL:
		return 0;
	case P_PID:
		return *id > 0 ? 0 : -EINVAL;
	case P_PGID:
		if (*id < 0)
			return -EINVAL;
		if (*id == 0)
			*id = own_pgrp(t);
		return 0;
	case P_PIDFD:
		if (*id < 0)
			return -EINVAL;
		*idtype = P_PID;
		return resolve_pidfd(t, *id, id, out_nonblock);
	default:
		return -EINVAL;
	}
}

static void fill_info(struct k_siginfo *si, const struct wait_result *res)
{
	siginfo_init(si, SIGCHLD, res->code);
	si->chld.pid = res->pid;
	si->chld.uid = res->uid;
	switch (res->code) {
	case CLD_EXITED:
	case CLD_STOPPED:
	case CLD_TRAPPED:
		si->chld.status = res->status >> 8;
		break;
	case CLD_CONTINUED:
		si->chld.status = SIGCONT;
		break;
	default:
		si->chld.status = res->status & 0x7f;
	}
}

long sys_waitid(struct task *t, int idtype, int id, siginfo_gp infop, int options, rusage_gp rusage)
{
	struct wait_result res;
	struct k_siginfo si;
	bool nonblock;

	if (options & ~(WNOHANG | WNOWAIT | WEXITED | WSTOPPED | WCONTINUED | WAIT_THREAD_FLAGS))
		return -EINVAL;
	if (!(options & (WEXITED | WSTOPPED | WCONTINUED)))
		return -EINVAL;
	int ret = resolve_id(t, &idtype, &id, &nonblock);
	if (ret)
		return ret;
	ret = task_wait(t, idtype, id, nonblock ? options | WNOHANG : options, &res);
	if (ret < 0)
		return ret;
	if (ret == 0 && nonblock && !(options & WNOHANG))
		return -EAGAIN;
	if (ret == 0)
		siginfo_init(&si, 0, 0);
	else
		fill_info(&si, &res);
	if (ret && !gaddr_is_null(rusage.addr) && guest_store(t, rusage, &res.usage) != 0)
		return -EFAULT;
	if (!gaddr_is_null(infop.addr) && guest_store(t, infop, &si) != 0)
		return -EFAULT;
	return 0;
}

long sys_set_tid_address(struct task *t, i32_gp tidptr)
{
	t->clear_child_tid = tidptr.addr.va;
	return t->tid;
}

long sys_set_robust_list(struct task *t, struct gaddr head, uint64_t len)
{
	if (len != ROBUST_LIST_HEAD_SIZE)
		return -EINVAL;
	t->robust_list = head.va;
	return 0;
}

long sys_get_robust_list(struct task *t, int pid, u64_gp head, u64_gp len)
{
	const uint64_t size = ROBUST_LIST_HEAD_SIZE;
	struct task *o = pid == 0 ? task_get(t) : task_find(pid);

	if (!o)
		return -ESRCH;
	int err = task_may_access(t, o);
	uint64_t list = o->robust_list;
	task_put(o);
	if (err)
		return err;
	if (guest_store(t, len, &size) != 0)
		return -EFAULT;
	return guest_store(t, head, &list);
}

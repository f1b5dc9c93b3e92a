/* fork, vfork, clone, clone3, unshare: decoding only; the work is sentry/clone.c. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>

#include "sentry/task.h"
#include "syscalls/handlers.h"

long sys_fork(struct task *t)
{
	const struct clone_request req = { .exit_signal = SIGCHLD };
	return task_clone(t, &req);
}

long sys_vfork(struct task *t)
{
	const struct clone_request req = { .flags = CLONE_VFORK | CLONE_VM,
					   .exit_signal = SIGCHLD };
	return task_clone(t, &req);
}

long sys_clone(struct task *t, uint64_t flags, struct gaddr stack, i32_gp parent_tid,
	       i32_gp child_tid, uint64_t tls)
{
	const struct clone_request req = {
		.flags = (uint32_t)flags & ~(uint32_t)CSIGNAL,
		.exit_signal = (int)(flags & CSIGNAL),
		.stack = stack.va,
		.tls = tls,
		.parent_tid = parent_tid.addr.va,
		.child_tid = child_tid.addr.va,
		.pidfd = parent_tid.addr.va, /* clone(2): the same word serves both */
	};

	if ((flags & CLONE_PIDFD) && (flags & CLONE_PARENT_SETTID))
		return -EINVAL;
	return task_clone(t, &req);
}

/* The checks of clone3_args_valid and copy_clone_args_from_user (kernel/fork.c). */
static int check_clone3(const struct clone_args *a)
{
	if (a->flags & ~(0xffffffffull | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP))
		return -EINVAL;
	if (a->flags & (CLONE_DETACHED | (CSIGNAL & ~CLONE_NEWTIME)))
		return -EINVAL;
	if ((a->flags & (CLONE_THREAD | CLONE_PARENT)) && a->exit_signal)
		return -EINVAL;
	if (a->exit_signal > SIG_COUNT)
		return -EINVAL;
	if (!a->stack != !a->stack_size)
		return -EINVAL;
	if (a->set_tid_size > 1 || !a->set_tid_size != !a->set_tid)
		return -EINVAL;
	if (a->flags & CLONE_INTO_CGROUP)
		return -EOPNOTSUPP;
	return 0;
}

long sys_clone3(struct task *t, buf_cgp args, uint64_t size)
{
	struct clone_args a;
	int32_t set_tid = 0;

	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < CLONE_ARGS_SIZE_VER0)
		return -EINVAL;
	int err = guest_load_ext(t, &a, sizeof(a), args, size);
	if (!err)
		err = check_clone3(&a);
	if (err)
		return err;
	if (a.set_tid_size) {
		if (guest_read(t, &set_tid, gaddr(a.set_tid), sizeof(set_tid)))
			return -EFAULT;
		if (!task_capable(t, CAP_SYS_ADMIN))
			return -EPERM;
	}
	const struct clone_request req = {
		.flags = a.flags,
		.exit_signal = (int)a.exit_signal,
		.stack = a.stack ? a.stack + a.stack_size : 0,
		.tls = a.tls,
		.parent_tid = a.parent_tid,
		.child_tid = a.child_tid,
		.pidfd = a.pidfd,
		.set_tid = &set_tid,
		.set_tid_count = a.set_tid_size,
	};
	return task_clone(t, &req);
}

static int unshare_fs(struct task *t)
{
	struct fs_ctx *copy;
	int err = fs_ctx_copy(t->fs, &copy);

	if (err)
		return err;
	mutex_lock(&t->mu);
	struct fs_ctx *old = t->fs;
	t->fs = copy;
	mutex_unlock(&t->mu);
	fs_ctx_put(old);
	return 0;
}

long sys_unshare(struct task *t, uint64_t flags)
{
	const uint64_t known = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_THREAD |
			       CLONE_SIGHAND | CLONE_VM | CLONE_NEWNS | CLONE_NEWUTS |
			       CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
			       CLONE_NEWCGROUP | CLONE_NEWTIME;
	int err = 0;

	if (flags & ~known)
		return -EINVAL;
	/* Threads, handlers and memory cannot be unshared once shared (unshare(2)). */
	if ((flags & (CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)) && t->group->thread_count > 1)
		return -EINVAL;
	if (flags & (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
		     CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_NEWTIME))
		return -EPERM;
	if (flags & CLONE_FS)
		err = unshare_fs(t);
	if (!err && (flags & CLONE_FILES))
		err = task_unshare_files(t);
	return err;
}

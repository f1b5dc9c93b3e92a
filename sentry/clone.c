/*
 * fork, vfork, clone and clone3: kernel/fork.c copy_process. Everything that can fail is made
 * first; then the new task becomes visible under tasks_mu; then it runs.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>

#include "fs/fdtable.h"
#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "sentry/exit.h"
#include "sentry/onecpu.h"
#include "sentry/pidfd.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/task_priv.h"
#include "sentry/timers.h"

#define NAMESPACE_FLAGS                                                                            \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

static int check_flags(const struct clone_request *a)
{
	uint64_t f = a->flags;

	if ((f & CLONE_FS) && (f & (CLONE_NEWNS | CLONE_NEWUSER)))
		return -EINVAL;
	if ((f & CLONE_THREAD) && !(f & CLONE_SIGHAND))
		return -EINVAL;
	if ((f & CLONE_SIGHAND) && !(f & CLONE_VM))
		return -EINVAL;
	if ((f & CLONE_PIDFD) && (f & (CLONE_DETACHED | CLONE_THREAD)))
		return -EINVAL;
	if ((f & CLONE_CLEAR_SIGHAND) && (f & CLONE_SIGHAND))
		return -EINVAL;
	if (a->exit_signal < 0 || a->exit_signal > SIG_COUNT)
		return -EINVAL;
	return f & NAMESPACE_FLAGS ? -EPERM : 0;
}

int task_unshare_files(struct task *t)
{
	struct fdtable *n, *old = t->files;

	if (!fdtable_is_shared(old))
		return 0;
	int err = fdtable_copy(old, &n);
	if (err)
		return err;
	mutex_lock(&t->mu);
	t->files = n;
	mutex_unlock(&t->mu);
	fdtable_put(old);
	return 0;
}

static int copy_files(struct task *t, struct task *n, uint64_t flags)
{
	if (flags & CLONE_FILES) {
		n->files = fdtable_get(t->files);
		return 0;
	}
	return fdtable_copy(t->files, &n->files);
}

static int copy_fs(struct task *t, struct task *n, uint64_t flags)
{
	if (flags & CLONE_FS) {
		n->fs = fs_ctx_get(t->fs);
		return 0;
	}
	return fs_ctx_copy(t->fs, &n->fs);
}

static int copy_sighand(struct task *t, struct task *n, uint64_t flags)
{
	if (flags & CLONE_SIGHAND) {
		n->sighand = sighand_get(t->sighand);
		return 0;
	}
	if (flags & CLONE_CLEAR_SIGHAND) {
		int err = sighand_new(&n->sighand);
		if (err)
			return err;
		/* Ignored signals stay ignored: only handlers are reset. */
		mutex_lock(&t->sighand->mu);
		for (int sig = 1; sig <= SIG_COUNT; sig++)
			if (t->sighand->action[sig].handler == K_SIG_IGN)
				n->sighand->action[sig].handler = K_SIG_IGN;
		mutex_unlock(&t->sighand->mu);
		return 0;
	}
	return sighand_copy(t->sighand, &n->sighand);
}

static int copy_mm(struct task *t, struct task *n, uint64_t flags)
{
	if (!(flags & CLONE_VM))
		return mm_fork(t, &n->mm, &n->ctx);
	int err = plat->ctx_clone(t->ctx, &n->ctx);
	if (err)
		return err;
	n->mm = mm_get(t->mm);
	mm_use(n->mm);
	return 0;
}

/* A process of its own: inherits limits, nice, oom score; itimers and pending signals start empty.
 */
static int copy_group(struct task *t, struct task *n, const struct clone_request *a)
{
	struct group *g, *old = t->group;

	if (a->flags & CLONE_THREAD) {
		n->group = group_get(old);
		return 0;
	}
	g = group_alloc();
	if (!g)
		return -ENOMEM;
	mutex_lock(&t->sighand->mu);
	memcpy(g->rlim, old->rlim, sizeof(g->rlim));
	mutex_unlock(&t->sighand->mu);
	g->exit_signal = a->exit_signal;
	g->oom_score_adj = old->oom_score_adj;
	g->nice = old->nice;
	g->leader = n;
	n->group = g;
	return 0;
}

static void copy_task_fields(struct task *t, struct task *n, const struct clone_request *a)
{
	n->regs = t->regs;
	n->regs.rax = 0;
	if (a->stack)
		n->regs.rsp = a->stack;
	if (a->flags & CLONE_SETTLS)
		n->regs.fs_base = a->tls;
	if (a->flags & CLONE_CHILD_CLEARTID)
		n->clear_child_tid = a->child_tid;
	n->cred = cred_get((struct cred *)(uintptr_t)t->cred);
	/* sigaltstack(2): kept by fork and by vfork, dropped by threads. */
	if (!(a->flags & CLONE_VM) || (a->flags & CLONE_VFORK))
		n->altstack = t->altstack;
	else
		n->altstack.flags = SS_DISABLE;
	n->no_new_privs = t->no_new_privs;
	n->personality = t->personality;
	n->mempolicy = t->mempolicy;
	task_inherit_sched(t, n);
	n->securebits_keep_caps = t->securebits_keep_caps;
	mutex_lock(&t->sighand->mu);
	memcpy(n->comm, t->comm, sizeof(n->comm));
	n->blocked = t->blocked;
	mutex_unlock(&t->sighand->mu);
}

/* The new group's place in the tree. */
static void link_group_locked(struct task *t, struct task *n, const struct clone_request *a)
	REQUIRES(tasks_mu)
{
	struct group *g = n->group, *old = t->group;

	g->tgid = n->tid;
	g->pgrp = old->pgrp;
	g->sid = old->sid;
	g->ctty = old->ctty;
	if (a->flags & CLONE_PARENT) {
		g->parent = old->parent;
		g->parent_task = old->parent_task;
		g->exit_signal = old->exit_signal;
	} else {
		g->parent = old;
		g->parent_task = t;
	}
	if (g->parent)
		list_add_tail(&g->parent->children, &g->sibling);
	group_link_locked(g);
}

/* Makes n visible. A signal that came meanwhile restarts the call, so that a process cannot fork
 * away from a signal sent to its group (kernel/fork.c: recalc_sigpending, ERESTARTNOINTR). */
static int publish(struct task *t, struct task *n, const struct clone_request *a)
{
	struct group *g = n->group;
	int err;

	mutex_lock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	if (signal_pending(t)) {
		err = -ERESTARTNOINTR;
		goto out_unlock;
	}
	if ((a->flags & CLONE_THREAD) && (g->exiting || g->exec_task)) {
		err = -EAGAIN;
		goto out_unlock;
	}
	err = a->set_tid_count ? pid_alloc_exact_locked(n, a->set_tid[0]) : pid_alloc_locked(n);
	if (err)
		goto out_unlock;
	if (!(a->flags & CLONE_THREAD))
		link_group_locked(t, n, a);
	memcpy(n->cpumask, t->cpumask, sizeof(n->cpumask));
	n->cpumask_set = t->cpumask_set;
	list_add_tail(&g->threads, &n->group_link);
	g->thread_count++;
	if (a->flags & CLONE_VFORK)
		n->vfork_active = true;
	ptrace_clone_locked(t, n, a->flags, a->exit_signal);
out_unlock:
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	return err;
}

/* Undoes a partly made task that was never visible. */
static void discard(struct task *n)
{
	if (n->ctx)
		plat->ctx_free(n->ctx);
	n->ctx = NULL;
	if (n->mm)
		mm_unuse(n->mm);
	fdtable_put(n->files);
	fs_ctx_put(n->fs);
	task_put(n);
}

static int make_task(struct task *t, const struct clone_request *a, struct task **out)
{
	struct task *n = task_alloc();
	int err;

	if (!n)
		return -ENOMEM;
	err = copy_group(t, n, a);
	if (!err)
		err = copy_sighand(t, n, a->flags);
	if (!err)
		err = copy_files(t, n, a->flags);
	if (!err)
		err = copy_fs(t, n, a->flags);
	if (!err)
		err = copy_mm(t, n, a->flags);
	if (err) {
		discard(n);
		return err;
	}
	copy_task_fields(t, n, a);
	*out = n;
	return 0;
}

/* The parent of a vfork sleeps until the child execs or ends; a fatal signal ends the wait, others
 * do not. */
static void vfork_wait(struct task *n)
{
	mutex_lock(&tasks_mu);
	while (n->vfork_active) {
		int err = waitq_wait(&n->vfork_wait, &tasks_mu, 0, DEADLINE_NEVER);
		if (err && signal_fatal_pending(current_task()))
			break;
		if (err)
			sleeper_clear_interrupt(&current_task()->sleeper);
	}
	mutex_unlock(&tasks_mu);
	/* A signal whose interrupt was cleared above is still pending: announce it again. */
	struct task *t = current_task();
	mutex_lock(&t->sighand->mu);
	signal_recalc_locked(t);
	mutex_unlock(&t->sighand->mu);
}

static int store_ids(struct task *t, struct task *n, const struct clone_request *a, int pidfd)
{
	int32_t tid = n->tid;

	/* As in the kernel, a bad address is ignored for the child's copy and fails for the others.
	 */
	if ((a->flags & CLONE_PARENT_SETTID) &&
	    guest_write(t, gaddr(a->parent_tid), &tid, sizeof(tid)))
		return -EFAULT;
	if ((a->flags & CLONE_CHILD_SETTID) &&
	    mm_copy_out(n->mm, a->child_tid, &tid, sizeof(tid)) != sizeof(tid))
		log_debug("child_tid of %d is not writable", tid);
	if ((a->flags & CLONE_PIDFD) && guest_write(t, gaddr(a->pidfd), &pidfd, sizeof(pidfd)))
		return -EFAULT;
	return 0;
}

/* Takes a visible task that never ran out of the tree again. */
static void retract(struct task *n)
{
	mutex_lock(&tasks_mu);
	ptrace_exit_locked(n, 0);
	n->group->thread_count--;
	task_release_locked(n);
	mutex_unlock(&tasks_mu);
	discard(n);
}

long task_clone(struct task *t, const struct clone_request *a)
{
	struct task *n;
	int pidfd = -1;
	int err = check_flags(a);

	if (err)
		return err;
	onecpu_end();
	err = make_task(t, a, &n);
	if (err)
		return err;
	err = publish(t, n, a);
	if (err) {
		discard(n);
		return err;
	}
	if (a->flags & CLONE_PIDFD) {
		pidfd = pidfd_install(t, n->group, 0);
		if (pidfd < 0) {
			retract(n);
			return pidfd;
		}
	}
	err = store_ids(t, n, a, pidfd);
	if (!err) {
		task_get(n); /* ours: the child may end at once */
		err = task_start(n);
		if (err)
			task_put(n);
	}
	if (err) {
		if (pidfd >= 0)
			fd_close(t->files, pidfd);
		retract(n);
		return err;
	}
	long tid = n->tid;
	if (!(a->flags & CLONE_THREAD))
		itimer_watch_cpu(n->group); /* an inherited RLIMIT_CPU */
	ptrace_report_clone(t, a->flags, a->exit_signal, (int)tid);
	if (a->flags & CLONE_VFORK) {
		vfork_wait(n);
		ptrace_report_vfork_done(t, (int)tid);
	}
	task_put(n);
	return tid;
}

int task_new_init(const struct cred *cred, struct fs_ctx *fs, struct fdtable *files,
		  struct task **out)
{
	struct task *t = task_alloc();
	struct group *g = group_alloc();
	int err = -ENOMEM;

	if (t && g) {
		t->group = g;
		err = sighand_new(&t->sighand);
	}
	if (err) {
		if (t && !t->group)
			group_put(g);
		if (t)
			task_put(t);
		return err;
	}
	t->cred = cred_get((struct cred *)(uintptr_t)cred);
	t->fs = fs_ctx_get(fs);
	t->files = fdtable_get(files);
	t->altstack.flags = SS_DISABLE;
	g->leader = t;
	g->exit_signal = SIGCHLD;
	mutex_lock(&tasks_mu);
	err = pid_alloc_locked(t);
	BUG_ON(err != 0); /* the table is empty */
	g->tgid = g->pgrp = g->sid = t->tid;
	g->is_session_leader = true;
	list_add_tail(&g->threads, &t->group_link);
	g->thread_count = 1;
	group_link_locked(g);
	mutex_unlock(&tasks_mu);
	*out = t;
	return 0;
}

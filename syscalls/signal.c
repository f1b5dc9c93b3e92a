/* Signal calls: signal(7). The machinery is sentry/signal.c. */
#include <errno.h>
#include <limits.h>
#include <signal.h>

#include "sentry/task.h"
#include "sentry/timers.h"
#include "syscalls/handlers.h"

#define SIGSET_SIZE 8
#define UNMASKABLE (SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP))
/* Flags that the kernel keeps; others read back as 0, which is how programs probe them. */
#define K_SA_KNOWN                                                                                 \
	(K_SA_NOCLDSTOP | K_SA_NOCLDWAIT | K_SA_SIGINFO | 0x800ull /* SA_EXPOSE_TAGBITS */ |       \
	 K_SA_RESTORER | K_SA_ONSTACK | K_SA_RESTART | K_SA_NODEFER | K_SA_RESETHAND)

/* A signal that becomes ignored is forgotten where it is pending (POSIX). */
static void forget_ignored_locked(struct task *t, int sig)
{
	const struct k_sigaction *sa = &t->sighand->action[sig];

	if (sa->handler != K_SIG_IGN &&
	    !(sa->handler == K_SIG_DFL && signal_default(sig) == SIG_DEF_IGNORE))
		return;
	sigpending_remove(&t->group->pending, SIG_BIT(sig));
	list_for_each(pos, &t->group->threads)
		sigpending_remove(&list_entry(pos, struct task, group_link)->pending, SIG_BIT(sig));
}

long sys_rt_sigaction(struct task *t, int signum, sigaction_cgp act, sigaction_gp oldact,
		      uint64_t sigsetsize)
{
	struct k_sigaction new, old;
	bool set = !gaddr_is_null(act.addr);

	if (sigsetsize != SIGSET_SIZE)
		return -EINVAL;
	if (set && guest_load(t, &new, act) != 0)
		return -EFAULT;
	if (signum < 1 || signum > SIG_COUNT || (set && (SIG_BIT(signum) & UNMASKABLE)))
		return -EINVAL;
	mutex_lock(&t->sighand->mu);
	old = t->sighand->action[signum];
	if (set) {
		new.flags &= K_SA_KNOWN;
		new.mask &= ~UNMASKABLE;
		t->sighand->action[signum] = new;
		forget_ignored_locked(t, signum);
		signal_recalc_locked(t);
	}
	mutex_unlock(&t->sighand->mu);
	return gaddr_is_null(oldact.addr) ? 0 : guest_store(t, oldact, &old);
}

long sys_rt_sigprocmask(struct task *t, int how, sigset_cgp set, sigset_gp oldset,
			uint64_t sigsetsize)
{
	uint64_t old = t->blocked, new;

	if (sigsetsize != SIGSET_SIZE)
		return -EINVAL;
	if (!gaddr_is_null(set.addr)) {
		if (guest_load(t, &new, set) != 0)
			return -EFAULT;
		switch (how) {
		case SIG_BLOCK:
			new |= old;
			break;
		case SIG_UNBLOCK:
			new = old & ~new;
			break;
		case SIG_SETMASK:
			break;
		default:
			return -EINVAL;
		}
		signal_set_blocked(t, new);
	}
	return gaddr_is_null(oldset.addr) ? 0 : guest_store(t, oldset, &old);
}

long sys_rt_sigpending(struct task *t, sigset_gp set, uint64_t sigsetsize)
{
	if (sigsetsize > SIGSET_SIZE)
		return -EINVAL;
	mutex_lock(&t->sighand->mu);
	uint64_t pending = signal_pending_set_locked(t) & t->blocked;
	mutex_unlock(&t->sighand->mu);
	/* Old C libraries give a shorter set. */
	return guest_write(t, set.addr, &pending, sigsetsize);
}

long sys_rt_sigreturn(struct task *t)
{
	return signal_sigreturn(t);
}

long sys_sigaltstack(struct task *t, stack_cgp ss, stack_gp old_ss)
{
	struct k_stack new, old = {
		.sp = t->altstack.sp,
		.size = t->altstack.size,
		.flags = sigstack_flags(&t->altstack, t->regs.rsp) |
			 (t->altstack.flags & (int32_t)0x80000000), /* SS_AUTODISARM is reported */
	};

	if (!gaddr_is_null(ss.addr)) {
		if (guest_load(t, &new, ss) != 0)
			return -EFAULT;
		int err = sigstack_set(t, &new, t->regs.rsp);
		if (err)
			return err;
	}
	return gaddr_is_null(old_ss.addr) ? 0 : guest_store(t, old_ss, &old);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static long sleep_until_signal(struct task *t)
{
	while (!signal_pending(t)) {
		sleeper_prepare(&t->sleeper);
		if (sleeper_sleep(&t->sleeper, DEADLINE_NEVER) != 0)
			break;
	}
	return -ERESTARTNOHAND;
}

long sys_pause(struct task *t)
{
	return sleep_until_signal(t);
}

long sys_rt_sigsuspend(struct task *t, sigset_cgp mask, uint64_t sigsetsize)
{
	uint64_t set;

	if (sigsetsize != SIGSET_SIZE)
		return -EINVAL;
	if (guest_load(t, &set, mask) != 0)
		return -EFAULT;
	signal_temp_mask_begin(t, set);
	long ret = sleep_until_signal(t);
	signal_temp_mask_end(t, true);
	return ret;
}

/* Sleeps with `want` unblocked; the signals in it wake us but are not dropped or delivered
 * (real_blocked). */
static int sleep_for(struct task *t, uint64_t want, deadline_t deadline, struct k_siginfo *info)
{
	struct mutex *mu = &t->sighand->mu;
	int err = 0;

	mutex_lock(mu);
	int sig = signal_dequeue_locked(t, want, info);
	if (!sig && deadline != 0) {
		t->real_blocked = t->blocked;
		t->blocked &= ~want;
		sleeper_prepare(&t->sleeper);
		signal_recalc_locked(t);
		mutex_unlock(mu);
		do
			err = sleeper_sleep(&t->sleeper, deadline);
		while (err == 0);
		mutex_lock(mu);
		t->blocked = t->real_blocked;
		t->real_blocked = 0;
		sig = signal_dequeue_locked(t, want, info);
	}
	signal_recalc_locked(t);
	mutex_unlock(mu);
	if (sig)
		return sig;
	return err == -ERESTARTSYS ? -EINTR : -EAGAIN;
}

long sys_rt_sigtimedwait(struct task *t, sigset_cgp set, siginfo_gp info, timespec_cgp timeout,
			 uint64_t sigsetsize)
{
	struct k_siginfo si;
	struct timespec ts;
	uint64_t want, ns;
	deadline_t deadline = DEADLINE_NEVER;

	if (sigsetsize != SIGSET_SIZE)
		return -EINVAL;
	if (guest_load(t, &want, set) != 0)
		return -EFAULT;
	if (!gaddr_is_null(timeout.addr)) {
		if (guest_load(t, &ts, timeout) != 0)
			return -EFAULT;
		if (timespec_to_ns(&ts, &ns) != 0)
			return -EINVAL;
		deadline = ns ? deadline_after_ns(ns) : 0;
	}
	int sig = sleep_for(t, want & ~UNMASKABLE, deadline, &si);
	if (sig > 0 && !gaddr_is_null(info.addr) && guest_store(t, info, &si) != 0)
		return -EFAULT;
	return sig;
}

long sys_restart_syscall(struct task *t)
{
	long (*fn)(struct task *) = t->restart.fn;

	return fn ? fn(t) : -EINTR;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* One process; tasks_mu held. */
static int kill_group_locked(struct task *t, struct group *g, const struct k_siginfo *info)
	REQUIRES(tasks_mu)
{
	if (info->si_signo < 0 || info->si_signo > SIG_COUNT)
		return -EINVAL;
	int err = signal_may_send_locked(t, g, info->si_signo);
	return err ? err : signal_send_group_locked(g, info);
}

static int kill_one_locked(struct task *t, int pid, const struct k_siginfo *info) REQUIRES(tasks_mu)
{
	/* The id of any thread names its process. */
	struct task *to = task_find_locked(pid);

	return to ? kill_group_locked(t, to->group, info) : -ESRCH;
}

static int kill_pgrp_locked(struct task *t, int pgrp, const struct k_siginfo *info)
	REQUIRES(tasks_mu)
{
	int ret = -ESRCH;
	bool success = false;

	list_for_each_safe(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp != pgrp)
			continue;
		ret = kill_group_locked(t, g, info);
		success = success || ret == 0;
	}
	return success ? 0 : ret;
}

/* Everybody but the first process and the caller. */
static int kill_all_locked(struct task *t, const struct k_siginfo *info) REQUIRES(tasks_mu)
{
	int ret = -ESRCH;

	list_for_each_safe(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->tgid <= 1 || g == t->group)
			continue;
		int err = kill_group_locked(t, g, info);
		if (err != -EPERM)
			ret = err;
		else if (ret == -ESRCH)
			ret = 0; /* somebody was there; LINUX: EPERM does not show in kill(-1) */
	}
	return ret;
}

long sys_kill(struct task *t, int pid, int sig)
{
	struct k_siginfo info;
	int err;

	if (pid == INT_MIN)
		return -ESRCH;
	siginfo_user(&info, sig, SI_USER);
	mutex_lock(&tasks_mu);
	if (pid > 0)
		err = kill_one_locked(t, pid, &info);
	else if (pid == -1)
		err = kill_all_locked(t, &info);
	else
		err = kill_pgrp_locked(t, pid == 0 ? t->group->pgrp : -pid, &info);
	mutex_unlock(&tasks_mu);
	return err;
}

/* One thread; tgid < 0: of whatever process. */
static int kill_thread(struct task *t, int tgid, int tid, const struct k_siginfo *info)
{
	int err = -ESRCH;

	mutex_lock(&tasks_mu);
	struct task *to = task_find_locked(tid);
	if (to && (tgid < 0 || to->group->tgid == tgid)) {
		if (info->si_signo < 0 || info->si_signo > SIG_COUNT)
			err = -EINVAL;
		else
			err = signal_may_send_locked(t, to->group, info->si_signo);
		if (!err)
			err = signal_send_task_locked(to, info);
	}
	mutex_unlock(&tasks_mu);
	return err;
}

long sys_tkill(struct task *t, int tid, int sig)
{
	struct k_siginfo info;

	if (tid <= 0)
		return -EINVAL;
	siginfo_user(&info, sig, SI_TKILL);
	return kill_thread(t, -1, tid, &info);
}

long sys_tgkill(struct task *t, int tgid, int tid, int sig)
{
	struct k_siginfo info;

	if (tid <= 0 || tgid <= 0)
		return -EINVAL;
	siginfo_user(&info, sig, SI_TKILL);
	return kill_thread(t, tgid, tid, &info);
}

/* An info that the guest made. Those of the kernel and of kill(2) cannot be forged for others. */
static int load_info(struct task *t, siginfo_cgp from, int sig, bool to_self,
		     struct k_siginfo *info)
{
	if (guest_load(t, info, from) != 0)
		return -EFAULT;
	info->si_signo = sig;
	return (info->si_code >= 0 || info->si_code == SI_TKILL) && !to_self ? -EPERM : 0;
}

long sys_rt_sigqueueinfo(struct task *t, int tgid, int sig, siginfo_cgp info)
{
	struct k_siginfo si;
	int err = load_info(t, info, sig, tgid == t->group->tgid, &si);

	if (err)
		return err;
	mutex_lock(&tasks_mu);
	err = tgid > 0 ? kill_one_locked(t, tgid, &si) : -ESRCH;
	mutex_unlock(&tasks_mu);
	return err;
}

long sys_rt_tgsigqueueinfo(struct task *t, int tgid, int tid, int sig, siginfo_cgp info)
{
	struct k_siginfo si;
	int err;

	if (tid <= 0 || tgid <= 0)
		return -EINVAL;
	err = load_info(t, info, sig, tid == t->tid, &si);
	return err ? err : kill_thread(t, tgid, tid, &si);
}

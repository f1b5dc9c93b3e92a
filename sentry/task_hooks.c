/* The sentry's answers to fs/hooks.h. */
#include <errno.h>
#include <signal.h>

#include "fs/hooks.h"
#include "sentry/session.h"
#include "sentry/signal.h"
#include "sentry/task.h"
#include "sentry/task_hooks.h"

static int hook_tgid(void)
{
	struct task *t = current_task();
	return t ? t->group->tgid : 0;
}

static int hook_tid(void)
{
	struct task *t = current_task();
	return t ? t->tid : 0;
}

static const struct cred *hook_cred(void)
{
	struct task *t = current_task();
	return t ? t->cred : NULL;
}

static const void *hook_files(void)
{
	struct task *t = current_task();
	return t ? t->files : NULL;
}

static uint64_t hook_rlimit(int resource)
{
	struct task *t = current_task();
	return t ? task_rlimit(t, resource) : RLIM_INFINITY;
}

static void hook_signal_self(int sig)
{
	struct task *t = current_task();
	struct k_siginfo info;

	if (!t)
		return;
	siginfo_init(&info, sig, SI_KERNEL);
	signal_send_task(t, &info);
}

static void signal_by_id(int type, int id, const struct k_siginfo *info)
{
	if (type == F_OWNER_PGRP) {
		signal_send_pgrp(id, info);
		return;
	}
	struct task *t = task_find(id);
	if (!t)
		return;
	if (type == F_OWNER_TID)
		signal_send_task(t, info);
	else
		signal_send_group(t->group, info);
	task_put(t);
}

static void hook_signal_owner(const struct file_owner *owner, int code, uint32_t band)
{
	struct k_siginfo info;

	if (owner->id == 0)
		return;
	/* Without F_SETSIG the signal is SIGIO and carries no details (fcntl(2)). */
	siginfo_init(&info, owner->sig ? owner->sig : SIGIO, owner->sig ? code : SI_KERNEL);
	info.poll.band = band;
	info.poll.fd = owner->fd;
	signal_by_id(owner->type, owner->id, &info);
}

static bool hook_umask(uint32_t *out)
{
	struct task *t = current_task();

	if (!t)
		return false;
	mutex_lock(&t->fs->mu);
	*out = t->fs->umask;
	mutex_unlock(&t->fs->mu);
	return true;
}

static int hook_sid(void)
{
	struct task *t = current_task();
	int sid = 0;

	if (t) {
		mutex_lock(&tasks_mu);
		sid = t->group->sid;
		mutex_unlock(&tasks_mu);
	}
	return sid;
}

static int hook_pgrp(void)
{
	struct task *t = current_task();
	int pgrp = 0;

	if (t) {
		mutex_lock(&tasks_mu);
		pgrp = t->group->pgrp;
		mutex_unlock(&tasks_mu);
	}
	return pgrp;
}

static bool hook_is_leader(void)
{
	struct task *t = current_task();
	bool leader = false;

	if (t) {
		mutex_lock(&tasks_mu);
		leader = t->group->is_session_leader;
		mutex_unlock(&tasks_mu);
	}
	return leader;
}

static void hook_signal_pgrp(int pgrp, int sig)
{
	struct k_siginfo info;

	siginfo_init(&info, sig, SI_KERNEL);
	signal_send_pgrp(pgrp, &info);
}

static bool hook_is_ignored(int sig)
{
	struct task *t = current_task();
	return t && signal_is_ignored_or_blocked(t, sig);
}

static bool hook_is_orphaned(int pgrp)
{
	mutex_lock(&tasks_mu);
	bool orphaned = pgrp_is_orphaned_locked(pgrp);
	mutex_unlock(&tasks_mu);
	return orphaned;
}

static int hook_pgrp_session(int pgrp)
{
	mutex_lock(&tasks_mu);
	int sid = pgrp_session_locked(pgrp);
	mutex_unlock(&tasks_mu);
	return sid;
}

static void hook_set_ctty(int sid, void *tty)
{
	mutex_lock(&tasks_mu);
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->sid == sid)
			g->ctty = tty;
	}
	mutex_unlock(&tasks_mu);
}

static void *hook_ctty(void)
{
	struct task *t = current_task();
	void *tty = NULL;

	if (t) {
		mutex_lock(&tasks_mu);
		tty = t->group->ctty;
		mutex_unlock(&tasks_mu);
	}
	return tty;
}

static void hook_hangup(int sid, int pgrp)
{
	static const int sigs[] = { SIGHUP, SIGCONT };
	struct task *leader = task_find(sid);
	struct k_siginfo info;

	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++) {
		siginfo_init(&info, sigs[i], SI_KERNEL);
		if (leader)
			signal_send_group(leader->group, &info);
		if (pgrp > 0)
			signal_send_pgrp(pgrp, &info);
	}
	if (leader)
		task_put(leader);
}

static const struct fs_hooks task_fs_hooks = {
	.current_tgid = hook_tgid,
	.current_tid = hook_tid,
	.current_cred = hook_cred,
	.current_files = hook_files,
	.rlimit = hook_rlimit,
	.signal_self = hook_signal_self,
	.signal_owner = hook_signal_owner,
	.umask_get = hook_umask,
	.current_sid = hook_sid,
	.current_pgrp = hook_pgrp,
	.is_session_leader = hook_is_leader,
	.signal_pgrp = hook_signal_pgrp,
	.is_sig_ignored = hook_is_ignored,
	.is_pgrp_orphaned = hook_is_orphaned,
	.pgrp_session = hook_pgrp_session,
	.set_ctty = hook_set_ctty,
	.current_ctty = hook_ctty,
	.tty_hangup = hook_hangup,
};

void task_hooks_install(void)
{
	fs_hooks = &task_fs_hooks;
}

/* Sessions and process groups: credentials(7), setpgid(2), setsid(2); orphaned groups as in
 * kernel/exit.c. */
#include "sentry/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/tty.h"
#include "platform/host/host.h"

#define INIT_TGID 1
#define ANCESTORS_MAX 64

bool session_init_is_watched = true;

/* The parent of a host process, from its line in /proc; 0 when it cannot be read. */
static int host_parent_of(int pid)
{
	char path[32], text[256];
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = host_read(fd, text, sizeof(text) - 1);
	host_close(fd);
	text[MAX(n, 0)] = 0;
	/* "pid (name) state ppid"; the name may contain anything. */
	const char *end = strrchr(text, ')');
	if (!end || sscanf(end, ") %*c %d", &ppid) != 1)
		return 0;
	return ppid;
}

bool session_is_watched_outside(void)
{
	int pgrp = getpgrp(), sid = getsid(0);

	/* Any member of our group with a parent outside it will do; those are among our ancestors.
	 */
	for (int pid = getppid(), depth = 0; pid > 0 && depth < ANCESTORS_MAX; depth++) {
		if (getsid(pid) != sid)
			return false;
		if (getpgid(pid) != pgrp)
			return true;
		pid = host_parent_of(pid);
	}
	return false;
}

/* Is the group without a member whose parent could continue it? */
static bool is_orphaned_locked(int pgrp, struct group *ignored) REQUIRES(tasks_mu)
{
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp != pgrp || g == ignored || g->zombie)
			continue;
		/* The parent of the first process is the caller outside, who does job control for
		 * it. */
		if (g->tgid == INIT_TGID && session_init_is_watched)
			return false;
		if (g->parent && g->parent->pgrp != pgrp && g->parent->sid == g->sid)
			return false;
	}
	return true;
}

bool pgrp_is_orphaned_locked(int pgrp)
{
	return is_orphaned_locked(pgrp, NULL);
}

static bool has_stopped_member_locked(int pgrp) REQUIRES(tasks_mu)
{
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp == pgrp && g->stopped)
			return true;
	}
	return false;
}

static void hangup_pgrp_locked(int pgrp) REQUIRES(tasks_mu)
{
	struct k_siginfo info;

	siginfo_init(&info, SIGHUP, SI_KERNEL);
	signal_send_pgrp_locked(pgrp, &info);
	siginfo_init(&info, SIGCONT, SI_KERNEL);
	signal_send_pgrp_locked(pgrp, &info);
}

void pgrp_check_orphaned_locked(struct group *g, struct group *parent, struct group *ignored)
{
	if (parent->pgrp == g->pgrp || parent->sid != g->sid)
		return;
	if (is_orphaned_locked(g->pgrp, ignored) && has_stopped_member_locked(g->pgrp))
		hangup_pgrp_locked(g->pgrp);
}

void session_leader_exit(struct group *g)
{
	/* sid is the leader's own id and does not change any more. */
	tty_leader_exit(g->tgid);
}

static bool pgrp_exists_in_session_locked(int pgrp, int sid) REQUIRES(tasks_mu)
{
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp == pgrp && g->sid == sid)
			return true;
	}
	return false;
}

int pgrp_session_locked(int pgrp)
{
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp == pgrp)
			return g->sid;
	}
	return -ESRCH;
}

/* The order of the checks is that of kernel/sys.c. */
static int setpgid_locked(struct task *t, int pid, int pgid) REQUIRES(tasks_mu)
{
	struct group *self = t->group, *g = group_find_locked(pid);

	if (!g)
		return -ESRCH;
	if (g->parent == self && g != self) {
		if (g->sid != self->sid)
			return -EPERM;
		if (g->did_exec)
			return -EACCES;
	} else if (g != self) {
		return -ESRCH;
	}
	if (g->is_session_leader)
		return -EPERM;
	if (pgid != pid && !pgrp_exists_in_session_locked(pgid, self->sid))
		return -EPERM;
	g->pgrp = pgid;
	return 0;
}

int session_setpgid(struct task *t, int pid, int pgid)
{
	if (pid == 0)
		pid = t->group->tgid;
	if (pgid == 0)
		pgid = pid;
	if (pgid < 0)
		return -EINVAL;
	mutex_lock(&tasks_mu);
	int err = setpgid_locked(t, pid, pgid);
	mutex_unlock(&tasks_mu);
	return err;
}

int session_setsid(struct task *t)
{
	struct group *g = t->group;
	int ret = -EPERM;

	mutex_lock(&tasks_mu);
	if (!g->is_session_leader && pgrp_session_locked(g->tgid) == -ESRCH) {
		g->is_session_leader = true;
		g->sid = g->pgrp = ret = g->tgid;
		g->ctty = NULL;
	}
	mutex_unlock(&tasks_mu);
	return ret;
}

/* pid 0 is the caller; any thread's id names its process. */
static struct group *group_of_locked(struct task *t, int pid) REQUIRES(tasks_mu)
{
	if (pid == 0)
		return t->group;
	struct task *o = task_find_locked(pid);
	return o ? o->group : NULL;
}

int session_getpgid(struct task *t, int pid)
{
	mutex_lock(&tasks_mu);
	struct group *g = group_of_locked(t, pid);
	int ret = g ? g->pgrp : -ESRCH;
	mutex_unlock(&tasks_mu);
	return ret;
}

int session_getsid(struct task *t, int pid)
{
	mutex_lock(&tasks_mu);
	struct group *g = group_of_locked(t, pid);
	int ret = g ? g->sid : -ESRCH;
	mutex_unlock(&tasks_mu);
	return ret;
}

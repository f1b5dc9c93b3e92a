/* Sessions, process groups, orphaned groups, controlling terminals' side of exit. */
#pragma once

#include "sentry/task.h"

/* setpgid(2), setsid(2) and the readers; ids or -errno. */
int session_setpgid(struct task *t, int pid, int pgid) MUST_CHECK;
int session_setsid(struct task *t) MUST_CHECK;
int session_getpgid(struct task *t, int pid) MUST_CHECK;
int session_getsid(struct task *t, int pid) MUST_CHECK;
/* The session of a process group, or -ESRCH. tasks_mu held. */
int pgrp_session_locked(int pgrp) REQUIRES(tasks_mu);

/* The process that started pinfold does job control for the first process: set once at boot. */
extern bool session_init_is_watched;
/* Is pinfold's own process group watched by a job-control shell? Before the sentry is confined. */
bool session_is_watched_outside(void);

/* g lost the parent `parent` (or, with ignored == g, ends itself): if that orphans its process
 * group and a member is stopped, the group gets SIGHUP and SIGCONT. tasks_mu held. */
void pgrp_check_orphaned_locked(struct group *g, struct group *parent, struct group *ignored)
	REQUIRES(tasks_mu);
/* The session leader g ends: the terminal is given up, its foreground group gets SIGHUP and
 * SIGCONT. No lock held. */
void session_leader_exit(struct group *g);

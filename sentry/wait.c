/*
 * wait4(2) and waitid(2): kernel/exit.c do_wait. Children hang on the parent's group; every change
 * that a wait may report is made under tasks_mu and announced on the parent's child_wait.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "sentry/exit.h"
#include "sentry/ptrace_guest.h"
#include "sentry/task.h"
#include "sentry/timers.h"

static bool is_candidate_locked(struct task *t, struct group *c, int idtype, int id, int options)
	REQUIRES(tasks_mu)
{
	if (idtype == P_PID && c->tgid != id)
		return false;
	if (idtype == P_PGID && c->pgrp != id)
		return false;
	if ((options & __WNOTHREAD) && c->parent_task != t)
		return false;
	/* "Clone" children are those that do not send SIGCHLD. */
	if (!(options & __WALL) && (c->exit_signal != SIGCHLD) != !!(options & __WCLONE))
		return false;
	return true;
}

static void usage_fill(struct rusage *ru, uint64_t user, uint64_t sys, uint64_t maxrss)
{
	*ru = (struct rusage){
		.ru_utime = ns_to_timeval(user),
		.ru_stime = ns_to_timeval(sys),
		.ru_maxrss = (long)maxrss,
	};
}

static void fill_locked(struct group *c, int status, int code, struct wait_result *out)
	REQUIRES(tasks_mu)
{
	uint64_t user, sys;

	group_times_locked(c, &user, &sys);
	*out = (struct wait_result){
		.pid = c->tgid,
		.uid = c->leader->cred->uid,
		.status = status,
		.code = code,
	};
	usage_fill(&out->usage, user + c->child_utime_ns, sys + c->child_stime_ns,
		   MAX(c->maxrss_kb, c->child_maxrss_kb));
}

static int exit_status_code(int status)
{
	if ((status & 0x7f) == 0)
		return CLD_EXITED;
	return status & 0x80 ? CLD_DUMPED : CLD_KILLED;
}

/* The parent's counters take over those of a child that is waited for. */
static void account_child_locked(struct group *parent, struct group *c) REQUIRES(tasks_mu)
{
	uint64_t user, sys;

	group_times_locked(c, &user, &sys);
	parent->child_utime_ns += user + c->child_utime_ns;
	parent->child_stime_ns += sys + c->child_stime_ns;
	parent->child_maxrss_kb =
		MAX(parent->child_maxrss_kb, MAX(c->maxrss_kb, c->child_maxrss_kb));
}

/* Something to report about c? */
static bool report_locked(struct task *t, struct group *c, int options, struct wait_result *out,
			  struct list *dead) REQUIRES(tasks_mu)
{
	bool keep = options & WNOWAIT;

	if (c->zombie) {
		if (!(options & WEXITED))
			return false;
		fill_locked(c, c->exit_code, exit_status_code(c->exit_code), out);
		if (!keep) {
			account_child_locked(t->group, c);
			group_reap_locked(c, dead);
		}
		return true;
	}
	/* Stops of a tracee are reported as such (ptrace_wait_locked). */
	if (ptrace_is_tracer_locked(t->group, c))
		return false;
	if (c->stop_report && (options & WSTOPPED)) {
		fill_locked(c, c->stop_report, CLD_STOPPED, out);
		if (!keep)
			c->stop_report = 0;
		return true;
	}
	if (c->cont_report && (options & WCONTINUED)) {
		fill_locked(c, 0xffff, CLD_CONTINUED, out);
		if (!keep)
			c->cont_report = false;
		return true;
	}
	return false;
}

/* 1 with a result, 0 when there is nothing yet, -ECHILD when there never will be. */
static int scan_locked(struct task *t, int idtype, int id, int options, struct wait_result *out,
		       struct list *dead) REQUIRES(tasks_mu)
{
	bool any = false;

	list_for_each_safe(pos, &t->group->children) {
		struct group *c = list_entry(pos, struct group, sibling);
		if (!is_candidate_locked(t, c, idtype, id, options))
			continue;
		any = true;
		if (report_locked(t, c, options, out, dead))
			return 1;
	}
	int traced = ptrace_wait_locked(t, idtype, id, options, out);
	return traced == -ECHILD && any ? 0 : traced;
}

int task_wait(struct task *t, int idtype, int id, int options, struct wait_result *out)
{
	struct list dead = LIST_INIT(dead);
	int ret;

	mutex_lock(&tasks_mu);
	for (;;) {
		ret = scan_locked(t, idtype, id, options, out, &dead);
		if (ret != 0 || (options & WNOHANG))
			break;
		ret = waitq_wait(&t->group->child_wait, &tasks_mu, 0, DEADLINE_NEVER);
		if (ret)
			break;
	}
	mutex_unlock(&tasks_mu);
	task_put_list(&dead);
	return ret;
}

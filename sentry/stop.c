/*
 * Job control: stopping and continuing thread groups (kernel/signal.c do_signal_stop,
 *prepare_signal).
 *
 *	running --stop signal taken--> stopping (stop_sig) --last thread parked--> stopped (stopped,
 *stop_report) stopping, stopped --SIGCONT--> running (cont_report if it was stopped) any --SIGKILL,
 *group exit--> exiting
 *
 * Every thread sees stop_sig in signal_deliver and parks on cont_wait; a thread that ends no longer
 *counts.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "sentry/ptrace_guest.h"
#include "sentry/task.h"

void (*stop_init_hook)(bool stopped);

bool stop_continue_locked(struct group *g)
{
	bool was_stopped = g->stopped;

	if (!g->stop_sig)
		return false;
	g->stop_sig = 0;
	g->stopped = false;
	g->stop_report = 0;
	g->cont_report = was_stopped;
	list_for_each(pos, &g->threads) {
		struct task *t = list_entry(pos, struct task, group_link);
		t->stop_parked = false;
		signal_recalc_locked(t);
	}
	waitq_wake_all(&g->cont_wait, 0);
	return was_stopped;
}

bool stop_complete_locked(struct group *g)
{
	if (!g->stop_sig || g->stopped || g->exiting)
		return false;
	list_for_each(pos, &g->threads) {
		struct task *t = list_entry(pos, struct task, group_link);
		if (!t->exiting && !t->stop_parked && !t->trap_stopped)
			return false;
	}
	g->stopped = true;
	g->stop_report = g->stop_sig << 8 | 0x7f;
	g->cont_report = false;
	return true;
}

void stop_notify_parent_locked(struct group *g, int code)
{
	struct group *parent = g->parent;
	struct k_siginfo info;

	if (!parent) {
		if (g->tgid == 1 && stop_init_hook)
			stop_init_hook(code == CLD_STOPPED);
		return;
	}
	siginfo_init(&info, SIGCHLD, code);
	info.chld.pid = g->tgid;
	info.chld.uid = g->leader->cred ? g->leader->cred->uid : 0;
	info.chld.status = code == CLD_CONTINUED ? SIGCONT : g->stop_sig;
	struct sighand *sh = parent->leader->sighand;
	mutex_lock(&sh->mu);
	const struct k_sigaction *sa = &sh->action[SIGCHLD];
	bool wanted = sa->handler != K_SIG_IGN && !(sa->flags & K_SA_NOCLDSTOP);
	mutex_unlock(&sh->mu);
	if (wanted)
		signal_send_group_locked(parent, &info);
	waitq_wake_all(&parent->child_wait, POLLIN);
}

void stop_park(struct task *t)
{
	struct group *g = t->group;
	struct sighand *sh = t->sighand;

	mutex_lock(&tasks_mu);
	mutex_lock(&sh->mu);
	if (!g->stop_sig || g->exiting || t->kill_pending) {
		mutex_unlock(&sh->mu);
		mutex_unlock(&tasks_mu);
		return;
	}
	t->stop_parked = true;
	t->state = TASK_STOPPED;
	bool complete = stop_complete_locked(g);
	mutex_unlock(&sh->mu);
	if (complete)
		stop_notify_parent_locked(g, CLD_STOPPED);
	mutex_unlock(&tasks_mu);

	if (atomic_load(&t->ptraced)) {
		/* The tracer decides when it runs on, whatever the group does; stop_parked stays
		 * set. */
		ptrace_group_stop(t);
		return;
	}
	mutex_lock(&sh->mu);
	while (t->stop_parked && !t->kill_pending && !t->trap_wanted) {
		/* Other signals stay pending until the group continues. */
		if (waitq_wait(&g->cont_wait, &sh->mu, 0, DEADLINE_NEVER) != 0)
			sleeper_clear_interrupt(&t->sleeper);
	}
	/* A tracer came: the stop becomes one for the tracer, without another report of the
	 * group's. */
	t->stop_parked = t->stop_parked && t->trap_wanted && !t->kill_pending;
	t->state = TASK_RUNNING;
	signal_recalc_locked(t);
	mutex_unlock(&sh->mu);
}

void stop_by_signal(struct task *t, int sig)
{
	struct group *g = t->group;

	mutex_lock(&tasks_mu);
	/* Nobody could continue an orphaned group, so the terminal's signals do not stop it
	 * (POSIX). */
	bool orphaned = sig != SIGSTOP && pgrp_is_orphaned_locked(g->pgrp);
	mutex_lock(&t->sighand->mu);
	bool stop = !orphaned && t->stop_dequeued && !g->exiting && !t->kill_pending;
	t->stop_dequeued = false;
	if (stop && !g->stop_sig) {
		g->stop_sig = sig;
		list_for_each(pos, &g->threads)
			signal_recalc_locked(list_entry(pos, struct task, group_link));
	}
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	if (stop)
		stop_park(t);
}

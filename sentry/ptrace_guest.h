/* Guest ptrace(2): the stops of a traced task and the tracer's requests. */
#pragma once

#include "sentry/guest.h"

struct task;

/* t has dequeued sig: stops for the tracer, who may change or drop it. The signal to act on, 0 for none; *info is
 * updated. No lock held. */
int ptrace_report_signal(struct task *t, int sig, struct k_siginfo *info);

struct group;
struct list;
struct wait_result;

/* t ends: its tracees go on untraced, its tracer is told. tasks_mu held; what is released is added to `dead`. */
void ptrace_exit_locked(struct task *t, struct list *dead);
/* Must the parent's wait not see the zombie yet, because a tracer has to see it first? tasks_mu held. */
bool ptrace_delays_zombie_locked(struct group *g);
/* The tracer's side of wait(2): 1 with a result, 0 nothing yet, -ECHILD no tracee matches. tasks_mu held. */
int ptrace_wait_locked(struct task *t, int idtype, int id, int options, struct wait_result *out,
		       struct list *dead);

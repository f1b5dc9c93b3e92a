/* Guest ptrace(2): see ptrace_guest.h. */
#include "sentry/ptrace_guest.h"

#include <errno.h>

#include "sentry/task.h"

int ptrace_report_signal(struct task *t UNUSED, int sig, struct k_siginfo *info UNUSED)
{
	return sig;
}

void ptrace_exit_locked(struct task *t UNUSED, struct list *dead UNUSED)
{
}

bool ptrace_delays_zombie_locked(struct group *g UNUSED)
{
	return false;
}

int ptrace_wait_locked(struct task *t UNUSED, int idtype UNUSED, int id UNUSED, int options UNUSED,
		       struct wait_result *out UNUSED, struct list *dead UNUSED)
{
	return -ECHILD;
}

/* ptrace(2): the requests are sentry/ptrace_guest.c's. */
#include <errno.h>

#include "sentry/task.h"
#include "syscalls/handlers.h"

long sys_ptrace(struct task *t UNUSED, int64_t request UNUSED, int pid UNUSED, uint64_t addr UNUSED,
		uint64_t data UNUSED)
{
	return -EPERM;
}

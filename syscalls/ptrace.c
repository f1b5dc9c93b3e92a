/* ptrace(2): the requests are sentry/ptrace_request.c's. */
#include "sentry/ptrace_guest.h"
#include "syscalls/handlers.h"

long sys_ptrace(struct task *t, int64_t request, int pid, uint64_t addr, uint64_t data)
{
	return ptrace_request(t, request, pid, addr, data);
}

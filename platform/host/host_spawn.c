/* Making helper processes: see host_spawn.h. */
#include "platform/host/host_spawn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int host_seqpacket_pair(int out[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out) < 0 ? -errno : 0;
}

int host_fork(void)
{
	pid_t pid = fork();
	return pid < 0 ? -errno : pid;
}

int host_getpid(void)
{
	return getpid();
}

int host_geteuid(void)
{
	return (int)geteuid();
}

void host_exit_now(int status)
{
	_exit(status);
}

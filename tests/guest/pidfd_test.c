/* pidfd_open(2), pidfd_getfd(2), pidfd_send_signal(2). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

static int pidfd(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static int send_sig(int fd, int sig, siginfo_t *info)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, sig, info, 0);
}

TEST(open_and_refuse)
{
	int fd = pidfd(getpid(), 0);
	CHECK_OK(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_ERR(pidfd(0, 0), EINVAL);
	CHECK_ERR(pidfd(-1, 0), EINVAL);
	CHECK_ERR(pidfd(getpid(), 1), EINVAL);
	CHECK_ERR(pidfd(4000000, 0), ESRCH);
	char c;
	CHECK_ERR(read(fd, &c, 1), EINVAL);
	fd = pidfd(getpid(), O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

TEST(readable_when_ended)
{
	pid_t pid = fork();
	if (pid == 0) {
		usleep(100000);
		_exit(3);
	}
	int fd = pidfd(pid, 0);
	CHECK_OK(fd);
	struct pollfd p = { fd, POLLIN, 0 };
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(p.revents, POLLIN);
	siginfo_t si;
	CHECK_OK(waitid((idtype_t)3 /* P_PIDFD */, (id_t)fd, &si, WEXITED));
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(si.si_status, 3);
	CHECK_ERR(send_sig(fd, 0, NULL), ESRCH);
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents & POLLIN, POLLIN);
}

TEST(signals)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	int fd = pidfd(pid, 0);
	siginfo_t si;
	CHECK_OK(send_sig(fd, 0, NULL));
	CHECK_ERR(send_sig(fd, 99, NULL), EINVAL);
	CHECK_ERR(send_sig(0, SIGTERM, NULL), EBADF);
	memset(&si, 0, sizeof(si));
	si.si_signo = SIGUSR1;
	si.si_code = SI_QUEUE;
	CHECK_ERR(send_sig(fd, SIGTERM, &si), EINVAL);
	si.si_signo = SIGTERM;
	si.si_code = SI_USER;
	CHECK_ERR(send_sig(fd, SIGTERM, &si), EPERM);
	si.si_code = SI_QUEUE;
	CHECK_OK(send_sig(fd, SIGTERM, &si));
	CHECK_KILLED(pid, SIGTERM);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0x100), EINVAL);
}

TEST(fetch_a_descriptor)
{
	int p[2], sync[2];
	char c;
	CHECK_OK(pipe(sync));
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(pipe(p));
		CHECK_EQ(write(p[1], "deep", 4), 4);
		CHECK_EQ(dup2(p[0], 60), 60);
		CHECK_EQ(write(sync[1], "r", 1), 1);
		pause();
		_exit(0);
	}
	CHECK_EQ(read(sync[0], &c, 1), 1);
	int fd = pidfd(pid, 0);
	int got = (int)syscall(SYS_pidfd_getfd, fd, 60, 0);
	CHECK_OK(got);
	CHECK_EQ(fcntl(got, F_GETFD), FD_CLOEXEC);
	char buf[8];
	CHECK_EQ(read(got, buf, 8), 4);
	CHECK_ERR(syscall(SYS_pidfd_getfd, fd, 61, 0), EBADF);
	CHECK_ERR(syscall(SYS_pidfd_getfd, fd, 60, 1), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_getfd, got, 60, 0), EBADF);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
	CHECK_ERR(syscall(SYS_pidfd_getfd, fd, 60, 0), ESRCH);
}

TEST(signal_by_proc_directory)
{
	char name[40];
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(name, sizeof(name), "/proc/%d", pid);
	int fd = open(name, O_RDONLY | O_DIRECTORY);
	CHECK_OK(send_sig(fd, 0, NULL));
	CHECK_ERR(send_sig(open(name, O_PATH), 0, NULL), EBADF);
	CHECK_ERR(send_sig(open("/proc", O_RDONLY), 0, NULL), EBADF);
	snprintf(name, sizeof(name), "/proc/%d/task/%d", pid, pid);
	CHECK_ERR(send_sig(open(name, O_RDONLY), 0, NULL), EBADF);
	CHECK_OK(send_sig(fd, SIGTERM, NULL));
	CHECK_KILLED(pid, SIGTERM);
	CHECK_ERR(send_sig(fd, 0, NULL), ESRCH);
}

TEST(signal_to_a_process_group)
{
	const unsigned to_group = 4;
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		if (fork() == 0)
			_exit(pause());
		_exit(pause());
	}
	int fd = pidfd(pid, 0);
	setpgid(pid, pid);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 3), EINVAL);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 8), EINVAL);
	CHECK_OK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, to_group));
	CHECK_KILLED(pid, SIGTERM);
	pid = fork();
	if (pid == 0)
		_exit(pause());
	/* Not the leader of a group. */
	fd = pidfd(pid, 0);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, to_group), ESRCH);
	CHECK_OK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 1));
	CHECK_KILLED(pid, SIGTERM);
}

T_MAIN

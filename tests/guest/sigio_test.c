/* fcntl(2): O_ASYNC, F_SETOWN, F_SETOWN_EX, F_SETSIG; ioctl(2): FIOASYNC. */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/guest/t_file.h"

static const struct timespec soon = { 10, 0 }, at_once = { 0, 100000000 };
static sigset_t set;

static void block(void)
{
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
}

static void be_told(int fd)
{
	CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
	CHECK_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
	CHECK(fcntl(fd, F_GETFL) & O_ASYNC);
}

TEST(a_pipe_tells_its_reader)
{
	siginfo_t si;
	int p[2];
	block();
	CHECK_OK(pipe(p));
	be_told(p[0]);
	CHECK_ERR(sigtimedwait(&set, &si, &at_once), EAGAIN);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(sigtimedwait(&set, &si, &soon), SIGIO);
	CHECK_OK(fcntl(p[0], F_SETSIG, SIGUSR1));
	CHECK_EQ(write(p[1], "y", 1), 1);
	CHECK_EQ(sigtimedwait(&set, &si, &soon), SIGUSR1);
	CHECK_EQ(si.si_code, POLL_IN);
	CHECK_EQ(si.si_fd, p[0]);
	CHECK(si.si_band & POLLIN);
	CHECK_OK(fcntl(p[0], F_SETFL, 0));
	CHECK_EQ(write(p[1], "z", 1), 1);
	CHECK_ERR(sigtimedwait(&set, &si, &at_once), EAGAIN);
}

TEST(a_socket_tells_a_group)
{
	int s[2], on = 1;
	siginfo_t si;
	block();
	CHECK_OK(setpgid(0, 0));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(fcntl(s[0], F_SETOWN, -getpgrp()));
	CHECK_OK(ioctl(s[0], FIOASYNC, &on));
	pid_t pid = fork();
	if (pid == 0)
		_exit(sigtimedwait(&set, NULL, &soon) == SIGIO ? 0 : 1);
	CHECK_EQ(write(s[1], "x", 1), 1);
	CHECK_EQ(sigtimedwait(&set, &si, &soon), SIGIO);
	CHECK_CHILD(pid, 0);
}

TEST(nobody_is_told_after_the_file_is_gone)
{
	int p[2];
	block();
	for (int i = 0; i < 200; i++) {
		CHECK_OK(pipe(p));
		be_told(p[0]);
		be_told(p[1]);
		CHECK_EQ(write(p[1], "x", 1), 1);
		close(p[i & 1]);
		close(p[!(i & 1)]);
	}
}

T_MAIN

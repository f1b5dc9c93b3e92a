/* signalfd(2), signalfd4(2). */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

static sigset_t set;

static int begin(int flags)
{
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGRTMIN);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	int fd = signalfd(-1, &set, flags);
	CHECK_OK(fd);
	return fd;
}

TEST(takes_signals)
{
	struct signalfd_siginfo s[3];
	int fd = begin(SFD_NONBLOCK | SFD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_ERR(read(fd, s, sizeof(s)), EAGAIN);
	CHECK_ERR(read(fd, s, 100), EINVAL);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	CHECK_EQ(read(fd, s, sizeof(s)), 2 * sizeof(s[0]));
	CHECK_EQ(s[0].ssi_signo, SIGUSR1);
	CHECK_EQ(s[1].ssi_signo, SIGUSR2);
	CHECK_EQ(s[0].ssi_pid, getpid());
	CHECK_EQ(s[0].ssi_uid, getuid());
	CHECK_EQ(s[0].ssi_code, SI_USER);
	sigset_t pending;
	CHECK_OK(sigpending(&pending));
	CHECK_EQ(sigismember(&pending, SIGUSR1), 0);
	union sigval v = { .sival_int = 77 };
	CHECK_OK(sigqueue(getpid(), SIGRTMIN, v));
	v.sival_int = 78;
	CHECK_OK(sigqueue(getpid(), SIGRTMIN, v));
	CHECK_EQ(read(fd, s, sizeof(s)), 2 * sizeof(s[0]));
	CHECK_EQ(s[0].ssi_int, 77);
	CHECK_EQ(s[1].ssi_int, 78);
	CHECK_EQ(s[0].ssi_code, SI_QUEUE);
}

TEST(child_and_poll)
{
	struct signalfd_siginfo s;
	int fd = begin(0);
	struct pollfd p = { fd, POLLIN, 0 };
	CHECK_EQ(poll(&p, 1, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(100000);
		_exit(5);
	}
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(read(fd, &s, sizeof(s)), sizeof(s));
	CHECK_EQ(s.ssi_signo, SIGCHLD);
	CHECK_EQ(s.ssi_pid, pid);
	CHECK_EQ(s.ssi_status, 5);
	CHECK_EQ(s.ssi_code, CLD_EXITED);
	CHECK_CHILD(pid, 5);
}

TEST(blocking_read)
{
	struct signalfd_siginfo s;
	int fd = begin(0);
	pid_t me = getpid(), pid = fork();
	if (pid == 0) {
		usleep(100000);
		kill(me, SIGUSR2);
		_exit(0);
	}
	do {
		CHECK_EQ(read(fd, &s, sizeof(s)), sizeof(s));
	} while (s.ssi_signo != SIGUSR2);
	CHECK_EQ(s.ssi_pid, pid);
	CHECK_CHILD(pid, 0);
}

TEST(change_the_set)
{
	struct signalfd_siginfo s;
	sigset_t other;
	int fd = begin(SFD_NONBLOCK);
	sigemptyset(&other);
	sigaddset(&other, SIGUSR2);
	CHECK_EQ(signalfd(fd, &other, 0), fd);
	kill(getpid(), SIGUSR1);
	CHECK_ERR(read(fd, &s, sizeof(s)), EAGAIN);
	CHECK_EQ(signalfd(fd, &set, 0), fd);
	CHECK_EQ(read(fd, &s, sizeof(s)), sizeof(s));
	CHECK_ERR(signalfd(99, &set, 0), EBADF);
	CHECK_ERR(signalfd(0, &set, 0), EINVAL);
	CHECK_ERR(signalfd(-1, &set, 1), EINVAL);
	CHECK_ERR(syscall(SYS_signalfd4, -1, &set, 4, 0), EINVAL);
	CHECK_OK(syscall(SYS_signalfd, -1, &set, 8));
	CHECK_ERR(write(fd, &s, sizeof(s)), EINVAL);
}

TEST(in_epoll_after_the_child_ended)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), fd = begin(SFD_NONBLOCK);
	/* The child's registration goes with it; nothing dangles. */
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
		kill(getpid(), SIGUSR1);
		CHECK_EQ(epoll_wait(ep, &ev, 1, 1000), 1);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	struct signalfd_siginfo s;
	CHECK_EQ(read(fd, &s, sizeof(s)), sizeof(s));
	CHECK_EQ(s.ssi_signo, SIGCHLD);
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	close(ep);
	close(fd);
}

T_MAIN

/* dup(2), dup2(2), dup3(2), close_range(2), fcntl(2), ioctl(2). */
#include <limits.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/guest/t_file.h"

TEST(dup_family)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	int a = dup(fd);
	CHECK_OK(a);
	CHECK_EQ(fcntl(a, F_GETFD), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(dup2(fd, 100), 100);
	CHECK_EQ(fcntl(100, F_GETFD), 0);
	CHECK_EQ(dup2(fd, fd), fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(dup3(fd, 101, O_CLOEXEC), 101);
	CHECK_EQ(fcntl(101, F_GETFD), FD_CLOEXEC);
	CHECK_ERR(dup3(fd, fd, 0), EINVAL);
	CHECK_ERR(dup3(fd, 102, 1), EINVAL);
	CHECK_ERR(dup(99), EBADF);
	CHECK_ERR(dup2(99, 5), EBADF);
	CHECK_ERR(dup2(99, 99), EBADF);
	CHECK_ERR(dup2(fd, -1), EBADF);
	CHECK_ERR(dup2(fd, INT_MAX), EBADF);
	struct rlimit lim;
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &lim));
	CHECK_ERR(dup2(fd, (int)lim.rlim_cur), EBADF);
}

TEST(fcntl_dupfd_and_flags)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_WRONLY | O_APPEND, 0644);
	CHECK_EQ(fcntl(fd, F_DUPFD, 50), 50);
	CHECK_EQ(fcntl(fd, F_DUPFD_CLOEXEC, 50), 51);
	CHECK_EQ(fcntl(51, F_GETFD), FD_CLOEXEC);
	CHECK_OK(fcntl(51, F_SETFD, 0));
	CHECK_EQ(fcntl(51, F_GETFD), 0);
	CHECK_ERR(fcntl(fd, F_DUPFD, -1), EINVAL);
	CHECK_ERR(fcntl(fd, F_DUPFD, INT_MAX), EINVAL);
	CHECK_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_CREAT), O_WRONLY | O_APPEND);
	CHECK_OK(fcntl(fd, F_SETFL, O_NONBLOCK | O_RDWR));
	CHECK_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), O_WRONLY | O_NONBLOCK);
	CHECK_EQ(fcntl(50, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_ERR(fcntl(99, F_GETFL), EBADF);
	CHECK_ERR(fcntl(fd, 12345), EINVAL);
}

TEST(fcntl_owner_and_signal)
{
	struct f_owner_ex ex = { F_OWNER_PID, 0 };
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_EQ(fcntl(p[0], F_GETOWN), 0);
	CHECK_OK(fcntl(p[0], F_SETOWN, getpid()));
	CHECK_EQ(fcntl(p[0], F_GETOWN), getpid());
	CHECK_OK(fcntl(p[0], F_GETOWN_EX, &ex));
	CHECK(ex.type == F_OWNER_PID && ex.pid == getpid());
	CHECK_OK(fcntl(p[0], F_SETOWN, -getpgrp()));
	CHECK_OK(fcntl(p[0], F_GETOWN_EX, &ex));
	CHECK(ex.type == F_OWNER_PGRP && ex.pid == getpgrp());
	ex.type = F_OWNER_TID;
	ex.pid = (pid_t)syscall(SYS_gettid);
	CHECK_OK(fcntl(p[0], F_SETOWN_EX, &ex));
	CHECK_EQ(fcntl(p[0], F_GETOWN), ex.pid);
	CHECK_ERR(fcntl(p[0], F_SETOWN, INT_MIN), EINVAL);
	CHECK_ERR(fcntl(p[0], F_SETOWN, 99999999), ESRCH);
	CHECK_EQ(fcntl(p[0], F_GETSIG), 0);
	CHECK_OK(fcntl(p[0], F_SETSIG, SIGUSR1));
	CHECK_EQ(fcntl(p[0], F_GETSIG), SIGUSR1);
	CHECK_ERR(fcntl(p[0], F_SETSIG, 100), EINVAL);
}

TEST(fcntl_pipe_size)
{
	int p[2];
	fresh_dir();
	CHECK_OK(pipe(p));
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 65536);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 10000), 16384);
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 16384);
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_ERR(fcntl(fd, F_GETPIPE_SZ), EBADF);
}

TEST(close_range_rules)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	for (int i = 100; i < 110; i++)
		CHECK_EQ(dup2(fd, i), i);
	CHECK_OK(close_range(100, 104, 0));
	CHECK_ERR(fcntl(104, F_GETFD), EBADF);
	CHECK_OK(fcntl(105, F_GETFD));
	CHECK_OK(close_range(105, ~0u, CLOSE_RANGE_CLOEXEC));
	CHECK_EQ(fcntl(109, F_GETFD), FD_CLOEXEC);
	CHECK_OK(close_range(108, ~0u, CLOSE_RANGE_UNSHARE));
	CHECK_ERR(fcntl(108, F_GETFD), EBADF);
	CHECK_ERR(close_range(5, 4, 0), EINVAL);
	CHECK_ERR(close_range(5, 6, 1), EINVAL);
}

TEST(cloexec_at_exec)
{
	char arg[16];
	if (getenv("T_FD")) {
		int fd = atoi(getenv("T_FD"));
		_exit(fcntl(fd, F_GETFD) == -1 && fcntl(fd + 1, F_GETFD) == 0 ? 0 : 1);
	}
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	CHECK(n > 0);
	self[n] = 0;
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	CHECK_EQ(dup2(fd, fd + 1), fd + 1);
	snprintf(arg, sizeof(arg), "%d", fd);
	pid_t pid = fork();
	if (pid == 0) {
		setenv("T_FD", arg, 1);
		execl(self, self, "-n", "cloexec_at_exec", NULL);
		_exit(9);
	}
	CHECK_CHILD(pid, 0);
}

TEST(ioctl_of_files)
{
	int n = 0, on = 1, off = 0, p[2];
	fresh_dir();
	make_file("f", "abcdef");
	int fd = open("f", O_RDONLY);
	CHECK_EQ(lseek(fd, 2, SEEK_SET), 2);
	CHECK_OK(ioctl(fd, FIONREAD, &n));
	CHECK_EQ(n, 4);
	CHECK_OK(ioctl(fd, FIGETBSZ, &n));
	CHECK(n >= 512);
	CHECK_OK(ioctl(fd, FIOCLEX));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_OK(ioctl(fd, FIONCLEX));
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_OK(pipe(p));
	CHECK_OK(ioctl(p[0], FIONBIO, &on));
	CHECK_EQ(fcntl(p[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_OK(ioctl(p[0], FIONBIO, &off));
	CHECK_EQ(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(write(p[1], "abc", 3), 3);
	CHECK_OK(ioctl(p[0], FIONREAD, &n));
	CHECK_EQ(n, 3);
	CHECK_ERR(ioctl(fd, TIOCGWINSZ, &n), ENOTTY);
	CHECK_ERR(ioctl(99, FIONREAD, &n), EBADF);
	CHECK_ERR(ioctl(fd, FIONREAD, (void *)8), EFAULT);
}

T_MAIN

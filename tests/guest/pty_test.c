/* Pseudo-terminals: pty(7), ioctl_tty(2); the master's and the slave's view of each other. */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "tests/guest/t.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

struct pair {
	int m, s;
	char name[64];
};

static struct pair open_pair(int flags)
{
	struct pair p;

	p.m = posix_openpt(O_RDWR | O_NOCTTY | flags);
	CHECK_OK(p.m);
	CHECK_OK(grantpt(p.m));
	CHECK_OK(unlockpt(p.m));
	CHECK_EQ(ptsname_r(p.m, p.name, sizeof(p.name)), 0);
	p.s = open(p.name, O_RDWR | O_NOCTTY | flags);
	CHECK_OK(p.s);
	return p;
}

TEST(names_and_numbers)
{
	struct pair p = open_pair(0), q = open_pair(0);
	struct stat st, fst;
	int n;

	CHECK_EQ(strncmp(p.name, "/dev/pts/", 9), 0);
	CHECK(strcmp(p.name, q.name) != 0);
	CHECK_OK(ioctl(p.m, TIOCGPTN, &n));
	CHECK_EQ(n, atoi(p.name + 9));
	CHECK_OK(stat(p.name, &st));
	CHECK_EQ(major(st.st_rdev), 136 + n / 256);
	CHECK_EQ(minor(st.st_rdev), n % 256);
	CHECK_OK(fstat(p.s, &fst));
	CHECK_EQ(fst.st_rdev, st.st_rdev);
	CHECK_EQ(fst.st_ino, st.st_ino);
	CHECK(isatty(p.s));
	CHECK(isatty(p.m));
	CHECK_STR(ttyname(p.s), p.name);
	CHECK_ERR(lseek(p.s, 0, SEEK_SET), ESPIPE);
	CHECK_ERR(ioctl(p.s, TIOCGPTN, &n), ENOTTY);
	close(p.s);
	close(p.m);
	CHECK_ERR(stat(p.name, &st), ENOENT);
}

TEST(locked_until_unlockpt)
{
	int m = posix_openpt(O_RDWR | O_NOCTTY), n, value = -1;
	char name[64];

	CHECK_OK(m);
	CHECK_OK(ioctl(m, TIOCGPTN, &n));
	snprintf(name, sizeof(name), "/dev/pts/%d", n);
	CHECK_OK(ioctl(m, TIOCGPTLCK, &value));
	CHECK_EQ(value, 1);
	CHECK_ERR(open(name, O_RDWR | O_NOCTTY), EIO);
	CHECK_OK(unlockpt(m));
	CHECK_OK(open(name, O_RDWR | O_NOCTTY));
}

TEST(bytes_both_ways)
{
	struct pair p = open_pair(0);
	char buf[64];

	CHECK_EQ(write(p.s, "out\n", 4), 4);
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 5);
	CHECK_MEM(buf, "out\r\n", 5);
	CHECK_EQ(write(p.m, "in\r", 3), 3);
	CHECK_EQ(read(p.s, buf, sizeof(buf)), 3);
	CHECK_MEM(buf, "in\n", 3);
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 4);
	CHECK_MEM(buf, "in\r\n", 4);
}

TEST(nonblocking)
{
	struct pair p = open_pair(O_NONBLOCK);
	char c;

	CHECK_ERR(read(p.s, &c, 1), EAGAIN);
	CHECK_ERR(read(p.m, &c, 1), EAGAIN);
	struct pollfd pf[2] = { { .fd = p.m, .events = POLLIN | POLLOUT },
				{ .fd = p.s, .events = POLLIN | POLLOUT } };
	CHECK_EQ(poll(pf, 2, 0), 2);
	CHECK_EQ(pf[0].revents, POLLOUT);
	CHECK_EQ(pf[1].revents, POLLOUT);
}

TEST(master_closes)
{
	struct pair p = open_pair(0);
	char c;

	close(p.m);
	CHECK_EQ(read(p.s, &c, 1), 0);
	CHECK_ERR(write(p.s, "x", 1), EIO);
	struct termios tio;
	CHECK_ERR(tcgetattr(p.s, &tio), EIO);
	struct pollfd pf = { .fd = p.s, .events = POLLIN | POLLOUT };
	CHECK_EQ(poll(&pf, 1, 0), 1);
	CHECK(pf.revents & POLLHUP);
	CHECK(open(p.name, O_RDWR | O_NOCTTY) < 0);
}

TEST(slave_closes)
{
	struct pair p = open_pair(0);
	char buf[8];

	CHECK_EQ(write(p.s, "bye", 3), 3);
	close(p.s);
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 3);
	CHECK_ERR(read(p.m, buf, sizeof(buf)), EIO);
	struct pollfd pf = { .fd = p.m, .events = POLLIN };
	CHECK_EQ(poll(&pf, 1, 0), 1);
	CHECK(pf.revents & POLLHUP);
	int s = open(p.name, O_RDWR | O_NOCTTY);
	CHECK_OK(s);
	CHECK_EQ(write(s, "again", 5), 5);
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 5);
}

TEST(hangup_kills_the_session)
{
	struct pair p = open_pair(0);
	int ready[2];
	char c;

	CHECK_OK(pipe(ready));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		close(p.m);
		setsid();
		if (ioctl(p.s, TIOCSCTTY, 0) < 0)
			_exit(1);
		if (write(ready[1], "r", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	CHECK_EQ(read(ready[0], &c, 1), 1);
	close(p.m);
	CHECK_KILLED(pid, SIGHUP);
}

TEST(peer_without_a_name)
{
	int m = posix_openpt(O_RDWR | O_NOCTTY);
	char buf[8];

	CHECK_OK(m);
	CHECK_OK(unlockpt(m));
	int s = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK_OK(s);
	CHECK_EQ(fcntl(s, F_GETFD), FD_CLOEXEC);
	CHECK(isatty(s));
	CHECK_EQ(write(s, "x", 1), 1);
	CHECK_EQ(read(m, buf, sizeof(buf)), 1);
	char link[64] = { 0 }, self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", s);
	CHECK(readlink(self, link, sizeof(link) - 1) > 0);
	char name[64];
	CHECK_EQ(ptsname_r(m, name, sizeof(name)), 0);
	CHECK_STR(link, name);
}

TEST(packet_mode)
{
	struct pair p = open_pair(0);
	int on = 1;
	char buf[16];

	CHECK_OK(ioctl(p.m, TIOCPKT, &on));
	CHECK_EQ(write(p.s, "ab", 2), 2);
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 3);
	CHECK_MEM(buf, "\0ab", 3);
	CHECK_OK(tcflow(p.s, TCOOFF));
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 1);
	CHECK_EQ(buf[0], TIOCPKT_STOP);
	CHECK_OK(tcflow(p.s, TCOON));
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 1);
	CHECK_EQ(buf[0], TIOCPKT_START);
	CHECK_OK(tcflush(p.s, TCIFLUSH));
	CHECK_EQ(read(p.m, buf, sizeof(buf)), 1);
	CHECK_EQ(buf[0], TIOCPKT_FLUSHREAD);
}

TEST(window_size_is_shared)
{
	struct pair p = open_pair(0);
	struct winsize w = { 12, 34, 0, 0 }, got;

	CHECK_OK(ioctl(p.s, TIOCGWINSZ, &got));
	CHECK_EQ(got.ws_row, 0);
	CHECK_OK(ioctl(p.m, TIOCSWINSZ, &w));
	CHECK_OK(ioctl(p.s, TIOCGWINSZ, &got));
	CHECK_EQ(got.ws_row, 12);
	CHECK_EQ(got.ws_col, 34);
}

TEST(much_data)
{
	struct pair p = open_pair(0);
	struct termios tio;
	char chunk[1000];
	size_t total = 0;

	CHECK_OK(tcgetattr(p.s, &tio));
	cfmakeraw(&tio);
	CHECK_OK(tcsetattr(p.s, TCSANOW, &tio));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		close(p.m);
		memset(chunk, 'y', sizeof(chunk));
		for (int i = 0; i < 300; i++)
			if (write(p.s, chunk, sizeof(chunk)) != sizeof(chunk))
				_exit(1);
		_exit(0);
	}
	close(p.s);
	for (;;) {
		ssize_t n = read(p.m, chunk, sizeof(chunk));
		if (n < 0 && errno == EIO)
			break;
		CHECK_OK(n);
		total += (size_t)n;
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(total, 300000);
}

T_MAIN

/* The line discipline and job control of a terminal: termios(3), ioctl_tty(2), credentials(7). */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "tests/guest/t.h"

static int m, s;
static char buf[8192];

static void open_tty(void)
{
	m = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK_OK(m);
	CHECK_OK(unlockpt(m));
	s = open(ptsname(m), O_RDWR | O_NOCTTY | O_NONBLOCK);
	CHECK_OK(s);
}

static void type(const char *text)
{
	CHECK_EQ(write(m, text, strlen(text)), strlen(text));
}

static const char *get(int fd)
{
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	if (n < 0) {
		strcpy(buf, strerrorname_np(errno));
		return buf;
	}
	buf[n] = 0;
	return buf;
}

/* The master may see the echo a moment later. */
static const char *get_screen(void)
{
	usleep(20000);
	return get(m);
}

static void change(tcflag_t i_off, tcflag_t i_on, tcflag_t l_off, tcflag_t l_on)
{
	struct termios tio;

	CHECK_OK(tcgetattr(s, &tio));
	tio.c_iflag = (tio.c_iflag & ~i_off) | i_on;
	tio.c_lflag = (tio.c_lflag & ~l_off) | l_on;
	CHECK_OK(tcsetattr(s, TCSANOW, &tio));
}

TEST(defaults)
{
	struct termios tio;

	open_tty();
	CHECK_OK(tcgetattr(s, &tio));
	CHECK_EQ(tio.c_iflag, ICRNL | IXON);
	CHECK_EQ(tio.c_oflag, OPOST | ONLCR);
	CHECK_EQ(tio.c_lflag, ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN);
	CHECK_EQ(tio.c_cflag & CSIZE, CS8);
	CHECK_EQ(cfgetospeed(&tio), B38400);
	CHECK_EQ(tio.c_cc[VINTR], 3);
	CHECK_EQ(tio.c_cc[VERASE], 0x7f);
	CHECK_EQ(tio.c_cc[VEOF], 4);
	CHECK_EQ(tio.c_cc[VMIN], 1);
	CHECK_EQ(tio.c_cc[VTIME], 0);
}

TEST(canonical_lines)
{
	open_tty();
	type("ab");
	CHECK_STR(get(s), "EAGAIN");
	type("c\rd\n");
	usleep(20000);
	CHECK_STR(get(s), "abc\n");
	CHECK_STR(get(s), "d\n");
	CHECK_STR(get_screen(), "abc\r\nd\r\n");
}

TEST(end_of_file)
{
	open_tty();
	type("\4");
	usleep(20000);
	CHECK_STR(get(s), "");
	CHECK_STR(get(s), "EAGAIN");
	type("ab\4cd\n");
	usleep(20000);
	CHECK_STR(get(s), "ab");
	CHECK_STR(get(s), "cd\n");
}

TEST(editing)
{
	open_tty();
	type("abc\177\177");
	CHECK_STR(get_screen(), "abc\b \b\b \b");
	type("x y.z  \27");
	CHECK_STR(get_screen(), "x y.z  \b \b\b \b\b \b");
	type("\25");
	CHECK_STR(get_screen(), "\b \b\b \b\b \b\b \b\b \b");
	type("\1\177ok\n");
	CHECK_STR(get_screen(), "^A\b \b\b \bok\r\n");
	CHECK_STR(get(s), "ok\n");
	type("a\tb\177\177\n");
	CHECK_STR(get_screen(), "a\tb\b \b\b\b\b\b\b\b\b\r\n");
	CHECK_STR(get(s), "a\n");
	type("a\26\3b\n");
	CHECK_STR(get_screen(), "a^\b^Cb\r\n");
	CHECK_STR(get(s), "a\3b\n");
	type("ab\22");
	CHECK_STR(get_screen(), "ab^R\r\nab");
}

TEST(echo_variants)
{
	open_tty();
	change(0, 0, ECHO, ECHONL);
	type("hidden\n");
	CHECK_STR(get_screen(), "\r\n");
	CHECK_STR(get(s), "hidden\n");
	change(0, 0, ECHONL | ECHOCTL, ECHO);
	type("\1\n");
	CHECK_STR(get_screen(), "\1\r\n");
}

TEST(raw_mode)
{
	struct termios tio;

	open_tty();
	CHECK_OK(tcgetattr(s, &tio));
	cfmakeraw(&tio);
	CHECK_OK(tcsetattr(s, TCSANOW, &tio));
	type("\3\r\4x");
	usleep(20000);
	CHECK_STR(get(s), "\3\r\4x");
	CHECK_STR(get_screen(), "EAGAIN");
	CHECK_EQ(write(s, "a\n", 2), 2);
	CHECK_STR(get_screen(), "a\n");
}

TEST(vmin_and_vtime)
{
	struct termios tio;

	open_tty();
	CHECK_OK(fcntl(s, F_SETFL, O_RDWR));
	CHECK_OK(tcgetattr(s, &tio));
	tio.c_lflag &= ~(ICANON | ECHO);
	tio.c_cc[VMIN] = 0;
	tio.c_cc[VTIME] = 1;
	CHECK_OK(tcsetattr(s, TCSANOW, &tio));
	CHECK_STR(get(s), "");
	tio.c_cc[VTIME] = 0;
	CHECK_OK(tcsetattr(s, TCSANOW, &tio));
	CHECK_STR(get(s), "");
	tio.c_cc[VMIN] = 3;
	CHECK_OK(tcsetattr(s, TCSANOW, &tio));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			usleep(10000);
			if (write(m, "x", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	CHECK_STR(get(s), "xxx");
	CHECK_CHILD(pid, 0);
}

TEST(input_count_and_flush)
{
	int n;

	open_tty();
	type("abc\nde");
	usleep(20000);
	CHECK_OK(ioctl(s, FIONREAD, &n));
	CHECK_EQ(n, 4);
	CHECK_OK(tcflush(s, TCIFLUSH));
	CHECK_STR(get(s), "EAGAIN");
	CHECK_ERR(ioctl(s, TCFLSH, 99), EINVAL);
}

TEST(flow_control)
{
	open_tty();
	type("\23");
	usleep(20000);
	CHECK_ERR(write(s, "x", 1), EAGAIN);
	type("\21");
	usleep(20000);
	CHECK_EQ(write(s, "x", 1), 1);
	CHECK_STR(get_screen(), "x");
}

TEST(typing_into_the_terminal_is_refused)
{
	char c = 'x';

	open_tty();
	SKIP_IF(ioctl(s, TIOCSTI, &c) == 0, "this kernel has dev.tty.legacy_tiocsti");
	CHECK(errno == EIO || errno == EPERM);
}

TEST(unknown_ioctl)
{
	open_tty();
	CHECK_ERR(ioctl(s, 0x54f7, buf), ENOTTY);
	CHECK_ERR(ioctl(s, TCGETS, (void *)1), EFAULT);
}

/* ---- job control: in a child that leads a session of its own with the terminal ---- */

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
	seen = sig;
}

#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond))                                                                       \
			_exit(__LINE__ % 200 + 10);                                                \
	} while (0)

/* Runs fn as the leader; exit status 0 is success, else 10 + line % 200. */
static void as_leader(void (*fn)(void))
{
	open_tty();
	fcntl(s, F_SETFL, O_RDWR);
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		alarm(10);
		REQUIRE(setsid() == getpid());
		REQUIRE(ioctl(s, TIOCSCTTY, 0) == 0);
		fn();
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
}

static void leader_identity(void)
{
	int fd = open("/dev/tty", O_RDWR);

	REQUIRE(fd >= 0);
	REQUIRE(tcgetpgrp(s) == getpgrp());
	REQUIRE(tcgetsid(s) == getsid(0));
	REQUIRE(tcgetpgrp(fd) == getpgrp());
	REQUIRE(ioctl(s, TIOCSCTTY, 0) == 0);
	REQUIRE(tcsetpgrp(s, 1) == -1 && (errno == EPERM || errno == ESRCH));
	REQUIRE(tcsetpgrp(s, -5) == -1 && errno == EINVAL);
	/* The stat file names the terminal. */
	FILE *f = fopen("/proc/self/stat", "r");
	int tty = 0, tpgid = 0;
	REQUIRE(f && fscanf(f, "%*d %*s %*c %*d %*d %*d %d %d", &tty, &tpgid) == 2);
	struct stat st;
	REQUIRE(fstat(s, &st) == 0);
	REQUIRE(tty == (int)st.st_rdev);
	REQUIRE(tpgid == getpgrp());
}

TEST(controlling_terminal)
{
	as_leader(leader_identity);
}

static void interrupted(void)
{
	signal(SIGINT, on_signal);
	REQUIRE(write(m, "abc\3", 4) == 4);
	for (int i = 0; i < 100 && !seen; i++)
		usleep(10000);
	REQUIRE(seen == SIGINT);
	/* What was typed is gone. */
	REQUIRE(write(m, "x\n", 2) == 2);
	REQUIRE(read(s, buf, sizeof(buf)) == 2);
}

TEST(interrupt_character)
{
	as_leader(interrupted);
}

static void resized(void)
{
	struct winsize w = { 5, 6, 0, 0 };

	signal(SIGWINCH, on_signal);
	REQUIRE(ioctl(m, TIOCSWINSZ, &w) == 0);
	for (int i = 0; i < 100 && !seen; i++)
		usleep(10000);
	REQUIRE(seen == SIGWINCH);
}

TEST(window_size_signal)
{
	as_leader(resized);
}

/* A child in a group of its own; what becomes of it goes to *status. */
static pid_t background_child(void (*fn)(void))
{
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (pid == 0) {
		setpgid(0, 0);
		fn();
		_exit(0);
	}
	setpgid(pid, pid);
	return pid;
}

static void child_reads(void)
{
	char c;
	REQUIRE(read(s, &c, 1) == 1);
}

static void background_read(void)
{
	int status;
	pid_t pid = background_child(child_reads);

	REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
	REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTIN);
	REQUIRE(tcsetpgrp(s, pid) == 0);
	REQUIRE(write(m, "y\n", 2) == 2);
	REQUIRE(kill(-pid, SIGCONT) == 0);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(background_read_stops)
{
	as_leader(background_read);
}

static void child_reads_ignoring(void)
{
	char c;
	signal(SIGTTIN, SIG_IGN);
	REQUIRE(read(s, &c, 1) == -1 && errno == EIO);
}

static void background_read_ignored(void)
{
	int status;
	pid_t pid = background_child(child_reads_ignoring);

	REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(background_read_with_signal_ignored)
{
	as_leader(background_read_ignored);
}

static void child_writes(void)
{
	REQUIRE(write(s, "w", 1) == 1);
}

static void background_write(void)
{
	struct termios tio;
	int status;
	pid_t pid = background_child(child_writes);

	REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	REQUIRE(tcgetattr(s, &tio) == 0);
	tio.c_lflag |= TOSTOP;
	REQUIRE(tcsetattr(s, TCSANOW, &tio) == 0);
	pid = background_child(child_writes);
	REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
	REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTTOU);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, &status, 0) == pid);
}

TEST(background_write_with_tostop)
{
	as_leader(background_write);
}

static void child_takes_over(void)
{
	signal(SIGTTOU, SIG_IGN);
	REQUIRE(tcsetpgrp(s, getpgrp()) == 0);
	REQUIRE(tcgetpgrp(s) == getpgrp());
}

static void background_takes_the_terminal(void)
{
	int status;
	pid_t pid = background_child(child_takes_over);

	REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(foreground_by_a_background_process)
{
	as_leader(background_takes_the_terminal);
}

static void gives_up(void)
{
	REQUIRE(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	REQUIRE(ioctl(s, TIOCNOTTY) == 0);
	REQUIRE(open("/dev/tty", O_RDWR) == -1 && errno == ENXIO);
	REQUIRE(tcgetpgrp(s) == -1 && errno == ENOTTY);
}

TEST(giving_up_the_terminal)
{
	as_leader(gives_up);
}

TEST(leader_ends)
{
	int up[2], status;
	char c;

	open_tty();
	CHECK_OK(pipe(up));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		REQUIRE(setsid() == getpid());
		REQUIRE(ioctl(s, TIOCSCTTY, 0) == 0);
		pid_t child = fork();
		if (child == 0) {
			signal(SIGHUP, on_signal);
			REQUIRE(write(up[1], "r", 1) == 1);
			for (int i = 0; i < 500 && !seen; i++)
				usleep(10000);
			REQUIRE(write(up[1], seen == SIGHUP ? "h" : "n", 1) == 1);
			_exit(0);
		}
		usleep(50000);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(read(up[0], &c, 1), 1);
	CHECK_EQ(read(up[0], &c, 1), 1);
	CHECK_EQ(c, 'h');
}

TEST(no_controlling_terminal_after_setsid)
{
	pid_t pid = fork();

	CHECK_OK(pid);
	if (pid == 0) {
		setsid();
		REQUIRE(open("/dev/tty", O_RDWR) == -1 && errno == ENXIO);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
}

TEST(open_makes_it_controlling)
{
	open_tty();
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		setsid();
		int fd = open(ptsname(m), O_RDWR);
		REQUIRE(fd >= 0);
		REQUIRE(tcgetsid(fd) == getpid());
		REQUIRE(open("/dev/tty", O_RDWR) >= 0);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
}

T_MAIN

/* The line discipline and job control, through a pty. The expected bytes are those of Linux' N_TTY.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fs/ldisc.h"
#include "tests/unit/tty_rig.h"

static struct file *master, *slave;

static int setup(void **state)
{
	tty_world_setup(state);
	pty_open_pair(&master, &slave);
	return 0;
}

static int teardown(void **state)
{
	file_put(slave);
	file_put(master);
	return tty_world_teardown(state);
}

/* Changes the flags of one termios field by masks. */
static void set_flags(unsigned i_off, unsigned i_on, unsigned l_off, unsigned l_on)
{
	struct termios2 tio;

	assert_int_equal(term_ctl(slave, TCGETS2, &tio), 0);
	tio.c_iflag = (tio.c_iflag & ~i_off) | i_on;
	tio.c_lflag = (tio.c_lflag & ~l_off) | l_on;
	assert_int_equal(term_ctl(slave, TCSETS2, &tio), 0);
}

static void canonical_lines(void **state)
{
	(void)state;
	assert_string_equal(text_of(slave), "-11");
	assert_int_equal(type_text(master, "ab"), 2);
	assert_string_equal(text_of(slave), "-11");
	assert_string_equal(text_of(master), "ab");
	assert_int_equal(type_text(master, "c\rd\n"), 4);
	assert_string_equal(text_of(master), "c\r\nd\r\n");
	assert_string_equal(text_of(slave), "abc\n");
	assert_string_equal(text_of(slave), "d\n");
	assert_string_equal(text_of(slave), "-11");
}

static void short_reads_of_a_line(void **state)
{
	char buf[4] = { 0 };

	(void)state;
	type_text(master, "abcdef\n");
	assert_int_equal(rig_pread(slave, buf, 3, -1), 3);
	assert_memory_equal(buf, "abc", 3);
	assert_string_equal(text_of(slave), "def\n");
}

static void end_of_file(void **state)
{
	char buf[2];

	(void)state;
	type_text(master, "\4");
	assert_string_equal(text_of(slave), "");
	assert_string_equal(text_of(slave), "-11");
	type_text(master, "ab\4");
	assert_string_equal(text_of(slave), "ab");
	assert_string_equal(text_of(slave), "-11");
	/* A read that ends right before the mark takes it along. */
	type_text(master, "xy\4");
	assert_int_equal(rig_pread(slave, buf, 2, -1), 2);
	assert_string_equal(text_of(slave), "-11");
}

static void erasing(void **state)
{
	(void)state;
	type_text(master, "abc\177\177");
	assert_string_equal(text_of(master), "abc\b \b\b \b");
	type_text(master, "x y.z  \27");
	assert_string_equal(text_of(master), "x y.z  \b \b\b \b\b \b");
	type_text(master, "\25");
	assert_string_equal(text_of(master), "\b \b\b \b\b \b\b \b\b \b");
	type_text(master, "\1\177ok\n");
	assert_string_equal(text_of(master), "^A\b \b\b \bok\r\n");
	assert_string_equal(text_of(slave), "ok\n");
	type_text(master, "a\tb\177\177");
	assert_string_equal(text_of(master), "a\tb\b \b\b\b\b\b\b\b\b");
	type_text(master, "\n");
	assert_string_equal(text_of(slave), "a\n");
}

static void erasing_utf8(void **state)
{
	(void)state;
	set_flags(0, IUTF8, 0, 0);
	type_text(master, "\303\244\177b\n");
	assert_string_equal(text_of(slave), "b\n");
	assert_string_equal(text_of(master), "\303\244\b \bb\r\n");
}

static void literal_next(void **state)
{
	(void)state;
	type_text(master, "a\26\3b\n");
	assert_string_equal(text_of(master), "a^\b^Cb\r\n");
	assert_string_equal(text_of(slave), "a\3b\n");
	assert_int_equal(tw.sig_count, 0);
}

static void reprinting(void **state)
{
	(void)state;
	type_text(master, "ab\22");
	assert_string_equal(text_of(master), "ab^R\r\nab");
}

static void raw_mode(void **state)
{
	(void)state;
	set_flags(ICRNL | IXON, 0, ICANON | ECHO | ISIG | IEXTEN, 0);
	type_text(master, "\3\r\4x");
	assert_string_equal(text_of(slave), "\3\r\4x");
	assert_string_equal(text_of(master), "-11");
}

static void switching_modes(void **state)
{
	(void)state;
	type_text(master, "abc");
	set_flags(0, 0, ICANON, 0);
	assert_string_equal(text_of(slave), "abc");
	type_text(master, "de");
	set_flags(0, 0, 0, ICANON);
	assert_string_equal(text_of(slave), "de");
}

static void vmin(void **state)
{
	struct termios2 tio;

	(void)state;
	assert_int_equal(term_ctl(slave, TCGETS2, &tio), 0);
	tio.c_lflag &= ~(unsigned)(ICANON | ECHO);
	tio.c_cc[VMIN] = 3;
	assert_int_equal(term_ctl(slave, TCSETSF2, &tio), 0);
	type_text(master, "ab");
	assert_false(file_poll(slave, NULL) & POLLIN);
	type_text(master, "c");
	assert_true(file_poll(slave, NULL) & POLLIN);
	assert_string_equal(text_of(slave), "abc");
	tio.c_cc[VMIN] = 0;
	assert_int_equal(term_ctl(slave, TCSETS2, &tio), 0);
	assert_string_equal(text_of(slave), "");
}

static void output_processing(void **state)
{
	struct termios2 tio;

	(void)state;
	assert_int_equal(type_text(slave, "a\nb\tc\n"), 6);
	assert_string_equal(text_of(master), "a\r\nb\tc\r\n");
	assert_int_equal(term_ctl(slave, TCGETS2, &tio), 0);
	tio.c_oflag |= XTABS;
	term_ctl(slave, TCSETS2, &tio);
	type_text(slave, "ab\tc\n");
	assert_string_equal(text_of(master), "ab      c\r\n");
	tio.c_oflag &= ~(unsigned)OPOST;
	term_ctl(slave, TCSETS2, &tio);
	type_text(slave, "a\n\t");
	assert_string_equal(text_of(master), "a\n\t");
}

static void flow_control(void **state)
{
	(void)state;
	type_text(master, "\23");
	assert_int_equal(type_text(slave, "x"), -EAGAIN);
	assert_false(file_poll(slave, NULL) & POLLOUT);
	type_text(master, "\21");
	assert_int_equal(type_text(slave, "x"), 1);
	assert_string_equal(text_of(master), "x");
}

static void signals(void **state)
{
	(void)state;
	tw.leader = true;
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), 0);
	type_text(master, "abc\3d\34\32\n");
	assert_int_equal(tw.sig_count, 3);
	assert_int_equal(tw.sig[0], SIGINT);
	assert_int_equal(tw.sig_pgrp[0], 100);
	assert_int_equal(tw.sig[1], SIGQUIT);
	assert_int_equal(tw.sig[2], SIGTSTP);
	/* What was typed before is thrown away. */
	assert_string_equal(text_of(slave), "\n");
}

static void full_input(void **state)
{
	char big[6000];

	(void)state;
	/* One line that is too long: the surplus is lost, the newline is not. */
	memset(big, 'x', sizeof(big));
	assert_int_equal(rig_pwrite(master, big, sizeof(big), -1), (int)sizeof(big));
	type_text(master, "\n");
	assert_int_equal(rig_pread(slave, big, sizeof(big), -1), 4096);
	assert_int_equal(big[4095], '\n');
	/* Whole lines that nobody reads stop the writer. */
	memset(big, '\n', sizeof(big));
	ssize_t n = rig_pwrite(master, big, sizeof(big), -1);
	assert_in_range(n, 4000, 4096);
	assert_false(file_poll(master, NULL) & POLLOUT);
}

static void full_output(void **state)
{
	char big[40000];
	ssize_t n, total = 0;

	(void)state;
	memset(big, 'x', sizeof(big));
	n = rig_pwrite(slave, big, sizeof(big), -1);
	assert_in_range(n, 4096, LDISC_OUT_SIZE);
	assert_int_equal(rig_pwrite(slave, big, 1, -1), -EAGAIN);
	assert_false(file_poll(slave, NULL) & POLLOUT);
	while (total < n)
		total += rig_pread(master, big, sizeof(big), -1);
	assert_int_equal(total, n);
	assert_true(file_poll(slave, NULL) & POLLOUT);
}

static void foreground_and_background(void **state)
{
	int pgrp = 0;

	(void)state;
	assert_int_equal(term_ctl(slave, TIOCGPGRP, &pgrp), -ENOTTY);
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), -EPERM);
	tw.leader = true;
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), 0);
	assert_int_equal(term_ctl(slave, TIOCGPGRP, &pgrp), 0);
	assert_int_equal(pgrp, 100);
	assert_int_equal(term_ctl(slave, TIOCGSID, &pgrp), 0);
	assert_int_equal(pgrp, 100);
	pgrp = 105;
	assert_int_equal(term_ctl(slave, TIOCSPGRP, &pgrp), 0);
	/* Now the caller is in the background. */
	type_text(master, "x\n");
	assert_string_equal(text_of(slave), "-512");
	assert_int_equal(tw.sig[0], SIGTTIN);
	assert_int_equal(tw.sig_pgrp[0], 100);
	assert_int_equal(type_text(slave, "out"), 3);
	struct termios2 tio;
	assert_int_equal(term_ctl(slave, TCGETS2, &tio), 0);
	tio.c_lflag |= TOSTOP;
	assert_int_equal(term_ctl(slave, TCSETS2, &tio), -ERESTARTSYS);
	assert_int_equal(tw.sig[1], SIGTTOU);
	tw.ignores = true;
	assert_int_equal(term_ctl(slave, TCSETS2, &tio), 0);
	assert_string_equal(text_of(slave), "-5");
	tw.ignores = false;
	assert_int_equal(type_text(slave, "out"), -ERESTARTSYS);
	tw.orphaned = true;
	assert_int_equal(type_text(slave, "out"), -EIO);
	assert_string_equal(text_of(slave), "-5");
}

static void set_pgrp_errors(void **state)
{
	int pgrp = 205;

	(void)state;
	tw.leader = true;
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), 0);
	assert_int_equal(term_ctl(slave, TIOCSPGRP, &pgrp), -EPERM);
	pgrp = 999;
	assert_int_equal(term_ctl(slave, TIOCSPGRP, &pgrp), -ESRCH);
	pgrp = -1;
	assert_int_equal(term_ctl(slave, TIOCSPGRP, &pgrp), -EINVAL);
	assert_int_equal(term_ctl(slave, TIOCNOTTY, NULL), 0);
	assert_null(tw.ctty);
	pgrp = 100;
	assert_int_equal(term_ctl(slave, TIOCSPGRP, &pgrp), -ENOTTY);
}

static void leader_exits(void **state)
{
	(void)state;
	tw.leader = true;
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), 0);
	int nr, pgrp;
	tty_proc_numbers(100, &nr, &pgrp);
	assert_int_equal(nr, 136 << 8);
	assert_int_equal(pgrp, 100);
	tty_leader_exit(100);
	assert_null(tw.ctty);
	assert_int_equal(tw.sig_count, 2);
	assert_int_equal(tw.sig[0], SIGHUP);
	assert_string_equal(text_of(slave), "");
	assert_int_equal(type_text(slave, "x"), -EIO);
	tty_proc_numbers(100, &nr, &pgrp);
	assert_int_equal(nr, 0);
	assert_int_equal(pgrp, -1);
}

static void sizes(void **state)
{
	struct tty_size size = { 25, 80, 0, 0 }, got;

	(void)state;
	tw.leader = true;
	assert_int_equal(term_ctl(slave, TIOCSCTTY, NULL), 0);
	assert_int_equal(term_ctl(master, TIOCSWINSZ, &size), 0);
	assert_int_equal(tw.sig_count, 1);
	assert_int_equal(tw.sig[0], SIGWINCH);
	assert_int_equal(term_ctl(slave, TIOCGWINSZ, &got), 0);
	assert_int_equal(got.cols, 80);
	assert_int_equal(term_ctl(slave, TIOCSWINSZ, &size), 0);
	assert_int_equal(tw.sig_count, 1);
}

static void other_ioctls(void **state)
{
	int n = -1;
	char c = 'x';

	(void)state;
	type_text(master, "abc\nde");
	assert_int_equal(term_ctl(slave, TIOCINQ, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(term_ctl(slave, TIOCSTI, &c), -EIO);
	assert_int_equal(term_ctl(slave, 0x5499, &n), -ENOTTY);
	assert_int_equal(slave->ops->ioctl(slave, TCFLSH, TCIFLUSH, &umem_host), 0);
	assert_int_equal(slave->ops->ioctl(slave, TCFLSH, 7, &umem_host), -EINVAL);
	assert_string_equal(text_of(slave), "-11");
	assert_int_equal(term_ctl(slave, TIOCGETD, &n), 0);
	assert_int_equal(n, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(canonical_lines),
		T(short_reads_of_a_line),
		T(end_of_file),
		T(erasing),
		T(erasing_utf8),
		T(literal_next),
		T(reprinting),
		T(raw_mode),
		T(switching_modes),
		T(vmin),
		T(output_processing),
		T(flow_control),
		T(signals),
		T(full_input),
		T(full_output),
		T(foreground_and_background),
		T(set_pgrp_errors),
		T(leader_exits),
		T(sizes),
		T(other_ioctls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

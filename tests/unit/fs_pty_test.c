/* Pseudo-terminals: numbers, locks, the devpts directory, hang-up, packet mode, allocation
 * failures. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "tests/unit/tty_rig.h"

static void numbers_and_names(void **state)
{
	struct file *m[2], *s[2];
	struct fs_stat st;

	(void)state;
	assert_string_equal(rig_names(&tw.rig, "."), "ptmx");
	pty_open_pair(&m[0], &s[0]);
	pty_open_pair(&m[1], &s[1]);
	assert_string_equal(rig_names(&tw.rig, "."), "0 1 ptmx");
	assert_int_equal(rig_stat(&tw.rig, "1", &st), 0);
	assert_int_equal(st.rdev, makedev(136, 1));
	assert_int_equal(st.mode, S_IFCHR | 0620);
	assert_int_equal(st.gid, 5);
	assert_int_equal(rig_stat(&tw.rig, "ptmx", &st), 0);
	assert_int_equal(st.rdev, makedev(5, 2));
	assert_int_equal(rig_chmod(&tw.rig, "1", 0600), 0);
	assert_int_equal(rig_stat(&tw.rig, "1", &st), 0);
	assert_int_equal(st.mode, S_IFCHR | 0600);
	file_put(s[0]);
	file_put(m[0]);
	assert_string_equal(rig_names(&tw.rig, "."), "1 ptmx");
	assert_int_equal(rig_stat(&tw.rig, "0", &st), -ENOENT);
	assert_int_equal(rig_stat(&tw.rig, "01", &st), -ENOENT);
	assert_int_equal(rig_put(&tw.rig, "new", "x"), -EACCES);
	file_put(s[1]);
	file_put(m[1]);
	assert_int_equal(pts_count(), 0);
}

static void locked_at_first(void **state)
{
	struct file *m, *s;
	int value;

	(void)state;
	assert_int_equal(rig_open(&tw.rig, "ptmx", O_RDWR | O_NOCTTY, 0, &m), 0);
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR | O_NOCTTY, 0, &s), -EIO);
	assert_int_equal(term_ctl(m, TIOCGPTLCK, &value), 0);
	assert_int_equal(value, 1);
	value = 0;
	assert_int_equal(term_ctl(m, TIOCSPTLCK, &value), 0);
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR | O_NOCTTY, 0, &s), 0);
	file_put(s);
	file_put(m);
}

static void master_closes(void **state)
{
	struct file *m, *s;

	(void)state;
	pty_open_pair(&m, &s);
	tw.leader = true;
	assert_int_equal(term_ctl(s, TIOCSCTTY, NULL), 0);
	file_put(m);
	assert_int_equal(tw.hangups, 1);
	assert_null(tw.ctty);
	assert_string_equal(text_of(s), "");
	assert_int_equal(type_text(s, "x"), -EIO);
	int pgrp = 100;
	assert_int_equal(term_ctl(s, TIOCSPGRP, &pgrp), -ENOTTY);
	assert_int_equal(term_ctl(s, TIOCGPGRP, &pgrp), -EIO);
	assert_int_equal(file_poll(s, NULL) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	file_put(s);
}

static void slave_closes(void **state)
{
	struct file *m, *s;

	(void)state;
	pty_open_pair(&m, &s);
	assert_int_equal(type_text(s, "last"), 4);
	assert_string_equal(text_of(m), "last");
	assert_string_equal(text_of(m), "-11");
	type_text(s, "words");
	file_put(s);
	assert_true(file_poll(m, NULL) & POLLHUP);
	assert_string_equal(text_of(m), "words");
	assert_string_equal(text_of(m), "-5");
	/* Opened again, it lives again. */
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR | O_NOCTTY, 0, &s), 0);
	assert_string_equal(text_of(m), "-11");
	file_put(s);
	file_put(m);
}

static void packet_mode(void **state)
{
	struct file *m, *s;
	int on = 1;

	(void)state;
	pty_open_pair(&m, &s);
	assert_int_equal(term_ctl(m, TIOCPKT, &on), 0);
	type_text(s, "ab");
	char buf[8] = { 'x' };
	assert_int_equal(rig_pread(m, buf, sizeof(buf), -1), 3);
	assert_memory_equal(buf, "\0ab", 3);
	assert_int_equal(s->ops->ioctl(s, TCXONC, TCOOFF, &umem_host), 0);
	assert_true(file_poll(m, NULL) & POLLPRI);
	assert_int_equal(rig_pread(m, buf, sizeof(buf), -1), 1);
	assert_int_equal(buf[0], TIOCPKT_STOP);
	assert_int_equal(rig_pread(m, buf, sizeof(buf), -1), -EAGAIN);
	file_put(s);
	file_put(m);
}

static void exclusive_use(void **state)
{
	struct file *m, *s, *again;

	(void)state;
	pty_open_pair(&m, &s);
	assert_int_equal(term_ctl(s, TIOCEXCL, NULL), 0);
	/* The caller is root and may still. */
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR | O_NOCTTY, 0, &again), 0);
	file_put(again);
	assert_int_equal(term_ctl(s, TIOCNXCL, NULL), 0);
	file_put(s);
	file_put(m);
}

static void controlling_by_open(void **state)
{
	struct file *m, *s, *t;

	(void)state;
	pty_open_pair(&m, &s);
	tw.leader = true;
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR, 0, &t), 0);
	assert_ptr_equal(tw.ctty, tty_of_file(t));
	file_put(t);
	file_put(s);
	file_put(m);
}

static void *write_later(void *arg)
{
	usleep(20000);
	assert_int_equal(type_text(arg, "line\n"), 5);
	return NULL;
}

static void blocking_read(void **state)
{
	struct file *m, *s;
	pthread_t thread;

	(void)state;
	pty_open_pair(&m, &s);
	atomic_fetch_and(&s->flags, ~(unsigned)O_NONBLOCK);
	assert_int_equal(pthread_create(&thread, NULL, write_later, m), 0);
	assert_string_equal(text_of(s), "line\n");
	pthread_join(thread, NULL);
	file_put(s);
	file_put(m);
}

static void timed_read(void **state)
{
	struct termios2 tio;
	struct file *m, *s;

	(void)state;
	pty_open_pair(&m, &s);
	atomic_fetch_and(&s->flags, ~(unsigned)O_NONBLOCK);
	assert_int_equal(term_ctl(s, TCGETS2, &tio), 0);
	tio.c_lflag &= ~(unsigned)ICANON;
	tio.c_cc[VMIN] = 0;
	tio.c_cc[VTIME] = 1;
	assert_int_equal(term_ctl(s, TCSETS2, &tio), 0);
	uint64_t start = mono_now_ns();
	assert_string_equal(text_of(s), "");
	assert_in_range(mono_now_ns() - start, 90000000u, 2000000000u);
	file_put(s);
	file_put(m);
}

static void no_memory(void **state)
{
	struct file *m;
	int err;

	(void)state;
	for (unsigned n = 1;; n++) {
		mem_fail_nth(n);
		err = rig_open(&tw.rig, "ptmx", O_RDWR | O_NOCTTY, 0, &m);
		mem_fail_nth(0);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
	}
	file_put(m);
	assert_int_equal(pts_count(), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, tty_world_setup, tty_world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(numbers_and_names), T(locked_at_first), T(master_closes),       T(slave_closes),
		T(packet_mode),       T(exclusive_use),   T(controlling_by_open), T(blocking_read),
		T(timed_read),        T(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

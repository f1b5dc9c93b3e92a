/* Inherited host descriptors as guest files: pipes, regular files, terminals. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs/hostfd.h"
#include "fs/pty.h"
#include "platform/base/alloc.h"
#include "tests/unit/fs_rig.h"
#include "tests/unit/tty_rig.h"

static int is_nonblocking(int fd)
{
	return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static void pipe_reads_and_writes(void **state)
{
	struct file *r, *w;
	struct fs_stat st;
	char buf[16];
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(hostfd_new(p[0], O_RDONLY, &r), 0);
	assert_int_equal(hostfd_new(p[1], O_WRONLY, &w), 0);
	assert_int_equal(r->inode->ops->getattr(r->inode, &st), 0);
	assert_int_equal(st.mode & S_IFMT, S_IFIFO);
	assert_int_equal(file_poll(r, NULL) & POLLIN, 0);
	assert_int_equal(rig_pwrite(w, "hello", 5, -1), 5);
	assert_true(file_poll(r, NULL) & POLLIN);
	assert_int_equal(rig_pread(r, buf, sizeof(buf), -1), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(rig_pread(r, buf, 1, 0), -ESPIPE);
	file_put(w);
	assert_int_equal(rig_pread(r, buf, sizeof(buf), -1), 0);
	file_put(r);
}

static void *feed_slowly(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (int i = 0; i < 3; i++) {
		usleep(10000);
		assert_int_equal(write(fd, "x", 1), 1);
	}
	return NULL;
}

static void blocking_read_keeps_the_description_as_it_is(void **state)
{
	struct file *r;
	pthread_t thread;
	char c;
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(hostfd_new(p[0], O_RDONLY, &r), 0);
	assert_int_equal(pthread_create(&thread, NULL, feed_slowly, (void *)(intptr_t)p[1]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_pread(r, &c, 1, -1), 1);
	assert_int_equal(is_nonblocking(p[0]), 0);
	pthread_join(thread, NULL);
	close(p[1]);
	assert_int_equal(rig_pread(r, &c, 1, -1), 0);
	file_put(r);
}

static void *drain(void *arg)
{
	static char buf[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read((int)(intptr_t)arg, buf, sizeof(buf))) > 0) {
		total += (size_t)n;
		if (total < 20000)
			usleep(1000);
	}
	return (void *)total;
}

static void blocking_write(void **state)
{
	static char big[300000];
	struct file *w;
	pthread_t thread;
	void *total;
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(hostfd_new(p[1], O_WRONLY, &w), 0);
	assert_int_equal(pthread_create(&thread, NULL, drain, (void *)(intptr_t)p[0]), 0);
	assert_int_equal(rig_pwrite(w, big, sizeof(big), -1), sizeof(big));
	file_put(w);
	pthread_join(thread, &total);
	assert_int_equal((size_t)total, sizeof(big));
	close(p[0]);
}

static void *interrupt_later(void *arg)
{
	usleep(20000);
	sleeper_interrupt(arg);
	return NULL;
}

static void signals_and_broken_pipes(void **state)
{
	struct file *r, *w;
	pthread_t thread;
	char c;
	int p[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(hostfd_new(p[0], O_RDONLY, &r), 0);
	assert_int_equal(hostfd_new(p[1], O_WRONLY, &w), 0);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_later, sleeper_self()), 0);
	assert_int_equal(rig_pread(r, &c, 1, -1), -ERESTARTSYS);
	sleeper_clear_interrupt(sleeper_self());
	pthread_join(thread, NULL);
	file_put(r);
	assert_int_equal(rig_pwrite(w, "x", 1, -1), -EPIPE);
	file_put(w);
}

static void sockets(void **state)
{
	struct file *f;
	struct fs_stat st;
	char buf[8];
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(hostfd_new(s[0], O_RDWR, &f), 0);
	assert_int_equal(f->inode->ops->getattr(f->inode, &st), 0);
	assert_int_equal(st.mode & S_IFMT, S_IFSOCK);
	assert_int_equal(write(s[1], "ab", 2), 2);
	assert_int_equal(rig_pread(f, buf, 8, -1), 2);
	assert_int_equal(rig_pwrite(f, "cd", 2, -1), 2);
	assert_int_equal(read(s[1], buf, 8), 2);
	file_put(f);
	close(s[1]);
}

static void regular_files_share_the_offset(void **state)
{
	char name[] = "/tmp/hostfd_test_XXXXXX", buf[16] = { 0 };
	struct file *f, *again;
	int fd = mkstemp(name), mine = dup(fd);

	(void)state;
	unlink(name);
	assert_int_equal(write(mine, "one ", 4), 4);
	assert_int_equal(hostfd_new(fd, O_RDWR, &f), 0);
	assert_int_equal(rig_pwrite(f, "two ", 4, -1), 4);
	assert_int_equal(write(mine, "three", 5), 5);
	assert_int_equal(rig_pread(f, buf, 15, 0), 13);
	assert_string_equal(buf, "one two three");
	assert_int_equal(f->ops->seek(f, 4, SEEK_SET), 4);
	assert_int_equal(rig_pread(f, buf, 3, -1), 3);
	assert_memory_equal(buf, "two", 3);
	assert_int_equal(lseek(mine, 0, SEEK_CUR), 7);
	/* Opened again, the position is its own. */
	assert_true(hostfd_owns(f->inode));
	assert_int_equal(hostfd_reopen(f->inode, O_RDONLY, &again), 0);
	assert_int_equal(rig_pread(again, buf, 3, -1), 3);
	assert_memory_equal(buf, "one", 3);
	assert_int_equal(lseek(mine, 0, SEEK_CUR), 7);
	struct file_map map;
	assert_int_equal(f->ops->mmap(f, 1, false, &map), 0);
	assert_true(map.host_fd >= 0);
	file_put(again);
	file_put(f);
	close(mine);
}

static void access_modes_hold_on_reopening(void **state)
{
	struct file *r, *again;
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(hostfd_new(p[0], O_RDONLY, &r), 0);
	assert_int_equal(hostfd_reopen(r->inode, O_WRONLY, &again), -EACCES);
	assert_int_equal(hostfd_reopen(r->inode, O_RDWR, &again), -EACCES);
	assert_int_equal(hostfd_reopen(r->inode, O_RDONLY, &again), 0);
	file_put(again);
	file_put(r);
	close(p[1]);
}

/* The host's terminal is the slave of a real pty, whose master the test holds. It stays registered
 * for the life of the process, so memory is not counted here. */
static void host_terminal(void **state)
{
	struct file *f;
	struct termios2 tio;
	struct tty_size size = { 30, 100, 0, 0 }, got;
	char name[32], buf[16];

	(void)state;
	int m = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(m >= 0);
	assert_int_equal(grantpt(m), 0);
	assert_int_equal(unlockpt(m), 0);
	int s = open(ptsname(m), O_RDWR | O_NOCTTY);
	assert_true(hosttty_is_terminal(s));
	assert_int_equal(hosttty_name(s, name, sizeof(name)), 0);
	assert_string_equal(name, "/dev/pts/0");
	assert_int_equal(hosttty_name(s, name, sizeof(name)), 0);
	assert_string_equal(name, "/dev/pts/0");
	assert_int_equal(rig_open(&tw.rig, "0", O_RDWR | O_NOCTTY, 0, &f), 0);
	assert_int_equal(write(m, "typed\n", 6), 6);
	assert_string_equal(text_of(f), "typed\n");
	assert_int_equal(read(m, buf, sizeof(buf)), 7);
	assert_int_equal(type_text(f, "out\n"), 4);
	assert_int_equal(read(m, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "out\r\n", 5);
	assert_int_equal(term_ctl(f, TIOCSWINSZ, &size), 0);
	assert_int_equal(ioctl(s, TIOCGWINSZ, &got), 0);
	assert_int_equal(got.cols, 100);
	assert_int_equal(term_ctl(f, TCGETS2, &tio), 0);
	tio.c_lflag &= ~(unsigned)(ICANON | ECHO);
	assert_int_equal(term_ctl(f, TCSETS2, &tio), 0);
	assert_int_equal(write(m, "r", 1), 1);
	assert_string_equal(text_of(f), "r");
	hosttty_restore();
	assert_int_equal(ioctl(s, TCGETS2, &tio), 0);
	assert_true(tio.c_lflag & ICANON);
	assert_false(hosttty_signal(SIGINT));
	hosttty_give_to_session(100, 105);
	assert_true(hosttty_signal(SIGINT));
	assert_int_equal(tw.sig[tw.sig_count - 1], SIGINT);
	assert_int_equal(tw.sig_pgrp[tw.sig_count - 1], 105);
	file_put(f);
	tty_leader_exit(100);
	close(s);
	close(m);
}

static int terminal_teardown(void **state)
{
	(void)state;
	fs_rig_unmount(&tw.rig);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_reads_and_writes),
		cmocka_unit_test(blocking_read_keeps_the_description_as_it_is),
		cmocka_unit_test(blocking_write),
		cmocka_unit_test(signals_and_broken_pipes),
		cmocka_unit_test(sockets),
		cmocka_unit_test(regular_files_share_the_offset),
		cmocka_unit_test(access_modes_hold_on_reopening),
		cmocka_unit_test_setup_teardown(host_terminal, tty_world_setup, terminal_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

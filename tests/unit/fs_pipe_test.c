/* Pipes and FIFOs: fs/pipe.c, fs/pipe_splice.c. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/pipe.h"
#include "platform/base/alloc.h"
#include "tests/unit/io_rig.h"

#define CAPACITY 65536

static struct file *r, *w;
static char big[CAPACITY * 2], back[CAPACITY * 2];

static void open_pipe(unsigned flags)
{
	assert_int_equal(pipe_new(flags, io_cred, &r, &w), 0);
}

static void close_both(void)
{
	file_put(r);
	file_put(w);
}

static int readable(struct file *f)
{
	int n = -1;
	assert_int_equal(f->ops->ioctl(f, FIONREAD, (uintptr_t)&n, &umem_host), 0);
	return n;
}

static void bytes_come_in_order(void **state)
{
	(void)state;
	open_pipe(O_NONBLOCK);
	assert_int_equal(io_get(r, back, 10), -EAGAIN);
	assert_int_equal(io_put(w, "abc", 3), 3);
	assert_int_equal(io_put(w, "defg", 4), 4);
	assert_int_equal(readable(r), 7);
	assert_int_equal(readable(w), 7);
	assert_int_equal(io_get(r, back, 5), 5);
	assert_memory_equal(back, "abcde", 5);
	assert_int_equal(io_get(r, back, 0), 0);
	assert_int_equal(io_put(w, "", 0), 0);
	assert_int_equal(io_get(r, back, 100), 2);
	assert_memory_equal(back, "fg", 2);
	assert_int_equal(io_put(r, "x", 1), -EBADF);
	assert_int_equal(io_get(w, back, 1), -EBADF);
	close_both();
}

static void full_and_partial(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + i / 4096);
	open_pipe(O_NONBLOCK);
	assert_int_equal(file_poll(w, NULL), POLLOUT | POLLWRNORM);
	assert_int_equal(file_poll(r, NULL), 0);
	assert_int_equal(io_put(w, big, sizeof(big)), CAPACITY);
	assert_int_equal(io_put(w, big, 1), -EAGAIN);
	assert_int_equal(file_poll(w, NULL), 0);
	assert_int_equal(file_poll(r, NULL), POLLIN | POLLRDNORM);
	/* A part of a page makes no room; a whole one does. */
	assert_int_equal(io_get(r, back, 4095), 4095);
	assert_int_equal(io_put(w, big, 4096), -EAGAIN);
	assert_int_equal(io_get(r, back + 4095, 1), 1);
	assert_int_equal(io_put(w, big, 4096), 4096);
	assert_int_equal(io_get(r, back + 4096, sizeof(back)), CAPACITY);
	assert_memory_equal(back, big, CAPACITY);
	assert_memory_equal(back + CAPACITY, big, 4096);
	close_both();
}

static void a_slot_is_a_slot(void **state)
{
	(void)state;
	open_pipe(O_NONBLOCK);
	/* Two writes of more than half a page cannot share one. */
	for (int i = 0; i < 16; i++)
		assert_int_equal(io_put(w, big, 3000), 3000);
	assert_int_equal(io_put(w, big, 3000), -EAGAIN);
	/* …but a small one still fits behind the last. */
	assert_int_equal(io_put(w, big, 1096), 1096);
	assert_int_equal(io_put(w, big, 1), -EAGAIN);
	assert_int_equal(readable(r), 16 * 3000 + 1096);
	close_both();
}

static void ends(void **state)
{
	(void)state;
	open_pipe(0);
	assert_int_equal(io_put(w, "z", 1), 1);
	file_put(w);
	assert_int_equal(file_poll(r, NULL), POLLIN | POLLRDNORM | POLLHUP);
	assert_int_equal(io_get(r, back, 10), 1);
	assert_int_equal(io_get(r, back, 10), 0);
	assert_int_equal(file_poll(r, NULL), POLLHUP);
	file_put(r);
	open_pipe(0);
	file_put(r);
	assert_int_equal(file_poll(w, NULL), POLLOUT | POLLWRNORM | POLLERR);
	assert_int_equal(io_put(w, "z", 1), -EPIPE);
	assert_int_equal(memfs_last_signal, SIGPIPE);
	file_put(w);
}

static void packets(void **state)
{
	(void)state;
	open_pipe(O_NONBLOCK | O_DIRECT);
	assert_int_equal(io_put(w, "one", 3), 3);
	assert_int_equal(io_put(w, "three", 5), 5);
	assert_int_equal(io_put(w, big, 5000), 5000);
	assert_int_equal(io_get(r, back, 100), 3);
	/* What the buffer has no room for is lost. */
	assert_int_equal(io_get(r, back, 2), 2);
	assert_int_equal(io_get(r, back, 8000), 4096);
	assert_int_equal(io_get(r, back, 8000), 904);
	assert_int_equal(io_get(r, back, 8000), -EAGAIN);
	close_both();
}

static void sizes(void **state)
{
	(void)state;
	open_pipe(O_NONBLOCK);
	assert_int_equal(pipe_get_size(r), CAPACITY);
	assert_int_equal(pipe_set_size(w, 1, io_cred), 4096);
	assert_int_equal(io_put(w, big, 5000), 4096);
	assert_int_equal(pipe_set_size(w, 5000, io_cred), 8192);
	assert_int_equal(io_put(w, big + 4096, 5000), 4096);
	assert_int_equal(pipe_set_size(w, 4096, io_cred), -EBUSY);
	assert_int_equal(pipe_set_size(w, 1ul << 32, io_cred), -EINVAL);
	assert_int_equal(pipe_set_size(w, 2 << 20, io_world.user_cred), -EPERM);
	assert_int_equal(pipe_set_size(w, 2 << 20, io_cred), 2 << 20);
	assert_int_equal(io_get(r, back, sizeof(back)), 8192);
	assert_memory_equal(back, big, 8192);
	close_both();
}

static void blocked_reader_and_writer(void **state)
{
	struct io_call rd = { .fn = io_call_read, .buf = back, .n = 10 };
	struct io_call wr = { .fn = io_call_write, .buf = big, .n = sizeof(big) };

	(void)state;
	open_pipe(0);
	rd.f = r;
	io_start(&rd);
	io_expect_blocked(&rd);
	assert_int_equal(io_put(w, "hello", 5), 5);
	assert_int_equal(io_join(&rd), 5);
	/* A writer of more than fits goes on as the reader takes. */
	wr.f = w;
	io_start(&wr);
	io_expect_blocked(&wr);
	size_t got = 0;
	while (got < sizeof(big)) {
		ssize_t n = io_get(r, back + got, 10000);
		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_int_equal(io_join(&wr), sizeof(big));
	assert_memory_equal(back, big, sizeof(big));
	close_both();
}

static void interrupted(void **state)
{
	struct io_call rd = { .fn = io_call_read, .buf = back, .n = 10 };
	struct io_call wr = { .fn = io_call_write, .buf = big, .n = sizeof(big) };

	(void)state;
	open_pipe(0);
	rd.f = r;
	io_start(&rd);
	io_expect_blocked(&rd);
	io_interrupt(&rd);
	assert_int_equal(io_join(&rd), -ERESTARTSYS);
	/* What was written before the signal counts. */
	wr.f = w;
	io_start(&wr);
	io_expect_blocked(&wr);
	io_interrupt(&wr);
	assert_int_equal(io_join(&wr), CAPACITY);
	io_start(&wr);
	io_expect_blocked(&wr);
	io_interrupt(&wr);
	assert_int_equal(io_join(&wr), -ERESTARTSYS);
	/* The reader goes: the sleeping writer fails. */
	io_start(&wr);
	io_expect_blocked(&wr);
	file_put(r);
	assert_int_equal(io_join(&wr), -EPIPE);
	file_put(w);
}

static void many_readers(void **state)
{
	enum { N = 8 };
	struct io_call rd[N];
	char bufs[N][4];

	(void)state;
	open_pipe(0);
	for (int i = 0; i < N; i++) {
		rd[i] = (struct io_call){ .fn = io_call_read, .f = r, .buf = bufs[i], .n = 1 };
		io_start(&rd[i]);
	}
	usleep(20000);
	/* One write, but work for all: each leaves the rest for the next. */
	assert_int_equal(io_put(w, "abcdefgh", N), N);
	unsigned seen = 0;
	for (int i = 0; i < N; i++) {
		assert_int_equal(io_join(&rd[i]), 1);
		seen |= 1u << (bufs[i][0] - 'a');
	}
	assert_int_equal(seen, (1u << N) - 1);
	/* The end wakes everybody. */
	for (int i = 0; i < N; i++)
		io_start(&rd[i]);
	usleep(20000);
	file_put(w);
	for (int i = 0; i < N; i++)
		assert_int_equal(io_join(&rd[i]), 0);
	file_put(r);
}

/* ---- FIFOs -------------------------------------------------------------------------------- */

static struct inode *fifo;

static ssize_t call_open(struct io_call *c)
{
	return fifo_open(fifo, (int)c->n, io_cred, &c->f);
}

static void fifo_new(void)
{
	assert_int_equal(anon_inode_new(S_IFIFO | 0600, io_cred, &fifo), 0);
}

static void fifo_rules(void **state)
{
	struct io_call c = { .fn = call_open, .n = O_RDONLY };
	struct file *rw;

	(void)state;
	fifo_new();
	assert_int_equal(fifo_open(fifo, O_WRONLY | O_NONBLOCK, io_cred, &w), -ENXIO);
	assert_int_equal(fifo_open(fifo, O_RDONLY | O_NONBLOCK, io_cred, &r), 0);
	/* No writer yet: nothing to read, but no hang-up either. */
	assert_int_equal(file_poll(r, NULL), 0);
	assert_int_equal(io_get(r, back, 1), 0);
	assert_int_equal(fifo_open(fifo, O_WRONLY | O_NONBLOCK, io_cred, &w), 0);
	assert_int_equal(io_get(r, back, 1), -EAGAIN);
	file_put(w);
	assert_int_equal(file_poll(r, NULL), POLLHUP);
	file_put(r);
	assert_null(fifo->ipc);
	io_start(&c);
	io_expect_blocked(&c);
	assert_int_equal(fifo_open(fifo, O_WRONLY, io_cred, &w), 0);
	assert_int_equal(io_join(&c), 0);
	file_put(w);
	file_put(c.f);
	/* A read-write open never waits and satisfies both. */
	assert_int_equal(fifo_open(fifo, O_RDWR, io_cred, &rw), 0);
	assert_int_equal(fifo_open(fifo, O_RDONLY, io_cred, &r), 0);
	assert_int_equal(io_put(rw, "q", 1), 1);
	assert_int_equal(io_get(r, back, 5), 1);
	file_put(rw);
	file_put(r);
	c.n = O_WRONLY;
	io_start(&c);
	io_expect_blocked(&c);
	io_interrupt(&c);
	assert_int_equal(io_join(&c), -ERESTARTSYS);
	assert_null(fifo->ipc);
	inode_put(fifo);
}

static void writer_that_left_counts(void **state)
{
	struct io_call c = { .fn = call_open, .n = O_RDONLY };
	struct io_call o = { .fn = call_open, .n = O_WRONLY };

	(void)state;
	fifo_new();
	io_start(&c);
	io_expect_blocked(&c);
	io_start(&o);
	assert_int_equal(io_join(&o), 0);
	assert_int_equal(io_put(o.f, "bye", 3), 3);
	file_put(o.f);
	assert_int_equal(io_join(&c), 0);
	assert_int_equal(io_get(c.f, back, 10), 3);
	assert_int_equal(io_get(c.f, back, 10), 0);
	file_put(c.f);
	inode_put(fifo);
}

static void reopened_pipe(void **state)
{
	struct file *again;

	(void)state;
	open_pipe(0);
	/* As by /proc/self/fd: the same pipe, and no waiting although there is no reader then. */
	file_put(r);
	assert_int_equal(fifo_open(w->inode, O_WRONLY, io_cred, &again), 0);
	assert_int_equal(fifo_open(w->inode, O_RDONLY, io_cred, &r), 0);
	assert_int_equal(io_put(again, "x", 1), 1);
	assert_int_equal(io_get(r, back, 1), 1);
	file_put(again);
	close_both();
}

/* ---- splice ------------------------------------------------------------------------------- */

static void reserve_and_drain(void **state)
{
	struct pipe_page p[PIPE_SPLICE_MAX];

	(void)state;
	open_pipe(O_NONBLOCK);
	assert_int_equal(io_put(w, big, 4096 * 14), 4096 * 14);
	assert_int_equal(pipe_reserve(w, 16, true), 2);
	assert_int_equal(pipe_reserve(w, 1, true), -EAGAIN);
	assert_int_equal(io_put(w, big, 1), -EAGAIN);
	p[0] = (struct pipe_page){ .page = mem_alloc(PAGE_SIZE), .off = 10, .len = 3 };
	memcpy((char *)p[0].page + 10, "xyz", 3);
	pipe_commit(w, p, 1, 2);
	assert_int_equal(readable(r), 4096 * 14 + 3);
	assert_int_equal(pipe_drain_begin(r, 4097, true, p), 2);
	assert_int_equal(p[1].len, 1);
	assert_int_equal(io_get(r, back, 1), -EAGAIN);
	pipe_drain_end(r, 4096);
	assert_int_equal(io_get(r, back, sizeof(back)), 4096 * 13 + 3);
	assert_memory_equal(back, big + 4096, 4096 * 13);
	assert_memory_equal(back + 4096 * 13, "xyz", 3);
	assert_int_equal(pipe_drain_begin(r, 1, true, p), -EAGAIN);
	close_both();
}

static void tee_and_move(void **state)
{
	struct file *r2, *w2;

	(void)state;
	open_pipe(O_NONBLOCK);
	assert_int_equal(pipe_new(O_NONBLOCK, io_cred, &r2, &w2), 0);
	assert_int_equal(pipe_transfer(r, w2, 10, true, true), -EAGAIN);
	assert_int_equal(pipe_transfer(r, w, 10, true, true), -EINVAL);
	assert_int_equal(io_put(w, "abcdef", 6), 6);
	assert_int_equal(pipe_transfer(r, w2, 4, true, true), 4);
	assert_int_equal(pipe_transfer(r, w2, 2, false, true), 2);
	assert_int_equal(pipe_transfer(r, w2, 100, false, true), 4);
	assert_int_equal(readable(r), 0);
	assert_int_equal(io_get(r2, back, 100), 10);
	assert_memory_equal(back, "abcdabcdef", 10);
	file_put(w);
	assert_int_equal(pipe_transfer(r, w2, 10, true, false), 0);
	file_put(r);
	file_put(r2);
	file_put(w2);
}

static int make_pipe(void)
{
	struct file *a, *b;

	int err = pipe_new(0, io_cred, &a, &b);
	if (!err) {
		file_put(a);
		file_put(b);
	}
	return err;
}

static void without_memory(void **state)
{
	(void)state;
	io_fail_each_allocation(make_pipe);
	open_pipe(0);
	mem_fail_nth(1);
	assert_int_equal(io_put(w, "x", 1), -ENOMEM);
	mem_fail_nth(0);
	close_both();
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, io_setup, io_teardown)
	const struct CMUnitTest tests[] = {
		T(bytes_come_in_order), T(full_and_partial), T(a_slot_is_a_slot), T(ends), T(packets), T(sizes),
		T(blocked_reader_and_writer), T(interrupted), T(many_readers), T(fifo_rules),
		T(writer_that_left_counts), T(reopened_pipe), T(reserve_and_drain), T(tee_and_move),
		T(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

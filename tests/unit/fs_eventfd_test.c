/* eventfd: fs/eventfd.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/eventfd.h"
#include "tests/unit/io_rig.h"

static struct file *make(uint32_t initial, unsigned flags)
{
	struct file *f;

	assert_int_equal(eventfd_new(initial, flags, io_cred, &f), 0);
	return f;
}

static void add(struct file *f, uint64_t n, ssize_t want)
{
	assert_int_equal(io_put(f, &n, sizeof(n)), want);
}

static void take(struct file *f, uint64_t want)
{
	uint64_t n;

	assert_int_equal(io_get(f, &n, sizeof(n)), 8);
	assert_true(n == want);
}

static void counts(void **state)
{
	struct file *f = make(3, O_NONBLOCK);
	char big[16];

	(void)state;
	assert_true(is_eventfd(f));
	assert_int_equal(file_poll(f, NULL), POLLIN | POLLOUT);
	take(f, 3);
	assert_int_equal(file_poll(f, NULL), POLLOUT);
	assert_int_equal(io_get(f, big, 8), -EAGAIN);
	assert_int_equal(io_get(f, big, 7), -EINVAL);
	assert_int_equal(io_put(f, big, 7), -EINVAL);
	add(f, UINT64_MAX, -EINVAL);
	add(f, 1, 8);
	add(f, UINT64_MAX - 2, 8);
	assert_int_equal(file_poll(f, NULL), POLLIN);
	add(f, 1, -EAGAIN);
	add(f, 0, 8);
	eventfd_signal(f, 5);
	assert_int_equal(file_poll(f, NULL), POLLIN | POLLERR);
	assert_int_equal(io_get(f, big, 16), 8);
	file_put(f);
}

static void semaphore(void **state)
{
	struct file *f = make(2, EFD_SEMAPHORE | O_NONBLOCK);
	uint64_t n;

	(void)state;
	take(f, 1);
	take(f, 1);
	assert_int_equal(io_get(f, &n, 8), -EAGAIN);
	file_put(f);
}

static void sleepers(void **state)
{
	enum { N = 5 };
	struct file *f = make(0, EFD_SEMAPHORE);
	struct io_call c[N];
	uint64_t vals[N];

	(void)state;
	for (int i = 0; i < N; i++) {
		c[i] = (struct io_call){ .fn = io_call_read, .f = f, .buf = (char *)&vals[i], .n = 8 };
		io_start(&c[i]);
	}
	io_expect_blocked(&c[0]);
	add(f, N, 8);
	for (int i = 0; i < N; i++) {
		assert_int_equal(io_join(&c[i]), 8);
		assert_int_equal(vals[i], 1);
	}
	/* A writer waits for room and is let in by a reader. */
	uint64_t much = UINT64_MAX - 1;
	add(f, much, 8);
	c[0] = (struct io_call){ .fn = io_call_write, .f = f, .buf = (char *)&vals[0], .n = 8 };
	vals[0] = 1;
	io_start(&c[0]);
	io_expect_blocked(&c[0]);
	take(f, 1);
	assert_int_equal(io_join(&c[0]), 8);
	vals[0] = 2;
	io_start(&c[0]);
	io_expect_blocked(&c[0]);
	io_interrupt(&c[0]);
	assert_int_equal(io_join(&c[0]), -ERESTARTSYS);
	file_put(f);
}

static int make_one(void)
{
	struct file *f;

	int err = eventfd_new(0, 0, io_cred, &f);
	if (!err)
		file_put(f);
	return err;
}

static void without_memory(void **state)
{
	(void)state;
	io_fail_each_allocation(make_one);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, io_setup, io_teardown)
	const struct CMUnitTest tests[] = { T(counts), T(semaphore), T(sleepers), T(without_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* timerfd: fs/timerfd.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/timerfd.h"
#include "platform/base/timer.h"
#include "tests/unit/io_rig.h"

#define MS 1000000l

static struct file *f;

static void make(int clock, unsigned flags)
{
	assert_int_equal(timerfd_new(clock, flags, io_cred, &f), 0);
}

static void set_ms(long value, long interval)
{
	struct itimerspec its = { .it_value = { value / 1000, value % 1000 * MS },
				  .it_interval = { interval / 1000, interval % 1000 * MS } };
	assert_int_equal(timerfd_set(f, 0, &its, NULL), 0);
}

static void one_shot(void **state)
{
	struct itimerspec its;
	uint64_t n;

	(void)state;
	make(CLOCK_MONOTONIC, O_NONBLOCK);
	assert_int_equal(io_get(f, &n, 8), -EAGAIN);
	assert_int_equal(io_get(f, &n, 4), -EINVAL);
	set_ms(30, 0);
	assert_int_equal(timerfd_get(f, &its), 0);
	assert_true(its.it_value.tv_nsec > 5 * MS && its.it_value.tv_nsec <= 30 * MS);
	assert_int_equal(file_poll(f, NULL), 0);
	usleep(60000);
	assert_int_equal(file_poll(f, NULL), POLLIN);
	assert_int_equal(timerfd_get(f, &its), 0);
	assert_int_equal(its.it_value.tv_nsec, 0);
	assert_int_equal(io_get(f, &n, 8), 8);
	assert_int_equal(n, 1);
	assert_int_equal(io_get(f, &n, 8), -EAGAIN);
	file_put(f);
}

static void interval_counts_missed_periods(void **state)
{
	struct itimerspec its;
	uint64_t n;

	(void)state;
	make(CLOCK_MONOTONIC, 0);
	set_ms(10, 10);
	usleep(58000);
	assert_int_equal(io_get(f, &n, 8), 8);
	assert_in_range(n, 4, 9);
	/* It goes on. */
	assert_int_equal(io_get(f, &n, 8), 8);
	assert_int_equal(n, 1);
	assert_int_equal(timerfd_get(f, &its), 0);
	assert_int_equal(its.it_interval.tv_nsec, 10 * MS);
	assert_in_range(its.it_value.tv_nsec, 1, 10 * MS);
	file_put(f);
}

static void absolute_and_past(void **state)
{
	struct itimerspec its = { 0 }, old;
	uint64_t n;

	(void)state;
	make(CLOCK_REALTIME, 0);
	clock_gettime(CLOCK_REALTIME, &its.it_value);
	its.it_value.tv_sec -= 5;
	assert_int_equal(timerfd_set(f, TFD_TIMER_ABSTIME, &its, NULL), 0);
	assert_int_equal(io_get(f, &n, 8), 8);
	assert_int_equal(n, 1);
	its.it_value.tv_sec += 500;
	assert_int_equal(timerfd_set(f, TFD_TIMER_ABSTIME, &its, NULL), 0);
	its.it_value = (struct timespec){ 0, 0 };
	assert_int_equal(timerfd_set(f, 0, &its, &old), 0);
	assert_in_range(old.it_value.tv_sec, 490, 496);
	assert_int_equal(timerfd_get(f, &old), 0);
	assert_int_equal(old.it_value.tv_sec, 0);
	file_put(f);
}

static void refused(void **state)
{
	struct itimerspec its = { .it_value = { 0, 1000000000 } };

	(void)state;
	assert_int_equal(timerfd_new(CLOCK_PROCESS_CPUTIME_ID, 0, io_cred, &f), -EINVAL);
	assert_int_equal(timerfd_new(CLOCK_BOOTTIME_ALARM, 0, io_world.user_cred, &f), -EPERM);
	make(CLOCK_BOOTTIME, 0);
	assert_int_equal(timerfd_set(f, 0, &its, NULL), -EINVAL);
	its.it_value = (struct timespec){ -1, 0 };
	assert_int_equal(timerfd_set(f, 0, &its, NULL), -EINVAL);
	its.it_value = (struct timespec){ INT64_MAX, 0 };
	assert_int_equal(timerfd_set(f, 64, &its, NULL), -EINVAL);
	assert_int_equal(timerfd_set(f, TFD_TIMER_ABSTIME, &its, NULL), 0);
	assert_int_equal(timerfd_set(f, 0, &its, NULL), 0);
	assert_int_equal(file_poll(f, NULL), 0);
	file_put(f);
}

static void sleeping_reader(void **state)
{
	uint64_t n = 0;
	struct io_call c = { .fn = io_call_read, .buf = (char *)&n, .n = 8 };

	(void)state;
	make(CLOCK_MONOTONIC, 0);
	c.f = f;
	io_start(&c);
	io_expect_blocked(&c);
	set_ms(5, 0);
	assert_int_equal(io_join(&c), 8);
	assert_int_equal(n, 1);
	io_start(&c);
	io_expect_blocked(&c);
	io_interrupt(&c);
	assert_int_equal(io_join(&c), -ERESTARTSYS);
	/* Closed while armed. */
	set_ms(1, 1);
	file_put(f);
	usleep(5000);
}

static int make_one(void)
{
	int err = timerfd_new(CLOCK_MONOTONIC, 0, io_cred, &f);
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
	const struct CMUnitTest tests[] = {
		T(one_shot), T(interval_counts_missed_periods), T(absolute_and_past), T(refused),
		T(sleeping_reader), T(without_memory),
	};
	if (timer_start_thread() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

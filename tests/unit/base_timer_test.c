/* Timers: order, moving, disarming, waiting for a callback that runs. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/base/timer.h"

#define MS 1000000ull

static atomic_int fired;
static atomic_int order[4];

static void note(struct timer *t)
{
	order[atomic_fetch_add(&fired, 1)] = (int)(intptr_t)t->arg;
}

static void wait_for(int n)
{
	for (int i = 0; i < 2000 && atomic_load(&fired) < n; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&fired), n);
}

static int setup(void **state)
{
	(void)state;
	atomic_store(&fired, 0);
	return 0;
}

static int start(void **state)
{
	(void)state;
	return timer_start_thread();
}

static void fires_in_order(void **state)
{
	struct timer a, b, c;

	(void)state;
	timer_init(&a, note, (void *)1);
	timer_init(&b, note, (void *)2);
	timer_init(&c, note, (void *)3);
	timer_arm(&c, deadline_after_ns(60 * MS));
	timer_arm(&b, deadline_after_ns(40 * MS));
	timer_arm(&a, deadline_after_ns(20 * MS));
	wait_for(3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(order[i], i + 1);
}

static void moves_and_disarms(void **state)
{
	struct timer a, b, c;

	(void)state;
	timer_init(&a, note, (void *)1);
	timer_init(&b, note, (void *)2);
	timer_init(&c, note, (void *)3);
	timer_arm(&a, deadline_after_ns(10 * MS));
	timer_arm(&b, deadline_after_ns(10 * MS));
	timer_arm(&c, deadline_after_ns(3600000 * MS));
	timer_disarm(&a);
	timer_arm(&b, DEADLINE_NEVER);
	timer_arm(&c, deadline_after_ns(20 * MS));
	wait_for(1);
	assert_int_equal(order[0], 3);
	usleep(30000);
	assert_int_equal(fired, 1);
	timer_disarm(&c);
}

static void again(struct timer *t)
{
	if (atomic_fetch_add(&fired, 1) < 2)
		timer_arm(t, deadline_after_ns(2 * MS));
	else
		timer_cancel_sync(t); /* from the callback: must not wait for itself */
}

static void rearms_in_its_callback(void **state)
{
	struct timer t;

	(void)state;
	timer_init(&t, again, NULL);
	timer_arm(&t, deadline_after_ns(1 * MS));
	wait_for(3);
	timer_cancel_sync(&t);
}

static void slow(struct timer *t)
{
	(void)t;
	atomic_store(&fired, 1);
	usleep(30000);
	atomic_store(&fired, 2);
}

static void cancel_waits(void **state)
{
	struct timer t;

	(void)state;
	timer_init(&t, slow, NULL);
	timer_arm(&t, deadline_after_ns(1));
	wait_for(1);
	timer_cancel_sync(&t);
	assert_int_equal(fired, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(fires_in_order, setup),
		cmocka_unit_test_setup(moves_and_disarms, setup),
		cmocka_unit_test_setup(rearms_in_its_callback, setup),
		cmocka_unit_test_setup(cancel_waits, setup),
	};
	return cmocka_run_group_tests_name("base_timer", tests, start, NULL);
}

/* Sleeping and waking: no lost wake, interrupts stick, exclusive waiters are served one by one. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/base/waitq.h"

#define MS 1000000ull

static void deadlines(void **state)
{
	struct sleeper s;
	uint64_t before = mono_now_ns();

	(void)state;
	sleeper_init(&s);
	sleeper_prepare(&s);
	assert_int_equal(sleeper_sleep(&s, deadline_after_ns(20 * MS)), -ETIMEDOUT);
	assert_true(mono_now_ns() - before >= 20 * MS);
	/* One that has passed does not sleep at all. */
	assert_int_equal(sleeper_sleep(&s, 1), -ETIMEDOUT);
	assert_true(deadline_after_ns(UINT64_MAX) == DEADLINE_NEVER);
	assert_true(deadline_after_ns(UINT64_MAX - 1) == DEADLINE_NEVER);
}

static void wake_before_sleep_is_kept(void **state)
{
	struct sleeper s;

	(void)state;
	sleeper_init(&s);
	sleeper_prepare(&s);
	sleeper_wake(&s);
	assert_int_equal(sleeper_sleep(&s, DEADLINE_NEVER), 0);
	/* ... until the next prepare. */
	sleeper_prepare(&s);
	assert_int_equal(sleeper_sleep(&s, deadline_after_ns(5 * MS)), -ETIMEDOUT);
}

static void interrupt_sticks(void **state)
{
	struct sleeper s;

	(void)state;
	sleeper_init(&s);
	sleeper_interrupt(&s);
	assert_true(sleeper_is_interrupted(&s));
	sleeper_prepare(&s);
	assert_int_equal(sleeper_sleep(&s, DEADLINE_NEVER), -ERESTARTSYS);
	assert_int_equal(sleeper_sleep(&s, DEADLINE_NEVER), -ERESTARTSYS);
	/* A wake is worth more than the interrupt: the condition may be true now. */
	sleeper_wake(&s);
	assert_int_equal(sleeper_sleep(&s, DEADLINE_NEVER), 0);
	sleeper_clear_interrupt(&s);
	assert_false(sleeper_is_interrupted(&s));
}

struct box {
	struct mutex mu;
	struct waitq q;
	int items;           /* [mu] */
	int taken;           /* [mu] */
	bool exclusive;      /* [I] */
	uint32_t mask;       /* [I] */
	struct sleeper *who; /* [mu] */
};

static void box_init(struct box *b, bool exclusive, uint32_t mask)
{
	*b = (struct box){ .exclusive = exclusive, .mask = mask };
	mutex_init(&b->mu, RANK_PIPE);
	waitq_init(&b->q);
}

static void *taker(void *arg) NO_LOCK_ANALYSIS
{
	struct box *b = arg;
	struct sleeper own;
	int err = 0;

	sleeper_init(&own);
	sleeper_set_self(&own);
	mutex_lock(&b->mu);
	b->who = &own;
	while (b->items == 0 && err == 0)
		err = b->exclusive ? waitq_wait_exclusive(&b->q, &b->mu, b->mask, DEADLINE_NEVER)
				   : waitq_wait(&b->q, &b->mu, b->mask, DEADLINE_NEVER);
	if (b->items > 0) {
		b->items--;
		b->taken++;
		err = 0;
	}
	mutex_unlock(&b->mu);
	sleeper_set_self(NULL);
	return (void *)(intptr_t)err;
}

static void until_waiting(struct box *b)
{
	while (!waitq_has_waiters(&b->q))
		usleep(200);
}

static void put(struct box *b, int n, uint32_t events) NO_LOCK_ANALYSIS
{
	mutex_lock(&b->mu);
	b->items += n;
	mutex_unlock(&b->mu);
	waitq_wake(&b->q, events);
}

static void many_takers(bool exclusive)
{
	enum { THREADS = 8 };
	struct box b;
	pthread_t t[THREADS];

	box_init(&b, exclusive, POLLIN);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, taker, &b), 0);
	for (int i = 0; i < THREADS; i++)
		put(&b, 1, POLLIN);
	/* Each put had one waiter's worth; latecomers saw the item without sleeping. */
	for (int i = 0; i < THREADS; i++) {
		void *err;
		pthread_join(t[i], &err);
		assert_null(err);
	}
	assert_int_equal(b.taken, THREADS);
	waitq_fini(&b.q);
}

static void nobody_is_forgotten(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		many_takers(false);
		many_takers(true);
	}
}

static void mask_filters(void **state)
{
	struct box b;
	pthread_t t;
	void *err;

	(void)state;
	box_init(&b, false, POLLIN);
	pthread_create(&t, NULL, taker, &b);
	until_waiting(&b);
	waitq_wake(&b.q, POLLOUT);
	usleep(2000);
	assert_true(waitq_has_waiters(&b.q));
	put(&b, 1, POLLIN | POLLOUT);
	pthread_join(t, &err);
	assert_null(err);
}

static void signal_ends_a_wait(void **state)
{
	struct box b;
	pthread_t t;
	void *err;

	(void)state;
	box_init(&b, true, POLLIN);
	pthread_create(&t, NULL, taker, &b);
	until_waiting(&b);
	sleeper_interrupt(b.who);
	pthread_join(t, &err);
	assert_int_equal((intptr_t)err, -ERESTARTSYS);
	assert_false(waitq_has_waiters(&b.q));
}

static void time_out_of_a_wait(void **state) NO_LOCK_ANALYSIS
{
	struct box b;

	(void)state;
	box_init(&b, false, 0);
	mutex_lock(&b.mu);
	assert_int_equal(waitq_wait(&b.q, &b.mu, 0, deadline_after_ns(5 * MS)), -ETIMEDOUT);
	mutex_unlock(&b.mu);
	waitq_fini(&b.q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines),          cmocka_unit_test(wake_before_sleep_is_kept),
		cmocka_unit_test(interrupt_sticks),   cmocka_unit_test(nobody_is_forgotten),
		cmocka_unit_test(mask_filters),       cmocka_unit_test(signal_ends_a_wait),
		cmocka_unit_test(time_out_of_a_wait),
	};
	return cmocka_run_group_tests_name("base_waitq", tests, NULL, NULL);
}

/*
 * Wait queues and sleepers: see waitq.h. A sleeper is one futex word. A wake or an interrupt sets a
 * bit and, if the owner may be asleep, calls futex_wake; no wake is lost because the owner passes
 * the value it saw to futex_wait.
 */
#include "platform/base/waitq.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLEEPER_ASLEEP 4u /* the owner is in, or about to enter, futex_wait */

static _Thread_local struct sleeper own_sleeper;
static _Thread_local struct sleeper *self;

uint64_t mono_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

deadline_t deadline_after_ns(uint64_t ns)
{
	uint64_t now = mono_now_ns();
	return ns > UINT64_MAX - 1 - now ? DEADLINE_NEVER : now + ns;
}

struct sleeper *sleeper_self(void)
{
	return self ? self : &own_sleeper;
}

void sleeper_set_self(struct sleeper *s)
{
	self = s;
}

void sleeper_init(struct sleeper *s)
{
	atomic_init(&s->state, 0);
}

void sleeper_prepare(struct sleeper *s)
{
	atomic_fetch_and(&s->state, ~SLEEPER_WOKEN);
}

static long futex_wait_until(atomic_uint *word, unsigned val, deadline_t deadline)
{
	struct timespec ts, *tsp = NULL;
	if (deadline != DEADLINE_NEVER) {
		ts.tv_sec = (time_t)(deadline / 1000000000u);
		ts.tv_nsec = (long)(deadline % 1000000000u);
		tsp = &ts;
	}
	/* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time (futex(2)). */
	long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, val, tsp, NULL,
			 FUTEX_BITSET_MATCH_ANY);
	return r < 0 ? -errno : 0;
}

int sleeper_sleep(struct sleeper *s, deadline_t deadline)
{
	int ret;

	for (;;) {
		unsigned st = atomic_fetch_or(&s->state, SLEEPER_ASLEEP) | SLEEPER_ASLEEP;
		if (st & SLEEPER_WOKEN) {
			ret = 0;
			break;
		}
		if (st & SLEEPER_INTERRUPTED) {
			ret = -ERESTARTSYS;
			break;
		}
		if (futex_wait_until(&s->state, st, deadline) == -ETIMEDOUT) {
			ret = -ETIMEDOUT;
			break;
		}
	}
	atomic_fetch_and(&s->state, ~SLEEPER_ASLEEP);
	return ret;
}

static void sleeper_set(struct sleeper *s, unsigned bit)
{
	if (atomic_fetch_or(&s->state, bit) & SLEEPER_ASLEEP)
		syscall(SYS_futex, &s->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void sleeper_wake(struct sleeper *s)
{
	sleeper_set(s, SLEEPER_WOKEN);
}

void sleeper_interrupt(struct sleeper *s)
{
	sleeper_set(s, SLEEPER_INTERRUPTED);
}

void sleeper_clear_interrupt(struct sleeper *s)
{
	atomic_fetch_and(&s->state, ~SLEEPER_INTERRUPTED);
}

bool sleeper_is_interrupted(struct sleeper *s)
{
	return atomic_load(&s->state) & SLEEPER_INTERRUPTED;
}

void waitq_init(struct waitq *q)
{
	mutex_init(&q->mu, RANK_WAITQ);
	list_init(&q->waiters);
}

void waitq_fini(struct waitq *q)
{
	BUG_ON(!list_empty(&q->waiters));
	mutex_fini(&q->mu);
}

void waitq_add(struct waitq *q, struct waiter *w)
{
	w->q = q;
	w->woken = false;
	mutex_lock(&q->mu);
	/* A wake ends at the first exclusive waiter, so the others must come before all of these.
	 */
	if (w->exclusive)
		list_add_tail(&q->waiters, &w->link);
	else
		list_add(&q->waiters, &w->link);
	mutex_unlock(&q->mu);
}

void waitq_remove(struct waiter *w)
{
	mutex_lock(&w->q->mu);
	list_del_init(&w->link);
	mutex_unlock(&w->q->mu);
}

/* Nested: the callback of an epoll set wakes the set's own queue. Cycles of epoll sets are refused
 * when they are built. */
static void wake_some(struct waitq *q, uint32_t events, bool all)
{
	mutex_lock_nested(&q->mu);
	list_for_each_safe(pos, &q->waiters) {
		struct waiter *w = list_entry(pos, struct waiter, link);
		if (w->mask && events && !(w->mask & events))
			continue;
		bool exclusive = w->exclusive;
		w->fn(w, events);
		if (exclusive && !all)
			break;
	}
	mutex_unlock(&q->mu);
}

void waitq_wake(struct waitq *q, uint32_t events)
{
	wake_some(q, events, false);
}

void waitq_wake_all(struct waitq *q, uint32_t events)
{
	wake_some(q, events, true);
}

bool waitq_has_waiters(struct waitq *q)
{
	mutex_lock(&q->mu);
	bool has = !list_empty(&q->waiters);
	mutex_unlock(&q->mu);
	return has;
}

static void wake_sleeper(struct waiter *w, uint32_t events UNUSED)
{
	w->woken = true;
	sleeper_wake(w->arg);
}

/* An exclusive waiter leaves the queue as it is woken, so that the next wake finds another. */
static void wake_sleeper_exclusive(struct waiter *w, uint32_t events)
{
	list_del_init(&w->link);
	wake_sleeper(w, events);
}

void waiter_init_sleeper(struct waiter *w, struct sleeper *s, uint32_t mask)
{
	*w = (struct waiter){ .fn = wake_sleeper, .mask = mask, .arg = s };
	list_init(&w->link);
}

static int wait_common(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline,
		       bool exclusive) NO_LOCK_ANALYSIS
{
	struct sleeper *s = sleeper_self();
	struct waiter w;

	waiter_init_sleeper(&w, s, mask);
	if (exclusive) {
		w.exclusive = true;
		w.fn = wake_sleeper_exclusive;
	}
	lock_assert_none_held(mu);
	sleeper_prepare(s);
	waitq_add(q, &w);
	mutex_unlock(mu);
	int ret = sleeper_sleep(s, deadline);
	waitq_remove(&w);
	/* A wake that came together with a signal or a time-out is passed on, not lost. */
	if (ret != 0 && exclusive && w.woken)
		waitq_wake(q, mask);
	mutex_lock(mu);
	return ret;
}

int waitq_wait(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline)
{
	return wait_common(q, mu, mask, deadline, false);
}

int waitq_wait_exclusive(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline)
{
	return wait_common(q, mu, mask, deadline, true);
}

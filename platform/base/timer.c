/* The timer tree and its thread: see timer.h. */
#include "platform/base/timer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "platform/base/log.h"
#include "platform/base/thread.h"

static struct mutex timer_mu = MUTEX_INIT(RANK_TIMER);
static struct rb_root timers;         /* [timer_mu] ordered by `when`, then address */
static struct timer *running_now;     /* [timer_mu] */
static struct sleeper thread_sleeper; /* of the timer thread */
static struct mutex start_mu = MUTEX_INIT(RANK_HASH);
static atomic_bool started;
static pthread_t timer_thread;                             /* [I] once started */
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER; /* a callback has returned */

static bool timer_less(const struct timer *a, const struct timer *b)
{
	return a->when != b->when ? a->when < b->when : (uintptr_t)a < (uintptr_t)b;
}

static void timer_insert_locked(struct timer *t)
{
	struct rb_node **link = &timers.node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = timer_less(t, container_of(parent, struct timer, node)) ? &parent->left
									       : &parent->right;
	}
	rb_insert(&timers, &t->node, parent, link);
	t->armed = true;
}

static void timer_remove_locked(struct timer *t)
{
	if (t->armed)
		rb_erase(&timers, &t->node);
	t->armed = false;
}

static struct timer *timer_first_locked(void)
{
	struct rb_node *n = rb_first(&timers);
	return n ? container_of(n, struct timer, node) : NULL;
}

static void *timer_main(void *arg UNUSED)
{
	sleeper_set_self(&thread_sleeper);
	for (;;) {
		sleeper_prepare(&thread_sleeper);
		mutex_lock(&timer_mu);
		struct timer *t = timer_first_locked();
		if (t && t->when <= mono_now_ns()) {
			timer_remove_locked(t);
			t->running = true;
			running_now = t;
			mutex_unlock(&timer_mu);
			t->fn(t);
			mutex_lock(&timer_mu);
			/* The callback may have freed nothing but its own arm state. */
			running_now->running = false;
			running_now = NULL;
			pthread_cond_broadcast(&finished);
			mutex_unlock(&timer_mu);
			continue;
		}
		deadline_t until = t ? t->when : DEADLINE_NEVER;
		mutex_unlock(&timer_mu);
		int err = sleeper_sleep(&thread_sleeper, until);
		BUG_ON(err == -ERESTARTSYS);
	}
	return NULL;
}

/* Its sleeper needs no set-up: 0 is how it begins. */
int timer_start_thread(void)
{
	if (atomic_load(&started))
		return 0;
	mutex_lock(&start_mu);
	int err = atomic_load(&started) ? 0 : thread_start(&timer_thread, timer_main, NULL);
	if (!err)
		atomic_store(&started, true);
	mutex_unlock(&start_mu);
	return err;
}

void timer_init(struct timer *t, timer_fn *fn, void *arg)
{
	*t = (struct timer){ .fn = fn, .arg = arg };
}

void timer_arm(struct timer *t, deadline_t when)
{
	mutex_lock(&timer_mu);
	timer_remove_locked(t);
	t->when = when;
	bool first = false;
	if (when != DEADLINE_NEVER) {
		timer_insert_locked(t);
		first = timer_first_locked() == t;
	}
	mutex_unlock(&timer_mu);
	if (!first)
		return;
	int err = timer_start_thread();
	if (err)
		log_error("timers cannot run: no thread for them: error %d", -err);
	sleeper_wake(&thread_sleeper);
}

void timer_disarm(struct timer *t)
{
	timer_arm(t, DEADLINE_NEVER);
}

void timer_cancel_sync(struct timer *t)
{
	mutex_lock(&timer_mu);
	timer_remove_locked(t);
	while (t->running && !pthread_equal(pthread_self(), timer_thread)) {
		pthread_cond_wait(&finished, &timer_mu.m);
		timer_remove_locked(t);
	}
	mutex_unlock(&timer_mu);
}

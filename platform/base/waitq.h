/*
 * Sleeping and waking.
 *
 * A `struct waitq` is a list of waiters with callbacks (as Linux wait_queue_head). A `struct
 * sleeper` is one thread's ability to sleep; each sentry thread has one (sleeper_self). Sleep is
 * interruptible: sleeper_interrupt() makes the current or next sleep return -ERESTARTSYS until the
 * task loop calls sleeper_clear_interrupt(); that is how a signal reaches a blocked call.
 *
 * The pattern for "wait until condition":
 *
 *	mutex_lock(&x->mu);
 *	while (!condition(x)) {
 *		int err = waitq_wait(&x->wait, &x->mu, POLLIN, deadline);
 *		if (err) { mutex_unlock(&x->mu); return err; }
 *	}
 *
 * Wakers change the condition under x->mu and then call waitq_wake.
 */
#pragma once

#include <stdatomic.h>
#include <time.h>

#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "platform/base/types.h"

/* Internal restart codes live here because the lowest sleeper returns one; the meaning of the
 * others is in sentry/restart.h. They never reach the guest. */
#define ERESTARTSYS 512

struct waiter;
typedef void waiter_fn(struct waiter *w, uint32_t events);

struct waiter {
	struct list link; /* [q->mu] */
	struct waitq *q;  /* [I] while queued */
	waiter_fn *fn;    /* [I] called with q->mu held: may only wake or queue elsewhere */
	uint32_t mask;    /* [I] poll events of interest; 0 means all */
	bool exclusive;   /* [I] at most one exclusive waiter is called per wake */
	bool woken;       /* [q->mu] set by fn of waitq_wait */
	void *arg;        /* [I] for fn */
};

struct waitq {
	struct mutex mu;
	struct list waiters; /* [mu] */
};

void waitq_init(struct waitq *q);
/* No waiter may be queued any more. */
void waitq_fini(struct waitq *q);
/* `w` must have fn, mask and arg set; it stays owned by the caller. */
void waitq_add(struct waitq *q, struct waiter *w);
/* After return the callback does not run any more. Safe if w was already removed. */
void waitq_remove(struct waiter *w);
/* Calls the waiters whose mask meets `events` (poll bits); all non-exclusive, one exclusive. */
void waitq_wake(struct waitq *q, uint32_t events);
/* As waitq_wake, but calls exclusive waiters too without limit. */
void waitq_wake_all(struct waitq *q, uint32_t events);
bool waitq_has_waiters(struct waitq *q);

/* A point in CLOCK_MONOTONIC nanoseconds; UINT64_MAX means never. */
typedef uint64_t deadline_t;
#define DEADLINE_NEVER UINT64_MAX
/* Host CLOCK_MONOTONIC in ns. */
uint64_t mono_now_ns(void);
/* now + ns, saturating. */
deadline_t deadline_after_ns(uint64_t ns);

struct sleeper {
	atomic_uint state; /* SLEEPER_* bits; also the futex word */
};

#define SLEEPER_WOKEN 1u       /* a wake arrived since sleeper_prepare */
#define SLEEPER_INTERRUPTED 2u /* interrupted until cleared */

/* The calling thread's sleeper; created on first use. */
struct sleeper *sleeper_self(void);
/* Makes `s` the calling thread's sleeper (a task's, so that others can reach it by the task). */
void sleeper_set_self(struct sleeper *s);
void sleeper_init(struct sleeper *s);
/* Forgets earlier wakes. Call before checking the condition that the wake announces. */
void sleeper_prepare(struct sleeper *s);
/* Sleeps until woken (0), interrupted (-ERESTARTSYS) or the deadline (-ETIMEDOUT).
 * Only the owner calls it; no lock may be held. */
int sleeper_sleep(struct sleeper *s, deadline_t deadline) MUST_CHECK;
void sleeper_wake(struct sleeper *s);
void sleeper_interrupt(struct sleeper *s);
void sleeper_clear_interrupt(struct sleeper *s);
bool sleeper_is_interrupted(struct sleeper *s);
/* A waiter whose callback wakes the sleeper in w->arg. */
void waiter_init_sleeper(struct waiter *w, struct sleeper *s, uint32_t mask);

/* Drops `mu`, sleeps on `q` for `mask` (poll bits, 0 = any), takes `mu` again.
 * 0, -ERESTARTSYS or -ETIMEDOUT. No lock besides `mu` may be held. The caller loops. */
int waitq_wait(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline)
	MUST_CHECK REQUIRES(mu);
/* The same as an exclusive waiter (accept, pipe readers): one wake serves one of them. */
int waitq_wait_exclusive(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline)
	MUST_CHECK REQUIRES(mu);

/*
 * One-shot timers on host CLOCK_MONOTONIC. One thread serves all of them and sleeps exactly until
 * the next one is due; with none armed it sleeps for ever. Interval timers re-arm in their
 * callback.
 */
#pragma once

#include "platform/base/rbtree.h"
#include "platform/base/waitq.h"

struct timer;
/* Runs on the timer thread with no lock held; must not block for long. */
typedef void timer_fn(struct timer *t);

struct timer {
	struct rb_node node; /* [timer lock] */
	deadline_t when;     /* [timer lock] */
	bool armed;          /* [timer lock] */
	bool running;        /* [timer lock] the callback is being run now */
	timer_fn *fn;        /* [I] */
	void *arg;           /* [I] */
};

/* Starts the timer thread if it does not run yet; the first timer_arm does so too. 0 or -errno.
 * Any thread. */
int timer_start_thread(void) MUST_CHECK;
void timer_init(struct timer *t, timer_fn *fn, void *arg);
/* Arms or moves; DEADLINE_NEVER disarms. */
void timer_arm(struct timer *t, deadline_t when);
/* Disarms; does not wait for a running callback. */
void timer_disarm(struct timer *t);
/* Disarms and waits for a running callback (unless called from it). Before freeing the owner. */
void timer_cancel_sync(struct timer *t);

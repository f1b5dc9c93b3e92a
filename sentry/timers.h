/*
 * Timers that send signals: interval timers (itimer.c) and POSIX timers (posix_timer.c), and the
 * clocks that guests may ask for.
 */
#pragma once

#include "platform/base/waitq.h"
#include "sentry/guest.h"

struct group;
struct posix_timer;
struct task;

/* SIGALRM was taken from the group's queue: arms the next period of ITIMER_REAL. sighand->mu held.
 */
void itimer_real_dequeued_locked(struct group *g);
/* getitimer(2), setitimer(2); times in ns. -EINVAL for an unknown timer. `which` is checked. */
int itimer_get(struct task *t, int which, uint64_t *out_value, uint64_t *out_interval) MUST_CHECK;
int itimer_set(struct task *t, int which, uint64_t value, uint64_t interval, uint64_t *out_value,
	       uint64_t *out_interval) MUST_CHECK;
/* Starts watching processor time when RLIMIT_CPU or an interval timer needs it. No lock held. */
void itimer_watch_cpu(struct group *g);
/* Stops all; waits for running callbacks. No lock held. */
void itimers_cancel(struct group *g);

/* The signal of a timer is being taken: fills in the overrun count, arms the next period.
 * sighand->mu held. */
void posix_timer_dequeued_locked(struct posix_timer *pt, struct k_siginfo *info);
/* exec and exit. No lock held. */
void posix_timers_delete_all(struct group *g);
/* The calls, after their arguments were loaded. */
long posix_timer_create(struct task *t, int clockid, const struct k_sigevent *sev, int *out_id);
int posix_timer_settime(struct task *t, int id, int flags, const struct k_itimerspec *new,
			struct k_itimerspec *out_old) MUST_CHECK;
int posix_timer_gettime(struct task *t, int id, struct k_itimerspec *out) MUST_CHECK;
int posix_timer_getoverrun(struct task *t, int id);
int posix_timer_delete(struct task *t, int id);

/* ---- clocks (clock.c) ---- */

/* Reads a clock as clock_gettime(2), dynamic processor clocks of other guests included; ns since
 * its epoch. -EINVAL for an unknown one. */
int clock_read(struct task *t, int clockid, uint64_t *out_ns) MUST_CHECK;
/* Is it a processor-time clock? */
bool clock_is_cpu(int clockid);
/* Turns an absolute time of a wall or monotonic clock into a host CLOCK_MONOTONIC deadline. */
deadline_t clock_deadline(int clockid, uint64_t abs_ns);
/* The same point on CLOCK_MONOTONIC, also of a time gone by (not before its start). */
uint64_t clock_to_mono(int clockid, uint64_t abs_ns);
/* A timespec in ns, saturating at INT64_MAX; -EINVAL when malformed or negative. */
int timespec_to_ns(const struct timespec *ts, uint64_t *out_ns) MUST_CHECK;
struct timespec ns_to_timespec(uint64_t ns);
struct timeval ns_to_timeval(uint64_t ns);

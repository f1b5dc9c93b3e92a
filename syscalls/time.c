/* Clocks and sleeping: clock_gettime(2), nanosleep(2). */
#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <time.h>

#include "sentry/exit.h"
#include "sentry/task.h"
#include "sentry/timers.h"
#include "syscalls/handlers.h"

#define NS_PER_S 1000000000ull
#define COARSE_RES_NS 4000000 /* CONFIG_HZ=250, as Debian's kernel */
#define CPU_POLL_NS 1000000ull

/* words of the restart block of a sleep */
#define SLEEP_CLOCK 0
#define SLEEP_REM 1

long sys_clock_gettime(struct task *t, int clockid, timespec_gp tp)
{
	uint64_t ns;
	int err = clock_read(t, clockid, &ns);

	if (err)
		return err;
	struct timespec ts = ns_to_timespec(ns);
	return guest_store(t, tp, &ts);
}

long sys_clock_getres(struct task *t, int clockid, timespec_gp res)
{
	struct timespec ts = { .tv_nsec = 1 };
	uint64_t ns;
	int err = clock_read(t, clockid, &ns);

	if (err)
		return err;
	if (clockid == CLOCK_REALTIME_COARSE || clockid == CLOCK_MONOTONIC_COARSE)
		ts.tv_nsec = COARSE_RES_NS;
	return gaddr_is_null(res.addr) ? 0 : guest_store(t, res, &ts);
}

long sys_clock_settime(struct task *t, int clockid, timespec_cgp tp)
{
	struct timespec ts;
	uint64_t ns;

	if (clockid != CLOCK_REALTIME)
		return -EINVAL;
	if (guest_load(t, &ts, tp) != 0)
		return -EFAULT;
	return timespec_to_ns(&ts, &ns) ? -EINVAL : -EPERM;
}

long sys_gettimeofday(struct task *t, timeval_gp tv, timezone_gp tz)
{
	const struct timezone utc = { 0 };
	uint64_t ns;
	int err = clock_read(t, CLOCK_REALTIME, &ns);
	struct timeval now = ns_to_timeval(ns);

	if (!err && !gaddr_is_null(tv.addr))
		err = guest_store(t, tv, &now);
	if (!err && !gaddr_is_null(tz.addr))
		err = guest_store(t, tz, &utc);
	return err;
}

long sys_settimeofday(struct task *t, timeval_cgp tv, timezone_cgp tz)
{
	struct timeval new;
	struct timezone zone;

	if (!gaddr_is_null(tv.addr)) {
		if (guest_load(t, &new, tv) != 0)
			return -EFAULT;
		if (new.tv_usec < 0 || new.tv_usec > 1000000)
			return -EINVAL;
	}
	if (!gaddr_is_null(tz.addr) && guest_load(t, &zone, tz) != 0)
		return -EFAULT;
	return -EPERM;
}

long sys_time(struct task *t, i64_gp tloc)
{
	uint64_t ns;
	int err = clock_read(t, CLOCK_REALTIME, &ns);
	int64_t now = (int64_t)(ns / NS_PER_S);

	if (!err && !gaddr_is_null(tloc.addr))
		err = guest_store(t, tloc, &now);
	return err ? err : now;
}

long sys_times(struct task *t, tms_gp buf)
{
	uint64_t user, sys;
	struct group *g = t->group;

	if (!gaddr_is_null(buf.addr)) {
		mutex_lock(&tasks_mu);
		group_times_locked(g, &user, &sys);
		struct tms tms = {
			.tms_utime = (clock_t)(user / NS_PER_TICK),
			.tms_stime = (clock_t)(sys / NS_PER_TICK),
			.tms_cutime = (clock_t)(g->child_utime_ns / NS_PER_TICK),
			.tms_cstime = (clock_t)(g->child_stime_ns / NS_PER_TICK),
		};
		mutex_unlock(&tasks_mu);
		if (guest_store(t, buf, &tms) != 0)
			return -EFAULT;
	}
	return (long)(mono_now_ns() / NS_PER_TICK);
}

static void usage_of_group(struct group *g, struct rusage *ru)
{
	uint64_t user, sys;

	mutex_lock(&tasks_mu);
	group_times_locked(g, &user, &sys);
	ru->ru_maxrss = (long)g->maxrss_kb;
	mutex_unlock(&tasks_mu);
	ru->ru_utime = ns_to_timeval(user);
	ru->ru_stime = ns_to_timeval(sys);
}

static void usage_of_children(struct group *g, struct rusage *ru)
{
	mutex_lock(&tasks_mu);
	ru->ru_utime = ns_to_timeval(g->child_utime_ns);
	ru->ru_stime = ns_to_timeval(g->child_stime_ns);
	ru->ru_maxrss = (long)g->child_maxrss_kb;
	mutex_unlock(&tasks_mu);
}

long sys_getrusage(struct task *t, int who, rusage_gp usage)
{
	struct rusage ru = { 0 };
	uint64_t user, sys;

	switch (who) {
	case RUSAGE_SELF:
		task_sample_memory(t);
		usage_of_group(t->group, &ru);
		break;
	case RUSAGE_CHILDREN:
		usage_of_children(t->group, &ru);
		break;
	case RUSAGE_THREAD:
		task_sample_memory(t);
		usage_of_group(t->group, &ru);
		task_times(t, &user, &sys);
		ru.ru_utime = ns_to_timeval(user);
		ru.ru_stime = ns_to_timeval(sys);
		break;
	default:
		return -EINVAL;
	}
	return guest_store(t, usage, &ru);
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static int sleep_until(struct task *t, deadline_t deadline)
{
	for (;;) {
		sleeper_prepare(&t->sleeper);
		if (mono_now_ns() >= deadline)
			return 0;
		int err = sleeper_sleep(&t->sleeper, deadline);
		if (err == -ETIMEDOUT)
			return 0;
		if (err)
			return err;
	}
}

/* Processor clocks have no timer of their own: looks again when the time can be up at the earliest.
 */
static int sleep_until_cpu(struct task *t, int clockid, uint64_t target)
{
	for (;;) {
		uint64_t now;
		int err = clock_read(t, clockid, &now);
		if (err || now >= target)
			return err;
		uint64_t threads = (uint64_t)MAX(t->group->thread_count, 1);
		err = sleep_until(t, deadline_after_ns(MAX((target - now) / threads, CPU_POLL_NS)));
		if (err)
			return err;
	}
}

static int sleep_on(struct task *t, int clockid, uint64_t deadline)
{
	return clock_is_cpu(clockid) ? sleep_until_cpu(t, clockid, deadline)
				     : sleep_until(t, deadline);
}

/* A relative sleep goes on until its first deadline however often it is interrupted. */
static long sleep_restart(struct task *t)
{
	int clockid = (int)t->restart.words[SLEEP_CLOCK];
	timespec_gp rem = { .addr = { t->restart.words[SLEEP_REM] } };
	uint64_t now;
	int err = sleep_on(t, clockid, t->restart.deadline);

	if (err != -ERESTARTSYS)
		return err;
	if (!gaddr_is_null(rem.addr)) {
		if (clock_read(t, clock_is_cpu(clockid) ? clockid : CLOCK_MONOTONIC, &now) != 0)
			return -EINVAL;
		uint64_t end = t->restart.deadline;
		if (end <= now)
			return 0;
		struct timespec left = ns_to_timespec(end - now);
		if (guest_store(t, rem, &left) != 0)
			return -EFAULT;
	}
	t->restart.fn = sleep_restart;
	return -ERESTART_RESTARTBLOCK;
}

static long sleep_relative(struct task *t, int clockid, uint64_t ns, timespec_gp rem)
{
	uint64_t now;

	if (clock_is_cpu(clockid)) {
		int err = clock_read(t, clockid, &now);
		if (err)
			return err;
		t->restart.deadline = now + ns;
	} else {
		t->restart.deadline = deadline_after_ns(ns);
	}
	t->restart.words[SLEEP_CLOCK] = (uint64_t)clockid;
	t->restart.words[SLEEP_REM] = rem.addr.va;
	return sleep_restart(t);
}

long sys_nanosleep(struct task *t, timespec_cgp req, timespec_gp rem)
{
	struct timespec ts;
	uint64_t ns;

	if (guest_load(t, &ts, req) != 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) != 0)
		return -EINVAL;
	return sleep_relative(t, CLOCK_MONOTONIC, ns, rem);
}

/* Which clocks one can sleep on: kernel/time/posix-timers.c, the .nsleep members. */
static int check_sleep_clock(struct task *t, int clockid)
{
	uint64_t now;

	switch (clockid) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
	case CLOCK_PROCESS_CPUTIME_ID:
		return 0;
	case CLOCK_REALTIME_ALARM:
	case CLOCK_BOOTTIME_ALARM:
		return task_capable(t, CAP_WAKE_ALARM) ? 0 : -EPERM;
	case CLOCK_THREAD_CPUTIME_ID:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
		return -EOPNOTSUPP;
	default:
		return clockid < 0 ? clock_read(t, clockid, &now) : -EINVAL;
	}
}

long sys_clock_nanosleep(struct task *t, int clockid, int flags, timespec_cgp req, timespec_gp rem)
{
	struct timespec ts;
	uint64_t ns;
	int err = check_sleep_clock(t, clockid);

	if (err)
		return err;
	if (guest_load(t, &ts, req) != 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) != 0)
		return -EINVAL;
	if (!(flags & TIMER_ABSTIME))
		return sleep_relative(t, clockid, ns, rem);
	err = sleep_on(t, clockid, clock_is_cpu(clockid) ? ns : clock_deadline(clockid, ns));
	/* The time is absolute, so the call can simply be made again. */
	return err == -ERESTARTSYS ? -ERESTARTNOHAND : err;
}

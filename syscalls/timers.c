/* Interval timers and POSIX timers: setitimer(2), timer_create(2). */
#include <errno.h>
#include <limits.h>
#include <sys/time.h>

#include "sentry/task.h"
#include "sentry/timers.h"
#include "syscalls/handlers.h"

#define NS_PER_S 1000000000ull

static int timeval_to_ns(const struct timeval *tv, uint64_t *out_ns)
{
	if (tv->tv_sec < 0 || tv->tv_usec < 0 || tv->tv_usec >= 1000000)
		return -EINVAL;
	struct timespec ts = { .tv_sec = tv->tv_sec, .tv_nsec = tv->tv_usec * 1000 };
	return timespec_to_ns(&ts, out_ns);
}

static struct itimerval itimerval_of(uint64_t value, uint64_t interval)
{
	/* Rounded up, so that a running timer never reads as 0. */
	return (struct itimerval){ .it_value = ns_to_timeval(value + 999),
				   .it_interval = ns_to_timeval(interval) };
}

long sys_getitimer(struct task *t, int which, itimerval_gp value)
{
	uint64_t left, interval;
	int err = itimer_get(t, which, &left, &interval);

	if (err)
		return err;
	struct itimerval itv = itimerval_of(left, interval);
	return guest_store(t, value, &itv);
}

long sys_setitimer(struct task *t, int which, itimerval_cgp new_value, itimerval_gp old_value)
{
	struct itimerval itv = { 0 };
	uint64_t value, interval, old_left, old_interval;

	/* LINUX: a null new_value stops the timer (and complains in the log). */
	if (!gaddr_is_null(new_value.addr) && guest_load(t, &itv, new_value) != 0)
		return -EFAULT;
	if (timeval_to_ns(&itv.it_value, &value) || timeval_to_ns(&itv.it_interval, &interval))
		return -EINVAL;
	int err = itimer_set(t, which, value, interval, &old_left, &old_interval);
	if (err || gaddr_is_null(old_value.addr))
		return err;
	itv = itimerval_of(old_left, old_interval);
	return guest_store(t, old_value, &itv);
}

long sys_alarm(struct task *t, uint32_t seconds)
{
	uint64_t left, interval;
	int err = itimer_set(t, ITIMER_REAL, (uint64_t)seconds * NS_PER_S, 0, &left, &interval);

	if (err)
		return err;
	/* Rounded to the nearest second, but a running alarm is never reported as 0. */
	uint64_t s = left / NS_PER_S, rest = left % NS_PER_S;
	return (long)((s == 0 && rest > 0) || rest >= NS_PER_S / 2 ? s + 1 : s);
}

long sys_timer_create(struct task *t, int clockid, sigevent_cgp sevp, i32_gp timerid)
{
	struct k_sigevent sev;
	bool given = !gaddr_is_null(sevp.addr);
	int id;

	if (given && guest_load(t, &sev, sevp) != 0)
		return -EFAULT;
	long err = posix_timer_create(t, clockid, given ? &sev : NULL, &id);
	if (err)
		return err;
	int32_t id32 = id;
	if (guest_store(t, timerid, &id32) == 0)
		return 0;
	(void)posix_timer_delete(t, id);
	return -EFAULT;
}

long sys_timer_settime(struct task *t, int timerid, int flags, itimerspec_cgp new_value,
		       itimerspec_gp old_value)
{
	struct k_itimerspec new, old;

	if (gaddr_is_null(new_value.addr))
		return -EINVAL;
	if (guest_load(t, &new, new_value) != 0)
		return -EFAULT;
	int err = posix_timer_settime(t, timerid, flags, &new, &old);
	if (err || gaddr_is_null(old_value.addr))
		return err;
	return guest_store(t, old_value, &old);
}

long sys_timer_gettime(struct task *t, int timerid, itimerspec_gp curr_value)
{
	struct k_itimerspec its;
	int err = posix_timer_gettime(t, timerid, &its);

	return err ? err : guest_store(t, curr_value, &its);
}

long sys_timer_getoverrun(struct task *t, int timerid)
{
	return posix_timer_getoverrun(t, timerid);
}

long sys_timer_delete(struct task *t, int timerid)
{
	return posix_timer_delete(t, timerid);
}

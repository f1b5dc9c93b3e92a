/*
 * timerfd_create(2).
 *
 * An interval timer is not re-armed when it fires but when somebody looks (read, gettime): the
 * missed periods are computed then. An unread timer thus costs nothing, whatever its period.
 */
#include "fs/timerfd.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "platform/base/alloc.h"
#include "platform/base/timer.h"

#define NSEC_PER_SEC 1000000000u
#define TFD_IOC_SET_TICKS                                                                          \
	_IOW('T', 0, uint64_t) /* linux/timerfd.h clashes with the C library's                     \
				*/

struct timerfd {
	struct file file;
	struct mutex mu; /* rank PIPE */
	struct waitq wait;
	struct timer timer;
	int clock;         /* [I] */
	int set_flags;     /* [mu] TFD_* of the last timerfd_set, for fdinfo */
	deadline_t next;   /* [mu] when it fires or last fired; DEADLINE_NEVER: disarmed */
	uint64_t interval; /* [mu] ns; 0: one shot */
	uint64_t ticks;    /* [mu] expirations that nobody has read */
	bool expired;      /* [mu] fired and not re-armed since */
};

static const struct file_ops timerfd_file_ops;

static struct timerfd *to_timerfd(struct file *f)
{
	return container_of(f, struct timerfd, file);
}

bool is_timerfd(const struct file *f)
{
	return f->ops == &timerfd_file_ops;
}

static bool is_valid_time(const struct timespec *ts)
{
	return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < (long)NSEC_PER_SEC;
}

/* Saturates: a time beyond 584 years never comes. */
static uint64_t to_ns(const struct timespec *ts)
{
	if ((uint64_t)ts->tv_sec >= UINT64_MAX / NSEC_PER_SEC - 1)
		return DEADLINE_NEVER - 1;
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

static clockid_t base_clock(int clock)
{
	switch (clock) {
	case CLOCK_REALTIME_ALARM:
		return CLOCK_REALTIME;
	case CLOCK_BOOTTIME_ALARM:
		return CLOCK_BOOTTIME;
	default:
		return clock;
	}
}

/* LINUX: a timer on CLOCK_REALTIME follows later changes of that clock, and TFD_TIMER_CANCEL_ON_SET
 * reports them; the guest cannot set the clock and ours is fixed when the timer is set. */
static deadline_t to_deadline(const struct timerfd *t, const struct timespec *ts, bool absolute)
{
	struct timespec now;
	uint64_t ns = to_ns(ts);

	if (!absolute)
		return MIN(deadline_after_ns(ns), DEADLINE_NEVER - 1);
	if (base_clock(t->clock) == CLOCK_MONOTONIC)
		return ns;
	clock_gettime(base_clock(t->clock), &now);
	uint64_t now_ns = to_ns(&now);
	/* 0 would be taken for "disarm" nowhere, but keep a past time in the past. */
	return ns <= now_ns ? 1 : MIN(deadline_after_ns(ns - now_ns), DEADLINE_NEVER - 1);
}

static void timerfd_fire(struct timer *timer)
{
	struct timerfd *t = timer->arg;

	mutex_lock(&t->mu);
	/* A timerfd_set between expiry and here has moved the time. */
	bool due = t->next != DEADLINE_NEVER && !t->expired && t->next <= mono_now_ns();
	if (due) {
		t->expired = true;
		t->ticks++;
	}
	mutex_unlock(&t->mu);
	if (due)
		waitq_wake(&t->wait, POLLIN);
}

/* Counts the periods that passed since the timer fired, and arms it for the next. */
static void timerfd_catch_up_locked(struct timerfd *t)
{
	if (!t->expired || t->interval == 0)
		return;
	uint64_t now = mono_now_ns();
	uint64_t periods = 1;
	if (now > t->next)
		periods += (now - t->next) / t->interval;
	t->expired = false;
	t->ticks += periods - 1;
	uint64_t step;
	if (__builtin_mul_overflow(periods, t->interval, &step) ||
	    __builtin_add_overflow(t->next, step, &t->next))
		t->next = DEADLINE_NEVER - 1;
	timer_arm(&t->timer, t->next);
}

static void timerfd_get_locked(struct timerfd *t, struct itimerspec *out)
{
	timerfd_catch_up_locked(t);
	uint64_t now = mono_now_ns(), left = 0;
	if (t->next != DEADLINE_NEVER && !t->expired)
		left = t->next > now ? t->next - now : 1;
	out->it_value = to_timespec(left);
	out->it_interval = to_timespec(t->interval);
}

int timerfd_set(struct file *f, int flags, const struct itimerspec *new, struct itimerspec *out_old)
{
	struct itimerspec old;

	if (flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return -EINVAL;
	if (!is_timerfd(f) || !is_valid_time(&new->it_value) || !is_valid_time(&new->it_interval))
		return -EINVAL;
	struct timerfd *t = to_timerfd(f);
	uint64_t value = to_ns(&new->it_value);
	mutex_lock(&t->mu);
	timerfd_get_locked(t, &old);
	t->set_flags = flags;
	t->expired = false;
	t->ticks = 0;
	t->interval = to_ns(&new->it_interval);
	t->next =
		value ? to_deadline(t, &new->it_value, flags & TFD_TIMER_ABSTIME) : DEADLINE_NEVER;
	timer_arm(&t->timer, t->next);
	mutex_unlock(&t->mu);
	if (out_old)
		*out_old = old;
	return 0;
}

int timerfd_get(struct file *f, struct itimerspec *out)
{
	if (!is_timerfd(f))
		return -EINVAL;
	struct timerfd *t = to_timerfd(f);
	mutex_lock(&t->mu);
	timerfd_get_locked(t, out);
	mutex_unlock(&t->mu);
	return 0;
}

static ssize_t timerfd_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct timerfd *t = to_timerfd(f);
	uint64_t ticks;

	if (it->count < sizeof(ticks))
		return -EINVAL;
	mutex_lock(&t->mu);
	while (t->ticks == 0) {
		int err = file_nonblock(f)
				  ? -EAGAIN
				  : waitq_wait_exclusive(&t->wait, &t->mu, POLLIN, DEADLINE_NEVER);
		if (err) {
			mutex_unlock(&t->mu);
			return err;
		}
	}
	timerfd_catch_up_locked(t);
	ticks = t->ticks;
	t->ticks = 0;
	mutex_unlock(&t->mu);
	return iov_copy_to(it, &ticks, sizeof(ticks)) == sizeof(ticks) ? (ssize_t)sizeof(ticks)
								       : -EFAULT;
}

static uint32_t timerfd_poll(struct file *f, struct poll_table *pt)
{
	struct timerfd *t = to_timerfd(f);

	poll_wait(pt, &t->wait);
	mutex_lock(&t->mu);
	uint32_t events = t->ticks ? POLLIN : 0;
	mutex_unlock(&t->mu);
	return events;
}

static long timerfd_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct timerfd *t = to_timerfd(f);
	uint64_t ticks;

	if (cmd != TFD_IOC_SET_TICKS)
		return -ENOTTY;
	int err = umem_read(um, &ticks, arg, sizeof(ticks));
	if (err)
		return err;
	if (ticks == 0)
		return -EINVAL;
	mutex_lock(&t->mu);
	t->ticks = ticks;
	mutex_unlock(&t->mu);
	waitq_wake(&t->wait, POLLIN);
	return 0;
}

static void timerfd_release(struct file *f)
{
	struct timerfd *t = to_timerfd(f);

	timer_cancel_sync(&t->timer);
	waitq_fini(&t->wait);
	mutex_fini(&t->mu);
	mem_free(t);
}

static void timerfd_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:[timerfd]");
}

static void timerfd_show_fdinfo(struct file *f, struct fmt *out)
{
	struct timerfd *t = to_timerfd(f);
	struct itimerspec its;

	mutex_lock(&t->mu);
	timerfd_get_locked(t, &its);
	fmt_printf(out,
		   "clockid: %d\nticks: %" PRIu64 "\nsettime flags: 0%o\n"
		   "it_value: (%lld, %lld)\nit_interval: (%lld, %lld)\n",
		   t->clock, t->ticks, (unsigned)t->set_flags, (long long)its.it_value.tv_sec,
		   (long long)its.it_value.tv_nsec, (long long)its.it_interval.tv_sec,
		   (long long)its.it_interval.tv_nsec);
	mutex_unlock(&t->mu);
}

int timerfd_new(int clock, unsigned flags, const struct cred *c, struct file **out)
{
	struct inode *ino;

	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
		break;
	case CLOCK_REALTIME_ALARM:
	case CLOCK_BOOTTIME_ALARM:
		if (!cred_capable(c, CAP_WAKE_ALARM))
			return -EPERM;
		break;
	default:
		return -EINVAL;
	}
	struct timerfd *t = mem_zalloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	int err = anon_inode_new(0600, c, &ino);
	if (err) {
		mem_free(t);
		return err;
	}
	mutex_init(&t->mu, RANK_PIPE);
	waitq_init(&t->wait);
	timer_init(&t->timer, timerfd_fire, t);
	t->clock = clock;
	t->next = DEADLINE_NEVER;
	file_init(&t->file, &timerfd_file_ops, ino, O_RDWR | (flags & O_NONBLOCK));
	*out = &t->file;
	return 0;
}

static const struct file_ops timerfd_file_ops = {
	.read = timerfd_read,
	.poll = timerfd_poll,
	.ioctl = timerfd_ioctl,
	.release = timerfd_release,
	.describe = timerfd_describe,
	.show_fdinfo = timerfd_show_fdinfo,
};

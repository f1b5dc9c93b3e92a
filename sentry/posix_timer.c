/*
 * POSIX timers: timer_create(2). A timer owns the queue entry of its signal, so that an expiry can
 * never be lost for want of memory; while the entry is queued further expiries count as overruns.
 * The next period is armed when the signal is taken (posix_timer_dequeued_locked), so that a short
 * interval cannot keep the sentry busy.
 *
 * Locks: everything in a timer is [sighand->mu] of its group unless marked. The callback runs on
 * the timer thread and takes tasks_mu and sighand->mu; it looks at the deadline again, since the
 * timer may have been set meanwhile.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/task.h"
#include "sentry/timers.h"

#define CPU_CHECK_MIN_NS 2000000ull
#define IGNORED_MIN_NS 1000000ull /* period of a timer whose signal is ignored, at least */

struct posix_timer {
	struct list link;    /* in group->posix_timers */
	struct group *group; /* [I] borrowed: deletes its timers before it ends */
	struct task *target; /* [I] referenced; NULL: the process */
	int id;              /* [I] */
	int clockid;         /* [I] */
	int notify;          /* [I] SIGEV_* */
	struct timer timer;
	struct sigqueue q;
	bool armed;
	uint64_t due; /* CLOCK_MONOTONIC, or processor time for those clocks */
	uint64_t interval;
	int overrun; /* of the signal taken last */
};

/* Now on the scale of pt->due. tasks_mu held for processor clocks. */
static uint64_t now_of(struct posix_timer *pt, uint64_t user_sys)
{
	return clock_is_cpu(pt->clockid) ? user_sys : mono_now_ns();
}

static uint64_t cpu_now_locked(struct posix_timer *pt) REQUIRES(tasks_mu)
{
	uint64_t user, sys;

	if (!clock_is_cpu(pt->clockid))
		return 0;
	group_times_locked(pt->group, &user, &sys);
	return user + sys;
}

static void arm_locked(struct posix_timer *pt, uint64_t now)
{
	if (!pt->armed || pt->notify == SIGEV_NONE)
		return;
	if (!clock_is_cpu(pt->clockid)) {
		timer_arm(&pt->timer, pt->due);
		return;
	}
	unsigned threads = pt->group->thread_count > 0 ? (unsigned)pt->group->thread_count : 1;
	uint64_t left = pt->due > now ? (pt->due - now) / threads : 0;
	timer_arm(&pt->timer, deadline_after_ns(MAX(left, CPU_CHECK_MIN_NS)));
}

/* Moves due past now; the number of periods beyond the first that went by. */
static uint64_t forward_locked(struct posix_timer *pt, uint64_t now)
{
	uint64_t periods = (now - pt->due) / pt->interval;

	pt->due += (periods + 1) * pt->interval;
	return periods;
}

static void fire(struct timer *timer)
{
	struct posix_timer *pt = timer->arg;
	struct group *g = pt->group;

	mutex_lock(&tasks_mu);
	uint64_t cpu = cpu_now_locked(pt);
	struct sighand *sh = g->leader->sighand;
	mutex_lock(&sh->mu);
	uint64_t now = now_of(pt, cpu);
	bool due = pt->armed && pt->due <= now;
	if (pt->armed && !due)
		arm_locked(pt, now);
	if (due && pt->interval == 0)
		pt->armed = false;
	mutex_unlock(&sh->mu);
	struct task *to = pt->target ? pt->target : g->leader;
	if (due && !signal_send_timer_locked(to, !pt->target, &pt->q)) {
		mutex_lock(&sh->mu);
		if (pt->armed && list_empty(&pt->q.link)) {
			/* Ignored: nobody will take it, so the next period starts now. */
			pt->due = now + MAX(pt->interval, IGNORED_MIN_NS);
			arm_locked(pt, now);
		}
		mutex_unlock(&sh->mu);
	}
	mutex_unlock(&tasks_mu);
}

void posix_timer_dequeued_locked(struct posix_timer *pt, struct k_siginfo *info)
{
	uint64_t missed = 0;

	/* Of processor clocks the time is not known under this lock: the callback finds out. */
	if (pt->armed && pt->interval && !clock_is_cpu(pt->clockid)) {
		uint64_t now = mono_now_ns();
		if (pt->due <= now)
			missed = forward_locked(pt, now);
		arm_locked(pt, now);
	} else if (pt->armed && pt->interval) {
		pt->due += pt->interval;
		arm_locked(pt, pt->due - pt->interval);
	}
	pt->overrun = missed > INT_MAX ? INT_MAX : (int)missed;
	info->timer.overrun = pt->overrun;
}

/* ---- making and finding ---------------------------------------------------------------------- */

static struct posix_timer *find_locked(struct group *g, int id)
{
	list_for_each(pos, &g->posix_timers) {
		struct posix_timer *pt = list_entry(pos, struct posix_timer, link);
		if (pt->id == id)
			return pt;
	}
	return NULL;
}

/* What timer_create may measure. */
static int check_clock(int clockid)
{
	switch (clockid) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
	case CLOCK_PROCESS_CPUTIME_ID:
	case CLOCK_THREAD_CPUTIME_ID:
		return 0;
	case CLOCK_REALTIME_ALARM:
	case CLOCK_BOOTTIME_ALARM:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC_COARSE:
		return -EOPNOTSUPP;
	default:
		return clockid < 0 ? 0 : -EINVAL;
	}
}

/* The thread that a SIGEV_THREAD_ID timer signals, referenced; -EINVAL for another process's. */
static int find_target(struct task *t, const struct k_sigevent *sev, struct task **out)
{
	*out = NULL;
	switch (sev->notify) {
	case SIGEV_NONE:
		return 0;
	case SIGEV_THREAD_ID: {
		struct task *o = task_find(sev->tid);
		if (!o || o->group != t->group) {
			task_put(o);
			return -EINVAL;
		}
		*out = o;
		break;
	}
	case SIGEV_SIGNAL:
	case SIGEV_THREAD:
		break;
	default:
		return -EINVAL;
	}
	if (sev->signo >= 1 && sev->signo <= SIG_COUNT)
		return 0;
	task_put(*out);
	return -EINVAL;
}

static void free_timer(struct posix_timer *pt)
{
	task_put(pt->target);
	mem_free(pt);
}

static void init_timer(struct posix_timer *pt, struct task *t, const struct k_sigevent *sev)
{
	pt->group = t->group;
	pt->notify = sev->notify;
	list_init(&pt->link);
	list_init(&pt->q.link);
	pt->q.timer = pt;
	siginfo_init(&pt->q.info, sev->signo, SI_TIMER);
	pt->q.info.timer.value = sev->value;
	timer_init(&pt->timer, fire, pt);
}

static size_t count_locked(struct group *g)
{
	size_t n = 0;

	list_for_each(pos, &g->posix_timers)
		n++;
	return n;
}

long posix_timer_create(struct task *t, int clockid, const struct k_sigevent *sev, int *out_id)
{
	/* Without an event: SIGALRM with the timer's id as value. */
	struct k_sigevent dflt = { .notify = SIGEV_SIGNAL, .signo = SIGALRM };
	struct group *g = t->group;
	struct task *target;
	uint64_t now;
	int err = check_clock(clockid);

	if (!err && clockid < 0)
		err = clock_read(t, clockid, &now);
	if (!err)
		err = find_target(t, sev ? sev : &dflt, &target);
	if (err)
		return err;
	struct posix_timer *pt = mem_zalloc(sizeof(*pt));
	if (!pt) {
		task_put(target);
		return -EAGAIN;
	}
	pt->clockid = clockid;
	pt->target = target;
	init_timer(pt, t, sev ? sev : &dflt);
	mutex_lock(&t->sighand->mu);
	if (count_locked(g) >= MIN(g->rlim[RLIMIT_SIGPENDING].rlim_cur, SIGQUEUE_MAX)) {
		err = -EAGAIN;
	} else {
		do {
			pt->id = g->next_timer_id;
			g->next_timer_id = g->next_timer_id == INT_MAX ? 0 : g->next_timer_id + 1;
		} while (find_locked(g, pt->id));
		pt->q.info.timer.tid = pt->id;
		if (!sev)
			pt->q.info.timer.value.i = pt->id;
		list_add_tail(&g->posix_timers, &pt->link);
		*out_id = pt->id;
	}
	mutex_unlock(&t->sighand->mu);
	if (err)
		free_timer(pt);
	return err;
}

/* ---- setting and reading --------------------------------------------------------------------- */

/* Takes a queued entry out; the signal stays pending only if another entry of it is queued. */
static void unqueue_locked(struct posix_timer *pt)
{
	struct sigpending *p = pt->target ? &pt->target->pending : &pt->group->pending;
	int sig = pt->q.info.si_signo;

	if (list_empty(&pt->q.link))
		return;
	list_del_init(&pt->q.link);
	list_for_each(pos, &p->queue)
		if (list_entry(pos, struct sigqueue, link)->info.si_signo == sig)
			return;
	p->set &= ~SIG_BIT(sig);
}

static void read_locked(struct posix_timer *pt, uint64_t now, struct k_itimerspec *out)
{
	uint64_t left = 0;

	if (pt->armed && pt->due > now) {
		left = pt->due - now;
	} else if (pt->armed && pt->interval) {
		left = pt->interval - (now - pt->due) % pt->interval;
	} else if (pt->armed && pt->notify != SIGEV_NONE) {
		left = 1; /* expired, the signal is on its way: 0 would mean "off" */
	}
	out->value = ns_to_timespec(left);
	out->interval = ns_to_timespec(pt->interval);
}

/* Now on the timer's own scale, and the timer itself under sighand->mu, or NULL with no lock held.
 */
static struct posix_timer *lock_timer(struct task *t, int id, uint64_t *out_now) NO_LOCK_ANALYSIS
{
	uint64_t user, sys;

	mutex_lock(&tasks_mu);
	group_times_locked(t->group, &user, &sys);
	mutex_unlock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	struct posix_timer *pt = find_locked(t->group, id);
	if (!pt) {
		mutex_unlock(&t->sighand->mu);
		return NULL;
	}
	*out_now = now_of(pt, user + sys);
	return pt;
}

int posix_timer_settime(struct task *t, int id, int flags, const struct k_itimerspec *new,
			struct k_itimerspec *out_old) NO_LOCK_ANALYSIS
{
	uint64_t value, interval, now;
	int err = timespec_to_ns(&new->value, &value);

	if (!err)
		err = timespec_to_ns(&new->interval, &interval);
	if (err)
		return err;
	struct posix_timer *pt = lock_timer(t, id, &now);
	if (!pt)
		return -EINVAL;
	read_locked(pt, now, out_old);
	unqueue_locked(pt);
	pt->armed = value != 0;
	pt->interval = interval;
	pt->overrun = 0;
	if (!(flags & TIMER_ABSTIME))
		pt->due = now + value;
	else if (clock_is_cpu(pt->clockid))
		pt->due = value;
	else
		pt->due = clock_to_mono(pt->clockid, value);
	if (pt->armed)
		arm_locked(pt, now);
	else
		timer_disarm(&pt->timer);
	mutex_unlock(&t->sighand->mu);
	return 0;
}

int posix_timer_gettime(struct task *t, int id, struct k_itimerspec *out) NO_LOCK_ANALYSIS
{
	uint64_t now;
	struct posix_timer *pt = lock_timer(t, id, &now);

	if (!pt)
		return -EINVAL;
	read_locked(pt, now, out);
	mutex_unlock(&t->sighand->mu);
	return 0;
}

int posix_timer_getoverrun(struct task *t, int id)
{
	mutex_lock(&t->sighand->mu);
	struct posix_timer *pt = find_locked(t->group, id);
	int ret = pt ? pt->overrun : -EINVAL;
	mutex_unlock(&t->sighand->mu);
	return ret;
}

static void delete_unlinked(struct sighand *sh, struct posix_timer *pt)
{
	timer_cancel_sync(&pt->timer);
	/* A callback may have queued the signal until now. */
	mutex_lock(&sh->mu);
	unqueue_locked(pt);
	mutex_unlock(&sh->mu);
	free_timer(pt);
}

int posix_timer_delete(struct task *t, int id)
{
	mutex_lock(&t->sighand->mu);
	struct posix_timer *pt = find_locked(t->group, id);
	if (pt) {
		list_del_init(&pt->link);
		pt->armed = false;
	}
	mutex_unlock(&t->sighand->mu);
	if (!pt)
		return -EINVAL;
	delete_unlinked(t->sighand, pt);
	return 0;
}

void posix_timers_delete_all(struct group *g)
{
	struct sighand *sh = current_task()->sighand;

	for (;;) {
		struct posix_timer *pt = NULL;
		mutex_lock(&sh->mu);
		if (!list_empty(&g->posix_timers)) {
			pt = list_first(&g->posix_timers, struct posix_timer, link);
			list_del_init(&pt->link);
			pt->armed = false;
		}
		mutex_unlock(&sh->mu);
		if (!pt)
			return;
		delete_unlinked(sh, pt);
	}
}

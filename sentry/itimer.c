/*
 * Interval timers: setitimer(2). ITIMER_REAL is a host timer; its next period is armed when SIGALRM
 * is taken, so that a short interval cannot keep the sentry busy. ITIMER_VIRTUAL, ITIMER_PROF and
 * RLIMIT_CPU compare processor time: while one is set, cpu_check fires when the first of them can
 * have expired at the earliest.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "sentry/task.h"
#include "sentry/timers.h"

#define NS_PER_S 1000000000ull
#define CPU_CHECK_MIN_NS 2000000ull /* lower bound between two looks at processor times */

static void real_fire(struct timer *timer)
{
	struct group *g = timer->arg;
	struct k_siginfo info;

	siginfo_init(&info, SIGALRM, SI_KERNEL);
	mutex_lock(&tasks_mu);
	struct sighand *sh = g->leader->sighand;
	mutex_lock(&sh->mu);
	bool due = g->itimers.real_value != 0 && g->itimers.real_value <= mono_now_ns();
	if (due && g->itimers.real_interval == 0)
		g->itimers.real_value = 0;
	mutex_unlock(&sh->mu);
	if (due)
		signal_send_group_locked(g, &info);
	mutex_unlock(&tasks_mu);
}

void itimer_real_dequeued_locked(struct group *g)
{
	struct itimers *it = &g->itimers;
	uint64_t now = mono_now_ns();

	if (it->real_interval == 0 || it->real_value == 0 || it->real_value > now)
		return;
	it->real_value += ((now - it->real_value) / it->real_interval + 1) * it->real_interval;
	timer_arm(&it->real, it->real_value);
}

/* ---- processor time -------------------------------------------------------------------------- */

/* One virtual timer: true when it has expired; moves it on. */
static bool cpu_timer_expired(uint64_t *value, uint64_t interval, uint64_t now)
{
	if (*value == 0 || now < *value)
		return false;
	*value = interval ? *value + ((now - *value) / interval + 1) * interval : 0;
	return true;
}

static uint64_t earlier(uint64_t left, uint64_t value, uint64_t now)
{
	if (value == 0)
		return left;
	return MIN(left, value > now ? value - now : 0);
}

struct cpu_verdict {
	bool virt, prof, soft, hard;
	uint64_t left; /* processor time until the next event at the earliest; UINT64_MAX none */
};

static void judge_locked(struct group *g, uint64_t user, uint64_t sys, struct cpu_verdict *v)
{
	struct itimers *it = &g->itimers;
	const struct rlimit *rl = &g->rlim[RLIMIT_CPU];
	uint64_t sum = user + sys;

	v->left = UINT64_MAX;
	v->virt = cpu_timer_expired(&it->virt_value, it->virt_interval, user);
	v->prof = cpu_timer_expired(&it->prof_value, it->prof_interval, sum);
	v->left = earlier(v->left, it->virt_value, user);
	v->left = earlier(v->left, it->prof_value, sum);
	if (rl->rlim_max < INT64_MAX / NS_PER_S) {
		v->hard = sum >= rl->rlim_max * NS_PER_S;
		v->left = earlier(v->left, rl->rlim_max * NS_PER_S, sum);
	}
	if (rl->rlim_cur < INT64_MAX / NS_PER_S) {
		/* SIGXCPU at the limit and again each second, as the kernel moves its own copy. */
		if (it->xcpu_next < rl->rlim_cur * NS_PER_S)
			it->xcpu_next = rl->rlim_cur * NS_PER_S;
		v->soft = sum >= it->xcpu_next && sum > 0;
		if (v->soft)
			it->xcpu_next = sum + NS_PER_S;
		v->left = earlier(v->left, it->xcpu_next, sum);
	}
}

static void send_one_locked(struct group *g, int sig) REQUIRES(tasks_mu)
{
	struct k_siginfo info;

	siginfo_init(&info, sig, SI_KERNEL);
	signal_send_group_locked(g, &info);
}

static void cpu_check_fire(struct timer *timer)
{
	struct group *g = timer->arg;
	struct cpu_verdict v = { 0 };
	uint64_t user, sys;

	mutex_lock(&tasks_mu);
	group_times_locked(g, &user, &sys);
	struct sighand *sh = g->leader->sighand;
	mutex_lock(&sh->mu);
	judge_locked(g, user, sys, &v);
	unsigned threads = g->thread_count > 0 ? (unsigned)g->thread_count : 1;
	if (v.left != UINT64_MAX && !v.hard && !g->exiting)
		timer_arm(&g->itimers.cpu_check,
			  deadline_after_ns(MAX(v.left / threads, CPU_CHECK_MIN_NS)));
	mutex_unlock(&sh->mu);
	if (v.virt)
		send_one_locked(g, SIGVTALRM);
	if (v.prof)
		send_one_locked(g, SIGPROF);
	if (v.hard)
		send_one_locked(g, SIGKILL);
	else if (v.soft)
		send_one_locked(g, SIGXCPU);
	mutex_unlock(&tasks_mu);
}

static void init_once_locked(struct group *g)
{
	if (g->itimers.real.fn)
		return;
	timer_init(&g->itimers.real, real_fire, g);
	timer_init(&g->itimers.cpu_check, cpu_check_fire, g);
}

void itimer_watch_cpu(struct group *g)
{
	mutex_lock(&tasks_mu);
	struct sighand *sh = g->leader->sighand;
	mutex_lock(&sh->mu);
	init_once_locked(g);
	const struct itimers *it = &g->itimers;
	if ((it->virt_value || it->prof_value || g->rlim[RLIMIT_CPU].rlim_cur != RLIM_INFINITY ||
	     g->rlim[RLIMIT_CPU].rlim_max != RLIM_INFINITY) &&
	    !g->exiting)
		timer_arm(&g->itimers.cpu_check, mono_now_ns());
	mutex_unlock(&sh->mu);
	mutex_unlock(&tasks_mu);
}

void itimers_cancel(struct group *g)
{
	if (!g->itimers.real.fn)
		return;
	timer_cancel_sync(&g->itimers.real);
	timer_cancel_sync(&g->itimers.cpu_check);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static uint64_t left_until(uint64_t value, uint64_t now)
{
	if (value == 0)
		return 0;
	/* Expired but not yet taken reads as the shortest time, since 0 means "off". */
	return value > now ? value - now : 1000;
}

static int get_locked(struct group *g, int which, uint64_t user, uint64_t sys, uint64_t *out_value,
		      uint64_t *out_interval)
{
	const struct itimers *it = &g->itimers;

	switch (which) {
	case ITIMER_REAL:
		*out_value = left_until(it->real_value, mono_now_ns());
		*out_interval = it->real_interval;
		return 0;
	case ITIMER_VIRTUAL:
		*out_value = left_until(it->virt_value, user);
		*out_interval = it->virt_interval;
		return 0;
	case ITIMER_PROF:
		*out_value = left_until(it->prof_value, user + sys);
		*out_interval = it->prof_interval;
		return 0;
	default:
		return -EINVAL;
	}
}

static void group_cpu(struct group *g, int which, uint64_t *out_user, uint64_t *out_sys)
{
	*out_user = *out_sys = 0;
	if (which == ITIMER_REAL)
		return;
	mutex_lock(&tasks_mu);
	group_times_locked(g, out_user, out_sys);
	mutex_unlock(&tasks_mu);
}

int itimer_get(struct task *t, int which, uint64_t *out_value, uint64_t *out_interval)
{
	uint64_t user, sys;

	group_cpu(t->group, which, &user, &sys);
	mutex_lock(&t->sighand->mu);
	int err = get_locked(t->group, which, user, sys, out_value, out_interval);
	mutex_unlock(&t->sighand->mu);
	return err;
}

int itimer_set(struct task *t, int which, uint64_t value, uint64_t interval, uint64_t *out_value,
	       uint64_t *out_interval)
{
	struct group *g = t->group;
	struct itimers *it = &g->itimers;
	uint64_t user, sys;

	group_cpu(g, which, &user, &sys);
	mutex_lock(&t->sighand->mu);
	init_once_locked(g);
	int err = get_locked(g, which, user, sys, out_value, out_interval);
	if (!err && which == ITIMER_REAL) {
		it->real_value = value ? deadline_after_ns(value) : 0;
		it->real_interval = interval;
		timer_arm(&it->real, value ? it->real_value : DEADLINE_NEVER);
	} else if (!err && which == ITIMER_VIRTUAL) {
		it->virt_value = value ? user + value : 0;
		it->virt_interval = interval;
	} else if (!err) {
		it->prof_value = value ? user + sys + value : 0;
		it->prof_interval = interval;
	}
	mutex_unlock(&t->sighand->mu);
	if (!err && which != ITIMER_REAL)
		itimer_watch_cpu(g);
	return err;
}

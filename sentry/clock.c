/*
 * Clocks as guests see them: the host's own, and processor-time clocks of guest threads and
 * processes, which cputime.c measures.
 */
#include <errno.h>
#include <limits.h>
#include <time.h>

#include "sentry/task.h"
#include "sentry/timers.h"

#define NS_PER_S 1000000000ull
#define CLOCK_ID_MAX 12

/* Dynamic clock ids (include/linux/posix-timers_types.h): ~pid << 3 | thread << 2 | kind. */
#define CPU_KIND(id) ((id)&3)
#define CPU_KIND_VIRT 1
#define CPU_KIND_FD 3
#define CPU_IS_THREAD(id) ((id)&4)

struct timespec ns_to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

struct timeval ns_to_timeval(uint64_t ns)
{
	return (struct timeval){ .tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000) };
}

int timespec_to_ns(const struct timespec *ts, uint64_t *out_ns)
{
	if (ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (long)NS_PER_S)
		return -EINVAL;
	if ((uint64_t)ts->tv_sec >= (uint64_t)INT64_MAX / NS_PER_S)
		*out_ns = INT64_MAX;
	else
		*out_ns = (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
	return 0;
}

bool clock_is_cpu(int clockid)
{
	return clockid < 0 || clockid == CLOCK_PROCESS_CPUTIME_ID ||
	       clockid == CLOCK_THREAD_CPUTIME_ID;
}

static uint64_t cpu_sum(int clockid, uint64_t user, uint64_t sys)
{
	return clockid < 0 && CPU_KIND(clockid) == CPU_KIND_VIRT ? user : user + sys;
}

static int read_thread_clock(struct task *t, int clockid, int tid, uint64_t *out_ns)
{
	uint64_t user, sys;
	struct task *o = tid == 0 ? task_get(t) : task_find(tid);

	if (!o)
		return -EINVAL;
	int err = o->group == t->group ? 0 : -EINVAL;
	if (!err) {
		task_times(o, &user, &sys);
		*out_ns = cpu_sum(clockid, user, sys);
	}
	task_put(o);
	return err;
}

static int read_process_clock(struct task *t, int clockid, int tgid, uint64_t *out_ns)
{
	uint64_t user, sys;

	mutex_lock(&tasks_mu);
	struct group *g = tgid == 0 || tgid == t->tid ? t->group : group_find_locked(tgid);
	if (g) {
		group_times_locked(g, &user, &sys);
		*out_ns = cpu_sum(clockid, user, sys);
	}
	mutex_unlock(&tasks_mu);
	return g ? 0 : -EINVAL;
}

static int read_dynamic(struct task *t, int clockid, uint64_t *out_ns)
{
	int pid = ~(clockid >> 3);

	if (CPU_KIND(clockid) == CPU_KIND_FD || pid < 0)
		return -EINVAL;
	return CPU_IS_THREAD(clockid) ? read_thread_clock(t, clockid, pid, out_ns)
				      : read_process_clock(t, clockid, pid, out_ns);
}

int clock_read(struct task *t, int clockid, uint64_t *out_ns)
{
	struct timespec ts;

	if (clockid < 0)
		return read_dynamic(t, clockid, out_ns);
	if (clockid == CLOCK_PROCESS_CPUTIME_ID)
		return read_process_clock(t, clockid, 0, out_ns);
	if (clockid == CLOCK_THREAD_CPUTIME_ID)
		return read_thread_clock(t, clockid, 0, out_ns);
	/* The alarm clocks read as the clocks that they wake on. */
	if (clockid == CLOCK_REALTIME_ALARM)
		clockid = CLOCK_REALTIME;
	else if (clockid == CLOCK_BOOTTIME_ALARM)
		clockid = CLOCK_BOOTTIME;
	if (clockid >= CLOCK_ID_MAX || clock_gettime(clockid, &ts) != 0)
		return -EINVAL;
	*out_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return 0;
}

uint64_t clock_to_mono(int clockid, uint64_t abs_ns)
{
	uint64_t now = mono_now_ns(), clock_now;

	if (clockid == CLOCK_MONOTONIC || clock_read(current_task(), clockid, &clock_now) != 0 ||
	    abs_ns > clock_now)
		return clock_deadline(clockid, abs_ns);
	return clock_now - abs_ns < now ? now - (clock_now - abs_ns) : 0;
}

deadline_t clock_deadline(int clockid, uint64_t abs_ns)
{
	uint64_t now = mono_now_ns(), clock_now;

	if (clockid == CLOCK_MONOTONIC)
		return abs_ns >= INT64_MAX ? DEADLINE_NEVER : abs_ns;
	if (clock_read(current_task(), clockid, &clock_now) != 0 || abs_ns <= clock_now)
		return now;
	uint64_t delta = abs_ns - clock_now;
	return delta >= INT64_MAX ? DEADLINE_NEVER : now + delta;
}

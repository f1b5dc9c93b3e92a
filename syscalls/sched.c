/*
 * Scheduling calls: sched(7), nice, affinity, I/O priority. The host schedules; what a guest asks
 * for is checked and remembered, so that it reads back what it set.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "fs/cred.h"
#include "platform/host/host.h"
#include "sentry/resources.h"
#include "sentry/task.h"
#include "sentry/timers.h"
#include "syscalls/handlers.h"

#define RT_PRIO_MAX 99
#define K_SCHED_RESET_ON_FORK 0x40000000
#define K_SCHED_DEADLINE 6
#define DL_RUNTIME_MIN 1024      /* 1 << DL_SCALE */
#define RR_INTERVAL_NS 100000000 /* sched_rr_timeslice_ms */
#define FAIR_INTERVAL_NS 3000000 /* base_slice_ns on two CPUs */
#define CPU_BITS 1024
#define NICE_WIDTH 40

#define SCHED_ATTR_SIZE_VER0 48
#define SCHED_FLAG_RESET_ON_FORK 1ull
#define SCHED_FLAG_KEEP_POLICY 8ull
#define SCHED_FLAG_KEEP_PARAMS 0x10ull
#define SCHED_FLAGS_KNOWN 0x7full

struct k_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};
_Static_assert(sizeof(struct k_sched_attr) == 56, "sched_attr ABI");

/* The task that pid names, referenced; 0 is the caller. */
static struct task *target(struct task *t, int pid)
{
	return pid == 0 ? task_get(t) : task_find(pid);
}

static bool is_rt(int policy)
{
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* May t change the scheduling of o? Same user or CAP_SYS_NICE. */
static bool may_change(struct task *t, struct task *o)
{
	mutex_lock(&o->mu);
	uint32_t uid = o->cred->uid, euid = o->cred->euid;
	mutex_unlock(&o->mu);
	return t->cred->euid == uid || t->cred->euid == euid || task_capable(t, CAP_SYS_NICE);
}

long sys_sched_yield(struct task *t UNUSED)
{
	sched_yield();
	return 0;
}

static int check_policy(int policy, int prio)
{
	switch (policy) {
	case SCHED_FIFO:
	case SCHED_RR:
		return prio >= 1 && prio <= RT_PRIO_MAX ? 0 : -EINVAL;
	case SCHED_OTHER:
	case SCHED_BATCH:
	case SCHED_IDLE:
		return prio == 0 ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int set_policy(struct task *t, struct task *o, int policy, int prio)
{
	int err = check_policy(policy & ~K_SCHED_RESET_ON_FORK, prio);

	if (err)
		return err;
	if (!may_change(t, o))
		return -EPERM;
	if (is_rt(policy & ~K_SCHED_RESET_ON_FORK) && !task_capable(t, CAP_SYS_NICE) &&
	    (uint64_t)prio > task_rlimit(t, RLIMIT_RTPRIO))
		return -EPERM;
	o->sched_policy = policy;
	o->sched_prio = prio;
	return 0;
}

static long set_scheduler(struct task *t, int pid, int policy, bool keep_policy, buf_cgp param)
{
	int32_t prio;

	if (pid < 0 || gaddr_is_null(param.addr) || (!keep_policy && policy < 0))
		return -EINVAL;
	if (guest_read(t, &prio, param.addr, sizeof(prio)) != 0)
		return -EFAULT;
	struct task *o = target(t, pid);
	if (!o)
		return -ESRCH;
	int err = set_policy(t, o, keep_policy ? o->sched_policy : policy, prio);
	task_put(o);
	return err;
}

long sys_sched_setscheduler(struct task *t, int pid, int policy, buf_cgp param)
{
	return set_scheduler(t, pid, policy, false, param);
}

long sys_sched_setparam(struct task *t, int pid, buf_cgp param)
{
	return set_scheduler(t, pid, 0, true, param);
}

long sys_sched_getscheduler(struct task *t, int pid)
{
	struct task *o = pid < 0 ? NULL : target(t, pid);

	if (!o)
		return pid < 0 ? -EINVAL : -ESRCH;
	int policy = o->sched_policy;
	task_put(o);
	return policy;
}

long sys_sched_getparam(struct task *t, int pid, buf_gp param)
{
	if (pid < 0 || gaddr_is_null(param.addr))
		return -EINVAL;
	struct task *o = target(t, pid);
	if (!o)
		return -ESRCH;
	int32_t prio = o->sched_prio;
	task_put(o);
	return guest_write(t, param.addr, &prio, sizeof(prio));
}

long sys_sched_get_priority_max(struct task *t UNUSED, int policy)
{
	if (is_rt(policy))
		return RT_PRIO_MAX;
	return policy == K_SCHED_DEADLINE || check_policy(policy, 0) == 0 ? 0 : -EINVAL;
}

long sys_sched_get_priority_min(struct task *t UNUSED, int policy)
{
	if (is_rt(policy))
		return 1;
	return policy == K_SCHED_DEADLINE || check_policy(policy, 0) == 0 ? 0 : -EINVAL;
}

long sys_sched_rr_get_interval(struct task *t, int pid, timespec_gp interval)
{
	if (pid < 0)
		return -EINVAL;
	struct task *o = target(t, pid);
	if (!o)
		return -ESRCH;
	int policy = o->sched_policy & ~K_SCHED_RESET_ON_FORK;
	task_put(o);
	struct timespec ts = ns_to_timespec(policy == SCHED_RR     ? RR_INTERVAL_NS
					    : policy == SCHED_FIFO ? 0
								   : FAIR_INTERVAL_NS);
	return guest_store(t, interval, &ts);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* -E2BIG tells the guest the size we know, by writing it into the structure. */
static int load_attr(struct task *t, buf_cgp attr, struct k_sched_attr *a)
{
	const uint32_t known = sizeof(*a);
	uint32_t size;

	if (guest_read(t, &size, attr.addr, sizeof(size)) != 0)
		return -EFAULT;
	if (size == 0)
		size = SCHED_ATTR_SIZE_VER0;
	int err = size < SCHED_ATTR_SIZE_VER0 || size > PAGE_SIZE
			  ? -E2BIG
			  : guest_load_ext(t, a, sizeof(*a), attr, size);
	if (err == -E2BIG && guest_write(t, attr.addr, &known, sizeof(known)) != 0)
		return -EFAULT;
	return err;
}

/* kernel/sched/deadline.c __checkparam_dl; times in ns. */
static int set_deadline(struct task *t, struct task *o, const struct k_sched_attr *a)
{
	uint64_t period = a->period ? a->period : a->deadline;

	if (!a->deadline || a->runtime < DL_RUNTIME_MIN || ((a->deadline | period) >> 63) ||
	    period < a->deadline || a->deadline < a->runtime || a->priority)
		return -EINVAL;
	if (!task_capable(t, CAP_SYS_NICE))
		return -EPERM;
	o->sched_policy = K_SCHED_DEADLINE |
			  (a->flags & SCHED_FLAG_RESET_ON_FORK ? K_SCHED_RESET_ON_FORK : 0);
	o->sched_prio = 0;
	o->dl_runtime = a->runtime;
	o->dl_deadline = a->deadline;
	o->dl_period = period;
	return 0;
}

static int set_attr(struct task *t, struct task *o, const struct k_sched_attr *a)
{
	int policy = a->flags & SCHED_FLAG_KEEP_POLICY ? o->sched_policy & ~K_SCHED_RESET_ON_FORK
						       : (int)a->policy;

	if (a->flags & SCHED_FLAG_KEEP_PARAMS)
		return may_change(t, o) ? 0 : -EPERM;
	if (policy == K_SCHED_DEADLINE)
		return set_deadline(t, o, a);
	int err = set_policy(
		t, o, policy | (a->flags & SCHED_FLAG_RESET_ON_FORK ? K_SCHED_RESET_ON_FORK : 0),
		(int)a->priority);
	if (!err && !is_rt(policy))
		o->group->nice = a->nice < -20 ? -20 : MIN(a->nice, 19);
	return err;
}

long sys_sched_setattr(struct task *t, int pid, buf_cgp attr, uint32_t flags)
{
	struct k_sched_attr a;

	if (pid < 0 || gaddr_is_null(attr.addr) || flags)
		return -EINVAL;
	int err = load_attr(t, attr, &a);
	if (err)
		return err;
	if ((int)a.policy < 0 || (a.flags & ~SCHED_FLAGS_KNOWN))
		return -EINVAL;
	struct task *o = target(t, pid);
	if (!o)
		return -ESRCH;
	err = set_attr(t, o, &a);
	task_put(o);
	return err;
}

long sys_sched_getattr(struct task *t, int pid, buf_gp attr, uint32_t size, uint32_t flags)
{
	if (pid < 0 || gaddr_is_null(attr.addr) || flags || size > PAGE_SIZE ||
	    size < SCHED_ATTR_SIZE_VER0)
		return -EINVAL;
	struct task *o = target(t, pid);
	if (!o)
		return -ESRCH;
	struct k_sched_attr a = {
		.size = MIN(size, (uint32_t)sizeof(a)),
		.policy = (uint32_t)(o->sched_policy & ~K_SCHED_RESET_ON_FORK),
		.flags = o->sched_policy & K_SCHED_RESET_ON_FORK ? SCHED_FLAG_RESET_ON_FORK : 0,
		.util_max = 1024,
	};
	if (is_rt((int)a.policy)) {
		a.priority = (uint32_t)o->sched_prio;
	} else if (a.policy == K_SCHED_DEADLINE) {
		a.runtime = o->dl_runtime;
		a.deadline = o->dl_deadline;
		a.period = o->dl_period;
	} else {
		a.nice = o->group->nice;
	}
	task_put(o);
	return guest_write(t, attr.addr, &a, a.size);
}

/* ---- processors ------------------------------------------------------------------------------ */

/* Bytes of a mask in whole words up to the highest possible CPU. */
static size_t mask_size(const uint64_t mask[16])
{
	size_t words = CPU_BITS / 64;

	while (words > 1 && mask[words - 1] == 0)
		words--;
	return words * sizeof(uint64_t);
}

long sys_sched_getaffinity(struct task *t, int pid, uint32_t len, buf_gp mask)
{
	uint64_t possible[16];

	resources_cpu_mask(possible);
	size_t size = mask_size(possible);
	if (len % sizeof(uint64_t) != 0 || len < size)
		return -EINVAL;
	struct task *o = pid < 0 ? NULL : target(t, pid);
	if (!o)
		return -ESRCH;
	mutex_lock(&tasks_mu);
	if (o->cpumask_set)
		memcpy(possible, o->cpumask, sizeof(possible));
	mutex_unlock(&tasks_mu);
	task_put(o);
	return guest_write(t, mask.addr, possible, size) ? -EFAULT : (long)size;
}

long sys_sched_setaffinity(struct task *t, int pid, uint32_t len, buf_cgp mask)
{
	uint64_t possible[16], want[16] = { 0 }, any = 0;
	int err = 0;

	resources_cpu_mask(possible);
	if (guest_read(t, want, mask.addr, MIN(len, sizeof(want))) != 0)
		return -EFAULT;
	struct task *o = pid < 0 ? NULL : target(t, pid);
	if (!o)
		return -ESRCH;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		any |= want[i] &= possible[i];
	if (!may_change(t, o)) {
		err = -EPERM;
	} else if (!any) {
		err = -EINVAL;
	} else {
		mutex_lock(&tasks_mu);
		memcpy(o->cpumask, want, sizeof(want));
		o->cpumask_set = true;
		mutex_unlock(&tasks_mu);
	}
	task_put(o);
	return err;
}

static bool mask_has(const uint64_t mask[16], uint32_t cpu)
{
	return cpu < 16 * 64 && (mask[cpu / 64] >> (cpu % 64) & 1);
}

/* The mask is not empty. */
static uint32_t first_of_mask(const uint64_t mask[16])
{
	uint32_t cpu = 0;

	while (cpu + 1 < 16 * 64 && !mask_has(mask, cpu))
		cpu++;
	return cpu;
}

long sys_getcpu(struct task *t, u32_gp cpu, u32_gp node, struct gaddr unused UNUSED)
{
	int now = sched_getcpu();
	uint32_t id = now < 0 ? 0 : (uint32_t)now, zero = 0;

	/* The host schedules as it likes; what the guest hears must agree with what it asked for.
	 */
	mutex_lock(&tasks_mu);
	if (t->cpumask_set && !mask_has(t->cpumask, id))
		id = first_of_mask(t->cpumask);
	mutex_unlock(&tasks_mu);
	if (!gaddr_is_null(cpu.addr) && guest_store(t, cpu, &id) != 0)
		return -EFAULT;
	return gaddr_is_null(node.addr) ? 0 : guest_store(t, node, &zero);
}

/* ---- nice and I/O priority ------------------------------------------------------------------- */

/* Calls fn for each process that (which, who) names: `which` counts as for getpriority(2). -ESRCH
 * for none; the result is that of the last call, as in Linux. */
static int for_processes(struct task *t, int which, int who,
			 int (*fn)(struct task *t, struct group *g, void *arg), void *arg)
{
	int ret = -ESRCH;

	mutex_lock(&tasks_mu);
	struct task *one = which == PRIO_PROCESS && who ? task_find_locked(who) : t;
	uint32_t uid = who ? (uint32_t)who : t->cred->uid;
	int pgrp = who ? who : t->group->pgrp;
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		bool match = (which == PRIO_PROCESS && one && one->group == g) ||
			     (which == PRIO_PGRP && g->pgrp == pgrp) ||
			     (which == PRIO_USER && g->leader->cred->uid == uid && !g->zombie);
		if (match)
			ret = fn(t, g, arg);
	}
	mutex_unlock(&tasks_mu);
	return ret;
}

static int max_nice(struct task *t UNUSED, struct group *g, void *arg)
{
	int *best = arg;

	/* The call's result counts down from 40, so that it is never negative. */
	*best = MAX(*best, 20 - g->nice);
	return 0;
}

long sys_getpriority(struct task *t, int which, int who)
{
	int best = 0;

	if (which < PRIO_PROCESS || which > PRIO_USER)
		return -EINVAL;
	int err = for_processes(t, which, who, max_nice, &best);
	return err ? err : best;
}

static int set_nice(struct task *t, struct group *g, void *arg)
{
	int nice = *(int *)arg;
	const struct cred *o = g->leader->cred;

	if (t->cred->euid != o->uid && t->cred->euid != o->euid && !task_capable(t, CAP_SYS_NICE))
		return -EPERM;
	/* RLIMIT_NICE 1..40 stands for nice 19..-20. */
	if (nice < g->nice && (uint64_t)(20 - nice) > g->rlim[RLIMIT_NICE].rlim_cur &&
	    !task_capable(t, CAP_SYS_NICE))
		return -EACCES;
	g->nice = nice;
	return 0;
}

long sys_setpriority(struct task *t, int which, int who, int prio)
{
	int nice = prio < -20 ? -20 : MIN(prio, 19);

	if (which < PRIO_PROCESS || which > PRIO_USER)
		return -EINVAL;
	return for_processes(t, which, who, set_nice, &nice);
}

#define IOPRIO_CLASS(v) ((v) >> 13)
#define IOPRIO_LEVEL(v) ((v)&7)
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_NONE 0
#define IOPRIO_CLASS_RT 1
#define IOPRIO_CLASS_BE 2
#define IOPRIO_CLASS_IDLE 3
#define IOPRIO_DEFAULT (IOPRIO_CLASS_BE << 13 | 4)

static int set_ioprio(struct task *t, struct group *g, void *arg)
{
	const struct cred *o = g->leader->cred;

	if (t->cred->euid != o->uid && t->cred->uid != o->uid && !task_capable(t, CAP_SYS_NICE))
		return -EPERM;
	list_for_each(pos, &g->threads)
		list_entry(pos, struct task, group_link)->ioprio = *(int *)arg;
	return 0;
}

struct best_ioprio {
	int value;
	bool alone; /* asked about one process: what was set, also when that is nothing */
	bool found;
};

static int best_ioprio(struct task *t UNUSED, struct group *g, void *arg)
{
	struct best_ioprio *best = arg;
	int v = g->leader->ioprio || best->alone ? g->leader->ioprio : IOPRIO_DEFAULT;

	best->value = best->found ? MIN(best->value, v) : v;
	best->found = true;
	return 0;
}

static int check_ioprio(struct task *t, int value)
{
	switch (IOPRIO_CLASS(value)) {
	case IOPRIO_CLASS_RT:
		return task_capable(t, CAP_SYS_NICE) || task_capable(t, CAP_SYS_ADMIN) ? 0 : -EPERM;
	case IOPRIO_CLASS_BE:
	case IOPRIO_CLASS_IDLE:
		return 0;
	case IOPRIO_CLASS_NONE:
		return IOPRIO_LEVEL(value) ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/* ioprio's `which` counts from 1, otherwise as getpriority's. */
static int for_ioprio(struct task *t, int which, int who,
		      int (*fn)(struct task *, struct group *, void *), void *arg)
{
	return which < 1 || which > 3 ? -EINVAL : for_processes(t, which - 1, who, fn, arg);
}

long sys_ioprio_set(struct task *t, int which, int who, int ioprio)
{
	int err = check_ioprio(t, ioprio);

	return err ? err : for_ioprio(t, which, who, set_ioprio, &ioprio);
}

long sys_ioprio_get(struct task *t, int which, int who)
{
	struct best_ioprio best = { .alone = which == IOPRIO_WHO_PROCESS };
	int err = for_ioprio(t, which, who, best_ioprio, &best);

	return err ? err : best.value;
}

/* ---- barriers -------------------------------------------------------------------------------- */

#define MB_QUERY 0
#define MB_GLOBAL 1
#define MB_GLOBAL_EXPEDITED 2
#define MB_REGISTER_GLOBAL_EXPEDITED 4
#define MB_PRIVATE_EXPEDITED 8
#define MB_REGISTER_PRIVATE_EXPEDITED 16
#define MB_GET_REGISTRATIONS 512
#define MB_SUPPORTED                                                                               \
	(MB_GLOBAL | MB_GLOBAL_EXPEDITED | MB_REGISTER_GLOBAL_EXPEDITED | MB_PRIVATE_EXPEDITED |   \
	 MB_REGISTER_PRIVATE_EXPEDITED | MB_GET_REGISTRATIONS)

/* Threads of a guest run in other host processes, which only the host's system-wide barrier
 * reaches. */
long sys_membarrier(struct task *t, int cmd, uint32_t flags, int cpu_id UNUSED)
{
	struct mm *mm = t->mm;

	if (flags)
		return -EINVAL;
	switch (cmd) {
	case MB_QUERY:
		return MB_SUPPORTED;
	case MB_PRIVATE_EXPEDITED:
		if (!(mm->membarrier_state & MB_REGISTER_PRIVATE_EXPEDITED))
			return -EPERM;
		return host_membarrier();
	case MB_GLOBAL:
	case MB_GLOBAL_EXPEDITED:
		return host_membarrier();
	case MB_REGISTER_GLOBAL_EXPEDITED:
	case MB_REGISTER_PRIVATE_EXPEDITED:
		mutex_lock(&mm->mu);
		mm->membarrier_state |= (uint64_t)cmd;
		mutex_unlock(&mm->mu);
		return 0;
	case MB_GET_REGISTRATIONS:
		return (long)mm->membarrier_state;
	default:
		return -EINVAL;
	}
}

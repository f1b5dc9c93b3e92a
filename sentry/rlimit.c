/* Resource limits: getrlimit(2). The values are kept here; who uses a resource asks task_rlimit. */
#include "sentry/rlimit.h"

#include <errno.h>
#include <linux/capability.h>

#include "sentry/task.h"
#include "sentry/timers.h"

#define NR_OPEN 1048576u /* fs.nr_open: RLIMIT_NOFILE goes no higher */

uint64_t task_rlimit(struct task *t, int resource)
{
	mutex_lock(&t->sighand->mu);
	uint64_t cur = t->group->rlim[resource].rlim_cur;
	mutex_unlock(&t->sighand->mu);
	return cur;
}

int rlimit_exchange(struct task *t, struct task *target, unsigned resource,
		    const struct rlimit *new, struct rlimit *out_old)
{
	struct group *g = target->group;

	if (resource >= ARRAY_SIZE(g->rlim))
		return -EINVAL;
	if (new &&new->rlim_cur > new->rlim_max)
		return -EINVAL;
	if (new &&resource == RLIMIT_NOFILE &&new->rlim_max > NR_OPEN)
		return -EPERM;
	bool may_raise = task_capable(t, CAP_SYS_RESOURCE);
	int err = 0;
	/* tasks_mu keeps the target's sighand in place. */
	mutex_lock(&tasks_mu);
	struct sighand *sh = target->sighand;
	mutex_lock(&sh->mu);
	*out_old = g->rlim[resource];
	if (new &&new->rlim_max > g->rlim[resource].rlim_max && !may_raise)
		err = -EPERM;
	else if (new)
		g->rlim[resource] = *new;
	mutex_unlock(&sh->mu);
	mutex_unlock(&tasks_mu);
	if (!err && new &&resource == RLIMIT_CPU)
		itimer_watch_cpu(g);
	return err;
}

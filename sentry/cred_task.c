/* Credentials of tasks: replacing them, and what they permit; what is inherited of scheduling. */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>

#include "fs/cred.h"
#include "sentry/exit.h"
#include "sentry/task.h"

static struct cred *unconst(const struct cred *c)
{
	return (struct cred *)(uintptr_t)c;
}

void task_set_cred(struct task *t, const struct cred *c)
{
	mutex_lock(&t->mu);
	const struct cred *old = t->cred;
	t->cred = c;
	mutex_unlock(&t->mu);
	cred_put(unconst(old));
}

#define RESET_ON_FORK 0x40000000 /* SCHED_RESET_ON_FORK, kept in the policy word */
#define K_SCHED_DEADLINE 6

void task_inherit_sched(struct task *t, struct task *n)
{
	int policy = t->sched_policy & ~RESET_ON_FORK;

	n->default_slack_ns = n->timer_slack_ns = t->timer_slack_ns;
	n->ioprio = t->ioprio;
	/* Real-time classes end with the flag. LINUX: a deadline task without it cannot fork at
	 * all. */
	if ((t->sched_policy & RESET_ON_FORK) || policy == K_SCHED_DEADLINE) {
		bool fair = policy == SCHED_BATCH || policy == SCHED_OTHER || policy == SCHED_IDLE;
		n->sched_policy = fair ? policy : SCHED_OTHER;
		if (n->group != t->group && n->group->nice < 0)
			n->group->nice = 0;
		return;
	}
	n->sched_policy = t->sched_policy;
	n->sched_prio = t->sched_prio;
}

bool task_capable(struct task *t, int cap)
{
	return cred_capable(t->cred, cap);
}

static const struct cred *cred_of(struct task *t)
{
	mutex_lock(&t->mu);
	const struct cred *c = cred_get(unconst(t->cred));
	mutex_unlock(&t->mu);
	return c;
}

static bool ids_match(const struct cred *c, const struct cred *o)
{
	return c->uid == o->euid && c->uid == o->suid && c->uid == o->uid && c->gid == o->egid &&
	       c->gid == o->sgid && c->gid == o->gid;
}

int task_may_access(struct task *t, struct task *target)
{
	if (t->group == target->group)
		return 0;
	const struct cred *c = t->cred, *o = cred_of(target);
	bool may_ptrace = cred_capable(c, CAP_SYS_PTRACE);
	int err = ids_match(c, o) || may_ptrace ? 0 : -EPERM;
	/* Capabilities that we lack would be ours by looking into the other's memory. */
	if (!err && !may_ptrace && (o->cap_permitted & ~c->cap_permitted))
		err = -EPERM;
	mutex_lock(&target->mu);
	bool dumpable = !target->mm || target->mm->dumpable == 1;
	mutex_unlock(&target->mu);
	if (!err && !dumpable && !may_ptrace)
		err = -EPERM;
	cred_put(unconst(o));
	return err;
}

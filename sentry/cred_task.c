/* Credentials of tasks: replacing them, and what they permit. */
#include <errno.h>
#include <linux/capability.h>

#include "fs/cred.h"
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

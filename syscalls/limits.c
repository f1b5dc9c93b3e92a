/* Resource limits: getrlimit(2), prlimit(2). */
#include <errno.h>
#include <linux/capability.h>

#include "fs/cred.h"
#include "sentry/rlimit.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

long sys_getrlimit(struct task *t, uint32_t resource, rlimit_gp rlim)
{
	struct rlimit old;
	int err = rlimit_exchange(t, t, resource, NULL, &old);

	return err ? err : guest_store(t, rlim, &old);
}

long sys_setrlimit(struct task *t, uint32_t resource, rlimit_cgp rlim)
{
	struct rlimit new, old;

	if (guest_load(t, &new, rlim) != 0)
		return -EFAULT;
	return rlimit_exchange(t, t, resource, &new, &old);
}

/* All ids of the target must be ours, or we need CAP_SYS_RESOURCE. */
static int check_target(struct task *t, struct task *o)
{
	const struct cred *c = t->cred;

	if (t->group == o->group || task_capable(t, CAP_SYS_RESOURCE))
		return 0;
	mutex_lock(&o->mu);
	const struct cred *oc = o->cred;
	bool same = c->uid == oc->euid && c->uid == oc->suid && c->uid == oc->uid &&
		    c->gid == oc->egid && c->gid == oc->sgid && c->gid == oc->gid;
	mutex_unlock(&o->mu);
	return same ? 0 : -EPERM;
}

long sys_prlimit64(struct task *t, int pid, uint32_t resource, rlimit_cgp new_limit,
		   rlimit_gp old_limit)
{
	struct rlimit new, old;
	bool set = !gaddr_is_null(new_limit.addr);

	if (set && guest_load(t, &new, new_limit) != 0)
		return -EFAULT;
	struct task *o = pid == 0 ? task_get(t) : task_find(pid);
	if (!o)
		return -ESRCH;
	int err = check_target(t, o);
	if (!err)
		err = rlimit_exchange(t, o, resource, set ? &new : NULL, &old);
	task_put(o);
	if (err || gaddr_is_null(old_limit.addr))
		return err;
	return guest_store(t, old_limit, &old);
}

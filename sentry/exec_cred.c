/*
 * Who a program runs as: set-user-ID and set-group-ID bits inside the sandbox's own ids, and the
 * capability rules of execve (capabilities(7); security/commoncap.c). File capabilities are not
 * honoured.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/mount.h>

#include "fs/mount.h"
#include "sentry/exec_priv.h"

static int apply_set_id(struct exec *x, struct cred *n)
{
	struct file *f = x->main.file;
	struct fs_stat st;

	if (!f->path.mnt || (atomic_load(&f->path.mnt->flags) & MS_NOSUID) || x->t->no_new_privs)
		return 0;
	int err = vfs_getattr(f->path, &st);
	if (err)
		return err;
	if (st.mode & S_ISUID)
		n->euid = st.uid;
	if ((st.mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		n->egid = st.gid;
	return 0;
}

static bool is_traced(struct task *t)
{
	mutex_lock(&tasks_mu);
	bool traced = t->tracer != NULL;
	mutex_unlock(&tasks_mu);
	return traced;
}

/* Sets the capabilities of n from those of old; true when the program gained something by the exec
 * itself. */
static bool apply_caps(struct exec *x, const struct cred *old, struct cred *n)
{
	bool root_rules = !(old->securebits & SECBIT_NOROOT);
	bool set_id = n->euid != old->uid || n->egid != old->gid;
	bool effective = false;

	n->cap_permitted = 0;
	if (root_rules && (n->euid == 0 || n->uid == 0))
		n->cap_permitted = old->cap_bounding | old->cap_inheritable;
	if (root_rules && n->euid == 0)
		effective = true;
	/* A traced program, or one whose memory others share, gains nothing. */
	if ((set_id || (n->cap_permitted & ~old->cap_permitted)) && is_traced(x->t)) {
		if (!cred_capable(old, CAP_SETUID)) {
			n->euid = n->uid;
			n->egid = n->gid;
		}
		n->cap_permitted &= old->cap_permitted;
		set_id = n->euid != old->uid || n->egid != old->gid;
	}
	if (set_id)
		n->cap_ambient = 0;
	n->cap_permitted |= n->cap_ambient;
	n->cap_effective = effective ? n->cap_permitted : n->cap_ambient;
	bool grew = effective && (n->cap_permitted & ~n->cap_ambient) && n->uid != 0;
	return set_id || grew;
}

int exec_new_cred(struct exec *x)
{
	const struct cred *old = x->t->cred;
	struct cred *n = cred_copy(old);

	if (!n)
		return -ENOMEM;
	x->cred = n;
	int err = apply_set_id(x, n);
	if (err)
		return err;
	x->secure = apply_caps(x, old, n);
	n->suid = n->fsuid = n->euid;
	n->sgid = n->fsgid = n->egid;
	n->securebits &= ~(uint32_t)SECBIT_KEEP_CAPS;
	return 0;
}

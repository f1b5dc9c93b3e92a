/*
 * Ids of processes, users and capabilities: credentials(7), capabilities(7). Credentials are never
 * edited in place: each call makes a copy, changes it and publishes it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "fs/cred.h"
#include "platform/base/alloc.h"
#include "sentry/session.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

#define KEEP_ID UINT32_MAX /* -1: leave this id alone */
#define SECBIT_NO_SETUID_FIXUP (1u << 2)
#define CAP_MASK(cap) (1ull << (cap))
#define CAP_ALL ((2ull << CAP_LAST_CAP) - 1)
/* What fsuid 0 means for files: include/linux/capability.h CAP_FS_SET. */
#define CAP_FS_MASK                                                                                \
	(CAP_MASK(CAP_CHOWN) | CAP_MASK(CAP_MKNOD) | CAP_MASK(CAP_DAC_OVERRIDE) |                  \
	 CAP_MASK(CAP_DAC_READ_SEARCH) | CAP_MASK(CAP_FOWNER) | CAP_MASK(CAP_FSETID) |             \
	 CAP_MASK(CAP_LINUX_IMMUTABLE) | CAP_MASK(CAP_MAC_OVERRIDE))

/* ---- processes ------------------------------------------------------------------------------- */

long sys_getpid(struct task *t)
{
	return t->group->tgid;
}

long sys_gettid(struct task *t)
{
	return t->tid;
}

long sys_getppid(struct task *t)
{
	struct group *g = t->group;

	mutex_lock(&tasks_mu);
	/* An orphan belongs to process 1, although the sentry reaps it; the first process has no
	 * parent inside. */
	int ppid = g->parent ? g->parent->tgid : g->tgid == 1 ? 0 : 1;
	mutex_unlock(&tasks_mu);
	return ppid;
}

long sys_setpgid(struct task *t, int pid, int pgid)
{
	return session_setpgid(t, pid, pgid);
}

long sys_getpgid(struct task *t, int pid)
{
	return session_getpgid(t, pid);
}

long sys_getpgrp(struct task *t)
{
	return session_getpgid(t, 0);
}

long sys_setsid(struct task *t)
{
	return session_setsid(t);
}

long sys_getsid(struct task *t, int pid)
{
	return session_getsid(t, pid);
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* Capabilities follow the user ids (capabilities(7), "Effect of user ID changes on capabilities").
 */
static void fix_capabilities(struct task *t, const struct cred *old, struct cred *new)
{
	bool had_root = old->uid == 0 || old->euid == 0 || old->suid == 0;
	bool has_root = new->uid == 0 || new->euid == 0 || new->suid == 0;

	if (new->securebits & SECBIT_NO_SETUID_FIXUP)
		return;
	if (had_root && !has_root) {
		if (!t->securebits_keep_caps) {
			new->cap_permitted = 0;
			new->cap_effective = 0;
		}
		new->cap_ambient = 0;
	}
	if (old->euid == 0 && new->euid != 0)
		new->cap_effective = 0;
	if (old->euid != 0 && new->euid == 0)
		new->cap_effective = new->cap_permitted;
}

/* Publishes new (takes). A process whose identity changed does not let others look into it. */
static void commit(struct task *t, struct cred *new)
{
	const struct cred *old = t->cred;

	if (new->euid != old->euid || new->egid != old->egid || new->fsuid != old->fsuid ||
	    new->fsgid != old->fsgid || (new->cap_permitted & ~old->cap_permitted)) {
		t->mm->dumpable = 0;
		mutex_lock(&tasks_mu);
		t->pdeath_signal = 0;
		mutex_unlock(&tasks_mu);
	}
	task_set_cred(t, new);
}

static long commit_uids(struct task *t, struct cred *new)
{
	new->fsuid = new->euid;
	fix_capabilities(t, t->cred, new);
	commit(t, new);
	return 0;
}

static long commit_gids(struct task *t, struct cred *new)
{
	new->fsgid = new->egid;
	commit(t, new);
	return 0;
}

/* ---- users ----------------------------------------------------------------------------------- */

long sys_getuid(struct task *t)
{
	return t->cred->uid;
}

long sys_geteuid(struct task *t)
{
	return t->cred->euid;
}

long sys_getresuid(struct task *t, u32_gp ruid, u32_gp euid, u32_gp suid)
{
	const struct cred *c = t->cred;

	if (guest_store(t, ruid, &c->uid) != 0 || guest_store(t, euid, &c->euid) != 0)
		return -EFAULT;
	return guest_store(t, suid, &c->suid);
}

long sys_setuid(struct task *t, uint32_t uid)
{
	const struct cred *old = t->cred;
	bool capable = cred_capable(old, CAP_SETUID);

	if (uid == KEEP_ID)
		return -EINVAL;
	if (!capable && uid != old->uid && uid != old->suid)
		return -EPERM;
	struct cred *new = cred_copy(old);
	if (!new)
		return -ENOMEM;
	if (capable)
		new->uid = new->suid = uid;
	new->euid = uid;
	return commit_uids(t, new);
}

long sys_setreuid(struct task *t, uint32_t ruid, uint32_t euid)
{
	const struct cred *old = t->cred;
	bool capable = cred_capable(old, CAP_SETUID);

	if (!capable && ruid != KEEP_ID && ruid != old->uid && ruid != old->euid)
		return -EPERM;
	if (!capable && euid != KEEP_ID && euid != old->uid && euid != old->euid &&
	    euid != old->suid)
		return -EPERM;
	struct cred *new = cred_copy(old);
	if (!new)
		return -ENOMEM;
	if (ruid != KEEP_ID)
		new->uid = ruid;
	if (euid != KEEP_ID)
		new->euid = euid;
	if (ruid != KEEP_ID || (euid != KEEP_ID && euid != old->uid))
		new->suid = new->euid;
	return commit_uids(t, new);
}

static bool is_one_of(uint32_t id, uint32_t a, uint32_t b, uint32_t c)
{
	return id == KEEP_ID || id == a || id == b || id == c;
}

long sys_setresuid(struct task *t, uint32_t ruid, uint32_t euid, uint32_t suid)
{
	const struct cred *o = t->cred;

	if (!cred_capable(o, CAP_SETUID) && (!is_one_of(ruid, o->uid, o->euid, o->suid) ||
					     !is_one_of(euid, o->uid, o->euid, o->suid) ||
					     !is_one_of(suid, o->uid, o->euid, o->suid)))
		return -EPERM;
	struct cred *new = cred_copy(o);
	if (!new)
		return -ENOMEM;
	if (ruid != KEEP_ID)
		new->uid = ruid;
	if (euid != KEEP_ID)
		new->euid = euid;
	if (suid != KEEP_ID)
		new->suid = suid;
	return commit_uids(t, new);
}

long sys_setfsuid(struct task *t, uint32_t uid)
{
	const struct cred *old = t->cred;
	long ret = old->fsuid;

	/* It reports no errors: what it returns is the id before the call. */
	if (uid == KEEP_ID || uid == old->fsuid ||
	    (!cred_capable(old, CAP_SETUID) && uid != old->uid && uid != old->euid &&
	     uid != old->suid))
		return ret;
	struct cred *new = cred_copy(old);
	if (!new)
		return ret;
	new->fsuid = uid;
	if (!(new->securebits &SECBIT_NO_SETUID_FIXUP)) {
		if (old->fsuid == 0)
			new->cap_effective &= ~CAP_FS_MASK;
		if (uid == 0)
			new->cap_effective |= new->cap_permitted &CAP_FS_MASK;
	}
	commit(t, new);
	return ret;
}

/* ---- groups ---------------------------------------------------------------------------------- */

long sys_getgid(struct task *t)
{
	return t->cred->gid;
}

long sys_getegid(struct task *t)
{
	return t->cred->egid;
}

long sys_getresgid(struct task *t, u32_gp rgid, u32_gp egid, u32_gp sgid)
{
	const struct cred *c = t->cred;

	if (guest_store(t, rgid, &c->gid) != 0 || guest_store(t, egid, &c->egid) != 0)
		return -EFAULT;
	return guest_store(t, sgid, &c->sgid);
}

long sys_setgid(struct task *t, uint32_t gid)
{
	const struct cred *old = t->cred;
	bool capable = cred_capable(old, CAP_SETGID);

	if (gid == KEEP_ID)
		return -EINVAL;
	if (!capable && gid != old->gid && gid != old->sgid)
		return -EPERM;
	struct cred *new = cred_copy(old);
	if (!new)
		return -ENOMEM;
	if (capable)
		new->gid = new->sgid = gid;
	new->egid = gid;
	return commit_gids(t, new);
}

long sys_setregid(struct task *t, uint32_t rgid, uint32_t egid)
{
	const struct cred *old = t->cred;
	bool capable = cred_capable(old, CAP_SETGID);

	if (!capable && rgid != KEEP_ID && rgid != old->gid && rgid != old->egid)
		return -EPERM;
	if (!capable && egid != KEEP_ID && egid != old->gid && egid != old->egid &&
	    egid != old->sgid)
		return -EPERM;
	struct cred *new = cred_copy(old);
	if (!new)
		return -ENOMEM;
	if (rgid != KEEP_ID)
		new->gid = rgid;
	if (egid != KEEP_ID)
		new->egid = egid;
	if (rgid != KEEP_ID || (egid != KEEP_ID && egid != old->gid))
		new->sgid = new->egid;
	return commit_gids(t, new);
}

long sys_setresgid(struct task *t, uint32_t rgid, uint32_t egid, uint32_t sgid)
{
	const struct cred *o = t->cred;

	if (!cred_capable(o, CAP_SETGID) && (!is_one_of(rgid, o->gid, o->egid, o->sgid) ||
					     !is_one_of(egid, o->gid, o->egid, o->sgid) ||
					     !is_one_of(sgid, o->gid, o->egid, o->sgid)))
		return -EPERM;
	struct cred *new = cred_copy(o);
	if (!new)
		return -ENOMEM;
	if (rgid != KEEP_ID)
		new->gid = rgid;
	if (egid != KEEP_ID)
		new->egid = egid;
	if (sgid != KEEP_ID)
		new->sgid = sgid;
	return commit_gids(t, new);
}

long sys_setfsgid(struct task *t, uint32_t gid)
{
	const struct cred *old = t->cred;
	long ret = old->fsgid;

	if (gid == KEEP_ID || gid == old->fsgid ||
	    (!cred_capable(old, CAP_SETGID) && gid != old->gid && gid != old->egid &&
	     gid != old->sgid))
		return ret;
	struct cred *new = cred_copy(old);
	if (!new)
		return ret;
	new->fsgid = gid;
	commit(t, new);
	return ret;
}

long sys_getgroups(struct task *t, int size, u32_gp list)
{
	const struct cred *c = t->cred;

	if (size < 0)
		return -EINVAL;
	if (size == 0)
		return (long)c->group_count;
	if ((size_t)size < c->group_count)
		return -EINVAL;
	if (c->group_count && guest_store_n(t, list, c->group_count, c->groups) != 0)
		return -EFAULT;
	return (long)c->group_count;
}

static int compare_gid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

long sys_setgroups(struct task *t, int size, u32_cgp list)
{
	uint32_t *groups = NULL;
	int err = 0;

	if (!task_capable(t, CAP_SETGID))
		return -EPERM;
	if (size < 0 || size > CRED_MAX_GROUPS)
		return -EINVAL;
	struct cred *new = cred_copy(t->cred);
	if (!new)
		return -ENOMEM;
	if (size > 0) {
		groups = mem_calloc((size_t)size, sizeof(*groups));
		err = groups ? guest_load_n(t, groups, (size_t)size, list) : -ENOMEM;
		for (int i = 0; !err && i < size; i++)
			if (groups[i] == KEEP_ID)
				err = -EINVAL;
	}
	if (err) {
		mem_free(groups);
		cred_put(new);
		return err;
	}
	if (size > 0)
		qsort(groups, (size_t)size, sizeof(*groups), compare_gid);
	mem_free(new->groups);
	new->groups = groups;
	new->group_count = (size_t)size;
	commit(t, new);
	return 0;
}

/* ---- capabilities ---------------------------------------------------------------------------- */

struct k_cap_header {
	uint32_t version;
	int32_t pid;
};

struct k_cap_data {
	uint32_t effective, permitted, inheritable;
};

/* Words per set of an ABI version; 0 for an unknown one, after telling the guest which one we
 * speak. */
static int cap_words(struct task *t, buf_gp hdr, struct k_cap_header *h, size_t *out_words)
{
	*out_words = 0;
	if (guest_read(t, h, hdr.addr, sizeof(*h)) != 0)
		return -EFAULT;
	switch (h->version) {
	case _LINUX_CAPABILITY_VERSION_1:
		*out_words = 1;
		return 0;
	case _LINUX_CAPABILITY_VERSION_2:
	case _LINUX_CAPABILITY_VERSION_3:
		*out_words = 2;
		return 0;
	default:
		h->version = _LINUX_CAPABILITY_VERSION_3;
		return guest_write(t, hdr.addr, &h->version, sizeof(h->version)) ? -EFAULT
										 : -EINVAL;
	}
}

long sys_capget(struct task *t, buf_gp hdr, buf_gp data)
{
	struct k_cap_header h;
	struct k_cap_data d[2];
	size_t words;
	int err = cap_words(t, hdr, &h, &words);

	/* Probing for the version passes no data. */
	if (gaddr_is_null(data.addr))
		return err == -EINVAL ? 0 : err;
	if (err)
		return err;
	if (h.pid < 0)
		return -EINVAL;
	struct task *o = h.pid == 0 ? task_get(t) : task_find(h.pid);
	if (!o)
		return -ESRCH;
	mutex_lock(&o->mu);
	for (size_t i = 0; i < ARRAY_SIZE(d); i++)
		d[i] = (struct k_cap_data){
			.effective = (uint32_t)(o->cred->cap_effective >> 32 * i),
			.permitted = (uint32_t)(o->cred->cap_permitted >> 32 * i),
			.inheritable = (uint32_t)(o->cred->cap_inheritable >> 32 * i),
		};
	mutex_unlock(&o->mu);
	task_put(o);
	return guest_write(t, data.addr, d, words * sizeof(d[0]));
}

/* The rules of security/commoncap.c cap_capset. */
static bool capset_allowed(const struct cred *old, uint64_t effective, uint64_t permitted,
			   uint64_t inheritable)
{
	if (!cred_capable(old, CAP_SETPCAP) &&
	    (inheritable & ~(old->cap_inheritable | old->cap_permitted)))
		return false;
	if (inheritable & ~(old->cap_inheritable | old->cap_bounding))
		return false;
	return !(permitted & ~old->cap_permitted) && !(effective & ~permitted);
}

long sys_capset(struct task *t, buf_gp hdr, buf_cgp data)
{
	struct k_cap_header h;
	struct k_cap_data d[2] = { 0 };
	size_t words;
	int err = cap_words(t, hdr, &h, &words);

	if (err)
		return err;
	if (h.pid != 0 && h.pid != t->tid)
		return -EPERM;
	if (guest_read(t, d, data.addr, words * sizeof(d[0])) != 0)
		return -EFAULT;
	uint64_t effective = (d[0].effective | (uint64_t)d[1].effective << 32) & CAP_ALL;
	uint64_t permitted = (d[0].permitted | (uint64_t)d[1].permitted << 32) & CAP_ALL;
	uint64_t inheritable = (d[0].inheritable | (uint64_t)d[1].inheritable << 32) & CAP_ALL;
	if (!capset_allowed(t->cred, effective, permitted, inheritable))
		return -EPERM;
	struct cred *new = cred_copy(t->cred);
	if (!new)
		return -ENOMEM;
	new->cap_effective = effective;
	new->cap_permitted = permitted;
	new->cap_inheritable = inheritable;
	new->cap_ambient &= permitted &inheritable;
	commit(t, new);
	return 0;
}

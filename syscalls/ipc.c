/* Keys, ids and permissions of System V IPC: see ipc.h. */
#include "syscalls/ipc.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"

#define IDS_PER_SEQ 32768 /* ids are seq * this + slot, as the kernel's IPCMNI */
#define FIRST_SIZE 16u

static void ipc_obj_free(struct ipc_obj *o)
{
	o->type->free(o);
}

DEFINE_REF(ipc_obj);

void ipc_obj_init(struct ipc_obj *o, const struct ipc_type *type, int key, struct task *t)
{
	ref_init(&o->ref);
	mutex_init(&o->mu, RANK_PIPE);
	waitq_init(&o->wait);
	o->type = type;
	o->key = key;
	o->uid = o->cuid = t->cred->euid;
	o->gid = o->cgid = t->cred->egid;
}

void ipc_obj_fini(struct ipc_obj *o)
{
	waitq_fini(&o->wait);
	mutex_fini(&o->mu);
}

time_t ipc_now(void)
{
	return fs_now().tv_sec;
}

/* ---- the table ---------------------------------------------------------------------------- */

static struct ipc_obj *find_key_locked(struct ipc_table *tab, int key)
{
	for (unsigned i = 0; i < tab->size; i++)
		if (tab->slots[i] && tab->slots[i]->key == key)
			return tab->slots[i];
	return NULL;
}

static int grow_locked(struct ipc_table *tab, unsigned limit)
{
	unsigned size = MIN(tab->size ? tab->size * 2 : FIRST_SIZE, limit);

	if (tab->used >= limit)
		return -ENOSPC;
	if (tab->used < tab->size)
		return 0;
	struct ipc_obj **slots = mem_calloc(size, sizeof(struct ipc_obj *));
	if (!slots)
		return -ENOMEM;
	for (unsigned i = 0; i < tab->size; i++)
		slots[i] = tab->slots[i];
	mem_free(tab->slots);
	tab->slots = slots;
	tab->size = size;
	return 0;
}

/* Gives o an id; takes the caller's reference on success. */
static int insert_locked(struct ipc_table *tab, struct ipc_obj *o, unsigned limit)
{
	unsigned i = 0;

	int err = grow_locked(tab, limit);
	if (err)
		return err;
	while (tab->slots[i])
		i++;
	o->id = (int)(tab->seq++ % (INT32_MAX / IDS_PER_SEQ)) * IDS_PER_SEQ + (int)i;
	tab->slots[i] = o;
	tab->used++;
	return 0;
}

int ipc_find_index(const struct ipc_type *type, int index, struct ipc_obj **out)
{
	struct ipc_table *tab = type->table;
	int err = -EINVAL;

	mutex_lock(&tab->mu);
	if (index >= 0 && (unsigned)index < tab->size && tab->slots[index]) {
		*out = ipc_obj_get(tab->slots[index]);
		err = 0;
	}
	mutex_unlock(&tab->mu);
	return err;
}

int ipc_find(const struct ipc_type *type, int id, struct ipc_obj **out)
{
	if (id < 0)
		return -EINVAL;
	int err = ipc_find_index(type, id % IDS_PER_SEQ, out);
	if (!err && (*out)->id != id) {
		ipc_obj_put(*out);
		err = -EINVAL;
	}
	return err;
}

int ipc_highest_index(const struct ipc_type *type, int *out_used)
{
	struct ipc_table *tab = type->table;
	int highest = 0;

	mutex_lock(&tab->mu);
	for (unsigned i = 0; i < tab->size; i++)
		if (tab->slots[i])
			highest = (int)i;
	*out_used = (int)tab->used;
	mutex_unlock(&tab->mu);
	return highest;
}

void ipc_remove_locked(struct ipc_obj *o)
{
	struct ipc_table *tab = o->type->table;
	unsigned i = (unsigned)(o->id % IDS_PER_SEQ);

	if (o->removed)
		return;
	o->removed = true;
	mutex_lock(&tab->mu);
	BUG_ON(tab->slots[i] != o);
	tab->slots[i] = NULL;
	tab->used--;
	mutex_unlock(&tab->mu);
	waitq_wake_all(&o->wait, 0);
}

void ipc_show(const struct ipc_type *type, struct fmt *out)
{
	struct task *t = current_task();
	int used, highest = ipc_highest_index(type, &used);

	for (int i = 0; used && i <= highest; i++) {
		struct ipc_obj *o;
		if (ipc_find_index(type, i, &o) != 0)
			continue;
		mutex_lock(&o->mu);
		if (!o->removed && t)
			type->show_locked(o, out);
		mutex_unlock(&o->mu);
		ipc_obj_put(o);
	}
}

/* ---- permissions -------------------------------------------------------------------------- */

int ipc_permission_locked(struct ipc_obj *o, struct task *t, unsigned flags)
{
	const struct cred *c = t->cred;
	unsigned want = (flags >> 6 | flags >> 3 | flags) & 7, granted = o->mode;

	if (c->euid == o->cuid || c->euid == o->uid)
		granted >>= 6;
	else if (cred_in_group(c, o->cgid) || cred_in_group(c, o->gid))
		granted >>= 3;
	if ((want & ~granted) && !cred_capable(c, CAP_IPC_OWNER))
		return -EACCES;
	return 0;
}

int ipc_owner_locked(struct ipc_obj *o, struct task *t)
{
	const struct cred *c = t->cred;

	if (c->euid == o->cuid || c->euid == o->uid || cred_capable(c, CAP_SYS_ADMIN))
		return 0;
	return -EPERM;
}

void ipc_fill_perm_locked(const struct ipc_obj *o, struct ipc_perm *out)
{
	*out = (struct ipc_perm){ .__key = o->key,
				  .uid = o->uid,
				  .gid = o->gid,
				  .cuid = o->cuid,
				  .cgid = o->cgid,
				  .mode = o->mode & 0xffff,
				  .__seq = (unsigned short)(o->id / IDS_PER_SEQ) };
}

void ipc_set_perm_locked(struct ipc_obj *o, const struct ipc_perm *p)
{
	o->uid = p->uid;
	o->gid = p->gid;
	o->mode = (o->mode & ~0777u) | (p->mode & 0777);
}

/* ---- …get(2) ------------------------------------------------------------------------------ */

/* An object with that key is there. Takes o. */
static long get_existing(const struct ipc_type *type, struct task *t, struct ipc_obj *o,
			 uint64_t param, int flags)
{
	long ret = 0;

	if ((flags & (IPC_CREAT | IPC_EXCL)) == (IPC_CREAT | IPC_EXCL))
		ret = -EEXIST;
	if (!ret)
		ret = type->check(o, param);
	if (!ret) {
		mutex_lock(&o->mu);
		ret = ipc_permission_locked(o, t, (unsigned)flags);
		mutex_unlock(&o->mu);
	}
	if (!ret)
		ret = o->id;
	ipc_obj_put(o);
	return ret;
}

long ipc_get(const struct ipc_type *type, struct task *t, int key, uint64_t param, int flags)
{
	struct ipc_table *tab = type->table;
	struct ipc_obj *fresh = NULL, *old = NULL;
	long ret = 0;

	if (key != IPC_PRIVATE) {
		mutex_lock(&tab->mu);
		old = find_key_locked(tab, key);
		if (old)
			ipc_obj_get(old);
		mutex_unlock(&tab->mu);
		if (old)
			return get_existing(type, t, old, param, flags);
		if (!(flags & IPC_CREAT))
			return -ENOENT;
	}
	ret = type->create(t, key, param, &fresh);
	if (ret)
		return ret;
	fresh->mode = (unsigned)flags & 0777;
	sysvipc_show[type->show_kind] = type->show_all;
	mutex_lock(&tab->mu);
	/* Somebody may have been quicker. */
	if (key != IPC_PRIVATE)
		old = find_key_locked(tab, key);
	if (old)
		ipc_obj_get(old);
	else
		ret = insert_locked(tab, fresh, type->limit);
	int id = fresh->id;
	mutex_unlock(&tab->mu);
	if (old || ret)
		ipc_obj_put(fresh);
	if (old)
		return get_existing(type, t, old, param, flags);
	return ret ? ret : id;
}

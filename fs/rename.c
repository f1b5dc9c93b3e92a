/*
 * rename(2), renameat2(2). Locks: the file system's rename_mu for a move between directories, which
 * freezes the shape of the tree, then the directories' mu, an ancestor before what is below it,
 * else by address. Everybody else who holds two directories holds a parent and its child, in that
 * order.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/inotify.h>

#include "fs/inotify.h"
#include "fs/walk.h"
#include "platform/base/alloc.h"

struct rename {
	struct walk from, to;
	struct dentry *old, *target; /* referenced; target may be negative */
	char *heap_name;             /* for a long new name */
	unsigned flags;
};

static void lock_dirs(struct dentry *a, struct dentry *b) NO_LOCK_ANALYSIS
{
	if (a == b) {
		mutex_lock(&a->inode->mu);
		return;
	}
	mutex_lock(&a->sb->rename_mu);
	if (dentry_is_ancestor(b, a) || (!dentry_is_ancestor(a, b) && b->inode < a->inode)) {
		struct dentry *t = a;
		a = b;
		b = t;
	}
	mutex_lock(&a->inode->mu);
	mutex_lock_nested(&b->inode->mu);
}

static void unlock_dirs(struct dentry *a, struct dentry *b) NO_LOCK_ANALYSIS
{
	mutex_unlock(&a->inode->mu);
	if (a == b)
		return;
	mutex_unlock(&b->inode->mu);
	mutex_unlock(&a->sb->rename_mu);
}

static bool is_dir(const struct dentry *d)
{
	return d->inode && d->inode->type == S_IFDIR;
}

/* Existence, trailing slashes, loops: before any permission is asked, as Linux does. */
static int check_names(struct rename *r)
{
	struct dentry *from_dir = r->from.cur.dentry, *to_dir = r->to.cur.dentry;
	bool exchange = r->flags & RENAME_EXCHANGE;

	if (!r->old->inode)
		return -ENOENT;
	if ((r->flags & RENAME_NOREPLACE) && r->target->inode)
		return -EEXIST;
	if (exchange && !r->target->inode)
		return -ENOENT;
	if (exchange && !is_dir(r->target) && r->to.last_slash)
		return -ENOTDIR;
	if (!is_dir(r->old) && (r->from.last_slash || (!exchange && r->to.last_slash)))
		return -ENOTDIR;
	if (from_dir != to_dir && dentry_is_ancestor(r->old, to_dir))
		return -EINVAL;
	if (from_dir != to_dir && r->target->inode && dentry_is_ancestor(r->target, from_dir))
		return exchange ? -EINVAL : -ENOTEMPTY;
	return 0;
}

static int check_permissions(struct rename *r)
{
	struct inode *from = r->from.cur.dentry->inode, *to = r->to.cur.dentry->inode;
	const struct cred *c = r->from.l->cred;
	bool exchange = r->flags & RENAME_EXCHANGE;

	int err = dir_may_delete(from, r->old, c, is_dir(r->old));
	if (!err && !r->target->inode)
		err = to->dead ? -ENOENT : dir_may_create(to, c);
	else if (!err)
		err = dir_may_delete(to, r->target, c, is_dir(exchange ? r->target : r->old));
	if (!err && !from->ops->rename)
		err = -EPERM;
	/* A directory that moves gets a new "..": that is a write to it. */
	if (!err && from != to && is_dir(r->old))
		err = inode_permission(r->old->inode, c, MAY_WRITE);
	if (!err && from != to && exchange && is_dir(r->target))
		err = inode_permission(r->target->inode, c, MAY_WRITE);
	if (err)
		return err;
	if (atomic_load(&r->old->is_mountpoint) > 0 || atomic_load(&r->target->is_mountpoint) > 0)
		return -EBUSY;
	return 0;
}

/* Both directories are locked. */
static void update_cache(struct rename *r)
{
	if (r->flags & RENAME_EXCHANGE) {
		dcache_exchange(r->old, r->target);
		return;
	}
	dcache_move(r->old, r->to.cur.dentry, r->to.last, r->heap_name, r->target);
	r->heap_name = NULL;
	if (is_dir(r->target)) {
		/* Its directory is locked: parent before child. */
		mutex_lock_nested(&r->target->inode->mu);
		r->target->inode->dead = true;
		mutex_unlock(&r->target->inode->mu);
	}
}

static int rename_locked(struct rename *r, bool *out_done)
{
	struct inode *from = r->from.cur.dentry->inode, *to = r->to.cur.dentry->inode;

	int err = walk_lookup_locked(r->from.cur.dentry, r->from.last, &r->old);
	if (!err)
		err = walk_lookup_locked(r->to.cur.dentry, r->to.last, &r->target);
	if (!err)
		err = check_names(r);
	if (err || r->old->inode == r->target->inode)
		return err;
	err = check_permissions(r);
	if (!err)
		err = from->ops->rename(from, r->from.last, r->old->inode, to, r->to.last,
					r->target->inode, r->flags);
	if (err)
		return err;
	update_cache(r);
	*out_done = true;
	return 0;
}

static void notify(struct rename *r)
{
	struct inode *from = r->from.cur.dentry->inode, *to = r->to.cur.dentry->inode;

	fsnotify_move(from, r->from.last, to, r->to.last, r->old->inode);
	if (r->flags & RENAME_EXCHANGE)
		fsnotify_move(to, r->to.last, from, r->from.last, r->target->inode);
	else if (r->target->inode)
		fsnotify(r->target->inode, IN_ATTRIB, 0, NULL);
}

static int rename_resolved(struct rename *r)
{
	struct walk *f = &r->from, *t = &r->to;
	bool done = false;

	if (f->cur.mnt != t->cur.mnt)
		return -EXDEV;
	if (f->last_type != LAST_NORM)
		return -EBUSY;
	if (t->last_type != LAST_NORM)
		return r->flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	int err = mount_want_write(f->cur.mnt);
	if (err)
		return err;
	if (strlen(t->last) >= sizeof(r->old->name_inline)) {
		r->heap_name = mem_strdup(t->last);
		if (!r->heap_name)
			return -ENOMEM;
	}
	lock_dirs(f->cur.dentry, t->cur.dentry);
	err = rename_locked(r, &done);
	unlock_dirs(f->cur.dentry, t->cur.dentry);
	if (done)
		notify(r);
	dentry_put(r->old);
	dentry_put(r->target);
	mem_free(r->heap_name);
	return err;
}

static int check_flags(const struct cred *c, unsigned flags)
{
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
		return -EINVAL;
	if ((flags & RENAME_WHITEOUT) && !cred_capable(c, CAP_MKNOD))
		return -EPERM;
	return 0;
}

int vfs_rename(const struct fs_lookup *old, const char *old_name, const struct fs_lookup *new,
	       const char *new_name, unsigned flags)
{
	int err = check_flags(old->cred, flags);

	if (err)
		return err;
	/* Two walks are too much for the small stacks of sentry threads. */
	struct rename *r = mem_zalloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->flags = flags;
	err = walk_begin(&r->from, old, old_name);
	if (!err)
		err = walk_parent(&r->from, old_name);
	if (!err) {
		err = walk_begin(&r->to, new, new_name);
		if (!err)
			err = walk_parent(&r->to, new_name);
		if (!err)
			err = rename_resolved(r);
		walk_end(&r->to);
	}
	walk_end(&r->from);
	mem_free(r);
	return err;
}

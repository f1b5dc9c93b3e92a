/*
 * The tree of mounts. An attached mount is referenced by the tree; the pointer to its parent is
 * borrowed, for a parent cannot be detached alone. Whatever hangs below (root dentry, super block)
 * is put outside the mount lock.
 *
 * Start reading at mount_traverse (down) and mount_follow_up (up); fs/mount_show.c prints the tree.
 */
#include "fs/mount.h"

#include <errno.h>
#include <sys/mount.h>

#include "fs/dcache.h"
#include "fs/mount_tree.h"
#include "platform/base/alloc.h"

static struct mutex lock = MUTEX_INIT(RANK_MOUNT);
static int next_id = 21;     /* [lock] */
static unsigned mount_count; /* [lock] attached ones */

void mount_tree_lock(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&lock);
}

void mount_tree_unlock(void) NO_LOCK_ANALYSIS
{
	mutex_unlock(&lock);
}

static void mount_free(struct mount *m)
{
	BUG_ON(m->attached);
	dentry_put(m->root);
	superblock_put(m->sb);
	dentry_put(m->mountpoint);
	mem_free(m->source);
	mem_free(m);
}

DEFINE_REF(mount);

struct path path_get(struct path p)
{
	if (p.mnt)
		mount_get(p.mnt);
	if (p.dentry)
		dentry_get(p.dentry);
	return p;
}

void path_put(struct path p)
{
	dentry_put(p.dentry);
	mount_put(p.mnt);
}

/* Takes sb; root is borrowed and referenced. */
static int mount_new(struct superblock *sb, struct dentry *root, const char *source, unsigned flags,
		     struct mount **out)
{
	struct mount *m = mem_zalloc(sizeof(*m));
	char *src = mem_strdup(source ? source : "none");

	if (!m || !src) {
		mem_free(m);
		mem_free(src);
		superblock_put(sb);
		return -ENOMEM;
	}
	ref_init(&m->ref);
	m->sb = sb;
	m->root = dentry_get(root);
	m->source = src;
	atomic_init(&m->flags, flags);
	list_init(&m->children);
	list_init(&m->child_link);
	mutex_lock(&lock);
	m->id = next_id++;
	mutex_unlock(&lock);
	m->parent_id = 1;
	*out = m;
	return 0;
}

int mount_new_detached(struct superblock *sb, const char *source, unsigned flags,
		       struct mount **out)
{
	return mount_new(sb, sb->root, source, flags, out);
}

int mount_new_root(struct superblock *sb, const char *source, unsigned flags, struct mount **out)
{
	int err = mount_new(sb, sb->root, source, flags, out);

	if (err)
		return err;
	/* The namespace's own reference; it lives as long as the sandbox. */
	(*out)->attached = true;
	return 0;
}

struct mount *mount_next(struct mount *m, struct mount *top)
{
	if (!list_empty(&m->children))
		return list_first(&m->children, struct mount, child_link);
	while (m != top) {
		if (m->child_link.next != &m->parent->children)
			return list_entry(m->child_link.next, struct mount, child_link);
		m = m->parent;
	}
	return NULL;
}

static struct mount *covering(struct mount *m, struct dentry *d)
{
	list_for_each(pos, &m->children) {
		struct mount *c = list_entry(pos, struct mount, child_link);
		if (c->mountpoint == d)
			return c;
	}
	return NULL;
}

struct path mount_traverse(struct path p)
{
	while (atomic_load(&p.dentry->is_mountpoint) > 0) {
		mutex_lock(&lock);
		struct mount *c = covering(p.mnt, p.dentry);
		struct path down = { c, c ? c->root : NULL };
		if (c)
			path_get(down);
		mutex_unlock(&lock);
		if (!c)
			break;
		path_put(p);
		p = down;
	}
	return p;
}

bool mount_follow_up(struct path *p)
{
	struct path up = { NULL, NULL };

	mutex_lock(&lock);
	if (p->dentry == p->mnt->root && p->mnt->parent)
		up = path_get((struct path){ p->mnt->parent, p->mnt->mountpoint });
	mutex_unlock(&lock);
	if (!up.mnt)
		return false;
	path_put(*p);
	*p = up;
	return true;
}

bool mount_is_readonly(struct mount *m)
{
	return (atomic_load(&m->flags) & MS_RDONLY) || m->sb->readonly;
}

int mount_want_write(struct mount *m)
{
	return mount_is_readonly(m) ? -EROFS : 0;
}

bool path_is_under(struct path p, struct path root)
{
	bool under = false;

	mutex_lock(&lock);
	for (;;) {
		if (p.mnt == root.mnt) {
			under = dentry_is_ancestor(root.dentry, p.dentry);
			break;
		}
		if (!p.mnt->parent)
			break;
		p = (struct path){ p.mnt->parent, p.mnt->mountpoint };
	}
	mutex_unlock(&lock);
	return under;
}

/* Marks d as covered, unless its name is being removed: rmdir looks under the parent's mu. */
static int cover(struct dentry *d)
{
	struct dentry *parent = dentry_parent(d);
	int err = 0;

	mutex_lock(&parent->inode->mu);
	if (dentry_is_deleted(d)) {
		err = -ENOENT;
	} else {
		atomic_fetch_add(&d->is_mountpoint, 1);
		dcache_add_always(d);
	}
	mutex_unlock(&parent->inode->mu);
	dentry_put(parent);
	return err;
}

/* Hangs m (a reference is taken by the tree) at where, or on top of what covers it already. */
static int attach_locked(struct mount *m, struct path where)
{
	struct mount *c;

	while ((c = covering(where.mnt, where.dentry)) != NULL)
		where = (struct path){ c, c->root };
	if (!where.mnt->attached)
		return -EINVAL;
	if ((where.dentry->inode->type == S_IFDIR) != (m->root->inode->type == S_IFDIR))
		return -ENOTDIR;
	if (mount_count >= MOUNT_MAX)
		return -ENOSPC;
	int err = cover(where.dentry);
	if (err)
		return err;
	m->parent = where.mnt;
	m->parent_id = where.mnt->id;
	m->mountpoint = dentry_get(where.dentry);
	m->attached = true;
	list_add_tail(&where.mnt->children, &m->child_link);
	mount_get(m);
	mount_count++;
	return 0;
}

/* Takes m out of the tree; the tree's reference and the mount point go to `gone` for later. */
static void detach_locked(struct mount *m, struct list *gone)
{
	list_del_init(&m->child_link);
	list_add_tail(gone, &m->child_link);
	atomic_fetch_sub(&m->mountpoint->is_mountpoint, 1);
	m->parent = NULL;
	m->attached = false;
	mount_count--;
}

/* After unlocking. The mount point stays referenced until the mount is freed. */
static void put_detached(struct list *gone)
{
	while (!list_empty(gone)) {
		struct mount *m = list_first(gone, struct mount, child_link);
		list_del_init(&m->child_link);
		mount_put(m);
	}
}

int mount_attach(struct path where, struct superblock *sb, const char *source, unsigned flags)
{
	struct mount *m;
	int err = mount_new(sb, sb->root, source, flags, &m);

	if (err)
		return err;
	mutex_lock(&lock);
	err = attach_locked(m, where);
	mutex_unlock(&lock);
	mount_put(m);
	return err;
}

/* Detaches top and all below, leaves first. */
static void detach_tree_locked(struct mount *top, struct list *gone)
{
	for (;;) {
		struct mount *m = top;
		while (!list_empty(&m->children))
			m = list_last(&m->children, struct mount, child_link);
		detach_locked(m, gone);
		if (m == top)
			return;
	}
}

/* Copies the mounts below src that lie under root onto the copy src->copy. mount_new takes the
 * mount lock, so the mounts to copy are listed (referenced) first. */
static int copy_below(struct mount *src, struct dentry *root)
{
	struct mount **list;
	size_t n = 0, cap = 0;
	int err = 0;

	mutex_lock(&lock);
	for (struct mount *m = src; m; m = mount_next(m, src))
		cap++;
	list = mem_calloc(cap, sizeof(*list));
	for (struct mount *m = src; list && m; m = mount_next(m, src)) {
		bool skip =
			m != src && m->parent == src && !dentry_is_ancestor(root, m->mountpoint);
		/* Below something skipped: its parent has no copy. */
		m->copy = m == src ? src->copy : NULL;
		if (m != src && !skip)
			list[n++] = mount_get(m);
	}
	mutex_unlock(&lock);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		struct mount *m = list[i], *c;
		if (!m->parent || !m->parent->copy)
			continue;
		err = mount_new(superblock_get(m->sb), m->root, m->source, atomic_load(&m->flags),
				&c);
		if (err)
			break;
		mutex_lock(&lock);
		if (m->parent && m->parent->copy && m->parent->copy->attached)
			err = attach_locked(c, (struct path){ m->parent->copy, m->mountpoint });
		m->copy = c;
		mutex_unlock(&lock);
		mount_put(c);
	}
	for (size_t i = 0; i < n; i++)
		mount_put(list[i]);
	mem_free(list);
	return err;
}

/* One recursive bind at a time: they share the scratch pointers. */
static struct mutex bind_lock = MUTEX_INIT(RANK_CONTROL);

int mount_bind(struct path where, struct path what, unsigned flags, bool recursive)
{
	struct mount *m;
	struct list gone = LIST_INIT(gone);
	unsigned keep = flags ? flags : atomic_load(&what.mnt->flags);

	mutex_lock(&bind_lock);
	int err = mount_new(superblock_get(what.mnt->sb), what.dentry, what.mnt->source, keep, &m);
	if (err)
		goto out;
	mutex_lock(&lock);
	err = what.mnt->attached ? attach_locked(m, where) : -EINVAL;
	what.mnt->copy = m;
	mutex_unlock(&lock);
	if (!err && recursive) {
		err = copy_below(what.mnt, what.dentry);
		mutex_lock(&lock);
		if (err && m->attached)
			detach_tree_locked(m, &gone);
		mutex_unlock(&lock);
		put_detached(&gone);
	}
	mount_put(m);
out:
	mutex_unlock(&bind_lock);
	return err;
}

static int detach_checked_locked(struct path p, int flags, struct list *gone)
{
	struct mount *m = p.mnt;

	if (p.dentry != m->root || !m->attached)
		return -EINVAL;
	if (!m->parent)
		return -EBUSY;
	if (flags & MNT_DETACH) {
		detach_tree_locked(m, gone);
		return 0;
	}
	/* The tree's reference and the caller's. */
	if (!list_empty(&m->children) || ref_count(&m->ref) > 2)
		return -EBUSY;
	if ((flags & MNT_EXPIRE) && !m->expiry_mark) {
		m->expiry_mark = true;
		return -EAGAIN;
	}
	detach_locked(m, gone);
	return 0;
}

int mount_detach(struct path p, int flags)
{
	struct list gone = LIST_INIT(gone);

	mutex_lock(&lock);
	int err = detach_checked_locked(p, flags, &gone);
	mutex_unlock(&lock);
	put_detached(&gone);
	return err;
}

int mount_remount(struct path p, unsigned flags)
{
	if (p.dentry != p.mnt->root)
		return -EINVAL;
	atomic_store(&p.mnt->flags, flags);
	return 0;
}

static bool mount_is_below(struct mount *m, struct mount *top)
{
	while (m && m != top)
		m = m->parent;
	return m != NULL;
}

int mount_move(struct path from, struct path to)
{
	struct list gone = LIST_INIT(gone);
	struct mount *m = from.mnt;
	struct dentry *old_point = NULL;
	int err = -EINVAL;

	mutex_lock(&lock);
	if (from.dentry != m->root || !m->parent || !m->attached)
		goto out;
	err = -ELOOP;
	if (mount_is_below(to.mnt, m))
		goto out;
	struct path back = { m->parent, m->mountpoint };
	detach_locked(m, &gone);
	old_point = m->mountpoint;
	list_del_init(&m->child_link);
	err = attach_locked(m, to);
	/* Should its old place have been removed meanwhile, it stays detached. */
	if (err)
		(void)!attach_locked(m, back);
	/* Attaching took a reference for the tree; the old one is still there. */
	BUG_ON(ref_dec(&m->ref));
out:
	mutex_unlock(&lock);
	dentry_put(old_point);
	return err;
}

int mount_pivot(struct path new_root, struct path put_old, struct path root)
{
	struct mount *n = new_root.mnt, *o = root.mnt;
	struct dentry *point;
	int err = -EINVAL;

	mutex_lock(&lock);
	if (n == o || new_root.dentry != n->root || root.dentry != o->root || !n->parent ||
	    o->parent || !mount_is_below(put_old.mnt, n)) {
		err = n == o ? -EBUSY : -EINVAL;
		mutex_unlock(&lock);
		return err;
	}
	point = n->mountpoint;
	list_del_init(&n->child_link);
	atomic_fetch_sub(&point->is_mountpoint, 1);
	struct mount *old_parent = n->parent;
	n->parent = NULL;
	n->mountpoint = NULL;
	o->attached = false;
	err = attach_locked(o, put_old);
	if (err) {
		n->parent = old_parent;
		n->mountpoint = point;
		point = NULL;
		atomic_fetch_add(&n->mountpoint->is_mountpoint, 1);
		list_add_tail(&old_parent->children, &n->child_link);
		o->attached = true;
	} else {
		/* The namespace's reference moves from o to n; the tree's from n to o. */
		BUG_ON(ref_dec(&o->ref));
	}
	mutex_unlock(&lock);
	dentry_put(point);
	return err;
}

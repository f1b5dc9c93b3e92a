/*
 * Names of overlayfs. A directory's changed names are its entries; any other name is looked up
 * below. Whatever an operation may fail to get, it gets before it changes anything.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "fs/overlayfs_priv.h"
#include "platform/base/alloc.h"

/* Names of a lower tree that may change by itself are believed for so long. */
#define OVL_TTL_NS 1000000000ull

/* ---- entries ------------------------------------------------------------------------------ */

struct ovl_entry *ovl_find_entry(struct ovl_inode *dir, const char *name)
{
	struct rb_node *n = dir->entries.node;

	while (n) {
		struct ovl_entry *e = container_of(n, struct ovl_entry, node);
		int c = strcmp(name, e->name);
		if (c == 0)
			return e;
		n = c < 0 ? n->left : n->right;
	}
	return NULL;
}

struct ovl_entry *ovl_entry_new(const char *name)
{
	size_t size = strlen(name) + 1;
	struct ovl_entry *e = mem_zalloc(sizeof(*e) + size);

	if (e)
		memcpy(e->name, name, size);
	return e;
}

void ovl_insert_entry(struct ovl_inode *dir, struct ovl_entry *e)
{
	struct rb_node **link = &dir->entries.node, *parent = NULL;

	while (*link) {
		parent = *link;
		struct ovl_entry *o = container_of(parent, struct ovl_entry, node);
		link = strcmp(e->name, o->name) < 0 ? &parent->left : &parent->right;
	}
	rb_insert(&dir->entries, &e->node, parent, link);
}

/* What the entries say about a name. */
enum known { KNOWN_NOTHING, KNOWN_WHITEOUT, KNOWN_INODE };

/* *out is referenced for KNOWN_INODE. */
static enum known look_in_entries(struct ovl_inode *dir, const char *name, struct ovl_inode **out)
{
	enum known k = KNOWN_NOTHING;

	mutex_lock(&dir->small_mu);
	struct ovl_entry *e = ovl_find_entry(dir, name);
	if (e && e->inode) {
		inode_get(&e->inode->base);
		*out = e->inode;
		k = KNOWN_INODE;
	} else if (e) {
		k = KNOWN_WHITEOUT;
	}
	mutex_unlock(&dir->small_mu);
	return k;
}

/*
 * The name leads to oi (takes the reference; NULL: to nothing) from now on. spare is used when
 * there is no entry yet and freed otherwise (takes). lower_has: the name exists below, if there is
 * no entry that knows. Gives what the entry held before, to be put without locks, or NULL.
 */
static struct ovl_inode *set_entry(struct ovl_inode *dir, struct ovl_entry *spare,
				   struct ovl_inode *oi, bool lower_has)
{
	struct ovl_inode *old = NULL;

	mutex_lock(&dir->small_mu);
	struct ovl_entry *e = ovl_find_entry(dir, spare->name);
	if (!e) {
		e = spare;
		spare = NULL;
		e->over_lower = lower_has;
		ovl_insert_entry(dir, e);
	}
	old = e->inode;
	e->inode = oi;
	if (!oi && !e->over_lower) {
		/* Nothing here, nothing below: no whiteout is needed. */
		rb_erase(&dir->entries, &e->node);
		mem_free(e);
	}
	mutex_unlock(&dir->small_mu);
	mem_free(spare);
	return old;
}

static void put(struct ovl_inode *oi)
{
	if (oi)
		inode_put(&oi->base);
}

/* ---- looking ------------------------------------------------------------------------------ */

static int lower_lookup(struct ovl_inode *dir, const char *name, struct inode **out)
{
	struct inode *lower = dir->lower;

	if (!lower)
		return -ENOENT;
	/* Stacked: the lower directory after the one above it. */
	mutex_lock_nested(&lower->mu);
	int err = lower->ops->lookup(lower, name, out);
	mutex_unlock(&lower->mu);
	return err;
}

static int dir_lookup(struct inode *dir, const char *name, struct inode **out)
{
	struct ovl_inode *od = to_ovl(dir), *oi;
	struct inode *lower;

	switch (look_in_entries(od, name, &oi)) {
	case KNOWN_INODE:
		*out = &oi->base;
		return 0;
	case KNOWN_WHITEOUT:
		return -ENOENT;
	case KNOWN_NOTHING:
		break;
	}
	int err = lower_lookup(od, name, &lower);
	return err ? err : ovl_inode_over(ovl_of(dir), lower, od, name, out);
}

/* Does the name still lead where the dentry says? */
static int check_name(struct inode *dir, struct dentry *d)
{
	char name[NAME_LEN_MAX + 1];
	struct inode *now;

	dentry_name(d, name);
	int err = dir_lookup(dir, name, &now); /* works with and without the directory's mu, as we
						  are called */
	if (err && (err != -ENOENT || d->inode))
		return 0; /* the lookup that follows says what is wrong */
	bool same = err ? true : now == d->inode;
	if (!err)
		inode_put(now);
	if (same)
		atomic_store(&d->checked_at, mono_now_ns());
	return same;
}

static int dir_revalidate(struct dentry *d)
{
	struct ovl *fs = d->sb->priv;

	if (!fs->shared || (d->inode && !to_ovl(d->inode)->lower))
		return 1;
	uint64_t at = atomic_load(&d->checked_at);
	if (d->inode)
		at = MAX(at, atomic_load(&to_ovl(d->inode)->walked_at));
	if (at && mono_now_ns() - at < OVL_TTL_NS)
		return 1;
	struct dentry *parent = dentry_parent(d);
	int ok = parent == d || !to_ovl(parent->inode)->lower ? 1 : check_name(parent->inode, d);
	dentry_put(parent);
	return ok;
}

/* ---- making ------------------------------------------------------------------------------- */

static void touch_dir(struct inode *dir)
{
	struct tmpfs_inode *upper = ovl_upper(to_ovl(dir));

	if (upper)
		tmpfs_touch(upper, ATTR_MTIME | ATTR_CTIME);
}

/* Subdirectories count as links of a directory that has nothing below. */
static void count_subdir(struct inode *dir, int n)
{
	struct tmpfs_inode *upper = ovl_upper(to_ovl(dir));

	if (upper)
		tmpfs_add_link(upper, n);
}

/* An inode in memory, owned by c as a new one in dir. */
static int new_in(struct inode *dir, uint32_t mode, const struct cred *c, struct ovl_inode **out)
{
	struct fs_stat st;
	uint32_t uid, gid;

	if (dir->dead)
		return -ENOENT;
	int err = ovl_copy_up(to_ovl(dir));
	if (!err)
		err = ovl_getattr(dir, &st);
	if (err)
		return err;
	inode_new_owner(&st, c, &mode, &uid, &gid);
	return ovl_inode_fresh(ovl_of(dir), mode, uid, gid, out);
}

/* Puts oi (takes) into dir; *out gets a reference of its own. */
static int add_new(struct inode *dir, const char *name, struct ovl_inode *oi, struct inode **out)
{
	struct ovl_entry *e = ovl_entry_new(name);
	struct ovl_inode *there;

	if (!e) {
		put(oi);
		return -ENOMEM;
	}
	if (look_in_entries(to_ovl(dir), name, &there) == KNOWN_INODE) {
		put(there);
		put(oi);
		mem_free(e);
		return -EEXIST;
	}
	*out = inode_get(&oi->base);
	/* The VFS has looked: without a whiteout the name does not exist below. */
	put(set_entry(to_ovl(dir), e, oi, false));
	touch_dir(dir);
	return 0;
}

static int dir_mknod(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev,
		     const struct cred *c, struct inode **out)
{
	struct ovl_inode *oi;

	int err = new_in(dir, mode, c, &oi);
	if (err)
		return err;
	if (S_ISCHR(mode) || S_ISBLK(mode)) {
		oi->base.rdev = rdev;
		ovl_upper(oi)->base.rdev = rdev;
	}
	return add_new(dir, name, oi, out);
}

static int dir_create(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		      struct inode **out)
{
	return dir_mknod(dir, name, S_IFREG | (mode & 07777), 0, c, out);
}

static int dir_mkdir(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		     struct inode **out)
{
	struct ovl_inode *oi;

	int err = new_in(dir, S_IFDIR | (mode & 07777), c, &oi);
	if (err)
		return err;
	atomic_store(&oi->parent_ino, dir->ino);
	err = add_new(dir, name, oi, out);
	if (!err)
		count_subdir(dir, 1);
	return err;
}

static int dir_symlink(struct inode *dir, const char *name, const char *target,
		       const struct cred *c, struct inode **out)
{
	struct ovl_inode *oi;

	int err = new_in(dir, S_IFLNK | 0777, c, &oi);
	if (err)
		return err;
	ovl_upper(oi)->target = mem_strdup(target);
	if (!ovl_upper(oi)->target) {
		put(oi);
		return -ENOMEM;
	}
	return add_new(dir, name, oi, out);
}

static int dir_tmpfile(struct inode *dir, uint32_t mode, const struct cred *c, struct inode **out)
{
	struct ovl_inode *oi;

	int err = new_in(dir, S_IFREG | (mode & 07777), c, &oi);
	if (err)
		return err;
	ovl_upper(oi)->nlink = 0;
	*out = &oi->base;
	return 0;
}

static int dir_link(struct inode *dir, const char *name, struct inode *target)
{
	struct inode *made;

	int err = dir->dead ? -ENOENT : ovl_copy_up(to_ovl(dir));
	/* As Linux does: a link changes the times of what it leads to. */
	if (!err)
		err = ovl_copy_up(to_ovl(target));
	if (err)
		return err;
	inode_get(target);
	err = add_new(dir, name, to_ovl(target), &made);
	if (err)
		return err;
	ovl_add_link(to_ovl(target), 1);
	inode_put(made);
	return 0;
}

/* ---- removing ----------------------------------------------------------------------------- */

/* An empty directory gets `dead`, so that it stays empty. Parent before child: nested. */
static int kill_empty_dir(struct inode *victim) NO_LOCK_ANALYSIS
{
	mutex_lock_nested(&victim->mu);
	int empty = ovl_is_empty(to_ovl(victim));
	if (empty == 1) {
		victim->dead = true;
		atomic_store(&to_ovl(victim)->removed, true);
	}
	mutex_unlock(&victim->mu);
	return empty < 0 ? empty : empty ? 0 : -ENOTEMPTY;
}

/* The name leads to nothing; a name without an entry exists below. */
static void remove_entry(struct inode *dir, struct ovl_entry *spare)
{
	put(set_entry(to_ovl(dir), spare, NULL, true));
	touch_dir(dir);
}

static int dir_unlink(struct inode *dir, const char *name, struct inode *victim)
{
	if (victim->type == S_IFDIR)
		return -EISDIR;
	int err = ovl_copy_up(to_ovl(dir));
	if (err)
		return err;
	struct ovl_entry *e = ovl_entry_new(name);
	if (!e)
		return -ENOMEM;
	ovl_add_link(to_ovl(victim), -1);
	remove_entry(dir, e);
	return 0;
}

static int dir_rmdir(struct inode *dir, const char *name, struct inode *victim)
{
	if (victim->type != S_IFDIR)
		return -ENOTDIR;
	int err = ovl_copy_up(to_ovl(dir));
	struct ovl_entry *e = err ? NULL : ovl_entry_new(name);
	if (!err && !e)
		err = -ENOMEM;
	if (!err)
		err = kill_empty_dir(victim);
	if (err) {
		mem_free(e);
		return err;
	}
	ovl_add_link(to_ovl(victim), -2);
	count_subdir(dir, -1);
	remove_entry(dir, e);
	return 0;
}

/* ---- rename ------------------------------------------------------------------------------- */

struct rename_parts {
	struct ovl_entry *old_entry, *new_entry; /* spare ones */
	struct ovl_inode *whiteout;              /* for RENAME_WHITEOUT */
};

static void free_parts(struct rename_parts *p)
{
	mem_free(p->old_entry);
	mem_free(p->new_entry);
	put(p->whiteout);
}

static int prepare_rename(struct inode *old_dir, const char *old_name, struct inode *new_dir,
			  const char *new_name, unsigned flags, struct rename_parts *p)
{
	*p = (struct rename_parts){ NULL, NULL, NULL };
	int err = ovl_copy_up(to_ovl(old_dir));
	if (!err)
		err = ovl_copy_up(to_ovl(new_dir));
	if (err)
		return err;
	p->old_entry = ovl_entry_new(old_name);
	p->new_entry = ovl_entry_new(new_name);
	if (!p->old_entry || !p->new_entry)
		err = -ENOMEM;
	else if (flags & RENAME_WHITEOUT)
		err = ovl_inode_fresh(ovl_of(old_dir), S_IFCHR, 0, 0, &p->whiteout);
	if (err)
		free_parts(p);
	return err;
}

/* A directory went from one parent to another. */
static void moved_dir(struct inode *ino, struct inode *from, struct inode *to)
{
	if (ino->type != S_IFDIR || from == to)
		return;
	count_subdir(from, -1);
	count_subdir(to, 1);
	atomic_store(&to_ovl(ino)->parent_ino, to->ino);
}

static void touch_renamed(struct inode *ino)
{
	struct tmpfs_inode *upper = ovl_upper(to_ovl(ino));

	if (upper)
		tmpfs_touch(upper, ATTR_CTIME);
}

static int check_target(struct inode *old_dir, struct inode *source, struct inode *target)
{
	if (source->type == S_IFDIR) {
		if (target->type != S_IFDIR)
			return -ENOTDIR;
		return target == old_dir ? -ENOTEMPTY : kill_empty_dir(target);
	}
	return target->type == S_IFDIR ? -EISDIR : 0;
}

static void lose_target(struct inode *dir, struct inode *target)
{
	bool is_dir = target->type == S_IFDIR;

	ovl_add_link(to_ovl(target), is_dir ? -2 : -1);
	if (is_dir)
		count_subdir(dir, -1);
}

static int dir_rename(struct inode *old_dir, const char *old_name, struct inode *source,
		      struct inode *new_dir, const char *new_name, struct inode *target,
		      unsigned flags)
{
	struct rename_parts p;

	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if (target && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (source == target)
		return 0;
	if (!target && (flags & RENAME_EXCHANGE))
		return -ENOENT;
	int err = prepare_rename(old_dir, old_name, new_dir, new_name, flags, &p);
	if (err)
		return err;
	if (target && !(flags & RENAME_EXCHANGE))
		err = check_target(old_dir, source, target);
	if (err) {
		free_parts(&p);
		return err;
	}
	struct ovl_inode *back = p.whiteout; /* what the old name leads to afterwards */
	if (flags & RENAME_EXCHANGE) {
		inode_get(target);
		back = to_ovl(target);
		moved_dir(target, new_dir, old_dir);
		touch_renamed(target);
	} else if (target) {
		lose_target(new_dir, target);
	}
	inode_get(source);
	struct ovl_inode *lost =
		set_entry(to_ovl(new_dir), p.new_entry, to_ovl(source), target != NULL);
	/* A name without an entry is one from below. */
	struct ovl_inode *left = set_entry(to_ovl(old_dir), p.old_entry, back, true);
	moved_dir(source, old_dir, new_dir);
	touch_renamed(source);
	touch_dir(old_dir);
	touch_dir(new_dir);
	put(lost);
	put(left);
	return 0;
}

const struct inode_ops ovl_dir_inode_ops = {
	.lookup = dir_lookup,
	.create = dir_create,
	.mkdir = dir_mkdir,
	.mknod = dir_mknod,
	.symlink = dir_symlink,
	.link = dir_link,
	.unlink = dir_unlink,
	.rmdir = dir_rmdir,
	.rename = dir_rename,
	.tmpfile = dir_tmpfile,
	.getattr = ovl_getattr,
	.setattr = ovl_setattr,
	.open = ovl_open_dir,
	.revalidate = dir_revalidate,
	.getxattr = ovl_getxattr,
	.setxattr = ovl_setxattr,
	.listxattr = ovl_listxattr,
	.removexattr = ovl_removexattr,
	.free = ovl_free,
};

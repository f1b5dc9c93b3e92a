/*
 * The calls that change directories: mkdir, mknod, symlink, link, unlink, rmdir. (rename has a file
 * of its own.) Each resolves the parent, takes its mu, looks the last name up again, checks in the
 * order of Linux' errors, and lets the file system act.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>

#include "fs/inotify.h"
#include "fs/walk.h"
#include "platform/base/alloc.h"

int dir_may_create(struct inode *dir, const struct cred *c)
{
	return inode_permission(dir, c, MAY_WRITE | MAY_EXEC);
}

/* In a sticky directory only the owner of the entry, the owner of the directory or CAP_FOWNER may.
 */
static int check_sticky(struct inode *dir, struct inode *ino, const struct cred *c)
{
	struct fs_stat dir_st, st;

	int err = dir->ops->getattr(dir, &dir_st);
	if (err || !(dir_st.mode & S_ISVTX) || dir_st.uid == c->fsuid)
		return err;
	err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	return inode_owner_or_capable(&st, c) ? 0 : -EPERM;
}

int dir_may_delete(struct inode *dir, struct dentry *victim, const struct cred *c, bool is_dir)
{
	int err = inode_permission(dir, c, MAY_WRITE | MAY_EXEC);

	if (!err)
		err = check_sticky(dir, victim->inode, c);
	if (err)
		return err;
	if (is_dir && victim->inode->type != S_IFDIR)
		return -ENOTDIR;
	if (!is_dir && victim->inode->type == S_IFDIR)
		return -EISDIR;
	return dir->dead ? -ENOENT : 0;
}

/* ---- creation ----------------------------------------------------------------------------- */

enum make_kind { MAKE_FILE, MAKE_DIR, MAKE_NODE, MAKE_SYMLINK, MAKE_LINK };

struct make {
	enum make_kind kind;
	uint32_t mode;
	uint64_t rdev;
	const char *target;   /* MAKE_SYMLINK */
	struct inode *source; /* MAKE_LINK, borrowed */
};

/* The file system's part; gives the new inode. */
static int call_make(struct inode *dir, const char *name, const struct make *m,
		     const struct cred *c, struct inode **out)
{
	const struct inode_ops *ops = dir->ops;
	int err = -EPERM;

	switch (m->kind) {
	case MAKE_FILE:
		return ops->create ? ops->create(dir, name, m->mode, c, out) : -EACCES;
	case MAKE_DIR:
		return ops->mkdir ? ops->mkdir(dir, name, m->mode, c, out) : -EPERM;
	case MAKE_NODE:
		return ops->mknod ? ops->mknod(dir, name, m->mode, m->rdev, c, out) : -EPERM;
	case MAKE_SYMLINK:
		return ops->symlink ? ops->symlink(dir, name, m->target, c, out) : -EPERM;
	case MAKE_LINK:
		if (ops->link)
			err = ops->link(dir, name, m->source);
		if (!err)
			*out = inode_get(m->source);
		break;
	}
	return err;
}

/* Makes the object in place of the negative dentry; dir's mu held. Gives the new dentry. */
static int make_locked(struct dentry *dir, struct dentry *negative, const struct make *m,
		       const struct cred *c, struct dentry **out)
{
	/* Made first, so that nothing can fail after the file system has acted. */
	char name[NAME_LEN_MAX + 1];
	dentry_name(negative, name);
	struct dentry *d = dentry_new(dir->sb, dir, name, NULL);

	if (!d)
		return -ENOMEM;
	int err = call_make(dir->inode, name, m, c, &d->inode);
	if (err) {
		dentry_put(d);
		return err;
	}
	dcache_drop(negative, false);
	dcache_add(d);
	fsnotify(dir->inode, IN_CREATE | (d->inode->type == S_IFDIR ? IN_ISDIR : 0), 0, name);
	*out = d;
	return 0;
}

int dir_create_locked(struct dentry *dir, struct dentry *negative, uint32_t mode,
		      const struct cred *c, struct dentry **out)
{
	struct make m = { .kind = MAKE_FILE, .mode = mode };

	return make_locked(dir, negative, &m, c, out);
}

/* fs.protected_hardlinks: only what one owns, or a plain file that one may read and write. */
static int may_link(struct inode *ino, const struct cred *c)
{
	struct fs_stat st;
	int err = ino->ops->getattr(ino, &st);

	if (err || inode_owner_or_capable(&st, c))
		return err;
	if (!S_ISREG(st.mode) || (st.mode & S_ISUID) ||
	    (st.mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return -EPERM;
	return inode_permission(ino, c, MAY_READ | MAY_WRITE) ? -EPERM : 0;
}

static int check_link(struct inode *dir, struct inode *src)
{
	struct fs_stat st;

	if (dir->sb != src->sb)
		return -EXDEV;
	if (src->type == S_IFDIR)
		return -EPERM;
	int err = src->ops->getattr(src, &st);
	if (err)
		return err;
	return st.nlink == 0 && !src->linkable ? -ENOENT : 0;
}

/* w has resolved the parent. link_mnt: the mount of a link's source, or NULL. */
static int make_last(struct walk *w, const struct make *m, struct mount *link_mnt, struct path *out)
{
	struct dentry *dir = w->cur.dentry, *d, *made = NULL;
	const struct cred *c = w->l->cred;
	int ro = mount_want_write(w->cur.mnt);

	if (w->last_type != LAST_NORM)
		return -EEXIST;
	mutex_lock(&dir->inode->mu);
	int err = walk_lookup_locked(dir, w->last, &d);
	if (err) {
		mutex_unlock(&dir->inode->mu);
		return err;
	}
	if (d->inode)
		err = -EEXIST;
	else if (w->last_slash && m->kind != MAKE_DIR)
		err = -ENOENT;
	else if (ro)
		err = ro;
	else if (link_mnt && link_mnt != w->cur.mnt)
		err = -EXDEV;
	else if (m->kind == MAKE_LINK)
		err = may_link(m->source, c);
	if (!err)
		err = dir->inode->dead ? -ENOENT : dir_may_create(dir->inode, c);
	if (!err && m->kind == MAKE_LINK)
		err = check_link(dir->inode, m->source);
	if (!err)
		err = make_locked(dir, d, m, c, &made);
	mutex_unlock(&dir->inode->mu);
	if (!err && m->kind == MAKE_LINK)
		fsnotify(m->source, IN_ATTRIB, 0, NULL);
	dentry_put(d);
	if (!err && out)
		*out = (struct path){ mount_get(w->cur.mnt), dentry_get(made) };
	dentry_put(made);
	return err;
}

static int make_at(const struct fs_lookup *l, const char *name, const struct make *m,
		   struct mount *link_mnt, struct path *out)
{
	struct walk w;

	int err = walk_begin(&w, l, name);
	if (!err)
		err = walk_parent(&w, name);
	if (!err)
		err = walk_complete(&w);
	if (!err)
		err = make_last(&w, m, link_mnt, out);
	walk_end(&w);
	return err;
}

int vfs_mkdir(const struct fs_lookup *l, const char *name, uint32_t mode)
{
	struct make m = { .kind = MAKE_DIR, .mode = S_IFDIR | walk_mode(l, mode & 01777) };

	return make_at(l, name, &m, NULL, NULL);
}

static int mknod_at(const struct fs_lookup *l, const char *name, uint32_t mode, uint64_t rdev,
		    struct path *out)
{
	struct make m = { .kind = MAKE_NODE, .rdev = rdev };

	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
		m.kind = MAKE_FILE;
		mode |= S_IFREG;
		break;
	case S_IFCHR:
		/* A whiteout is not a device: anybody may make one. */
		if (rdev != 0 && !cred_capable(l->cred, CAP_MKNOD))
			return -EPERM;
		break;
	case S_IFBLK:
		if (!cred_capable(l->cred, CAP_MKNOD))
			return -EPERM;
		break;
	case S_IFIFO:
	case S_IFSOCK:
		m.rdev = 0;
		break;
	case S_IFDIR:
		return -EPERM;
	default:
		return -EINVAL;
	}
	m.mode = (mode & S_IFMT) | walk_mode(l, mode & 07777);
	return make_at(l, name, &m, NULL, out);
}

int vfs_mknod(const struct fs_lookup *l, const char *name, uint32_t mode, uint64_t rdev)
{
	return mknod_at(l, name, mode, rdev, NULL);
}

int vfs_mknod_path(const struct fs_lookup *l, const char *name, uint32_t mode, struct path *out)
{
	return mknod_at(l, name, mode, 0, out);
}

int vfs_symlink(const struct fs_lookup *l, const char *target, const char *name)
{
	struct make m = { .kind = MAKE_SYMLINK, .mode = S_IFLNK | 0777, .target = target };
	size_t len = strlen(target);

	if (len == 0)
		return -ENOENT;
	if (len >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	return make_at(l, name, &m, NULL, NULL);
}

int vfs_link(const struct fs_lookup *old, const char *old_name, const struct fs_lookup *new,
	     const char *new_name, unsigned flags)
{
	struct path p;
	int err = path_lookup(old, old_name, flags, &p);

	if (err)
		return err;
	struct make m = { .kind = MAKE_LINK, .source = p.dentry->inode };
	err = make_at(new, new_name, &m, p.mnt, NULL);
	path_put(p);
	return err;
}

/* ---- removal ------------------------------------------------------------------------------ */

static int call_remove(struct inode *dir, const char *name, struct dentry *victim, bool is_dir)
{
	int (*op)(struct inode *, const char *, struct inode *) =
		is_dir ? dir->ops->rmdir : dir->ops->unlink;

	if (!op)
		return -EPERM;
	if (atomic_load(&victim->is_mountpoint) > 0)
		return -EBUSY;
	int err = op(dir, name, victim->inode);
	if (err || !is_dir)
		return err;
	/* Parent before child. */
	mutex_lock_nested(&victim->inode->mu);
	victim->inode->dead = true;
	mutex_unlock(&victim->inode->mu);
	return 0;
}

/* What a trailing slash means to unlink(2). */
static int slash_error(const struct dentry *d)
{
	if (!d->inode)
		return -ENOENT;
	return d->inode->type == S_IFDIR ? -EISDIR : -ENOTDIR;
}

static int remove_last(struct walk *w, bool is_dir)
{
	struct dentry *dir = w->cur.dentry, *d;

	int err = mount_want_write(w->cur.mnt);
	if (err)
		return err;
	mutex_lock(&dir->inode->mu);
	err = walk_lookup_locked(dir, w->last, &d);
	if (err) {
		mutex_unlock(&dir->inode->mu);
		return err;
	}
	if (w->last_slash && !is_dir)
		err = slash_error(d);
	else if (!d->inode)
		err = -ENOENT;
	else
		err = dir_may_delete(dir->inode, d, w->l->cred, is_dir);
	if (!err)
		err = call_remove(dir->inode, w->last, d, is_dir);
	if (!err) {
		dcache_drop(d, true);
		fsnotify(dir->inode, IN_DELETE | (is_dir ? IN_ISDIR : 0), 0, w->last);
	}
	mutex_unlock(&dir->inode->mu);
	if (!err && !is_dir)
		fsnotify(d->inode, IN_ATTRIB, 0, NULL);
	dentry_put(d);
	return err;
}

static int remove_at(const struct fs_lookup *l, const char *name, bool is_dir)
{
	static const int dir_errors[] = {
		[LAST_ROOT] = -EBUSY, [LAST_DOT] = -EINVAL, [LAST_DOTDOT] = -ENOTEMPTY
	};
	struct walk w;

	int err = walk_begin(&w, l, name);
	if (!err)
		err = walk_parent(&w, name);
	if (!err)
		err = walk_complete(&w);
	if (!err && w.last_type != LAST_NORM)
		err = is_dir ? dir_errors[w.last_type] : -EISDIR;
	if (!err)
		err = remove_last(&w, is_dir);
	walk_end(&w);
	return err;
}

int vfs_unlink(const struct fs_lookup *l, const char *name)
{
	return remove_at(l, name, false);
}

int vfs_rmdir(const struct fs_lookup *l, const char *name)
{
	return remove_at(l, name, true);
}

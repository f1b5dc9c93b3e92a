/* Attributes: who may change what (chmod(2), chown(2), utimensat(2), truncate(2)), and statfs. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "fs/hooks.h"
#include "fs/inotify.h"
#include "fs/lease.h"
#include "fs/walk.h"

#define ST_VALID 0x20 /* f_flags holds mount flags: include/linux/statfs.h */
#define TIME_BITS (ATTR_ATIME | ATTR_MTIME | ATTR_ATIME_NOW | ATTR_MTIME_NOW)

int vfs_getattr(struct path p, struct fs_stat *out)
{
	struct inode *ino = p.dentry->inode;

	return ino->ops->getattr(ino, out);
}

static int check_owner_change(const struct fs_stat *st, const struct cred *c, const struct iattr *a)
{
	if (cred_capable(c, CAP_CHOWN))
		return 0;
	if ((a->valid & ATTR_UID) && (c->fsuid != st->uid || a->uid != st->uid))
		return -EPERM;
	if ((a->valid & ATTR_GID) &&
	    (c->fsuid != st->uid || (a->gid != st->gid && !cred_in_group(c, a->gid))))
		return -EPERM;
	return 0;
}

/* Setting both times to now needs write permission only; anything else is the owner's. */
static int check_times(struct inode *ino, const struct fs_stat *st, const struct cred *c,
		       const struct iattr *a)
{
	unsigned t = a->valid & TIME_BITS;

	if (t == 0 || inode_owner_or_capable(st, c))
		return 0;
	if (t == (ATTR_ATIME_NOW | ATTR_MTIME_NOW))
		return inode_permission(ino, c, MAY_WRITE);
	return -EPERM;
}

/* Set-id bits that a change of owner or a write takes away. */
static uint32_t stripped_mode(uint32_t mode)
{
	mode &= ~(uint32_t)S_ISUID;
	if (mode & S_IXGRP)
		mode &= ~(uint32_t)S_ISGID;
	return mode & 07777;
}

/* Adjusts a copy of the request by the rules; 0 or -errno. */
static int prepare(struct inode *ino, const struct fs_stat *st, const struct cred *c,
		   struct iattr *a)
{
	int err = check_owner_change(st, c, a);

	if (!err && (a->valid & ATTR_MODE)) {
		if (!inode_owner_or_capable(st, c))
			return -EPERM;
		uint32_t gid = a->valid & ATTR_GID ? a->gid : st->gid;
		if (!cred_in_group(c, gid) && !cred_capable(c, CAP_FSETID))
			a->mode &= ~(uint32_t)S_ISGID;
	}
	if (!err)
		err = check_times(ino, st, c, a);
	if (err)
		return err;
	if ((a->valid & (ATTR_UID | ATTR_GID | ATTR_CHOWN)) && !(a->valid & ATTR_MODE) &&
	    !S_ISDIR(st->mode) && stripped_mode(st->mode) != (st->mode & 07777)) {
		if (!inode_owner_or_capable(st, c))
			return -EPERM;
		a->valid |= ATTR_MODE;
		a->mode = stripped_mode(st->mode);
	}
	a->valid &= ~ATTR_CHOWN;
	a->valid |= ATTR_CTIME;
	return 0;
}

static int apply(struct inode *ino, const struct iattr *a)
{
	if (!ino->ops->setattr)
		return -EPERM;
	if (a->valid & ATTR_MODE)
		atomic_store(&ino->no_setid, false);
	mutex_lock(&ino->mu);
	int err = ino->ops->setattr(ino, a);
	mutex_unlock(&ino->mu);
	return err;
}

int inode_setattr(struct inode *ino, const struct cred *c, const struct iattr *attr)
{
	struct iattr a = *attr;
	struct fs_stat st;

	if (ino->sb->readonly)
		return -EROFS;
	int err = ino->ops->getattr(ino, &st);
	if (!err)
		err = prepare(ino, &st, c, &a);
	return err ? err : apply(ino, &a);
}

/* IN_* bits for a change, as Linux' fsnotify_change. */
static uint32_t change_event(unsigned valid)
{
	uint32_t mask = 0;
	unsigned t = valid & TIME_BITS;

	if (valid & (ATTR_UID | ATTR_GID | ATTR_MODE))
		mask |= IN_ATTRIB;
	if (valid & ATTR_SIZE)
		mask |= IN_MODIFY;
	if ((t & (ATTR_ATIME | ATTR_ATIME_NOW)) && (t & (ATTR_MTIME | ATTR_MTIME_NOW)))
		mask |= IN_ATTRIB;
	else if (t & (ATTR_ATIME | ATTR_ATIME_NOW))
		mask |= IN_ACCESS;
	else if (t)
		mask |= IN_MODIFY;
	return mask;
}

int vfs_setattr(struct path p, const struct cred *c, const struct iattr *attr)
{
	int err = mount_want_write(p.mnt);

	if (!err)
		err = inode_setattr(p.dentry->inode, c, attr);
	if (!err)
		fsnotify_dentry(p.dentry, change_event(attr->valid));
	return err;
}

int inode_drop_setid(struct inode *ino, const struct cred *c)
{
	struct fs_stat st;

	if (ino->type != S_IFREG || atomic_load(&ino->no_setid) || cred_capable(c, CAP_FSETID))
		return 0;
	int err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	if (stripped_mode(st.mode) == (st.mode & 07777)) {
		atomic_store(&ino->no_setid, true);
		return 0;
	}
	struct iattr a = { .valid = ATTR_MODE | ATTR_CTIME, .mode = stripped_mode(st.mode) };
	return apply(ino, &a);
}

/* f is the open file, or NULL. */
static int apply_size(struct inode *ino, struct file *f, uint64_t size)
{
	struct iattr a = { .valid = ATTR_SIZE | ATTR_CTIME, .size = size };

	if (!f || !f->ops->truncate)
		return apply(ino, &a);
	mutex_lock(&ino->mu);
	int err = f->ops->truncate(f, size);
	mutex_unlock(&ino->mu);
	return err;
}

static int truncate_by(struct inode *ino, struct file *f, const struct cred *c, uint64_t size)
{
	struct fs_stat st;

	int err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	if (size > st.size && fs_hooks && size > fs_hooks->rlimit(RLIMIT_FSIZE)) {
		fs_hooks->signal_self(SIGXFSZ);
		return -EFBIG;
	}
	if (ino->sb->readonly)
		return -EROFS;
	err = inode_drop_setid(ino, c);
	if (err)
		return err;
	mutex_lock(&ino->write_mu);
	err = apply_size(ino, f, size);
	mutex_unlock(&ino->write_mu);
	return err;
}

int inode_truncate(struct inode *ino, const struct cred *c, uint64_t size)
{
	return truncate_by(ino, NULL, c, size);
}

int vfs_truncate(struct path p, const struct cred *c, uint64_t size)
{
	struct inode *ino = p.dentry->inode;

	if (ino->type == S_IFDIR)
		return -EISDIR;
	if (ino->type != S_IFREG)
		return -EINVAL;
	int err = mount_want_write(p.mnt);
	if (!err)
		err = inode_permission(ino, c, MAY_WRITE);
	if (!err)
		err = inode_get_write(ino);
	if (err)
		return err;
	err = lease_break(ino, true, false);
	if (!err)
		err = inode_truncate(ino, c, size);
	inode_put_write(ino);
	if (!err)
		fsnotify_dentry(p.dentry, IN_MODIFY);
	return err;
}

int vfs_ftruncate(struct file *f, uint64_t size)
{
	struct inode *ino = file_inode(f);

	if (!ino || ino->type != S_IFREG || !file_can_write(f))
		return -EINVAL;
	int err = truncate_by(ino, f, f->cred, size);
	if (!err)
		fsnotify_file(f, IN_MODIFY);
	return err;
}

int vfs_access(struct path p, const struct cred *c, int mask)
{
	struct inode *ino = p.dentry->inode;

	/* MAY_EXEC of a regular file fails on a noexec mount even for root. */
	if ((mask & MAY_EXEC) && ino->type == S_IFREG && (atomic_load(&p.mnt->flags) & MS_NOEXEC))
		return -EACCES;
	int err = inode_permission(ino, c, mask);
	if (err || !(mask & MAY_WRITE))
		return err;
	bool special = ino->type == S_IFCHR || ino->type == S_IFBLK || ino->type == S_IFIFO ||
		       ino->type == S_IFSOCK;
	return special ? 0 : mount_want_write(p.mnt);
}

int vfs_readlink(struct path p, char *buf, size_t size)
{
	struct inode *ino = p.dentry->inode;

	if (ino->type != S_IFLNK || !ino->ops->readlink)
		return -EINVAL;
	return ino->ops->readlink(ino, buf, size);
}

int vfs_statfs(struct path p, struct fs_statfs *out)
{
	static const struct {
		unsigned mount;
		uint32_t st;
	} map[] = {
		{ MS_NOSUID, ST_NOSUID },         { MS_NODEV, ST_NODEV },
		{ MS_NOEXEC, ST_NOEXEC },         { MS_NOATIME, ST_NOATIME },
		{ MS_NODIRATIME, ST_NODIRATIME }, { MS_RELATIME, ST_RELATIME },
	};
	struct superblock *sb = p.dentry->sb;
	unsigned flags = atomic_load(&p.mnt->flags);

	memset(out, 0, sizeof(*out));
	int err = sb->ops->statfs(sb, out);
	if (err)
		return err;
	out->flags = ST_VALID | (mount_is_readonly(p.mnt) ? ST_RDONLY : 0u);
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (flags & map[i].mount)
			out->flags |= map[i].st;
	return 0;
}

/* Attributes as the guest sees them: stat and kin, statfs and kin. */
#include <errno.h>
#include <linux/stat.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/mount.h"
#include "syscalls/fs_util.h"

static long store_stat(struct task *t, stat_gp dst, const struct fs_stat *s)
{
	struct stat st;

	memset(&st, 0, sizeof(st));
	st.st_dev = s->dev;
	st.st_ino = s->ino;
	st.st_nlink = s->nlink;
	st.st_mode = s->mode;
	st.st_uid = s->uid;
	st.st_gid = s->gid;
	st.st_rdev = s->rdev;
	st.st_size = (off_t)s->size;
	st.st_blksize = s->blksize;
	st.st_blocks = (blkcnt_t)s->blocks;
	st.st_atim = s->atime;
	st.st_mtim = s->mtime;
	st.st_ctim = s->ctime;
	return guest_store(t, dst, &st);
}

static long stat_path(struct task *t, int dirfd, path_cgp path, unsigned lflags, stat_gp statbuf)
{
	struct fs_stat s;
	struct path p;

	int err = path_at(t, dirfd, path, lflags, &p);
	if (err)
		return err;
	err = vfs_getattr(p, &s);
	path_put(p);
	return err ? err : store_stat(t, statbuf, &s);
}

long sys_stat(struct task *t, path_cgp path, stat_gp statbuf)
{
	return stat_path(t, AT_FDCWD, path, LOOKUP_FOLLOW, statbuf);
}

long sys_lstat(struct task *t, path_cgp path, stat_gp statbuf)
{
	return stat_path(t, AT_FDCWD, path, 0, statbuf);
}

static int stat_fd(struct task *t, int fd, struct fs_stat *out)
{
	struct file *f = task_file(t, fd);
	int err = -EBADF;

	if (f && file_inode(f))
		err = file_inode(f)->ops->getattr(file_inode(f), out);
	file_put(f);
	return err;
}

long sys_fstat(struct task *t, int fd, stat_gp statbuf)
{
	struct fs_stat s;
	int err = stat_fd(t, fd, &s);

	return err ? err : store_stat(t, statbuf, &s);
}

long sys_newfstatat(struct task *t, int dirfd, path_cgp path, stat_gp statbuf, int flags)
{
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH))
		return -EINVAL;
	return stat_path(t, dirfd, path, lookup_of_at(flags), statbuf);
}

static struct statx_timestamp statx_time(struct timespec ts)
{
	return (struct statx_timestamp){ .tv_sec = ts.tv_sec, .tv_nsec = (uint32_t)ts.tv_nsec };
}

static void fill_statx(struct statx *x, const struct fs_stat *s, const struct mount *mnt)
{
	memset(x, 0, sizeof(*x));
	x->stx_mask = STATX_BASIC_STATS | STATX_MNT_ID | (s->has_btime ? STATX_BTIME : 0);
	x->stx_blksize = s->blksize;
	x->stx_attributes = s->attributes;
	x->stx_attributes_mask = s->attributes_mask;
	x->stx_nlink = s->nlink;
	x->stx_uid = s->uid;
	x->stx_gid = s->gid;
	x->stx_mode = (uint16_t)s->mode;
	x->stx_ino = s->ino;
	x->stx_size = s->size;
	x->stx_blocks = s->blocks;
	x->stx_atime = statx_time(s->atime);
	x->stx_mtime = statx_time(s->mtime);
	x->stx_ctime = statx_time(s->ctime);
	if (s->has_btime)
		x->stx_btime = statx_time(s->btime);
	x->stx_rdev_major = major(s->rdev);
	x->stx_rdev_minor = minor(s->rdev);
	x->stx_dev_major = major(s->dev);
	x->stx_dev_minor = minor(s->dev);
	x->stx_mnt_id = (uint64_t)mnt->id;
}

long sys_statx(struct task *t, int dirfd, path_cgp path, int flags, uint32_t mask,
	       statx_gp statxbuf)
{
	struct fs_stat s;
	struct statx x;
	struct path p;

	if ((flags &
	     ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE)) ||
	    (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE || (mask & STATX__RESERVED))
		return -EINVAL;
	int err = path_at(t, dirfd, path, lookup_of_at(flags), &p);
	if (err)
		return err;
	err = vfs_getattr(p, &s);
	if (!err) {
		fill_statx(&x, &s, p.mnt);
		if (p.dentry == p.mnt->root)
			x.stx_attributes |= STATX_ATTR_MOUNT_ROOT;
		x.stx_attributes_mask |= STATX_ATTR_MOUNT_ROOT;
	}
	path_put(p);
	return err ? err : guest_store(t, statxbuf, &x);
}

/* ---- file systems ------------------------------------------------------------------------- */

static long store_statfs(struct task *t, statfs_gp dst, struct path p)
{
	struct fs_statfs s;
	struct statfs k;

	int err = vfs_statfs(p, &s);
	if (err)
		return err;
	memset(&k, 0, sizeof(k));
	k.f_type = s.type;
	k.f_bsize = (long)s.bsize;
	k.f_blocks = s.blocks;
	k.f_bfree = s.bfree;
	k.f_bavail = s.bavail;
	k.f_files = s.files;
	k.f_ffree = s.ffree;
	memcpy(&k.f_fsid, &s.fsid, sizeof(k.f_fsid));
	k.f_namelen = s.namelen;
	k.f_frsize = s.frsize ? s.frsize : (long)s.bsize;
	k.f_flags = s.flags;
	return guest_store(t, dst, &k);
}

long sys_statfs(struct task *t, path_cgp path, statfs_gp buf)
{
	struct path p;

	long r = path_at(t, AT_FDCWD, path, LOOKUP_FOLLOW, &p);
	if (r)
		return r;
	r = store_statfs(t, buf, p);
	path_put(p);
	return r;
}

long sys_fstatfs(struct task *t, int fd, statfs_gp buf)
{
	struct path p;

	long r = path_of_fd(t, fd, false, &p);
	if (r)
		return r;
	r = store_statfs(t, buf, p);
	path_put(p);
	return r;
}

long sys_ustat(struct task *t, uint32_t dev, buf_gp ubuf)
{
	struct fs_statfs s;
	struct {
		int32_t tfree;
		uint64_t tinode;
		char fname[6], fpack[6];
	} u;

	mutex_lock(&t->fs->mu);
	struct path root = path_get(t->fs->root);
	mutex_unlock(&t->fs->mu);
	struct superblock *sb = mount_find_dev(root, dev);
	path_put(root);
	if (!sb)
		return -EINVAL;
	memset(&s, 0, sizeof(s));
	int err = sb->ops->statfs(sb, &s);
	superblock_put(sb);
	if (err)
		return err;
	memset(&u, 0, sizeof(u));
	u.tfree = (int32_t)s.bfree;
	u.tinode = s.ffree;
	return guest_write(t, ubuf.addr, &u, sizeof(u));
}

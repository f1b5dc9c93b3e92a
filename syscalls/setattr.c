/* Changing attributes: chmod, chown, utime and their kin. */
#include <errno.h>
#include <string.h>
#include <utime.h>

#include "syscalls/fs_util.h"

/* Applies a to p (takes it). */
static long set_and_put(struct task *t, struct path p, const struct iattr *a)
{
	int err = vfs_setattr(p, t->cred, a);

	path_put(p);
	return err;
}

/* ---- mode --------------------------------------------------------------------------------- */

static struct iattr mode_attr(uint32_t mode)
{
	return (struct iattr){ .valid = ATTR_MODE | ATTR_CTIME, .mode = mode & 07777 };
}

long sys_fchmodat2(struct task *t, int dirfd, path_cgp path, uint32_t mode, int flags)
{
	struct iattr a = mode_attr(mode);
	struct path p;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	int err = path_at(t, dirfd, path, lookup_of_at(flags), &p);
	if (err)
		return err;
	/* Links have no mode of their own. */
	if (p.dentry->inode->type == S_IFLNK) {
		path_put(p);
		return -EOPNOTSUPP;
	}
	return set_and_put(t, p, &a);
}

long sys_fchmodat(struct task *t, int dirfd, path_cgp path, uint32_t mode)
{
	return sys_fchmodat2(t, dirfd, path, mode, 0);
}

long sys_chmod(struct task *t, path_cgp path, uint32_t mode)
{
	return sys_fchmodat2(t, AT_FDCWD, path, mode, 0);
}

long sys_fchmod(struct task *t, int fd, uint32_t mode)
{
	struct iattr a = mode_attr(mode);
	struct path p;
	int err = path_of_fd(t, fd, true, &p);

	return err ? err : set_and_put(t, p, &a);
}

/* ---- owner -------------------------------------------------------------------------------- */

/* An id of -1 is left as it is. */
static struct iattr owner_attr(uint32_t owner, uint32_t group)
{
	return (struct iattr){ .valid = ATTR_CTIME | ATTR_CHOWN |
					(owner != UINT32_MAX ? ATTR_UID : 0) |
					(group != UINT32_MAX ? ATTR_GID : 0),
			       .uid = owner,
			       .gid = group };
}

long sys_fchownat(struct task *t, int dirfd, path_cgp path, uint32_t owner, uint32_t group,
		  int flags)
{
	struct iattr a = owner_attr(owner, group);
	struct path p;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	int err = path_at(t, dirfd, path, lookup_of_at(flags), &p);
	return err ? err : set_and_put(t, p, &a);
}

long sys_chown(struct task *t, path_cgp path, uint32_t owner, uint32_t group)
{
	return sys_fchownat(t, AT_FDCWD, path, owner, group, 0);
}

long sys_lchown(struct task *t, path_cgp path, uint32_t owner, uint32_t group)
{
	return sys_fchownat(t, AT_FDCWD, path, owner, group, AT_SYMLINK_NOFOLLOW);
}

long sys_fchown(struct task *t, int fd, uint32_t owner, uint32_t group)
{
	struct iattr a = owner_attr(owner, group);
	struct path p;
	int err = path_of_fd(t, fd, true, &p);

	return err ? err : set_and_put(t, p, &a);
}

/* ---- times -------------------------------------------------------------------------------- */

/* Two times as utimensat(2) has them, or NULL for now; 1: nothing to do. */
static int times_attr(const struct timespec ts[2], struct iattr *a)
{
	*a = (struct iattr){ .valid = ATTR_CTIME };
	if (!ts) {
		a->valid |= ATTR_ATIME_NOW | ATTR_MTIME_NOW;
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		long ns = ts[i].tv_nsec;
		if (ns != UTIME_NOW && ns != UTIME_OMIT && (ns < 0 || ns > 999999999))
			return -EINVAL;
		if (ns == UTIME_NOW)
			a->valid |= i ? ATTR_MTIME_NOW : ATTR_ATIME_NOW;
		else if (ns != UTIME_OMIT)
			a->valid |= i ? ATTR_MTIME : ATTR_ATIME;
	}
	a->atime = ts[0];
	a->mtime = ts[1];
	return ts[0].tv_nsec == UTIME_OMIT && ts[1].tv_nsec == UTIME_OMIT;
}

/* A NULL path means the descriptor itself. */
static long set_times(struct task *t, int dirfd, path_cgp path, const struct timespec ts[2],
		      int flags)
{
	struct iattr a;
	struct path p;

	int err = times_attr(ts, &a);
	if (err)
		return err < 0 ? err : 0;
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (gaddr_is_null(path.addr) && dirfd != AT_FDCWD)
		err = flags ? -EINVAL : path_of_fd(t, dirfd, true, &p);
	else
		err = path_at(t, dirfd, path, lookup_of_at(flags), &p);
	return err ? err : set_and_put(t, p, &a);
}

long sys_utimensat(struct task *t, int dirfd, path_cgp path, timespec_cgp times, int flags)
{
	struct timespec ts[2];
	bool now = gaddr_is_null(times.addr);

	int err = now ? 0 : guest_load_n(t, ts, 2, times);
	return err ? err : set_times(t, dirfd, path, now ? NULL : ts, flags);
}

static int load_timevals(struct task *t, timeval_cgp times, struct timespec ts[2])
{
	struct timeval tv[2];

	int err = guest_load_n(t, tv, 2, times);
	if (err)
		return err;
	for (int i = 0; i < 2; i++) {
		if (tv[i].tv_usec < 0 || tv[i].tv_usec >= 1000000)
			return -EINVAL;
		ts[i] = (struct timespec){ tv[i].tv_sec, tv[i].tv_usec * 1000 };
	}
	return 0;
}

long sys_futimesat(struct task *t, int dirfd, path_cgp path, timeval_cgp times)
{
	struct timespec ts[2];
	bool now = gaddr_is_null(times.addr);

	int err = now ? 0 : load_timevals(t, times, ts);
	return err ? err : set_times(t, dirfd, path, now ? NULL : ts, 0);
}

long sys_utimes(struct task *t, path_cgp path, timeval_cgp times)
{
	return sys_futimesat(t, AT_FDCWD, path, times);
}

long sys_utime(struct task *t, path_cgp path, i64_cgp times)
{
	int64_t v[2];
	bool now = gaddr_is_null(times.addr);

	int err = now ? 0 : guest_load_n(t, v, 2, times);
	if (err)
		return err;
	struct timespec ts[2] = { { .tv_sec = now ? 0 : v[0] }, { .tv_sec = now ? 0 : v[1] } };
	return set_times(t, AT_FDCWD, path, now ? NULL : ts, 0);
}

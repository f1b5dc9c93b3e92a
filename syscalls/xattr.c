/* Extended attributes: xattr(7). */
#include <errno.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/inotify.h>

#include "fs/inotify.h"
#include "fs/mount.h"
#include "platform/base/alloc.h"
#include "syscalls/fs_util.h"

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Who may touch an attribute of this name space: 0 or -errno as Linux' xattr_permission. */
static int check_permission(struct path p, const struct cred *c, const char *name, bool write)
{
	struct inode *ino = p.dentry->inode;
	struct fs_stat st;

	if (write) {
		int err = mount_want_write(p.mnt);
		if (err)
			return err;
	}
	if (has_prefix(name, XATTR_SECURITY_PREFIX))
		return write && !cred_capable(c, CAP_SYS_ADMIN) ? -EPERM : 0;
	/* Access control lists: none of our file systems has them, whatever a host tree may hold.
	 */
	if (has_prefix(name, XATTR_SYSTEM_PREFIX))
		return -EOPNOTSUPP;
	if (has_prefix(name, XATTR_TRUSTED_PREFIX)) {
		if (cred_capable(c, CAP_SYS_ADMIN))
			return 0;
		return write ? -EPERM : -ENODATA;
	}
	if (has_prefix(name, XATTR_USER_PREFIX)) {
		if (ino->type != S_IFREG && ino->type != S_IFDIR)
			return write ? -EPERM : -ENODATA;
		if (write && ino->type == S_IFDIR) {
			int err = ino->ops->getattr(ino, &st);
			if (err)
				return err;
			if ((st.mode & S_ISVTX) && !inode_owner_or_capable(&st, c))
				return -EPERM;
		}
	}
	int err = inode_permission(ino, c, write ? MAY_WRITE : MAY_READ);
	/* Nobody serves any other name space. */
	return err || has_prefix(name, XATTR_USER_PREFIX) ? err : -EOPNOTSUPP;
}

static int load_name(struct task *t, path_cgp src, char name[XATTR_NAME_MAX + 1])
{
	ssize_t n = guest_load_str(t, name, XATTR_NAME_MAX + 1, src);

	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? (int)n : 0;
}

/* The three ways to name the object. */
struct target {
	bool is_fd;
	int fd;
	path_cgp path;
	bool follow;
};

static int find_target(struct task *t, struct target w, struct path *out)
{
	if (w.is_fd)
		return path_of_fd(t, w.fd, true, out);
	return path_at(t, AT_FDCWD, w.path, w.follow ? LOOKUP_FOLLOW : 0, out);
}

static struct target by_path(path_cgp path, bool follow)
{
	return (struct target){ .path = path, .follow = follow };
}

static struct target by_fd(int fd)
{
	return (struct target){ .is_fd = true, .fd = fd };
}

/* ---- set and remove ----------------------------------------------------------------------- */

static int set_on(struct path p, const struct cred *c, const char *name, const void *val,
		  size_t size, int flags)
{
	struct inode *ino = p.dentry->inode;

	int err = check_permission(p, c, name, true);
	if (!err)
		err = ino->ops->setxattr ? ino->ops->setxattr(ino, name, val, size, flags)
					 : -EOPNOTSUPP;
	if (!err)
		fsnotify_dentry(p.dentry, IN_ATTRIB);
	return err;
}

static long do_set(struct task *t, struct target w, path_cgp name, buf_cgp value, uint64_t size,
		   int flags)
{
	char kname[XATTR_NAME_MAX + 1];
	void *val = NULL;
	struct path p;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	int err = load_name(t, name, kname);
	if (err)
		return err;
	if (size > XATTR_SIZE_MAX)
		return -E2BIG;
	if (size > 0) {
		val = mem_alloc(size);
		err = val ? guest_read(t, val, value.addr, size) : -ENOMEM;
	}
	if (!err)
		err = find_target(t, w, &p);
	if (!err) {
		err = set_on(p, t->cred, kname, val, size, flags);
		path_put(p);
	}
	mem_free(val);
	return err;
}

long sys_setxattr(struct task *t, path_cgp path, path_cgp name, buf_cgp value, uint64_t size,
		  int flags)
{
	return do_set(t, by_path(path, true), name, value, size, flags);
}

long sys_lsetxattr(struct task *t, path_cgp path, path_cgp name, buf_cgp value, uint64_t size,
		   int flags)
{
	return do_set(t, by_path(path, false), name, value, size, flags);
}

long sys_fsetxattr(struct task *t, int fd, path_cgp name, buf_cgp value, uint64_t size, int flags)
{
	return do_set(t, by_fd(fd), name, value, size, flags);
}

static long do_remove(struct task *t, struct target w, path_cgp name)
{
	char kname[XATTR_NAME_MAX + 1];
	struct path p;

	int err = load_name(t, name, kname);
	if (!err)
		err = find_target(t, w, &p);
	if (err)
		return err;
	struct inode *ino = p.dentry->inode;
	err = check_permission(p, t->cred, kname, true);
	if (!err)
		err = ino->ops->removexattr ? ino->ops->removexattr(ino, kname) : -EOPNOTSUPP;
	if (!err)
		fsnotify_dentry(p.dentry, IN_ATTRIB);
	path_put(p);
	return err;
}

long sys_removexattr(struct task *t, path_cgp path, path_cgp name)
{
	return do_remove(t, by_path(path, true), name);
}

long sys_lremovexattr(struct task *t, path_cgp path, path_cgp name)
{
	return do_remove(t, by_path(path, false), name);
}

long sys_fremovexattr(struct task *t, int fd, path_cgp name)
{
	return do_remove(t, by_fd(fd), name);
}

/* ---- get and list ------------------------------------------------------------------------- */

/* Size, or what the file system put into buf (`cap` bytes). */
static ssize_t read_attr(struct path p, const struct cred *c, const char *name, void *buf,
			 size_t cap)
{
	struct inode *ino = p.dentry->inode;

	int err = check_permission(p, c, name, false);
	if (err)
		return err;
	return ino->ops->getxattr ? ino->ops->getxattr(ino, name, buf, cap) : -EOPNOTSUPP;
}

/* name NULL: the list of names. */
static long do_get(struct task *t, struct target w, const char *name, buf_gp dst, uint64_t size)
{
	size_t cap = MIN(size, (uint64_t)XATTR_SIZE_MAX);
	void *buf = cap ? mem_alloc(cap) : NULL;
	struct path p;

	if (cap && !buf)
		return -ENOMEM;
	ssize_t n = find_target(t, w, &p);
	if (n == 0) {
		struct inode *ino = p.dentry->inode;
		if (name)
			n = read_attr(p, t->cred, name, buf, cap);
		else
			n = ino->ops->listxattr ? ino->ops->listxattr(ino, buf, cap) : 0;
		path_put(p);
	}
	if (n > 0 && cap) {
		int err = guest_write(t, dst.addr, buf, (size_t)n);
		if (err)
			n = err;
	}
	mem_free(buf);
	return n;
}

static long do_getxattr(struct task *t, struct target w, path_cgp name, buf_gp value, uint64_t size)
{
	char kname[XATTR_NAME_MAX + 1];
	int err = load_name(t, name, kname);

	return err ? err : do_get(t, w, kname, value, size);
}

long sys_getxattr(struct task *t, path_cgp path, path_cgp name, buf_gp value, uint64_t size)
{
	return do_getxattr(t, by_path(path, true), name, value, size);
}

long sys_lgetxattr(struct task *t, path_cgp path, path_cgp name, buf_gp value, uint64_t size)
{
	return do_getxattr(t, by_path(path, false), name, value, size);
}

long sys_fgetxattr(struct task *t, int fd, path_cgp name, buf_gp value, uint64_t size)
{
	return do_getxattr(t, by_fd(fd), name, value, size);
}

long sys_listxattr(struct task *t, path_cgp path, buf_gp list, uint64_t size)
{
	return do_get(t, by_path(path, true), NULL, list, size);
}

long sys_llistxattr(struct task *t, path_cgp path, buf_gp list, uint64_t size)
{
	return do_get(t, by_path(path, false), NULL, list, size);
}

long sys_flistxattr(struct task *t, int fd, buf_gp list, uint64_t size)
{
	return do_get(t, by_fd(fd), NULL, list, size);
}

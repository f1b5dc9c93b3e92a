/* inotify(7). */
#include "fs/inotify.h"

#include <errno.h>
#include <sys/inotify.h>

#include "syscalls/fs_util.h"

#ifndef IN_MASK_CREATE
#define IN_MASK_CREATE 0x10000000
#endif
#define KNOWN_MASK                                                                                 \
	(IN_ALL_EVENTS | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED | IN_ONLYDIR | IN_DONT_FOLLOW |   \
	 IN_EXCL_UNLINK | IN_MASK_ADD | IN_MASK_CREATE | IN_ISDIR | IN_ONESHOT)

long sys_inotify_init1(struct task *t, uint32_t flags)
{
	struct file *f;

	if (flags & ~(uint32_t)(IN_CLOEXEC | IN_NONBLOCK))
		return -EINVAL;
	int err = inotify_file_new(flags, &f);
	return err ? err : install_file(t, f, flags & IN_CLOEXEC);
}

long sys_inotify_init(struct task *t)
{
	return sys_inotify_init1(t, 0);
}

long sys_inotify_add_watch(struct task *t, int fd, path_cgp path, uint32_t mask)
{
	unsigned lflags = (mask & IN_DONT_FOLLOW ? 0 : LOOKUP_FOLLOW) |
			  (mask & IN_ONLYDIR ? LOOKUP_DIRECTORY : 0);
	struct path p;

	if ((mask & ~(uint32_t)KNOWN_MASK) || !(mask & KNOWN_MASK))
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	long r = 0;
	if (((mask & IN_MASK_ADD) && (mask & IN_MASK_CREATE)) || !file_is_inotify(f))
		r = -EINVAL;
	if (r == 0)
		r = path_at(t, AT_FDCWD, path, lflags, &p);
	if (r == 0) {
		r = inode_permission(p.dentry->inode, t->cred, MAY_READ);
		if (r == 0)
			r = inotify_add(f, p.dentry->inode, mask);
		path_put(p);
	}
	file_put(f);
	return r;
}

long sys_inotify_rm_watch(struct task *t, int fd, int wd)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = inotify_rm(f, wd);
	file_put(f);
	return err;
}

/* Descriptors: close, dup, fcntl, ioctl. Record locks and flock are in lock.c. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "fs/fasync.h"
#include "fs/lease.h"
#include "fs/pipe.h"
#include "fs/tmpfs.h"
#include "syscalls/fs_util.h"
#include "syscalls/lock.h"

#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY (1024 + 4)
#endif
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (1024 + 3)
#endif
#define SETFL_MASK (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC)

/* ---- close and dup ------------------------------------------------------------------------ */

long sys_close(struct task *t, int fd)
{
	int err = fd_close(t->files, fd);

	/* The descriptor is gone: a restart would close another. */
	return err == -ERESTARTSYS ? -EINTR : err;
}

long sys_close_range(struct task *t, uint32_t first, uint32_t last, uint32_t flags)
{
	if ((flags & ~(uint32_t)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)) || first > last)
		return -EINVAL;
	int err = flags & CLOSE_RANGE_UNSHARE ? task_unshare_files(t) : 0;
	if (!err)
		fd_close_range(t->files, first, last, flags & CLOSE_RANGE_CLOEXEC);
	return err;
}

long sys_dup(struct task *t, int oldfd)
{
	struct file *f = fd_get(t->files, oldfd);

	return f ? install_file(t, f, false) : -EBADF;
}

static long dup_to(struct task *t, int oldfd, int newfd, bool cloexec)
{
	struct file *f = fd_get(t->files, oldfd), *old = NULL;

	if (!f)
		return -EBADF;
	int err = fd_replace(t->files, newfd, f, cloexec, &old);
	if (err) {
		file_put(f);
		return err;
	}
	if (old)
		fd_finish_close(t->files, old);
	return newfd;
}

long sys_dup2(struct task *t, int oldfd, int newfd)
{
	if (oldfd != newfd)
		return dup_to(t, oldfd, newfd, false);
	return fd_get_cloexec(t->files, oldfd) < 0 ? -EBADF : newfd;
}

long sys_dup3(struct task *t, int oldfd, int newfd, int flags)
{
	if ((flags & ~O_CLOEXEC) || oldfd == newfd)
		return -EINVAL;
	return dup_to(t, oldfd, newfd, flags & O_CLOEXEC);
}

/* ---- fcntl -------------------------------------------------------------------------------- */

static long dup_from(struct task *t, struct file *f, uint64_t min, bool cloexec)
{
	if (min >= task_rlimit(t, RLIMIT_NOFILE) || min > INT_MAX)
		return -EINVAL;
	int fd = fd_install(t->files, file_get(f), (int)min, cloexec);
	if (fd < 0)
		file_put(f);
	return fd;
}

static long store_flags(int fd, struct file *f, unsigned new)
{
	int err = f->ops->set_flags ? f->ops->set_flags(f, new) : 0;

	if (!err && ((new ^ file_flags(f)) & O_ASYNC))
		err = fasync_set(f, fd, new &O_ASYNC);
	if (!err)
		atomic_store(&f->flags, new);
	return err;
}

static long set_status_flags(struct task *t, int fd, struct file *f, unsigned arg)
{
	unsigned old = file_flags(f), new = (old & ~(unsigned)SETFL_MASK) | (arg & SETFL_MASK);
	struct inode *ino = file_inode(f);
	struct fs_stat st;

	if ((new & ~old &O_NOATIME) && ino) {
		int err = ino->ops->getattr(ino, &st);
		if (err)
			return err;
		if (!inode_owner_or_capable(&st, t->cred))
			return -EPERM;
	}
	return store_flags(fd, f, new);
}

static int set_owner(struct task *t, struct file *f, int type, int id)
{
	if (id != 0) {
		struct task *other = task_find(id);
		/* A process group may outlive its leader; any member will do. */
		if (!other && type != F_OWNER_PGRP)
			return -ESRCH;
		task_put(other);
	}
	mutex_lock(&f->pos_mu);
	f->owner.type = id ? type : -1;
	f->owner.id = id;
	f->owner.uid = t->cred->uid;
	f->owner.euid = t->cred->euid;
	mutex_unlock(&f->pos_mu);
	return 0;
}

static struct file_owner get_owner(struct file *f)
{
	mutex_lock(&f->pos_mu);
	struct file_owner o = f->owner;
	mutex_unlock(&f->pos_mu);
	if (o.type < 0)
		o.id = 0;
	return o;
}

static long owner_call(struct task *t, struct file *f, int cmd, uint64_t arg)
{
	struct f_owner_ex ex;
	struct file_owner o;
	int err, id = (int)arg;

	switch (cmd) {
	case F_SETOWN:
		if (id == INT_MIN)
			return -EINVAL;
		return set_owner(t, f, id < 0 ? F_OWNER_PGRP : F_OWNER_PID, id < 0 ? -id : id);
	case F_GETOWN:
		o = get_owner(f);
		return o.type == F_OWNER_PGRP ? -o.id : o.id;
	case F_SETOWN_EX:
		err = guest_read(t, &ex, gaddr(arg), sizeof(ex));
		if (err)
			return err;
		if (ex.type != F_OWNER_TID && ex.type != F_OWNER_PID && ex.type != F_OWNER_PGRP)
			return -EINVAL;
		return set_owner(t, f, (int)ex.type, ex.pid);
	default: /* F_GETOWN_EX */
		o = get_owner(f);
		ex.type = o.type < 0 ? F_OWNER_TID : (enum __pid_type)o.type;
		ex.pid = o.id;
		return guest_write(t, gaddr(arg), &ex, sizeof(ex));
	}
}

static long signal_call(struct file *f, int cmd, uint64_t arg)
{
	if (cmd == F_GETSIG)
		return get_owner(f).sig;
	if (arg > 64)
		return -EINVAL;
	mutex_lock(&f->pos_mu);
	f->owner.sig = (int)arg;
	mutex_unlock(&f->pos_mu);
	return 0;
}

static long same_file(struct task *t, struct file *f, uint64_t arg)
{
	struct file *other = fd_get(t->files, (int)arg);
	long r = other ? other == f : -EBADF;

	file_put(other);
	return r;
}

/* Commands on an open file; O_PATH descriptors never get here. */
static long fcntl_file(struct task *t, int fd, struct file *f, int cmd, uint64_t arg)
{
	switch (cmd) {
	case F_SETFL:
		return set_status_flags(t, fd, f, (unsigned)arg);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return fcntl_lock(t, fd, f, cmd, gaddr(arg));
	case F_SETOWN:
	case F_GETOWN:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
		return owner_call(t, f, cmd, arg);
	case F_SETSIG:
	case F_GETSIG:
		return signal_call(f, cmd, arg);
	case F_GETPIPE_SZ:
		return pipe_get_size(f);
	case F_SETPIPE_SZ:
		return pipe_set_size(f, (uint32_t)arg, t->cred);
	case F_ADD_SEALS:
		return memfd_add_seals(f, (unsigned)arg);
	case F_GET_SEALS:
		return memfd_get_seals(f);
	case F_SETLEASE:
		return lease_set(f, fd, (int)arg, t->cred);
	case F_GETLEASE:
		return lease_get(f);
	default: /* directory notification and write hints are not offered */
		return -EINVAL;
	}
}

static long fcntl_any(struct task *t, int fd, struct file *f, int cmd, uint64_t arg)
{
	switch (cmd) {
	case F_DUPFD:
		return dup_from(t, f, arg & UINT32_MAX, false);
	case F_DUPFD_CLOEXEC:
		return dup_from(t, f, arg & UINT32_MAX, true);
	case F_DUPFD_QUERY:
		return same_file(t, f, arg);
	case F_CREATED_QUERY:
		return f->created;
	case F_GETFD:
		return fd_get_cloexec(t->files, fd);
	case F_SETFD:
		return fd_set_cloexec(t->files, fd, arg & FD_CLOEXEC);
	case F_GETFL:
		return file_flags(f);
	}
	return file_flags(f) & O_PATH ? -EBADF : fcntl_file(t, fd, f, cmd, arg);
}

long sys_fcntl(struct task *t, int fd, int cmd, uint64_t arg)
{
	struct file *f = fd_get(t->files, fd);

	if (!f)
		return -EBADF;
	long r = fcntl_any(t, fd, f, cmd, arg);
	file_put(f);
	return r;
}

/* ---- ioctl -------------------------------------------------------------------------------- */

static long set_flag_by_int(struct task *t, int fd, struct file *f, unsigned flag, uint64_t arg)
{
	int on;

	int err = guest_read(t, &on, gaddr(arg), sizeof(on));
	if (err)
		return err;
	unsigned new = on ? file_flags(f) | flag : file_flags(f) & ~flag;
	return store_flags(fd, f, new);
}

/* What regular files and directories answer by themselves. */
static long ioctl_plain(struct task *t, struct file *f, uint32_t request, uint64_t arg)
{
	struct inode *ino = file_inode(f);
	struct fs_stat st;
	int value;

	if (!ino || (ino->type != S_IFREG && ino->type != S_IFDIR))
		return -ENOTTY;
	if (request != FIGETBSZ && (request != FIONREAD || ino->type != S_IFREG))
		return -ENOTTY;
	int err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	if (request == FIGETBSZ) {
		value = (int)st.blksize;
	} else {
		mutex_lock(&f->pos_mu);
		value = (int)((int64_t)st.size - f->pos);
		mutex_unlock(&f->pos_mu);
	}
	return guest_write(t, gaddr(arg), &value, sizeof(value));
}

static long do_ioctl(struct task *t, int fd, struct file *f, uint32_t request, uint64_t arg)
{
	struct umem um = guest_umem(t);

	switch (request) {
	case FIOCLEX:
		return fd_set_cloexec(t->files, fd, true);
	case FIONCLEX:
		return fd_set_cloexec(t->files, fd, false);
	case FIONBIO:
		return set_flag_by_int(t, fd, f, O_NONBLOCK, arg);
	case FIOASYNC:
		return set_flag_by_int(t, fd, f, O_ASYNC, arg);
	}
	long r = f->ops->ioctl ? f->ops->ioctl(f, request, arg, &um) : -ENOTTY;
	return r == -ENOTTY ? ioctl_plain(t, f, request, arg) : r;
}

long sys_ioctl(struct task *t, int fd, uint32_t request, uint64_t arg)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	long r = do_ioctl(t, fd, f, request, arg);
	file_put(f);
	return r;
}

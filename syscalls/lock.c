/* Advisory locks as the guest asks for them: fcntl_locking(2), flock(2). */
#include "syscalls/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "fs/lock_file.h"
#include "syscalls/handlers.h"

static int start_of(struct file *f, const struct flock *fl, int64_t *out)
{
	struct inode *ino = file_inode(f);
	struct fs_stat st;
	int64_t base = 0;

	switch (fl->l_whence) {
	case SEEK_SET:
		break;
	case SEEK_CUR:
		mutex_lock(&f->pos_mu);
		base = f->pos;
		mutex_unlock(&f->pos_mu);
		break;
	case SEEK_END: {
		int err = ino->ops->getattr(ino, &st);
		if (err)
			return err;
		base = (int64_t)st.size;
		break;
	}
	default:
		return -EINVAL;
	}
	if (fl->l_start > INT64_MAX - base)
		return -EOVERFLOW;
	*out = base + fl->l_start;
	return *out < 0 ? -EINVAL : 0;
}

static int range_of(struct file *f, const struct flock *fl, struct lock_range *r)
{
	int64_t start;

	int err = start_of(f, fl, &start);
	if (err)
		return err;
	*r = (struct lock_range){ .start = start, .end = INT64_MAX, .type = fl->l_type };
	if (fl->l_len > 0) {
		if (fl->l_len - 1 > INT64_MAX - start)
			return -EOVERFLOW;
		r->end = start + fl->l_len - 1;
	} else if (fl->l_len < 0) {
		/* The range ends before the start (POSIX since 2001). */
		if (start + fl->l_len < 0)
			return -EINVAL;
		r->start = start + fl->l_len;
		r->end = start - 1;
	}
	return fl->l_type == F_RDLCK || fl->l_type == F_WRLCK || fl->l_type == F_UNLCK ? 0
										       : -EINVAL;
}

static void answer(struct flock *fl, const struct lock_range *r)
{
	fl->l_type = (short)r->type;
	if (r->type == F_UNLCK)
		return;
	fl->l_whence = SEEK_SET;
	fl->l_start = r->start;
	fl->l_len = r->end == INT64_MAX ? 0 : r->end - r->start + 1;
	fl->l_pid = r->pid;
}

static long set_lock(struct task *t, int fd, struct file *f, const void *owner,
		     struct lock_range *r, bool wait)
{
	if (r->type == F_RDLCK && !file_can_read(f))
		return -EBADF;
	if (r->type == F_WRLCK && !file_can_write(f))
		return -EBADF;
	int err = lock_range_set(f, owner, t->group->tgid, r, wait);
	if (err || r->type == F_UNLCK || owner == f)
		return err;
	/* Another thread may have closed the descriptor meanwhile; its close must drop this lock
	 * too. */
	struct file *now = fd_get(t->files, fd);
	if (now != f)
		lock_file_closed(f, owner);
	file_put(now);
	return now == f ? 0 : -EBADF;
}

long fcntl_lock(struct task *t, int fd, struct file *f, int cmd, struct gaddr arg)
{
	bool ofd = cmd == F_OFD_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
	bool get = cmd == F_GETLK || cmd == F_OFD_GETLK;
	const void *owner = ofd ? (const void *)f : (const void *)t->files;
	struct lock_range r, found;
	struct flock fl;

	int err = guest_read(t, &fl, arg, sizeof(fl));
	if (err)
		return err;
	if (!file_inode(f) || (ofd && fl.l_pid != 0) ||
	    (get && fl.l_type != F_RDLCK && fl.l_type != F_WRLCK && !(ofd && fl.l_type == F_UNLCK)))
		return -EINVAL;
	err = range_of(f, &fl, &r);
	if (err)
		return err;
	if (!get)
		return set_lock(t, fd, f, owner, &r, cmd == F_SETLKW || cmd == F_OFD_SETLKW);
	lock_range_get(f, owner, &r, &found);
	answer(&fl, &found);
	return guest_write(t, arg, &fl, sizeof(fl));
}

long sys_flock(struct task *t, int fd, int operation)
{
	int op = operation & ~LOCK_NB;

	if (operation & ~(LOCK_SH | LOCK_EX | LOCK_UN | LOCK_NB))
		return -EINVAL;
	if (op != LOCK_SH && op != LOCK_EX && op != LOCK_UN)
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	long r = -EBADF;
	if (op == LOCK_UN || file_can_read(f) || file_can_write(f))
		r = file_inode(f) ? lock_flock(f, operation) : -EBADF;
	file_put(f);
	return r;
}

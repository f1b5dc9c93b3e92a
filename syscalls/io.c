/* Reading and writing, positions, sizes, syncing. Copies between files are in copy.c. */
#include <errno.h>
#include <sys/resource.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/inotify.h>

#include "fs/hooks.h"
#include "fs/inotify.h"
#include "syscalls/fs_util.h"

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif
#define RWF_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | RWF_NOAPPEND)

/* ---- plain -------------------------------------------------------------------------------- */

long sys_read(struct task *t, int fd, buf_gp buf, uint64_t count)
{
	struct file *f = fd_get_io(t->files, fd);
	struct iov_iter it;

	if (!f)
		return -EBADF;
	long r = file_can_read(f) ? guest_iter_buf(t, &it, buf.addr, count, IOV_FILL) : -EBADF;
	if (r == 0)
		r = vfs_read(f, &it, NULL);
	file_put(f);
	return r;
}

long sys_write(struct task *t, int fd, buf_cgp buf, uint64_t count)
{
	struct file *f = fd_get_io(t->files, fd);
	struct iov_iter it;

	if (!f)
		return -EBADF;
	long r = file_can_write(f) ? guest_iter_buf(t, &it, buf.addr, count, IOV_DRAIN) : -EBADF;
	if (r == 0)
		r = vfs_write(f, &it, NULL);
	file_put(f);
	return r;
}

/* What an open file must allow for a call at an explicit position. */
static int check_positional(struct file *f, bool write)
{
	if (!f->ops->seek)
		return -ESPIPE;
	return (write ? file_can_write(f) : file_can_read(f)) ? 0 : -EBADF;
}

long sys_pread64(struct task *t, int fd, buf_gp buf, uint64_t count, int64_t offset)
{
	struct iov_iter it;

	if (offset < 0)
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	long r = check_positional(f, false);
	if (r == 0)
		r = guest_iter_buf(t, &it, buf.addr, count, IOV_FILL);
	if (r == 0)
		r = vfs_read(f, &it, &offset);
	file_put(f);
	return r;
}

long sys_pwrite64(struct task *t, int fd, buf_cgp buf, uint64_t count, int64_t offset)
{
	struct iov_iter it;

	if (offset < 0)
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	long r = check_positional(f, true);
	if (r == 0)
		r = guest_iter_buf(t, &it, buf.addr, count, IOV_DRAIN);
	if (r == 0)
		r = vfs_write(f, &it, &offset);
	file_put(f);
	return r;
}

/* ---- vectors ------------------------------------------------------------------------------ */

/* What RWF_DSYNC and RWF_SYNC add after a write. */
static long sync_written(struct file *f, long n, uint32_t flags)
{
	if (n <= 0 || !(flags & (RWF_DSYNC | RWF_SYNC)) || !f->ops->fsync)
		return n;
	int err = f->ops->fsync(f, !(flags & RWF_SYNC));
	return err ? err : n;
}

static int check_rwf(struct file *f, uint32_t flags, bool write)
{
	if (flags & ~(uint32_t)RWF_KNOWN)
		return -EOPNOTSUPP;
	if ((flags & RWF_NOWAIT) && (!file_inode(f) || file_inode(f)->type != S_IFREG))
		return -EOPNOTSUPP;
	if ((flags & RWF_APPEND) && (flags & RWF_NOAPPEND))
		return -EINVAL;
	if (!write && (flags & RWF_APPEND))
		return -EOPNOTSUPP;
	return 0;
}

/* pos NULL: the file's own. */
static long do_vector(struct task *t, int fd, iovec_cgp iov, uint64_t count, int64_t *pos,
		      uint32_t flags, bool write)
{
	struct file *f = fd_get_io(t->files, fd);
	struct iov_iter it;

	if (!f)
		return -EBADF;
	long r = 0;
	if (pos)
		r = check_positional(f, write);
	else if (!(write ? file_can_write(f) : file_can_read(f)))
		r = -EBADF;
	if (r == 0)
		r = guest_iter(t, &it, iov, count, write ? IOV_DRAIN : IOV_FILL);
	if (r == 0 && flags)
		r = check_rwf(f, flags, write);
	if (r == 0 && write) {
		bool append = (flags & RWF_APPEND) ||
			      ((file_flags(f) & O_APPEND) && !(flags & RWF_NOAPPEND));
		r = sync_written(f, vfs_write_append(f, &it, pos, append), flags);
	} else if (r == 0) {
		r = vfs_read(f, &it, pos);
	}
	file_put(f);
	return r;
}

long sys_readv(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt)
{
	return do_vector(t, fd, iov, iovcnt, NULL, 0, false);
}

long sys_writev(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt)
{
	return do_vector(t, fd, iov, iovcnt, NULL, 0, true);
}

/* The high half of the position is for 32-bit machines. */
long sys_preadv(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt, int64_t pos_l,
		int64_t pos_h UNUSED)
{
	return pos_l < 0 ? -EINVAL : do_vector(t, fd, iov, iovcnt, &pos_l, 0, false);
}

long sys_pwritev(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt, int64_t pos_l,
		 int64_t pos_h UNUSED)
{
	return pos_l < 0 ? -EINVAL : do_vector(t, fd, iov, iovcnt, &pos_l, 0, true);
}

long sys_preadv2(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt, int64_t pos_l,
		 int64_t pos_h UNUSED, uint32_t flags)
{
	if (pos_l < -1)
		return -EINVAL;
	return do_vector(t, fd, iov, iovcnt, pos_l == -1 ? NULL : &pos_l, flags, false);
}

long sys_pwritev2(struct task *t, int fd, iovec_cgp iov, uint64_t iovcnt, int64_t pos_l,
		  int64_t pos_h UNUSED, uint32_t flags)
{
	if (pos_l < -1)
		return -EINVAL;
	return do_vector(t, fd, iov, iovcnt, pos_l == -1 ? NULL : &pos_l, flags, true);
}

/* ---- positions and sizes ------------------------------------------------------------------ */

long sys_lseek(struct task *t, int fd, int64_t offset, int whence)
{
	struct file *f = fd_get_io(t->files, fd);
	long r = -EINVAL;

	if (!f)
		return -EBADF;
	if (whence >= 0 && whence <= SEEK_HOLE) {
		r = -ESPIPE;
		if (f->ops->seek) {
			mutex_lock(&f->pos_mu);
			r = f->ops->seek(f, offset, whence);
			mutex_unlock(&f->pos_mu);
		}
	}
	file_put(f);
	return r;
}

long sys_ftruncate(struct task *t, int fd, int64_t length)
{
	if (length < 0)
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	int err = vfs_ftruncate(f, (uint64_t)length);
	file_put(f);
	return err;
}

static int check_fallocate(struct file *f, int mode, int64_t offset, int64_t len)
{
	const int exclusive = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE |
			      FALLOC_FL_ZERO_RANGE | FALLOC_FL_INSERT_RANGE |
			      FALLOC_FL_UNSHARE_RANGE;
	struct inode *ino = file_inode(f);
	int kind = mode & exclusive;

	if (offset < 0 || len <= 0)
		return -EINVAL;
	if ((mode & ~(exclusive | FALLOC_FL_KEEP_SIZE)) || (kind & (kind - 1)))
		return -EOPNOTSUPP;
	if (kind == FALLOC_FL_PUNCH_HOLE && !(mode & FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if ((kind == FALLOC_FL_COLLAPSE_RANGE || kind == FALLOC_FL_INSERT_RANGE) &&
	    (mode & FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (!file_can_write(f))
		return -EBADF;
	if (!ino || ino->type == S_IFIFO)
		return -ESPIPE;
	if (ino->type == S_IFDIR)
		return -EISDIR;
	if (ino->type != S_IFREG)
		return -ENODEV;
	if (offset > INT64_MAX - len)
		return -EFBIG;
	return f->ops->fallocate ? 0 : -EOPNOTSUPP;
}

/* May the file grow to `end`? RLIMIT_FSIZE counts only when it does grow. */
static int check_growth(struct file *f, int mode, uint64_t end)
{
	struct fs_stat st;
	uint64_t limit = fs_hooks->rlimit(RLIMIT_FSIZE);

	if ((mode & FALLOC_FL_KEEP_SIZE) || end <= limit)
		return 0;
	int err = file_inode(f)->ops->getattr(file_inode(f), &st);
	if (err || end <= st.size)
		return err;
	fs_hooks->signal_self(SIGXFSZ);
	return -EFBIG;
}

long sys_fallocate(struct task *t, int fd, int mode, int64_t offset, int64_t len)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = check_fallocate(f, mode, offset, len);
	if (!err)
		err = check_growth(f, mode, (uint64_t)(offset + len));
	if (!err)
		err = f->ops->fallocate(f, mode, (uint64_t)offset, (uint64_t)len);
	if (!err)
		fsnotify_file(f, IN_MODIFY);
	file_put(f);
	return err;
}

/* ---- syncing and advice ------------------------------------------------------------------- */

static long do_fsync(struct task *t, int fd, bool datasync)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = f->ops->fsync ? f->ops->fsync(f, datasync) : -EINVAL;
	file_put(f);
	return err;
}

long sys_fsync(struct task *t, int fd)
{
	return do_fsync(t, fd, false);
}

long sys_fdatasync(struct task *t, int fd)
{
	return do_fsync(t, fd, true);
}

/* LINUX: writes all dirty pages. Ours are the host's, which writes them in its own time. */
long sys_sync(struct task *t UNUSED)
{
	return 0;
}

long sys_syncfs(struct task *t, int fd)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	file_put(f);
	return 0;
}

long sys_sync_file_range(struct task *t, int fd, int64_t offset, int64_t nbytes, uint32_t flags)
{
	struct file *f = fd_get_io(t->files, fd);
	long r = 0;

	if (!f)
		return -EBADF;
	struct inode *ino = file_inode(f);
	if ((flags & ~7u) || offset < 0 || nbytes < 0 || offset > INT64_MAX - nbytes)
		r = -EINVAL;
	else if (!ino || (ino->type != S_IFREG && ino->type != S_IFBLK && ino->type != S_IFDIR))
		r = -ESPIPE;
	else if (f->ops->fsync)
		r = f->ops->fsync(f, true);
	file_put(f);
	return r;
}

long sys_fadvise64(struct task *t, int fd, int64_t offset UNUSED, uint64_t len, int advice)
{
	struct file *f = fd_get_io(t->files, fd);
	long r = 0;

	if (!f)
		return -EBADF;
	if (file_inode(f) && file_inode(f)->type == S_IFIFO)
		r = -ESPIPE;
	else if ((int64_t)len < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE)
		r = -EINVAL;
	file_put(f);
	return r;
}

long sys_readahead(struct task *t, int fd, int64_t offset UNUSED, uint64_t count UNUSED)
{
	struct file *f = fd_get_io(t->files, fd);
	long r = 0;

	if (!f)
		return -EBADF;
	if (!file_can_read(f))
		r = -EBADF;
	else if (!file_inode(f) ||
		 (file_inode(f)->type != S_IFREG && file_inode(f)->type != S_IFBLK))
		r = -EINVAL;
	file_put(f);
	return r;
}

/* ---- page cache --------------------------------------------------------------------------- */

struct cache_range {
	uint64_t off, len; /* len 0: to the end */
};

struct cache_stat {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* Pages of f in [first, end) that hold data; the position stays. */
static uint64_t data_pages(struct task *t, struct file *f, uint64_t first, uint64_t end)
{
	uint64_t pages = 0;
	int64_t at = (int64_t)(first << PAGE_SHIFT), hole;

	mutex_lock(&f->pos_mu);
	int64_t saved = f->pos;
	while (!signal_pending(t)) {
		at = f->ops->seek(f, at, SEEK_DATA);
		if (at < 0 || (uint64_t)at >> PAGE_SHIFT >= end)
			break;
		hole = f->ops->seek(f, at, SEEK_HOLE);
		if (hole <= at)
			break;
		uint64_t stop = ((uint64_t)hole + PAGE_SIZE - 1) >> PAGE_SHIFT;
		pages += MIN(stop, end) - ((uint64_t)at >> PAGE_SHIFT);
		at = (int64_t)(stop << PAGE_SHIFT);
	}
	f->pos = saved;
	mutex_unlock(&f->pos_mu);
	return pages;
}

static int cache_stat_of(struct task *t, struct file *f, buf_cgp range, buf_gp cstat,
			 uint32_t flags)
{
	struct cache_stat out = { 0 };
	struct cache_range r;
	uint64_t last;

	if (guest_read(t, &r, range.addr, sizeof(r)) != 0)
		return -EFAULT;
	if (flags)
		return -EINVAL;
	if (r.len == 0 || __builtin_add_overflow(r.off, r.len - 1, &last) || last > INT64_MAX)
		last = INT64_MAX;
	if (file_inode(f) && file_inode(f)->type == S_IFREG && f->ops->seek && r.off <= last)
		out.cached = data_pages(t, f, r.off >> PAGE_SHIFT, (last >> PAGE_SHIFT) + 1);
	return guest_write(t, cstat.addr, &out, sizeof(out)) ? -EFAULT : 0;
}

long sys_cachestat(struct task *t, int fd, buf_cgp range, buf_gp cstat, uint32_t flags)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = cache_stat_of(t, f, range, cstat, flags);
	file_put(f);
	return err;
}

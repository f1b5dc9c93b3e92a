/*
 * Open files: the embedded base, and reading and writing through the VFS with the rules that do not
 * depend on the file system (positions, limits, O_APPEND, set-id bits, notifications).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include "fs/epoll.h"
#include "fs/hooks.h"
#include "fs/inotify.h"
#include "fs/fasync.h"
#include "fs/lease.h"
#include "fs/lock_file.h"
#include "fs/mount.h"
#include "fs/namei.h"
#include "fs/sock.h"

#define RW_COUNT_MAX 0x7ffff000ul /* MAX_RW_COUNT of Linux */

void file_init(struct file *f, const struct file_ops *ops, struct inode *ino, unsigned flags)
{
	ref_init(&f->ref);
	f->ops = ops;
	f->inode = ino;
	f->path = (struct path){ NULL, NULL };
	atomic_init(&f->flags, flags);
	f->cred = NULL;
	if (fs_hooks && fs_hooks->current_cred) {
		const struct cred *c = fs_hooks->current_cred();
		/* Counting a reference is the one change that a shared cred allows. */
		f->cred = c ? cred_get((struct cred *)(uintptr_t)c) : NULL;
	}
	mutex_init(&f->pos_mu, RANK_FILE_POS);
	f->pos = 0;
	f->owner = (struct file_owner){ .type = -1, .fd = -1 };
	f->async = NULL;
	list_init(&f->epoll_links);
	f->counts_writer = false;
	f->counts_reader = false;
	f->created = false;
	atomic_init(&f->lock_count, 0);
}

static void file_free(struct file *f)
{
	unsigned flags = file_flags(f);

	if (!list_empty(&f->epoll_links))
		epoll_file_gone(f);
	if (!(flags & O_PATH) && f->path.dentry)
		fsnotify_file(f, file_can_write(f) ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
	fasync_file_gone(f);
	lock_file_gone(f);
	lease_file_gone(f);
	struct inode *ino = f->inode;
	struct path path = f->path;
	struct cred *cred = f->cred;
	bool writer = f->counts_writer, reader = f->counts_reader;
	mutex_fini(&f->pos_mu);
	f->ops->release(f); /* frees f */
	if (writer)
		inode_put_write(path.dentry->inode);
	if (reader)
		atomic_fetch_sub(&path.dentry->inode->readers, 1);
	inode_put(ino);
	path_put(path);
	cred_put(cred);
}

DEFINE_REF(file);

bool file_can_read(struct file *f)
{
	unsigned flags = file_flags(f), acc = flags & O_ACCMODE;

	return !(flags & O_PATH) && (acc == O_RDONLY || acc == O_RDWR);
}

bool file_can_write(struct file *f)
{
	unsigned flags = file_flags(f), acc = flags & O_ACCMODE;

	return !(flags & O_PATH) && (acc == O_WRONLY || acc == O_RDWR);
}

bool file_nonblock(struct file *f)
{
	return file_flags(f) & O_NONBLOCK;
}

uint32_t file_poll(struct file *f, struct poll_table *pt)
{
	if (!f->ops->poll)
		return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
	return f->ops->poll(f, pt);
}

int64_t file_seek_size(struct file *f, int64_t off, int whence, int64_t size)
{
	int64_t pos;

	switch (whence) {
	case SEEK_SET:
		pos = off;
		break;
	case SEEK_CUR:
		if (__builtin_add_overflow(f->pos, off, &pos))
			return -EOVERFLOW;
		break;
	case SEEK_END:
		if (__builtin_add_overflow(size, off, &pos))
			return -EOVERFLOW;
		break;
	case SEEK_DATA:
		if (off < 0 || off >= size)
			return -ENXIO;
		pos = off;
		break;
	case SEEK_HOLE:
		if (off < 0 || off >= size)
			return -ENXIO;
		pos = size;
		break;
	default:
		return -EINVAL;
	}
	if (pos < 0)
		return -EINVAL;
	f->pos = pos;
	return pos;
}

/* ---- data --------------------------------------------------------------------------------- */

static bool is_seekable(struct file *f)
{
	return f->ops->seek != NULL;
}

/* Position and length must stay within off_t. */
static int check_area(int64_t pos, size_t count)
{
	if (pos < 0 || (uint64_t)pos + count > INT64_MAX)
		return -EINVAL;
	return 0;
}

static ssize_t read_at(struct file *f, struct iov_iter *it, int64_t *pos)
{
	int err = check_area(*pos, it->count);

	return err ? err : f->ops->read(f, it, pos);
}

ssize_t vfs_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	int64_t none = 0;
	ssize_t n;

	if (!file_can_read(f))
		return -EBADF;
	if (file_is_dir(f))
		return -EISDIR;
	if (!f->ops->read)
		return -EINVAL;
	if (pos && !is_seekable(f))
		return -ESPIPE;
	iov_truncate(it, RW_COUNT_MAX);
	if (!pos && is_seekable(f)) {
		mutex_lock(&f->pos_mu);
		n = read_at(f, it, &f->pos);
		mutex_unlock(&f->pos_mu);
	} else {
		n = read_at(f, it, pos ? pos : &none);
	}
	if (n > 0)
		fsnotify_file(f, IN_ACCESS);
	return n;
}

/* The rules for regular files: appending, and how far a file may grow. */
static int prepare_regular(struct file *f, struct inode *ino, struct iov_iter *it, int64_t *pos,
			   bool append)
{
	if (append) {
		struct fs_stat st;
		int err = ino->ops->getattr(ino, &st);
		if (err)
			return err;
		*pos = (int64_t)st.size;
	}
	uint64_t limit = fs_hooks ? fs_hooks->rlimit(RLIMIT_FSIZE) : RLIM_INFINITY;
	if (limit != RLIM_INFINITY) {
		if ((uint64_t)*pos >= limit) {
			fs_hooks->signal_self(SIGXFSZ);
			return -EFBIG;
		}
		iov_truncate(it, limit - (uint64_t)*pos);
	}
	if (*pos == INT64_MAX)
		return -EFBIG;
	iov_truncate(it, (size_t)(INT64_MAX - *pos));
	return f->cred ? inode_drop_setid(ino, f->cred) : 0;
}

/* One writer of a file at a time, so that an append cannot overwrite another. */
static ssize_t write_regular(struct file *f, struct inode *ino, struct iov_iter *it, int64_t *pos,
			     bool append)
{
	if (it->count == 0)
		return 0;
	/* A file's position comes before its inode's write lock. */
	mutex_lock_nested(&ino->write_mu);
	ssize_t n = prepare_regular(f, ino, it, pos, append);
	if (n == 0)
		n = f->ops->write(f, it, pos);
	mutex_unlock(&ino->write_mu);
	return n;
}

static ssize_t write_at(struct file *f, struct iov_iter *it, int64_t *pos, bool append)
{
	struct inode *ino = file_inode(f);
	int err = check_area(*pos, it->count);

	if (err)
		return err;
	if (is_seekable(f) && ino && ino->type == S_IFREG)
		return write_regular(f, ino, it, pos, append);
	return f->ops->write(f, it, pos);
}

ssize_t vfs_write_append(struct file *f, struct iov_iter *it, int64_t *pos, bool append)
{
	int64_t none = 0;
	ssize_t n;

	if (!file_can_write(f))
		return -EBADF;
	if (!f->ops->write)
		return -EINVAL;
	if (pos && !is_seekable(f))
		return -ESPIPE;
	iov_truncate(it, RW_COUNT_MAX);
	if (!pos && is_seekable(f)) {
		mutex_lock(&f->pos_mu);
		n = write_at(f, it, &f->pos, append);
		mutex_unlock(&f->pos_mu);
	} else {
		n = write_at(f, it, pos ? pos : &none, append);
	}
	if (n > 0)
		fsnotify_file(f, IN_MODIFY);
	if (n == -EPIPE && fs_hooks && sock_raises_sigpipe(f))
		fs_hooks->signal_self(SIGPIPE);
	return n;
}

ssize_t vfs_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	return vfs_write_append(f, it, pos, file_flags(f) & O_APPEND);
}

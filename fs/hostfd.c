/*
 * Inherited host descriptors: see hostfd.h. The inode owns the descriptor, files share it. A
 * regular file at its inherited description uses the host's own offset, so that
 * "(pinfold run -- a; b) > log" continues where a stopped; a file that was opened again has an
 * offset of its own.
 *
 * The inode's type is S_IFREG for regular files and S_IFIFO for everything else, since it only says
 * how the VFS is to treat it; getattr tells what the host says.
 */
#include "fs/hostfd.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <sys/ioctl.h>

#include "fs/hoststream.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

struct host_inode {
	struct inode inode;
	int fd;           /* [I] owned */
	unsigned accmode; /* [I] of the host's description */
	struct mutex mu;  /* rank PIPE: readiness of the stream */
	struct waitq wait;
	struct hoststream stream;
};

struct hostfd_file {
	struct file file;
	bool own_pos; /* [I] opened again: the position is ours */
};

static const struct inode_ops host_inode_ops;
static const struct file_ops host_regular_ops;
static const struct file_ops host_stream_ops;

static int host_statfs(struct superblock *sb UNUSED, struct fs_statfs *out)
{
	*out = (struct fs_statfs){ .type = 0x50495045 /* PIPEFS_MAGIC */,
				   .bsize = PAGE_SIZE,
				   .frsize = PAGE_SIZE,
				   .namelen = NAME_LEN_MAX };
	return 0;
}

static const struct sb_ops host_sb_ops = { .statfs = host_statfs };
/* Never freed and never mounted. */
static struct superblock host_sb = {
	.ref = { 1 },
	.ops = &host_sb_ops,
	.fs_name = "hostfd",
	.dev = 16,
	.rename_mu = MUTEX_INIT(RANK_RENAME),
};

static struct host_inode *hi_of(struct inode *ino)
{
	return container_of(ino, struct host_inode, inode);
}

static int host_getattr(struct inode *ino, struct fs_stat *out)
{
	struct stat st;
	int err = host_fstat(hi_of(ino)->fd, &st);

	if (err)
		return err;
	*out = (struct fs_stat){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.rdev = st.st_rdev,
		.mode = st.st_mode,
		.nlink = (uint32_t)st.st_nlink,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.blksize = (uint32_t)st.st_blksize,
		.atime = st.st_atim,
		.mtime = st.st_mtim,
		.ctime = st.st_ctim,
	};
	return 0;
}

/* Only the size: owner and mode are the host's business. */
static int host_setattr(struct inode *ino, const struct iattr *attr)
{
	if (attr->valid & (ATTR_MODE | ATTR_UID | ATTR_GID))
		return -EPERM;
	if (!(attr->valid & ATTR_SIZE) || ino->type != S_IFREG)
		return 0;
	if (hi_of(ino)->accmode == O_RDONLY)
		return -EACCES;
	return host_ftruncate(hi_of(ino)->fd, attr->size);
}

/* Who holds the descriptor may use it; how far is checked against its own access mode on opening.
 */
static int host_permission(struct inode *ino UNUSED, const struct cred *c UNUSED, int mask)
{
	return mask & MAY_EXEC ? -EACCES : 0;
}

static int host_open(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	return hostfd_reopen(ino, flags, out);
}

/* The numbers 0-2 stay taken, by something harmless: were 2 to become a guest's file, our own
 * messages would land in it. */
static void close_stream(int fd)
{
	int filler = fd <= 2 ? host_eventfd() : -1;

	if (filler < 0 || host_dup_onto(filler, fd) < 0)
		host_close(fd);
	if (filler >= 0)
		host_close(filler);
}

static void host_inode_free(struct inode *ino)
{
	struct host_inode *hi = hi_of(ino);

	hoststream_fini(&hi->stream);
	waitq_fini(&hi->wait);
	mutex_fini(&hi->mu);
	close_stream(hi->fd);
	mem_free(hi);
}

static const struct inode_ops host_inode_ops = {
	.getattr = host_getattr,
	.setattr = host_setattr,
	.open = host_open,
	.permission = host_permission,
	.free = host_inode_free,
};

bool hostfd_owns(const struct inode *ino)
{
	return ino->ops == &host_inode_ops;
}

/* ---- regular files ------------------------------------------------------------------------ */

/* The offset to hand to the host: -1 means the description's own. */
static int64_t host_pos(struct file *f, const int64_t *pos)
{
	bool own = container_of(f, struct hostfd_file, file)->own_pos;

	return pos == &f->pos && !own ? -1 : *pos;
}

static ssize_t regular_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	ssize_t n = host_read_iter(hi_of(f->inode)->fd, it, host_pos(f, pos));

	if (n > 0)
		*pos += n;
	return n;
}

static ssize_t regular_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	ssize_t n = host_write_iter(hi_of(f->inode)->fd, it, host_pos(f, pos));

	if (n > 0)
		*pos += n;
	return n;
}

static int64_t regular_seek(struct file *f, int64_t off, int whence)
{
	struct host_inode *hi = hi_of(f->inode);
	struct stat st;

	if (!container_of(f, struct hostfd_file, file)->own_pos)
		return host_lseek(hi->fd, off, whence);
	int err = host_fstat(hi->fd, &st);
	return err ? err : file_seek_size(f, off, whence, st.st_size);
}

static int regular_mmap(struct file *f, int prot UNUSED, bool shared UNUSED, struct file_map *out)
{
	*out = (struct file_map){ .host_fd = hi_of(f->inode)->fd };
	return 0;
}

static int regular_fsync(struct file *f, bool datasync)
{
	return host_fsync(hi_of(f->inode)->fd, datasync);
}

static int regular_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	return host_fallocate(hi_of(f->inode)->fd, mode, off, len);
}

/* ---- streams ------------------------------------------------------------------------------ */

/* Without sleeping first, so that a stream on which nobody waits is never watched. */
static ssize_t stream_transfer(struct file *f, struct iov_iter *it,
			       ssize_t (*move)(struct hoststream *, struct iov_iter *, bool),
			       bool whole)
{
	struct host_inode *hi = hi_of(f->inode);

	mutex_lock(&hi->mu);
	ssize_t n = move(&hi->stream, it, true);
	mutex_unlock(&hi->mu);
	bool unfinished = n == -EAGAIN || (whole && n >= 0 && it->count > 0);
	if (file_nonblock(f) || !unfinished)
		return n;
	ssize_t done = n > 0 ? n : 0;
	hoststream_prepare_wait(&hi->stream);
	mutex_lock(&hi->mu);
	n = move(&hi->stream, it, false);
	mutex_unlock(&hi->mu);
	if (n < 0)
		return done ? done : n;
	return done + n;
}

static ssize_t stream_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	return stream_transfer(f, it, hoststream_read, false);
}

static ssize_t stream_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	return stream_transfer(f, it, hoststream_write, true);
}

static uint32_t stream_poll(struct file *f, struct poll_table *pt)
{
	return hoststream_poll(&hi_of(f->inode)->stream, pt);
}

static long hostfd_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	int value = 0;

	if (cmd != FIONREAD && cmd != TIOCOUTQ)
		return -ENOTTY;
	int err = host_ioctl(hi_of(f->inode)->fd, cmd, &value);
	return err < 0 ? err : umem_write(um, arg, &value, sizeof(value));
}

/* ---- both --------------------------------------------------------------------------------- */

static void hostfd_release(struct file *f)
{
	mem_free(container_of(f, struct hostfd_file, file));
}

/* As /proc shows descriptors without a name. */
static void hostfd_describe(struct file *f, struct fmt *out)
{
	struct stat st;

	if (host_fstat(hi_of(f->inode)->fd, &st) < 0)
		return;
	if (S_ISFIFO(st.st_mode))
		fmt_printf(out, "pipe:[%llu]", (unsigned long long)st.st_ino);
	else if (S_ISSOCK(st.st_mode))
		fmt_printf(out, "socket:[%llu]", (unsigned long long)st.st_ino);
	else if (S_ISCHR(st.st_mode) && st.st_rdev == 0x103 /* makedev(1, 3) */)
		fmt_puts(out, "/dev/null");
	else
		fmt_printf(out, "host:[%llu]", (unsigned long long)st.st_ino);
}

static const struct file_ops host_regular_ops = {
	.read = regular_read,
	.write = regular_write,
	.seek = regular_seek,
	.mmap = regular_mmap,
	.fsync = regular_fsync,
	.fallocate = regular_fallocate,
	.ioctl = hostfd_ioctl,
	.release = hostfd_release,
	.describe = hostfd_describe,
};

static const struct file_ops host_stream_ops = {
	.read = stream_read,
	.write = stream_write,
	.poll = stream_poll,
	.ioctl = hostfd_ioctl,
	.release = hostfd_release,
	.describe = hostfd_describe,
};

static int file_over(struct inode *ino, int flags, bool own_pos, struct file **out)
{
	struct hostfd_file *hf = mem_zalloc(sizeof(*hf));

	if (!hf)
		return -ENOMEM;
	hf->own_pos = own_pos;
	file_init(&hf->file, ino->type == S_IFREG ? &host_regular_ops : &host_stream_ops,
		  inode_get(ino), (unsigned)flags);
	*out = &hf->file;
	return 0;
}

int hostfd_reopen(struct inode *ino, int flags, struct file **out)
{
	unsigned have = hi_of(ino)->accmode, want = (unsigned)flags & O_ACCMODE;

	if (have != O_RDWR && have != want)
		return -EACCES;
	return file_over(ino, flags, true, out);
}

static uint32_t interest_of(unsigned accmode)
{
	uint32_t in = accmode != O_WRONLY ? POLLIN : 0;

	return in | (accmode != O_RDONLY ? POLLOUT : 0u);
}

int hostfd_new(int host_fd, int flags, struct file **out)
{
	struct host_inode *hi = NULL;
	struct stat st;

	if (hosttty_is_terminal(host_fd))
		return hosttty_file_new(host_fd, flags, out);
	int err = host_fstat(host_fd, &st);
	if (!err && !(hi = mem_zalloc(sizeof(*hi))))
		err = -ENOMEM;
	if (err) {
		host_close(host_fd);
		return err;
	}
	hi->fd = host_fd;
	hi->accmode = (unsigned)flags & O_ACCMODE;
	mutex_init(&hi->mu, RANK_PIPE);
	waitq_init(&hi->wait);
	hoststream_init(&hi->stream, host_fd, interest_of(hi->accmode), &hi->mu, &hi->wait);
	inode_init(&hi->inode, &host_sb, &host_inode_ops, st.st_ino,
		   S_ISREG(st.st_mode) ? S_IFREG : S_IFIFO);
	err = file_over(&hi->inode, flags, false, out);
	inode_put(&hi->inode);
	return err;
}

int hostfd_open_std(const struct fs_lookup *l, int host_fd, struct file **out)
{
	char name[32];
	int flags = host_get_flags(host_fd);

	if (flags < 0)
		return flags;
	flags &= O_ACCMODE | O_APPEND | O_NONBLOCK;
	if (hosttty_is_terminal(host_fd) && hosttty_name(host_fd, name, sizeof(name)) == 0 &&
	    vfs_open(l, name, flags | O_NOCTTY, 0, out) == 0)
		return 0;
	return hostfd_new(host_fd, flags, out);
}

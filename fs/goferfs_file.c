/*
 * Regular files of goferfs. The gofer opens, then we read, write and map the host's descriptor
 * ourselves; positions are ours (pread and pwrite), so openers for reading share one descriptor per
 * inode.
 */
#include <errno.h>
#include <unistd.h>

#include "fs/goferfs_priv.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

/* Descriptors kept only in case somebody opens the file again: at most so many, and this part of
 * what we may have open. */
#define KEPT_MAX 512
#define KEPT_PART 8

struct goferfs_file {
	struct file file;
	struct host_file *hf;
};

static atomic_int kept;

static int kept_max(void)
{
	static atomic_int max;

	if (atomic_load(&max) == 0) {
		long limit = sysconf(_SC_OPEN_MAX);
		atomic_store(&max,
			     limit < 0 ? KEPT_MAX : (int)MIN(KEPT_MAX, limit / KEPT_PART + 1));
	}
	return atomic_load(&max);
}

static void host_file_free(struct host_file *hf)
{
	host_close(hf->fd);
	mem_free(hf);
}

DEFINE_REF(host_file);

int host_file_new(int fd, struct host_file **out)
{
	struct host_file *hf = mem_alloc(sizeof(*hf));

	if (!hf) {
		host_close(fd);
		return -ENOMEM;
	}
	ref_init(&hf->ref);
	hf->fd = fd;
	*out = hf;
	return 0;
}

static struct goferfs_file *to_file(struct file *f)
{
	return container_of(f, struct goferfs_file, file);
}

/* ---- operations --------------------------------------------------------------------------- */

static ssize_t file_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	ssize_t n = host_read_iter(to_file(f)->hf->fd, it, *pos);

	if (n > 0)
		*pos += n;
	return n;
}

static ssize_t file_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	ssize_t n = host_write_iter(to_file(f)->hf->fd, it, *pos);

	if (n > 0) {
		*pos += n;
		goferfs_stale(f->inode);
	}
	return n;
}

static int64_t file_seek(struct file *f, int64_t off, int whence)
{
	struct stat st;

	if (whence == SEEK_SET || whence == SEEK_CUR)
		return file_seek_size(f, off, whence, 0);
	if (whence == SEEK_DATA || whence == SEEK_HOLE) {
		/* The host's own position moves, which nobody uses. */
		int64_t pos = host_lseek(to_file(f)->hf->fd, off, whence);
		if (pos >= 0)
			f->pos = pos;
		return pos;
	}
	int err = host_fstat(to_file(f)->hf->fd, &st);
	return err ? err : file_seek_size(f, off, whence, st.st_size);
}

static int file_mmap(struct file *f, int prot UNUSED, bool shared, struct file_map *out)
{
	out->host_fd = to_file(f)->hf->fd;
	out->off_add = 0;
	if (shared && file_can_write(f))
		goferfs_stale(f->inode);
	return 0;
}

static int file_fsync(struct file *f, bool datasync)
{
	return host_fsync(to_file(f)->hf->fd, datasync);
}

static int file_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	int err = host_fallocate(to_file(f)->hf->fd, mode, off, len);

	goferfs_stale(f->inode);
	return err;
}

/* By the descriptor: the mode may have changed since the file was opened for writing. */
static int file_truncate(struct file *f, uint64_t size)
{
	int err = host_ftruncate(to_file(f)->hf->fd, size);

	goferfs_stale(f->inode);
	return err;
}

static void file_release(struct file *f)
{
	struct goferfs_file *gf = to_file(f);

	struct goferfs_inode *gi = to_goferfs(f->inode);
	mutex_lock(&gi->attr_mu);
	if (gi->writer == gf->hf)
		gi->writer = NULL;
	/* Mappings may have changed it until now. */
	if (file_can_write(f))
		gi->attr_at = 0;
	mutex_unlock(&gi->attr_mu);
	host_file_put(gf->hf);
	mem_free(gf);
}

static int file_host_fd(struct file *f)
{
	return to_file(f)->hf->fd;
}

static const struct file_ops goferfs_file_ops = {
	.truncate = file_truncate,
	.read = file_read,
	.write = file_write,
	.seek = file_seek,
	.mmap = file_mmap,
	.fsync = file_fsync,
	.fallocate = file_fallocate,
	.release = file_release,
	.host_fd = file_host_fd,
};

/* ---- open --------------------------------------------------------------------------------- */

/* A kept descriptor leaves its slot: it is for the caller now. */
static struct host_file *unkeep(struct host_file **slot)
{
	struct host_file *hf = *slot;

	*slot = NULL;
	if (hf)
		atomic_fetch_sub(&kept, 1);
	return hf;
}

/* Puts hf into the slot (takes), if it is free and there are not too many kept. Under attr_mu. */
static struct host_file *keep(struct host_file **slot, struct host_file *hf)
{
	if (*slot)
		return hf;
	if (atomic_fetch_add(&kept, 1) >= kept_max()) {
		atomic_fetch_sub(&kept, 1);
		return hf;
	}
	*slot = hf;
	return NULL;
}

void goferfs_keep_creator(struct goferfs_inode *gi, struct host_file *hf)
{
	mutex_lock(&gi->attr_mu);
	hf = keep(&gi->creator, hf);
	mutex_unlock(&gi->attr_mu);
	host_file_put(hf);
}

void goferfs_drop_kept(struct goferfs_inode *gi)
{
	mutex_lock(&gi->attr_mu);
	struct host_file *r = unkeep(&gi->reader), *c = unkeep(&gi->creator);
	mutex_unlock(&gi->attr_mu);
	host_file_put(r);
	host_file_put(c);
}

/* What is at hand for such an open, referenced, or NULL. */
static struct host_file *take_known(struct goferfs_inode *gi, int flags)
{
	struct host_file *hf = NULL, *drop = NULL;

	mutex_lock(&gi->attr_mu);
	if ((flags & O_ACCMODE) == O_RDONLY && gi->reader)
		hf = host_file_get(gi->reader);
	/* Not for readers: theirs must be a descriptor through which nothing can be written. */
	else if ((flags & O_ACCMODE) == O_RDONLY || (flags & (O_SYNC | O_DSYNC)))
		drop = unkeep(&gi->creator);
	else
		hf = unkeep(&gi->creator);
	mutex_unlock(&gi->attr_mu);
	host_file_put(drop);
	return hf;
}

/* Keeps a reader's descriptor for the next one. */
static void keep_reader(struct goferfs_inode *gi, struct host_file *hf)
{
	mutex_lock(&gi->attr_mu);
	struct host_file *left = keep(&gi->reader, host_file_get(hf));
	mutex_unlock(&gi->attr_mu);
	host_file_put(left);
}

static int get_host_file(struct inode *ino, int flags, struct host_file **out)
{
	struct goferfs_inode *gi = to_goferfs(ino);
	uint32_t host_flags = (uint32_t)flags & (O_ACCMODE | O_SYNC | O_DSYNC);
	uint32_t fid;
	int err, fd, tries = 0;

	*out = take_known(gi, flags);
	if (*out)
		return 0;
	/* The fourth access mode is Linux' "for ioctl only": nothing of the host's has any. */
	if ((flags & O_ACCMODE) == O_ACCMODE)
		host_flags = O_RDONLY;
	do {
		err = goferfs_fid(gi, &fid);
		if (!err)
			err = gofer_open(goferfs_of(ino)->client, fid, host_flags, &fd);
	} while (goferfs_again(gi, fid, err, &tries));
	if (!err)
		err = host_file_new(fd, out);
	if (!err && host_flags == O_RDONLY)
		keep_reader(gi, *out);
	return err;
}

int goferfs_open_file(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct goferfs_file *gf = mem_zalloc(sizeof(*gf));

	if (!gf)
		return -ENOMEM;
	int err = get_host_file(ino, flags, &gf->hf);
	if (err) {
		mem_free(gf);
		return err;
	}
	struct goferfs_inode *gi = to_goferfs(ino);
	mutex_lock(&gi->attr_mu);
	if ((flags & O_ACCMODE) != O_RDONLY && !gi->writer)
		gi->writer = gf->hf;
	mutex_unlock(&gi->attr_mu);
	file_init(&gf->file, &goferfs_file_ops, inode_get(ino), (unsigned)flags);
	*out = &gf->file;
	return 0;
}

const struct inode_ops goferfs_file_inode_ops = {
	.getattr = goferfs_getattr,
	.setattr = goferfs_setattr,
	.open = goferfs_open_file,
	.getxattr = goferfs_getxattr,
	.setxattr = goferfs_setxattr,
	.listxattr = goferfs_listxattr,
	.removexattr = goferfs_removexattr,
	.free = goferfs_free,
};

/*
 * Regular files of tmpfs, and the nameless ones of memfd_create(2). The inode's mu is taken nested:
 * a stacked file system may hold the mu of its own inode, which comes first.
 */
#include <errno.h>
#include <linux/memfd.h>
#include <string.h>
#include <unistd.h>

#include "fs/tmpfs_priv.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

#define SEAL_TRIES 20 /* of a millisecond each: how long a killed stub may keep a mapping */

struct tmpfs_file {
	struct file file;
};

static ssize_t file_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);

	ssize_t n = memfile_read(&ti->data, &f->inode->mu, it, (uint64_t)*pos);
	if (n > 0)
		*pos += n;
	if (n >= 0)
		tmpfs_accessed(f);
	return n;
}

static ssize_t file_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);

	mutex_lock_nested(&f->inode->mu);
	ssize_t n = memfile_write(&ti->data, it, (uint64_t)*pos);
	mutex_unlock(&f->inode->mu);
	if (n > 0) {
		*pos += n;
		tmpfs_touch(ti, ATTR_MTIME | ATTR_CTIME);
	}
	return n;
}

static int64_t file_seek(struct file *f, int64_t off, int whence)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return file_seek_size(f, off, whence, (int64_t)atomic_load(&ti->data.size));
	mutex_lock_nested(&f->inode->mu);
	int64_t pos = memfile_seek(&ti->data, off, whence);
	mutex_unlock(&f->inode->mu);
	if (pos >= 0)
		f->pos = pos;
	return pos;
}

static int file_mmap(struct file *f, int prot UNUSED, bool shared UNUSED, struct file_map *out)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);

	mutex_lock_nested(&f->inode->mu);
	int err = memfile_map(&ti->data, &out->host_fd);
	mutex_unlock(&f->inode->mu);
	out->off_add = 0;
	if (!err)
		tmpfs_accessed(f);
	return err;
}

static int file_fsync(struct file *f UNUSED, bool datasync UNUSED)
{
	return 0;
}

static int file_fallocate(struct file *f, int mode, uint64_t off, uint64_t len)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);

	mutex_lock_nested(&f->inode->mu);
	int err = memfile_fallocate(&ti->data, mode, off, len);
	mutex_unlock(&f->inode->mu);
	if (!err)
		tmpfs_touch(ti, ATTR_MTIME | ATTR_CTIME);
	return err;
}

static void file_release(struct file *f)
{
	mem_free(container_of(f, struct tmpfs_file, file));
}

static const struct file_ops tmpfs_file_ops = {
	.read = file_read,
	.write = file_write,
	.seek = file_seek,
	.mmap = file_mmap,
	.fsync = file_fsync,
	.fallocate = file_fallocate,
	.release = file_release,
};

int tmpfs_open_file(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct tmpfs_file *tf = mem_zalloc(sizeof(*tf));

	if (!tf)
		return -ENOMEM;
	file_init(&tf->file, &tmpfs_file_ops, inode_get(ino), (unsigned)flags);
	*out = &tf->file;
	return 0;
}

/* ---- memfd -------------------------------------------------------------------------------- */

struct memfd_file {
	struct file file;
	char *name;
};

static void memfd_release(struct file *f)
{
	struct memfd_file *mf = container_of(f, struct memfd_file, file);

	mem_free(mf->name);
	mem_free(mf);
}

static void memfd_describe(struct file *f, struct fmt *out)
{
	const struct memfd_file *mf = container_of(f, struct memfd_file, file);

	/* The anonymous kind is known by a path of its own. */
	fmt_printf(out, mf->name[0] == '/' ? "%s (deleted)" : "/memfd:%s (deleted)", mf->name);
}

static const struct file_ops memfd_file_ops = {
	.read = file_read,
	.write = file_write,
	.seek = file_seek,
	.mmap = file_mmap,
	.fsync = file_fsync,
	.fallocate = file_fallocate,
	.release = memfd_release,
	.describe = memfd_describe,
};

static struct superblock *memfd_sb; /* [I] after memfd_once; kept for ever, like Linux' shm_mnt */
static pthread_once_t memfd_once = PTHREAD_ONCE_INIT;

static void memfd_init_sb(void)
{
	if (tmpfs_new("size=0,nr_inodes=0", &memfd_sb) != 0)
		memfd_sb = NULL;
}

static int memfd_inode_new(const char *name, unsigned flags, const struct cred *c,
			   struct tmpfs_inode **out)
{
	struct tmpfs_inode *ti;

	pthread_once(&memfd_once, memfd_init_sb);
	if (!memfd_sb)
		return -ENOMEM;
	int err = tmpfs_inode_new(memfd_sb, S_IFREG | 0777, c->fsuid, c->fsgid, &ti);
	if (err)
		return err;
	ti->nlink = 0;
	if (flags & MFD_ALLOW_SEALING) {
		err = memfile_init_sealable(&ti->data, ti->data.pool, name);
		if (err) {
			memfile_init(&ti->data, &tmpfs_of(ti)->pool);
			inode_put(&ti->base);
			return err == -EMFILE || err == -ENFILE ? -ENFILE : err;
		}
		ti->sealable = true;
	}
	*out = ti;
	return 0;
}

int memfd_file_new(const char *name, unsigned flags, const struct cred *c, struct file **out)
{
	struct tmpfs_inode *ti;
	struct memfd_file *mf = mem_zalloc(sizeof(*mf));
	char *copy = mem_strdup(name);
	int err = mf && copy ? memfd_inode_new(name, flags, c, &ti) : -ENOMEM;

	if (err) {
		mem_free(copy);
		mem_free(mf);
		return err;
	}
	mf->name = copy;
	file_init(&mf->file, &memfd_file_ops, &ti->base, O_RDWR | 0100000u /* O_LARGEFILE */);
	cred_put(mf->file.cred);
	/* Counting a reference is the one change that a shared cred allows. */
	mf->file.cred = cred_get((struct cred *)(uintptr_t)c);
	*out = &mf->file;
	return 0;
}

/* Only tmpfs files have seals; the host keeps them where they can be changed. */
static struct tmpfs_inode *sealable_inode(struct file *f)
{
	if (!f->inode || f->inode->ops != &tmpfs_file_inode_ops)
		return NULL;
	return to_tmpfs(f->inode);
}

int memfd_add_seals(struct file *f, unsigned seals)
{
	struct tmpfs_inode *ti = sealable_inode(f);

	if (!ti)
		return -EINVAL;
	if (!file_can_write(f))
		return -EPERM;
	if (!ti->sealable)
		return -EPERM;
	/* A process that has ended may still map the file: its stub was killed but the host takes a
	 * moment to undo its mappings. Only what stays busy is really mapped. */
	for (int tries = 0;; tries++) {
		/* Under mu, so that a write is wholly before or wholly after. */
		mutex_lock_nested(&f->inode->mu);
		int err = host_add_seals(atomic_load(&ti->data.fd), seals);
		mutex_unlock(&f->inode->mu);
		if (err != -EBUSY || tries == SEAL_TRIES)
			return err;
		const struct timespec ms = { .tv_nsec = 1000000 };
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	}
}

int memfd_get_seals(struct file *f)
{
	struct tmpfs_inode *ti = sealable_inode(f);

	if (!ti)
		return -EINVAL;
	return ti->sealable ? host_get_seals(atomic_load(&ti->data.fd)) : F_SEAL_SEAL;
}

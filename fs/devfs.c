/*
 * /dev and character devices: see devfs.h. The memory devices (major 1) are here; terminals are in
 * fs/tty.c, fs/pty.c and fs/hosttty.c.
 */
#include "fs/devfs.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs/pty.h"
#include "fs/tmpfs.h"
#include "fs/tty.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

/* Documentation/admin-guide/devices.txt of the kernel. */
#define MEM_MAJOR 1
#define MEM_NULL 3
#define MEM_ZERO 5
#define MEM_FULL 7
#define MEM_RANDOM 8
#define MEM_URANDOM 9
#define TTYAUX_MAJOR 5

/* Random bytes per host call; also bounds how long one read ignores signals. */
#define RANDOM_CHUNK 4096

/* ---- memory devices ----------------------------------------------------------------------- */

static ssize_t null_read(struct file *f UNUSED, struct iov_iter *it UNUSED, int64_t *pos UNUSED)
{
	return 0;
}

static ssize_t null_write(struct file *f UNUSED, struct iov_iter *it, int64_t *pos UNUSED)
{
	size_t n = it->count;

	iov_advance(it, n);
	return (ssize_t)n;
}

static ssize_t zero_read(struct file *f UNUSED, struct iov_iter *it, int64_t *pos UNUSED)
{
	return iov_zero(it, it->count);
}

static ssize_t full_write(struct file *f UNUSED, struct iov_iter *it UNUSED, int64_t *pos UNUSED)
{
	return -ENOSPC;
}

static ssize_t random_read(struct file *f UNUSED, struct iov_iter *it, int64_t *pos UNUSED)
{
	uint8_t chunk[RANDOM_CHUNK];
	size_t done = 0;

	while (it->count > 0) {
		size_t want = MIN(it->count, sizeof(chunk));
		host_random(chunk, want);
		ssize_t n = iov_copy_to(it, chunk, want);
		if (n < 0)
			return done ? (ssize_t)done : n;
		done += (size_t)n;
		if ((size_t)n < want || sleeper_is_interrupted(sleeper_self()))
			break;
	}
	return (ssize_t)done;
}

/* The position of a memory device means nothing and every seek succeeds. */
static int64_t mem_seek(struct file *f UNUSED, int64_t off UNUSED, int whence UNUSED)
{
	return 0;
}

static int zero_mmap(struct file *f UNUSED, int prot UNUSED, bool shared UNUSED,
		     struct file_map *out)
{
	*out = (struct file_map){ .host_fd = -1 };
	return 0;
}

/* RNDGETENTCNT, the one random ioctl that needs no privilege. */
static long random_ioctl(struct file *f UNUSED, unsigned cmd, uint64_t arg, const struct umem *um)
{
	static const int entropy_bits = 256;

	if (cmd != _IOR('R', 0x00, int))
		return -ENOTTY;
	return umem_write(um, arg, &entropy_bits, sizeof(entropy_bits));
}

static void mem_release(struct file *f)
{
	mem_free(f);
}

static const struct file_ops null_ops = {
	.read = null_read,
	.write = null_write,
	.seek = mem_seek,
	.release = mem_release,
};

static const struct file_ops zero_ops = {
	.read = zero_read,
	.write = null_write,
	.seek = mem_seek,
	.mmap = zero_mmap,
	.release = mem_release,
};

static const struct file_ops full_ops = {
	.read = zero_read,
	.write = full_write,
	.seek = mem_seek,
	.release = mem_release,
};

static const struct file_ops random_ops = {
	.read = random_read,
	.write = null_write,
	.seek = mem_seek,
	.ioctl = random_ioctl,
	.release = mem_release,
};

static const struct file_ops *mem_device(unsigned int minor_number)
{
	switch (minor_number) {
	case MEM_NULL:
		return &null_ops;
	case MEM_ZERO:
		return &zero_ops;
	case MEM_FULL:
		return &full_ops;
	case MEM_RANDOM:
	case MEM_URANDOM:
		return &random_ops;
	}
	return NULL;
}

static int mem_open(struct inode *ino, int flags, struct file **out)
{
	const struct file_ops *ops = mem_device(minor(ino->rdev));
	struct file *f;

	if (!ops)
		return -ENXIO;
	f = mem_zalloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	file_init(f, ops, inode_get(ino), (unsigned)flags);
	*out = f;
	return 0;
}

int chrdev_open(struct inode *ino, int flags, const struct cred *c, struct file **out)
{
	switch (major(ino->rdev)) {
	case MEM_MAJOR:
		return mem_open(ino, flags, out);
	case TTYAUX_MAJOR:
		if (minor(ino->rdev) == TTYAUX_PTMX)
			return ptmx_open(ino, flags, c, out);
		return tty_aux_open(ino, flags, out);
	case PTS_MAJOR:
		return pts_open(ino, flags, out);
	}
	return -ENXIO;
}

/* ---- the tree ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t mode;
	unsigned int major_number, minor_number;
	const char *target; /* of links */
} dev_rows[] = {
	{ "null", S_IFCHR | 0666, MEM_MAJOR, MEM_NULL, NULL },
	{ "zero", S_IFCHR | 0666, MEM_MAJOR, MEM_ZERO, NULL },
	{ "full", S_IFCHR | 0666, MEM_MAJOR, MEM_FULL, NULL },
	{ "random", S_IFCHR | 0666, MEM_MAJOR, MEM_RANDOM, NULL },
	{ "urandom", S_IFCHR | 0666, MEM_MAJOR, MEM_URANDOM, NULL },
	{ "tty", S_IFCHR | 0666, TTYAUX_MAJOR, TTYAUX_TTY, NULL },
	{ "console", S_IFCHR | 0600, TTYAUX_MAJOR, TTYAUX_CONSOLE, NULL },
	{ "ptmx", S_IFLNK | 0777, 0, 0, "pts/ptmx" },
	{ "pts", S_IFDIR | 0755, 0, 0, NULL },
	{ "shm", S_IFDIR | 01777, 0, 0, NULL },
	{ "mqueue", S_IFDIR | 01777, 0, 0, NULL },
	{ "fd", S_IFLNK | 0777, 0, 0, "/proc/self/fd" },
	{ "stdin", S_IFLNK | 0777, 0, 0, "/proc/self/fd/0" },
	{ "stdout", S_IFLNK | 0777, 0, 0, "/proc/self/fd/1" },
	{ "stderr", S_IFLNK | 0777, 0, 0, "/proc/self/fd/2" },
};

static int add_row(struct inode *dir, size_t i, const struct cred *root)
{
	struct inode *made = NULL;
	const char *name = dev_rows[i].name;
	uint32_t mode = dev_rows[i].mode;
	int err;

	if (S_ISLNK(mode))
		err = dir->ops->symlink(dir, name, dev_rows[i].target, root, &made);
	else if (S_ISDIR(mode))
		err = dir->ops->mkdir(dir, name, mode, root, &made);
	else
		err = dir->ops->mknod(dir, name, mode,
				      makedev(dev_rows[i].major_number, dev_rows[i].minor_number),
				      root, &made);
	if (!err)
		inode_put(made);
	return err;
}

int devfs_populate(struct superblock *sb)
{
	struct cred *root = cred_new(0, 0, NULL, 0);
	struct inode *dir = sb->root->inode;
	int err = 0;

	if (!root)
		return -ENOMEM;
	mutex_lock(&dir->mu);
	for (size_t i = 0; i < ARRAY_SIZE(dev_rows) && !err; i++)
		err = add_row(dir, i, root);
	mutex_unlock(&dir->mu);
	cred_put(root);
	return err;
}

int devfs_new(struct superblock **out)
{
	struct superblock *sb;

	int err = tmpfs_new("mode=755,size=64k", &sb);
	if (err)
		return err;
	err = devfs_populate(sb);
	if (err) {
		superblock_put(sb);
		return err;
	}
	*out = sb;
	return 0;
}

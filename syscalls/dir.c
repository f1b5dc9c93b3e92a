/* Reading directories: getdents(2), getdents64(2). */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "fs/inotify.h"
#include "platform/base/alloc.h"
#include "syscalls/fs_util.h"

/* One call gives at most this much, whatever the guest's buffer. */
#define DENTS_MAX (32u << 10)

/* Records of both calls begin with ino and off (8 bytes each) and the record's length (2 bytes). */
#define HEAD_SIZE 18u

struct dents {
	struct dir_sink sink;
	bool is_64;
	char *buf;
	size_t used, cap;
	bool full;
};

static int emit(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype, int64_t off)
{
	struct dents *d = container_of(sink, struct dents, sink);
	size_t len = strlen(name) + 1;
	/* linux_dirent64 has the type before the name; linux_dirent has it in the last byte. */
	size_t size = (HEAD_SIZE + 1 + len + 7) & ~(size_t)7;
	char *p = d->buf + d->used;
	uint16_t reclen = (uint16_t)size;
	char type = (char)dtype;

	if (size > d->cap - d->used) {
		d->full = true;
		return -EINVAL;
	}
	memset(p, 0, size);
	memcpy(p, &ino, 8);
	memcpy(p + 8, &off, 8);
	memcpy(p + 16, &reclen, 2);
	if (d->is_64) {
		p[HEAD_SIZE] = type;
		memcpy(p + HEAD_SIZE + 1, name, len);
	} else {
		memcpy(p + HEAD_SIZE, name, len);
		p[size - 1] = type;
	}
	d->used += size;
	return 0;
}

/* Fills d; f's position moves. */
static int fill(struct file *f, struct dents *d)
{
	struct inode *ino = file_inode(f);

	mutex_lock(&f->pos_mu);
	mutex_lock(&ino->mu);
	bool dead = ino->dead;
	mutex_unlock(&ino->mu);
	int err = dead ? -ENOENT : f->ops->readdir(f, &d->sink, &f->pos);
	mutex_unlock(&f->pos_mu);
	if (d->used > 0)
		return 0;
	return err < 0 ? err : d->full ? -EINVAL : 0;
}

static long read_dir(struct task *t, int fd, buf_gp dirp, uint32_t count, bool is_64)
{
	struct file *f = fd_get_io(t->files, fd);
	struct dents d = { .sink = { emit }, .is_64 = is_64, .cap = MIN(count, DENTS_MAX) };
	long r;

	if (!f)
		return -EBADF;
	r = f->ops->readdir && file_is_dir(f) ? 0 : -ENOTDIR;
	if (r == 0)
		r = file_can_read(f) ? 0 : -EBADF;
	if (r == 0) {
		d.buf = mem_alloc(MAX(d.cap, (size_t)1));
		r = d.buf ? fill(f, &d) : -ENOMEM;
	}
	if (r == 0)
		r = guest_write(t, dirp.addr, d.buf, d.used);
	if (r == 0) {
		fsnotify_file(f, IN_ACCESS);
		r = (long)d.used;
	}
	mem_free(d.buf);
	file_put(f);
	return r;
}

long sys_getdents(struct task *t, int fd, buf_gp dirp, uint32_t count)
{
	return read_dir(t, fd, dirp, count, false);
}

long sys_getdents64(struct task *t, int fd, buf_gp dirp, uint32_t count)
{
	return read_dir(t, fd, dirp, count, true);
}

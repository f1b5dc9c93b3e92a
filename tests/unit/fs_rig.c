/* Short calls on names: see fs_rig.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "fs/hooks.h"
#include "platform/base/alloc.h"
#include "tests/unit/fs_rig.h"

#define NAMES_MAX 4096

static int one(void)
{
	return 1;
}

static const void *no_files(void)
{
	return NULL;
}

static uint64_t rlimit(int resource)
{
	(void)resource;
	return RLIM_INFINITY;
}

static void signal_self(int sig)
{
	(void)sig;
}

static const struct fs_hooks hooks = {
	.current_tgid = one,
	.current_tid = one,
	.current_files = no_files,
	.rlimit = rlimit,
	.signal_self = signal_self,
};

/* The run-time parts of sanitizers make calls of their own, which no filter of ours allows. */
static void allow_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	setenv("PINFOLD_CONFINE", "off", 1);
#endif
}

void fs_rig_begin(struct fs_rig *r)
{
	allow_sanitizers();
	memset(r, 0, sizeof(*r));
	fs_hooks = &hooks;
	r->live = mem_live_count();
}

void fs_rig_mount(struct fs_rig *r, struct superblock *sb, uint32_t uid)
{
	assert_int_equal(mount_new_root(sb, "test", 0, &r->mnt), 0);
	struct path root = { r->mnt, r->mnt->root };
	assert_int_equal(fs_ctx_new(root, root, 022, &r->ctx), 0);
	r->cred = cred_new(uid, uid, NULL, 0);
	assert_non_null(r->cred);
	r->at = (struct fs_lookup){ .ctx = r->ctx, .cred = r->cred };
}

void fs_rig_unmount(struct fs_rig *r)
{
	fs_ctx_put(r->ctx);
	cred_put(r->cred);
	r->mnt->attached = false;
	mount_put(r->mnt);
}

void fs_rig_end(struct fs_rig *r)
{
	assert_int_equal(mem_live_count(), r->live);
}

void rig_temp_dir(char *buf, size_t size)
{
	const char *base = getenv("TMPDIR");
	snprintf(buf, size, "%s/pinfold-fs.XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(buf));
}

int rig_open(struct fs_rig *r, const char *name, int flags, uint32_t mode, struct file **out)
{
	return vfs_open(&r->at, name, flags, mode, out);
}

ssize_t rig_pwrite(struct file *f, const void *data, size_t n, int64_t off)
{
	struct iov_iter it;
	char *copy = malloc(n + 1);
	memcpy(copy, data, n);
	iov_init_host(&it, copy, n, IOV_DRAIN);
	ssize_t r = vfs_write(f, &it, off < 0 ? NULL : &off);
	free(copy);
	return r;
}

ssize_t rig_pread(struct file *f, void *data, size_t n, int64_t off)
{
	struct iov_iter it;
	iov_init_host(&it, data, n, IOV_FILL);
	return vfs_read(f, &it, off < 0 ? NULL : &off);
}

static int write_with(struct fs_rig *r, const char *name, int flags, const char *text)
{
	struct file *f;
	int err = rig_open(r, name, flags, 0666, &f);
	if (err)
		return err;
	ssize_t n = rig_pwrite(f, text, strlen(text), -1);
	file_put(f);
	return n < 0 ? (int)n : 0;
}

int rig_put(struct fs_rig *r, const char *name, const char *text)
{
	return write_with(r, name, O_CREAT | O_TRUNC | O_WRONLY, text);
}

int rig_append(struct fs_rig *r, const char *name, const char *text)
{
	return write_with(r, name, O_APPEND | O_WRONLY, text);
}

ssize_t rig_get(struct fs_rig *r, const char *name, char *buf, size_t size)
{
	struct file *f;
	int err = rig_open(r, name, O_RDONLY, 0, &f);
	if (err)
		return err;
	ssize_t n = rig_pread(f, buf, size - 1, -1);
	buf[n > 0 ? n : 0] = 0;
	file_put(f);
	return n;
}

const char *rig_text(struct fs_rig *r, const char *name)
{
	static char buf[NAMES_MAX];
	ssize_t n = rig_get(r, name, buf, sizeof(buf));
	if (n < 0)
		snprintf(buf, sizeof(buf), "error %zd", n);
	return buf;
}

int rig_stat(struct fs_rig *r, const char *name, struct fs_stat *out)
{
	struct path p;
	int err = path_lookup(&r->at, name, 0, &p);
	if (err)
		return err;
	err = vfs_getattr(p, out);
	path_put(p);
	return err;
}

static int setattr(struct fs_rig *r, const char *name, const struct iattr *a)
{
	struct path p;
	int err = path_lookup(&r->at, name, LOOKUP_FOLLOW, &p);
	if (err)
		return err;
	err = vfs_setattr(p, r->cred, a);
	path_put(p);
	return err;
}

int rig_chmod(struct fs_rig *r, const char *name, uint32_t mode)
{
	struct iattr a = { .valid = ATTR_MODE, .mode = mode };
	return setattr(r, name, &a);
}

int rig_truncate(struct fs_rig *r, const char *name, uint64_t size)
{
	struct path p;
	int err = path_lookup(&r->at, name, LOOKUP_FOLLOW, &p);
	if (err)
		return err;
	err = vfs_truncate(p, r->cred, size);
	path_put(p);
	return err;
}

struct names {
	struct dir_sink sink;
	char *name[NAMES_MAX];
	int count, left;
};

static int collect(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype,
		   int64_t off)
{
	struct names *n = container_of(sink, struct names, sink);
	(void)ino;
	(void)dtype;
	(void)off;
	/* A small sink, so that listing goes in several rounds. */
	if (n->left-- == 0 || n->count == NAMES_MAX)
		return 1;
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		n->name[n->count++] = strdup(name);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int rig_list(struct fs_rig *r, const char *name, char *buf, size_t size)
{
	struct names *n = calloc(1, sizeof(*n));
	struct file *f;
	n->sink.emit = collect;
	int err = rig_open(r, name, O_RDONLY | O_DIRECTORY, 0, &f);
	if (err) {
		free(n);
		return err;
	}
	int64_t before;
	do {
		before = f->pos;
		n->left = 7;
		err = f->ops->readdir(f, &n->sink, &f->pos);
	} while (!err && f->pos != before);
	file_put(f);
	qsort(n->name, (size_t)n->count, sizeof(n->name[0]), by_text);
	size_t at = 0;
	buf[0] = 0;
	for (int i = 0; i < n->count; i++) {
		if (at < size)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? " " : "",
					       n->name[i]);
		free(n->name[i]);
	}
	int count = n->count;
	free(n);
	return err ? err : count;
}

const char *rig_names(struct fs_rig *r, const char *name)
{
	static char buf[NAMES_MAX];
	int n = rig_list(r, name, buf, sizeof(buf));
	if (n < 0)
		snprintf(buf, sizeof(buf), "error %d", n);
	return buf;
}

int rig_getxattr(struct fs_rig *r, const char *name, const char *key, char *buf, size_t size)
{
	struct path p;
	int err = path_lookup(&r->at, name, 0, &p);
	if (err)
		return err;
	struct inode *ino = p.dentry->inode;
	ssize_t n = ino->ops->getxattr ? ino->ops->getxattr(ino, key, buf, size) : -EOPNOTSUPP;
	path_put(p);
	return (int)n;
}

int rig_setxattr(struct fs_rig *r, const char *name, const char *key, const char *val)
{
	struct path p;
	int err = path_lookup(&r->at, name, 0, &p);
	if (err)
		return err;
	struct inode *ino = p.dentry->inode;
	err = ino->ops->setxattr ? ino->ops->setxattr(ino, key, val, strlen(val), 0) : -EOPNOTSUPP;
	path_put(p);
	return err;
}

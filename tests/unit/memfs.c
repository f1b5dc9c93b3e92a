/* A file system for tests: see memfs.h. */
#include "tests/unit/memfs.h"

#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "fs/dcache.h"
#include "fs/hooks.h"
#include "platform/base/alloc.h"

struct mnode {
	struct inode base;
	uint32_t mode, nlink, uid, gid;
	struct timespec atime, mtime, ctime;
	struct list entries; /* of ment: directories */
	char *data;          /* contents or link target */
	size_t size;
};

struct ment {
	struct list link;
	struct mnode *node;
	char name[NAME_LEN_MAX + 1];
};

struct mfile {
	struct file file;
};

atomic_int memfs_inodes;
uint64_t memfs_rlimit_fsize = RLIM_INFINITY, memfs_rlimit_nofile = 1024;
int memfs_last_signal;
static atomic_int next_ino = 1;
static const struct inode_ops mem_ops;
static const struct file_ops mem_file_ops;

static struct mnode *to_node(struct inode *ino)
{
	return container_of(ino, struct mnode, base);
}

static struct mnode *node_new(struct superblock *sb, uint32_t mode, const struct cred *c)
{
	struct mnode *n = mem_zalloc(sizeof(*n));

	if (!n)
		return NULL;
	inode_init(&n->base, sb, &mem_ops, (uint64_t)atomic_fetch_add(&next_ino, 1), mode);
	n->mode = mode;
	n->nlink = S_ISDIR(mode) ? 2 : 1;
	n->uid = c ? c->fsuid : 0;
	n->gid = c ? c->fsgid : 0;
	list_init(&n->entries);
	atomic_fetch_add(&memfs_inodes, 1);
	return n;
}

static void node_free(struct inode *ino)
{
	struct mnode *n = to_node(ino);

	while (!list_empty(&n->entries)) {
		struct ment *e = list_first(&n->entries, struct ment, link);
		list_del_init(&e->link);
		inode_put(&e->node->base);
		mem_free(e);
	}
	mem_free(n->data);
	mem_free(n);
	atomic_fetch_sub(&memfs_inodes, 1);
}

static struct ment *find(struct inode *dir, const char *name)
{
	list_for_each(pos, &to_node(dir)->entries) {
		struct ment *e = list_entry(pos, struct ment, link);
		if (strcmp(e->name, name) == 0)
			return e;
	}
	return NULL;
}

static int mem_lookup(struct inode *dir, const char *name, struct inode **out)
{
	struct ment *e = find(dir, name);

	if (!e)
		return -ENOENT;
	*out = inode_get(&e->node->base);
	return 0;
}

/* Takes n. */
static int enter(struct inode *dir, const char *name, struct mnode *n)
{
	struct ment *e = mem_zalloc(sizeof(*e));

	if (!e) {
		inode_put(&n->base);
		return -ENOMEM;
	}
	strcpy(e->name, name);
	e->node = n;
	list_add_tail(&to_node(dir)->entries, &e->link);
	if (n->base.type == S_IFDIR)
		to_node(dir)->nlink++;
	return 0;
}

static int add(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev,
	       const struct cred *c, struct inode **out)
{
	struct mnode *n = node_new(dir->sb, mode, c);

	if (!n)
		return -ENOMEM;
	n->base.rdev = rdev;
	int err = enter(dir, name, n);
	if (!err)
		*out = inode_get(&n->base);
	return err;
}

static int mem_create(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		      struct inode **out)
{
	return add(dir, name, mode, 0, c, out);
}

static int mem_mknod(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev,
		     const struct cred *c, struct inode **out)
{
	return add(dir, name, mode, rdev, c, out);
}

static int mem_symlink(struct inode *dir, const char *name, const char *target,
		       const struct cred *c, struct inode **out)
{
	int err = add(dir, name, S_IFLNK | 0777, 0, c, out);

	if (err)
		return err;
	to_node(*out)->data = mem_strdup(target);
	to_node(*out)->size = strlen(target);
	return 0;
}

static int mem_link(struct inode *dir, const char *name, struct inode *target)
{
	int err = enter(dir, name, to_node(inode_get(target)));

	if (!err)
		to_node(target)->nlink++;
	return err;
}

static void drop_entry(struct inode *dir, struct ment *e)
{
	list_del_init(&e->link);
	if (e->node->base.type == S_IFDIR) {
		to_node(dir)->nlink--;
		e->node->nlink--;
	}
	e->node->nlink--;
	inode_put(&e->node->base);
	mem_free(e);
}

static int mem_unlink(struct inode *dir, const char *name, struct inode *victim UNUSED)
{
	drop_entry(dir, find(dir, name));
	return 0;
}

static int mem_rmdir(struct inode *dir, const char *name, struct inode *victim)
{
	if (!list_empty(&to_node(victim)->entries))
		return -ENOTEMPTY;
	drop_entry(dir, find(dir, name));
	return 0;
}

static int mem_rename(struct inode *old_dir, const char *old_name, struct inode *source,
		      struct inode *new_dir, const char *new_name, struct inode *target,
		      unsigned flags)
{
	struct ment *o = find(old_dir, old_name), *n = find(new_dir, new_name);

	if (flags & RENAME_WHITEOUT)
		return -EINVAL;
	if (flags & RENAME_EXCHANGE) {
		struct mnode *t = o->node;
		o->node = n->node;
		n->node = t;
		return 0;
	}
	if (target && S_ISDIR(to_node(target)->mode) && !list_empty(&to_node(target)->entries))
		return -ENOTEMPTY;
	int err = enter(new_dir, new_name, to_node(inode_get(source)));
	if (err)
		return err;
	if (n)
		drop_entry(new_dir, n);
	to_node(source)->nlink += S_ISDIR(to_node(source)->mode) ? 2 : 1;
	drop_entry(old_dir, o);
	return 0;
}

static int mem_tmpfile(struct inode *dir, uint32_t mode, const struct cred *c, struct inode **out)
{
	struct mnode *n = node_new(dir->sb, mode, c);

	if (!n)
		return -ENOMEM;
	n->nlink = 0;
	*out = &n->base;
	return 0;
}

static int mem_readlink(struct inode *ino, char *buf, size_t size)
{
	size_t len = MIN(to_node(ino)->size, size);

	memcpy(buf, to_node(ino)->data, len);
	return (int)len;
}

static int mem_getattr(struct inode *ino, struct fs_stat *out)
{
	struct mnode *n = to_node(ino);

	*out = (struct fs_stat){ .dev = ino->sb->dev,
				 .ino = ino->ino,
				 .mode = n->mode,
				 .nlink = n->nlink,
				 .uid = n->uid,
				 .gid = n->gid,
				 .size = n->size,
				 .blksize = 4096,
				 .atime = n->atime,
				 .mtime = n->mtime,
				 .ctime = n->ctime };
	return 0;
}

static int mem_setattr(struct inode *ino, const struct iattr *a)
{
	struct mnode *n = to_node(ino);

	if (a->valid & ATTR_MODE)
		n->mode = (n->mode & S_IFMT) | a->mode;
	if (a->valid & ATTR_UID)
		n->uid = a->uid;
	if (a->valid & ATTR_GID)
		n->gid = a->gid;
	if (a->valid & ATTR_ATIME)
		n->atime = a->atime;
	if (a->valid & ATTR_SIZE) {
		char *p = mem_realloc(n->data, a->size + 1);
		if (!p)
			return -ENOMEM;
		if (a->size > n->size)
			memset(p + n->size, 0, a->size - n->size);
		n->data = p;
		n->size = a->size;
	}
	return 0;
}

static int mem_open(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct mfile *f = mem_zalloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	file_init(&f->file, &mem_file_ops, inode_get(ino), (unsigned)flags);
	*out = &f->file;
	return 0;
}

static const struct inode_ops mem_ops = {
	.lookup = mem_lookup,
	.create = mem_create,
	.mkdir = mem_create,
	.mknod = mem_mknod,
	.symlink = mem_symlink,
	.link = mem_link,
	.unlink = mem_unlink,
	.rmdir = mem_rmdir,
	.rename = mem_rename,
	.tmpfile = mem_tmpfile,
	.readlink = mem_readlink,
	.getattr = mem_getattr,
	.setattr = mem_setattr,
	.open = mem_open,
	.free = node_free,
};

static ssize_t mem_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	struct mnode *n = to_node(f->inode);

	if ((size_t)*pos >= n->size)
		return 0;
	ssize_t r = iov_copy_to(it, n->data + *pos, n->size - (size_t)*pos);
	if (r > 0)
		*pos += r;
	return r;
}

static ssize_t mem_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	struct mnode *n = to_node(f->inode);
	struct iattr a = { .valid = ATTR_SIZE, .size = (uint64_t)*pos + it->count };

	if (a.size > n->size && mem_setattr(f->inode, &a) != 0)
		return -ENOSPC;
	ssize_t r = iov_copy_from(it, n->data + *pos, it->count);
	if (r > 0)
		*pos += r;
	return r;
}

static int64_t mem_seek(struct file *f, int64_t off, int whence)
{
	return file_seek_size(f, off, whence, (int64_t)to_node(f->inode)->size);
}

static void mem_release(struct file *f)
{
	mem_free(f);
}

static const struct file_ops mem_file_ops = {
	.read = mem_read, .write = mem_write, .seek = mem_seek, .release = mem_release
};

static int mem_statfs(struct superblock *sb UNUSED, struct fs_statfs *out)
{
	*out = (struct fs_statfs){ .type = 0x1234, .bsize = 4096, .namelen = 255 };
	return 0;
}

static const struct sb_ops mem_sb_ops = { .statfs = mem_statfs };

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "memfs: %s\n", what);
	abort();
}

struct superblock *memfs_new(uint32_t uid, uint32_t gid)
{
	struct superblock *sb;

	must(superblock_new(&mem_sb_ops, "memfs", NULL, &sb) == 0, "superblock_new");
	struct mnode *root = node_new(sb, S_IFDIR | 0755, NULL);
	must(root != NULL, "root inode");
	root->uid = uid;
	root->gid = gid;
	must(superblock_set_root(sb, &root->base) == 0, "superblock_set_root");
	return sb;
}

/* ---- world -------------------------------------------------------------------------------- */

static int one(void)
{
	return 1;
}

static const void *no_files(void)
{
	return &memfs_last_signal;
}

static uint64_t rlimit(int resource)
{
	if (resource == RLIMIT_FSIZE)
		return memfs_rlimit_fsize;
	return resource == RLIMIT_NOFILE ? memfs_rlimit_nofile : RLIM_INFINITY;
}

static void signal_self(int sig)
{
	memfs_last_signal = sig;
}

static const struct fs_hooks hooks = { .current_tgid = one,
				       .current_tid = one,
				       .current_files = no_files,
				       .rlimit = rlimit,
				       .signal_self = signal_self };

void memfs_world_init(struct memfs_world *w)
{
	fs_hooks = &hooks;
	memfs_rlimit_fsize = RLIM_INFINITY;
	memfs_rlimit_nofile = 1024;
	memfs_last_signal = 0;
	memset(w, 0, sizeof(*w));
	w->live = mem_live_count();
	must(mount_new_root(memfs_new(0, 0), "mem", 0, &w->root_mnt) == 0, "mount_new_root");
	w->root = (struct path){ w->root_mnt, w->root_mnt->root };
	must(fs_ctx_new(w->root, w->root, 022, &w->ctx) == 0, "fs_ctx_new");
	w->root_cred = cred_new(0, 0, NULL, 0);
	w->user_cred = cred_new(1000, 1000, NULL, 0);
	must(w->root_cred && w->user_cred, "cred_new");
	w->as_root = (struct fs_lookup){ .ctx = w->ctx, .cred = w->root_cred };
	w->as_user = (struct fs_lookup){ .ctx = w->ctx, .cred = w->user_cred };
}

static bool expect(bool ok, const char *what)
{
	if (!ok)
		print_error("memfs: %s\n", what);
	return ok;
}

int memfs_world_fini(struct memfs_world *w)
{
	fs_ctx_put(w->ctx);
	cred_put(w->root_cred);
	cred_put(w->user_cred);
	/* The namespace has no end of its own; the test plays it. */
	bool ok = expect(list_empty(&w->root_mnt->children), "something is still mounted");
	w->root_mnt->attached = false;
	mount_put(w->root_mnt);
	ok &= expect(dcache_count() == 0, "cached dentries are left");
	ok &= expect(atomic_load(&memfs_inodes) == 0, "inodes are left");
	ok &= expect(mem_live_count() == w->live, "memory blocks are left");
	return ok ? 0 : -1;
}

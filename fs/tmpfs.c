/*
 * tmpfs: inodes, attributes, mount options and the super block. Names are in tmpfs_dir.c, data in
 * tmpfs_file.c.
 *
 * The tree is held together by references: an entry references its inode, the super block's root
 * the rest. Freeing is iterative (a guest chooses the depth). A directory's entries are under its
 * mu, attributes under attr_mu, which is a leaf: the VFS asks for attributes with a directory's mu
 * held.
 */
#include "fs/tmpfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "fs/mount.h"
#include "fs/tmpfs_priv.h"
#include "platform/base/alloc.h"

#define TMPFS_SUPER_MAGIC 0x01021994
#define DIR_ENTRY_SIZE 20 /* BOGO_DIRENT_SIZE of mm/shmem.c */
#define RELATIME_SECONDS (24 * 60 * 60)

/* ---- inodes ------------------------------------------------------------------------------- */

static int charge_inode(struct tmpfs *fs)
{
	uint64_t n = atomic_fetch_add(&fs->inodes, 1);

	if (!fs->max_inodes || n < fs->max_inodes)
		return 0;
	atomic_fetch_sub(&fs->inodes, 1);
	return -ENOSPC;
}

static const struct inode_ops *ops_of(uint32_t mode)
{
	if (S_ISDIR(mode))
		return &tmpfs_dir_inode_ops;
	return S_ISREG(mode) ? &tmpfs_file_inode_ops : &tmpfs_other_inode_ops;
}

int tmpfs_inode_new(struct superblock *sb, uint32_t mode, uint32_t uid, uint32_t gid,
		    struct tmpfs_inode **out)
{
	struct tmpfs *fs = sb->priv;

	int err = charge_inode(fs);
	if (err)
		return err;
	struct tmpfs_inode *ti = mem_zalloc(sizeof(*ti));
	if (!ti) {
		atomic_fetch_sub(&fs->inodes, 1);
		return -ENOMEM;
	}
	inode_init(&ti->base, sb, ops_of(mode), atomic_fetch_add(&fs->next_ino, 1), mode);
	mutex_init(&ti->attr_mu, RANK_HASH);
	ti->mode = mode;
	ti->uid = uid;
	ti->gid = gid;
	ti->nlink = S_ISDIR(mode) ? 2 : 1;
	ti->atime = ti->mtime = ti->ctime = ti->btime = fs_now();
	xattrs_init(&ti->xattrs);
	list_init(&ti->dead_link);
	if (S_ISREG(mode))
		memfile_init(&ti->data, &fs->pool);
	if (S_ISDIR(mode))
		ti->dir.next_off = 2; /* after "." and ".." */
	*out = ti;
	return 0;
}

/* What the VFS' inode_free does around ops->free, for an inode that only an entry referenced. */
static void free_one(struct tmpfs_inode *ti, struct list *dead)
{
	struct tmpfs *fs = tmpfs_of(ti);

	switch (ti->base.type) {
	case S_IFREG:
		memfile_fini(&ti->data);
		break;
	case S_IFLNK:
		mem_free(ti->target);
		break;
	case S_IFDIR:
		tmpfs_dir_clear(ti, dead);
		break;
	}
	xattrs_fini(&ti->xattrs);
	mutex_fini(&ti->attr_mu);
	mem_free(ti);
	atomic_fetch_sub(&fs->inodes, 1);
}

void tmpfs_free(struct inode *ino)
{
	struct list dead = LIST_INIT(dead);

	free_one(to_tmpfs(ino), &dead);
	while (!list_empty(&dead)) {
		struct tmpfs_inode *ti = list_first(&dead, struct tmpfs_inode, dead_link);
		list_del_init(&ti->dead_link);
		mutex_fini(&ti->base.mu);
		mutex_fini(&ti->base.write_mu);
		free_one(ti, &dead);
	}
}

/* ---- attributes --------------------------------------------------------------------------- */

void tmpfs_touch(struct tmpfs_inode *ti, unsigned which)
{
	struct timespec now = fs_now();

	mutex_lock(&ti->attr_mu);
	if (which & ATTR_ATIME)
		ti->atime = now;
	if (which & ATTR_MTIME)
		ti->mtime = now;
	if (which & ATTR_CTIME)
		ti->ctime = now;
	mutex_unlock(&ti->attr_mu);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void tmpfs_accessed(struct file *f)
{
	struct tmpfs_inode *ti = to_tmpfs(f->inode);
	unsigned mnt = f->path.mnt ? atomic_load(&f->path.mnt->flags) : 0;

	if ((file_flags(f) & O_NOATIME) || (mnt & (MS_NOATIME | MS_RDONLY)))
		return;
	if (ti->base.type == S_IFDIR && (mnt & MS_NODIRATIME))
		return;
	struct timespec now = fs_now();
	mutex_lock(&ti->attr_mu);
	if ((mnt & MS_STRICTATIME) || !is_later(&ti->atime, &ti->mtime) ||
	    !is_later(&ti->atime, &ti->ctime) || now.tv_sec - ti->atime.tv_sec >= RELATIME_SECONDS)
		ti->atime = now;
	mutex_unlock(&ti->attr_mu);
}

void tmpfs_add_link(struct tmpfs_inode *ti, int n)
{
	mutex_lock(&ti->attr_mu);
	ti->nlink = (uint32_t)((int)ti->nlink + n);
	ti->ctime = fs_now();
	mutex_unlock(&ti->attr_mu);
}

static void fill_size(struct tmpfs_inode *ti, struct fs_stat *out)
{
	switch (ti->base.type) {
	case S_IFREG:
		out->size = atomic_load(&ti->data.size);
		out->blocks = memfile_pages(&ti->data) * (PAGE_SIZE / 512);
		break;
	case S_IFLNK:
		out->size = strlen(ti->target);
		break;
	case S_IFDIR:
		out->size = DIR_ENTRY_SIZE * (atomic_load(&ti->dir.count) + 2);
		break;
	}
}

int tmpfs_getattr(struct inode *ino, struct fs_stat *out)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);

	mutex_lock(&ti->attr_mu);
	*out = (struct fs_stat){
		.dev = ino->sb->dev,
		.ino = ino->ino,
		.rdev = ino->rdev,
		.mode = ti->mode,
		.nlink = ti->nlink,
		.uid = ti->uid,
		.gid = ti->gid,
		.blksize = PAGE_SIZE,
		.atime = ti->atime,
		.mtime = ti->mtime,
		.ctime = ti->ctime,
		.btime = ti->btime,
		.has_btime = true,
	};
	mutex_unlock(&ti->attr_mu);
	fill_size(ti, out);
	return 0;
}

static int set_size(struct tmpfs_inode *ti, uint64_t size, struct timespec now)
{
	if (ti->base.type != S_IFREG)
		return ti->base.type == S_IFDIR ? -EISDIR : -EINVAL;
	int err = memfile_truncate(&ti->data, size);
	if (err)
		return err;
	mutex_lock(&ti->attr_mu);
	ti->mtime = now;
	mutex_unlock(&ti->attr_mu);
	return 0;
}

int tmpfs_setattr(struct inode *ino, const struct iattr *a)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);
	struct timespec now = fs_now();

	if (a->valid & ATTR_SIZE) {
		int err = set_size(ti, a->size, now);
		if (err)
			return err;
	}
	mutex_lock(&ti->attr_mu);
	if (a->valid & ATTR_MODE)
		ti->mode = (ti->mode & S_IFMT) | (a->mode & 07777);
	if (a->valid & ATTR_UID)
		ti->uid = a->uid;
	if (a->valid & ATTR_GID)
		ti->gid = a->gid;
	if (a->valid & (ATTR_ATIME | ATTR_ATIME_NOW))
		ti->atime = a->valid & ATTR_ATIME ? a->atime : now;
	if (a->valid & (ATTR_MTIME | ATTR_MTIME_NOW))
		ti->mtime = a->valid & ATTR_MTIME ? a->mtime : now;
	ti->ctime = now;
	mutex_unlock(&ti->attr_mu);
	return 0;
}

/* user.* exists on files and directories only: xattr(7). */
static int check_xattr(struct inode *ino, const char *name, bool change)
{
	if (strncmp(name, "user.", 5) == 0) {
		if (ino->type == S_IFREG || ino->type == S_IFDIR)
			return 0;
		return change ? -EPERM : -ENODATA;
	}
	if (strncmp(name, "trusted.", 8) == 0 || strncmp(name, "security.", 9) == 0)
		return 0;
	return -EOPNOTSUPP;
}

ssize_t tmpfs_getxattr(struct inode *ino, const char *name, void *buf, size_t size)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);
	int err = check_xattr(ino, name, false);

	if (err)
		return err;
	mutex_lock(&ti->attr_mu);
	ssize_t n = xattrs_get(&ti->xattrs, name, buf, size);
	mutex_unlock(&ti->attr_mu);
	return n;
}

int tmpfs_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);
	int err = check_xattr(ino, name, true);

	if (err)
		return err;
	mutex_lock(&ti->attr_mu);
	err = xattrs_set(&ti->xattrs, name, val, size, flags);
	if (!err)
		ti->ctime = fs_now();
	mutex_unlock(&ti->attr_mu);
	return err;
}

ssize_t tmpfs_listxattr(struct inode *ino, char *buf, size_t size)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);

	mutex_lock(&ti->attr_mu);
	ssize_t n = xattrs_list(&ti->xattrs, buf, size);
	mutex_unlock(&ti->attr_mu);
	return n;
}

int tmpfs_removexattr(struct inode *ino, const char *name)
{
	struct tmpfs_inode *ti = to_tmpfs(ino);
	int err = check_xattr(ino, name, true);

	if (err)
		return err;
	mutex_lock(&ti->attr_mu);
	err = xattrs_remove(&ti->xattrs, name);
	if (!err)
		ti->ctime = fs_now();
	mutex_unlock(&ti->attr_mu);
	return err;
}

static int other_readlink(struct inode *ino, char *buf, size_t size)
{
	const char *target = to_tmpfs(ino)->target;
	size_t len = strlen(target);

	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, target, len + 1);
	return (int)len;
}

/* Symbolic links, fifos, sockets, device nodes: the VFS knows what they do. */
const struct inode_ops tmpfs_other_inode_ops = {
	.readlink = other_readlink,
	.getattr = tmpfs_getattr,
	.setattr = tmpfs_setattr,
	.getxattr = tmpfs_getxattr,
	.setxattr = tmpfs_setxattr,
	.listxattr = tmpfs_listxattr,
	.removexattr = tmpfs_removexattr,
	.free = tmpfs_free,
};

const struct inode_ops tmpfs_file_inode_ops = {
	.getattr = tmpfs_getattr,
	.setattr = tmpfs_setattr,
	.open = tmpfs_open_file,
	.getxattr = tmpfs_getxattr,
	.setxattr = tmpfs_setxattr,
	.listxattr = tmpfs_listxattr,
	.removexattr = tmpfs_removexattr,
	.free = tmpfs_free,
};

/* ---- mount options ------------------------------------------------------------------------ */

/* A number with k, m, g, t, or % of the machine's memory (in bytes). */
static int parse_size(const char *s, uint64_t total, uint64_t *out)
{
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	uint64_t v = strtoull(s, &end, 0);
	if (errno)
		return -EINVAL;
	if (*end == '%' && !end[1]) {
		*out = total / 100 * v;
		return v > 1000000 ? -EINVAL : 0;
	}
	static const char units[] = "kmgt";
	const char *u = *end ? strchr(units, *end | 0x20) : NULL;
	unsigned shift = u ? 10 * (unsigned)(u - units + 1) : 0;
	if (u)
		end++;
	if (*end || (shift && v >> (64 - shift)))
		return -EINVAL;
	*out = v << shift;
	return 0;
}

static int parse_number(const char *s, int base, uint64_t max, uint32_t *out)
{
	char *end;

	errno = 0;
	uint64_t v = strtoull(s, &end, base);
	if (errno || end == s || *end || v > max || *s == '-' || *s == '+')
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int parse_option(struct tmpfs *fs, const char *name, const char *val, uint64_t total)
{
	uint64_t v = 0;
	int err;

	if (strcmp(name, "mode") == 0)
		return parse_number(val, 8, 07777, &fs->mode);
	if (strcmp(name, "uid") == 0)
		return parse_number(val, 10, UINT32_MAX - 1, &fs->uid);
	if (strcmp(name, "gid") == 0)
		return parse_number(val, 10, UINT32_MAX - 1, &fs->gid);
	if (strcmp(name, "size") == 0) {
		err = parse_size(val, total, &v);
		fs->pool.max = v / PAGE_SIZE + (v % PAGE_SIZE != 0);
		return err;
	}
	if (strcmp(name, "nr_blocks") == 0) {
		err = parse_size(val, total, &v);
		fs->pool.max = v;
		return err;
	}
	if (strcmp(name, "nr_inodes") == 0) {
		err = parse_size(val, total, &v);
		fs->max_inodes = v;
		return err;
	}
	/* Of these only the host's memory management could make anything. */
	static const char *const ignored[] = { "inode32", "inode64", "huge", "mpol", "noswap" };
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		if (strcmp(name, ignored[i]) == 0)
			return 0;
	return -EINVAL;
}

static int parse_options(struct tmpfs *fs, const char *options)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	uint64_t total = (uint64_t)MAX(pages, 1024) * PAGE_SIZE;

	fs->mode = 01777;
	fs->pool.max = total / PAGE_SIZE / 2;
	fs->max_inodes = total / PAGE_SIZE / 2;
	while (options && *options) {
		char one[64];
		size_t len = strcspn(options, ",");
		if (len >= sizeof(one))
			return -EINVAL;
		memcpy(one, options, len);
		one[len] = 0;
		options += len + (options[len] == ',');
		char *eq = strchr(one, '=');
		if (eq)
			*eq = 0;
		int err = len ? parse_option(fs, one, eq ? eq + 1 : "", total) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* ---- super block -------------------------------------------------------------------------- */

static int tmpfs_statfs(struct superblock *sb, struct fs_statfs *out)
{
	struct tmpfs *fs = sb->priv;
	uint64_t used = atomic_load(&fs->pool.used), inodes = atomic_load(&fs->inodes);

	*out = (struct fs_statfs){
		.type = TMPFS_SUPER_MAGIC,
		.bsize = PAGE_SIZE,
		.frsize = PAGE_SIZE,
		.namelen = NAME_LEN_MAX,
		.fsid = sb->dev,
	};
	if (fs->pool.max) {
		out->blocks = fs->pool.max;
		out->bfree = out->bavail = used < fs->pool.max ? fs->pool.max - used : 0;
	}
	if (fs->max_inodes) {
		out->files = fs->max_inodes;
		out->ffree = inodes < fs->max_inodes ? fs->max_inodes - inodes : 0;
	}
	return 0;
}

static void tmpfs_show_options(struct superblock *sb, struct fmt *out)
{
	const struct tmpfs *fs = sb->priv;

	if (fs->pool.max)
		fmt_printf(out, ",size=%lluk",
			   (unsigned long long)fs->pool.max * (PAGE_SIZE / 1024));
	if (fs->max_inodes)
		fmt_printf(out, ",nr_inodes=%llu", (unsigned long long)fs->max_inodes);
	if (fs->mode != 01777)
		fmt_printf(out, ",mode=%03o", fs->mode);
	if (fs->uid)
		fmt_printf(out, ",uid=%u", fs->uid);
	if (fs->gid)
		fmt_printf(out, ",gid=%u", fs->gid);
	fmt_puts(out, ",inode64");
}

static void tmpfs_sb_free(struct superblock *sb)
{
	mem_free(sb->priv);
}

static const struct sb_ops tmpfs_sb_ops = {
	.statfs = tmpfs_statfs,
	.free = tmpfs_sb_free,
	.show_options = tmpfs_show_options,
};

int tmpfs_new(const char *options, struct superblock **out)
{
	struct tmpfs_inode *root;
	struct superblock *sb;
	struct tmpfs *fs = mem_zalloc(sizeof(*fs));

	if (!fs)
		return -ENOMEM;
	atomic_store(&fs->next_ino, 1);
	int err = parse_options(fs, options);
	if (!err)
		err = superblock_new(&tmpfs_sb_ops, "tmpfs", fs, &sb);
	if (err) {
		mem_free(fs);
		return err;
	}
	err = tmpfs_inode_new(sb, S_IFDIR | fs->mode, fs->uid, fs->gid, &root);
	if (!err) {
		atomic_store(&root->dir.parent_ino, root->base.ino);
		err = superblock_set_root(sb, &root->base);
	}
	if (err) {
		superblock_put(sb);
		return err;
	}
	*out = sb;
	return 0;
}

/*
 * goferfs: inodes, attributes and the super block. Names are in goferfs_dir.c, data in
 * goferfs_file.c.
 *
 * An inode stands for one object of the host and holds one handle at the gofer, which pins it
 * there: its device and number cannot mean anything else meanwhile. A table finds the inode again
 * when another name leads to the object, so hard links share locks and data. Several host devices
 * may lie in one tree (mounts of the host); they show as one device here, told apart by the upper
 * byte of the inode number.
 */
#include "fs/goferfs.h"

#include <errno.h>
#include <string.h>

#include "fs/goferfs_priv.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

#define DEV_SHIFT 56

/* ---- numbers ------------------------------------------------------------------------------ */

static uint64_t number_of(uint64_t dev_index, uint64_t host_ino)
{
	return host_ino ^ dev_index << DEV_SHIFT;
}

uint64_t goferfs_number(const struct goferfs_inode *like, uint64_t host_ino)
{
	return number_of(like->dev_index, host_ino);
}

/* A host with more devices below one tree shares the last index among them. */
static uint64_t dev_index_locked(struct goferfs *fs, uint64_t dev)
{
	size_t i;

	for (i = 0; i < fs->dev_count; i++)
		if (fs->devs[i] == dev)
			return i;
	if (i == GOFERFS_DEVS)
		return i;
	fs->devs[fs->dev_count++] = dev;
	return i;
}

static struct list *bucket_of(struct goferfs *fs, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;

	return &fs->table[h >> 48 & (GOFERFS_BUCKETS - 1)];
}

/* ---- inodes ------------------------------------------------------------------------------- */

static const struct inode_ops *ops_of(uint32_t mode)
{
	if (S_ISDIR(mode))
		return &goferfs_dir_inode_ops;
	return S_ISREG(mode) ? &goferfs_file_inode_ops : &goferfs_other_inode_ops;
}

int64_t goferfs_birth(const struct gofer_attr *a)
{
	if (!(a->flags & GOFER_ATTR_BTIME))
		return 0;
	return (int64_t)((uint64_t)a->btime_s * 1000000000u + a->btime_ns);
}

static struct goferfs_inode *find_locked(struct goferfs *fs, const struct gofer_attr *a)
{
	list_for_each(pos, bucket_of(fs, a->dev, a->ino)) {
		struct goferfs_inode *gi = list_entry(pos, struct goferfs_inode, table_link);
		/* A type that changed is no type of this object: do not mix them up, whatever the
		 * gofer says. */
		if (gi->host_ino == a->ino && gi->host_dev == a->dev &&
		    gi->host_birth == goferfs_birth(a) && gi->base.type == (a->mode & S_IFMT) &&
		    ref_inc_not_zero(&gi->base.ref))
			return gi;
	}
	return NULL;
}

/* Takes the handle of the node only when it succeeds. */
static struct goferfs_inode *inode_new(struct goferfs *fs, const struct gofer_node *node,
				       struct inode *dir, const char *name)
{
	struct goferfs_inode *gi = mem_zalloc(sizeof(*gi));
	bool again = dir && !fs->writable;

	if (gi && again)
		gi->up_name = mem_strdup(name);
	if (!gi || (again && !gi->up_name)) {
		mem_free(gi);
		return NULL;
	}
	inode_init(&gi->base, fs->sb, ops_of(node->attr.mode), 0, node->attr.mode);
	mutex_init(&gi->attr_mu, RANK_HASH);
	list_init(&gi->table_link);
	list_init(&gi->clock_link);
	if (again)
		gi->up = to_goferfs(inode_get(dir));
	gi->base.rdev = node->attr.rdev;
	gi->fid = node->fid;
	gi->host_dev = node->attr.dev;
	gi->host_ino = node->attr.ino;
	gi->host_birth = goferfs_birth(&node->attr);
	gi->attr = node->attr;
	return gi;
}

static void set_attr(struct goferfs_inode *gi, const struct gofer_attr *a)
{
	mutex_lock(&gi->attr_mu);
	if (a->dev == gi->host_dev && a->ino == gi->host_ino &&
	    (a->mode & S_IFMT) == gi->base.type) {
		gi->attr = *a;
		gi->attr_at = mono_now_ns();
	}
	mutex_unlock(&gi->attr_mu);
}

int goferfs_inode_get(struct goferfs *fs, const struct gofer_node *node, struct inode *dir,
		      const char *name, struct inode **out)
{
	struct goferfs_inode *fresh = NULL;

	mutex_lock(&fs->table_mu);
	struct goferfs_inode *gi = find_locked(fs, &node->attr);
	mutex_unlock(&fs->table_mu);
	if (!gi) {
		fresh = inode_new(fs, node, dir, name);
		if (!fresh) {
			gofer_forget(fs->client, node->fid);
			return -ENOMEM;
		}
		mutex_lock(&fs->table_mu);
		gi = find_locked(fs, &node->attr);
		if (!gi) {
			fresh->dev_index = dev_index_locked(fs, node->attr.dev);
			fresh->base.ino = number_of(fresh->dev_index, node->attr.ino);
			list_add(bucket_of(fs, node->attr.dev, node->attr.ino), &fresh->table_link);
			if (fresh->up)
				list_add_tail(&fs->clock, &fresh->clock_link);
			gi = fresh;
		}
		mutex_unlock(&fs->table_mu);
	}
	if (gi != fresh) {
		if (fresh)
			inode_put(&fresh->base); /* forgets the handle too */
		else
			goferfs_adopt(gi, node->fid);
	}
	set_attr(gi, &node->attr);
	atomic_store(&gi->walked_at, mono_now_ns());
	*out = &gi->base;
	return 0;
}

/* ---- attributes --------------------------------------------------------------------------- */

void goferfs_stale(struct inode *ino)
{
	struct goferfs_inode *gi = to_goferfs(ino);

	mutex_lock(&gi->attr_mu);
	gi->attr_at = 0;
	mutex_unlock(&gi->attr_mu);
}

static bool is_fresh(const struct goferfs *fs, uint64_t at)
{
	if (at == 0)
		return false;
	if (!fs->shared)
		return true;
	return mono_now_ns() - at < (fs->writable ? GOFERFS_TTL_WRITABLE_NS : GOFERFS_TTL_NS);
}

static void attr_from_stat(struct gofer_attr *a, const struct stat *st)
{
	a->mode = (a->mode & S_IFMT) | (st->st_mode & 07777);
	a->nlink = (uint32_t)st->st_nlink;
	a->uid = st->st_uid;
	a->gid = st->st_gid;
	a->size = (uint64_t)st->st_size;
	a->blocks = (uint64_t)st->st_blocks;
	a->atime_s = st->st_atim.tv_sec;
	a->atime_ns = (uint32_t)st->st_atim.tv_nsec;
	a->mtime_s = st->st_mtim.tv_sec;
	a->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	a->ctime_s = st->st_ctim.tv_sec;
	a->ctime_ns = (uint32_t)st->st_ctim.tv_nsec;
}

/* Asks the host again when needed: by a descriptor that we have, else by the gofer. */
static int refresh(struct goferfs_inode *gi)
{
	struct goferfs *fs = goferfs_of(&gi->base);
	struct gofer_attr a;
	struct stat st;

	mutex_lock(&gi->attr_mu);
	bool fresh = is_fresh(fs, gi->attr_at);
	struct host_file *hf = gi->reader ? gi->reader : gi->writer;
	if (hf)
		host_file_get(hf);
	a = gi->attr;
	mutex_unlock(&gi->attr_mu);
	int err = 0;
	if (!fresh && hf) {
		err = host_fstat(hf->fd, &st);
		if (!err)
			attr_from_stat(&a, &st);
	} else if (!fresh) {
		uint32_t fid;
		int tries = 0;
		do {
			err = goferfs_fid(gi, &fid);
			if (!err)
				err = gofer_getattr(fs->client, fid, &a);
		} while (goferfs_again(gi, fid, err, &tries));
	}
	host_file_put(hf);
	if (!fresh && !err)
		set_attr(gi, &a);
	return err;
}

static struct timespec to_time(int64_t s, uint32_t ns)
{
	return (struct timespec){ .tv_sec = s, .tv_nsec = (long)MIN(ns, 999999999u) };
}

int goferfs_getattr(struct inode *ino, struct fs_stat *out)
{
	struct goferfs_inode *gi = to_goferfs(ino);

	int err = refresh(gi);
	if (err)
		return err;
	mutex_lock(&gi->attr_mu);
	const struct gofer_attr *a = &gi->attr;
	*out = (struct fs_stat){
		.dev = ino->sb->dev,
		.ino = ino->ino,
		.rdev = a->rdev,
		.mode = ino->type | (a->mode & 07777),
		.nlink = a->nlink,
		.uid = a->uid,
		.gid = a->gid,
		.size = a->size,
		.blocks = a->blocks,
		.blksize = a->blksize,
		.atime = to_time(a->atime_s, a->atime_ns),
		.mtime = to_time(a->mtime_s, a->mtime_ns),
		.ctime = to_time(a->ctime_s, a->ctime_ns),
		.btime = to_time(a->btime_s, a->btime_ns),
		.has_btime = a->flags & GOFER_ATTR_BTIME,
	};
	mutex_unlock(&gi->attr_mu);
	return 0;
}

int goferfs_setattr(struct inode *ino, const struct iattr *attr)
{
	struct goferfs_inode *gi = to_goferfs(ino);
	struct gofer_attr a;

	if ((attr->valid & ~ATTR_CTIME) == 0)
		return 0;
	int err = gofer_setattr(goferfs_of(ino)->client, gi->fid, attr, &a);
	if (err)
		goferfs_stale(ino); /* part of it may have been done */
	else
		set_attr(gi, &a);
	return err;
}

ssize_t goferfs_getxattr(struct inode *ino, const char *name, void *buf, size_t size)
{
	struct goferfs_inode *gi = to_goferfs(ino);
	uint32_t fid;
	ssize_t n;
	int tries = 0;

	do {
		n = goferfs_fid(gi, &fid);
		if (!n)
			n = gofer_getxattr(goferfs_of(ino)->client, fid, name, buf, size);
	} while (goferfs_again(gi, fid, n, &tries));
	return n;
}

int goferfs_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags)
{
	int err = gofer_setxattr(goferfs_of(ino)->client, to_goferfs(ino)->fid, name, val, size,
				 flags);

	if (!err)
		goferfs_stale(ino);
	return err;
}

ssize_t goferfs_listxattr(struct inode *ino, char *buf, size_t size)
{
	struct goferfs_inode *gi = to_goferfs(ino);
	uint32_t fid;
	ssize_t n;
	int tries = 0;

	do {
		n = goferfs_fid(gi, &fid);
		if (!n)
			n = gofer_listxattr(goferfs_of(ino)->client, fid, buf, size);
	} while (goferfs_again(gi, fid, n, &tries));
	return n;
}

int goferfs_removexattr(struct inode *ino, const char *name)
{
	int err = gofer_removexattr(goferfs_of(ino)->client, to_goferfs(ino)->fid, name);

	if (!err)
		goferfs_stale(ino);
	return err;
}

/* ---- symbolic links ----------------------------------------------------------------------- */

/* A link's text never changes, and the handle pins the link. */
static int known_target(struct goferfs_inode *gi, char *buf, size_t size)
{
	int n = 0;

	mutex_lock(&gi->attr_mu);
	if (gi->target) {
		size_t len = strlen(gi->target);
		n = len < size ? (int)len : -ENAMETOOLONG;
		if (n > 0)
			memcpy(buf, gi->target, len + 1);
	}
	mutex_unlock(&gi->attr_mu);
	return n;
}

void goferfs_know_target(struct goferfs_inode *gi, char *target)
{
	mutex_lock(&gi->attr_mu);
	if (!gi->target && gi->base.type == S_IFLNK) {
		gi->target = target;
		target = NULL;
	}
	mutex_unlock(&gi->attr_mu);
	mem_free(target);
}

static int other_readlink(struct inode *ino, char *buf, size_t size)
{
	struct goferfs_inode *gi = to_goferfs(ino);

	uint32_t fid;
	int tries = 0;

	int n = known_target(gi, buf, size);
	if (n != 0)
		return n;
	do {
		n = goferfs_fid(gi, &fid);
		if (!n)
			n = gofer_readlink(goferfs_of(ino)->client, fid, buf, size);
	} while (goferfs_again(gi, fid, n, &tries));
	if (n <= 0)
		return n;
	goferfs_know_target(gi, mem_strdup(buf)); /* without memory it is read again */
	return n;
}

/* Symbolic links, and nodes of the host that are shown but lead nowhere: a fifo or socket inside is
 * one of the sandbox's own. */
const struct inode_ops goferfs_other_inode_ops = {
	.readlink = other_readlink,
	.getattr = goferfs_getattr,
	.setattr = goferfs_setattr,
	.getxattr = goferfs_getxattr,
	.setxattr = goferfs_setxattr,
	.listxattr = goferfs_listxattr,
	.removexattr = goferfs_removexattr,
	.free = goferfs_free,
};

/* ---- super block -------------------------------------------------------------------------- */

static int goferfs_statfs(struct superblock *sb, struct fs_statfs *out)
{
	const struct goferfs *fs = sb->priv;

	int err = gofer_statfs(fs->client, fs->root_fid, out);
	out->fsid = sb->dev;
	return err;
}

static void goferfs_sb_free(struct superblock *sb)
{
	struct goferfs *fs = sb->priv;

	gofer_client_put(fs->client);
	mutex_fini(&fs->table_mu);
	mem_free(fs);
}

static const struct sb_ops goferfs_sb_ops = {
	.statfs = goferfs_statfs,
	.free = goferfs_sb_free,
};

static int make_root(struct goferfs *fs, uint32_t export)
{
	struct gofer_node node;
	struct inode *root;

	int err = gofer_attach(fs->client, export, &node, &fs->writable);
	if (err)
		return err;
	fs->root_fid = node.fid;
	fs->sb->readonly = !fs->writable;
	err = goferfs_inode_get(fs, &node, NULL, "", &root);
	return err ? err : superblock_set_root(fs->sb, root);
}

int goferfs_new(struct gofer_client *c, uint32_t export, bool shared, struct superblock **out)
{
	struct goferfs *fs = mem_zalloc(sizeof(*fs));
	struct superblock *sb;

	if (!fs)
		return -ENOMEM;
	int err = superblock_new(&goferfs_sb_ops, "gofer", fs, &sb);
	if (err) {
		mem_free(fs);
		return err;
	}
	fs->client = gofer_client_get(c);
	fs->sb = sb;
	fs->shared = shared;
	mutex_init(&fs->table_mu, RANK_HASH);
	list_init(&fs->clock);
	for (size_t i = 0; i < GOFERFS_BUCKETS; i++)
		list_init(&fs->table[i]);
	err = make_root(fs, export);
	if (err) {
		superblock_put(sb);
		return err;
	}
	*out = sb;
	return 0;
}

void goferfs_give_up(struct inode *ino)
{
	if (ino->sb->ops == &goferfs_sb_ops)
		goferfs_drop_handle(to_goferfs(ino));
}

bool goferfs_is_shared(const struct superblock *sb)
{
	const struct goferfs *fs = sb->priv;

	return sb->ops == &goferfs_sb_ops && fs->shared;
}

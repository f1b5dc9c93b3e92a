/*
 * overlayfs: inodes, attributes and the super block.
 *
 * Unlike Linux' overlay, the upper layer is not a second tree of names. Each changed directory
 * keeps its changed names in memory (entries: an inode, or a whiteout), and an inode has an upper
 * part (a nameless tmpfs inode) once its data or attributes differ from below. So a lower directory
 * can be renamed by moving one entry, and what is below it follows.
 *
 * An inode over a lower one is found again in two ways. By name: a change pins the chain of names
 * from the root (ovl_pin), so that edits of the host do not bring back what the guest replaced. By
 * identity of the lower inode: other hard links see the change too.
 *
 * Locks, outermost first: directory's base.mu, child's base.mu, copy_mu, mu of the upper or lower
 * inode, then small_mu and table_mu, which are leaves.
 */
#include "fs/overlayfs.h"

#include <errno.h>
#include <string.h>

#include "fs/goferfs.h"
#include "fs/overlayfs_priv.h"
#include "platform/base/alloc.h"

#define OVERLAYFS_SUPER_MAGIC 0x794c7630
/* Numbers of inodes that exist above only start here, out of the way of what host file systems use.
 */
#define FRESH_INO_BASE (1ull << 48)
#define DIR_SIZE 4096

/* ---- inodes ------------------------------------------------------------------------------- */

static struct list *bucket_of(struct ovl *fs, const struct inode *lower)
{
	uint64_t h = (uint64_t)(uintptr_t)lower * 0x9e3779b97f4a7c15u;

	return &fs->table[h >> 48 & (OVL_BUCKETS - 1)];
}

static const struct inode_ops *ops_of(uint32_t type)
{
	if (type == S_IFDIR)
		return &ovl_dir_inode_ops;
	return type == S_IFREG ? &ovl_file_inode_ops : &ovl_other_inode_ops;
}

static struct ovl_inode *inode_new(struct ovl *fs, uint64_t number, uint32_t type)
{
	struct ovl_inode *oi = mem_zalloc(sizeof(*oi));

	if (!oi)
		return NULL;
	inode_init(&oi->base, fs->sb, ops_of(type), number, type);
	mutex_init(&oi->copy_mu, RANK_INODE);
	mutex_init(&oi->small_mu, RANK_HASH);
	list_init(&oi->table_link);
	list_init(&oi->all_link);
	list_init(&oi->dead_link);
	return oi;
}

static struct ovl_inode *find_locked(struct ovl *fs, const struct inode *lower)
{
	list_for_each(pos, bucket_of(fs, lower)) {
		struct ovl_inode *oi = list_entry(pos, struct ovl_inode, table_link);
		if (oi->lower == lower && ref_inc_not_zero(&oi->base.ref))
			return oi;
	}
	return NULL;
}

/* Not in any list yet. Takes lower. */
static struct ovl_inode *new_over(struct ovl *fs, struct inode *lower, struct ovl_inode *dir,
				  const char *name)
{
	struct ovl_inode *oi = inode_new(fs, lower->ino, lower->type);
	char *copy = dir ? mem_strdup(name) : NULL;

	if (!oi || (dir && !copy)) {
		if (oi)
			inode_put(&oi->base);
		mem_free(copy);
		inode_put(lower);
		return NULL;
	}
	oi->lower = lower;
	oi->base.rdev = lower->rdev;
	oi->hint_name = copy;
	if (dir) {
		inode_get(&dir->base);
		oi->hint_parent = dir;
	}
	return oi;
}

int ovl_inode_over(struct ovl *fs, struct inode *lower, struct ovl_inode *dir, const char *name,
		   struct inode **out)
{
	struct ovl_inode *fresh = NULL;

	mutex_lock(&fs->table_mu);
	struct ovl_inode *oi = find_locked(fs, lower);
	mutex_unlock(&fs->table_mu);
	if (!oi) {
		fresh = new_over(fs, inode_get(lower), dir, name);
		if (!fresh) {
			inode_put(lower);
			return -ENOMEM;
		}
		mutex_lock(&fs->table_mu);
		oi = find_locked(fs, lower);
		if (!oi) {
			list_add(bucket_of(fs, lower), &fresh->table_link);
			list_add(&fs->all, &fresh->all_link);
			oi = fresh;
		}
		mutex_unlock(&fs->table_mu);
		if (oi != fresh)
			inode_put(&fresh->base);
	}
	atomic_store(&oi->walked_at, mono_now_ns());
	if (oi->base.type == S_IFDIR)
		atomic_store(&oi->parent_ino, dir ? dir->base.ino : oi->base.ino);
	inode_put(lower);
	*out = &oi->base;
	return 0;
}

int ovl_inode_fresh(struct ovl *fs, uint32_t mode, uint32_t uid, uint32_t gid,
		    struct ovl_inode **out)
{
	struct tmpfs_inode *ti;

	int err = tmpfs_inode_new(fs->upper, mode, uid, gid, &ti);
	if (err)
		return err;
	struct ovl_inode *oi = inode_new(fs, FRESH_INO_BASE + ti->base.ino, ti->base.type);
	if (!oi) {
		inode_put(&ti->base);
		return -ENOMEM;
	}
	atomic_store(&oi->upper, ti);
	mutex_lock(&fs->table_mu);
	list_add(&fs->all, &oi->all_link);
	mutex_unlock(&fs->table_mu);
	*out = oi;
	return 0;
}

/* ---- the end of inodes -------------------------------------------------------------------- */

/* Drops a reference without recursion: what it was the last of is freed by ovl_free_dead. */
static void put_later(struct ovl_inode *oi, struct list *dead)
{
	if (oi && ref_dec(&oi->base.ref))
		list_add_tail(dead, &oi->dead_link);
}

void ovl_clear_entries(struct ovl_inode *oi, struct list *dead)
{
	struct rb_node *n;

	while ((n = rb_first(&oi->entries)) != NULL) {
		struct ovl_entry *e = container_of(n, struct ovl_entry, node);
		rb_erase(&oi->entries, n);
		put_later(e->inode, dead);
		mem_free(e);
	}
}

static void free_one(struct ovl_inode *oi, struct list *dead)
{
	struct ovl *fs = ovl_of(&oi->base);

	mutex_lock(&fs->table_mu);
	list_del_init(&oi->table_link);
	list_del_init(&oi->all_link);
	mutex_unlock(&fs->table_mu);
	ovl_clear_entries(oi, dead);
	put_later(oi->hint_parent, dead);
	mem_free(oi->hint_name);
	inode_put(oi->lower);
	struct tmpfs_inode *upper = ovl_upper(oi);
	if (upper)
		inode_put(&upper->base);
	mutex_fini(&oi->copy_mu);
	mutex_fini(&oi->small_mu);
	mem_free(oi);
}

void ovl_free_dead(struct list *dead)
{
	while (!list_empty(dead)) {
		struct ovl_inode *oi = list_first(dead, struct ovl_inode, dead_link);
		list_del_init(&oi->dead_link);
		mutex_fini(&oi->base.mu);
		mutex_fini(&oi->base.write_mu);
		free_one(oi, dead);
	}
}

void ovl_free(struct inode *ino)
{
	struct list dead = LIST_INIT(dead);

	free_one(to_ovl(ino), &dead);
	ovl_free_dead(&dead);
}

/* ---- attributes --------------------------------------------------------------------------- */

/* Where attributes are read from. */
static struct inode *real_inode(struct inode *ino)
{
	struct tmpfs_inode *upper = ovl_upper(to_ovl(ino));

	return upper ? &upper->base : to_ovl(ino)->lower;
}

/* Where data is read from. */
static struct inode *data_inode(struct inode *ino)
{
	return atomic_load(&to_ovl(ino)->data_below) ? to_ovl(ino)->lower : real_inode(ino);
}

/* A lower inode is given up when it has been copied: whoever was just about to use it looks again.
 */
static bool copied_meanwhile(struct inode *ino, const struct inode *real, long err)
{
	return err == -ESTALE && real != real_inode(ino);
}

int ovl_getattr(struct inode *ino, struct fs_stat *out)
{
	struct ovl_inode *oi = to_ovl(ino);
	struct inode *real;
	int err;

	do {
		real = real_inode(ino);
		err = real->ops->getattr(real, out);
	} while (copied_meanwhile(ino, real, err));
	if (err)
		return err;
	bool upper = real != oi->lower;
	out->dev = ino->sb->dev;
	out->ino = ino->ino;
	if (upper && atomic_load(&oi->data_below)) {
		struct fs_stat below;
		/* Copied and given up meanwhile: what we have is true again. */
		if (oi->lower->ops->getattr(oi->lower, &below) == 0) {
			out->size = below.size;
			out->blocks = below.blocks;
		} else if (atomic_load(&oi->data_below)) {
			return -EIO;
		} else {
			return ovl_getattr(ino, out);
		}
	}
	/* As on the disk that programs take this for, not as in memory. */
	if (upper && ino->type == S_IFDIR) {
		out->size = DIR_SIZE;
		out->blocks = DIR_SIZE / 512;
	}
	/* LINUX: as there, a directory that is merged has one link: the number of its parts is not
	 * known. */
	if (upper && oi->lower && ino->type == S_IFDIR)
		out->nlink = 1;
	if (atomic_load(&oi->removed)) {
		out->nlink = 0;
	} else if (!upper) {
		int delta = __atomic_load_n(&oi->nlink_delta, __ATOMIC_RELAXED);
		out->nlink = delta < 0 && out->nlink < (uint32_t)-delta
				     ? 0
				     : out->nlink + (uint32_t)delta;
	}
	return 0;
}

int ovl_setattr(struct inode *ino, const struct iattr *attr)
{
	struct ovl_inode *oi = to_ovl(ino);

	int err = attr->valid & ATTR_SIZE ? ovl_copy_data(oi, attr->size) : ovl_copy_up(oi);
	if (err)
		return err;
	struct inode *upper = &ovl_upper(oi)->base;
	mutex_lock_nested(&upper->mu); /* stacked: the upper inode after the one above it */
	err = tmpfs_setattr(upper, attr);
	mutex_unlock(&upper->mu);
	return err;
}

ssize_t ovl_getxattr(struct inode *ino, const char *name, void *buf, size_t size)
{
	struct inode *real;
	ssize_t n;

	do {
		real = real_inode(ino);
		n = real->ops->getxattr ? real->ops->getxattr(real, name, buf, size) : -EOPNOTSUPP;
	} while (copied_meanwhile(ino, real, n));
	return n;
}

int ovl_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags)
{
	int err = ovl_copy_up(to_ovl(ino));

	return err ? err : tmpfs_setxattr(&ovl_upper(to_ovl(ino))->base, name, val, size, flags);
}

ssize_t ovl_listxattr(struct inode *ino, char *buf, size_t size)
{
	struct inode *real;
	ssize_t n;

	do {
		real = real_inode(ino);
		n = real->ops->listxattr ? real->ops->listxattr(real, buf, size) : -EOPNOTSUPP;
	} while (copied_meanwhile(ino, real, n));
	return n;
}

int ovl_removexattr(struct inode *ino, const char *name)
{
	char c;
	/* What is not there needs no copy. */
	ssize_t n = ovl_getxattr(ino, name, &c, 0);
	if (n < 0)
		return (int)n;
	int err = ovl_copy_up(to_ovl(ino));
	return err ? err : tmpfs_removexattr(&ovl_upper(to_ovl(ino))->base, name);
}

static int other_readlink(struct inode *ino, char *buf, size_t size)
{
	struct inode *real;
	int n;

	do {
		real = real_inode(ino);
		n = real->ops->readlink(real, buf, size);
	} while (copied_meanwhile(ino, real, n));
	return n;
}

/* A file that is opened for reading goes on reading what is below when it is copied up later, as on
 * Linux. */
static int file_open(struct inode *ino, int flags, const struct cred *c, struct file **out)
{
	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC)) {
		int err = ovl_copy_data(to_ovl(ino), flags & O_TRUNC ? 0 : OVL_COPY_ALL);
		if (err)
			return err;
	}
	struct inode *real;
	int err;
	do {
		real = data_inode(ino);
		err = real->ops->open(real, flags, c, out);
	} while (err == -ESTALE && real != data_inode(ino));
	return err;
}

const struct inode_ops ovl_file_inode_ops = {
	.getattr = ovl_getattr,
	.setattr = ovl_setattr,
	.open = file_open,
	.getxattr = ovl_getxattr,
	.setxattr = ovl_setxattr,
	.listxattr = ovl_listxattr,
	.removexattr = ovl_removexattr,
	.free = ovl_free,
};

const struct inode_ops ovl_other_inode_ops = {
	.readlink = other_readlink,
	.getattr = ovl_getattr,
	.setattr = ovl_setattr,
	.getxattr = ovl_getxattr,
	.setxattr = ovl_setxattr,
	.listxattr = ovl_listxattr,
	.removexattr = ovl_removexattr,
	.free = ovl_free,
};

/* ---- super block -------------------------------------------------------------------------- */

static int ovl_statfs(struct superblock *sb, struct fs_statfs *out)
{
	const struct ovl *fs = sb->priv;

	int err = fs->upper->ops->statfs(fs->upper, out);
	out->type = OVERLAYFS_SUPER_MAGIC;
	out->fsid = sb->dev;
	return err;
}

/* Entries and hints may refer to each other in circles: take all of them apart. Nobody else is
 * left. */
static void drop_all(struct ovl *fs)
{
	struct list dead = LIST_INIT(dead), held = LIST_INIT(held);

	mutex_lock(&fs->table_mu);
	list_for_each(pos, &fs->all)
		inode_get(&list_entry(pos, struct ovl_inode, all_link)->base);
	list_splice_tail(&held, &fs->all);
	mutex_unlock(&fs->table_mu);
	list_for_each(pos, &held) {
		struct ovl_inode *oi = list_entry(pos, struct ovl_inode, all_link);
		ovl_clear_entries(oi, &dead); /* never the last reference: we hold one of each */
		if (oi->hint_parent)
			inode_put(&oi->hint_parent->base);
		oi->hint_parent = NULL;
		if (oi->table_pin)
			inode_put(&oi->base);
		oi->table_pin = false;
	}
	while (!list_empty(&held)) {
		struct ovl_inode *oi = list_first(&held, struct ovl_inode, all_link);
		list_del_init(&oi->all_link);
		inode_put(&oi->base);
	}
}

static void ovl_sb_free(struct superblock *sb)
{
	struct ovl *fs = sb->priv;

	drop_all(fs);
	superblock_put(fs->lower);
	superblock_put(fs->upper);
	mutex_fini(&fs->table_mu);
	mem_free(fs);
}

static const struct sb_ops ovl_sb_ops = {
	.statfs = ovl_statfs,
	.free = ovl_sb_free,
};

static void ovl_init(struct ovl *fs, struct superblock *sb, struct superblock *lower,
		     struct superblock *upper)
{
	fs->sb = sb;
	fs->lower = lower;
	fs->upper = upper;
	fs->shared = goferfs_is_shared(lower);
	mutex_init(&fs->table_mu, RANK_HASH);
	list_init(&fs->all);
	for (size_t i = 0; i < OVL_BUCKETS; i++)
		list_init(&fs->table[i]);
}

int overlayfs_new(struct superblock *lower, struct superblock *upper, struct superblock **out)
{
	struct ovl *fs = mem_zalloc(sizeof(*fs));
	struct superblock *sb = NULL;
	struct inode *root;

	int err = fs ? superblock_new(&ovl_sb_ops, "overlay", fs, &sb) : -ENOMEM;
	if (err) {
		mem_free(fs);
		superblock_put(lower);
		superblock_put(upper);
		return err;
	}
	ovl_init(fs, sb, lower, upper);
	err = ovl_inode_over(fs, inode_get(lower->root->inode), NULL, "", &root);
	if (!err)
		err = superblock_set_root(sb, root);
	if (err) {
		superblock_put(sb);
		return err;
	}
	*out = sb;
	return 0;
}

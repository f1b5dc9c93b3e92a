/*
 * Super blocks. Mounts keep one alive; the last reference goes with the last mount, the last open
 * file and the last working directory in it, so no inode of it is in use any more.
 */
#include <errno.h>
#include <sys/sysmacros.h>

#include "fs/dcache.h"
#include "fs/inotify.h"
#include "fs/vfs.h"
#include "platform/base/alloc.h"

/* Minors of major 0: kept clear of 0, which programs take for "no device". */
static atomic_uint next_minor = 20;

uint64_t superblock_new_dev(void)
{
	return makedev(0, atomic_fetch_add(&next_minor, 1));
}

static void superblock_free(struct superblock *sb)
{
	inotify_unmount(sb);
	dcache_purge(sb);
	dentry_put(sb->root);
	if (sb->ops->free)
		sb->ops->free(sb);
	mutex_fini(&sb->rename_mu);
	mem_free(sb);
}

DEFINE_REF(superblock);

int superblock_new(const struct sb_ops *ops, const char *fs_name, void *priv,
		   struct superblock **out_sb)
{
	struct superblock *sb = mem_zalloc(sizeof(*sb));

	if (!sb)
		return -ENOMEM;
	ref_init(&sb->ref);
	sb->ops = ops;
	sb->fs_name = fs_name;
	sb->priv = priv;
	sb->dev = superblock_new_dev();
	mutex_init(&sb->rename_mu, RANK_RENAME);
	*out_sb = sb;
	return 0;
}

int superblock_set_root(struct superblock *sb, struct inode *root)
{
	struct dentry *d = dentry_new(sb, NULL, "/", root);

	if (!d)
		return -ENOMEM;
	sb->root = d;
	return 0;
}

/*
 * Handles of goferfs. Each pins a descriptor at the gofer, whose number is bounded, while a guest
 * may keep any number of inodes alive (changed directories of an overlay, open files). On a
 * read-only tree an inode can therefore lose its handle and get it again: it knows the name by
 * which it was found, and the object found there must be the same one by device, number and time of
 * birth. A clock chooses who loses.
 */
#include <errno.h>

#include "fs/dcache.h"
#include "fs/goferfs_priv.h"
#include "platform/base/alloc.h"

/* So many handles are given back when they have run out. */
#define DROP_COUNT 256
#define TRIES_MAX 5

/* Iterative: freeing an inode may free a long chain of directories above it. */
void goferfs_free(struct inode *ino)
{
	struct goferfs_inode *gi = to_goferfs(ino);

	while (gi) {
		struct goferfs *fs = goferfs_of(&gi->base);
		struct goferfs_inode *up = gi->up;
		mutex_lock(&fs->table_mu);
		list_del_init(&gi->table_link);
		list_del_init(&gi->clock_link);
		mutex_unlock(&fs->table_mu);
		uint32_t fid = atomic_load(&gi->fid);
		if (fid)
			gofer_forget(fs->client, fid);
		goferfs_drop_kept(gi);
		mem_free(gi->target);
		mem_free(gi->up_name);
		mutex_fini(&gi->attr_mu);
		mem_free(gi);
		gi = up && ref_dec(&up->base.ref) ? up : NULL;
		if (gi) {
			mutex_fini(&gi->base.mu);
			mutex_fini(&gi->base.write_mu);
		}
	}
}

/* Without its handle the host's number may be used again, so nobody must find the inode by it. */
void goferfs_drop_handle(struct goferfs_inode *gi)
{
	struct goferfs *fs = goferfs_of(&gi->base);

	atomic_store(&gi->given_up, true);
	mutex_lock(&fs->table_mu);
	list_del_init(&gi->table_link);
	list_del_init(&gi->clock_link);
	mutex_unlock(&fs->table_mu);
	uint32_t fid = atomic_exchange(&gi->fid, 0);
	if (fid)
		gofer_forget(fs->client, fid);
	goferfs_drop_kept(gi);
}

void goferfs_adopt(struct goferfs_inode *gi, uint32_t fid)
{
	uint32_t none = 0;

	if (atomic_load(&gi->given_up) || !atomic_compare_exchange_strong(&gi->fid, &none, fid))
		gofer_forget(goferfs_of(&gi->base)->client, fid);
}

/* ---- getting one again -------------------------------------------------------------------- */

static bool is_same(const struct goferfs_inode *gi, const struct gofer_attr *a)
{
	return a->dev == gi->host_dev && a->ino == gi->host_ino &&
	       goferfs_birth(a) == gi->host_birth && (a->mode & S_IFMT) == gi->base.type;
}

/* gi has no handle, the directory above it has. */
static int walk_to(struct goferfs_inode *gi, uint32_t up_fid)
{
	struct goferfs *fs = goferfs_of(&gi->base);
	const char *name = gi->up_name;
	struct gofer_node node;
	unsigned count;
	int stop;

	int err = gofer_walk(fs->client, up_fid, &name, 1, &node, &count, &stop);
	if (err)
		return err == -ENOENT || err == -ENOTDIR ? -ESTALE : err;
	if (!is_same(gi, &node.attr)) {
		gofer_forget(fs->client, node.fid);
		return -ESTALE;
	}
	goferfs_adopt(gi, node.fid);
	return 0;
}

/* The highest inode on the way to gi that has no handle, with the handle above it. */
static struct goferfs_inode *first_without(struct goferfs_inode *gi, uint32_t *out_up_fid)
{
	while (gi->up) {
		*out_up_fid = atomic_load(&gi->up->fid);
		if (*out_up_fid)
			return gi;
		gi = gi->up;
	}
	return NULL;
}

int goferfs_fid(struct goferfs_inode *gi, uint32_t *out)
{
	uint32_t up_fid;

	*out = atomic_load(&gi->fid);
	atomic_store_explicit(&gi->fid_used, true, memory_order_relaxed);
	while (!*out) {
		struct goferfs_inode *next = first_without(gi, &up_fid);
		if (!next || atomic_load(&gi->given_up))
			return -ESTALE;
		int err = walk_to(next, up_fid);
		/* The one above was taken away meanwhile: begin again. */
		if (err == -ESTALE && atomic_load(&next->up->fid) != up_fid)
			continue;
		if (err)
			return err;
		*out = atomic_load(&gi->fid);
	}
	return 0;
}

/* ---- running out -------------------------------------------------------------------------- */

/* Takes handles from inodes that were not used lately. How many. */
static size_t drop_some(struct goferfs *fs)
{
	uint32_t fids[DROP_COUNT];
	size_t n = 0, look = 0;

	mutex_lock(&fs->table_mu);
	list_for_each(pos, &fs->clock)
		look++;
	for (look *= 2; look > 0 && n < DROP_COUNT; look--) {
		struct goferfs_inode *gi = list_first(&fs->clock, struct goferfs_inode, clock_link);
		list_del_init(&gi->clock_link);
		list_add_tail(&fs->clock, &gi->clock_link);
		if (atomic_exchange(&gi->fid_used, false))
			continue;
		fids[n] = atomic_exchange(&gi->fid, 0);
		if (fids[n])
			n++;
	}
	mutex_unlock(&fs->table_mu);
	for (size_t i = 0; i < n; i++)
		gofer_forget(fs->client, fids[i]);
	return n;
}

bool goferfs_again(struct goferfs_inode *gi, uint32_t fid, long err, int *tries)
{
	if (err != -ESTALE && err != -EMFILE)
		return false;
	if (++*tries > TRIES_MAX || atomic_load(&gi->given_up))
		return false;
	/* Taken away between our look and the request? */
	if (err == -ESTALE)
		return fid && atomic_load(&gi->fid) != fid;
	return drop_some(goferfs_of(&gi->base)) > 0 || dcache_shrink(DROP_COUNT) > 0;
}

/*
 * Copy-up: what is below gets an upper part on the first change. The copy is made aside and then
 * put in place with one store, so nobody sees half of it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/goferfs.h"
#include "fs/overlayfs_priv.h"
#include "platform/base/alloc.h"

#define COPY_BUFFER (64 * 1024ul)
#define XATTR_LIST_MAX (64 * 1024ul)
#define XATTR_VALUE_MAX (64 * 1024ul)

/* ---- data --------------------------------------------------------------------------------- */

/* Copies [off, end) through buf. */
static int copy_range(struct file *from, struct memfile *to, uint64_t off, uint64_t end, void *buf)
{
	while (off < end) {
		struct iov_iter it;
		int64_t pos = (int64_t)off;
		iov_init_host(&it, buf, MIN(end - off, COPY_BUFFER), IOV_FILL);
		ssize_t n = from->ops->read(from, &it, &pos);
		if (n <= 0)
			return (int)n; /* it became shorter: the rest is a hole */
		for (ssize_t done = 0; done < n;) {
			iov_init_host(&it, (char *)buf + done, (size_t)(n - done), IOV_DRAIN);
			ssize_t w = memfile_write(to, &it, off + (uint64_t)done);
			if (w <= 0)
				return w < 0 ? (int)w : -EIO;
			done += w;
		}
		off += (uint64_t)n;
	}
	return 0;
}

/* Copies the pieces that hold data, as far as the file system below knows holes. */
static int copy_pieces(struct file *from, struct memfile *to, uint64_t size, void *buf)
{
	uint64_t pos = 0;
	int err = 0;

	while (pos < size && !err) {
		int64_t data = from->ops->seek(from, (int64_t)pos, SEEK_DATA);
		if (data == -ENXIO)
			break;
		uint64_t start = data < 0 ? pos : (uint64_t)data;
		int64_t hole = data < 0 ? data : from->ops->seek(from, data, SEEK_HOLE);
		uint64_t end = hole < 0 ? size : MIN((uint64_t)hole, size);
		if (end <= start)
			break;
		err = copy_range(from, to, start, end, buf);
		pos = end;
	}
	return err ? err : memfile_truncate(to, size);
}

/* Nobody else uses the data of ti yet, so its lock is not needed. */
static int copy_data(struct ovl_inode *oi, struct tmpfs_inode *ti, uint64_t size)
{
	struct file *from;

	if (size == 0)
		return 0;
	void *buf = mem_alloc(COPY_BUFFER);
	if (!buf)
		return -ENOMEM;
	int err = oi->lower->ops->open(oi->lower, O_RDONLY, NULL, &from);
	if (!err) {
		err = copy_pieces(from, &ti->data, size, buf);
		file_put(from);
	}
	mem_free(buf);
	return err;
}

static int copy_target(struct ovl_inode *oi, struct tmpfs_inode *ti)
{
	char *buf = mem_alloc(PATH_LEN_MAX);

	if (!buf)
		return -ENOMEM;
	int n = oi->lower->ops->readlink(oi->lower, buf, PATH_LEN_MAX);
	if (n >= 0) {
		ti->target = mem_strdup(buf);
		n = ti->target ? 0 : -ENOMEM;
	}
	mem_free(buf);
	return n;
}

/* ---- extended attributes ------------------------------------------------------------------ */

static bool is_copied(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0 ||
	       strncmp(name, "trusted.", 8) == 0;
}

static int copy_named(struct inode *lower, struct tmpfs_inode *ti, const char *list, size_t size,
		      void *val)
{
	for (size_t at = 0; at < size;) {
		const char *name = list + at;
		at += strnlen(name, size - at) + 1;
		if (at > size || !is_copied(name))
			continue;
		ssize_t n = lower->ops->getxattr(lower, name, val, XATTR_VALUE_MAX);
		int err = n < 0 ? 0 : xattrs_set(&ti->xattrs, name, val, (size_t)n, 0);
		if (err)
			return err;
	}
	return 0;
}

static int copy_xattrs(struct inode *lower, struct tmpfs_inode *ti)
{
	if (!lower->ops->listxattr || !lower->ops->getxattr)
		return 0;
	ssize_t size = lower->ops->listxattr(lower, NULL, 0);
	if (size <= 0)
		return 0; /* none, or not known there */
	char *list = mem_alloc(XATTR_LIST_MAX);
	void *val = mem_alloc(XATTR_VALUE_MAX);
	int err = list && val ? 0 : -ENOMEM;
	if (!err) {
		size = lower->ops->listxattr(lower, list, XATTR_LIST_MAX);
		err = size > 0 ? copy_named(lower, ti, list, (size_t)size, val) : 0;
	}
	mem_free(list);
	mem_free(val);
	return err;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int copy_content(struct ovl_inode *oi, struct tmpfs_inode *ti)
{
	int err = oi->base.type == S_IFLNK ? copy_target(oi, ti) : 0;

	return err ? err : copy_xattrs(oi->lower, ti);
}

/* copy_mu is held. */
static int copy_up_locked(struct ovl_inode *oi)
{
	struct ovl *fs = ovl_of(&oi->base);
	struct tmpfs_inode *ti;
	struct fs_stat st;

	int err = oi->lower->ops->getattr(oi->lower, &st);
	if (err)
		return err;
	err = tmpfs_inode_new(fs->upper, oi->base.type | (st.mode & 07777), st.uid, st.gid, &ti);
	if (err)
		return err;
	err = copy_content(oi, ti);
	if (err) {
		inode_put(&ti->base);
		return err;
	}
	ti->base.rdev = st.rdev;
	ti->atime = st.atime;
	ti->mtime = st.mtime;
	if (st.has_btime)
		ti->btime = st.btime;
	if (oi->base.type != S_IFDIR) {
		int64_t links = (int64_t)st.nlink + oi->nlink_delta;
		ti->nlink = (uint32_t)MAX(links, 0);
		if (st.nlink > 1 && links > 0 && !oi->table_pin) {
			oi->table_pin = true;
			inode_get(&oi->base);
		}
	}
	/* Before upper: whoever sees that asks for this. */
	atomic_store(&oi->data_below, oi->base.type == S_IFREG);
	atomic_store(&oi->upper, ti);
	return 0;
}

/* What is below is not looked at again when nothing is missing above and the one name leads here.
 */
static void give_up_lower(struct ovl_inode *oi)
{
	if (oi->lower && oi->base.type != S_IFDIR && !oi->table_pin &&
	    !atomic_load(&oi->data_below))
		goferfs_give_up(oi->lower);
}

int ovl_copy_up(struct ovl_inode *oi)
{
	int err = 0;

	if (ovl_upper(oi))
		return ovl_pin(oi); /* nothing to do, unless memory was short the first time */
	/* After the mu of this inode or of its directory. */
	mutex_lock_nested(&oi->copy_mu);
	if (!ovl_upper(oi))
		err = copy_up_locked(oi);
	if (!err)
		err = ovl_pin(oi);
	if (!err)
		give_up_lower(oi);
	mutex_unlock(&oi->copy_mu);
	return err;
}

/* copy_mu is held. */
static int copy_data_locked(struct ovl_inode *oi, uint64_t size)
{
	struct tmpfs_inode *ti = ovl_upper(oi);
	struct fs_stat st;

	int err = oi->lower->ops->getattr(oi->lower, &st);
	if (!err)
		err = copy_data(oi, ti, MIN(size, st.size));
	if (err) {
		/* Begin anew the next time. */
		(void)!memfile_truncate(&ti->data, 0);
		return err;
	}
	atomic_store(&oi->data_below, false);
	give_up_lower(oi);
	return 0;
}

int ovl_copy_data(struct ovl_inode *oi, uint64_t size)
{
	int err = ovl_copy_up(oi);

	if (err || !atomic_load(&oi->data_below))
		return err;
	mutex_lock_nested(&oi->copy_mu);
	if (atomic_load(&oi->data_below))
		err = copy_data_locked(oi, size);
	mutex_unlock(&oi->copy_mu);
	return err;
}

/* Links of a file that has no upper part; copy_mu is held. */
static int64_t count_links(struct ovl_inode *oi)
{
	struct fs_stat st;

	if (oi->lower->ops->getattr(oi->lower, &st) != 0)
		return 0;
	return (int64_t)st.nlink + oi->nlink_delta;
}

void ovl_add_link(struct ovl_inode *oi, int n)
{
	int64_t links;

	/* After the mu of the directory. */
	mutex_lock_nested(&oi->copy_mu);
	struct tmpfs_inode *upper = ovl_upper(oi);
	if (upper) {
		tmpfs_add_link(upper, n);
		links = upper->nlink;
	} else {
		__atomic_store_n(&oi->nlink_delta, oi->nlink_delta + n, __ATOMIC_RELAXED);
		links = oi->base.type == S_IFDIR ? 0 : count_links(oi);
	}
	/* What other lower names lead to must remember its count as long as there are any. */
	bool pin = !upper && links > 0 && !oi->table_pin, unpin = oi->table_pin && links <= 0;
	if (pin || unpin)
		oi->table_pin = pin;
	if (pin)
		inode_get(&oi->base);
	mutex_unlock(&oi->copy_mu);
	if (unpin)
		inode_put(&oi->base); /* the caller holds one more */
}

/* ---- pinning ------------------------------------------------------------------------------ */

/* Takes the hint out of oi. The caller owns both parts. */
static struct ovl_inode *take_hint(struct ovl_inode *oi, char **out_name)
{
	mutex_lock(&oi->small_mu);
	struct ovl_inode *parent = oi->hint_parent;
	*out_name = oi->hint_name;
	oi->hint_parent = NULL;
	oi->hint_name = NULL;
	mutex_unlock(&oi->small_mu);
	return parent;
}

/* Without memory the hint stays, so that a later change tries again. */
static void give_hint_back(struct ovl_inode *oi, struct ovl_inode *parent, char *name)
{
	mutex_lock(&oi->small_mu);
	oi->hint_parent = parent;
	oi->hint_name = name;
	mutex_unlock(&oi->small_mu);
}

/* The name in the parent leads to oi, unless it has changed already. */
static bool pin_at(struct ovl_inode *oi, struct ovl_inode *parent, const char *name)
{
	struct ovl_entry *e = ovl_entry_new(name);

	if (!e)
		return false;
	mutex_lock(&parent->small_mu);
	if (!ovl_find_entry(parent, name)) {
		e->inode = oi;
		e->over_lower = true;
		inode_get(&oi->base);
		ovl_insert_entry(parent, e);
		e = NULL;
	}
	mutex_unlock(&parent->small_mu);
	mem_free(e);
	return true;
}

/* Up to the root: each directory that gets a changed name is changed itself. */
int ovl_pin(struct ovl_inode *oi)
{
	struct ovl_inode *held = NULL;
	int err = 0;

	while (oi) {
		char *name;
		struct ovl_inode *parent = take_hint(oi, &name);
		if (parent && !pin_at(oi, parent, name)) {
			give_hint_back(oi, parent, name);
			err = -ENOMEM;
			break;
		}
		mem_free(name);
		if (held)
			inode_put(&held->base);
		held = parent;
		oi = parent;
	}
	if (held)
		inode_put(&held->base);
	return err;
}

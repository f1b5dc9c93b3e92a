/*
 * Directories of goferfs: names, changes of names, listings. Lookups and changes are one request
 * each; what the answer says about the object fills the inode's attributes.
 */
#include <errno.h>
#include <linux/fs.h>
#include <unistd.h>

#include "fs/goferfs_priv.h"
#include "platform/base/alloc.h"

/* ---- names -------------------------------------------------------------------------------- */

static int walk_one(struct inode *dir, const char *name, struct gofer_node *out, char **out_target)
{
	struct goferfs_inode *gi = to_goferfs(dir);
	uint32_t fid;
	int err, tries = 0;

	do {
		err = goferfs_fid(gi, &fid);
		if (!err)
			err = gofer_lookup(goferfs_of(dir)->client, fid, name, out, out_target);
	} while (goferfs_again(gi, fid, err, &tries));
	return err;
}

static int dir_lookup(struct inode *dir, const char *name, struct inode **out)
{
	struct gofer_node node;
	char *target;

	int err = walk_one(dir, name, &node, &target);
	if (err)
		return err;
	err = goferfs_inode_get(goferfs_of(dir), &node, dir, name, out);
	if (err)
		mem_free(target);
	else
		goferfs_know_target(to_goferfs(*out), target);
	return err;
}

/* Looks at the name again. 1: the dentry still tells the truth. */
static int check_name(struct inode *dir, struct dentry *d)
{
	char name[NAME_LEN_MAX + 1];
	struct inode *now;

	dentry_name(d, name);
	int err = dir_lookup(dir, name, &now);
	if (err == -ENOENT && !d->inode) {
		atomic_store(&d->checked_at, mono_now_ns());
		return 1;
	}
	if (err)
		return 0; /* the lookup that follows says what is wrong */
	bool same = now == d->inode;
	inode_put(now);
	if (same)
		atomic_store(&d->checked_at, mono_now_ns());
	return same;
}

static int dir_revalidate(struct dentry *d)
{
	struct goferfs *fs = d->sb->priv;

	if (!fs->shared)
		return 1;
	uint64_t at = atomic_load(&d->checked_at);
	if (d->inode)
		at = MAX(at, atomic_load(&to_goferfs(d->inode)->walked_at));
	uint64_t ttl = fs->writable ? GOFERFS_TTL_WRITABLE_NS : GOFERFS_TTL_NS;
	if (at && mono_now_ns() - at < ttl)
		return 1;
	struct dentry *parent = dentry_parent(d);
	int ok = parent == d ? 1 : check_name(parent->inode, d);
	dentry_put(parent);
	return ok;
}

/* ---- making ------------------------------------------------------------------------------- */

static int owner_in(struct inode *dir, uint32_t mode, const struct cred *c, struct gofer_owner *out)
{
	struct fs_stat st;

	int err = goferfs_getattr(dir, &st);
	if (err)
		return err;
	out->mode = mode;
	inode_new_owner(&st, c, &out->mode, &out->uid, &out->gid);
	return 0;
}

/* What was made becomes an inode; fd (takes, may be -1) waits for the open that follows. */
static int made(struct inode *dir, const struct gofer_node *node, int fd, struct inode **out)
{
	struct host_file *hf = NULL;

	goferfs_stale(dir);
	/* Without memory for it, the file is opened again. */
	if (fd >= 0 && host_file_new(fd, &hf) != 0)
		hf = NULL;
	int err = goferfs_inode_get(goferfs_of(dir), node, NULL, "", out);
	if (err) {
		host_file_put(hf);
		return err;
	}
	if (hf)
		goferfs_keep_creator(to_goferfs(*out), hf);
	return 0;
}

static int dir_create(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		      struct inode **out)
{
	struct gofer_owner o;
	struct gofer_node node;
	int fd = -1;

	int err = owner_in(dir, S_IFREG | (mode & 07777), c, &o);
	if (!err)
		err = gofer_create(goferfs_of(dir)->client, to_goferfs(dir)->fid, name, &o, &node,
				   &fd);
	return err ? err : made(dir, &node, fd, out);
}

static int dir_tmpfile(struct inode *dir, uint32_t mode, const struct cred *c, struct inode **out)
{
	struct gofer_owner o;
	struct gofer_node node;
	int fd = -1;

	int err = owner_in(dir, S_IFREG | (mode & 07777), c, &o);
	if (!err)
		err = gofer_tmpfile(goferfs_of(dir)->client, to_goferfs(dir)->fid, &o, &node, &fd);
	return err ? err : made(dir, &node, fd, out);
}

static int dir_mkdir(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		     struct inode **out)
{
	struct gofer_owner o;
	struct gofer_node node;

	int err = owner_in(dir, S_IFDIR | (mode & 07777), c, &o);
	if (!err)
		err = gofer_mkdir(goferfs_of(dir)->client, to_goferfs(dir)->fid, name, &o, &node);
	return err ? err : made(dir, &node, -1, out);
}

static int dir_mknod(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev UNUSED,
		     const struct cred *c, struct inode **out)
{
	struct gofer_owner o;
	struct gofer_node node;

	if (S_ISREG(mode))
		return dir_create(dir, name, mode, c, out);
	int err = owner_in(dir, mode, c, &o);
	if (!err)
		err = gofer_mknod(goferfs_of(dir)->client, to_goferfs(dir)->fid, name, &o, &node);
	return err ? err : made(dir, &node, -1, out);
}

static int dir_symlink(struct inode *dir, const char *name, const char *target,
		       const struct cred *c, struct inode **out)
{
	struct gofer_owner o;
	struct gofer_node node;

	int err = owner_in(dir, S_IFLNK | 0777, c, &o);
	if (!err)
		err = gofer_symlink(goferfs_of(dir)->client, to_goferfs(dir)->fid, name, target, &o,
				    &node);
	return err ? err : made(dir, &node, -1, out);
}

static int dir_link(struct inode *dir, const char *name, struct inode *target)
{
	int err = gofer_link(goferfs_of(dir)->client, to_goferfs(target)->fid, to_goferfs(dir)->fid,
			     name);

	goferfs_stale(dir);
	goferfs_stale(target);
	return err;
}

/* ---- removing and moving ------------------------------------------------------------------ */

static int remove_name(struct inode *dir, const char *name, struct inode *victim, bool is_dir)
{
	int err = gofer_unlink(goferfs_of(dir)->client, to_goferfs(dir)->fid, name, is_dir);

	goferfs_stale(dir);
	goferfs_stale(victim);
	return err;
}

static int dir_unlink(struct inode *dir, const char *name, struct inode *victim)
{
	return remove_name(dir, name, victim, false);
}

static int dir_rmdir(struct inode *dir, const char *name, struct inode *victim)
{
	return remove_name(dir, name, victim, true);
}

static int dir_rename(struct inode *old_dir, const char *old_name, struct inode *source,
		      struct inode *new_dir, const char *new_name, struct inode *target,
		      unsigned flags)
{
	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	int err = gofer_rename(goferfs_of(old_dir)->client, to_goferfs(old_dir)->fid, old_name,
			       to_goferfs(new_dir)->fid, new_name, flags);
	goferfs_stale(old_dir);
	goferfs_stale(new_dir);
	goferfs_stale(source);
	if (target)
		goferfs_stale(target);
	return err;
}

/* ---- listing ------------------------------------------------------------------------------ */

struct goferfs_dir_file {
	struct file file;
	struct gofer_list *list; /* [inode->mu] the piece at hand, NULL before the first */
	size_t at;               /* [inode->mu] in list */
	uint64_t at_pos;         /* [inode->mu] position of the entry at `at` */
};

static struct goferfs_dir_file *to_dir_file(struct file *f)
{
	return container_of(f, struct goferfs_dir_file, file);
}

/* Makes the piece at hand start at (or contain, at `at`) position pos. */
static int load(struct goferfs_dir_file *df, uint64_t pos)
{
	struct inode *ino = df->file.inode;

	if (!df->list) {
		df->list = mem_alloc(sizeof(*df->list));
		if (!df->list)
			return -ENOMEM;
	}
	uint32_t fid;
	int err, tries = 0;
	do {
		err = goferfs_fid(to_goferfs(ino), &fid);
		if (!err)
			err = gofer_readdir(goferfs_of(ino)->client, fid, pos, df->list);
	} while (goferfs_again(to_goferfs(ino), fid, err, &tries));
	if (err) {
		mem_free(df->list);
		df->list = NULL;
		return err;
	}
	df->at = 0;
	df->at_pos = pos;
	return 0;
}

/* Emits what is at hand. 1: the sink is full. */
static int emit_piece(struct goferfs_dir_file *df, struct dir_sink *sink, int64_t *pos)
{
	const struct goferfs_inode *gi = to_goferfs(df->file.inode);
	struct gofer_dirent d;
	size_t next = df->at;

	while (gofer_list_next(df->list, &next, &d)) {
		if (sink->emit(sink, d.name, goferfs_number(gi, d.ino), d.dtype, (int64_t)d.off))
			return 1;
		df->at = next;
		df->at_pos = d.off;
		*pos = (int64_t)d.off;
	}
	return 0;
}

/* The inode's mu is held: below it come the channel and, in the sink, guest memory. */
static int readdir_locked(struct goferfs_dir_file *df, struct dir_sink *sink, int64_t *pos)
{
	for (;;) {
		if (!df->list || df->at_pos != (uint64_t)*pos || *pos == 0) {
			int err = load(df, (uint64_t)*pos);
			if (err)
				return err;
		}
		if (emit_piece(df, sink, pos))
			return 0;
		if (df->list->end)
			return 0;
		uint64_t next = df->list->next_pos;
		/* Hidden names may have left the piece empty; a listing that does not move on has
		 * ended. */
		if (next == (uint64_t)*pos && df->list->size == 0)
			return 0;
		*pos = (int64_t)next;
		int err = load(df, next);
		if (err)
			return err;
	}
}

static int dir_readdir(struct file *f, struct dir_sink *sink, int64_t *pos)
{
	if (*pos < 0)
		return -EINVAL;
	mutex_lock_nested(&f->inode->mu); /* after that of a stacked file system */
	int err = readdir_locked(to_dir_file(f), sink, pos);
	mutex_unlock(&f->inode->mu);
	return err;
}

static int64_t dir_seek(struct file *f, int64_t off, int whence)
{
	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	return file_seek_size(f, off, whence, 0);
}

static int dir_fsync(struct file *f UNUSED, bool datasync UNUSED)
{
	return 0;
}

static void dir_release(struct file *f)
{
	struct goferfs_dir_file *df = to_dir_file(f);

	mem_free(df->list);
	mem_free(df);
}

static const struct file_ops goferfs_dir_file_ops = {
	.seek = dir_seek,
	.readdir = dir_readdir,
	.fsync = dir_fsync,
	.release = dir_release,
};

static int dir_open(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct goferfs_dir_file *df = mem_zalloc(sizeof(*df));

	if (!df)
		return -ENOMEM;
	file_init(&df->file, &goferfs_dir_file_ops, inode_get(ino), (unsigned)flags);
	*out = &df->file;
	return 0;
}

const struct inode_ops goferfs_dir_inode_ops = {
	.lookup = dir_lookup,
	.create = dir_create,
	.mkdir = dir_mkdir,
	.mknod = dir_mknod,
	.symlink = dir_symlink,
	.link = dir_link,
	.unlink = dir_unlink,
	.rmdir = dir_rmdir,
	.rename = dir_rename,
	.tmpfile = dir_tmpfile,
	.getattr = goferfs_getattr,
	.setattr = goferfs_setattr,
	.open = dir_open,
	.revalidate = dir_revalidate,
	.getxattr = goferfs_getxattr,
	.setxattr = goferfs_setxattr,
	.listxattr = goferfs_listxattr,
	.removexattr = goferfs_removexattr,
	.free = goferfs_free,
};

/*
 * open(2), openat2(2): the last component by the rules of O_CREAT, O_EXCL and O_NOFOLLOW, then the
 * checks of may_open in the order in which Linux makes them, then the file system's own open.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/mount.h>

#include "fs/devfs.h"
#include "fs/hooks.h"
#include "fs/hostfd.h"
#include "fs/inotify.h"
#include "fs/lease.h"
#include "fs/pipe.h"
#include "fs/walk.h"
#include "platform/base/alloc.h"

/* Not kept in the flags of an open file. */
#define OPEN_ONLY_FLAGS (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC)
#define PATH_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC)
#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)

/* ---- O_PATH files ------------------------------------------------------------------------- */

static void path_release(struct file *f)
{
	mem_free(f);
}

static const struct file_ops path_file_ops = { .release = path_release };

static int path_file_new(struct inode *ino, int flags, struct file **out)
{
	struct file *f = mem_zalloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	file_init(f, &path_file_ops, inode_get(ino), (unsigned)flags);
	*out = f;
	return 0;
}

/* ---- opening what was found --------------------------------------------------------------- */

static int access_mask(int flags)
{
	static const int masks[] = { MAY_READ, MAY_WRITE, MAY_READ | MAY_WRITE,
				     MAY_READ | MAY_WRITE };
	int mask = masks[flags & O_ACCMODE];

	return flags & O_TRUNC ? mask | MAY_WRITE : mask;
}

static int may_open(struct path p, int flags, const struct cred *c, bool created)
{
	struct inode *ino = p.dentry->inode;
	struct fs_stat st;
	int err, mask = created ? 0 : access_mask(flags);

	if (ino->type == S_IFLNK)
		return -ELOOP;
	if (ino->type == S_IFDIR && (mask & MAY_WRITE))
		return -EISDIR;
	if ((ino->type == S_IFCHR || ino->type == S_IFBLK) &&
	    (atomic_load(&p.mnt->flags) & MS_NODEV))
		return -EACCES;
	err = inode_permission(ino, c, mask);
	if (err || !(flags & O_NOATIME))
		return err;
	err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	return inode_owner_or_capable(&st, c) ? 0 : -EPERM;
}

/* By kind of inode. */
static int open_inode(struct inode *ino, int flags, const struct cred *c, struct file **out)
{
	/* A stream of the host is none of our own fifos or devices. */
	if (hostfd_owns(ino))
		return ino->ops->open(ino, flags, c, out);
	switch (ino->type) {
	case S_IFIFO:
		return fifo_open(ino, flags, c, out);
	case S_IFCHR:
		return chrdev_open(ino, flags, c, out);
	case S_IFREG:
	case S_IFDIR:
		if (ino->ops->open)
			return ino->ops->open(ino, flags, c, out);
		break;
	}
	return -ENXIO;
}

/* Gives the file its name and account; takes nothing. */
static void finish_file(struct file *f, struct path p, int flags, const struct cred *c, bool writer)
{
	f->path = path_get(p);
	f->counts_writer = writer;
	atomic_store(&f->flags, (unsigned)(flags & ~OPEN_ONLY_FLAGS) | 0100000u /* O_LARGEFILE */);
	cred_put(f->cred);
	f->cred = cred_get((struct cred *)(uintptr_t)c);
}

/* Counts the open before leases are asked: a lease that comes later sees the count. */
static int begin_open(struct inode *ino, int flags)
{
	bool write = (flags & O_ACCMODE) != O_RDONLY;

	if (ino->type != S_IFREG)
		return 0;
	int err = write ? inode_get_write(ino) : 0;
	if (!err && !write)
		atomic_fetch_add(&ino->readers, 1);
	return err;
}

static void undo_open(struct inode *ino, int flags)
{
	if (ino->type != S_IFREG)
		return;
	if ((flags & O_ACCMODE) != O_RDONLY)
		inode_put_write(ino);
	else
		atomic_fetch_sub(&ino->readers, 1);
}

static int open_checked(struct path p, int flags, const struct cred *c, struct file **out)
{
	struct inode *ino = p.dentry->inode;
	bool regular = ino->type == S_IFREG, write = (flags & O_ACCMODE) != O_RDONLY;
	int err = begin_open(ino, flags);

	if (err)
		return err;
	if (regular && write)
		err = mount_want_write(p.mnt);
	if (!err && regular)
		err = lease_break(ino, write, flags & O_NONBLOCK);
	if (!err)
		err = open_inode(ino, flags, c, out);
	if (err) {
		undo_open(ino, flags);
		return err;
	}
	finish_file(*out, p, flags, c, regular && write);
	(*out)->counts_reader = regular && !write;
	return 0;
}

/* O_TRUNC of an existing regular file. */
static int truncate_opened(struct inode *ino, const struct cred *c)
{
	int err = inode_get_write(ino);

	if (err)
		return err;
	err = inode_truncate(ino, c, 0);
	inode_put_write(ino);
	return err;
}

static int open_found(struct path p, int flags, const struct cred *c, bool want_dir, bool created,
		      struct file **out)
{
	struct inode *ino = p.dentry->inode;
	int err = 0;

	if ((flags & O_CREAT) && !created) {
		if (flags & O_EXCL)
			return -EEXIST;
		if (ino->type == S_IFDIR)
			return -EISDIR;
	}
	if (want_dir && ino->type != S_IFDIR)
		return -ENOTDIR;
	if (flags & O_PATH) {
		err = path_file_new(ino, flags, out);
		if (!err)
			finish_file(*out, p, flags, c, false);
		return err;
	}
	bool truncate = (flags & O_TRUNC) && ino->type == S_IFREG && !created;
	if (truncate)
		err = mount_want_write(p.mnt);
	if (!err)
		err = may_open(p, flags, c, created);
	if (!err)
		err = open_checked(p, flags, c, out);
	if (err)
		return err;
	if (truncate)
		err = truncate_opened(ino, c);
	if (err) {
		file_put(*out);
		return err;
	}
	/* A file without a name comes here as created, but the caller asked for no O_CREAT. */
	(*out)->created = created && (flags & O_CREAT);
	fsnotify_file(*out, 0x20 /* IN_OPEN */);
	return 0;
}

int vfs_open_path(struct path p, int flags, const struct cred *c, struct file **out)
{
	if (flags & O_PATH)
		flags &= PATH_FLAGS;
	return open_found(p, flags & ~(O_CREAT | O_EXCL), c, flags & O_DIRECTORY, false, out);
}

/* ---- the last component ------------------------------------------------------------------- */

static int create_last(struct walk *w, uint32_t mode, struct dentry **out, bool *out_created)
{
	struct dentry *dir = w->cur.dentry, *d;

	mutex_lock(&dir->inode->mu);
	int err = walk_lookup_locked(dir, w->last, &d);
	if (err || d->inode) {
		mutex_unlock(&dir->inode->mu);
		*out = d;
		return err;
	}
	err = dir->inode->dead ? -ENOENT : mount_want_write(w->cur.mnt);
	if (!err)
		err = dir_may_create(dir->inode, w->l->cred);
	if (!err)
		err = dir_create_locked(dir, d, S_IFREG | walk_mode(w->l, mode & 07777), w->l->cred,
					out);
	mutex_unlock(&dir->inode->mu);
	dentry_put(d);
	if (!err)
		*out_created = true;
	return err;
}

static int lookup_or_create(struct walk *w, uint32_t mode, struct dentry **out, bool *out_created)
{
	int err = walk_lookup(w, out);

	if (err || (*out)->inode)
		return err;
	dentry_put(*out);
	return create_last(w, mode, out, out_created);
}

struct last_result {
	bool created, want_dir;
};

/* Ends with w->cur as the object to open. */
static int open_last(struct walk *w, int flags, uint32_t mode, struct last_result *r)
{
	bool follow = !(flags & O_NOFOLLOW);

	for (;;) {
		struct dentry *d;
		bool jumped;
		int err;

		if (w->last_type != LAST_NORM)
			return walk_dots(w);
		if ((flags & O_CREAT) && w->last_slash)
			return -EISDIR;
		r->want_dir |= w->last_slash;
		/* A slash behind a link overrides O_NOFOLLOW, for what the link leads to as well.
		 */
		follow |= w->last_slash;
		if (flags & O_CREAT)
			err = lookup_or_create(w, mode, &d, &r->created);
		else
			err = walk_lookup(w, &d);
		if (err)
			return err;
		if (!d->inode) {
			dentry_put(d);
			return -ENOENT;
		}
		err = walk_step(w, d);
		if (err || r->created || w->cur.dentry->inode->type != S_IFLNK)
			return err;
		/* open_found says -EEXIST, or -ELOOP unless it is for O_PATH. */
		if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
			return 0;
		if (!follow)
			return 0;
		err = walk_follow_last(w, &jumped);
		if (err || jumped)
			return err;
	}
}

/* ---- O_TMPFILE ---------------------------------------------------------------------------- */

static int tmpfile_dentry(struct path dir, const struct fs_lookup *l, int flags, uint32_t mode,
			  struct dentry **out)
{
	struct inode *dino = dir.dentry->inode, *ino;
	char name[32];
	struct fmt f;

	int err = mount_want_write(dir.mnt);
	if (!err)
		err = inode_permission(dino, l->cred, MAY_WRITE | MAY_EXEC);
	if (!err && !dino->ops->tmpfile)
		err = -EOPNOTSUPP;
	if (err)
		return err;
	mutex_lock(&dino->mu);
	err = dino->ops->tmpfile(dino, S_IFREG | walk_mode(l, mode & 07777), l->cred, &ino);
	mutex_unlock(&dino->mu);
	if (err)
		return err;
	ino->linkable = !(flags & O_EXCL);
	fmt_init_fixed(&f, name, sizeof(name));
	fmt_printf(&f, "#%llu", (unsigned long long)ino->ino);
	*out = dentry_new(dir.dentry->sb, dir.dentry, name, ino);
	if (!*out)
		return -ENOMEM;
	dcache_drop(*out, true);
	return 0;
}

static int open_tmpfile(const struct fs_lookup *l, const char *name, int flags, uint32_t mode,
			struct file **out)
{
	struct path dir;
	struct dentry *d;

	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EINVAL;
	int err = path_lookup(l, name, LOOKUP_DIRECTORY | (flags & O_NOFOLLOW ? 0 : LOOKUP_FOLLOW),
			      &dir);
	if (err)
		return err;
	err = tmpfile_dentry(dir, l, flags, mode, &d);
	if (!err) {
		struct path p = { dir.mnt, d };
		err = open_found(p, flags & ~(TMPFILE_BIT | O_DIRECTORY | O_CREAT | O_TRUNC),
				 l->cred, false, true, out);
		if (!err)
			atomic_fetch_or(&(*out)->flags, O_TMPFILE);
		dentry_put(d);
	}
	path_put(dir);
	return err;
}

int vfs_open(const struct fs_lookup *l, const char *name, int flags, uint32_t mode,
	     struct file **out)
{
	struct last_result r = { .want_dir = flags & O_DIRECTORY };
	struct path p;
	struct walk w;

	if (flags & O_PATH)
		flags &= PATH_FLAGS;
	else if (flags & TMPFILE_BIT)
		return open_tmpfile(l, name, flags, mode, out);
	if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
		return -EINVAL;
	int err = walk_begin(&w, l, name);
	if (!err)
		err = walk_parent(&w, name);
	if (!err)
		err = open_last(&w, flags, mode, &r);
	if (!err)
		err = walk_complete(&w);
	if (!err)
		p = path_get(w.cur);
	walk_end(&w);
	if (err)
		return err;
	err = open_found(p, flags, l->cred, r.want_dir, r.created, out);
	path_put(p);
	return err;
}

/* ---- paths of nameless files -------------------------------------------------------------- */

static struct mount *nameless_mount; /* made on first use, kept for ever */
static struct mutex nameless_lock = MUTEX_INIT(RANK_MOUNT);

static int nameless_statfs(struct superblock *sb UNUSED, struct fs_statfs *out)
{
	*out = (struct fs_statfs){ .type = 0x09041934 /* ANON_INODE_FS_MAGIC */,
				   .bsize = PAGE_SIZE,
				   .frsize = PAGE_SIZE,
				   .namelen = NAME_LEN_MAX };
	return 0;
}

static const struct sb_ops nameless_sb_ops = { .statfs = nameless_statfs };

static int nameless_mount_new(struct mount **out)
{
	struct superblock *sb;
	struct inode *root;

	int err = anon_inode_new(S_IFDIR, NULL, &root);
	if (err)
		return err;
	err = superblock_new(&nameless_sb_ops, "anon_inodefs", NULL, &sb);
	if (err) {
		inode_put(root);
		return err;
	}
	err = superblock_set_root(sb, root);
	if (err) {
		superblock_put(sb);
		return err;
	}
	/* Not noexec: programs in memory files may be run, as from Linux' own mount of them. */
	return mount_new_detached(sb, "none", MS_NOSUID | MS_NODEV, out);
}

static int nameless_mount_get(struct mount **out)
{
	struct mount *m;
	int err = 0;

	mutex_lock(&nameless_lock);
	m = nameless_mount;
	mutex_unlock(&nameless_lock);
	if (!m) {
		err = nameless_mount_new(&m);
		if (err)
			return err;
		mutex_lock(&nameless_lock);
		struct mount *mine = m;
		if (nameless_mount)
			m = nameless_mount;
		else
			nameless_mount = m;
		mutex_unlock(&nameless_lock);
		if (m != mine)
			mount_put(mine);
	}
	*out = mount_get(m);
	return 0;
}

int file_path(struct file *f, struct path *out)
{
	if (f->path.dentry) {
		*out = path_get(f->path);
		return 0;
	}
	if (!f->inode)
		return -ENXIO;
	int err = nameless_mount_get(&out->mnt);
	if (err)
		return err;
	/* A memory file keeps its name "memfd:x (deleted)" when it is opened again or executed. */
	char name[NAME_LEN_MAX + 1] = "file";
	struct fmt text;
	fmt_init_fixed(&text, name, sizeof(name));
	if (f->ops->describe)
		f->ops->describe(f, &text);
	else
		fmt_puts(&text, "file");
	out->dentry = dentry_new(out->mnt->sb, out->mnt->root, name[0] == '/' ? name + 1 : name,
				 inode_get(f->inode));
	if (!out->dentry) {
		mount_put(out->mnt);
		return -ENOMEM;
	}
	return 0;
}

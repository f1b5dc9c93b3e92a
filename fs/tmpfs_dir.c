/*
 * Directories of tmpfs. An entry is in two trees: by name, and by a position that is given out once
 * and never again, so that a reader of the directory neither misses nor repeats an entry that was
 * there all the time.
 *
 * Locks: the VFS holds the mu of the directory or directories. A victim's own mu is taken inside
 * it, parent before child, to see that it is empty and to keep it so.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "fs/tmpfs_priv.h"
#include "platform/base/alloc.h"

#define DIR_FIRST_OFF 2u

/* ---- entries ------------------------------------------------------------------------------ */

static struct tmpfs_entry *find_entry(struct tmpfs_inode *dir, const char *name)
{
	struct rb_node *n = dir->dir.by_name.node;

	while (n) {
		struct tmpfs_entry *e = container_of(n, struct tmpfs_entry, name_node);
		int c = strcmp(name, e->name);
		if (c == 0)
			return e;
		n = c < 0 ? n->left : n->right;
	}
	return NULL;
}

static struct tmpfs_entry *first_entry_from(struct tmpfs_inode *dir, uint64_t off)
{
	struct rb_node *n = dir->dir.by_off.node;
	struct tmpfs_entry *best = NULL;

	while (n) {
		struct tmpfs_entry *e = container_of(n, struct tmpfs_entry, off_node);
		if (e->off >= off) {
			best = e;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

static void link_by_name(struct tmpfs_inode *dir, struct tmpfs_entry *e)
{
	struct rb_node **link = &dir->dir.by_name.node, *parent = NULL;

	while (*link) {
		parent = *link;
		struct tmpfs_entry *o = container_of(parent, struct tmpfs_entry, name_node);
		link = strcmp(e->name, o->name) < 0 ? &parent->left : &parent->right;
	}
	rb_insert(&dir->dir.by_name, &e->name_node, parent, link);
}

/* New positions only grow: the new entry is the last. */
static void link_by_off(struct tmpfs_inode *dir, struct tmpfs_entry *e)
{
	struct rb_node *last = rb_last(&dir->dir.by_off);

	e->off = dir->dir.next_off++;
	rb_insert(&dir->dir.by_off, &e->off_node, last,
		  last ? &last->right : &dir->dir.by_off.node);
}

static struct tmpfs_entry *entry_new(const char *name)
{
	size_t size = strlen(name) + 1;
	struct tmpfs_entry *e = mem_alloc(sizeof(*e) + size);

	if (e)
		memcpy(e->name, name, size);
	return e;
}

/* Takes the reference on ti. */
static void entry_insert(struct tmpfs_inode *dir, struct tmpfs_entry *e, struct tmpfs_inode *ti)
{
	e->inode = ti;
	link_by_name(dir, e);
	link_by_off(dir, e);
	dir->dir.count++;
}

/* The entry's reference on its inode goes to the caller. */
static void entry_remove(struct tmpfs_inode *dir, struct tmpfs_entry *e)
{
	rb_erase(&dir->dir.by_name, &e->name_node);
	rb_erase(&dir->dir.by_off, &e->off_node);
	dir->dir.count--;
	mem_free(e);
}

void tmpfs_dir_clear(struct tmpfs_inode *dir, struct list *dead)
{
	struct rb_node *n;

	while ((n = rb_first(&dir->dir.by_off)) != NULL) {
		struct tmpfs_entry *e = container_of(n, struct tmpfs_entry, off_node);
		struct tmpfs_inode *ti = e->inode;
		entry_remove(dir, e);
		if (ref_dec(&ti->base.ref))
			list_add_tail(dead, &ti->dead_link);
	}
}

/* ---- making ------------------------------------------------------------------------------- */

static int dir_lookup(struct inode *dir, const char *name, struct inode **out)
{
	struct tmpfs_entry *e = find_entry(to_tmpfs(dir), name);

	if (!e)
		return -ENOENT;
	*out = inode_get(&e->inode->base);
	return 0;
}

/* An inode owned by c in dir; not yet linked. */
static int new_in(struct inode *dir, uint32_t mode, const struct cred *c, struct tmpfs_inode **out)
{
	struct fs_stat st;
	uint32_t uid, gid;

	int err = tmpfs_getattr(dir, &st);
	if (err)
		return err;
	inode_new_owner(&st, c, &mode, &uid, &gid);
	return tmpfs_inode_new(dir->sb, mode, uid, gid, out);
}

/* Puts ti (takes) into dir; *out gets a reference of its own. */
static int add_new(struct inode *dir, const char *name, struct tmpfs_inode *ti, struct inode **out)
{
	struct tmpfs_inode *td = to_tmpfs(dir);
	struct tmpfs_entry *e = NULL;

	int err = dir->dead ? -ENOENT : find_entry(td, name) ? -EEXIST : 0;
	if (!err) {
		e = entry_new(name);
		err = e ? 0 : -ENOMEM;
	}
	if (err) {
		inode_put(&ti->base);
		return err;
	}
	entry_insert(td, e, ti);
	tmpfs_touch(td, ATTR_MTIME | ATTR_CTIME);
	*out = inode_get(&ti->base);
	return 0;
}

static int dir_mknod(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev,
		     const struct cred *c, struct inode **out)
{
	struct tmpfs_inode *ti;

	int err = new_in(dir, mode, c, &ti);
	if (err)
		return err;
	if (S_ISCHR(mode) || S_ISBLK(mode))
		ti->base.rdev = rdev;
	return add_new(dir, name, ti, out);
}

static int dir_create(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		      struct inode **out)
{
	return dir_mknod(dir, name, S_IFREG | (mode & 07777), 0, c, out);
}

static int dir_mkdir(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		     struct inode **out)
{
	struct tmpfs_inode *ti;

	int err = new_in(dir, S_IFDIR | (mode & 07777), c, &ti);
	if (err)
		return err;
	atomic_store(&ti->dir.parent_ino, dir->ino);
	err = add_new(dir, name, ti, out);
	if (!err)
		tmpfs_add_link(to_tmpfs(dir), 1);
	return err;
}

static int dir_symlink(struct inode *dir, const char *name, const char *target,
		       const struct cred *c, struct inode **out)
{
	struct tmpfs_inode *ti;

	int err = new_in(dir, S_IFLNK | 0777, c, &ti);
	if (err)
		return err;
	ti->target = mem_strdup(target);
	if (!ti->target) {
		inode_put(&ti->base);
		return -ENOMEM;
	}
	return add_new(dir, name, ti, out);
}

static int dir_tmpfile(struct inode *dir, uint32_t mode, const struct cred *c, struct inode **out)
{
	struct tmpfs_inode *ti;

	int err = new_in(dir, S_IFREG | (mode & 07777), c, &ti);
	if (err)
		return err;
	ti->nlink = 0;
	*out = &ti->base;
	return 0;
}

static int dir_link(struct inode *dir, const char *name, struct inode *target)
{
	struct tmpfs_inode *ti = to_tmpfs(target);
	struct inode *made;
	int err = 0;

	mutex_lock(&ti->attr_mu);
	if (ti->nlink == 0 && !target->linkable)
		err = -ENOENT;
	else
		ti->nlink++;
	mutex_unlock(&ti->attr_mu);
	if (err)
		return err;
	err = add_new(dir, name, to_tmpfs(inode_get(target)), &made);
	if (err) {
		tmpfs_add_link(ti, -1);
		return err;
	}
	tmpfs_touch(ti, ATTR_CTIME);
	inode_put(made);
	return 0;
}

/* ---- removing ----------------------------------------------------------------------------- */

/* Finds the entry and checks that it is still `victim`. */
static struct tmpfs_entry *find_victim(struct inode *dir, const char *name, struct inode *victim)
{
	struct tmpfs_entry *e = find_entry(to_tmpfs(dir), name);

	return e && &e->inode->base == victim ? e : NULL;
}

/* An empty directory gets `dead`, so that it stays empty. Parent before child: nested. */
static int kill_empty_dir(struct inode *victim) NO_LOCK_ANALYSIS
{
	mutex_lock_nested(&victim->mu);
	bool empty = to_tmpfs(victim)->dir.count == 0;
	if (empty)
		victim->dead = true;
	mutex_unlock(&victim->mu);
	return empty ? 0 : -ENOTEMPTY;
}

static int dir_unlink(struct inode *dir, const char *name, struct inode *victim)
{
	struct tmpfs_entry *e = find_victim(dir, name, victim);

	if (!e)
		return -ENOENT;
	if (victim->type == S_IFDIR)
		return -EISDIR;
	entry_remove(to_tmpfs(dir), e);
	tmpfs_touch(to_tmpfs(dir), ATTR_MTIME | ATTR_CTIME);
	tmpfs_add_link(to_tmpfs(victim), -1);
	inode_put(victim); /* the entry's; the caller has one of its own */
	return 0;
}

static int dir_rmdir(struct inode *dir, const char *name, struct inode *victim)
{
	struct tmpfs_entry *e = find_victim(dir, name, victim);

	if (!e)
		return -ENOENT;
	if (victim->type != S_IFDIR)
		return -ENOTDIR;
	int err = kill_empty_dir(victim);
	if (err)
		return err;
	entry_remove(to_tmpfs(dir), e);
	tmpfs_add_link(to_tmpfs(victim), -2);
	tmpfs_add_link(to_tmpfs(dir), -1);
	tmpfs_touch(to_tmpfs(dir), ATTR_MTIME | ATTR_CTIME);
	inode_put(victim);
	return 0;
}

/* ---- rename ------------------------------------------------------------------------------- */

/* A directory went from one parent to another. */
static void moved_dir(struct tmpfs_inode *ti, struct tmpfs_inode *from, struct tmpfs_inode *to)
{
	if (ti->base.type != S_IFDIR || from == to)
		return;
	tmpfs_add_link(from, -1);
	tmpfs_add_link(to, 1);
	atomic_store(&ti->dir.parent_ino, to->base.ino);
}

static void touch_renamed(struct tmpfs_inode *from, struct tmpfs_inode *to, struct tmpfs_inode *ti)
{
	tmpfs_touch(from, ATTR_MTIME | ATTR_CTIME);
	tmpfs_touch(to, ATTR_MTIME | ATTR_CTIME);
	tmpfs_touch(ti, ATTR_CTIME);
}

static int exchange(struct tmpfs_inode *from, struct tmpfs_entry *a, struct tmpfs_inode *to,
		    struct tmpfs_entry *b)
{
	struct tmpfs_inode *t = a->inode;

	a->inode = b->inode;
	b->inode = t;
	moved_dir(b->inode, from, to);
	moved_dir(a->inode, to, from);
	touch_renamed(from, to, a->inode);
	tmpfs_touch(b->inode, ATTR_CTIME);
	return 0;
}

/* What rename needs and may fail to get, before anything is changed. */
struct rename_parts {
	struct tmpfs_entry *entry; /* for the new name, when there is none */
	struct tmpfs_inode *whiteout;
};

static int prepare_rename(struct inode *dir, const char *new_name, bool have_target, unsigned flags,
			  struct rename_parts *p)
{
	p->entry = NULL;
	p->whiteout = NULL;
	if (!have_target) {
		p->entry = entry_new(new_name);
		if (!p->entry)
			return -ENOMEM;
	}
	if (flags & RENAME_WHITEOUT) {
		int err = tmpfs_inode_new(dir->sb, S_IFCHR, 0, 0, &p->whiteout);
		if (err) {
			mem_free(p->entry);
			return err;
		}
	}
	return 0;
}

/* The target loses its name to the source; its entry is used again. Gives the target to put. */
static void replace_target(struct tmpfs_inode *to, struct tmpfs_entry *ne,
			   struct tmpfs_inode *source)
{
	struct tmpfs_inode *target = ne->inode;

	ne->inode = source;
	if (target->base.type == S_IFDIR) {
		tmpfs_add_link(target, -2);
		tmpfs_add_link(to, -1);
	} else {
		tmpfs_add_link(target, -1);
	}
	inode_put(&target->base); /* never the last: the VFS holds one */
}

static int check_target(struct inode *old_dir, struct inode *source, struct inode *target)
{
	if (source->type == S_IFDIR) {
		if (target->type != S_IFDIR)
			return -ENOTDIR;
		return target == old_dir ? -ENOTEMPTY : 0;
	}
	return target->type == S_IFDIR ? -EISDIR : 0;
}

static int dir_rename(struct inode *old_dir, const char *old_name, struct inode *source,
		      struct inode *new_dir, const char *new_name, struct inode *target,
		      unsigned flags)
{
	struct tmpfs_inode *from = to_tmpfs(old_dir), *to = to_tmpfs(new_dir);
	struct tmpfs_entry *e = find_victim(old_dir, old_name, source);
	struct tmpfs_entry *ne = find_entry(to, new_name);
	struct rename_parts p;

	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if (!e || (ne && &ne->inode->base != target) || (!ne && target))
		return -ENOENT;
	if (ne && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (flags & RENAME_EXCHANGE)
		return ne ? exchange(from, e, to, ne) : -ENOENT;
	if (ne && target == source)
		return 0;
	int err = ne ? check_target(old_dir, source, target) : 0;
	if (!err)
		err = prepare_rename(old_dir, new_name, ne != NULL, flags, &p);
	if (err)
		return err;
	if (ne && target->type == S_IFDIR)
		err = kill_empty_dir(target);
	if (err) {
		if (p.whiteout)
			inode_put(&p.whiteout->base);
		return err;
	}
	if (ne)
		replace_target(to, ne, e->inode);
	else
		entry_insert(to, p.entry, e->inode);
	if (p.whiteout)
		e->inode = p.whiteout;
	else
		entry_remove(from, e);
	moved_dir(to_tmpfs(source), from, to);
	touch_renamed(from, to, to_tmpfs(source));
	return 0;
}

/* ---- listing ------------------------------------------------------------------------------ */

static unsigned dtype_of(const struct tmpfs_inode *ti)
{
	return ti->base.type >> 12;
}

/* Emits "." and ".."; true when the sink is full. */
static bool emit_dots(struct tmpfs_inode *dir, struct dir_sink *sink, int64_t *pos)
{
	if (*pos <= 0) {
		if (sink->emit(sink, ".", dir->base.ino, S_IFDIR >> 12, 1))
			return true;
		*pos = 1;
	}
	if (*pos == 1) {
		uint64_t up = atomic_load(&dir->dir.parent_ino);
		if (sink->emit(sink, "..", up, S_IFDIR >> 12, DIR_FIRST_OFF))
			return true;
		*pos = DIR_FIRST_OFF;
	}
	return false;
}

static int dir_readdir(struct file *f, struct dir_sink *sink, int64_t *pos)
{
	struct tmpfs_inode *dir = to_tmpfs(f->inode);
	struct rb_node *n;

	mutex_lock_nested(&f->inode->mu); /* after that of a stacked file system */
	if (f->inode->dead) {
		mutex_unlock(&f->inode->mu);
		return -ENOENT;
	}
	if (!emit_dots(dir, sink, pos)) {
		struct tmpfs_entry *e = first_entry_from(dir, (uint64_t)*pos);
		for (n = e ? &e->off_node : NULL; n; n = rb_next(n)) {
			e = container_of(n, struct tmpfs_entry, off_node);
			if (sink->emit(sink, e->name, e->inode->base.ino, dtype_of(e->inode),
				       (int64_t)e->off + 1))
				break;
			*pos = (int64_t)e->off + 1;
		}
	}
	mutex_unlock(&f->inode->mu);
	tmpfs_accessed(f);
	return 0;
}

static int64_t dir_seek(struct file *f, int64_t off, int whence)
{
	mutex_lock(&f->inode->mu);
	int64_t end = (int64_t)to_tmpfs(f->inode)->dir.next_off;
	mutex_unlock(&f->inode->mu);
	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		return -EINVAL;
	return file_seek_size(f, off, whence, end);
}

static int dir_fsync(struct file *f UNUSED, bool datasync UNUSED)
{
	return 0;
}

static void dir_release(struct file *f)
{
	mem_free(f);
}

static const struct file_ops tmpfs_dir_file_ops = {
	.seek = dir_seek,
	.readdir = dir_readdir,
	.fsync = dir_fsync,
	.release = dir_release,
};

static int dir_open(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct file *f = mem_zalloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	file_init(f, &tmpfs_dir_file_ops, inode_get(ino), (unsigned)flags);
	*out = f;
	return 0;
}

const struct inode_ops tmpfs_dir_inode_ops = {
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
	.getattr = tmpfs_getattr,
	.setattr = tmpfs_setattr,
	.open = dir_open,
	.getxattr = tmpfs_getxattr,
	.setxattr = tmpfs_setxattr,
	.listxattr = tmpfs_listxattr,
	.removexattr = tmpfs_removexattr,
	.free = tmpfs_free,
};

/*
 * Trees of generated files: see pseudofs.h.
 *
 * A read at position 0 (re)generates the content, later reads continue in the same text; that is
 * how seq_file behaves in Linux and what programs such as top rely on, which keep /proc/stat open
 * and read it again after a seek to the start. Text is generated before the file's lock is taken,
 * since generators take outer locks (the mount tree).
 */
#include "fs/pseudofs.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"

/* Positions in a directory: 0 is ".", 1 is "..", then the static rows, then DYNAMIC_BASE + cookie.
 * Linux' /proc begins its processes at 256 too. */
#define STATIC_BASE 2
#define DYNAMIC_BASE 256

struct pseudo_sb {
	const struct pseudo_tree *tree; /* [I] */
	struct timespec born;           /* [I] times of every node */
};

struct pseudo_inode {
	struct inode inode;
	struct pseudo_ref ref; /* [I] */
};

struct pseudo_file {
	struct file file;
	struct mutex mu;    /* rank INODE */
	uint64_t owner;     /* [I] as row->owner said on opening */
	struct fmt content; /* [mu] */
	bool generated;     /* [mu] */
};

static const struct inode_ops pseudo_inode_ops;
static const struct inode_ops pseudo_magic_ops;
static const struct file_ops pseudo_text_ops;
static const struct file_ops pseudo_raw_ops;
static const struct file_ops pseudo_dir_ops;

static const struct pseudo_ref *ref_of(struct inode *ino)
{
	return &container_of(ino, struct pseudo_inode, inode)->ref;
}

const struct pseudo_ref *pseudofs_ref(struct inode *ino)
{
	bool ours = ino->ops == &pseudo_inode_ops || ino->ops == &pseudo_magic_ops;
	return ours ? ref_of(ino) : NULL;
}

static struct pseudo_sb *sb_of(struct inode *ino)
{
	return ino->sb->priv;
}

uint64_t pseudofs_ino(const struct pseudo_ref *ref)
{
	uint64_t h = (uint64_t)(uintptr_t)ref->row;

	for (size_t i = 0; i < ARRAY_SIZE(ref->key); i++)
		h = (h ^ ref->key[i]) * 0x9e3779b97f4a7c15u + (h >> 29);
	/* 32 bits, as in Linux' proc: old programs read st_ino into an int. Never 0. */
	return (h >> 32) | 1;
}

static int pseudo_inode_new(struct superblock *sb, const struct pseudo_ref *ref, struct inode **out)
{
	struct pseudo_inode *pi = mem_zalloc(sizeof(*pi));

	if (!pi)
		return -ENOMEM;
	const struct pseudo_sb *ps = sb->priv;
	uint64_t number = ref->row == ps->tree->root ? 1 : pseudofs_ino(ref);
	const struct inode_ops *ops = ref->row->follow ? &pseudo_magic_ops : &pseudo_inode_ops;
	inode_init(&pi->inode, sb, ops, number, ref->row->mode & S_IFMT);
	pi->ref = *ref;
	*out = &pi->inode;
	return 0;
}

/* The static child at an index, inheriting the parent's keys; false past the end. */
static bool static_child(const struct pseudo_ref *dir, size_t index, struct pseudo_ref *out)
{
	const struct pseudo_row *rows = dir->row->children;

	if (!rows || !rows[index].name)
		return false;
	*out = *dir;
	out->row = &rows[index];
	return true;
}

static bool is_present(const struct pseudo_ref *ref)
{
	return !ref->row->present || ref->row->present(ref);
}

/* ---- inodes ------------------------------------------------------------------------------- */

static int pseudo_lookup(struct inode *dir, const char *name, struct inode **out)
{
	const struct pseudo_ref *d = ref_of(dir);
	struct pseudo_ref ref;

	for (size_t i = 0; static_child(d, i, &ref); i++)
		if (strcmp(ref.row->name, name) == 0 && is_present(&ref))
			return pseudo_inode_new(dir->sb, &ref, out);
	if (!d->row->dir)
		return -ENOENT;
	int err = d->row->dir->lookup(d, name, &ref);
	return err ? err : pseudo_inode_new(dir->sb, &ref, out);
}

static int pseudo_readlink(struct inode *ino, char *buf, size_t size)
{
	const struct pseudo_ref *ref = ref_of(ino);

	return ref->row->readlink ? ref->row->readlink(ref, buf, size) : -EINVAL;
}

static int pseudo_follow(struct inode *ino, struct path *out)
{
	const struct pseudo_ref *ref = ref_of(ino);

	return ref->row->follow(ref, out);
}

static uint32_t dir_nlink(const struct pseudo_ref *d)
{
	struct pseudo_ref ref;
	uint32_t n = 2;

	for (size_t i = 0; static_child(d, i, &ref); i++)
		if (S_ISDIR(ref.row->mode))
			n++;
	return n;
}

static int pseudo_getattr(struct inode *ino, struct fs_stat *out)
{
	const struct pseudo_ref *ref = ref_of(ino);
	const struct pseudo_sb *ps = sb_of(ino);

	*out = (struct fs_stat){
		.dev = ino->sb->dev,
		.ino = ino->ino,
		.mode = ref->row->mode,
		.nlink = S_ISDIR(ref->row->mode) ? dir_nlink(ref) : 1,
		.size = S_ISREG(ref->row->mode) ? ps->tree->file_size : 0,
		.blksize = ps->tree->file_size ? 4096 : 1024,
		.atime = ps->born,
		.mtime = ps->born,
		.ctime = ps->born,
	};
	if (ref->row->attr)
		ref->row->attr(ref, out);
	return 0;
}

/* Truncation is what O_TRUNC asks before every "echo 1 > /proc/…"; it means nothing here. */
static int pseudo_setattr(struct inode *ino UNUSED, const struct iattr *attr)
{
	const unsigned harmless =
		ATTR_SIZE | ATTR_ATIME | ATTR_MTIME | ATTR_ATIME_NOW | ATTR_MTIME_NOW | ATTR_CTIME;

	return attr->valid & ~harmless ? -EPERM : 0;
}

static int pseudo_open(struct inode *ino, int flags, const struct cred *c, struct file **out)
{
	const struct pseudo_ref *ref = ref_of(ino);

	if (ref->row->may_open) {
		int err = ref->row->may_open(ref, flags, c);
		if (err)
			return err;
	}
	struct pseudo_file *pf = mem_zalloc(sizeof(*pf));
	if (!pf)
		return -ENOMEM;
	mutex_init(&pf->mu, RANK_INODE);
	fmt_init_heap(&pf->content);
	pf->owner = ref->row->owner ? ref->row->owner(ref) : 0;
	const struct file_ops *ops = &pseudo_text_ops;
	if (ino->type == S_IFDIR)
		ops = &pseudo_dir_ops;
	else if (ref->row->read_at || ref->row->write_at)
		ops = &pseudo_raw_ops;
	file_init(&pf->file, ops, inode_get(ino), (unsigned)flags);
	*out = &pf->file;
	return 0;
}

static int pseudo_revalidate(struct dentry *d)
{
	struct inode *ino = d->inode;

	if (!ino)
		return 0;
	const struct pseudo_tree *tree = sb_of(ino)->tree;
	return !tree->valid || tree->valid(ref_of(ino));
}

static void pseudo_inode_free(struct inode *ino)
{
	mem_free(container_of(ino, struct pseudo_inode, inode));
}

static const struct inode_ops pseudo_inode_ops = {
	.lookup = pseudo_lookup,
	.readlink = pseudo_readlink,
	.getattr = pseudo_getattr,
	.setattr = pseudo_setattr,
	.open = pseudo_open,
	.revalidate = pseudo_revalidate,
	.free = pseudo_inode_free,
};

/* The VFS takes every link whose ops have a follow for a magic one. */
static const struct inode_ops pseudo_magic_ops = {
	.readlink = pseudo_readlink,
	.follow = pseudo_follow,
	.getattr = pseudo_getattr,
	.setattr = pseudo_setattr,
	.free = pseudo_inode_free,
};

/* ---- files -------------------------------------------------------------------------------- */

static struct pseudo_file *file_of(struct file *f)
{
	return container_of(f, struct pseudo_file, file);
}

/* Makes the text anew and puts it in place. 0 or -errno. */
/* The process executes something else since: what was opened with the rights of then, perhaps to be
 * handed to a set-user-ID program as its output, must not reach what is there now. */
static bool has_new_owner(const struct pseudo_file *pf)
{
	const struct pseudo_ref *ref = ref_of(pf->file.inode);

	return ref->row->owner && ref->row->owner(ref) != pf->owner;
}

static int regenerate(struct pseudo_file *pf)
{
	const struct pseudo_ref *ref = ref_of(pf->file.inode);
	struct fmt text;

	fmt_init_heap(&text);
	int err = ref->row->show ? ref->row->show(ref, &text) : 0;
	if (ref->row->text)
		fmt_puts(&text, ref->row->text);
	if (!err && text.overflow)
		err = -ENOMEM;
	if (err) {
		fmt_fini(&text);
		return err;
	}
	mutex_lock(&pf->mu);
	struct fmt old = pf->content;
	pf->content = text;
	pf->generated = true;
	mutex_unlock(&pf->mu);
	fmt_fini(&old);
	return 0;
}

static ssize_t pseudo_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	struct pseudo_file *pf = file_of(f);

	const struct pseudo_row *row = ref_of(f->inode)->row;
	if (!row->show && !row->text)
		return -EINVAL;
	mutex_lock(&pf->mu);
	bool stale = *pos == 0 || !pf->generated;
	mutex_unlock(&pf->mu);
	if (stale && has_new_owner(pf))
		return 0;
	if (stale) {
		int err = regenerate(pf);
		if (err)
			return err;
	}
	ssize_t n = 0;
	mutex_lock(&pf->mu);
	if (*pos >= 0 && (uint64_t)*pos < pf->content.len)
		n = iov_copy_to(it, pf->content.buf + *pos, pf->content.len - (size_t)*pos);
	mutex_unlock(&pf->mu);
	if (n > 0)
		*pos += n;
	return n;
}

static ssize_t pseudo_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	const struct pseudo_ref *ref = ref_of(f->inode);
	char text[PSEUDO_WRITE_MAX + 1];

	if (!ref->row->store)
		return -EINVAL;
	if (it->count > PSEUDO_WRITE_MAX)
		return -EINVAL;
	size_t want = it->count;
	ssize_t n = iov_copy_from(it, text, want);
	if (n < 0)
		return n;
	if ((size_t)n < want)
		return -EFAULT;
	text[n] = 0;
	int err = ref->row->store(ref, text, (size_t)n);
	if (err)
		return err;
	*pos += n;
	return n;
}

/* seq_file seeks from the start and the position only; sysfs files have a size to seek from. */
static int64_t pseudo_seek(struct file *f, int64_t off, int whence)
{
	uint64_t size = sb_of(f->inode)->tree->file_size;

	if (whence == SEEK_END && size)
		return file_seek_size(f, off, whence, (int64_t)size);
	int64_t base = whence == SEEK_CUR ? f->pos : 0;
	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	int64_t to;
	if (__builtin_add_overflow(base, off, &to) || to < 0)
		return -EINVAL;
	f->pos = to;
	return to;
}

static void pseudo_release(struct file *f)
{
	struct pseudo_file *pf = file_of(f);

	fmt_fini(&pf->content);
	mutex_fini(&pf->mu);
	mem_free(pf);
}

static ssize_t raw_read(struct file *f, struct iov_iter *it, int64_t *pos)
{
	const struct pseudo_ref *ref = ref_of(f->inode);

	if (!ref->row->read_at)
		return -EINVAL;
	if (has_new_owner(file_of(f)))
		return 0;
	ssize_t n = ref->row->read_at(ref, it, (uint64_t)*pos);
	if (n > 0)
		*pos += n;
	return n;
}

static ssize_t raw_write(struct file *f, struct iov_iter *it, int64_t *pos)
{
	const struct pseudo_ref *ref = ref_of(f->inode);

	if (!ref->row->write_at)
		return -EINVAL;
	if (has_new_owner(file_of(f)))
		return 0;
	ssize_t n = ref->row->write_at(ref, it, (uint64_t)*pos);
	if (n > 0)
		*pos += n;
	return n;
}

/* Positions are addresses here (/proc/PID/mem), which may have the top bit set. */
static int64_t raw_seek(struct file *f, int64_t off, int whence)
{
	if (whence == SEEK_CUR)
		off = (int64_t)((uint64_t)off + (uint64_t)f->pos);
	else if (whence != SEEK_SET)
		return -EINVAL;
	f->pos = off;
	return off;
}

/* ---- directories -------------------------------------------------------------------------- */

/* Emits one static row; non-zero when the sink is full. */
static int emit_static(struct dir_sink *sink, const struct pseudo_ref *ref, int64_t *pos)
{
	int stop = 0;

	if (is_present(ref))
		stop = sink->emit(sink, ref->row->name, pseudofs_ino(ref), IFTODT(ref->row->mode),
				  *pos + 1);
	if (!stop)
		++*pos;
	return stop;
}

static int emit_dots(struct file *f, struct dir_sink *sink, int64_t *pos)
{
	uint64_t parent = f->inode->ino;

	if (f->path.dentry) {
		struct dentry *d = dentry_parent(f->path.dentry);
		parent = d->inode->ino;
		dentry_put(d);
	}
	if (*pos == 0) {
		if (sink->emit(sink, ".", f->inode->ino, DT_DIR, 1))
			return 1;
		*pos = 1;
	}
	if (*pos == 1) {
		if (sink->emit(sink, "..", parent, DT_DIR, 2))
			return 1;
		*pos = STATIC_BASE;
	}
	return 0;
}

static int emit_dynamic(const struct pseudo_ref *dir, struct dir_sink *sink, int64_t *pos)
{
	char name[NAME_LEN_MAX + 1];
	struct pseudo_ref ref;

	if (!dir->row->dir)
		return 0;
	for (;;) {
		uint64_t cookie = (uint64_t)(*pos - DYNAMIC_BASE);
		int err = dir->row->dir->next(dir, &cookie, name, &ref);
		if (err == -ENOENT)
			return 0;
		if (err)
			return err;
		int64_t next = DYNAMIC_BASE + (int64_t)cookie + 1;
		if (sink->emit(sink, name, pseudofs_ino(&ref), IFTODT(ref.row->mode), next))
			return 0;
		*pos = next;
	}
}

static int pseudo_readdir(struct file *f, struct dir_sink *sink, int64_t *pos)
{
	const struct pseudo_ref *dir = ref_of(f->inode);
	struct pseudo_ref ref;

	if (emit_dots(f, sink, pos))
		return 0;
	while (*pos < DYNAMIC_BASE && static_child(dir, (size_t)(*pos - STATIC_BASE), &ref))
		if (emit_static(sink, &ref, pos))
			return 0;
	if (*pos < DYNAMIC_BASE)
		*pos = DYNAMIC_BASE;
	return emit_dynamic(dir, sink, pos);
}

static int64_t dir_seek(struct file *f, int64_t off, int whence)
{
	return whence == SEEK_END ? -EINVAL : pseudo_seek(f, off, whence);
}

static const struct file_ops pseudo_text_ops = {
	.read = pseudo_read,
	.write = pseudo_write,
	.seek = pseudo_seek,
	.release = pseudo_release,
};

static const struct file_ops pseudo_raw_ops = {
	.read = raw_read,
	.write = raw_write,
	.seek = raw_seek,
	.release = pseudo_release,
};

static const struct file_ops pseudo_dir_ops = {
	.seek = dir_seek,
	.readdir = pseudo_readdir,
	.release = pseudo_release,
};

/* ---- super block -------------------------------------------------------------------------- */

static int pseudo_statfs(struct superblock *sb, struct fs_statfs *out)
{
	const struct pseudo_sb *ps = sb->priv;

	*out = (struct fs_statfs){
		.type = ps->tree->magic,
		.bsize = 4096,
		.frsize = 4096,
		.namelen = NAME_LEN_MAX,
	};
	return 0;
}

static void pseudo_sb_free(struct superblock *sb)
{
	mem_free(sb->priv);
}

static const struct sb_ops pseudo_sb_ops = {
	.statfs = pseudo_statfs,
	.free = pseudo_sb_free,
};

int pseudofs_new(const struct pseudo_tree *tree, struct superblock **out)
{
	struct pseudo_sb *ps = mem_zalloc(sizeof(*ps));
	struct superblock *sb;
	struct inode *root;

	if (!ps)
		return -ENOMEM;
	ps->tree = tree;
	ps->born = fs_now();
	int err = superblock_new(&pseudo_sb_ops, tree->fs_name, ps, &sb);
	if (err) {
		mem_free(ps);
		return err;
	}
	struct pseudo_ref ref = { .row = tree->root };
	err = pseudo_inode_new(sb, &ref, &root);
	if (!err)
		err = superblock_set_root(sb, root);
	if (err) {
		superblock_put(sb);
		return err;
	}
	sb->no_cache = tree->valid != NULL;
	*out = sb;
	return 0;
}

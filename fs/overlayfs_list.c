/*
 * Listings of overlayfs. A directory without changed names is listed by what is below. Any other is
 * merged when it is read from the start: one list per open directory, in which positions stay what
 * they are whatever happens to the directory meanwhile.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/overlayfs_priv.h"
#include "platform/base/alloc.h"

#define FIRST_NAME 2 /* after "." and ".." */

struct list_entry {
	uint64_t ino;
	uint32_t name; /* offset in names */
	uint8_t dtype;
};

/* A growing list of names. */
struct name_list {
	struct dir_sink sink;
	struct ovl_inode *dir; /* whose changed names are skipped; NULL: take all */
	struct list_entry *v;
	size_t count, cap;
	char *names;
	size_t names_size, names_cap;
	bool probe; /* only find out whether there is one */
	int err;
};

struct ovl_dir_file {
	struct file file;
	struct file *lower;     /* [inode->mu] open while listing what is below only; referenced */
	struct name_list *list; /* [inode->mu] when merged */
};

static struct ovl_dir_file *to_dir_file(struct file *f)
{
	return container_of(f, struct ovl_dir_file, file);
}

/* ---- lists -------------------------------------------------------------------------------- */

static int grow(void **v, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 64;

	if (need <= *cap)
		return 0;
	while (n < need)
		n *= 2;
	void *p = mem_realloc(*v, n * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = n;
	return 0;
}

static int list_add_name(struct name_list *l, const char *name, uint64_t ino, unsigned dtype)
{
	size_t size = strlen(name) + 1;
	void *v = l->v, *names = l->names;

	int err = grow(&v, &l->cap, l->count + 1, sizeof(*l->v));
	l->v = v;
	if (!err)
		err = grow(&names, &l->names_cap, l->names_size + size, 1);
	l->names = names;
	if (err)
		return err;
	l->v[l->count++] = (struct list_entry){ ino, (uint32_t)l->names_size, (uint8_t)dtype };
	memcpy(l->names + l->names_size, name, size);
	l->names_size += size;
	return 0;
}

static void list_free(struct name_list *l)
{
	if (!l)
		return;
	mem_free(l->v);
	mem_free(l->names);
	mem_free(l);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Takes the names of the lower directory that have not changed. */
static int take_lower(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype,
		      int64_t off UNUSED)
{
	struct name_list *l = container_of(sink, struct name_list, sink);

	if (is_dots(name))
		return 0;
	mutex_lock(&l->dir->small_mu);
	bool changed = ovl_find_entry(l->dir, name) != NULL;
	mutex_unlock(&l->dir->small_mu);
	if (changed)
		return 0;
	l->err = list_add_name(l, name, ino, dtype);
	return l->err || l->probe;
}

static int list_lower(struct name_list *l)
{
	struct inode *lower = l->dir->lower;
	struct file *f;
	int64_t pos = 0, before;

	if (!lower)
		return 0;
	int err = lower->ops->open(lower, O_RDONLY | O_DIRECTORY, NULL, &f);
	if (err)
		return err;
	do {
		before = pos;
		err = f->ops->readdir(f, &l->sink, &pos);
	} while (!err && !l->err && pos != before && !(l->probe && l->count));
	file_put(f);
	return err ? err : l->err;
}

static bool has_room(const struct name_list *l, size_t size)
{
	return l->count < l->cap && l->names_size + size <= l->names_cap;
}

/* Adds the changed names; *out_full is set when there was not room for all of them. */
static void add_entries_locked(struct name_list *l, bool *out_full)
{
	struct rb_node *n;

	*out_full = false;
	for (n = rb_first(&l->dir->entries); n; n = rb_next(n)) {
		const struct ovl_entry *e = container_of(n, struct ovl_entry, node);
		if (!e->inode)
			continue;
		if (!has_room(l, strlen(e->name) + 1)) {
			*out_full = true;
			return;
		}
		/* Cannot fail: there is room. */
		l->err = list_add_name(l, e->name, e->inode->base.ino, e->inode->base.type >> 12);
	}
}

static int list_entries(struct name_list *l)
{
	size_t count = l->count, names_size = l->names_size;
	bool full;

	for (;;) {
		mutex_lock(&l->dir->small_mu);
		add_entries_locked(l, &full);
		mutex_unlock(&l->dir->small_mu);
		if (!full)
			return 0;
		/* Nothing is allocated under a leaf lock: make room and begin again. */
		void *v = l->v, *names = l->names;
		int err = grow(&v, &l->cap, l->cap * 2 + 64, sizeof(*l->v));
		l->v = v;
		if (!err)
			err = grow(&names, &l->names_cap, l->names_cap * 2 + 4096, 1);
		l->names = names;
		if (err)
			return err;
		l->count = count;
		l->names_size = names_size;
	}
}

static int list_make(struct ovl_inode *dir, struct name_list **out)
{
	struct name_list *l = mem_zalloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->sink.emit = take_lower;
	l->dir = dir;
	int err = list_lower(l);
	if (!err)
		err = list_entries(l);
	if (err) {
		list_free(l);
		return err;
	}
	*out = l;
	return 0;
}

int ovl_is_empty(struct ovl_inode *dir)
{
	struct name_list l = { .sink.emit = take_lower, .dir = dir, .probe = true };
	struct rb_node *n;
	bool any = false;

	mutex_lock(&dir->small_mu);
	for (n = rb_first(&dir->entries); n && !any; n = rb_next(n))
		any = container_of(n, struct ovl_entry, node)->inode != NULL;
	mutex_unlock(&dir->small_mu);
	if (any)
		return 0;
	int err = list_lower(&l);
	any = l.count > 0;
	mem_free(l.v);
	mem_free(l.names);
	return err ? err : !any;
}

/* ---- reading ------------------------------------------------------------------------------ */

static void reset(struct ovl_dir_file *df)
{
	if (df->lower)
		file_put(df->lower);
	df->lower = NULL;
	list_free(df->list);
	df->list = NULL;
}

/* At the start: decides how to list. */
static int begin(struct ovl_dir_file *df)
{
	struct ovl_inode *dir = to_ovl(df->file.inode);

	reset(df);
	mutex_lock(&dir->small_mu);
	bool changed = dir->entries.node != NULL;
	mutex_unlock(&dir->small_mu);
	if (changed || !dir->lower)
		return list_make(dir, &df->list);
	return dir->lower->ops->open(dir->lower, O_RDONLY | O_DIRECTORY, NULL, &df->lower);
}

/* ".." of a lower root or of a moved directory is not what the lower tree says. */
struct dots_sink {
	struct dir_sink sink;
	struct dir_sink *to;
	struct ovl_inode *dir;
};

static int emit_fixed(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype,
		      int64_t off)
{
	struct dots_sink *d = container_of(sink, struct dots_sink, sink);

	if (strcmp(name, "..") == 0)
		ino = atomic_load(&d->dir->parent_ino);
	return d->to->emit(d->to, name, ino, dtype, off);
}

static int emit_list(struct ovl_dir_file *df, struct dir_sink *sink, int64_t *pos)
{
	struct ovl_inode *dir = to_ovl(df->file.inode);
	const struct name_list *l = df->list;

	if (*pos == 0) {
		if (sink->emit(sink, ".", dir->base.ino, S_IFDIR >> 12, 1))
			return 0;
		*pos = 1;
	}
	if (*pos == 1) {
		if (sink->emit(sink, "..", atomic_load(&dir->parent_ino), S_IFDIR >> 12,
			       FIRST_NAME))
			return 0;
		*pos = FIRST_NAME;
	}
	while ((uint64_t)*pos - FIRST_NAME < l->count) {
		const struct list_entry *e = &l->v[*pos - FIRST_NAME];
		if (sink->emit(sink, l->names + e->name, e->ino, e->dtype, *pos + 1))
			return 0;
		++*pos;
	}
	return 0;
}

static int dir_readdir(struct file *f, struct dir_sink *sink, int64_t *pos)
{
	struct ovl_dir_file *df = to_dir_file(f);
	int err = 0;

	if (*pos < 0)
		return -EINVAL;
	mutex_lock(&f->inode->mu);
	if (f->inode->dead)
		err = -ENOENT;
	else if (*pos == 0 || (!df->lower && !df->list))
		err = begin(df);
	if (!err && df->list) {
		err = emit_list(df, sink, pos);
	} else if (!err) {
		struct dots_sink fixed = { .sink.emit = emit_fixed,
					   .to = sink,
					   .dir = to_ovl(f->inode) };
		err = df->lower->ops->readdir(df->lower, &fixed.sink, pos);
	}
	mutex_unlock(&f->inode->mu);
	if (!err && ovl_upper(to_ovl(f->inode)))
		tmpfs_touch(ovl_upper(to_ovl(f->inode)), ATTR_ATIME);
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
	struct ovl_dir_file *df = to_dir_file(f);

	reset(df);
	mem_free(df);
}

static const struct file_ops ovl_dir_file_ops = {
	.seek = dir_seek,
	.readdir = dir_readdir,
	.fsync = dir_fsync,
	.release = dir_release,
};

int ovl_open_dir(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct ovl_dir_file *df = mem_zalloc(sizeof(*df));

	if (!df)
		return -ENOMEM;
	file_init(&df->file, &ovl_dir_file_ops, inode_get(ino), (unsigned)flags);
	*out = &df->file;
	return 0;
}

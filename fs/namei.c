/*
 * Name resolution: path_resolution(7), symlink(7), openat2(2).
 *
 * Iterative: a symlink in the middle pushes what follows it on a stack of at most 40 frames and its
 * body becomes the text. walk_parent stops before the last component, since every operation treats
 * that one differently; walk_follow_last goes on when it turned out to be a symlink.
 *
 * Invariants of struct walk: root and cur are referenced; cur is what has been reached; no lock is
 * held between the steps.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>

#include "fs/walk.h"
#include "platform/base/alloc.h"

static bool is_scoped(const struct walk *w)
{
	return w->l->resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT);
}

/* ---- contexts ----------------------------------------------------------------------------- */

static void fs_ctx_free(struct fs_ctx *ctx)
{
	path_put(ctx->root);
	path_put(ctx->cwd);
	mutex_fini(&ctx->mu);
	mem_free(ctx);
}

DEFINE_REF(fs_ctx);

int fs_ctx_new(struct path root, struct path cwd, uint32_t umask, struct fs_ctx **out)
{
	struct fs_ctx *ctx = mem_zalloc(sizeof(*ctx));

	if (!ctx)
		return -ENOMEM;
	ref_init(&ctx->ref);
	mutex_init(&ctx->mu, RANK_FS_CTX);
	ctx->root = path_get(root);
	ctx->cwd = path_get(cwd);
	ctx->umask = umask;
	*out = ctx;
	return 0;
}

static struct path ctx_root(struct fs_ctx *ctx)
{
	mutex_lock(&ctx->mu);
	struct path p = path_get(ctx->root);
	mutex_unlock(&ctx->mu);
	return p;
}

static struct path ctx_cwd(struct fs_ctx *ctx)
{
	mutex_lock(&ctx->mu);
	struct path p = path_get(ctx->cwd);
	mutex_unlock(&ctx->mu);
	return p;
}

int fs_ctx_copy(struct fs_ctx *old, struct fs_ctx **out)
{
	struct path root = ctx_root(old), cwd = ctx_cwd(old);

	mutex_lock(&old->mu);
	uint32_t mask = old->umask;
	mutex_unlock(&old->mu);
	int err = fs_ctx_new(root, cwd, mask, out);
	path_put(root);
	path_put(cwd);
	return err;
}

uint32_t walk_mode(const struct fs_lookup *l, uint32_t mode)
{
	mutex_lock(&l->ctx->mu);
	mode &= ~l->ctx->umask;
	mutex_unlock(&l->ctx->mu);
	return mode;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static struct path walk_base(const struct fs_lookup *l)
{
	return l->base.dentry ? path_get(l->base) : ctx_cwd(l->ctx);
}

int walk_begin(struct walk *w, const struct fs_lookup *l, const char *name)
{
	size_t len = strlen(name);

	/* The frames are written before they are read. */
	memset(w, 0, offsetof(struct walk, stack));
	w->l = l;
	if (len == 0)
		return -ENOENT;
	if (len >= PATH_LEN_MAX)
		return -ENAMETOOLONG;
	if (is_scoped(w)) {
		if (*name == '/' && (l->resolve & RESOLVE_BENEATH))
			return -EXDEV;
		w->root = walk_base(l);
		w->cur = path_get(w->root);
	} else {
		w->root = ctx_root(l->ctx);
		w->cur = *name == '/' ? path_get(w->root) : walk_base(l);
	}
	if (*name != '/' && w->cur.dentry->inode->type != S_IFDIR)
		return -ENOTDIR;
	return 0;
}

void walk_end(struct walk *w)
{
	while (w->depth > 0)
		mem_free(w->stack[--w->depth].buf);
	mem_free(w->text);
	dentry_put(w->link_dir);
	path_put(w->cur);
	path_put(w->root);
	dcache_trim();
}

int walk_complete(struct walk *w)
{
	if (is_scoped(w) && !path_is_under(w->cur, w->root))
		return -EXDEV;
	return 0;
}

/* ---- one component ------------------------------------------------------------------------ */

/* A cached dentry that may still be used, or NULL. */
static int find_valid(struct dentry *dir, const char *name, struct dentry **out)
{
	struct dentry *d = dcache_find(dir, name, strlen(name));
	int ok = 1;

	if (d && dir->inode->ops->revalidate && atomic_load(&d->is_mountpoint) == 0)
		ok = dir->inode->ops->revalidate(d);
	if (d && ok <= 0) {
		if (ok < 0) {
			dentry_put(d);
			return ok;
		}
		dcache_drop(d, false);
		dentry_put(d);
		d = NULL;
	}
	*out = d;
	return 0;
}

/* Asks the file system; the result is cached. dir->mu held. */
static int lookup_real(struct dentry *dir, const char *name, struct dentry **out)
{
	struct inode *ino = NULL;

	if (!dir->inode->ops->lookup)
		return -ENOTDIR;
	int err = dir->inode->dead ? -ENOENT : dir->inode->ops->lookup(dir->inode, name, &ino);
	if (err && err != -ENOENT)
		return err;
	struct dentry *d = dentry_new(dir->sb, dir, name, err ? NULL : ino);
	if (!d)
		return -ENOMEM;
	if (!dir->inode->dead)
		dcache_add(d);
	*out = d;
	return 0;
}

int walk_lookup_locked(struct dentry *dir, const char *name, struct dentry **out)
{
	int err = find_valid(dir, name, out);

	if (err || *out)
		return err;
	return lookup_real(dir, name, out);
}

static int lookup_in(struct dentry *dir, const char *name, struct dentry **out)
{
	int err = find_valid(dir, name, out);

	if (err || *out)
		return err;
	mutex_lock(&dir->inode->mu);
	/* Another thread may have looked it up while we waited. */
	*out = dcache_find(dir, name, strlen(name));
	if (!*out)
		err = lookup_real(dir, name, out);
	mutex_unlock(&dir->inode->mu);
	return err;
}

int walk_lookup(struct walk *w, struct dentry **out)
{
	return lookup_in(w->cur.dentry, w->last, out);
}

/* Replaces cur by p (takes). */
static void set_cur(struct walk *w, struct path p)
{
	path_put(w->cur);
	w->cur = p;
}

/* cur becomes what is mounted on it. */
static int cross_mounts(struct walk *w)
{
	if (atomic_load(&w->cur.dentry->is_mountpoint) == 0)
		return 0;
	struct mount *before = w->cur.mnt;
	w->cur = mount_traverse(w->cur);
	if (w->cur.mnt != before && (w->l->resolve & RESOLVE_NO_XDEV))
		return -EXDEV;
	return 0;
}

int walk_step(struct walk *w, struct dentry *d)
{
	dentry_put(w->cur.dentry);
	w->cur.dentry = d;
	return cross_mounts(w);
}

static bool same_path(struct path a, struct path b)
{
	return a.mnt == b.mnt && a.dentry == b.dentry;
}

static int step_up(struct walk *w)
{
	while (!same_path(w->cur, w->root)) {
		if (w->cur.dentry != w->cur.mnt->root)
			return walk_step(w, dentry_parent(w->cur.dentry));
		struct path up = path_get(w->cur);
		if (!mount_follow_up(&up)) {
			path_put(up);
			break;
		}
		set_cur(w, up);
		if (w->l->resolve & RESOLVE_NO_XDEV)
			return -EXDEV;
	}
	if (w->l->resolve & RESOLVE_BENEATH)
		return -EXDEV;
	return cross_mounts(w);
}

int walk_dots(struct walk *w)
{
	return w->last_type == LAST_DOTDOT ? step_up(w) : 0;
}

/* ---- symbolic links ----------------------------------------------------------------------- */

static int follow_magic(struct walk *w)
{
	struct inode *ino = w->cur.dentry->inode;
	struct path p;

	if (w->l->resolve & RESOLVE_NO_MAGICLINKS)
		return -ELOOP;
	int err = ino->ops->follow(ino, &p);
	if (err)
		return err;
	if (((w->l->resolve & RESOLVE_NO_XDEV) && p.mnt != w->cur.mnt) || is_scoped(w)) {
		path_put(p);
		return -EXDEV;
	}
	set_cur(w, p);
	return 0;
}

/* A heap copy of the link's text. */
static int read_link(struct inode *ino, char **out)
{
	char *buf = mem_alloc(PATH_LEN_MAX);

	if (!buf)
		return -ENOMEM;
	int n = ino->ops->readlink ? ino->ops->readlink(ino, buf, PATH_LEN_MAX) : -EINVAL;
	if (n == 0)
		n = -ENOENT;
	if (n < 0) {
		mem_free(buf);
		return n;
	}
	buf[MIN(n, PATH_LEN_MAX - 1)] = 0;
	*out = buf;
	return 0;
}

static int count_link(struct walk *w)
{
	if (++w->links > SYMLINK_DEPTH_MAX || (w->l->resolve & RESOLVE_NO_SYMLINKS))
		return -ELOOP;
	return 0;
}

/* cur := where a link body begins: the root or the directory of the link (takes). */
static int start_body(struct walk *w, const char *body, struct path dir)
{
	if (*body != '/') {
		set_cur(w, dir);
		return 0;
	}
	path_put(dir);
	if (w->l->resolve & RESOLVE_BENEATH)
		return -EXDEV;
	if ((w->l->resolve & RESOLVE_NO_XDEV) && w->cur.mnt != w->root.mnt)
		return -EXDEV;
	set_cur(w, path_get(w->root));
	return 0;
}

/* cur is a symlink found in dir (takes), with *name still to come: *name becomes its body. */
static int follow_middle(struct walk *w, struct path dir, const char **name)
{
	struct inode *ino = w->cur.dentry->inode;
	char *body;
	int err = count_link(w);

	if (!err && ino->ops->follow) {
		path_put(dir);
		return follow_magic(w);
	}
	if (!err)
		err = read_link(ino, &body);
	if (err) {
		path_put(dir);
		return err;
	}
	w->stack[w->depth++] = (struct walk_frame){ .rest = *name, .buf = w->text };
	w->text = body;
	*name = body;
	return start_body(w, body, dir);
}

/* fs.protected_symlinks: in a sticky world-writable directory only the link's or the directory's
 * owner's links are followed. */
static int may_follow_last(struct walk *w)
{
	struct inode *ino = w->cur.dentry->inode, *dir = w->link_dir->inode;
	struct fs_stat st, dir_st;

	if (!dir || ino->ops->follow)
		return 0;
	int err = ino->ops->getattr(ino, &st);
	if (!err)
		err = dir->ops->getattr(dir, &dir_st);
	if (err)
		return err;
	if (w->l->cred->fsuid == st.uid || dir_st.uid == st.uid ||
	    (dir_st.mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return 0;
	return -EACCES;
}

int walk_follow_last(struct walk *w, bool *out_jumped)
{
	struct inode *ino = w->cur.dentry->inode;
	char *body;
	int err;

	*out_jumped = false;
	dentry_put(w->link_dir);
	w->link_dir = dentry_parent(w->cur.dentry);
	err = count_link(w);
	if (!err)
		err = may_follow_last(w);
	if (err)
		return err;
	if (ino->ops->follow) {
		*out_jumped = true;
		return follow_magic(w);
	}
	err = read_link(ino, &body);
	if (err)
		return err;
	mem_free(w->text);
	w->text = body;
	err = start_body(w, body, (struct path){ mount_get(w->cur.mnt), dentry_get(w->link_dir) });
	if (err)
		return err;
	return walk_parent(w, body);
}

/* ---- all but the last --------------------------------------------------------------------- */

/* Copies the component at *name into w->last and moves *name behind it and its slashes. */
static int take_component(struct walk *w, const char **name)
{
	const char *s = *name;
	size_t len = strcspn(s, "/");

	if (len > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	memcpy(w->last, s, len);
	w->last[len] = 0;
	w->last_type = LAST_NORM;
	if (s[0] == '.' && len == 1)
		w->last_type = LAST_DOT;
	else if (s[0] == '.' && s[1] == '.' && len == 2)
		w->last_type = LAST_DOTDOT;
	s += len;
	w->last_slash = *s == '/';
	*name = s + strspn(s, "/");
	return 0;
}

/* A component in the middle: cur becomes it, or the start of its link body. */
static int walk_middle(struct walk *w, const char **name)
{
	struct dentry *d;

	if (w->last_type != LAST_NORM)
		return walk_dots(w);
	int err = walk_lookup(w, &d);
	if (err)
		return err;
	if (!d->inode) {
		dentry_put(d);
		return -ENOENT;
	}
	if (d->inode->type != S_IFLNK)
		return walk_step(w, d);
	struct path dir = path_get(w->cur);
	err = walk_step(w, d);
	if (err) {
		path_put(dir);
		return err;
	}
	return follow_middle(w, dir, name);
}

/* Back to the text behind the symlink whose body has ended. */
static const char *pop(struct walk *w)
{
	struct walk_frame *f = &w->stack[--w->depth];

	mem_free(w->text);
	w->text = f->buf;
	return f->rest;
}

int walk_parent(struct walk *w, const char *name)
{
	int err;

	name += strspn(name, "/");
	w->last_type = LAST_ROOT;
	w->last_slash = false;
	w->last[0] = 0;
	for (;;) {
		while (!*name) {
			if (w->depth == 0)
				return 0;
			name = pop(w);
		}
		if (w->cur.dentry->inode->type != S_IFDIR)
			return -ENOTDIR;
		err = inode_permission(w->cur.dentry->inode, w->l->cred, MAY_EXEC);
		if (!err)
			err = take_component(w, &name);
		if (err)
			return err;
		if (!*name && w->depth == 0)
			return 0;
		err = walk_middle(w, &name);
		if (err)
			return err;
		name += strspn(name, "/");
	}
}

/* ---- lookup ------------------------------------------------------------------------------- */

/* The last component and the symlinks that it leads through; cur is the result. */
static int walk_last(struct walk *w, unsigned flags)
{
	for (;;) {
		struct dentry *d;
		bool jumped;

		if (w->last_type != LAST_NORM)
			return walk_dots(w);
		bool want_dir = w->last_slash || (flags & LOOKUP_DIRECTORY);
		int err = walk_lookup(w, &d);
		if (err)
			return err;
		if (!d->inode) {
			dentry_put(d);
			return -ENOENT;
		}
		err = walk_step(w, d);
		if (err)
			return err;
		uint32_t type = w->cur.dentry->inode->type;
		if (type != S_IFLNK || !((flags & LOOKUP_FOLLOW) || w->last_slash))
			return want_dir && type != S_IFDIR ? -ENOTDIR : 0;
		if (want_dir)
			flags |= LOOKUP_DIRECTORY | LOOKUP_FOLLOW;
		err = walk_follow_last(w, &jumped);
		if (err)
			return err;
		if (jumped)
			return want_dir && w->cur.dentry->inode->type != S_IFDIR ? -ENOTDIR : 0;
	}
}

int path_lookup(const struct fs_lookup *l, const char *name, unsigned flags, struct path *out)
{
	struct walk w;

	if (!*name && (flags & LOOKUP_EMPTY)) {
		*out = walk_base(l);
		return 0;
	}
	int err = walk_begin(&w, l, name);
	if (!err)
		err = walk_parent(&w, name);
	if (!err)
		err = walk_last(&w, flags);
	if (!err)
		err = walk_complete(&w);
	if (!err)
		*out = path_get(w.cur);
	walk_end(&w);
	return err;
}

/* Calls about names: directories, links, removal, renaming, access, the working directory. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>

#include "syscalls/fs_util.h"

/* ---- making ------------------------------------------------------------------------------- */

/* Loads a name and begins at dirfd. */
static int load_at(struct task *t, int dirfd, path_cgp path, const char **out_name, struct at *a)
{
	int err = guest_load_path(t, path, out_name);

	if (!err && !**out_name)
		err = -ENOENT;
	return err ? err : at_begin(t, dirfd, *out_name, a);
}

long sys_mkdirat(struct task *t, int dirfd, path_cgp path, uint32_t mode)
{
	const char *name;
	struct at a;

	int err = load_at(t, dirfd, path, &name, &a);
	if (err)
		return err;
	err = vfs_mkdir(&a.l, name, mode);
	at_end(&a);
	return err;
}

long sys_mkdir(struct task *t, path_cgp path, uint32_t mode)
{
	return sys_mkdirat(t, AT_FDCWD, path, mode);
}

long sys_mknodat(struct task *t, int dirfd, path_cgp path, uint32_t mode, uint64_t dev)
{
	const char *name;
	struct at a;

	int err = load_at(t, dirfd, path, &name, &a);
	if (err)
		return err;
	err = vfs_mknod(&a.l, name, mode, (uint32_t)dev);
	at_end(&a);
	return err;
}

long sys_mknod(struct task *t, path_cgp path, uint32_t mode, uint64_t dev)
{
	return sys_mknodat(t, AT_FDCWD, path, mode, dev);
}

long sys_symlinkat(struct task *t, path_cgp target, int newdirfd, path_cgp linkpath)
{
	const char *name, *text;
	struct at a;

	int err = guest_load_path(t, target, &text);
	if (!err && !*text)
		err = -ENOENT;
	if (!err)
		err = load_at(t, newdirfd, linkpath, &name, &a);
	if (err)
		return err;
	err = vfs_symlink(&a.l, text, name);
	at_end(&a);
	return err;
}

long sys_symlink(struct task *t, path_cgp target, path_cgp linkpath)
{
	return sys_symlinkat(t, target, AT_FDCWD, linkpath);
}

/* Linking a bare descriptor goes past the directories that lead to it: for those who opened it. */
static bool may_link_fd(struct task *t, int fd)
{
	struct file *f = fd_get(t->files, fd);
	bool may = !f || f->cred == t->cred || task_capable(t, CAP_DAC_READ_SEARCH);

	file_put(f);
	return may;
}

long sys_linkat(struct task *t, int olddirfd, path_cgp oldpath, int newdirfd, path_cgp newpath,
		int flags)
{
	const char *old_name, *new_name;
	struct at old, new;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	int err = guest_load_path(t, oldpath, &old_name);
	if (!err && !*old_name && (!(flags & AT_EMPTY_PATH) || !may_link_fd(t, olddirfd)))
		err = -ENOENT;
	if (!err)
		err = at_begin(t, olddirfd, old_name, &old);
	if (err)
		return err;
	err = load_at(t, newdirfd, newpath, &new_name, &new);
	if (!err) {
		unsigned lflags = (flags & AT_SYMLINK_FOLLOW ? LOOKUP_FOLLOW : 0) |
				  (flags & AT_EMPTY_PATH ? LOOKUP_EMPTY : 0);
		err = vfs_link(&old.l, old_name, &new.l, new_name, lflags);
		at_end(&new);
	}
	at_end(&old);
	return err;
}

long sys_link(struct task *t, path_cgp oldpath, path_cgp newpath)
{
	return sys_linkat(t, AT_FDCWD, oldpath, AT_FDCWD, newpath, 0);
}

/* ---- removing and renaming ---------------------------------------------------------------- */

long sys_unlinkat(struct task *t, int dirfd, path_cgp path, int flags)
{
	const char *name;
	struct at a;

	if (flags & ~AT_REMOVEDIR)
		return -EINVAL;
	int err = load_at(t, dirfd, path, &name, &a);
	if (err)
		return err;
	err = flags & AT_REMOVEDIR ? vfs_rmdir(&a.l, name) : vfs_unlink(&a.l, name);
	at_end(&a);
	return err;
}

long sys_unlink(struct task *t, path_cgp path)
{
	return sys_unlinkat(t, AT_FDCWD, path, 0);
}

long sys_rmdir(struct task *t, path_cgp path)
{
	return sys_unlinkat(t, AT_FDCWD, path, AT_REMOVEDIR);
}

long sys_renameat2(struct task *t, int olddirfd, path_cgp oldpath, int newdirfd, path_cgp newpath,
		   uint32_t flags)
{
	const char *old_name, *new_name;
	struct at old, new;

	int err = load_at(t, olddirfd, oldpath, &old_name, &old);
	if (err)
		return err;
	err = load_at(t, newdirfd, newpath, &new_name, &new);
	if (!err) {
		err = vfs_rename(&old.l, old_name, &new.l, new_name, flags);
		at_end(&new);
	}
	at_end(&old);
	return err;
}

long sys_renameat(struct task *t, int olddirfd, path_cgp oldpath, int newdirfd, path_cgp newpath)
{
	return sys_renameat2(t, olddirfd, oldpath, newdirfd, newpath, 0);
}

long sys_rename(struct task *t, path_cgp oldpath, path_cgp newpath)
{
	return sys_renameat2(t, AT_FDCWD, oldpath, AT_FDCWD, newpath, 0);
}

/* ---- symbolic links ----------------------------------------------------------------------- */

long sys_readlinkat(struct task *t, int dirfd, path_cgp path, buf_gp buf, int bufsiz)
{
	char text[PATH_LEN_MAX];
	const char *name;
	struct path p;
	struct at a;

	if (bufsiz <= 0)
		return -EINVAL;
	int err = guest_load_path(t, path, &name);
	if (!err)
		err = at_begin(t, dirfd, name, &a);
	if (err)
		return err;
	/* An empty name reads the link that an O_PATH descriptor refers to. */
	err = path_lookup(&a.l, name, LOOKUP_EMPTY, &p);
	at_end(&a);
	if (err)
		return err;
	int n = vfs_readlink(p, text, sizeof(text));
	path_put(p);
	if (n < 0)
		return !*name && n == -EINVAL ? -ENOENT : n;
	n = MIN(n, bufsiz);
	err = guest_write(t, buf.addr, text, (size_t)n);
	return err ? err : n;
}

long sys_readlink(struct task *t, path_cgp path, buf_gp buf, int bufsiz)
{
	return sys_readlinkat(t, AT_FDCWD, path, buf, bufsiz);
}

/* ---- root, working directory, umask ------------------------------------------------------- */

/* Replaces a path of the context (takes p). */
static void set_path(struct fs_ctx *ctx, struct path *slot, struct path p)
{
	mutex_lock(&ctx->mu);
	struct path old = *slot;
	*slot = p;
	mutex_unlock(&ctx->mu);
	path_put(old);
}

/* Enters p (takes it) if it is a directory that t may search. */
static long enter(struct task *t, struct path p)
{
	int err = p.dentry->inode->type == S_IFDIR ? 0 : -ENOTDIR;

	if (!err)
		err = inode_permission(p.dentry->inode, t->cred, MAY_EXEC);
	if (err)
		path_put(p);
	else
		set_path(t->fs, &t->fs->cwd, p);
	return err;
}

long sys_chdir(struct task *t, path_cgp path)
{
	struct path p;
	int err = path_at(t, AT_FDCWD, path, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &p);

	return err ? err : enter(t, p);
}

long sys_fchdir(struct task *t, int fd)
{
	struct path p;
	int err = path_of_fd(t, fd, false, &p);

	return err ? err : enter(t, p);
}

long sys_chroot(struct task *t, path_cgp path)
{
	struct path p;

	int err = path_at(t, AT_FDCWD, path, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &p);
	if (err)
		return err;
	err = inode_permission(p.dentry->inode, t->cred, MAY_EXEC);
	if (!err && !task_capable(t, CAP_SYS_CHROOT))
		err = -EPERM;
	if (err)
		path_put(p);
	else
		set_path(t->fs, &t->fs->root, p);
	return err;
}

long sys_getcwd(struct task *t, buf_gp buf, uint64_t size)
{
	char name[PATH_LEN_MAX];

	mutex_lock(&t->fs->mu);
	struct path cwd = path_get(t->fs->cwd), root = path_get(t->fs->root);
	mutex_unlock(&t->fs->mu);
	int n = -ENOENT;
	if (!dentry_is_deleted(cwd.dentry))
		n = path_name(cwd, root, name, sizeof(name));
	path_put(cwd);
	path_put(root);
	if (n < 0)
		return n;
	if ((uint64_t)n + 1 > size)
		return -ERANGE;
	int err = guest_write(t, buf.addr, name, (size_t)n + 1);
	return err ? err : n + 1;
}

long sys_umask(struct task *t, uint32_t mask)
{
	mutex_lock(&t->fs->mu);
	uint32_t old = t->fs->umask;
	t->fs->umask = mask & 0777;
	mutex_unlock(&t->fs->mu);
	return (long)old;
}

/* ---- access ------------------------------------------------------------------------------- */

/* The credentials that access(2) asks with: the real ids, and what they would give. Gives. */
static struct cred *real_cred(const struct cred *c)
{
	struct cred *r = cred_copy(c);

	if (!r)
		return NULL;
	r->fsuid = c->uid;
	r->fsgid = c->gid;
	if (!(c->securebits & SECBIT_NO_SETUID_FIXUP))
		r->cap_effective = c->uid == 0 ? c->cap_permitted : 0;
	return r;
}

long sys_faccessat2(struct task *t, int dirfd, path_cgp path, int mode, int flags)
{
	const char *name = "";
	struct cred *real = NULL;
	struct path p;
	struct at a;

	if ((mode & ~7) || (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
		return -EINVAL;
	int err = guest_load_path(t, path, &name);
	if (!err && !*name && !(flags & AT_EMPTY_PATH))
		err = -ENOENT;
	if (!err)
		err = at_begin(t, dirfd, name, &a);
	if (err)
		return err;
	if (!(flags & AT_EACCESS)) {
		real = real_cred(t->cred);
		a.l.cred = real;
	}
	err = a.l.cred ? path_lookup(&a.l, name, lookup_of_at(flags), &p) : -ENOMEM;
	if (!err) {
		err = vfs_access(p, a.l.cred, mode);
		path_put(p);
	}
	at_end(&a);
	cred_put(real);
	return err;
}

long sys_faccessat(struct task *t, int dirfd, path_cgp path, int mode)
{
	return sys_faccessat2(t, dirfd, path, mode, 0);
}

long sys_access(struct task *t, path_cgp path, int mode)
{
	return sys_faccessat2(t, AT_FDCWD, path, mode, 0);
}

long sys_truncate(struct task *t, path_cgp path, int64_t length)
{
	struct path p;

	if (length < 0)
		return -EINVAL;
	int err = path_at(t, AT_FDCWD, path, LOOKUP_FOLLOW, &p);
	if (err)
		return err;
	err = vfs_truncate(p, t->cred, (uint64_t)length);
	path_put(p);
	return err;
}

/* mount(2), umount2(2), pivot_root(2). One mount namespace. */
#include "fs/mount.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mount.h>

#include "fs/devfs.h"
#include "fs/pty.h"
#include "fs/tmpfs.h"
#include "sentry/proc.h"
#include "syscalls/fs_util.h"

#define MAGIC_OLD 0xc0ed0000u /* MS_MGC_VAL: old programs put it in the upper half */
#define MAGIC_MASK 0xffff0000u
#define PROPAGATION (MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE)
#define KEPT_FLAGS                                                                                 \
	(MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME)

static const struct {
	const char *name;
	/* NULL: tmpfs, the one that has options. Those of the others are accepted unread: they
	 * concern namespaces that we do not have. */
	int (*make)(struct superblock **out);
} fs_types[] = {
	{ "tmpfs", NULL },      { "ramfs", NULL },        { "proc", procfs_new },
	{ "sysfs", sysfs_new }, { "devpts", devpts_new }, { "devtmpfs", devfs_new },
};

/* What the guest gave, in its scratch; NULL pointers stay NULL. */
struct mount_args {
	const char *source, *fstype, *data;
	unsigned long flags;
};

static int load_string(struct task *t, path_cgp src, const char **out)
{
	*out = NULL;
	if (gaddr_is_null(src.addr))
		return 0;
	int err = guest_load_path(t, src, out);
	return err == -ENAMETOOLONG ? -EINVAL : err;
}

/* The options are a page of text or less: bytes up to a fault count. */
static int load_data(struct task *t, buf_cgp src, const char **out)
{
	char *buf;
	size_t n = 0;

	*out = NULL;
	if (gaddr_is_null(src.addr))
		return 0;
	buf = arena_alloc(&t->scratch, PAGE_SIZE);
	if (!buf)
		return -ENOMEM;
	while (n < PAGE_SIZE - 1) {
		/* Up to the end of the guest's page, which is all that one copy may touch. */
		size_t step =
			MIN(PAGE_SIZE - 1 - n, PAGE_SIZE - (size_t)((src.addr.va + n) % PAGE_SIZE));
		if (guest_read(t, buf + n, gaddr(src.addr.va + n), step))
			break;
		n += step;
	}
	if (n == 0)
		return -EFAULT;
	buf[n] = 0;
	*out = buf;
	return 0;
}

static unsigned mount_flags(unsigned long flags)
{
	unsigned keep = (unsigned)flags & KEPT_FLAGS;

	if (!(flags & (MS_NOATIME | MS_STRICTATIME)))
		keep |= MS_RELATIME;
	return keep;
}

/* Another path for a bind or a move. */
static int source_path(struct task *t, const struct mount_args *a, struct path *out)
{
	struct fs_lookup l = { .ctx = t->fs, .cred = t->cred };

	if (!a->source || !*a->source)
		return a->source ? -ENOENT : -EINVAL;
	return path_lookup(&l, a->source, LOOKUP_FOLLOW, out);
}

static int bind_or_move(struct task *t, struct path where, const struct mount_args *a)
{
	struct path what;

	int err = source_path(t, a, &what);
	if (err)
		return err;
	if (a->flags & MS_BIND)
		err = mount_bind(where, what, 0, a->flags & MS_REC);
	else
		err = mount_move(what, where);
	path_put(what);
	return err;
}

static int mount_fresh(struct path where, const struct mount_args *a)
{
	struct superblock *sb;

	if (!a->fstype)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(fs_types); i++) {
		if (strcmp(a->fstype, fs_types[i].name) != 0)
			continue;
		int err = fs_types[i].make ? fs_types[i].make(&sb) : tmpfs_new(a->data, &sb);
		if (err)
			return err;
		return mount_attach(where, sb, a->source, mount_flags(a->flags));
	}
	return -ENODEV;
}

static int do_mount(struct task *t, struct path where, const struct mount_args *a)
{
	if (!task_capable(t, CAP_SYS_ADMIN))
		return -EPERM;
	if (a->flags & MS_REMOUNT)
		return mount_remount(where, mount_flags(a->flags));
	if (a->flags & (MS_BIND | MS_MOVE))
		return bind_or_move(t, where, a);
	/* With one namespace there is nobody to propagate to. */
	if (a->flags & PROPAGATION)
		return where.dentry == where.mnt->root ? 0 : -EINVAL;
	return mount_fresh(where, a);
}

long sys_mount(struct task *t, path_cgp source, path_cgp target, path_cgp fstype, uint64_t flags,
	       buf_cgp data)
{
	struct mount_args a = { .flags = flags };
	struct path where;

	if ((flags & MAGIC_MASK) == MAGIC_OLD)
		a.flags &= ~(unsigned long)MAGIC_MASK;
	int err = load_string(t, fstype, &a.fstype);
	if (!err)
		err = load_string(t, source, &a.source);
	if (!err)
		err = load_data(t, data, &a.data);
	if (!err)
		err = path_at(t, AT_FDCWD, target, LOOKUP_FOLLOW, &where);
	if (err)
		return err;
	err = do_mount(t, where, &a);
	path_put(where);
	return err;
}

long sys_umount2(struct task *t, path_cgp target, int flags)
{
	struct path p;

	if (flags & ~(MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW))
		return -EINVAL;
	if ((flags & MNT_EXPIRE) && (flags & (MNT_FORCE | MNT_DETACH)))
		return -EINVAL;
	int err = path_at(t, AT_FDCWD, target, flags & UMOUNT_NOFOLLOW ? 0 : LOOKUP_FOLLOW, &p);
	if (err)
		return err;
	err = task_capable(t, CAP_SYS_ADMIN) ? mount_detach(p, flags) : -EPERM;
	path_put(p);
	return err;
}

/* The caller's root and working directory follow the new root. */
static void move_context(struct fs_ctx *ctx, struct path old, struct path new)
{
	struct path drop[2] = { { NULL, NULL }, { NULL, NULL } };

	mutex_lock(&ctx->mu);
	if (ctx->root.mnt == old.mnt && ctx->root.dentry == old.dentry) {
		drop[0] = ctx->root;
		ctx->root = path_get(new);
	}
	if (ctx->cwd.mnt == old.mnt && ctx->cwd.dentry == old.dentry) {
		drop[1] = ctx->cwd;
		ctx->cwd = path_get(new);
	}
	mutex_unlock(&ctx->mu);
	path_put(drop[0]);
	path_put(drop[1]);
}

long sys_pivot_root(struct task *t, path_cgp new_root, path_cgp put_old)
{
	struct path new, old, root;

	if (!task_capable(t, CAP_SYS_ADMIN))
		return -EPERM;
	int err = path_at(t, AT_FDCWD, new_root, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &new);
	if (err)
		return err;
	err = path_at(t, AT_FDCWD, put_old, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &old);
	if (err) {
		path_put(new);
		return err;
	}
	mutex_lock(&t->fs->mu);
	root = path_get(t->fs->root);
	mutex_unlock(&t->fs->mu);
	err = mount_pivot(new, old, root);
	if (!err)
		move_context(t->fs, root, new);
	path_put(root);
	path_put(old);
	path_put(new);
	return err;
}

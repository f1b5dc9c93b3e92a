/* The guest's tree of mounts: see view.h. */
#include "sentry/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#include "fs/devfs.h"
#include "fs/goferfs.h"
#include "fs/mount.h"
#include "fs/overlayfs.h"
#include "fs/pty.h"
#include "fs/tmpfs.h"
#include "platform/base/log.h"
#include "sentry/proc.h"

static int view_error(const struct view *v, int err)
{
	log_error("cannot show %s at %s: %s", v->host ? v->host : "a tmpfs", v->guest,
		  strerror(-err));
	return err;
}

/* The super block of one view. `export` is its number at the gofer. */
static int view_superblock(const struct view *v, struct gofer_client *gofer, uint32_t export,
			   struct superblock **out)
{
	struct superblock *lower, *upper;
	int err;

	if (v->kind == VIEW_TMPFS)
		return tmpfs_new("mode=1777", out);
	err = goferfs_new(gofer, export, true, &lower);
	if (err)
		return err;
	if (v->kind == VIEW_RO)
		lower->readonly = true;
	if (v->kind != VIEW_OVERLAY) {
		*out = lower;
		return 0;
	}
	err = tmpfs_new("mode=0755", &upper);
	if (err) {
		superblock_put(lower);
		return err;
	}
	return overlayfs_new(lower, upper, out);
}

/* Makes the directories of an absolute path that are missing, like mkdir -p; leaf_is_file makes the
 * last one an empty file (mount point of a single file). */
static int make_mountpoint(const struct fs_lookup *l, const char *guest, bool leaf_is_file)
{
	char buf[PATH_LEN_MAX];
	int err = 0;

	if (snprintf(buf, sizeof(buf), "%s", guest) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	for (char *p = buf + 1; !err && *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		err = vfs_mkdir(l, buf, 0755);
		if (err == -EEXIST || err == -EROFS)
			err = 0;
		*p = '/';
	}
	if (err)
		return err;
	err = leaf_is_file ? vfs_mknod(l, buf, S_IFREG | 0644, 0) : vfs_mkdir(l, buf, 0755);
	return err == -EEXIST || err == -EROFS ? 0 : err;
}

static int mount_at(const struct fs_lookup *l, const char *guest, struct superblock *sb,
		    const char *source, unsigned flags)
{
	struct path where;
	bool is_file = sb->root->inode->type != S_IFDIR;
	int err = make_mountpoint(l, guest, is_file);

	if (!err)
		err = path_lookup(l, guest, LOOKUP_FOLLOW, &where);
	if (err) {
		superblock_put(sb);
		return err;
	}
	err = mount_attach(where, sb, source, flags);
	path_put(where);
	return err;
}

/* What every sandbox has beside its views. */
static int mount_kernel_trees(const struct fs_lookup *l)
{
	struct superblock *sb;
	int err;
	const struct {
		const char *guest, *source, *options;
		int (*make)(struct superblock **out);
		unsigned flags;
	} rows[] = {
		{ "/proc", "proc", NULL, procfs_new, MS_NOSUID | MS_NODEV | MS_NOEXEC },
		{ "/sys", "sysfs", NULL, sysfs_new, MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY },
		{ "/dev", "devtmpfs", NULL, devfs_new, MS_NOSUID },
		{ "/dev/pts", "devpts", NULL, devpts_new, MS_NOSUID | MS_NOEXEC },
		{ "/dev/shm", "tmpfs", "mode=1777", NULL, MS_NOSUID | MS_NODEV },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		err = rows[i].make ? rows[i].make(&sb) : tmpfs_new(rows[i].options, &sb);
		if (!err)
			err = mount_at(l, rows[i].guest, sb, rows[i].source, rows[i].flags);
		if (err) {
			log_error("cannot mount %s: %s", rows[i].guest, strerror(-err));
			return err;
		}
	}
	return 0;
}

static int mount_root(const struct sandbox_spec *spec, struct gofer_client *gofer, struct path *out)
{
	struct superblock *sb;
	struct mount *m;
	int err = view_superblock(&spec->views[0], gofer, 0, &sb);

	if (!err)
		err = mount_new_root(
			sb, spec->views[0].kind == VIEW_OVERLAY ? "overlay" : "pinfold", 0, &m);
	if (err)
		return view_error(&spec->views[0], err);
	*out = (struct path){ .mnt = m, .dentry = dentry_get(m->root) };
	return 0;
}

int view_build(const struct sandbox_spec *spec, struct gofer_client *gofer, const struct cred *cred,
	       struct path *out_root)
{
	struct superblock *sb;
	struct fs_ctx *ctx;
	uint32_t export = spec->views[0].kind != VIEW_TMPFS;
	int err = mount_root(spec, gofer, out_root);

	if (err)
		return err;
	err = fs_ctx_new(*out_root, *out_root, 0, &ctx);
	if (err)
		return err;
	const struct fs_lookup l = { .ctx = ctx, .cred = cred };
	err = mount_kernel_trees(&l);
	for (size_t i = 1; !err && i < spec->view_count; i++) {
		const struct view *v = &spec->views[i];
		err = view_superblock(v, gofer, export, &sb);
		if (!err)
			err = mount_at(&l, v->guest, sb, v->host ? v->host : "tmpfs", MS_NODEV);
		if (err)
			err = view_error(v, err);
		export += v->kind != VIEW_TMPFS;
	}
	fs_ctx_put(ctx);
	return err;
}

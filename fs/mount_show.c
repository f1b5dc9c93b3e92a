/* Names of paths, and the tables of mounts as /proc shows them. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "fs/dcache.h"
#include "fs/mount_tree.h"
#include "fs/namei.h"
#include "platform/base/alloc.h"

#define MANGLE_SET " \t\n\\"

/* A buffer filled from its end. */
struct tail_buf {
	char *start, *at;
	bool full;
};

static void prepend(struct tail_buf *b, const char *s, size_t n)
{
	if ((size_t)(b->at - b->start) < n) {
		b->full = true;
		return;
	}
	b->at -= n;
	memcpy(b->at, s, n);
}

/* Prepends the components from root to p; false when p is not below root. Both locks held. */
static bool prepend_path(struct tail_buf *b, struct path p, struct path root)
{
	bool reached = true, any = false;

	while (p.dentry != root.dentry || p.mnt != root.mnt) {
		if (p.dentry == p.mnt->root || p.dentry->parent == p.dentry) {
			if (!p.mnt->parent) {
				reached = false;
				break;
			}
			p = (struct path){ p.mnt->parent, p.mnt->mountpoint };
			continue;
		}
		prepend(b, p.dentry->name, strlen(p.dentry->name));
		prepend(b, "/", 1);
		any = true;
		p.dentry = p.dentry->parent;
	}
	if (!any)
		prepend(b, "/", 1);
	return reached;
}

/* Mount lock held. Gives a pointer into buf or NULL when it does not fit. */
static char *name_locked(struct path p, struct path root, char *buf, size_t size, bool *out_reached)
{
	struct tail_buf b = { buf, buf + size, false };

	dcache_lock();
	prepend(&b, "", 1);
	if (p.dentry->deleted)
		prepend(&b, " (deleted)", 10);
	*out_reached = prepend_path(&b, p, root);
	dcache_unlock();
	return b.full ? NULL : b.at;
}

int path_name(struct path p, struct path root, char *buf, size_t size)
{
	bool reached;

	mount_tree_lock();
	char *s = name_locked(p, root, buf, size, &reached);
	mount_tree_unlock();
	if (!s)
		return -ENAMETOOLONG;
	size_t len = (size_t)(buf + size - s);
	/* Nameless files have no place that could be out of reach: "/memfd:x (deleted)". */
	reached |= strcmp(p.dentry->sb->fs_name, "anon_inodefs") == 0;
	size_t prefix = reached ? 0 : strlen("(unreachable)");
	if (prefix + len > size)
		return -ENAMETOOLONG;
	memmove(buf + prefix, s, len);
	memcpy(buf, "(unreachable)", prefix);
	return (int)(prefix + len - 1);
}

static void show_flags(struct mount *m, struct fmt *out)
{
	static const struct {
		unsigned flag;
		const char *text;
	} names[] = {
		{ MS_NOSUID, ",nosuid" },         { MS_NODEV, ",nodev" },
		{ MS_NOEXEC, ",noexec" },         { MS_NOATIME, ",noatime" },
		{ MS_NODIRATIME, ",nodiratime" }, { MS_RELATIME, ",relatime" },
	};
	unsigned flags = atomic_load(&m->flags);

	fmt_puts(out, mount_is_readonly(m) ? "ro" : "rw");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (flags & names[i].flag)
			fmt_puts(out, names[i].text);
	if (!(flags & (MS_NOATIME | MS_RELATIME)))
		fmt_puts(out, ",relatime");
}

static void show_options(struct mount *m, struct fmt *out)
{
	if (m->sb->ops->show_options)
		m->sb->ops->show_options(m->sb, out);
}

static void show_plain(struct mount *m, const char *at, struct fmt *out)
{
	fmt_mangle(out, m->source, MANGLE_SET);
	fmt_putc(out, ' ');
	fmt_mangle(out, at, MANGLE_SET);
	fmt_printf(out, " %s ", m->sb->fs_name);
	show_flags(m, out);
	show_options(m, out);
	fmt_puts(out, " 0 0\n");
}

/* Name of the mount's root inside its file system. */
static void show_inner_root(struct mount *m, struct fmt *out)
{
	char buf[PATH_LEN_MAX];
	struct tail_buf b = { buf, buf + sizeof(buf), false };
	struct dentry *d = m->root;

	dcache_lock();
	prepend(&b, "", 1);
	while (d->parent != d) {
		prepend(&b, d->name, strlen(d->name));
		prepend(&b, "/", 1);
		d = d->parent;
	}
	dcache_unlock();
	if (m->root->parent == m->root)
		prepend(&b, "/", 1);
	fmt_mangle(out, b.at, MANGLE_SET);
}

static void show_info(struct mount *m, const char *at, struct fmt *out)
{
	fmt_printf(out, "%d %d %u:%u ", m->id, m->parent_id, major(m->sb->dev), minor(m->sb->dev));
	show_inner_root(m, out);
	fmt_putc(out, ' ');
	fmt_mangle(out, at, MANGLE_SET);
	fmt_putc(out, ' ');
	show_flags(m, out);
	fmt_printf(out, " - %s ", m->sb->fs_name);
	fmt_mangle(out, m->source, MANGLE_SET);
	fmt_puts(out, m->sb->readonly ? " ro" : " rw");
	show_options(m, out);
	fmt_putc(out, '\n');
}

void mount_show(struct path root, struct fmt *out, bool mountinfo)
{
	char *buf = mem_alloc(PATH_LEN_MAX);
	struct mount *top = root.mnt;

	if (!buf) {
		out->overflow = true;
		return;
	}
	mount_tree_lock();
	while (top->parent)
		top = top->parent;
	for (struct mount *m = top; m; m = mount_next(m, top)) {
		bool reached;
		struct path p = { m, m->root };
		/* The mount that holds a changed root shows as "/" though its own root is above. */
		if (m == root.mnt)
			p = root;
		char *at = name_locked(p, root, buf, PATH_LEN_MAX, &reached);
		if (!at || !reached)
			continue;
		if (mountinfo)
			show_info(m, at, out);
		else
			show_plain(m, at, out);
	}
	mount_tree_unlock();
	mem_free(buf);
}

struct superblock *mount_find_dev(struct path root, uint64_t dev)
{
	struct superblock *sb = NULL;
	struct mount *top = root.mnt;

	mount_tree_lock();
	while (top->parent)
		top = top->parent;
	for (struct mount *m = top; m && !sb; m = mount_next(m, top))
		if (m->sb->dev == dev)
			sb = superblock_get(m->sb);
	mount_tree_unlock();
	return sb;
}

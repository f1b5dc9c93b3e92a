/* Name resolution, opening, creation and removal against a small memory file system. */
#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mount.h>

#include "fs/dcache.h"
#include "platform/base/alloc.h"
#include "tests/unit/memfs.h"

static struct memfs_world w;

static int setup(void **state)
{
	(void)state;
	memfs_world_init(&w);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return memfs_world_fini(&w);
}

static int lookup(const char *name, unsigned flags)
{
	struct path p;
	int err = path_lookup(&w.as_root, name, flags, &p);

	if (!err)
		path_put(p);
	return err;
}

static int open_close(const struct fs_lookup *l, const char *name, int flags)
{
	struct file *f;
	int err = vfs_open(l, name, flags, 0666, &f);

	if (!err)
		file_put(f);
	return err;
}

static uint64_t ino_of(const char *name, unsigned flags)
{
	struct path p;
	struct fs_stat st;

	assert_int_equal(path_lookup(&w.as_root, name, flags, &p), 0);
	assert_int_equal(vfs_getattr(p, &st), 0);
	path_put(p);
	return st.ino;
}

static void name_is(const char *name, const char *want)
{
	char buf[PATH_LEN_MAX];
	struct path p;

	assert_int_equal(path_lookup(&w.as_root, name, LOOKUP_FOLLOW, &p), 0);
	assert_int_equal(path_name(p, w.root, buf, sizeof(buf)), (int)strlen(want));
	assert_string_equal(buf, want);
	path_put(p);
}

static void tree(void)
{
	assert_int_equal(vfs_mkdir(&w.as_root, "/a", 0777), 0);
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/b", 0777), 0);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_CREAT | O_WRONLY), 0);
	assert_int_equal(vfs_symlink(&w.as_root, "a/b", "/lb"), 0);
	assert_int_equal(vfs_symlink(&w.as_root, "/a/f", "/lf"), 0);
	assert_int_equal(vfs_symlink(&w.as_root, "loop", "/loop"), 0);
}

static void lookups(void **state)
{
	(void)state;
	tree();
	assert_int_equal(lookup("", 0), -ENOENT);
	assert_int_equal(lookup("", LOOKUP_EMPTY), 0);
	assert_int_equal(lookup("/", 0), 0);
	assert_int_equal(lookup("a//b/../f", 0), 0);
	assert_int_equal(lookup("../../..", 0), 0);
	assert_int_equal(lookup("/a/f/", 0), -ENOTDIR);
	assert_int_equal(lookup("/a/f/.", 0), -ENOTDIR);
	assert_int_equal(lookup("/a/f/x", 0), -ENOTDIR);
	assert_int_equal(lookup("/a/no", 0), -ENOENT);
	assert_int_equal(lookup("/a/no/x", 0), -ENOENT);
	assert_int_equal(lookup("/loop", 0), 0);
	assert_int_equal(lookup("/loop", LOOKUP_FOLLOW), -ELOOP);
	assert_int_equal(lookup("/loop/x", 0), -ELOOP);
	assert_int_equal(lookup("/lf/", 0), -ENOTDIR);
	assert_true(ino_of("/lb/", 0) == ino_of("/a/b", 0));
	assert_true(ino_of("/lb/../f", 0) == ino_of("/lf", LOOKUP_FOLLOW));
	assert_true(ino_of("/lb", 0) != ino_of("/lb", LOOKUP_FOLLOW));
	name_is("/lb", "/a/b");
	name_is("/", "/");
}

static void long_names(void **state)
{
	char name[4200];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[255] = 0;
	assert_int_equal(open_close(&w.as_root, name, O_CREAT | O_RDWR), 0);
	assert_int_equal(lookup(name, 0), 0);
	name[255] = 'n';
	name[256] = 0;
	assert_int_equal(open_close(&w.as_root, name, O_CREAT | O_RDWR), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '/' : '.';
	name[4095] = 0;
	assert_int_equal(lookup(name, 0), 0);
	name[4095] = '.';
	name[4096] = 0;
	assert_int_equal(lookup(name, 0), -ENAMETOOLONG);
}

static void forty_links(void **state)
{
	char from[16], to[16];

	(void)state;
	assert_int_equal(vfs_mkdir(&w.as_root, "l0", 0777), 0);
	for (int i = 1; i <= 41; i++) {
		snprintf(from, sizeof(from), "l%d", i - 1);
		snprintf(to, sizeof(to), "l%d", i);
		assert_int_equal(vfs_symlink(&w.as_root, from, to), 0);
	}
	assert_int_equal(lookup("l40", LOOKUP_FOLLOW), 0);
	assert_int_equal(lookup("l40/.", LOOKUP_FOLLOW), 0);
	assert_int_equal(lookup("l41", LOOKUP_FOLLOW), -ELOOP);
	assert_int_equal(lookup("l41/.", LOOKUP_FOLLOW), -ELOOP);
}

static void opens(void **state)
{
	(void)state;
	tree();
	assert_int_equal(vfs_symlink(&w.as_root, "/a/dangling", "/ld"), 0);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_CREAT | O_EXCL | O_RDWR), -EEXIST);
	assert_int_equal(open_close(&w.as_root, "/ld", O_CREAT | O_EXCL | O_RDWR), -EEXIST);
	assert_int_equal(open_close(&w.as_root, "/ld", O_RDWR), -ENOENT);
	assert_int_equal(open_close(&w.as_root, "/ld", O_CREAT | O_RDWR), 0);
	assert_int_equal(lookup("/a/dangling", 0), 0);
	assert_int_equal(open_close(&w.as_root, "/lf", O_NOFOLLOW | O_RDONLY), -ELOOP);
	assert_int_equal(open_close(&w.as_root, "/lf", O_NOFOLLOW | O_PATH), 0);
	assert_int_equal(open_close(&w.as_root, "/lb", O_NOFOLLOW | O_DIRECTORY), -ENOTDIR);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_DIRECTORY), -ENOTDIR);
	assert_int_equal(open_close(&w.as_root, "/a", O_WRONLY), -EISDIR);
	assert_int_equal(open_close(&w.as_root, "/a", O_CREAT | O_RDONLY), -EISDIR);
	assert_int_equal(open_close(&w.as_root, "/", O_CREAT | O_EXCL), -EEXIST);
	assert_int_equal(open_close(&w.as_root, "/a/new/", O_CREAT | O_RDWR), -EISDIR);
	assert_int_equal(open_close(&w.as_root, "/a/x", O_CREAT | O_DIRECTORY), -EINVAL);
	assert_int_equal(open_close(&w.as_root, "/a", O_TMPFILE | O_RDONLY), -EINVAL);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_TMPFILE | O_RDWR), -ENOTDIR);
	assert_int_equal(open_close(&w.as_root, "/a", O_TMPFILE | O_RDWR), 0);
	assert_int_equal(open_close(&w.as_user, "/a/u", O_CREAT | O_RDWR), -EACCES);
	assert_int_equal(open_close(&w.as_user, "/a/f", O_RDONLY), 0);
	assert_int_equal(open_close(&w.as_user, "/a/f", O_RDWR), -EACCES);
	assert_int_equal(open_close(&w.as_user, "/a/f", O_RDONLY | O_TRUNC), -EACCES);
	assert_int_equal(open_close(&w.as_user, "/a/f", O_RDONLY | O_NOATIME), -EPERM);
}

static void text_busy(void **state)
{
	struct path p;
	struct file *f;

	(void)state;
	tree();
	assert_int_equal(path_lookup(&w.as_root, "/a/f", 0, &p), 0);
	assert_int_equal(inode_deny_write(p.dentry->inode), 0);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_WRONLY), -ETXTBSY);
	assert_int_equal(open_close(&w.as_root, "/a/f", O_RDONLY), 0);
	assert_int_equal(vfs_truncate(p, w.root_cred, 0), -ETXTBSY);
	inode_allow_write(p.dentry->inode);
	assert_int_equal(vfs_open(&w.as_root, "/a/f", O_WRONLY, 0, &f), 0);
	assert_int_equal(inode_deny_write(p.dentry->inode), -ETXTBSY);
	file_put(f);
	assert_int_equal(inode_deny_write(p.dentry->inode), 0);
	inode_allow_write(p.dentry->inode);
	path_put(p);
}

static void creation_errors(void **state)
{
	(void)state;
	tree();
	assert_int_equal(vfs_mkdir(&w.as_root, "/", 0777), -EEXIST);
	assert_int_equal(vfs_mkdir(&w.as_root, ".", 0777), -EEXIST);
	assert_int_equal(vfs_mkdir(&w.as_root, "a/..", 0777), -EEXIST);
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/f/x", 0777), -ENOTDIR);
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/d/", 0777), 0);
	assert_int_equal(vfs_mkdir(&w.as_user, "/a/e", 0777), -EACCES);
	assert_int_equal(vfs_mkdir(&w.as_user, "/a/d", 0777), -EEXIST);
	assert_int_equal(vfs_mknod(&w.as_root, "/a/n/", S_IFIFO | 0600, 0), -ENOENT);
	assert_int_equal(vfs_mknod(&w.as_root, "/a/n", S_IFDIR | 0600, 0), -EPERM);
	assert_int_equal(vfs_mknod(&w.as_root, "/a/n", S_IFLNK | 0600, 0), -EINVAL);
	assert_int_equal(vfs_mknod(&w.as_user, "/a/n", S_IFBLK | 0600, 1), -EPERM);
	assert_int_equal(vfs_symlink(&w.as_root, "", "/a/s"), -ENOENT);
	assert_int_equal(vfs_symlink(&w.as_root, "x", "/a/f"), -EEXIST);
	assert_int_equal(vfs_link(&w.as_root, "/a", &w.as_root, "/a2", 0), -EPERM);
	assert_int_equal(vfs_link(&w.as_root, "/a/f", &w.as_root, "/f2", 0), 0);
	assert_true(ino_of("/a/f", 0) == ino_of("/f2", 0));
	assert_int_equal(vfs_link(&w.as_root, "/no", &w.as_root, "/f2", 0), -ENOENT);
	assert_int_equal(vfs_link(&w.as_root, "/a/f", &w.as_root, "/f2", 0), -EEXIST);
}

static void removal(void **state)
{
	struct path cwd;
	char buf[64];

	(void)state;
	tree();
	assert_int_equal(vfs_unlink(&w.as_root, "/"), -EISDIR);
	assert_int_equal(vfs_unlink(&w.as_root, "."), -EISDIR);
	assert_int_equal(vfs_unlink(&w.as_root, "/a"), -EISDIR);
	assert_int_equal(vfs_unlink(&w.as_root, "/a/f/"), -ENOTDIR);
	assert_int_equal(vfs_unlink(&w.as_root, "/no/"), -ENOENT);
	assert_int_equal(vfs_rmdir(&w.as_root, "/"), -EBUSY);
	assert_int_equal(vfs_rmdir(&w.as_root, "a/."), -EINVAL);
	assert_int_equal(vfs_rmdir(&w.as_root, "a/.."), -ENOTEMPTY);
	assert_int_equal(vfs_rmdir(&w.as_root, "/a"), -ENOTEMPTY);
	assert_int_equal(vfs_rmdir(&w.as_root, "/a/f"), -ENOTDIR);
	assert_int_equal(vfs_rmdir(&w.as_root, "/lb"), -ENOTDIR);
	assert_int_equal(vfs_unlink(&w.as_user, "/a/f"), -EACCES);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &cwd), 0);
	assert_int_equal(vfs_rmdir(&w.as_root, "/a/b"), 0);
	assert_int_equal(lookup("/a/b", 0), -ENOENT);
	struct fs_lookup in = w.as_root;
	in.base = cwd;
	assert_int_equal(vfs_mkdir(&in, "x", 0777), -ENOENT);
	assert_int_equal(open_close(&in, "x", O_CREAT | O_RDWR), -ENOENT);
	assert_true(path_name(cwd, w.root, buf, sizeof(buf)) > 0);
	assert_string_equal(buf, "/a/b (deleted)");
	path_put(cwd);
}

static void sticky(void **state)
{
	struct path p;
	struct iattr a = { .valid = ATTR_MODE, .mode = 01777 };

	(void)state;
	assert_int_equal(vfs_mkdir(&w.as_root, "/t", 0777), 0);
	assert_int_equal(path_lookup(&w.as_root, "/t", 0, &p), 0);
	assert_int_equal(vfs_setattr(p, w.user_cred, &a), -EPERM);
	assert_int_equal(vfs_setattr(p, w.root_cred, &a), 0);
	path_put(p);
	assert_int_equal(open_close(&w.as_root, "/t/r", O_CREAT | O_RDWR), 0);
	assert_int_equal(open_close(&w.as_user, "/t/u", O_CREAT | O_RDWR), 0);
	assert_int_equal(vfs_unlink(&w.as_user, "/t/r"), -EPERM);
	assert_int_equal(vfs_rename(&w.as_user, "/t/u", &w.as_user, "/t/r", 0), -EPERM);
	assert_int_equal(vfs_link(&w.as_user, "/t/r", &w.as_user, "/t/l", 0), -EPERM);
	assert_int_equal(vfs_symlink(&w.as_user, "r", "/t/s"), 0);
	assert_int_equal(open_close(&w.as_user, "/t/s", O_RDONLY), 0);
	assert_int_equal(open_close(&w.as_root, "/t/s", O_RDONLY), -EACCES);
	assert_int_equal(vfs_unlink(&w.as_user, "/t/u"), 0);
}

static void renames(void **state)
{
	struct path p;
	char buf[600], name[300];

	(void)state;
	tree();
	assert_int_equal(vfs_rename(&w.as_root, "/no", &w.as_root, "/x", 0), -ENOENT);
	assert_int_equal(vfs_rename(&w.as_root, "/a", &w.as_root, "/a/b/c", 0), -EINVAL);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/a", 0), -ENOTEMPTY);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/a/b", 0), -EISDIR);
	assert_int_equal(vfs_rename(&w.as_root, "/a/b", &w.as_root, "/a/f", 0), -ENOTDIR);
	assert_int_equal(vfs_rename(&w.as_root, ".", &w.as_root, "/x", 0), -EBUSY);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/x/", 0), -ENOTDIR);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/lf", RENAME_NOREPLACE),
			 -EEXIST);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/x", 8), -EINVAL);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &p), 0);
	memset(name, 'q', sizeof(name));
	name[0] = '/';
	name[201] = 0;
	assert_int_equal(vfs_rename(&w.as_root, "/a/b", &w.as_root, name, 0), 0);
	assert_int_equal(path_name(p, w.root, buf, sizeof(buf)), 201);
	assert_string_equal(buf, name);
	assert_int_equal(lookup("/a/b", 0), -ENOENT);
	uint64_t f = ino_of("/a/f", 0), q = ino_of(name, 0);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, name, RENAME_EXCHANGE), 0);
	assert_true(ino_of("/a/f", 0) == q && ino_of(name, 0) == f);
	assert_int_equal(path_name(p, w.root, buf, sizeof(buf)), 4);
	path_put(p);
	assert_int_equal(vfs_rename(&w.as_root, name, &w.as_root, "/a/g", 0), 0);
	assert_int_equal(vfs_mkdir(&w.as_root, "/d", 0777), 0);
	assert_int_equal(vfs_rename(&w.as_root, "/d", &w.as_root, "/a/f", 0), 0);
	assert_int_equal(lookup("/d", 0), -ENOENT);
}

static void resolve_flags(void **state)
{
	struct path base, p;
	struct fs_lookup l;

	(void)state;
	tree();
	assert_int_equal(vfs_symlink(&w.as_root, "/f", "/a/abs"), 0);
	assert_int_equal(vfs_symlink(&w.as_root, "../../lf", "/a/b/up"), 0);
	assert_int_equal(path_lookup(&w.as_root, "/a", 0, &base), 0);
	l = w.as_root;
	l.base = base;
	l.resolve = RESOLVE_BENEATH;
	assert_int_equal(path_lookup(&l, "/a", LOOKUP_FOLLOW, &p), -EXDEV);
	assert_int_equal(path_lookup(&l, "..", LOOKUP_FOLLOW, &p), -EXDEV);
	assert_int_equal(path_lookup(&l, "b/../..", LOOKUP_FOLLOW, &p), -EXDEV);
	assert_int_equal(path_lookup(&l, "abs", LOOKUP_FOLLOW, &p), -EXDEV);
	assert_int_equal(path_lookup(&l, "b/up", LOOKUP_FOLLOW, &p), -EXDEV);
	assert_int_equal(path_lookup(&l, "b/../f", LOOKUP_FOLLOW, &p), 0);
	path_put(p);
	l.resolve = RESOLVE_IN_ROOT;
	assert_int_equal(path_lookup(&l, "abs", LOOKUP_FOLLOW, &p), 0);
	path_put(p);
	assert_int_equal(path_lookup(&l, "/../../f", LOOKUP_FOLLOW, &p), 0);
	path_put(p);
	l.resolve = RESOLVE_NO_SYMLINKS;
	assert_int_equal(path_lookup(&l, "abs", LOOKUP_FOLLOW, &p), -ELOOP);
	assert_int_equal(path_lookup(&l, "abs", 0, &p), 0);
	path_put(p);
	path_put(base);
}

static void mounts(void **state)
{
	struct path p, q;
	struct fs_lookup l = w.as_root;
	struct fmt out;

	(void)state;
	tree();
	uint64_t under = ino_of("/a/b", 0);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &p), 0);
	assert_int_equal(mount_attach(p, memfs_new(0, 0), "second", MS_RDONLY), 0);
	path_put(p);
	assert_true(ino_of("/a/b", 0) != under);
	assert_true(ino_of("/a/b/..", 0) == ino_of("/a", 0));
	name_is("/a/b", "/a/b");
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/b/x", 0777), -EROFS);
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/b", 0777), -EEXIST);
	assert_int_equal(vfs_rmdir(&w.as_root, "/a/b"), -EBUSY);
	assert_int_equal(vfs_rename(&w.as_root, "/a/b", &w.as_root, "/z", 0), -EBUSY);
	assert_int_equal(vfs_rename(&w.as_root, "/a/f", &w.as_root, "/a/b/f", 0), -EXDEV);
	assert_int_equal(vfs_link(&w.as_root, "/a/f", &w.as_root, "/a/b/f", 0), -EROFS);
	l.resolve = RESOLVE_NO_XDEV;
	assert_int_equal(path_lookup(&l, "/a/b", 0, &p), -EXDEV);
	fmt_init_heap(&out);
	mount_show(w.root, &out, false);
	assert_string_equal(out.buf,
			    "mem / memfs rw,relatime 0 0\nsecond /a/b memfs ro,relatime 0 0\n");
	fmt_fini(&out);
	/* A bind of the root with all below it, then both mounts go at once. */
	assert_int_equal(vfs_mkdir(&w.as_root, "/bind", 0777), 0);
	assert_int_equal(path_lookup(&w.as_root, "/bind", 0, &p), 0);
	assert_int_equal(mount_bind(p, w.root, 0, true), 0);
	path_put(p);
	assert_true(ino_of("/bind/a/b", 0) == ino_of("/a/b", 0));
	assert_int_equal(path_lookup(&w.as_root, "/bind/a/b", 0, &q), 0);
	assert_int_equal(path_lookup(&w.as_root, "/bind", 0, &p), 0);
	assert_int_equal(mount_detach(p, 0), -EBUSY);
	assert_int_equal(mount_detach(p, MNT_DETACH), 0);
	path_put(p);
	path_put(q);
	assert_int_equal(path_lookup(&w.as_root, "/bind", 0, &p), 0);
	assert_int_equal(mount_detach(p, 0), -EINVAL);
	path_put(p);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &p), 0);
	assert_int_equal(mount_detach(p, 0), 0);
	path_put(p);
	assert_true(ino_of("/a/b", 0) == under);
}

static void move_and_pivot(void **state)
{
	struct path p, q;

	(void)state;
	tree();
	assert_int_equal(vfs_mkdir(&w.as_root, "/n", 0777), 0);
	assert_int_equal(path_lookup(&w.as_root, "/n", 0, &p), 0);
	assert_int_equal(mount_attach(p, memfs_new(0, 0), "second", 0), 0);
	path_put(p);
	assert_int_equal(path_lookup(&w.as_root, "/n", 0, &p), 0);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &q), 0);
	assert_int_equal(mount_move(p, q), 0);
	path_put(p);
	path_put(q);
	assert_int_equal(vfs_mkdir(&w.as_root, "/a/b/old", 0777), 0);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &p), 0);
	assert_int_equal(path_lookup(&w.as_root, "/a/b/old", 0, &q), 0);
	assert_int_equal(mount_pivot(p, q, w.root), 0);
	path_put(q);
	/* Back again, so that the world can be taken down. */
	struct fs_lookup in = w.as_root;
	in.base = p;
	assert_int_equal(path_lookup(&in, "old", 0, &q), 0);
	assert_ptr_equal(q.mnt, w.root_mnt);
	struct path point;
	assert_int_equal(path_lookup(&in, "old/a/b", 0, &point), 0);
	assert_int_equal(mount_pivot(q, point, p), 0);
	path_put(point);
	path_put(q);
	path_put(p);
	assert_int_equal(path_lookup(&w.as_root, "/a/b", 0, &p), 0);
	assert_int_equal(mount_detach(p, 0), 0);
	path_put(p);
}

/* Every operation with the n-th allocation failing: no leak, and -ENOMEM or success. */
static void failing_allocations(void **state)
{
	(void)state;
	tree();
	for (unsigned n = 1; n < 60; n++) {
		mem_fail_nth(n);
		int e1 = open_close(&w.as_root, "/lf", O_CREAT | O_RDWR);
		int e2 = vfs_mkdir(&w.as_root, "/a/dir", 0777);
		int e3 = vfs_rename(&w.as_root, "/a/dir", &w.as_root,
				    "/a-name-that-is-too-long-to-be-kept-in-place", 0);
		mem_fail_nth(0);
		assert_true(e1 == 0 || e1 == -ENOMEM);
		assert_true(e2 == 0 || e2 == -ENOMEM);
		assert_true(e3 == 0 || e3 == -ENOMEM || e3 == -ENOENT);
		if (e3 == 0)
			assert_int_equal(vfs_rmdir(&w.as_root,
						   "/a-name-that-is-too-long-to-be-kept-in-place"),
					 0);
		else if (e2 == 0)
			assert_int_equal(vfs_rmdir(&w.as_root, "/a/dir"), 0);
		dcache_purge(w.root_mnt->sb);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(lookups),
		T(long_names),
		T(forty_links),
		T(opens),
		T(text_busy),
		T(creation_errors),
		T(removal),
		T(sticky),
		T(renames),
		T(resolve_flags),
		T(mounts),
		T(move_and_pivot),
		T(failing_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

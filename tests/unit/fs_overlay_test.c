/* overlayfs through the VFS, over a tmpfs that is filled first (and once over the real gofer). */
#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/dcache.h"
#include "fs/gofer_client.h"
#include "fs/goferfs.h"
#include "fs/overlayfs.h"
#include "fs/tmpfs.h"
#include "gofer/gofer.h"
#include "platform/base/alloc.h"
#include "tests/unit/fs_rig.h"

static struct fs_rig r, below;

/* The lower tree: d/{e/x, f, g = hard link of f}, f, s -> d/f, big, old (times of long ago). */
static void fill(struct fs_rig *l)
{
	static char big[200 * 1024];
	struct iattr old = { .valid = ATTR_ATIME | ATTR_MTIME,
			     .atime = { 1000, 5 },
			     .mtime = { 2000, 6 } };
	struct path p;
	struct file *f;
	memset(big, 'b', sizeof(big));
	assert_int_equal(vfs_mkdir(&l->at, "/d", 0755), 0);
	assert_int_equal(vfs_mkdir(&l->at, "/d/e", 0755), 0);
	assert_int_equal(rig_put(l, "/d/e/x", "deep"), 0);
	assert_int_equal(rig_put(l, "/d/f", "lower"), 0);
	assert_int_equal(vfs_link(&l->at, "/d/f", &l->at, "/d/g", 0), 0);
	assert_int_equal(rig_put(l, "/f", "top"), 0);
	assert_int_equal(vfs_symlink(&l->at, "d/f", "/s"), 0);
	assert_int_equal(rig_open(l, "/big", O_CREAT | O_RDWR, 0640, &f), 0);
	assert_int_equal(vfs_ftruncate(f, 1 << 20), 0);
	assert_int_equal(rig_pwrite(f, big, sizeof(big), 1 << 18), sizeof(big));
	file_put(f);
	assert_int_equal(rig_put(l, "/old", "old"), 0);
	assert_int_equal(rig_setxattr(l, "/old", "user.k", "val"), 0);
	assert_int_equal(path_lookup(&l->at, "/old", 0, &p), 0);
	assert_int_equal(vfs_setattr(p, l->cred, &old), 0);
	path_put(p);
}

static int setup(void **state)
{
	struct superblock *lower, *upper, *sb;
	(void)state;
	fs_rig_begin(&r);
	fs_rig_begin(&below);
	assert_int_equal(tmpfs_new("mode=0755", &lower), 0);
	fs_rig_mount(&below, superblock_get(lower), 0);
	fill(&below);
	assert_int_equal(tmpfs_new("mode=0755", &upper), 0);
	assert_int_equal(overlayfs_new(lower, upper, &sb), 0);
	fs_rig_mount(&r, sb, 0);
	return 0;
}

static const char *const lower_files[][2] = {
	{ "/d/e/x", "deep" }, { "/d/f", "lower" }, { "/d/g", "lower" },
	{ "/f", "top" },      { "/s", "lower" },   { "/old", "old" },
};

/* Whatever was done above, below is as it was. */
static void check_below(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(lower_files); i++)
		assert_string_equal(rig_text(&below, lower_files[i][0]), lower_files[i][1]);
	assert_string_equal(rig_names(&below, "/"), "big d f old s");
	assert_string_equal(rig_names(&below, "/d"), "e f g");
}

static int teardown(void **state)
{
	(void)state;
	check_below();
	fs_rig_unmount(&r);
	fs_rig_unmount(&below);
	fs_rig_end(&r);
	return 0;
}

static struct fs_stat st_of(const char *name)
{
	struct fs_stat st;
	assert_int_equal(rig_stat(&r, name, &st), 0);
	return st;
}

/* The changes must survive the loss of every cached name. */
static void forget(void)
{
	dcache_purge(r.mnt->sb);
}

static void reading(void **state)
{
	(void)state;
	struct fs_stat lower;
	for (size_t i = 0; i < ARRAY_SIZE(lower_files); i++)
		assert_string_equal(rig_text(&r, lower_files[i][0]), lower_files[i][1]);
	assert_string_equal(rig_names(&r, "/"), "big d f old s");
	assert_int_equal(rig_stat(&below, "/f", &lower), 0);
	assert_int_equal(st_of("/f").ino, lower.ino);
	assert_true(st_of("/f").dev == r.mnt->sb->dev && lower.dev != r.mnt->sb->dev);
	assert_int_equal(st_of("/d/f").nlink, 2);
}

static void copy_up(void **state)
{
	(void)state;
	char buf[8];
	struct file *before, *after;
	uint64_t ino = st_of("/f").ino;
	assert_int_equal(rig_open(&r, "/f", O_RDONLY, 0, &before), 0);
	assert_int_equal(rig_append(&r, "/f", "+"), 0);
	assert_string_equal(rig_text(&r, "/f"), "top+");
	assert_int_equal(st_of("/f").ino, ino);
	assert_int_equal(rig_pread(before, buf, 8, 0), 3);
	assert_int_equal(rig_open(&r, "/f", O_RDONLY, 0, &after), 0);
	assert_int_equal(rig_pread(after, buf, 8, 0), 4);
	assert_int_equal(rig_append(&r, "/f", "+"), 0);
	assert_int_equal(rig_pread(after, buf, 8, 0), 5);
	file_put(before);
	file_put(after);
	forget();
	assert_string_equal(rig_text(&r, "/f"), "top++");
	assert_int_equal(st_of("/f").ino, ino);
	/* Opening for writing without writing changes nothing visible. */
	assert_int_equal(rig_open(&r, "/old", O_RDWR, 0, &after), 0);
	file_put(after);
	struct fs_stat st = st_of("/old");
	assert_int_equal(st.mtime.tv_sec, 2000);
	assert_int_equal(st.mtime.tv_nsec, 6);
	assert_int_equal(st.atime.tv_sec, 1000);
	assert_int_equal(rig_getxattr(&r, "/old", "user.k", buf, sizeof(buf)), 3);
	assert_int_equal(rig_setxattr(&r, "/old", "user.n", "v"), 0);
	assert_int_equal(rig_getxattr(&below, "/old", "user.n", buf, sizeof(buf)), -ENODATA);
}

static void truncating(void **state)
{
	(void)state;
	assert_int_equal(rig_put(&r, "/f", "new"), 0);
	assert_string_equal(rig_text(&r, "/f"), "new");
	assert_int_equal(rig_truncate(&r, "/d/f", 2), 0);
	forget();
	assert_string_equal(rig_text(&r, "/d/f"), "lo");
	assert_string_equal(rig_text(&r, "/d/g"), "lo");
	assert_int_equal(rig_truncate(&r, "/old", 5), 0);
	assert_int_equal(st_of("/old").size, 5);
}

static void holes(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(rig_chmod(&r, "/big", 0600), 0);
	struct fs_stat st = st_of("/big");
	assert_int_equal(st.mode, S_IFREG | 0600);
	assert_int_equal(st.size, 1 << 20);
	assert_int_equal(st.blocks, 400);
	assert_int_equal(rig_open(&r, "/big", O_RDONLY, 0, &f), 0);
	assert_int_equal(f->ops->seek(f, 0, SEEK_DATA), 1 << 18);
	char c[2];
	assert_int_equal(rig_pread(f, c, 2, (1 << 18) + 204799), 2);
	assert_int_equal(c[0], 'b');
	assert_int_equal(c[1], 0);
	file_put(f);
	/* So far only the attributes are above. Now the data, with its holes. */
	struct fs_statfs before, after;
	assert_int_equal(r.mnt->sb->ops->statfs(r.mnt->sb, &before), 0);
	assert_int_equal(rig_append(&r, "/big", "x"), 0);
	assert_int_equal(r.mnt->sb->ops->statfs(r.mnt->sb, &after), 0);
	assert_int_equal(before.bfree - after.bfree, 51);
	forget();
	st = st_of("/big");
	assert_int_equal(st.size, (1 << 20) + 1);
	assert_int_equal(st.blocks, 408);
	assert_int_equal(st.mode, S_IFREG | 0600);
	assert_int_equal(rig_open(&r, "/big", O_RDONLY, 0, &f), 0);
	assert_int_equal(f->ops->seek(f, 0, SEEK_DATA), 1 << 18);
	assert_int_equal(rig_pread(f, c, 2, (1 << 18) + 204799), 2);
	assert_int_equal(c[0], 'b');
	file_put(f);
}

static void removal(void **state)
{
	(void)state;
	struct fs_stat st;
	struct file *f;
	char buf[8];
	assert_int_equal(rig_open(&r, "/f", O_RDONLY, 0, &f), 0);
	assert_int_equal(vfs_unlink(&r.at, "/f"), 0);
	assert_int_equal(rig_pread(f, buf, 8, 0), 3);
	assert_int_equal(f->path.dentry->inode->ops->getattr(f->path.dentry->inode, &st), 0);
	assert_int_equal(st.nlink, 0);
	file_put(f);
	forget();
	assert_int_equal(rig_stat(&r, "/f", &st), -ENOENT);
	assert_string_equal(rig_names(&r, "/"), "big d old s");
	assert_int_equal(vfs_rmdir(&r.at, "/d"), -ENOTEMPTY);
	assert_int_equal(vfs_unlink(&r.at, "/d/f"), 0);
	assert_int_equal(st_of("/d/g").nlink, 1);
	assert_int_equal(vfs_unlink(&r.at, "/d/g"), 0);
	assert_int_equal(vfs_unlink(&r.at, "/d/e/x"), 0);
	assert_int_equal(vfs_rmdir(&r.at, "/d/e"), 0);
	assert_int_equal(vfs_rmdir(&r.at, "/d"), 0);
	forget();
	assert_string_equal(rig_names(&r, "/"), "big old s");
	/* A new directory of the same name shows nothing of the old one. */
	assert_int_equal(vfs_mkdir(&r.at, "/d", 0700), 0);
	forget();
	assert_string_equal(rig_names(&r, "/d"), "");
	assert_int_equal(st_of("/d").nlink, 2);
	assert_int_equal(rig_put(&r, "/f", "again"), 0);
	forget();
	assert_string_equal(rig_text(&r, "/f"), "again");
	assert_int_equal(vfs_unlink(&r.at, "/f"), 0);
	forget();
	assert_int_equal(rig_stat(&r, "/f", &st), -ENOENT);
}

static void merged_listing(void **state)
{
	(void)state;
	assert_int_equal(rig_put(&r, "/d/n", "new"), 0);
	assert_int_equal(vfs_mkdir(&r.at, "/d/m", 0755), 0);
	assert_int_equal(rig_put(&r, "/d/f", "changed"), 0);
	assert_int_equal(vfs_unlink(&r.at, "/d/g"), 0);
	forget();
	assert_string_equal(rig_names(&r, "/d"), "e f m n");
	assert_string_equal(rig_text(&r, "/d/n"), "new");
	assert_string_equal(rig_text(&r, "/d/e/x"), "deep");
	assert_string_equal(rig_text(&r, "/s"), "changed");
}

static void rename_dirs(void **state)
{
	(void)state;
	struct fs_stat st;
	uint64_t ino = st_of("/d").ino, x = st_of("/d/e/x").ino;
	assert_int_equal(rig_put(&r, "/d/e/new", "n"), 0);
	assert_int_equal(vfs_rename(&r.at, "/d", &r.at, "/moved", 0), 0);
	forget();
	assert_int_equal(rig_stat(&r, "/d", &st), -ENOENT);
	assert_string_equal(rig_names(&r, "/"), "big f moved old s");
	assert_string_equal(rig_names(&r, "/moved"), "e f g");
	assert_string_equal(rig_names(&r, "/moved/e"), "new x");
	assert_string_equal(rig_text(&r, "/moved/e/x"), "deep");
	assert_int_equal(st_of("/moved").ino, ino);
	assert_int_equal(st_of("/moved/e/x").ino, x);
	assert_int_equal(rig_append(&r, "/moved/e/x", "er"), 0);
	assert_int_equal(vfs_rename(&r.at, "/moved/e", &r.at, "/e", 0), 0);
	forget();
	assert_string_equal(rig_text(&r, "/e/x"), "deeper");
	assert_string_equal(rig_names(&r, "/moved"), "f g");
	assert_int_equal(vfs_rename(&r.at, "/e", &r.at, "/moved", 0), -ENOTEMPTY);
	assert_int_equal(vfs_mkdir(&r.at, "/d", 0755), 0);
	assert_int_equal(vfs_rename(&r.at, "/moved", &r.at, "/d", 0), 0);
	forget();
	assert_string_equal(rig_names(&r, "/d"), "f g");
	assert_int_equal(vfs_rename(&r.at, "/d", &r.at, "/e", RENAME_EXCHANGE), 0);
	forget();
	assert_string_equal(rig_names(&r, "/d"), "new x");
	assert_string_equal(rig_names(&r, "/e"), "f g");
}

static void rename_files(void **state)
{
	(void)state;
	struct fs_stat st;
	uint64_t ino = st_of("/f").ino;
	assert_int_equal(vfs_rename(&r.at, "/f", &r.at, "/d/f", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(vfs_rename(&r.at, "/f", &r.at, "/d/f", 0), 0);
	forget();
	assert_string_equal(rig_text(&r, "/d/f"), "top");
	assert_int_equal(st_of("/d/f").ino, ino);
	assert_string_equal(rig_text(&r, "/d/g"), "lower");
	assert_int_equal(st_of("/d/g").nlink, 1);
	assert_int_equal(vfs_rename(&r.at, "/d/f", &r.at, "/t", 0), 0);
	assert_int_equal(vfs_unlink(&r.at, "/t"), 0);
	forget();
	assert_int_equal(rig_stat(&r, "/f", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/d/f", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/t", &st), -ENOENT);
	assert_int_equal(vfs_rename(&r.at, "/old", &r.at, "/new", RENAME_WHITEOUT), 0);
	forget();
	assert_true(S_ISCHR(st_of("/old").mode));
	assert_string_equal(rig_text(&r, "/new"), "old");
}

static void hard_links(void **state)
{
	(void)state;
	assert_int_equal(rig_append(&r, "/d/f", "!"), 0);
	forget();
	/* The other name of the lower file shows the change too, even when the first one is gone.
	 */
	assert_string_equal(rig_text(&r, "/d/g"), "lower!");
	assert_int_equal(st_of("/d/g").nlink, 2);
	assert_int_equal(vfs_unlink(&r.at, "/d/f"), 0);
	forget();
	assert_string_equal(rig_text(&r, "/d/g"), "lower!");
	assert_int_equal(st_of("/d/g").nlink, 1);
	assert_int_equal(vfs_link(&r.at, "/f", &r.at, "/link", 0), 0);
	assert_int_equal(st_of("/f").nlink, 2);
	assert_int_equal(st_of("/link").ino, st_of("/f").ino);
	assert_int_equal(rig_append(&r, "/link", "+"), 0);
	assert_int_equal(vfs_unlink(&r.at, "/link"), 0);
	forget();
	assert_string_equal(rig_text(&r, "/f"), "top+");
}

static void attributes(void **state)
{
	(void)state;
	struct fs_stat st;
	assert_int_equal(rig_chmod(&r, "/d", 0700), 0);
	forget();
	st = st_of("/d");
	assert_int_equal(st.mode, S_IFDIR | 0700);
	assert_string_equal(rig_names(&r, "/d"), "e f g");
	struct iattr a = { .valid = ATTR_UID, .uid = 7 };
	struct path p;
	assert_int_equal(path_lookup(&r.at, "/s", 0, &p), 0);
	assert_int_equal(vfs_setattr(p, r.cred, &a), 0);
	path_put(p);
	forget();
	assert_int_equal(st_of("/s").uid, 7);
	assert_string_equal(rig_text(&r, "/s"), "lower");
}

/* Names that come and go must leave nothing behind. */
static void no_litter(void **state)
{
	(void)state;
	size_t before = 0;
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof(name), "/d/tmp%d", i);
		assert_int_equal(rig_put(&r, name, "x"), 0);
		assert_int_equal(vfs_unlink(&r.at, name), 0);
		forget();
		if (i == 2)
			before = mem_live_count();
	}
	assert_int_equal(mem_live_count(), before);
}

static void tmpfile_and_link(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(rig_open(&r, "/d", O_TMPFILE | O_RDWR, 0600, &f), 0);
	assert_int_equal(rig_pwrite(f, "data", 4, 0), 4);
	struct fs_lookup by_file = r.at;
	by_file.base = f->path;
	assert_int_equal(vfs_link(&by_file, "", &r.at, "/d/named", LOOKUP_EMPTY), 0);
	file_put(f);
	forget();
	assert_string_equal(rig_text(&r, "/d/named"), "data");
}

static void failing_allocations(void **state)
{
	(void)state;
	struct fs_stat st;
	for (unsigned n = 1; n < 100; n++) {
		mem_fail_nth(n);
		int e1 = rig_chmod(&r, "/d/e/x", 0600);
		int e2 = rig_append(&r, "/d/f", "x");
		int e3 = vfs_rename(&r.at, "/d/e", &r.at, "/e", 0);
		int e4 = vfs_unlink(&r.at, "/old");
		int e5 = vfs_symlink(&r.at, "x", "/sym");
		int e6 = rig_stat(&r, "/big", &st);
		mem_fail_nth(0);
		assert_true(e1 == 0 || e1 == -ENOMEM || e1 == -ENOENT);
		assert_true(e2 == 0 || e2 == -ENOMEM);
		assert_true(e3 == 0 || e3 == -ENOMEM || e3 == -ENOENT);
		assert_true(e4 == 0 || e4 == -ENOMEM || e4 == -ENOENT);
		assert_true(e5 == 0 || e5 == -ENOMEM || e5 == -EEXIST);
		assert_true(e6 == 0 || e6 == -ENOMEM);
		/* A new overlay now and then, so that the first change fails in each place. */
		if (n % 3 == 0) {
			teardown(NULL);
			setup(NULL);
		}
	}
}

/* What everybody uses: over a tree of the host. */
static void over_gofer(void **state)
{
	(void)state;
	char top[150], line[400];
	struct superblock *lower, *upper, *sb;
	struct gofer_client *client;
	struct gofer_export e = { top, false };
	struct gofer_config cfg = { .exports = &e, .export_count = 1 };
	int fd, pid, status;
	rig_temp_dir(top, sizeof(top));
	snprintf(line, sizeof(line),
		 "cd %s && mkdir -p a/b && echo one >a/f && ln a/f a/g && ln -s f a/l", top);
	assert_int_equal(system(line), 0);
	fs_rig_begin(&r);
	assert_int_equal(gofer_start(&cfg, &fd, &pid), 0);
	assert_int_equal(gofer_client_new(fd, &client), 0);
	assert_int_equal(goferfs_new(client, 0, true, &lower), 0);
	assert_int_equal(tmpfs_new("mode=0755", &upper), 0);
	assert_int_equal(overlayfs_new(lower, upper, &sb), 0);
	fs_rig_mount(&r, sb, geteuid());
	assert_string_equal(rig_text(&r, "/a/l"), "one\n");
	assert_int_equal(rig_append(&r, "/a/f", "two\n"), 0);
	assert_int_equal(rig_put(&r, "/a/new", "three\n"), 0);
	assert_int_equal(vfs_rename(&r.at, "/a", &r.at, "/c", 0), 0);
	forget();
	assert_string_equal(rig_text(&r, "/c/l"), "one\ntwo\n");
	assert_string_equal(rig_text(&r, "/c/g"), "one\ntwo\n");
	assert_string_equal(rig_names(&r, "/c"), "b f g l new");
	assert_string_equal(rig_names(&r, "/"), "c");
	/* An edit of the host by replacement does not bring back what the guest changed... */
	snprintf(line, sizeof(line), "cd %s && echo host >t && mv t a/f && echo fresh >a/fresh",
		 top);
	assert_int_equal(system(line), 0);
	usleep(1100000);
	assert_string_equal(rig_text(&r, "/c/f"), "one\ntwo\n");
	/* ...and one beside it shows. */
	assert_string_equal(rig_text(&r, "/c/fresh"), "fresh\n");
	snprintf(line, sizeof(line), "test \"$(cat %s/a/g %s/a/f)\" = \"one\nhost\"", top, top);
	assert_int_equal(system(line), 0);
	fs_rig_unmount(&r);
	gofer_client_put(client);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fs_rig_end(&r);
	snprintf(line, sizeof(line), "rm -rf %s", top);
	assert_int_equal(system(line), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(reading),
		T(copy_up),
		T(truncating),
		T(holes),
		T(removal),
		T(merged_listing),
		T(rename_dirs),
		T(rename_files),
		T(hard_links),
		T(attributes),
		T(no_litter),
		T(tmpfile_and_link),
		T(failing_allocations),
		cmocka_unit_test(over_gofer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

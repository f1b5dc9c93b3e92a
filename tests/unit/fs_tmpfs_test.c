/* tmpfs through the VFS: names, data in both forms, holes, limits, memfd, failing allocations. */
#include <errno.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "fs/dcache.h"
#include "fs/tmpfs.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "tests/unit/fs_rig.h"

static struct fs_rig r;

static int setup_with(const char *options)
{
	struct superblock *sb;
	fs_rig_begin(&r);
	if (tmpfs_new(options, &sb) != 0)
		return -1;
	fs_rig_mount(&r, sb, 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(NULL);
}

static int setup_small(void **state)
{
	(void)state;
	return setup_with("size=64k,nr_inodes=8,mode=0755");
}

static int teardown(void **state)
{
	(void)state;
	fs_rig_unmount(&r);
	fs_rig_end(&r);
	return 0;
}

static struct fs_stat st_of(const char *name)
{
	struct fs_stat st;
	assert_int_equal(rig_stat(&r, name, &st), 0);
	return st;
}

static void names(void **state)
{
	(void)state;
	assert_int_equal(st_of("/").mode, S_IFDIR | 01777);
	assert_int_equal(vfs_mkdir(&r.at, "/d", 0755), 0);
	assert_int_equal(vfs_mkdir(&r.at, "/d/e", 02755), 0);
	assert_int_equal(st_of("/").nlink, 3);
	assert_int_equal(st_of("/d").nlink, 3);
	assert_int_equal(rig_put(&r, "/d/f", "hello"), 0);
	assert_int_equal(vfs_link(&r.at, "/d/f", &r.at, "/g", 0), 0);
	assert_int_equal(st_of("/g").nlink, 2);
	assert_string_equal(rig_text(&r, "/g"), "hello");
	assert_int_equal(vfs_symlink(&r.at, "d/f", "/s"), 0);
	assert_string_equal(rig_text(&r, "/s"), "hello");
	assert_int_equal(st_of("/s").size, 3);
	assert_string_equal(rig_names(&r, "/"), "d g s");
	assert_int_equal(vfs_rmdir(&r.at, "/d"), -ENOTEMPTY);
	assert_int_equal(vfs_unlink(&r.at, "/d/f"), 0);
	assert_int_equal(st_of("/g").nlink, 1);
	assert_int_equal(vfs_rmdir(&r.at, "/d/e"), 0);
	assert_int_equal(vfs_rmdir(&r.at, "/d"), 0);
	assert_int_equal(st_of("/").nlink, 2);
	assert_string_equal(rig_names(&r, "/"), "g s");
}

static void many_names(void **state)
{
	(void)state;
	char name[32], buf[64];
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "/n%d", i * 7919 % 500);
		assert_int_equal(rig_put(&r, name, ""), 0);
	}
	assert_int_equal(rig_list(&r, "/", buf, sizeof(buf)), 500);
	for (int i = 0; i < 500; i += 2) {
		snprintf(name, sizeof(name), "/n%d", i);
		assert_int_equal(vfs_unlink(&r.at, name), 0);
	}
	assert_int_equal(rig_list(&r, "/", buf, sizeof(buf)), 250);
}

struct one_sink {
	struct dir_sink sink;
	char name[32];
};

static int take_one(struct dir_sink *s, const char *name, uint64_t ino, unsigned type, int64_t off)
{
	struct one_sink *o = container_of(s, struct one_sink, sink);
	(void)ino;
	(void)type;
	(void)off;
	if (o->name[0])
		return 1;
	snprintf(o->name, sizeof(o->name), "%s", name);
	return 0;
}

/* What is there all the time is seen exactly once, whatever else comes and goes. */
static void listing_under_change(void **state)
{
	(void)state;
	struct file *f;
	char name[32];
	int seen = 0;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "/keep%d", i);
		assert_int_equal(rig_put(&r, name, ""), 0);
		snprintf(name, sizeof(name), "/go%d", i);
		assert_int_equal(rig_put(&r, name, ""), 0);
	}
	assert_int_equal(rig_open(&r, "/", O_RDONLY, 0, &f), 0);
	for (int round = 0; round < 200; round++) {
		struct one_sink o = { .sink.emit = take_one };
		assert_int_equal(f->ops->readdir(f, &o.sink, &f->pos), 0);
		if (!o.name[0])
			break;
		seen += strncmp(o.name, "keep", 4) == 0;
		snprintf(name, sizeof(name), "/go%d", round % 20);
		(void)!vfs_unlink(&r.at, name);
		snprintf(name, sizeof(name), "/new%d", round);
		if (round < 40)
			assert_int_equal(rig_put(&r, name, ""), 0);
	}
	file_put(f);
	assert_int_equal(seen, 20);
}

static void renames(void **state)
{
	(void)state;
	assert_int_equal(vfs_mkdir(&r.at, "/a", 0755), 0);
	assert_int_equal(vfs_mkdir(&r.at, "/b", 0755), 0);
	assert_int_equal(vfs_mkdir(&r.at, "/a/d", 0755), 0);
	assert_int_equal(rig_put(&r, "/a/f", "one"), 0);
	assert_int_equal(rig_put(&r, "/b/f", "two"), 0);
	assert_int_equal(vfs_rename(&r.at, "/a/f", &r.at, "/b/f", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(vfs_rename(&r.at, "/a/f", &r.at, "/b/f", RENAME_EXCHANGE), 0);
	assert_string_equal(rig_text(&r, "/a/f"), "two");
	assert_int_equal(vfs_rename(&r.at, "/a/f", &r.at, "/b/f", 0), 0);
	assert_string_equal(rig_text(&r, "/b/f"), "two");
	assert_string_equal(rig_names(&r, "/a"), "d");
	assert_int_equal(vfs_rename(&r.at, "/a/d", &r.at, "/b/d", 0), 0);
	assert_int_equal(st_of("/a").nlink, 2);
	assert_int_equal(st_of("/b").nlink, 3);
	assert_int_equal(vfs_rename(&r.at, "/a", &r.at, "/b/d", 0), 0);
	assert_string_equal(rig_names(&r, "/"), "b");
	assert_int_equal(vfs_rename(&r.at, "/b/d", &r.at, "/b/f", 0), -ENOTDIR);
	assert_int_equal(vfs_rename(&r.at, "/b", &r.at, "/b/d/x", 0), -EINVAL);
	assert_int_equal(vfs_rename(&r.at, "/b/f", &r.at, "/f", RENAME_WHITEOUT), 0);
	struct fs_stat st = st_of("/b/f");
	assert_true(S_ISCHR(st.mode) && st.rdev == 0);
	assert_string_equal(rig_text(&r, "/f"), "two");
}

/* Reads and writes at all kinds of offsets against a plain buffer. */
static void random_data(void **state)
{
	(void)state;
	static uint8_t model[300 * 1024], got[300 * 1024], chunk[70 * 1024];
	struct file *f;
	size_t size = 0;
	unsigned seed = 12345;
	assert_int_equal(rig_open(&r, "/f", O_CREAT | O_RDWR, 0644, &f), 0);
	for (int i = 0; i < 400; i++) {
		size_t off = (size_t)rand_r(&seed) % (i < 100 ? 60000 : 220000);
		size_t n = (size_t)rand_r(&seed) % (i < 100 ? 4000 : sizeof(chunk)) + 1;
		if (i % 10 == 9) {
			size_t cut = (size_t)rand_r(&seed) % (size + 5000);
			cut = MIN(cut, sizeof(model));
			assert_int_equal(vfs_ftruncate(f, cut), 0);
			if (cut < size)
				memset(model + cut, 0, size - cut);
			size = cut;
			continue;
		}
		memset(chunk, rand_r(&seed), n);
		assert_int_equal(rig_pwrite(f, chunk, n, (int64_t)off), n);
		memcpy(model + off, chunk, n);
		size = MAX(size, off + n);
		assert_int_equal(rig_pread(f, got, sizeof(got), 0), size);
		assert_memory_equal(got, model, size);
	}
	file_put(f);
	assert_int_equal(st_of("/f").size, size);
}

static void holes(void **state)
{
	(void)state;
	struct file *f;
	char page[4096], back[4096];
	memset(page, 'x', sizeof(page));
	assert_int_equal(rig_open(&r, "/f", O_CREAT | O_RDWR, 0644, &f), 0);
	assert_int_equal(vfs_ftruncate(f, 1 << 20), 0);
	assert_int_equal(st_of("/f").blocks, 0);
	assert_int_equal(f->ops->seek(f, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(f->ops->seek(f, 100, SEEK_HOLE), 100);
	assert_int_equal(rig_pwrite(f, page, 4096, 8192), 4096);
	assert_int_equal(st_of("/f").blocks, 8);
	assert_int_equal(f->ops->seek(f, 0, SEEK_DATA), 8192);
	assert_int_equal(f->ops->seek(f, 8192, SEEK_HOLE), 12288);
	assert_int_equal(
		f->ops->fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
	assert_int_equal(rig_pread(f, back, 4096, 8192), 4096);
	assert_int_equal(back[17], 0);
	assert_int_equal(st_of("/f").blocks, 0);
	assert_int_equal(f->ops->fallocate(f, 0, 1 << 20, 8192), 0);
	assert_int_equal(st_of("/f").size, (1 << 20) + 8192);
	assert_int_equal(st_of("/f").blocks, 16);
	assert_int_equal(f->ops->fallocate(f, 0x80, 0, 1), -EOPNOTSUPP);
	file_put(f);
}

static void mapped(void **state)
{
	(void)state;
	struct file *f;
	struct file_map m;
	char c;
	assert_int_equal(rig_put(&r, "/f", "small"), 0);
	assert_int_equal(rig_open(&r, "/f", O_RDWR, 0, &f), 0);
	assert_int_equal(f->ops->mmap(f, 3, true, &m), 0);
	assert_int_equal(host_pread(m.host_fd, &c, 1, 4), 1);
	assert_int_equal(c, 'l');
	assert_int_equal(host_pwrite(m.host_fd, "L", 1, 4), 1);
	file_put(f);
	assert_string_equal(rig_text(&r, "/f"), "smalL");
}

static void limits(void **state)
{
	(void)state;
	static char big[128 * 1024];
	struct superblock *sb = r.mnt->sb;
	struct fs_statfs s;
	struct file *f;
	assert_int_equal(rig_open(&r, "/f", O_CREAT | O_RDWR, 0644, &f), 0);
	assert_int_equal(rig_pwrite(f, big, sizeof(big), 0), 65536);
	assert_int_equal(rig_pwrite(f, big, 1, 65536), -ENOSPC);
	assert_int_equal(rig_pwrite(f, big, 4096, 100), 4096);
	assert_int_equal(f->ops->fallocate(f, 0, 65536, 4096), -ENOSPC);
	assert_int_equal(sb->ops->statfs(sb, &s), 0);
	assert_int_equal(s.blocks, 16);
	assert_int_equal(s.bfree, 0);
	assert_int_equal(vfs_ftruncate(f, 5000), 0);
	assert_int_equal(sb->ops->statfs(sb, &s), 0);
	assert_int_equal(s.bfree, 14);
	assert_int_equal(rig_put(&r, "/g", "more"), 0);
	file_put(f);
	char name[16];
	int err = 0, i;
	for (i = 0; i < 20 && !err; i++) {
		snprintf(name, sizeof(name), "/i%d", i);
		err = vfs_mkdir(&r.at, name, 0755);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(i, 6);
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "/i%d", i);
		assert_int_equal(vfs_rmdir(&r.at, name), 0);
	}
	assert_int_equal(vfs_unlink(&r.at, "/f"), 0);
	assert_int_equal(vfs_unlink(&r.at, "/g"), 0);
	dcache_purge(sb);
	assert_int_equal(sb->ops->statfs(sb, &s), 0);
	assert_int_equal(s.bfree, 16);
	assert_int_equal(s.ffree, 7);
}

static void options(void **state)
{
	(void)state;
	struct superblock *sb;
	assert_int_equal(tmpfs_new("size=10x", &sb), -EINVAL);
	assert_int_equal(tmpfs_new("nonsense", &sb), -EINVAL);
	assert_int_equal(tmpfs_new("size=,mode=9", &sb), -EINVAL);
	assert_int_equal(tmpfs_new("size=1m,mode=700,uid=5,gid=6,huge=never", &sb), 0);
	struct fs_stat st;
	assert_int_equal(sb->root->inode->ops->getattr(sb->root->inode, &st), 0);
	assert_int_equal(st.mode, S_IFDIR | 0700);
	assert_int_equal(st.uid, 5);
	assert_int_equal(st.gid, 6);
	superblock_put(sb);
}

static void xattrs(void **state)
{
	(void)state;
	char buf[32];
	assert_int_equal(rig_put(&r, "/f", ""), 0);
	assert_int_equal(rig_getxattr(&r, "/f", "user.a", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(rig_setxattr(&r, "/f", "user.a", "value"), 0);
	assert_int_equal(rig_getxattr(&r, "/f", "user.a", buf, sizeof(buf)), 5);
	assert_int_equal(rig_getxattr(&r, "/f", "user.a", buf, 2), -ERANGE);
	assert_int_equal(rig_getxattr(&r, "/f", "user.a", NULL, 0), 5);
	assert_int_equal(rig_setxattr(&r, "/f", "other.a", "value"), -EOPNOTSUPP);
	assert_int_equal(vfs_symlink(&r.at, "x", "/l"), 0);
	assert_int_equal(rig_setxattr(&r, "/l", "user.a", "value"), -EPERM);
}

static void times(void **state)
{
	(void)state;
	struct iattr old = { .valid = ATTR_ATIME | ATTR_MTIME,
			     .atime = { 1000, 5 },
			     .mtime = { 2000, 6 } };
	struct path p;
	assert_int_equal(rig_put(&r, "/f", "x"), 0);
	assert_int_equal(path_lookup(&r.at, "/f", 0, &p), 0);
	assert_int_equal(vfs_setattr(p, r.cred, &old), 0);
	path_put(p);
	struct fs_stat st = st_of("/f");
	assert_int_equal(st.atime.tv_sec, 1000);
	assert_int_equal(st.mtime.tv_nsec, 6);
	assert_true(st.ctime.tv_sec > 2000);
	assert_string_equal(rig_text(&r, "/f"), "x");
	assert_true(st_of("/f").atime.tv_sec > 2000);
	assert_int_equal(st_of("/f").mtime.tv_sec, 2000);
	assert_int_equal(rig_append(&r, "/f", "y"), 0);
	assert_true(st_of("/f").mtime.tv_sec > 2000);
}

static void tmpfile_and_link(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(rig_open(&r, "/", O_TMPFILE | O_RDWR, 0600, &f), 0);
	assert_int_equal(rig_pwrite(f, "data", 4, 0), 4);
	struct fs_lookup by_file = r.at;
	by_file.base = f->path;
	assert_int_equal(vfs_link(&by_file, "", &r.at, "/named", LOOKUP_EMPTY), 0);
	file_put(f);
	assert_string_equal(rig_text(&r, "/named"), "data");
	assert_int_equal(st_of("/named").nlink, 1);
}

static void memfds(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(memfd_file_new("name", MFD_ALLOW_SEALING, r.cred, &f), 0);
	assert_int_equal(rig_pwrite(f, "data", 4, 0), 4);
	assert_int_equal(memfd_get_seals(f), 0);
	assert_int_equal(memfd_add_seals(f, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(vfs_ftruncate(f, 2), -EPERM);
	assert_int_equal(vfs_ftruncate(f, 200), -EPERM);
	assert_int_equal(rig_pwrite(f, "DATA", 4, 0), 4);
	assert_int_equal(memfd_add_seals(f, F_SEAL_WRITE | F_SEAL_SEAL), 0);
	assert_int_equal(rig_pwrite(f, "DATA", 4, 0), -EPERM);
	assert_int_equal(memfd_add_seals(f, F_SEAL_GROW), -EPERM);
	file_put(f);
	assert_int_equal(memfd_file_new("/dev/zero", 0, r.cred, &f), 0);
	assert_int_equal(memfd_get_seals(f), F_SEAL_SEAL);
	assert_int_equal(memfd_add_seals(f, F_SEAL_WRITE), -EPERM);
	file_put(f);
	/* The super block of nameless files stays: its blocks are no leak. */
	fs_rig_unmount(&r);
	size_t after = mem_live_count();
	assert_int_equal(setup_with(NULL), 0);
	assert_int_equal(r.live, after);
}

/* A deep chain: freeing it must not recurse. */
static void deep_tree(void **state)
{
	(void)state;
	struct superblock *sb = r.mnt->sb;
	struct inode *dir = inode_get(sb->root->inode), *next;
	for (int i = 0; i < 100000; i++) {
		mutex_lock(&dir->mu);
		assert_int_equal(dir->ops->mkdir(dir, "d", 0755, r.cred, &next), 0);
		mutex_unlock(&dir->mu);
		inode_put(dir);
		dir = next;
	}
	inode_put(dir);
}

static void failing_allocations(void **state)
{
	(void)state;
	static char big[100 * 1024];
	assert_int_equal(vfs_mkdir(&r.at, "/d", 0777), 0);
	for (unsigned n = 1; n < 80; n++) {
		struct file *f;
		mem_fail_nth(n);
		int e1 = vfs_mkdir(&r.at, "/d/e", 0777);
		int e2 = vfs_symlink(&r.at, "target", "/d/s");
		int e3 = vfs_rename(&r.at, "/d/s", &r.at, "/d/t", RENAME_WHITEOUT);
		int e4 = rig_open(&r, "/d/f", O_CREAT | O_RDWR, 0644, &f);
		ssize_t w1 = e4 ? -ENOMEM : rig_pwrite(f, big, 100, 0);
		ssize_t w2 = e4 ? -ENOMEM : rig_pwrite(f, big, sizeof(big), 0);
		int e5 = rig_setxattr(&r, "/d", "user.x", "y");
		mem_fail_nth(0);
		assert_true(e1 == 0 || e1 == -ENOMEM);
		assert_true(e2 == 0 || e2 == -ENOMEM);
		assert_true(e3 == 0 || e3 == -ENOMEM || e3 == -ENOENT);
		assert_true(e5 == 0 || e5 == -ENOMEM);
		assert_true(w1 == 100 || w1 == -ENOMEM);
		assert_true(w2 == (ssize_t)sizeof(big) || w2 == -ENOMEM);
		if (!e4)
			file_put(f);
		(void)!vfs_unlink(&r.at, "/d/f");
		(void)!vfs_unlink(&r.at, "/d/s");
		(void)!vfs_unlink(&r.at, "/d/t");
		(void)!vfs_rmdir(&r.at, "/d/e");
		dcache_purge(r.mnt->sb);
		assert_string_equal(rig_names(&r, "/d"), "");
	}
	for (unsigned n = 1; n < 20; n++) {
		struct superblock *sb;
		mem_fail_nth(n);
		int err = tmpfs_new(NULL, &sb);
		mem_fail_nth(0);
		if (!err)
			superblock_put(sb);
		assert_true(err == 0 || err == -ENOMEM);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(names),
		T(many_names),
		T(listing_under_change),
		T(renames),
		T(random_data),
		T(holes),
		T(mapped),
		T(options),
		T(xattrs),
		T(times),
		T(tmpfile_and_link),
		T(memfds),
		T(deep_tree),
		T(failing_allocations),
		cmocka_unit_test_setup_teardown(limits, setup_small, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

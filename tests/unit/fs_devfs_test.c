/* /dev and the memory devices. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/sysmacros.h>

#include "fs/devfs.h"
#include "platform/base/alloc.h"
#include "tests/unit/fs_rig.h"

static struct fs_rig rig;

static int setup(void **state)
{
	struct superblock *sb;

	(void)state;
	fs_rig_begin(&rig);
	assert_int_equal(devfs_new(&sb), 0);
	fs_rig_mount(&rig, sb, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fs_rig_unmount(&rig);
	fs_rig_end(&rig);
	return 0;
}

static void nodes(void **state)
{
	static const struct {
		const char *name;
		unsigned major_number, minor_number, mode;
	} rows[] = {
		{ "null", 1, 3, 0666 },    { "zero", 1, 5, 0666 },    { "full", 1, 7, 0666 },
		{ "random", 1, 8, 0666 },  { "urandom", 1, 9, 0666 }, { "tty", 5, 0, 0666 },
		{ "console", 5, 1, 0600 },
	};
	struct fs_stat st;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(rig_stat(&rig, rows[i].name, &st), 0);
		assert_int_equal(st.mode, S_IFCHR | rows[i].mode);
		assert_int_equal(st.rdev, makedev(rows[i].major_number, rows[i].minor_number));
	}
	assert_string_equal(
		rig_names(&rig, "."),
		"console fd full mqueue null ptmx pts random shm stderr stdin stdout tty "
		"urandom zero");
	assert_int_equal(rig_stat(&rig, "shm", &st), 0);
	assert_int_equal(st.mode, S_IFDIR | 01777);
}

static struct file *dev_open(const char *name)
{
	struct file *f;

	assert_int_equal(rig_open(&rig, name, O_RDWR, 0, &f), 0);
	return f;
}

static void null_zero_full(void **state)
{
	char buf[8];
	struct file *f = dev_open("null");

	(void)state;
	assert_int_equal(rig_pread(f, buf, 8, -1), 0);
	assert_int_equal(rig_pwrite(f, "abc", 3, -1), 3);
	assert_int_equal(rig_pwrite(f, "abc", 3, 1 << 30), 3);
	assert_int_equal(f->ops->seek(f, 5, SEEK_SET), 0);
	file_put(f);
	f = dev_open("zero");
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(rig_pread(f, buf, 8, -1), 8);
	assert_memory_equal(buf, "\0\0\0\0\0\0\0\0", 8);
	struct file_map map = { .host_fd = 5 };
	assert_int_equal(f->ops->mmap(f, 3, true, &map), 0);
	assert_int_equal(map.host_fd, -1);
	file_put(f);
	f = dev_open("full");
	assert_int_equal(rig_pwrite(f, "abc", 3, -1), -ENOSPC);
	assert_int_equal(rig_pread(f, buf, 8, -1), 8);
	file_put(f);
}

static void random_bytes(void **state)
{
	static char a[10000], b[10000];
	struct file *f = dev_open("urandom");

	(void)state;
	assert_int_equal(rig_pread(f, a, sizeof(a), -1), sizeof(a));
	assert_int_equal(rig_pread(f, b, sizeof(b), -1), sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, a + 5000, 5000);
	file_put(f);
}

static void own_nodes(void **state)
{
	struct file *f;

	(void)state;
	assert_int_equal(vfs_mknod(&rig.at, "mynull", S_IFCHR | 0600, makedev(1, 3)), 0);
	assert_int_equal(rig_open(&rig, "mynull", O_RDWR, 0, &f), 0);
	file_put(f);
	assert_int_equal(vfs_mknod(&rig.at, "strange", S_IFCHR | 0600, makedev(77, 3)), 0);
	assert_int_equal(rig_open(&rig, "strange", O_RDWR, 0, &f), -ENXIO);
	assert_int_equal(vfs_mknod(&rig.at, "mem", S_IFCHR | 0600, makedev(1, 1)), 0);
	assert_int_equal(rig_open(&rig, "mem", O_RDWR, 0, &f), -ENXIO);
	assert_int_equal(vfs_unlink(&rig.at, "null"), 0);
	assert_string_equal(rig_text(&rig, "null"), "error -2");
}

static void no_console(void **state)
{
	struct file *f;

	(void)state;
	assert_int_equal(rig_open(&rig, "console", O_RDWR, 0, &f), -ENODEV);
}

static void no_memory(void **state)
{
	struct superblock *sb;

	(void)state;
	for (unsigned n = 1;; n++) {
		mem_fail_nth(n);
		int err = devfs_new(&sb);
		mem_fail_nth(0);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
	}
	superblock_put(sb);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nodes),     T(null_zero_full), T(random_bytes),
		T(own_nodes), T(no_console),     T(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

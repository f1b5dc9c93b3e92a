/* Trees of generated files, through the VFS. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "fs/pseudofs.h"
#include "platform/base/alloc.h"
#include "tests/unit/fs_rig.h"

static struct fs_rig rig;
static int generation, top_item = 3;
static char stored[64];

static int show_generation(const struct pseudo_ref *ref, struct fmt *out)
{
	(void)ref;
	fmt_printf(out, "generation %d\n", ++generation);
	return 0;
}

static int show_key(const struct pseudo_ref *ref, struct fmt *out)
{
	fmt_printf(out, "item %d\n", (int)ref->key[0]);
	return ref->key[0] == 2 ? -ESRCH : 0;
}

static int store_text(const struct pseudo_ref *ref, const char *text, size_t size)
{
	(void)ref;
	if (size >= sizeof(stored))
		return -EINVAL;
	memcpy(stored, text, size + 1);
	return 0;
}

static ssize_t read_at(const struct pseudo_ref *ref, struct iov_iter *it, uint64_t pos)
{
	char c = (char)('a' + pos % 26);

	(void)ref;
	return iov_copy_to(it, &c, 1);
}

static int refuse_write(const struct pseudo_ref *ref, int flags, const struct cred *c)
{
	(void)ref;
	(void)c;
	return (flags & O_ACCMODE) == O_RDONLY ? 0 : -EACCES;
}

static int readlink_target(const struct pseudo_ref *ref, char *buf, size_t size)
{
	(void)ref;
	(void)size;
	strcpy(buf, "dir/const");
	return 9;
}

static const struct pseudo_row item_rows[] = {
	{ .name = "key", .mode = S_IFREG | 0444, .show = show_key },
	{},
};
static const struct pseudo_row item_row = { .name = "",
					    .mode = S_IFDIR | 0555,
					    .children = item_rows };

static int items_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out)
{
	(void)dir;
	if (name[0] < '1' || name[0] > '0' + top_item || name[1])
		return -ENOENT;
	*out = (struct pseudo_ref){ .row = &item_row, .key = { (uint64_t)(name[0] - '0') } };
	return 0;
}

static int items_next(const struct pseudo_ref *dir, uint64_t *cookie, char name[NAME_LEN_MAX + 1],
		      struct pseudo_ref *out)
{
	(void)dir;
	if (*cookie == 0)
		*cookie = 1;
	if (*cookie > (uint64_t)top_item)
		return -ENOENT;
	*out = (struct pseudo_ref){ .row = &item_row, .key = { *cookie } };
	name[0] = (char)('0' + *cookie);
	name[1] = 0;
	return 0;
}

static bool valid(const struct pseudo_ref *ref)
{
	return ref->key[0] <= (uint64_t)top_item;
}

static const struct pseudo_dir_ops items = { .lookup = items_lookup, .next = items_next };
static const struct pseudo_row dir_rows[] = {
	{ .name = "const", .mode = S_IFREG | 0444, .text = "constant\n" },
	{},
};
static const struct pseudo_row root_rows[] = {
	{ .name = "gen", .mode = S_IFREG | 0444, .show = show_generation },
	{ .name = "store", .mode = S_IFREG | 0644, .text = "old\n", .store = store_text },
	{ .name = "fixed", .mode = S_IFREG | 0644, .text = "x", .may_open = refuse_write },
	{ .name = "raw", .mode = S_IFREG | 0444, .read_at = read_at },
	{ .name = "dir", .mode = S_IFDIR | 0555, .children = dir_rows },
	{ .name = "link", .mode = S_IFLNK | 0777, .readlink = readlink_target },
	{},
};
static const struct pseudo_row root_row = {
	.name = "",
	.mode = S_IFDIR | 0555,
	.children = root_rows,
	.dir = &items,
};
static const struct pseudo_tree tree = {
	.fs_name = "test", .magic = 0x1234, .root = &root_row, .valid = valid
};

static int setup(void **state)
{
	struct superblock *sb;

	(void)state;
	top_item = 3;
	generation = 0;
	fs_rig_begin(&rig);
	assert_int_equal(pseudofs_new(&tree, &sb), 0);
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

static void names(void **state)
{
	(void)state;
	assert_string_equal(rig_names(&rig, "."), "1 2 3 dir fixed gen link raw store");
	assert_string_equal(rig_names(&rig, "dir"), "const");
	assert_string_equal(rig_text(&rig, "dir/const"), "constant\n");
	assert_string_equal(rig_text(&rig, "link"), "constant\n");
	assert_string_equal(rig_text(&rig, "2/none"), "error -2");
}

static void items_that_come_and_go(void **state)
{
	(void)state;
	assert_string_equal(rig_text(&rig, "3/key"), "item 3\n");
	top_item = 1;
	assert_string_equal(rig_text(&rig, "3/key"), "error -2");
	assert_string_equal(rig_names(&rig, "."), "1 dir fixed gen link raw store");
	top_item = 3;
	assert_string_equal(rig_text(&rig, "3/key"), "item 3\n");
	assert_string_equal(rig_text(&rig, "2/key"), "error -3");
}

static void reading_again(void **state)
{
	struct file *f;
	char buf[32] = { 0 };

	(void)state;
	assert_int_equal(rig_open(&rig, "gen", O_RDONLY, 0, &f), 0);
	assert_int_equal(rig_pread(f, buf, 5, -1), 5);
	assert_int_equal(rig_pread(f, buf, 31, -1), 8);
	assert_memory_equal(buf, "ation 1\n", 8);
	assert_int_equal(rig_pread(f, buf, 31, -1), 0);
	assert_int_equal(f->ops->seek(f, 0, SEEK_SET), 0);
	assert_int_equal(rig_pread(f, buf, 31, -1), 13);
	assert_memory_equal(buf, "generation 2\n", 13);
	assert_int_equal(rig_pread(f, buf, 31, 0), 13);
	assert_memory_equal(buf, "generation 3\n", 13);
	assert_int_equal(f->ops->seek(f, 0, SEEK_END), -EINVAL);
	assert_int_equal(f->ops->seek(f, -1, SEEK_SET), -EINVAL);
	file_put(f);
}

static void writing(void **state)
{
	(void)state;
	assert_int_equal(rig_put(&rig, "store", "new value"), 0);
	assert_string_equal(stored, "new value");
	assert_int_equal(rig_put(&rig, "fixed", "x"), -EACCES);
	assert_int_equal(rig_put(&rig, "created", "x"), -EACCES);
	struct file *f;
	char big[5000] = { 0 };
	assert_int_equal(rig_open(&rig, "store", O_WRONLY, 0, &f), 0);
	assert_int_equal(rig_pwrite(f, big, sizeof(big), -1), -EINVAL);
	file_put(f);
	assert_int_equal(rig_open(&rig, "gen", O_WRONLY, 0, &f), 0);
	assert_int_equal(rig_pwrite(f, "x", 1, -1), -EINVAL);
	file_put(f);
}

static void raw_positions(void **state)
{
	struct file *f;
	char c;

	(void)state;
	assert_int_equal(rig_open(&rig, "raw", O_RDONLY, 0, &f), 0);
	assert_int_equal(rig_pread(f, &c, 1, 27), 1);
	assert_int_equal(c, 'b');
	file_put(f);
}

static void attributes(void **state)
{
	struct fs_stat st, again;

	(void)state;
	assert_int_equal(rig_stat(&rig, ".", &st), 0);
	assert_int_equal(st.mode, S_IFDIR | 0555);
	assert_int_equal(st.ino, 1);
	assert_int_equal(st.nlink, 3);
	assert_int_equal(rig_stat(&rig, "1/key", &st), 0);
	assert_int_equal(rig_stat(&rig, "1/key", &again), 0);
	assert_int_equal(st.ino, again.ino);
	assert_int_equal(rig_stat(&rig, "2/key", &again), 0);
	assert_int_not_equal(st.ino, again.ino);
	assert_int_equal(st.size, 0);
	assert_int_equal(rig_chmod(&rig, "gen", 0), -EPERM);
}

static void no_memory(void **state)
{
	struct file *f;
	char buf[16];

	(void)state;
	for (unsigned n = 1;; n++) {
		ssize_t r = -ENOMEM;
		mem_fail_nth(n);
		int err = rig_open(&rig, "1/key", O_RDONLY, 0, &f);
		if (!err) {
			r = rig_pread(f, buf, sizeof(buf), -1);
			file_put(f);
		}
		mem_fail_nth(0);
		if (r > 0)
			break;
		assert_int_equal(err ? err : (int)r, -ENOMEM);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names),     T(items_that_come_and_go), T(reading_again),
		T(writing),   T(raw_positions),          T(attributes),
		T(no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

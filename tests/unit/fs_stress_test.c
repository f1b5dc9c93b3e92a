/* Threads that make, move, remove and look up the same few names at once: no deadlock (the lock
 * order is checked in debug builds), no leak, no stale name. */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fs/dcache.h"
#include "fs/inotify.h"
#include "fs/tmpfs.h"
#include "platform/base/alloc.h"
#include "tests/unit/memfs.h"

#define THREADS 4
#define ROUNDS 3000

static struct fs_lookup l;
static struct path root;

/* A path of one to three components out of three names each. */
static void random_name(unsigned *seed, char out[32])
{
	int depth = 1 + rand_r(seed) % 3;
	size_t n = 0;

	for (int i = 0; i < depth; i++)
		n += (size_t)snprintf(out + n, 32 - n, "/%c", 'a' + rand_r(seed) % 3);
}

static void read_through(const char *name)
{
	char buf[256];
	struct path p;

	if (path_lookup(&l, name, LOOKUP_FOLLOW, &p) != 0)
		return;
	assert_true(path_name(p, root, buf, sizeof(buf)) > 0);
	path_put(p);
}

static int one_step(unsigned *seed)
{
	char a[32], b[32];
	struct file *f;
	int err;

	random_name(seed, a);
	random_name(seed, b);
	switch (rand_r(seed) % 10) {
	case 0:
	case 1:
		return vfs_mkdir(&l, a, 0777);
	case 2:
		return vfs_rmdir(&l, a);
	case 3:
		return vfs_unlink(&l, a);
	case 4:
		return vfs_rename(&l, a, &l, b, rand_r(seed) % 3 == 0 ? RENAME_EXCHANGE : 0);
	case 5:
		return vfs_link(&l, a, &l, b, 0);
	case 6:
		return vfs_symlink(&l, b, a);
	case 7:
		err = vfs_open(&l, a, O_CREAT | O_RDWR, 0666, &f);
		if (!err)
			file_put(f);
		return err;
	default:
		read_through(a);
		return 0;
	}
}

static void *worker(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		int err = one_step(&seed);
		/* Only what such a race may give. */
		assert_true(err == 0 || err == -EEXIST || err == -ENOENT || err == -ENOTDIR ||
			    err == -EISDIR || err == -ENOTEMPTY || err == -EINVAL ||
			    err == -ELOOP || err == -EPERM || err == -EBUSY || err == -EXDEV);
	}
	return NULL;
}

/* After the storm every cached name must agree with the file system. */
static void check_cache(void)
{
	for (int i = 0; i < 27; i++) {
		char name[32];
		struct path p, q;

		snprintf(name, sizeof(name), "/%c/%c/%c", 'a' + i / 9, 'a' + i / 3 % 3,
			 'a' + i % 3);
		int e1 = path_lookup(&l, name, 0, &p);
		dcache_purge(root.mnt->sb);
		int e2 = path_lookup(&l, name, 0, &q);
		assert_int_equal(e1, e2);
		if (e1 == 0) {
			assert_ptr_equal(p.dentry->inode, q.dentry->inode);
			path_put(p);
			path_put(q);
		}
	}
}

static void storm(void **state)
{
	struct memfs_world w;
	struct superblock *sb;
	struct mount *m;
	pthread_t th[THREADS];
	struct file *q;

	(void)state;
	memfs_world_init(&w);
	assert_int_equal(tmpfs_new(NULL, &sb), 0);
	assert_int_equal(mount_new_root(sb, "t", 0, &m), 0);
	root = (struct path){ m, m->root };
	struct fs_ctx *ctx;
	assert_int_equal(fs_ctx_new(root, root, 0, &ctx), 0);
	l = (struct fs_lookup){ .ctx = ctx, .cred = w.root_cred };
	/* A watch, so that notifications race too. */
	assert_int_equal(inotify_file_new(O_NONBLOCK, &q), 0);
	assert_int_equal(inotify_add(q, root.dentry->inode, 0xfff), 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&th[i], NULL, worker, (void *)(i * 7919 + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	check_cache();
	file_put(q);
	fs_ctx_put(ctx);
	m->attached = false;
	mount_put(m);
	assert_int_equal(memfs_world_fini(&w), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(storm) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

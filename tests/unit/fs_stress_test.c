/*
 * Threads that create, move, link, read and remove at random in one small tree: no deadlock, no
 * lock out of order, no leak, and only errors that such a race can give. Over tmpfs and over an
 * overlay.
 */
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

#define THREADS 4
#define STEPS 4000
#define DIRS 4
#define NAMES 5

static struct fs_rig r, below;
static _Atomic int bad; /* an error that must not be */

/* /d0.. are directories; below them names that are files, links or directories, as it comes. */
static void random_name(unsigned *seed, char *buf, size_t size)
{
	int d = rand_r(seed) % DIRS, n = rand_r(seed) % (NAMES + 2);
	if (n == NAMES)
		snprintf(buf, size, "/d%d", d);
	else if (n > NAMES)
		snprintf(buf, size, "/d%d/n%d/deep", d, rand_r(seed) % NAMES);
	else
		snprintf(buf, size, "/d%d/n%d", d, n);
}

static void note(int err, const char *what)
{
	static const int fine[] = { 0,     ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL,
				    EBUSY, ELOOP,  EPERM,  EXDEV,   EMLINK, ESTALE };
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (err == -fine[i])
			return;
	fprintf(stderr, "%s gave %d\n", what, err);
	bad = err;
}

static void use_file(unsigned *seed, const char *name)
{
	struct file *f;
	char buf[256];
	int err = rig_open(&r, name, rand_r(seed) % 2 ? O_RDWR | O_CREAT : O_RDONLY, 0666, &f);
	note(err, "open");
	if (err)
		return;
	if (file_can_write(f)) {
		ssize_t n = rig_pwrite(f, name, strlen(name), rand_r(seed) % 3000);
		note(n < 0 ? (int)n : 0, "write");
	}
	if (!file_is_dir(f)) {
		ssize_t n = rig_pread(f, buf, sizeof(buf), rand_r(seed) % 1000);
		note(n < 0 && n != -EBADF ? (int)n : 0, "read");
	}
	file_put(f);
}

static void step(unsigned *seed)
{
	char a[64], b[64], buf[4096];
	struct fs_stat st;
	random_name(seed, a, sizeof(a));
	random_name(seed, b, sizeof(b));
	switch (rand_r(seed) % 14) {
	case 0:
	case 1:
	case 2:
		use_file(seed, a);
		break;
	case 3:
		note(vfs_mkdir(&r.at, a, 0777), "mkdir");
		break;
	case 4:
		note(vfs_unlink(&r.at, a), "unlink");
		break;
	case 5:
		note(vfs_rmdir(&r.at, a), "rmdir");
		break;
	case 6:
	case 7:
		note(vfs_rename(&r.at, a, &r.at, b, 0), "rename");
		break;
	case 8:
		note(vfs_rename(&r.at, a, &r.at, b, RENAME_EXCHANGE), "exchange");
		break;
	case 9:
		note(vfs_link(&r.at, a, &r.at, b, 0), "link");
		break;
	case 10:
		note(vfs_symlink(&r.at, "../d1/n1", a), "symlink");
		break;
	case 11:
		note(rig_chmod(&r, a, 0755), "chmod");
		break;
	case 12: {
		int n = rig_list(&r, a, buf, sizeof(buf));
		note(MIN(n, 0), "list");
		break;
	}
	default:
		note(rig_stat(&r, a, &st), "stat");
		if (rand_r(seed) % 40 == 0)
			dcache_shrink(20);
	}
}

static void *worker(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg * 7919 + 1;
	for (int i = 0; i < STEPS && !bad; i++)
		step(&seed);
	return NULL;
}

static void stress(void)
{
	pthread_t t[THREADS];
	bad = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(bad, 0);
}

static void fill(struct fs_rig *to)
{
	char name[32];
	for (int d = 0; d < DIRS; d++) {
		snprintf(name, sizeof(name), "/d%d", d);
		assert_int_equal(vfs_mkdir(&to->at, name, 0777), 0);
		snprintf(name, sizeof(name), "/d%d/n%d", d, d % NAMES);
		assert_int_equal(rig_put(to, name, "some text"), 0);
		snprintf(name, sizeof(name), "/d%d/n%d", d, (d + 1) % NAMES);
		assert_int_equal(vfs_mkdir(&to->at, name, 0777), 0);
	}
}

static void on_tmpfs(void **state)
{
	struct superblock *sb;
	(void)state;
	fs_rig_begin(&r);
	assert_int_equal(tmpfs_new(NULL, &sb), 0);
	fs_rig_mount(&r, sb, 0);
	fill(&r);
	stress();
	fs_rig_unmount(&r);
	fs_rig_end(&r);
}

static void on_overlay(void **state)
{
	struct superblock *lower, *upper, *sb;
	(void)state;
	fs_rig_begin(&r);
	fs_rig_begin(&below);
	assert_int_equal(tmpfs_new(NULL, &lower), 0);
	fs_rig_mount(&below, superblock_get(lower), 0);
	fill(&below);
	assert_int_equal(tmpfs_new(NULL, &upper), 0);
	assert_int_equal(overlayfs_new(lower, upper, &sb), 0);
	fs_rig_mount(&r, sb, 0);
	stress();
	for (int d = 0; d < DIRS; d++) {
		char name[32];
		snprintf(name, sizeof(name), "/d%d/n%d", d, d % NAMES);
		assert_string_equal(rig_text(&below, name), "some text");
	}
	fs_rig_unmount(&r);
	fs_rig_unmount(&below);
	fs_rig_end(&r);
}

/* A tree of the host behind the gofer; *out_client keeps the channel. */
static struct superblock *host_tree(const char *top, bool writable,
				    struct gofer_client **out_client, int *out_pid)
{
	struct gofer_export e = { top, writable };
	struct gofer_config cfg = { .exports = &e, .export_count = 1 };
	struct superblock *sb;
	int fd;
	assert_int_equal(gofer_start(&cfg, &fd, out_pid), 0);
	assert_int_equal(gofer_client_new(fd, out_client), 0);
	assert_int_equal(goferfs_new(*out_client, 0, true, &sb), 0);
	return sb;
}

static void end_host_tree(struct gofer_client *client, int pid)
{
	int status;
	gofer_client_put(client);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fs_rig_end(&r);
}

static void on_gofer(void **state)
{
	char top[150], line[400];
	struct superblock *upper, *sb;
	struct gofer_client *client;
	int pid;
	(void)state;
	fs_rig_begin(&r);
	rig_temp_dir(top, sizeof(top));
	fs_rig_mount(&r, host_tree(top, true, &client, &pid), geteuid());
	fill(&r);
	stress();
	fs_rig_unmount(&r);
	end_host_tree(client, pid);
	/* What is left of that, below an overlay. */
	snprintf(line, sizeof(line), "rm -rf %s; mkdir %s", top, top);
	assert_int_equal(system(line), 0);
	for (int d = 0; d < DIRS; d++) {
		snprintf(line, sizeof(line), "mkdir -p %s/d%d/n0; echo some text >%s/d%d/n1", top,
			 d, top, d);
		assert_int_equal(system(line), 0);
	}
	fs_rig_begin(&r);
	assert_int_equal(tmpfs_new(NULL, &upper), 0);
	assert_int_equal(overlayfs_new(host_tree(top, false, &client, &pid), upper, &sb), 0);
	fs_rig_mount(&r, sb, geteuid());
	stress();
	fs_rig_unmount(&r);
	end_host_tree(client, pid);
	snprintf(line, sizeof(line), "test $(cat %s/d*/n1 | wc -l) = %d && rm -rf %s", top, DIRS,
		 top);
	assert_int_equal(system(line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(on_tmpfs),
					    cmocka_unit_test(on_overlay),
					    cmocka_unit_test(on_gofer) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}

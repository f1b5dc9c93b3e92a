/*
 * An attack on the gofer: threads of the host exchange directories and symbolic links that lead
 * outside, as fast as they can, while requests walk through them. Nothing outside the export may
 * ever be given, and what is hidden stays hidden under every name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/gofer_client.h"
#include "gofer/gofer.h"
#include "tests/unit/fs_rig.h"

#define ROUNDS 2000

static char top[150];
static struct fs_rig r;
static struct gofer_client *client;
static struct gofer_node root;
static int pid;
static atomic_bool stop;

static void sh(const char *cmd)
{
	char line[500];
	snprintf(line, sizeof(line), "cd %s && { %s; }", top, cmd);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	char tree[200], hidden[200];
	struct gofer_export e = { tree, true };
	const char *list[] = { hidden };
	struct gofer_config cfg = {
		.exports = &e, .export_count = 1, .hidden = list, .hidden_count = 1
	};
	bool writable;
	int fd;
	(void)state;
	fs_rig_begin(&r);
	rig_temp_dir(top, sizeof(top));
	sh("mkdir -p tree/a/b tree/keep outside/b && echo in >tree/a/b/f && echo SECRET "
	   ">outside/b/f");
	sh("echo SECRET >outside/f; echo HIDDEN >tree/keep/hidden; ln -s ../outside tree/link");
	sh("ln -s ../../outside/b/f tree/a/flink");
	snprintf(tree, sizeof(tree), "%s/tree", top);
	snprintf(hidden, sizeof(hidden), "%s/tree/keep/hidden", top);
	assert_int_equal(gofer_start(&cfg, &fd, &pid), 0);
	assert_int_equal(gofer_client_new(fd, &client), 0);
	assert_int_equal(gofer_attach(client, 0, &root, &writable), 0);
	atomic_store(&stop, false);
	return 0;
}

static int teardown(void **state)
{
	int status;
	(void)state;
	gofer_client_put(client);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	char line[200];
	snprintf(line, sizeof(line), "rm -rf %s", top);
	return system(line);
}

/* tree/a <-> tree/link, which leads outside. */
static void *swap_dir_and_link(void *arg)
{
	char a[200], b[200];
	(void)arg;
	snprintf(a, sizeof(a), "%s/tree/a", top);
	snprintf(b, sizeof(b), "%s/tree/link", top);
	while (!atomic_load(&stop))
		renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
	return NULL;
}

/* The directory moves out of the tree and back, so that ".." of it changes. */
static void *move_out_and_back(void *arg)
{
	char in[200], out[200];
	(void)arg;
	snprintf(in, sizeof(in), "%s/tree/a", top);
	snprintf(out, sizeof(out), "%s/outside/a", top);
	while (!atomic_load(&stop)) {
		rename(in, out);
		rename(out, in);
	}
	return NULL;
}

/* The hidden file goes to another name, through a hard link and back. */
static void *move_hidden(void *arg)
{
	char a[200], b[200], c[200];
	(void)arg;
	snprintf(a, sizeof(a), "%s/tree/keep/hidden", top);
	snprintf(b, sizeof(b), "%s/tree/keep/other", top);
	snprintf(c, sizeof(c), "%s/tree/keep/hard", top);
	while (!atomic_load(&stop)) {
		rename(a, b);
		if (link(b, c) == 0)
			unlink(b);
		rename(c, a);
	}
	return NULL;
}

/* What a descriptor may show: the one file of the tree. */
static void check_content(int fd, const char *want)
{
	char buf[32] = "";
	assert_true(pread(fd, buf, sizeof(buf) - 1, 0) >= 0);
	assert_string_equal(buf, want);
}

static void forget(const struct gofer_node *n, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		gofer_forget(client, n[i].fid);
}

/* Walks names in one request and opens what it finds. Gives 1 when it was opened. */
static int walk_and_open(const char *const *names, unsigned count, const char *want)
{
	struct gofer_node n[4];
	unsigned found = 0;
	int why, fd, opened = 0;
	if (gofer_walk(client, root.fid, names, count, n, &found, &why) != 0)
		return 0;
	if (found == count && gofer_open(client, n[count - 1].fid, O_RDONLY, &fd) == 0) {
		check_content(fd, want);
		close(fd);
		opened = 1;
	}
	forget(n, found);
	return opened;
}

/* Step by step, with the attacker between the steps; then changes below the found directory. */
static int step_and_change(void)
{
	static const char *const a = "a", *const b = "b", *const f = "f";
	struct gofer_owner o = { .mode = 0644, .uid = geteuid(), .gid = getegid() };
	struct gofer_node na, nb, nf, made;
	unsigned n;
	int why, fd, opened = 0;
	if (gofer_walk(client, root.fid, &a, 1, &na, &n, &why) != 0)
		return 0;
	if (gofer_walk(client, na.fid, &b, 1, &nb, &n, &why) == 0) {
		if (gofer_walk(client, nb.fid, &f, 1, &nf, &n, &why) == 0) {
			if (gofer_open(client, nf.fid, O_RDWR, &fd) == 0) {
				check_content(fd, "in\n");
				close(fd);
				opened = 1;
			}
			gofer_forget(client, nf.fid);
		}
		if (gofer_create(client, nb.fid, "new", &o, &made, &fd) == 0) {
			close(fd);
			gofer_forget(client, made.fid);
			(void)!gofer_unlink(client, nb.fid, "new", false);
		}
		gofer_forget(client, nb.fid);
	}
	gofer_forget(client, na.fid);
	return opened;
}

static void check_outside(void)
{
	sh("test \"$(cat outside/f outside/b/f)\" = \"SECRET\nSECRET\"; ! ls outside/b | grep -q "
	   "new");
}

static void attack(void *(*attacker)(void *))
{
	static const char *const way[] = { "a", "b", "f" }, *const linked[] = { "link", "b", "f" };
	static const char *const flink[] = { "a", "flink" }, *const plain[] = { "a", "f" };
	pthread_t t;
	int opened = 0;
	assert_int_equal(pthread_create(&t, NULL, attacker, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		opened += walk_and_open(way, 3, "in\n");
		opened += walk_and_open(linked, 3, "in\n");
		assert_int_equal(walk_and_open(flink, 2, ""), 0);
		assert_int_equal(walk_and_open(plain, 2, ""), 0);
		opened += step_and_change();
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	/* The attack must have left the way open now and then, else it proved nothing. */
	assert_true(opened > 0);
	check_outside();
}

static void exchange(void **state)
{
	(void)state;
	attack(swap_dir_and_link);
}

static void leaving(void **state)
{
	(void)state;
	attack(move_out_and_back);
}

static void hiding(void **state)
{
	static const char *const names[][2] = { { "keep", "hidden" },
						{ "keep", "other" },
						{ "keep", "hard" } };
	pthread_t t;
	(void)state;
	assert_int_equal(pthread_create(&t, NULL, move_hidden, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			assert_int_equal(walk_and_open(names[k], 2, ""), 0);
	atomic_store(&stop, true);
	pthread_join(t, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exchange, setup, teardown),
		cmocka_unit_test_setup_teardown(leaving, setup, teardown),
		cmocka_unit_test_setup_teardown(hiding, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The gofer on arbitrary requests: a writable export in a temporary tree, the server in this
 * process. The input is a series of messages, each behind a 16-bit length. Handles in requests are
 * small numbers here and replaced by real ones, so that most requests get past the first check.
 * Nothing may be opened outside the tree, and nothing outside may change.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gofer/serve.h"
#include "platform/host/host.h"
#include "platform/host/host_path.h"

#define FIDS 32
#define MESSAGES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char top[64], tree[100], outside[100];
static struct stat outside_st;

static void make_file(const char *dir, const char *name)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	BUG_ON(fd < 0 || write(fd, "x", 1) != 1);
	close(fd);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int open_up(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)ftw;
	if (flag == FTW_D || flag == FTW_DNR)
		return chmod(path, st->st_mode | 0700);
	return 0;
}

static void make_tree(void)
{
	char path[200];
	nftw(tree, open_up, 10, FTW_PHYS);
	nftw(tree, remove_one, 10, FTW_PHYS | FTW_DEPTH);
	BUG_ON(mkdir(tree, 0755) != 0);
	snprintf(path, sizeof(path), "%s/d", tree);
	BUG_ON(mkdir(path, 0755) != 0);
	make_file(path, "g");
	snprintf(path, sizeof(path), "%s/up", tree);
	BUG_ON(symlink("..", path) != 0);
	snprintf(path, sizeof(path), "%s/out", tree);
	BUG_ON(symlink(outside, path) != 0);
	snprintf(path, sizeof(path), "%s/fifo", tree);
	BUG_ON(mkfifo(path, 0644) != 0);
	make_file(tree, "f");
	make_file(tree, "hidden");
}

static void clean_up(void)
{
	char cmd[200];
	snprintf(cmd, sizeof(cmd), "chmod -R u+rwx %s; rm -rf %s", top, top);
	if (system(cmd) != 0)
		fprintf(stderr, "%s is left\n", top);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(top, sizeof(top), "/tmp/gofer-fuzz.XXXXXX");
	BUG_ON(!mkdtemp(top));
	snprintf(tree, sizeof(tree), "%s/tree", top);
	snprintf(outside, sizeof(outside), "%s/outside", top);
	BUG_ON(mkdir(outside, 0755) != 0);
	make_file(outside, "secret");
	make_tree();
	BUG_ON(stat(outside, &outside_st) != 0);
	atexit(clean_up);
	umask(0);
	return 0;
}

/* What came back must lie in the tree and be a regular file. */
static void check_fd(int fd)
{
	char name[40], path[4096];
	struct stat st;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, path, sizeof(path) - 1);
	BUG_ON(n < 0);
	path[n] = 0;
	BUG_ON(strncmp(path, tree, strlen(tree)) != 0);
	BUG_ON(fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & (S_ISUID | S_ISGID)));
}

/* Replaces small numbers by handles, and notes the handles of replies. */
static void put_fid(uint8_t *msg, size_t size, size_t at, const uint32_t *fids)
{
	uint32_t v;
	if (at + sizeof(v) > size)
		return;
	memcpy(&v, msg + at, sizeof(v));
	if (v < FIDS)
		memcpy(msg + at, &fids[v], sizeof(v));
}

static void note_fids(struct gofer *g, const uint8_t *reply, size_t size, uint32_t *fids,
		      unsigned *next)
{
	for (size_t at = sizeof(struct gofer_reply); at + 4 <= size && at < 16; at++) {
		uint32_t v;
		memcpy(&v, reply + at, sizeof(v));
		if (fid_get(g, v))
			fids[(*next)++ % FIDS] = v;
	}
}

static void one_message(struct gofer *g, const uint8_t *data, size_t size, uint32_t *fids,
			unsigned *next)
{
	static uint8_t reply[GOFER_MSG_SIZE];
	uint8_t msg[2048];
	int fd;

	size = MIN(size, sizeof(msg));
	memcpy(msg, data, size);
	put_fid(msg, size, 4, fids);
	if (size > 0 && msg[0] == GOFER_LINK)
		put_fid(msg, size, 8, fids);
	if (size > 8 && msg[0] == GOFER_RENAME)
		put_fid(msg, size, 9 + msg[8], fids);
	size_t n = gofer_handle(g, msg, size, reply, &fd);
	BUG_ON(n < sizeof(struct gofer_reply) || n > GOFER_MSG_SIZE);
	if (fd >= 0) {
		check_fd(fd);
		close(fd);
	}
	note_fids(g, reply, n, fids, next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gofer_export e = { tree, true };
	char hidden[120];
	const char *list[] = { hidden };
	struct gofer_config cfg = {
		.exports = &e, .export_count = 1, .hidden = list, .hidden_count = 1
	};
	uint32_t fids[FIDS] = { 0 };
	unsigned next = 0, count = 0;
	struct gofer g;
	struct stat st;

	snprintf(hidden, sizeof(hidden), "%s/hidden", tree);
	make_tree();
	int root = host_open_config_path(tree, 0), cwd = open(".", O_PATH | O_CLOEXEC);
	BUG_ON(root < 0 || cwd < 0 || host_enter_fd_dir() != 0);
	BUG_ON(gofer_init(&g, &cfg, &root, 24) != 0);
	uint32_t attach[2] = { GOFER_ATTACH, 0 };
	one_message(&g, (const uint8_t *)attach, sizeof(attach), fids, &next);
	BUG_ON(next == 0);
	while (size > 2 && count++ < MESSAGES_MAX) {
		size_t n = MIN((size_t)(data[0] | data[1] << 8), size - 2);
		one_message(&g, data + 2, n, fids, &next);
		data += 2 + n;
		size -= 2 + n;
	}
	gofer_fini(&g);
	BUG_ON(fchdir(cwd) != 0);
	close(cwd);
	BUG_ON(stat(outside, &st) != 0 || st.st_mtim.tv_nsec != outside_st.st_mtim.tv_nsec ||
	       st.st_ctim.tv_nsec != outside_st.st_ctim.tv_nsec);
	return 0;
}

/* A file system of a few hundred lines for tests of the VFS: everything in lists, no limits. */
#pragma once

#include "fs/mount.h"
#include "fs/namei.h"

/* A fresh super block with a root directory of mode 0755 that belongs to uid:gid. Fails the test.
 */
struct superblock *memfs_new(uint32_t uid, uint32_t gid);
/* Number of inodes alive in all memfs. */
extern atomic_int memfs_inodes;

/* What every test of files needs: a root mount, a context, credentials of root and of user 1000. */
struct memfs_world {
	struct mount *root_mnt;
	struct path root;
	struct fs_ctx *ctx;
	struct cred *root_cred, *user_cred;
	struct fs_lookup as_root, as_user;
	size_t live; /* blocks before set-up */
};

void memfs_world_init(struct memfs_world *w);
/* Checks for leaks: 0, or -1 with a message, as a cmocka teardown wants it. */
int memfs_world_fini(struct memfs_world *w);
/* Limits and signals that the hooks report; tests change them. */
extern uint64_t memfs_rlimit_fsize, memfs_rlimit_nofile;
extern int memfs_last_signal;

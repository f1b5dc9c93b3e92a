/* Files of the host, through the gofer. */
#pragma once

#include "fs/vfs.h"

struct gofer_client;

/*
 * The tree (or single file) behind an attach point as a file system; read-only when the export is.
 * shared: somebody else may change the tree meanwhile, so names and attributes are looked at again:
 * after a second on a read-only tree, always on a writable one. Gives.
 */
int goferfs_new(struct gofer_client *c, uint32_t export, bool shared, struct superblock **out)
	MUST_CHECK;
/* Was sb made by goferfs_new with `shared`? False for other file systems. */
bool goferfs_is_shared(const struct superblock *sb);
/* The inode's host file will not be looked at any more (an overlay has a copy): frees its handle.
 * Nothing for inodes of other file systems. */
void goferfs_give_up(struct inode *ino);

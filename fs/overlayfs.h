/* Two trees as one: a lower one that nobody changes and an upper one in memory that takes all
 * changes. */
#pragma once

#include "fs/vfs.h"

/*
 * lower: any tree (usually goferfs); upper: an empty tmpfs. Takes both, also on error. When the
 * root of lower is no directory, the file system's root is that file. Gives.
 */
int overlayfs_new(struct superblock *lower, struct superblock *upper, struct superblock **out)
	MUST_CHECK;

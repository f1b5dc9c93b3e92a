/* A file system in memory: /tmp, /dev/shm, the upper layer of overlays, and nameless memory files.
 */
#pragma once

#include "fs/vfs.h"

/*
 * options as in mount(8) for tmpfs: size=, nr_blocks=, nr_inodes=, mode=, uid=, gid=, joined with
 * commas; NULL or "": half of the machine's memory, mode 1777. -EINVAL for unknown ones. Gives.
 */
int tmpfs_new(const char *options, struct superblock **out) MUST_CHECK;
/*
 * memfd_create(2): an unlinked file "memfd:name" open for reading and writing. flags:
 * MFD_ALLOW_SEALING, others have been handled by the caller. Shared anonymous memory is one with
 * the name "/dev/zero". Gives.
 */
int memfd_file_new(const char *name, unsigned flags, const struct cred *c, struct file **out)
	MUST_CHECK;
/* fcntl(2) F_ADD_SEALS and F_GET_SEALS: -EINVAL for files that cannot have any, -EPERM, -EBUSY. */
int memfd_add_seals(struct file *f, unsigned seals) MUST_CHECK;
int memfd_get_seals(struct file *f) MUST_CHECK;

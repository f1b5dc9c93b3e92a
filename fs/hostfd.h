/* Descriptors of the host as guest files: the standard streams that pinfold inherited. */
#pragma once

#include "fs/hosttty.h"
#include "fs/namei.h"
#include "fs/vfs.h"

/*
 * A file over an inherited host descriptor (takes host_fd, also on error; a terminal's stays open):
 * a pipe, socket, device, terminal or regular file. flags: access mode and status flags as the
 * host's F_GETFL gave them. The description is shared with whoever gave it to us: its offset is
 * used and moved, its flags are never changed. 0 or -errno. Gives.
 */
int hostfd_new(int host_fd, int flags, struct file **out) MUST_CHECK;
/*
 * The same for boot: a terminal is entered in devpts and opened by its name, found through `l`, so
 * that programs can find it (ttyname); without a name for it, and for everything else, as
 * hostfd_new.
 */
int hostfd_open_std(const struct fs_lookup *l, int host_fd, struct file **out) MUST_CHECK;
/* Is it an inode of such a file? Those are opened by hostfd_reopen (/proc/self/fd/1), whatever
 * their type. */
bool hostfd_owns(const struct inode *ino);
/* Another file over the same host descriptor; a regular file gets a position of its own. -EACCES
 * when the host's access mode does not allow flags. */
int hostfd_reopen(struct inode *ino, int flags, struct file **out) MUST_CHECK;

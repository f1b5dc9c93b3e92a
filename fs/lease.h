/*
 * Leases: the holder of one is told by a signal before another open or truncate(2) that conflicts,
 * and has some seconds to write back and give it up (fcntl(2), F_SETLEASE).
 */
#pragma once

#include "fs/vfs.h"

/* F_SETLEASE: type F_RDLCK, F_WRLCK or F_UNLCK. -EACCES not the owner, -EINVAL not a regular file,
 * -EAGAIN for a conflict with how the file is open or when there is no lease to drop, -ENOMEM. The
 * caller becomes the file's owner for signals if it has none; fd is what si_fd will say. */
int lease_set(struct file *f, int fd, int type, const struct cred *c) MUST_CHECK;
/* F_GETLEASE: the type of f's lease, or what it is being broken down to. */
int lease_get(struct file *f);
/* Before ino is opened (or truncated: `write`): tells holders and waits until they gave way or
 * their time is over. 0, -EAGAIN when `nonblock`, -ERESTARTSYS. No lock may be held. */
int lease_break(struct inode *ino, bool write, bool nonblock) MUST_CHECK;
/* The last reference of f is going. */
void lease_file_gone(struct file *f);
/* Lines of /proc/locks; *n counts them. */
void lease_show(struct fmt *out, int *n);

/* /proc/sys/fs/lease-break-time, in seconds. */
extern _Atomic int lease_break_seconds;

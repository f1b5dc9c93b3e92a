/*
 * Advisory locks: POSIX record locks and open-file-description locks (fcntl_locking(2)), flock(2).
 * Callers see the kernel's types F_RDLCK, F_WRLCK, F_UNLCK.
 */
#pragma once

#include "fs/vfs.h"

/* A record lock over [start, end], end INT64_MAX for "to the end of the file". */
struct lock_range {
	int64_t start, end;
	int type; /* F_RDLCK, F_WRLCK, F_UNLCK */
	int pid;  /* of the holder in answers; -1 for OFD locks */
};

/* owner: identity of a descriptor table (POSIX), or the struct file itself (OFD). pid: shown by
 * F_GETLK. 0; -EAGAIN when !wait and another holds it; -EDEADLK (POSIX only); -ERESTARTSYS; -ENOLCK
 * without memory. */
int lock_range_set(struct file *f, const void *owner, int pid, const struct lock_range *want,
		   bool wait) MUST_CHECK;
/* What blocks `want`; out->type F_UNLCK when nothing does. With want->type F_UNLCK: the owner's own
 * lock. */
void lock_range_get(struct file *f, const void *owner, const struct lock_range *want,
		    struct lock_range *out);
/* flock(2): op LOCK_SH, LOCK_EX, LOCK_UN, with LOCK_NB or not. -EAGAIN, -ERESTARTSYS, -ENOLCK. */
int lock_flock(struct file *f, int op) MUST_CHECK;
/* close(2) of any descriptor of f's inode drops the table's POSIX locks on it. */
void lock_file_closed(struct file *f, const void *owner);
/* The last reference: drops OFD and flock locks. Called by file_put. */
void lock_file_gone(struct file *f);
/* Lines of /proc/locks. */
void lock_show(struct fmt *out);

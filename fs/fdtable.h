/*
 * Descriptor numbers to files. The lock is a leaf: take a reference, drop it, act.
 */
#pragma once

#include "fs/vfs.h"

struct fdtable;
DECLARE_REF(fdtable);

int fdtable_new(struct fdtable **out) MUST_CHECK;
/* A copy for fork: same numbers, same files, same close-on-exec bits. */
int fdtable_copy(struct fdtable *old, struct fdtable **out) MUST_CHECK;
/* A referenced file or NULL (-EBADF). */
struct file *fd_get(struct fdtable *t, int fd) MUST_CHECK;
/* Lowest free number >= min; takes f on success only. Number or -EMFILE/-ENOMEM. */
int fd_install(struct fdtable *t, struct file *f, int min, bool cloexec) MUST_CHECK;
/* dup2: puts f (takes on success) at exactly fd; *out_old is what was there (put it), or NULL. */
int fd_replace(struct fdtable *t, int fd, struct file *f, bool cloexec, struct file **out_old)
	MUST_CHECK;
/* Removes; gives the file (the caller flushes and puts) or NULL. */
struct file *fd_remove(struct fdtable *t, int fd) MUST_CHECK;
int fd_get_cloexec(struct fdtable *t, int fd) MUST_CHECK; /* 0, 1 or -EBADF */
int fd_set_cloexec(struct fdtable *t, int fd, bool on) MUST_CHECK;
/* close(2) in whole: remove, flush, drop POSIX locks of this table, put. 0, -EBADF or flush's
 * error. */
int fd_close(struct fdtable *t, int fd);
/* close_range(2) over [first, last]; cloexec_only sets the flag instead. */
void fd_close_range(struct fdtable *t, unsigned first, unsigned last, bool cloexec_only);
/* Closes the close-on-exec descriptors (execve). */
void fd_close_on_exec(struct fdtable *t);
/* Closes everything (exit). */
void fd_close_all(struct fdtable *t);
/* The next used number >= fd, or -1: for /proc/PID/fd. */
int fd_next(struct fdtable *t, int fd);
int fdtable_count(struct fdtable *t);
/* Do others hold it too (CLONE_FILES)? A hint: a reader in passing counts as well. */
bool fdtable_is_shared(struct fdtable *t);
/* As fd_get, but NULL (-EBADF) for O_PATH descriptors too: for calls that act on the open file. */
struct file *fd_get_io(struct fdtable *t, int fd) MUST_CHECK;
/* What close(2) does to a file already removed from t (takes): flush, POSIX locks, put. flush's
 * error. */
int fd_finish_close(struct fdtable *t, struct file *f);
/* Would fd_install with this min find room? 0, -EMFILE; to fail before an object is created. */
int fd_check_room(struct fdtable *t, int min) MUST_CHECK;

/* Pipes and FIFOs: pipe(7), fifo(7). */
#pragma once

#include "fs/vfs.h"

#define PIPE_ATOMIC_SIZE 4096u /* PIPE_BUF: a write of up to this many bytes is one piece */
#define PIPE_DEFAULT_SLOTS 16u
#define PIPE_UNPRIVILEGED_MAX (1u << 20) /* /proc/sys/fs/pipe-max-size */
/* The value now, in bytes. */
extern _Atomic int pipe_max_size;
#define PIPE_PAGES_MAX (1u << 17) /* filled pages of all pipes, 512 MiB: then -ENOMEM */

/* flags: O_NONBLOCK and O_DIRECT (packets). Gives two files. 0 or -ENOMEM. */
int pipe_new(unsigned flags, const struct cred *c, struct file **out_r, struct file **out_w)
	MUST_CHECK;
/* Opens a FIFO inode, or again the inode of a pipe, by the rules of fifo(7): waits for the other
 * side, -ENXIO for a non-blocking writer without reader, -ERESTARTSYS on a signal. Gives. */
int fifo_open(struct inode *ino, int flags, const struct cred *c, struct file **out) MUST_CHECK;
bool is_pipe(const struct file *f);
/* fcntl F_GETPIPE_SZ and F_SETPIPE_SZ: the size, -EBADF when f is no pipe; -EPERM, -EBUSY, -EINVAL.
 */
long pipe_get_size(struct file *f) MUST_CHECK;
long pipe_set_size(struct file *f, uint64_t size, const struct cred *c) MUST_CHECK;

/*
 * For splice(2) and kin. A transfer into a pipe first reserves room, then fills pages with no lock
 * held, then commits; a transfer out of a pipe borrows the pages at its head while other readers
 * wait.
 */
#define PIPE_SPLICE_MAX 16u

struct pipe_page {
	void *page; /* PAGE_SIZE bytes from mem_alloc */
	unsigned off, len;
};

/* Waits until there is room; gives the right to commit the returned number (1..want) of pages.
 * -EPIPE, -EAGAIN when `nonblock`, -ERESTARTSYS. */
int pipe_reserve(struct file *f, unsigned want, bool nonblock) MUST_CHECK;
/* Ends a reservation of `reserved`; takes the first `count` pages. */
void pipe_commit(struct file *f, struct pipe_page *pages, unsigned count, unsigned reserved);
/* Waits for data and borrows up to PIPE_SPLICE_MAX pages holding at most `limit` bytes. Their
 * number, 0 at the end, -EAGAIN, -ERESTARTSYS. Unless 0 or an error, pipe_drain_end must follow. */
int pipe_drain_begin(struct file *f, size_t limit, bool nonblock, struct pipe_page *pages)
	MUST_CHECK;
/* Removes the first `size` bytes. */
void pipe_drain_end(struct file *f, size_t size);
/* Moves (tee: copies) up to `size` bytes between two pipes. Bytes, 0 at the end of `in`, -EINVAL
 * for one pipe, -EAGAIN, -EPIPE, -ENOMEM, -ERESTARTSYS. */
ssize_t pipe_transfer(struct file *in, struct file *out, size_t size, bool tee, bool nonblock)
	MUST_CHECK;

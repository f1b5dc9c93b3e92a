/*
 * Pipes and FIFOs: a ring of pages with one lock.
 *
 * A slot holds the bytes [off, off+len) of one page. A write first tries to put what is left over a
 * multiple of the page size behind the last slot's bytes, then takes a fresh page per slot; since
 * PIPE_BUF is one page, an atomic write never spans two sleeps. A pipe of n slots is full when n
 * slots are used, however few bytes they hold (pipe(7)).
 *
 * Wake-ups: readers and writers sleep as exclusive waiters on one queue, told apart by poll bits.
 * Whoever slept and leaves work for another of its kind wakes the next one, so no wake-up is lost.
 *
 * The pipe hangs at inode->ipc and is counted by `users` under the inode's lock; the ends are
 * counted by readers and writers under the pipe's. Opening a FIFO waits for the *event* that the
 * other side opened (a counter), not for the state: a writer that came and left satisfies a
 * reader's open.
 */
#include "fs/pipe.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>

#include "fs/pipe_priv.h"
#include "platform/base/alloc.h"

_Atomic int pipe_max_size = PIPE_UNPRIVILEGED_MAX;
static const struct file_ops pipe_file_ops;
static atomic_uint pages_in_use; /* of all pipes */

bool is_pipe(const struct file *f)
{
	return f->ops == &pipe_file_ops;
}

/* ---- the ring ----------------------------------------------------------------------------- */

char *pipe_page_get_locked(struct pipe *p)
{
	char *page = p->spare;

	if (atomic_load(&pages_in_use) >= PIPE_PAGES_MAX)
		return NULL;
	p->spare = NULL;
	return page ? page : mem_alloc(PAGE_SIZE);
}

void pipe_page_put_locked(struct pipe *p, char *page)
{
	if (p->spare)
		mem_free(page);
	else
		p->spare = page;
}

void pipe_push_locked(struct pipe *p, char *page, unsigned off, unsigned len, bool packet)
{
	BUG_ON(p->head - p->tail >= p->slots);
	atomic_fetch_add(&pages_in_use, 1);
	*pipe_slot_locked(p, p->head++) =
		(struct pipe_buf){ .page = page, .off = off, .len = len, .packet = packet };
}

void pipe_pop_locked(struct pipe *p)
{
	atomic_fetch_sub(&pages_in_use, 1);
	pipe_page_put_locked(p, pipe_slot_locked(p, p->tail++)->page);
}

/* p->mu is held, as the name says; callers with a pair of pipes are beyond clang's analysis. */
int pipe_wait_data_locked(struct pipe *p, bool nonblock, bool *slept) NO_LOCK_ANALYSIS
{
	while (p->draining || pipe_empty_locked(p)) {
		if (!p->draining && p->writers == 0)
			return 0;
		if (nonblock)
			return -EAGAIN;
		int err = waitq_wait_exclusive(&p->wait, &p->mu, PIPE_IN, DEADLINE_NEVER);
		if (err)
			return err;
		*slept = true;
	}
	return 1;
}

int pipe_wait_room_locked(struct pipe *p, bool nonblock, bool *slept) NO_LOCK_ANALYSIS
{
	for (;;) {
		if (p->readers == 0)
			return -EPIPE;
		if (!pipe_full_locked(p))
			return 0;
		if (nonblock)
			return -EAGAIN;
		int err = waitq_wait_exclusive(&p->wait, &p->mu, PIPE_OUT, DEADLINE_NEVER);
		if (err)
			return err;
		*slept = true;
	}
}

/* ---- reading and writing ------------------------------------------------------------------ */

/* Moves what is there into `it`; the byte count, or -EFAULT when the first copy failed. */
static ssize_t pipe_take_locked(struct pipe *p, struct iov_iter *it)
{
	ssize_t done = 0;

	while (!pipe_empty_locked(p) && it->count > 0) {
		struct pipe_buf *b = pipe_slot_locked(p, p->tail);
		unsigned n = (unsigned)MIN(b->len, it->count);
		/* What could not be delivered in whole stays in the pipe. */
		if (iov_copy_to(it, b->page + b->off, n) != (ssize_t)n)
			return done ? done : -EFAULT;
		done += n;
		bool packet = b->packet;
		b->off += n;
		b->len -= n;
		if (packet || b->len == 0)
			pipe_pop_locked(p);
		if (packet)
			break;
	}
	return done;
}

static ssize_t pipe_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct pipe *p = to_pipe_file(f)->pipe;
	bool slept = false;

	if (it->count == 0)
		return 0;
	mutex_lock(&p->mu);
	ssize_t ret = pipe_wait_data_locked(p, file_nonblock(f), &slept);
	bool was_full = pipe_full_locked(p);
	if (ret > 0)
		ret = pipe_take_locked(p, it);
	bool wake_writer = was_full && !pipe_full_locked(p);
	bool wake_reader = slept && !pipe_empty_locked(p);
	mutex_unlock(&p->mu);
	if (wake_writer)
		waitq_wake(&p->wait, PIPE_OUT);
	if (wake_reader)
		waitq_wake(&p->wait, PIPE_IN);
	return ret;
}

/* Appends the odd part of a write behind the newest slot's bytes, when all of it fits. */
static ssize_t pipe_merge_locked(struct pipe *p, struct iov_iter *it)
{
	size_t n = it->count % PAGE_SIZE;

	if (n == 0 || pipe_empty_locked(p) || p->reserved > 0)
		return 0;
	struct pipe_buf *b = pipe_slot_locked(p, p->head - 1);
	if (b->packet || b->off + b->len + n > PAGE_SIZE)
		return 0;
	if (iov_copy_from(it, b->page + b->off + b->len, n) != (ssize_t)n)
		return -EFAULT;
	b->len += (unsigned)n;
	return (ssize_t)n;
}

/* One fresh slot from `it`; bytes or -errno. */
static ssize_t pipe_append_locked(struct pipe *p, struct iov_iter *it, bool packet)
{
	size_t n = MIN(it->count, PAGE_SIZE);
	char *page = pipe_page_get_locked(p);

	if (!page)
		return -ENOMEM;
	if (iov_copy_from(it, page, n) != (ssize_t)n) {
		pipe_page_put_locked(p, page);
		return -EFAULT;
	}
	pipe_push_locked(p, page, 0, (unsigned)n, packet);
	return (ssize_t)n;
}

/* The loop of write(2): everything, or what went before an error. */
static ssize_t pipe_put_locked(struct pipe *p, struct iov_iter *it, bool packet, bool nonblock,
			       bool *slept)
{
	ssize_t done = 0;

	if (p->readers == 0)
		return -EPIPE;
	if (!packet) {
		done = pipe_merge_locked(p, it);
		if (done < 0)
			return done;
	}
	while (it->count > 0) {
		if (pipe_full_locked(p) && done > 0)
			waitq_wake(&p->wait, PIPE_IN);
		ssize_t r = pipe_wait_room_locked(p, nonblock, slept);
		if (r == 0)
			r = pipe_append_locked(p, it, packet);
		if (r < 0)
			return done ? done : r;
		done += r;
	}
	return done;
}

static ssize_t pipe_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct pipe *p = to_pipe_file(f)->pipe;
	bool slept = false;

	if (it->count == 0)
		return 0;
	mutex_lock(&p->mu);
	ssize_t ret = pipe_put_locked(p, it, file_flags(f) & O_DIRECT, file_nonblock(f), &slept);
	bool wake_writer = slept && !pipe_full_locked(p);
	mutex_unlock(&p->mu);
	if (ret > 0)
		waitq_wake(&p->wait, PIPE_IN);
	if (wake_writer)
		waitq_wake(&p->wait, PIPE_OUT);
	return ret;
}

static uint32_t pipe_poll(struct file *f, struct poll_table *pt)
{
	struct pipe_file *pf = to_pipe_file(f);
	struct pipe *p = pf->pipe;
	uint32_t events = 0;

	poll_wait(pt, &p->wait);
	mutex_lock(&p->mu);
	if (file_can_read(f)) {
		if (!pipe_empty_locked(p))
			events |= PIPE_IN;
		if (p->writers == 0 && pf->seen_opens != p->writer_opens)
			events |= POLLHUP;
	}
	if (file_can_write(f)) {
		if (!pipe_full_locked(p))
			events |= PIPE_OUT;
		/* A pipe without reader never blocks: it fails. */
		if (p->readers == 0)
			events |= POLLERR;
	}
	mutex_unlock(&p->mu);
	return events;
}

static long pipe_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct pipe *p = to_pipe_file(f)->pipe;
	int size = 0;

	if (cmd != FIONREAD)
		return -ENOTTY;
	mutex_lock(&p->mu);
	for (unsigned i = p->tail; i != p->head; i++)
		size += (int)pipe_slot_locked(p, i)->len;
	mutex_unlock(&p->mu);
	return umem_write(um, arg, &size, sizeof(size));
}

/* ---- size --------------------------------------------------------------------------------- */

long pipe_get_size(struct file *f)
{
	if (!is_pipe(f))
		return -EBADF;
	struct pipe *p = to_pipe_file(f)->pipe;
	mutex_lock(&p->mu);
	long size = (long)p->slots * (long)PAGE_SIZE;
	mutex_unlock(&p->mu);
	return size;
}

static int pipe_resize_locked(struct pipe *p, struct pipe_buf *ring, unsigned slots)
{
	unsigned used = p->head - p->tail;

	if (used + p->reserved > slots)
		return -EBUSY;
	for (unsigned i = 0; i < used; i++)
		ring[i] = *pipe_slot_locked(p, p->tail + i);
	p->ring = ring;
	p->tail = 0;
	p->head = used;
	p->slots = slots;
	return 0;
}

long pipe_set_size(struct file *f, uint64_t size, const struct cred *c)
{
	unsigned slots = 1;

	if (!is_pipe(f))
		return -EBADF;
	if (size > 1ul << 31)
		return -EINVAL;
	struct pipe *p = to_pipe_file(f)->pipe;
	while (slots * PAGE_SIZE < size)
		slots *= 2;
	if (slots * PAGE_SIZE > (unsigned long)atomic_load(&pipe_max_size) &&
	    slots * (long)PAGE_SIZE > pipe_get_size(f) && !cred_capable(c, CAP_SYS_RESOURCE))
		return -EPERM;
	struct pipe_buf *ring = mem_calloc(slots, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	mutex_lock(&p->mu);
	struct pipe_buf *old = p->ring;
	bool was_full = pipe_full_locked(p);
	int err = pipe_resize_locked(p, ring, slots);
	bool wake = !err && was_full && !pipe_full_locked(p);
	mutex_unlock(&p->mu);
	mem_free(err ? ring : old);
	if (wake)
		waitq_wake_all(&p->wait, PIPE_OUT);
	return err ? err : (long)(slots * PAGE_SIZE);
}

/* ---- making and opening ------------------------------------------------------------------- */

static int pipe_object_new(bool anonymous, struct pipe **out)
{
	struct pipe *p = mem_zalloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->ring = mem_calloc(PIPE_DEFAULT_SLOTS, sizeof(*p->ring));
	if (!p->ring) {
		mem_free(p);
		return -ENOMEM;
	}
	p->slots = PIPE_DEFAULT_SLOTS;
	p->anonymous = anonymous;
	mutex_init(&p->mu, RANK_PIPE);
	waitq_init(&p->wait);
	*out = p;
	return 0;
}

static void pipe_object_free(struct pipe *p)
{
	while (!pipe_empty_locked(p))
		pipe_pop_locked(p);
	mem_free(p->spare);
	mem_free(p->ring);
	waitq_fini(&p->wait);
	mutex_fini(&p->mu);
	mem_free(p);
}

/* The pipe of an inode, made if there is none, with one user more. */
static int pipe_join(struct inode *ino, struct pipe **out)
{
	int err = 0;

	mutex_lock(&ino->mu);
	struct pipe *p = ino->ipc;
	if (!p)
		err = pipe_object_new(false, &p);
	if (!err) {
		ino->ipc = p;
		p->users++;
		*out = p;
	}
	mutex_unlock(&ino->mu);
	return err;
}

static void pipe_leave(struct inode *ino, struct pipe *p)
{
	mutex_lock(&ino->mu);
	bool last = --p->users == 0;
	if (last)
		ino->ipc = NULL;
	mutex_unlock(&ino->mu);
	if (last)
		pipe_object_free(p);
}

static void pipe_count_ends(struct pipe *p, int flags, bool open)
{
	int mode = flags & O_ACCMODE;
	unsigned step = open ? 1u : -1u;

	mutex_lock(&p->mu);
	if (mode != O_WRONLY)
		p->readers += step;
	if (mode != O_RDONLY)
		p->writers += step;
	if (open && mode != O_WRONLY)
		p->reader_opens++;
	if (open && mode != O_RDONLY)
		p->writer_opens++;
	mutex_unlock(&p->mu);
	waitq_wake_all(&p->wait, PIPE_ALL);
}

/* Waits until the other side has opened since `seen`. */
static int pipe_wait_partner(struct pipe *p, const unsigned *opens, unsigned seen)
{
	int err = 0;

	mutex_lock(&p->mu);
	while (!err && *opens == seen)
		err = waitq_wait(&p->wait, &p->mu, POLLHUP, DEADLINE_NEVER);
	mutex_unlock(&p->mu);
	return err;
}

/* The waiting part of fifo_open; the caller's own end is counted already. */
static int fifo_meet(struct pipe *p, int flags, unsigned reader_opens, unsigned writer_opens)
{
	mutex_lock(&p->mu);
	bool has_reader = p->readers > 0, has_writer = p->writers > 0;
	mutex_unlock(&p->mu);
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		if (has_writer || (flags & O_NONBLOCK))
			return 0;
		return pipe_wait_partner(p, &p->writer_opens, writer_opens);
	case O_WRONLY:
		return has_reader ? 0 : pipe_wait_partner(p, &p->reader_opens, reader_opens);
	default:
		return 0;
	}
}

static int fifo_open_ends(struct pipe *p, int flags, unsigned *out_seen)
{
	mutex_lock(&p->mu);
	unsigned reader_opens = p->reader_opens, writer_opens = p->writer_opens;
	bool refuse = (flags & O_ACCMODE) == O_WRONLY && (flags & O_NONBLOCK) && p->readers == 0;
	/* A reader that waits for no writer must not see a hang-up before the first one. */
	bool no_hangup_yet =
		(flags & O_ACCMODE) == O_RDONLY && (flags & O_NONBLOCK) && p->writers == 0;
	mutex_unlock(&p->mu);
	if (p->anonymous)
		no_hangup_yet = refuse = false;
	if (refuse)
		return -ENXIO;
	*out_seen = no_hangup_yet ? writer_opens : writer_opens - 1;
	pipe_count_ends(p, flags, true);
	if (p->anonymous)
		return 0;
	int err = fifo_meet(p, flags, reader_opens, writer_opens);
	if (err)
		pipe_count_ends(p, flags, false);
	return err;
}

int fifo_open(struct inode *ino, int flags, const struct cred *c UNUSED, struct file **out)
{
	struct pipe *p;

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	struct pipe_file *pf = mem_zalloc(sizeof(*pf));
	if (!pf)
		return -ENOMEM;
	int err = pipe_join(ino, &p);
	if (err)
		goto out_free;
	err = fifo_open_ends(p, flags, &pf->seen_opens);
	if (err)
		goto out_leave;
	pf->pipe = p;
	file_init(&pf->file, &pipe_file_ops, inode_get(ino), (unsigned)flags);
	*out = &pf->file;
	return 0;

out_leave:
	pipe_leave(ino, p);
out_free:
	mem_free(pf);
	return err;
}

int pipe_new(unsigned flags, const struct cred *c, struct file **out_r, struct file **out_w)
{
	struct inode *ino;
	struct pipe *p;

	int err = anon_inode_new(S_IFIFO | 0600, c, &ino);
	if (err)
		return err;
	err = pipe_object_new(true, &p);
	if (err)
		goto out_inode;
	ino->ipc = p;
	p->users = 1; /* ours, until both files have theirs */
	err = fifo_open(ino, (int)(O_RDONLY | flags), c, out_r);
	if (err)
		goto out_leave;
	err = fifo_open(ino, (int)(O_WRONLY | flags), c, out_w);
	if (err)
		file_put(*out_r);
out_leave:
	pipe_leave(ino, p);
out_inode:
	inode_put(ino);
	return err;
}

static void pipe_release(struct file *f)
{
	struct pipe_file *pf = to_pipe_file(f);

	pipe_count_ends(pf->pipe, (int)file_flags(f), false);
	pipe_leave(f->inode, pf->pipe);
	mem_free(pf);
}

static void pipe_describe(struct file *f, struct fmt *out)
{
	fmt_printf(out, "pipe:[%llu]", (unsigned long long)f->inode->ino);
}

static const struct file_ops pipe_file_ops = {
	.read = pipe_read,
	.write = pipe_write,
	.poll = pipe_poll,
	.ioctl = pipe_ioctl,
	.release = pipe_release,
	.describe = pipe_describe,
};

/*
 * Pipes in splice(2), tee(2) and vmsplice(2): see the last part of pipe.h. No lock is held while
 * the other file is read or written; a reservation keeps room, and the `draining` mark keeps other
 * readers away from pages that are being written out.
 */
#include <errno.h>
#include <string.h>

#include "fs/pipe_priv.h"
#include "platform/base/alloc.h"

int pipe_reserve(struct file *f, unsigned want, bool nonblock)
{
	struct pipe *p = to_pipe_file(f)->pipe;
	bool slept = false;

	mutex_lock(&p->mu);
	int ret = pipe_wait_room_locked(p, nonblock, &slept);
	if (!ret) {
		unsigned room = p->slots - (p->head - p->tail) - p->reserved;
		ret = (int)MIN(want, room);
		p->reserved += (unsigned)ret;
	}
	mutex_unlock(&p->mu);
	return ret;
}

void pipe_commit(struct file *f, struct pipe_page *pages, unsigned count, unsigned reserved)
{
	struct pipe *p = to_pipe_file(f)->pipe;

	BUG_ON(count > reserved);
	mutex_lock(&p->mu);
	BUG_ON(p->reserved < reserved);
	p->reserved -= reserved;
	for (unsigned i = 0; i < count; i++)
		pipe_push_locked(p, pages[i].page, pages[i].off, pages[i].len, false);
	bool room = !pipe_full_locked(p);
	mutex_unlock(&p->mu);
	if (count)
		waitq_wake(&p->wait, PIPE_IN);
	/* A writer may have gone to sleep because of the reservation alone. */
	if (room)
		waitq_wake(&p->wait, PIPE_OUT);
}

int pipe_drain_begin(struct file *f, size_t limit, bool nonblock, struct pipe_page *pages)
{
	struct pipe *p = to_pipe_file(f)->pipe;
	bool slept = false;
	unsigned n = 0;

	if (limit == 0)
		return 0;
	mutex_lock(&p->mu);
	int ret = pipe_wait_data_locked(p, nonblock, &slept);
	if (ret > 0) {
		for (unsigned i = p->tail; i != p->head && n < PIPE_SPLICE_MAX && limit > 0; i++) {
			struct pipe_buf *b = pipe_slot_locked(p, i);
			unsigned len = (unsigned)MIN(b->len, limit);
			pages[n++] =
				(struct pipe_page){ .page = b->page, .off = b->off, .len = len };
			limit -= len;
		}
		p->draining = true;
		ret = (int)n;
	}
	mutex_unlock(&p->mu);
	return ret;
}

void pipe_drain_end(struct file *f, size_t size)
{
	struct pipe *p = to_pipe_file(f)->pipe;

	mutex_lock(&p->mu);
	bool was_full = pipe_full_locked(p);
	while (size > 0) {
		struct pipe_buf *b = pipe_slot_locked(p, p->tail);
		unsigned n = (unsigned)MIN(b->len, size);
		b->off += n;
		b->len -= n;
		size -= n;
		if (b->len == 0)
			pipe_pop_locked(p);
	}
	p->draining = false;
	bool wake_writer = was_full && !pipe_full_locked(p);
	mutex_unlock(&p->mu);
	if (wake_writer)
		waitq_wake(&p->wait, PIPE_OUT);
	/* Readers that met the mark; they look for data and for the end. */
	waitq_wake_all(&p->wait, PIPE_IN);
}

/* Copies or moves what both pipes allow now. Both locks are held. */
static ssize_t transfer_locked(struct pipe *in, struct pipe *out, size_t size, bool tee)
{
	unsigned i = in->tail;
	ssize_t done = 0;

	while (i != in->head && !pipe_full_locked(out) && size > 0) {
		struct pipe_buf *b = pipe_slot_locked(in, i);
		unsigned n = (unsigned)MIN(b->len, size);
		if (!tee && n == b->len) {
			pipe_push_locked(out, b->page, b->off, n, b->packet);
			in->tail++;
		} else {
			char *page = pipe_page_get_locked(out);
			if (!page)
				return done ? done : -ENOMEM;
			memcpy(page, b->page + b->off, n);
			pipe_push_locked(out, page, 0, n, b->packet);
			if (!tee) {
				b->off += n;
				b->len -= n;
			}
		}
		i++;
		size -= n;
		done += n;
	}
	return done;
}

/* Waits until `in` has data: 1, 0 at the end, -errno. */
static int wait_for_data(struct pipe *in, bool nonblock)
{
	bool slept = false;

	mutex_lock(&in->mu);
	int ret = pipe_wait_data_locked(in, nonblock, &slept);
	mutex_unlock(&in->mu);
	return ret;
}

static int wait_for_room(struct pipe *out, bool nonblock)
{
	bool slept = false;

	mutex_lock(&out->mu);
	int ret = pipe_wait_room_locked(out, nonblock, &slept);
	mutex_unlock(&out->mu);
	return ret;
}

ssize_t pipe_transfer(struct file *f_in, struct file *f_out, size_t size, bool tee, bool nonblock)
{
	struct pipe *in = to_pipe_file(f_in)->pipe, *out = to_pipe_file(f_out)->pipe;

	if (in == out)
		return -EINVAL;
	for (;;) {
		int err = wait_for_data(in, nonblock);
		if (err <= 0)
			return err;
		err = wait_for_room(out, nonblock);
		if (err)
			return err;
		mutex_lock_pair(&in->mu, &out->mu);
		bool was_full = pipe_full_locked(in);
		ssize_t ret = in->draining ? 0 : transfer_locked(in, out, size, tee);
		bool wake_writer = was_full && !pipe_full_locked(in);
		bool more = !pipe_empty_locked(in), room = !pipe_full_locked(out);
		mutex_unlock_pair(&in->mu, &out->mu);
		if (ret > 0)
			waitq_wake(&out->wait, PIPE_IN);
		if (wake_writer)
			waitq_wake(&in->wait, PIPE_OUT);
		/* We slept as exclusive waiters: what we leave is for the next one. */
		if (more)
			waitq_wake(&in->wait, PIPE_IN);
		if (room)
			waitq_wake(&out->wait, PIPE_OUT);
		/* 0: somebody else was quicker. */
		if (ret != 0 || size == 0)
			return ret;
	}
}

/* What fs/pipe.c and fs/pipe_splice.c share; nobody else includes this. */
#pragma once

#include "fs/pipe.h"

struct pipe_buf {
	char *page;
	unsigned off, len;
	bool packet; /* a read takes at most this one and drops the rest of it */
};

struct pipe {
	struct mutex mu;       /* rank PIPE */
	struct waitq wait;     /* POLLIN: data; POLLOUT: a free slot; all: a side came or went */
	struct pipe_buf *ring; /* [mu] `slots` of them */
	unsigned head, tail;   /* [mu] free-running: next to write, next to read */
	unsigned slots;        /* [mu] a power of two */
	unsigned reserved;     /* [mu] slots promised to a splice that is filling pages */
	bool draining;         /* [mu] a splice writes out the pages at tail: other readers wait */
	unsigned readers, writers;           /* [mu] open files by mode */
	unsigned reader_opens, writer_opens; /* [mu] ever opened: what an open waits for */
	unsigned users;                      /* [inode mu] files and opens in progress */
	bool anonymous;                      /* [I] made by pipe(2): opening it again never waits */
	char *spare;                         /* [mu] a page kept for the next write, or NULL */
};

struct pipe_file {
	struct file file;
	struct pipe *pipe;   /* [I] lives as long as its files */
	unsigned seen_opens; /* [I] writer_opens at open: no hang-up before a first writer came */
};

static inline struct pipe_file *to_pipe_file(struct file *f)
{
	return container_of(f, struct pipe_file, file);
}

static inline bool pipe_empty_locked(const struct pipe *p)
{
	return p->head == p->tail;
}

static inline bool pipe_full_locked(const struct pipe *p)
{
	return p->head - p->tail + p->reserved >= p->slots;
}

static inline struct pipe_buf *pipe_slot_locked(struct pipe *p, unsigned i)
{
	return &p->ring[i & (p->slots - 1)];
}

#define PIPE_IN (POLLIN | POLLRDNORM)
#define PIPE_OUT (POLLOUT | POLLWRNORM)
#define PIPE_ALL (PIPE_IN | PIPE_OUT | POLLHUP | POLLERR)

/* A page for one slot, from the spare or the heap; NULL without memory. */
char *pipe_page_get_locked(struct pipe *p) MUST_CHECK;
void pipe_page_put_locked(struct pipe *p, char *page);
void pipe_push_locked(struct pipe *p, char *page, unsigned off, unsigned len, bool packet);
/* Drops the buffer at the tail. */
void pipe_pop_locked(struct pipe *p);
/* Sleeps until there is data: 1, 0 at the end, -EAGAIN, -ERESTARTSYS. `slept` is set when it slept.
 */
int pipe_wait_data_locked(struct pipe *p, bool nonblock, bool *slept) MUST_CHECK;
/* Sleeps until a slot is free: 0, -EPIPE, -EAGAIN, -ERESTARTSYS. */
int pipe_wait_room_locked(struct pipe *p, bool nonblock, bool *slept) MUST_CHECK;

/*
 * Moving bytes on a host descriptor that belongs to others too: its description may be in blocking
 * mode and is left as it is, so every transfer is one that cannot sleep in the host, and waiting
 * happens in a wait queue that the host poller wakes.
 */
#pragma once

#include "fs/hostpoll.h"
#include "fs/poll.h"
#include "platform/base/iov.h"

struct hoststream {
	int fd;               /* [I] owned by the surrounding object */
	struct mutex *mu;     /* [I] */
	struct waitq *wait;   /* [I] */
	struct hostpoll poll; /* registered on first need */
};

/* interest: POLLIN and/or POLLOUT. mu and wait live as long as s. */
void hoststream_init(struct hoststream *s, int fd, uint32_t interest, struct mutex *mu,
		     struct waitq *wait);
/* No lock held. The descriptor stays open. */
void hoststream_fini(struct hoststream *s);
/* With s->mu held, which is dropped while sleeping. Bytes; 0: end; -EAGAIN (nonblock),
 * -ERESTARTSYS, or the host's error. A write returns less than everything only for a signal, an
 * error or nonblock. */
ssize_t hoststream_read(struct hoststream *s, struct iov_iter *it, bool nonblock) MUST_CHECK;
ssize_t hoststream_write(struct hoststream *s, struct iov_iter *it, bool nonblock) MUST_CHECK;
/* poll(2) bits now; registers for the next change when pt is given. No lock held. */
uint32_t hoststream_poll(struct hoststream *s, struct poll_table *pt);
/* Begins watching, so that waits work; call once before the lock is taken for a read or write that
 * may sleep. Files that are always ready are fine. */
void hoststream_prepare_wait(struct hoststream *s);

/*
 * Readiness of host descriptors. One thread waits in epoll for all of them and wakes wait queues;
 * it sleeps for ever when nothing happens. Descriptors are registered edge-triggered on the first
 * need, so a stream on which nobody ever waits costs nothing.
 */
#pragma once

#include "platform/base/waitq.h"

struct hostpoll {
	int fd;                /* [I] host descriptor, owned by the caller */
	uint32_t interest;     /* [I] POLLIN and/or POLLOUT */
	struct mutex *mu;      /* [I] the lock under which waiters check readiness */
	struct waitq *q;       /* [I] woken at each change */
	atomic_bool active;    /* [a] registered with the thread */
	struct hostpoll *next; /* [set's lock] chain of all that are watched */
};

/* mu and q outlive p. A waiter that checks readiness under mu and sleeps by waitq_wait(q, mu)
 * misses no change. */
void hostpoll_init(struct hostpoll *p, int fd, uint32_t interest, struct mutex *mu,
		   struct waitq *q);
/* Begins watching; starts the thread on the first use. Cheap when already watched. 0 or -errno;
 * -EPERM for files that are always ready (regular files). */
int hostpoll_watch(struct hostpoll *p) MUST_CHECK;
/* Ends watching; no wake runs after return. May sleep; no lock may be held. Call before closing fd.
 */
void hostpoll_fini(struct hostpoll *p);

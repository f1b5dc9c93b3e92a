/*
 * The host poller thread: see hostpoll.h.
 *
 * Each event carries the address of its struct hostpoll. An event may have been fetched when its
 * descriptor is being removed, so the thread works on events only under `set_mu`, after looking up
 * that the address is still registered; hostpoll_fini removes under the same lock.
 */
#include "fs/hostpoll.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "platform/base/log.h"
#include "platform/base/thread.h"
#include "platform/host/host.h"

#define EVENT_BATCH 16

/* The thread takes a file's lock inside; epoll sets are watched with theirs held outside. */
static struct mutex set_mu = MUTEX_INIT(RANK_HOSTPOLL);
static int set_fd = -1;          /* [set_mu] */
static struct hostpoll *watched; /* [set_mu] chain by next */

static bool is_watched(const struct hostpoll *p)
{
	for (const struct hostpoll *h = watched; h; h = h->next)
		if (h == p)
			return true;
	return false;
}

/* A waiter holds p->mu from its check until it is queued, so passing through p->mu puts this wake
 * after the queueing. */
static void announce(struct hostpoll *p, uint32_t events)
{
	mutex_lock(p->mu);
	mutex_unlock(p->mu);
	waitq_wake_all(p->q, events);
}

static void *poller_main(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct epoll_event ev[EVENT_BATCH];

	for (;;) {
		int n = host_epoll_wait(fd, ev, EVENT_BATCH);
		if (n < 0) {
			log_error("host poller: epoll_wait failed with %d", n);
			return NULL;
		}
		mutex_lock(&set_mu);
		for (int i = 0; i < n; i++)
			if (is_watched(ev[i].data.ptr))
				announce(ev[i].data.ptr, ev[i].events);
		mutex_unlock(&set_mu);
	}
}

/* Needs set_mu. */
static int start_locked(void)
{
	if (set_fd >= 0)
		return 0;
	int fd = host_epoll_create();
	if (fd < 0)
		return fd;
	pthread_t thread;
	int err = thread_start(&thread, poller_main, (void *)(intptr_t)fd);
	if (err) {
		host_close(fd);
		return err;
	}
	set_fd = fd;
	return 0;
}

void hostpoll_init(struct hostpoll *p, int fd, uint32_t interest, struct mutex *mu, struct waitq *q)
{
	*p = (struct hostpoll){ .fd = fd, .interest = interest, .mu = mu, .q = q };
}

int hostpoll_watch(struct hostpoll *p)
{
	if (atomic_load_explicit(&p->active, memory_order_acquire))
		return 0;
	mutex_lock(&set_mu);
	int err = start_locked();
	if (!err && !atomic_load(&p->active)) {
		/* poll(2) and epoll(7) use the same bits. */
		struct epoll_event ev = { .events = p->interest | EPOLLRDHUP | EPOLLET,
					  .data.ptr = p };
		err = host_epoll_ctl(set_fd, EPOLL_CTL_ADD, p->fd, &ev);
		if (!err) {
			p->next = watched;
			watched = p;
			atomic_store_explicit(&p->active, true, memory_order_release);
		}
	}
	mutex_unlock(&set_mu);
	return err;
}

void hostpoll_fini(struct hostpoll *p)
{
	if (!atomic_load(&p->active))
		return;
	mutex_lock(&set_mu);
	for (struct hostpoll **link = &watched; *link; link = &(*link)->next)
		if (*link == p) {
			*link = p->next;
			break;
		}
	int err = host_epoll_ctl(set_fd, EPOLL_CTL_DEL, p->fd, NULL);
	if (err)
		log_debug("host poller: removing %d failed with %d", p->fd, err);
	atomic_store(&p->active, false);
	mutex_unlock(&set_mu);
}

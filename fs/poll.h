/*
 * Readiness. A file's poll op returns the poll(2) bits that hold now and, when `pt` is given, names
 * the wait queues on which a change will be announced, by poll_wait. Poll, select and epoll differ
 * only in their poll_table.
 */
#pragma once

#include <poll.h>

#include "platform/base/waitq.h"

struct poll_table {
	/* Called for each queue; adds a waiter of its own to it. */
	void (*queue)(struct poll_table *pt, struct waitq *q);
};

static inline void poll_wait(struct poll_table *pt, struct waitq *q)
{
	if (pt)
		pt->queue(pt, q);
}

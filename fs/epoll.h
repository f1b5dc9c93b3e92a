/* epoll(7): sets of files that tell when they become ready. */
#pragma once

#include <sys/epoll.h>

#include "fs/vfs.h"

/* An empty set. Gives. 0 or -ENOMEM. */
int epoll_new(const struct cred *c, struct file **out) MUST_CHECK;
bool is_epoll(const struct file *f);
/* epoll_ctl(2) for descriptor number `fd`, which is `target`. ev is ignored by EPOLL_CTL_DEL.
 * -EINVAL, -EEXIST, -ENOENT, -EPERM (target cannot be polled), -ELOOP, -ENOSPC, -ENOMEM. */
int epoll_control(struct file *ep, int op, int fd, struct file *target,
		  const struct epoll_event *ev) MUST_CHECK;
/* Stores up to max events (struct epoll_event as the guest knows it, 12 bytes) through `it`. Waits
 * until the deadline; 0 means do not wait. Count, 0 at the deadline, -EINTR, -EFAULT, -EINVAL when
 * ep is none. */
int epoll_wait_events(struct file *ep, struct iov_iter *it, int max, deadline_t deadline)
	MUST_CHECK;
/* Called once when the last reference of f is gone, before its release: leaves all sets. */
void epoll_file_gone(struct file *f);

/* epoll_create(2), epoll_ctl(2), epoll_wait(2) and kin. */
#include "fs/epoll.h"

#include <errno.h>
#include <limits.h>

#include "sentry/timers.h"
#include "syscalls/fs_util.h"

#define NS_PER_MS 1000000ull

long sys_epoll_create1(struct task *t, uint32_t flags)
{
	struct file *f;

	if (flags & ~(uint32_t)EPOLL_CLOEXEC)
		return -EINVAL;
	int err = epoll_new(t->cred, &f);
	return err ? err : install_file(t, f, flags & EPOLL_CLOEXEC);
}

long sys_epoll_create(struct task *t, int size)
{
	return size <= 0 ? -EINVAL : sys_epoll_create1(t, 0);
}

long sys_epoll_ctl(struct task *t, int epfd, int op, int fd, epevent_cgp event)
{
	struct epoll_event ev = { 0 };
	long ret = -EBADF;

	if (op != EPOLL_CTL_DEL && guest_load(t, &ev, event) != 0)
		return -EFAULT;
	struct file *ep = fd_get_io(t->files, epfd);
	struct file *target = ep ? fd_get_io(t->files, fd) : NULL;
	if (ep && target)
		ret = epoll_control(ep, op, fd, target, &ev);
	file_put(target);
	file_put(ep);
	return ret;
}

static long wait_on(struct task *t, int epfd, epevent_gp events, int maxevents, deadline_t deadline)
{
	struct iov_iter it;

	if (maxevents <= 0 || maxevents > INT_MAX / (int)sizeof(struct epoll_event))
		return -EINVAL;
	int err = guest_iter_buf(t, &it, events.addr,
				 (uint64_t)maxevents * sizeof(struct epoll_event), IOV_FILL);
	if (err)
		return err;
	struct file *ep = fd_get_io(t->files, epfd);
	if (!ep)
		return -EBADF;
	long ret = epoll_wait_events(ep, &it, maxevents, deadline);
	file_put(ep);
	return ret;
}

static deadline_t deadline_of_ms(int timeout)
{
	if (timeout < 0)
		return DEADLINE_NEVER;
	return timeout == 0 ? 0 : deadline_after_ns((uint64_t)timeout * NS_PER_MS);
}

/* The same under another signal mask. An interrupted call is -EINTR, never restarted (signal(7)).
 */
static long masked_wait(struct task *t, int epfd, epevent_gp events, int maxevents,
			deadline_t deadline, sigset_cgp sigmask, uint64_t sigsetsize)
{
	uint64_t mask;
	bool given;

	int err = signal_load_mask(t, sigmask, sigsetsize, &mask, &given);
	if (err)
		return err;
	if (given)
		signal_temp_mask_begin(t, mask);
	long ret = wait_on(t, epfd, events, maxevents, deadline);
	if (given)
		signal_temp_mask_end(t, ret == -EINTR);
	return ret;
}

long sys_epoll_wait(struct task *t, int epfd, epevent_gp events, int maxevents, int timeout)
{
	return wait_on(t, epfd, events, maxevents, deadline_of_ms(timeout));
}

long sys_epoll_pwait(struct task *t, int epfd, epevent_gp events, int maxevents, int timeout,
		     sigset_cgp sigmask, uint64_t sigsetsize)
{
	return masked_wait(t, epfd, events, maxevents, deadline_of_ms(timeout), sigmask,
			   sigsetsize);
}

long sys_epoll_pwait2(struct task *t, int epfd, epevent_gp events, int maxevents,
		      timespec_cgp timeout, sigset_cgp sigmask, uint64_t sigsetsize)
{
	deadline_t deadline = DEADLINE_NEVER;
	struct timespec ts;
	uint64_t ns;

	if (!gaddr_is_null(timeout.addr)) {
		if (guest_load(t, &ts, timeout) != 0)
			return -EFAULT;
		if (timespec_to_ns(&ts, &ns) != 0)
			return -EINVAL;
		deadline = ns ? deadline_after_ns(ns) : 0;
	}
	return masked_wait(t, epfd, events, maxevents, deadline, sigmask, sigsetsize);
}

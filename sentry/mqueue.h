/* POSIX message queues: mq_overview(7). The file kind lives in the sentry because it notifies
 * processes. */
#pragma once

#include <mqueue.h>

#include "fs/vfs.h"
#include "sentry/guest.h"

struct task;

#define MQ_PRIO_LIMIT 32768u

/* flags: O_ACCMODE, O_CREAT, O_EXCL, O_NONBLOCK. name has no leading slash. attr NULL: defaults.
 * Gives. -ENOENT, -EACCES, -EEXIST, -EINVAL, -ENAMETOOLONG, -EMFILE (RLIMIT_MSGQUEUE), -ENOSPC,
 * -ENOMEM. */
int mqueue_open(struct task *t, const char *name, int flags, uint32_t mode,
		const struct mq_attr *attr, struct file **out) MUST_CHECK;
int mqueue_unlink(struct task *t, const char *name) MUST_CHECK;
/* The data of `it`, all of it, with a priority. deadline: DEADLINE_NEVER or a point of time. -EBADF
 * when f is no queue or not open for it, -EMSGSIZE, -EAGAIN, -ETIMEDOUT, -ERESTARTSYS, -EFAULT. */
int mqueue_send(struct file *f, struct iov_iter *it, unsigned prio, deadline_t deadline) MUST_CHECK;
/* Bytes of the message with the highest priority. */
ssize_t mqueue_receive(struct file *f, struct iov_iter *it, deadline_t deadline, unsigned *out_prio)
	MUST_CHECK;
/* mq_notify(2). f NULL: no open file, which is -EBADF for an event that is right. sev NULL takes
 * the caller's registration back. */
int mqueue_notify(struct task *t, struct file *f, const struct k_sigevent *sev) MUST_CHECK;
/* Reports, then changes O_NONBLOCK when `new` is given. -EBADF, -EINVAL. */
int mqueue_attr(struct file *f, const struct mq_attr *new, struct mq_attr *out_old) MUST_CHECK;

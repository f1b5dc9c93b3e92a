/* timerfd_create(2): expirations of a timer, read from a file. */
#pragma once

#include "fs/vfs.h"

/* flags: TFD_NONBLOCK; the caller has refused others. -EINVAL for an unknown clock, -EPERM for an
 * alarm clock without CAP_WAKE_ALARM. Gives. */
int timerfd_new(int clock, unsigned flags, const struct cred *c, struct file **out) MUST_CHECK;
bool is_timerfd(const struct file *f);
/* -EINVAL when f is no timerfd, for unknown flags and bad times. out_old may be NULL. */
int timerfd_set(struct file *f, int flags, const struct itimerspec *new, struct itimerspec *out_old)
	MUST_CHECK;
int timerfd_get(struct file *f, struct itimerspec *out) MUST_CHECK;

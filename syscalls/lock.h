/* Record locks by fcntl(2), for fd.c. */
#pragma once

#include "sentry/task.h"
#include "sentry/guest.h"

/* F_GETLK, F_SETLK, F_SETLKW and their F_OFD_ forms; arg: struct flock. */
long fcntl_lock(struct task *t, int fd, struct file *f, int cmd, struct gaddr arg);

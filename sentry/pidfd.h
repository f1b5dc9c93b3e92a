/* Process descriptors: pidfd_open(2). The file kind lives in the sentry because it must see tasks.
 */
#pragma once

#include "fs/vfs.h"

struct task;
struct group;

/* A new descriptor of t that refers to g; flags: PIDFD_NONBLOCK (O_NONBLOCK). Number or -errno.
 * Close-on-exec. */
int pidfd_install(struct task *t, struct group *g, unsigned flags) MUST_CHECK;
/* What pidfd_send_signal takes: a pidfd, or a directory /proc/<pid> open for reading. Referenced;
 * -EBADF, -ESRCH. */
int pidfd_signal_group(struct file *f, struct group **out) MUST_CHECK;
/* The process of a pidfd, referenced; -EBADF when f is another kind. */
int pidfd_group(struct file *f, struct group **out) MUST_CHECK;

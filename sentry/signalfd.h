/* signalfd(2). The file kind lives in the sentry because it takes signals of the calling task. */
#pragma once

#include "fs/vfs.h"

/* flags: O_NONBLOCK. Gives. */
int signalfd_new(uint64_t mask, unsigned flags, const struct cred *c, struct file **out) MUST_CHECK;
/* Replaces the set; -EINVAL when f is another kind. */
int signalfd_set_mask(struct file *f, uint64_t mask) MUST_CHECK;

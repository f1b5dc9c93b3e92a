/* eventfd(2): a 64-bit counter that can be waited for. */
#pragma once

#include "fs/vfs.h"

/* flags: EFD_SEMAPHORE and O_NONBLOCK; the caller has refused others. Gives. 0 or -ENOMEM. */
int eventfd_new(uint32_t initial, unsigned flags, const struct cred *c, struct file **out)
	MUST_CHECK;
/* Is f an eventfd? */
bool is_eventfd(const struct file *f);
/* Adds n from inside the kernel (completion of asynchronous work); saturates. */
void eventfd_signal(struct file *f, uint64_t n);

/* The sentry's side of a futex word: shared with stubs or with other threads of ours. */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/types.h"

/* 0, -EAGAIN when the word is not `value`, -EINTR, -ETIMEDOUT. */
static inline int futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, FUTEX_WAIT, value, timeout, NULL, 0) < 0 ? -errno : 0;
}

/* Wakes everybody: a hostile guest could have a thread of its own sleep on the word to catch a lone
 * wake. */
static inline void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Reading and writing a stub's memory from the sentry. */
#pragma once

#include "platform/base/types.h"

/* Bytes copied before the first fault, -EFAULT when none, -ESRCH when there is no such process.
 * Obeys page protections. `n` of 0 gives 0. */
ssize_t stub_copy_in(int pid, void *dst, uint64_t addr, size_t n);
ssize_t stub_copy_out(int pid, uint64_t addr, const void *src, size_t n);

/* What both platforms do alike with a stub's memory. */
#pragma once

#include <time.h>

#include "platform/base/types.h"

/* Bytes copied before the first fault, -EFAULT when none, -ESRCH when there is no such process.
 * Obeys page protections. `n` of 0 gives 0. */
ssize_t stub_copy_in(int pid, void *dst, uint64_t addr, size_t n);
ssize_t stub_copy_out(int pid, uint64_t addr, const void *src, size_t n);

/* Page aligned, not empty, inside the guest's part of the address space. */
bool stub_range_ok(uint64_t addr, uint64_t size);
/* Is it an madvise(2) advice that a guest may give (advice.def)? */
bool stub_advice_ok(int advice);
/* Flags of mmap(2) for PLAT_MAP_* bits; the address is always fixed. */
uint64_t stub_map_flags(unsigned plat_flags);
/* Flags of mremap(2) for a move to a given place, or in place. */
uint64_t stub_remap_flags(uint64_t old_addr, uint64_t new_addr, bool dontunmap);

#define STUB_FUTEX_PLAIN 0 /* returns at once */
#define STUB_FUTEX_WAITS                                                                           \
	1 /* may sleep; restartable, *out_when is absolute (unless timeout is NULL) */
/* Checks a futex(2) call of the guest's, turns WAIT into WAIT_BITSET. One of the kinds or -errno.
 */
int stub_futex_kind(uint64_t args[6], const struct timespec *timeout, struct timespec *out_when);

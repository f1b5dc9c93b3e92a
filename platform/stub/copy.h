/* What both platforms do alike with a stub's memory. */
#pragma once

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

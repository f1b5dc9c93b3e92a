/*
 * A platform for unit tests of address spaces: "the stub" is the test process itself, in a range of addresses that
 * nothing else uses. So the host's own list of mappings can be compared with ours.
 */
#pragma once

#include "platform/platform.h"

#define SELF_MIN 0x200000000000ull
#define SELF_MAX 0x200100000000ull /* 4 GiB */

extern const struct platform_ops self_platform;

/* The next n-th platform call that changes mappings fails with -ENOMEM; 0: none. */
void self_fail_nth(unsigned n);
/* Unmaps the whole range. */
void self_reset(void);

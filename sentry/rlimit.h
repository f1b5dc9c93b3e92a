/* Resource limits. */
#pragma once

#include <sys/resource.h>

#include "platform/base/types.h"

struct task;

/* prlimit64(2) on target's process: *out_old is what was; new (may be NULL) is set. -EINVAL,
 * -EPERM. Whether t may look at target is the caller's to check. */
int rlimit_exchange(struct task *t, struct task *target, unsigned resource,
		    const struct rlimit *new, struct rlimit *out_old) MUST_CHECK;

/* The memory limit of a sandbox: a small process beside the sentry that looks at what the stubs
 * hold. */
#pragma once

#include "platform/base/types.h"

/*
 * Starts the watcher. It dies with the calling thread, which is the parent of all stubs; when they
 * hold more than `limit` bytes it queues `signo` to that thread, once, and ends. Call before the
 * first thread and before the sentry's filter. 0 or -errno; -ENOTSUP when the host's procfs cannot
 * tell.
 */
int memwatch_start(uint64_t limit, int signo) MUST_CHECK;

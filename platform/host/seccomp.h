/*
 * The filters of our own processes, built from host.def when pinfold is built.
 */
#pragma once

#include "platform/base/types.h"

enum host_role {
	HOST_SENTRY,        /* on every platform but ptrace */
	HOST_SENTRY_PTRACE, /* the sentry that traces its stubs */
	HOST_GOFER,
	HOST_WATCHER, /* sentry/memwatch.c */
	HOST_ROLE_COUNT
};

/*
 * Confines the calling process (all its threads) to the host calls of its role, for ever; also sets
 * no_new_privs. 0 or -errno. A later violation kills the process; in debug builds it prints the
 * name of the call and aborts.
 */
int host_confine(enum host_role role) MUST_CHECK;

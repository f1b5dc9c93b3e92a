/*
 * Birth of the first stub: a fork of the sentry that throws everything away but our code. Both
 * platforms use it; all further stubs are forks of stubs.
 */
#pragma once

#include <linux/filter.h>

#include "platform/base/types.h"
#include "platform/platform.h"

struct boot_spec {
	int slots_fd;                    /* memfd of slots, slot 0 is mapped; -1: none */
	const struct sock_fprog *filter; /* installed last, with a listener; NULL: none */
	bool traced;                     /* PTRACE_TRACEME, ends in a breakpoint */
	int keep_fd; /* without a filter: moved to number STUB_FD, all others closed */
};

/*
 * With a filter the stub shares the caller's descriptor table, in which the listener appears; the
 * caller then orders close_range(0, ~0, CLOSE_RANGE_UNSHARE) before anything else.
 *
 * Starts the first stub as a child of the calling thread. 0 or -errno; *out_pid is the child. It is
 * not yet ready on return: a seccomp stub parks in slot 0 with the listener's number in `result`, a
 * traced one stops with SIGTRAP. If it fails it exits with boot_explain()'s number. The vDSO's
 * final place goes to *info.
 */
int boot_first_stub(const struct boot_spec *spec, struct plat_info *info, int *out_pid) MUST_CHECK;

/* Where the boot's own pages lie in the new stub, to be unmapped once it runs at STUB_CODE. */
#define BOOT_TEMP_SIZE 0x100000ul
uint64_t boot_temp_addr(void);

/* Starting the gofer: used by sentry/boot.c only. The protocol is gofer/proto.h. */
#pragma once

#include "platform/base/types.h"

struct gofer_export {
	const char *host_path; /* absolute; a directory or a single file */
	bool writable;
};

struct gofer_config {
	const struct gofer_export *exports; /* attach point i of proto.h is exports[i] */
	size_t export_count;
	const char *const *hidden; /* absolute host paths that are answered with ENOENT, with all
				      below */
	size_t hidden_count;
	const char *const *absent; /* more of them, which the caller has just found not to exist:
				      they are hidden when they appear */
	size_t absent_count;
};

/*
 * Forks the gofer process. Must be called while the caller has one thread. On success *out_fd is
 * the caller's end of the SOCK_SEQPACKET channel (close-on-exec) and *out_pid the child, which dies
 * with the calling thread (PDEATHSIG) or when the channel closes. 0 or -errno; configuration errors
 * (an export that does not exist) are printed and give -EINVAL.
 */
int gofer_start(const struct gofer_config *cfg, int *out_fd, int *out_pid) MUST_CHECK;

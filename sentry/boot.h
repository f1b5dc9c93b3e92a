/*
 * What the runtime asks for, and the one call that makes a sandbox of it.
 */
#pragma once

#include "platform/base/types.h"

/* One tree of the host that is visible inside. Later entries are mounted over earlier ones. */
enum view_kind {
	VIEW_OVERLAY, /* host tree read-only below an overlay in memory: writes die with the sandbox
		       */
	VIEW_RO,      /* host tree, writes refused with EROFS */
	VIEW_RW,      /* host tree, writes go through */
	VIEW_TMPFS,   /* empty tmpfs; host is NULL */
};

struct view {
	enum view_kind kind;
	const char *host;  /* absolute host path; a directory or a single file */
	const char *guest; /* absolute path inside; "/" for the first */
};

struct sandbox_spec {
	const char *const *argv; /* argv[0] is looked up in the guest's PATH when it has no slash */
	const char *const *envp;
	const char *cwd;          /* absolute, inside */
	const char *platform;     /* name, or NULL for the default */
	const struct view *views; /* at least one, the root */
	size_t view_count;
	const char *const *hidden; /* absolute host paths that do not exist inside (with all below)
				    */
	size_t hidden_count;
	const char *const *absent; /* likewise, and just found not to exist outside either */
	size_t absent_count;
	uint32_t uid, gid; /* of the first process */
	const uint32_t *groups;
	size_t group_count;
	const char *hostname;
	uint64_t memory_limit; /* bytes; 0: none */
	uint32_t pids_limit;   /* guest threads in all */
	uint64_t timeout_ns;   /* 0: none; at the end the guest is killed, status 124 */
	int trace_fd;          /* -1: no trace */
};

/*
 * Turns the calling process into the sentry of one sandbox: starts the gofer and the stubs,
 * confines itself, runs until the first guest process has ended. The standard descriptors 0-2
 * become the guest's. Returns the exit status for the shell: the command's own, 128+signal, 124 on
 * time-out, 125 when the set-up failed, 126 or 127 when the command could not be executed; errors
 * were printed.
 */
int sandbox_run(const struct sandbox_spec *spec);

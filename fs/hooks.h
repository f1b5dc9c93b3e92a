/*
 * The few questions that fs/ asks about the calling task, answered by the sentry. Filled once at
 * boot; unit tests fill their own.
 */
#pragma once

#include "fs/vfs.h"

struct fs_hooks {
	int (*current_tgid)(void); /* guest process id of the caller; 0 when none */
	int (*current_tid)(void);
	const struct cred *(*current_cred)(void); /* borrowed until the call ends */
	/* Identity of the caller's descriptor table: owner of POSIX locks. */
	const void *(*current_files)(void);
	uint64_t (*rlimit)(int resource); /* current limit; RLIM_INFINITY as in getrlimit(2) */
	void (*signal_self)(int sig);     /* SIGXFSZ, SIGPIPE: thread-directed */
	/* SIGIO and kin to a file's owner: code POLL_IN…, band poll bits. */
	void (*signal_owner)(const struct file_owner *owner, int code, uint32_t band);
	bool (*umask_get)(uint32_t *out); /* umask of the caller */

	/* Terminals: sessions and process groups live in the sentry. */
	int (*current_sid)(void);
	int (*current_pgrp)(void);
	bool (*is_session_leader)(void);
	void (*signal_pgrp)(int pgrp, int sig); /* from the kernel */
	/* Is sig blocked or ignored by the caller? For SIGTTOU/SIGTTIN. */
	bool (*is_sig_ignored)(int sig);
	bool (*is_pgrp_orphaned)(int pgrp);
	int (*pgrp_session)(int pgrp); /* its session id, or -ESRCH */
	/* The caller's session got (lost) this controlling terminal; file systems find it again by
	 * current_ctty, which gives the tty's private pointer or NULL. */
	void (*set_ctty)(int sid, void *tty);
	void *(*current_ctty)(void);
	void (*tty_hangup)(int sid, int pgrp); /* SIGHUP+SIGCONT to leader and group */
};

extern const struct fs_hooks *fs_hooks;

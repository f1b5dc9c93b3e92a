/* Ancillary data: between control buffers as the guest lays them out (cmsg(3)) and struct sock_scm.
 */
#pragma once

#include "fs/sock.h"

/* Reads a control buffer. Files are looked up in `files` (gives references in *out, which the
 * caller finishes also on error). -EINVAL malformed or unknown, -EBADF, -EPERM for foreign
 * credentials. */
int sock_cmsg_parse(const void *buf, size_t len, struct fdtable *files, int family,
		    const struct cred *c, struct sock_scm *out) MUST_CHECK;

/* Writes a control buffer of at most `cap` bytes. */
struct cmsg_out {
	char *buf;
	size_t cap;
	size_t len;
	bool cut; /* something did not fit: MSG_CTRUNC */
};

/* Appends scm: credentials, then its files, which get numbers in `files` (the scm is empty
 * afterwards; what did not fit is closed). */
void sock_cmsg_write(struct cmsg_out *o, struct sock_scm *scm, struct fdtable *files, bool cloexec);

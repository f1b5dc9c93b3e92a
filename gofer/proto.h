/*
 * Messages between the sentry and the gofer. The channel is a SOCK_SEQPACKET socket pair: one
 * request, one reply, each a header and a bounded payload; a reply may carry one descriptor.
 * Neither side believes the other: both decode with platform/base/parse.h. The list of messages is
 * proto.def.
 */
#pragma once

#include "platform/base/parse.h"

enum gofer_op {
#define GOFER_MSG(number, name, handler, what, fd, mutates) GOFER_##name = (number),
#include "gofer/proto.def"
#undef GOFER_MSG
};

/* Longest message with header: the largest extended attribute, its name and some. */
#define GOFER_MSG_SIZE (65536 + 1024)
#define GOFER_WALK_MAX 16
/* Longest list of entries in one reply. */
#define GOFER_READDIR_SIZE (24 * 1024)
#define GOFER_XATTR_SIZE 65536
#define GOFER_NAME_MAX 255
#define GOFER_TARGET_MAX 4095

#define GOFER_EXPORT_WRITABLE 1u

#define GOFER_SET_MODE 1u
#define GOFER_SET_UID 2u
#define GOFER_SET_GID 4u
#define GOFER_SET_SIZE 8u
#define GOFER_SET_ATIME 16u
#define GOFER_SET_MTIME 32u
#define GOFER_SET_ATIME_NOW 64u
#define GOFER_SET_MTIME_NOW 128u

struct gofer_request {
	uint32_t op;
};

struct gofer_reply {
	int32_t error; /* 0 or -errno; the payload is empty after an error */
};

/* No handle. A handle is an index and a generation, so that an old one is not taken for a new one.
 */
#define GOFER_NO_FID 0u

struct gofer_attr {
	uint64_t dev, ino, rdev, size, blocks;
	int64_t atime_s, mtime_s, ctime_s, btime_s;
	uint32_t atime_ns, mtime_ns, ctime_ns, btime_ns;
	uint32_t mode, nlink, uid, gid;
	uint32_t blksize;
	uint32_t flags; /* GOFER_ATTR_* */
};

#define GOFER_ATTR_BTIME 1u /* the time of birth is known */
#define GOFER_ATTR_EMPTY 2u /* a directory of /proc, /sys, /dev…: it shows nothing */

static inline void gofer_write_name(struct writer *w, const char *name)
{
	size_t n = strlen(name);

	write_u8(w, (uint8_t)n);
	write_bytes(w, name, n);
	if (n > GOFER_NAME_MAX)
		w->bad = true;
}

/* A name as a C string; bad when it could mean more than one entry of one directory. */
static inline void gofer_read_name(struct reader *r, char out[GOFER_NAME_MAX + 1])
{
	size_t n = read_u8(r);

	read_bytes(r, out, n);
	out[r->bad ? 0 : n] = 0;
	if (n == 0 || strlen(out) != n || strchr(out, '/') || strcmp(out, ".") == 0 ||
	    strcmp(out, "..") == 0)
		r->bad = true;
}

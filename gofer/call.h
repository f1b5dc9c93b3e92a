/* One request being answered: for gofer/serve.c and gofer/serve_xattr.c only. */
#pragma once

#include "gofer/serve.h"

struct call {
	struct gofer *g;
	struct reader in;
	struct writer out;
	bool mutates;
	int fd; /* to be sent along, or -1 */
};

/* The request must have been exactly what was read: 0 or -EPROTO. */
int call_finish_decode(const struct call *c) MUST_CHECK;
/* The handle, or NULL with *out_err. A changing request needs a writable export. */
struct gofer_fid *call_fid(struct call *c, uint32_t id, int *out_err) MUST_CHECK;

/* Handlers of messages: 0 with a reply in c->out, or -errno. */
int do_getxattr(struct call *c) MUST_CHECK;
int do_listxattr(struct call *c) MUST_CHECK;
int do_setxattr(struct call *c) MUST_CHECK;
int do_removexattr(struct call *c) MUST_CHECK;

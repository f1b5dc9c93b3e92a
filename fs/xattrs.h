/* Extended attributes of an inode that lives in memory: a short list of names and values. */
#pragma once

#include "platform/base/list.h"

struct xattrs {
	struct list list; /* [owner's lock] */
	size_t bytes;     /* [owner's lock] names and values */
};

void xattrs_init(struct xattrs *x);
void xattrs_fini(struct xattrs *x);
/* getxattr(2): size 0 asks; -ENODATA, -ERANGE. */
ssize_t xattrs_get(struct xattrs *x, const char *name, void *buf, size_t size) MUST_CHECK;
/* setxattr(2) with XATTR_CREATE and XATTR_REPLACE; -ENOSPC at the bound. */
int xattrs_set(struct xattrs *x, const char *name, const void *val, size_t size, int flags)
	MUST_CHECK;
int xattrs_remove(struct xattrs *x, const char *name) MUST_CHECK;
/* NUL-terminated names, one after the other. */
ssize_t xattrs_list(struct xattrs *x, char *buf, size_t size) MUST_CHECK;

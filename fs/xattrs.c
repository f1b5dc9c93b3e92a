/* Extended attributes in memory: see xattrs.h. */
#include "fs/xattrs.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "platform/base/alloc.h"

/* What one inode may hold; a guest could otherwise fill the sentry's heap through one file. */
#define XATTRS_BYTES_MAX (256 * 1024ul)

struct xattr {
	struct list link;
	size_t size;
	char *name; /* behind the value */
	uint8_t val[];
};

void xattrs_init(struct xattrs *x)
{
	list_init(&x->list);
	x->bytes = 0;
}

static void drop(struct xattrs *x, struct xattr *a)
{
	x->bytes -= a->size + strlen(a->name) + 1;
	list_del_init(&a->link);
	mem_free(a);
}

void xattrs_fini(struct xattrs *x)
{
	while (!list_empty(&x->list))
		drop(x, list_first(&x->list, struct xattr, link));
}

static struct xattr *find(struct xattrs *x, const char *name)
{
	list_for_each(pos, &x->list) {
		struct xattr *a = list_entry(pos, struct xattr, link);
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

ssize_t xattrs_get(struct xattrs *x, const char *name, void *buf, size_t size)
{
	struct xattr *a = find(x, name);

	if (!a)
		return -ENODATA;
	if (size == 0)
		return (ssize_t)a->size;
	if (size < a->size)
		return -ERANGE;
	memcpy(buf, a->val, a->size);
	return (ssize_t)a->size;
}

int xattrs_set(struct xattrs *x, const char *name, const void *val, size_t size, int flags)
{
	struct xattr *old = find(x, name);
	size_t name_size = strlen(name) + 1;

	if (old && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!old && (flags & XATTR_REPLACE))
		return -ENODATA;
	if (size > XATTRS_BYTES_MAX || x->bytes + size + name_size > XATTRS_BYTES_MAX)
		return -ENOSPC;
	struct xattr *a = mem_alloc(sizeof(*a) + size + name_size);
	if (!a)
		return -ENOMEM;
	a->size = size;
	if (size)
		memcpy(a->val, val, size);
	a->name = (char *)a->val + size;
	memcpy(a->name, name, name_size);
	if (old)
		drop(x, old);
	list_add_tail(&x->list, &a->link);
	x->bytes += size + name_size;
	return 0;
}

int xattrs_remove(struct xattrs *x, const char *name)
{
	struct xattr *a = find(x, name);

	if (!a)
		return -ENODATA;
	drop(x, a);
	return 0;
}

ssize_t xattrs_list(struct xattrs *x, char *buf, size_t size)
{
	size_t done = 0;

	list_for_each(pos, &x->list) {
		struct xattr *a = list_entry(pos, struct xattr, link);
		size_t n = strlen(a->name) + 1;
		if (size != 0) {
			if (n > size - done)
				return -ERANGE;
			memcpy(buf + done, a->name, n);
		}
		done += n;
	}
	return (ssize_t)done;
}

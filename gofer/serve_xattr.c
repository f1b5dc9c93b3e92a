/* Extended attributes, which the host's calls reach by a path to the descriptor only. */
#include <errno.h>
#include <sys/xattr.h>

#include "gofer/call.h"
#include "platform/base/alloc.h"
#include "platform/host/host_path.h"

/* The ones that mean something inside; the host's labels and trusted data are its own. */
static bool may_read_xattr(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0 ||
	       strncmp(name, "system.posix_acl_", 17) == 0;
}

static bool may_write_xattr(const char *name)
{
	return strncmp(name, "user.", 5) == 0;
}

/* Value or list of at most `size` bytes into the reply, by a buffer of its own. */
static int reply_xattr(struct call *c, struct gofer_fid *f, const char *name, uint32_t size)
{
	char *buf = size ? mem_alloc(size) : NULL;

	if (size && !buf)
		return -ENOMEM;
	ssize_t n = name ? host_getxattr_fd(f->fd, name, buf, size)
			 : host_listxattr_fd(f->fd, buf, size);
	if (n >= 0) {
		write_u32(&c->out, (uint32_t)n);
		if (size)
			write_bytes(&c->out, buf, (size_t)n);
	}
	mem_free(buf);
	return n < 0 ? (int)n : 0;
}

int do_getxattr(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	uint32_t size = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (!f)
		return err;
	if (!may_read_xattr(name))
		return -ENODATA;
	return reply_xattr(c, f, name, MIN(size, GOFER_XATTR_SIZE));
}

int do_listxattr(struct call *c)
{
	uint32_t id = read_u32(&c->in), size = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	return f ? reply_xattr(c, f, NULL, MIN(size, GOFER_XATTR_SIZE)) : err;
}

int do_setxattr(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	uint32_t flags = read_u32(&c->in), size = read_u32(&c->in);
	const void *val = read_span(&c->in, size);
	int err = call_finish_decode(c);

	if (!err && (flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE)))
		err = -EINVAL;
	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (!f)
		return err;
	if (!may_write_xattr(name))
		return -EPERM;
	return host_setxattr_fd(f->fd, name, val, size, (int)flags);
}

int do_removexattr(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (!f)
		return err;
	if (!may_write_xattr(name))
		return -EPERM;
	return host_removexattr_fd(f->fd, name);
}

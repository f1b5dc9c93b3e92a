/* Requests to the gofer: see gofer_client.h. */
#include "fs/gofer_client.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/host/fdpass.h"
#include "platform/host/host.h"

/* So many handles are forgotten in one message. */
#define FORGET_MAX 64

struct gofer_client {
	struct ref ref;
	struct mutex mu;             /* rank GOFER */
	int fd;                      /* [I] */
	bool broken;                 /* [mu] */
	size_t forget_count;         /* [mu] */
	uint32_t forget[FORGET_MAX]; /* [mu] */
	uint8_t buf[GOFER_MSG_SIZE]; /* [mu] request, then reply */
};

static void gofer_client_free(struct gofer_client *c)
{
	host_close(c->fd);
	mutex_fini(&c->mu);
	mem_free(c);
}

DEFINE_REF(gofer_client);

int gofer_client_new(int fd, struct gofer_client **out)
{
	struct gofer_client *c = mem_alloc(sizeof(*c));

	if (!c) {
		host_close(fd);
		return -ENOMEM;
	}
	/* The buffer stays untouched, and so costs no memory, until it is used. */
	memset(c, 0, offsetof(struct gofer_client, buf));
	ref_init(&c->ref);
	mutex_init(&c->mu, RANK_GOFER);
	c->fd = fd;
	*out = c;
	return 0;
}

/* ---- one call ----------------------------------------------------------------------------- */

struct rpc {
	struct gofer_client *c;
	struct writer out;
	struct reader in;
	int fd; /* what came with the reply */
};

static void rpc_start_locked(struct rpc *r, struct gofer_client *c, enum gofer_op op)
{
	*r = (struct rpc){ .c = c, .fd = -1 };
	writer_init(&r->out, c->buf, sizeof(c->buf));
	write_u32(&r->out, (uint32_t)op);
}

static int broken(struct gofer_client *c)
{
	if (!c->broken)
		log_error("the gofer is gone or does not speak its protocol");
	c->broken = true;
	return -EIO;
}

static int rpc_exchange_locked(struct rpc *r)
{
	struct gofer_client *c = r->c;
	struct gofer_reply head;

	if (r->out.bad)
		return -ENAMETOOLONG;
	if (c->broken)
		return -EIO;
	int err = host_send_msg(c->fd, c->buf, sizeof(c->buf) - r->out.left, NULL, 0, -1);
	if (err)
		return broken(c);
	ssize_t n = host_recv_msg(c->fd, c->buf, sizeof(c->buf), &r->fd);
	if (n < (ssize_t)sizeof(head))
		return broken(c);
	reader_init(&r->in, c->buf, (size_t)n);
	read_bytes(&r->in, &head, sizeof(head));
	if (head.error > 0 || head.error < -4095)
		return broken(c);
	return head.error;
}

/* Tells about forgotten handles. */
static void flush_forget_locked(struct gofer_client *c)
{
	struct rpc r;

	if (c->forget_count == 0)
		return;
	rpc_start_locked(&r, c, GOFER_CLOSE);
	write_bytes(&r.out, c->forget, c->forget_count * sizeof(c->forget[0]));
	c->forget_count = 0;
	(void)rpc_exchange_locked(&r);
	if (r.fd >= 0)
		host_close(r.fd);
}

/* Takes the lock; rpc_end must follow. */
static void rpc_begin(struct rpc *r, struct gofer_client *c, enum gofer_op op) NO_LOCK_ANALYSIS
{
	mutex_lock(&c->mu);
	rpc_start_locked(r, c, op);
}

static int rpc_call(struct rpc *r)
{
	int err = rpc_exchange_locked(r);

	/* Its handles ran out while we sat on some that we do not need. The request is in the
	 * buffer no more: the caller makes it again after dropping what he can. */
	if (err == -EMFILE)
		flush_forget_locked(r->c);
	return err;
}

/* The reply must have been exactly what was read; a descriptor that nobody took is closed. */
static int rpc_end(struct rpc *r, int err) NO_LOCK_ANALYSIS
{
	if (!err && (r->in.bad || r->in.left != 0))
		err = broken(r->c);
	if (r->fd >= 0)
		host_close(r->fd);
	mutex_unlock(&r->c->mu);
	return err;
}

static int rpc_simple(struct rpc *r)
{
	return rpc_end(r, rpc_call(r));
}

static void read_node(struct rpc *r, struct gofer_node *out)
{
	out->fid = read_u32(&r->in);
	read_bytes(&r->in, &out->attr, sizeof(out->attr));
}

/* The descriptor that must have come goes to the caller. */
static int take_fd(struct rpc *r, int *out_fd)
{
	if (r->fd == HOST_FD_LOST)
		return -EMFILE; /* ours have run out */
	if (r->fd < 0)
		return broken(r->c);
	*out_fd = r->fd;
	r->fd = -1;
	return 0;
}

/* Ends a call whose reply is a node and, when out_fd is given, a descriptor. */
static int rpc_node(struct rpc *r, struct gofer_node *out, int *out_fd)
{
	int err = rpc_call(r);

	if (!err)
		read_node(r, out);
	if (!err && out_fd)
		err = take_fd(r, out_fd);
	int end = rpc_end(r, err);
	if (end && !err && out_fd)
		host_close(*out_fd);
	return end;
}

static void write_owner(struct rpc *r, const struct gofer_owner *o)
{
	write_u32(&r->out, o->mode);
	write_u32(&r->out, o->uid);
	write_u32(&r->out, o->gid);
}

/* ---- looking ------------------------------------------------------------------------------ */

int gofer_attach(struct gofer_client *c, uint32_t export, struct gofer_node *out,
		 bool *out_writable)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_ATTACH);
	write_u32(&r.out, export);
	int err = rpc_call(&r);
	if (!err) {
		out->fid = read_u32(&r.in);
		*out_writable = read_u8(&r.in) & GOFER_EXPORT_WRITABLE;
		read_bytes(&r.in, &out->attr, sizeof(out->attr));
	}
	return rpc_end(&r, err);
}

/* A text that must have no NUL in it; NULL for an empty one or without memory. */
static char *read_text(struct reader *in)
{
	size_t n = read_u16(in);
	const char *text = read_span(in, n);

	if (!text || n == 0)
		return NULL;
	if (n > GOFER_TARGET_MAX || memchr(text, 0, n)) {
		in->bad = true;
		return NULL;
	}
	return mem_strndup(text, n);
}

int gofer_walk(struct gofer_client *c, uint32_t fid, const char *const *names, unsigned count,
	       struct gofer_node *out, unsigned *out_count, int *out_stop)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_WALK);
	write_u32(&r.out, fid);
	write_u8(&r.out, (uint8_t)count);
	for (unsigned i = 0; i < count; i++)
		gofer_write_name(&r.out, names[i]);
	int err = rpc_call(&r);
	if (!err) {
		unsigned n = read_u8(&r.in);
		*out_stop = (int)read_u32(&r.in);
		if (n == 0 || n > count || *out_stop > 0 || (n < count) != (*out_stop != 0))
			r.in.bad = true;
		for (unsigned i = 0; i < n && !r.in.bad; i++)
			read_node(&r, &out[i]);
		*out_count = n;
		(void)read_span(&r.in, read_u16(&r.in));
	}
	return rpc_end(&r, err);
}

int gofer_lookup(struct gofer_client *c, uint32_t fid, const char *name, struct gofer_node *out,
		 char **out_target)
{
	struct rpc r;

	*out_target = NULL;
	rpc_begin(&r, c, GOFER_WALK);
	write_u32(&r.out, fid);
	write_u8(&r.out, 1);
	gofer_write_name(&r.out, name);
	int err = rpc_call(&r);
	if (!err) {
		if (read_u8(&r.in) != 1 || read_u32(&r.in) != 0)
			r.in.bad = true;
		read_node(&r, out);
		*out_target = read_text(&r.in);
	}
	err = rpc_end(&r, err);
	if (err) {
		mem_free(*out_target);
		*out_target = NULL;
	}
	return err;
}

int gofer_getattr(struct gofer_client *c, uint32_t fid, struct gofer_attr *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_GETATTR);
	write_u32(&r.out, fid);
	int err = rpc_call(&r);
	if (!err)
		read_bytes(&r.in, out, sizeof(*out));
	return rpc_end(&r, err);
}

int gofer_open(struct gofer_client *c, uint32_t fid, uint32_t flags, int *out_fd)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_OPEN);
	write_u32(&r.out, fid);
	write_u32(&r.out, flags);
	int err = rpc_call(&r);
	if (!err)
		err = take_fd(&r, out_fd);
	int end = rpc_end(&r, err);
	if (end && !err)
		host_close(*out_fd);
	return end;
}

int gofer_readlink(struct gofer_client *c, uint32_t fid, char *buf, size_t size)
{
	struct rpc r;
	size_t n = 0;

	rpc_begin(&r, c, GOFER_READLINK);
	write_u32(&r.out, fid);
	int err = rpc_call(&r);
	if (!err) {
		n = read_u16(&r.in);
		const char *text = read_span(&r.in, n);
		if (text && n < size) {
			memcpy(buf, text, n);
			buf[n] = 0;
		} else if (text) {
			err = -ENAMETOOLONG;
		}
	}
	err = rpc_end(&r, err);
	return err ? err : (int)n;
}

int gofer_statfs(struct gofer_client *c, uint32_t fid, struct fs_statfs *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_STATFS);
	write_u32(&r.out, fid);
	int err = rpc_call(&r);
	if (!err) {
		*out = (struct fs_statfs){ .type = (int64_t)read_u64(&r.in) };
		out->bsize = read_u64(&r.in);
		out->blocks = read_u64(&r.in);
		out->bfree = read_u64(&r.in);
		out->bavail = read_u64(&r.in);
		out->files = read_u64(&r.in);
		out->ffree = read_u64(&r.in);
		out->namelen = read_u32(&r.in);
		out->frsize = read_u32(&r.in);
	}
	return rpc_end(&r, err);
}

int gofer_readdir(struct gofer_client *c, uint32_t dir, uint64_t pos, struct gofer_list *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_READDIR);
	write_u32(&r.out, dir);
	write_u64(&r.out, pos);
	int err = rpc_call(&r);
	if (!err) {
		out->end = read_u8(&r.in) != 0;
		out->next_pos = read_u64(&r.in);
		out->size = MIN(r.in.left, sizeof(out->data));
		read_bytes(&r.in, out->data, out->size);
	}
	return rpc_end(&r, err);
}

bool gofer_list_next(const struct gofer_list *l, size_t *at, struct gofer_dirent *out)
{
	struct reader in;

	if (*at >= l->size)
		return false;
	reader_init(&in, l->data + *at, l->size - *at);
	out->ino = read_u64(&in);
	out->off = read_u64(&in);
	out->dtype = read_u8(&in);
	size_t n = read_u8(&in);
	read_bytes(&in, out->name, n);
	out->name[n] = 0;
	if (in.bad || n == 0 || strlen(out->name) != n || strchr(out->name, '/'))
		return false;
	*at = l->size - in.left;
	return true;
}

/* ---- making and changing ------------------------------------------------------------------ */

int gofer_create(struct gofer_client *c, uint32_t dir, const char *name,
		 const struct gofer_owner *o, struct gofer_node *out, int *out_fd)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_CREATE);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	write_owner(&r, o);
	return rpc_node(&r, out, out_fd);
}

int gofer_tmpfile(struct gofer_client *c, uint32_t dir, const struct gofer_owner *o,
		  struct gofer_node *out, int *out_fd)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_TMPFILE);
	write_u32(&r.out, dir);
	write_owner(&r, o);
	return rpc_node(&r, out, out_fd);
}

int gofer_mkdir(struct gofer_client *c, uint32_t dir, const char *name, const struct gofer_owner *o,
		struct gofer_node *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_MKDIR);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	write_owner(&r, o);
	return rpc_node(&r, out, NULL);
}

int gofer_mknod(struct gofer_client *c, uint32_t dir, const char *name, const struct gofer_owner *o,
		struct gofer_node *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_MKNOD);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	write_owner(&r, o);
	return rpc_node(&r, out, NULL);
}

int gofer_symlink(struct gofer_client *c, uint32_t dir, const char *name, const char *target,
		  const struct gofer_owner *o, struct gofer_node *out)
{
	struct rpc r;
	size_t n = strlen(target);

	if (n > GOFER_TARGET_MAX)
		return -ENAMETOOLONG;
	rpc_begin(&r, c, GOFER_SYMLINK);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	write_u16(&r.out, (uint16_t)n);
	write_bytes(&r.out, target, n);
	write_u32(&r.out, o->uid);
	write_u32(&r.out, o->gid);
	return rpc_node(&r, out, NULL);
}

int gofer_link(struct gofer_client *c, uint32_t fid, uint32_t dir, const char *name)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_LINK);
	write_u32(&r.out, fid);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	return rpc_simple(&r);
}

int gofer_unlink(struct gofer_client *c, uint32_t dir, const char *name, bool is_dir)
{
	struct rpc r;

	rpc_begin(&r, c, is_dir ? GOFER_RMDIR : GOFER_UNLINK);
	write_u32(&r.out, dir);
	gofer_write_name(&r.out, name);
	return rpc_simple(&r);
}

int gofer_rename(struct gofer_client *c, uint32_t old_dir, const char *old_name, uint32_t new_dir,
		 const char *new_name, unsigned flags)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_RENAME);
	write_u32(&r.out, old_dir);
	gofer_write_name(&r.out, old_name);
	write_u32(&r.out, new_dir);
	gofer_write_name(&r.out, new_name);
	write_u32(&r.out, flags);
	return rpc_simple(&r);
}

_Static_assert(ATTR_MODE == GOFER_SET_MODE && ATTR_UID == GOFER_SET_UID &&
		       ATTR_GID == GOFER_SET_GID && ATTR_SIZE == GOFER_SET_SIZE &&
		       ATTR_ATIME == GOFER_SET_ATIME && ATTR_MTIME == GOFER_SET_MTIME &&
		       ATTR_ATIME_NOW == GOFER_SET_ATIME_NOW &&
		       ATTR_MTIME_NOW == GOFER_SET_MTIME_NOW,
	       "the bits of a change are sent as they are");

int gofer_setattr(struct gofer_client *c, uint32_t fid, const struct iattr *a,
		  struct gofer_attr *out)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_SETATTR);
	write_u32(&r.out, fid);
	write_u32(&r.out, a->valid & ~ATTR_CTIME);
	write_u32(&r.out, a->mode);
	write_u32(&r.out, a->uid);
	write_u32(&r.out, a->gid);
	write_u64(&r.out, a->size);
	write_u64(&r.out, (uint64_t)a->atime.tv_sec);
	write_u32(&r.out, (uint32_t)a->atime.tv_nsec);
	write_u64(&r.out, (uint64_t)a->mtime.tv_sec);
	write_u32(&r.out, (uint32_t)a->mtime.tv_nsec);
	int err = rpc_call(&r);
	if (!err)
		read_bytes(&r.in, out, sizeof(*out));
	return rpc_end(&r, err);
}

/* ---- extended attributes ------------------------------------------------------------------ */

/* Ends a call whose reply is a size and, when it was asked for, so many bytes. */
static ssize_t rpc_sized(struct rpc *r, void *buf, size_t size)
{
	size_t n = 0;

	int err = rpc_call(r);
	if (!err) {
		n = read_u32(&r->in);
		if (size && n > size)
			r->in.bad = true;
		else if (size)
			read_bytes(&r->in, buf, n);
	}
	err = rpc_end(r, err);
	return err ? err : (ssize_t)MIN(n, GOFER_XATTR_SIZE);
}

ssize_t gofer_getxattr(struct gofer_client *c, uint32_t fid, const char *name, void *buf,
		       size_t size)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_GETXATTR);
	write_u32(&r.out, fid);
	gofer_write_name(&r.out, name);
	write_u32(&r.out, (uint32_t)MIN(size, GOFER_XATTR_SIZE));
	return rpc_sized(&r, buf, size);
}

ssize_t gofer_listxattr(struct gofer_client *c, uint32_t fid, char *buf, size_t size)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_LISTXATTR);
	write_u32(&r.out, fid);
	write_u32(&r.out, (uint32_t)MIN(size, GOFER_XATTR_SIZE));
	return rpc_sized(&r, buf, size);
}

int gofer_setxattr(struct gofer_client *c, uint32_t fid, const char *name, const void *val,
		   size_t size, int flags)
{
	struct rpc r;

	if (size > GOFER_XATTR_SIZE)
		return -E2BIG;
	rpc_begin(&r, c, GOFER_SETXATTR);
	write_u32(&r.out, fid);
	gofer_write_name(&r.out, name);
	write_u32(&r.out, (uint32_t)flags);
	write_u32(&r.out, (uint32_t)size);
	write_bytes(&r.out, val, size);
	return rpc_simple(&r);
}

int gofer_removexattr(struct gofer_client *c, uint32_t fid, const char *name)
{
	struct rpc r;

	rpc_begin(&r, c, GOFER_REMOVEXATTR);
	write_u32(&r.out, fid);
	gofer_write_name(&r.out, name);
	return rpc_simple(&r);
}

void gofer_forget(struct gofer_client *c, uint32_t fid)
{
	mutex_lock(&c->mu);
	c->forget[c->forget_count++] = fid;
	if (c->forget_count == FORGET_MAX)
		flush_forget_locked(c);
	mutex_unlock(&c->mu);
}

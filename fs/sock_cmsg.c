/* Control messages of sockets: see sock_cmsg.h. */
#include "fs/sock_cmsg.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/time.h>

#include "fs/hooks.h"
#include "platform/base/alloc.h"

#define HEADER_SIZE CMSG_ALIGN(sizeof(struct cmsghdr))

/* ---- reading ------------------------------------------------------------------------------ */

static int parse_rights(const char *data, size_t size, struct fdtable *files, struct sock_scm *out)
{
	size_t n = size / sizeof(int);

	if (n == 0)
		return 0;
	if (n > SOCK_SCM_MAX_FILES || out->file_count + n > SOCK_SCM_MAX_FILES)
		return -EINVAL;
	if (!out->files) {
		out->files = mem_calloc(SOCK_SCM_MAX_FILES, sizeof(struct file *));
		if (!out->files)
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, data + i * sizeof(fd), sizeof(fd));
		struct file *f = fd < 0 ? NULL : fd_get(files, fd);
		if (!f)
			return -EBADF;
		out->files[out->file_count++] = f;
	}
	return 0;
}

/* One may speak for oneself; with capabilities, for others (unix(7)). */
static int parse_credentials(const char *data, size_t size, const struct cred *c,
			     struct sock_scm *out)
{
	struct ucred u;

	if (size != sizeof(u))
		return -EINVAL;
	memcpy(&u, data, sizeof(u));
	if (u.uid == (uid_t)-1 || u.gid == (gid_t)-1)
		return -EINVAL;
	if (u.pid != (fs_hooks ? fs_hooks->current_tgid() : 0) && !cred_capable(c, CAP_SYS_ADMIN))
		return -EPERM;
	if (u.uid != c->uid && u.uid != c->euid && u.uid != c->suid && !cred_capable(c, CAP_SETUID))
		return -EPERM;
	if (u.gid != c->gid && u.gid != c->egid && u.gid != c->sgid && !cred_capable(c, CAP_SETGID))
		return -EPERM;
	out->has_cred = true;
	out->cred = u;
	return 0;
}

int sock_cmsg_parse(const void *buf, size_t len, struct fdtable *files, int family,
		    const struct cred *c, struct sock_scm *out)
{
	const char *p = buf;
	struct cmsghdr h;

	while (len >= sizeof(h)) {
		memcpy(&h, p, sizeof(h));
		if (h.cmsg_len < sizeof(h) || h.cmsg_len > len)
			return -EINVAL;
		int err = 0;
		if (h.cmsg_level == SOL_SOCKET) {
			const char *data = p + HEADER_SIZE;
			size_t size = h.cmsg_len - HEADER_SIZE;
			if (h.cmsg_type == SCM_RIGHTS && family == AF_UNIX)
				err = parse_rights(data, size, files, out);
			else if (h.cmsg_type == SCM_CREDENTIALS)
				err = parse_credentials(data, size, c, out);
			else
				err = -EINVAL;
		}
		if (err)
			return err;
		size_t step = CMSG_ALIGN(h.cmsg_len);
		if (step >= len)
			break;
		p += step;
		len -= step;
	}
	return 0;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* One message, cut when there is too little room (put_cmsg of the kernel). */
static void put(struct cmsg_out *o, int level, int type, const void *data, size_t size)
{
	size_t room = o->cap - o->len, total = CMSG_LEN(size);
	struct cmsghdr h = { .cmsg_level = level, .cmsg_type = type };

	if (room < sizeof(h)) {
		o->cut = true;
		return;
	}
	if (room < total) {
		o->cut = true;
		total = room;
	}
	h.cmsg_len = total;
	memcpy(o->buf + o->len, &h, sizeof(h));
	if (total > HEADER_SIZE)
		memcpy(o->buf + o->len + HEADER_SIZE, data, total - HEADER_SIZE);
	o->len += MIN(CMSG_SPACE(size), room);
}

/* Installs as many files as their numbers fit; the rest is closed. */
static void put_rights(struct cmsg_out *o, struct sock_scm *scm, struct fdtable *files,
		       bool cloexec)
{
	size_t room = o->cap - o->len;
	size_t max = room > HEADER_SIZE ? (room - HEADER_SIZE) / sizeof(int) : 0;
	int fds[SOCK_SCM_MAX_FILES];
	unsigned n = 0;

	while (n < scm->file_count && n < max) {
		struct file *f = file_get(scm->files[n]);
		int fd = fd_install(files, f, 0, cloexec);
		if (fd < 0) {
			file_put(f);
			break;
		}
		fds[n++] = fd;
	}
	if (n)
		put(o, SOL_SOCKET, SCM_RIGHTS, fds, n * sizeof(int));
	if (n < scm->file_count)
		o->cut = true;
	sock_scm_fini(scm);
}

static void put_stamp(struct cmsg_out *o, const struct sock_scm *scm)
{
	struct timeval tv = { .tv_sec = scm->stamp.tv_sec, .tv_usec = scm->stamp.tv_nsec / 1000 };

	if (scm->stamp_ns)
		put(o, SOL_SOCKET, SCM_TIMESTAMPNS, &scm->stamp, sizeof(scm->stamp));
	else
		put(o, SOL_SOCKET, SCM_TIMESTAMP, &tv, sizeof(tv));
}

void sock_cmsg_write(struct cmsg_out *o, struct sock_scm *scm, struct fdtable *files, bool cloexec)
{
	if (o->cap)
		memset(o->buf, 0, o->cap);
	if (scm->stamp.tv_sec)
		put_stamp(o, scm);
	if (scm->has_cred)
		put(o, SOL_SOCKET, SCM_CREDENTIALS, &scm->cred, sizeof(scm->cred));
	if (scm->file_count)
		put_rights(o, scm, files, cloexec);
}

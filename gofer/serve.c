/*
 * Answers to the sentry. Nothing it says is believed: handles are looked up with their generation,
 * names are checked by gofer_read_name, every changing request is refused on an export that is not
 * writable, and only regular files are ever opened.
 *
 * A handler decodes its whole request first (finish_decode), then acts, then writes the reply.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include "gofer/call.h"
#include "platform/host/fdpass.h"
#include "platform/host/host.h"
#include "platform/host/host_path.h"

#define DIRENT_HEAD offsetof(struct linux_dirent64, d_name)
/* The longest one, with padding. */
#define DIRENT_MAX 280

struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

typedef int handler_fn(struct call *c);

/* ---- helpers ------------------------------------------------------------------------------ */

int call_finish_decode(const struct call *c)
{
	return c->in.bad || c->in.left != 0 ? -EPROTO : 0;
}

struct gofer_fid *call_fid(struct call *c, uint32_t id, int *out_err)
{
	struct gofer_fid *f = fid_get(c->g, id);

	*out_err = 0;
	if (!f)
		*out_err = -ESTALE;
	else if (c->mutates && (!c->g->roots[f->export].writable || f->empty))
		*out_err = -EROFS;
	return *out_err ? NULL : f;
}

static struct gofer_fid *get_dir(struct call *c, uint32_t id, int *out_err)
{
	struct gofer_fid *f = call_fid(c, id, out_err);

	if (f && f->type != S_IFDIR) {
		*out_err = -ENOTDIR;
		return NULL;
	}
	return f;
}

/* A writable directory in which `name` may be made: not there yet, not hidden. */
static struct gofer_fid *get_dir_for_new(struct call *c, uint32_t id, const char *name,
					 int *out_err)
{
	struct gofer_fid *d = get_dir(c, id, out_err);
	bool exists;

	if (!d)
		return NULL;
	*out_err = export_check_name(c->g, d, name, &exists);
	if (!*out_err && exists)
		*out_err = -EEXIST;
	return *out_err ? NULL : d;
}

/* The same for a name that is to be changed or removed. */
static struct gofer_fid *get_dir_of(struct call *c, uint32_t id, const char *name, int *out_err)
{
	struct gofer_fid *d = get_dir(c, id, out_err);
	bool exists;

	if (!d)
		return NULL;
	*out_err = export_check_name(c->g, d, name, &exists);
	if (*out_err == -EACCES || (!*out_err && !exists))
		*out_err = -ENOENT;
	return *out_err ? NULL : d;
}

static void write_attr(struct call *c, const struct statx *st, const struct gofer_fid *f)
{
	struct gofer_attr a;

	attr_from_statx(&a, st, f);
	write_bytes(&c->out, &a, sizeof(a));
}

/* Only root can give files away; for anybody else everything is his own. */
static int set_owner(struct call *c, int fd, uint32_t uid, uint32_t gid)
{
	struct statx st;

	if (!c->g->is_root)
		return 0;
	int err = host_statx_fd(fd, &st);
	if (err || (st.stx_uid == uid && st.stx_gid == gid))
		return err;
	return host_chown_fd(fd, uid, gid);
}

/*
 * LINUX: set-user-ID and set-group-ID programs are not made on the host: they would act for its
 * other users with the rights of whoever started the sandbox.
 */
static uint32_t safe_mode(uint32_t mode, uint32_t type)
{
	return mode & (type == S_IFDIR ? 07777u : 01777u);
}

/* Handle and attributes of what was just made under `name`. Somebody else on the host may have put
 * something else there since, which must not be given away. */
static int reply_new(struct call *c, uint32_t dir, const char *name, uint32_t type, uint32_t uid,
		     uint32_t gid)
{
	struct statx st;
	uint32_t id;

	int err = export_step(c->g, dir, name, &id, &st);
	if (err)
		return err;
	struct gofer_fid *f = fid_get(c->g, id);
	if (f->type != type || (type != S_IFDIR && st.stx_nlink != 1))
		err = -ESTALE;
	if (!err)
		err = set_owner(c, f->fd, uid, gid);
	if (!err)
		err = host_statx_fd(f->fd, &st);
	if (err) {
		fid_close(c->g, id);
		return err;
	}
	write_u32(&c->out, id);
	write_attr(c, &st, f);
	return 0;
}

/* The same for a file that was just made and is open as c->fd: no name is looked up again. */
static int reply_open(struct call *c, uint16_t export, uint32_t uid, uint32_t gid)
{
	struct statx st;
	uint32_t id;

	int err = set_owner(c, c->fd, uid, gid);
	if (!err)
		err = host_statx_fd(c->fd, &st);
	if (err)
		return err;
	int path_fd = host_reopen(c->fd, O_PATH);
	if (path_fd < 0)
		return path_fd;
	err = fid_new(c->g, path_fd, export, &st, &id);
	if (err)
		return err;
	write_u32(&c->out, id);
	write_attr(c, &st, fid_get(c->g, id));
	return 0;
}

/* ---- looking ------------------------------------------------------------------------------ */

static int do_attach(struct call *c)
{
	uint32_t index = read_u32(&c->in), id;
	struct statx st;

	int err = call_finish_decode(c);
	if (!err)
		err = export_attach(c->g, index, &id, &st);
	if (err)
		return err;
	write_u32(&c->out, id);
	write_u8(&c->out, c->g->roots[index].writable ? GOFER_EXPORT_WRITABLE : 0);
	write_attr(c, &st, fid_get(c->g, id));
	return 0;
}

static int check_names(struct reader in, unsigned count)
{
	char name[GOFER_NAME_MAX + 1];

	for (unsigned i = 0; i < count; i++)
		gofer_read_name(&in, name);
	return in.bad || in.left ? -EPROTO : 0;
}

static int write_target(struct call *c, const struct gofer_fid *f)
{
	char target[GOFER_TARGET_MAX + 1];

	ssize_t n = host_readlink_fd(f->fd, target, sizeof(target));
	if (n < 0)
		return (int)n;
	if ((size_t)n > GOFER_TARGET_MAX)
		return -ENAMETOOLONG;
	write_u16(&c->out, (uint16_t)n);
	write_bytes(&c->out, target, (size_t)n);
	return 0;
}

static int do_walk(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	unsigned count = read_u8(&c->in), done = 0;
	int err, stop = 0;

	if (count == 0 || count > GOFER_WALK_MAX)
		return -EPROTO;
	err = check_names(c->in, count);
	if (err)
		return err;
	if (!call_fid(c, id, &err))
		return err;
	struct writer head = c->out;
	write_u8(&c->out, 0);
	write_u32(&c->out, 0);
	while (done < count) {
		char name[GOFER_NAME_MAX + 1];
		struct statx st;
		gofer_read_name(&c->in, name);
		stop = export_step(c->g, id, name, &id, &st);
		if (stop)
			break;
		write_u32(&c->out, id);
		write_attr(c, &st, fid_get(c->g, id));
		done++;
	}
	if (done == 0)
		return stop;
	write_u8(&head, (uint8_t)done);
	write_u32(&head, (uint32_t)stop);
	/* Whoever finds a link mostly follows it. */
	const struct gofer_fid *last = fid_get(c->g, id);
	if (last->type != S_IFLNK || write_target(c, last) != 0)
		write_u16(&c->out, 0);
	return 0;
}

static int do_getattr(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	struct statx st;
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (f)
		err = host_statx_fd(f->fd, &st);
	if (!err)
		write_attr(c, &st, f);
	return err;
}

static int do_open(struct call *c)
{
	uint32_t id = read_u32(&c->in), flags = read_u32(&c->in);
	int err = call_finish_decode(c);

	if (!err && (flags & ~(uint32_t)(O_ACCMODE | O_SYNC | O_DSYNC)))
		err = -EPROTO;
	c->mutates = (flags & O_ACCMODE) != O_RDONLY;
	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (!f)
		return err;
	/* Opening anything else has effects: devices, fifos, sockets belong to the host. */
	if (f->type != S_IFREG)
		return f->type == S_IFDIR ? -EISDIR : -ENXIO;
	int fd = host_reopen(f->fd, (int)flags | O_NONBLOCK);
	if (fd < 0)
		return fd;
	c->fd = fd;
	return 0;
}

static int do_readlink(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (!f)
		return err;
	return f->type == S_IFLNK ? write_target(c, f) : -EINVAL;
}

static int do_statfs(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	struct statfs s;
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (f)
		err = host_statfs_fd(f->fd, &s);
	if (err)
		return err;
	write_u64(&c->out, (uint64_t)s.f_type);
	write_u64(&c->out, (uint64_t)s.f_bsize);
	write_u64(&c->out, s.f_blocks);
	write_u64(&c->out, s.f_bfree);
	write_u64(&c->out, s.f_bavail);
	write_u64(&c->out, s.f_files);
	write_u64(&c->out, s.f_ffree);
	write_u32(&c->out, (uint32_t)s.f_namelen);
	write_u32(&c->out, (uint32_t)s.f_frsize);
	return 0;
}

/* ---- listing ------------------------------------------------------------------------------ */

static void write_entry(struct call *c, uint64_t ino, uint64_t off, uint8_t type, const char *name)
{
	size_t n = strlen(name);

	write_u64(&c->out, ino);
	write_u64(&c->out, off);
	write_u8(&c->out, type);
	write_u8(&c->out, (uint8_t)n);
	write_bytes(&c->out, name, n);
}

static int list_empty_dir(struct call *c, const struct gofer_fid *f, uint64_t pos)
{
	write_u8(&c->out, 1);
	write_u64(&c->out, 2);
	if (pos < 1)
		write_entry(c, f->ino, 1, S_IFDIR >> 12, ".");
	if (pos < 2)
		write_entry(c, f->ino, 2, S_IFDIR >> 12, "..");
	return 0;
}

/* Positions the listing of f at pos. */
static int seek_dir(struct call *c, struct gofer_fid *f, uint64_t pos)
{
	if (f->dir_fd < 0) {
		if (c->g->live_fids + c->g->open_dirs >= c->g->fid_max)
			return -EMFILE;
		int fd = host_open_dot(f->fd, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0)
			return fd;
		f->dir_fd = fd;
		f->dir_pos = 0;
		c->g->open_dirs++;
	} else if (pos == f->dir_pos && pos != 0) {
		return 0;
	}
	int64_t r = host_lseek(f->dir_fd, (int64_t)pos, SEEK_SET);
	if (r < 0)
		return (int)r;
	f->dir_pos = pos;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/* Passes on what is not hidden. */
static void filter_entries(struct call *c, struct gofer_fid *f, const char *buf, size_t size)
{
	for (size_t at = 0; at + DIRENT_HEAD < size;) {
		const struct linux_dirent64 *d = (const void *)(buf + at);
		at += d->d_reclen;
		f->dir_pos = (uint64_t)d->d_off;
		if (!is_dots(d->d_name) && (hidden_name(f->hidden, d->d_name) ||
					    hidden_number(&c->g->hidden, f->dev, d->d_ino)))
			continue;
		write_entry(c, d->d_ino, (uint64_t)d->d_off, d->d_type, d->d_name);
	}
}

/* As many entries as there is room for: the host gives the end of a directory in a call of its own,
 * which should not cost the sentry a request. */
static ssize_t read_entries(struct gofer_fid *f, char *buf, size_t size, bool *out_end)
{
	size_t used = 0;

	while (size - used >= DIRENT_MAX) {
		ssize_t n = host_getdents(f->dir_fd, buf + used, size - used);
		if (n < 0)
			return used ? (ssize_t)used : n;
		if (n == 0) {
			*out_end = true;
			break;
		}
		used += (size_t)n;
	}
	return (ssize_t)used;
}

static int do_readdir(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	uint64_t pos = read_u64(&c->in);
	_Alignas(8) char buf[GOFER_READDIR_SIZE];
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : get_dir(c, id, &err);
	if (!f)
		return err;
	if (f->empty)
		return list_empty_dir(c, f, pos);
	err = seek_dir(c, f, pos);
	if (err)
		return err;
	bool end = false;
	ssize_t n = read_entries(f, buf, sizeof(buf), &end);
	if (n < 0)
		return (int)n;
	struct writer head = c->out;
	write_u8(&c->out, end);
	write_u64(&c->out, 0);
	filter_entries(c, f, buf, (size_t)n);
	write_u8(&head, end);
	write_u64(&head, f->dir_pos);
	if (end)
		fid_close_dir(c->g, f);
	return 0;
}

/* ---- making ------------------------------------------------------------------------------- */

static int do_create(struct call *c)
{
	uint32_t dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	uint32_t mode = read_u32(&c->in), uid = read_u32(&c->in), gid = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *d = err ? NULL : get_dir_for_new(c, dir, name, &err);
	if (!d)
		return err;
	int fd = host_open_beneath(d->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK,
				   safe_mode(mode, S_IFREG));
	if (fd < 0)
		return fd;
	c->fd = fd;
	return reply_open(c, d->export, uid, gid);
}

static int do_mkdir(struct call *c)
{
	uint32_t dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	uint32_t mode = read_u32(&c->in), uid = read_u32(&c->in), gid = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *d = err ? NULL : get_dir_for_new(c, dir, name, &err);
	if (d)
		err = host_mkdir_at(d->fd, name, mode & 01777);
	return err ? err : reply_new(c, dir, name, S_IFDIR, uid, gid);
}

static int do_symlink(struct call *c)
{
	uint32_t dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1], target[GOFER_TARGET_MAX + 1];
	gofer_read_name(&c->in, name);
	size_t n = read_u16(&c->in);
	if (n == 0 || n > GOFER_TARGET_MAX)
		return -EPROTO;
	read_bytes(&c->in, target, n);
	target[n] = 0;
	uint32_t uid = read_u32(&c->in), gid = read_u32(&c->in);
	int err = strlen(target) == n ? call_finish_decode(c) : -EPROTO;

	struct gofer_fid *d = err ? NULL : get_dir_for_new(c, dir, name, &err);
	if (d)
		err = host_symlink_at(target, d->fd, name);
	return err ? err : reply_new(c, dir, name, S_IFLNK, uid, gid);
}

static int do_mknod(struct call *c)
{
	uint32_t dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	uint32_t mode = read_u32(&c->in), uid = read_u32(&c->in), gid = read_u32(&c->in);
	int err = call_finish_decode(c);

	if (!err && !S_ISFIFO(mode) && !S_ISSOCK(mode))
		err = -EPERM;
	struct gofer_fid *d = err ? NULL : get_dir_for_new(c, dir, name, &err);
	if (d)
		err = host_mknod_at(d->fd, name, (mode & S_IFMT) | safe_mode(mode, mode & S_IFMT));
	return err ? err : reply_new(c, dir, name, mode & S_IFMT, uid, gid);
}

static int do_tmpfile(struct call *c)
{
	uint32_t dir = read_u32(&c->in), mode = read_u32(&c->in);
	uint32_t uid = read_u32(&c->in), gid = read_u32(&c->in);
	int err = call_finish_decode(c);

	struct gofer_fid *d = err ? NULL : get_dir(c, dir, &err);
	if (!d)
		return err;
	c->fd = host_open_dot(d->fd, O_RDWR | O_TMPFILE, safe_mode(mode, S_IFREG));
	return c->fd < 0 ? c->fd : reply_open(c, d->export, uid, gid);
}

static int do_link(struct call *c)
{
	uint32_t id = read_u32(&c->in), dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	struct gofer_fid *d = f ? get_dir_for_new(c, dir, name, &err) : NULL;
	if (!d)
		return err;
	if (f->export != d->export)
		return -EXDEV;
	return host_link_fd(f->fd, d->fd, name);
}

/* ---- changing ----------------------------------------------------------------------------- */

static int remove_name(struct call *c, bool is_dir)
{
	uint32_t dir = read_u32(&c->in);
	char name[GOFER_NAME_MAX + 1];
	gofer_read_name(&c->in, name);
	int err = call_finish_decode(c);

	struct gofer_fid *d = err ? NULL : get_dir_of(c, dir, name, &err);
	return d ? host_unlink_at(d->fd, name, is_dir) : err;
}

static int do_unlink(struct call *c)
{
	return remove_name(c, false);
}

static int do_rmdir(struct call *c)
{
	return remove_name(c, true);
}

static int do_rename(struct call *c)
{
	char old_name[GOFER_NAME_MAX + 1], new_name[GOFER_NAME_MAX + 1];
	uint32_t old_dir = read_u32(&c->in);
	gofer_read_name(&c->in, old_name);
	uint32_t new_dir = read_u32(&c->in);
	gofer_read_name(&c->in, new_name);
	uint32_t flags = read_u32(&c->in);
	bool exists;
	int err = call_finish_decode(c);

	if (!err && (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE)))
		err = -EINVAL;
	struct gofer_fid *from = err ? NULL : get_dir_of(c, old_dir, old_name, &err);
	struct gofer_fid *to = from ? get_dir(c, new_dir, &err) : NULL;
	if (!to)
		return err;
	if (from->export != to->export)
		return -EXDEV;
	err = export_check_name(c->g, to, new_name, &exists);
	return err ? err : host_rename_at(from->fd, old_name, to->fd, new_name, flags);
}

static int set_size(struct gofer_fid *f, uint64_t size)
{
	if (f->type != S_IFREG)
		return f->type == S_IFDIR ? -EISDIR : -EINVAL;
	int fd = host_reopen(f->fd, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	int err = host_ftruncate(fd, size);
	host_close(fd);
	return err;
}

struct new_attr {
	uint32_t valid, mode, uid, gid;
	uint64_t size;
	struct timespec times[2];
};

static void read_time(struct reader *r, struct timespec *out)
{
	out->tv_sec = (time_t)read_u64(r);
	out->tv_nsec = (long)read_u32(r);
}

static int set_times(struct gofer_fid *f, struct new_attr *a)
{
	static const uint32_t given[] = { GOFER_SET_ATIME, GOFER_SET_MTIME };
	static const uint32_t now[] = { GOFER_SET_ATIME_NOW, GOFER_SET_MTIME_NOW };
	bool any = false;

	for (int i = 0; i < 2; i++) {
		if (a->valid & now[i])
			a->times[i].tv_nsec = UTIME_NOW;
		else if (!(a->valid & given[i]))
			a->times[i].tv_nsec = UTIME_OMIT;
		else if (a->times[i].tv_nsec >= 1000000000)
			return -EINVAL;
		any |= a->times[i].tv_nsec != UTIME_OMIT;
	}
	return any ? host_utimens_fd(f->fd, a->times) : 0;
}

static int apply_attr(struct gofer_fid *f, struct new_attr *a)
{
	int err = 0;

	if (a->valid & GOFER_SET_SIZE)
		err = set_size(f, a->size);
	if (!err && (a->valid & (GOFER_SET_UID | GOFER_SET_GID))) {
		uint32_t uid = a->valid & GOFER_SET_UID ? a->uid : UINT32_MAX;
		uint32_t gid = a->valid & GOFER_SET_GID ? a->gid : UINT32_MAX;
		err = host_chown_fd(f->fd, uid, gid);
	}
	if (!err && (a->valid & GOFER_SET_MODE))
		err = f->type == S_IFLNK ? -EOPNOTSUPP
					 : host_chmod_fd(f->fd, safe_mode(a->mode, f->type));
	if (!err)
		err = set_times(f, a);
	return err;
}

static int do_setattr(struct call *c)
{
	uint32_t id = read_u32(&c->in);
	struct new_attr a = { .valid = read_u32(&c->in) };
	struct statx st;

	a.mode = read_u32(&c->in);
	a.uid = read_u32(&c->in);
	a.gid = read_u32(&c->in);
	a.size = read_u64(&c->in);
	read_time(&c->in, &a.times[0]);
	read_time(&c->in, &a.times[1]);
	int err = call_finish_decode(c);

	struct gofer_fid *f = err ? NULL : call_fid(c, id, &err);
	if (f)
		err = apply_attr(f, &a);
	if (!err)
		err = host_statx_fd(f->fd, &st);
	if (!err)
		write_attr(c, &st, f);
	return err;
}

/* ---- dispatch ----------------------------------------------------------------------------- */

static int do_close(struct call *c)
{
	while (c->in.left >= sizeof(uint32_t))
		fid_close(c->g, read_u32(&c->in));
	return call_finish_decode(c);
}

struct message {
	handler_fn *fn;
	bool gives_fd, mutates;
};

static const struct message messages[] = {
#define GOFER_MSG(number, name, handler, what, fd, mutates)                                        \
	[number] = { do_##handler, fd, mutates },
#include "gofer/proto.def"
#undef GOFER_MSG
};

static int dispatch(struct call *c)
{
	uint32_t op = read_u32(&c->in);

	if (op >= ARRAY_SIZE(messages) || !messages[op].fn)
		return -EPROTO;
	c->mutates = messages[op].mutates;
	int err = messages[op].fn(c);
	if (!err && c->out.bad)
		err = -EMSGSIZE;
	BUG_ON(c->fd >= 0 && !messages[op].gives_fd);
	return err;
}

size_t gofer_handle(struct gofer *g, const void *request, size_t size, void *reply, int *out_fd)
{
	struct gofer_reply head = { 0 };
	struct call c = { .g = g, .fd = -1 };

	reader_init(&c.in, request, size);
	writer_init(&c.out, (char *)reply + sizeof(head), GOFER_MSG_SIZE - sizeof(head));
	head.error = dispatch(&c);
	size_t used = GOFER_MSG_SIZE - c.out.left;
	if (head.error) {
		if (c.fd >= 0)
			host_close(c.fd);
		c.fd = -1;
		used = sizeof(head);
	}
	memcpy(reply, &head, sizeof(head));
	*out_fd = c.fd;
	return used;
}

void gofer_serve(struct gofer *g, int channel)
{
	/* Untouched pages of these cost nothing. */
	static _Alignas(16) uint8_t request[GOFER_MSG_SIZE], reply[GOFER_MSG_SIZE];
	int sent_fd, fd;

	for (;;) {
		ssize_t n = host_recv_msg(channel, request, sizeof(request), &sent_fd);
		if (sent_fd >= 0)
			host_close(sent_fd); /* the sentry has nothing to give us */
		if (n <= 0)
			return;
		size_t size = gofer_handle(g, request, (size_t)n, reply, &fd);
		int err = host_send_msg(channel, reply, size, NULL, 0, fd);
		if (fd >= 0)
			host_close(fd);
		if (err)
			return;
	}
}

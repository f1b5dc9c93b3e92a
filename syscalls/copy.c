/*
 * Moving data between descriptors inside the kernel: sendfile, copy_file_range, splice, tee,
 * vmsplice. Files are copied through a bounded buffer; pages of pipes are handed over (fs/pipe.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fs/pipe.h"
#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "syscalls/fs_util.h"

#define CHUNK (64u << 10)
#define SPLICE_KNOWN (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

/* One end of a copy: an explicit offset of the guest, or the file's own position. */
struct end {
	struct file *f;  /* referenced */
	i64_gp off_addr; /* null: the file's own position */
	int64_t pos;
	bool own; /* pos is a copy of f->pos, or f has none */
};

static int end_begin(struct task *t, struct end *e, int fd, i64_gp off_addr)
{
	*e = (struct end){ .f = fd_get_io(t->files, fd), .off_addr = off_addr };
	return e->f ? 0 : -EBADF;
}

/* Loads the position; whether the file can have one is the caller's question. */
static int end_load(struct task *t, struct end *e)
{
	e->own = gaddr_is_null(e->off_addr.addr);
	if (!e->own)
		return guest_read(t, &e->pos, e->off_addr.addr, sizeof(e->pos));
	if (e->f->ops->seek) {
		/* By the op: the position of an inherited stream is the host's. */
		mutex_lock(&e->f->pos_mu);
		e->pos = e->f->ops->seek(e->f, 0, SEEK_CUR);
		mutex_unlock(&e->f->pos_mu);
		return e->pos < 0 ? (int)e->pos : 0;
	}
	return 0;
}

/* Stores the position after `moved` bytes. */
static int end_store(struct task *t, struct end *e, long moved)
{
	if (!e->own)
		return moved >= 0 ? guest_store(t, e->off_addr, &e->pos) : 0;
	if (e->f->ops->seek && moved > 0) {
		mutex_lock(&e->f->pos_mu);
		int64_t pos = e->f->ops->seek(e->f, e->pos, SEEK_SET);
		mutex_unlock(&e->f->pos_mu);
		return pos < 0 ? (int)pos : 0;
	}
	return 0;
}

static ssize_t read_end(struct end *e, void *buf, size_t n)
{
	struct iov_iter it;

	iov_init_host(&it, buf, n, IOV_FILL);
	return vfs_read(e->f, &it, e->f->ops->seek ? &e->pos : NULL);
}

static ssize_t write_end(struct end *e, void *buf, size_t n)
{
	struct iov_iter it;

	iov_init_host(&it, buf, n, IOV_DRAIN);
	return vfs_write(e->f, &it, e->f->ops->seek ? &e->pos : NULL);
}

/* Copies up to size bytes from a seekable file; what could not be written is not consumed. */
static long copy_data(struct end *in, struct end *out, uint64_t size)
{
	char *buf = mem_alloc(MIN(size, (uint64_t)CHUNK));
	long done = 0;
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	while ((uint64_t)done < size) {
		size_t want = MIN(size - (uint64_t)done, (uint64_t)CHUNK);
		int64_t start = in->pos;

		n = read_end(in, buf, want);
		if (n <= 0)
			break;
		ssize_t w = write_end(out, buf, (size_t)n);
		in->pos = start + MAX(w, 0);
		if (w <= 0) {
			n = w;
			break;
		}
		done += w;
		if (w < n)
			break;
	}
	mem_free(buf);
	return done > 0 ? done : n;
}

static void ends_put(struct end *in, struct end *out)
{
	file_put(in->f);
	file_put(out->f);
}

/* ---- sendfile, copy_file_range ------------------------------------------------------------ */

static int check_sendfile_in(struct end *in)
{
	if (!file_can_read(in->f))
		return -EBADF;
	if (!in->own && !in->f->ops->seek)
		return -ESPIPE;
	return in->pos < 0 ? -EINVAL : 0;
}

static int check_sendfile_out(struct end *in, struct end *out)
{
	if (!file_can_write(out->f))
		return -EBADF;
	if (!in->f->ops->seek || file_is_dir(in->f) || (file_flags(out->f) & O_APPEND))
		return -EINVAL;
	return 0;
}

long sys_sendfile(struct task *t, int out_fd, int in_fd, i64_gp offset, uint64_t count)
{
	const i64_gp none = { .addr = { 0 } };
	struct end in, out = { .f = NULL };

	long r = end_begin(t, &in, in_fd, offset);
	if (r == 0)
		r = end_load(t, &in);
	if (r == 0)
		r = check_sendfile_in(&in);
	if (r == 0)
		r = end_begin(t, &out, out_fd, none);
	if (r == 0)
		r = check_sendfile_out(&in, &out);
	if (r == 0)
		r = end_load(t, &out);
	if (r == 0 && count > 0) {
		r = copy_data(&in, &out, MIN(count, RW_COUNT_MAX));
		int err = end_store(t, &out, r);
		if (!err)
			err = end_store(t, &in, r);
		if (err)
			r = err;
	}
	ends_put(&in, &out);
	return r;
}

static int check_copy_range(struct end *in, struct end *out, uint64_t len)
{
	struct inode *a = file_inode(in->f), *b = file_inode(out->f);

	if (file_is_dir(in->f) || file_is_dir(out->f))
		return -EISDIR;
	if (!a || !b || a->type != S_IFREG || b->type != S_IFREG)
		return -EINVAL;
	if (!file_can_read(in->f) || !file_can_write(out->f) || (file_flags(out->f) & O_APPEND))
		return -EBADF;
	if ((uint64_t)in->pos + len > INT64_MAX || (uint64_t)out->pos + len > INT64_MAX ||
	    len > INT64_MAX)
		return -EOVERFLOW;
	if (in->pos < 0 || out->pos < 0)
		return -EINVAL;
	if (a == b && in->pos < out->pos + (int64_t)len && out->pos < in->pos + (int64_t)len)
		return -EINVAL;
	return 0;
}

long sys_copy_file_range(struct task *t, int fd_in, i64_gp off_in, int fd_out, i64_gp off_out,
			 uint64_t len, uint32_t flags)
{
	struct end in, out = { .f = NULL };

	long r = end_begin(t, &in, fd_in, off_in);
	if (r == 0)
		r = end_begin(t, &out, fd_out, off_out);
	if (r == 0)
		r = end_load(t, &out);
	if (r == 0)
		r = end_load(t, &in);
	if (r == 0 && flags)
		r = -EINVAL;
	if (r == 0)
		r = check_copy_range(&in, &out, len);
	if (r == 0 && len > 0) {
		r = copy_data(&in, &out, MIN(len, RW_COUNT_MAX));
		int err = r > 0 ? end_store(t, &in, r) : 0;
		if (r > 0 && !err)
			err = end_store(t, &out, r);
		if (err)
			r = err;
	}
	ends_put(&in, &out);
	return r;
}

/* ---- splice ------------------------------------------------------------------------------- */

/* Borrowed pages of the pipe go to the file. */
static long splice_out(struct end *in, struct end *out, size_t size, bool nonblock)
{
	struct pipe_page pages[PIPE_SPLICE_MAX];
	long done = 0;

	int n = pipe_drain_begin(in->f, size, nonblock || file_nonblock(in->f), pages);
	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		ssize_t w = write_end(out, (char *)pages[i].page + pages[i].off, pages[i].len);
		if (w < 0 && done == 0)
			done = w;
		if (w > 0)
			done += w;
		if (w < (ssize_t)pages[i].len)
			break;
	}
	pipe_drain_end(in->f, done > 0 ? (size_t)done : 0);
	return done;
}

/* Where in its page the source stands: a slot of the pipe holds what is in one page of the file. */
static size_t page_offset(const struct end *in)
{
	return in->f->ops->seek ? (size_t)in->pos % PAGE_SIZE : 0;
}

/* Fills up to `room` pages from the source; their number, or -errno when there is none. */
static int fill_pages(struct end *in, struct pipe_page *pages, unsigned room, size_t size,
		      long *out_bytes)
{
	unsigned n = 0;
	ssize_t got = 0;

	*out_bytes = 0;
	while (n < room && size > 0) {
		size_t want = MIN(size, PAGE_SIZE - page_offset(in));
		void *page = mem_alloc(PAGE_SIZE);
		got = page ? read_end(in, page, want) : -ENOMEM;
		if (got <= 0) {
			mem_free(page);
			break;
		}
		pages[n++] = (struct pipe_page){ .page = page, .len = (unsigned)got };
		*out_bytes += got;
		size -= (size_t)got;
		/* A stream that gave less would sleep now. */
		if ((size_t)got < want)
			break;
	}
	return n > 0 || got == 0 ? (int)n : (int)got;
}

static long splice_in(struct end *in, struct end *out, size_t size, bool nonblock)
{
	struct pipe_page pages[PIPE_SPLICE_MAX];
	size_t want =
		MIN((size + page_offset(in) + PAGE_SIZE - 1) / PAGE_SIZE, (size_t)PIPE_SPLICE_MAX);
	long bytes;

	int room = pipe_reserve(out->f, (unsigned)want, nonblock || file_nonblock(out->f));
	if (room < 0)
		return room;
	int n = fill_pages(in, pages, (unsigned)room, size, &bytes);
	pipe_commit(out->f, pages, n > 0 ? (unsigned)n : 0, (unsigned)room);
	return n < 0 ? n : bytes;
}

static long do_splice(struct end *in, struct end *out, uint64_t len, uint32_t flags)
{
	bool nonblock = flags & SPLICE_F_NONBLOCK, in_pipe = is_pipe(in->f),
	     out_pipe = is_pipe(out->f);
	size_t size = MIN(len, RW_COUNT_MAX);

	if ((in_pipe && !in->own) || (out_pipe && !out->own))
		return -ESPIPE;
	if (!file_can_read(in->f) || !file_can_write(out->f))
		return -EBADF;
	/* A stream that is no pipe cannot be read at an offset either. */
	if ((!in->own && (!in->f->ops->seek || in->pos < 0)) ||
	    (!out->own && (!out->f->ops->seek || out->pos < 0)))
		return -EINVAL;
	if (in_pipe && out_pipe)
		return pipe_transfer(in->f, out->f, size, false,
				     nonblock || file_nonblock(in->f) || file_nonblock(out->f));
	if (in_pipe) {
		if (file_flags(out->f) & O_APPEND)
			return -EINVAL;
		return out->f->ops->write ? splice_out(in, out, size, nonblock) : -EINVAL;
	}
	if (!out_pipe || file_is_dir(in->f) || !in->f->ops->read)
		return -EINVAL;
	return splice_in(in, out, size, nonblock);
}

long sys_splice(struct task *t, int fd_in, i64_gp off_in, int fd_out, i64_gp off_out, uint64_t len,
		uint32_t flags)
{
	struct end in, out = { .f = NULL };

	if (len == 0)
		return 0;
	if (flags & ~(uint32_t)SPLICE_KNOWN)
		return -EINVAL;
	long r = end_begin(t, &in, fd_in, off_in);
	if (r == 0)
		r = end_begin(t, &out, fd_out, off_out);
	if (r == 0)
		r = end_load(t, &in);
	if (r == 0)
		r = end_load(t, &out);
	if (r == 0) {
		r = do_splice(&in, &out, len, flags);
		int err = end_store(t, &in, r);
		if (!err)
			err = end_store(t, &out, r);
		if (err)
			r = err;
	}
	ends_put(&in, &out);
	return r;
}

long sys_tee(struct task *t, int fd_in, int fd_out, uint64_t len, uint32_t flags)
{
	if (flags & ~(uint32_t)SPLICE_KNOWN)
		return -EINVAL;
	if (len == 0)
		return 0;
	struct file *in = fd_get_io(t->files, fd_in), *out = fd_get_io(t->files, fd_out);
	long r = -EBADF;

	if (in && out && file_can_read(in) && file_can_write(out)) {
		r = -EINVAL;
		if (is_pipe(in) && is_pipe(out))
			r = pipe_transfer(in, out, MIN(len, RW_COUNT_MAX), true,
					  (flags & SPLICE_F_NONBLOCK) || file_nonblock(in) ||
						  file_nonblock(out));
	}
	file_put(in);
	file_put(out);
	return r;
}

/* ---- vmsplice ----------------------------------------------------------------------------- */

/* One round of user memory into the pipe; bytes. LINUX: maps the user's pages; we copy them. */
static long gift_round(struct file *f, struct iov_iter *it, bool nonblock)
{
	struct pipe_page pages[PIPE_SPLICE_MAX];
	size_t want = MIN((it->count + PAGE_SIZE - 1) / PAGE_SIZE, (size_t)PIPE_SPLICE_MAX);
	unsigned n = 0;
	long bytes = 0, err = 0;

	int room = pipe_reserve(f, (unsigned)want, nonblock);
	if (room < 0)
		return room;
	while (n < (unsigned)room && it->count > 0 && !err) {
		void *page = mem_alloc(PAGE_SIZE);
		ssize_t got = page ? iov_copy_from(it, page, PAGE_SIZE) : -ENOMEM;
		if (got > 0) {
			pages[n++] = (struct pipe_page){ .page = page, .len = (unsigned)got };
			bytes += got;
		} else {
			mem_free(page);
			err = got;
		}
	}
	pipe_commit(f, pages, n, (unsigned)room);
	return bytes > 0 ? bytes : err;
}

/* Waits for room once; then takes what fits, as the man page's "as much as possible" means. */
static long gift(struct file *f, struct iov_iter *it, bool nonblock)
{
	long done = 0, r = 0;

	while (it->count > 0) {
		r = gift_round(f, it, nonblock || done > 0);
		if (r <= 0)
			break;
		done += r;
	}
	return done > 0 ? done : r;
}

long sys_vmsplice(struct task *t, int fd, iovec_cgp iov, uint64_t nr_segs, uint32_t flags)
{
	struct iov_iter it;
	long r;

	if (flags & ~(uint32_t)SPLICE_KNOWN)
		return -EINVAL;
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	bool write = file_can_write(f);
	bool nonblock = (flags & SPLICE_F_NONBLOCK) || file_nonblock(f);
	r = is_pipe(f) ? guest_iter(t, &it, iov, nr_segs, write ? IOV_DRAIN : IOV_FILL) : -EBADF;
	if (r == 0 && it.count > 0) {
		if (write)
			r = gift(f, &it, nonblock);
		else if (nonblock && !(file_poll(f, NULL) & (POLLIN | POLLHUP)))
			r = -EAGAIN;
		else
			r = vfs_read(f, &it, NULL);
	}
	file_put(f);
	return r;
}

/*
 * The only file of the sentry through which guest memory of the current task is read and written.
 * Copies that stop at the edge of a growing stack make it grow, as a fault in the kernel's copy
 * would.
 */
#include <errno.h>
#include <string.h>

#include "sentry/guest.h"
#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/task.h"

bool guest_range_ok(struct task *t UNUSED, struct gaddr a, uint64_t size)
{
	uint64_t max = plat->info()->task_max;
	return size <= max && a.va <= max - size;
}

static ssize_t task_copy_in(void *arg, void *dst, uint64_t src, size_t n)
{
	struct task *t = arg;
	size_t done = 0;

	while (done < n) {
		ssize_t r = mm_copy_in(t->mm, (char *)dst + done, src + done, n - done);
		if (r > 0)
			done += (size_t)r;
		else if (!mm_grow(t, src + done))
			break;
	}
	return done || !n ? (ssize_t)done : -EFAULT;
}

static ssize_t task_copy_out(void *arg, uint64_t dst, const void *src, size_t n)
{
	struct task *t = arg;
	size_t done = 0;

	while (done < n) {
		ssize_t r = mm_copy_out(t->mm, dst + done, (const char *)src + done, n - done);
		if (r > 0)
			done += (size_t)r;
		else if (!mm_grow(t, dst + done))
			break;
	}
	return done || !n ? (ssize_t)done : -EFAULT;
}

static const struct umem_ops task_umem_ops = { .copy_in = task_copy_in, .copy_out = task_copy_out };

struct umem guest_umem(struct task *t)
{
	return (struct umem){ .ops = &task_umem_ops, .arg = t };
}

int guest_read(struct task *t, void *dst, struct gaddr src, size_t n)
{
	if (!guest_range_ok(t, src, n))
		return -EFAULT;
	return task_copy_in(t, dst, src.va, n) == (ssize_t)n ? 0 : -EFAULT;
}

int guest_write(struct task *t, struct gaddr dst, const void *src, size_t n)
{
	if (!guest_range_ok(t, dst, n))
		return -EFAULT;
	return task_copy_out(t, dst.va, src, n) == (ssize_t)n ? 0 : -EFAULT;
}

ssize_t guest_load_str(struct task *t, char *dst, size_t cap, path_cgp src)
{
	size_t done = 0;

	while (done < cap) {
		uint64_t at = src.addr.va + done;
		/* Pieces end with the page, so that the string may end right before an unmapped
		 * one. */
		size_t piece = MIN(cap - done, PAGE_SIZE - (at & (PAGE_SIZE - 1)));
		int err = guest_read(t, dst + done, gaddr(at), piece);
		if (err)
			return err;
		char *nul = memchr(dst + done, 0, piece);
		if (nul)
			return nul - dst;
		done += piece;
	}
	return -ENAMETOOLONG;
}

int guest_load_path(struct task *t, path_cgp src, const char **out_path)
{
	char buf[PATH_LEN_MAX];
	ssize_t len = guest_load_str(t, buf, sizeof(buf), src);

	if (len < 0)
		return (int)len;
	char *copy = arena_alloc(&t->scratch, (size_t)len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, buf, (size_t)len + 1);
	*out_path = copy;
	return 0;
}

int guest_load_ext(struct task *t, void *dst, size_t ksize, buf_cgp src, uint64_t usize)
{
	char tail[256];
	uint64_t pos = ksize;

	if (usize > PAGE_SIZE)
		return -E2BIG;
	while (pos < usize) {
		size_t n = MIN(usize - pos, sizeof(tail));
		if (guest_read(t, tail, gaddr(src.addr.va + pos), n))
			return -EFAULT;
		for (size_t i = 0; i < n; i++)
			if (tail[i])
				return -E2BIG;
		pos += n;
	}
	memset(dst, 0, ksize);
	return guest_read(t, dst, src.addr, MIN((uint64_t)ksize, usize));
}

int guest_iter(struct task *t, struct iov_iter *it, iovec_cgp v, uint64_t count, enum iov_dir dir)
{
	struct umem um = guest_umem(t);
	struct iov_seg one, *segs = &one;
	size_t total = 0;

	if (count > IOV_MAX_SEGS)
		return -EINVAL;
	if (count > 1 || count == 0) {
		segs = arena_alloc(&t->scratch, sizeof(*segs) * MAX(count, 1ul));
		if (!segs)
			return -ENOMEM;
	}
	if (guest_load_n(t, segs, count, v))
		return -EFAULT;
	for (size_t i = 0; i < count; i++) {
		if ((ssize_t)segs[i].len < 0)
			return -EINVAL;
		if (!guest_range_ok(t, gaddr(segs[i].base), segs[i].len))
			return -EFAULT;
		segs[i].len = MIN(segs[i].len, RW_COUNT_MAX - total);
		total += segs[i].len;
	}
	if (count == 1)
		iov_init_one(it, &um, segs[0].base, segs[0].len, dir);
	else
		iov_init(it, &um, segs, count, dir);
	return 0;
}

int guest_iter_buf(struct task *t, struct iov_iter *it, struct gaddr buf, uint64_t len,
		   enum iov_dir dir)
{
	struct umem um = guest_umem(t);

	if (!guest_range_ok(t, buf, len))
		return -EFAULT;
	iov_init_one(it, &um, buf.va, MIN(len, RW_COUNT_MAX), dir);
	return 0;
}

/* Iterators over guest or host memory: see iov.h. */
#include "platform/base/iov.h"

#include <errno.h>
#include <string.h>

static ssize_t host_copy_in(void *arg UNUSED, void *dst, uint64_t src, size_t n)
{
	memcpy(dst, (const void *)(uintptr_t)src, n);
	return (ssize_t)n;
}

static ssize_t host_copy_out(void *arg UNUSED, uint64_t dst, const void *src, size_t n)
{
	memcpy((void *)(uintptr_t)dst, src, n);
	return (ssize_t)n;
}

static const struct umem_ops host_ops = { .copy_in = host_copy_in, .copy_out = host_copy_out };
const struct umem umem_host = { .ops = &host_ops };

int umem_read(const struct umem *m, void *dst, uint64_t src, size_t n)
{
	if (n == 0)
		return 0;
	return m->ops->copy_in(m->arg, dst, src, n) == (ssize_t)n ? 0 : -EFAULT;
}

int umem_write(const struct umem *m, uint64_t dst, const void *src, size_t n)
{
	if (n == 0)
		return 0;
	return m->ops->copy_out(m->arg, dst, src, n) == (ssize_t)n ? 0 : -EFAULT;
}

void iov_init_one(struct iov_iter *it, const struct umem *mem, uint64_t base, size_t len,
		  enum iov_dir dir)
{
	*it = (struct iov_iter){ .mem = *mem, .count = len, .dir = dir };
	it->one = (struct iov_seg){ .base = base, .len = len };
	/* seg stays NULL: the iterator may be copied, so it must not point into itself. */
	it->seg_count = 1;
}

void iov_init(struct iov_iter *it, const struct umem *mem, const struct iov_seg *seg, size_t count,
	      enum iov_dir dir)
{
	*it = (struct iov_iter){ .mem = *mem, .seg = seg, .seg_count = count, .dir = dir };
	for (size_t i = 0; i < count; i++)
		it->count += seg[i].len;
}

void iov_init_host(struct iov_iter *it, void *buf, size_t len, enum iov_dir dir)
{
	iov_init_one(it, &umem_host, (uintptr_t)buf, len, dir);
}

/* The segment under the cursor after skipping empty ones; NULL at the end. */
static const struct iov_seg *current_seg(struct iov_iter *it)
{
	if (it->count == 0)
		return NULL;
	if (!it->seg)
		return &it->one;
	while (it->seg_off == it->seg->len) {
		it->seg++;
		it->seg_count--;
		it->seg_off = 0;
	}
	return it->seg;
}

void iov_advance(struct iov_iter *it, size_t n)
{
	BUG_ON(n > it->count);
	while (n > 0) {
		const struct iov_seg *s = current_seg(it);
		size_t step = MIN(n, s->len - it->seg_off);
		it->seg_off += step;
		it->count -= step;
		n -= step;
	}
}

void iov_truncate(struct iov_iter *it, size_t n)
{
	if (n < it->count)
		it->count = n;
}

enum op { OP_TO, OP_FROM, OP_ZERO };

static ssize_t copy_piece(struct iov_iter *it, enum op op, void *buf, uint64_t addr, size_t n)
{
	static const char zeros[PAGE_SIZE];

	switch (op) {
	case OP_TO:
		return it->mem.ops->copy_out(it->mem.arg, addr, buf, n);
	case OP_FROM:
		return it->mem.ops->copy_in(it->mem.arg, buf, addr, n);
	case OP_ZERO:
		break;
	}
	return it->mem.ops->copy_out(it->mem.arg, addr, zeros, MIN(n, sizeof(zeros)));
}

static ssize_t transfer(struct iov_iter *it, enum op op, char *buf, size_t n)
{
	size_t done = 0;

	n = MIN(n, it->count);
	while (done < n) {
		const struct iov_seg *s = current_seg(it);
		size_t step = MIN(n - done, s->len - it->seg_off);
		ssize_t r =
			copy_piece(it, op, buf ? buf + done : NULL, s->base + it->seg_off, step);
		if (r <= 0)
			return done ? (ssize_t)done : -EFAULT;
		iov_advance(it, (size_t)r);
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t iov_copy_to(struct iov_iter *it, const void *src, size_t n)
{
	BUG_ON(it->dir != IOV_FILL);
	/* transfer takes one pointer type for both directions; OP_TO only reads from it. */
	return transfer(it, OP_TO, (char *)(uintptr_t)src, n);
}

ssize_t iov_copy_from(struct iov_iter *it, void *dst, size_t n)
{
	BUG_ON(it->dir != IOV_DRAIN);
	return transfer(it, OP_FROM, dst, n);
}

ssize_t iov_zero(struct iov_iter *it, size_t n)
{
	BUG_ON(it->dir != IOV_FILL);
	return transfer(it, OP_ZERO, NULL, n);
}

ssize_t iov_peek(const struct iov_iter *it, void *dst, size_t n)
{
	struct iov_iter copy = *it;
	return iov_copy_from(&copy, dst, n);
}

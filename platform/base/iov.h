/*
 * Memory of somebody else, and a cursor over pieces of it.
 *
 * `struct umem` is "a memory that may fault": a guest address space or the host's own memory in
 * tests. `struct iov_iter` walks over segments of one. File systems and sockets get an iterator and
 * cannot tell guest from host.
 */
#pragma once

#include "platform/base/types.h"

struct umem_ops {
	/* Bytes copied before a fault (0..n), or -EFAULT if none could be. */
	ssize_t (*copy_in)(void *arg, void *dst, uint64_t src, size_t n);
	ssize_t (*copy_out)(void *arg, uint64_t dst, const void *src, size_t n);
};

struct umem {
	const struct umem_ops *ops;
	void *arg;
};

/* All-or-nothing copies: 0 or -EFAULT. */
int umem_read(const struct umem *m, void *dst, uint64_t src, size_t n) MUST_CHECK;
int umem_write(const struct umem *m, uint64_t dst, const void *src, size_t n) MUST_CHECK;
/* The host's own memory; addresses are pointers. For tests and internal transfers. */
extern const struct umem umem_host;

struct iov_seg {
	uint64_t base;
	size_t len;
};

/* Direction is part of the iterator: a read(2) fills it, a write(2) drains it. */
enum iov_dir { IOV_FILL, IOV_DRAIN };

struct iov_iter {
	struct umem mem;
	const struct iov_seg *seg; /* borrowed; outlives the iterator */
	size_t seg_count;
	size_t seg_off; /* offset into seg[0] */
	size_t count;   /* bytes left in all */
	enum iov_dir dir;
	struct iov_seg one; /* storage when there is one segment */
};

/* One segment. */
void iov_init_one(struct iov_iter *it, const struct umem *mem, uint64_t base, size_t len,
		  enum iov_dir dir);
/* Segments must already be checked: no address wraps, the sum fits ssize_t. */
void iov_init(struct iov_iter *it, const struct umem *mem, const struct iov_seg *seg, size_t count,
	      enum iov_dir dir);
/* Host buffer. */
void iov_init_host(struct iov_iter *it, void *buf, size_t len, enum iov_dir dir);

/* Copies min(n, it->count) bytes and advances by what was copied. Returns that number; -EFAULT only
 * if nothing was copied although something was to be. */
ssize_t iov_copy_to(struct iov_iter *it, const void *src, size_t n) MUST_CHECK;
ssize_t iov_copy_from(struct iov_iter *it, void *dst, size_t n) MUST_CHECK;
ssize_t iov_zero(struct iov_iter *it, size_t n) MUST_CHECK;
/* As iov_copy_from without advancing. */
ssize_t iov_peek(const struct iov_iter *it, void *dst, size_t n) MUST_CHECK;
void iov_advance(struct iov_iter *it, size_t n);
/* Limits what is left to n bytes. */
void iov_truncate(struct iov_iter *it, size_t n);

/*
 * The bytes of a file that lives in memory (tmpfs, overlay upper, memfd). Small files that were
 * never mapped are heap blocks; anything else is a host memfd, from which the host kernel gives
 * exact semantics of mappings, holes and truncation.
 *
 * Lock: the functions marked [mu] need the owner's mutex (the inode's mu); size and pages may be
 * read any time.
 */
#pragma once

#include <stdatomic.h>

#include "platform/base/iov.h"
#include "platform/base/lock.h"

/* Who pays for pages: one per super block. */
struct mem_pool {
	_Atomic uint64_t used; /* pages */
	uint64_t max;          /* [I] pages; 0: no limit */
};

/* All files in memory together may have so many pages (-ENOSPC beyond); 0: no limit. Once, at boot.
 */
void memfile_set_limit(uint64_t pages);

struct memfile {
	struct mem_pool *pool;    /* [I] borrowed */
	uint8_t *small;           /* [mu] while fd < 0; zero beyond size */
	size_t small_cap;         /* [mu] */
	atomic_int fd;            /* [mu] to change; once set it stays */
	_Atomic uint64_t size;    /* [mu] to change */
	_Atomic uint64_t charged; /* [mu] to change; pages */
	uint64_t dense_end;       /* [mu] all pages below this offset are allocated */
};

void memfile_init(struct memfile *m, struct mem_pool *pool);
void memfile_fini(struct memfile *m);
/* A memfd from the start, on which seals may be put. */
int memfile_init_sealable(struct memfile *m, struct mem_pool *pool, const char *name) MUST_CHECK;
/* Bytes; 0 at or after the end. Takes `mu` itself as long as the data is small. */
ssize_t memfile_read(struct memfile *m, struct mutex *mu, struct iov_iter *it, uint64_t off)
	MUST_CHECK;
/* Bytes, -ENOSPC, -EFBIG, -EFAULT. [mu] */
ssize_t memfile_write(struct memfile *m, struct iov_iter *it, uint64_t off) MUST_CHECK;
int memfile_truncate(struct memfile *m, uint64_t size) MUST_CHECK; /* [mu] */
/* fallocate(2) with KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE; -EOPNOTSUPP for other modes. [mu] */
int memfile_fallocate(struct memfile *m, int mode, uint64_t off, uint64_t len) MUST_CHECK;
/* SEEK_DATA and SEEK_HOLE; -ENXIO. [mu] */
int64_t memfile_seek(struct memfile *m, int64_t off, int whence) MUST_CHECK;
/* The host descriptor for a mapping; makes it one first. [mu] */
int memfile_map(struct memfile *m, int *out_fd) MUST_CHECK;
/* Pages in use, looking at the host when mappings may have added some. */
uint64_t memfile_pages(struct memfile *m);

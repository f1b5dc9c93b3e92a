/*
 * Bytes of files in memory: see memfile.h.
 *
 * Invariants of the small form: every page below `size` has been written (so there are no holes to
 * report), bytes from `size` to `small_cap` are zero. Whatever would break the first (a gap of
 * whole pages, a hole, a truncation upwards) changes the form to a memfd, for good.
 *
 * Accounting: `charged` pages are paid to the pool. A writer pays for what its range may add before
 * it writes, and settles with what the host says afterwards. Pages that a mapping adds are found by
 * the next settlement.
 */
#include "fs/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/host/host.h"

#define SMALL_MAX (64 * 1024ul)
#define SMALL_MIN 64ul
#define BLOCKS_PER_PAGE (PAGE_SIZE / 512)
#define SIZE_MAX_FILE ((uint64_t)INT64_MAX)

static struct mem_pool everything;

void memfile_set_limit(uint64_t pages)
{
	everything.max = pages;
}

static uint64_t pages_of(uint64_t bytes)
{
	return bytes / PAGE_SIZE + (bytes % PAGE_SIZE != 0);
}

/* ---- paying ------------------------------------------------------------------------------- */

static int take_from(struct mem_pool *p, uint64_t pages)
{
	uint64_t used = atomic_load(&p->used);

	do {
		if (p->max && (used > p->max || pages > p->max - used))
			return -ENOSPC;
	} while (!atomic_compare_exchange_weak(&p->used, &used, used + pages));
	return 0;
}

static int pool_charge(struct mem_pool *p, uint64_t pages)
{
	int err = take_from(p, pages);

	if (err)
		return err;
	err = take_from(&everything, pages);
	if (err)
		atomic_fetch_sub(&p->used, pages);
	return err;
}

static void pool_uncharge(struct mem_pool *p, uint64_t pages)
{
	atomic_fetch_sub(&p->used, pages);
	atomic_fetch_sub(&everything.used, pages);
}

static int charge_more(struct memfile *m, uint64_t pages)
{
	if (pages == 0)
		return 0;
	int err = pool_charge(m->pool, pages);
	if (!err)
		atomic_fetch_add(&m->charged, pages);
	return err;
}

/* Sets what is paid to `pages`; what is already in use cannot be refused. */
static void settle_to(struct memfile *m, uint64_t pages)
{
	uint64_t paid = atomic_load(&m->charged);

	if (pages < paid) {
		pool_uncharge(m->pool, paid - pages);
	} else if (pages > paid) {
		atomic_fetch_add(&m->pool->used, pages - paid);
		atomic_fetch_add(&everything.used, pages - paid);
	}
	atomic_store(&m->charged, pages);
}

static uint64_t host_pages(struct memfile *m)
{
	struct stat st;

	if (host_fstat(atomic_load(&m->fd), &st) != 0)
		return atomic_load(&m->charged);
	return (uint64_t)st.st_blocks / BLOCKS_PER_PAGE;
}

uint64_t memfile_pages(struct memfile *m)
{
	return atomic_load(&m->fd) < 0 ? atomic_load(&m->charged) : host_pages(m);
}

/* ---- forms -------------------------------------------------------------------------------- */

void memfile_init(struct memfile *m, struct mem_pool *pool)
{
	memset(m, 0, sizeof(*m));
	m->pool = pool;
	atomic_init(&m->fd, -1);
}

int memfile_init_sealable(struct memfile *m, struct mem_pool *pool, const char *name)
{
	memfile_init(m, pool);
	int fd = host_memfd_sealable(name);
	if (fd < 0)
		return fd;
	atomic_store(&m->fd, fd);
	return 0;
}

void memfile_fini(struct memfile *m)
{
	int fd = atomic_load(&m->fd);

	if (fd >= 0)
		host_close(fd);
	mem_free(m->small);
	pool_uncharge(m->pool, atomic_load(&m->charged));
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = host_pwrite(fd, p + done, n - done, done);
		if (r <= 0)
			return r < 0 ? (int)r : -EIO;
		done += (size_t)r;
	}
	return 0;
}

/* Makes a memfd of it. */
static int to_memfd(struct memfile *m)
{
	uint64_t size = atomic_load(&m->size);

	if (atomic_load(&m->fd) >= 0)
		return 0;
	int fd = host_memfd("pinfold-file");
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? -ENOSPC : fd;
	int err = write_all(fd, m->small, size);
	if (err) {
		host_close(fd);
		return err;
	}
	m->dense_end = pages_of(size) * PAGE_SIZE;
	/* The last page was written up to `size` only, which sets the size of the memfd too. */
	mem_free(m->small);
	m->small = NULL;
	m->small_cap = 0;
	atomic_store(&m->fd, fd);
	settle_to(m, pages_of(size));
	return 0;
}

/* Room for `end` bytes in the small form. */
static int small_reserve(struct memfile *m, uint64_t end)
{
	size_t cap = MAX(m->small_cap, SMALL_MIN);

	if (end <= m->small_cap)
		return 0;
	while (cap < end)
		cap *= 2;
	int err = charge_more(m, pages_of(cap) - pages_of(m->small_cap));
	if (err)
		return err;
	uint8_t *p = mem_realloc(m->small, cap);
	if (!p) {
		settle_to(m, pages_of(m->small_cap));
		return -ENOMEM;
	}
	memset(p + m->small_cap, 0, cap - m->small_cap);
	m->small = p;
	m->small_cap = cap;
	return 0;
}

/* ---- data --------------------------------------------------------------------------------- */

static ssize_t small_read(struct memfile *m, struct iov_iter *it, uint64_t off)
{
	uint64_t size = atomic_load(&m->size);

	if (off >= size)
		return 0;
	return iov_copy_to(it, m->small + off, MIN(size - off, it->count));
}

ssize_t memfile_read(struct memfile *m, struct mutex *mu, struct iov_iter *it, uint64_t off)
{
	if (off > SIZE_MAX_FILE)
		return -EINVAL;
	if (atomic_load(&m->fd) < 0) {
		mutex_lock_nested(mu); /* a stacked file system may hold the mu of its own inode */
		if (atomic_load(&m->fd) < 0) {
			ssize_t n = small_read(m, it, off);
			mutex_unlock(mu);
			return n;
		}
		mutex_unlock(mu);
	}
	return host_read_iter(atomic_load(&m->fd), it, (int64_t)off);
}

static ssize_t small_write(struct memfile *m, struct iov_iter *it, uint64_t off)
{
	uint64_t size = atomic_load(&m->size), end = off + it->count;
	int err = small_reserve(m, end);

	if (err)
		return err;
	ssize_t n = iov_copy_from(it, m->small + off, it->count);
	uint64_t done = off + (uint64_t)MAX(n, 0);
	/* A copy that faulted may have left bytes that were never counted. */
	if (done < end && end > size)
		memset(m->small + MAX(done, size), 0, end - MAX(done, size));
	if (n > 0 && done > size)
		atomic_store(&m->size, done);
	return n;
}

/* Pages of [off, end) that are holes now. */
static uint64_t count_holes(struct memfile *m, uint64_t off, uint64_t end)
{
	uint64_t pos = page_down(off), holes = 0;
	int fd = atomic_load(&m->fd);

	while (pos < end) {
		int64_t data = host_lseek(fd, (int64_t)pos, SEEK_DATA);
		uint64_t stop = data < 0 ? end : MIN((uint64_t)data, end);
		if (stop > pos)
			holes += pages_of(stop) - pos / PAGE_SIZE;
		if (data < 0 || (uint64_t)data >= end)
			break;
		int64_t hole = host_lseek(fd, data, SEEK_HOLE);
		pos = hole < 0 ? end : (uint64_t)hole;
	}
	return holes;
}

/* Pays for a write of `count` bytes at off; gives how many of them there is room for. */
static int charge_write(struct memfile *m, uint64_t off, size_t *count)
{
	uint64_t end = off + *count, first = MAX(page_down(off), m->dense_end);
	uint64_t last = pages_of(end) * PAGE_SIZE;

	if (last <= first || charge_more(m, (last - first) / PAGE_SIZE) == 0)
		return 0;
	/* Perhaps some of these pages exist. */
	if (charge_more(m, count_holes(m, MAX(off, m->dense_end), end)) == 0)
		return 0;
	uint64_t room = first;
	while (room < last && charge_more(m, count_holes(m, room, room + PAGE_SIZE)) == 0)
		room += PAGE_SIZE;
	if (room <= off)
		return -ENOSPC;
	*count = MIN(room, end) - off;
	return 0;
}

static ssize_t fd_write(struct memfile *m, struct iov_iter *it, uint64_t off)
{
	size_t count = it->count, rest;
	bool in_dense = off + count <= m->dense_end;

	int err = charge_write(m, off, &count);
	if (err)
		return err;
	rest = it->count - count;
	iov_truncate(it, count);
	ssize_t n = host_write_iter(atomic_load(&m->fd), it, (int64_t)off);
	it->count += rest;
	uint64_t done = off + (uint64_t)MAX(n, 0);
	if (n > 0 && done > atomic_load(&m->size))
		atomic_store(&m->size, done);
	if (n > 0 && off <= m->dense_end && done > m->dense_end)
		m->dense_end = pages_of(done) * PAGE_SIZE;
	if (!in_dense)
		settle_to(m, host_pages(m));
	return n;
}

ssize_t memfile_write(struct memfile *m, struct iov_iter *it, uint64_t off)
{
	if (it->count == 0)
		return 0;
	if (off >= SIZE_MAX_FILE)
		return -EFBIG;
	iov_truncate(it, (size_t)(SIZE_MAX_FILE - off));
	if (atomic_load(&m->fd) < 0) {
		bool gap = off > pages_of(atomic_load(&m->size)) * PAGE_SIZE;
		if (!gap && off + it->count <= SMALL_MAX)
			return small_write(m, it, off);
		int err = to_memfd(m);
		if (err)
			return err;
	}
	return fd_write(m, it, off);
}

static void small_shrink(struct memfile *m, uint64_t size)
{
	memset(m->small + size, 0, atomic_load(&m->size) - size);
	if (size == 0) {
		mem_free(m->small);
		m->small = NULL;
		m->small_cap = 0;
		settle_to(m, 0);
	}
	atomic_store(&m->size, size);
}

int memfile_truncate(struct memfile *m, uint64_t size)
{
	uint64_t old = atomic_load(&m->size);

	if (size > SIZE_MAX_FILE)
		return -EFBIG;
	if (atomic_load(&m->fd) < 0) {
		if (size == old)
			return 0;
		if (size < old) {
			small_shrink(m, size);
			return 0;
		}
		int err = to_memfd(m);
		if (err)
			return err;
	}
	int err = host_ftruncate(atomic_load(&m->fd), size);
	if (err)
		return err;
	atomic_store(&m->size, size);
	m->dense_end = MIN(m->dense_end, page_down(size));
	if (size < old)
		settle_to(m, host_pages(m));
	return 0;
}

int memfile_fallocate(struct memfile *m, int mode, uint64_t off, uint64_t len)
{
	uint64_t end = off + len;
	int known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE;

	/* LINUX: shmem knows no ZERO_RANGE either. */
	if (mode & ~known)
		return -EOPNOTSUPP;
	if (end > SIZE_MAX_FILE || end < off)
		return -EFBIG;
	int err = to_memfd(m);
	if (err)
		return err;
	if (!(mode & FALLOC_FL_PUNCH_HOLE)) {
		err = charge_more(m, count_holes(m, off, end));
		if (err)
			return err;
	}
	err = host_fallocate(atomic_load(&m->fd), mode, off, len);
	if (!err && (mode & FALLOC_FL_PUNCH_HOLE))
		m->dense_end = MIN(m->dense_end, page_down(off));
	if (!err && !(mode & FALLOC_FL_KEEP_SIZE) && end > atomic_load(&m->size))
		atomic_store(&m->size, end);
	settle_to(m, host_pages(m));
	return err;
}

int64_t memfile_seek(struct memfile *m, int64_t off, int whence)
{
	uint64_t size = atomic_load(&m->size);
	int fd = atomic_load(&m->fd);

	if (off < 0 || (uint64_t)off >= size)
		return -ENXIO;
	if (fd >= 0)
		return host_lseek(fd, off, whence);
	return whence == SEEK_DATA ? off : (int64_t)size;
}

int memfile_map(struct memfile *m, int *out_fd)
{
	int err = to_memfd(m);

	if (!err)
		*out_fd = atomic_load(&m->fd);
	return err;
}

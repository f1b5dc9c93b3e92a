/* Host calls: see host.h. This is the only file of the sentry that reads errno. */
#include "platform/host/host.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* Most bytes moved per host call when data goes through a bounce buffer on the stack's behalf. */
#define BOUNCE_SIZE (32 * 1024)

#define RETRY(expr)                                                                                \
	({                                                                                         \
		__typeof__(expr) r_;                                                               \
		do {                                                                               \
			r_ = (expr);                                                               \
		} while (r_ < 0 && errno == EINTR);                                                \
		r_ < 0 ? (__typeof__(r_))-errno : r_;                                              \
	})

int host_close(int fd)
{
	return close(fd) < 0 ? -errno : 0;
}

int host_dup_cloexec(int fd)
{
	return RETRY(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

int host_dup_onto(int fd, int to)
{
	return RETRY(dup3(fd, to, O_CLOEXEC));
}

ssize_t host_read(int fd, void *buf, size_t n)
{
	return RETRY(read(fd, buf, n));
}

ssize_t host_write(int fd, const void *buf, size_t n)
{
	return RETRY(write(fd, buf, n));
}

ssize_t host_pread(int fd, void *buf, size_t n, uint64_t off)
{
	return RETRY(pread(fd, buf, n, (off_t)off));
}

ssize_t host_pwrite(int fd, const void *buf, size_t n, uint64_t off)
{
	return RETRY(pwrite(fd, buf, n, (off_t)off));
}

int64_t host_lseek(int fd, int64_t off, int whence)
{
	off_t r = lseek(fd, off, whence);
	return r < 0 ? -errno : r;
}

int host_fstat(int fd, struct stat *out)
{
	return RETRY(fstat(fd, out));
}

int host_ftruncate(int fd, uint64_t size)
{
	return RETRY(ftruncate(fd, (off_t)size));
}

int host_fallocate(int fd, int mode, uint64_t off, uint64_t len)
{
	return RETRY(fallocate(fd, mode, (off_t)off, (off_t)len));
}

int host_fsync(int fd, bool datasync)
{
	return datasync ? RETRY(fdatasync(fd)) : RETRY(fsync(fd));
}

int host_memfd(const char *name)
{
	return RETRY(memfd_create(name, MFD_CLOEXEC));
}

int host_memfd_sealable(const char *name)
{
	return RETRY(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

int host_add_seals(int fd, unsigned seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int host_get_seals(int fd)
{
	int r = fcntl(fd, F_GET_SEALS);
	return r < 0 ? -errno : r;
}

int host_poll_now(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int r = RETRY(poll(&p, 1, 0));
	return r <= 0 ? r : p.revents;
}

int host_ioctl(int fd, unsigned long cmd, void *arg)
{
	return RETRY(ioctl(fd, cmd, arg));
}

int host_eventfd(void)
{
	return RETRY(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void host_random(void *buf, size_t n)
{
	char *p = buf;
	while (n > 0) {
		ssize_t r = RETRY(getrandom(p, n, 0));
		BUG_ON(r <= 0);
		p += r;
		n -= (size_t)r;
	}
}

ssize_t host_read_nowait(int fd, void *buf, size_t n)
{
	struct iovec v = { .iov_base = buf, .iov_len = n };
	return RETRY(preadv2(fd, &v, 1, -1, RWF_NOWAIT));
}

ssize_t host_write_nowait(int fd, const void *buf, size_t n)
{
	/* iovec has no const variant; a write only reads from it. */
	struct iovec v = { .iov_base = (void *)(uintptr_t)buf, .iov_len = n };
	return RETRY(pwritev2(fd, &v, 1, -1, RWF_NOWAIT));
}

int host_get_flags(int fd)
{
	return RETRY(fcntl(fd, F_GETFL));
}

int host_epoll_create(void)
{
	return RETRY(epoll_create1(EPOLL_CLOEXEC));
}

int host_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	return RETRY(epoll_ctl(epfd, op, fd, ev));
}

int host_epoll_wait(int epfd, struct epoll_event *out, int count)
{
	return RETRY(epoll_wait(epfd, out, count, -1));
}

ssize_t host_read_iter(int fd, struct iov_iter *it, int64_t off)
{
	char buf[BOUNCE_SIZE];
	size_t done = 0;

	while (it->count > 0) {
		size_t want = MIN(it->count, sizeof(buf));
		ssize_t r = off < 0 ? host_read(fd, buf, want)
				    : host_pread(fd, buf, want, (uint64_t)off + done);
		if (r <= 0)
			return done || r == 0 ? (ssize_t)done : r;
		ssize_t c = iov_copy_to(it, buf, (size_t)r);
		if (c < 0)
			return done ? (ssize_t)done : c;
		done += (size_t)c;
		/* A stream that gave less than asked has no more now; do not block for the rest. */
		if (c < r || (size_t)r < want)
			break;
	}
	return (ssize_t)done;
}

ssize_t host_write_iter(int fd, struct iov_iter *it, int64_t off)
{
	char buf[BOUNCE_SIZE];
	size_t done = 0;

	while (it->count > 0) {
		ssize_t c = iov_peek(it, buf, sizeof(buf));
		if (c < 0)
			return done ? (ssize_t)done : c;
		ssize_t r = off < 0 ? host_write(fd, buf, (size_t)c)
				    : host_pwrite(fd, buf, (size_t)c, (uint64_t)off + done);
		if (r < 0)
			return done ? (ssize_t)done : r;
		iov_advance(it, (size_t)r);
		done += (size_t)r;
		if (r < c)
			break;
	}
	return (ssize_t)done;
}

int host_membarrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0 ? -errno : 0;
}

/*
 * Raw host calls that return -errno. Nothing else in the sentry or gofer calls libc I/O, so that
 * tests can replace this one file and host.def can list every call that a role needs.
 * All wrappers restart on EINTR except where noted.
 */
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "platform/base/iov.h"
#include "platform/base/types.h"

int host_close(int fd);
int host_dup_cloexec(int fd) MUST_CHECK;
/* dup3(2), close-on-exec: `to` is closed and becomes a duplicate. */
int host_dup_onto(int fd, int to) MUST_CHECK;
ssize_t host_read(int fd, void *buf, size_t n) MUST_CHECK;
ssize_t host_write(int fd, const void *buf, size_t n) MUST_CHECK;
ssize_t host_pread(int fd, void *buf, size_t n, uint64_t off) MUST_CHECK;
ssize_t host_pwrite(int fd, const void *buf, size_t n, uint64_t off) MUST_CHECK;
int64_t host_lseek(int fd, int64_t off, int whence) MUST_CHECK;
int host_fstat(int fd, struct stat *out) MUST_CHECK;
int host_ftruncate(int fd, uint64_t size) MUST_CHECK;
int host_fallocate(int fd, int mode, uint64_t off, uint64_t len) MUST_CHECK;
int host_fsync(int fd, bool datasync) MUST_CHECK;
int host_memfd_sealable(const char *name) MUST_CHECK; /* the same; seals may be added */
/* fcntl(2) F_ADD_SEALS, F_GET_SEALS. */
int host_add_seals(int fd, unsigned seals) MUST_CHECK;
int host_get_seals(int fd) MUST_CHECK;
int host_memfd(const char *name) MUST_CHECK; /* close-on-exec; MFD_NOEXEC is not set: guests map
						code */
/* Readiness now: poll(2) bits, 0 when none; never sleeps. */
int host_poll_now(int fd, short events) MUST_CHECK;
int host_ioctl(int fd, unsigned long cmd, void *arg) MUST_CHECK;
/* Blocks until one thing is ready; not restarted. */
int host_eventfd(void) MUST_CHECK;
void host_random(void *buf, size_t n);
/* A memory barrier on every processor that runs anything: membarrier(2) MEMBARRIER_CMD_GLOBAL. Slow
 * (milliseconds). */
int host_membarrier(void) MUST_CHECK;

/* One transfer on a stream that never sleeps although the description may be in blocking mode (it
 * belongs to others too): -EAGAIN when nothing can be moved now, -EOPNOTSUPP when the file cannot
 * promise that. */
ssize_t host_read_nowait(int fd, void *buf, size_t n) MUST_CHECK;
ssize_t host_write_nowait(int fd, const void *buf, size_t n) MUST_CHECK;
/* Status flags of a description (F_GETFL) or -errno. */
int host_get_flags(int fd) MUST_CHECK;
/* epoll(7): a set, close-on-exec; its interest list; waiting for ever (restarted). */
struct epoll_event;
int host_epoll_create(void) MUST_CHECK;
int host_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev) MUST_CHECK;
int host_epoll_wait(int epfd, struct epoll_event *out, int count) MUST_CHECK;

/* Moves data between a host descriptor and an iterator through a bounce buffer. `off` < 0 uses the
 * descriptor's own position. Returns bytes, 0 at end of file, or -errno when nothing was moved. A
 * short transfer happens only at end of file, on a fault or an error after some bytes. */
ssize_t host_read_iter(int fd, struct iov_iter *it, int64_t off) MUST_CHECK;
ssize_t host_write_iter(int fd, struct iov_iter *it, int64_t off) MUST_CHECK;

/* Streams of the host: see hoststream.h. */
#include "fs/hoststream.h"

#include <errno.h>

#include "platform/base/log.h"
#include "platform/host/host.h"

#define CHUNK (16 * 1024)
/* What a descriptor that reports POLLOUT takes without blocking, where the host cannot promise more
 * (PIPE_BUF, and what a terminal's buffer holds). */
#define SAFE_WRITE 2048

void hoststream_init(struct hoststream *s, int fd, uint32_t interest, struct mutex *mu,
		     struct waitq *wait)
{
	*s = (struct hoststream){ .fd = fd, .mu = mu, .wait = wait };
	hostpoll_init(&s->poll, fd, interest, mu, wait);
}

void hoststream_fini(struct hoststream *s)
{
	hostpoll_fini(&s->poll);
}

void hoststream_prepare_wait(struct hoststream *s)
{
	int err = hostpoll_watch(&s->poll);

	if (err && err != -EPERM)
		log_warn("cannot wait for the host's descriptor %d: error %d", s->fd, err);
}

static bool is_ready(struct hoststream *s, short events)
{
	int bits = host_poll_now(s->fd, events);

	return bits != 0;
}

/* One host call. -EAGAIN: nothing now. */
static ssize_t read_once(struct hoststream *s, void *buf, size_t n)
{
	ssize_t r = host_read_nowait(s->fd, buf, n);

	if (r != -EOPNOTSUPP)
		return r;
	return is_ready(s, POLLIN) ? host_read(s->fd, buf, n) : -EAGAIN;
}

static ssize_t write_once(struct hoststream *s, const void *buf, size_t n)
{
	ssize_t r = host_write_nowait(s->fd, buf, n);

	if (r != -EOPNOTSUPP)
		return r;
	return is_ready(s, POLLOUT) ? host_write(s->fd, buf, MIN(n, (size_t)SAFE_WRITE)) : -EAGAIN;
}

/* 0: try again. */
static int wait_ready(struct hoststream *s, short events) NO_LOCK_ANALYSIS
{
	if (is_ready(s, events))
		return 0;
	return waitq_wait(s->wait, s->mu, (uint32_t)events, DEADLINE_NEVER);
}

ssize_t hoststream_read(struct hoststream *s, struct iov_iter *it, bool nonblock)
{
	char buf[CHUNK];
	size_t done = 0;

	while (it->count > 0) {
		size_t want = MIN(it->count, sizeof(buf));
		ssize_t r = read_once(s, buf, want);
		if (r == -EAGAIN && !nonblock && done == 0) {
			int err = wait_ready(s, POLLIN);
			if (err)
				return err;
			continue;
		}
		if (r <= 0)
			return done ? (ssize_t)done : r;
		ssize_t c = iov_copy_to(it, buf, (size_t)r);
		if (c < 0)
			return done ? (ssize_t)done : c;
		done += (size_t)c;
		if (c < r || (size_t)r < want)
			break;
	}
	return (ssize_t)done;
}

ssize_t hoststream_write(struct hoststream *s, struct iov_iter *it, bool nonblock)
{
	char buf[CHUNK];
	size_t done = 0;

	while (it->count > 0) {
		ssize_t c = iov_peek(it, buf, MIN(it->count, sizeof(buf)));
		if (c < 0)
			return done ? (ssize_t)done : c;
		ssize_t r = write_once(s, buf, (size_t)c);
		if (r == -EAGAIN && !nonblock)
			r = wait_ready(s, POLLOUT);
		if (r < 0)
			return done ? (ssize_t)done : r;
		iov_advance(it, (size_t)r);
		done += (size_t)r;
	}
	return (ssize_t)done;
}

uint32_t hoststream_poll(struct hoststream *s, struct poll_table *pt)
{
	if (pt) {
		poll_wait(pt, s->wait);
		hoststream_prepare_wait(s);
	}
	int bits = host_poll_now(s->fd,
				 POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM);
	return bits < 0 ? POLLERR : (uint32_t)bits;
}

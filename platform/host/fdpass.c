/* Messages with descriptors: see fdpass.h. */
#include "platform/host/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* More than we ever send, so that what a broken peer adds is received and closed, not lost track
 * of. */
#define FDS_MAX 16

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

int host_send_msg(int sock, const void *head, size_t head_size, const void *body, size_t body_size,
		  int fd)
{
	/* sendmsg(2) does not write through its iovec; the type has no const. */
	struct iovec iov[2] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = head_size },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = body_size },
	};
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = body_size ? 2 : 1 };
	union control c;

	if (fd >= 0) {
		memset(&c, 0, sizeof(c));
		m.msg_control = c.buf;
		m.msg_controllen = CMSG_SPACE(sizeof(int));
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(int));
	}
	for (;;) {
		ssize_t r = sendmsg(sock, &m, MSG_NOSIGNAL);
		if (r >= 0)
			return (size_t)r == head_size + body_size ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

/* Keeps the first descriptor of one control message in *out_fd and closes the others. */
static void take_fds(struct cmsghdr *h, int *out_fd)
{
	if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return;
	size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
		if (*out_fd < 0)
			*out_fd = fd;
		else
			close(fd);
	}
}

ssize_t host_recv_msg(int sock, void *buf, size_t size, int *out_fd)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	union control c;
	struct msghdr m;
	ssize_t r;

	*out_fd = -1;
	do {
		m = (struct msghdr){ .msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = c.buf,
				     .msg_controllen = sizeof(c.buf) };
		r = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
		take_fds(h, out_fd);
	if ((m.msg_flags & MSG_CTRUNC) && *out_fd < 0)
		*out_fd = HOST_FD_LOST;
	if (m.msg_flags & MSG_TRUNC) {
		if (*out_fd >= 0)
			close(*out_fd);
		*out_fd = -1;
		return -EMSGSIZE;
	}
	return r;
}

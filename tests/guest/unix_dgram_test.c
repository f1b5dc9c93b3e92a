/* AF_UNIX datagrams and packets: sendto(2), recvfrom(2), sendmmsg(2), recvmmsg(2), connect(2). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "tests/guest/t.h"

static int s[2];
static char buf[400000];
static struct sockaddr_un addr;
static socklen_t alen;

static void name(const char *tag)
{
	addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	alen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(addr.sun_path + 1, 100, "dgram-%s-%d", tag, getpid()));
}

static int bound(const char *tag)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	CHECK_OK(fd);
	name(tag);
	CHECK_OK(bind(fd, (void *)&addr, alen));
	return fd;
}

TEST(messages)
{
	int a = bound("a"), c = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un who;
	socklen_t n;
	CHECK_ERR(send(c, "x", 1, 0), ENOTCONN);
	CHECK_EQ(sendto(c, "anon", 4, 0, (void *)&addr, alen), 4);
	CHECK_EQ(sendto(c, "", 0, 0, (void *)&addr, alen), 0);
	CHECK_EQ(sendto(c, "third!", 6, 0, (void *)&addr, alen), 6);
	int v;
	CHECK_OK(ioctl(a, FIONREAD, &v));
	CHECK_EQ(v, 4);
	n = sizeof(who);
	CHECK_EQ(recvfrom(a, buf, 10, 0, (void *)&who, &n), 4);
	CHECK_EQ(n, 0);
	CHECK_EQ(recv(a, buf, 10, 0), 0);
	CHECK_EQ(recv(a, buf, 2, MSG_PEEK | MSG_TRUNC), 6);
	CHECK_EQ(recv(a, buf, 2, 0), 2);
	CHECK_ERR(recv(a, buf, 2, 0), EAGAIN);
	CHECK_ERR(sendto(c, buf, sizeof(buf), 0, (void *)&addr, alen), EMSGSIZE);
	int b = bound("b");
	name("a");
	CHECK_EQ(sendto(b, "from b", 6, 0, (void *)&addr, alen), 6);
	n = sizeof(who);
	CHECK_EQ(recvfrom(a, buf, 10, 0, (void *)&who, &n), 6);
	name("b");
	CHECK_EQ(n, alen);
	CHECK_MEM(&who, &addr, alen);
	name("gone");
	CHECK_ERR(sendto(b, "x", 1, 0, (void *)&addr, alen), ECONNREFUSED);
	CHECK_ERR(listen(b, 1), EOPNOTSUPP);
	CHECK_ERR(accept(b, NULL, NULL), EOPNOTSUPP);
}

TEST(connected)
{
	int a = bound("a"), b = bound("b"), c = bound("c");
	name("a");
	CHECK_OK(connect(b, (void *)&addr, alen));
	CHECK_EQ(send(b, "hi", 2, 0), 2);
	CHECK_EQ(recv(a, buf, 10, 0), 2);
	/* b listens to a alone. */
	name("b");
	CHECK_ERR(sendto(c, "x", 1, 0, (void *)&addr, alen), EPERM);
	CHECK_ERR(connect(c, (void *)&addr, alen), EPERM);
	CHECK_EQ(sendto(a, "y", 1, 0, (void *)&addr, alen), 1);
	CHECK_EQ(recv(b, buf, 10, 0), 1);
	/* To somebody else for once; then unconnected. */
	name("c");
	CHECK_EQ(sendto(b, "z", 1, 0, (void *)&addr, alen), 1);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	CHECK_OK(connect(b, &none, sizeof(none)));
	CHECK_ERR(send(b, "x", 1, 0), ENOTCONN);
	name("b");
	CHECK_EQ(sendto(c, "x", 1, 0, (void *)&addr, alen), 1);
	/* A dead peer: refused once, then not connected. */
	name("a");
	CHECK_OK(connect(c, (void *)&addr, alen));
	close(a);
	CHECK_ERR(send(c, "x", 1, 0), ECONNREFUSED);
	CHECK_ERR(send(c, "x", 1, 0), ENOTCONN);
}

TEST(full_queue)
{
	int a = bound("full"), b = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), n = 0;
	CHECK_OK(connect(b, (void *)&addr, alen));
	while (send(b, "m", 1, 0) == 1)
		n++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(n >= 10);
	struct pollfd p = { b, POLLOUT, 0 };
	CHECK_EQ(poll(&p, 1, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(100000);
		CHECK_EQ(recv(a, buf, 1, 0), 1);
		_exit(0);
	}
	CHECK_EQ(poll(&p, 1, 5000), 1);
	CHECK_EQ(send(b, "m", 1, 0), 1);
	CHECK_CHILD(pid, 0);
}

TEST(pair_and_ends)
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s));
	CHECK_EQ(send(s[0], "one", 3, 0), 3);
	CHECK_EQ(send(s[0], "two", 3, 0), 3);
	CHECK_EQ(read(s[1], buf, 2), 2);
	CHECK_EQ(read(s[1], buf, 10), 3);
	CHECK_OK(shutdown(s[0], SHUT_WR));
	CHECK_ERR(send(s[0], "x", 1, 0), EPIPE);
	CHECK_ERR(recv(s[1], buf, 1, 0), EAGAIN);
	CHECK_OK(shutdown(s[1], SHUT_RD));
	CHECK_ERR(recv(s[1], buf, 1, 0), EAGAIN);
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK_OK(shutdown(s[1], SHUT_RD));
	CHECK_EQ(recv(s[1], buf, 1, 0), 0);
	CHECK_ERR(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	close(s[1]);
	CHECK_ERR(send(s[0], "x", 1, 0), ECONNREFUSED);
}

TEST(sequenced_packets)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_ERR(send(fd, "x", 1, 0), ENOTCONN);
	CHECK_ERR(recv(fd, buf, 1, 0), ENOTCONN);
	name("seq");
	CHECK_OK(bind(fd, (void *)&addr, alen));
	CHECK_OK(listen(fd, 2));
	int c = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_OK(connect(c, (void *)&addr, alen));
	int a = accept(fd, NULL, NULL);
	CHECK_OK(a);
	CHECK_EQ(send(c, "first", 5, 0), 5);
	CHECK_EQ(send(c, "second", 6, 0), 6);
	struct iovec iov = { buf, 3 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	CHECK_EQ(recvmsg(a, &h, 0), 3);
	CHECK_EQ(h.msg_flags & MSG_TRUNC, MSG_TRUNC);
	CHECK_EQ(recv(a, buf, 100, 0), 6);
	close(c);
	CHECK_EQ(recv(a, buf, 100, 0), 0);
	CHECK_ERR(send(a, "x", 1, 0), EPIPE);
	CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	CHECK_EQ(send(s[0], "lost", 4, 0), 4);
	close(s[1]);
	CHECK_ERR(send(s[0], "x", 1, 0), ECONNRESET);
	CHECK_ERR(send(s[0], "x", 1, 0), EPIPE);
}

TEST(many_at_once)
{
	struct mmsghdr m[5];
	struct iovec iov[5];
	char in[5][8];
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	memset(m, 0, sizeof(m));
	for (int i = 0; i < 5; i++) {
		iov[i] = (struct iovec){ "abcdefgh", (size_t)i + 1 };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK_EQ(sendmmsg(s[0], m, 3, 0), 3);
	CHECK_EQ(m[2].msg_len, 3);
	for (int i = 0; i < 5; i++)
		iov[i] = (struct iovec){ in[i], 8 };
	CHECK_EQ(recvmmsg(s[1], m, 5, MSG_WAITFORONE, NULL), 3);
	CHECK_EQ(m[0].msg_len, 1);
	CHECK_EQ(m[1].msg_len, 2);
	CHECK_MEM(in[2], "abc", 3);
	CHECK_ERR(recvmmsg(s[1], m, 5, MSG_DONTWAIT, NULL), EAGAIN);
	struct timespec ts = { 0, 1 };
	CHECK_EQ(send(s[0], "x", 1, 0), 1);
	CHECK_EQ(recvmmsg(s[1], m, 5, 0, &ts), 1);
	ts.tv_nsec = -1;
	CHECK_ERR(recvmmsg(s[1], m, 5, 0, &ts), EINVAL);
	CHECK_EQ(sendmmsg(s[0], m, 0, 0), 0);
	void *volatile bad = (void *)8;
	CHECK_ERR(sendmmsg(s[0], bad, 1, 0), EFAULT);
}

T_MAIN

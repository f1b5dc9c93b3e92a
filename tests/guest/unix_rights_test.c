/* Descriptors and credentials over AF_UNIX: sendmsg(2), recvmsg(2), cmsg(3), unix(7). */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/guest/t.h"

static int s[2];
static char buf[1000];
static union {
	char bytes[2000];
	struct cmsghdr align;
} ctl;

static ssize_t send_fds(int sock, const char *data, size_t n, const int *fds, size_t count)
{
	struct iovec iov = { (void *)(uintptr_t)data, n };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	memset(&ctl, 0, sizeof(ctl));
	if (count) {
		h.msg_control = &ctl;
		h.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(sock, &h, 0);
}

/* Receives; the numbers of descriptors that came go to fds. */
static ssize_t recv_fds(int sock, size_t n, int flags, size_t room, int *fds, size_t *count, int *out_flags)
{
	struct iovec iov = { buf, n };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = room };
	memset(&ctl, 0, sizeof(ctl));
	ssize_t r = recvmsg(sock, &h, flags);
	*count = 0;
	if (out_flags)
		*out_flags = h.msg_flags;
	if (r >= 0)
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
				*count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
				memcpy(fds, CMSG_DATA(c), *count * sizeof(int));
			}
	return r;
}

TEST(pass_a_pipe)
{
	int p[2], fds[10];
	size_t n;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(pipe(p));
	CHECK_EQ(send_fds(s[0], "abc", 3, p, 2), 3);
	close(p[0]);
	close(p[1]);
	CHECK_EQ(write(s[0], "def", 3), 3);
	/* They come with the message's first byte; the next message is not glued. */
	CHECK_EQ(recv_fds(s[1], 1, MSG_CMSG_CLOEXEC, sizeof(ctl), fds, &n, NULL), 1);
	CHECK_EQ(n, 2);
	CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	CHECK_EQ(write(fds[1], "pipe", 4), 4);
	CHECK_EQ(read(fds[0], buf, 10), 4);
	CHECK_EQ(recv_fds(s[1], 100, 0, sizeof(ctl), fds, &n, NULL), 5);
	CHECK_EQ(n, 0);
}

TEST(reads_stop_at_descriptors)
{
	int fds[10];
	size_t n;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_EQ(write(s[0], "plain", 5), 5);
	CHECK_EQ(send_fds(s[0], "one", 3, &s[0], 1), 3);
	CHECK_EQ(send_fds(s[0], "two", 3, &s[0], 1), 3);
	CHECK_EQ(recv_fds(s[1], 100, 0, sizeof(ctl), fds, &n, NULL), 8);
	CHECK_EQ(n, 1);
	CHECK_EQ(recv_fds(s[1], 100, MSG_PEEK, sizeof(ctl), fds, &n, NULL), 3);
	CHECK_EQ(n, 1);
	CHECK_EQ(recv_fds(s[1], 100, 0, sizeof(ctl), fds, &n, NULL), 3);
	CHECK_EQ(n, 1);
	/* read(2) drops them. */
	CHECK_EQ(send_fds(s[0], "x", 1, &s[0], 1), 1);
	CHECK_EQ(read(s[1], buf, 10), 1);
}

TEST(short_of_room)
{
	int fds[10], p[3] = { 0, 1, 2 }, flags;
	size_t n;
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK_EQ(send_fds(s[0], "x", 1, p, 3), 1);
	CHECK_EQ(recv_fds(s[1], 1, 0, CMSG_LEN(8), fds, &n, &flags), 1);
	CHECK_EQ(n, 2);
	CHECK_EQ(flags & MSG_CTRUNC, MSG_CTRUNC);
	CHECK_EQ(send_fds(s[0], "x", 1, p, 3), 1);
	CHECK_EQ(recv_fds(s[1], 1, 0, 0, fds, &n, &flags), 1);
	CHECK_EQ(n, 0);
	CHECK_EQ(flags & MSG_CTRUNC, MSG_CTRUNC);
	/* No free number: those that fit are there, the rest is gone. */
	struct rlimit lim = { 8, 8 };
	CHECK_EQ(send_fds(s[0], "x", 1, p, 3), 1);
	int next = dup(0);
	close(next);
	lim.rlim_cur = lim.rlim_max = (rlim_t)next + 1;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &lim));
	CHECK_EQ(recv_fds(s[1], 1, 0, sizeof(ctl), fds, &n, &flags), 1);
	CHECK_EQ(n, 1);
	CHECK_EQ(flags & MSG_CTRUNC, MSG_CTRUNC);
}

TEST(refused)
{
	int many[254];
	struct iovec iov = { buf, 1 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	many[0] = 99;
	CHECK_ERR(send_fds(s[0], "x", 1, many, 1), EBADF);
	for (int i = 0; i < 254; i++)
		many[i] = 0;
	CHECK_ERR(send_fds(s[0], "x", 1, many, 254), EINVAL);
	CHECK_EQ(send_fds(s[0], "x", 1, many, 253), 1);
	struct cmsghdr *c = &ctl.align;
	memset(&ctl, 0, sizeof(ctl));
	*c = (struct cmsghdr){ .cmsg_len = 4, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	h.msg_controllen = 32;
	CHECK_ERR(sendmsg(s[0], &h, 0), EINVAL);
	c->cmsg_len = 100;
	CHECK_ERR(sendmsg(s[0], &h, 0), EINVAL);
	c->cmsg_len = 20;
	c->cmsg_type = 0x55;
	CHECK_ERR(sendmsg(s[0], &h, 0), EINVAL);
	c->cmsg_level = 0x77;
	CHECK_EQ(sendmsg(s[0], &h, 0), 1);
	h.msg_controllen = 0;
	h.msg_iovlen = 1025;
	CHECK_ERR(sendmsg(s[0], &h, 0), EMSGSIZE);
	h.msg_iovlen = 1;
	h.msg_namelen = (socklen_t)-1;
	h.msg_name = buf;
	CHECK_ERR(sendmsg(s[0], &h, 0), EINVAL);
	void *volatile bad = (void *)8;
	CHECK_ERR(sendmsg(s[0], bad, 0), EFAULT);
}

static struct ucred last_cred;
static bool got_cred;

static ssize_t recv_cred(int sock)
{
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = 200 };
	ssize_t r = recvmsg(sock, &h, 0);
	got_cred = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if (c->cmsg_type == SCM_CREDENTIALS) {
			CHECK_EQ(c->cmsg_len, CMSG_LEN(sizeof(last_cred)));
			memcpy(&last_cred, CMSG_DATA(c), sizeof(last_cred));
			got_cred = true;
		}
	return r;
}

TEST(credentials)
{
	int on = 1;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_EQ(write(s[0], "a", 1), 1);
	CHECK_OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	CHECK_EQ(recv_cred(s[1]), 1);
	CHECK(got_cred);
	/* Not recorded when it was sent. */
	CHECK_EQ(last_cred.pid, 0);
	CHECK_EQ(last_cred.uid, 65534);
	CHECK_EQ(write(s[0], "b", 1), 1);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_EQ(write(s[0], "child", 5), 5);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(recv_cred(s[1]), 1);
	CHECK_EQ(last_cred.pid, getpid());
	CHECK_EQ(last_cred.uid, getuid());
	CHECK_EQ(last_cred.gid, getgid());
	CHECK_EQ(recv_cred(s[1]), 5);
	CHECK_EQ(last_cred.pid, pid);
}

TEST(claimed_credentials)
{
	struct ucred u = { getpid(), getuid(), getgid() };
	struct iovec iov = { buf, 1 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl,
			    .msg_controllen = CMSG_SPACE(sizeof(u)) };
	int on = 1;
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK_OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	memset(&ctl, 0, sizeof(ctl));
	ctl.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(u)), .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_CREDENTIALS };
	memcpy(CMSG_DATA(&ctl.align), &u, sizeof(u));
	CHECK_EQ(sendmsg(s[0], &h, 0), 1);
	CHECK_EQ(recv_cred(s[1]), 1);
	CHECK_EQ(last_cred.pid, getpid());
	if (getuid() != 0 || setuid(1234) != 0)
		return;
	ctl.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(u)), .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_CREDENTIALS };
	u = (struct ucred){ getpid(), 0, 0 };
	memcpy(CMSG_DATA(&ctl.align), &u, sizeof(u));
	CHECK_ERR(sendmsg(s[0], &h, 0), EPERM);
	u = (struct ucred){ 1, 1234, getgid() };
	memcpy(CMSG_DATA(&ctl.align), &u, sizeof(u));
	CHECK_ERR(sendmsg(s[0], &h, 0), EPERM);
}

TEST(time_stamps)
{
	struct iovec iov = { buf, 10 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl, .msg_controllen = 100 };
	struct timeval tv, now;
	int on = 1;
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK_OK(setsockopt(s[1], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
	CHECK_EQ(write(s[0], "x", 1), 1);
	CHECK_EQ(recvmsg(s[1], &h, 0), 1);
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	CHECK(c != NULL);
	CHECK_EQ(c->cmsg_type, SCM_TIMESTAMP);
	memcpy(&tv, CMSG_DATA(c), sizeof(tv));
	CHECK_OK(gettimeofday(&now, NULL));
	CHECK(tv.tv_sec == now.tv_sec || tv.tv_sec + 1 == now.tv_sec);
}

TEST(closed_with_descriptors_in_the_queue)
{
	int p[2];
	char c;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(pipe(p));
	CHECK_EQ(send_fds(s[0], "x", 1, &p[1], 1), 1);
	close(p[1]);
	/* The queued descriptor holds the pipe open… */
	CHECK_OK(fcntl(p[0], F_SETFL, O_NONBLOCK));
	CHECK_ERR(read(p[0], &c, 1), EAGAIN);
	close(s[1]);
	/* …until the queue goes. */
	CHECK_EQ(read(p[0], &c, 1), 0);
}

TEST(cycles_end)
{
	int p[2], pair[2];
	char c;
	CHECK_OK(pipe(p));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	/* Each end in the queue of the other, and a pipe's writer with them. */
	int a[2] = { s[0], p[1] }, b[2] = { s[1], p[1] };
	CHECK_EQ(send_fds(s[0], "x", 1, b, 2), 1);
	CHECK_EQ(send_fds(s[1], "x", 1, a, 2), 1);
	close(s[0]);
	close(s[1]);
	close(p[1]);
	/* The collector runs when a socket is closed; Linux' does it in the background. */
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	close(pair[0]);
	close(pair[1]);
	CHECK_EQ(read(p[0], &c, 1), 0);
}

TEST(fork_server)
{
	/* A child opens, the parent reads: positions are shared, names are not needed. */
	int fds[2];
	size_t n;
	CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("/proc/self/exe", O_RDONLY);
		CHECK_OK(fd);
		CHECK_OK(lseek(fd, 1, SEEK_SET));
		CHECK_EQ(send_fds(s[0], "fd", 2, &fd, 1), 2);
		_exit(0);
	}
	CHECK_EQ(recv_fds(s[1], 10, 0, sizeof(ctl), fds, &n, NULL), 2);
	CHECK_EQ(n, 1);
	CHECK_EQ(read(fds[0], buf, 3), 3);
	CHECK_MEM(buf, "ELF", 3);
	CHECK_CHILD(pid, 0);
}

T_MAIN

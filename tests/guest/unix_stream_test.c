/*
 * AF_UNIX streams: socket(2), socketpair(2), bind(2), listen(2), accept(2), accept4(2), connect(2),
 * getsockname(2), getpeername(2), shutdown(2), sendto(2), recvfrom(2), getsockopt(2), setsockopt(2).
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */
static int s[2];
static char buf[1000000], path[64];
static struct sockaddr_un addr;
static socklen_t alen;

static void handler(int sig)
{
}

static void name_path(const char *tag)
{
	snprintf(path, sizeof(path), "/tmp/unix_test_%s_%d", tag, getpid());
	unlink(path);
	addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(addr.sun_path, path);
	alen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
}

static void name_abstract(const char *tag)
{
	name_path(tag);
	addr.sun_path[0] = 0;
}

static int server(int type, int backlog)
{
	int l = socket(AF_UNIX, type, 0);
	CHECK_OK(l);
	CHECK_OK(bind(l, (void *)&addr, alen));
	CHECK_OK(listen(l, backlog));
	return l;
}

static int so_error(int fd)
{
	int e = -1;
	socklen_t n = sizeof(e);
	CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n));
	return e;
}

TEST(creation)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK_OK(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFSOCK | 0777);
	CHECK_ERR(lseek(fd, 0, SEEK_CUR), ESPIPE);
	CHECK_ERR(socket(AF_UNIX, SOCK_STREAM, 9), EPROTONOSUPPORT);
	CHECK_ERR(socket(AF_UNIX, SOCK_RDM, 0), ESOCKTNOSUPPORT);
	CHECK_ERR(socket(AF_UNIX, 15, 0), EINVAL);
	CHECK_ERR(socket(AF_UNIX, SOCK_STREAM | 0x10000, 0), EINVAL);
	CHECK_ERR(socket(45, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_ERR(socket(-1, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_ERR(socketpair(AF_UNIX, SOCK_STREAM, 0, bad), EFAULT);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	CHECK_EQ(s[0], fd + 1);
	CHECK_EQ(fcntl(s[1], F_GETFD), FD_CLOEXEC);
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_ERR(listen(p[0], 1), ENOTSOCK);
	CHECK_ERR(listen(99, 1), EBADF);
	CHECK_ERR(shutdown(p[0], 0), ENOTSOCK);
	char link[64], want[64];
	snprintf(want, sizeof(want), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(want, link, sizeof(link) - 1);
	CHECK(n > 0);
	link[n] = 0;
	snprintf(want, sizeof(want), "socket:[%lu]", (unsigned long)st.st_ino);
	CHECK_STR(link, want);
}

TEST(bytes)
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	CHECK_ERR(read(s[0], buf, 1), EAGAIN);
	CHECK_EQ(write(s[0], "hello", 5), 5);
	CHECK_EQ(send(s[0], "world", 5, 0), 5);
	int n;
	CHECK_OK(ioctl(s[1], FIONREAD, &n));
	CHECK_EQ(n, 10);
	CHECK_EQ(recv(s[1], buf, 7, MSG_PEEK), 7);
	CHECK_MEM(buf, "hellowo", 7);
	CHECK_EQ(recv(s[1], buf, 7, 0), 7);
	CHECK_EQ(read(s[1], buf, 100), 3);
	CHECK_EQ(read(s[1], buf, 0), 0);
	CHECK_ERR(recv(s[1], buf, 0, 0), EAGAIN);
	CHECK_EQ(write(s[0], "", 0), 0);
	CHECK_ERR(send(s[0], bad, 10, 0), EFAULT);
	CHECK_EQ(write(s[0], "abc", 3), 3);
	CHECK_ERR(recv(s[1], bad, 3, 0), EFAULT);
	CHECK_EQ(read(s[1], buf, 3), 3);
	CHECK_ERR(sendto(s[0], "x", 1, 0, (void *)&addr, sizeof(addr)), EISCONN);
	CHECK_ERR(pread(s[0], buf, 1, 0), ESPIPE);
	/* More than fits: a part is sent. */
	ssize_t sent = write(s[0], buf, sizeof(buf));
	CHECK(sent > 100000 && sent < (ssize_t)sizeof(buf));
	CHECK_ERR(write(s[0], buf, 1), EAGAIN);
	struct pollfd p = { s[0], POLLOUT, 0 };
	CHECK_EQ(poll(&p, 1, 0), 0);
	ssize_t got = 0, r;
	while ((r = read(s[1], buf, 5000)) > 0)
		got += r;
	CHECK_EQ(got, sent);
	CHECK_EQ(poll(&p, 1, 0), 1);
}

TEST(ends)
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(write(s[1], "last", 4), 4);
	close(s[1]);
	struct pollfd p = { s[0], POLLIN | POLLOUT | POLLRDHUP, 0 };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLIN | POLLOUT | POLLRDHUP | POLLHUP);
	CHECK_EQ(read(s[0], buf, 10), 4);
	CHECK_EQ(read(s[0], buf, 10), 0);
	CHECK_ERR(write(s[0], "x", 1), EPIPE);
	/* The peer lost what we sent. */
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_EQ(write(s[0], "lost", 4), 4);
	close(s[1]);
	CHECK_ERR(read(s[0], buf, 10), ECONNRESET);
	CHECK_EQ(read(s[0], buf, 10), 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_EQ(write(s[0], "lost", 4), 4);
	close(s[1]);
	CHECK_EQ(so_error(s[0]), ECONNRESET);
	CHECK_EQ(so_error(s[0]), 0);
}

TEST(sigpipe)
{
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		close(s[1]);
		CHECK_ERR(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
		send(s[0], "x", 1, 0);
		_exit(0);
	}
	CHECK_KILLED(pid, SIGPIPE);
	pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
		close(s[1]);
		CHECK_ERR(write(s[0], "x", 1), EPIPE);
		CHECK_ERR(send(s[0], "x", 1, 0), EPIPE);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
}

TEST(half_close)
{
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	CHECK_ERR(shutdown(s[0], 3), EINVAL);
	CHECK_EQ(write(s[0], "tail", 4), 4);
	CHECK_OK(shutdown(s[0], SHUT_WR));
	CHECK_ERR(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_EQ(read(s[1], buf, 10), 4);
	CHECK_EQ(read(s[1], buf, 10), 0);
	struct pollfd p = { s[1], POLLIN | POLLRDHUP, 0 };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLIN | POLLRDHUP);
	CHECK_EQ(write(s[1], "back", 4), 4);
	CHECK_EQ(read(s[0], buf, 10), 4);
	CHECK_OK(shutdown(s[0], SHUT_RD));
	CHECK_EQ(read(s[0], buf, 10), 0);
	CHECK_ERR(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	p.fd = s[0];
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLIN | POLLRDHUP | POLLHUP);
	/* What was queued before SHUT_RD can still be read. */
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	CHECK_EQ(write(s[1], "q", 1), 1);
	CHECK_OK(shutdown(s[0], SHUT_RD));
	CHECK_EQ(read(s[0], buf, 10), 1);
	CHECK_EQ(read(s[0], buf, 10), 0);
}

TEST(unconnected)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLOUT | POLLHUP);
	CHECK_ERR(read(fd, buf, 1), EINVAL);
	CHECK_ERR(write(fd, buf, 1), ENOTCONN);
	name_abstract("none");
	CHECK_ERR(sendto(fd, "x", 1, 0, (void *)&addr, alen), EOPNOTSUPP);
	CHECK_ERR(connect(fd, (void *)&addr, alen), ECONNREFUSED);
	CHECK_ERR(getpeername(fd, (void *)&addr, &alen), ENOTCONN);
	CHECK_ERR(listen(fd, 1), EINVAL);
	CHECK_ERR(accept(fd, NULL, NULL), EINVAL);
	CHECK_OK(shutdown(fd, SHUT_RDWR));
	name_path("none");
	CHECK_ERR(connect(fd, (void *)&addr, alen), ENOENT);
	int f = open(path, O_CREAT | O_RDWR, 0600);
	CHECK_OK(f);
	CHECK_ERR(connect(fd, (void *)&addr, alen), ECONNREFUSED);
	CHECK_ERR(bind(fd, (void *)&addr, alen), EADDRINUSE);
	CHECK_ERR(connect(fd, (void *)&addr, 2), EINVAL);
	CHECK_ERR(connect(fd, (void *)&addr, 1), EINVAL);
	CHECK_ERR(connect(fd, (void *)&addr, 200), EINVAL);
	CHECK_ERR(connect(fd, bad, 20), EFAULT);
	addr.sun_family = AF_INET;
	CHECK_ERR(bind(fd, (void *)&addr, alen), EINVAL);
	unlink(path);
}

TEST(connections)
{
	name_path("srv");
	int l = server(SOCK_STREAM, 5), c = socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat st;
	CHECK_OK(stat(path, &st));
	CHECK(S_ISSOCK(st.st_mode));
	CHECK_ERR(open(path, O_RDWR), ENXIO);
	CHECK_ERR(bind(l, (void *)&addr, alen), EADDRINUSE);
	name_path("second");
	CHECK_ERR(bind(l, (void *)&addr, alen), EINVAL);
	CHECK_ERR(stat(path, &st), ENOENT);
	snprintf(path, sizeof(path), "/tmp/unix_test_srv_%d", getpid());
	strcpy(addr.sun_path, path);
	alen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	CHECK_OK(connect(c, (void *)&addr, alen));
	CHECK_ERR(connect(c, (void *)&addr, alen), EISCONN);
	CHECK_ERR(connect(l, (void *)&addr, alen), EINVAL);
	CHECK_EQ(write(c, "early", 5), 5);
	struct sockaddr_un who;
	socklen_t n = sizeof(who);
	memset(&who, 0xff, sizeof(who));
	int a = accept4(l, (void *)&who, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
	CHECK_OK(a);
	CHECK_EQ(n, 2);
	CHECK_EQ(who.sun_family, AF_UNIX);
	CHECK_EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(a, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_EQ(read(a, buf, 10), 5);
	n = sizeof(who);
	CHECK_OK(getsockname(a, (void *)&who, &n));
	CHECK_EQ(n, 2 + strlen(path) + 1);
	CHECK_STR(who.sun_path, path);
	n = 5;
	memset(&who, 0, sizeof(who));
	CHECK_OK(getpeername(c, (void *)&who, &n));
	CHECK_EQ(n, 2 + strlen(path) + 1);
	CHECK_MEM(who.sun_path, path, 3);
	CHECK_EQ(who.sun_path[3], 0);
	n = (socklen_t)-1;
	CHECK_ERR(getsockname(c, (void *)&who, &n), EINVAL);
	n = sizeof(who);
	CHECK_OK(getsockname(c, (void *)&who, &n));
	CHECK_EQ(n, 2);
	struct ucred u;
	n = sizeof(u);
	CHECK_OK(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &u, &n));
	CHECK_EQ(u.pid, getpid());
	CHECK_EQ(u.uid, getuid());
	CHECK_ERR(accept4(l, NULL, NULL, 1), EINVAL);
	/* The listener may go; the connection stays, the name does not listen any more. */
	close(l);
	CHECK_EQ(write(a, "ok", 2), 2);
	CHECK_EQ(read(c, buf, 10), 2);
	int d = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_ERR(connect(d, (void *)&addr, alen), ECONNREFUSED);
	CHECK_ERR(bind(d, (void *)&addr, alen), EADDRINUSE);
	unlink(path);
	CHECK_OK(bind(d, (void *)&addr, alen));
	unlink(path);
}

TEST(peer_credentials_across_fork)
{
	name_abstract("cred");
	int l = server(SOCK_STREAM, 5);
	pid_t pid = fork();
	if (pid == 0) {
		int c = socket(AF_UNIX, SOCK_STREAM, 0);
		struct ucred u;
		socklen_t n = sizeof(u);
		CHECK_OK(connect(c, (void *)&addr, alen));
		CHECK_OK(getsockopt(c, SOL_SOCKET, SO_PEERCRED, &u, &n));
		CHECK_EQ(u.pid, getppid());
		CHECK_EQ(read(c, buf, 1), 1);
		_exit(0);
	}
	int a = accept(l, NULL, NULL);
	struct ucred u;
	socklen_t n = sizeof(u);
	CHECK_OK(getsockopt(a, SOL_SOCKET, SO_PEERCRED, &u, &n));
	CHECK_EQ(u.pid, pid);
	CHECK_EQ(write(a, "x", 1), 1);
	CHECK_CHILD(pid, 0);
}

static void *connector(void *arg)
{
	int c = socket(AF_UNIX, SOCK_STREAM, 0);
	return (void *)(long)(connect(c, (void *)&addr, alen) == 0 ? 0 : errno);
}

TEST(backlog)
{
	pthread_t t;
	void *r;
	name_abstract("backlog");
	int l = server(SOCK_STREAM, 1);
	int c1 = socket(AF_UNIX, SOCK_STREAM, 0), c2 = socket(AF_UNIX, SOCK_STREAM, 0);
	int c3 = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_OK(connect(c1, (void *)&addr, alen));
	CHECK_OK(connect(c2, (void *)&addr, alen));
	CHECK_ERR(connect(c3, (void *)&addr, alen), EAGAIN);
	CHECK_EQ(pthread_create(&t, NULL, connector, NULL), 0);
	usleep(50000);
	CHECK_OK(accept(l, NULL, NULL));
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK_EQ((long)r, 0);
	CHECK_EQ(pthread_create(&t, NULL, connector, NULL), 0);
	usleep(50000);
	/* Those who wait are refused, those in the queue are reset. */
	close(l);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK_EQ((long)r, ECONNREFUSED);
	CHECK_ERR(read(c2, buf, 1), ECONNRESET);
	CHECK_EQ(read(c2, buf, 1), 0);
}

TEST(names)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), fd2 = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un who;
	socklen_t n = sizeof(who);
	/* Autobind: NUL and five digits. */
	addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	CHECK_OK(bind(fd, (void *)&addr, 2));
	CHECK_OK(getsockname(fd, (void *)&who, &n));
	CHECK_EQ(n, 8);
	CHECK_EQ(who.sun_path[0], 0);
	/* Abstract names are all their bytes, NULs included. */
	name_abstract("abs");
	CHECK_OK(bind(fd2, (void *)&addr, alen));
	int fd3 = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_ERR(bind(fd3, (void *)&addr, alen), EADDRINUSE);
	CHECK_OK(bind(fd3, (void *)&addr, alen + 1));
	int dg = socket(AF_UNIX, SOCK_DGRAM, 0);
	CHECK_OK(bind(dg, (void *)&addr, alen));
	close(fd2);
	fd2 = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_OK(bind(fd2, (void *)&addr, alen));
	/* A path of another type. */
	name_path("type");
	dg = socket(AF_UNIX, SOCK_DGRAM, 0);
	CHECK_OK(bind(dg, (void *)&addr, alen));
	int c = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_ERR(connect(c, (void *)&addr, alen), EPROTOTYPE);
	unlink(path);
	/* A relative path counts from the current directory; mode by umask. */
	CHECK_OK(chdir("/tmp"));
	umask(077);
	name_path("rel");
	memmove(addr.sun_path, addr.sun_path + 5, strlen(path) - 4);
	int r = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_OK(bind(r, (void *)&addr, sizeof(addr)));
	struct stat st;
	CHECK_OK(stat(path, &st));
	CHECK_EQ(st.st_mode & 0777, 0700);
	unlink(path);
	/* 108 bytes without a NUL. */
	memset(addr.sun_path, 'x', 108);
	memcpy(addr.sun_path, "/tmp/", 5);
	r = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_OK(bind(r, (void *)&addr, 110));
	union {
		struct sockaddr_un sun;
		char bytes[120];
	} big;
	n = sizeof(big);
	CHECK_OK(getsockname(r, (void *)&big, &n));
	CHECK_EQ(n, 111);
	unlink(big.sun.sun_path);
	addr.sun_path[60] = 0;
	CHECK_ERR(bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&addr, 111), EINVAL);
}

TEST(timeouts)
{
	struct timeval tv = { 0, 50000 };
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	CHECK_ERR(read(s[0], buf, 1), EAGAIN);
	ssize_t n = write(s[0], buf, sizeof(buf));
	CHECK(n > 0 && n < (ssize_t)sizeof(buf));
	CHECK_ERR(write(s[0], buf, sizeof(buf)), EAGAIN);
	/* With a time-out a handler ends the call in spite of SA_RESTART. */
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	tv.tv_sec = 10;
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	alarm(1);
	CHECK_ERR(read(s[0], buf, 1), EINTR);
	tv = (struct timeval){ 0, 1000000 };
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), EDOM);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, 8), EINVAL);
}

static void *writer(void *arg)
{
	for (int i = 0; i < 10; i++) {
		usleep(5000);
		CHECK_EQ(write(s[1], buf, 50000), 50000);
	}
	return NULL;
}

TEST(waitall)
{
	static char in[600000];
	pthread_t t;
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_EQ(pthread_create(&t, NULL, writer, NULL), 0);
	CHECK_EQ(recv(s[0], in, 500000, MSG_WAITALL), 500000);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(write(s[1], "end", 3), 3);
	close(s[1]);
	CHECK_EQ(recv(s[0], in, 10, MSG_WAITALL), 3);
}

TEST(options)
{
	int v = 1;
	socklen_t n = sizeof(v);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &v, &n));
	CHECK_EQ(v, SOCK_STREAM);
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_DOMAIN, &v, &n));
	CHECK_EQ(v, AF_UNIX);
	v = 10000;
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &v, &n));
	CHECK_EQ(v, 20000);
	v = 1;
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &v, &n));
	CHECK_EQ(v, 4608);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_TYPE, &v, sizeof(v)), ENOPROTOOPT);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, 9999, &v, sizeof(v)), ENOPROTOOPT);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_REUSEADDR, &v, 3), EINVAL);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_REUSEADDR, bad, 4), EFAULT);
	CHECK_ERR(setsockopt(s[0], SOL_SOCKET, SO_REUSEADDR, &v, (socklen_t)-1), EINVAL);
	CHECK_ERR(getsockopt(s[0], SOL_SOCKET, 9999, &v, &n), ENOPROTOOPT);
	CHECK_ERR(setsockopt(s[0], 6, 1, &v, sizeof(v)), EOPNOTSUPP);
	n = 2;
	v = -1;
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &v, &n));
	CHECK_EQ(n, 2);
	CHECK_EQ((unsigned)v, 0xffff0001u);
	n = sizeof(v);
	CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_ACCEPTCONN, &v, &n));
	CHECK_EQ(v, 0);
	CHECK_EQ(ioctl(s[0], FIONBIO, &(int){ 1 }), 0);
	CHECK_ERR(read(s[0], buf, 1), EAGAIN);
}

TEST(accept_is_interrupted_and_shut)
{
	name_abstract("intr");
	int l = server(SOCK_STREAM, 3);
	struct sigaction sa = { .sa_handler = handler };
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	alarm(1);
	CHECK_ERR(accept(l, NULL, NULL), EINTR);
	CHECK_OK(fcntl(l, F_SETFL, O_NONBLOCK));
	CHECK_ERR(accept(l, NULL, NULL), EAGAIN);
	struct pollfd p = { l, POLLIN | POLLOUT, 0 };
	CHECK_EQ(poll(&p, 1, 0), 0);
	int c = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_OK(connect(c, (void *)&addr, alen));
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLIN);
	/* The address cannot be stored: the connection is lost. */
	socklen_t n = 20;
	CHECK_ERR(accept(l, bad, &n), EFAULT);
	CHECK_EQ(read(c, buf, 1), 0);
}

T_MAIN

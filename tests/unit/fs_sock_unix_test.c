/* AF_UNIX sockets: fs/sock.c, fs/sock_unix.c, fs/unix_*.c, fs/sock_cmsg.c, fs/sockopt.c. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/eventfd.h"
#include "fs/pipe.h"
#include "fs/sock.h"
#include "fs/sock_cmsg.h"
#include "platform/base/alloc.h"
#include "tests/unit/io_rig.h"

static struct file *a, *b;
static char buf[300000];

static struct file *sock(int type, unsigned flags)
{
	struct file *f;

	assert_int_equal(sock_create(AF_UNIX, type, 0, flags, &f), 0);
	return f;
}

static void pair(int type, unsigned flags)
{
	assert_int_equal(sock_create_pair(AF_UNIX, type, 0, flags, &a, &b), 0);
}

static void close_pair(void)
{
	file_put(a);
	file_put(b);
}

/* A name: "@x" is abstract, others are paths. */
static unsigned name(struct sockaddr_storage *out, const char *s)
{
	struct sockaddr_un *sun = (struct sockaddr_un *)out;

	memset(out, 0, sizeof(*out));
	sun->sun_family = AF_UNIX;
	strcpy(sun->sun_path, s);
	unsigned len = (unsigned)(offsetof(struct sockaddr_un, sun_path) + strlen(s));
	if (s[0] == '@')
		sun->sun_path[0] = 0;
	return len;
}

static int bind_to(struct file *f, const char *s)
{
	struct sockaddr_storage addr;
	unsigned len = name(&addr, s);

	return sock_of(f)->ops->bind(sock_of(f), &addr, len, &io_world.as_root);
}

static int connect_as(struct file *f, const char *s, const struct fs_lookup *l)
{
	struct sockaddr_storage addr;
	unsigned len = name(&addr, s);

	return sock_of(f)->ops->connect(sock_of(f), &addr, len, file_nonblock(f) ? MSG_DONTWAIT : 0, l);
}

static int connect_to(struct file *f, const char *s)
{
	return connect_as(f, s, &io_world.as_root);
}

static int listen_on(struct file *f, int backlog)
{
	return sock_of(f)->ops->listen(sock_of(f), backlog);
}

static ssize_t send_to(struct file *f, const void *data, size_t n, unsigned flags, const char *to,
		       struct sock_scm *scm)
{
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags, .lookup = &io_world.as_root };

	iov_init_one(&it, &umem_host, (uintptr_t)data, n, IOV_DRAIN);
	if (to)
		m.name_len = name(&m.name, to);
	if (scm) {
		m.scm = *scm;
		*scm = (struct sock_scm){ 0 };
	}
	ssize_t r = sock_send(f, &m);
	sock_scm_fini(&m.scm);
	return r;
}

/* out: the message as received, with its ancillary data; NULL: dropped. */
static ssize_t receive(struct file *f, void *to, size_t n, unsigned flags, struct sock_msg *out)
{
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags };

	iov_init_host(&it, to, n, IOV_FILL);
	ssize_t r = sock_receive(f, &m);
	if (out)
		*out = m;
	else
		sock_scm_fini(&m.scm);
	return r;
}

static struct sock_scm rights(struct file *f1, struct file *f2)
{
	struct sock_scm s = { .file_count = f2 ? 2 : 1 };

	s.files = mem_calloc(2, sizeof(*s.files));
	assert_non_null(s.files);
	s.files[0] = file_get(f1);
	if (f2)
		s.files[1] = file_get(f2);
	return s;
}

static int so_error(struct file *f)
{
	int e = -1;
	assert_int_equal(sock_getsockopt(sock_of(f), SOL_SOCKET, SO_ERROR, &e, sizeof(e)), 4);
	return e;
}

static void set_int(struct file *f, int opt, int v)
{
	assert_int_equal(sock_setsockopt(sock_of(f), SOL_SOCKET, opt, &v, sizeof(v)), 0);
}

static int get_int(struct file *f, int opt)
{
	int v = -1;
	assert_int_equal(sock_getsockopt(sock_of(f), SOL_SOCKET, opt, &v, sizeof(v)), 4);
	return v;
}

static int ioctl_int(struct file *f, unsigned cmd)
{
	int v = -1;
	assert_int_equal(f->ops->ioctl(f, cmd, (uintptr_t)&v, &umem_host), 0);
	return v;
}

/* ---- streams ------------------------------------------------------------------------------ */

static void stream_bytes(void **state)
{
	(void)state;
	pair(SOCK_STREAM, O_NONBLOCK);
	assert_int_equal(file_poll(a, NULL), POLLOUT | POLLWRNORM | POLLWRBAND);
	assert_int_equal(io_get(a, buf, 5), -EAGAIN);
	assert_int_equal(io_put(a, "hello", 5), 5);
	assert_int_equal(io_put(a, "world", 5), 5);
	assert_int_equal(ioctl_int(b, FIONREAD), 10);
	assert_true(ioctl_int(a, TIOCOUTQ) > 10);
	assert_int_equal(receive(b, buf, 7, MSG_PEEK, NULL), 7);
	assert_memory_equal(buf, "hellowo", 7);
	assert_int_equal(receive(b, buf, 7, 0, NULL), 7);
	assert_int_equal(receive(b, buf, 100, 0, NULL), 3);
	assert_memory_equal(buf, "rld", 3);
	assert_int_equal(ioctl_int(a, TIOCOUTQ), 0);
	assert_int_equal(send_to(a, "x", 1, MSG_OOB, NULL, NULL), -EOPNOTSUPP);
	assert_int_equal(send_to(a, "x", 1, 0, "@n", NULL), -EISCONN);
	close_pair();
}

static void stream_ends(void **state)
{
	(void)state;
	pair(SOCK_STREAM, O_NONBLOCK);
	assert_int_equal(io_put(b, "last", 4), 4);
	file_put(b);
	assert_int_equal(file_poll(a, NULL),
			 POLLIN | POLLRDNORM | POLLHUP | POLLRDHUP | POLLOUT | POLLWRNORM | POLLWRBAND);
	assert_int_equal(io_get(a, buf, 10), 4);
	assert_int_equal(io_get(a, buf, 10), 0);
	assert_int_equal(io_put(a, "x", 1), -EPIPE);
	assert_int_equal(memfs_last_signal, SIGPIPE);
	file_put(a);
	/* Unread data is lost: the sender hears of it once. */
	pair(SOCK_STREAM, O_NONBLOCK);
	assert_int_equal(io_put(a, "lost", 4), 4);
	file_put(b);
	assert_true(file_poll(a, NULL) & POLLERR);
	assert_int_equal(io_put(a, "x", 1), -EPIPE);
	assert_int_equal(io_get(a, buf, 1), -ECONNRESET);
	assert_int_equal(io_get(a, buf, 1), 0);
	assert_int_equal(so_error(a), 0);
	file_put(a);
}

static void stream_shutdown(void **state)
{
	(void)state;
	pair(SOCK_STREAM, O_NONBLOCK);
	struct sock *sk = sock_of(a);
	assert_int_equal(sk->ops->shutdown(sk, 3), -EINVAL);
	assert_int_equal(io_put(a, "tail", 4), 4);
	assert_int_equal(sk->ops->shutdown(sk, SHUT_WR), 0);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, NULL), -EPIPE);
	assert_int_equal(io_get(b, buf, 10), 4);
	assert_int_equal(io_get(b, buf, 10), 0);
	assert_int_equal(file_poll(b, NULL) & (POLLIN | POLLRDHUP | POLLHUP), POLLIN | POLLRDHUP);
	/* The other direction lives. */
	assert_int_equal(io_put(b, "back", 4), 4);
	assert_int_equal(io_get(a, buf, 10), 4);
	assert_int_equal(sk->ops->shutdown(sk, SHUT_RD), 0);
	assert_int_equal(io_get(a, buf, 10), 0);
	assert_int_equal(send_to(b, "x", 1, 0, NULL, NULL), -EPIPE);
	assert_true(file_poll(a, NULL) & POLLHUP);
	close_pair();
}

static void stream_flow(void **state)
{
	struct io_call wr = { .fn = io_call_write, .buf = buf, .n = sizeof(buf) * 1 };
	static char got[sizeof(buf)];

	(void)state;
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (char)(i ^ i >> 9);
	pair(SOCK_STREAM, 0);
	set_int(a, SO_SNDBUF, 10000);
	assert_int_equal(get_int(a, SO_SNDBUF), 20000);
	wr.f = a;
	io_start(&wr);
	io_expect_blocked(&wr);
	assert_false(file_poll(a, NULL) & POLLOUT);
	size_t n = 0;
	while (n < sizeof(buf)) {
		ssize_t r = io_get(b, got + n, 7001);
		assert_true(r > 0);
		n += (size_t)r;
	}
	assert_int_equal(io_join(&wr), sizeof(buf));
	assert_memory_equal(buf, got, sizeof(buf));
	/* A signal ends a blocked write with what was sent. */
	io_start(&wr);
	io_expect_blocked(&wr);
	io_interrupt(&wr);
	ssize_t part = io_join(&wr);
	assert_in_range(part, 1, sizeof(buf) - 1);
	io_start(&wr);
	io_expect_blocked(&wr);
	file_put(b);
	/* It loses data: reset, once, as on Linux. */
	assert_int_equal(io_join(&wr), -ECONNRESET);
	assert_int_equal(io_put(a, "x", 1), -EPIPE);
	file_put(a);
}

static ssize_t call_waitall(struct io_call *c)
{
	return receive(c->f, c->buf, c->n, MSG_WAITALL, NULL);
}

static void waitall_and_timeouts(void **state)
{
	static char got[200000];
	struct io_call rd = { .fn = call_waitall, .buf = got, .n = sizeof(got) };
	struct timeval tv = { 0, 30000 };

	(void)state;
	pair(SOCK_STREAM, 0);
	rd.f = b;
	io_start(&rd);
	/* More than the send buffer: the reader must free what it has before it sleeps. */
	set_int(a, SO_SNDBUF, 8000);
	assert_int_equal(io_put(a, buf, 100000), 100000);
	io_expect_blocked(&rd);
	assert_int_equal(io_put(a, buf, 100000), 100000);
	assert_int_equal(io_join(&rd), sizeof(got));
	io_start(&rd);
	assert_int_equal(io_put(a, buf, 10), 10);
	io_expect_blocked(&rd);
	file_put(a);
	assert_int_equal(io_join(&rd), 10);
	file_put(b);
	pair(SOCK_STREAM, 0);
	assert_int_equal(sock_setsockopt(sock_of(a), SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(sock_setsockopt(sock_of(a), SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(io_get(a, buf, 1), -EAGAIN);
	ssize_t sent = io_put(a, buf, sizeof(buf));
	assert_in_range(sent, 100000, sizeof(buf) - 1);
	assert_int_equal(io_put(a, buf, sizeof(buf)), -EAGAIN);
	rd.f = a;
	tv.tv_sec = 100;
	assert_int_equal(sock_setsockopt(sock_of(a), SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	io_start(&rd);
	io_expect_blocked(&rd);
	io_interrupt(&rd);
	assert_int_equal(io_join(&rd), -EINTR);
	close_pair();
}

/* ---- connections -------------------------------------------------------------------------- */

static void connect_and_accept(void **state)
{
	struct file *l = sock(SOCK_STREAM, O_NONBLOCK), *c = sock(SOCK_STREAM, O_NONBLOCK), *s;
	struct sockaddr_storage addr;
	struct ucred u;
	unsigned len;

	(void)state;
	assert_int_equal(file_poll(c, NULL), POLLOUT | POLLWRNORM | POLLWRBAND | POLLHUP);
	assert_int_equal(receive(c, buf, 1, 0, NULL), -EINVAL);
	assert_int_equal(send_to(c, buf, 1, 0, NULL, NULL), -ENOTCONN);
	assert_int_equal(send_to(c, buf, 1, 0, "@x", NULL), -EOPNOTSUPP);
	assert_int_equal(listen_on(l, 1), -EINVAL);
	assert_int_equal(connect_to(c, "@srv"), -ECONNREFUSED);
	assert_int_equal(connect_to(c, "/none"), -ENOENT);
	assert_int_equal(bind_to(l, "/srv"), 0);
	assert_int_equal(bind_to(l, "/srv2"), -EINVAL);
	assert_int_equal(bind_to(c, "/srv"), -EADDRINUSE);
	assert_int_equal(connect_to(c, "/srv"), -ECONNREFUSED);
	assert_int_equal(sock_accept(l, 0, &s), -EINVAL);
	io_tgid = 55;
	assert_int_equal(listen_on(l, 1), 0);
	assert_int_equal(get_int(l, SO_ACCEPTCONN), 1);
	assert_int_equal(sock_accept(l, 0, &s), -EAGAIN);
	io_tgid = 77;
	io_cred = io_world.user_cred;
	assert_int_equal(connect_as(c, "/srv", &io_world.as_user), -EACCES);
	assert_int_equal(connect_to(c, "/srv"), 0);
	assert_int_equal(connect_to(c, "/srv"), -EISCONN);
	assert_int_equal(connect_to(l, "/srv"), -EINVAL);
	io_cred = io_world.root_cred;
	assert_true(file_poll(l, NULL) & POLLIN);
	/* Before anybody accepts. */
	assert_int_equal(io_put(c, "early", 5), 5);
	assert_int_equal(sock_accept(l, O_NONBLOCK, &s), 0);
	assert_true(file_nonblock(s));
	assert_int_equal(io_get(s, buf, 10), 5);
	assert_int_equal(sock_getsockopt(sock_of(s), SOL_SOCKET, SO_PEERCRED, &u, sizeof(u)), sizeof(u));
	assert_int_equal(u.pid, 77);
	assert_int_equal(u.uid, 1000);
	assert_int_equal(sock_getsockopt(sock_of(c), SOL_SOCKET, SO_PEERCRED, &u, sizeof(u)), sizeof(u));
	assert_int_equal(u.pid, 55);
	assert_int_equal(sock_of(c)->ops->getname(sock_of(c), true, &addr, &len), 0);
	assert_int_equal(len, 2 + 5);
	assert_string_equal(((struct sockaddr_un *)&addr)->sun_path, "/srv");
	assert_int_equal(sock_of(s)->ops->getname(sock_of(s), false, &addr, &len), 0);
	assert_int_equal(len, 2 + 5);
	assert_int_equal(sock_of(s)->ops->getname(sock_of(s), true, &addr, &len), 0);
	assert_int_equal(len, 2);
	file_put(l);
	assert_int_equal(io_put(s, "still", 5), 5);
	file_put(s);
	/* The peer's name outlives it. */
	assert_int_equal(sock_of(c)->ops->getname(sock_of(c), true, &addr, &len), 0);
	assert_int_equal(len, 2 + 5);
	file_put(c);
	c = sock(SOCK_STREAM, 0);
	assert_int_equal(connect_to(c, "/srv"), -ECONNREFUSED);
	assert_int_equal(bind_to(c, "/srv"), -EADDRINUSE);
	assert_int_equal(sock_of(c)->ops->getname(sock_of(c), true, &addr, &len), -ENOTCONN);
	file_put(c);
	assert_int_equal(vfs_unlink(&io_world.as_root, "/srv"), 0);
}

static ssize_t call_connect(struct io_call *c)
{
	return connect_to(c->f, "@full");
}

static ssize_t call_accept(struct io_call *c)
{
	return sock_accept(c->f, 0, (struct file **)c->arg);
}

static void backlog(void **state)
{
	struct file *l = sock(SOCK_STREAM, 0), *c[4], *s;
	struct io_call w = { .fn = call_connect };

	(void)state;
	for (int i = 0; i < 4; i++)
		c[i] = sock(SOCK_STREAM, i == 2 ? O_NONBLOCK : 0);
	assert_int_equal(bind_to(l, "@full"), 0);
	assert_int_equal(listen_on(l, 1), 0);
	assert_int_equal(connect_to(c[0], "@full"), 0);
	assert_int_equal(connect_to(c[1], "@full"), 0);
	assert_int_equal(connect_to(c[2], "@full"), -EAGAIN);
	w.f = c[3];
	io_start(&w);
	io_expect_blocked(&w);
	assert_int_equal(sock_accept(l, 0, &s), 0);
	assert_int_equal(io_join(&w), 0);
	file_put(s);
	assert_int_equal(io_get(c[0], buf, 1), 0);
	/* The listener goes: those in its queue are reset, those who wait are refused. */
	w.f = c[2];
	atomic_fetch_and(&c[2]->flags, ~(unsigned)O_NONBLOCK);
	io_start(&w);
	io_expect_blocked(&w);
	file_put(l);
	assert_int_equal(io_join(&w), -ECONNREFUSED);
	assert_int_equal(io_get(c[1], buf, 1), -ECONNRESET);
	assert_int_equal(io_get(c[1], buf, 1), 0);
	for (int i = 0; i < 4; i++)
		file_put(c[i]);
}

static void acceptors(void **state)
{
	enum { N = 4 };
	struct file *l = sock(SOCK_STREAM, 0), *c[N], *s[N];
	struct io_call w[N];

	(void)state;
	assert_int_equal(bind_to(l, "@acc"), 0);
	assert_int_equal(listen_on(l, 10), 0);
	for (int i = 0; i < N; i++) {
		w[i] = (struct io_call){ .fn = call_accept, .f = l, .arg = &s[i] };
		io_start(&w[i]);
	}
	io_expect_blocked(&w[0]);
	for (int i = 0; i < N; i++) {
		c[i] = sock(SOCK_STREAM, 0);
		assert_int_equal(connect_to(c[i], "@acc"), 0);
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(io_join(&w[i]), 0);
		file_put(s[i]);
		file_put(c[i]);
	}
	io_start(&w[0]);
	io_expect_blocked(&w[0]);
	assert_int_equal(sock_of(l)->ops->shutdown(sock_of(l), SHUT_RD), 0);
	assert_int_equal(io_join(&w[0]), -EINVAL);
	file_put(l);
}

static void names(void **state)
{
	struct file *d = sock(SOCK_DGRAM, 0), *s = sock(SOCK_STREAM, 0), *e = sock(SOCK_DGRAM, 0);
	struct sockaddr_storage addr;
	unsigned len;

	(void)state;
	/* The type is part of an abstract name's key; a path has one type. */
	assert_int_equal(bind_to(d, "@k"), 0);
	assert_int_equal(bind_to(s, "@k"), 0);
	assert_int_equal(bind_to(e, "@k"), -EADDRINUSE);
	assert_int_equal(bind_to(e, "/p"), 0);
	file_put(s);
	s = sock(SOCK_STREAM, 0);
	assert_int_equal(connect_to(s, "/p"), -EPROTOTYPE);
	assert_int_equal(sock_of(s)->ops->connect(sock_of(s), &addr, 1, 0, NULL), -EINVAL);
	memset(&addr, 0, sizeof(addr));
	addr.ss_family = AF_INET;
	assert_int_equal(sock_of(s)->ops->bind(sock_of(s), &addr, 16, NULL), -EINVAL);
	addr.ss_family = AF_UNIX;
	assert_int_equal(sock_of(s)->ops->bind(sock_of(s), &addr, 111, NULL), -EINVAL);
	assert_int_equal(sock_of(s)->ops->bind(sock_of(s), &addr, 2, NULL), 0);
	assert_int_equal(sock_of(s)->ops->getname(sock_of(s), false, &addr, &len), 0);
	assert_int_equal(len, 8);
	assert_int_equal(((struct sockaddr_un *)&addr)->sun_path[0], 0);
	/* All 108 bytes and no NUL. */
	struct file *f = sock(SOCK_DGRAM, 0);
	memset((char *)&addr + 2, 'n', 108);
	((struct sockaddr_un *)&addr)->sun_path[0] = '/';
	assert_int_equal(sock_of(f)->ops->bind(sock_of(f), &addr, 110, &io_world.as_root), 0);
	assert_int_equal(sock_of(f)->ops->getname(sock_of(f), false, &addr, &len), 0);
	assert_int_equal(len, 111);
	file_put(f);
	file_put(d);
	file_put(e);
	file_put(s);
	f = sock(SOCK_DGRAM, 0);
	assert_int_equal(bind_to(f, "@k"), 0);
	file_put(f);
	assert_int_equal(sock_create(AF_UNIX, SOCK_STREAM, 5, 0, &f), -EPROTONOSUPPORT);
	assert_int_equal(sock_create(AF_UNIX, SOCK_RDM, 0, 0, &f), -ESOCKTNOSUPPORT);
	assert_int_equal(sock_create(AF_INET, SOCK_STREAM, 0, 0, &f), -EAFNOSUPPORT);
	assert_int_equal(sock_create(AF_UNIX, 11, 0, 0, &f), -EINVAL);
}

/* ---- packets ------------------------------------------------------------------------------ */

static void datagrams(void **state)
{
	struct file *s = sock(SOCK_DGRAM, O_NONBLOCK), *c = sock(SOCK_DGRAM, O_NONBLOCK);
	struct sock_msg m;

	(void)state;
	assert_int_equal(file_poll(c, NULL), POLLOUT | POLLWRNORM | POLLWRBAND);
	assert_int_equal(send_to(c, "x", 1, 0, NULL, NULL), -ENOTCONN);
	assert_int_equal(send_to(c, "x", 1, 0, "@none", NULL), -ECONNREFUSED);
	assert_int_equal(bind_to(s, "@s"), 0);
	assert_int_equal(send_to(c, "anon", 4, 0, "@s", NULL), 4);
	assert_int_equal(bind_to(c, "/c"), 0);
	assert_int_equal(send_to(c, "named!", 6, 0, "@s", NULL), 6);
	assert_int_equal(send_to(c, "", 0, 0, "@s", NULL), 0);
	assert_int_equal(ioctl_int(s, FIONREAD), 4);
	assert_int_equal(receive(s, buf, 10, 0, &m), 4);
	assert_int_equal(m.name_len, 0);
	assert_int_equal(receive(s, buf, 3, MSG_PEEK, &m), 3);
	assert_int_equal(m.out_flags, MSG_TRUNC);
	assert_int_equal(receive(s, buf, 3, MSG_TRUNC, &m), 6);
	assert_int_equal(m.name_len, 2 + 3);
	assert_int_equal(receive(s, buf, 3, 0, &m), 0);
	assert_int_equal(receive(s, buf, 3, 0, &m), -EAGAIN);
	assert_int_equal(send_to(c, buf, sizeof(buf), 0, "@s", NULL), -EMSGSIZE);
	/* Connected: only the peer may answer. */
	assert_int_equal(connect_to(c, "@s"), 0);
	assert_int_equal(io_put(c, "plain", 5), 5);
	struct file *x = sock(SOCK_DGRAM, O_NONBLOCK);
	assert_int_equal(send_to(x, "x", 1, 0, "/c", NULL), -EPERM);
	assert_int_equal(connect_to(x, "/c"), -EPERM);
	assert_int_equal(send_to(s, "y", 1, 0, "/c", NULL), 1);
	assert_int_equal(io_get(c, buf, 10), 1);
	file_put(x);
	/* The peer is gone: refused, and not connected any more. */
	file_put(s);
	assert_int_equal(file_poll(c, NULL), POLLOUT | POLLWRNORM | POLLWRBAND);
	assert_int_equal(io_put(c, "z", 1), -ECONNREFUSED);
	assert_int_equal(io_put(c, "z", 1), -ENOTCONN);
	file_put(c);
	assert_int_equal(vfs_unlink(&io_world.as_root, "/c"), 0);
}

static ssize_t call_send(struct io_call *c)
{
	return send_to(c->f, "m", 1, 0, c->arg, NULL);
}

static void datagram_queue(void **state)
{
	struct file *s = sock(SOCK_DGRAM, O_NONBLOCK), *c = sock(SOCK_DGRAM, O_NONBLOCK);
	struct file *d = sock(SOCK_DGRAM, 0);
	struct io_call w = { .fn = call_send, .f = d };

	(void)state;
	assert_int_equal(bind_to(s, "@q"), 0);
	assert_int_equal(connect_to(c, "@q"), 0);
	for (int i = 0; i < 11; i++)
		assert_int_equal(io_put(c, "m", 1), 1);
	assert_int_equal(io_put(c, "m", 1), -EAGAIN);
	assert_false(file_poll(c, NULL) & POLLOUT);
	w.arg = (void *)(uintptr_t) "@q";
	io_start(&w);
	io_expect_blocked(&w);
	assert_int_equal(io_get(s, buf, 5), 1);
	assert_int_equal(io_join(&w), 1);
	assert_int_equal(io_get(s, buf, 5), 1);
	assert_true(file_poll(c, NULL) & POLLOUT);
	assert_int_equal(io_put(c, "m", 1), 1);
	io_start(&w);
	io_expect_blocked(&w);
	io_interrupt(&w);
	assert_int_equal(io_join(&w), -ERESTARTSYS);
	io_start(&w);
	io_expect_blocked(&w);
	file_put(s);
	assert_int_equal(io_join(&w), -ECONNREFUSED);
	file_put(c);
	file_put(d);
	/* A pair has no such limit. */
	pair(SOCK_DGRAM, O_NONBLOCK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(io_put(a, "m", 1), 1);
	int n = 50;
	while (io_put(a, "m", 1) == 1)
		n++;
	assert_in_range(n, 100, 1000);
	close_pair();
}

static void wait_room(struct waiter *w, uint32_t events)
{
	(void)events;
	atomic_store((atomic_bool *)w->arg, true);
}

struct room_table {
	struct poll_table pt;
	struct waiter w;
};

static void room_queue(struct poll_table *pt, struct waitq *q)
{
	waitq_add(q, &container_of(pt, struct room_table, pt)->w);
}

/* poll(2) of a sender sleeps until the receiver has made room. */
static void poll_hears_of_room(void **state)
{
	struct file *s = sock(SOCK_DGRAM, O_NONBLOCK), *c = sock(SOCK_DGRAM, O_NONBLOCK);
	atomic_bool told = false;
	struct room_table t = { .pt = { .queue = room_queue },
				.w = { .fn = wait_room, .mask = POLLOUT, .arg = &told } };

	(void)state;
	assert_int_equal(bind_to(s, "@r"), 0);
	assert_int_equal(connect_to(c, "@r"), 0);
	while (io_put(c, "m", 1) == 1)
		;
	assert_false(file_poll(c, &t.pt) & POLLOUT);
	atomic_store(&told, false);
	assert_int_equal(io_get(s, buf, 1), 1);
	assert_true(atomic_load(&told));
	waitq_remove(&t.w);
	assert_false(io_put(c, "m", 1) == -EAGAIN);
	assert_false(file_poll(c, NULL) & POLLOUT);
	file_put(c);
	file_put(s);
}

static void seqpacket(void **state)
{
	struct file *u = sock(SOCK_SEQPACKET, O_NONBLOCK);
	struct sock_msg m;

	(void)state;
	assert_int_equal(io_put(u, "x", 1), -ENOTCONN);
	assert_int_equal(receive(u, buf, 1, 0, NULL), -ENOTCONN);
	file_put(u);
	pair(SOCK_SEQPACKET, O_NONBLOCK);
	assert_int_equal(io_put(a, "one", 3), 3);
	assert_int_equal(io_put(a, "twotwo", 6), 6);
	assert_int_equal(ioctl_int(b, FIONREAD), 9);
	assert_int_equal(receive(b, buf, 2, 0, &m), 2);
	assert_int_equal(m.out_flags & MSG_TRUNC, MSG_TRUNC);
	assert_int_equal(receive(b, buf, 100, 0, &m), 6);
	assert_int_equal(io_put(a, "lost", 4), 4);
	file_put(b);
	memfs_last_signal = 0;
	assert_int_equal(io_put(a, "x", 1), -ECONNRESET);
	assert_int_equal(io_put(a, "x", 1), -EPIPE);
	assert_int_equal(memfs_last_signal, 0);
	assert_int_equal(io_get(a, buf, 1), 0);
	file_put(a);
}

/* ---- descriptors and credentials ---------------------------------------------------------- */

static void rights_travel(void **state)
{
	struct file *e, *f;
	struct sock_msg m;

	(void)state;
	assert_int_equal(eventfd_new(7, 0, io_cred, &e), 0);
	assert_int_equal(eventfd_new(8, 0, io_cred, &f), 0);
	pair(SOCK_STREAM, O_NONBLOCK);
	struct sock_scm s = rights(e, f);
	assert_int_equal(send_to(a, "abc", 3, 0, NULL, &s), 3);
	assert_int_equal(io_put(a, "def", 3), 3);
	assert_int_equal(ref_count(&e->ref), 2);
	/* A look copies them. */
	assert_int_equal(receive(b, buf, 10, MSG_PEEK, &m), 3);
	assert_int_equal(m.scm.file_count, 2);
	assert_int_equal(ref_count(&e->ref), 3);
	sock_scm_fini(&m.scm);
	/* They come with the first byte, and the read stops at the message's end. */
	assert_int_equal(receive(b, buf, 1, 0, &m), 1);
	assert_int_equal(m.scm.file_count, 2);
	assert_ptr_equal(m.scm.files[1], f);
	sock_scm_fini(&m.scm);
	assert_int_equal(ref_count(&e->ref), 1);
	assert_int_equal(receive(b, buf, 10, 0, &m), 5);
	assert_int_equal(m.scm.file_count, 0);
	/* Closed with descriptors in the queue, never received. */
	s = rights(e, NULL);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
	s = rights(e, f);
	assert_int_equal(send_to(b, "x", 1, 0, NULL, &s), 1);
	assert_int_equal(ref_count(&e->ref), 3);
	close_pair();
	assert_int_equal(ref_count(&e->ref), 1);
	/* read(2) drops them. */
	pair(SOCK_DGRAM, O_NONBLOCK);
	s = rights(e, NULL);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
	assert_int_equal(io_get(b, buf, 1), 1);
	assert_int_equal(ref_count(&e->ref), 1);
	/* Too many: the limit is RLIMIT_NOFILE, for those without capabilities. */
	memfs_rlimit_nofile = 2;
	io_cred = io_world.user_cred;
	for (int i = 0; i < 3; i++) {
		s = rights(e, NULL);
		assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
	}
	s = rights(e, NULL);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), -ETOOMANYREFS);
	io_cred = io_world.root_cred;
	close_pair();
	assert_int_equal(ref_count(&e->ref), 1);
	file_put(e);
	file_put(f);
}

/* Linux collects when some AF_UNIX socket is closed; so do we. */
static void close_some_socket(void)
{
	file_put(sock(SOCK_DGRAM, 0));
}

static void cycles_are_collected(void **state)
{
	size_t live = mem_live_count();
	struct file *x, *y;
	struct sock_scm s;

	(void)state;
	/* A socket in its own peer's queue. */
	pair(SOCK_DGRAM, O_NONBLOCK);
	s = rights(a, b);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
	close_pair();
	close_some_socket();
	assert_int_equal(mem_live_count(), live);
	/* Two pairs that hold each other, with an innocent eventfd inside. */
	assert_int_equal(sock_create_pair(AF_UNIX, SOCK_STREAM, 0, 0, &x, &y), 0);
	pair(SOCK_STREAM, 0);
	struct file *e;
	assert_int_equal(eventfd_new(0, 0, io_cred, &e), 0);
	s = rights(x, e);
	assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
	s = rights(b, NULL);
	assert_int_equal(send_to(y, "x", 1, 0, NULL, &s), 1);
	file_put(e);
	file_put(x);
	file_put(y);
	file_put(a);
	/* b is still held: everything is reachable through it. */
	assert_true(mem_live_count() > live);
	struct sock_msg m;
	assert_int_equal(receive(b, buf, 1, 0, &m), 1);
	assert_int_equal(m.scm.file_count, 2);
	sock_scm_fini(&m.scm);
	file_put(b);
	close_some_socket();
	assert_int_equal(mem_live_count(), live);
	/* A listener in the queue of a connection that it never accepted. */
	struct file *l = sock(SOCK_STREAM, 0), *c = sock(SOCK_STREAM, 0);
	assert_int_equal(bind_to(l, "@cyc"), 0);
	assert_int_equal(listen_on(l, 5), 0);
	assert_int_equal(connect_to(c, "@cyc"), 0);
	s = rights(l, c);
	assert_int_equal(send_to(c, "x", 1, 0, NULL, &s), 1);
	file_put(l);
	file_put(c);
	assert_true(mem_live_count() > live);
	close_some_socket();
	assert_int_equal(mem_live_count(), live);
}

static void long_chain(void **state)
{
	enum { N = 3000 };
	size_t live = mem_live_count();
	struct file *prev = NULL;

	(void)state;
	/* Each pair carries the one before in its queue: freeing must not recurse. */
	for (int i = 0; i < N; i++) {
		pair(SOCK_DGRAM, 0);
		if (prev) {
			struct sock_scm s = rights(prev, NULL);
			assert_int_equal(send_to(a, "x", 1, 0, NULL, &s), 1);
			file_put(prev);
		}
		file_put(a);
		prev = b;
	}
	file_put(prev);
	assert_int_equal(mem_live_count(), live);
}

static void credentials(void **state)
{
	struct sock_msg m;

	(void)state;
	pair(SOCK_STREAM, O_NONBLOCK);
	/* Sent before anybody asked: nobody's. */
	assert_int_equal(io_put(a, "1", 1), 1);
	set_int(b, SO_PASSCRED, 1);
	io_tgid = 42;
	assert_int_equal(io_put(a, "2", 1), 1);
	assert_int_equal(io_put(a, "3", 1), 1);
	io_tgid = 43;
	assert_int_equal(io_put(a, "4", 1), 1);
	assert_int_equal(receive(b, buf, 10, 0, &m), 1);
	assert_true(m.scm.has_cred);
	assert_int_equal(m.scm.cred.pid, 0);
	assert_int_equal(m.scm.cred.uid, 65534);
	/* Bytes of one writer are glued, of two are not. */
	assert_int_equal(receive(b, buf, 10, 0, &m), 2);
	assert_int_equal(m.scm.cred.pid, 42);
	assert_int_equal(receive(b, buf, 10, 0, &m), 1);
	assert_int_equal(m.scm.cred.pid, 43);
	close_pair();
}

static void control_buffers(void **state)
{
	union {
		struct cmsghdr h;
		char bytes[512];
	} c;
	struct fdtable *t;
	struct file *e;
	struct sock_scm s = { 0 };
	int fd;

	(void)state;
	assert_int_equal(fdtable_new(&t), 0);
	assert_int_equal(eventfd_new(0, 0, io_cred, &e), 0);
	fd = fd_install(t, e, 3, false);
	assert_int_equal(fd, 3);
	memset(&c, 0, sizeof(c));
	c.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(8), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&c.h), (int[]){ 3, 3 }, 8);
	assert_int_equal(sock_cmsg_parse(&c, CMSG_SPACE(8), t, AF_UNIX, io_cred, &s), 0);
	assert_int_equal(s.file_count, 2);
	/* Out again: room for one number and a half. */
	char out[CMSG_LEN(6)];
	struct cmsg_out o = { .buf = out, .cap = sizeof(out) };
	sock_cmsg_write(&o, &s, t, true);
	assert_true(o.cut);
	assert_int_equal(o.len, sizeof(out));
	memcpy(&fd, out + CMSG_LEN(0), 4);
	assert_int_equal(fd, 0);
	assert_int_equal(fd_get_cloexec(t, 0), 1);
	assert_int_equal(fd_get_cloexec(t, 1), -EBADF);
	/* Malformed ones. */
	c.h.cmsg_len = CMSG_LEN(8) + 1000;
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_UNIX, io_cred, &s), -EINVAL);
	c.h.cmsg_len = 3;
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_UNIX, io_cred, &s), -EINVAL);
	c.h.cmsg_len = CMSG_LEN(8);
	assert_int_equal(sock_cmsg_parse(&c, 15, t, AF_UNIX, io_cred, &s), 0);
	memcpy(CMSG_DATA(&c.h), (int[]){ 3, 99 }, 8);
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_UNIX, io_cred, &s), -EBADF);
	sock_scm_fini(&s);
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_INET, io_cred, &s), -EINVAL);
	c.h.cmsg_type = 99;
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_UNIX, io_cred, &s), -EINVAL);
	c.h.cmsg_level = 99;
	assert_int_equal(sock_cmsg_parse(&c, 24, t, AF_UNIX, io_cred, &s), 0);
	/* Whom one may claim to be. */
	struct ucred u = { .pid = io_tgid, .uid = 1000, .gid = 1000 };
	c.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(u)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_CREDENTIALS };
	memcpy(CMSG_DATA(&c.h), &u, sizeof(u));
	assert_int_equal(sock_cmsg_parse(&c, 32, t, AF_UNIX, io_world.user_cred, &s), 0);
	assert_true(s.has_cred);
	u.pid++;
	memcpy(CMSG_DATA(&c.h), &u, sizeof(u));
	assert_int_equal(sock_cmsg_parse(&c, 32, t, AF_UNIX, io_world.user_cred, &s), -EPERM);
	assert_int_equal(sock_cmsg_parse(&c, 32, t, AF_UNIX, io_world.root_cred, &s), 0);
	fdtable_put(t);
}

static void options(void **state)
{
	struct file *f = sock(SOCK_STREAM, 0);
	struct sock *sk = sock_of(f);
	struct timeval tv;
	char one = 1;
	int v = 1;

	(void)state;
	assert_int_equal(get_int(f, SO_TYPE), SOCK_STREAM);
	assert_int_equal(get_int(f, SO_DOMAIN), AF_UNIX);
	assert_int_equal(get_int(f, SO_SNDBUF), 212992);
	set_int(f, SO_SNDBUF, 1);
	assert_int_equal(get_int(f, SO_SNDBUF), 4608);
	set_int(f, SO_RCVBUF, -1);
	assert_int_equal(get_int(f, SO_RCVBUF), 212992 * 2);
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, SO_REUSEADDR, &one, 1), -EINVAL);
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, SO_TYPE, &v, 4), -ENOPROTOOPT);
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, 999, &v, 4), -ENOPROTOOPT);
	assert_int_equal(sock_setsockopt(sk, 6, 1, &v, 4), -EOPNOTSUPP);
	assert_int_equal(sock_getsockopt(sk, SOL_SOCKET, SO_TYPE, &one, 1), 1);
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, SO_RCVTIMEO, &v, 4), -EINVAL);
	tv = (struct timeval){ 1, 1000000 };
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), -EDOM);
	tv = (struct timeval){ 3, 250000 };
	assert_int_equal(sock_setsockopt(sk, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	tv = (struct timeval){ 0, 0 };
	assert_int_equal(sock_getsockopt(sk, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), sizeof(tv));
	assert_int_equal(tv.tv_sec, 3);
	assert_int_equal(tv.tv_usec, 250000);
	file_put(f);
}

/* Descriptors of sockets are sent through sockets and dropped, by several threads, while the collector
 * runs: the sanitizers and the leak count watch. */
#define POOL 8
static struct file *pool[POOL]; /* [pool_mu] */
static pthread_mutex_t pool_mu = PTHREAD_MUTEX_INITIALIZER;

static struct file *pool_swap(unsigned i, struct file *f)
{
	pthread_mutex_lock(&pool_mu);
	struct file *old = pool[i % POOL];
	pool[i % POOL] = f;
	pthread_mutex_unlock(&pool_mu);
	return old;
}

static struct file *pool_get(unsigned i)
{
	pthread_mutex_lock(&pool_mu);
	struct file *f = pool[i % POOL] ? file_get(pool[i % POOL]) : NULL;
	pthread_mutex_unlock(&pool_mu);
	return f;
}

static void stress_send(struct file *to, struct file *what)
{
	struct iov_iter it;
	char c = 'x';
	struct sock_msg m = { .it = &it, .flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	m.scm.files = mem_calloc(1, sizeof(*m.scm.files));
	if (!m.scm.files)
		return;
	m.scm.files[0] = file_get(what);
	m.scm.file_count = 1;
	iov_init_host(&it, &c, 1, IOV_DRAIN);
	(void)!sock_send(to, &m);
	sock_scm_fini(&m.scm);
}

static ssize_t stress_rights(struct io_call *c)
{
	unsigned r = (unsigned)c->n * 2654435761u;

	for (int i = 0; i < 2000; i++) {
		struct file *x, *y, *f;
		r = r * 1103515245u + 12345u;
		unsigned k = r >> 8;
		if (k % 4 == 0) {
			if (sock_create_pair(AF_UNIX, k & 64 ? SOCK_STREAM : SOCK_DGRAM, 0, O_NONBLOCK, &x, &y))
				return -ENOMEM;
			file_put(pool_swap(k / 4, x));
			file_put(pool_swap(k / 32, y));
			continue;
		}
		x = pool_get(k / 4);
		f = pool_get(k / 32);
		if (x && f && k % 4 == 1) {
			struct iov_iter it;
			char byte;
			struct sock_msg m = { .it = &it, .flags = MSG_DONTWAIT | (k & 128 ? MSG_PEEK : 0) };
			iov_init_host(&it, &byte, 1, IOV_FILL);
			(void)!sock_receive(x, &m);
			sock_scm_fini(&m.scm);
		} else if (x && f) {
			stress_send(x, f);
		}
		file_put(x);
		file_put(f);
	}
	return 0;
}

static void stress(void **state)
{
	struct io_call c[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = (struct io_call){ .fn = stress_rights, .n = i + 1 };
		io_start(&c[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(io_join(&c[i]), 0);
	for (unsigned i = 0; i < POOL; i++)
		file_put(pool_swap(i, NULL));
	close_some_socket();
}

static int make_everything(void)
{
	struct file *l, *c = NULL, *s = NULL, *x = NULL, *y = NULL;
	int err = sock_create(AF_UNIX, SOCK_STREAM, 0, 0, &l);
	if (err)
		return err;
	err = bind_to(l, "@mem");
	if (!err)
		err = listen_on(l, 3);
	if (!err)
		err = sock_create(AF_UNIX, SOCK_STREAM, 0, 0, &c);
	if (!err)
		err = connect_to(c, "@mem");
	if (!err)
		err = sock_accept(l, 0, &s);
	if (!err)
		err = sock_create_pair(AF_UNIX, SOCK_DGRAM, 0, 0, &x, &y);
	if (!err)
		err = send_to(x, "m", 1, 0, NULL, NULL) == 1 ? 0 : -ENOBUFS;
	file_put(l);
	file_put(c);
	file_put(s);
	if (x) {
		file_put(x);
		file_put(y);
	}
	return err;
}

static void without_memory(void **state)
{
	(void)state;
	io_fail_each_allocation(make_everything);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, io_setup, io_teardown)
	const struct CMUnitTest tests[] = {
		T(stream_bytes), T(stream_ends), T(stream_shutdown), T(stream_flow), T(waitall_and_timeouts),
		T(connect_and_accept), T(backlog), T(acceptors), T(names), T(datagrams), T(datagram_queue),
		T(poll_hears_of_room), T(seqpacket), T(rights_travel), T(cycles_are_collected), T(long_chain),
		T(credentials), T(stress), T(control_buffers), T(options), T(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

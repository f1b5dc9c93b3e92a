/*
 * Socket calls: copying of addresses, headers and control data around fs/sock.h. sendmmsg and
 * recvmmsg are loops over the single calls.
 */
#include "fs/sock.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "fs/hooks.h"
#include "fs/sock_cmsg.h"
#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/timers.h"
#include "syscalls/fs_util.h"

#define SOCK_FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)
#define CONTROL_MAX (20u << 10) /* net.core.optmem_max, which bounds what sendmsg gives */
#define CONTROL_OUT_MAX 2048u   /* more than credentials and SOCK_SCM_MAX_FILES descriptors take */
#define OPTION_MAX 4096u
#define CMSG_COMPAT 0x80000000u /* MSG_CMSG_COMPAT: of 32-bit calls, never ours */
#define MMSG_MAX 1024u          /* UIO_MAXIOV */
_Static_assert(CONTROL_OUT_MAX >=
		       CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(SOCK_SCM_MAX_FILES * 4),
	       "fits");

/* A referenced socket file: -EBADF, -ENOTSOCK. */
static int socket_get(struct task *t, int fd, struct file **out)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	if (!sock_of(f)) {
		file_put(f);
		return -ENOTSOCK;
	}
	*out = f;
	return 0;
}

/* ---- addresses ---------------------------------------------------------------------------- */

static int load_addr(struct task *t, struct gaddr addr, int len, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (len < 0 || len > (int)sizeof(*out))
		return -EINVAL;
	return len ? guest_read(t, out, addr, (size_t)len) : 0;
}

/* Stores what fits of an address and its full length, as move_addr_to_user of the kernel. */
static int store_addr(struct task *t, const struct sockaddr_storage *a, unsigned len,
		      struct gaddr addr, i32_gp addrlen)
{
	i32_cgp from = { .addr = addrlen.addr };
	int32_t room, full = (int32_t)len;

	if (guest_load(t, &room, from) != 0)
		return -EFAULT;
	if (room < 0)
		return -EINVAL;
	size_t n = MIN((size_t)room, (size_t)len);
	if (n && guest_write(t, addr, a, n) != 0)
		return -EFAULT;
	return guest_store(t, addrlen, &full);
}

static struct fs_lookup lookup_of(struct task *t)
{
	return (struct fs_lookup){ .ctx = t->fs, .cred = t->cred };
}

/* ---- creation ----------------------------------------------------------------------------- */

static unsigned file_flags_of(int flags)
{
	return flags & SOCK_NONBLOCK ? O_NONBLOCK : 0;
}

long sys_socket(struct task *t, int domain, int type, int protocol)
{
	int flags = type & ~0xf;
	struct file *f;

	if (flags & ~SOCK_FLAGS)
		return -EINVAL;
	int err = sock_create(domain, type & 0xf, protocol, file_flags_of(flags), &f);
	return err ? err : install_file(t, f, flags & SOCK_CLOEXEC);
}

long sys_socketpair(struct task *t, int domain, int type, int protocol, i32_gp fds)
{
	int flags = type & ~0xf;
	struct file *a, *b;
	int32_t nr[2];

	if (flags & ~SOCK_FLAGS)
		return -EINVAL;
	int err = sock_create_pair(domain, type & 0xf, protocol, file_flags_of(flags), &a, &b);
	if (err)
		return err;
	nr[0] = (int32_t)install_file(t, a, flags & SOCK_CLOEXEC);
	if (nr[0] < 0) {
		file_put(b);
		return nr[0];
	}
	nr[1] = (int32_t)install_file(t, b, flags & SOCK_CLOEXEC);
	long ret = nr[1];
	if (ret >= 0) {
		ret = guest_store_n(t, fds, 2, nr);
		if (ret == 0)
			return 0;
		fd_close(t->files, nr[1]);
	}
	fd_close(t->files, nr[0]);
	return ret;
}

long sys_bind(struct task *t, int fd, buf_cgp addr, int addrlen)
{
	struct fs_lookup l = lookup_of(t);
	struct sockaddr_storage a;
	struct file *f;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	struct sock *sk = sock_of(f);
	err = load_addr(t, addr.addr, addrlen, &a);
	if (!err)
		err = sk->ops->bind ? sk->ops->bind(sk, &a, (unsigned)addrlen, &l) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

long sys_listen(struct task *t, int fd, int backlog)
{
	struct file *f;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	struct sock *sk = sock_of(f);
	err = sk->ops->listen ? sk->ops->listen(sk, backlog) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

long sys_connect(struct task *t, int fd, buf_cgp addr, int addrlen)
{
	struct fs_lookup l = lookup_of(t);
	struct sockaddr_storage a;
	struct file *f;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	struct sock *sk = sock_of(f);
	err = load_addr(t, addr.addr, addrlen, &a);
	if (!err)
		err = sk->ops->connect ? sk->ops->connect(sk, &a, (unsigned)addrlen,
							  file_nonblock(f) ? MSG_DONTWAIT : 0, &l)
				       : -EOPNOTSUPP;
	file_put(f);
	return err;
}

/* The peer's name of a fresh connection goes to the guest before it gets a number. */
static int store_peer(struct task *t, struct file *conn, struct gaddr addr, i32_gp addrlen)
{
	struct sockaddr_storage a;
	unsigned len;
	struct sock *sk = sock_of(conn);

	if (gaddr_is_null(addr))
		return 0;
	if (!sk->ops->getname || sk->ops->getname(sk, true, &a, &len) != 0)
		return -ECONNABORTED;
	return store_addr(t, &a, len, addr, addrlen);
}

long sys_accept4(struct task *t, int fd, buf_gp addr, i32_gp addrlen, uint32_t flags)
{
	struct file *f, *conn;

	if (flags & ~(uint32_t)SOCK_FLAGS)
		return -EINVAL;
	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	err = sock_accept(f, file_flags_of((int)flags), &conn);
	file_put(f);
	if (err)
		return err;
	err = store_peer(t, conn, addr.addr, addrlen);
	if (err) {
		file_put(conn);
		return err;
	}
	return install_file(t, conn, flags & SOCK_CLOEXEC);
}

long sys_accept(struct task *t, int fd, buf_gp addr, i32_gp addrlen)
{
	return sys_accept4(t, fd, addr, addrlen, 0);
}

long sys_shutdown(struct task *t, int fd, int how)
{
	struct file *f;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	struct sock *sk = sock_of(f);
	err = sk->ops->shutdown ? sk->ops->shutdown(sk, how) : -EOPNOTSUPP;
	file_put(f);
	return err;
}

static long get_name(struct task *t, int fd, bool peer, struct gaddr addr, i32_gp addrlen)
{
	struct sockaddr_storage a;
	unsigned len;
	struct file *f;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	struct sock *sk = sock_of(f);
	err = sk->ops->getname ? sk->ops->getname(sk, peer, &a, &len) : -EOPNOTSUPP;
	file_put(f);
	return err ? err : store_addr(t, &a, len, addr, addrlen);
}

long sys_getsockname(struct task *t, int fd, buf_gp addr, i32_gp addrlen)
{
	return get_name(t, fd, false, addr.addr, addrlen);
}

long sys_getpeername(struct task *t, int fd, buf_gp addr, i32_gp addrlen)
{
	return get_name(t, fd, true, addr.addr, addrlen);
}

/* ---- options ------------------------------------------------------------------------------ */

long sys_setsockopt(struct task *t, int fd, int level, int optname, buf_cgp optval, int optlen)
{
	struct file *f;

	if (optlen < 0)
		return -EINVAL;
	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	size_t size = MIN((size_t)optlen, (size_t)OPTION_MAX);
	void *val = arena_alloc(&t->scratch, MAX(size, 1u));
	err = val ? 0 : -ENOMEM;
	if (!err && size)
		err = guest_read(t, val, optval.addr, size);
	if (!err)
		err = sock_setsockopt(sock_of(f), level, optname, val, size);
	file_put(f);
	return err;
}

long sys_getsockopt(struct task *t, int fd, int level, int optname, buf_gp optval, i32_gp optlen)
{
	i32_cgp from = { .addr = optlen.addr };
	struct file *f;
	int32_t len;

	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	void *val = arena_alloc(&t->scratch, OPTION_MAX);
	err = val ? guest_load(t, &len, from) : -ENOMEM;
	if (!err && len < 0)
		err = -EINVAL;
	if (!err) {
		len = sock_getsockopt(sock_of(f), level, optname, val,
				      MIN((size_t)len, (size_t)OPTION_MAX));
		err = len < 0 ? len : 0;
	}
	file_put(f);
	if (!err && len)
		err = guest_write(t, optval.addr, val, (size_t)len);
	return err ? err : guest_store(t, optlen, &len);
}

/* ---- sending ------------------------------------------------------------------------------ */

/* sock_send and the signal that goes with -EPIPE. */
static long send_and_signal(struct file *f, struct sock_msg *m)
{
	long ret = sock_send(f, m);

	if (ret == -EPIPE && !(m->flags & MSG_NOSIGNAL) && sock_raises_sigpipe(f))
		fs_hooks->signal_self(SIGPIPE);
	sock_scm_fini(&m->scm);
	return ret;
}

long sys_sendto(struct task *t, int fd, buf_cgp buf, uint64_t len, uint32_t flags, buf_cgp dest,
		int addrlen)
{
	struct fs_lookup l = lookup_of(t);
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags, .lookup = &l };
	struct file *f;

	int err = guest_iter_buf(t, &it, buf.addr, len, IOV_DRAIN);
	if (!err)
		err = socket_get(t, fd, &f);
	if (err)
		return err;
	if (!gaddr_is_null(dest.addr)) {
		err = load_addr(t, dest.addr, addrlen, &m.name);
		m.name_len = (unsigned)addrlen;
	}
	long ret = err ? err : send_and_signal(f, &m);
	file_put(f);
	return ret;
}

/* The parts of a header that both directions check the same way. */
static int check_header(struct msghdr *h)
{
	int namelen = (int)h->msg_namelen;

	if (!h->msg_name)
		namelen = 0;
	if (namelen < 0)
		return -EINVAL;
	h->msg_namelen = (socklen_t)MIN(namelen, (int)sizeof(struct sockaddr_storage));
	return h->msg_iovlen > IOV_MAX_SEGS ? -EMSGSIZE : 0;
}

static struct gaddr pointer(const void *p)
{
	return gaddr((uint64_t)(uintptr_t)p);
}

static int load_control(struct task *t, struct file *f, const struct msghdr *h,
			struct sock_scm *out)
{
	size_t len = h->msg_controllen;

	if (len > INT_MAX)
		return -ENOBUFS;
	if (len == 0)
		return 0;
	if (len > CONTROL_MAX)
		return -ENOBUFS;
	void *buf = mem_alloc(len);
	if (!buf)
		return -ENOBUFS;
	int err = guest_read(t, buf, pointer(h->msg_control), len);
	if (!err)
		err = sock_cmsg_parse(buf, len, t->files, sock_of(f)->family, t->cred, out);
	mem_free(buf);
	return err;
}

static long send_header(struct task *t, struct file *f, struct msghdr *h, uint32_t flags)
{
	struct fs_lookup l = lookup_of(t);
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags, .lookup = &l };
	iovec_cgp iov = { .addr = pointer(h->msg_iov) };

	int err = check_header(h);
	if (!err && h->msg_namelen) {
		err = load_addr(t, pointer(h->msg_name), (int)h->msg_namelen, &m.name);
		m.name_len = h->msg_namelen;
	}
	if (!err)
		err = guest_iter(t, &it, iov, h->msg_iovlen, IOV_DRAIN);
	if (!err)
		err = load_control(t, f, h, &m.scm);
	if (err) {
		sock_scm_fini(&m.scm);
		return err;
	}
	return send_and_signal(f, &m);
}

long sys_sendmsg(struct task *t, int fd, msghdr_cgp msg, uint32_t flags)
{
	struct msghdr h;
	struct file *f;

	if (flags & CMSG_COMPAT)
		return -EINVAL;
	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	long ret = guest_load(t, &h, msg);
	if (!ret)
		ret = send_header(t, f, &h, flags);
	file_put(f);
	return ret;
}

/* The i-th element of a vector of struct mmsghdr, and its msg_len. */
static struct gaddr mmsg_at(mmsghdr_gp v, uint32_t i)
{
	return gaddr(v.addr.va + (uint64_t)i * sizeof(struct mmsghdr));
}

static int store_mmsg_len(struct task *t, mmsghdr_gp v, uint32_t i, long len)
{
	u32_gp to = { .addr = { mmsg_at(v, i).va + offsetof(struct mmsghdr, msg_len) } };
	uint32_t n = (uint32_t)len;

	return guest_store(t, to, &n);
}

long sys_sendmmsg(struct task *t, int fd, mmsghdr_gp msgvec, uint32_t vlen, uint32_t flags)
{
	uint32_t done = 0, count = MIN(vlen, MMSG_MAX);
	struct file *f;

	if (flags & CMSG_COMPAT)
		return -EINVAL;
	long ret = socket_get(t, fd, &f);
	if (ret)
		return ret;
	while (done < count && ret >= 0) {
		struct msghdr h;
		msghdr_cgp from = { .addr = mmsg_at(msgvec, done) };
		ret = guest_load(t, &h, from);
		if (ret == 0)
			ret = send_header(t, f, &h, flags);
		if (ret >= 0)
			ret = store_mmsg_len(t, msgvec, done, ret);
		if (ret == 0)
			done++;
	}
	file_put(f);
	return done ? (long)done : ret;
}

/* ---- receiving ---------------------------------------------------------------------------- */

long sys_recvfrom(struct task *t, int fd, buf_gp buf, uint64_t len, uint32_t flags, buf_gp src,
		  i32_gp addrlen)
{
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags };
	struct file *f;

	int err = guest_iter_buf(t, &it, buf.addr, len, IOV_FILL);
	if (!err)
		err = socket_get(t, fd, &f);
	if (err)
		return err;
	long ret = sock_receive(f, &m);
	sock_scm_fini(&m.scm);
	file_put(f);
	if (ret >= 0 && !gaddr_is_null(src.addr)) {
		err = store_addr(t, &m.name, m.name_len, src.addr, addrlen);
		if (err)
			return err;
	}
	return ret;
}

/* Control data out: descriptors get their numbers here. Stores what fits; *out_len is what was
 * stored. */
static int store_control(struct task *t, const struct msghdr *h, struct sock_msg *m,
			 uint64_t *out_len)
{
	struct cmsg_out o = { .cap = h->msg_control
					     ? MIN(h->msg_controllen, (size_t)CONTROL_OUT_MAX)
					     : 0 };

	*out_len = 0;
	if (!m->scm.has_cred && m->scm.file_count == 0 && m->scm.stamp.tv_sec == 0)
		return 0;
	o.buf = arena_alloc(&t->scratch, CONTROL_OUT_MAX);
	if (!o.buf)
		return -ENOMEM;
	sock_cmsg_write(&o, &m->scm, t->files, m->flags & MSG_CMSG_CLOEXEC);
	if (o.cut)
		m->out_flags |= MSG_CTRUNC;
	*out_len = o.len;
	return o.len ? guest_write(t, pointer(h->msg_control), o.buf, o.len) : 0;
}

/* The fields of the guest's header that a reception changes, in one place. */
static int store_header(struct task *t, struct gaddr at, uint32_t namelen, uint64_t controllen,
			int32_t flags)
{
	u32_gp name = { .addr = { at.va + offsetof(struct msghdr, msg_namelen) } };
	u64_gp control = { .addr = { at.va + offsetof(struct msghdr, msg_controllen) } };
	i32_gp flag = { .addr = { at.va + offsetof(struct msghdr, msg_flags) } };

	int err = guest_store(t, name, &namelen);
	if (!err)
		err = guest_store(t, flag, &flags);
	return err ? err : guest_store(t, control, &controllen);
}

/* *out_flags: MSG_* as told to the guest. */
static long receive_header(struct task *t, struct file *f, struct gaddr at, uint32_t flags,
			   unsigned *out_flags)
{
	struct iov_iter it;
	struct sock_msg m = { .it = &it, .flags = flags };
	msghdr_cgp from = { .addr = at };
	struct msghdr h = { 0 };
	uint64_t controllen;

	int err = guest_load(t, &h, from);
	if (!err)
		err = check_header(&h);
	iovec_cgp iov = { .addr = pointer(h.msg_iov) };
	if (!err)
		err = guest_iter(t, &it, iov, h.msg_iovlen, IOV_FILL);
	if (err)
		return err;
	long ret = sock_receive(f, &m);
	if (ret >= 0) {
		size_t n = MIN((size_t)h.msg_namelen, (size_t)m.name_len);
		if (n)
			err = guest_write(t, pointer(h.msg_name), &m.name, n);
		if (!err)
			err = store_control(t, &h, &m, &controllen);
		if (!err)
			err = store_header(t, at, h.msg_name ? m.name_len : h.msg_namelen,
					   controllen,
					   (int32_t)(m.out_flags | (flags & MSG_CMSG_CLOEXEC)));
		if (err)
			ret = err;
	}
	sock_scm_fini(&m.scm);
	*out_flags = m.out_flags;
	return ret;
}

long sys_recvmsg(struct task *t, int fd, msghdr_gp msg, uint32_t flags)
{
	unsigned out_flags;
	struct file *f;

	if (flags & CMSG_COMPAT)
		return -EINVAL;
	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	long ret = receive_header(t, f, msg.addr, flags, &out_flags);
	file_put(f);
	return ret;
}

/* The loop of recvmmsg; how many, or the first error. */
static long receive_many(struct task *t, struct file *f, mmsghdr_gp v, uint32_t count,
			 uint32_t flags, deadline_t deadline)
{
	uint32_t done = 0;
	long ret = 0;

	while (done < count) {
		unsigned got = 0;
		ret = receive_header(t, f, mmsg_at(v, done), flags & ~(uint32_t)MSG_WAITFORONE,
				     &got);
		if (ret >= 0)
			ret = store_mmsg_len(t, v, done, ret);
		if (ret < 0)
			break;
		done++;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		/* The time-out is looked at after each message only, as on Linux (recvmmsg(2),
		 * BUGS). */
		if ((got & MSG_OOB) || (deadline != DEADLINE_NEVER && mono_now_ns() >= deadline))
			break;
	}
	return done ? (long)done : ret;
}

long sys_recvmmsg(struct task *t, int fd, mmsghdr_gp msgvec, uint32_t vlen, uint32_t flags,
		  timespec_gp timeout)
{
	timespec_cgp from = { .addr = timeout.addr };
	bool timed = !gaddr_is_null(timeout.addr);
	deadline_t deadline = DEADLINE_NEVER;
	struct timespec ts;
	struct file *f;
	uint64_t ns;

	if (timed) {
		if (guest_load(t, &ts, from) != 0)
			return -EFAULT;
		if (timespec_to_ns(&ts, &ns) != 0)
			return -EINVAL;
		deadline = deadline_after_ns(ns);
	}
	if (flags & CMSG_COMPAT)
		return -EINVAL;
	int err = socket_get(t, fd, &f);
	if (err)
		return err;
	long ret = receive_many(t, f, msgvec, MIN(vlen, MMSG_MAX), flags, deadline);
	file_put(f);
	if (ret > 0 && timed) {
		uint64_t now = mono_now_ns();
		ts = ns_to_timespec(deadline > now ? deadline - now : 0);
		if (guest_store(t, timeout, &ts) != 0)
			return -EFAULT;
	}
	return ret;
}

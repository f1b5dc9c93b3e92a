/*
 * The file side of sockets: creation, read and write as messages without address, poll, ioctl. What
 * a message or a connection is belongs to the families.
 */
#include "fs/sock.h"

#include <errno.h>
#include <sys/ioctl.h>

#include "fs/hooks.h"
#include "fs/sock_unix.h"
#include "platform/base/alloc.h"

#define FAMILIES_MAX 8

struct sock_file {
	struct file file;
	struct sock *sk; /* [I] referenced */
};

static const struct file_ops sock_file_ops;
static const struct sock_family *families[FAMILIES_MAX] = { &unix_family };

static void sock_free(struct sock *sk)
{
	sk->ops->free(sk);
}

DEFINE_REF(sock);

void sock_register_family(const struct sock_family *fam)
{
	for (size_t i = 0; i < FAMILIES_MAX; i++)
		if (!families[i]) {
			families[i] = fam;
			return;
		}
	BUG("too many socket families");
}

void sock_init(struct sock *sk, const struct sock_ops *ops, int family, int type, int protocol)
{
	static atomic_ullong last_cookie;

	ref_init(&sk->ref);
	sk->ops = ops;
	sk->family = family;
	sk->type = type;
	sk->protocol = protocol;
	mutex_init(&sk->mu, RANK_SOCK);
	waitq_init(&sk->wait);
	atomic_init(&sk->sndbuf, SOCK_BUF_DEFAULT);
	atomic_init(&sk->rcvbuf, SOCK_BUF_DEFAULT);
	atomic_init(&sk->rcvlowat, 1);
	sk->rcvtimeo = sk->sndtimeo = SOCK_FOREVER;
	sk->cookie = atomic_fetch_add(&last_cookie, 1) + 1;
	sk->peer = (struct ucred){ .pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1 };
}

void sock_fini(struct sock *sk)
{
	cred_put(sk->peer_cred);
	waitq_fini(&sk->wait);
	mutex_fini(&sk->mu);
}

void sock_scm_fini(struct sock_scm *scm)
{
	for (unsigned i = 0; i < scm->file_count; i++)
		file_put(scm->files[i]);
	mem_free(scm->files);
	scm->files = NULL;
	scm->file_count = 0;
}

struct sock *sock_of(struct file *f)
{
	if (f->ops != &sock_file_ops || (file_flags(f) & O_PATH))
		return NULL;
	return container_of(f, struct sock_file, file)->sk;
}

bool sock_raises_sigpipe(struct file *f)
{
	struct sock *sk = sock_of(f);
	return !sk || sk->type == SOCK_STREAM;
}

/* ---- waiting ------------------------------------------------------------------------------ */

deadline_t sock_deadline_locked(struct sock *sk, unsigned flags, bool receiving)
{
	uint64_t ns = receiving ? sk->rcvtimeo : sk->sndtimeo;

	if (flags & MSG_DONTWAIT)
		return 0;
	return ns == SOCK_FOREVER ? DEADLINE_NEVER : deadline_after_ns(ns);
}

int sock_wait(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline, bool exclusive)
	NO_LOCK_ANALYSIS /* the caller holds mu */
{
	if (deadline == 0)
		return -EAGAIN;
	int err = exclusive ? waitq_wait_exclusive(q, mu, mask, deadline)
			    : waitq_wait(q, mu, mask, deadline);
	if (err == -ETIMEDOUT)
		return -EAGAIN;
	/* A call with a time-out is not restarted: the time would begin anew (signal(7)). */
	if (err == -ERESTARTSYS && deadline != DEADLINE_NEVER)
		return -EINTR;
	return err;
}

int sock_take_error_locked(struct sock *sk)
{
	int err = sk->err;

	sk->err = 0;
	return -err;
}

void sock_set_peer_locked(struct sock *sk, const struct ucred *u, const struct cred *c)
{
	struct cred *old = sk->peer_cred;

	sk->peer = *u;
	/* Counting a reference is the one change that a shared cred allows. */
	sk->peer_cred = c ? cred_get((struct cred *)(uintptr_t)c) : NULL;
	cred_put(old);
}

/* ---- creation ----------------------------------------------------------------------------- */

/* Wraps sk (takes the reference on success) into a file. */
static int sock_file_new(struct sock *sk, unsigned flags, struct file **out)
{
	const struct cred *c = fs_hooks ? fs_hooks->current_cred() : NULL;
	struct inode *ino;

	struct sock_file *sf = mem_zalloc(sizeof(*sf));
	if (!sf)
		return -ENOMEM;
	int err = anon_inode_new(S_IFSOCK | 0777, c, &ino);
	if (err) {
		mem_free(sf);
		return err;
	}
	file_init(&sf->file, &sock_file_ops, ino, O_RDWR | (flags & O_NONBLOCK));
	sf->sk = sk;
	mutex_lock(&sk->mu);
	sk->file = &sf->file;
	mutex_unlock(&sk->mu);
	*out = &sf->file;
	return 0;
}

static int sock_new(int family, int type, int protocol, struct sock **out)
{
	if (family < 0 || family >= AF_MAX)
		return -EAFNOSUPPORT;
	if (type < 0 || type > SOCK_PACKET)
		return -EINVAL;
	for (size_t i = 0; i < FAMILIES_MAX && families[i]; i++)
		if (families[i]->family == family)
			return families[i]->create(type, protocol, out);
	return -EAFNOSUPPORT;
}

int sock_create(int family, int type, int protocol, unsigned flags, struct file **out)
{
	struct sock *sk;

	int err = sock_new(family, type, protocol, &sk);
	if (err)
		return err;
	err = sock_file_new(sk, flags, out);
	if (err)
		sk->ops->close(sk);
	return err;
}

int sock_create_pair(int family, int type, int protocol, unsigned flags, struct file **out_a,
		     struct file **out_b)
{
	struct file *fa, *fb;

	int err = sock_create(family, type, protocol, flags, &fa);
	if (err)
		return err;
	err = sock_create(family, type, protocol, flags, &fb);
	if (err)
		goto out_put_a;
	struct sock *a = sock_of(fa);
	err = a->ops->pair ? a->ops->pair(a, sock_of(fb)) : -EOPNOTSUPP;
	if (err)
		goto out_put_b;
	*out_a = fa;
	*out_b = fb;
	return 0;

out_put_b:
	file_put(fb);
out_put_a:
	file_put(fa);
	return err;
}

int sock_accept(struct file *f, unsigned flags, struct file **out)
{
	struct sock *sk = sock_of(f), *conn;

	if (!sk)
		return -ENOTSOCK;
	if (!sk->ops->accept)
		return -EOPNOTSUPP;
	int err = sk->ops->accept(sk, file_nonblock(f) ? MSG_DONTWAIT : 0, &conn);
	if (err)
		return err;
	err = sock_file_new(conn, flags, out);
	if (err)
		conn->ops->close(conn);
	return err;
}

/* ---- the file operations ------------------------------------------------------------------ */

ssize_t sock_send(struct file *f, struct sock_msg *m)
{
	struct sock *sk = sock_of(f);

	if (!sk)
		return -ENOTSOCK;
	if (file_nonblock(f))
		m->flags |= MSG_DONTWAIT;
	return sk->ops->sendmsg ? sk->ops->sendmsg(sk, m) : -EOPNOTSUPP;
}

ssize_t sock_receive(struct file *f, struct sock_msg *m)
{
	struct sock *sk = sock_of(f);

	if (!sk)
		return -ENOTSOCK;
	if (file_nonblock(f))
		m->flags |= MSG_DONTWAIT;
	m->out_flags = 0;
	m->name_len = 0;
	return sk->ops->recvmsg ? sk->ops->recvmsg(sk, m) : -EOPNOTSUPP;
}

static ssize_t sock_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct sock_msg m = { .it = it };

	if (it->count == 0)
		return 0;
	ssize_t ret = sock_receive(f, &m);
	sock_scm_fini(&m.scm);
	return ret;
}

static ssize_t sock_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct sock_msg m = { .it = it };

	return sock_send(f, &m);
}

static uint32_t sock_poll(struct file *f, struct poll_table *pt)
{
	struct sock *sk = container_of(f, struct sock_file, file)->sk;
	return sk->ops->poll(sk, pt);
}

static long sock_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct sock *sk = container_of(f, struct sock_file, file)->sk;
	return sk->ops->ioctl ? sk->ops->ioctl(sk, cmd, arg, um) : -ENOTTY;
}

static void sock_release(struct file *f)
{
	struct sock_file *sf = container_of(f, struct sock_file, file);
	struct sock *sk = sf->sk;

	mutex_lock(&sk->mu);
	sk->file = NULL;
	mutex_unlock(&sk->mu);
	sk->ops->close(sk);
	mem_free(sf);
}

static void sock_describe(struct file *f, struct fmt *out)
{
	fmt_printf(out, "socket:[%llu]", (unsigned long long)f->inode->ino);
}

static const struct file_ops sock_file_ops = {
	.read = sock_read,
	.write = sock_write,
	.poll = sock_poll,
	.ioctl = sock_ioctl,
	.release = sock_release,
	.describe = sock_describe,
};

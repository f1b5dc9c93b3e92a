/*
 * Socket options of level SOL_SOCKET, from the table fs/sockopt.def. Other levels belong to the
 * families.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/time.h>

#include "fs/hooks.h"
#include "fs/sock.h"

#define NSEC_PER_SEC 1000000000u
#define SO_PRIORITY_FREE_MAX 6 /* higher ones need CAP_NET_ADMIN (socket(7)) */

struct sockopt {
	int number;
	int (*get)(struct sock *sk, long arg, void *val, size_t cap);
	int (*set)(struct sock *sk, long arg, const void *val, size_t len);
	long arg;
};

static bool caller_capable(int cap)
{
	const struct cred *c = fs_hooks ? fs_hooks->current_cred() : NULL;
	return c && cred_capable(c, cap);
}

/* Stores at most what fits, as getsockopt(2) does. */
static int put_bytes(void *val, size_t cap, const void *src, size_t n)
{
	n = MIN(n, cap);
	memcpy(val, src, n);
	return (int)n;
}

static int put_int(void *val, size_t cap, int v)
{
	return put_bytes(val, cap, &v, sizeof(v));
}

/* The setters are called with len >= sizeof(int). */
static int first_int(const void *val)
{
	int v;

	memcpy(&v, val, sizeof(v));
	return v;
}

static void *member(struct sock *sk, long offset)
{
	return (char *)sk + offset;
}

/* ---- fixed answers ------------------------------------------------------------------------ */

static int get_fixed(struct sock *sk UNUSED, long arg, void *val, size_t cap)
{
	return put_int(val, cap, (int)arg);
}

static int get_nothing(struct sock *sk UNUSED, long arg UNUSED, void *val UNUSED, size_t cap UNUSED)
{
	return 0;
}

static int get_refused(struct sock *sk UNUSED, long arg UNUSED, void *val UNUSED, size_t cap UNUSED)
{
	return -ENOPROTOOPT;
}

static int set_refused(struct sock *sk UNUSED, long arg UNUSED, const void *val UNUSED,
		       size_t len UNUSED)
{
	return -ENOPROTOOPT;
}

static int set_unsupported(struct sock *sk UNUSED, long arg UNUSED, const void *val UNUSED,
			   size_t len UNUSED)
{
	return -EOPNOTSUPP;
}

static int set_ignored(struct sock *sk UNUSED, long arg UNUSED, const void *val UNUSED,
		       size_t len UNUSED)
{
	return 0;
}

static int set_busy_poll(struct sock *sk UNUSED, long arg UNUSED, const void *val,
			 size_t len UNUSED)
{
	int v = first_int(val);

	if (v < 0)
		return -EINVAL;
	return v > 0 && !caller_capable(CAP_NET_ADMIN) ? -EPERM : 0;
}

/* ---- flags and words ---------------------------------------------------------------------- */

static int get_flag(struct sock *sk, long arg, void *val, size_t cap)
{
	return put_int(val, cap, sock_has(sk, (enum sock_flag)arg) ? 1 : 0);
}

static int set_flag(struct sock *sk, long arg, const void *val, size_t len UNUSED)
{
	if (first_int(val))
		atomic_fetch_or(&sk->flags, (unsigned)arg);
	else
		atomic_fetch_and(&sk->flags, ~(unsigned)arg);
	return 0;
}

static int set_flag_admin(struct sock *sk, long arg, const void *val, size_t len)
{
	if (first_int(val) && !caller_capable(CAP_NET_ADMIN))
		return -EACCES;
	return set_flag(sk, arg, val, len);
}

static int set_flag_unix(struct sock *sk, long arg, const void *val, size_t len)
{
	return sk->family == AF_UNIX ? set_flag(sk, arg, val, len) : -EOPNOTSUPP;
}

/* For members of type int or atomic_int. */
static int get_int(struct sock *sk, long arg, void *val, size_t cap)
{
	atomic_int *p = member(sk, arg);
	return put_int(val, cap, atomic_load_explicit(p, memory_order_relaxed));
}

static int set_priority(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	int v = first_int(val);

	if ((v < 0 || v > SO_PRIORITY_FREE_MAX) && !caller_capable(CAP_NET_ADMIN))
		return -EPERM;
	atomic_store(&sk->priority, v);
	return 0;
}

static int set_mark(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	if (!caller_capable(CAP_NET_ADMIN))
		return -EPERM;
	atomic_store(&sk->mark, first_int(val));
	return 0;
}

/* The kernel doubles what is asked for, to make room for its own book-keeping (socket(7)). */
static int set_buf(struct sock *sk, atomic_int *buf, int v, int max, int min)
{
	atomic_store(buf, MAX(MIN(MAX(v, 0), max) * 2, min));
	waitq_wake(&sk->wait, POLLOUT | POLLWRNORM);
	return 0;
}

static int set_sndbuf(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	int v = first_int(val);
	/* A negative size counts as a huge one, as in the kernel's unsigned comparison. */
	return set_buf(sk, &sk->sndbuf, v < 0 ? SOCK_BUF_MAX : v, SOCK_BUF_MAX, SOCK_SNDBUF_MIN);
}

static int set_rcvbuf(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	int v = first_int(val);
	return set_buf(sk, &sk->rcvbuf, v < 0 ? SOCK_BUF_MAX : v, SOCK_BUF_MAX, SOCK_RCVBUF_MIN);
}

/* LINUX: unlimited for the privileged; our limit on one message's memory stays. */
#define SOCK_BUF_FORCE_MAX (4 << 20)

static int set_sndbuf_force(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	if (!caller_capable(CAP_NET_ADMIN))
		return -EPERM;
	return set_buf(sk, &sk->sndbuf, first_int(val), SOCK_BUF_FORCE_MAX, SOCK_SNDBUF_MIN);
}

static int set_rcvbuf_force(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	if (!caller_capable(CAP_NET_ADMIN))
		return -EPERM;
	return set_buf(sk, &sk->rcvbuf, first_int(val), SOCK_BUF_FORCE_MAX, SOCK_RCVBUF_MIN);
}

static int set_rcvlowat(struct sock *sk, long arg UNUSED, const void *val, size_t len UNUSED)
{
	int v = first_int(val);

	/* 0 counts as 1, a negative number as no limit. */
	atomic_store(&sk->rcvlowat, v < 0 ? INT32_MAX : MAX(v, 1));
	return 0;
}

/* ---- structs ------------------------------------------------------------------------------ */

static int get_type(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	return put_int(val, cap, sk->type);
}

static int get_domain(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	return put_int(val, cap, sk->family);
}

static int get_protocol(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	return put_int(val, cap, sk->protocol);
}

static int get_error(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	mutex_lock(&sk->mu);
	int err = -sock_take_error_locked(sk);
	mutex_unlock(&sk->mu);
	return put_int(val, cap, err);
}

static int get_listening(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	mutex_lock(&sk->mu);
	bool listening = sk->listening;
	mutex_unlock(&sk->mu);
	return put_int(val, cap, listening);
}

static int get_linger(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	mutex_lock(&sk->mu);
	struct linger l = { .l_onoff = sk->linger_on, .l_linger = sk->linger_s };
	mutex_unlock(&sk->mu);
	return put_bytes(val, cap, &l, sizeof(l));
}

static int set_linger(struct sock *sk, long arg UNUSED, const void *val, size_t len)
{
	struct linger l;

	if (len < sizeof(l))
		return -EINVAL;
	memcpy(&l, val, sizeof(l));
	mutex_lock(&sk->mu);
	sk->linger_on = l.l_onoff != 0;
	if (sk->linger_on)
		sk->linger_s = l.l_linger;
	mutex_unlock(&sk->mu);
	return 0;
}

static int get_timeo(struct sock *sk, long arg, void *val, size_t cap)
{
	const uint64_t *p = member(sk, arg);
	struct timeval tv = { 0, 0 };

	mutex_lock(&sk->mu);
	if (*p != SOCK_FOREVER)
		tv = (struct timeval){ .tv_sec = (time_t)(*p / NSEC_PER_SEC),
				       .tv_usec = (suseconds_t)(*p % NSEC_PER_SEC / 1000) };
	mutex_unlock(&sk->mu);
	return put_bytes(val, cap, &tv, sizeof(tv));
}

static int set_timeo(struct sock *sk, long arg, const void *val, size_t len)
{
	uint64_t *p = member(sk, arg), ns;
	struct timeval tv;

	if (len < sizeof(tv))
		return -EINVAL;
	memcpy(&tv, val, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return -EDOM;
	if (tv.tv_sec < 0)
		ns = 0; /* never wait: sock_set_timeout of the kernel */
	else if ((tv.tv_sec == 0 && tv.tv_usec == 0) ||
		 (uint64_t)tv.tv_sec >= SOCK_FOREVER / NSEC_PER_SEC - 1)
		ns = SOCK_FOREVER;
	else
		ns = (uint64_t)tv.tv_sec * NSEC_PER_SEC + (uint64_t)tv.tv_usec * 1000;
	mutex_lock(&sk->mu);
	*p = ns;
	mutex_unlock(&sk->mu);
	return 0;
}

static int get_cookie(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	return cap < sizeof(sk->cookie) ? -EINVAL
					: put_bytes(val, cap, &sk->cookie, sizeof(sk->cookie));
}

static int get_peercred(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	mutex_lock(&sk->mu);
	struct ucred u = sk->peer;
	mutex_unlock(&sk->mu);
	return put_bytes(val, cap, &u, sizeof(u));
}

static int get_peergroups(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	int ret = -ENODATA;

	mutex_lock(&sk->mu);
	if (sk->peer_cred) {
		size_t size = sk->peer_cred->group_count * sizeof(uint32_t);
		ret = cap < size ? -ERANGE : (int)size;
		if (ret > 0)
			memcpy(val, sk->peer_cred->groups, size);
	}
	mutex_unlock(&sk->mu);
	return ret;
}

static int get_peername(struct sock *sk, long arg UNUSED, void *val, size_t cap)
{
	struct sockaddr_storage a;
	unsigned len;

	int err = sk->ops->getname ? sk->ops->getname(sk, true, &a, &len) : -ENOTCONN;
	if (err)
		return -ENOTCONN;
	return len < cap ? -EINVAL : put_bytes(val, cap, &a, len);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct sockopt options[] = {
#define SOCKOPT(name, number, getter, setter, arg, note) { number, getter, setter, (long)(arg) },
#include "fs/sockopt.def"
#undef SOCKOPT
};

static const struct sockopt *option_find(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].number == number)
			return &options[i];
	return NULL;
}

int sock_setsockopt(struct sock *sk, int level, int name, const void *val, size_t len)
{
	if (level != SOL_SOCKET)
		return sk->ops->setsockopt ? sk->ops->setsockopt(sk, level, name, val, len)
					   : -EOPNOTSUPP;
	if (len < sizeof(int))
		return -EINVAL;
	const struct sockopt *o = option_find(name);
	return o ? o->set(sk, o->arg, val, len) : -ENOPROTOOPT;
}

int sock_getsockopt(struct sock *sk, int level, int name, void *val, size_t cap)
{
	if (level != SOL_SOCKET)
		return sk->ops->getsockopt ? sk->ops->getsockopt(sk, level, name, val, cap)
					   : -EOPNOTSUPP;
	const struct sockopt *o = option_find(name);
	return o ? o->get(sk, o->arg, val, cap) : -ENOPROTOOPT;
}

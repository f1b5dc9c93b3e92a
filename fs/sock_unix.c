/*
 * AF_UNIX sockets: life, connections, options. Names are in unix_name.c, messages in unix_io.c,
 *descriptors in flight in unix_gc.c.
 *
 *	state         peer            how it got there
 *	CLOSED        NULL or, dgram, where sends go by default
 *	LISTENING     NULL            listen(2); accept_queue holds the sockets that connect(2) made
 *	CONNECTED     the other end   connect, accept, socketpair
 *
 * connect(2) on a stream makes the server's end at once (an embryo in the accept queue): the client
 *may write before anybody accepts. When one end closes, the other keeps its peer pointer (its name
 *and credentials can still be asked for), is shut down in both directions, and gets ECONNRESET if
 *it lost data.
 *
 * Locks: a pair of sockets is locked only to connect them (lower address first); a listener before
 *its embryos; a sender holds the receiver's lock alone.
 */
#include "fs/sock_unix.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "fs/hooks.h"
#include "fs/unix_priv.h"
#include "platform/base/alloc.h"

static const struct sock_ops unix_ops;
static struct mutex all_mu = MUTEX_INIT(RANK_TTY);       /* before a socket's mu */
static struct list all_sockets = LIST_INIT(all_sockets); /* [all_mu] of unix_sock.all_link */
static struct mutex pollers_mu = MUTEX_INIT(RANK_HASH);

/* ---- small parts -------------------------------------------------------------------------- */

bool unix_is_writable(struct unix_sock *u)
{
	return atomic_load(&u->wmem) * 4 <= (size_t)atomic_load(&u->sk.sndbuf);
}

struct unix_sock *unix_peer_get(struct unix_sock *u)
{
	mutex_lock(&u->sk.mu);
	struct unix_sock *peer = u->peer ? unix_get(u->peer) : NULL;
	mutex_unlock(&u->sk.mu);
	return peer;
}

void unix_add_poller(struct unix_sock *peer, struct unix_sock *u)
{
	mutex_lock(&pollers_mu);
	list_del_init(&u->poll_link);
	list_add_tail(&peer->pollers, &u->poll_link);
	atomic_store(&peer->has_pollers, true);
	mutex_unlock(&pollers_mu);
}

void unix_remove_poller(struct unix_sock *u)
{
	mutex_lock(&pollers_mu);
	list_del_init(&u->poll_link);
	mutex_unlock(&pollers_mu);
}

void unix_wake_pollers(struct unix_sock *u)
{
	struct list todo;

	if (!atomic_exchange(&u->has_pollers, false))
		return;
	list_init(&todo);
	mutex_lock(&pollers_mu);
	list_splice_tail(&todo, &u->pollers);
	while (!list_empty(&todo)) {
		struct unix_sock *p = list_first(&todo, struct unix_sock, poll_link);
		list_del_init(&p->poll_link);
		unix_get(p);
		mutex_unlock(&pollers_mu);
		waitq_wake(&p->sk.wait, UNIX_OUT);
		unix_put(p);
		mutex_lock(&pollers_mu);
	}
	mutex_unlock(&pollers_mu);
}

/* The caller's identity, as SO_PEERCRED of the other end shows it. */
static struct ucred caller_ucred(const struct cred **out_cred)
{
	const struct cred *c = fs_hooks ? fs_hooks->current_cred() : NULL;

	*out_cred = c;
	if (!c)
		return (struct ucred){ .pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	return (struct ucred){ .pid = fs_hooks->current_tgid(), .uid = c->euid, .gid = c->egid };
}

static void set_peer_to_caller_locked(struct unix_sock *u)
{
	const struct cred *c;
	struct ucred id = caller_ucred(&c);

	sock_set_peer_locked(&u->sk, &id, c);
}

/* ---- life --------------------------------------------------------------------------------- */

struct unix_sock *unix_sock_new(int type)
{
	struct unix_sock *u = mem_zalloc(sizeof(*u));
	if (!u)
		return NULL;
	sock_init(&u->sk, &unix_ops, AF_UNIX, type, 0);
	list_init(&u->name_link);
	list_init(&u->rx);
	list_init(&u->accept_queue);
	list_init(&u->accept_link);
	list_init(&u->pollers);
	list_init(&u->poll_link);
	list_init(&u->flight_link);
	list_init(&u->gc_link);
	waitq_init(&u->room);
	u->backlog = UNIX_DGRAM_QUEUE;
	mutex_lock(&all_mu);
	list_add_tail(&all_sockets, &u->all_link);
	mutex_unlock(&all_mu);
	return u;
}

static int unix_create(int type, int protocol, struct sock **out)
{
	if (protocol != 0 && protocol != PF_UNIX)
		return -EPROTONOSUPPORT;
	if (type == SOCK_RAW) /* as BSD did, says the kernel */
		type = SOCK_DGRAM;
	if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	struct unix_sock *u = unix_sock_new(type);
	if (!u)
		return -ENOMEM;
	*out = &u->sk;
	return 0;
}

/* No reference is left; queues were emptied at the end. */
static void unix_free(struct sock *sk)
{
	struct unix_sock *u = to_unix(sk);

	BUG_ON(!list_empty(&u->rx) || !list_empty(&u->accept_queue) || u->in_flight);
	unix_addr_put(u->addr);
	waitq_fini(&u->room);
	sock_fini(sk);
	mem_free(u);
}

/* Tells the other end of a connection that we are gone. */
static void end_peer(struct unix_sock *peer, bool lost_data)
{
	mutex_lock(&peer->sk.mu);
	peer->sk.shut = SOCK_SHUT_BOTH;
	if (lost_data)
		peer->sk.err = ECONNRESET;
	mutex_unlock(&peer->sk.mu);
	waitq_wake_all(&peer->sk.wait, UNIX_ALL);
}

static struct unix_sock *pop_embryo_locked(struct unix_sock *u)
{
	if (list_empty(&u->accept_queue))
		return NULL;
	struct unix_sock *e = list_first(&u->accept_queue, struct unix_sock, accept_link);
	list_del_init(&e->accept_link);
	u->accept_count--;
	return e;
}

void unix_sock_end(struct unix_sock *u, bool embryo)
{
	struct unix_sock *e;
	struct list rx;

	unix_unname(u);
	list_init(&rx);
	mutex_lock(&u->sk.mu);
	bool lost_data = embryo || !list_empty(&u->rx);
	u->dead = true;
	u->sk.shut = SOCK_SHUT_BOTH;
	u->sk.listening = false;
	u->state = UNIX_CLOSED;
	struct unix_sock *peer = u->peer;
	u->peer = NULL;
	list_splice_tail(&rx, &u->rx);
	u->rx_count = 0;
	u->rx_bytes = 0;
	mutex_unlock(&u->sk.mu);
	waitq_wake_all(&u->sk.wait, UNIX_ALL);
	waitq_wake_all(&u->room, UNIX_ALL);
	unix_wake_pollers(u);
	unix_remove_poller(u);
	if (peer && unix_is_stream_like(u))
		end_peer(peer, lost_data);
	unix_put(peer);
	unix_free_messages(&rx);
	for (;;) {
		mutex_lock(&u->sk.mu);
		e = pop_embryo_locked(u);
		mutex_unlock(&u->sk.mu);
		if (!e)
			break;
		unix_sock_end(e, true);
	}
	mutex_lock(&all_mu);
	list_del_init(&u->all_link);
	mutex_unlock(&all_mu);
	unix_put(u);
	if (!embryo)
		unix_gc();
}

static void unix_close(struct sock *sk)
{
	unix_sock_end(to_unix(sk), false);
}

/* ---- connections -------------------------------------------------------------------------- */

static int unix_pair(struct sock *a, struct sock *b)
{
	struct unix_sock *ua = to_unix(a), *ub = to_unix(b);

	mutex_lock_pair(&a->mu, &b->mu);
	ua->peer = unix_get(ub);
	ub->peer = unix_get(ua);
	ua->state = ub->state = UNIX_CONNECTED;
	set_peer_to_caller_locked(ua);
	set_peer_to_caller_locked(ub);
	mutex_unlock_pair(&a->mu, &b->mu);
	return 0;
}

static int unix_listen(struct sock *sk, int backlog)
{
	struct unix_sock *u = to_unix(sk);
	int err = 0;

	if (!unix_is_stream_like(u))
		return -EOPNOTSUPP;
	mutex_lock(&sk->mu);
	if (!u->addr || u->state == UNIX_CONNECTED) {
		err = -EINVAL;
	} else {
		/* A negative backlog is a large one: the kernel compares unsigned. */
		u->backlog = MIN((unsigned)backlog, (unsigned)SOCK_SOMAXCONN);
		u->state = UNIX_LISTENING;
		sk->listening = true;
		set_peer_to_caller_locked(u);
	}
	mutex_unlock(&sk->mu);
	if (!err)
		waitq_wake_all(&u->room, UNIX_OUT);
	return err;
}

static int unix_accept(struct sock *sk, unsigned flags, struct sock **out)
{
	struct unix_sock *u = to_unix(sk), *e = NULL;
	int err = 0;

	if (!unix_is_stream_like(u))
		return -EOPNOTSUPP;
	mutex_lock(&sk->mu);
	deadline_t deadline = sock_deadline_locked(sk, flags, true);
	while (!err) {
		if (u->state != UNIX_LISTENING || (sk->shut & SOCK_SHUT_RCV))
			err = -EINVAL;
		else if ((e = pop_embryo_locked(u)) != NULL)
			break;
		else
			err = sock_wait(&sk->wait, &sk->mu, UNIX_IN, deadline, true);
	}
	mutex_unlock(&sk->mu);
	if (err)
		return err;
	waitq_wake(&u->room, UNIX_OUT);
	*out = &e->sk;
	return 0;
}

/* Is a connection to `listener` possible now? Waits for a place in its queue. */
static int wait_listener_locked(struct unix_sock *listener, deadline_t deadline)
{
	for (;;) {
		if (listener->dead || listener->state != UNIX_LISTENING ||
		    (listener->sk.shut & SOCK_SHUT_RCV))
			return -ECONNREFUSED;
		if (listener->accept_count <= listener->backlog)
			return 0;
		int err = sock_wait(&listener->room, &listener->sk.mu, UNIX_OUT, deadline, false);
		if (err)
			return err;
	}
}

/* Ties u to the fresh socket e, which nobody else knows yet. The listener's identity is copied
 * first: u's lock inside the listener's would need an order among strangers. */
static int join_client(struct unix_sock *u, struct unix_sock *e, struct unix_sock *listener)
{
	int err = 0;

	mutex_lock(&listener->sk.mu);
	struct ucred id = listener->sk.peer;
	struct cred *c = listener->sk.peer_cred ? cred_get(listener->sk.peer_cred) : NULL;
	mutex_unlock(&listener->sk.mu);
	mutex_lock(&u->sk.mu);
	if (u->state == UNIX_CONNECTED)
		err = -EISCONN;
	else if (u->state != UNIX_CLOSED || u->dead)
		err = -EINVAL;
	if (!err) {
		u->peer = unix_get(e);
		u->state = UNIX_CONNECTED;
		sock_set_peer_locked(&u->sk, &id, c);
	}
	mutex_unlock(&u->sk.mu);
	cred_put(c);
	return err;
}

/* Undoes join_client when the listener went away in between. */
static void part_client(struct unix_sock *u)
{
	mutex_lock(&u->sk.mu);
	struct unix_sock *e = u->peer;
	u->peer = NULL;
	u->state = UNIX_CLOSED;
	mutex_unlock(&u->sk.mu);
	unix_put(e);
}

/* Puts e into the queue; waits for a place. */
static int enqueue_embryo(struct unix_sock *listener, struct unix_sock *e, deadline_t deadline)
{
	mutex_lock(&listener->sk.mu);
	int err = wait_listener_locked(listener, deadline);
	if (!err) {
		list_add_tail(&listener->accept_queue, &e->accept_link);
		listener->accept_count++;
	}
	mutex_unlock(&listener->sk.mu);
	if (!err)
		waitq_wake(&listener->sk.wait, UNIX_IN);
	return err;
}

/* The server's end of a connection from u. */
static struct unix_sock *embryo_new(struct unix_sock *listener, struct unix_sock *u)
{
	struct unix_sock *e = unix_sock_new(u->sk.type);
	if (!e)
		return NULL;
	mutex_lock(&listener->sk.mu);
	e->addr = listener->addr ? unix_addr_get(listener->addr) : NULL;
	mutex_unlock(&listener->sk.mu);
	mutex_lock(&e->sk.mu);
	e->peer = unix_get(u);
	e->state = UNIX_CONNECTED;
	set_peer_to_caller_locked(e);
	mutex_unlock(&e->sk.mu);
	return e;
}

/* Checks what connect(2) checks before it waits. */
static int stream_can_connect(struct unix_sock *u, struct unix_sock *listener, deadline_t deadline)
{
	mutex_lock(&listener->sk.mu);
	int err = wait_listener_locked(listener, deadline);
	mutex_unlock(&listener->sk.mu);
	if (err)
		return err;
	mutex_lock(&u->sk.mu);
	if (u->state == UNIX_CONNECTED)
		err = -EISCONN;
	else if (u->state != UNIX_CLOSED)
		err = -EINVAL;
	mutex_unlock(&u->sk.mu);
	return err;
}

static int stream_connect(struct unix_sock *u, const struct sockaddr_storage *a, unsigned len,
			  unsigned flags, const struct fs_lookup *l)
{
	struct unix_sock *listener;

	int err = unix_check_addr(a, len);
	if (!err && sock_has(&u->sk, SOCK_F_PASSCRED))
		err = unix_autobind(u);
	if (!err)
		err = unix_find(a, len, u->sk.type, l, &listener);
	if (err)
		return err;
	mutex_lock(&u->sk.mu);
	deadline_t deadline = sock_deadline_locked(&u->sk, flags, false);
	mutex_unlock(&u->sk.mu);
	err = stream_can_connect(u, listener, deadline);
	if (err)
		goto out_listener;
	struct unix_sock *e = embryo_new(listener, u);
	if (!e) {
		err = -ENOMEM;
		goto out_listener;
	}
	err = join_client(u, e, listener);
	if (!err) {
		err = enqueue_embryo(listener, e, deadline);
		if (err)
			part_client(u);
	}
	if (err) {
		/* Nobody saw e: it must not reset u. */
		mutex_lock(&e->sk.mu);
		struct unix_sock *back = e->peer;
		e->peer = NULL;
		mutex_unlock(&e->sk.mu);
		unix_put(back);
		unix_sock_end(e, true);
	} else {
		waitq_wake_all(&u->sk.wait, UNIX_OUT);
	}
out_listener:
	unix_put(listener);
	return err;
}

/* A datagram socket's default destination goes away: what came from it is dropped, and it is told.
 */
static void dgram_disconnected(struct unix_sock *u, struct unix_sock *old)
{
	struct list rx;

	list_init(&rx);
	mutex_lock(&u->sk.mu);
	list_splice_tail(&rx, &u->rx);
	u->rx_count = 0;
	u->rx_bytes = 0;
	mutex_unlock(&u->sk.mu);
	waitq_wake_all(&u->room, UNIX_OUT);
	unix_wake_pollers(u);
	mutex_lock(&old->sk.mu);
	bool tell = !old->dead && old->peer == u;
	if (tell)
		old->sk.err = ECONNRESET;
	mutex_unlock(&old->sk.mu);
	if (tell)
		waitq_wake_all(&old->sk.wait, UNIX_ALL);
	unix_free_messages(&rx);
}

static int dgram_connect(struct unix_sock *u, const struct sockaddr_storage *a, unsigned len,
			 const struct fs_lookup *l)
{
	struct unix_sock *other = NULL;
	int err = 0;

	if (a->ss_family != AF_UNSPEC) {
		err = unix_check_addr(a, len);
		if (!err && sock_has(&u->sk, SOCK_F_PASSCRED))
			err = unix_autobind(u);
		if (!err)
			err = unix_find(a, len, u->sk.type, l, &other);
	}
	if (err)
		return err;
	if (other) {
		mutex_lock(&other->sk.mu);
		if (other->peer && other->peer != u)
			err = -EPERM;
		mutex_unlock(&other->sk.mu);
		if (err) {
			unix_put(other);
			return err;
		}
	}
	mutex_lock(&u->sk.mu);
	struct unix_sock *old = u->peer;
	u->peer = other;
	u->state = other ? UNIX_CONNECTED : UNIX_CLOSED;
	mutex_unlock(&u->sk.mu);
	unix_remove_poller(u);
	if (old && old != other)
		dgram_disconnected(u, old);
	unix_put(old);
	waitq_wake_all(&u->sk.wait, UNIX_OUT);
	return 0;
}

static int unix_connect(struct sock *sk, const struct sockaddr_storage *a, unsigned len,
			unsigned flags, const struct fs_lookup *l)
{
	if (len < sizeof(a->ss_family))
		return -EINVAL;
	if (sk->type == SOCK_DGRAM)
		return dgram_connect(to_unix(sk), a, len, l);
	return stream_connect(to_unix(sk), a, len, flags, l);
}

static int unix_shutdown(struct sock *sk, int how)
{
	struct unix_sock *u = to_unix(sk), *peer = NULL;
	unsigned mine = (unsigned)how + 1, theirs = 0; /* SHUT_RD, SHUT_WR, SHUT_RDWR to bits */

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	mutex_lock(&sk->mu);
	sk->shut |= mine;
	if (u->peer && unix_is_stream_like(u))
		peer = unix_get(u->peer);
	mutex_unlock(&sk->mu);
	waitq_wake_all(&sk->wait, UNIX_ALL);
	waitq_wake_all(&u->room, UNIX_ALL);
	if (!peer)
		return 0;
	if (mine & SOCK_SHUT_RCV)
		theirs |= SOCK_SHUT_SEND;
	if (mine & SOCK_SHUT_SEND)
		theirs |= SOCK_SHUT_RCV;
	mutex_lock(&peer->sk.mu);
	peer->sk.shut |= theirs;
	mutex_unlock(&peer->sk.mu);
	waitq_wake_all(&peer->sk.wait, UNIX_ALL);
	unix_put(peer);
	return 0;
}

/* ---- questions ---------------------------------------------------------------------------- */

static int unix_getname(struct sock *sk, bool peer, struct sockaddr_storage *out, unsigned *out_len)
{
	struct unix_sock *u = peer ? unix_peer_get(to_unix(sk)) : unix_get(to_unix(sk));

	if (!u)
		return -ENOTCONN;
	mutex_lock(&u->sk.mu);
	unix_addr_store(u->addr, out, out_len);
	mutex_unlock(&u->sk.mu);
	unix_put(u);
	return 0;
}

/* Would a datagram to the connected peer find room? If not, u is noted to be woken. */
static bool dgram_peer_has_room(struct unix_sock *u, bool want_wake)
{
	struct unix_sock *peer = unix_peer_get(u);
	bool full = false;

	if (!peer)
		return true;
	mutex_lock(&peer->sk.mu);
	if (!peer->dead && unix_queue_is_full_locked(peer, u)) {
		full = true;
		/* Under the peer's lock: the reader that makes room comes after and sees us. */
		if (want_wake)
			unix_add_poller(peer, u);
	}
	mutex_unlock(&peer->sk.mu);
	unix_put(peer);
	return !full;
}

static uint32_t unix_poll(struct sock *sk, struct poll_table *pt)
{
	struct unix_sock *u = to_unix(sk);
	uint32_t events = 0;

	poll_wait(pt, &sk->wait);
	mutex_lock(&sk->mu);
	bool stream_like = unix_is_stream_like(u), listening = u->state == UNIX_LISTENING;
	if (sk->err)
		events |= POLLERR;
	if (sk->shut == SOCK_SHUT_BOTH || (stream_like && u->state == UNIX_CLOSED))
		events |= POLLHUP;
	if (sk->shut & SOCK_SHUT_RCV)
		events |= POLLRDHUP | UNIX_IN;
	if (!list_empty(&u->rx) || !list_empty(&u->accept_queue))
		events |= UNIX_IN;
	mutex_unlock(&sk->mu);
	if (!listening && unix_is_writable(u) && (stream_like || dgram_peer_has_room(u, true)))
		events |= UNIX_OUT;
	return events;
}

static long unix_ioctl(struct sock *sk, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct unix_sock *u = to_unix(sk);
	int size;

	if (cmd == SIOCOUTQ) {
		size = (int)atomic_load(&u->wmem);
	} else if (cmd == SIOCINQ) {
		mutex_lock(&sk->mu);
		bool listening = u->state == UNIX_LISTENING;
		size = (int)u->rx_bytes;
		/* Datagrams: the size of the next one. */
		if (sk->type == SOCK_DGRAM && !list_empty(&u->rx))
			size = (int)list_first(&u->rx, struct unix_msg, link)->len;
		mutex_unlock(&sk->mu);
		if (listening)
			return -EINVAL;
	} else {
		return -ENOTTY;
	}
	return umem_write(um, arg, &size, sizeof(size));
}

/* The columns of net/unix/af_unix.c: address, count, protocol, flags, type, state, inode, name. */
static void show_one(struct unix_sock *u, struct fmt *out)
{
	mutex_lock(&u->sk.mu);
	unsigned state = u->sk.file ? (u->state == UNIX_CONNECTED ? 3 : 1) : 2;
	fmt_printf(out, "0000000000000000: %08X %08X %08X %04X %02X %5llu", ref_count(&u->sk.ref),
		   0, u->sk.listening ? 1u << 16 : 0, (unsigned)u->sk.type, state,
		   u->sk.file ? (unsigned long long)u->sk.file->inode->ino : 0ull);
	if (u->addr) {
		const char *name = u->addr->sun.sun_path;
		size_t n = u->addr->len - UNIX_PATH_OFF;
		bool abstract = name[0] == 0;
		fmt_putc(out, ' ');
		for (size_t i = 0; i < (abstract ? n : n - 1); i++)
			fmt_putc(out, name[i] ? name[i] : '@');
	}
	fmt_putc(out, '\n');
	mutex_unlock(&u->sk.mu);
}

void unix_show(struct fmt *out)
{
	fmt_puts(out, "Num       RefCount Protocol Flags    Type St Inode Path\n");
	mutex_lock(&all_mu);
	list_for_each(pos, &all_sockets)
		show_one(list_entry(pos, struct unix_sock, all_link), out);
	mutex_unlock(&all_mu);
}

static const struct sock_ops unix_ops = {
	.bind = unix_bind,
	.connect = unix_connect,
	.listen = unix_listen,
	.accept = unix_accept,
	.pair = unix_pair,
	.sendmsg = unix_sendmsg,
	.recvmsg = unix_recvmsg,
	.shutdown = unix_shutdown,
	.getname = unix_getname,
	.poll = unix_poll,
	.ioctl = unix_ioctl,
	.close = unix_close,
	.free = unix_free,
};

const struct sock_family unix_family = { .family = AF_UNIX, .create = unix_create };

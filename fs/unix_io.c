/*
 * Messages of AF_UNIX sockets.
 *
 * A message is charged to its sender until the receiver has taken it (wmem against SO_SNDBUF); that
 * is all the flow control a stream has. Datagram sockets also limit the length of the receiver's
 * queue, except between two sockets connected to each other.
 *
 * A sender builds its message with no lock held, then appends it under the receiver's lock. Each
 * direction of a connection thus meets on one lock only.
 */
#include <errno.h>
#include <string.h>

#include "fs/hooks.h"
#include "fs/unix_priv.h"
#include "platform/base/alloc.h"

#define STREAM_CHUNK_MAX (32u << 10) /* bytes of one message of a stream */
#define MSG_OVERHEAD 512u            /* what a message costs its sender besides its bytes */
#define QUEUED_MAX (512ul << 20)     /* bytes in all queues of the sandbox: then -ENOBUFS */
#define NOBODY 65534u                /* ids shown when the sender's were not recorded */

static atomic_size_t queued; /* charges of all messages */

/* ---- messages ----------------------------------------------------------------------------- */

static void message_free(struct unix_msg *m)
{
	struct unix_sock *from = m->from;

	unix_flight_sub(&m->scm);
	sock_scm_fini(&m->scm);
	atomic_fetch_sub(&from->wmem, m->charge);
	atomic_fetch_sub(&queued, m->charge);
	if (unix_is_writable(from))
		waitq_wake(&from->sk.wait, UNIX_OUT);
	unix_put(from);
	unix_addr_put(m->addr);
	mem_free(m);
}

void unix_free_messages(struct list *msgs)
{
	/* Freeing a message may close a socket whose queue holds messages … : a chain as long as
	 * the guest likes. The inner calls only add to the list of the outermost one. */
	static _Thread_local struct list *outermost;
	struct list work;

	if (outermost) {
		list_splice_tail(outermost, msgs);
		return;
	}
	list_init(&work);
	list_splice_tail(&work, msgs);
	outermost = &work;
	while (!list_empty(&work)) {
		struct unix_msg *m = list_first(&work, struct unix_msg, link);
		list_del_init(&m->link);
		message_free(m);
	}
	outermost = NULL;
}

static void message_drop(struct unix_msg *m)
{
	struct list one;

	list_init(&one);
	list_add(&one, &m->link);
	unix_free_messages(&one);
}

/* A message of the next `size` bytes of `it`, charged to u. */
static int message_new(struct unix_sock *u, struct iov_iter *it, size_t size, struct unix_msg **out)
{
	struct unix_msg *m =
		atomic_load(&queued) < QUEUED_MAX ? mem_alloc(sizeof(*m) + size) : NULL;
	if (!m)
		return -ENOBUFS;
	memset(m, 0, sizeof(*m));
	list_init(&m->link);
	m->len = size;
	m->charge = size + MSG_OVERHEAD;
	if (size && iov_copy_from(it, m->data, size) != (ssize_t)size) {
		mem_free(m);
		return -EFAULT;
	}
	m->from = unix_get(u);
	atomic_fetch_add(&u->wmem, m->charge);
	atomic_fetch_add(&queued, m->charge);
	mutex_lock(&u->sk.mu);
	m->addr = u->addr ? unix_addr_get(u->addr) : NULL;
	mutex_unlock(&u->sk.mu);
	*out = m;
	return 0;
}

/* Moves ancillary data of the caller into the message. */
static int message_attach(struct unix_msg *m, struct sock_scm *scm)
{
	int err = unix_flight_add(scm);
	if (err)
		return err;
	m->scm = *scm;
	scm->files = NULL;
	scm->file_count = 0;
	return 0;
}

/* Records the sender's identity when either side asked for it. */
static void message_add_cred(struct unix_msg *m, struct unix_sock *other)
{
	if (m->scm.has_cred || !fs_hooks)
		return;
	if (!sock_has(&m->from->sk, SOCK_F_PASSCRED) && !sock_has(&other->sk, SOCK_F_PASSCRED))
		return;
	const struct cred *c = fs_hooks->current_cred();
	m->scm.has_cred = true;
	m->scm.cred =
		(struct ucred){ .pid = fs_hooks->current_tgid(), .uid = c->uid, .gid = c->gid };
}

/* Appends under other->mu, which the caller holds and then drops. */
static void deliver_locked(struct unix_sock *other, struct unix_msg *m)
{
	message_add_cred(m, other);
	if (sock_has(&other->sk, SOCK_F_TIMESTAMP) || sock_has(&other->sk, SOCK_F_TIMESTAMPNS))
		clock_gettime(CLOCK_REALTIME, &m->scm.stamp);
	list_add_tail(&other->rx, &m->link);
	other->rx_count++;
	other->rx_bytes += m->len;
}

/* ---- sending ------------------------------------------------------------------------------ */

/* Waits until u may be charged with one more message. */
static int wait_for_room(struct unix_sock *u, unsigned flags)
{
	mutex_lock(&u->sk.mu);
	deadline_t deadline = sock_deadline_locked(&u->sk, flags, false);
	int err;
	for (;;) {
		err = sock_take_error_locked(&u->sk);
		if (!err && (u->sk.shut & SOCK_SHUT_SEND))
			err = -EPIPE;
		if (err || atomic_load(&u->wmem) < (size_t)atomic_load(&u->sk.sndbuf))
			break;
		err = sock_wait(&u->sk.wait, &u->sk.mu, UNIX_OUT, deadline, false);
		if (err)
			break;
	}
	mutex_unlock(&u->sk.mu);
	return err;
}

/* One piece of a stream: bytes or -errno. */
static ssize_t stream_send_piece(struct unix_sock *u, struct unix_sock *peer, struct sock_msg *sm)
{
	size_t size = MIN((size_t)atomic_load(&u->sk.sndbuf) / 2, (size_t)STREAM_CHUNK_MAX);
	struct unix_msg *m;

	size = MIN(size, sm->it->count);
	int err = wait_for_room(u, sm->flags);
	if (err)
		return err;
	err = message_new(u, sm->it, size, &m);
	if (err)
		return err;
	err = message_attach(m, &sm->scm);
	if (!err) {
		mutex_lock(&peer->sk.mu);
		if (peer->dead || (peer->sk.shut & SOCK_SHUT_RCV))
			err = -EPIPE;
		else
			deliver_locked(peer, m);
		mutex_unlock(&peer->sk.mu);
	}
	if (err) {
		message_drop(m);
		return err;
	}
	waitq_wake(&peer->sk.wait, UNIX_IN);
	return (ssize_t)size;
}

static ssize_t stream_send(struct unix_sock *u, struct sock_msg *sm)
{
	ssize_t done = 0, r = 0;

	mutex_lock(&u->sk.mu);
	struct unix_sock *peer = u->peer ? unix_get(u->peer) : NULL;
	bool shut = u->sk.shut & SOCK_SHUT_SEND, connected = u->state == UNIX_CONNECTED;
	mutex_unlock(&u->sk.mu);
	if (sm->name_len)
		r = connected ? -EISCONN : -EOPNOTSUPP;
	else if (!peer)
		r = -ENOTCONN;
	else if (shut)
		r = -EPIPE;
	while (r >= 0 && sm->it->count > 0) {
		r = stream_send_piece(u, peer, sm);
		done += r > 0 ? r : 0;
	}
	unix_put(peer);
	return done ? done : r;
}

bool unix_queue_is_full_locked(const struct unix_sock *other, const struct unix_sock *u)
{
	return other != u && other->peer != u && other->rx_count > other->backlog;
}

/* After a connected socket found its peer dead: it is unconnected from now on. */
static void forget_peer(struct unix_sock *u, struct unix_sock *peer)
{
	mutex_lock(&u->sk.mu);
	bool same = u->peer == peer;
	if (same) {
		u->peer = NULL;
		u->state = UNIX_CLOSED;
	}
	mutex_unlock(&u->sk.mu);
	if (same) {
		unix_remove_poller(u);
		unix_put(peer);
	}
}

/* Puts one packet into the queue of `other`, waiting for a place. m stays with the caller on error.
 */
static int packet_deliver(struct unix_sock *u, struct unix_sock *other, struct unix_msg *m,
			  unsigned flags)
{
	int err = 0;

	mutex_lock(&u->sk.mu);
	deadline_t deadline = sock_deadline_locked(&u->sk, flags, false);
	mutex_unlock(&u->sk.mu);
	mutex_lock(&other->sk.mu);
	while (!err) {
		if (other->dead)
			err = u->sk.type == SOCK_SEQPACKET ? -EPIPE : -ECONNREFUSED;
		else if (other->peer && other->peer != u)
			err = -EPERM;
		else if (other->sk.shut & SOCK_SHUT_RCV)
			err = -EPIPE;
		else if (unix_queue_is_full_locked(other, u))
			err = sock_wait(&other->room, &other->sk.mu, UNIX_OUT, deadline, false);
		else
			break;
	}
	if (!err)
		deliver_locked(other, m);
	mutex_unlock(&other->sk.mu);
	if (!err)
		waitq_wake(&other->sk.wait, UNIX_IN);
	return err;
}

static ssize_t packet_send(struct unix_sock *u, struct sock_msg *sm)
{
	size_t size = sm->it->count;
	struct unix_sock *other = NULL;
	struct unix_msg *m;
	int err = 0;

	if (sm->name_len)
		err = unix_check_addr(&sm->name, sm->name_len);
	else if ((other = unix_peer_get(u)) == NULL)
		err = -ENOTCONN;
	if (!err && sock_has(&u->sk, SOCK_F_PASSCRED))
		err = unix_autobind(u);
	if (!err && size > (size_t)atomic_load(&u->sk.sndbuf) - 32)
		err = -EMSGSIZE;
	if (!err)
		err = wait_for_room(u, sm->flags);
	if (!err)
		err = message_new(u, sm->it, size, &m);
	if (err)
		goto out_other;
	err = message_attach(m, &sm->scm);
	if (!err && !other)
		err = unix_find(&sm->name, sm->name_len, u->sk.type, sm->lookup, &other);
	if (!err)
		err = packet_deliver(u, other, m, sm->flags);
	if (err)
		message_drop(m);
	if (err == -ECONNREFUSED && other && !sm->name_len)
		forget_peer(u, other);
out_other:
	unix_put(other);
	return err ? err : (ssize_t)size;
}

static ssize_t seqpacket_send(struct unix_sock *u, struct sock_msg *sm)
{
	mutex_lock(&u->sk.mu);
	int err = sock_take_error_locked(&u->sk);
	if (!err && u->state != UNIX_CONNECTED)
		err = -ENOTCONN;
	mutex_unlock(&u->sk.mu);
	sm->name_len = 0;
	return err ? err : packet_send(u, sm);
}

ssize_t unix_sendmsg(struct sock *sk, struct sock_msg *m)
{
	struct unix_sock *u = to_unix(sk);

	/* LINUX: streams can carry one byte out of band (CONFIG_AF_UNIX_OOB). */
	if (m->flags & MSG_OOB)
		return -EOPNOTSUPP;
	switch (sk->type) {
	case SOCK_STREAM:
		return stream_send(u, m);
	case SOCK_SEQPACKET:
		return seqpacket_send(u, m);
	default:
		return packet_send(u, m);
	}
}

/* ---- receiving ---------------------------------------------------------------------------- */

/* A copy of the files of a message that stays in the queue. */
static int scm_copy_files(const struct sock_scm *from, struct sock_scm *to)
{
	struct file **files = mem_calloc(from->file_count, sizeof(*files));
	if (!files)
		return -ENOMEM;
	for (unsigned i = 0; i < from->file_count; i++)
		files[i] = file_get(from->files[i]);
	to->files = files;
	to->file_count = from->file_count;
	return 0;
}

static struct ucred message_cred(const struct unix_msg *m)
{
	return m->scm.has_cred ? m->scm.cred
			       : (struct ucred){ .pid = 0, .uid = NOBODY, .gid = NOBODY };
}

/* Source and credentials as the receiver's options ask. */
static void tell_sender(struct unix_sock *u, const struct unix_msg *m, struct sock_msg *sm)
{
	if (m->addr)
		unix_addr_store(m->addr, &sm->name, &sm->name_len);
	sm->scm.has_cred = sock_has(&u->sk, SOCK_F_PASSCRED);
	sm->scm.cred = message_cred(m);
}

struct stream_read {
	size_t want, done;
	bool stop;       /* enough for one call, whatever was asked for */
	bool took_files; /* files left the queue: uncount them */
	int err;
};

/* Takes what it may of one message. False: go no further. */
static bool stream_take_message_locked(struct unix_sock *u, struct unix_msg *m, struct sock_msg *sm,
				       struct stream_read *r)
{
	bool peek = sm->flags & MSG_PEEK, has_files = m->scm.file_count > 0;
	size_t n = MIN(m->len - m->off, r->want - r->done);

	if (n && iov_copy_to(sm->it, m->data + m->off, n) != (ssize_t)n) {
		r->err = -EFAULT;
		return false;
	}
	if (r->done == 0)
		tell_sender(u, m, sm);
	r->done += n;
	if (has_files && peek) {
		r->err = scm_copy_files(&m->scm, &sm->scm);
	} else if (has_files) {
		sm->scm.files = m->scm.files;
		sm->scm.file_count = m->scm.file_count;
		m->scm.files = NULL;
		m->scm.file_count = 0;
		r->took_files = true;
	}
	if (!peek) {
		m->off += n;
		u->rx_bytes -= n;
	}
	return !has_files;
}

/* Takes what is there; messages used up go to `used`. */
static void stream_take_locked(struct unix_sock *u, struct sock_msg *sm, struct stream_read *r,
			       struct list *used)
{
	bool peek = sm->flags & MSG_PEEK;

	list_for_each_safe(pos, &u->rx) {
		struct unix_msg *m = list_entry(pos, struct unix_msg, link);
		struct ucred c = message_cred(m);
		/* Bytes of different writers are not glued when the reader wants to know the
		 * writer. */
		if (r->done && sm->scm.has_cred && memcmp(&c, &sm->scm.cred, sizeof(c)) != 0) {
			r->stop = true;
			return;
		}
		bool go_on = stream_take_message_locked(u, m, sm, r);
		bool finished = !r->err && !peek && m->off == m->len;
		if (finished) {
			list_del_init(&m->link);
			u->rx_count--;
			list_add_tail(used, &m->link);
		}
		if (!go_on || r->err) {
			r->stop = true;
			return;
		}
		if (r->done == r->want)
			return;
	}
	/* A look at the queue does not wait for more. */
	if (peek && r->done)
		r->stop = true;
}

static ssize_t stream_receive(struct unix_sock *u, struct sock_msg *sm)
{
	struct stream_read r = { .want = sm->it->count };
	struct list used;

	list_init(&used);
	mutex_lock(&u->sk.mu);
	if (u->state != UNIX_CONNECTED) {
		mutex_unlock(&u->sk.mu);
		return -EINVAL;
	}
	size_t target = r.want;
	if (!(sm->flags & MSG_WAITALL))
		target = MIN(target, (size_t)atomic_load(&u->sk.rcvlowat));
	target = MAX(target, 1);
	deadline_t deadline = sock_deadline_locked(&u->sk, sm->flags, true);
	for (;;) {
		bool had_data = !list_empty(&u->rx);
		stream_take_locked(u, sm, &r, &used);
		if (r.stop || r.done >= target || (r.want == 0 && had_data))
			break;
		/* Before sleeping: the sender may wait for the room of what we have used. */
		if (!list_empty(&used)) {
			mutex_unlock(&u->sk.mu);
			unix_free_messages(&used);
			mutex_lock(&u->sk.mu);
			continue;
		}
		r.err = sock_take_error_locked(&u->sk);
		if (r.err || (u->sk.shut & SOCK_SHUT_RCV))
			break;
		r.err = sock_wait(&u->sk.wait, &u->sk.mu, UNIX_IN, deadline, false);
		if (r.err)
			break;
	}
	mutex_unlock(&u->sk.mu);
	if (r.took_files)
		unix_flight_sub(&sm->scm);
	unix_free_messages(&used);
	return r.done ? (ssize_t)r.done : r.err;
}

/* Waits for a packet: 0 and the queue is not empty, or 1 at the end, or -errno. */
static int packet_wait_locked(struct unix_sock *u, unsigned flags)
{
	deadline_t deadline = sock_deadline_locked(&u->sk, flags, true);

	for (;;) {
		int err = sock_take_error_locked(&u->sk);
		if (err)
			return err;
		if (!list_empty(&u->rx))
			return 0;
		/* A non-blocking reader of a half-closed datagram socket gets -EAGAIN all the same.
		 */
		if ((u->sk.shut & SOCK_SHUT_RCV) && (deadline != 0 || u->sk.type == SOCK_SEQPACKET))
			return 1;
		err = sock_wait(&u->sk.wait, &u->sk.mu, UNIX_IN, deadline, false);
		if (err)
			return err;
	}
}

/* The result of a packet's reception into sm, by recv(2). */
static ssize_t packet_copy(struct unix_sock *u, const struct unix_msg *m, struct sock_msg *sm)
{
	size_t n = MIN(m->len, sm->it->count);

	if (m->len > sm->it->count)
		sm->out_flags |= MSG_TRUNC;
	if (n && iov_copy_to(sm->it, m->data, n) != (ssize_t)n)
		return -EFAULT;
	tell_sender(u, m, sm);
	if (sock_has(&u->sk, SOCK_F_TIMESTAMP) || sock_has(&u->sk, SOCK_F_TIMESTAMPNS)) {
		sm->scm.stamp = m->scm.stamp;
		sm->scm.stamp_ns = sock_has(&u->sk, SOCK_F_TIMESTAMPNS);
		/* Queued before the option was set: the time of reception. */
		if (sm->scm.stamp.tv_sec == 0)
			clock_gettime(CLOCK_REALTIME, &sm->scm.stamp);
	}
	return (ssize_t)((sm->flags & MSG_TRUNC) ? m->len : n);
}

static ssize_t packet_receive(struct unix_sock *u, struct sock_msg *sm)
{
	ssize_t ret;

	mutex_lock(&u->sk.mu);
	if (u->sk.type == SOCK_SEQPACKET && u->state != UNIX_CONNECTED) {
		mutex_unlock(&u->sk.mu);
		return -ENOTCONN;
	}
	int err = packet_wait_locked(u, sm->flags);
	if (err) {
		mutex_unlock(&u->sk.mu);
		return err < 0 ? err : 0;
	}
	struct unix_msg *m = list_first(&u->rx, struct unix_msg, link);
	if (sm->flags & MSG_PEEK) {
		ret = packet_copy(u, m, sm);
		if (ret >= 0 && m->scm.file_count && scm_copy_files(&m->scm, &sm->scm) < 0)
			ret = -ENOMEM;
		mutex_unlock(&u->sk.mu);
		return ret;
	}
	list_del_init(&m->link);
	u->rx_count--;
	u->rx_bytes -= m->len;
	mutex_unlock(&u->sk.mu);
	waitq_wake(&u->room, UNIX_OUT);
	unix_wake_pollers(u);
	ret = packet_copy(u, m, sm);
	if (ret >= 0) {
		unix_flight_sub(&m->scm);
		sm->scm.files = m->scm.files;
		sm->scm.file_count = m->scm.file_count;
		m->scm.files = NULL;
		m->scm.file_count = 0;
	}
	message_drop(m);
	return ret;
}

ssize_t unix_recvmsg(struct sock *sk, struct sock_msg *m)
{
	if (m->flags & MSG_OOB)
		return sk->type == SOCK_STREAM ? -EINVAL : -EOPNOTSUPP;
	return sk->type == SOCK_STREAM ? stream_receive(to_unix(sk), m)
				       : packet_receive(to_unix(sk), m);
}

/* What the files of AF_UNIX share: sock_unix.c, unix_name.c, unix_io.c, unix_gc.c. */
#pragma once

#include <sys/un.h>

#include "fs/sock_unix.h"

#define UNIX_DGRAM_QUEUE 10 /* net.unix.max_dgram_qlen */
#define UNIX_PATH_OFF offsetof(struct sockaddr_un, sun_path)
#define UNIX_IN (POLLIN | POLLRDNORM)
#define UNIX_OUT (POLLOUT | POLLWRNORM | POLLWRBAND)
#define UNIX_ALL (UNIX_IN | UNIX_OUT | POLLRDHUP | POLLHUP | POLLERR)

/* A bound name. Immutable; shared by a listener and the sockets it accepts. */
struct unix_addr {
	struct ref ref;
	unsigned len;           /* [I] of the whole address */
	struct sockaddr_un sun; /* [I] a path ends with NUL inside len */
	char slack;             /* [I] room for the NUL of a path that fills sun_path */
};

DECLARE_REF(unix_addr);

/* One message in a receive queue. */
struct unix_msg {
	struct list link;       /* [receiver's mu] */
	struct unix_sock *from; /* [I] referenced: is charged for the message */
	struct unix_addr *addr; /* [I] referenced: the sender's name, or NULL */
	struct sock_scm scm;    /* [receiver's mu] files, counted as in flight; credentials */
	size_t charge;          /* [I] what it takes of from->wmem */
	size_t len;             /* [I] */
	size_t off;             /* [receiver's mu] bytes that a stream reader has taken */
	char data[];
};

enum unix_state { UNIX_CLOSED, UNIX_LISTENING, UNIX_CONNECTED };

struct unix_sock {
	struct sock sk;
	enum unix_state state;  /* [mu] */
	bool dead;              /* [mu] closed: no new messages, no new peers */
	struct unix_sock *peer; /* [mu] referenced; a dead peer stays until we close */
	struct unix_addr *addr; /* [mu] referenced; set once */
	struct path path;       /* [mu] of a bound path; set once, put at close */
	struct list name_link;  /* [names_mu] in the table of abstract names */

	struct list rx;     /* [mu] of unix_msg.link */
	unsigned rx_count;  /* [mu] */
	size_t rx_bytes;    /* [mu] */
	atomic_size_t wmem; /* [a] charges of our messages that nobody has read */

	struct list accept_queue; /* [mu] of accept_link: connected, not accepted */
	struct list accept_link;  /* [listener's mu] */
	unsigned accept_count;    /* [mu] */
	unsigned backlog;         /* [mu] of a listener; of a dgram socket its queue limit */

	struct waitq room;     /* those who wait for a place in rx or accept_queue */
	struct list pollers;   /* [pollers_mu] of poll_link: sockets whose poll found our rx full */
	struct list poll_link; /* [pollers_mu] */
	atomic_bool has_pollers; /* [a] hint that pollers is not empty */

	struct list all_link;    /* [all_mu] for /proc/net/unix */
	struct list flight_link; /* [flight_mu] in the list of sockets in flight */
	unsigned in_flight;      /* [flight_mu] references from receive queues */
	unsigned gc_inner;       /* [flight_mu] of these, from queues of candidates */
	struct list gc_link;     /* [flight_mu] */
	bool gc_candidate;       /* [flight_mu] */
	bool gc_reachable;       /* [flight_mu] */
};

static inline struct unix_sock *to_unix(struct sock *sk)
{
	return container_of(sk, struct unix_sock, sk);
}

static inline struct unix_sock *unix_get(struct unix_sock *u)
{
	sock_get(&u->sk);
	return u;
}

static inline void unix_put(struct unix_sock *u)
{
	if (u)
		sock_put(&u->sk);
}

static inline bool unix_is_stream_like(const struct unix_sock *u)
{
	return u->sk.type != SOCK_DGRAM;
}

/* sock_unix.c */
/* A socket without file; one reference. NULL without memory. */
struct unix_sock *unix_sock_new(int type) MUST_CHECK;
/* Ends a socket: the file is gone, or (embryo) it was never accepted. Takes a reference. */
void unix_sock_end(struct unix_sock *u, bool embryo);
/* The peer, referenced, or NULL. */
struct unix_sock *unix_peer_get(struct unix_sock *u) MUST_CHECK;
/* Wakes the sockets whose poll waits for room in u's queue. */
void unix_wake_pollers(struct unix_sock *u);
/* Notes that u's poll found the queue of `peer` full. */
void unix_add_poller(struct unix_sock *peer, struct unix_sock *u);
void unix_remove_poller(struct unix_sock *u);
bool unix_is_writable(struct unix_sock *u);

/* unix_name.c */
/* Checks what the guest gave: -EINVAL. */
int unix_check_addr(const struct sockaddr_storage *a, unsigned len) MUST_CHECK;
int unix_bind(struct sock *sk, const struct sockaddr_storage *a, unsigned len,
	      const struct fs_lookup *l) MUST_CHECK;
/* Gives a socket a free abstract name, unless it has one. */
int unix_autobind(struct unix_sock *u) MUST_CHECK;
/* Who listens at a name, referenced: -ECONNREFUSED, -EPROTOTYPE, -EACCES and the errors of path
 * lookup. */
int unix_find(const struct sockaddr_storage *a, unsigned len, int type, const struct fs_lookup *l,
	      struct unix_sock **out) MUST_CHECK;
void unix_unname(struct unix_sock *u);
/* Puts the name into *out; a socket without one has a family only. */
void unix_addr_store(const struct unix_addr *a, struct sockaddr_storage *out, unsigned *out_len);

/* unix_io.c */
ssize_t unix_sendmsg(struct sock *sk, struct sock_msg *m);
ssize_t unix_recvmsg(struct sock *sk, struct sock_msg *m);
/* Frees a list of messages, files in them included, without recursion. No lock may be held. */
void unix_free_messages(struct list *msgs);
/* May one more datagram from u be put into the queue of `other`? other->mu held. */
bool unix_queue_is_full_locked(const struct unix_sock *other, const struct unix_sock *u);

/* unix_gc.c */
/* Counts files that go into (leave) a queue; -ETOOMANYREFS. */
int unix_flight_add(struct sock_scm *scm) MUST_CHECK;
void unix_flight_sub(struct sock_scm *scm);
/* Frees sockets that only cycles of queued descriptors keep alive. No lock may be held. */
void unix_gc(void);

/*
 * Sockets as files: what all families share. A family fills struct sock_ops; calls that a socket
 * type does not know are NULL and answer -EOPNOTSUPP.
 *
 * A socket (struct sock) outlives its file while peers or queued messages refer to it.
 */
#pragma once

#include <sys/socket.h>

#include "fs/fdtable.h"
#include "fs/vfs.h"

struct fs_lookup;
struct sock;

#define SOCK_SCM_MAX_FILES 253  /* SCM_MAX_FD */
#define SOCK_SOMAXCONN 4096     /* net.core.somaxconn */
#define SOCK_BUF_DEFAULT 212992 /* net.core.wmem_default */
#define SOCK_BUF_MAX 212992     /* net.core.wmem_max, rmem_max: what SO_SNDBUF may ask for */
#define SOCK_SNDBUF_MIN 4608
#define SOCK_RCVBUF_MIN 2304
#define SOCK_FOREVER UINT64_MAX

/* Ancillary data between the system call and the family. */
struct sock_scm {
	struct file **files; /* owned, each with a reference; from mem_alloc */
	unsigned file_count;
	bool has_cred;
	bool stamp_ns; /* SO_TIMESTAMPNS, not SO_TIMESTAMP */
	struct ucred cred;
	struct timespec stamp; /* when it was sent; 0: not asked for */
};

/* Drops the files. */
void sock_scm_fini(struct sock_scm *scm);

/* One message on its way. */
struct sock_msg {
	struct iov_iter *it;
	unsigned flags;     /* MSG_* of the caller; MSG_DONTWAIT is added for O_NONBLOCK */
	unsigned out_flags; /* receive: MSG_TRUNC, MSG_EOR… */
	struct sockaddr_storage name; /* send: destination; receive: source */
	unsigned name_len;            /* 0: none */
	struct sock_scm scm;
	const struct fs_lookup *lookup; /* send with a path name */
};

struct sock_ops {
	int (*bind)(struct sock *sk, const struct sockaddr_storage *a, unsigned len,
		    const struct fs_lookup *l);
	int (*connect)(struct sock *sk, const struct sockaddr_storage *a, unsigned len,
		       unsigned flags, const struct fs_lookup *l);
	int (*listen)(struct sock *sk, int backlog);
	/* Gives a socket of the same family; flags: MSG_DONTWAIT. */
	int (*accept)(struct sock *sk, unsigned flags, struct sock **out);
	int (*pair)(struct sock *a, struct sock *b);
	ssize_t (*sendmsg)(struct sock *sk, struct sock_msg *m);
	ssize_t (*recvmsg)(struct sock *sk, struct sock_msg *m);
	int (*shutdown)(struct sock *sk, int how);
	/* The address of this end or of the peer. */
	int (*getname)(struct sock *sk, bool peer, struct sockaddr_storage *out, unsigned *out_len);
	int (*setsockopt)(struct sock *sk, int level, int name, const void *val, size_t len);
	/* Bytes stored (<= cap) or -errno. */
	int (*getsockopt)(struct sock *sk, int level, int name, void *val, size_t cap);
	uint32_t (*poll)(struct sock *sk, struct poll_table *pt); /* required */
	long (*ioctl)(struct sock *sk, unsigned cmd, uint64_t arg, const struct umem *um);
	void (*close)(struct sock *sk); /* required: the file is gone; takes its reference */
	void (*free)(struct sock *sk);  /* required: no reference is left */
};

/* Boolean options, bits of sock.flags. */
enum sock_flag {
	SOCK_F_DEBUG = 1u << 0,
	SOCK_F_REUSEADDR = 1u << 1,
	SOCK_F_DONTROUTE = 1u << 2,
	SOCK_F_BROADCAST = 1u << 3,
	SOCK_F_KEEPALIVE = 1u << 4,
	SOCK_F_OOBINLINE = 1u << 5,
	SOCK_F_REUSEPORT = 1u << 6,
	SOCK_F_PASSCRED = 1u << 7,
	SOCK_F_PASSSEC = 1u << 8,
	SOCK_F_TIMESTAMP = 1u << 9,
	SOCK_F_TIMESTAMPNS = 1u << 10,
	SOCK_F_RXQ_OVFL = 1u << 11,
	SOCK_F_NO_CHECK = 1u << 12,
	SOCK_F_ZEROCOPY = 1u << 13,
	SOCK_F_SELECT_ERR = 1u << 14,
};

struct sock {
	struct ref ref;
	const struct sock_ops *ops; /* [I] */
	int family, type, protocol; /* [I] type without SOCK_NONBLOCK and SOCK_CLOEXEC */
	struct mutex mu;            /* rank SOCK */
	struct waitq wait;
	struct file *file;           /* [mu] borrowed; NULL: not accepted yet, or closed */
	atomic_uint flags;           /* [a] enum sock_flag */
	int err;                     /* [mu] SO_ERROR, positive */
	unsigned shut;               /* [mu] SOCK_SHUT_* */
	bool listening;              /* [mu] */
	atomic_int sndbuf, rcvbuf;   /* [a] bytes */
	atomic_int rcvlowat;         /* [a] */
	uint64_t rcvtimeo, sndtimeo; /* [mu] ns; SOCK_FOREVER: none */
	int linger_on, linger_s;     /* [mu] */
	atomic_int priority, mark;   /* [a] */
	uint64_t cookie;             /* [I] SO_COOKIE */
	struct ucred peer;           /* [mu] SO_PEERCRED: pid 0 and ids -1 when there is no peer */
	struct cred *peer_cred;      /* [mu] referenced: SO_PEERGROUPS; NULL */
};

DECLARE_REF(sock);

#define SOCK_SHUT_RCV 1u
#define SOCK_SHUT_SEND 2u
#define SOCK_SHUT_BOTH 3u

struct sock_family {
	int family;
	/* A fresh socket with one reference; -ESOCKTNOSUPPORT, -EPROTONOSUPPORT. */
	int (*create)(int type, int protocol, struct sock **out);
};

/* Called at boot by families above fs/ (netstack's). AF_UNIX is built in. */
void sock_register_family(const struct sock_family *fam);

/* Initialises the embedded base with one reference. */
void sock_init(struct sock *sk, const struct sock_ops *ops, int family, int type, int protocol);
/* What free of a family calls before freeing the object. */
void sock_fini(struct sock *sk);

/* socket(2), socketpair(2), accept(2): type without flags; flags O_NONBLOCK. Give files. */
int sock_create(int family, int type, int protocol, unsigned flags, struct file **out) MUST_CHECK;
int sock_create_pair(int family, int type, int protocol, unsigned flags, struct file **out_a,
		     struct file **out_b) MUST_CHECK;
int sock_accept(struct file *f, unsigned flags, struct file **out) MUST_CHECK;
/* The socket of a file, borrowed; NULL: -ENOTSOCK. */
struct sock *sock_of(struct file *f);
/* sendmsg(2) and recvmsg(2) without the copying of headers. Bytes or -errno. */
ssize_t sock_send(struct file *f, struct sock_msg *m) MUST_CHECK;
ssize_t sock_receive(struct file *f, struct sock_msg *m) MUST_CHECK;
/* Does a failed write raise SIGPIPE? Only streams do. True for everything that is no socket. */
bool sock_raises_sigpipe(struct file *f);

int sock_setsockopt(struct sock *sk, int level, int name, const void *val, size_t len) MUST_CHECK;
/* Stores up to cap bytes; what it stored, or -errno. */
int sock_getsockopt(struct sock *sk, int level, int name, void *val, size_t cap) MUST_CHECK;

/* For families. */
static inline bool sock_has(struct sock *sk, enum sock_flag flag)
{
	return atomic_load_explicit(&sk->flags, memory_order_relaxed) & flag;
}
/* The end of a wait: 0 with MSG_DONTWAIT (do not wait), else by the time-out option. sk->mu held.
 */
deadline_t sock_deadline_locked(struct sock *sk, unsigned flags, bool receiving);
/* Sleeps on q under mu: 0, -EAGAIN when the deadline is 0 or passed, -ERESTARTSYS, or -EINTR with a
 * time-out. */
int sock_wait(struct waitq *q, struct mutex *mu, uint32_t mask, deadline_t deadline, bool exclusive)
	MUST_CHECK;
/* SO_ERROR: takes the pending error; 0 or negative. */
int sock_take_error_locked(struct sock *sk);
/* The caller's identity as a peer sees it (effective ids). */
void sock_set_peer_locked(struct sock *sk, const struct ucred *u, const struct cred *c);

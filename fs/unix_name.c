/*
 * Names of AF_UNIX sockets: paths (the socket hangs at inode->ipc), abstract names (a table of this
 * sandbox; the key is name and socket type), and autobind.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/namei.h"
#include "fs/unix_priv.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

#define NAME_BUCKETS 256
#define AUTOBIND_LEN (UNIX_PATH_OFF + 6) /* NUL and five hexadecimal digits */
#define AUTOBIND_COUNT (1u << 20)

static struct mutex names_mu = MUTEX_INIT(RANK_HASH);
static struct list names[NAME_BUCKETS]; /* [names_mu] of unix_sock.name_link */
static uint32_t names_seed;             /* [names_mu] the guest must not choose its collisions */
static bool names_ready;                /* [names_mu] */

static void unix_addr_free(struct unix_addr *a)
{
	mem_free(a);
}

DEFINE_REF(unix_addr);

int unix_check_addr(const struct sockaddr_storage *a, unsigned len)
{
	if (len <= UNIX_PATH_OFF || len > sizeof(struct sockaddr_un) || a->ss_family != AF_UNIX)
		return -EINVAL;
	return 0;
}

void unix_addr_store(const struct unix_addr *a, struct sockaddr_storage *out, unsigned *out_len)
{
	memset(out, 0, sizeof(*out));
	if (!a) {
		out->ss_family = AF_UNIX;
		*out_len = sizeof(out->ss_family);
		return;
	}
	memcpy(out, &a->sun, a->len);
	*out_len = a->len;
}

static bool is_abstract(const struct sockaddr_un *sun)
{
	return sun->sun_path[0] == 0;
}

/* An address object; a path is cut at its NUL and gets one. */
static struct unix_addr *unix_addr_new(const struct sockaddr_storage *a, unsigned len)
{
	struct unix_addr *u = mem_zalloc(sizeof(*u));
	if (!u)
		return NULL;
	ref_init(&u->ref);
	memcpy(&u->sun, a, len);
	u->len = len;
	if (!is_abstract(&u->sun))
		u->len = (unsigned)(UNIX_PATH_OFF + strnlen(u->sun.sun_path, len - UNIX_PATH_OFF) +
				    1);
	return u;
}

/* ---- abstract names ----------------------------------------------------------------------- */

static struct list *bucket_locked(const struct sockaddr_un *sun, unsigned len, int type)
{
	const unsigned char *p = (const unsigned char *)sun;

	if (!names_ready) {
		for (size_t i = 0; i < NAME_BUCKETS; i++)
			list_init(&names[i]);
		host_random(&names_seed, sizeof(names_seed));
		names_ready = true;
	}
	uint32_t h = names_seed ^ (uint32_t)type;
	for (unsigned i = 0; i < len; i++) {
		h = (h ^ p[i]) * 0x01000193u;
		h ^= h >> 15;
	}
	return &names[h % NAME_BUCKETS];
}

static struct unix_sock *name_find_locked(const struct sockaddr_un *sun, unsigned len, int type)
{
	list_for_each(pos, bucket_locked(sun, len, type)) {
		struct unix_sock *u = list_entry(pos, struct unix_sock, name_link);
		/* addr of a named socket does not change while it is in the table. */
		if (u->sk.type == type && u->addr->len == len &&
		    memcmp(&u->addr->sun, sun, len) == 0)
			return u;
	}
	return NULL;
}

/* Publishes u under addr (taken on success): -EADDRINUSE, -EINVAL when u has a name. */
static int name_add(struct unix_sock *u, struct unix_addr *addr)
{
	int err = 0;

	mutex_lock(&u->sk.mu);
	mutex_lock(&names_mu);
	if (u->addr)
		err = -EINVAL;
	else if (name_find_locked(&addr->sun, addr->len, u->sk.type))
		err = -EADDRINUSE;
	if (!err) {
		u->addr = addr;
		list_add_tail(bucket_locked(&addr->sun, addr->len, u->sk.type), &u->name_link);
	}
	mutex_unlock(&names_mu);
	mutex_unlock(&u->sk.mu);
	return err;
}

static bool has_name(struct unix_sock *u)
{
	mutex_lock(&u->sk.mu);
	bool has = u->addr != NULL;
	mutex_unlock(&u->sk.mu);
	return has;
}

int unix_autobind(struct unix_sock *u)
{
	uint32_t n;
	int err = -EADDRINUSE;

	if (has_name(u))
		return 0;
	host_random(&n, sizeof(n));
	for (unsigned tries = 0; tries < AUTOBIND_COUNT && err == -EADDRINUSE; tries++) {
		struct sockaddr_storage a = { .ss_family = AF_UNIX };
		char digits[8];
		snprintf(digits, sizeof(digits), "%05x", n++ % AUTOBIND_COUNT);
		memcpy((char *)&a + UNIX_PATH_OFF + 1, digits, 5);
		struct unix_addr *addr = unix_addr_new(&a, AUTOBIND_LEN);
		if (!addr)
			return -ENOMEM;
		err = name_add(u, addr);
		if (err)
			unix_addr_put(addr);
	}
	/* Somebody else bound it first: it has a name, which is all we want. */
	if (err == -EINVAL)
		return 0;
	return err == -EADDRINUSE ? -ENOSPC : err;
}

/* ---- paths -------------------------------------------------------------------------------- */

static int bind_path(struct unix_sock *u, struct unix_addr *addr, const struct fs_lookup *l)
{
	struct path p;

	int err = vfs_mknod_path(l, addr->sun.sun_path, S_IFSOCK | 0777, &p);
	if (err)
		return err == -EEXIST ? -EADDRINUSE : err;
	struct inode *ino = p.dentry->inode;
	mutex_lock(&ino->mu);
	mutex_lock(&u->sk.mu);
	if (u->addr) {
		err = -EINVAL;
	} else {
		u->addr = addr;
		u->path = p;
		ino->ipc = u;
	}
	mutex_unlock(&u->sk.mu);
	mutex_unlock(&ino->mu);
	if (err)
		path_put(p);
	return err;
}

/* What a second bind of a socket gives: Linux makes the file before it looks at the socket, so an
 * existing name is the first error. We leave no file behind. */
static int rebind_error(const struct sockaddr_storage *a, unsigned len, const struct fs_lookup *l)
{
	char name[sizeof(struct sockaddr_un) + 1] = { 0 };
	struct path p;

	memcpy(name, (const char *)a + UNIX_PATH_OFF, len - UNIX_PATH_OFF);
	if (name[0] == 0)
		return -EINVAL;
	int err = path_lookup(l, name, 0, &p);
	if (err)
		return err == -ENOENT ? -EINVAL : err;
	path_put(p);
	return -EADDRINUSE;
}

int unix_bind(struct sock *sk, const struct sockaddr_storage *a, unsigned len,
	      const struct fs_lookup *l)
{
	struct unix_sock *u = to_unix(sk);

	if (len == UNIX_PATH_OFF && a->ss_family == AF_UNIX)
		return unix_autobind(u);
	int err = unix_check_addr(a, len);
	if (err)
		return err;
	if (has_name(u))
		return rebind_error(a, len, l);
	struct unix_addr *addr = unix_addr_new(a, len);
	if (!addr)
		return -ENOMEM;
	err = is_abstract(&addr->sun) ? name_add(u, addr) : bind_path(u, addr, l);
	if (err)
		unix_addr_put(addr);
	return err;
}

static int find_path(const struct sockaddr_un *sun, unsigned len, int type,
		     const struct fs_lookup *l, struct unix_sock **out)
{
	char name[sizeof(sun->sun_path) + 1] = { 0 };
	struct path p;

	memcpy(name, sun->sun_path, len - UNIX_PATH_OFF);
	int err = path_lookup(l, name, LOOKUP_FOLLOW, &p);
	if (err)
		return err;
	struct inode *ino = p.dentry->inode;
	err = inode_permission(ino, l->cred, MAY_WRITE);
	if (!err && ino->type != S_IFSOCK)
		err = -ECONNREFUSED;
	if (!err) {
		mutex_lock(&ino->mu);
		struct unix_sock *u = ino->ipc;
		if (!u)
			err = -ECONNREFUSED;
		else if (u->sk.type != type)
			err = -EPROTOTYPE;
		else
			*out = unix_get(u);
		mutex_unlock(&ino->mu);
	}
	path_put(p);
	return err;
}

int unix_find(const struct sockaddr_storage *a, unsigned len, int type, const struct fs_lookup *l,
	      struct unix_sock **out)
{
	struct sockaddr_un sun = { 0 };

	memcpy(&sun, a, len);
	if (!is_abstract(&sun))
		return l ? find_path(&sun, len, type, l, out) : -ECONNREFUSED;
	mutex_lock(&names_mu);
	struct unix_sock *u = name_find_locked(&sun, len, type);
	if (u)
		*out = unix_get(u);
	mutex_unlock(&names_mu);
	return u ? 0 : -ECONNREFUSED;
}

void unix_unname(struct unix_sock *u)
{
	mutex_lock(&names_mu);
	list_del_init(&u->name_link);
	mutex_unlock(&names_mu);
	mutex_lock(&u->sk.mu);
	struct path p = u->path;
	u->path = (struct path){ NULL, NULL };
	mutex_unlock(&u->sk.mu);
	if (!p.dentry)
		return;
	struct inode *ino = p.dentry->inode;
	mutex_lock(&ino->mu);
	if (ino->ipc == u)
		ino->ipc = NULL;
	mutex_unlock(&ino->mu);
	path_put(p);
}

/*
 * Leases: see lease.h. They are few, so one list and one mutex do. A lease lives as long as its
 * open file; who is being broken keeps it until it is given up, changed or out of time.
 */
#include "fs/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/sysmacros.h>

#include "fs/hooks.h"
#include "platform/base/alloc.h"

#define NS_PER_S 1000000000ull
#define LEASE_POLL_MSG 3 /* si_code POLL_MSG */
#define LEASE_BAND (POLLIN | POLLRDNORM | 0x400 /* POLLMSG */)

struct lease {
	struct list link;    /* [mu] in all_leases */
	struct file *file;   /* [I] borrowed: it ends the lease when it goes */
	int type;            /* [mu] F_RDLCK or F_WRLCK */
	int target;          /* [mu] what it is broken down to; equals type when it is not */
	int pid;             /* [I] of the taker, for /proc/locks */
	deadline_t deadline; /* [mu] of the break */
};

static struct mutex mu = MUTEX_INIT(RANK_FILE_LOCKS);
static struct list all_leases = LIST_INIT(all_leases); /* [mu] */
static atomic_uint lease_count; /* lets opens skip the lock when nobody has a lease */
static struct waitq changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

_Atomic int lease_break_seconds = 45;

static void init_once(void)
{
	waitq_init(&changed);
}

static void wake_breakers(void)
{
	pthread_once(&once, init_once);
	waitq_wake(&changed, 0);
}

static struct lease *find_locked(const struct file *f) REQUIRES(mu)
{
	list_for_each(pos, &all_leases) {
		struct lease *l = list_entry(pos, struct lease, link);
		if (l->file == f)
			return l;
	}
	return NULL;
}

static void remove_locked(struct lease *l) REQUIRES(mu)
{
	list_del_init(&l->link);
	atomic_fetch_sub(&lease_count, 1);
}

/* May f have a lease of this type, as its inode is open and leased now? */
static int check_locked(struct file *f, int type) REQUIRES(mu)
{
	struct inode *ino = file_inode(f);
	int own_writer = f->counts_writer, own_reader = f->counts_reader;

	if (type == F_RDLCK && atomic_load(&ino->writers) > 0)
		return -EAGAIN;
	if (type == F_WRLCK && (MAX(atomic_load(&ino->writers), 0) != own_writer ||
				atomic_load(&ino->readers) != own_reader))
		return -EAGAIN;
	list_for_each(pos, &all_leases) {
		struct lease *l = list_entry(pos, struct lease, link);
		if (l->file == f || file_inode(l->file) != ino)
			continue;
		if (type == F_WRLCK || l->target == F_UNLCK)
			return -EAGAIN;
	}
	return 0;
}

static int drop_own(struct file *f)
{
	mutex_lock(&mu);
	struct lease *l = find_locked(f);
	if (l)
		remove_locked(l);
	mutex_unlock(&mu);
	if (!l)
		return -EAGAIN;
	mem_free(l);
	wake_breakers();
	return 0;
}

static void default_owner(struct file *f, int fd, const struct cred *c)
{
	mutex_lock(&f->pos_mu);
	f->owner.fd = fd;
	if (f->owner.type < 0) {
		f->owner.type = F_OWNER_PID;
		f->owner.id = fs_hooks->current_tgid();
		f->owner.uid = c->uid;
		f->owner.euid = c->euid;
	}
	mutex_unlock(&f->pos_mu);
}

static int take(struct file *f, int fd, int type, const struct cred *c)
{
	struct lease *fresh = mem_zalloc(sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	fresh->file = f;
	fresh->deadline = DEADLINE_NEVER;
	fresh->pid = fs_hooks->current_tgid();
	/* Counted before the check, so that an open which the check does not see will see us. */
	atomic_fetch_add(&lease_count, 1);
	mutex_lock(&mu);
	int err = check_locked(f, type);
	struct lease *l = find_locked(f);
	if (!err && !l) {
		l = fresh;
		fresh = NULL;
		list_add_tail(&all_leases, &l->link);
	}
	if (!err)
		l->type = l->target = type;
	mutex_unlock(&mu);
	if (fresh)
		atomic_fetch_sub(&lease_count, 1);
	mem_free(fresh);
	if (!err) {
		default_owner(f, fd, c);
		wake_breakers();
	}
	return err;
}

int lease_set(struct file *f, int fd, int type, const struct cred *c)
{
	struct inode *ino = file_inode(f);
	struct fs_stat st;

	if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
		return -EINVAL;
	if (!ino)
		return -EINVAL;
	int err = ino->ops->getattr(ino, &st);
	if (err)
		return err;
	if (st.uid != c->fsuid && !cred_capable(c, CAP_LEASE))
		return -EACCES;
	if (ino->type != S_IFREG)
		return -EINVAL;
	return type == F_UNLCK ? drop_own(f) : take(f, fd, type, c);
}

int lease_get(struct file *f)
{
	mutex_lock(&mu);
	struct lease *l = find_locked(f);
	int type = l ? l->target : F_UNLCK;
	mutex_unlock(&mu);
	return type;
}

static bool conflicts(const struct lease *l, const struct inode *ino, bool write)
{
	return file_inode(l->file) == ino && (write || l->type == F_WRLCK);
}

/* Marks the next holder that has not been told yet and references its file; NULL when all know. */
static struct file *next_holder_locked(struct inode *ino, bool write) REQUIRES(mu)
{
	int to = write ? F_UNLCK : F_RDLCK;

	list_for_each(pos, &all_leases) {
		struct lease *l = list_entry(pos, struct lease, link);
		if (!conflicts(l, ino, write) || l->target == F_UNLCK || l->target == to)
			continue;
		if (!ref_inc_not_zero(&l->file->ref))
			continue; /* it is just being closed */
		if (l->target == l->type)
			l->deadline = deadline_after_ns(
				(uint64_t)MAX(atomic_load(&lease_break_seconds), 0) * NS_PER_S);
		l->target = to;
		return l->file;
	}
	return NULL;
}

static void tell_holders(struct inode *ino, bool write)
{
	for (;;) {
		mutex_lock(&mu);
		struct file *f = next_holder_locked(ino, write);
		mutex_unlock(&mu);
		if (!f)
			return;
		mutex_lock(&f->pos_mu);
		struct file_owner o = f->owner;
		mutex_unlock(&f->pos_mu);
		if (o.type >= 0)
			fs_hooks->signal_owner(&o, LEASE_POLL_MSG, LEASE_BAND);
		file_put(f);
	}
}

/* Ends leases whose time is over and says until when the rest may take; 0 when none conflicts. */
static deadline_t next_deadline_locked(struct inode *ino, bool write, struct list *gone)
	REQUIRES(mu)
{
	deadline_t next = 0, now = mono_now_ns();

	list_for_each_safe(pos, &all_leases) {
		struct lease *l = list_entry(pos, struct lease, link);
		if (!conflicts(l, ino, write))
			continue;
		if (l->target != l->type && l->deadline <= now) {
			l->type = l->target;
			l->deadline = DEADLINE_NEVER;
			if (l->type == F_UNLCK) {
				remove_locked(l);
				list_add(gone, &l->link);
			}
		}
		if (l->type != F_UNLCK && conflicts(l, ino, write))
			next = next ? MIN(next, l->deadline) : l->deadline;
	}
	return next;
}

/* Sleeps until something changes. 1: nothing conflicts any more; 0: look again; -ERESTARTSYS. */
static int wait_for_holders(struct inode *ino, bool write)
{
	struct list gone = LIST_INIT(gone);
	int ret = 1;

	pthread_once(&once, init_once);
	mutex_lock(&mu);
	deadline_t until = next_deadline_locked(ino, write, &gone);
	if (until)
		ret = waitq_wait(&changed, &mu, 0, until);
	mutex_unlock(&mu);
	while (!list_empty(&gone)) {
		struct lease *l = list_first(&gone, struct lease, link);
		list_del_init(&l->link);
		mem_free(l);
	}
	return ret == -ETIMEDOUT ? 0 : ret;
}

static bool is_leased(struct inode *ino, bool write)
{
	bool any = false;

	mutex_lock(&mu);
	list_for_each(pos, &all_leases)
		any |= conflicts(list_entry(pos, struct lease, link), ino, write);
	mutex_unlock(&mu);
	return any;
}

int lease_break(struct inode *ino, bool write, bool nonblock)
{
	if (atomic_load(&lease_count) == 0 || !is_leased(ino, write))
		return 0;
	for (;;) {
		tell_holders(ino, write);
		if (nonblock)
			return -EAGAIN;
		int ret = wait_for_holders(ino, write);
		if (ret != 0)
			return ret < 0 ? ret : 0;
	}
}

void lease_file_gone(struct file *f)
{
	if (atomic_load(&lease_count) > 0)
		(void)drop_own(f);
}

void lease_show(struct fmt *out, int *n)
{
	mutex_lock(&mu);
	list_for_each(pos, &all_leases) {
		struct lease *l = list_entry(pos, struct lease, link);
		struct inode *ino = file_inode(l->file);
		uint64_t dev = ino->sb->dev;

		fmt_printf(out, "%d: LEASE  %s %s %d %02x:%02x:%llu 0 EOF\n", ++*n,
			   l->target == l->type ? "ACTIVE   " : "BREAKING ",
			   l->target == F_WRLCK   ? "WRITE"
			   : l->target == F_RDLCK ? "READ "
						  : "UNLCK",
			   l->pid, major(dev), minor(dev), (unsigned long long)ino->ino);
	}
	mutex_unlock(&mu);
}

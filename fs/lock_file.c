/*
 * Advisory locks: see lock_file.h. One mutex guards all lists; waiters sleep on one of a few queues
 * chosen by inode and look again when anything there was unlocked.
 *
 * Invariant: the records of one owner on one inode do not overlap, and neighbours of one type are
 * merged. A POSIX owner is a descriptor table; an owner of OFD locks is a struct file, which holds
 * its inode.
 */
#include "fs/lock_file.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/sysmacros.h>

#include "fs/hooks.h"
#include "fs/lease.h"
#include "platform/base/alloc.h"

#define QUEUES 16
/* Length of a chain of waiters that is followed, as in Linux. */
#define DEADLOCK_STEPS 10

struct lock_rec {
	struct list link;        /* [mu] in inode->posix_locks or flocks, by start */
	struct list all_link;    /* [mu] */
	struct inode *ino;       /* [I] borrowed: the open file holds it */
	const void *owner;       /* [I] */
	bool ofd, flock;         /* [I] */
	struct lock_range range; /* [mu] */
};

/* A POSIX owner that sleeps until another gives way. */
struct blocked {
	struct list link;
	const void *owner, *blocker;
};

static struct mutex mu = MUTEX_INIT(RANK_FILE_LOCKS);
static struct list all_locks = LIST_INIT(all_locks);     /* [mu] */
static struct list all_blocked = LIST_INIT(all_blocked); /* [mu] */
static atomic_uint record_count; /* lets close(2) skip the lock when nobody locks anything */
static struct waitq queues[QUEUES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_once(void)
{
	for (int i = 0; i < QUEUES; i++)
		waitq_init(&queues[i]);
}

static struct waitq *queue_of(struct inode *ino)
{
	pthread_once(&once, init_once);
	return &queues[((uintptr_t)ino >> 6) % QUEUES];
}

static struct lock_rec *rec_new(struct file *f, const void *owner, bool flock)
{
	struct lock_rec *r = mem_zalloc(sizeof(*r));

	if (!r)
		return NULL;
	r->ino = file_inode(f);
	r->owner = owner;
	r->ofd = owner == f;
	r->flock = flock;
	list_init(&r->link);
	list_init(&r->all_link);
	return r;
}

static void insert_locked(struct list *head, struct lock_rec *r)
{
	struct list *at = head->next;

	while (at != head && list_entry(at, struct lock_rec, link)->range.start <= r->range.start)
		at = at->next;
	list_add_tail(at, &r->link);
	list_add_tail(&all_locks, &r->all_link);
	atomic_fetch_add(&record_count, 1);
}

/* Unlinks r; it is freed later by way of `gone`. */
static void remove_locked(struct lock_rec *r, struct list *gone)
{
	list_del_init(&r->link);
	list_del_init(&r->all_link);
	list_add(gone, &r->link);
	atomic_fetch_sub(&record_count, 1);
}

static void free_list(struct list *gone)
{
	while (!list_empty(gone)) {
		struct lock_rec *r = list_first(gone, struct lock_rec, link);
		list_del_init(&r->link);
		mem_free(r);
	}
}

static struct lock_rec *find_conflict(struct list *head, const void *owner,
				      const struct lock_range *want)
{
	list_for_each(pos, head) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, link);
		if (r->owner != owner && r->range.start <= want->end &&
		    want->start <= r->range.end &&
		    (r->range.type == F_WRLCK || want->type == F_WRLCK))
			return r;
	}
	return NULL;
}

/* Would waiting for `blocker` close a circle of POSIX owners? */
static bool is_deadlock(const void *owner, const void *blocker)
{
	for (int i = 0; i < DEADLOCK_STEPS; i++) {
		const void *next = NULL;

		if (blocker == owner)
			return true;
		list_for_each(pos, &all_blocked) {
			struct blocked *b = list_entry(pos, struct blocked, link);
			if (b->owner == blocker)
				next = b->blocker;
		}
		if (!next)
			return false;
		blocker = next;
	}
	return false;
}

/* mu is held. Sleeps until something on the inode changed. */
static int wait_for(struct inode *ino, const void *owner, const struct lock_rec *conflict,
		    bool posix) REQUIRES(&mu)
{
	struct blocked b = { .owner = owner, .blocker = conflict->owner };

	if (posix && !conflict->ofd && is_deadlock(owner, conflict->owner))
		return -EDEADLK;
	list_init(&b.link);
	if (posix)
		list_add(&all_blocked, &b.link);
	int err = waitq_wait(queue_of(ino), &mu, 0, DEADLINE_NEVER);
	list_del_init(&b.link);
	return err;
}

/* Cuts what `want` covers out of r, an overlapping record of another type. *spare is used for a
 * split. */
static void carve(struct list *head, struct lock_rec *r, const struct lock_range *want,
		  struct lock_rec **spare, struct list *gone)
{
	bool left = r->range.start<want->start, right = r->range.end> want->end;

	if (left && right) {
		struct lock_rec *tail = *spare;
		*spare = NULL;
		tail->range = r->range;
		tail->range.start = want->end + 1;
		r->range.end = want->start - 1;
		insert_locked(head, tail);
	} else if (left) {
		r->range.end = want->start - 1;
	} else if (right) {
		r->range.start = want->end + 1;
	} else {
		remove_locked(r, gone);
	}
}

/* Does r touch want: overlap, or border on it? */
static bool touches(const struct lock_range *r, const struct lock_range *want)
{
	return (r->start <= want->end || r->start - 1 == want->end) &&
	       (want->start <= r->end || want->start - 1 == r->end);
}

static bool overlaps(const struct lock_range *r, const struct lock_range *want)
{
	return r->start <= want->end && want->start <= r->end;
}

/* No conflict is left: makes the owner's records be as wanted. */
static void apply_locked(struct list *head, struct lock_range want, struct lock_rec **fresh,
			 struct lock_rec **spare, const void *owner, struct list *gone)
{
	list_for_each_safe(pos, head) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, link);
		if (r->owner != owner)
			continue;
		if (r->range.type == want.type && touches(&r->range, &want)) {
			want.start = MIN(want.start, r->range.start);
			want.end = MAX(want.end, r->range.end);
			remove_locked(r, gone);
		} else if (overlaps(&r->range, &want)) {
			carve(head, r, &want, spare, gone);
		}
	}
	if (want.type == F_UNLCK)
		return;
	(*fresh)->range = want;
	insert_locked(head, *fresh);
	*fresh = NULL;
}

int lock_range_set(struct file *f, const void *owner, int pid, const struct lock_range *want,
		   bool wait)
{
	struct inode *ino = file_inode(f);
	struct list gone = LIST_INIT(gone);
	struct lock_rec *fresh = rec_new(f, owner, false), *spare = rec_new(f, owner, false), *c;
	struct lock_range w = *want;
	int err = fresh && spare ? 0 : -ENOLCK;

	w.pid = pid;
	mutex_lock(&mu);
	while (!err && w.type != F_UNLCK &&
	       (c = find_conflict(&ino->posix_locks, owner, &w)) != NULL)
		err = wait ? wait_for(ino, owner, c, owner != f) : -EAGAIN;
	if (!err) {
		apply_locked(&ino->posix_locks, w, &fresh, &spare, owner, &gone);
		if (owner == f)
			atomic_store(&f->lock_count, 1);
	}
	mutex_unlock(&mu);
	if (!err)
		waitq_wake(queue_of(ino), 0);
	free_list(&gone);
	mem_free(fresh);
	mem_free(spare);
	return err;
}

/* What F_OFD_GETLK with F_UNLCK asks for since Linux 6.7: the owner's own lock in the range. */
static struct lock_rec *find_own(struct list *head, const void *owner,
				 const struct lock_range *want)
{
	list_for_each(pos, head) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, link);
		if (r->owner == owner && overlaps(&r->range, want))
			return r;
	}
	return NULL;
}

void lock_range_get(struct file *f, const void *owner, const struct lock_range *want,
		    struct lock_range *out)
{
	mutex_lock(&mu);
	struct list *head = &file_inode(f)->posix_locks;
	struct lock_rec *c = want->type == F_UNLCK ? find_own(head, owner, want)
						   : find_conflict(head, owner, want);
	*out = *want;
	out->type = F_UNLCK;
	if (c) {
		*out = c->range;
		if (c->ofd)
			out->pid = -1;
	}
	mutex_unlock(&mu);
}

/* Removes the owner's records from a list. */
static bool drop_owner_locked(struct list *head, const void *owner, struct list *gone)
{
	bool any = false;

	list_for_each_safe(pos, head) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, link);
		if (r->owner == owner) {
			remove_locked(r, gone);
			any = true;
		}
	}
	return any;
}

int lock_flock(struct file *f, int op)
{
	struct inode *ino = file_inode(f);
	struct lock_range want = { .end = INT64_MAX };
	struct list gone = LIST_INIT(gone);
	struct lock_rec *fresh = rec_new(f, f, true), *c;
	int err = fresh ? 0 : -ENOLCK;

	switch (op & ~LOCK_NB) {
	case LOCK_SH:
		want.type = F_RDLCK;
		break;
	case LOCK_EX:
		want.type = F_WRLCK;
		break;
	default:
		want.type = F_UNLCK;
	}
	want.pid = fs_hooks ? fs_hooks->current_tgid() : 0;
	mutex_lock(&mu);
	/* A conversion gives up the old lock first (flock(2)); waiters see it only when it was
	 * stronger. */
	bool held = false;
	list_for_each(pos, &ino->flocks) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, link);
		held |= r->owner == f && r->range.type == want.type;
	}
	bool dropped = !err && !held && drop_owner_locked(&ino->flocks, f, &gone);
	if (dropped)
		waitq_wake(queue_of(ino), 0);
	while (!err && !held && want.type != F_UNLCK &&
	       (c = find_conflict(&ino->flocks, f, &want)) != NULL)
		err = op & LOCK_NB ? -EAGAIN : wait_for(ino, f, c, false);
	if (!err && !held && want.type != F_UNLCK) {
		fresh->range = want;
		insert_locked(&ino->flocks, fresh);
		fresh = NULL;
		atomic_store(&f->lock_count, 1);
	}
	mutex_unlock(&mu);
	free_list(&gone);
	mem_free(fresh);
	return err;
}

void lock_file_closed(struct file *f, const void *owner)
{
	struct inode *ino = file_inode(f);
	struct list gone = LIST_INIT(gone);

	if (!ino || atomic_load(&record_count) == 0)
		return;
	mutex_lock(&mu);
	bool any = drop_owner_locked(&ino->posix_locks, owner, &gone);
	mutex_unlock(&mu);
	if (any)
		waitq_wake(queue_of(ino), 0);
	free_list(&gone);
}

void lock_file_gone(struct file *f)
{
	struct inode *ino = file_inode(f);
	struct list gone = LIST_INIT(gone);

	if (!ino || atomic_load(&f->lock_count) == 0)
		return;
	mutex_lock(&mu);
	drop_owner_locked(&ino->posix_locks, f, &gone);
	drop_owner_locked(&ino->flocks, f, &gone);
	mutex_unlock(&mu);
	waitq_wake(queue_of(ino), 0);
	free_list(&gone);
}

void lock_show(struct fmt *out)
{
	int n = 0;

	mutex_lock(&mu);
	list_for_each(pos, &all_locks) {
		struct lock_rec *r = list_entry(pos, struct lock_rec, all_link);
		const char *kind = r->flock ? "FLOCK " : r->ofd ? "OFDLCK" : "POSIX ";
		uint64_t dev = r->ino->sb->dev;

		fmt_printf(out, "%d: %s ADVISORY  %s %d %02x:%02x:%llu %lld ", ++n, kind,
			   r->range.type == F_WRLCK ? "WRITE" : "READ ",
			   r->ofd && !r->flock ? -1 : r->range.pid, major(dev), minor(dev),
			   (unsigned long long)r->ino->ino, (long long)r->range.start);
		if (r->range.end == INT64_MAX)
			fmt_puts(out, "EOF\n");
		else
			fmt_printf(out, "%lld\n", (long long)r->range.end);
	}
	mutex_unlock(&mu);
	lease_show(out, &n);
}

/*
 * epoll(7).
 *
 * A set (struct epoll) holds items, one per (file, descriptor number), in a tree. Each item has
 *waiters on the wait queues of its file. A wake-up puts the item on the set's ready list and wakes
 *the set's own queue. epoll_wait takes items off that list and asks the file again: the list says
 *what is worth asking, never what is true. A level-triggered item that was reported goes back to
 *the list's end, an edge-triggered one waits for its next wake-up, a one-shot one is muted.
 *
 * Locks, outermost first:
 *	nesting_mu   one set at a time becomes member of another (rank EPOLL)
 *	epoll->mu    the tree, and scans of the ready list (rank EPOLL; outer set before inner set,
 *which is an order because nesting has no cycles) links_mu     file->epoll_links of all files (rank
 *HASH: nothing is taken under it) epoll->ready_mu  the ready list; the only lock that a wake-up
 *callback takes (rank EPOLL_READY)
 *
 * An item borrows its file. When the last reference of a file goes, file_put calls epoll_file_gone
 *before anything of the file is torn down, and that takes epoll->mu; so under epoll->mu every
 *item's file is whole.
 */
#include "fs/epoll.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/rbtree.h"

#define EPOLL_NEST_MAX 4           /* sets within sets, as Linux (EP_MAX_NESTS) */
#define EPOLL_ITEMS_MAX (1u << 20) /* items of one sandbox: about 200 MiB */
#define ITEM_QUEUES_MAX 4          /* wait queues one file may name in a poll */

/* Bits that say how to report rather than what. */
#define EPOLL_MODE_BITS (EPOLLWAKEUP | EPOLLONESHOT | EPOLLET | EPOLLEXCLUSIVE)
#define EPOLL_EXCLUSIVE_OK                                                                         \
	(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

struct epoll {
	struct file file;
	struct ref ref;        /* the file's and those of epoll_file_gone in progress */
	struct mutex mu;       /* rank EPOLL */
	struct rb_root items;  /* [mu] by file address, then number */
	struct waitq wait;     /* threads in epoll_wait */
	struct waitq pollers;  /* poll, select and outer sets: told of new readiness only */
	struct mutex ready_mu; /* rank EPOLL_READY */
	struct list ready;     /* [ready_mu] */
	unsigned visit;        /* [nesting_mu] mark of the last walk that came here */
	int visit_depth;       /* [nesting_mu] what that walk found */
};

struct item {
	struct rb_node node;    /* [epoll mu] */
	struct epoll *ep;       /* [I] */
	struct file *file;      /* [I] borrowed */
	int fd;                 /* [I] */
	struct list file_link;  /* [links_mu] in file->epoll_links */
	struct list ready_link; /* [ready_mu] in ep->ready or a scan's private list */
	bool is_ready;          /* [ready_mu] */
	uint32_t events;        /* [ep mu and ready_mu to write, either to read] */
	uint64_t data;          /* [ep mu] */
	unsigned queue_count;   /* [ep mu] */
	struct waiter waiters[ITEM_QUEUES_MAX];
};

/* While an item's queues are being collected. */
struct item_table {
	struct poll_table pt;
	struct item *item;
	bool too_many;
};

static const struct file_ops epoll_file_ops;
static struct mutex nesting_mu = MUTEX_INIT(RANK_EPOLL);
static struct mutex links_mu = MUTEX_INIT(RANK_HASH);
static unsigned visit_now;     /* [nesting_mu] */
static atomic_uint item_count; /* of all sets */

static void epoll_free(struct epoll *ep)
{
	waitq_fini(&ep->wait);
	waitq_fini(&ep->pollers);
	mutex_fini(&ep->ready_mu);
	mutex_fini(&ep->mu);
	mem_free(ep);
}

static void epoll_put(struct epoll *ep)
{
	if (ref_dec(&ep->ref))
		epoll_free(ep);
}

static struct epoll *to_epoll(struct file *f)
{
	return container_of(f, struct epoll, file);
}

bool is_epoll(const struct file *f)
{
	return f->ops == &epoll_file_ops;
}

/* ---- items -------------------------------------------------------------------------------- */

static int item_compare(const struct item *i, const struct file *f, int fd)
{
	if (i->file != f)
		return (uintptr_t)f < (uintptr_t)i->file ? -1 : 1;
	return fd < i->fd ? -1 : fd > i->fd;
}

/* The item of (f, fd), or NULL and where it would be linked. */
static struct item *item_find_locked(struct epoll *ep, const struct file *f, int fd,
				     struct rb_node **out_parent, struct rb_node ***out_link)
{
	struct rb_node **link = &ep->items.node, *parent = NULL;

	while (*link) {
		struct item *i = container_of(*link, struct item, node);
		int c = item_compare(i, f, fd);
		if (c == 0)
			return i;
		parent = *link;
		link = c < 0 ? &parent->left : &parent->right;
	}
	*out_parent = parent;
	*out_link = link;
	return NULL;
}

/* Any item of f, or NULL. */
static struct item *item_of_file_locked(struct epoll *ep, const struct file *f)
{
	struct rb_node *n = ep->items.node;

	while (n) {
		struct item *i = container_of(n, struct item, node);
		if (i->file == f)
			return i;
		n = (uintptr_t)f < (uintptr_t)i->file ? n->left : n->right;
	}
	return NULL;
}

/* Puts the item on the ready list; true when somebody should be told. */
static bool item_set_ready(struct item *i, uint32_t events)
{
	struct epoll *ep = i->ep;

	mutex_lock(&ep->ready_mu);
	bool wanted = (i->events & ~EPOLL_MODE_BITS) && (events == 0 || (events & i->events));
	if (wanted && !i->is_ready) {
		i->is_ready = true;
		list_add_tail(&ep->ready, &i->ready_link);
	}
	mutex_unlock(&ep->ready_mu);
	return wanted;
}

static void item_unready(struct item *i)
{
	mutex_lock(&i->ep->ready_mu);
	list_del_init(&i->ready_link);
	i->is_ready = false;
	mutex_unlock(&i->ep->ready_mu);
}

static void epoll_announce(struct epoll *ep)
{
	waitq_wake(&ep->wait, POLLIN | POLLRDNORM);
	waitq_wake(&ep->pollers, POLLIN | POLLRDNORM);
}

/* The wake-up callback: runs under the lock of the file's wait queue. */
static void item_wake(struct waiter *w, uint32_t events)
{
	struct item *i = w->arg;

	if (item_set_ready(i, events))
		epoll_announce(i->ep);
}

static void item_add_queue(struct poll_table *pt, struct waitq *q)
{
	struct item_table *t = container_of(pt, struct item_table, pt);
	struct item *i = t->item;

	if (i->queue_count == ITEM_QUEUES_MAX) {
		t->too_many = true;
		return;
	}
	struct waiter *w = &i->waiters[i->queue_count++];
	*w = (struct waiter){ .fn = item_wake, .arg = i };
	waitq_add(q, w);
}

/* What of i->events holds now. */
static uint32_t item_poll(struct item *i, struct poll_table *pt)
{
	return file_poll(i->file, pt) & i->events & ~EPOLL_MODE_BITS;
}

/* Takes the item out of everything and frees it. ep->mu is held. */
static void item_remove_locked(struct item *i)
{
	for (unsigned q = 0; q < i->queue_count; q++)
		waitq_remove(&i->waiters[q]);
	item_unready(i);
	mutex_lock(&links_mu);
	list_del_init(&i->file_link);
	mutex_unlock(&links_mu);
	rb_erase(&i->ep->items, &i->node);
	atomic_fetch_sub(&item_count, 1);
	mem_free(i);
}

static uint32_t item_event_mask(uint32_t events)
{
	return (events & ~EPOLLWAKEUP) | EPOLLERR | EPOLLHUP;
}

static int item_add_locked(struct epoll *ep, int fd, struct file *target,
			   const struct epoll_event *ev, struct rb_node *parent,
			   struct rb_node **link)
{
	struct item *i = mem_zalloc(sizeof(*i));
	if (!i)
		return -ENOMEM;
	if (atomic_fetch_add(&item_count, 1) >= EPOLL_ITEMS_MAX) {
		atomic_fetch_sub(&item_count, 1);
		mem_free(i);
		return -ENOSPC;
	}
	i->ep = ep;
	i->file = target;
	i->fd = fd;
	i->events = item_event_mask(ev->events);
	i->data = ev->data.u64;
	list_init(&i->ready_link);
	rb_insert(&ep->items, &i->node, parent, link);
	mutex_lock(&links_mu);
	list_add_tail(&target->epoll_links, &i->file_link);
	mutex_unlock(&links_mu);
	/* LINUX: of several sets with EPOLLEXCLUSIVE one is woken if that is enough. We wake all of
	 * them, which the interface allows ("one or more"): a set without a waiter never swallows
	 * the wake-up. */
	struct item_table t = { .pt = { .queue = item_add_queue }, .item = i };
	uint32_t now = item_poll(i, &t.pt);
	if (t.too_many) {
		item_remove_locked(i);
		return -ENOMEM;
	}
	if (now && item_set_ready(i, now))
		epoll_announce(ep);
	return 0;
}

static int item_modify_locked(struct item *i, const struct epoll_event *ev)
{
	if ((i->events & EPOLLEXCLUSIVE) || (ev->events & EPOLLEXCLUSIVE))
		return -EINVAL;
	mutex_lock(&i->ep->ready_mu);
	i->events = item_event_mask(ev->events);
	mutex_unlock(&i->ep->ready_mu);
	i->data = ev->data.u64;
	uint32_t now = item_poll(i, NULL);
	if (now && item_set_ready(i, now))
		epoll_announce(i->ep);
	return 0;
}

/* ---- nesting ------------------------------------------------------------------------------ */

/*
 * How many sets lie below `ep`; EPOLL_NEST_MAX + 1 when too many or when `forbidden` is among them.
 * The depth of the recursion is bounded by EPOLL_NEST_MAX, its breadth by the visit mark.
 * nesting_mu is held, so no other thread makes or sees a chain in the making.
 */
static int depth_below(struct epoll *ep, const struct epoll *forbidden, int level)
{
	int deepest = 0;

	if (ep == forbidden || level > EPOLL_NEST_MAX)
		return EPOLL_NEST_MAX + 1;
	if (ep->visit == visit_now)
		return ep->visit_depth;
	ep->visit = visit_now;
	mutex_lock_nested(&ep->mu);
	for (struct rb_node *n = rb_first(&ep->items); n && deepest <= EPOLL_NEST_MAX;
	     n = rb_next(n)) {
		struct item *i = container_of(n, struct item, node);
		if (is_epoll(i->file))
			deepest = MAX(deepest,
				      1 + depth_below(to_epoll(i->file), forbidden, level + 1));
	}
	mutex_unlock(&ep->mu);
	ep->visit_depth = MIN(deepest, EPOLL_NEST_MAX + 1);
	return ep->visit_depth;
}

/* How many sets lie above `ep`. Same bounds; links_mu is held. */
static int depth_above_locked(struct epoll *ep, int level)
{
	int highest = 0;

	if (level > EPOLL_NEST_MAX)
		return EPOLL_NEST_MAX + 1;
	if (ep->visit == visit_now)
		return ep->visit_depth;
	ep->visit = visit_now;
	list_for_each(pos, &ep->file.epoll_links) {
		struct item *i = list_entry(pos, struct item, file_link);
		highest = MAX(highest, 1 + depth_above_locked(i->ep, level + 1));
		if (highest > EPOLL_NEST_MAX)
			break;
	}
	ep->visit_depth = MIN(highest, EPOLL_NEST_MAX + 1);
	return ep->visit_depth;
}

/* May `inner` become a member of `outer`? nesting_mu is held. */
static int check_nesting(struct epoll *outer, struct epoll *inner)
{
	visit_now++;
	int below = depth_below(inner, outer, 0);
	visit_now++;
	mutex_lock(&links_mu);
	int above = depth_above_locked(outer, 0);
	mutex_unlock(&links_mu);
	return below + above + 1 > EPOLL_NEST_MAX ? -ELOOP : 0;
}

/* ---- epoll_ctl ---------------------------------------------------------------------------- */

static int control_locked(struct epoll *ep, int op, int fd, struct file *target,
			  const struct epoll_event *ev)
{
	struct rb_node *parent = NULL, **link = NULL;
	struct item *i = item_find_locked(ep, target, fd, &parent, &link);

	switch (op) {
	case EPOLL_CTL_ADD:
		return i ? -EEXIST : item_add_locked(ep, fd, target, ev, parent, link);
	case EPOLL_CTL_MOD:
		return i ? item_modify_locked(i, ev) : -ENOENT;
	case EPOLL_CTL_DEL:
		if (!i)
			return -ENOENT;
		item_remove_locked(i);
		return 0;
	default:
		return -EINVAL;
	}
}

/* clang's analysis cannot follow a lock that is taken under a condition. */
int epoll_control(struct file *f, int op, int fd, struct file *target, const struct epoll_event *ev)
	NO_LOCK_ANALYSIS
{
	if (!target->ops->poll)
		return -EPERM;
	if (f == target || !is_epoll(f))
		return -EINVAL;
	if (op != EPOLL_CTL_DEL && (ev->events & EPOLLEXCLUSIVE)) {
		if (op == EPOLL_CTL_MOD)
			return -EINVAL;
		if (op == EPOLL_CTL_ADD && (is_epoll(target) || (ev->events & ~EPOLL_EXCLUSIVE_OK)))
			return -EINVAL;
	}
	struct epoll *ep = to_epoll(f);
	bool nests = op == EPOLL_CTL_ADD && is_epoll(target);
	int err = 0;
	if (nests) {
		mutex_lock(&nesting_mu);
		err = check_nesting(ep, to_epoll(target));
	}
	if (!err) {
		mutex_lock_nested(&ep->mu);
		err = control_locked(ep, op, fd, target, ev);
		mutex_unlock(&ep->mu);
	}
	if (nests)
		mutex_unlock(&nesting_mu);
	return err;
}

void epoll_file_gone(struct file *f)
{
	for (;;) {
		struct epoll *ep = NULL;
		mutex_lock(&links_mu);
		list_for_each(pos, &f->epoll_links) {
			struct item *i = list_entry(pos, struct item, file_link);
			/* A set that is being freed removes its items itself, under links_mu. */
			ref_inc(&i->ep->ref);
			ep = i->ep;
			break;
		}
		mutex_unlock(&links_mu);
		if (!ep)
			return;
		mutex_lock(&ep->mu);
		struct item *i;
		while ((i = item_of_file_locked(ep, f)) != NULL)
			item_remove_locked(i);
		mutex_unlock(&ep->mu);
		epoll_put(ep);
	}
}

/* ---- epoll_wait --------------------------------------------------------------------------- */

/* The first ready item, taken off the list, or NULL. */
static struct item *pop_ready(struct epoll *ep, struct list *from)
{
	struct item *i = NULL;

	mutex_lock(&ep->ready_mu);
	if (!list_empty(from)) {
		i = list_first(from, struct item, ready_link);
		list_del_init(&i->ready_link);
		i->is_ready = false;
	}
	mutex_unlock(&ep->ready_mu);
	return i;
}

static bool has_ready(struct epoll *ep)
{
	mutex_lock(&ep->ready_mu);
	bool has = !list_empty(&ep->ready);
	mutex_unlock(&ep->ready_mu);
	return has;
}

/* After a report: mute, or come again, or wait for the next edge. */
static void item_reported_locked(struct item *i)
{
	if (i->events & EPOLLONESHOT) {
		mutex_lock(&i->ep->ready_mu);
		i->events &= EPOLL_MODE_BITS;
		mutex_unlock(&i->ep->ready_mu);
	} else if (!(i->events & EPOLLET)) {
		(void)item_set_ready(i, 0);
	}
}

/* Reports up to max events through `it`; their number or -EFAULT. ep->mu is held, which the copies
 * to the guest allow (EPOLL < MM). */
static int report_ready_locked(struct epoll *ep, struct iov_iter *it, int max)
{
	struct list todo;
	struct item *i;
	int done = 0;

	/* Only what is ready now: items that come again must not be asked twice in one call. */
	list_init(&todo);
	mutex_lock(&ep->ready_mu);
	list_splice_tail(&todo, &ep->ready);
	mutex_unlock(&ep->ready_mu);
	while (done < max && (i = pop_ready(ep, &todo)) != NULL) {
		struct epoll_event ev = { .events = item_poll(i, NULL), .data.u64 = i->data };
		if (ev.events == 0)
			continue;
		if (iov_copy_to(it, &ev, sizeof(ev)) != (ssize_t)sizeof(ev)) {
			(void)item_set_ready(i, 0);
			done = done ? done : -EFAULT;
			break;
		}
		item_reported_locked(i);
		done++;
	}
	/* The rest goes before what became ready meanwhile. */
	mutex_lock(&ep->ready_mu);
	list_splice_tail(&todo, &ep->ready);
	list_splice_tail(&ep->ready, &todo);
	bool more = !list_empty(&ep->ready);
	mutex_unlock(&ep->ready_mu);
	if (more)
		waitq_wake(&ep->wait, POLLIN | POLLRDNORM);
	return done;
}

static void wake_waiting_thread(struct waiter *w, uint32_t events UNUSED)
{
	list_del_init(&w->link);
	w->woken = true;
	sleeper_wake(w->arg);
}

/* Sleeps until the ready list is not empty: 0, -ERESTARTSYS, -ETIMEDOUT. waitq_wait does not fit:
 * its mutex would have to be the one under which items become ready, and that one is taken inside
 * callbacks. */
static int wait_ready(struct epoll *ep, deadline_t deadline)
{
	struct sleeper *s = sleeper_self();
	struct waiter w;
	int err = 0;

	waiter_init_sleeper(&w, s, 0);
	w.fn = wake_waiting_thread;
	w.exclusive = true;
	lock_assert_none_held(NULL);
	sleeper_prepare(s);
	waitq_add(&ep->wait, &w);
	if (!has_ready(ep))
		err = sleeper_sleep(s, deadline);
	waitq_remove(&w);
	if (err && w.woken)
		waitq_wake(&ep->wait, POLLIN | POLLRDNORM);
	return err;
}

int epoll_wait_events(struct file *f, struct iov_iter *it, int max, deadline_t deadline)
{
	bool last = deadline == 0;

	if (!is_epoll(f))
		return -EINVAL;
	struct epoll *ep = to_epoll(f);
	for (;;) {
		mutex_lock(&ep->mu);
		int n = report_ready_locked(ep, it, max);
		mutex_unlock(&ep->mu);
		if (n != 0 || last)
			return n;
		int err = wait_ready(ep, deadline);
		if (err == -ERESTARTSYS)
			return -EINTR;
		last = err == -ETIMEDOUT;
	}
}

/* ---- the set as a file -------------------------------------------------------------------- */

static uint32_t epoll_poll(struct file *f, struct poll_table *pt)
{
	struct epoll *ep = to_epoll(f);
	struct item *i;
	uint32_t events = 0;

	poll_wait(pt, &ep->pollers);
	/* Nested: an outer set asks us under its own lock. */
	mutex_lock_nested(&ep->mu);
	while (!events && (i = pop_ready(ep, &ep->ready)) != NULL) {
		if (item_poll(i, NULL)) {
			events = POLLIN | POLLRDNORM;
			(void)item_set_ready(i, 0);
		}
	}
	mutex_unlock(&ep->mu);
	return events;
}

static void epoll_release(struct file *f)
{
	struct epoll *ep = to_epoll(f);
	struct rb_node *n;

	mutex_lock(&ep->mu);
	while ((n = rb_first(&ep->items)) != NULL)
		item_remove_locked(container_of(n, struct item, node));
	mutex_unlock(&ep->mu);
	epoll_put(ep);
}

static void epoll_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:[eventpoll]");
}

static void epoll_show_fdinfo(struct file *f, struct fmt *out)
{
	struct epoll *ep = to_epoll(f);

	mutex_lock(&ep->mu);
	for (struct rb_node *n = rb_first(&ep->items); n; n = rb_next(n)) {
		struct item *i = container_of(n, struct item, node);
		fmt_printf(out,
			   "tfd: %8d events: %8x data: %16" PRIx64 "  pos:0 ino:%" PRIx64
			   " sdev:0\n",
			   i->fd, i->events, i->data, i->file->inode ? i->file->inode->ino : 0);
	}
	mutex_unlock(&ep->mu);
}

int epoll_new(const struct cred *c, struct file **out)
{
	struct inode *ino;

	struct epoll *ep = mem_zalloc(sizeof(*ep));
	if (!ep)
		return -ENOMEM;
	int err = anon_inode_new(0600, c, &ino);
	if (err) {
		mem_free(ep);
		return err;
	}
	ref_init(&ep->ref);
	mutex_init(&ep->mu, RANK_EPOLL);
	mutex_init(&ep->ready_mu, RANK_EPOLL_READY);
	waitq_init(&ep->wait);
	waitq_init(&ep->pollers);
	list_init(&ep->ready);
	file_init(&ep->file, &epoll_file_ops, ino, O_RDWR);
	*out = &ep->file;
	return 0;
}

static const struct file_ops epoll_file_ops = {
	.poll = epoll_poll,
	.release = epoll_release,
	.describe = epoll_describe,
	.show_fdinfo = epoll_show_fdinfo,
};

/*
 * O_ASYNC: see fasync.h. Who announces an event holds locks inside which no signal can be sent, so
 * the waiter of a file only notes the event, and a thread of our own, started by the first use,
 * asks the file and sends.
 */
#include "fs/fasync.h"

#include <errno.h>
#include <fcntl.h>

#include "fs/hooks.h"
#include "fs/poll.h"
#include "platform/base/alloc.h"
#include "platform/base/thread.h"

#define QUEUES_MAX 4

struct fasync {
	struct file *file;        /* [I] borrowed: its end takes us away */
	struct list pending_link; /* [mu] */
	uint32_t events;          /* [mu] announced and not yet looked at */
	unsigned queue_count;     /* [config_mu] */
	struct waiter waiters[QUEUES_MAX];
};

struct collect {
	struct poll_table pt;
	struct fasync *a;
};

static struct mutex config_mu = MUTEX_INIT(RANK_EPOLL);
static struct mutex mu = MUTEX_INIT(RANK_HASH);
static struct list pending = LIST_INIT(pending); /* [mu] */
static struct sleeper worker;
static bool worker_runs; /* [config_mu] */

static const struct {
	uint32_t events;
	int code; /* si_code, POLL_IN and so on of siginfo.h */
	uint32_t band;
} kinds[] = {
	{ POLLIN | POLLRDNORM, 1, POLLIN | POLLRDNORM },
	{ POLLOUT | POLLWRNORM, 2, POLLOUT | POLLWRNORM | POLLWRBAND },
	{ POLLPRI | POLLRDBAND, 5, POLLPRI | POLLRDBAND },
	{ POLLHUP | POLLERR, 6, POLLHUP | POLLERR },
};

/* Runs inside the announcer's locks. */
static void note(struct waiter *w, uint32_t events)
{
	struct fasync *a = w->arg;

	mutex_lock(&mu);
	a->events |= events ? events : ~0u;
	if (list_empty(&a->pending_link))
		list_add_tail(&pending, &a->pending_link);
	mutex_unlock(&mu);
	sleeper_wake(&worker);
}

static void add_queue(struct poll_table *pt, struct waitq *q)
{
	struct fasync *a = container_of(pt, struct collect, pt)->a;

	if (a->queue_count == QUEUES_MAX)
		return;
	struct waiter *w = &a->waiters[a->queue_count++];
	*w = (struct waiter){ .fn = note, .arg = a };
	waitq_add(q, w);
}

/* ---- sending ------------------------------------------------------------------------------ */

static void tell_owner(struct file *f, uint32_t events)
{
	mutex_lock(&f->pos_mu);
	struct file_owner o = f->owner;
	mutex_unlock(&f->pos_mu);
	if (o.type < 0)
		return;
	events &= file_poll(f, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (events & kinds[i].events)
			fs_hooks->signal_owner(&o, kinds[i].code, kinds[i].band);
}

/* The next file with news, referenced; NULL when there is none. */
static struct file *next_pending(uint32_t *out_events)
{
	struct file *f = NULL;

	mutex_lock(&mu);
	while (!f && !list_empty(&pending)) {
		struct fasync *a = list_first(&pending, struct fasync, pending_link);
		list_del_init(&a->pending_link);
		*out_events = a->events;
		a->events = 0;
		if (ref_inc_not_zero(&a->file->ref))
			f = a->file;
	}
	mutex_unlock(&mu);
	return f;
}

static void *worker_main(void *arg UNUSED)
{
	sleeper_set_self(&worker);
	for (;;) {
		struct file *f;
		uint32_t events;

		sleeper_prepare(&worker);
		while ((f = next_pending(&events)) != NULL) {
			tell_owner(f, events);
			file_put(f);
		}
		/* Nobody interrupts this thread, and it has no deadline. */
		BUG_ON(sleeper_sleep(&worker, DEADLINE_NEVER) != 0);
	}
	return NULL;
}

static int start_worker(void)
{
	pthread_t thread;

	if (worker_runs)
		return 0;
	sleeper_init(&worker);
	int err = thread_start(&thread, worker_main, NULL);
	if (err)
		return err;
	worker_runs = true;
	return 0;
}

/* ---- switching ---------------------------------------------------------------------------- */

static bool has_fasync(struct file *f)
{
	struct inode *ino = file_inode(f);

	return ino && f->ops->poll &&
	       (ino->type == S_IFIFO || ino->type == S_IFSOCK || ino->type == S_IFCHR);
}

static void fasync_drop(struct fasync *a)
{
	for (unsigned i = 0; i < a->queue_count; i++)
		waitq_remove(&a->waiters[i]);
	mutex_lock(&mu);
	list_del_init(&a->pending_link);
	mutex_unlock(&mu);
	mem_free(a);
}

static int switch_on(struct file *f)
{
	int err = start_worker();

	if (err)
		return err;
	struct fasync *a = mem_zalloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->file = f;
	list_init(&a->pending_link);
	struct collect c = { .pt = { .queue = add_queue }, .a = a };
	file_poll(f, &c.pt);
	f->async = a;
	return 0;
}

int fasync_set(struct file *f, int fd, bool on)
{
	int err = 0;

	if (!has_fasync(f))
		return 0;
	mutex_lock(&config_mu);
	if (on && !f->async) {
		err = switch_on(f);
	} else if (!on && f->async) {
		fasync_drop(f->async);
		f->async = NULL;
	}
	mutex_unlock(&config_mu);
	if (!err && on) {
		mutex_lock(&f->pos_mu);
		f->owner.fd = fd;
		mutex_unlock(&f->pos_mu);
	}
	return err;
}

void fasync_file_gone(struct file *f)
{
	if (f->async)
		fasync_drop(f->async);
	f->async = NULL;
}

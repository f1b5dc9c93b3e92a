/*
 * inotify(7). One mutex guards the watches of all inodes and the queues of all instances: events
 * are rare beside everything else, and without any watch a notification is one load.
 *
 * A watch references its inode, as Linux' marks do; the inode's list and the instance's list borrow
 * the watch. It is freed when it leaves both, outside the mutex.
 */
#include "fs/inotify.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>

#include "fs/dcache.h"
#include "platform/base/alloc.h"

#define MAX_EVENTS 16384   /* fs.inotify.max_queued_events */
#define MAX_WATCHES 65536u /* of the sandbox; Linux: by memory, for each user */

#define KEPT_FLAGS (IN_ONESHOT | IN_EXCL_UNLINK)

struct event {
	struct list link;
	int wd;
	uint32_t mask, cookie;
	uint32_t name_len; /* padded, as read(2) gives it */
	char name[];
};

struct inotify {
	struct file file;
	struct list watches;  /* [mu] */
	struct list events;   /* [mu] */
	struct list all_link; /* [mu] */
	size_t event_count;   /* [mu] */
	size_t event_bytes;   /* [mu] what FIONREAD says */
	bool overflowed;      /* [mu] the overflow event is queued */
	int next_wd;          /* [mu] */
	struct waitq wait;
};

struct watch {
	struct list inode_link; /* [mu] */
	struct list queue_link; /* [mu] */
	struct inotify *q;      /* [I] borrowed */
	struct inode *ino;      /* [I] referenced */
	uint32_t mask;          /* [mu] events and KEPT_FLAGS */
	int wd;                 /* [I] */
};

static struct mutex mu = MUTEX_INIT(RANK_FILE_LOCKS);
_Atomic int inotify_max_instances = INOTIFY_INSTANCES_MAX;
static struct list instances = LIST_INIT(instances); /* [mu] */
static atomic_uint instance_count, watch_count;
static atomic_uint next_cookie;
static const struct file_ops inotify_file_ops;

static struct inotify *to_inotify(struct file *f)
{
	return container_of(f, struct inotify, file);
}

bool file_is_inotify(struct file *f)
{
	return f->ops == &inotify_file_ops;
}

/* ---- queue -------------------------------------------------------------------------------- */

static size_t event_size(const struct event *e)
{
	return sizeof(struct inotify_event) + e->name_len;
}

static struct event *event_new(int wd, uint32_t mask, uint32_t cookie, const char *name)
{
	size_t len = name ? strlen(name) + 1 : 0;
	size_t padded = (len + sizeof(struct inotify_event) - 1) / sizeof(struct inotify_event) *
			sizeof(struct inotify_event);
	struct event *e = mem_zalloc(sizeof(*e) + padded);

	if (!e)
		return NULL;
	e->wd = wd;
	e->mask = mask;
	e->cookie = cookie;
	e->name_len = (uint32_t)padded;
	if (len)
		memcpy(e->name, name, len);
	return e;
}

static bool same_event(const struct event *a, const struct event *b)
{
	return a->wd == b->wd && a->mask == b->mask && a->cookie == b->cookie &&
	       a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

static void append_locked(struct inotify *q, struct event *e)
{
	list_init(&e->link);
	list_add_tail(&q->events, &e->link);
	q->event_count++;
	q->event_bytes += event_size(e);
	waitq_wake(&q->wait, POLLIN | POLLRDNORM);
}

/* Identical neighbours are one; a full queue ends with an overflow event, as does lack of memory.
 */
static void queue_event_locked(struct inotify *q, int wd, uint32_t mask, uint32_t cookie,
			       const char *name)
{
	struct event *e = q->event_count < MAX_EVENTS ? event_new(wd, mask, cookie, name) : NULL;

	if (e && !list_empty(&q->events) &&
	    same_event(list_last(&q->events, struct event, link), e)) {
		mem_free(e);
		return;
	}
	if (!e && !q->overflowed) {
		e = event_new(-1, IN_Q_OVERFLOW, 0, NULL);
		q->overflowed = e != NULL;
	}
	if (e)
		append_locked(q, e);
}

/* ---- watches ------------------------------------------------------------------------------ */

/* Takes w off its lists, onto `gone`; IN_IGNORED tells the reader. */
static void remove_watch_locked(struct watch *w, struct list *gone)
{
	queue_event_locked(w->q, w->wd, IN_IGNORED, 0, NULL);
	list_del_init(&w->inode_link);
	list_del_init(&w->queue_link);
	list_add(gone, &w->queue_link);
	atomic_fetch_sub(&watch_count, 1);
}

static void free_watches(struct list *gone)
{
	while (!list_empty(gone)) {
		struct watch *w = list_first(gone, struct watch, queue_link);
		list_del_init(&w->queue_link);
		inode_put(w->ino);
		mem_free(w);
	}
}

static struct watch *find_watch_locked(struct inotify *q, struct inode *ino)
{
	list_for_each(pos, &ino->watches) {
		struct watch *w = list_entry(pos, struct watch, inode_link);
		if (w->q == q)
			return w;
	}
	return NULL;
}

static struct watch *watch_new(struct inotify *q, struct inode *ino, uint32_t mask)
{
	struct watch *w = mem_zalloc(sizeof(*w));

	if (!w)
		return NULL;
	w->q = q;
	w->ino = inode_get(ino);
	w->mask = mask;
	list_init(&w->inode_link);
	list_init(&w->queue_link);
	return w;
}

int inotify_add(struct file *f, struct inode *ino, uint32_t mask)
{
	if (!file_is_inotify(f))
		return -EINVAL;
	struct inotify *q = to_inotify(f);
	uint32_t kept = (mask & (IN_ALL_EVENTS | KEPT_FLAGS)) | IN_UNMOUNT;
	struct watch *fresh = watch_new(q, ino, kept);
	int wd;

	if (!fresh)
		return -ENOMEM;
	mutex_lock(&mu);
	struct watch *w = find_watch_locked(q, ino);
	if (w) {
		if (mask & IN_MASK_CREATE) {
			wd = -EEXIST;
		} else {
			w->mask = mask & IN_MASK_ADD ? w->mask | kept : kept;
			wd = w->wd;
		}
	} else if (atomic_load(&watch_count) >= MAX_WATCHES) {
		wd = -ENOSPC;
	} else {
		wd = fresh->wd = q->next_wd++;
		list_add_tail(&ino->watches, &fresh->inode_link);
		list_add_tail(&q->watches, &fresh->queue_link);
		atomic_fetch_add(&watch_count, 1);
		fresh = NULL;
	}
	mutex_unlock(&mu);
	if (fresh) {
		inode_put(fresh->ino);
		mem_free(fresh);
	}
	return wd;
}

int inotify_rm(struct file *f, int wd)
{
	struct list gone = LIST_INIT(gone);
	int err = -EINVAL;

	if (!file_is_inotify(f))
		return -EINVAL;
	mutex_lock(&mu);
	list_for_each_safe(pos, &to_inotify(f)->watches) {
		struct watch *w = list_entry(pos, struct watch, queue_link);
		if (w->wd == wd) {
			remove_watch_locked(w, &gone);
			err = 0;
		}
	}
	mutex_unlock(&mu);
	free_watches(&gone);
	return err;
}

/* ---- notifications ------------------------------------------------------------------------ */

/* unlinked: the event is about an entry whose name is gone already. */
static void notify(struct inode *ino, uint32_t mask, uint32_t cookie, const char *name,
		   bool unlinked)
{
	struct list gone = LIST_INIT(gone);

	if (atomic_load_explicit(&watch_count, memory_order_relaxed) == 0)
		return;
	mutex_lock(&mu);
	list_for_each_safe(pos, &ino->watches) {
		struct watch *w = list_entry(pos, struct watch, inode_link);
		if (!(w->mask & mask & ~(uint32_t)IN_ISDIR))
			continue;
		if (unlinked && name && (w->mask & IN_EXCL_UNLINK))
			continue;
		queue_event_locked(w->q, w->wd, mask, cookie, name);
		if (w->mask & IN_ONESHOT)
			remove_watch_locked(w, &gone);
	}
	mutex_unlock(&mu);
	free_watches(&gone);
}

void fsnotify(struct inode *ino, uint32_t mask, uint32_t cookie, const char *name)
{
	notify(ino, mask, cookie, name, false);
}

void fsnotify_dentry(struct dentry *d, uint32_t mask)
{
	char name[NAME_LEN_MAX + 1];

	if (mask == 0 || atomic_load_explicit(&watch_count, memory_order_relaxed) == 0)
		return;
	if (d->inode->type == S_IFDIR)
		mask |= IN_ISDIR;
	struct dentry *parent = dentry_parent(d);
	if (parent != d) {
		dentry_name(d, name);
		notify(parent->inode, mask, 0, name, dentry_is_deleted(d));
	}
	dentry_put(parent);
	notify(d->inode, mask, 0, NULL, false);
}

void fsnotify_file(struct file *f, uint32_t mask)
{
	if (f->path.dentry)
		fsnotify_dentry(f->path.dentry, mask);
}

void fsnotify_move(struct inode *old_dir, const char *old_name, struct inode *new_dir,
		   const char *new_name, struct inode *moved)
{
	uint32_t dir = moved->type == S_IFDIR ? IN_ISDIR : 0;

	if (atomic_load_explicit(&watch_count, memory_order_relaxed) == 0)
		return;
	uint32_t cookie = atomic_fetch_add(&next_cookie, 1) + 1;
	fsnotify(old_dir, IN_MOVED_FROM | dir, cookie, old_name);
	fsnotify(new_dir, IN_MOVED_TO | dir, cookie, new_name);
	/* Events about the watched object itself never say that it is a directory. */
	fsnotify(moved, IN_MOVE_SELF, 0, NULL);
}

/* Removes all watches of an inode after a last event. */
static void remove_inode(struct inode *ino, uint32_t mask)
{
	struct list gone = LIST_INIT(gone);

	mutex_lock(&mu);
	list_for_each_safe(pos, &ino->watches) {
		struct watch *w = list_entry(pos, struct watch, inode_link);
		if (w->mask & mask)
			queue_event_locked(w->q, w->wd, mask, 0, NULL);
		remove_watch_locked(w, &gone);
	}
	mutex_unlock(&mu);
	free_watches(&gone);
}

void fsnotify_deleted(struct inode *ino)
{
	struct fs_stat st;

	if (atomic_load_explicit(&watch_count, memory_order_relaxed) == 0)
		return;
	mutex_lock(&mu);
	bool watched = !list_empty(&ino->watches);
	mutex_unlock(&mu);
	/* Another hard link keeps it. A directory has gone with its one name. */
	if (!watched || (ino->type != S_IFDIR && ino->ops->getattr(ino, &st) == 0 && st.nlink > 0))
		return;
	remove_inode(ino, IN_DELETE_SELF);
}

void inotify_unmount(struct superblock *sb)
{
	struct list gone = LIST_INIT(gone);

	if (atomic_load_explicit(&watch_count, memory_order_relaxed) == 0)
		return;
	mutex_lock(&mu);
	list_for_each(pos, &instances) {
		struct inotify *q = list_entry(pos, struct inotify, all_link);
		list_for_each_safe(wpos, &q->watches) {
			struct watch *w = list_entry(wpos, struct watch, queue_link);
			if (w->ino->sb != sb)
				continue;
			queue_event_locked(q, w->wd, IN_UNMOUNT, 0, NULL);
			remove_watch_locked(w, &gone);
		}
	}
	mutex_unlock(&mu);
	free_watches(&gone);
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Takes the first event if it fits. NULL: queue empty, or (*out_small) it does not fit. */
static struct event *take_locked(struct inotify *q, size_t room, bool *out_small)
{
	if (list_empty(&q->events))
		return NULL;
	struct event *e = list_first(&q->events, struct event, link);
	if (event_size(e) > room) {
		*out_small = true;
		return NULL;
	}
	list_del_init(&e->link);
	q->event_count--;
	q->event_bytes -= event_size(e);
	if (e->mask & IN_Q_OVERFLOW)
		q->overflowed = false;
	return e;
}

static int copy_event(struct iov_iter *it, struct event *e)
{
	struct inotify_event head = {
		.wd = e->wd, .mask = e->mask, .cookie = e->cookie, .len = e->name_len
	};
	size_t name_len = e->name_len;

	ssize_t n = iov_copy_to(it, &head, sizeof(head));
	if (n == (ssize_t)sizeof(head) && name_len)
		n = iov_copy_to(it, e->name, name_len) == (ssize_t)name_len ? (ssize_t)sizeof(head)
									    : -1;
	mem_free(e);
	return n == (ssize_t)sizeof(head) ? 0 : -EFAULT;
}

static ssize_t inotify_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct inotify *q = to_inotify(f);
	size_t want = it->count;

	for (;;) {
		bool small = false;

		mutex_lock(&mu);
		struct event *e = take_locked(q, it->count, &small);
		int err = 0;
		/* Only the first event is worth waiting for. */
		if (!e && it->count == want) {
			if (small)
				err = -EINVAL;
			else if (file_nonblock(f))
				err = -EAGAIN;
			else
				err = waitq_wait(&q->wait, &mu, POLLIN, DEADLINE_NEVER);
		}
		mutex_unlock(&mu);
		if (!e && it->count != want)
			break;
		if (!e && err)
			return err;
		if (e && copy_event(it, e) != 0)
			return -EFAULT;
	}
	return (ssize_t)(want - it->count);
}

static uint32_t inotify_poll(struct file *f, struct poll_table *pt)
{
	struct inotify *q = to_inotify(f);

	poll_wait(pt, &q->wait);
	mutex_lock(&mu);
	bool any = !list_empty(&q->events);
	mutex_unlock(&mu);
	return any ? POLLIN | POLLRDNORM : 0;
}

static long inotify_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct inotify *q = to_inotify(f);

	if (cmd != FIONREAD)
		return -ENOTTY;
	mutex_lock(&mu);
	int n = (int)q->event_bytes;
	mutex_unlock(&mu);
	return umem_write(um, arg, &n, sizeof(n));
}

static void inotify_release(struct file *f)
{
	struct inotify *q = to_inotify(f);
	struct list gone = LIST_INIT(gone);

	mutex_lock(&mu);
	while (!list_empty(&q->watches))
		remove_watch_locked(list_first(&q->watches, struct watch, queue_link), &gone);
	list_del_init(&q->all_link);
	mutex_unlock(&mu);
	free_watches(&gone);
	while (!list_empty(&q->events)) {
		struct event *e = list_first(&q->events, struct event, link);
		list_del_init(&e->link);
		mem_free(e);
	}
	atomic_fetch_sub(&instance_count, 1);
	waitq_fini(&q->wait);
	mem_free(q);
}

static void inotify_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:inotify");
}

static void inotify_show_fdinfo(struct file *f, struct fmt *out)
{
	mutex_lock(&mu);
	list_for_each(pos, &to_inotify(f)->watches) {
		struct watch *w = list_entry(pos, struct watch, queue_link);
		fmt_printf(out, "inotify wd:%x ino:%llx sdev:%llx mask:%x ignored_mask:0\n",
			   (unsigned)w->wd, (unsigned long long)w->ino->ino,
			   (unsigned long long)w->ino->sb->dev,
			   w->mask & (IN_ALL_EVENTS | KEPT_FLAGS));
	}
	mutex_unlock(&mu);
}

int inotify_file_new(unsigned flags, struct file **out)
{
	struct inode *ino;
	struct inotify *q;

	if (atomic_load(&instance_count) >= (unsigned)atomic_load(&inotify_max_instances))
		return -EMFILE;
	int err = anon_inode_new(0600, NULL, &ino);
	if (err)
		return err;
	q = mem_zalloc(sizeof(*q));
	if (!q) {
		inode_put(ino);
		return -ENOMEM;
	}
	file_init(&q->file, &inotify_file_ops, ino, O_RDONLY | (flags & O_NONBLOCK));
	list_init(&q->watches);
	list_init(&q->events);
	list_init(&q->all_link);
	waitq_init(&q->wait);
	q->next_wd = 1;
	atomic_fetch_add(&instance_count, 1);
	mutex_lock(&mu);
	list_add_tail(&instances, &q->all_link);
	mutex_unlock(&mu);
	*out = &q->file;
	return 0;
}

static const struct file_ops inotify_file_ops = {
	.read = inotify_read,
	.poll = inotify_poll,
	.ioctl = inotify_ioctl,
	.release = inotify_release,
	.describe = inotify_describe,
	.show_fdinfo = inotify_show_fdinfo,
};

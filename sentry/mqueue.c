/*
 * POSIX message queues. A queue lives while it has a name or an open file. Its messages are one
 * list, highest priority first and oldest first within one; queues are short (10 messages unless a
 * privileged process asks for more), so insertion walks.
 *
 * LINUX: queues are files of a mountable file system (/dev/mqueue); here they have names only.
 */
#include "sentry/mqueue.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/base/alloc.h"
#include "sentry/task.h"

#define QUEUES_MAX 256      /* fs.mqueue.queues_max */
#define MESSAGES_DEFAULT 10 /* fs.mqueue.msg_default and msg_max */
#define SIZE_DEFAULT 8192   /* fs.mqueue.msgsize_default and msgsize_max */
#define MESSAGES_HARD_MAX 65536
#define SIZE_HARD_MAX (1 << 20) /* LINUX: 16 MiB; one message is one block of our memory */
#define MESSAGE_OVERHEAD 96     /* what RLIMIT_MSGQUEUE charges besides the bytes */

struct mq_message {
	struct list link; /* [mu] */
	unsigned prio;    /* [I] */
	size_t size;      /* [I] */
	char data[];
};

struct mqueue {
	struct ref ref;
	struct mutex mu;         /* rank PIPE */
	struct waitq wait;       /* POLLIN: messages; POLLOUT: room */
	struct list link;        /* [names_mu] */
	char *name;              /* [I] */
	struct mq_attr attr;     /* [I] but mq_curmsgs: [mu] */
	uint32_t uid, gid, mode; /* [I] */
	uint64_t charge;         /* [I] bytes against the maker's RLIMIT_MSGQUEUE */
	struct list messages;    /* [mu] */
	unsigned receivers;      /* [mu] asleep in mq_receive: they come before a notification */
	struct group *notify;    /* [mu] referenced: who is registered */
	int notify_kind;         /* [mu] SIGEV_* */
	int notify_signo;        /* [mu] */
	union k_sigval notify_value; /* [mu] */
};

struct mq_file {
	struct file file;
	struct mqueue *q; /* [I] referenced */
};

static const struct file_ops mq_file_ops;
static struct mutex names_mu = MUTEX_INIT(RANK_HASH);
static struct list names = LIST_INIT(names); /* [names_mu] referenced */
static unsigned name_count;                  /* [names_mu] */
static _Atomic uint64_t total_charge;        /* of all queues: the sandbox is one user */

static void mqueue_free(struct mqueue *q)
{
	list_for_each_safe(pos, &q->messages)
		mem_free(list_entry(pos, struct mq_message, link));
	atomic_fetch_sub(&total_charge, q->charge);
	group_put(q->notify);
	waitq_fini(&q->wait);
	mutex_fini(&q->mu);
	mem_free(q->name);
	mem_free(q);
}

static struct mqueue *mqueue_get(struct mqueue *q)
{
	ref_inc(&q->ref);
	return q;
}

static void mqueue_put(struct mqueue *q)
{
	if (q && ref_dec(&q->ref))
		mqueue_free(q);
}

static struct mqueue *to_queue(struct file *f)
{
	return f->ops == &mq_file_ops ? container_of(f, struct mq_file, file)->q : NULL;
}

/* ---- names -------------------------------------------------------------------------------- */

static struct mqueue *find_locked(const char *name)
{
	list_for_each(pos, &names) {
		struct mqueue *q = list_entry(pos, struct mqueue, link);
		if (strcmp(q->name, name) == 0)
			return q;
	}
	return NULL;
}

static int check_attr(struct task *t, const struct mq_attr *a)
{
	bool may = task_capable(t, CAP_SYS_RESOURCE);
	long messages = may ? MESSAGES_HARD_MAX : MESSAGES_DEFAULT,
	     size = may ? SIZE_HARD_MAX : SIZE_DEFAULT;

	if (a->mq_maxmsg <= 0 || a->mq_msgsize <= 0 || a->mq_maxmsg > messages ||
	    a->mq_msgsize > size)
		return -EINVAL;
	return 0;
}

static int mqueue_new(struct task *t, const char *name, uint32_t mode, const struct mq_attr *attr,
		      struct mqueue **out)
{
	struct mq_attr a = { .mq_maxmsg = MESSAGES_DEFAULT, .mq_msgsize = SIZE_DEFAULT };

	if (attr) {
		a.mq_maxmsg = attr->mq_maxmsg;
		a.mq_msgsize = attr->mq_msgsize;
	}
	int err = check_attr(t, &a);
	if (err)
		return err;
	uint64_t charge = (uint64_t)a.mq_maxmsg * (uint64_t)(a.mq_msgsize + MESSAGE_OVERHEAD);
	if (atomic_load(&total_charge) + charge > task_rlimit(t, RLIMIT_MSGQUEUE))
		return -EMFILE;
	struct mqueue *q = mem_zalloc(sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->name = mem_strdup(name);
	if (!q->name) {
		mem_free(q);
		return -ENOMEM;
	}
	ref_init(&q->ref);
	mutex_init(&q->mu, RANK_PIPE);
	waitq_init(&q->wait);
	list_init(&q->link);
	list_init(&q->messages);
	q->attr = a;
	q->uid = t->cred->fsuid;
	q->gid = t->cred->fsgid;
	q->mode = mode & 0777;
	q->charge = charge;
	atomic_fetch_add(&total_charge, charge);
	*out = q;
	return 0;
}

/* Permission bits for O_RDONLY, O_WRONLY, O_RDWR. */
static int check_mode(struct task *t, const struct mqueue *q, int flags)
{
	static const unsigned wants[] = { 4, 2, 6 };
	const struct cred *c = t->cred;
	unsigned granted = q->mode;

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	if (c->fsuid == q->uid)
		granted >>= 6;
	else if (cred_in_group(c, q->gid))
		granted >>= 3;
	if ((wants[flags & O_ACCMODE] & ~granted) && !cred_capable(c, CAP_DAC_OVERRIDE))
		return -EACCES;
	return 0;
}

/* The named queue, referenced; made when flags say so. */
static int find_or_make(struct task *t, const char *name, int flags, uint32_t mode,
			const struct mq_attr *attr, struct mqueue **out)
{
	struct mqueue *fresh = NULL;
	int err = 0;

	/* Made before the lock is taken: attributes are checked also when the queue turns out to
	 * exist. */
	if (flags & O_CREAT)
		err = mqueue_new(t, name, mode, attr, &fresh);
	mutex_lock(&names_mu);
	struct mqueue *q = find_locked(name);
	if (q) {
		mqueue_get(q);
	} else if (fresh && name_count >= QUEUES_MAX && !task_capable(t, CAP_SYS_RESOURCE)) {
		err = -ENOSPC;
	} else if (fresh) {
		list_add_tail(&names, &fresh->link);
		name_count++;
		*out = mqueue_get(fresh);
		mutex_unlock(&names_mu);
		return 0;
	}
	mutex_unlock(&names_mu);
	mqueue_put(fresh);
	if (!q)
		return err ? err : -ENOENT;
	err = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ? -EEXIST
								 : check_mode(t, q, flags);
	if (err) {
		mqueue_put(q);
		return err;
	}
	*out = q;
	return 0;
}

static int check_name(const char *name)
{
	if (!*name)
		return -ENOENT;
	if (strlen(name) > NAME_LEN_MAX)
		return -ENAMETOOLONG;
	if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EACCES;
	return 0;
}

int mqueue_open(struct task *t, const char *name, int flags, uint32_t mode,
		const struct mq_attr *attr, struct file **out)
{
	struct inode *ino;
	struct mqueue *q;

	int err = check_name(name);
	if (!err)
		err = find_or_make(t, name, flags, mode, attr, &q);
	if (err)
		return err;
	struct mq_file *mf = mem_zalloc(sizeof(*mf));
	err = mf ? anon_inode_new(S_IFREG | q->mode, t->cred, &ino) : -ENOMEM;
	if (err) {
		mem_free(mf);
		mqueue_put(q);
		return err;
	}
	mf->q = q;
	file_init(&mf->file, &mq_file_ops, ino, (unsigned)flags & (O_ACCMODE | O_NONBLOCK));
	*out = &mf->file;
	return 0;
}

int mqueue_unlink(struct task *t, const char *name)
{
	int err = check_name(name);
	if (err)
		return err;
	mutex_lock(&names_mu);
	struct mqueue *q = find_locked(name);
	/* The directory is sticky. */
	if (!q)
		err = -ENOENT;
	else if (t->cred->fsuid != q->uid && !task_capable(t, CAP_FOWNER))
		err = -EPERM;
	if (!err) {
		list_del_init(&q->link);
		name_count--;
	}
	mutex_unlock(&names_mu);
	if (!err)
		mqueue_put(q);
	return err;
}

/* ---- messages ----------------------------------------------------------------------------- */

static int wait_locked(struct mqueue *q, struct file *f, uint32_t mask, deadline_t deadline)
	NO_LOCK_ANALYSIS
{
	if (file_nonblock(f))
		return -EAGAIN;
	return waitq_wait(&q->wait, &q->mu, mask, deadline);
}

static void insert_locked(struct mqueue *q, struct mq_message *m)
{
	struct list *after = q->messages.prev;

	while (after != &q->messages && list_entry(after, struct mq_message, link)->prio < m->prio)
		after = after->prev;
	list_insert_between(&m->link, after, after->next);
	q->attr.mq_curmsgs++;
}

/* A message came to an empty queue and nobody waits for it: the registration is used up. Gives the
 * group to tell, or NULL. */
static struct group *take_notify_locked(struct mqueue *q, struct k_siginfo *info)
{
	struct group *g = q->notify;

	if (!g || q->attr.mq_curmsgs != 1 || q->receivers)
		return NULL;
	q->notify = NULL;
	/* Signal 0 is nothing (SIGEV_NONE): the registration is used up all the same. */
	siginfo_user(info, q->notify_kind == SIGEV_SIGNAL ? q->notify_signo : 0, SI_MESGQ);
	info->rt.value = q->notify_value;
	return g;
}

static void tell(struct group *g, const struct k_siginfo *info)
{
	if (!g)
		return;
	mutex_lock(&tasks_mu);
	if (!g->zombie)
		(void)signal_send_group_locked(g, info);
	mutex_unlock(&tasks_mu);
	group_put(g);
}

int mqueue_send(struct file *f, struct iov_iter *it, unsigned prio, deadline_t deadline)
{
	struct mqueue *q = to_queue(f);
	struct k_siginfo info;
	struct group *g = NULL;

	if (!q || !file_can_write(f))
		return -EBADF;
	if (it->count > (size_t)q->attr.mq_msgsize)
		return -EMSGSIZE;
	size_t size = it->count;
	struct mq_message *m = mem_alloc(sizeof(*m) + size);
	if (!m)
		return -ENOMEM;
	list_init(&m->link);
	m->prio = prio;
	m->size = size;
	int err = size && iov_copy_from(it, m->data, size) != (ssize_t)size ? -EFAULT : 0;
	mutex_lock(&q->mu);
	while (!err && q->attr.mq_curmsgs >= q->attr.mq_maxmsg)
		err = wait_locked(q, f, POLLOUT, deadline);
	if (!err) {
		insert_locked(q, m);
		g = take_notify_locked(q, &info);
	}
	mutex_unlock(&q->mu);
	if (err) {
		mem_free(m);
		return err;
	}
	waitq_wake_all(&q->wait, POLLIN | POLLRDNORM);
	tell(g, &info);
	return 0;
}

ssize_t mqueue_receive(struct file *f, struct iov_iter *it, deadline_t deadline, unsigned *out_prio)
{
	struct mqueue *q = to_queue(f);
	struct mq_message *m = NULL;
	int err = 0;

	if (!q || !file_can_read(f))
		return -EBADF;
	if (it->count < (size_t)q->attr.mq_msgsize)
		return -EMSGSIZE;
	mutex_lock(&q->mu);
	while (!err && list_empty(&q->messages)) {
		q->receivers++;
		err = wait_locked(q, f, POLLIN, deadline);
		q->receivers--;
	}
	if (!err) {
		m = list_first(&q->messages, struct mq_message, link);
		list_del_init(&m->link);
		q->attr.mq_curmsgs--;
	}
	mutex_unlock(&q->mu);
	if (err)
		return err;
	waitq_wake_all(&q->wait, POLLOUT | POLLWRNORM);
	/* The message is gone when it cannot be stored, as on Linux. */
	ssize_t ret = (ssize_t)m->size;
	if (m->size && iov_copy_to(it, m->data, m->size) != ret)
		ret = -EFAULT;
	*out_prio = m->prio;
	mem_free(m);
	return ret;
}

/* ---- notification and attributes ---------------------------------------------------------- */

int mqueue_notify(struct task *t, struct file *f, const struct k_sigevent *sev)
{
	struct mqueue *q = f ? to_queue(f) : NULL;
	struct group *drop = NULL;
	int err = 0;

	/* LINUX: SIGEV_THREAD goes through a netlink socket of the C library; there is none here.
	 */
	if (sev && sev->notify != SIGEV_NONE && sev->notify != SIGEV_SIGNAL)
		return -EINVAL;
	if (sev && sev->notify == SIGEV_SIGNAL && (sev->signo < 1 || sev->signo > SIG_COUNT))
		return -EINVAL;
	if (!q)
		return -EBADF;
	mutex_lock(&q->mu);
	if (!sev) {
		if (q->notify == t->group) {
			drop = q->notify;
			q->notify = NULL;
		}
	} else if (q->notify) {
		err = -EBUSY;
	} else {
		q->notify = group_get(t->group);
		q->notify_kind = sev->notify;
		q->notify_signo = sev->signo;
		q->notify_value = sev->value;
	}
	mutex_unlock(&q->mu);
	group_put(drop);
	return err;
}

int mqueue_attr(struct file *f, const struct mq_attr *new, struct mq_attr *out_old)
{
	struct mqueue *q = to_queue(f);

	if (new && (new->mq_flags & ~O_NONBLOCK))
		return -EINVAL;
	if (!q)
		return -EBADF;
	mutex_lock(&q->mu);
	*out_old = q->attr;
	mutex_unlock(&q->mu);
	out_old->mq_flags = file_flags(f) & O_NONBLOCK;
	if (new && (new->mq_flags &O_NONBLOCK))
		atomic_fetch_or(&f->flags, O_NONBLOCK);
	else if (new)
		atomic_fetch_and(&f->flags, ~(unsigned)O_NONBLOCK);
	return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

static uint32_t mq_poll(struct file *f, struct poll_table *pt)
{
	struct mqueue *q = to_queue(f);
	uint32_t events = 0;

	poll_wait(pt, &q->wait);
	mutex_lock(&q->mu);
	if (q->attr.mq_curmsgs > 0)
		events |= POLLIN | POLLRDNORM;
	if (q->attr.mq_curmsgs < q->attr.mq_maxmsg)
		events |= POLLOUT | POLLWRNORM;
	mutex_unlock(&q->mu);
	return events;
}

/* Each close(2) by the registered process ends its registration. */
static int mq_flush(struct file *f)
{
	struct task *t = current_task();

	return t ? mqueue_notify(t, f, NULL) : 0;
}

static void mq_release(struct file *f)
{
	struct mq_file *mf = container_of(f, struct mq_file, file);

	mqueue_put(mf->q);
	mem_free(mf);
}

static void mq_describe(struct file *f, struct fmt *out)
{
	fmt_printf(out, "/%s", to_queue(f)->name);
}

static const struct file_ops mq_file_ops = {
	.poll = mq_poll,
	.flush = mq_flush,
	.release = mq_release,
	.describe = mq_describe,
};

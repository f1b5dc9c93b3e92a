/*
 * eventfd(2). The house example of a file kind: the object embeds `struct file`, its lock guards
 * one condition, sleepers wait on one queue, and the operations come last. Start reading at the
 * bottom.
 *
 * The counter is at most 2^64 - 2 through write(2). A reader waits for it to be above 0, a writer
 * for room; each change is announced to the other side only.
 */
#include "fs/eventfd.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/eventfd.h>

#include "platform/base/alloc.h"

#define EVENTFD_MAX (UINT64_MAX - 1)

struct eventfd {
	struct file file;
	struct mutex mu; /* rank PIPE */
	struct waitq wait;
	uint64_t count; /* [mu] */
	int id;         /* [I] as fdinfo shows it */
	bool semaphore; /* [I] a read takes 1 instead of everything */
};

static const struct file_ops eventfd_file_ops;

static struct eventfd *to_eventfd(struct file *f)
{
	return container_of(f, struct eventfd, file);
}

/* Takes from the counter; waits while it is 0. */
static int eventfd_take(struct eventfd *e, uint64_t *out_value)
{
	mutex_lock(&e->mu);
	while (e->count == 0) {
		int err = file_nonblock(&e->file)
				  ? -EAGAIN
				  : waitq_wait_exclusive(&e->wait, &e->mu, POLLIN, DEADLINE_NEVER);
		if (err) {
			mutex_unlock(&e->mu);
			return err;
		}
	}
	*out_value = e->semaphore ? 1 : e->count;
	e->count -= *out_value;
	bool more = e->count > 0;
	mutex_unlock(&e->mu);
	/* A semaphore's next reader was not woken by the write that we consumed in part. */
	if (more)
		waitq_wake(&e->wait, POLLIN);
	waitq_wake(&e->wait, POLLOUT);
	return 0;
}

static ssize_t eventfd_file_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	uint64_t value;

	if (it->count < sizeof(value))
		return -EINVAL;
	int err = eventfd_take(to_eventfd(f), &value);
	if (err)
		return err;
	/* As on Linux the value is gone when the buffer turns out to be bad. */
	return iov_copy_to(it, &value, sizeof(value)) == sizeof(value) ? (ssize_t)sizeof(value)
								       : -EFAULT;
}

static ssize_t eventfd_file_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct eventfd *e = to_eventfd(f);
	uint64_t value;

	if (it->count < sizeof(value))
		return -EINVAL;
	if (iov_copy_from(it, &value, sizeof(value)) != sizeof(value))
		return -EFAULT;
	if (value == UINT64_MAX)
		return -EINVAL;
	mutex_lock(&e->mu);
	while (value > EVENTFD_MAX - MIN(e->count, EVENTFD_MAX)) {
		int err = file_nonblock(f)
				  ? -EAGAIN
				  : waitq_wait_exclusive(&e->wait, &e->mu, POLLOUT, DEADLINE_NEVER);
		if (err) {
			mutex_unlock(&e->mu);
			return err;
		}
	}
	e->count += value;
	mutex_unlock(&e->mu);
	waitq_wake(&e->wait, POLLIN);
	return sizeof(value);
}

static uint32_t eventfd_poll(struct file *f, struct poll_table *pt)
{
	struct eventfd *e = to_eventfd(f);
	uint32_t events = 0;

	poll_wait(pt, &e->wait);
	mutex_lock(&e->mu);
	if (e->count > 0)
		events |= POLLIN;
	if (e->count < EVENTFD_MAX)
		events |= POLLOUT;
	if (e->count == UINT64_MAX)
		events |= POLLERR;
	mutex_unlock(&e->mu);
	return events;
}

static void eventfd_release(struct file *f)
{
	struct eventfd *e = to_eventfd(f);

	waitq_fini(&e->wait);
	mutex_fini(&e->mu);
	mem_free(e);
}

static void eventfd_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:[eventfd]");
}

static void eventfd_show_fdinfo(struct file *f, struct fmt *out)
{
	struct eventfd *e = to_eventfd(f);

	mutex_lock(&e->mu);
	fmt_printf(out, "eventfd-count: %16" PRIx64 "\neventfd-id: %d\neventfd-semaphore: %d\n",
		   e->count, e->id, e->semaphore);
	mutex_unlock(&e->mu);
}

bool is_eventfd(const struct file *f)
{
	return f->ops == &eventfd_file_ops;
}

void eventfd_signal(struct file *f, uint64_t n)
{
	struct eventfd *e = to_eventfd(f);

	mutex_lock(&e->mu);
	e->count = n > UINT64_MAX - e->count ? UINT64_MAX : e->count + n;
	mutex_unlock(&e->mu);
	waitq_wake(&e->wait, POLLIN);
}

int eventfd_new(uint32_t initial, unsigned flags, const struct cred *c, struct file **out)
{
	static atomic_int last_id;
	struct inode *ino;

	struct eventfd *e = mem_zalloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	int err = anon_inode_new(0600, c, &ino);
	if (err) {
		mem_free(e);
		return err;
	}
	mutex_init(&e->mu, RANK_PIPE);
	waitq_init(&e->wait);
	e->count = initial;
	e->semaphore = flags & EFD_SEMAPHORE;
	e->id = atomic_fetch_add(&last_id, 1);
	file_init(&e->file, &eventfd_file_ops, ino, O_RDWR | (flags & O_NONBLOCK));
	*out = &e->file;
	return 0;
}

static const struct file_ops eventfd_file_ops = {
	.read = eventfd_file_read,
	.write = eventfd_file_write,
	.poll = eventfd_poll,
	.release = eventfd_release,
	.describe = eventfd_describe,
	.show_fdinfo = eventfd_show_fdinfo,
};

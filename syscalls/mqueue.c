/* mq_open(2), mq_unlink(2), mq_timedsend(2), mq_timedreceive(2), mq_notify(2), mq_getsetattr(2). */
#include "sentry/mqueue.h"

#include <errno.h>
#include <time.h>

#include "fs/namei.h"
#include "sentry/timers.h"
#include "syscalls/fs_util.h"

static int load_name(struct task *t, path_cgp name, char out[NAME_LEN_MAX + 1])
{
	ssize_t n = guest_load_str(t, out, NAME_LEN_MAX + 1, name);
	return n < 0 ? (int)n : 0;
}

/* An absolute time of CLOCK_REALTIME. */
static int load_deadline(struct task *t, timespec_cgp timeout, deadline_t *out)
{
	struct timespec ts;
	uint64_t ns;

	*out = DEADLINE_NEVER;
	if (gaddr_is_null(timeout.addr))
		return 0;
	if (guest_load(t, &ts, timeout) != 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) != 0)
		return -EINVAL;
	*out = clock_deadline(CLOCK_REALTIME, ns);
	return 0;
}

long sys_mq_open(struct task *t, path_cgp name, int oflag, uint32_t mode, buf_cgp attr)
{
	char text[NAME_LEN_MAX + 1];
	struct mq_attr a;
	struct file *f;
	bool given = (oflag & O_CREAT) && !gaddr_is_null(attr.addr);

	if (given && guest_read(t, &a, attr.addr, sizeof(a)) != 0)
		return -EFAULT;
	int err = load_name(t, name, text);
	if (err)
		return err;
	mutex_lock(&t->fs->mu);
	mode &= ~t->fs->umask;
	mutex_unlock(&t->fs->mu);
	err = mqueue_open(t, text, oflag, mode, given ? &a : NULL, &f);
	return err ? err : install_file(t, f, true);
}

long sys_mq_unlink(struct task *t, path_cgp name)
{
	char text[NAME_LEN_MAX + 1];

	int err = load_name(t, name, text);
	return err ? err : mqueue_unlink(t, text);
}

long sys_mq_timedsend(struct task *t, int mqdes, buf_cgp msg, uint64_t len, uint32_t prio,
		      timespec_cgp timeout)
{
	struct iov_iter it;
	deadline_t deadline;

	int err = load_deadline(t, timeout, &deadline);
	if (!err && prio >= MQ_PRIO_LIMIT)
		err = -EINVAL;
	if (err)
		return err;
	struct file *f = fd_get_io(t->files, mqdes);
	if (!f)
		return -EBADF;
	err = guest_iter_buf(t, &it, msg.addr, len, IOV_DRAIN);
	if (!err)
		err = mqueue_send(f, &it, prio, deadline);
	file_put(f);
	return err;
}

long sys_mq_timedreceive(struct task *t, int mqdes, buf_gp msg, uint64_t len, u32_gp prio,
			 timespec_cgp timeout)
{
	struct iov_iter it;
	deadline_t deadline;
	unsigned p;

	int err = load_deadline(t, timeout, &deadline);
	if (err)
		return err;
	struct file *f = fd_get_io(t->files, mqdes);
	if (!f)
		return -EBADF;
	err = guest_iter_buf(t, &it, msg.addr, len, IOV_FILL);
	long ret = err ? err : mqueue_receive(f, &it, deadline, &p);
	file_put(f);
	if (ret >= 0 && !gaddr_is_null(prio.addr) && guest_store(t, prio, &p) != 0)
		return -EFAULT;
	return ret;
}

long sys_mq_notify(struct task *t, int mqdes, sigevent_cgp sevp)
{
	struct k_sigevent sev;
	bool given = !gaddr_is_null(sevp.addr);

	if (given && guest_load(t, &sev, sevp) != 0)
		return -EFAULT;
	/* The event is checked before the descriptor, which may be none. */
	struct file *f = fd_get_io(t->files, mqdes);
	int err = mqueue_notify(t, f, given ? &sev : NULL);
	file_put(f);
	return err;
}

long sys_mq_getsetattr(struct task *t, int mqdes, buf_cgp newattr, buf_gp oldattr)
{
	struct mq_attr new, old;
	bool given = !gaddr_is_null(newattr.addr);

	if (given && guest_read(t, &new, newattr.addr, sizeof(new)) != 0)
		return -EFAULT;
	struct file *f = fd_get_io(t->files, mqdes);
	if (!f)
		return -EBADF;
	int err = mqueue_attr(f, given ? &new : NULL, &old);
	file_put(f);
	if (!err && !gaddr_is_null(oldattr.addr))
		err = guest_write(t, oldattr.addr, &old, sizeof(old));
	return err;
}

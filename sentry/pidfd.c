/*
 * pidfd_open(2): a file that refers to a process, however its id is used later. It becomes readable
 * when the process has ended and stays so; POLLHUP says that it has been waited for.
 */
#include "sentry/pidfd.h"

#include <errno.h>

#include "platform/base/alloc.h"
#include "sentry/proc_priv.h"
#include "sentry/task.h"

struct pidfd {
	struct file file;
	struct group *group; /* [I] referenced */
};

static const struct file_ops pidfd_file_ops;

static struct pidfd *to_pidfd(struct file *f)
{
	return container_of(f, struct pidfd, file);
}

int pidfd_group(struct file *f, struct group **out)
{
	if (f->ops != &pidfd_file_ops)
		return -EBADF;
	*out = group_get(to_pidfd(f)->group);
	return 0;
}

/* LINUX: the directory holds the process, here its number: it could mean another process once all
 * numbers have been used. */
int pidfd_signal_group(struct file *f, struct group **out)
{
	struct inode *ino = file_inode(f);
	const struct pseudo_ref *ref = ino ? pseudofs_ref(ino) : NULL;

	if (!ref || ref->row != &proc_pid_row)
		return pidfd_group(f, out);
	mutex_lock(&tasks_mu);
	struct group *g = group_find_locked((int)ref->key[0]);
	*out = g ? group_get(g) : NULL;
	mutex_unlock(&tasks_mu);
	return g ? 0 : -ESRCH;
}

static bool is_reaped_locked(struct group *g) REQUIRES(tasks_mu)
{
	return group_find_locked(g->tgid) != g;
}

static uint32_t pidfd_poll(struct file *f, struct poll_table *pt)
{
	struct group *g = to_pidfd(f)->group;
	uint32_t events = 0;

	poll_wait(pt, &g->exit_wait);
	mutex_lock(&tasks_mu);
	if (g->zombie)
		events |= POLLIN | POLLRDNORM;
	if (g->zombie && is_reaped_locked(g))
		events |= POLLHUP;
	mutex_unlock(&tasks_mu);
	return events;
}

static void pidfd_release(struct file *f)
{
	struct pidfd *p = to_pidfd(f);

	group_put(p->group);
	mem_free(p);
}

static void pidfd_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:[pidfd]");
}

static void pidfd_show_fdinfo(struct file *f, struct fmt *out)
{
	struct group *g = to_pidfd(f)->group;

	mutex_lock(&tasks_mu);
	int pid = g->zombie && is_reaped_locked(g) ? -1 : g->tgid;
	mutex_unlock(&tasks_mu);
	fmt_printf(out, "Pid:\t%d\nNSpid:\t%d\n", pid, pid);
}

int pidfd_install(struct task *t, struct group *g, unsigned flags)
{
	struct inode *ino;

	struct pidfd *p = mem_zalloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	int err = anon_inode_new(0600, t->cred, &ino);
	if (err) {
		mem_free(p);
		return err;
	}
	p->group = group_get(g);
	file_init(&p->file, &pidfd_file_ops, ino, O_RDWR | (flags & O_NONBLOCK));
	int fd = fd_install(t->files, &p->file, 0, true);
	if (fd < 0)
		file_put(&p->file);
	return fd;
}

static const struct file_ops pidfd_file_ops = {
	.poll = pidfd_poll,
	.release = pidfd_release,
	.describe = pidfd_describe,
	.show_fdinfo = pidfd_show_fdinfo,
};

/* Files that stand for events: eventfd, timerfd, signalfd, memfd, pidfd. epoll is in epoll.c. */
#include <errno.h>
#include <linux/memfd.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "fs/eventfd.h"
#include "fs/timerfd.h"
#include "fs/tmpfs.h"
#include "sentry/pidfd.h"
#include "sentry/signalfd.h"
#include "fs/namei.h"
#include "syscalls/fs_util.h"

#define MEMFD_NAME_MAX (NAME_LEN_MAX - 6) /* "memfd:" and the name are one file name */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#define MFD_EXEC 16u
#endif
/* PIDFD_SIGNAL_ flags, newer than our headers. */
#define SIGNAL_TO_THREAD 1
#define SIGNAL_TO_PROCESS 2
#define SIGNAL_TO_GROUP 4
#define F_SEAL_EXEC_BIT 0x20u /* F_SEAL_EXEC, newer than our headers */

/* ---- eventfd ------------------------------------------------------------------------------ */

long sys_eventfd2(struct task *t, uint32_t initval, uint32_t flags)
{
	struct file *f;

	if (flags & ~(uint32_t)(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE))
		return -EINVAL;
	int err = eventfd_new(initval, flags, t->cred, &f);
	return err ? err : install_file(t, f, flags & EFD_CLOEXEC);
}

long sys_eventfd(struct task *t, uint32_t initval)
{
	return sys_eventfd2(t, initval, 0);
}

/* ---- timerfd ------------------------------------------------------------------------------ */

long sys_timerfd_create(struct task *t, int clockid, uint32_t flags)
{
	struct file *f;

	if (flags & ~(uint32_t)(TFD_CLOEXEC | TFD_NONBLOCK))
		return -EINVAL;
	int err = timerfd_new(clockid, flags, t->cred, &f);
	return err ? err : install_file(t, f, flags & TFD_CLOEXEC);
}

static struct k_itimerspec to_guest_spec(const struct itimerspec *its)
{
	return (struct k_itimerspec){ .interval = its->it_interval, .value = its->it_value };
}

long sys_timerfd_settime(struct task *t, int fd, int flags, itimerspec_cgp new_value,
			 itimerspec_gp old_value)
{
	struct k_itimerspec k;
	struct itimerspec old;

	if (guest_load(t, &k, new_value) != 0)
		return -EFAULT;
	struct itimerspec new = { .it_interval = k.interval, .it_value = k.value };
	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	int err = timerfd_set(f, flags, &new, &old);
	file_put(f);
	if (err || gaddr_is_null(old_value.addr))
		return err;
	k = to_guest_spec(&old);
	/* The timer is set all the same when this fails, as on Linux. */
	return guest_store(t, old_value, &k);
}

long sys_timerfd_gettime(struct task *t, int fd, itimerspec_gp curr_value)
{
	struct itimerspec now;

	struct file *f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	int err = timerfd_get(f, &now);
	file_put(f);
	if (err)
		return err;
	struct k_itimerspec k = to_guest_spec(&now);
	return guest_store(t, curr_value, &k);
}

/* ---- signalfd ----------------------------------------------------------------------------- */

long sys_signalfd4(struct task *t, int fd, sigset_cgp mask, uint64_t sizemask, uint32_t flags)
{
	uint64_t set;
	struct file *f;

	if (flags & ~(uint32_t)(SFD_CLOEXEC | SFD_NONBLOCK) || sizemask != sizeof(set))
		return -EINVAL;
	if (guest_load(t, &set, mask) != 0)
		return -EFAULT;
	if (fd == -1) {
		int err = signalfd_new(set, flags, t->cred, &f);
		return err ? err : install_file(t, f, flags & SFD_CLOEXEC);
	}
	f = fd_get_io(t->files, fd);
	if (!f)
		return -EBADF;
	int err = signalfd_set_mask(f, set);
	file_put(f);
	return err ? err : fd;
}

long sys_signalfd(struct task *t, int fd, sigset_cgp mask, uint64_t sizemask)
{
	return sys_signalfd4(t, fd, mask, sizemask, 0);
}

/* ---- memfd -------------------------------------------------------------------------------- */

long sys_memfd_create(struct task *t, path_cgp name, uint32_t flags)
{
	char text[MEMFD_NAME_MAX + 1];
	struct file *f;

	if (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_NOEXEC_SEAL | MFD_EXEC))
		return -EINVAL;
	if ((flags & MFD_EXEC) && (flags & MFD_NOEXEC_SEAL))
		return -EINVAL;
	if (flags & MFD_HUGETLB)
		return -ENODEV;
	ssize_t len = guest_load_str(t, text, sizeof(text), name);
	if (len < 0)
		return len == -ENAMETOOLONG ? -EINVAL : len;
	if (flags & MFD_NOEXEC_SEAL)
		flags |= MFD_ALLOW_SEALING;
	int err = memfd_file_new(text, flags & MFD_ALLOW_SEALING, t->cred, &f);
	if (err)
		return err;
	if (flags & MFD_NOEXEC_SEAL) {
		struct iattr attr = { .valid = ATTR_MODE, .mode = 0666 };
		err = f->path.dentry ? vfs_setattr(f->path, t->cred, &attr) : 0;
		/* A store without this seal leaves the mode as the only mark. */
		if (!err && memfd_add_seals(f, F_SEAL_EXEC_BIT) == -EPERM)
			err = -EPERM;
		if (err) {
			file_put(f);
			return err;
		}
	}
	return install_file(t, f, flags & MFD_CLOEXEC);
}

/* ---- pidfd -------------------------------------------------------------------------------- */

long sys_pidfd_open(struct task *t, int pid, uint32_t flags)
{
	if (flags & ~(uint32_t)O_NONBLOCK || pid <= 0)
		return -EINVAL;
	struct group *g = group_find(pid);
	if (!g) {
		/* A thread that leads no process. */
		struct task *thread = task_find(pid);
		int err = thread ? -ENOENT : -ESRCH;
		task_put(thread);
		return err;
	}
	long fd = pidfd_install(t, g, flags);
	group_put(g);
	return fd;
}

/* The process of descriptor fd, referenced. */
static int group_of_fd(struct task *t, int fd, struct group **out)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = pidfd_group(f, out);
	file_put(f);
	return err;
}

static int signal_group_of_fd(struct task *t, int fd, struct group **out)
{
	struct file *f = fd_get_io(t->files, fd);

	if (!f)
		return -EBADF;
	int err = pidfd_signal_group(f, out);
	file_put(f);
	return err;
}

/* A living thread of g, referenced, or NULL. */
static struct task *some_thread(struct group *g)
{
	struct task *found = NULL;

	mutex_lock(&tasks_mu);
	if (!g->zombie) {
		list_for_each(pos, &g->threads) {
			struct task *thread = list_entry(pos, struct task, group_link);
			if (thread->state == TASK_ZOMBIE || thread->state == TASK_DEAD)
				continue;
			found = task_get(thread);
			break;
		}
	}
	mutex_unlock(&tasks_mu);
	return found;
}

/* Descriptor number fd of another process, referenced. */
static int file_of_task(struct task *target, int fd, struct file **out)
{
	mutex_lock(&target->mu);
	struct fdtable *files = target->files ? fdtable_get(target->files) : NULL;
	mutex_unlock(&target->mu);
	if (!files)
		return -ESRCH;
	*out = fd_get(files, fd);
	fdtable_put(files);
	return *out ? 0 : -EBADF;
}

long sys_pidfd_getfd(struct task *t, int pidfd, int targetfd, uint32_t flags)
{
	struct group *g;
	struct file *f;

	if (flags)
		return -EINVAL;
	int err = group_of_fd(t, pidfd, &g);
	if (err)
		return err;
	struct task *target = some_thread(g);
	err = target ? task_may_access(t, target) : -ESRCH;
	if (!err)
		err = file_of_task(target, targetfd, &f);
	task_put(target);
	group_put(g);
	return err ? err : install_file(t, f, true);
}

/* What the guest wants to send, checked as kill_pidfd_info of the kernel. */
static int load_info(struct task *t, struct group *g, int sig, siginfo_cgp info,
		     struct k_siginfo *out)
{
	if (gaddr_is_null(info.addr)) {
		siginfo_user(out, sig, SI_USER);
		return 0;
	}
	if (guest_load(t, out, info) != 0)
		return -EFAULT;
	if (out->si_signo != sig)
		return -EINVAL;
	/* Only the kernel speaks for the kernel, and tkill for tkill. */
	if (g != t->group && (out->si_code >= 0 || out->si_code == SI_TKILL))
		return -EPERM;
	return 0;
}

/* To the process, to its first thread, or to the process group that it leads. */
static int send_by_pidfd_locked(struct task *t, struct group *g, const struct k_siginfo *si,
				uint32_t flags) REQUIRES(tasks_mu)
{
	int ret = -ESRCH;
	bool success = false;

	if (flags != SIGNAL_TO_GROUP) {
		ret = signal_may_send_locked(t, g, si->si_signo);
		if (ret)
			return ret;
		return flags == SIGNAL_TO_THREAD ? signal_send_task_locked(g->leader, si)
						 : signal_send_group_locked(g, si);
	}
	list_for_each_safe(pos, group_list_locked()) {
		struct group *member = list_entry(pos, struct group, all_link);
		if (member->pgrp != g->tgid)
			continue;
		ret = signal_may_send_locked(t, member, si->si_signo);
		if (!ret)
			ret = signal_send_group_locked(member, si);
		success = success || ret == 0;
	}
	return success ? 0 : ret;
}

long sys_pidfd_send_signal(struct task *t, int pidfd, int sig, siginfo_cgp info, uint32_t flags)
{
	struct k_siginfo si;
	struct group *g;

	/* Without flags a pidfd means its process, as with SIGNAL_TO_PROCESS. */
	if (flags & ~(uint32_t)(SIGNAL_TO_THREAD | SIGNAL_TO_PROCESS | SIGNAL_TO_GROUP) ||
	    (flags & (flags - 1)))
		return -EINVAL;
	int err = signal_group_of_fd(t, pidfd, &g);
	if (err)
		return err;
	err = load_info(t, g, sig, info, &si);
	if (!err && (sig < 0 || sig > SIG_COUNT))
		err = -EINVAL;
	if (!err) {
		mutex_lock(&tasks_mu);
		err = group_find_locked(g->tgid) == g ? send_by_pidfd_locked(t, g, &si, flags)
						      : -ESRCH;
		mutex_unlock(&tasks_mu);
	}
	group_put(g);
	return err;
}

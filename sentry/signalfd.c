/*
 * signalfd(2): reading takes pending signals of the *calling* task, whoever made the file. Readers
 * and pollers sleep on the queue in the caller's sighand.
 *
 * A poller, an epoll set above all, may stay on that queue after its task has gone. So the file
 * keeps a reference on each sighand that it was polled with ("pins" it) until it is closed, by
 * which time epoll has left the queue.
 */
#include "sentry/signalfd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "platform/base/alloc.h"
#include "sentry/task.h"

#define NEVER_TAKEN (SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP))

struct pin {
	struct list link;
	struct sighand *sighand; /* referenced */
};

struct signalfd {
	struct file file;
	struct mutex mu;       /* rank PIPE */
	_Atomic uint64_t mask; /* [a] the signals that it takes */
	struct list pins;      /* [mu] */
};

static const struct file_ops signalfd_file_ops;

static struct signalfd *to_signalfd(struct file *f)
{
	return container_of(f, struct signalfd, file);
}

/* The reader's view of a siginfo: signalfd_copyinfo of the kernel. */
static struct signalfd_siginfo to_signalfd_info(const struct k_siginfo *i)
{
	struct signalfd_siginfo s;

	memset(&s, 0, sizeof(s));
	s.ssi_signo = (uint32_t)i->si_signo;
	s.ssi_errno = i->si_errno;
	s.ssi_code = i->si_code;
	if (i->si_code == SI_TIMER) {
		s.ssi_tid = (uint32_t)i->timer.tid;
		s.ssi_overrun = (uint32_t)i->timer.overrun;
		s.ssi_ptr = i->timer.value.ptr;
		s.ssi_int = i->timer.value.i;
	} else if (i->si_signo == SIGCHLD && i->si_code > 0) {
		s.ssi_pid = (uint32_t)i->chld.pid;
		s.ssi_uid = i->chld.uid;
		s.ssi_status = i->chld.status;
		s.ssi_utime = (uint64_t)i->chld.utime;
		s.ssi_stime = (uint64_t)i->chld.stime;
	} else if (i->si_signo == SIGPOLL && i->si_code > 0) {
		s.ssi_band = (uint32_t)i->poll.band;
		s.ssi_fd = i->poll.fd;
	} else if (i->si_code > 0 && i->si_code != SI_KERNEL &&
		   (SIG_BIT(i->si_signo) & (SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS) | SIG_BIT(SIGILL) |
					    SIG_BIT(SIGFPE) | SIG_BIT(SIGTRAP)))) {
		s.ssi_addr = i->fault.addr;
		s.ssi_addr_lsb = (uint16_t)i->fault.addr_lsb;
	} else {
		s.ssi_pid = (uint32_t)i->rt.pid;
		s.ssi_uid = i->rt.uid;
		s.ssi_ptr = i->rt.value.ptr;
		s.ssi_int = i->rt.value.i;
	}
	return s;
}

/* Takes one signal of the caller: its number, or -EAGAIN, -ERESTARTSYS. */
static int take_signal(struct signalfd *sf, struct task *t, bool wait, struct k_siginfo *out)
{
	struct sighand *sh = t->sighand;
	int sig;

	mutex_lock(&sh->mu);
	while ((sig = signal_dequeue_locked(t, atomic_load(&sf->mask), out)) == 0) {
		sig = wait ? waitq_wait(&sh->signalfd_wait, &sh->mu, POLLIN, DEADLINE_NEVER)
			   : -EAGAIN;
		if (sig)
			break;
	}
	mutex_unlock(&sh->mu);
	return sig;
}

static ssize_t signalfd_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct signalfd *sf = to_signalfd(f);
	struct task *t = current_task();
	struct signalfd_siginfo s;
	ssize_t done = 0;

	if (it->count < sizeof(s) || !t)
		return -EINVAL;
	while (it->count >= sizeof(s)) {
		struct k_siginfo info;
		/* Only the first one is waited for. */
		int sig = take_signal(sf, t, done == 0 && !file_nonblock(f), &info);
		if (sig < 0)
			return done ? done : sig;
		s = to_signalfd_info(&info);
		if (iov_copy_to(it, &s, sizeof(s)) != (ssize_t)sizeof(s))
			return done ? done : -EFAULT;
		done += (ssize_t)sizeof(s);
	}
	return done;
}

/* Keeps sh alive until the file is closed. False without memory. */
static bool pin_sighand(struct signalfd *sf, struct sighand *sh)
{
	bool found = false;

	mutex_lock(&sf->mu);
	list_for_each(pos, &sf->pins)
		found |= list_entry(pos, struct pin, link)->sighand == sh;
	if (!found) {
		struct pin *p = mem_alloc(sizeof(*p));
		if (p) {
			p->sighand = sighand_get(sh);
			list_add_tail(&sf->pins, &p->link);
			found = true;
		}
	}
	mutex_unlock(&sf->mu);
	return found;
}

static uint32_t signalfd_poll(struct file *f, struct poll_table *pt)
{
	struct signalfd *sf = to_signalfd(f);
	struct task *t = current_task();

	if (!t)
		return 0;
	if (pt && pin_sighand(sf, t->sighand))
		poll_wait(pt, &t->sighand->signalfd_wait);
	mutex_lock(&t->sighand->mu);
	bool pending = signal_pending_set_locked(t) & atomic_load(&sf->mask);
	mutex_unlock(&t->sighand->mu);
	return pending ? POLLIN : 0;
}

static void signalfd_release(struct file *f)
{
	struct signalfd *sf = to_signalfd(f);

	list_for_each_safe(pos, &sf->pins) {
		struct pin *p = list_entry(pos, struct pin, link);
		sighand_put(p->sighand);
		mem_free(p);
	}
	mutex_fini(&sf->mu);
	mem_free(sf);
}

static void signalfd_describe(struct file *f UNUSED, struct fmt *out)
{
	fmt_puts(out, "anon_inode:[signalfd]");
}

static void signalfd_show_fdinfo(struct file *f, struct fmt *out)
{
	fmt_printf(out, "sigmask:\t%016" PRIx64 "\n", atomic_load(&to_signalfd(f)->mask));
}

int signalfd_new(uint64_t mask, unsigned flags, const struct cred *c, struct file **out)
{
	struct inode *ino;

	struct signalfd *sf = mem_zalloc(sizeof(*sf));
	if (!sf)
		return -ENOMEM;
	int err = anon_inode_new(0600, c, &ino);
	if (err) {
		mem_free(sf);
		return err;
	}
	mutex_init(&sf->mu, RANK_PIPE);
	list_init(&sf->pins);
	atomic_init(&sf->mask, mask & ~NEVER_TAKEN);
	file_init(&sf->file, &signalfd_file_ops, ino, O_RDWR | (flags & O_NONBLOCK));
	*out = &sf->file;
	return 0;
}

int signalfd_set_mask(struct file *f, uint64_t mask)
{
	struct task *t = current_task();

	if (f->ops != &signalfd_file_ops)
		return -EINVAL;
	atomic_store(&to_signalfd(f)->mask, mask & ~NEVER_TAKEN);
	/* Readers asleep may find a signal now. */
	if (t)
		waitq_wake_all(&t->sighand->signalfd_wait, POLLIN);
	return 0;
}

static const struct file_ops signalfd_file_ops = {
	.read = signalfd_read,
	.poll = signalfd_poll,
	.release = signalfd_release,
	.describe = signalfd_describe,
	.show_fdinfo = signalfd_show_fdinfo,
};

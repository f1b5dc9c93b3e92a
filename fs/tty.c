/*
 * Terminal files and job control: see tty.h. The ioctls are in fs/tty_ioctl.c.
 *
 * A terminal that controls a session is in the chain `controlling`, which holds a reference. The
 * sentry keeps only a plain pointer to it; it is compared here, and followed only under ctty_mu,
 * because every change of it happens there.
 */
#include "fs/tty.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/sysmacros.h>

#include "fs/hooks.h"
#include "fs/tty_priv.h"
#include "platform/base/alloc.h"

struct tty_file {
	struct file file;
	struct tty *tty; /* [I] referenced */
};

static const struct file_ops tty_file_ops;
static struct mutex ctty_mu = MUTEX_INIT(RANK_CTTY);
static struct tty *console;     /* [ctty_mu] referenced */
static struct tty *controlling; /* [ctty_mu] chain by next_ctty, each referenced */

static void tty_free(struct tty *t)
{
	waitq_fini(&t->wait);
	mutex_fini(&t->mu);
	t->ops->free(t);
}

DEFINE_REF(tty);

void tty_init(struct tty *t, const struct tty_ops *ops, uint64_t rdev)
{
	ref_init(&t->ref);
	t->ops = ops;
	t->rdev = rdev;
	mutex_init(&t->mu, RANK_TTY);
	waitq_init(&t->wait);
	termios_init(&t->termios);
}

/* ---- controlling terminal ----------------------------------------------------------------- */

bool tty_is_ctty(struct tty *t)
{
	return fs_hooks->current_ctty() == t;
}

/* The caller's controlling terminal, referenced, or NULL. */
static struct tty *current_tty_get(void)
{
	mutex_lock(&ctty_mu);
	struct tty *t = fs_hooks->current_ctty();
	if (t)
		tty_get(t);
	mutex_unlock(&ctty_mu);
	return t;
}

/* ctty_mu held. */
static void attach_locked(struct tty *t, int sid, int pgrp)
{
	mutex_lock(&t->mu);
	if (t->sid != 0) {
		fs_hooks->set_ctty(t->sid, NULL);
	} else {
		t->next_ctty = controlling;
		controlling = tty_get(t);
	}
	t->sid = sid;
	t->pgrp = pgrp;
	fs_hooks->set_ctty(sid, t);
	mutex_unlock(&t->mu);
}

/* Ends t's being the terminal of its session; true when it was one: the caller puts a reference. */
static bool detach_locked(struct tty *t, int *out_sid, int *out_pgrp)
{
	mutex_lock(&t->mu);
	*out_sid = t->sid;
	*out_pgrp = t->pgrp;
	if (t->sid)
		fs_hooks->set_ctty(t->sid, NULL);
	t->sid = 0;
	t->pgrp = 0;
	mutex_unlock(&t->mu);
	for (struct tty **link = &controlling; *link; link = &(*link)->next_ctty)
		if (*link == t) {
			*link = t->next_ctty;
			return true;
		}
	return false;
}

static struct tty *find_by_session_locked(int sid)
{
	for (struct tty *t = controlling; t; t = t->next_ctty)
		if (t->sid == sid)
			return t;
	return NULL;
}

/* On open: a session leader without a terminal gets one that nobody has (credentials of open(2)).
 */
static void attach_on_open(struct tty *t, int flags)
{
	if ((flags & O_NOCTTY) || (flags & O_ACCMODE) == O_WRONLY || !fs_hooks->is_session_leader())
		return;
	mutex_lock(&ctty_mu);
	if (!fs_hooks->current_ctty() && t->sid == 0)
		attach_locked(t, fs_hooks->current_sid(), fs_hooks->current_pgrp());
	mutex_unlock(&ctty_mu);
}

void tty_give_to_session(struct tty *t, int sid, int pgrp)
{
	mutex_lock(&ctty_mu);
	attach_locked(t, sid, pgrp);
	mutex_unlock(&ctty_mu);
}

int tty_attach_ioctl(struct tty *t, bool steal, bool readable)
{
	int sid = fs_hooks->current_sid();
	bool admin = cred_capable(fs_hooks->current_cred(), CAP_SYS_ADMIN);
	int err = 0;

	mutex_lock(&ctty_mu);
	if (fs_hooks->is_session_leader() && t->sid == sid)
		goto out;
	err = -EPERM;
	if (!fs_hooks->is_session_leader() || fs_hooks->current_ctty())
		goto out;
	if (t->sid != 0 && !(steal && admin))
		goto out;
	if (!readable && !admin)
		goto out;
	attach_locked(t, sid, fs_hooks->current_pgrp());
	err = 0;
out:
	mutex_unlock(&ctty_mu);
	return err;
}

/* LINUX: a process that is not the leader gives up the terminal for itself alone; the terminal is a
 * property of the whole session here, so for such a process nothing happens. */
int tty_detach_ioctl(struct tty *t)
{
	int sid = 0, pgrp = 0;
	bool was = false;

	mutex_lock(&ctty_mu);
	if (!tty_is_ctty(t)) {
		mutex_unlock(&ctty_mu);
		return -ENOTTY;
	}
	if (fs_hooks->is_session_leader())
		was = detach_locked(t, &sid, &pgrp);
	mutex_unlock(&ctty_mu);
	if (was) {
		if (pgrp) {
			fs_hooks->signal_pgrp(pgrp, SIGHUP);
			fs_hooks->signal_pgrp(pgrp, SIGCONT);
		}
		tty_put(t);
	}
	return 0;
}

int tty_set_pgrp_ioctl(struct tty *t, int pgrp)
{
	int err = tty_check_change(t);

	if (err)
		return err == -EIO ? -ENOTTY : err;
	if (pgrp < 0)
		return -EINVAL;
	mutex_lock(&ctty_mu);
	int sid = fs_hooks->pgrp_session(pgrp);
	if (!tty_is_ctty(t) || t->sid != fs_hooks->current_sid())
		err = -ENOTTY;
	else if (sid < 0)
		err = -ESRCH;
	else if (sid != t->sid)
		err = -EPERM;
	if (!err) {
		mutex_lock(&t->mu);
		t->pgrp = pgrp;
		mutex_unlock(&t->mu);
	}
	mutex_unlock(&ctty_mu);
	return err;
}

static int foreground(struct tty *t)
{
	mutex_lock(&t->mu);
	int pgrp = t->pgrp;
	mutex_unlock(&t->mu);
	return pgrp;
}

void tty_signal_foreground(struct tty *t, int sig)
{
	int pgrp = t->pgrp;

	if (pgrp > 0)
		fs_hooks->signal_pgrp(pgrp, sig);
}

/* A background process may not change the terminal: SIGTTOU, or -EIO when nobody could bring it to
 * the foreground (__tty_check_change of Linux). */
int tty_check_change(struct tty *t)
{
	int pgrp = fs_hooks->current_pgrp(), front = foreground(t);

	if (!tty_is_ctty(t) || front == 0 || front == pgrp)
		return 0;
	if (fs_hooks->is_sig_ignored(SIGTTOU))
		return 0;
	if (fs_hooks->is_pgrp_orphaned(pgrp))
		return -EIO;
	fs_hooks->signal_pgrp(pgrp, SIGTTOU);
	return -ERESTARTSYS;
}

static int check_read(struct tty *t)
{
	int pgrp = fs_hooks->current_pgrp(), front = foreground(t);

	if (!tty_is_ctty(t) || front == 0 || front == pgrp)
		return 0;
	if (fs_hooks->is_sig_ignored(SIGTTIN) || fs_hooks->is_pgrp_orphaned(pgrp))
		return -EIO;
	fs_hooks->signal_pgrp(pgrp, SIGTTIN);
	return -ERESTARTSYS;
}

void tty_hangup(struct tty *t)
{
	int sid, pgrp;

	mutex_lock(&t->mu);
	t->hung_up = true;
	mutex_unlock(&t->mu);
	waitq_wake_all(&t->wait, 0);
	mutex_lock(&ctty_mu);
	bool was = detach_locked(t, &sid, &pgrp);
	mutex_unlock(&ctty_mu);
	if (was) {
		fs_hooks->tty_hangup(sid, pgrp);
		tty_put(t);
	}
}

static void kill_open_files(struct tty *t)
{
	mutex_lock(&t->mu);
	t->hung_up = t->open_count > 0;
	mutex_unlock(&t->mu);
	waitq_wake_all(&t->wait, 0);
}

void tty_leader_exit(int sid)
{
	int old_sid = 0, pgrp = 0;
	bool was = false;

	mutex_lock(&ctty_mu);
	struct tty *t = find_by_session_locked(sid);
	if (t)
		was = detach_locked(t, &old_sid, &pgrp);
	mutex_unlock(&ctty_mu);
	if (!was)
		return;
	if (!t->is_console)
		kill_open_files(t);
	if (pgrp) {
		fs_hooks->signal_pgrp(pgrp, SIGHUP);
		fs_hooks->signal_pgrp(pgrp, SIGCONT);
	}
	tty_put(t);
}

void tty_proc_numbers(int sid, int *out_nr, int *out_pgrp)
{
	*out_nr = 0;
	*out_pgrp = -1;
	mutex_lock(&ctty_mu);
	struct tty *t = find_by_session_locked(sid);
	if (t) {
		/* new_encode_dev of Linux: minor 0-7, major 8-19, minor 20-31. */
		unsigned int mn = minor(t->rdev);
		*out_nr = (int)((mn & 0xff) | (major(t->rdev) << 8) | ((mn & ~0xffu) << 12));
		*out_pgrp = foreground(t);
	}
	mutex_unlock(&ctty_mu);
}

/* ---- files -------------------------------------------------------------------------------- */

static struct tty *tty_of(struct file *f)
{
	return container_of(f, struct tty_file, file)->tty;
}

struct tty *tty_of_file(struct file *f)
{
	return f->ops == &tty_file_ops ? tty_of(f) : NULL;
}

static int count_open(struct tty *t)
{
	int err = 0;

	mutex_lock(&t->mu);
	if (t->hung_up && t->open_count > 0)
		err = -EIO;
	else if (t->exclusive && !cred_capable(fs_hooks->current_cred(), CAP_SYS_ADMIN))
		err = -EBUSY;
	else
		err = t->ops->may_open(t);
	if (!err) {
		/* The files that a hang-up killed have all gone: the terminal begins a new life. */
		t->hung_up = false;
		t->open_count++;
		t->ops->opened(t);
	}
	mutex_unlock(&t->mu);
	return err;
}

int tty_open(struct tty *t, struct inode *ino, int flags, struct file **out)
{
	struct tty_file *tf = mem_zalloc(sizeof(*tf));
	int err = tf ? count_open(t) : -ENOMEM;

	if (err) {
		mem_free(tf);
		inode_put(ino);
		return err;
	}
	tf->tty = tty_get(t);
	file_init(&tf->file, &tty_file_ops, ino, (unsigned)flags);
	attach_on_open(t, flags);
	*out = &tf->file;
	return 0;
}

void tty_set_console(struct tty *t)
{
	mutex_lock(&ctty_mu);
	struct tty *old = console;
	console = t ? tty_get(t) : NULL;
	mutex_unlock(&ctty_mu);
	tty_put(old);
}

int tty_aux_open(struct inode *ino, int flags, struct file **out)
{
	struct tty *t = NULL;

	if (minor(ino->rdev) == TTYAUX_TTY) {
		t = current_tty_get();
		flags |= O_NOCTTY;
	} else if (minor(ino->rdev) == TTYAUX_CONSOLE) {
		mutex_lock(&ctty_mu);
		t = console ? tty_get(console) : NULL;
		mutex_unlock(&ctty_mu);
		if (!t)
			return -ENODEV;
	}
	if (!t)
		return -ENXIO;
	int err = tty_open(t, inode_get(ino), flags, out);
	tty_put(t);
	return err;
}

static void tty_release(struct file *f)
{
	struct tty_file *tf = container_of(f, struct tty_file, file);
	struct tty *t = tf->tty;

	mutex_lock(&t->mu);
	if (--t->open_count == 0) {
		t->exclusive = false;
		t->ops->closed(t);
	}
	mutex_unlock(&t->mu);
	tty_put(t);
	mem_free(tf);
}

static ssize_t tty_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct tty *t = tty_of(f);
	ssize_t n;

	int err = check_read(t);
	if (err)
		return err;
	mutex_lock(&t->mu);
	n = t->hung_up ? 0 : t->ops->read(t, it, file_nonblock(f));
	mutex_unlock(&t->mu);
	return n;
}

static ssize_t tty_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct tty *t = tty_of(f);
	ssize_t n;

	mutex_lock(&t->mu);
	bool checks = t->termios.c_lflag & TOSTOP;
	mutex_unlock(&t->mu);
	if (checks) {
		int err = tty_check_change(t);
		if (err)
			return err;
	}
	mutex_lock(&t->mu);
	n = t->hung_up ? -EIO : t->ops->write(t, it, file_nonblock(f));
	mutex_unlock(&t->mu);
	return n;
}

static bool is_hung_up(struct tty *t)
{
	mutex_lock(&t->mu);
	bool dead = t->hung_up;
	mutex_unlock(&t->mu);
	return dead;
}

static uint32_t tty_poll(struct file *f, struct poll_table *pt)
{
	struct tty *t = tty_of(f);
	uint32_t bits = t->ops->poll(t, pt);

	if (is_hung_up(t))
		return POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDNORM | POLLWRNORM;
	return bits;
}

static long tty_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct tty *t = tty_of(f);

	if (is_hung_up(t))
		return cmd == TIOCSPGRP ? -ENOTTY : -EIO;
	if (cmd == TIOCSCTTY)
		return tty_attach_ioctl(t, arg == 1, file_can_read(f));
	long r = tty_common_ioctl(t, cmd, arg, um, false);
	return r == TTY_NO_SUCH_IOCTL ? -ENOTTY : r;
}

static const struct file_ops tty_file_ops = {
	.read = tty_read,
	.write = tty_write,
	.poll = tty_poll,
	.ioctl = tty_ioctl,
	.release = tty_release,
};

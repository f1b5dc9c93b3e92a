/*
 * The host's terminal: see hosttty.h. Of one terminal there is one object, however many of the
 * standard streams are open on it. It has descriptors of its own for reading and for writing, which
 * are duplicates of inherited ones.
 */
#include "fs/hosttty.h"

#include <errno.h>
#include <signal.h>

#include "fs/hoststream.h"
#include "fs/pty.h"
#include "fs/tty_priv.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

/* Standard streams on different terminals. */
#define HOSTTTY_MAX 3

struct hosttty {
	struct tty tty;
	uint64_t host_rdev;        /* [I] which terminal of the host */
	int index;                 /* [I] in devpts */
	int fd;                    /* [I] for ioctls */
	struct hoststream in, out; /* fd -1 when not open for that */
	struct termios2 saved;     /* [I] at start */
	bool changed;              /* [tty.mu] by the guest */
};

static struct mutex list_mu = MUTEX_INIT(RANK_CTTY);
static struct hosttty *terminals[HOSTTTY_MAX]; /* [list_mu] kept until the end */

static struct hosttty *hosttty_of(struct tty *t)
{
	return container_of(t, struct hosttty, tty);
}

bool hosttty_is_terminal(int host_fd)
{
	struct termios2 tio;

	return host_ioctl(host_fd, TCGETS2, &tio) >= 0;
}

/* ---- the driver side ---------------------------------------------------------------------- */

/* As hostfd's transfer: watched only once somebody has to wait. The lock is dropped for that, since
 * the set of watched streams ranks outside. */
static ssize_t transfer(struct tty *t, struct hoststream *s, struct iov_iter *it, bool nonblock,
			bool whole) NO_LOCK_ANALYSIS
{
	ssize_t (*move)(struct hoststream *, struct iov_iter *, bool) =
		whole ? hoststream_write : hoststream_read;
	ssize_t n = s->fd < 0 ? -EIO : move(s, it, true);

	if (nonblock || (n != -EAGAIN && !(whole && n >= 0 && it->count > 0)))
		return n;
	ssize_t done = n > 0 ? n : 0;
	mutex_unlock(&t->mu);
	hoststream_prepare_wait(s);
	mutex_lock(&t->mu);
	n = move(s, it, false);
	if (n < 0)
		return done ? done : n;
	return done + n;
}

static int host_may_open(struct tty *t UNUSED)
{
	return 0;
}

static ssize_t host_read_op(struct tty *t, struct iov_iter *it, bool nonblock)
{
	return transfer(t, &hosttty_of(t)->in, it, nonblock, false);
}

static ssize_t host_write_op(struct tty *t, struct iov_iter *it, bool nonblock)
{
	return transfer(t, &hosttty_of(t)->out, it, nonblock, true);
}

static uint32_t host_poll_op(struct tty *t, struct poll_table *pt)
{
	struct hosttty *h = hosttty_of(t);
	uint32_t bits = 0;

	if (h->in.fd >= 0)
		bits |= hoststream_poll(&h->in, pt) & ~(uint32_t)(POLLOUT | POLLWRNORM);
	if (h->out.fd >= 0)
		bits |= hoststream_poll(&h->out, pt) & ~(uint32_t)(POLLIN | POLLRDNORM);
	return bits;
}

static void host_refresh(struct tty *t)
{
	struct termios2 tio;
	struct tty_size size;

	if (host_ioctl(hosttty_of(t)->fd, TCGETS2, &tio) >= 0)
		t->termios = tio;
	if (host_ioctl(hosttty_of(t)->fd, TIOCGWINSZ, &size) >= 0)
		t->size = size;
}

static int host_set_termios(struct tty *t, const struct termios2 *tio, unsigned cmd)
{
	struct termios2 copy = *tio;
	int err = host_ioctl(hosttty_of(t)->fd, cmd, &copy);

	if (err < 0)
		return err;
	t->termios = copy;
	hosttty_of(t)->changed = true;
	return 0;
}

static int host_set_size(struct tty *t, const struct tty_size *size)
{
	struct tty_size copy = *size;

	return host_ioctl(hosttty_of(t)->fd, TIOCSWINSZ, &copy);
}

static size_t host_count(struct tty *t, unsigned cmd)
{
	int n = 0;

	return host_ioctl(hosttty_of(t)->fd, cmd, &n) < 0 || n < 0 ? 0 : (size_t)n;
}

static size_t host_in_count(struct tty *t)
{
	return host_count(t, FIONREAD);
}

static size_t host_out_count(struct tty *t)
{
	return host_count(t, TIOCOUTQ);
}

/* The host may have nothing to flush or stop; the guest cannot tell the difference. */
static void host_flush(struct tty *t, int queue)
{
	int err = host_ioctl(hosttty_of(t)->fd, TCFLSH, (void *)(intptr_t)queue);
	(void)err;
}

static void host_flow(struct tty *t, int action)
{
	int err = host_ioctl(hosttty_of(t)->fd, TCXONC, (void *)(intptr_t)action);
	(void)err;
}

static int host_drain(struct tty *t)
{
	int err = host_ioctl(hosttty_of(t)->fd, TCSBRK, (void *)(intptr_t)1);

	return err < 0 ? err : 0;
}

static void host_opened(struct tty *t UNUSED)
{
}

static void host_free(struct tty *t)
{
	struct hosttty *h = hosttty_of(t);

	hoststream_fini(&h->in);
	hoststream_fini(&h->out);
	if (h->in.fd >= 0)
		host_close(h->in.fd);
	if (h->out.fd >= 0)
		host_close(h->out.fd);
	mem_free(h);
}

static const struct tty_ops hosttty_ops = {
	.may_open = host_may_open,
	.read = host_read_op,
	.write = host_write_op,
	.poll = host_poll_op,
	.refresh = host_refresh,
	.set_termios = host_set_termios,
	.set_size = host_set_size,
	.in_count = host_in_count,
	.out_count = host_out_count,
	.flush = host_flush,
	.flow = host_flow,
	.drain = host_drain,
	.opened = host_opened,
	.closed = host_opened,
	.free = host_free,
};

/* ---- registry ----------------------------------------------------------------------------- */

/* Gives h the directions that fd is open for and that it lacks. -errno when duplicating fails. */
static int add_directions(struct hosttty *h, int fd)
{
	int flags = host_get_flags(fd);

	if (flags < 0)
		return flags;
	unsigned acc = (unsigned)flags & O_ACCMODE;
	if (acc != O_WRONLY && h->in.fd < 0) {
		int copy = host_dup_cloexec(fd);
		if (copy < 0)
			return copy;
		hoststream_init(&h->in, copy, POLLIN, &h->tty.mu, &h->tty.wait);
	}
	if (acc != O_RDONLY && h->out.fd < 0) {
		int copy = host_dup_cloexec(fd);
		if (copy < 0)
			return copy;
		hoststream_init(&h->out, copy, POLLOUT, &h->tty.mu, &h->tty.wait);
	}
	return 0;
}

static int hosttty_new(int fd, uint64_t rdev, struct hosttty **out)
{
	struct hosttty *h = mem_zalloc(sizeof(*h));
	struct stat st;

	if (!h)
		return -ENOMEM;
	tty_init(&h->tty, &hosttty_ops, 0);
	h->tty.is_console = true;
	h->host_rdev = rdev;
	hoststream_init(&h->in, -1, POLLIN, &h->tty.mu, &h->tty.wait);
	hoststream_init(&h->out, -1, POLLOUT, &h->tty.mu, &h->tty.wait);
	int err = add_directions(h, fd);
	h->fd = h->in.fd >= 0 ? h->in.fd : h->out.fd;
	if (!err)
		err = host_ioctl(h->fd, TCGETS2, &h->saved);
	if (err >= 0)
		err = host_fstat(h->fd, &st);
	if (err >= 0)
		err = h->index = pts_register(&h->tty, st.st_uid, st.st_mode & 0777);
	if (err < 0) {
		tty_put(&h->tty);
		return err;
	}
	h->tty.termios = h->saved;
	*out = h;
	return 0;
}

/* The object of the terminal behind fd, kept by the registry. */
static int find_or_make(int fd, struct hosttty **out)
{
	struct stat st;
	int err = host_fstat(fd, &st);

	if (err)
		return err;
	mutex_lock(&list_mu);
	size_t i = 0;
	while (i < HOSTTTY_MAX && terminals[i] && terminals[i]->host_rdev != st.st_rdev)
		i++;
	if (i == HOSTTTY_MAX)
		err = -ENOSPC;
	else if (terminals[i])
		err = add_directions(terminals[i], fd);
	else
		err = hosttty_new(fd, st.st_rdev, &terminals[i]);
	if (!err)
		*out = terminals[i];
	mutex_unlock(&list_mu);
	if (!err && i == 0)
		tty_set_console(&(*out)->tty);
	return err;
}

int hosttty_name(int host_fd, char *buf, size_t size)
{
	struct hosttty *h;
	struct fmt name;

	int err = find_or_make(host_fd, &h);
	if (err)
		return err;
	fmt_init_fixed(&name, buf, size);
	fmt_printf(&name, "/dev/pts/%d", h->index);
	return name.overflow ? -ERANGE : 0;
}

int hosttty_file_new(int host_fd, int flags, struct file **out)
{
	struct hosttty *h;
	struct inode *ino;

	int err = find_or_make(host_fd, &h);
	if (!err)
		err = anon_inode_new(S_IFCHR | 0620, NULL, &ino);
	if (!err)
		err = tty_open(&h->tty, ino, flags | O_NOCTTY, out);
	return err;
}

/* The i-th terminal or NULL; they live until the end. */
static struct hosttty *terminal(size_t i)
{
	mutex_lock(&list_mu);
	struct hosttty *h = terminals[i];
	mutex_unlock(&list_mu);
	return h;
}

void hosttty_give_to_session(int sid, int pgrp)
{
	struct hosttty *h = terminal(0);

	if (h)
		tty_give_to_session(&h->tty, sid, pgrp);
}

bool hosttty_signal(int sig)
{
	bool sent = false;

	for (size_t i = 0; i < HOSTTTY_MAX; i++) {
		struct hosttty *h = terminal(i);
		if (!h)
			break;
		mutex_lock(&h->tty.mu);
		sent |= h->tty.pgrp > 0;
		tty_signal_foreground(&h->tty, sig);
		mutex_unlock(&h->tty.mu);
	}
	return sent;
}

static void set_all(bool restore)
{
	for (size_t i = 0; i < HOSTTTY_MAX; i++) {
		struct hosttty *h = terminal(i);
		if (!h)
			break;
		mutex_lock(&h->tty.mu);
		struct termios2 tio = restore ? h->saved : h->tty.termios;
		/* A terminal that has gone meanwhile needs no modes. */
		int err = h->changed ? host_ioctl(h->fd, TCSETSW2, &tio) : 0;
		(void)err;
		mutex_unlock(&h->tty.mu);
	}
}

void hosttty_restore(void)
{
	set_all(true);
}

void hosttty_resume(void)
{
	set_all(false);
}

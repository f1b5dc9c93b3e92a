/*
 * Pseudo-terminals: see pty.h. A pty is one object with two sides. The slave is a struct tty with a
 *line discipline; what the master writes is typed input, what it reads is the discipline's output.
 *One mutex (the tty's) covers both sides.
 *
 *	master closes: the name goes, slave files read end of file and write -EIO, the session gets
 *SIGHUP last slave file closes: the master reads what is left, then -EIO; a new open of the slave
 *heals it
 */
#include "fs/pty.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "fs/fdtable.h"
#include "fs/hooks.h"
#include "fs/namei.h"
#include "fs/tty_priv.h"
#include "platform/base/alloc.h"

#define CHUNK 2048

struct pty {
	struct tty tty;
	struct ldisc ld; /* [tty.mu] */
	struct waitq master_wait;
	int index;             /* [I] */
	bool locked;           /* [tty.mu] until unlockpt(3) */
	bool slave_gone;       /* [tty.mu] the last slave file was closed */
	bool packet;           /* [tty.mu] TIOCPKT */
	uint8_t packet_status; /* [tty.mu] TIOCPKT_* not yet read */
};

struct ptm_file {
	struct file file;
	struct pty *pty; /* [I] referenced by its tty */
};

static const struct file_ops ptm_file_ops;

static struct pty *pty_of(struct tty *t)
{
	return container_of(t, struct pty, tty);
}

static void note_packet(struct pty *p, uint8_t status)
{
	static const uint8_t opposite[][2] = {
		{ TIOCPKT_STOP, TIOCPKT_START },
		{ TIOCPKT_START, TIOCPKT_STOP },
		{ TIOCPKT_NOSTOP, TIOCPKT_DOSTOP },
		{ TIOCPKT_DOSTOP, TIOCPKT_NOSTOP },
	};

	if (!p->packet)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(opposite); i++)
		if (status == opposite[i][0])
			p->packet_status &= (uint8_t)~opposite[i][1];
	p->packet_status |= status;
	waitq_wake(&p->master_wait, POLLIN | POLLPRI);
}

/* Acts on what the discipline saw in the input. tty.mu held. */
static void act_on_events(struct pty *p)
{
	unsigned e = ldisc_take_events(&p->ld);

	if (e & LDISC_SIG_INT)
		tty_signal_foreground(&p->tty, SIGINT);
	if (e & LDISC_SIG_QUIT)
		tty_signal_foreground(&p->tty, SIGQUIT);
	if (e & LDISC_SIG_TSTP)
		tty_signal_foreground(&p->tty, SIGTSTP);
	if (e & LDISC_FLUSHED)
		note_packet(p, TIOCPKT_FLUSHREAD | TIOCPKT_FLUSHWRITE);
	if (e & LDISC_STOPPED)
		note_packet(p, TIOCPKT_STOP);
	if (e & LDISC_STARTED)
		note_packet(p, TIOCPKT_START);
	if (e & (LDISC_STARTED | LDISC_FLUSHED))
		waitq_wake(&p->tty.wait, POLLOUT);
}

static void wake_both(struct pty *p)
{
	waitq_wake_all(&p->tty.wait, 0);
	waitq_wake_all(&p->master_wait, 0);
}

/* ---- slave -------------------------------------------------------------------------------- */

/* What a read waits for outside canonical mode (termios(3), VMIN and VTIME). */
struct read_wait {
	size_t min;       /* bytes that end the wait */
	uint64_t time_ns; /* 0: none */
	bool from_first;  /* the timer runs between bytes, not from the start */
};

static struct read_wait read_wait_of(const struct tty *t, size_t count)
{
	const cc_t *cc = t->termios.c_cc;
	struct read_wait w = { .min = 1 };

	if (t->termios.c_lflag & ICANON)
		return w;
	w.min = MIN((size_t)cc[VMIN], count);
	w.time_ns = (uint64_t)cc[VTIME] * 100000000u;
	w.from_first = cc[VMIN] > 0;
	if (cc[VMIN] == 0 && cc[VTIME] > 0)
		w.min = 1;
	return w;
}

/* Waits until a read may return. 0: read now (perhaps nothing); -errno. */
static int slave_wait_input(struct pty *p, size_t count, bool nonblock) NO_LOCK_ANALYSIS
{
	struct tty *t = &p->tty;
	deadline_t first = DEADLINE_NEVER;

	for (;;) {
		struct read_wait w = read_wait_of(t, count);
		if (w.min == 0 || ldisc_can_read(&p->ld, w.min) || t->hung_up)
			return 0;
		bool some = ldisc_can_read(&p->ld, 1);
		if (nonblock)
			return some ? 0 : -EAGAIN;
		deadline_t until = DEADLINE_NEVER;
		if (w.time_ns && w.from_first && some)
			until = deadline_after_ns(w.time_ns);
		if (w.time_ns && !w.from_first)
			until = first =
				first == DEADLINE_NEVER ? deadline_after_ns(w.time_ns) : first;
		int err = waitq_wait(&t->wait, &t->mu, POLLIN, until);
		if (err == -ETIMEDOUT)
			return 0;
		if (err)
			return some && !(t->termios.c_lflag & ICANON) ? 0 : err;
	}
}

static ssize_t slave_read(struct tty *t, struct iov_iter *it, bool nonblock)
{
	struct pty *p = pty_of(t);

	if (it->count == 0)
		return 0;
	int err = slave_wait_input(p, it->count, nonblock);
	if (err)
		return err;
	if (t->hung_up)
		return 0;
	if (!ldisc_can_read(&p->ld, 1))
		return nonblock && t->termios.c_cc[VTIME] == 0 && t->termios.c_cc[VMIN] > 0
			       ? -EAGAIN
			       : 0;
	ssize_t n = ldisc_read(&p->ld, it);
	waitq_wake(&p->master_wait, POLLOUT);
	return n;
}

/* Moves one piece from the program to the master. Bytes or -errno; tty.mu is held again at return.
 */
static ssize_t slave_write_piece(struct pty *p, struct iov_iter *it)
{
	uint8_t chunk[CHUNK];
	ssize_t n = iov_peek(it, chunk, MIN(it->count, sizeof(chunk)));

	if (n <= 0)
		return n;
	size_t done = ldisc_output(&p->ld, chunk, (size_t)n);
	iov_advance(it, done);
	if (done > 0)
		waitq_wake(&p->master_wait, POLLIN);
	return (ssize_t)done;
}

static ssize_t slave_write(struct tty *t, struct iov_iter *it, bool nonblock) NO_LOCK_ANALYSIS
{
	struct pty *p = pty_of(t);
	size_t done = 0;

	while (it->count > 0) {
		ssize_t n = t->hung_up ? -EIO : slave_write_piece(p, it);
		if (n == 0 && nonblock)
			n = -EAGAIN;
		else if (n == 0)
			n = waitq_wait(&t->wait, &t->mu, POLLOUT, DEADLINE_NEVER);
		if (n < 0)
			return done ? (ssize_t)done : n;
		if (n > 0)
			done += (size_t)n;
	}
	return (ssize_t)done;
}

static uint32_t slave_poll(struct tty *t, struct poll_table *pt)
{
	struct pty *p = pty_of(t);
	uint32_t bits = 0;

	poll_wait(pt, &t->wait);
	mutex_lock(&t->mu);
	const cc_t *cc = t->termios.c_cc;
	bool timed = cc[VTIME] > 0 || cc[VMIN] == 0;
	if (ldisc_can_read(&p->ld, timed ? 1 : cc[VMIN]))
		bits |= POLLIN | POLLRDNORM;
	if (ldisc_can_output(&p->ld))
		bits |= POLLOUT | POLLWRNORM;
	mutex_unlock(&t->mu);
	return bits;
}

static void slave_refresh(struct tty *t UNUSED)
{
}

static bool uses_xon(const struct termios2 *tio)
{
	return (tio->c_iflag & IXON) && tio->c_cc[VSTOP] == 023 && tio->c_cc[VSTART] == 021;
}

static int slave_set_termios(struct tty *t, const struct termios2 *tio, unsigned cmd)
{
	struct pty *p = pty_of(t);
	struct termios2 old = t->termios;

	t->termios = *tio;
	/* A pty has no line: eight bits, no parity, always. */
	t->termios.c_cflag = (t->termios.c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8 | CREAD;
	if (cmd == TCSETSF2)
		ldisc_flush_in(&p->ld);
	ldisc_termios_changed(&p->ld, &old);
	act_on_events(p);
	if (uses_xon(&old) != uses_xon(&t->termios))
		note_packet(p, uses_xon(&t->termios) ? TIOCPKT_DOSTOP : TIOCPKT_NOSTOP);
	wake_both(p);
	return 0;
}

static int slave_set_size(struct tty *t UNUSED, const struct tty_size *size UNUSED)
{
	return 0;
}

static size_t slave_in_count(struct tty *t)
{
	return ldisc_in_count(&pty_of(t)->ld);
}

/* Output counts as sent once the master's side has it (chars_in_buffer of Linux' pty is always 0).
 */
static size_t slave_out_count(struct tty *t UNUSED)
{
	return 0;
}

static void slave_flush(struct tty *t, int queue)
{
	struct pty *p = pty_of(t);

	if (queue != TCOFLUSH) {
		ldisc_flush_in(&p->ld);
		note_packet(p, TIOCPKT_FLUSHREAD);
	}
	if (queue != TCIFLUSH) {
		ldisc_flush_out(&p->ld);
		note_packet(p, TIOCPKT_FLUSHWRITE);
	}
	wake_both(p);
}

static void slave_flow(struct tty *t, int action)
{
	struct pty *p = pty_of(t);
	const cc_t *cc = t->termios.c_cc;

	if (action == TCOOFF || action == TCOON) {
		bool stop = action == TCOOFF;
		if (p->ld.stopped != stop)
			note_packet(p, stop ? TIOCPKT_STOP : TIOCPKT_START);
		p->ld.stopped = stop;
	} else {
		uint8_t c = cc[action == TCIOFF ? VSTOP : VSTART];
		bool stopped = p->ld.stopped;
		p->ld.stopped = false;
		if (c && ldisc_output(&p->ld, &c, 1) == 0)
			c = 0;
		p->ld.stopped = stopped;
	}
	wake_both(p);
}

static int slave_drain(struct tty *t UNUSED)
{
	return 0;
}

static void slave_opened(struct tty *t)
{
	pty_of(t)->slave_gone = false;
}

static void slave_closed(struct tty *t)
{
	struct pty *p = pty_of(t);

	p->slave_gone = true;
	waitq_wake_all(&p->master_wait, 0);
}

static void pty_free(struct tty *t)
{
	struct pty *p = pty_of(t);

	ldisc_fini(&p->ld);
	waitq_fini(&p->master_wait);
	mem_free(p);
}

static int slave_may_open(struct tty *t)
{
	return pty_of(t)->locked ? -EIO : 0;
}

static const struct tty_ops pty_slave_ops = {
	.may_open = slave_may_open,
	.read = slave_read,
	.write = slave_write,
	.poll = slave_poll,
	.refresh = slave_refresh,
	.set_termios = slave_set_termios,
	.set_size = slave_set_size,
	.in_count = slave_in_count,
	.out_count = slave_out_count,
	.flush = slave_flush,
	.flow = slave_flow,
	.drain = slave_drain,
	.opened = slave_opened,
	.closed = slave_closed,
	.free = pty_free,
};

/* ---- master ------------------------------------------------------------------------------- */

static struct pty *master_pty(struct file *f)
{
	return container_of(f, struct ptm_file, file)->pty;
}

/* Takes output in pieces; what a fault leaves uncopied stays. */
static ssize_t take_output(struct pty *p, struct iov_iter *it)
{
	uint8_t chunk[CHUNK];
	size_t done = 0;

	while (it->count > 0) {
		size_t n = ldisc_out_take(&p->ld, chunk, MIN(it->count, sizeof(chunk)));
		if (n == 0)
			break;
		ssize_t r = iov_copy_to(it, chunk, n);
		size_t copied = r < 0 ? 0 : (size_t)r;
		p->ld.out_tail -= (unsigned)(n - copied);
		done += copied;
		if (copied < n)
			return done ? (ssize_t)done : -EFAULT;
	}
	return (ssize_t)done;
}

/* In packet mode each read begins with a status byte, which is alone unless it is TIOCPKT_DATA. */
static ssize_t master_take(struct pty *p, struct iov_iter *it)
{
	uint8_t status = p->packet_status;

	if (!p->packet)
		return take_output(p, it);
	if (iov_copy_to(it, &status, 1) != 1)
		return -EFAULT;
	if (status) {
		p->packet_status = 0;
		return 1;
	}
	ssize_t n = take_output(p, it);
	return n < 0 ? n : n + 1;
}

static bool master_can_read(const struct pty *p)
{
	return ldisc_out_count(&p->ld) > 0 || (p->packet && p->packet_status);
}

static ssize_t master_read(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct pty *p = master_pty(f);
	ssize_t n = 0;

	if (it->count == 0)
		return 0;
	mutex_lock(&p->tty.mu);
	while (!master_can_read(p) && n == 0) {
		if (p->slave_gone)
			n = -EIO;
		else if (file_nonblock(f))
			n = -EAGAIN;
		else
			n = waitq_wait(&p->master_wait, &p->tty.mu, POLLIN, DEADLINE_NEVER);
	}
	if (n == 0) {
		n = master_take(p, it);
		waitq_wake(&p->tty.wait, POLLOUT);
	}
	mutex_unlock(&p->tty.mu);
	return n;
}

static ssize_t master_write_piece(struct pty *p, struct iov_iter *it)
{
	uint8_t chunk[CHUNK];
	ssize_t n = iov_peek(it, chunk, MIN(it->count, sizeof(chunk)));

	if (n <= 0)
		return n;
	size_t done = ldisc_receive(&p->ld, chunk, (size_t)n);
	iov_advance(it, done);
	act_on_events(p);
	if (ldisc_can_read(&p->ld, 1))
		waitq_wake(&p->tty.wait, POLLIN);
	if (ldisc_out_count(&p->ld) > 0)
		waitq_wake(&p->master_wait, POLLIN);
	return (ssize_t)done;
}

static ssize_t master_write(struct file *f, struct iov_iter *it, int64_t *pos UNUSED)
{
	struct pty *p = master_pty(f);
	size_t done = 0;
	ssize_t n = 0;

	mutex_lock(&p->tty.mu);
	while (it->count > 0 && n >= 0) {
		n = master_write_piece(p, it);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 && file_nonblock(f))
			n = -EAGAIN;
		else if (n == 0)
			n = waitq_wait(&p->master_wait, &p->tty.mu, POLLOUT, DEADLINE_NEVER);
	}
	mutex_unlock(&p->tty.mu);
	return n < 0 && done == 0 ? n : (ssize_t)done;
}

static uint32_t master_poll(struct file *f, struct poll_table *pt)
{
	struct pty *p = master_pty(f);
	uint32_t bits = 0;

	poll_wait(pt, &p->master_wait);
	mutex_lock(&p->tty.mu);
	if (master_can_read(p))
		bits |= POLLIN | POLLRDNORM;
	if (p->packet && p->packet_status)
		bits |= POLLPRI;
	if (ldisc_can_receive(&p->ld))
		bits |= POLLOUT | POLLWRNORM;
	if (p->slave_gone)
		bits |= POLLHUP;
	mutex_unlock(&p->tty.mu);
	return bits;
}

/* Opens the slave that belongs to this master, in the mount from which the master was opened. */
static long open_peer(struct file *f, int flags)
{
	struct pty *p = master_pty(f);
	char name[16];
	struct fmt text;
	struct file *peer;
	struct fs_ctx *ctx;

	if (!f->path.dentry)
		return -ENODEV;
	struct path root = { f->path.mnt, f->path.dentry->sb->root };
	int err = fs_ctx_new(root, root, 0, &ctx);
	if (err)
		return err;
	struct fs_lookup l = { .ctx = ctx, .cred = fs_hooks->current_cred(), .base = root };
	fmt_init_fixed(&text, name, sizeof(name));
	fmt_printf(&text, "%d", p->index);
	err = vfs_open(&l, name, flags & ~O_CREAT, 0, &peer);
	fs_ctx_put(ctx);
	if (err)
		return err;
	/* The identity of the caller's table is the table. */
	struct fdtable *files = (struct fdtable *)(uintptr_t)fs_hooks->current_files();
	int fd = fd_install(files, peer, 0, flags & O_CLOEXEC);
	if (fd < 0)
		file_put(peer);
	return fd;
}

static long packet_ioctl(struct pty *p, unsigned cmd, uint64_t arg, const struct umem *um)
{
	int value;

	if (cmd == TIOCPKT) {
		int err = umem_read(um, &value, arg, sizeof(value));
		if (err)
			return err;
		mutex_lock(&p->tty.mu);
		p->packet = value != 0;
		p->packet_status = 0;
		mutex_unlock(&p->tty.mu);
		return 0;
	}
	mutex_lock(&p->tty.mu);
	value = p->packet;
	mutex_unlock(&p->tty.mu);
	return umem_write(um, arg, &value, sizeof(value));
}

static long lock_ioctl(struct pty *p, unsigned cmd, uint64_t arg, const struct umem *um)
{
	int value;

	if (cmd == TIOCSPTLCK) {
		int err = umem_read(um, &value, arg, sizeof(value));
		if (err)
			return err;
		mutex_lock(&p->tty.mu);
		p->locked = value != 0;
		mutex_unlock(&p->tty.mu);
		return 0;
	}
	mutex_lock(&p->tty.mu);
	value = p->locked;
	mutex_unlock(&p->tty.mu);
	return umem_write(um, arg, &value, sizeof(value));
}

static long master_ioctl(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct pty *p = master_pty(f);
	int count;

	switch (cmd) {
	case TIOCGPTN:
		return umem_write(um, arg, &p->index, sizeof(p->index));
	case TIOCSPTLCK:
	case TIOCGPTLCK:
		return lock_ioctl(p, cmd, arg, um);
	case TIOCPKT:
	case TIOCGPKT:
		return packet_ioctl(p, cmd, arg, um);
	case TIOCGPTPEER:
		return open_peer(f, (int)arg);
	case TIOCSIG:
		if (arg != SIGINT && arg != SIGQUIT && arg != SIGTSTP)
			return -EINVAL;
		tty_signal_foreground(&p->tty, (int)arg);
		return 0;
	case TIOCINQ:
		mutex_lock(&p->tty.mu);
		count = (int)ldisc_out_count(&p->ld);
		mutex_unlock(&p->tty.mu);
		return umem_write(um, arg, &count, sizeof(count));
	case TIOCNOTTY:
		return -ENOTTY;
	}
	long r = tty_common_ioctl(&p->tty, cmd, arg, um, true);
	return r == TTY_NO_SUCH_IOCTL ? -ENOTTY : r;
}

static void master_release(struct file *f)
{
	struct ptm_file *mf = container_of(f, struct ptm_file, file);
	struct pty *p = mf->pty;

	pts_unregister(p->index);
	tty_hangup(&p->tty);
	tty_put(&p->tty);
	mem_free(mf);
}

static void master_fdinfo(struct file *f, struct fmt *out)
{
	fmt_printf(out, "tty-index:\t%d\n", master_pty(f)->index);
}

static const struct file_ops ptm_file_ops = {
	.read = master_read,
	.write = master_write,
	.poll = master_poll,
	.ioctl = master_ioctl,
	.release = master_release,
	.show_fdinfo = master_fdinfo,
};

static int pty_new(uint32_t uid, struct pty **out)
{
	struct pty *p = mem_zalloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	tty_init(&p->tty, &pty_slave_ops, 0);
	waitq_init(&p->master_wait);
	p->locked = true;
	int err = ldisc_init(&p->ld, &p->tty.termios);
	if (!err)
		err = p->index = pts_register(&p->tty, uid, 0620);
	if (err < 0) {
		tty_put(&p->tty);
		return err;
	}
	*out = p;
	return 0;
}

int ptmx_open(struct inode *ino, int flags, const struct cred *c, struct file **out)
{
	struct ptm_file *mf = mem_zalloc(sizeof(*mf));

	if (!mf)
		return -ENOMEM;
	int err = pty_new(c->fsuid, &mf->pty);
	if (err) {
		mem_free(mf);
		return err;
	}
	file_init(&mf->file, &ptm_file_ops, inode_get(ino), (unsigned)flags);
	*out = &mf->file;
	return 0;
}

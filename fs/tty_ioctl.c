/* The ioctls of terminals (ioctl_tty(2)): see tty.h. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>

#include "fs/hooks.h"
#include "fs/tty_priv.h"

/* struct termios of the kernel's TCGETS: termios2 without the two speeds. */
#define K_TERMIOS_SIZE offsetof(struct termios2, c_ispeed)

/* struct termio of TCGETA. */
struct k_termio {
	uint16_t iflag, oflag, cflag, lflag;
	uint8_t line;
	uint8_t cc[8];
};

static const struct {
	tcflag_t code;
	unsigned baud;
} speeds[] = {
	{ B0, 0 },           { B50, 50 },         { B75, 75 },         { B110, 110 },
	{ B134, 134 },       { B150, 150 },       { B200, 200 },       { B300, 300 },
	{ B600, 600 },       { B1200, 1200 },     { B1800, 1800 },     { B2400, 2400 },
	{ B4800, 4800 },     { B9600, 9600 },     { B19200, 19200 },   { B38400, 38400 },
	{ B57600, 57600 },   { B115200, 115200 }, { B230400, 230400 }, { B460800, 460800 },
	{ B500000, 500000 }, { B576000, 576000 }, { B921600, 921600 }, { B1000000, 1000000 },
};

/* The numbers of termios2 follow the code in c_cflag unless it says BOTHER. */
static void fill_speeds(struct termios2 *tio)
{
	tcflag_t out = tio->c_cflag & CBAUD, in = (tio->c_cflag >> IBSHIFT) & CBAUD;

	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (speeds[i].code == out)
			tio->c_ospeed = speeds[i].baud;
		if (speeds[i].code == in && in != B0)
			tio->c_ispeed = speeds[i].baud;
	}
	if (in == B0)
		tio->c_ispeed = tio->c_ospeed;
}

static void snapshot(struct tty *t, struct termios2 *out)
{
	mutex_lock(&t->mu);
	t->ops->refresh(t);
	*out = t->termios;
	mutex_unlock(&t->mu);
}

static int get_termio(struct tty *t, uint64_t arg, const struct umem *um)
{
	struct termios2 tio;
	struct k_termio old;

	snapshot(t, &tio);
	old = (struct k_termio){
		.iflag = (uint16_t)tio.c_iflag,
		.oflag = (uint16_t)tio.c_oflag,
		.cflag = (uint16_t)tio.c_cflag,
		.lflag = (uint16_t)tio.c_lflag,
		.line = tio.c_line,
	};
	memcpy(old.cc, tio.c_cc, sizeof(old.cc));
	return umem_write(um, arg, &old, sizeof(old));
}

static int get_termios(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct termios2 tio;

	if (cmd == TCGETA)
		return get_termio(t, arg, um);
	snapshot(t, &tio);
	return umem_write(um, arg, &tio, cmd == TCGETS2 ? sizeof(tio) : K_TERMIOS_SIZE);
}

static int load_termio(struct termios2 *tio, uint64_t arg, const struct umem *um)
{
	struct k_termio old;

	int err = umem_read(um, &old, arg, sizeof(old));
	if (err)
		return err;
	tio->c_iflag = (tio->c_iflag & 0xffff0000u) | old.iflag;
	tio->c_oflag = (tio->c_oflag & 0xffff0000u) | old.oflag;
	tio->c_cflag = (tio->c_cflag & 0xffff0000u) | old.cflag;
	tio->c_lflag = (tio->c_lflag & 0xffff0000u) | old.lflag;
	tio->c_line = old.line;
	memcpy(tio->c_cc, old.cc, sizeof(old.cc));
	return 0;
}

/* The command in the termios2 form that the drivers know. */
static unsigned set_command(unsigned cmd)
{
	switch (cmd) {
	case TCSETSW:
	case TCSETSW2:
	case TCSETAW:
		return TCSETSW2;
	case TCSETSF:
	case TCSETSF2:
	case TCSETAF:
		return TCSETSF2;
	}
	return TCSETS2;
}

static int set_termios(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um,
		       bool on_master)
{
	struct termios2 tio;
	int err = on_master ? 0 : tty_check_change(t);

	if (err)
		return err;
	snapshot(t, &tio);
	if (cmd == TCSETA || cmd == TCSETAW || cmd == TCSETAF)
		err = load_termio(&tio, arg, um);
	else if (cmd == TCSETS2 || cmd == TCSETSW2 || cmd == TCSETSF2)
		err = umem_read(um, &tio, arg, sizeof(tio));
	else
		err = umem_read(um, &tio, arg, K_TERMIOS_SIZE);
	if (err)
		return err;
	fill_speeds(&tio);
	mutex_lock(&t->mu);
	err = t->ops->set_termios(t, &tio, set_command(cmd));
	mutex_unlock(&t->mu);
	return err;
}

int tty_set_size(struct tty *t, const struct tty_size *size)
{
	mutex_lock(&t->mu);
	t->ops->refresh(t);
	bool changed = memcmp(&t->size, size, sizeof(*size)) != 0;
	int err = changed ? t->ops->set_size(t, size) : 0;
	if (!err && changed) {
		t->size = *size;
		tty_signal_foreground(t, SIGWINCH);
	}
	mutex_unlock(&t->mu);
	return err;
}

static long winsize_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um)
{
	struct tty_size size;

	if (cmd == TIOCSWINSZ) {
		int err = umem_read(um, &size, arg, sizeof(size));
		return err ? err : tty_set_size(t, &size);
	}
	mutex_lock(&t->mu);
	t->ops->refresh(t);
	size = t->size;
	mutex_unlock(&t->mu);
	return umem_write(um, arg, &size, sizeof(size));
}

static long pgrp_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um,
		       bool on_master)
{
	int value;

	if (cmd == TIOCSPGRP) {
		int err = umem_read(um, &value, arg, sizeof(value));
		return err ? err : tty_set_pgrp_ioctl(t, value);
	}
	if (!on_master && !tty_is_ctty(t))
		return -ENOTTY;
	mutex_lock(&t->mu);
	value = cmd == TIOCGPGRP ? t->pgrp : t->sid;
	mutex_unlock(&t->mu);
	if (cmd == TIOCGSID && value == 0)
		return -ENOTTY;
	return umem_write(um, arg, &value, sizeof(value));
}

static long count_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um)
{
	mutex_lock(&t->mu);
	int n = (int)(cmd == TIOCOUTQ ? t->ops->out_count(t) : t->ops->in_count(t));
	mutex_unlock(&t->mu);
	return umem_write(um, arg, &n, sizeof(n));
}

static long flush_ioctl(struct tty *t, uint64_t arg, bool on_master)
{
	int err = on_master ? 0 : tty_check_change(t);

	if (err)
		return err;
	if (arg != TCIFLUSH && arg != TCOFLUSH && arg != TCIOFLUSH)
		return -EINVAL;
	mutex_lock(&t->mu);
	t->ops->flush(t, (int)arg);
	mutex_unlock(&t->mu);
	return 0;
}

static long flow_ioctl(struct tty *t, uint64_t arg, bool on_master)
{
	int err = on_master ? 0 : tty_check_change(t);

	if (err)
		return err;
	if (arg > TCION)
		return -EINVAL;
	mutex_lock(&t->mu);
	t->ops->flow(t, (int)arg);
	mutex_unlock(&t->mu);
	return 0;
}

/* TCSBRK and TCSBRKP: a pty has no line to break; what remains is tcdrain(3). */
static long drain_ioctl(struct tty *t, bool on_master)
{
	int err = on_master ? 0 : tty_check_change(t);

	if (err)
		return err;
	mutex_lock(&t->mu);
	err = t->ops->drain(t);
	mutex_unlock(&t->mu);
	return err;
}

static long exclusive_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um)
{
	mutex_lock(&t->mu);
	if (cmd != TIOCGEXCL)
		t->exclusive = cmd == TIOCEXCL;
	int value = t->exclusive;
	mutex_unlock(&t->mu);
	return cmd == TIOCGEXCL ? umem_write(um, arg, &value, sizeof(value)) : 0;
}

/* N_TTY is the only line discipline. */
static long discipline_ioctl(unsigned cmd, uint64_t arg, const struct umem *um)
{
	int value = 0;

	if (cmd == TIOCGETD)
		return umem_write(um, arg, &value, sizeof(value));
	int err = umem_read(um, &value, arg, sizeof(value));
	if (err)
		return err;
	return value == 0 ? 0 : -EINVAL;
}

long tty_common_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um,
		      bool on_master)
{
	switch (cmd) {
	case TCGETS:
	case TCGETS2:
	case TCGETA:
		return get_termios(t, cmd, arg, um);
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
	case TCSETS2:
	case TCSETSW2:
	case TCSETSF2:
	case TCSETA:
	case TCSETAW:
	case TCSETAF:
		return set_termios(t, cmd, arg, um, on_master);
	case TIOCGWINSZ:
	case TIOCSWINSZ:
		return winsize_ioctl(t, cmd, arg, um);
	case TIOCGPGRP:
	case TIOCSPGRP:
	case TIOCGSID:
		return pgrp_ioctl(t, cmd, arg, um, on_master);
	case TIOCNOTTY:
		return tty_detach_ioctl(t);
	case TIOCINQ:
	case TIOCOUTQ:
		return count_ioctl(t, cmd, arg, um);
	case TCFLSH:
		return flush_ioctl(t, arg, on_master);
	case TCXONC:
		return flow_ioctl(t, arg, on_master);
	case TCSBRK:
	case TCSBRKP:
		return drain_ioctl(t, on_master);
	case TIOCSBRK:
	case TIOCCBRK:
		return 0;
	case TIOCEXCL:
	case TIOCNXCL:
	case TIOCGEXCL:
		return exclusive_ioctl(t, cmd, arg, um);
	case TIOCGETD:
	case TIOCSETD:
		return discipline_ioctl(cmd, arg, um);
	case TIOCSTI:
		/* Typing into a terminal is a way out of a sandbox; Linux without legacy_tiocsti
		 * says the same. */
		return -EIO;
	}
	return TTY_NO_SUCH_IOCTL;
}

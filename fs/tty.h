/*
 * Terminals as programs see them: the file behind /dev/pts/N, /dev/tty and /dev/console, job
 * control, and the ioctls. What is on the other side (a pty master, the host's terminal) is a
 * struct tty_ops.
 *
 * Locks: ctty_mu (rank CTTY) covers which session has which terminal; tty->mu (rank TTY) covers the
 * rest. Both are taken inside file operations only.
 */
#pragma once

#include <asm/ioctls.h>
#include <asm/termbits.h>

#include "fs/vfs.h"

/* Documentation/admin-guide/devices.txt of the kernel. */
#define TTYAUX_TTY 0
#define TTYAUX_CONSOLE 1
#define TTYAUX_PTMX 2
#define PTS_MAJOR 136

struct tty;

/* struct winsize of ioctl_tty(2). */
struct tty_size {
	uint16_t rows, cols, xpixel, ypixel;
};

/* With tty->mu held unless noted. All required. */
struct tty_ops {
	int (*may_open)(struct tty *t); /* 0 or -errno of open(2) */
	/* May sleep on tty->wait with tty->mu. Bytes, 0 at the end, -EAGAIN, -ERESTARTSYS, -EIO. */
	ssize_t (*read)(struct tty *t, struct iov_iter *it, bool nonblock);
	ssize_t (*write)(struct tty *t, struct iov_iter *it, bool nonblock);
	uint32_t (*poll)(struct tty *t, struct poll_table *pt); /* no lock held */
	/* Brings t->termios and t->size up to date (the host may have changed them). */
	void (*refresh)(struct tty *t);
	/* t->termios becomes tio; cmd is TCSETS2, TCSETSW2 or TCSETSF2; may sleep. 0 or -errno. */
	int (*set_termios)(struct tty *t, const struct termios2 *tio, unsigned cmd);
	int (*set_size)(struct tty *t, const struct tty_size *size);
	size_t (*in_count)(struct tty *t);
	size_t (*out_count)(struct tty *t);
	void (*flush)(struct tty *t, int queue); /* TCIFLUSH, TCOFLUSH, TCIOFLUSH */
	void (*flow)(struct tty *t, int action); /* TCOOFF, TCOON, TCIOFF, TCION */
	int (*drain)(struct tty *t);             /* until all output has left; may sleep */
	void (*opened)(struct tty *t);
	void (*closed)(struct tty *t); /* the last open file has gone */
	void (*free)(struct tty *t);   /* no lock; frees the surrounding object */
};

struct tty {
	struct ref ref;
	const struct tty_ops *ops; /* [I] */
	uint64_t rdev;             /* [I] */
	struct mutex mu;           /* rank TTY */
	struct waitq wait;         /* readers, writers and pollers of the program side */
	struct termios2 termios;   /* [mu] */
	struct tty_size size;      /* [mu] */
	int sid, pgrp;             /* [ctty_mu + mu to change, mu to read] 0: none */
	unsigned open_count;       /* [mu] open files of the program side */
	bool exclusive;            /* [mu] TIOCEXCL */
	bool hung_up;              /* [mu] every open file of now is dead */
	bool is_console;           /* [I] never becomes dead by its session's end */
	struct tty *next_ctty;     /* [ctty_mu] chain of terminals that control a session */
};

DECLARE_REF(tty);
void tty_init(struct tty *t, const struct tty_ops *ops, uint64_t rdev);

/* A file on the program side. Takes ino, also on error. Makes it the controlling terminal by the
 * rules of open(2) unless O_NOCTTY. -EBUSY (exclusive), -EIO (hung up), -ENOMEM. */
int tty_open(struct tty *t, struct inode *ino, int flags, struct file **out) MUST_CHECK;
/* /dev/tty and /dev/console. */
int tty_aux_open(struct inode *ino, int flags, struct file **out) MUST_CHECK;
/* The terminal of a file made by tty_open, borrowed; NULL for other files. */
struct tty *tty_of_file(struct file *f);

/* The ioctls that both sides of a pty have. on_master: no job-control checks. -ENOIOCTLCMD when
 * unknown. */
#define TTY_NO_SUCH_IOCTL (-515)
long tty_common_ioctl(struct tty *t, unsigned cmd, uint64_t arg, const struct umem *um,
		      bool on_master);
/* Size by t->ops, SIGWINCH to the foreground group when it changed. mu not held. */
int tty_set_size(struct tty *t, const struct tty_size *size);
/* Signal to the foreground group. No lock held or mu only. */
void tty_signal_foreground(struct tty *t, int sig);
/* The other side has gone for good: SIGHUP and SIGCONT to the session, no controlling terminal any
 * more, open files give end of file and -EIO. No lock held. */
void tty_hangup(struct tty *t);
/* The sentry: the leader of session `sid` is exiting. No lock held. */
void tty_leader_exit(int sid);
/* tty_nr and tpgid of /proc/PID/stat for a process of session `sid`: 0 and -1 without a terminal.
 */
void tty_proc_numbers(int sid, int *out_nr, int *out_pgrp);
/* Boot: t becomes the controlling terminal of session sid, with pgrp in front. */
void tty_give_to_session(struct tty *t, int sid, int pgrp);
/* What /dev/console opens. Takes a reference of its own. */
void tty_set_console(struct tty *t);

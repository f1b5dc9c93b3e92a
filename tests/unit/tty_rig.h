/* A devpts mount, a pretended session, and short calls on a pty, for tests of terminals. */
#pragma once

#include "fs/pty.h"
#include "tests/unit/fs_rig.h"

/* Who calls, and what the hooks heard. */
struct tty_world {
	struct fs_rig rig;
	int sid, pgrp; /* of the caller */
	bool leader, ignores, orphaned;
	void *ctty; /* of session sid */
	int sig[16], sig_pgrp[16], sig_count;
	int hangups;
};

extern struct tty_world tw;

/* cmocka set-up and tear-down: a mounted devpts; no memory is left. */
int tty_world_setup(void **state);
int tty_world_teardown(void **state);
/* A master and its slave, unlocked; O_NOCTTY and O_NONBLOCK on both. */
void pty_open_pair(struct file **master, struct file **slave);
/* Whole strings; the number or -errno. */
ssize_t type_text(struct file *f, const char *text);
/* What can be read now as text ("-11" for -EAGAIN and the like). Static buffer. */
const char *text_of(struct file *f);
long term_ctl(struct file *f, unsigned cmd, void *arg);

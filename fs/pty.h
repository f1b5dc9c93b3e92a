/*
 * Pseudo-terminals (pty(7)) and the devpts file system. There is one table of terminals: every
 * devpts mount shows all of them. The host's terminal, where there is one, has a number in it too.
 */
#pragma once

#include "fs/tty.h"

#define PTY_MAX 1024 /* terminals at a time; Linux' kernel.pty.max is 4096 */

/* Gives a super block of type devpts. */
int devpts_new(struct superblock **out) MUST_CHECK;
/* /dev/ptmx: a new terminal's master. -ENOSPC when all numbers are taken, -ENOMEM. */
int ptmx_open(struct inode *ino, int flags, const struct cred *c, struct file **out) MUST_CHECK;
/* A node with major PTS_MAJOR. -EIO: no such terminal, or locked. */
int pts_open(struct inode *ino, int flags, struct file **out) MUST_CHECK;

/* Puts t (keeps a reference of its own) under the next free number, owned by uid. t->rdev is set; t
 * is not in use yet. The number, -ENOSPC or -ENOMEM. */
int pts_register(struct tty *t, uint32_t uid, uint32_t mode) MUST_CHECK;
/* The name goes away; files and inodes stay usable until they are closed. */
void pts_unregister(int index);
int pts_count(void);

/* What fs/tty.c and fs/tty_ioctl.c share. No lock held on entry of any. */
#pragma once

#include "fs/ldisc.h"
#include "fs/tty.h"

/* May the caller change the terminal? 0, -EIO, or -ERESTARTSYS with SIGTTOU sent. */
int tty_check_change(struct tty *t) MUST_CHECK;
bool tty_is_ctty(struct tty *t);
int tty_attach_ioctl(struct tty *t, bool steal, bool readable) MUST_CHECK;
int tty_detach_ioctl(struct tty *t) MUST_CHECK;
int tty_set_pgrp_ioctl(struct tty *t, int pgrp) MUST_CHECK;

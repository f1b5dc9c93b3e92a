/* Short calls on terminals: see tty_rig.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fs/hooks.h"
#include "tests/unit/tty_rig.h"

struct tty_world tw;

static const struct fs_hooks *plain;
static struct fs_hooks hooks;

static const struct cred *current_cred(void)
{
	return tw.rig.cred;
}

static int current_sid(void)
{
	return tw.sid;
}

static int current_pgrp(void)
{
	return tw.pgrp;
}

static bool is_session_leader(void)
{
	return tw.leader;
}

static void signal_pgrp(int pgrp, int sig)
{
	if (tw.sig_count < (int)ARRAY_SIZE(tw.sig)) {
		tw.sig[tw.sig_count] = sig;
		tw.sig_pgrp[tw.sig_count++] = pgrp;
	}
}

static bool is_sig_ignored(int sig)
{
	(void)sig;
	return tw.ignores;
}

static bool is_pgrp_orphaned(int pgrp)
{
	(void)pgrp;
	return tw.orphaned;
}

/* Groups 100-199 are of session 100, and so on; others do not exist. */
static int pgrp_session(int pgrp)
{
	return pgrp >= 100 && pgrp < 300 ? pgrp / 100 * 100 : -ESRCH;
}

static void set_ctty(int sid, void *tty)
{
	if (sid == tw.sid)
		tw.ctty = tty;
}

static void *current_ctty(void)
{
	return tw.ctty;
}

static void tty_hangup_hook(int sid, int pgrp)
{
	(void)sid;
	(void)pgrp;
	tw.hangups++;
}

int tty_world_setup(void **state)
{
	struct superblock *sb;

	(void)state;
	memset(&tw, 0, sizeof(tw));
	fs_rig_begin(&tw.rig);
	plain = fs_hooks;
	hooks = *plain;
	hooks.current_cred = current_cred;
	hooks.current_sid = current_sid;
	hooks.current_pgrp = current_pgrp;
	hooks.is_session_leader = is_session_leader;
	hooks.signal_pgrp = signal_pgrp;
	hooks.is_sig_ignored = is_sig_ignored;
	hooks.is_pgrp_orphaned = is_pgrp_orphaned;
	hooks.pgrp_session = pgrp_session;
	hooks.set_ctty = set_ctty;
	hooks.current_ctty = current_ctty;
	hooks.tty_hangup = tty_hangup_hook;
	assert_int_equal(devpts_new(&sb), 0);
	fs_rig_mount(&tw.rig, sb, 0);
	fs_hooks = &hooks;
	tw.sid = tw.pgrp = 100;
	return 0;
}

int tty_world_teardown(void **state)
{
	(void)state;
	fs_rig_unmount(&tw.rig);
	fs_hooks = plain;
	fs_rig_end(&tw.rig);
	return 0;
}

long term_ctl(struct file *f, unsigned cmd, void *arg)
{
	return f->ops->ioctl(f, cmd, (uintptr_t)arg, &umem_host);
}

void pty_open_pair(struct file **master, struct file **slave)
{
	char name[16];
	int unlock = 0;
	unsigned number;

	assert_int_equal(rig_open(&tw.rig, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0, master), 0);
	assert_int_equal(term_ctl(*master, TIOCSPTLCK, &unlock), 0);
	assert_int_equal(term_ctl(*master, TIOCGPTN, &number), 0);
	snprintf(name, sizeof(name), "%u", number);
	assert_int_equal(rig_open(&tw.rig, name, O_RDWR | O_NOCTTY | O_NONBLOCK, 0, slave), 0);
}

ssize_t type_text(struct file *f, const char *text)
{
	return rig_pwrite(f, text, strlen(text), -1);
}

const char *text_of(struct file *f)
{
	static char buf[20000];
	ssize_t n = rig_pread(f, buf, sizeof(buf) - 1, -1);

	if (n < 0)
		snprintf(buf, sizeof(buf), "%zd", n);
	else
		buf[n] = 0;
	return buf;
}

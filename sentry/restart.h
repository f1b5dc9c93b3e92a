/*
 * Internal results of an interrupted call (include/linux/errno.h). They never reach the guest:
 * loop.c turns them into a restart or -EINTR when it knows whether a handler will run.
 */
#pragma once

#include "platform/base/waitq.h" /* ERESTARTSYS 512: restart if SA_RESTART or no handler */

#define ERESTARTNOINTR 513        /* always restart */
#define ERESTARTNOHAND 514        /* restart only if no handler runs, else EINTR */
#define ERESTART_RESTARTBLOCK 516 /* no handler: continue by restart_syscall(2); else EINTR */

/*
 * Starting on one processor. Until the first program runs, and while it is short, the sentry, the
 * gofer and the stubs take turns: one works, the others wait for it. On one processor a turn costs
 * a switch; between two it costs waking the other one up, which on a virtual machine takes several
 * times as long.
 */
#pragma once

#include "platform/base/waitq.h"

/* Keeps the calling thread, and what it will start, on the processor where it is. Once, while there
 * is one thread. */
void onecpu_begin(void);
/* A thread of ours, or the main thread of a helper, that is to be let go in the end. The platform's
 * need not be named. */
void onecpu_note(int tid);
/* When it shall end at the latest; DEADLINE_NEVER: it has ended or never began. */
deadline_t onecpu_until(void);
/* Lets everything run everywhere again, and starts the timers; nothing when it has ended. Any
 * thread, no lock held. */
void onecpu_end(void);

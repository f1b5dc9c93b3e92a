/* What the sentry does when a stub dies that it did not kill. */
#pragma once

/*
 * After children of the main thread have ended: kills each guest process whose stub is gone (killed
 * from outside, or by the host for lack of memory), so that one that sleeps in a system call does
 * not sleep on without its memory.
 */
void stub_death_check(void);

/*
 * A platform for unit tests of what lies above: no process, no CPU. A test gives each context a
 * script of events; run() plays the next one. Every call is recorded as a line of text. Guest
 * memory is a small table of host buffers per address space, made by map().
 */
#pragma once

#include "platform/platform.h"

extern const struct platform_ops fake_platform;

/* What run() of any context will do next, in order; when the script is empty run() gives PLAT_DEAD.
 * `set` (may be NULL) changes the registers before the event is reported, as guest code would. */
typedef void fake_step_fn(struct regs *regs, void *arg);
void fake_push(const struct plat_event *ev, fake_step_fn *set, void *arg);
/* The usual step: the guest makes system call nr with up to six arguments. */
void fake_push_syscall(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		       uint64_t a5);
/* Registers as the last run() got them. */
const struct regs *fake_last_regs(void);
/* The record so far, one call a line ("map 0x1000 0x2000 3"), and its reset with everything else.
 */
const char *fake_record(void);
void fake_reset(void);
/* Makes the n-th next mapping call fail with that error (1 = the next); 0 switches it off. */
void fake_fail_nth(unsigned n, int err);

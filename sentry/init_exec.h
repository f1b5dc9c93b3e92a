/* The first program of the sandbox. */
#pragma once

#include "sentry/boot.h"

struct task;

/* Starts the thread of the first task; it changes to spec->cwd, finds argv[0] in PATH and executes
 * it. */
int init_exec_start(struct task *init, const struct sandbox_spec *spec) MUST_CHECK;
/* 0, or the shell's status 125, 126 or 127 when the command could not be executed (a line was
 * printed). */
int init_exec_failure(void);

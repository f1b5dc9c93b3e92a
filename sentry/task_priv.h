/* Shared by task.c and clone.c only: making a task. */
#pragma once

#include "sentry/task.h"

/* A task with count 1 whose pointers are all NULL; the caller fills them. */
struct task *task_alloc(void) MUST_CHECK;
/* A process with count 1 and default limits. */
struct group *group_alloc(void) MUST_CHECK;

/* Host threads of our own processes: small stacks, all signals blocked, detached. */
#pragma once

#include <pthread.h>

#include "platform/base/types.h"

#define THREAD_STACK_SIZE (128 * 1024)

/* Starts fn(arg) on a detached thread with every signal blocked. 0 or -errno (EAGAIN). */
int thread_start(pthread_t *out_thread, void *(*fn)(void *), void *arg) MUST_CHECK;

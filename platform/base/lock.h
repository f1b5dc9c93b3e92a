/*
 * Mutex with a rank. Debug builds (PINFOLD_DEBUG) keep the set of ranks that a thread holds and
 * abort on a violation of platform/base/lock_rank.h. The REQUIRES/ACQUIRES annotations are
 * checked by clang -Wthread-safety and empty under gcc.
 */
#pragma once

#include <pthread.h>

#include "platform/base/lock_rank.h"
#include "platform/base/types.h"

#if defined(__clang__)
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif

#define REQUIRES(...) TSA(requires_capability(__VA_ARGS__))
#define ACQUIRES(...) TSA(acquire_capability(__VA_ARGS__))
#define RELEASES(...) TSA(release_capability(__VA_ARGS__))
#define NO_LOCK_ANALYSIS TSA(no_thread_safety_analysis)

struct TSA(capability("mutex")) mutex {
	pthread_mutex_t m;
	uint8_t rank;
};

#define MUTEX_INIT(r)                                                                              \
	{                                                                                          \
		.m = PTHREAD_MUTEX_INITIALIZER, .rank = (r)                                        \
	}

void mutex_init(struct mutex *mu, enum lock_rank rank);
void mutex_fini(struct mutex *mu);
void mutex_lock(struct mutex *mu) ACQUIRES(mu);
/* Takes a second lock of a rank that is already held; the caller documents the order. */
void mutex_lock_nested(struct mutex *mu) ACQUIRES(mu);
bool mutex_trylock(struct mutex *mu) TSA(try_acquire_capability(true, mu));
void mutex_unlock(struct mutex *mu) RELEASES(mu);
/* Aborts a debug build when the calling thread holds any lock besides `except` (may be NULL). */
void lock_assert_none_held(const struct mutex *except);

/* Locks two mutexes of one rank, lower address first; a == b is locked once. */
void mutex_lock_pair(struct mutex *a, struct mutex *b) NO_LOCK_ANALYSIS;
void mutex_unlock_pair(struct mutex *a, struct mutex *b) NO_LOCK_ANALYSIS;

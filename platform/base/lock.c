/*
 * Mutexes and the run-time check of the lock order. Per rank the thread keeps a count, since a
 * pair of inodes is two locks of one rank; the check is "nothing of a higher rank is held".
 */
#include "platform/base/lock.h"

#ifdef PINFOLD_DEBUG
static _Thread_local uint8_t held[RANK_COUNT];

static void rank_acquire(enum lock_rank rank, bool nested)
{
	for (int r = nested ? (int)rank + 1 : (int)rank; r < RANK_COUNT; r++)
		BUG_ON(held[r] != 0);
	held[rank]++;
}

static void rank_release(enum lock_rank rank)
{
	BUG_ON(held[rank] == 0);
	held[rank]--;
}

/* A trylock cannot deadlock, so it is recorded without the check. */
static void rank_note(enum lock_rank rank)
{
	held[rank]++;
}
#else
static void rank_acquire(enum lock_rank rank UNUSED, bool nested UNUSED)
{
}

static void rank_release(enum lock_rank rank UNUSED)
{
}

static void rank_note(enum lock_rank rank UNUSED)
{
}
#endif

void lock_assert_none_held(const struct mutex *except UNUSED)
{
#ifdef PINFOLD_DEBUG
	for (int r = 0; r < RANK_COUNT; r++)
		BUG_ON(held[r] > (except && except->rank == r ? 1 : 0));
#endif
}

void mutex_init(struct mutex *mu, enum lock_rank rank)
{
	pthread_mutex_init(&mu->m, NULL);
	mu->rank = (uint8_t)rank;
}

void mutex_fini(struct mutex *mu)
{
	pthread_mutex_destroy(&mu->m);
}

void mutex_lock(struct mutex *mu) NO_LOCK_ANALYSIS
{
	rank_acquire(mu->rank, false);
	pthread_mutex_lock(&mu->m);
}

void mutex_lock_nested(struct mutex *mu) NO_LOCK_ANALYSIS
{
	rank_acquire(mu->rank, true);
	pthread_mutex_lock(&mu->m);
}

bool mutex_trylock(struct mutex *mu) NO_LOCK_ANALYSIS
{
	if (pthread_mutex_trylock(&mu->m) != 0)
		return false;
	rank_note(mu->rank);
	return true;
}

void mutex_unlock(struct mutex *mu) NO_LOCK_ANALYSIS
{
	rank_release(mu->rank);
	pthread_mutex_unlock(&mu->m);
}

void mutex_lock_pair(struct mutex *a, struct mutex *b)
{
	if ((uintptr_t)a > (uintptr_t)b) {
		struct mutex *t = a;
		a = b;
		b = t;
	}
	mutex_lock(a);
	if (a != b)
		mutex_lock_nested(b);
}

void mutex_unlock_pair(struct mutex *a, struct mutex *b)
{
	mutex_unlock(a);
	if (a != b)
		mutex_unlock(b);
}

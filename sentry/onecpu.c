/* Starting on one processor: see onecpu.h. */
#include "sentry/onecpu.h"

#include <sched.h>
#include <stdatomic.h>

#include "platform/base/log.h"
#include "platform/base/timer.h"
#include "sentry/plat.h"

/* A program that has run for so long gains more from other processors than its calls lose. */
#define ONE_CPU_NS 8000000u
#define NOTED_MAX 4

static cpu_set_t all, here;         /* [I] */
static deadline_t until;            /* [I] */
static atomic_int noted[NOTED_MAX]; /* 0: not yet used */
static atomic_int noted_count;
static atomic_bool active;

void onecpu_begin(void)
{
	int cpu = sched_getcpu();

	if (!plat->spread || cpu < 0 || cpu >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof(here), &here) < 0)
		return;
	until = deadline_after_ns(ONE_CPU_NS);
	atomic_store(&active, true);
}

static void let_go(int tid)
{
	/* Who has ended meanwhile needs nothing. */
	(void)sched_setaffinity(tid, sizeof(all), &all);
}

void onecpu_note(int tid)
{
	if (!atomic_load(&active))
		return;
	int i = atomic_fetch_add(&noted_count, 1);
	BUG_ON(i >= NOTED_MAX);
	atomic_store(&noted[i], tid);
	/* Either the end sees the entry or we see the end. */
	if (!atomic_load(&active))
		let_go(tid);
}

deadline_t onecpu_until(void)
{
	return atomic_load(&active) ? until : DEADLINE_NEVER;
}

void onecpu_end(void)
{
	if (!atomic_exchange(&active, false))
		return;
	for (int i = 0; i < NOTED_MAX; i++) {
		int tid = atomic_load(&noted[i]);
		if (tid)
			let_go(tid);
	}
	plat->spread(&all, sizeof(all));
	int err = timer_start_thread();
	if (err)
		log_error("timers cannot run: no thread for them: error %d", -err);
}

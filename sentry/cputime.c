/*
 * Processor time of guests. System time of a task is what its sentry thread used; user time is what
 * its stub used. The host tells the stub's time per process only, so threads of one address space
 * get equal shares of what threads that ended have not taken with them (mm->cpu_claimed_ns): sums
 * per process are exact, those per thread are an estimate. A platform that knows better has
 * ctx_cpu_ns.
 */
#include <sys/mman.h>
#include <time.h>

#include "sentry/exit.h"
#include "sentry/plat.h"
#include "sentry/task.h"

/* Host clock ids of other processes and threads: see clock.c; kind SCHED. */
#define HOST_PROCESS_CLOCK(pid) ((clockid_t)((~(unsigned)(pid) << 3) | 2u))
#define HOST_THREAD_CLOCK(tid) ((clockid_t)((~(unsigned)(tid) << 3) | 6u))

#define SAMPLE_PAGES 8192 /* per host call: 32 MiB */
#define SAMPLE_CALLS_MAX 128
#define SMALL_PAGES 2048
#define SAMPLE_PERIOD_NS 100000000u

static uint64_t host_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The share of the stub's time of one of the threads that use mm. The caller keeps mm in use. */
static uint64_t user_share(struct mm *mm)
{
	int users = atomic_load(&mm->users);
	int pid = plat->host_pid(mm->as);

	if (pid <= 0 || users <= 0)
		return 0;
	uint64_t total = host_clock(HOST_PROCESS_CLOCK(pid)),
		 claimed = atomic_load(&mm->cpu_claimed_ns);
	return total > claimed ? (total - claimed) / (unsigned)users : 0;
}

void task_times(struct task *t, uint64_t *out_user_ns, uint64_t *out_sys_ns)
{
	uint64_t user = 0, sys = 0;

	/* t->mm is cleared under t->mu before its address space may go. */
	mutex_lock(&t->mu);
	if (t->mm && t->mm->as) {
		user = user_share(t->mm);
		int tid = atomic_load(&t->host_tid);
		if (tid)
			sys = host_clock(HOST_THREAD_CLOCK(tid));
	}
	mutex_unlock(&t->mu);
	*out_user_ns = t->utime_ns + user;
	*out_sys_ns = t->stime_ns + sys;
}

/* Bounded: what a program has only reserved would take for ever to look at. */
static uint64_t resident_pages(struct task *t)
{
	struct mm *mm = t->mm;
	uint8_t vec[SAMPLE_PAGES];
	uint64_t pages = 0;
	unsigned calls = 0;

	mutex_lock(&mm->mu);
	for (struct vma *v = vma_find_locked(mm, 0); v; v = vma_next_locked(v)) {
		if (v->file || v->prot == PROT_NONE)
			continue;
		for (uint64_t at = v->start, n; at < v->end && calls < SAMPLE_CALLS_MAX;
		     at += n << PAGE_SHIFT) {
			n = MIN((v->end - at) >> PAGE_SHIFT, sizeof(vec));
			calls++;
			if (plat->resident(t->ctx, at, n << PAGE_SHIFT, vec) != 0)
				break;
			for (uint64_t i = 0; i < n; i++)
				pages += vec[i] & 1;
		}
	}
	mutex_unlock(&mm->mu);
	return pages;
}

/* The last task of an address space leaves it: what it held counts for the process's peak. Small
 * ones are taken at their size, since looking costs more than it tells. */
static void keep_peak(struct task *t)
{
	struct mm *mm = t->mm;

	if (atomic_load(&mm->users) > 1)
		return;
	mutex_lock(&mm->mu);
	uint64_t pages = mm->data_pages + mm->stack_pages;
	mutex_unlock(&mm->mu);
	if (pages > SMALL_PAGES)
		pages = resident_pages(t);
	mutex_lock(&tasks_mu);
	t->group->maxrss_kb = MAX(t->group->maxrss_kb, pages * (PAGE_SIZE / 1024));
	mutex_unlock(&tasks_mu);
}

void task_times_fold(struct task *t)
{
	uint64_t share = user_share(t->mm);

	keep_peak(t);

	atomic_fetch_add(&t->mm->cpu_claimed_ns, share);
	t->utime_ns += share;
}

void task_times_final(struct task *t)
{
	task_times_fold(t);
	t->stime_ns += host_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* LINUX: keeps the peak of all resident pages as they come. The host knows that of a stub, out of
 * our reach; counted are the anonymous pages that are resident when somebody asks. */
void task_sample_memory(struct task *t)
{
	uint64_t now = mono_now_ns(), pages;
	struct group *g = t->group;

	mutex_lock(&tasks_mu);
	bool recent = now - g->maxrss_ns < SAMPLE_PERIOD_NS;
	if (!recent)
		g->maxrss_ns = now;
	mutex_unlock(&tasks_mu);
	if (recent)
		return;
	pages = resident_pages(t);
	mutex_lock(&tasks_mu);
	g->maxrss_kb = MAX(g->maxrss_kb, pages * (PAGE_SIZE / 1024));
	mutex_unlock(&tasks_mu);
}

void group_times_locked(struct group *g, uint64_t *out_user_ns, uint64_t *out_sys_ns)
{
	*out_user_ns = g->dead_utime_ns;
	*out_sys_ns = g->dead_stime_ns;
	list_for_each(pos, &g->threads) {
		uint64_t user, sys;
		task_times(list_entry(pos, struct task, group_link), &user, &sys);
		*out_user_ns += user;
		*out_sys_ns += sys;
	}
}

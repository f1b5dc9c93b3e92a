/*
 * Life of a task and of a thread group as objects: allocation, the sentry thread, release. What a
 * new task gets from its parent is clone.c's; how it ends is exit.c's.
 */
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/thread.h"
#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/task_priv.h"

const struct platform_ops *plat;

static _Thread_local struct task *current;

struct task *current_task(void)
{
	return current;
}

void set_current_task(struct task *t)
{
	current = t;
}

static void group_free(struct group *g)
{
	BUG_ON(!list_empty(&g->threads) || !list_empty(&g->children));
	sigpending_flush(&g->pending);
	waitq_fini(&g->child_wait);
	waitq_fini(&g->exit_wait);
	waitq_fini(&g->cont_wait);
	mem_free(g);
}

DEFINE_REF(group);

static void task_free(struct task *t)
{
	sigpending_flush(&t->pending);
	sighand_put(t->sighand);
	group_put(t->group);
	/* Kept until now: a zombie still has an owner. */
	cred_put((struct cred *)(uintptr_t)t->cred);
	waitq_fini(&t->vfork_wait);
	mutex_fini(&t->mu);
	arena_fini(&t->scratch);
	mem_free(t);
}

DEFINE_REF(task);

struct task *task_alloc(void)
{
	struct task *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	ref_init(&t->ref);
	list_init(&t->group_link);
	sigpending_init(&t->pending);
	waitq_init(&t->vfork_wait);
	mutex_init(&t->mu, RANK_TASK);
	arena_init(&t->scratch);
	sleeper_init(&t->sleeper);
	t->syscall_nr = UINT64_MAX;
	t->start_ns = mono_now_ns();
	t->default_slack_ns = t->timer_slack_ns = 50000; /* TIMER_SLACK default, prctl(2) */
	return t;
}

/* Limits of the first process: what a login on Debian has. */
static void rlimits_default(struct group *g)
{
	static const struct {
		int resource;
		uint64_t cur, max;
	} rows[] = {
		{ RLIMIT_STACK, 8u << 20, RLIM_INFINITY },
		{ RLIMIT_CORE, 0, RLIM_INFINITY },
		{ RLIMIT_NPROC, TASKS_MAX_DEFAULT, TASKS_MAX_DEFAULT },
		{ RLIMIT_NOFILE, 1024, 1048576 },
		{ RLIMIT_MEMLOCK, 8u << 20, 8u << 20 },
		{ RLIMIT_SIGPENDING, SIGQUEUE_MAX, SIGQUEUE_MAX },
		{ RLIMIT_MSGQUEUE, 819200, 819200 },
		{ RLIMIT_NICE, 0, 0 },
		{ RLIMIT_RTPRIO, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(g->rlim); i++)
		g->rlim[i] = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		g->rlim[rows[i].resource] = (struct rlimit){ rows[i].cur, rows[i].max };
}

struct group *group_alloc(void)
{
	struct group *g = mem_zalloc(sizeof(*g));

	if (!g)
		return NULL;
	ref_init(&g->ref);
	list_init(&g->threads);
	list_init(&g->all_link);
	list_init(&g->children);
	list_init(&g->sibling);
	list_init(&g->posix_timers);
	sigpending_init(&g->pending);
	waitq_init(&g->child_wait);
	waitq_init(&g->exit_wait);
	waitq_init(&g->cont_wait);
	rlimits_default(g);
	g->start_ns = mono_now_ns();
	return g;
}

int task_start(struct task *t)
{
	pthread_t thread;

	task_get(t);
	int err = thread_start(&thread, task_main, t);
	if (err)
		task_put(t);
	return err;
}

void task_release_locked(struct task *t)
{
	struct group *g = t->group;

	list_del_init(&t->group_link);
	pid_free_locked(t->tid);
	if (g->leader == t) {
		list_del_init(&g->sibling);
		group_unlink_locked(g);
	}
}

void task_thread_end(struct task *t)
{
	set_current_task(NULL);
	/* The sleeper lives in the task; others may hold references and interrupt it still. */
	sleeper_set_self(NULL);
	task_put(t);
	pthread_exit(NULL);
}

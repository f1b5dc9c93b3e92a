/*
 * Guest ids. One table indexed by id; the entry points at the task with that tid. An id is free
 * when no task has it and no process uses it as process group or session, so that a new process
 * never joins an old group by accident. All under tasks_mu.
 */
#include <errno.h>

#include "sentry/limits.h"
#include "sentry/task.h"

struct mutex tasks_mu = MUTEX_INIT(RANK_TASKS);

static struct task *by_tid[PID_MAX_DEFAULT + 1]; /* [tasks_mu] borrowed: cleared before the task is
						    freed */
static struct list all_groups = LIST_INIT(all_groups); /* [tasks_mu] of group.all_link */
static int last_pid;                                   /* [tasks_mu] */
static int task_count;                                 /* [tasks_mu] */
static int task_limit = TASKS_MAX_DEFAULT;             /* [tasks_mu] */

void pid_set_limit(int max_tasks)
{
	mutex_lock(&tasks_mu);
	task_limit = MIN(max_tasks, PID_MAX_DEFAULT);
	mutex_unlock(&tasks_mu);
}

int pid_task_count(void)
{
	mutex_lock(&tasks_mu);
	int n = task_count;
	mutex_unlock(&tasks_mu);
	return n;
}

static bool pid_in_use_locked(int pid)
{
	if (by_tid[pid])
		return true;
	list_for_each(pos, &all_groups) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp == pid || g->sid == pid || g->tgid == pid)
			return true;
	}
	return false;
}

static void pid_assign_locked(struct task *t, int pid)
{
	by_tid[pid] = t;
	t->tid = pid;
	task_count++;
}

int pid_alloc_locked(struct task *t)
{
	if (task_count >= task_limit)
		return -EAGAIN;
	for (int tries = 0; tries < PID_MAX_DEFAULT; tries++) {
		/* After the first lap Linux starts again at RESERVED_PIDS, 300. */
		last_pid = last_pid < PID_MAX_DEFAULT ? last_pid + 1 : 300;
		if (!pid_in_use_locked(last_pid)) {
			pid_assign_locked(t, last_pid);
			return 0;
		}
	}
	return -EAGAIN;
}

int pid_alloc_exact_locked(struct task *t, int pid)
{
	if (pid < 1 || pid > PID_MAX_DEFAULT)
		return -EINVAL;
	if (task_count >= task_limit)
		return -EAGAIN;
	if (pid_in_use_locked(pid))
		return -EEXIST;
	pid_assign_locked(t, pid);
	return 0;
}

void pid_free_locked(int pid)
{
	BUG_ON(pid < 1 || pid > PID_MAX_DEFAULT || !by_tid[pid]);
	by_tid[pid] = NULL;
	task_count--;
}

void pid_exchange_locked(struct task *a, struct task *b)
{
	int pid = a->tid;

	a->tid = b->tid;
	b->tid = pid;
	by_tid[a->tid] = a;
	by_tid[b->tid] = b;
}

void group_link_locked(struct group *g)
{
	list_add_tail(&all_groups, &g->all_link);
}

void group_unlink_locked(struct group *g)
{
	list_del_init(&g->all_link);
}

struct list *group_list_locked(void)
{
	return &all_groups;
}

struct task *task_find_locked(int tid)
{
	return tid > 0 && tid <= PID_MAX_DEFAULT ? by_tid[tid] : NULL;
}

struct group *group_find_locked(int tgid)
{
	struct task *t = task_find_locked(tgid);
	return t && t->group->leader == t ? t->group : NULL;
}

struct task *task_find(int tid)
{
	mutex_lock(&tasks_mu);
	struct task *t = task_find_locked(tid);
	if (t)
		task_get(t);
	mutex_unlock(&tasks_mu);
	return t;
}

struct group *group_find(int tgid)
{
	mutex_lock(&tasks_mu);
	struct group *g = group_find_locked(tgid);
	if (g)
		group_get(g);
	mutex_unlock(&tasks_mu);
	return g;
}

struct group *group_next(int from)
{
	struct group *g = NULL;

	mutex_lock(&tasks_mu);
	for (int pid = MAX(from, 1); pid <= PID_MAX_DEFAULT && !g; pid++)
		g = group_find_locked(pid);
	if (g)
		group_get(g);
	mutex_unlock(&tasks_mu);
	return g;
}

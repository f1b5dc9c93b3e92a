/*
 * The end of threads and processes: kernel/exit.c. task_exit runs on the dying task's own thread,
 * first gives back what the task holds (futexes, memory, files), then leaves the tree in one step
 * under tasks_mu (leave_tree), where children are handed on, the parent is told and what nobody
 * will wait for is released.
 *
 * A leader that ends before its other threads stays in the tree as a zombie thread; the process
 * becomes a zombie (group->zombie) with its last thread. An orphan without a subreaper has no
 * parent and is released by us.
 */
#include "sentry/exit.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>

#include "fs/namei.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/session.h"
#include "sentry/task.h"
#include "sentry/timers.h"

#define ROBUST_LIST_LIMIT 2048 /* entries, as the kernel; a guest can make the list circular */
#define INIT_TGID 1

struct k_robust_list_head {
	uint64_t next;
	int64_t futex_offset;
	uint64_t pending;
};

void (*init_end_hook)(int status);

/* ---- futexes --------------------------------------------------------------------------------- */

static void wake_one(struct task *t, uint64_t addr)
{
	/* Without the private flag it reaches waiters of both kinds. */
	const uint64_t args[6] = { addr, FUTEX_WAKE, 1, 0, 0, 0 };

	(void)plat->futex(t->ctx, args, NULL);
}

/* One lock of a dying owner: marks it and wakes a waiter. False: the list is broken, stop. */
static bool release_robust(struct task *t, uint64_t addr, bool pi, bool pending)
{
	uint32_t val, seen;

	if (addr % sizeof(val) != 0 || guest_read(t, &val, gaddr(addr), sizeof(val)) != 0)
		return false;
	/* Unlocked, but the waiter was not woken yet when the owner died. */
	if (pending && !pi && val == 0) {
		wake_one(t, addr);
		return true;
	}
	for (int tries = 0; tries < ROBUST_LIST_LIMIT; tries++) {
		if ((val & FUTEX_TID_MASK) != (uint32_t)t->tid)
			return true;
		uint32_t dead = (val & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
		if (plat->cmpxchg32(t->ctx, addr, val, dead, &seen) != 0)
			return false;
		if (seen == val) {
			if (!pi && (val & FUTEX_WAITERS))
				wake_one(t, addr);
			return true;
		}
		val = seen;
	}
	return false;
}

static void release_robust_list(struct task *t)
{
	struct k_robust_list_head head;
	uint64_t entry, next;

	if (t->robust_list == 0 || guest_read(t, &head, gaddr(t->robust_list), sizeof(head)) != 0)
		return;
	uint64_t offset = (uint64_t)head.futex_offset;
	entry = head.next;
	/* Bit 0 of a pointer tells a priority-inheriting lock. */
	for (int n = 0; (entry & ~1ull) != t->robust_list && n < ROBUST_LIST_LIMIT; n++) {
		bool readable = guest_read(t, &next, gaddr(entry & ~1ull), sizeof(next)) == 0;
		if (entry != head.pending &&
		    !release_robust(t, (entry & ~1ull) + offset, entry & 1, false))
			return;
		if (!readable)
			return;
		entry = next;
	}
	if (head.pending & ~1ull)
		release_robust(t, (head.pending & ~1ull) + offset, head.pending & 1, true);
}

/* What the C library waits for in pthread_join. Nobody can look when the memory goes too. */
static void clear_child_tid(struct task *t)
{
	const int32_t zero = 0;

	if (t->clear_child_tid == 0 || atomic_load(&t->mm->users) <= 1)
		return;
	if (guest_write(t, gaddr(t->clear_child_tid), &zero, sizeof(zero)) == 0)
		wake_one(t, t->clear_child_tid);
}

void task_release_futexes(struct task *t)
{
	release_robust_list(t);
	t->robust_list = 0;
	clear_child_tid(t);
	t->clear_child_tid = 0;
}

/* ---- giving back ----------------------------------------------------------------------------- */

void task_vfork_release(struct task *t)
{
	mutex_lock(&tasks_mu);
	if (t->vfork_active) {
		t->vfork_active = false;
		t->vfork_done = true;
		waitq_wake_all(&t->vfork_wait, 0);
	}
	mutex_unlock(&tasks_mu);
}

static void drop_mm(struct task *t)
{
	/* The first process has none until it executes. */
	if (!t->mm)
		return;
	task_times_final(t);
	mutex_lock(&t->sighand->mu);
	t->ctx_gone = true;
	mutex_unlock(&t->sighand->mu);
	plat->ctx_free(t->ctx);
	mutex_lock(&t->mu);
	struct mm *mm = t->mm;
	t->mm = NULL;
	mutex_unlock(&t->mu);
	t->ctx = NULL;
	mm_unuse(mm);
}

static void drop_files(struct task *t)
{
	mutex_lock(&t->mu);
	struct fdtable *files = t->files;
	struct fs_ctx *fs = t->fs;
	t->files = NULL;
	t->fs = NULL;
	mutex_unlock(&t->mu);
	fdtable_put(files);
	fs_ctx_put(fs);
}

/* ---- leaving the tree ------------------------------------------------------------------------ */

void siginfo_child(struct group *g, int status, struct k_siginfo *info)
{
	int sig = status & 0x7f, code = sig ? CLD_KILLED : CLD_EXITED;
	uint64_t user, sys;

	if (sig && (status & 0x80))
		code = CLD_DUMPED;
	siginfo_init(info, SIGCHLD, code);
	info->chld.pid = g->tgid;
	info->chld.uid = g->leader->cred->uid;
	info->chld.status = sig ? sig : (status >> 8) & 0xff;
	group_times_locked(g, &user, &sys);
	info->chld.utime = (int64_t)(user / NS_PER_TICK);
	info->chld.stime = (int64_t)(sys / NS_PER_TICK);
}

/* Tells the parent that g is a zombie. True: nobody will wait for it. */
static bool notify_parent_locked(struct group *g) REQUIRES(tasks_mu)
{
	struct group *parent = g->parent;
	int sig = g->exit_signal;
	bool autoreap = false;
	struct k_siginfo info;

	if (!parent)
		return true;
	struct sighand *sh = parent->leader->sighand;
	mutex_lock(&sh->mu);
	const struct k_sigaction *sa = &sh->action[SIGCHLD];
	if (sig == SIGCHLD && sa->handler == K_SIG_IGN) {
		autoreap = true;
		sig = 0;
	} else if (sig == SIGCHLD && (sa->flags & K_SA_NOCLDWAIT)) {
		autoreap = true;
	}
	mutex_unlock(&sh->mu);
	if (sig) {
		siginfo_child(g, g->exit_code, &info);
		info.si_signo = sig;
		signal_send_group_locked(parent, &info);
	}
	waitq_wake_all(&parent->child_wait, POLLIN);
	return autoreap;
}

void group_reap_locked(struct group *g, struct list *dead)
{
	struct task *leader = g->leader;
	struct sighand *sh = leader->sighand;

	mutex_lock(&sh->mu);
	task_release_locked(leader);
	mutex_unlock(&sh->mu);
	leader->state = TASK_DEAD;
	g->parent = NULL;
	g->parent_task = NULL;
	list_add_tail(dead, &leader->group_link);
}

void task_put_list(struct list *dead)
{
	while (!list_empty(dead)) {
		struct task *t = list_first(dead, struct task, group_link);
		list_del_init(&t->group_link);
		task_put(t);
	}
}

static struct group *find_subreaper_locked(struct group *g) REQUIRES(tasks_mu)
{
	for (struct group *p = g->parent; p; p = p->parent)
		if (p->is_subreaper && !p->zombie && p->thread_count > 0)
			return p;
	return NULL;
}

static void send_pdeath_locked(struct group *child) REQUIRES(tasks_mu)
{
	struct k_siginfo info;

	list_for_each_safe(pos, &child->threads) {
		struct task *c = list_entry(pos, struct task, group_link);
		if (!c->pdeath_signal || c->exiting)
			continue;
		siginfo_init(&info, c->pdeath_signal, SI_USER);
		signal_send_group_locked(child, &info);
	}
}

static struct task *living_thread_locked(struct group *g) REQUIRES(tasks_mu)
{
	list_for_each(pos, &g->threads) {
		struct task *o = list_entry(pos, struct task, group_link);
		if (!o->exiting)
			return o;
	}
	return NULL;
}

/* t ends: its children get another thread of the process or, with the last one, another process as
 * parent. */
static void forget_children_locked(struct task *t, bool last, struct list *dead) REQUIRES(tasks_mu)
{
	struct group *g = t->group, *reaper = last ? find_subreaper_locked(g) : g;
	struct task *heir = reaper ? living_thread_locked(reaper) : NULL;

	list_for_each_safe(pos, &g->children) {
		struct group *c = list_entry(pos, struct group, sibling);
		bool mine = c->parent_task == t;
		if (mine || last)
			c->parent_task = heir;
		if (mine)
			send_pdeath_locked(c);
		if (!last)
			continue;
		list_del_init(&c->sibling);
		c->parent = reaper;
		c->exit_signal = SIGCHLD;
		if (reaper)
			list_add_tail(&reaper->children, &c->sibling);
		if (c->zombie && notify_parent_locked(c))
			group_reap_locked(c, dead);
		else
			pgrp_check_orphaned_locked(c, g, NULL);
	}
}

/* The whole process has ended. */
static void end_group_locked(struct group *g, struct list *dead) REQUIRES(tasks_mu)
{
	if (g->parent)
		pgrp_check_orphaned_locked(g, g->parent, g);
	g->zombie = true;
	g->stop_report = 0;
	g->cont_report = false;
	if (g->tgid == INIT_TGID && init_end_hook)
		init_end_hook(g->exit_code);
	bool reap = notify_parent_locked(g);
	waitq_wake_all(&g->exit_wait, POLLIN);
	if (reap)
		group_reap_locked(g, dead);
}

/* One thread less. True when it was the last. */
static bool end_thread_locked(struct task *t, int status, struct list *dead) REQUIRES(tasks_mu)
{
	struct group *g = t->group;
	struct sighand *sh = t->sighand;

	mutex_lock(&sh->mu);
	t->exit_code = status;
	t->state = TASK_ZOMBIE;
	bool last = --g->thread_count == 0;
	if (last && !g->exiting) {
		/* The last thread's status is the process's (Linux 6.1, synchronize_group_exit). */
		g->exiting = true;
		g->exit_code = status;
	}
	sigpending_remove(&t->pending, ~0ull);
	if (last)
		sigpending_remove(&g->pending, ~0ull);
	bool stopped = !last && stop_complete_locked(g);
	g->dead_utime_ns += t->utime_ns;
	g->dead_stime_ns += t->stime_ns;
	t->utime_ns = t->stime_ns = 0;
	if (g->leader != t) {
		task_release_locked(t);
		t->state = TASK_DEAD;
		list_add_tail(dead, &t->group_link);
	}
	mutex_unlock(&sh->mu);
	if (stopped)
		stop_notify_parent_locked(g, CLD_STOPPED);
	return last;
}

static void leave_tree(struct task *t, int status)
{
	struct list dead = LIST_INIT(dead);

	mutex_lock(&tasks_mu);
	ptrace_exit_locked(t, status);
	bool last = end_thread_locked(t, status, &dead);
	forget_children_locked(t, last, &dead);
	if (last)
		end_group_locked(t->group, &dead);
	else
		waitq_wake_all(&t->group->exit_wait, 0);
	mutex_unlock(&tasks_mu);
	task_put_list(&dead);
}

/* No signal goes to t from here on. True when it is the only thread left. */
static bool begin_exit(struct task *t)
{
	bool last = true;

	mutex_lock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	signal_exit_retarget_locked(t);
	list_for_each(pos, &t->group->threads)
		if (!list_entry(pos, struct task, group_link)->exiting)
			last = false;
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	return last;
}

void (*_Atomic group_exit_hook)(struct group *g);

void task_exit(struct task *t, int status)
{
	ptrace_report_exit(t, status);
	bool last = begin_exit(t);

	if (last) {
		itimers_cancel(t->group);
		posix_timers_delete_all(t->group);
	}
	task_release_futexes(t);
	drop_mm(t);
	void (*hook)(struct group *) = last ? group_exit_hook : NULL;
	if (hook)
		hook(t->group);
	task_vfork_release(t);
	drop_files(t);
	if (last && t->group->is_session_leader)
		session_leader_exit(t->group);
	leave_tree(t, status);
	task_thread_end(t);
}

void task_exit_group(struct task *t, int status)
{
	ptrace_report_exit(t, status);
	group_begin_exit(t->group, status);
	mutex_lock(&t->sighand->mu);
	status = t->group->exit_code; /* another thread may have been first */
	mutex_unlock(&t->sighand->mu);
	task_exit(t, status);
}

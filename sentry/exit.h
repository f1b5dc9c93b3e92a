/* Parts of a task's end that exec, wait and ptrace need too. */
#pragma once

#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "sentry/guest.h"

extern struct mutex tasks_mu; /* task.h */

struct group;
struct task;

#define NS_PER_TICK 10000000u /* USER_HZ 100 */

/* exec and exit: the robust list is walked and clear_child_tid stored, in the address space that t
 * still has. */
void task_release_futexes(struct task *t);
/* exec and exit: lets the parent of a vfork go on. No lock held. */
void task_vfork_release(struct task *t);
/* Adds the processor time of the current context to t's counters; before the context is freed. */
void task_times_fold(struct task *t);
/* The same at the end of t's own thread, with the time of the sentry thread. */
void task_times_final(struct task *t);

/* Brings the peak memory of t's process up to date (group->maxrss_kb). t is the caller; no lock
 * held. */
void task_sample_memory(struct task *t);

/* clone: what a new task takes over from its creator's scheduling. */
void task_inherit_sched(struct task *t, struct task *n);

/* The info of SIGCHLD for a process that ended with wait status `status`. tasks_mu held. */
void siginfo_child(struct group *g, int status, struct k_siginfo *info) REQUIRES(tasks_mu);
/* Takes a zombie out of the tree; its leader is added to `dead` (task.group_link). tasks_mu held.
 */
void group_reap_locked(struct group *g, struct list *dead) REQUIRES(tasks_mu);
/* Puts what was collected. No lock held. */
void task_put_list(struct list *dead);
/* Told, on its last thread and after its memory has gone, that a process ends: System V semaphores
 * pay what it owes (set by syscalls/ipc_sem.c on first use; NULL before). No lock held. */
extern void (*_Atomic group_exit_hook)(struct group *g);

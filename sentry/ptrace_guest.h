/*
 * Guest ptrace(2): the stops of a traced task (called by the task itself), the tracer's side of
 * wait(2), and what clone, exec and exit must tell. The requests are in ptrace_request.c.
 */
#pragma once

#include "platform/base/lock.h"
#include "sentry/guest.h"

extern struct mutex tasks_mu; /* task.h */

struct group;
struct list;
struct task;
struct wait_result;

/* ---- stops, on the traced task's own thread, no lock held ---- */

/* t has dequeued sig: stops for the tracer, who may change or drop it. The signal to act on, 0 for
 * none; *info is updated. */
int ptrace_report_signal(struct task *t, int sig, struct k_siginfo *info);
/* Before and after a system call of a traced task. False: the call is not to be made, rax stays.
 * The tracer may have changed t->syscall_nr and the registers. */
bool ptrace_syscall_enter(struct task *t);
void ptrace_syscall_exit(struct task *t);
/* PTRACE_EVENT_EXIT. */
void ptrace_report_exit(struct task *t, int status);
/* A new program runs: remembered here, reported by ptrace_syscall_exit when the registers are the
 * new ones. */
void ptrace_note_exec(struct task *t);
/* trap_wanted is set: PTRACE_INTERRUPT, or the first stop of a seized child. */
void ptrace_trap(struct task *t);
/* t has parked in a group stop. Returns when the tracer lets it run, or at once without tracer. */
void ptrace_group_stop(struct task *t);

/* ---- clone ---- */

/* n is about to become visible: traces it too when t's tracer asked for that. tasks_mu and t's
 * sighand->mu held. */
void ptrace_clone_locked(struct task *t, struct task *n, uint64_t flags, int exit_signal)
	REQUIRES(tasks_mu);
/* The child runs: PTRACE_EVENT_FORK and kin; and the end of a vfork wait. */
void ptrace_report_clone(struct task *t, uint64_t flags, int exit_signal, int tid);
void ptrace_report_vfork_done(struct task *t, int tid);

/* ---- the tree; tasks_mu held ---- */

/* t ends with `status`: its tracees go on untraced, its tracer is told. */
void ptrace_exit_locked(struct task *t, int status) REQUIRES(tasks_mu);
/* Is g's leader traced by a thread of `by`? Then its stops are the tracer's to see, not the
 * parent's. */
bool ptrace_is_tracer_locked(struct group *by, struct group *g) REQUIRES(tasks_mu);
/* The tracer's side of wait(2): 1 with a result, 0 nothing yet, -ECHILD no tracee matches. */
int ptrace_wait_locked(struct task *t, int idtype, int id, int options, struct wait_result *out)
	REQUIRES(tasks_mu);

/* ---- requests ---- */

struct mm;

/* Copies that lift page protections for the moment, through a stopped tracee of the caller in mm:
 * bytes done, 0 when there is no such tracee. No lock held. */
size_t ptrace_force_in(struct mm *mm, void *dst, uint64_t addr, size_t n);
size_t ptrace_force_out(struct mm *mm, uint64_t addr, const void *src, size_t n);

long ptrace_request(struct task *t, int64_t request, int pid, uint64_t addr, uint64_t data);

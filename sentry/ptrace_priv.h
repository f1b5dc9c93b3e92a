/* Shared by ptrace_guest.c and ptrace_request.c only. */
#pragma once

#include "sentry/task.h"

enum trap_kind {
	TRAP_NONE,
	TRAP_SIGNAL,
	TRAP_SYSCALL_ENTRY,
	TRAP_SYSCALL_EXIT,
	TRAP_EVENT,
	TRAP_GROUP
};
enum resume_mode { RESUME_CONT, RESUME_SYSCALL, RESUME_STEP, RESUME_SYSEMU };

/* One tracing relation. Owned by the tracer: freed at detach, when the end of the tracee was waited
 * for, or when the tracer ends. Fields [m] are guarded by the tracee's sighand->mu. */
struct tracer {
	struct list link;      /* [tasks_mu] in the list of all relations */
	struct task *tracer;   /* [tasks_mu] borrowed: a tracer that ends detaches */
	struct task *tracee;   /* [tasks_mu] borrowed; NULL: it has ended, tid and the rest tell how
				*/
	int tid;               /* [tasks_mu] of an ended tracee */
	uint32_t uid;          /* [tasks_mu] of an ended tracee */
	int exit_status;       /* [tasks_mu] of an ended tracee */
	bool seized;           /* [I] */
	bool reported;         /* [m] wait has told this stop */
	bool listening;        /* [m] PTRACE_LISTEN */
	bool forced_tf;        /* [m] TF in the tracee's flags is ours */
	bool exec_noted;       /* tracee's thread only */
	enum trap_kind kind;   /* [m] */
	enum resume_mode mode; /* [m] */
	int code;              /* [m] signal | event << 8 */
	unsigned options;      /* [m] PTRACE_O_* */
	uint64_t message;      /* [m] PTRACE_GETEVENTMSG */
};

#define EFLAGS_TF 0x100ull

/* Makes t the tracer of target. tasks_mu and target's sighand->mu held; tr is new (taken). */
void tracer_attach_locked(struct tracer *tr, struct task *t, struct task *target)
	REQUIRES(tasks_mu);
/* A tracee of t's process that uses mm, borrowed, or NULL. tasks_mu held. */
struct task *tracee_in_mm_locked(struct task *t, struct mm *mm) REQUIRES(tasks_mu);
/* Ends the relation; a stopped tracee goes on with sig. tasks_mu held, no sighand lock. */
void tracer_detach_locked(struct tracer *tr, int sig) REQUIRES(tasks_mu);

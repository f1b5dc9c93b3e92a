/*
 * Tasks (guest threads), thread groups (guest processes), ids, sessions.
 *
 * Each task has one sentry thread, which runs task_main (loop.c) and is the only one that touches
 * fields marked [t]. tasks_mu (rank TASKS) is Linux' tasklist_lock: the tree, the id tables, thread
 * lists, states that wait(2) sees. sighand->mu ranks below it and guards signals. Reference rule:
 * finding a task takes a reference under tasks_mu.
 */
#pragma once

#include "fs/fdtable.h"
#include "fs/namei.h"
#include "platform/base/arena.h"
#include "platform/base/timer.h"
#include "platform/platform.h"
#include "sentry/mm.h"
#include "sentry/restart.h"
#include "sentry/signal.h"

extern struct mutex tasks_mu;

struct posix_timer;
struct tracer; /* guest ptrace state: ptrace_guest.c */

/* itimer.c */
struct itimers {
	struct timer real;      /* ITIMER_REAL */
	uint64_t real_interval; /* [sighand->mu] ns */
	uint64_t real_value;    /* [sighand->mu] deadline, 0 off */
	uint64_t virt_value, virt_interval, prof_value, prof_interval; /* [sighand->mu] */
	struct timer cpu_check; /* fires when virt/prof may have expired */
	uint64_t xcpu_next;     /* [sighand->mu] processor time of the next SIGXCPU */
};

/* A guest process. */
struct group {
	struct ref ref;
	int tgid;                 /* [I] */
	struct task *leader;      /* [tasks_mu] borrowed */
	struct list threads;      /* [tasks_mu and sighand->mu to change, one of them to read] of
				     task.group_link */
	struct list all_link;     /* [tasks_mu] in the list of all groups: pid.c */
	int thread_count;         /* [tasks_mu] alive ones */
	struct group *parent;     /* [tasks_mu] borrowed: the tree keeps it */
	struct task *parent_task; /* [tasks_mu] borrowed or NULL: the thread that forked
				     (__WNOTHREAD, PDEATHSIG) */
	struct list children;     /* [tasks_mu] of group.sibling */
	struct list sibling;      /* [tasks_mu] */
	int pgrp, sid;            /* [tasks_mu] */
	bool is_session_leader;   /* [tasks_mu] */
	bool did_exec;            /* [tasks_mu] setpgid: EACCES after exec */
	bool is_subreaper;        /* [tasks_mu] */
	int exit_signal;          /* [tasks_mu] to the parent; SIGCHLD usually, 0 none */

	struct sigpending pending; /* [sighand->mu] process-directed */
	bool exiting;              /* [sighand->mu] group exit has begun; exit_code is set */
	int exit_code;             /* [sighand->mu] wait status */
	struct task *exec_task; /* [sighand->mu] the thread that execs and waits for the others' end
				 */
	int stop_sig;           /* [sighand->mu] nonzero: group stop in progress or done */
	bool stopped;           /* [sighand->mu] all threads are parked */
	int stop_report;        /* [tasks_mu] wait status for WUNTRACED not yet collected, 0 none */
	bool cont_report;       /* [tasks_mu] WCONTINUED not yet collected */
	bool zombie;            /* [tasks_mu] all threads ended; waits for the parent */
	bool autoreap;          /* [tasks_mu] parent ignores SIGCHLD */
	struct waitq child_wait; /* wait4 of this group's threads sleep here; woken on child events
				  */
	struct waitq exit_wait;  /* pidfd pollers, exec waiting for threads */
	struct waitq cont_wait;  /* stopped threads sleep here */

	struct rlimit rlim[16]; /* [sighand->mu] RLIMIT_* */
	struct itimers itimers;
	struct list posix_timers;                /* [sighand->mu] */
	int next_timer_id;                       /* [sighand->mu] */
	uint64_t dead_utime_ns, dead_stime_ns;   /* [tasks_mu] of ended threads */
	uint64_t child_utime_ns, child_stime_ns; /* [tasks_mu] of waited-for children */
	uint64_t child_maxrss_kb, maxrss_kb;     /* [tasks_mu] */
	uint64_t maxrss_ns;                      /* [tasks_mu] when maxrss_kb was last looked at */
	uint64_t start_ns;                       /* [I] mono */
	int oom_score_adj;                       /* [a] */
	int nice;                                /* [a] */
	void *ctty; /* [tasks_mu] controlling terminal of the session: shared by fs hooks */
};

DECLARE_REF(group);

enum task_state { TASK_RUNNING, TASK_SLEEPING, TASK_STOPPED, TASK_TRACED, TASK_ZOMBIE, TASK_DEAD };

/* A blocked call that continues after a signal without handler: nanosleep, poll, futex,
 * clock_nanosleep. */
struct restart_block {
	long (*fn)(struct task *t); /* NULL: -EINTR */
	deadline_t deadline;
	uint64_t words[6];
};

struct task {
	struct ref ref;
	int tid;                /* [tasks_mu] changes in exec from a thread */
	struct group *group;    /* [I] referenced */
	struct list group_link; /* [tasks_mu] */
	enum task_state state;  /* [a] for /proc */
	char comm[16];          /* [sighand->mu] */

	struct regs regs;     /* [t] */
	struct plat_ctx *ctx; /* [t] owned; sig senders use it under sighand->mu while !ctx_gone */
	bool ctx_gone;        /* [sighand->mu] */
	bool regs_replaced; /* [t] the call loaded all registers itself (sigreturn, exec): rax stays
			     */
	uint64_t syscall_nr; /* [t] number in progress; UINT64_MAX outside calls */
	uint64_t fault_addr, fault_trapno, fault_err; /* [t] of the last fault, for sigcontext */
	struct restart_block restart;                 /* [t] */
	struct arena scratch;                         /* [t] per-call memory */
	struct sleeper sleeper;                       /* interrupted by signals */

	struct mm *mm;         /* [t] referenced+used; other threads read it under task_lock (mu) */
	struct fdtable *files; /* [t] referenced; others under mu */
	struct fs_ctx *fs;     /* [t] referenced; others under mu */
	const struct cred *cred; /* [t] referenced; others under mu */
	struct sighand *sighand; /* [I] except exec; referenced */
	struct mutex mu;         /* rank TASK: guards the pointers above against other threads */

	struct sigpending pending; /* [sighand->mu] thread-directed */
	uint64_t blocked;          /* [sighand->mu] written by the task only */
	uint64_t saved_blocked;    /* [t] for temp masks */
	bool restore_blocked;      /* [t] */
	atomic_bool sig_hint;      /* signal_pending */
	struct k_stack altstack;   /* [t] */
	bool kill_pending;         /* [sighand->mu] must exit with the group */
	uint64_t real_blocked;     /* [sighand->mu] sigtimedwait: the mask it has lifted */
	bool exiting;              /* [sighand->mu] takes no more signals */
	bool stop_parked;          /* [sighand->mu] counts as stopped in a group stop */
	bool stop_dequeued;        /* [sighand->mu] took a stop signal; SIGCONT clears it */
	atomic_bool ptraced;       /* has a tracer: hint for the loop */
	bool trap_wanted;          /* [sighand->mu] guest ptrace: must stop for its tracer */
	bool trap_stopped;         /* [sighand->mu] guest ptrace: is stopped for its tracer */
	int trap_busy; /* [sighand->mu] guest ptrace: requests in progress, which keep it in its
			  stop */
	int trap_sig;  /* [sighand->mu] guest ptrace: the signal that the tracer lets through */
	struct k_siginfo *trap_info; /* [sighand->mu] guest ptrace: info of the stop, on the stopped
					thread's stack */
	atomic_int host_tid;         /* of the sentry thread, for its CPU clock; 0 not known yet */

	uint64_t clear_child_tid; /* [t] set_tid_address */
	uint64_t robust_list;     /* [t] */
	int pdeath_signal;        /* [tasks_mu] */
	bool no_new_privs;        /* [t] sticky */
	uint64_t personality;     /* [t] */
	uint32_t mempolicy;       /* [t] set_mempolicy(2): see MEMPOLICY_NODE */
	uint64_t timer_slack_ns;  /* [t] */
	bool vfork_active;        /* [tasks_mu] the parent waits for our exec or exit */
	struct waitq vfork_wait;  /* the parent sleeps here on its own task */
	bool vfork_done;          /* [vfork_wait's user: tasks_mu] */
	struct tracer *tracer;    /* [tasks_mu and sighand->mu to change, one of them to read] guest
				     ptrace */

	int sched_policy, sched_prio;                /* [a] remembered */
	uint64_t dl_runtime, dl_deadline, dl_period; /* [a] of SCHED_DEADLINE, ns, remembered */
	uint64_t default_slack_ns;                   /* [I] what PR_SET_TIMERSLACK 0 goes back to */
	int ioprio;                                  /* [a] */
	uint64_t cpumask[16];                        /* [tasks_mu] affinity, 1024 bits */
	bool cpumask_set;                            /* [tasks_mu] */
	bool securebits_keep_caps;                   /* [t] PR_SET_KEEPCAPS */
	uint8_t mce_kill;            /* [t] PR_MCE_KILL: 0 default, else policy + 1 */
	bool io_flusher;             /* [t] PR_SET_IO_FLUSHER: remembered */
	uint64_t start_ns;           /* [I] mono */
	uint64_t utime_ns, stime_ns; /* [a] */
	int exit_code;               /* [tasks_mu] wait status of this thread */
};

DECLARE_REF(task);

/* The task whose sentry thread this is; NULL on other threads. */
struct task *current_task(void);
void set_current_task(struct task *t);

/* A referenced task / group by id, or NULL. Zombie leaders are found; fully dead ones are not. */
struct task *task_find(int tid) MUST_CHECK;
struct group *group_find(int tgid) MUST_CHECK;
/* The same with tasks_mu held; borrowed while it is held. */
struct task *task_find_locked(int tid) REQUIRES(tasks_mu);
struct group *group_find_locked(int tgid) REQUIRES(tasks_mu);
/* Next task with tid >= from, referenced; for /proc. */
struct group *group_next(int from) MUST_CHECK;

/* pid.c: a free id (1..PID_MAX), -EAGAIN when the task limit is reached. */
int pid_alloc_locked(struct task *t) MUST_CHECK REQUIRES(tasks_mu);
/* Exactly this id (clone3 set_tid): -EEXIST, -EINVAL, -EAGAIN. */
int pid_alloc_exact_locked(struct task *t, int pid) MUST_CHECK REQUIRES(tasks_mu);
void pid_free_locked(int pid) REQUIRES(tasks_mu);
/* Two tasks swap their ids (exec from a thread takes the leader's). */
void pid_exchange_locked(struct task *a, struct task *b) REQUIRES(tasks_mu);
/* The list of all processes, zombies included, of group.all_link. */
struct list *group_list_locked(void) REQUIRES(tasks_mu);
void group_link_locked(struct group *g) REQUIRES(tasks_mu);
void group_unlink_locked(struct group *g) REQUIRES(tasks_mu);
void pid_set_limit(int max_tasks);
int pid_task_count(void);

/*
 * task.c: life of a task. References: the tree holds one from creation until task_release_locked (a
 * thread that is not the leader: when it ends; a leader: when the zombie is reaped); the sentry
 * thread holds one from task_start until task_thread_end.
 */
/* Unlinks from group->threads and frees the id; a leader's group leaves the tree as well. The
 * caller puts the tree's reference (task_put) after dropping tasks_mu. */
void task_release_locked(struct task *t) REQUIRES(tasks_mu);
/* Last act of a sentry thread: frees what only the thread used, drops its reference, ends the host
 * thread. */
NORETURN void task_thread_end(struct task *t);

/* clone.c */
struct clone_request {
	uint64_t flags; /* CLONE_* without the exit signal */
	int exit_signal;
	uint64_t stack; /* new rsp; 0: the parent's */
	uint64_t tls;
	uint64_t parent_tid, child_tid; /* guest addresses */
	uint64_t pidfd;                 /* guest address */
	const int *set_tid;             /* clone3, requested ids; NULL */
	size_t set_tid_count;
};

/* The descriptor table becomes t's own if others share it; t is the caller. 0 or -ENOMEM. */
int task_unshare_files(struct task *t) MUST_CHECK;
/* The new tid or -errno. */
long task_clone(struct task *t, const struct clone_request *a);
/* The first task (pid 1) of the sandbox, not yet running. It has no address space before it
 * executes. Gives. */
int task_new_init(const struct cred *cred, struct fs_ctx *fs, struct fdtable *files,
		  struct task **out) MUST_CHECK;
/* Starts the sentry thread of a complete task (takes a reference for it). */
int task_start(struct task *t) MUST_CHECK;

/* exec.c: replaces the program of the current task. On success registers are set and it returns 0;
 * errors before the point of no return are returned; after it the task is killed. path/argv/envp:
 * host strings. */
struct exec_request {
	struct path dir; /* execveat: base; dentry NULL = cwd */
	const char *path;
	unsigned lookup_flags; /* LOOKUP_* */
	char *strings; /* argc + envc NUL-terminated strings, back to back; owned by the caller */
	size_t strings_size;
	int argc, envc;
	const char *name; /* what the program is told (AT_EXECFN, scripts): "/dev/fd/3"; NULL: path
			   */
	bool name_vanishes;    /* that name is a close-on-exec descriptor: scripts cannot be run */
	struct file *nameless; /* execveat of a descriptor without a path (memfd): borrowed; else
				  NULL */
	bool check_only; /* AT_EXECVE_CHECK: 0 when the file may be executed, and nothing happens */
};
int task_exec(struct task *t, struct exec_request *req) MUST_CHECK;

/* exit.c */
NORETURN void task_exit(struct task *t, int status);       /* this thread; wait status (code << 8 or
							      signal) */
NORETURN void task_exit_group(struct task *t, int status); /* the whole process */
/* Marks the group as ending with `status` and kills its other threads; the caller then calls
 * task_exit. */
void group_begin_exit(struct group *g, int status);
/* Boot sets this to hear of the end of pid 1: its wait status. Called with tasks_mu held. */
extern void (*init_end_hook)(int status);

/* wait.c */
struct wait_result {
	int pid;
	uint32_t uid;
	int status; /* wait status */
	int code;   /* CLD_* */
	struct rusage usage;
};
/* idtype P_ALL/P_PID/P_PGID/P_PIDFD(resolved), options
 * WEXITED|WSTOPPED|WCONTINUED|WNOHANG|WNOWAIT|__W*. 1 when *out is filled, 0 for WNOHANG with
 * nothing, -ECHILD, -ERESTARTSYS. */
int task_wait(struct task *t, int idtype, int id, int options, struct wait_result *out) MUST_CHECK;

/* loop.c: body of the sentry thread. */
void *task_main(void *task);

/* Accounting. */
void task_times(struct task *t, uint64_t *out_user_ns, uint64_t *out_sys_ns);
void group_times_locked(struct group *g, uint64_t *out_user_ns, uint64_t *out_sys_ns)
	REQUIRES(tasks_mu);

/* ids.c (sentry): sessions and groups. */
bool pgrp_is_orphaned_locked(int pgrp) REQUIRES(tasks_mu);
/* Replaces t's credentials by c (takes). */
void task_set_cred(struct task *t, const struct cred *c);
/* CAP_* in the effective set of the current credentials. */
bool task_capable(struct task *t, int cap);
/* ptrace_may_access of the kernel: may t look into target (process_vm_readv, /proc/PID/mem, kcmp)?
 * 0 or -EPERM. */
int task_may_access(struct task *t, struct task *target) MUST_CHECK;
uint64_t task_rlimit(struct task *t, int resource);
/* A referenced file for fd, or NULL; borrowed helper for handlers: pair with file_put. */
static inline struct file *task_file(struct task *t, int fd)
{
	return fd_get(t->files, fd);
}

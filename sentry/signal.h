/*
 * Signals: sending, masks, delivery (signal(7), kernel/signal.c).
 *
 * sighand->mu is the lock of everything here (Linux' siglock): actions, pending queues of the group
 * and of its tasks, masks, stop state. It ranks below tasks_mu.
 */
#pragma once

#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "platform/base/ref.h"
#include "platform/base/waitq.h"
#include "sentry/guest.h"

#define SIG_COUNT 64
#define SIG_BIT(sig) (1ull << ((sig)-1))

extern struct mutex tasks_mu; /* task.h */

struct task;
struct group;
struct cred;

/* Guest values of sa_handler and sa_flags. */
#define K_SIG_DFL 0ull
#define K_SIG_IGN 1ull
#define K_SA_NOCLDSTOP 1ull
#define K_SA_NOCLDWAIT 2ull
#define K_SA_SIGINFO 4ull
#define K_SA_RESTORER 0x04000000ull
#define K_SA_ONSTACK 0x08000000ull
#define K_SA_RESTART 0x10000000ull
#define K_SA_NODEFER 0x40000000ull
#define K_SA_RESETHAND 0x80000000ull

struct sighand {
	struct ref ref;
	struct mutex mu;                          /* rank SIGHAND */
	struct k_sigaction action[SIG_COUNT + 1]; /* [mu] by number; [0] unused */
	/* Woken (POLLIN) whenever a signal is queued to a user of this: signalfd readers and
	 * pollers. */
	struct waitq signalfd_wait;
};

DECLARE_REF(sighand);
int sighand_new(struct sighand **out) MUST_CHECK; /* all default */
int sighand_copy(struct sighand *old, struct sighand **out) MUST_CHECK;

struct posix_timer;

/* One queued signal. A POSIX timer owns the entry of its own signal (timer != NULL), others are
 * freed when taken. */
struct sigqueue {
	struct list link;          /* [sighand->mu] */
	struct k_siginfo info;     /* [sighand->mu] */
	struct posix_timer *timer; /* [I] */
};

/* Pending signals: a bit set and a FIFO of infos. */
struct sigpending {
	uint64_t set;      /* [sighand->mu] */
	struct list queue; /* [sighand->mu] of struct sigqueue */
};

void sigpending_init(struct sigpending *p);
void sigpending_flush(struct sigpending *p); /* frees all */

/* What a signal does without a handler. */
enum sig_default { SIG_DEF_TERM, SIG_DEF_CORE, SIG_DEF_IGNORE, SIG_DEF_STOP };
enum sig_default signal_default(int sig);

/* Sending. info->si_signo is the signal; 0 only checks. The senders below do not check permission.
 * They take tasks_mu; the _locked ones want it held (and no sighand lock). -EAGAIN: a queued signal
 * found no room. */
int signal_send_task(struct task *t, const struct k_siginfo *info);   /* thread-directed */
int signal_send_group(struct group *g, const struct k_siginfo *info); /* process-directed */
int signal_send_pgrp(int pgrp, const struct k_siginfo *info);         /* -ESRCH when empty */
int signal_send_task_locked(struct task *t, const struct k_siginfo *info) REQUIRES(tasks_mu);
int signal_send_group_locked(struct group *g, const struct k_siginfo *info) REQUIRES(tasks_mu);
int signal_send_pgrp_locked(int pgrp, const struct k_siginfo *info) REQUIRES(tasks_mu);
/* Queues a timer's own entry to t (thread-directed) or its group. False: it is queued already or
 * ignored. tasks_mu held. */
bool signal_send_timer_locked(struct task *t, bool to_group, struct sigqueue *q) REQUIRES(tasks_mu);
/* A fault of the task itself: cannot be blocked or ignored (force_sig_info). */
void signal_force(struct task *t, const struct k_siginfo *info);
/* Kernel-made infos. */
void siginfo_init(struct k_siginfo *info, int sig, int code);
/* SI_USER info of the current task. */
void siginfo_user(struct k_siginfo *info, int sig, int code);
/* kill(2) permission: may `from` signal `g`? 0 or -EPERM. The second wants tasks_mu held. */
int signal_may_send(struct task *from, struct group *g, int sig) MUST_CHECK;
int signal_may_send_locked(struct task *from, struct group *g, int sig)
	MUST_CHECK REQUIRES(tasks_mu);

/* Is a deliverable signal, a stop or an exit waiting for t? Lock-free hint for loops. */
bool signal_pending(struct task *t);
/* Will t die as soon as it looks (SIGKILL pending or its group is ending)? Takes sighand->mu. */
bool signal_fatal_pending(struct task *t);
/* Recomputes the hint and, when set, interrupts t. sighand->mu held. */
void signal_recalc_locked(struct task *t);
/* Replaces the blocked set (SIGKILL and SIGSTOP are dropped from it). */
void signal_set_blocked(struct task *t, uint64_t set);
/* sigsuspend, ppoll, pselect, epoll_pwait: the mask holds until the call's result is final;
 * delivery of a handler saves the old one in the frame. signal_temp_mask_end(t, interrupted):
 * restores at once unless interrupted. */
void signal_temp_mask_begin(struct task *t, uint64_t set);
void signal_temp_mask_end(struct task *t, bool interrupted);
/* Loads a guest sigset of exactly 8 bytes (-EINVAL, -EFAULT). Null address: *out_given false. */
int signal_load_mask(struct task *t, sigset_cgp set, uint64_t size, uint64_t *out, bool *out_given)
	MUST_CHECK;

/* Takes the next pending signal in `want` (group and own queues): its number and info, or 0. mu
 * held. */
int signal_dequeue_locked(struct task *t, uint64_t want, struct k_siginfo *out);

/* Takes the signals in `mask` out of p. mu held. */
void sigpending_remove(struct sigpending *p, uint64_t mask);
/* Own and group signals that are pending, blocked or not. mu held. */
uint64_t signal_pending_set_locked(struct task *t);

/* Ends an interrupted call: restarts it or makes it -EINTR. sa is the action of the handler that
 * will run, NULL when none runs. Does nothing when no internal code is in regs.rax. */
void signal_fix_restart(struct task *t, const struct k_sigaction *sa);
/* Called by the loop before returning to the guest when signal_pending: handles stops, exits,
 * default actions, sets up a handler frame, restarts the interrupted call. Does not return when the
 * task dies. */
void signal_deliver(struct task *t);
/* Body of rt_sigreturn: restores registers, mask, altstack, FP from the frame; bad frame: SIGSEGV.
 */
long signal_sigreturn(struct task *t);

/* exec: handlers back to default (ignored stay), altstack off. */
void signal_on_exec(struct task *t);

/* sigframe.c: builds the frame of a handler on the guest's stack and points the registers at the
 * handler. -EFAULT when the stack cannot be written; registers are untouched then. */
int sigframe_setup(struct task *t, int sig, const struct k_siginfo *info,
		   const struct k_sigaction *sa, uint64_t oldmask) MUST_CHECK;
/* A frame could not be written or read: SIGSEGV, and death when sig itself is SIGSEGV. */
void signal_force_segv(struct task *t, int sig);
/* sigaltstack(2) in registers: is sp on t's alternate stack? Flags as the call reports them. */
bool sigstack_contains(const struct k_stack *ss, uint64_t sp);
int sigstack_flags(const struct k_stack *ss, uint64_t sp);
int sigstack_set(struct task *t, const struct k_stack *ss, uint64_t sp) MUST_CHECK;

/* stop.c: job control. Group stop state lives in struct group. */
/* The default action of a stop signal that t has dequeued; returns when the group goes on or need
 * not stop. */
void stop_by_signal(struct task *t, int sig);
/* Parks the calling thread while its group is stopped or stopping. */
void stop_park(struct task *t);
/* Ends a group stop. True: the parent must be told (stop_notify_parent_locked, CLD_CONTINUED).
 * tasks_mu and sighand->mu held. */
bool stop_continue_locked(struct group *g) MUST_CHECK REQUIRES(tasks_mu);
/* Have all living threads parked now? True once: the parent must be told (CLD_STOPPED). tasks_mu
 * and sighand->mu held. */
bool stop_complete_locked(struct group *g) MUST_CHECK REQUIRES(tasks_mu);
/* SIGCHLD with CLD_STOPPED or CLD_CONTINUED to g's parent. tasks_mu held, no sighand lock. */
void stop_notify_parent_locked(struct group *g, int code) REQUIRES(tasks_mu);
/* The parent of the first process is outside: boot may set this to hear of its stops (true) and
 * continues. Called with tasks_mu held. */
extern void (*stop_init_hook)(bool stopped);

/* Wakes everything that waits for t's group to die: SIGKILL to all threads but `except` (may be
 * NULL), used by exit_group and exec. sighand->mu held. */
void signal_zap_others_locked(struct group *g, struct task *except);
/* t ends: it takes no more signals, and those of the group that it could take go to others.
 * sighand->mu held. */
void signal_exit_retarget_locked(struct task *t);

/* Is the signal ignored by t (explicitly or by default) or blocked? for tty job control. */
bool signal_is_ignored_or_blocked(struct task *t, int sig);

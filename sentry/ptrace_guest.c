/*
 * Guest ptrace(2), the tracee's side: see ptrace_guest.h. A stop is made by the traced thread
 * itself: it publishes what happened (trap), tells the tracer and sleeps on its group's cont_wait
 * until the tracer resumes it, is gone, or SIGKILL comes. While it sleeps the tracer works on its
 * registers and memory (trap_busy holds it there).
 */
#include "sentry/ptrace_guest.h"

#include <errno.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "platform/base/alloc.h"
#include "sentry/ptrace_priv.h"

static struct list relations = LIST_INIT(relations); /* [tasks_mu] of tracer.link */

/* SIGCHLD to the tracer, and its waits look again. tasks_mu held. */
static void tell_tracer_locked(struct task *tracer, struct task *t, int code, int status)
	REQUIRES(tasks_mu)
{
	struct group *g = tracer->group;
	struct k_siginfo info;

	siginfo_init(&info, SIGCHLD, code);
	info.chld.pid = t->tid;
	info.chld.uid = t->cred->uid;
	info.chld.status = status;
	struct sighand *sh = tracer->sighand;
	mutex_lock(&sh->mu);
	const struct k_sigaction *sa = &sh->action[SIGCHLD];
	bool wanted =
		sa->handler != K_SIG_IGN && (code != CLD_TRAPPED || !(sa->flags & K_SA_NOCLDSTOP));
	mutex_unlock(&sh->mu);
	if (wanted)
		signal_send_group_locked(g, &info);
	waitq_wake_all(&g->child_wait, POLLIN);
}

/* ---- stops ----------------------------------------------------------------------------------- */

/* Must the sleeping tracee stay? The relation may have ended meanwhile, so it is looked up each
 * time. */
static bool must_stay_locked(struct task *t)
{
	struct tracer *tr = t->tracer;

	if (t->trap_busy > 0)
		return true;
	if (!t->trap_stopped || t->kill_pending)
		return false;
	/* A listening tracee reports again when its group continues. */
	return !(tr && tr->listening && !t->group->stop_sig);
}

static void sleep_in_trap(struct task *t)
{
	struct mutex *mu = &t->sighand->mu;

	mutex_lock(mu);
	while (must_stay_locked(t))
		if (waitq_wait(&t->group->cont_wait, mu, 0, DEADLINE_NEVER) != 0)
			sleeper_clear_interrupt(&t->sleeper);
	t->trap_stopped = false;
	t->trap_info = NULL;
	t->state = TASK_RUNNING;
	signal_recalc_locked(t);
	mutex_unlock(mu);
}

/* Stops for the tracer. The signal that it lets through; without tracer the one that was to be
 * reported. */
static int trap(struct task *t, enum trap_kind kind, int code, struct k_siginfo *info,
		uint64_t message)
{
	int sig = kind == TRAP_SIGNAL ? code : 0;

	mutex_lock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	struct tracer *tr = t->tracer;
	if (!tr || t->kill_pending) {
		mutex_unlock(&t->sighand->mu);
		mutex_unlock(&tasks_mu);
		return sig;
	}
	tr->kind = kind;
	tr->code = code;
	tr->message = message;
	tr->reported = tr->listening = false;
	if (tr->forced_tf)
		t->regs.eflags &= ~EFLAGS_TF;
	tr->forced_tf = false;
	t->trap_stopped = true;
	t->trap_wanted = false;
	t->trap_sig = sig;
	t->trap_info = info;
	t->state = TASK_TRACED;
	bool group_stopped = stop_complete_locked(t->group);
	struct task *tracer = tr->tracer;
	mutex_unlock(&t->sighand->mu);
	if (group_stopped)
		stop_notify_parent_locked(t->group, CLD_STOPPED);
	tell_tracer_locked(tracer, t, CLD_TRAPPED, code & 0x7f);
	mutex_unlock(&tasks_mu);
	sleep_in_trap(t);
	return t->trap_sig;
}

static void send_self(struct task *t, int sig)
{
	struct k_siginfo info;

	siginfo_init(&info, sig, SI_USER);
	info.rt.pid = t->group->tgid;
	info.rt.uid = t->cred->uid;
	signal_send_task(t, &info);
}

int ptrace_report_signal(struct task *t, int sig, struct k_siginfo *info)
{
	int new = trap(t, TRAP_SIGNAL, sig, info, 0);

	if (new == 0 || new == sig)
		return new;
	siginfo_init(info, new, SI_USER);
	mutex_lock(&t->sighand->mu);
	bool blocked = t->blocked & SIG_BIT(new);
	mutex_unlock(&t->sighand->mu);
	if (!blocked)
		return new;
	send_self(t, new);
	return 0;
}

/* The tracer's wishes as they are now; false when there is no tracer. */
static bool wishes(struct task *t, enum resume_mode *out_mode, unsigned *out_options)
{
	mutex_lock(&t->sighand->mu);
	struct tracer *tr = t->tracer;
	if (tr) {
		*out_mode = tr->mode;
		*out_options = tr->options;
	}
	mutex_unlock(&t->sighand->mu);
	return tr;
}

static void trap_syscall(struct task *t, enum trap_kind kind, unsigned options, uint64_t message)
{
	int code = SIGTRAP | (options & PTRACE_O_TRACESYSGOOD ? 0x80 : 0);
	int sig = trap(t, kind, code, NULL, message);

	if (sig)
		send_self(t, sig);
}

bool ptrace_syscall_enter(struct task *t)
{
	enum resume_mode mode;
	unsigned options;

	if (!wishes(t, &mode, &options) || (mode != RESUME_SYSCALL && mode != RESUME_SYSEMU))
		return true;
	/* The tracer sees the call as not yet answered. */
	t->regs.rax = (uint64_t)-ENOSYS;
	trap_syscall(t, TRAP_SYSCALL_ENTRY, options, PTRACE_EVENTMSG_SYSCALL_ENTRY);
	mutex_lock(&t->sighand->mu);
	bool killed = t->kill_pending;
	mutex_unlock(&t->sighand->mu);
	return !killed && mode != RESUME_SYSEMU && (int64_t)t->syscall_nr >= 0;
}

static void report_event(struct task *t, int event, uint64_t message)
{
	/* LINUX: a signal given when resuming from an event stop is lost as well. */
	trap(t, TRAP_EVENT, SIGTRAP | event << 8, NULL, message);
}

static bool has_option(struct task *t, unsigned option)
{
	enum resume_mode mode;
	unsigned options;

	return wishes(t, &mode, &options) && (options & option);
}

static void report_exec(struct task *t)
{
	mutex_lock(&t->sighand->mu);
	struct tracer *tr = t->tracer;
	bool noted = tr && tr->exec_noted;
	bool event = noted && (tr->options & PTRACE_O_TRACEEXEC);
	bool signal = noted && !event && !tr->seized;
	if (tr)
		tr->exec_noted = false;
	mutex_unlock(&t->sighand->mu);
	if (event)
		report_event(t, PTRACE_EVENT_EXEC, (uint64_t)t->tid);
	else if (signal)
		send_self(t, SIGTRAP);
}

void ptrace_note_exec(struct task *t)
{
	mutex_lock(&t->sighand->mu);
	if (t->tracer)
		t->tracer->exec_noted = true;
	mutex_unlock(&t->sighand->mu);
}

void ptrace_syscall_exit(struct task *t)
{
	enum resume_mode mode;
	unsigned options;

	report_exec(t);
	if (!wishes(t, &mode, &options))
		return;
	if (mode == RESUME_SYSCALL) {
		trap_syscall(t, TRAP_SYSCALL_EXIT, options, PTRACE_EVENTMSG_SYSCALL_EXIT);
	} else if (mode == RESUME_STEP) {
		/* The call was the one instruction to be stepped over. */
		struct k_siginfo info;
		siginfo_init(&info, SIGTRAP, TRAP_TRACE);
		info.fault.addr = t->regs.rip;
		signal_force(t, &info);
	}
}

void ptrace_report_exit(struct task *t, int status)
{
	if (atomic_load(&t->ptraced) && has_option(t, PTRACE_O_TRACEEXIT))
		report_event(t, PTRACE_EVENT_EXIT, (uint64_t)status);
}

void ptrace_trap(struct task *t)
{
	mutex_lock(&t->sighand->mu);
	t->trap_wanted = false;
	bool seized = t->tracer && t->tracer->seized;
	int sig = t->group->stop_sig ? t->group->stop_sig : SIGTRAP;
	mutex_unlock(&t->sighand->mu);
	if (seized)
		trap(t, TRAP_GROUP, sig | PTRACE_EVENT_STOP << 8, NULL, 0);
	else
		trap(t, TRAP_GROUP, sig, NULL, 0);
}

void ptrace_group_stop(struct task *t)
{
	bool again;

	do {
		ptrace_trap(t);
		/* Continued while it listened: that is worth another report. */
		mutex_lock(&t->sighand->mu);
		again = t->tracer && t->tracer->listening && !t->kill_pending;
		mutex_unlock(&t->sighand->mu);
	} while (again);
}

/* ---- clone ----------------------------------------------------------------------------------- */

static int clone_event(uint64_t flags, int exit_signal)
{
	if (flags & CLONE_VFORK)
		return PTRACE_EVENT_VFORK;
	return exit_signal == SIGCHLD && !(flags & CLONE_THREAD) ? PTRACE_EVENT_FORK
								 : PTRACE_EVENT_CLONE;
}

void ptrace_clone_locked(struct task *t, struct task *n, uint64_t flags, int exit_signal)
{
	struct tracer *old = t->tracer;

	if (!old || (flags & CLONE_UNTRACED))
		return;
	if (!(old->options & 1u << clone_event(flags, exit_signal)) && !(flags & CLONE_PTRACE))
		return;
	struct tracer *tr = mem_zalloc(sizeof(*tr));
	/* Without memory the child runs untraced. */
	if (!tr)
		return;
	tr->seized = old->seized;
	tr->options = old->options;
	tracer_attach_locked(tr, old->tracer, n);
	/* It does not run yet, so nobody else looks at its signals. */
	if (tr->seized)
		n->trap_wanted = true;
	else
		n->pending.set |= SIG_BIT(SIGSTOP);
	atomic_store(&n->sig_hint, true);
}

void ptrace_report_clone(struct task *t, uint64_t flags, int exit_signal, int tid)
{
	int event = clone_event(flags, exit_signal);

	if (atomic_load(&t->ptraced) && !(flags & CLONE_UNTRACED) && has_option(t, 1u << event))
		report_event(t, event, (uint64_t)tid);
}

void ptrace_report_vfork_done(struct task *t, int tid)
{
	if (atomic_load(&t->ptraced) && has_option(t, PTRACE_O_TRACEVFORKDONE))
		report_event(t, PTRACE_EVENT_VFORK_DONE, (uint64_t)tid);
}

/* ---- relations ------------------------------------------------------------------------------- */

void tracer_attach_locked(struct tracer *tr, struct task *t, struct task *target)
{
	tr->tracer = t;
	tr->tracee = target;
	list_init(&tr->link);
	list_add_tail(&relations, &tr->link);
	target->tracer = tr;
	atomic_store(&target->ptraced, true);
}

void tracer_detach_locked(struct tracer *tr, int sig)
{
	struct task *o = tr->tracee;

	list_del_init(&tr->link);
	if (o) {
		mutex_lock(&o->sighand->mu);
		if (tr->forced_tf && o->trap_stopped)
			o->regs.eflags &= ~EFLAGS_TF;
		o->tracer = NULL;
		atomic_store(&o->ptraced, false);
		o->trap_wanted = false;
		if (o->trap_stopped && sig >= 0)
			o->trap_sig = sig;
		o->trap_stopped = false;
		/* If its group is stopped, it parks like the others. */
		o->stop_parked = false;
		signal_recalc_locked(o);
		waitq_wake_all(&o->group->cont_wait, 0);
		mutex_unlock(&o->sighand->mu);
	}
	mem_free(tr);
}

struct task *tracee_in_mm_locked(struct task *t, struct mm *mm)
{
	list_for_each(pos, &relations) {
		struct tracer *tr = list_entry(pos, struct tracer, link);
		struct task *o = tr->tracee;
		if (!o || tr->tracer->group != t->group)
			continue;
		mutex_lock(&o->mu);
		bool match = o->mm == mm;
		mutex_unlock(&o->mu);
		if (match && o->trap_stopped)
			return o;
	}
	return NULL;
}

static void kill_locked(struct task *t) REQUIRES(tasks_mu)
{
	struct k_siginfo info;

	siginfo_init(&info, SIGKILL, SI_KERNEL);
	signal_send_group_locked(t->group, &info);
}

/* t was traced: the tracer can wait for it, unless that is what its wait for a child does anyway.
 */
static void end_tracee_locked(struct task *t, int status) REQUIRES(tasks_mu)
{
	struct tracer *tr = t->tracer;
	struct task *tracer = tr->tracer;
	struct group *g = t->group;

	mutex_lock(&t->sighand->mu);
	t->tracer = NULL;
	atomic_store(&t->ptraced, false);
	mutex_unlock(&t->sighand->mu);
	if (g->leader == t && (g->parent == tracer->group || g->exec_task)) {
		list_del_init(&tr->link);
		mem_free(tr);
		return;
	}
	tr->tracee = NULL;
	tr->tid = t->tid;
	tr->uid = t->cred->uid;
	tr->exit_status = status;
	tell_tracer_locked(tracer, t, status & 0x7f ? CLD_KILLED : CLD_EXITED,
			   status & 0x7f ? status & 0x7f : status >> 8);
}

void ptrace_exit_locked(struct task *t, int status)
{
	list_for_each_safe(pos, &relations) {
		struct tracer *tr = list_entry(pos, struct tracer, link);
		if (tr->tracer != t)
			continue;
		if (tr->tracee && (tr->options & PTRACE_O_EXITKILL))
			kill_locked(tr->tracee);
		tracer_detach_locked(tr, -1);
	}
	if (t->tracer)
		end_tracee_locked(t, status);
}

/* ---- wait ------------------------------------------------------------------------------------ */

bool ptrace_is_tracer_locked(struct group *by, struct group *g)
{
	return g->leader->tracer && g->leader->tracer->tracer->group == by;
}

static bool is_match_locked(struct task *t, struct tracer *tr, int idtype, int id, int options)
	REQUIRES(tasks_mu)
{
	struct task *o = tr->tracee;

	if (tr->tracer != t && (tr->tracer->group != t->group || (options & __WNOTHREAD)))
		return false;
	if (idtype == P_PID)
		return id == (o ? o->tid : tr->tid);
	return idtype == P_ALL || (o && o->group->pgrp == id);
}

static bool report_stop_locked(struct tracer *tr, int options, struct wait_result *out)
	REQUIRES(tasks_mu)
{
	struct task *o = tr->tracee;

	mutex_lock(&o->sighand->mu);
	bool ready = o->trap_stopped && !tr->reported && !tr->listening;
	if (ready && !(options & WNOWAIT)) {
		tr->reported = true;
		o->trap_sig = 0; /* if the tracer goes away now, the signal goes with it */
	}
	int code = tr->code;
	mutex_unlock(&o->sighand->mu);
	if (ready)
		*out = (struct wait_result){ .pid = o->tid,
					     .uid = o->cred->uid,
					     .status = code << 8 | 0x7f,
					     .code = CLD_TRAPPED };
	return ready;
}

static bool report_end_locked(struct tracer *tr, int options, struct wait_result *out)
	REQUIRES(tasks_mu)
{
	int status = tr->exit_status;

	if (!(options & WEXITED))
		return false;
	*out = (struct wait_result){ .pid = tr->tid,
				     .uid = tr->uid,
				     .status = status,
				     .code = status & 0x7f ? CLD_KILLED : CLD_EXITED };
	if (!(options & WNOWAIT)) {
		list_del_init(&tr->link);
		mem_free(tr);
	}
	return true;
}

int ptrace_wait_locked(struct task *t, int idtype, int id, int options, struct wait_result *out)
{
	int ret = -ECHILD;

	list_for_each_safe(pos, &relations) {
		struct tracer *tr = list_entry(pos, struct tracer, link);
		if (!is_match_locked(t, tr, idtype, id, options))
			continue;
		ret = 0;
		if (tr->tracee ? report_stop_locked(tr, options, out)
			       : report_end_locked(tr, options, out))
			return 1;
	}
	return ret;
}

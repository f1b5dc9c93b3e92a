/*
 * Sending signals and the pending sets: kernel/signal.c of Linux up to complete_signal. What a
 * thread does with a signal is in signal_deliver.c, the frame in sigframe.c, stopping in stop.c.
 *
 * Invariants: sighand->mu guards every pending set, mask and flag here. t->sig_hint is only cleared
 * by t's own thread, so that a call that returned an internal code always meets signal_deliver.
 * Senders hold tasks_mu outside sighand->mu, because a signal may continue a stopped group, whose
 * parent must then hear of it.
 */
#include "sentry/signal.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "fs/cred.h"
#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/task.h"
#include "sentry/timers.h"

#define KERNEL_SIGRTMIN 32 /* numbers from here on are queued */

#define SYNC_SIGNALS                                                                               \
	(SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS) | SIG_BIT(SIGILL) | SIG_BIT(SIGTRAP) |                 \
	 SIG_BIT(SIGFPE) | SIG_BIT(SIGSYS))
#define STOP_SIGNALS (SIG_BIT(SIGSTOP) | SIG_BIT(SIGTSTP) | SIG_BIT(SIGTTIN) | SIG_BIT(SIGTTOU))
#define UNBLOCKABLE (SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP))

static atomic_uint queued_count; /* entries on the heap, all users together */

/* ---- sighand --------------------------------------------------------------------------------- */

static void sighand_free(struct sighand *sh)
{
	waitq_fini(&sh->signalfd_wait);
	mutex_fini(&sh->mu);
	mem_free(sh);
}

DEFINE_REF(sighand);

int sighand_new(struct sighand **out)
{
	struct sighand *sh = mem_zalloc(sizeof(*sh));

	if (!sh)
		return -ENOMEM;
	ref_init(&sh->ref);
	mutex_init(&sh->mu, RANK_SIGHAND);
	waitq_init(&sh->signalfd_wait);
	*out = sh;
	return 0;
}

int sighand_copy(struct sighand *old, struct sighand **out)
{
	int err = sighand_new(out);

	if (err)
		return err;
	mutex_lock(&old->mu);
	memcpy((*out)->action, old->action, sizeof(old->action));
	mutex_unlock(&old->mu);
	return 0;
}

/* ---- pending sets ---------------------------------------------------------------------------- */

void sigpending_init(struct sigpending *p)
{
	p->set = 0;
	list_init(&p->queue);
}

static void sigqueue_drop(struct sigqueue *q)
{
	list_del_init(&q->link);
	if (q->timer)
		return;
	atomic_fetch_sub(&queued_count, 1);
	mem_free(q);
}

void sigpending_remove(struct sigpending *p, uint64_t mask)
{
	if (!(p->set & mask))
		return;
	p->set &= ~mask;
	list_for_each_safe(pos, &p->queue) {
		struct sigqueue *q = list_entry(pos, struct sigqueue, link);
		if (mask & SIG_BIT(q->info.si_signo))
			sigqueue_drop(q);
	}
}

void sigpending_flush(struct sigpending *p)
{
	sigpending_remove(p, ~0ull);
}

/* Takes sig, which is in the set, with its info; a signal whose entry found no memory is reported
 * as SI_USER. */
static void sigpending_take(struct sigpending *p, int sig, struct k_siginfo *out)
{
	struct sigqueue *first = NULL;
	bool more = false;

	list_for_each(pos, &p->queue) {
		struct sigqueue *q = list_entry(pos, struct sigqueue, link);
		if (q->info.si_signo != sig)
			continue;
		if (first) {
			more = true;
			break;
		}
		first = q;
	}
	if (!more)
		p->set &= ~SIG_BIT(sig);
	if (!first) {
		siginfo_init(out, sig, SI_USER);
		return;
	}
	*out = first->info;
	list_del_init(&first->link);
	if (first->timer)
		posix_timer_dequeued_locked(first->timer, out);
	else
		sigqueue_drop(first);
}

static int next_signal(uint64_t set)
{
	if (!set)
		return 0;
	if (set & SYNC_SIGNALS)
		set &= SYNC_SIGNALS;
	return __builtin_ctzll(set) + 1;
}

int signal_dequeue_locked(struct task *t, uint64_t want, struct k_siginfo *out)
{
	int sig = next_signal(t->pending.set & want);

	if (sig) {
		sigpending_take(&t->pending, sig, out);
		return sig;
	}
	sig = next_signal(t->group->pending.set & want);
	if (sig) {
		sigpending_take(&t->group->pending, sig, out);
		if (sig == SIGALRM)
			itimer_real_dequeued_locked(t->group);
	}
	return sig;
}

uint64_t signal_pending_set_locked(struct task *t)
{
	return t->pending.set | t->group->pending.set;
}

/* ---- infos ----------------------------------------------------------------------------------- */

void siginfo_init(struct k_siginfo *info, int sig, int code)
{
	memset(info, 0, sizeof(*info));
	info->si_signo = sig;
	info->si_code = code;
}

void siginfo_user(struct k_siginfo *info, int sig, int code)
{
	struct task *t = current_task();

	siginfo_init(info, sig, code);
	if (!t)
		return;
	info->rt.pid = t->group->tgid;
	info->rt.uid = t->cred->uid;
}

enum sig_default signal_default(int sig)
{
	switch (sig) {
	case SIGCONT:
	case SIGCHLD:
	case SIGWINCH:
	case SIGURG:
		return SIG_DEF_IGNORE;
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return SIG_DEF_STOP;
	case SIGQUIT:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGXCPU:
	case SIGXFSZ:
	case SIGSYS:
		return SIG_DEF_CORE;
	default:
		return SIG_DEF_TERM;
	}
}

/* ---- hints and waking ------------------------------------------------------------------------ */

bool signal_pending(struct task *t)
{
	return atomic_load(&t->sig_hint);
}

bool signal_fatal_pending(struct task *t)
{
	mutex_lock(&t->sighand->mu);
	bool fatal = t->kill_pending || t->group->exiting;
	mutex_unlock(&t->sighand->mu);
	return fatal;
}

static bool has_work_locked(struct task *t)
{
	struct group *g = t->group;

	if (t->exiting)
		return false;
	if (t->kill_pending || (g->stop_sig && !t->stop_parked) || t->trap_wanted)
		return true;
	return signal_pending_set_locked(t) & ~t->blocked;
}

void signal_recalc_locked(struct task *t)
{
	bool self = t == current_task();

	if (has_work_locked(t)) {
		atomic_store(&t->sig_hint, true);
		sleeper_interrupt(&t->sleeper);
		if (!self && plat && t->ctx && !t->ctx_gone)
			plat->interrupt(t->ctx);
	} else if (self) {
		atomic_store(&t->sig_hint, false);
		sleeper_clear_interrupt(&t->sleeper);
	}
}

/* A thread that can take sig at once: not blocking it, not parked, not ending. */
static bool can_take_locked(struct task *t, int sig)
{
	if (t->exiting)
		return false;
	if (sig == SIGKILL)
		return true;
	return !(t->blocked & SIG_BIT(sig)) && (!t->stop_parked || t->tracer) && !t->trap_stopped;
}

static struct task *choose_locked(struct task *t, int sig, bool to_group)
{
	struct task *busy = NULL;

	if (can_take_locked(t, sig) && (!to_group || !atomic_load(&t->sig_hint)))
		return t;
	if (!to_group)
		return NULL;
	list_for_each(pos, &t->group->threads) {
		struct task *o = list_entry(pos, struct task, group_link);
		if (!can_take_locked(o, sig))
			continue;
		if (!atomic_load(&o->sig_hint))
			return o;
		busy = o;
	}
	return busy;
}

void signal_zap_others_locked(struct group *g, struct task *except)
{
	list_for_each(pos, &g->threads) {
		struct task *o = list_entry(pos, struct task, group_link);
		if (o == except || o->exiting)
			continue;
		o->kill_pending = true;
		signal_recalc_locked(o);
	}
}

static void begin_group_exit_locked(struct group *g, int status)
{
	if (g->exiting)
		return;
	g->exiting = true;
	g->exit_code = status;
	g->stop_sig = 0;
	g->stopped = false;
	signal_zap_others_locked(g, NULL);
}

void group_begin_exit(struct group *g, int status)
{
	mutex_lock(&tasks_mu);
	struct sighand *sh = g->leader->sighand;
	mutex_lock(&sh->mu);
	begin_group_exit_locked(g, status);
	mutex_unlock(&sh->mu);
	mutex_unlock(&tasks_mu);
}

static bool is_fatal_locked(struct task *t, int sig)
{
	enum sig_default def = signal_default(sig);

	if (sig == SIGKILL)
		return true;
	return t->sighand->action[sig].handler == K_SIG_DFL && def == SIG_DEF_TERM &&
	       !(t->real_blocked & SIG_BIT(sig)) && !t->tracer;
}

/* The signal is pending: wakes a thread for it. One that kills the whole group without a core does
 * so now, so that no thread runs on until somebody looks. */
static void complete_locked(struct task *t, int sig, bool to_group)
{
	struct task *target = choose_locked(t, sig, to_group);

	if (!target)
		return;
	if (!t->group->exiting && is_fatal_locked(target, sig)) {
		begin_group_exit_locked(t->group, sig);
		return;
	}
	signal_recalc_locked(target);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void remove_everywhere_locked(struct group *g, uint64_t mask)
{
	sigpending_remove(&g->pending, mask);
	list_for_each(pos, &g->threads)
		sigpending_remove(&list_entry(pos, struct task, group_link)->pending, mask);
}

static bool is_ignored_locked(struct task *t, int sig)
{
	uint64_t handler = t->sighand->action[sig].handler;

	if ((t->blocked | t->real_blocked) & SIG_BIT(sig))
		return false;
	if (t->tracer && sig != SIGKILL)
		return false;
	return handler == K_SIG_IGN ||
	       (handler == K_SIG_DFL && signal_default(sig) == SIG_DEF_IGNORE);
}

/* Side effects that a signal has even when nobody takes it. False: the signal goes no further. */
static bool prepare_locked(struct task *t, int sig, bool *out_continued) REQUIRES(tasks_mu)
{
	struct group *g = t->group;

	if (g->exiting || t->exiting || g->thread_count == 0)
		return false;
	if (SIG_BIT(sig) & STOP_SIGNALS) {
		remove_everywhere_locked(g, SIG_BIT(SIGCONT));
	} else if (sig == SIGCONT) {
		remove_everywhere_locked(g, STOP_SIGNALS);
		list_for_each(pos, &g->threads)
			list_entry(pos, struct task, group_link)->stop_dequeued = false;
		*out_continued = stop_continue_locked(g);
	}
	return !is_ignored_locked(t, sig);
}

/* Adds an entry. Without room a queued signal fails, others stay pending without their info. */
static int enqueue_locked(struct task *t, struct sigpending *p, const struct k_siginfo *info)
{
	uint64_t limit = MIN(t->group->rlim[RLIMIT_SIGPENDING].rlim_cur, SIGQUEUE_MAX);
	int sig = info->si_signo;
	struct sigqueue *q = NULL;

	/* The kernel's own and kill(2)'s old-style signals may pass the limit. */
	bool may_pass = sig < KERNEL_SIGRTMIN && (info->si_code >= 0 || info->si_code == SI_TKILL);
	if (may_pass || atomic_load(&queued_count) < limit)
		q = mem_zalloc(sizeof(*q));
	if (!q && sig >= KERNEL_SIGRTMIN && info->si_code != SI_USER)
		return -EAGAIN;
	if (q) {
		atomic_fetch_add(&queued_count, 1);
		q->info = *info;
		list_add_tail(&p->queue, &q->link);
	}
	p->set |= SIG_BIT(sig);
	return 0;
}

static int send_locked(struct task *t, const struct k_siginfo *info, bool to_group,
		       bool *out_continued) REQUIRES(tasks_mu)
{
	struct sigpending *p = to_group ? &t->group->pending : &t->pending;
	int sig = info->si_signo;

	if (!prepare_locked(t, sig, out_continued))
		return 0;
	if (sig < KERNEL_SIGRTMIN && (p->set & SIG_BIT(sig)))
		return 0;
	int err = enqueue_locked(t, p, info);
	if (err)
		return err;
	waitq_wake(&t->sighand->signalfd_wait, POLLIN);
	complete_locked(t, sig, to_group);
	return 0;
}

static int send_to(struct task *t, const struct k_siginfo *info, bool to_group) REQUIRES(tasks_mu)
{
	bool continued = false;

	if (info->si_signo == 0)
		return 0;
	mutex_lock(&t->sighand->mu);
	int err = send_locked(t, info, to_group, &continued);
	mutex_unlock(&t->sighand->mu);
	if (continued)
		stop_notify_parent_locked(t->group, CLD_CONTINUED);
	return err;
}

/* The thread that stands for a process: its leader, or another one when the leader has ended. */
static struct task *representative_locked(struct group *g) REQUIRES(tasks_mu)
{
	if (!g->leader->exiting)
		return g->leader;
	list_for_each(pos, &g->threads) {
		struct task *o = list_entry(pos, struct task, group_link);
		if (!o->exiting)
			return o;
	}
	return g->leader;
}

int signal_send_task_locked(struct task *t, const struct k_siginfo *info)
{
	return send_to(t, info, false);
}

int signal_send_group_locked(struct group *g, const struct k_siginfo *info)
{
	return send_to(representative_locked(g), info, true);
}

int signal_send_task(struct task *t, const struct k_siginfo *info)
{
	mutex_lock(&tasks_mu);
	int err = signal_send_task_locked(t, info);
	mutex_unlock(&tasks_mu);
	return err;
}

int signal_send_group(struct group *g, const struct k_siginfo *info)
{
	mutex_lock(&tasks_mu);
	int err = signal_send_group_locked(g, info);
	mutex_unlock(&tasks_mu);
	return err;
}

int signal_send_pgrp_locked(int pgrp, const struct k_siginfo *info)
{
	int err = -ESRCH;

	list_for_each_safe(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		if (g->pgrp != pgrp)
			continue;
		int one = signal_send_group_locked(g, info);
		/* One success is success, as kill(2) says. */
		if (one == 0 || err == -ESRCH)
			err = one;
	}
	return err;
}

int signal_send_pgrp(int pgrp, const struct k_siginfo *info)
{
	mutex_lock(&tasks_mu);
	int err = signal_send_pgrp_locked(pgrp, info);
	mutex_unlock(&tasks_mu);
	return err;
}

bool signal_send_timer_locked(struct task *t, bool to_group, struct sigqueue *q)
{
	struct sigpending *p = to_group ? &t->group->pending : &t->pending;
	int sig = q->info.si_signo;
	bool continued = false, sent = false;

	mutex_lock(&t->sighand->mu);
	if (list_empty(&q->link) && prepare_locked(t, sig, &continued)) {
		list_add_tail(&p->queue, &q->link);
		p->set |= SIG_BIT(sig);
		waitq_wake(&t->sighand->signalfd_wait, POLLIN);
		complete_locked(t, sig, to_group);
		sent = true;
	}
	mutex_unlock(&t->sighand->mu);
	if (continued)
		stop_notify_parent_locked(t->group, CLD_CONTINUED);
	return sent;
}

void signal_force(struct task *t, const struct k_siginfo *info) NO_LOCK_ANALYSIS
{
	int sig = info->si_signo;
	bool continued = false;

	mutex_lock(&t->sighand->mu);
	struct k_sigaction *sa = &t->sighand->action[sig];
	if ((t->blocked & SIG_BIT(sig)) || sa->handler == K_SIG_IGN) {
		sa->handler = K_SIG_DFL;
		t->blocked &= ~SIG_BIT(sig);
	}
	/* Faults are no stop or continue signals, so no parent is told and tasks_mu is not needed.
	 */
	int err = send_locked(t, info, false, &continued);
	BUG_ON(err != 0 || continued);
	mutex_unlock(&t->sighand->mu);
}

void signal_force_segv(struct task *t, int sig)
{
	struct k_siginfo info;

	if (sig == SIGSEGV) {
		mutex_lock(&t->sighand->mu);
		t->sighand->action[SIGSEGV].handler = K_SIG_DFL;
		mutex_unlock(&t->sighand->mu);
	}
	siginfo_init(&info, SIGSEGV, SI_KERNEL);
	signal_force(t, &info);
}

/* ---- permission ------------------------------------------------------------------------------ */

int signal_may_send_locked(struct task *from, struct group *g, int sig)
{
	const struct cred *c = from->cred;
	struct task *to = g->leader;

	if (from->group == g)
		return 0;
	mutex_lock(&to->mu);
	uint32_t uid = to->cred->uid, suid = to->cred->suid;
	mutex_unlock(&to->mu);
	if (c->euid == uid || c->euid == suid || c->uid == uid || c->uid == suid ||
	    cred_capable(c, CAP_KILL))
		return 0;
	if (sig == SIGCONT && from->group->sid == g->sid)
		return 0;
	return -EPERM;
}

int signal_may_send(struct task *from, struct group *g, int sig)
{
	mutex_lock(&tasks_mu);
	int err = signal_may_send_locked(from, g, sig);
	mutex_unlock(&tasks_mu);
	return err;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Group signals that t would have taken and now blocks must find another thread. */
static void retarget_locked(struct task *t, uint64_t lost)
{
	list_for_each(pos, &t->group->threads) {
		struct task *o = list_entry(pos, struct task, group_link);
		if (o == t || o->exiting || !(lost & ~o->blocked))
			continue;
		lost &= o->blocked;
		signal_recalc_locked(o);
		if (!lost)
			return;
	}
}

static void set_blocked_locked(struct task *t, uint64_t set)
{
	uint64_t lost = set & ~t->blocked & t->group->pending.set;

	t->blocked = set & ~UNBLOCKABLE;
	if (lost && t->group->thread_count > 1)
		retarget_locked(t, lost);
	signal_recalc_locked(t);
}

void signal_set_blocked(struct task *t, uint64_t set)
{
	mutex_lock(&t->sighand->mu);
	set_blocked_locked(t, set);
	mutex_unlock(&t->sighand->mu);
}

void signal_exit_retarget_locked(struct task *t)
{
	uint64_t lost = t->group->pending.set & ~t->blocked;

	t->exiting = true;
	if (lost)
		retarget_locked(t, lost);
}

void signal_temp_mask_begin(struct task *t, uint64_t set)
{
	mutex_lock(&t->sighand->mu);
	t->saved_blocked = t->blocked;
	t->restore_blocked = true;
	set_blocked_locked(t, set);
	mutex_unlock(&t->sighand->mu);
}

void signal_temp_mask_end(struct task *t, bool interrupted)
{
	if (interrupted || !t->restore_blocked)
		return;
	t->restore_blocked = false;
	signal_set_blocked(t, t->saved_blocked);
}

int signal_load_mask(struct task *t, sigset_cgp set, uint64_t size, uint64_t *out, bool *out_given)
{
	*out_given = !gaddr_is_null(set.addr);
	if (!*out_given)
		return 0;
	if (size != sizeof(*out))
		return -EINVAL;
	return guest_load(t, out, set);
}

bool signal_is_ignored_or_blocked(struct task *t, int sig)
{
	mutex_lock(&t->sighand->mu);
	bool yes = (t->blocked & SIG_BIT(sig)) || t->sighand->action[sig].handler == K_SIG_IGN;
	mutex_unlock(&t->sighand->mu);
	return yes;
}

/* ---- exec ------------------------------------------------------------------------------------ */

/* Processes made with CLONE_SIGHAND part on exec. Without memory they go on sharing, which is
 * harmless to us. */
static void unshare_sighand(struct task *t)
{
	struct sighand *old = t->sighand, *fresh;

	if (ref_count(&old->ref) == 1 || sighand_copy(old, &fresh) != 0)
		return;
	mutex_lock(&tasks_mu);
	mutex_lock(&old->mu);
	t->sighand = fresh;
	mutex_unlock(&old->mu);
	mutex_unlock(&tasks_mu);
	sighand_put(old);
}

void signal_on_exec(struct task *t)
{
	unshare_sighand(t);
	mutex_lock(&t->sighand->mu);
	for (int sig = 1; sig <= SIG_COUNT; sig++) {
		struct k_sigaction *sa = &t->sighand->action[sig];
		*sa = (struct k_sigaction){ .handler = sa->handler == K_SIG_IGN ? K_SIG_IGN
										: K_SIG_DFL };
	}
	mutex_unlock(&t->sighand->mu);
	t->altstack = (struct k_stack){ .flags = SS_DISABLE };
	posix_timers_delete_all(t->group);
	ptrace_note_exec(t);
}

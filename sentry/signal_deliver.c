/*
 * What a thread does with its signals before it returns to the guest: stop, die, run a handler,
 * restart the interrupted call. Everything here runs on the task's own thread without locks on
 * entry.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sentry/ptrace_guest.h"
#include "sentry/task.h"

#define SYSCALL_INSN_SIZE 2 /* syscall and int 0x80 alike */

void signal_fix_restart(struct task *t, const struct k_sigaction *sa)
{
	int64_t code = (int64_t)t->regs.rax;
	uint64_t nr = t->syscall_nr;

	if (nr == UINT64_MAX || t->regs_replaced)
		return;
	t->syscall_nr = UINT64_MAX;
	switch (-code) {
	case ERESTARTSYS:
		if (sa && !(sa->flags & K_SA_RESTART)) {
			t->regs.rax = (uint64_t)-EINTR;
			return;
		}
		break;
	case ERESTARTNOINTR:
		break;
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		if (sa) {
			t->regs.rax = (uint64_t)-EINTR;
			return;
		}
		if (code == -ERESTART_RESTARTBLOCK)
			nr = SYS_restart_syscall;
		break;
	default:
		return;
	}
	t->regs.rax = nr;
	t->regs.rip -= SYSCALL_INSN_SIZE;
}

/* LINUX: writes a core file, or gives it to the handler of core_pattern. We write none, but a
 * parent that allowed it sees that the program died in that way. */
static bool dumps_core(struct task *t)
{
	return task_rlimit(t, RLIMIT_CORE) >= PAGE_SIZE && t->mm->dumpable == 1;
}

/* The default action of sig. Returns when the thread goes on. */
static void act_by_default(struct task *t, int sig)
{
	switch (signal_default(sig)) {
	case SIG_DEF_IGNORE:
		return;
	case SIG_DEF_STOP:
		stop_by_signal(t, sig);
		return;
	case SIG_DEF_TERM:
		task_exit_group(t, sig);
	case SIG_DEF_CORE:
		task_exit_group(t, sig | (dumps_core(t) ? WCOREFLAG : 0));
	}
}

static void exit_if_killed_locked(struct task *t) NO_LOCK_ANALYSIS
{
	struct group *g = t->group;

	if (!t->kill_pending && !g->exiting)
		return;
	int status = g->exiting ? g->exit_code : SIGKILL;
	mutex_unlock(&t->sighand->mu);
	task_exit(t, status);
}

/* The next signal that has a handler, with its action and info; 0 when none is left. Acts on all
 * others. */
static int next_handled(struct task *t, struct k_siginfo *info, struct k_sigaction *sa)
{
	for (;;) {
		struct sighand *sh = t->sighand;
		mutex_lock(&sh->mu);
		exit_if_killed_locked(t);
		if (t->trap_wanted && t->tracer) {
			mutex_unlock(&sh->mu);
			ptrace_trap(t);
			continue;
		}
		if (t->group->stop_sig && !t->stop_parked) {
			mutex_unlock(&sh->mu);
			stop_park(t);
			continue;
		}
		int sig = signal_dequeue_locked(t, ~t->blocked, info);
		if (!sig) {
			mutex_unlock(&sh->mu);
			return 0;
		}
		t->stop_dequeued = signal_default(sig) == SIG_DEF_STOP;
		if (t->tracer && sig != SIGKILL) {
			mutex_unlock(&sh->mu);
			sig = ptrace_report_signal(t, sig, info);
			if (!sig)
				continue;
			mutex_lock(&sh->mu);
		}
		*sa = sh->action[sig];
		if (sa->handler > K_SIG_IGN && (sa->flags & K_SA_RESETHAND))
			sh->action[sig].handler = K_SIG_DFL;
		mutex_unlock(&sh->mu);
		if (sa->handler == K_SIG_IGN)
			continue;
		if (sa->handler != K_SIG_DFL)
			return sig;
		act_by_default(t, sig);
	}
}

static void start_handler(struct task *t, int sig, const struct k_siginfo *info,
			  const struct k_sigaction *sa)
{
	uint64_t oldmask = t->restore_blocked ? t->saved_blocked : t->blocked;

	signal_fix_restart(t, sa);
	if (sigframe_setup(t, sig, info, sa, oldmask) != 0) {
		signal_force_segv(t, sig);
		return;
	}
	t->restore_blocked = false;
	uint64_t blocked = t->blocked | sa->mask;
	if (!(sa->flags & K_SA_NODEFER))
		blocked |= SIG_BIT(sig);
	signal_set_blocked(t, blocked);
}

void signal_deliver(struct task *t)
{
	struct k_siginfo info;
	struct k_sigaction sa;
	int sig;

	do {
		/* Several handlers may start: each frame interrupts the one before at its first
		 * instruction. */
		while ((sig = next_handled(t, &info, &sa)) != 0)
			start_handler(t, sig, &info, &sa);
		signal_fix_restart(t, NULL);
		/* The old mask may let more signals in. */
		if (t->restore_blocked) {
			t->restore_blocked = false;
			signal_set_blocked(t, t->saved_blocked);
		} else {
			mutex_lock(&t->sighand->mu);
			signal_recalc_locked(t);
			mutex_unlock(&t->sighand->mu);
		}
	} while (signal_pending(t));
}

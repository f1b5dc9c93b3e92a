/*
 * The task loop: run the guest until something happens, serve it, look at signals, again. One
 * sentry thread per task, as Linux has one kernel stack per task.
 */
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sentry/dispatch.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/task.h"

static void serve_syscall(struct task *t, const struct plat_event *ev)
{
	const struct regs *r = &t->regs;

	/* Number and arguments of the i386 ABI (int 0x80) are never looked at beyond the number. */
	t->syscall_nr = r->orig_rax;
	t->regs_replaced = false;
	/* A tracer may change both. */
	if (!atomic_load(&t->ptraced) || ptrace_syscall_enter(t)) {
		const uint64_t args[6] = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 };
		long ret = syscall_dispatch(t, ev->arch, t->syscall_nr, args);
		if (!t->regs_replaced)
			t->regs.rax = (uint64_t)ret;
		arena_reset(&t->scratch);
	}
	if (atomic_load(&t->ptraced))
		ptrace_syscall_exit(t);
}

static bool result_is_restart(struct task *t)
{
	int64_t rax = (int64_t)t->regs.rax;

	return t->syscall_nr != UINT64_MAX && !t->regs_replaced && rax <= -ERESTARTSYS &&
	       rax >= -ERESTART_RESTARTBLOCK;
}

static void serve_fault(struct task *t, const struct plat_event *ev)
{
	struct k_siginfo info;

	/* The stack and MAP_GROWSDOWN mappings grow by faults below them. */
	if (ev->signo == SIGSEGV && ev->code == SEGV_MAPERR && mm_grow(t, ev->addr))
		return;
	siginfo_init(&info, ev->signo, ev->code);
	if (ev->signo == SIGSEGV)
		info.si_code = mm_fault_code(t->mm, ev->addr, ev->code);
	info.fault.addr = ev->addr;
	t->fault_addr = ev->addr;
	t->fault_trapno = ev->trapno;
	t->fault_err = ev->err;
	signal_force(t, &info);
}

static void serve_event(struct task *t, const struct plat_event *ev)
{
	switch (ev->kind) {
	case PLAT_SYSCALL:
		serve_syscall(t, ev);
		return;
	case PLAT_FAULT:
		serve_fault(t, ev);
		return;
	case PLAT_INTERRUPT:
		return;
	case PLAT_DEAD:
		task_exit_group(t, SIGKILL);
	}
}

void *task_main(void *arg)
{
	struct task *t = arg;
	struct plat_event ev;

	set_current_task(t);
	sleeper_set_self(&t->sleeper);
	atomic_store(&t->host_tid, gettid());
	for (;;) {
		if (signal_pending(t) || result_is_restart(t)) {
			sleeper_clear_interrupt(&t->sleeper);
			signal_deliver(t);
		}
		t->syscall_nr = UINT64_MAX;
		plat->run(t->ctx, &t->regs, &ev);
		serve_event(t, &ev);
	}
}

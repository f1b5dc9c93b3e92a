/* Sending, queues, masks, restart of calls, POSIX timers: with tasks that never run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/task_priv.h"
#include "sentry/timers.h"

static struct task *t, *other; /* two threads of one process */
static size_t live;

static struct task *add_thread(struct group *g, struct sighand *sh, struct cred *cred)
{
	struct task *n = task_alloc();

	assert_non_null(n);
	n->group = group_get(g);
	n->sighand = sighand_get(sh);
	n->cred = cred_get(cred);
	mutex_lock(&tasks_mu);
	assert_int_equal(pid_alloc_locked(n), 0);
	list_add_tail(&g->threads, &n->group_link);
	g->thread_count++;
	mutex_unlock(&tasks_mu);
	return n;
}

static int setup(void **state UNUSED)
{
	struct sighand *sh;

	live = mem_live_count();
	struct group *g = group_alloc();
	struct cred *cred = cred_new(1000, 1000, NULL, 0);
	plat = NULL;
	assert_int_equal(sighand_new(&sh), 0);
	t = add_thread(g, sh, cred);
	other = add_thread(g, sh, cred);
	g->leader = t;
	g->tgid = g->pgrp = g->sid = t->tid;
	mutex_lock(&tasks_mu);
	group_link_locked(g);
	mutex_unlock(&tasks_mu);
	set_current_task(t);
	group_put(g);
	sighand_put(sh);
	cred_put(cred);
	return 0;
}

static int teardown(void **state UNUSED)
{
	posix_timers_delete_all(t->group);
	mutex_lock(&tasks_mu);
	task_release_locked(other);
	task_release_locked(t);
	mutex_unlock(&tasks_mu);
	set_current_task(NULL);
	task_put(other);
	task_put(t);
	return mem_live_count() != live;
}

static int send_group(int sig, int value)
{
	struct k_siginfo info;

	siginfo_init(&info, sig, SI_QUEUE);
	info.rt.value.i = value;
	return signal_send_group(t->group, &info);
}

static int send_thread(struct task *to, int sig)
{
	struct k_siginfo info;

	siginfo_init(&info, sig, SI_TKILL);
	return signal_send_task(to, &info);
}

static int take(struct task *from, struct k_siginfo *info)
{
	mutex_lock(&from->sighand->mu);
	int sig = signal_dequeue_locked(from, ~0ull, info);
	mutex_unlock(&from->sighand->mu);
	return sig;
}

static void block_all(void)
{
	signal_set_blocked(t, ~0ull);
	mutex_lock(&t->sighand->mu);
	other->blocked = t->blocked;
	mutex_unlock(&t->sighand->mu);
}

static void set_action(int sig, uint64_t handler, uint64_t flags)
{
	t->sighand->action[sig] = (struct k_sigaction){ .handler = handler, .flags = flags };
}

static void lowest_number_first_and_in_order(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	assert_int_equal(send_group(40, 1), 0);
	assert_int_equal(send_group(35, 2), 0);
	assert_int_equal(send_group(35, 3), 0);
	assert_int_equal(send_group(SIGUSR1, 4), 0);
	assert_int_equal(take(t, &info), SIGUSR1);
	assert_int_equal(take(t, &info), 35);
	assert_int_equal(info.rt.value.i, 2);
	assert_int_equal(take(t, &info), 35);
	assert_int_equal(info.rt.value.i, 3);
	assert_int_equal(take(other, &info), 40);
	assert_int_equal(take(t, &info), 0);
}

static void faults_come_before_others(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	send_thread(t, SIGHUP);
	send_thread(t, SIGSEGV);
	assert_int_equal(take(t, &info), SIGSEGV);
	assert_int_equal(take(t, &info), SIGHUP);
}

static void old_signals_do_not_queue(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	send_group(SIGUSR1, 1);
	send_group(SIGUSR1, 2);
	assert_int_equal(take(t, &info), SIGUSR1);
	assert_int_equal(info.rt.value.i, 1);
	assert_int_equal(take(t, &info), 0);
}

static void ignored_signals_are_dropped(void **state UNUSED)
{
	struct k_siginfo info;

	send_group(SIGCHLD, 0);
	set_action(SIGUSR1, K_SIG_IGN, 0);
	send_group(SIGUSR1, 0);
	assert_int_equal(take(t, &info), 0);
	assert_false(signal_pending(t));
	/* not while somebody may still want them */
	block_all();
	send_group(SIGUSR1, 0);
	assert_int_equal(take(t, &info), SIGUSR1);
}

static void stop_and_continue_cancel_each_other(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	send_group(SIGTSTP, 0);
	send_thread(other, SIGTTIN);
	send_group(SIGCONT, 0);
	assert_int_equal(take(t, &info), SIGCONT);
	assert_int_equal(take(other, &info), 0);
	send_group(SIGCONT, 0);
	send_group(SIGTSTP, 0);
	assert_int_equal(take(t, &info), SIGTSTP);
	assert_int_equal(take(t, &info), 0);
}

static void a_thread_that_does_not_block_is_chosen(void **state UNUSED)
{
	signal_set_blocked(t, SIG_BIT(SIGUSR1));
	set_action(SIGUSR1, 0x1000, 0);
	send_group(SIGUSR1, 0);
	assert_false(signal_pending(t));
	assert_true(signal_pending(other));
}

static void blocking_hands_a_signal_on(void **state UNUSED)
{
	set_action(SIGUSR1, 0x1000, 0);
	send_group(SIGUSR1, 0);
	assert_true(signal_pending(t));
	assert_false(signal_pending(other));
	signal_set_blocked(t, SIG_BIT(SIGUSR1));
	assert_false(signal_pending(t));
	assert_true(signal_pending(other));
}

static void fatal_signals_end_the_group_at_once(void **state UNUSED)
{
	send_group(SIGTERM, 0);
	assert_true(t->group->exiting);
	assert_int_equal(t->group->exit_code, SIGTERM);
	assert_true(signal_fatal_pending(t));
	assert_true(signal_fatal_pending(other));
	assert_true(sleeper_is_interrupted(&other->sleeper));
}

static void sigkill_cannot_be_blocked(void **state UNUSED)
{
	block_all();
	assert_int_equal(t->blocked & SIG_BIT(SIGKILL), 0);
	assert_int_equal(t->blocked & SIG_BIT(SIGSTOP), 0);
	send_thread(other, SIGKILL);
	assert_int_equal(t->group->exit_code, SIGKILL);
}

static void queued_signals_have_a_limit(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	t->group->rlim[RLIMIT_SIGPENDING].rlim_cur = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_group(40, i), 0);
	assert_int_equal(send_group(40, 3), -EAGAIN);
	siginfo_init(&info, SIGUSR2, SI_USER);
	assert_int_equal(signal_send_group(t->group, &info), 0);
	mem_fail_nth(1);
	siginfo_init(&info, SIGUSR1, SI_USER);
	assert_int_equal(signal_send_group(t->group, &info), 0); /* pending without its info */
	mem_fail_nth(0);
	assert_int_equal(take(t, &info), SIGUSR1);
	assert_int_equal(info.si_code, SI_USER);
}

static void forced_faults_pass_masks_and_ignoring(void **state UNUSED)
{
	struct k_siginfo info;

	block_all();
	set_action(SIGSEGV, K_SIG_IGN, 0);
	siginfo_init(&info, SIGSEGV, SEGV_MAPERR);
	info.fault.addr = 0x1234;
	signal_force(t, &info);
	assert_int_equal(t->blocked & SIG_BIT(SIGSEGV), 0);
	assert_int_equal(t->sighand->action[SIGSEGV].handler, K_SIG_DFL);
	assert_true(signal_pending(t));
	assert_int_equal(take(t, &info), SIGSEGV);
	assert_int_equal(info.fault.addr, 0x1234);
}

static int64_t restarted(int code, const struct k_sigaction *sa, uint64_t *out_rip)
{
	t->syscall_nr = 77;
	t->regs_replaced = false;
	t->regs.rax = (uint64_t)(int64_t)-code;
	t->regs.rip = 1000;
	signal_fix_restart(t, sa);
	*out_rip = t->regs.rip;
	return (int64_t)t->regs.rax;
}

static void restart_table(void **state UNUSED)
{
	const struct k_sigaction plain = { .handler = 1000 },
				 again = { .handler = 1000, .flags = K_SA_RESTART };
	static const struct {
		int code;
		int64_t none, plain, again; /* what rax becomes; the number of the call means "made
					       again" */
	} rows[] = {
		{ ERESTARTSYS, 77, -EINTR, 77 },
		{ ERESTARTNOINTR, 77, 77, 77 },
		{ ERESTARTNOHAND, 77, -EINTR, -EINTR },
		{ ERESTART_RESTARTBLOCK, SYS_restart_syscall, -EINTR, -EINTR },
		{ EINTR, -EINTR, -EINTR, -EINTR },
		{ EBADF, -EBADF, -EBADF, -EBADF },
	};
	uint64_t rip;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct k_sigaction *sa[3] = { NULL, &plain, &again };
		int64_t want[3] = { rows[i].none, rows[i].plain, rows[i].again };
		for (int k = 0; k < 3; k++) {
			assert_int_equal(restarted(rows[i].code, sa[k], &rip), want[k]);
			assert_int_equal(rip, want[k] > 0 ? 998 : 1000);
			assert_int_equal(t->syscall_nr == UINT64_MAX, 1);
		}
	}
	/* registers that the call loaded itself are nobody's result */
	t->syscall_nr = 77;
	t->regs_replaced = true;
	t->regs.rax = (uint64_t)-ERESTARTSYS;
	signal_fix_restart(t, NULL);
	assert_int_equal((int64_t)t->regs.rax, -ERESTARTSYS);
}

static void temporary_masks(void **state UNUSED)
{
	signal_set_blocked(t, SIG_BIT(SIGUSR1));
	signal_temp_mask_begin(t, SIG_BIT(SIGUSR2) | SIG_BIT(SIGKILL));
	assert_int_equal(t->blocked, SIG_BIT(SIGUSR2));
	signal_temp_mask_end(t, false);
	assert_int_equal(t->blocked, SIG_BIT(SIGUSR1));
	signal_temp_mask_begin(t, 0);
	signal_temp_mask_end(t, true);
	assert_int_equal(t->blocked, 0); /* delivery restores it */
	assert_true(t->restore_blocked);
	assert_int_equal(t->saved_blocked, SIG_BIT(SIGUSR1));
}

static void alternate_stack_rules(void **state UNUSED)
{
	struct k_stack ss = { .sp = 0x10000, .size = 0x4000 };

	t->altstack.flags = SS_DISABLE;
	assert_int_equal(sigstack_flags(&t->altstack, 0x11000), SS_DISABLE);
	assert_int_equal(sigstack_set(t, &ss, 0x90000), 0);
	assert_int_equal(sigstack_flags(&t->altstack, 0x90000), 0);
	assert_int_equal(sigstack_flags(&t->altstack, 0x10000), 0); /* empty: sp is below */
	assert_int_equal(sigstack_flags(&t->altstack, 0x10001), SS_ONSTACK);
	assert_int_equal(sigstack_flags(&t->altstack, 0x14000), SS_ONSTACK);
	assert_int_equal(sigstack_flags(&t->altstack, 0x14001), 0);
	assert_int_equal(sigstack_set(t, &ss, 0x12000), -EPERM);
	ss.size = 2047;
	assert_int_equal(sigstack_set(t, &ss, 0x90000), -ENOMEM);
	ss.flags = 7;
	assert_int_equal(sigstack_set(t, &ss, 0x90000), -EINVAL);
}

static void times_convert(void **state UNUSED)
{
	uint64_t ns;

	assert_int_equal(timespec_to_ns(&(struct timespec){ 1, 5 }, &ns), 0);
	assert_int_equal(ns, 1000000005);
	assert_int_equal(timespec_to_ns(&(struct timespec){ -1, 0 }, &ns), -EINVAL);
	assert_int_equal(timespec_to_ns(&(struct timespec){ 0, 1000000000 }, &ns), -EINVAL);
	assert_int_equal(timespec_to_ns(&(struct timespec){ 0, -1 }, &ns), -EINVAL);
	assert_int_equal(timespec_to_ns(&(struct timespec){ INT64_MAX, 999999999 }, &ns), 0);
	assert_int_equal(ns, INT64_MAX);
	struct timespec ts = ns_to_timespec(3000000007ull);
	assert_int_equal(ts.tv_sec, 3);
	assert_int_equal(ts.tv_nsec, 7);
	assert_int_equal(clock_deadline(CLOCK_MONOTONIC, INT64_MAX), DEADLINE_NEVER);
	assert_true(clock_deadline(CLOCK_REALTIME, 5) <= mono_now_ns());
	assert_int_equal(clock_read(t, 99, &ns), -EINVAL);
	assert_int_equal(clock_read(t, 10, &ns), -EINVAL);
}

static void sleep_ms(long ms)
{
	struct timespec ts = { 0, ms * 1000000 };

	nanosleep(&ts, NULL);
}

static void posix_timer_queues_its_own_entry(void **state UNUSED)
{
	struct k_sigevent sev = { .notify = SIGEV_SIGNAL, .signo = 40, .value.i = 9 };
	struct k_itimerspec its = { { 0, 2000000 }, { 0, 2000000 } }, old,
			    none = { { 0, 0 }, { 0, 0 } };
	struct k_siginfo info;
	int id;

	block_all();
	t->group->rlim[RLIMIT_SIGPENDING].rlim_cur = 1;
	assert_int_equal(posix_timer_create(t, CLOCK_MONOTONIC, &sev, &id), 0);
	assert_int_equal(posix_timer_create(t, CLOCK_MONOTONIC, &sev, &id), -EAGAIN);
	assert_int_equal(send_group(41, 0), 0); /* the queue is full: the timer does not care */
	assert_int_equal(posix_timer_settime(t, id, 0, &its, &old), 0);
	sleep_ms(50);
	assert_int_equal(take(t, &info), 40);
	assert_int_equal(info.si_code, SI_TIMER);
	assert_int_equal(info.timer.value.i, 9);
	assert_true(info.timer.overrun >= 5);
	assert_int_equal(posix_timer_getoverrun(t, id), info.timer.overrun);
	sleep_ms(20); /* armed again by being taken */
	assert_int_equal(posix_timer_settime(t, id, 0, &none, &old), 0);
	assert_int_equal(old.interval.tv_nsec, 2000000);
	assert_int_equal(take(t, &info), 41); /* setting it has withdrawn the queued one */
	assert_int_equal(take(t, &info), 0);
	assert_int_equal(posix_timer_delete(t, id), 0);
	assert_int_equal(posix_timer_delete(t, id), -EINVAL);
}

static void posix_timer_can_be_deleted_while_queued(void **state UNUSED)
{
	struct k_sigevent sev = { .notify = SIGEV_THREAD_ID, .signo = 40, .tid = other->tid };
	struct k_itimerspec its = { .value = { 0, 1 } }, old;
	struct k_siginfo info;
	int id;

	block_all();
	assert_int_equal(posix_timer_create(t, CLOCK_REALTIME, &sev, &id), 0);
	assert_int_equal(posix_timer_settime(t, id, 0, &its, &old), 0);
	sleep_ms(20);
	assert_int_equal(other->pending.set, SIG_BIT(40));
	assert_int_equal(posix_timer_delete(t, id), 0);
	assert_int_equal(other->pending.set, 0);
	assert_int_equal(take(other, &info), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lowest_number_first_and_in_order),
		T(faults_come_before_others),
		T(old_signals_do_not_queue),
		T(ignored_signals_are_dropped),
		T(stop_and_continue_cancel_each_other),
		T(a_thread_that_does_not_block_is_chosen),
		T(blocking_hands_a_signal_on),
		T(fatal_signals_end_the_group_at_once),
		T(sigkill_cannot_be_blocked),
		T(queued_signals_have_a_limit),
		T(forced_faults_pass_masks_and_ignoring),
		T(restart_table),
		T(temporary_masks),
		T(alternate_stack_rules),
		T(times_convert),
		T(posix_timer_queues_its_own_entry),
		T(posix_timer_can_be_deleted_while_queued),
	};

	if (timer_start_thread() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

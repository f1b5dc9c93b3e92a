/*
 * rt_sigaction(2), rt_sigprocmask(2), rt_sigpending(2), rt_sigsuspend(2), rt_sigtimedwait(2), rt_sigqueueinfo(2),
 * rt_tgsigqueueinfo(2), rt_sigreturn(2), pause(2), kill(2), tkill(2), tgkill(2), restart_syscall(2): sending,
 * masks, order, restart.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/guest/t.h"

static volatile sig_atomic_t count, last_sig, last_code, last_pid, last_value;
static volatile int order[64], order_n;

static void on_sig(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	count++;
	last_sig = sig;
	last_code = si->si_code;
	last_pid = si->si_pid;
	last_value = si->si_value.sival_int;
	if (order_n < 64)
		order[order_n++] = sig;
}

static void handle(int sig, int flags)
{
	struct sigaction sa = { .sa_sigaction = on_sig, .sa_flags = SA_SIGINFO | flags };
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static sigset_t one(int sig)
{
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, sig);
	return s;
}

static void block(int sig)
{
	sigset_t s = one(sig);
	CHECK_OK(sigprocmask(SIG_BLOCK, &s, NULL));
}

static void unblock(int sig)
{
	sigset_t s = one(sig);
	CHECK_OK(sigprocmask(SIG_UNBLOCK, &s, NULL));
}

TEST(handler_gets_info_of_kill)
{
	handle(SIGUSR1, 0);
	CHECK_OK(kill(getpid(), SIGUSR1));
	CHECK_EQ(count, 1);
	CHECK_EQ(last_sig, SIGUSR1);
	CHECK_EQ(last_code, SI_USER);
	CHECK_EQ(last_pid, getpid());
}

TEST(tgkill_and_tkill_give_si_tkill)
{
	handle(SIGUSR1, 0);
	CHECK_OK(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
	CHECK_EQ(last_code, SI_TKILL);
	CHECK_OK(syscall(SYS_tkill, gettid(), SIGUSR1));
	CHECK_EQ(count, 2);
	CHECK_EQ(last_pid, getpid());
}

TEST(kill_errors)
{
	CHECK_ERR(kill(getpid(), 65), EINVAL);
	CHECK_ERR(kill(getpid(), -1), EINVAL);
	CHECK_ERR(kill(0x7ffffff, 0), ESRCH);
	CHECK_ERR(kill(-0x7ffffff, 0), ESRCH);
	CHECK_ERR(kill(INT32_MIN, 0), ESRCH);
	CHECK_OK(kill(getpid(), 0));
	CHECK_OK(kill(0, 0));
	CHECK_ERR(syscall(SYS_tgkill, getpid(), 0, 0), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, 0, getpid(), 0), EINVAL);
	CHECK_ERR(syscall(SYS_tgkill, getppid(), getpid(), 0), ESRCH);
	CHECK_ERR(syscall(SYS_tkill, -1, 0), EINVAL);
	CHECK_ERR(syscall(SYS_tkill, 0x7ffffff, 0), ESRCH);
	CHECK_ERR(syscall(SYS_tkill, gettid(), 65), EINVAL);
}

TEST(sigaction_errors_and_readback)
{
	struct sigaction sa = { .sa_handler = SIG_IGN }, old;
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGKILL, &sa, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGSTOP, &sa, NULL, 8), EINVAL);
	CHECK_OK(syscall(SYS_rt_sigaction, SIGKILL, NULL, &old, 8));
	CHECK_ERR(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, 65, NULL, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 16), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, (void *)1, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, (void *)1, 8), EFAULT);
	struct {
		unsigned long handler, flags, restorer, mask;
	} k = { 1234, 0xffffffff, 5678, ~0ul }, r;
	CHECK_OK(syscall(SYS_rt_sigaction, SIGUSR1, &k, NULL, 8));
	CHECK_OK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &r, 8));
	CHECK_EQ(r.handler, 1234);
	CHECK_EQ(r.flags & 0x400, 0); /* SA_UNSUPPORTED never sticks */
	CHECK_EQ(r.restorer, 5678);
	CHECK_EQ(r.mask, ~0ul & ~(1ul << (SIGKILL - 1)) & ~(1ul << (SIGSTOP - 1)));
}

TEST(mask_blocks_and_pending_shows)
{
	sigset_t p;
	handle(SIGUSR1, 0);
	block(SIGUSR1);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	CHECK_EQ(count, 0);
	CHECK_OK(sigpending(&p));
	CHECK_EQ(sigismember(&p, SIGUSR1), 1);
	CHECK_EQ(sigismember(&p, SIGUSR2), 0);
	unblock(SIGUSR1);
	CHECK_EQ(count, 1); /* old-style signals do not queue */
	CHECK_OK(sigpending(&p));
	CHECK_EQ(sigismember(&p, SIGUSR1), 0);
}

TEST(sigprocmask_errors)
{
	unsigned long s = ~0ul, o;
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &s, NULL, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, 7, &s, NULL, 8), EINVAL);
	CHECK_OK(syscall(SYS_rt_sigprocmask, 7, NULL, &o, 8));
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)1, NULL, 8), EFAULT);
	CHECK_ERR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, (void *)1, 8), EFAULT);
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &s, NULL, 8));
	CHECK_OK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &o, 8));
	CHECK_EQ(o, ~0ul & ~(1ul << (SIGKILL - 1)) & ~(1ul << (SIGSTOP - 1)));
	CHECK_ERR(syscall(SYS_rt_sigpending, &o, 16), EINVAL);
	CHECK_OK(syscall(SYS_rt_sigpending, &o, 4));
}

TEST(real_time_signals_queue_in_order)
{
	int a = SIGRTMIN + 1, b = SIGRTMIN + 3;
	handle(a, 0);
	handle(b, 0);
	block(a);
	block(b);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(sigqueue(getpid(), b, (union sigval){ .sival_int = i }));
		CHECK_OK(sigqueue(getpid(), a, (union sigval){ .sival_int = 10 + i }));
	}
	sigset_t s = one(a), w;
	sigaddset(&s, b);
	w = s;
	/* lowest number first, then order of sending */
	siginfo_t si;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(sigwaitinfo(&w, &si), a);
		CHECK_EQ(si.si_value.sival_int, 10 + i);
		CHECK_EQ(si.si_code, SI_QUEUE);
		CHECK_EQ(si.si_pid, getpid());
	}
	unblock(b);
	CHECK_EQ(count, 3);
	CHECK_EQ(last_value, 2);
}

TEST(own_queue_before_process_queue)
{
	block(SIGUSR1);
	kill(getpid(), SIGUSR1);
	syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
	sigset_t w = one(SIGUSR1);
	siginfo_t si;
	/* not by the C library, which turns SI_TKILL into SI_USER */
	CHECK_EQ(syscall(SYS_rt_sigtimedwait, &w, &si, NULL, 8), SIGUSR1);
	CHECK_EQ(si.si_code, SI_TKILL);
	CHECK_EQ(syscall(SYS_rt_sigtimedwait, &w, &si, NULL, 8), SIGUSR1);
	CHECK_EQ(si.si_code, SI_USER);
}

TEST(several_pending_signals_nest)
{
	handle(SIGUSR1, 0);
	handle(SIGUSR2, 0);
	handle(SIGTERM, 0);
	sigset_t s = one(SIGUSR1), old;
	sigaddset(&s, SIGUSR2);
	sigaddset(&s, SIGTERM);
	sigprocmask(SIG_BLOCK, &s, &old);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	CHECK_EQ(order_n, 3);
	/* frames are stacked from the lowest number up, so the last one runs first */
	CHECK_EQ(order[0], SIGTERM);
	CHECK_EQ(order[1], SIGUSR2);
	CHECK_EQ(order[2], SIGUSR1);
}

static volatile sig_atomic_t depth, max_depth;

static void reraise(int sig)
{
	if (++depth > max_depth)
		max_depth = depth;
	if (count++ < 3)
		raise(sig);
	depth--;
}

TEST(nodefer_nests_and_default_does_not)
{
	struct sigaction sa = { .sa_handler = reraise };
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	CHECK_EQ(max_depth, 1);
	CHECK_EQ(count, 4);
	count = max_depth = 0;
	sa.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	CHECK_EQ(max_depth, 4);
}

static sigset_t seen;

static void see_mask(int sig)
{
	(void)sig;
	sigprocmask(SIG_BLOCK, NULL, &seen);
}

TEST(sa_mask_holds_during_handler)
{
	struct sigaction sa = { .sa_handler = see_mask, .sa_mask = one(SIGUSR2) };
	sigset_t now;
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	CHECK_EQ(sigismember(&seen, SIGUSR1), 1);
	CHECK_EQ(sigismember(&seen, SIGUSR2), 1);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGUSR1), 0);
	CHECK_EQ(sigismember(&now, SIGUSR2), 0);
}

TEST(resethand_resets)
{
	struct sigaction old;
	handle(SIGUSR1, SA_RESETHAND);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &old);
	CHECK(old.sa_handler == SIG_DFL);
	CHECK_EQ(count, 1);
}

TEST(ignored_signals_vanish)
{
	sigset_t p;
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	raise(SIGCHLD);
	/* blocked ones stay, until they become ignored */
	block(SIGUSR2);
	raise(SIGUSR2);
	sigpending(&p);
	CHECK_EQ(sigismember(&p, SIGUSR2), 1);
	signal(SIGUSR2, SIG_IGN);
	sigpending(&p);
	CHECK_EQ(sigismember(&p, SIGUSR2), 0);
}

TEST(default_actions_end_the_process)
{
	static const int sigs[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGALRM, SIGABRT, SIGKILL, SIGSYS };
	for (unsigned i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			signal(sigs[i], SIG_DFL);
			raise(sigs[i]);
			_exit(0);
		}
		CHECK_KILLED(pid, sigs[i]);
	}
}

TEST(default_ignored_signals_do_nothing)
{
	signal(SIGCHLD, SIG_DFL);
	raise(SIGCHLD);
	raise(SIGWINCH);
	raise(SIGURG);
	raise(SIGCONT);
}

static void *send_later(void *arg)
{
	usleep(50000);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static pthread_t later(pthread_t *self)
{
	pthread_t th;
	*self = pthread_self();
	CHECK_EQ(pthread_create(&th, NULL, send_later, self), 0);
	return th;
}

TEST(read_is_interrupted_without_sa_restart)
{
	int p[2];
	char c;
	pthread_t self, th;
	pipe(p);
	handle(SIGUSR1, 0);
	th = later(&self);
	CHECK_ERR(read(p[0], &c, 1), EINTR);
	CHECK_EQ(count, 1);
	pthread_join(th, NULL);
}

static int restart_pipe[2];

static void write_pipe(int sig)
{
	(void)sig;
	count++;
	write(restart_pipe[1], "x", 1);
}

TEST(read_restarts_with_sa_restart)
{
	struct sigaction sa = { .sa_handler = write_pipe, .sa_flags = SA_RESTART };
	char c = 0;
	pthread_t self, th;
	pipe(restart_pipe);
	sigaction(SIGUSR1, &sa, NULL);
	th = later(&self);
	CHECK_EQ(read(restart_pipe[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	CHECK_EQ(count, 1);
	pthread_join(th, NULL);
}

TEST(pause_returns_eintr_even_with_restart)
{
	pthread_t self, th;
	handle(SIGUSR1, SA_RESTART);
	th = later(&self);
	CHECK_ERR(pause(), EINTR);
	CHECK_EQ(count, 1);
	pthread_join(th, NULL);
}

TEST(sigsuspend_swaps_the_mask)
{
	sigset_t empty, now;
	sigemptyset(&empty);
	handle(SIGUSR1, 0);
	block(SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(count, 0);
	CHECK_ERR(sigsuspend(&empty), EINTR);
	CHECK_EQ(count, 1);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGUSR1), 1);
	unsigned long s = 0;
	CHECK_ERR(syscall(SYS_rt_sigsuspend, &s, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigsuspend, (void *)1, 8), EFAULT);
}

TEST(sigtimedwait_times_out)
{
	sigset_t w = one(SIGUSR1);
	struct timespec ts = { .tv_nsec = 30000000 }, bad = { .tv_nsec = 1000000000 }, zero = { 0 };
	block(SIGUSR1);
	CHECK_ERR(sigtimedwait(&w, NULL, &ts), EAGAIN);
	CHECK_ERR(sigtimedwait(&w, NULL, &zero), EAGAIN);
	CHECK_ERR(sigtimedwait(&w, NULL, &bad), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, &w, NULL, NULL, 4), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigtimedwait, (void *)1, NULL, NULL, 8), EFAULT);
	raise(SIGUSR1);
	CHECK_EQ(sigtimedwait(&w, NULL, &zero), SIGUSR1);
}

TEST(sigtimedwait_wakes_and_is_interrupted)
{
	sigset_t w = one(SIGUSR1), w2 = one(SIGUSR2);
	siginfo_t si;
	pthread_t self, th;
	block(SIGUSR1);
	th = later(&self);
	CHECK_EQ(sigwaitinfo(&w, &si), SIGUSR1);
	pthread_join(th, NULL);
	unblock(SIGUSR1);
	handle(SIGUSR1, SA_RESTART);
	th = later(&self);
	CHECK_ERR(sigwaitinfo(&w2, &si), EINTR);
	CHECK_EQ(count, 1);
	pthread_join(th, NULL);
}

TEST(queueinfo_checks_forged_codes)
{
	siginfo_t si = { .si_code = SI_USER };
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &si), EPERM);
	si.si_code = SI_TKILL;
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &si), EPERM);
	CHECK_ERR(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &si), EPERM);
	si.si_code = SI_QUEUE;
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, 0x7ffffff, SIGUSR1, &si), ESRCH);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, pid, 99, &si), EINVAL);
	CHECK_ERR(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, (void *)1), EFAULT);
	CHECK_OK(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &si));
	CHECK_KILLED(pid, SIGUSR1);
	/* to oneself anything goes */
	handle(SIGUSR1, 0);
	si.si_code = 17;
	CHECK_OK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &si));
	CHECK_EQ(last_code, 17);
}

TEST(kill_reaches_a_process_group)
{
	pid_t kids[3];
	int p[2];
	char c;
	pipe(p);
	for (int i = 0; i < 3; i++) {
		kids[i] = fork();
		if (kids[i] == 0) {
			setpgid(0, i == 0 ? 0 : kids[0]);
			write(p[1], "x", 1);
			for (;;)
				pause();
		}
		setpgid(kids[i], kids[0]);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_OK(kill(-kids[0], SIGTERM));
	for (int i = 0; i < 3; i++)
		CHECK_KILLED(kids[i], SIGTERM);
	CHECK_ERR(kill(-kids[0], 0), ESRCH);
}

static volatile int spin_stop;

static void stop_spin(int sig)
{
	(void)sig;
	spin_stop = 1;
}

TEST(signal_reaches_a_spinning_thread)
{
	struct sigaction sa = { .sa_handler = stop_spin };
	pthread_t self, th;
	sigaction(SIGUSR1, &sa, NULL);
	th = later(&self);
	while (!spin_stop)
		;
	pthread_join(th, NULL);
}

static void *wait_usr2(void *arg)
{
	sigset_t w = one(SIGUSR2);
	int sig;
	sigwait(&w, &sig);
	*(int *)arg = sig;
	return NULL;
}

TEST(process_signal_goes_to_a_thread_that_waits)
{
	pthread_t th;
	int got = 0;
	block(SIGUSR2);
	pthread_create(&th, NULL, wait_usr2, &got);
	usleep(20000);
	kill(getpid(), SIGUSR2);
	pthread_join(th, NULL);
	CHECK_EQ(got, SIGUSR2);
}

static void *block_all_and_sleep(void *arg)
{
	sigset_t all;
	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	usleep(200000);
	return NULL;
}

TEST(sigkill_ends_all_threads)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t th[4];
		for (int i = 0; i < 4; i++)
			pthread_create(&th[i], NULL, block_all_and_sleep, NULL);
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		for (;;)
			pause();
	}
	usleep(50000);
	CHECK_OK(kill(pid, SIGKILL));
	CHECK_KILLED(pid, SIGKILL);
}

TEST(nanosleep_resumes_after_stop_without_handler)
{
	/* SIGCONT without a handler must not end the sleep: restart_syscall(2). */
	pid_t pid = fork();
	if (pid == 0) {
		struct timespec ts = { .tv_nsec = 300000000 };
		_exit(nanosleep(&ts, NULL) == 0 ? 0 : 1);
	}
	usleep(50000);
	kill(pid, SIGSTOP);
	int st;
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	CHECK(WIFSTOPPED(st));
	kill(pid, SIGCONT);
	CHECK_CHILD(pid, 0);
}

TEST(sigpending_limit_applies_to_queued_signals)
{
	int sent = 0;
	struct {
		unsigned long cur, max;
	} rl = { 0 };
	CHECK_OK(syscall(SYS_getrlimit, 11 /* RLIMIT_SIGPENDING */, &rl));
	rl.cur = 8;
	CHECK_OK(syscall(SYS_setrlimit, 11, &rl));
	block(SIGRTMIN);
	while (sent < 1000 && sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = sent }) == 0)
		sent++;
	CHECK(sent <= 8);
	CHECK_EQ(errno, EAGAIN);
	/* kill(2) gets through all the same */
	CHECK_OK(kill(getpid(), SIGRTMIN));
}
T_MAIN

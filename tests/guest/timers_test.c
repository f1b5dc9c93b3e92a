/*
 * getitimer(2), setitimer(2), alarm(2), timer_create(2), timer_settime(2), timer_gettime(2), timer_getoverrun(2),
 * timer_delete(2).
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/guest/t.h"

static volatile sig_atomic_t hits, code, value, overrun, hit_tid;

static void on_timer(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	hits++;
	code = si->si_code;
	value = si->si_value.sival_int;
	overrun = si->si_overrun;
	hit_tid = gettid();
}

static void handle(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART };
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static void wait_hits(int n)
{
	struct timespec ts = { .tv_nsec = 2000000 };
	for (int i = 0; i < 2000 && hits < n; i++)
		nanosleep(&ts, NULL);
	CHECK(hits >= n);
}

TEST(alarm_counts_seconds)
{
	handle(SIGALRM);
	alarm(0); /* the harness has one running */
	CHECK_EQ(alarm(10), 0);
	CHECK_EQ(alarm(1), 10);
	struct timespec ts = { .tv_sec = 3 };
	CHECK_ERR(nanosleep(&ts, NULL), EINTR);
	CHECK_EQ(hits, 1);
	CHECK_EQ(code, SI_KERNEL);
	CHECK_EQ(alarm(0), 0);
}

TEST(real_interval_timer_repeats)
{
	struct itimerval it = { { 0, 20000 }, { 0, 20000 } }, old;
	handle(SIGALRM);
	CHECK_OK(setitimer(ITIMER_REAL, &it, NULL));
	wait_hits(5);
	CHECK_OK(getitimer(ITIMER_REAL, &old));
	CHECK_EQ(old.it_interval.tv_usec, 20000);
	CHECK(old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 20000);
	it = (struct itimerval){ 0 };
	CHECK_OK(setitimer(ITIMER_REAL, &it, &old));
	CHECK_EQ(old.it_interval.tv_usec, 20000);
	int n = hits;
	usleep(60000);
	CHECK_EQ(hits, n);
}

TEST(cpu_interval_timers)
{
	struct itimerval it = { { 0, 20000 }, { 0, 20000 } };
	handle(SIGVTALRM);
	CHECK_OK(setitimer(ITIMER_VIRTUAL, &it, NULL));
	usleep(100000);
	CHECK(hits <= 1); /* sleeping does not count */
	while (hits < 3)
		;
	it = (struct itimerval){ 0 };
	CHECK_OK(setitimer(ITIMER_VIRTUAL, &it, NULL));
	hits = 0;
	handle(SIGPROF);
	it = (struct itimerval){ { 0, 0 }, { 0, 30000 } };
	CHECK_OK(setitimer(ITIMER_PROF, &it, NULL));
	while (hits < 1)
		;
	CHECK_OK(getitimer(ITIMER_PROF, &it));
	CHECK_EQ(it.it_value.tv_usec + it.it_value.tv_sec, 0);
}

TEST(interval_timer_errors)
{
	struct itimerval it = { 0 };
	CHECK_ERR(syscall(SYS_setitimer, 9, &it, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_getitimer, 9, &it), EINVAL);
	CHECK_ERR(syscall(SYS_getitimer, ITIMER_REAL, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, (void *)1, NULL), EFAULT);
	it.it_value.tv_usec = 1000000;
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, &it, NULL), EINVAL);
	it.it_value = (struct timeval){ -1, 0 };
	CHECK_ERR(syscall(SYS_setitimer, ITIMER_REAL, &it, NULL), EINVAL);
}

TEST(interval_timer_is_not_inherited_by_fork_but_by_exec)
{
	struct itimerval it = { { 0, 0 }, { 5, 0 } }, got;
	CHECK_OK(setitimer(ITIMER_REAL, &it, NULL));
	pid_t pid = fork();
	if (pid == 0) {
		getitimer(ITIMER_REAL, &got);
		_exit((int)got.it_value.tv_sec);
	}
	CHECK_CHILD(pid, 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		it.it_value = (struct timeval){ 0, 300000 };
		setitimer(ITIMER_REAL, &it, NULL);
		execl("/bin/sleep", "sleep", "10", (char *)NULL);
		_exit(127);
	}
	CHECK_KILLED(pid, SIGALRM);
}

static timer_t make(clockid_t id, int notify, int sig, int val)
{
	struct sigevent ev = { .sigev_notify = notify, .sigev_signo = sig, .sigev_value.sival_int = val };
	timer_t t;
	CHECK_OK(timer_create(id, notify < 0 ? NULL : &ev, &t));
	return t;
}

TEST(posix_timer_fires_with_its_value)
{
	timer_t t = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 1, 77);
	struct itimerspec its = { .it_value.tv_nsec = 30000000 }, got;
	handle(SIGRTMIN + 1);
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	CHECK_OK(timer_gettime(t, &got));
	CHECK(got.it_value.tv_nsec > 0 && got.it_value.tv_nsec <= 30000000);
	wait_hits(1);
	CHECK_EQ(code, SI_TIMER);
	CHECK_EQ(value, 77);
	CHECK_EQ(overrun, 0);
	CHECK_OK(timer_gettime(t, &got));
	CHECK_EQ(got.it_value.tv_sec + got.it_value.tv_nsec, 0);
	CHECK_OK(timer_delete(t));
	CHECK_ERR(timer_delete(t), EINVAL);
}

TEST(default_event_is_sigalrm)
{
	struct itimerspec its = { .it_value.tv_nsec = 1000000 };
	int id = -1;
	handle(SIGALRM);
	CHECK_OK(syscall(SYS_timer_create, CLOCK_REALTIME, NULL, &id));
	CHECK_OK(syscall(SYS_timer_settime, id, 0, &its, NULL));
	wait_hits(1);
	CHECK_EQ(code, SI_TIMER);
	CHECK_EQ(value, id);
}

TEST(overruns_are_counted)
{
	timer_t t = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 0);
	struct itimerspec its = { { 0, 1000000 }, { 0, 1000000 } };
	sigset_t s;
	handle(SIGUSR1);
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigprocmask(SIG_BLOCK, &s, NULL);
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	usleep(100000);
	sigprocmask(SIG_UNBLOCK, &s, NULL);
	its = (struct itimerspec){ 0 };
	CHECK(hits >= 1);
	CHECK(timer_getoverrun(t) >= 0);
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	usleep(5000);
	int n = hits;
	usleep(20000);
	CHECK_EQ(hits, n);
	sigprocmask(SIG_BLOCK, &s, NULL);
	its = (struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } };
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	usleep(50000);
	siginfo_t si;
	CHECK_EQ(sigwaitinfo(&s, &si), SIGUSR1);
	CHECK(si.si_overrun >= 20);
	CHECK(timer_getoverrun(t) >= 20);
}

TEST(absolute_time)
{
	timer_t t = make(CLOCK_REALTIME, SIGEV_SIGNAL, SIGUSR1, 0);
	struct itimerspec its = { 0 };
	handle(SIGUSR1);
	clock_gettime(CLOCK_REALTIME, &its.it_value);
	its.it_value.tv_nsec += 30000000;
	if (its.it_value.tv_nsec >= 1000000000) {
		its.it_value.tv_nsec -= 1000000000;
		its.it_value.tv_sec++;
	}
	CHECK_OK(timer_settime(t, TIMER_ABSTIME, &its, NULL));
	wait_hits(1);
	its.it_value = (struct timespec){ 1, 0 }; /* long ago: at once */
	CHECK_OK(timer_settime(t, TIMER_ABSTIME, &its, NULL));
	wait_hits(2);
}

TEST(overruns_since_an_absolute_time_long_ago)
{
	timer_t t = make(CLOCK_REALTIME, SIGEV_SIGNAL, SIGUSR1, 0);
	struct itimerspec its = { .it_interval.tv_nsec = 1 };
	sigset_t s;
	siginfo_t si;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigprocmask(SIG_BLOCK, &s, NULL);
	clock_gettime(CLOCK_REALTIME, &its.it_value);
	its.it_value.tv_sec -= 5; /* more nanoseconds than an int holds */
	CHECK_OK(timer_settime(t, TIMER_ABSTIME, &its, NULL));
	CHECK_EQ(sigwaitinfo(&s, &si), SIGUSR1);
	CHECK_EQ(timer_getoverrun(t), INT32_MAX);
	CHECK_OK(timer_delete(t));
}

TEST(process_cpu_timer)
{
	timer_t t = make(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, SIGUSR1, 0);
	struct itimerspec its = { .it_value.tv_nsec = 50000000 };
	handle(SIGUSR1);
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	usleep(150000);
	CHECK_EQ(hits, 0);
	while (!hits)
		;
}

TEST(sigev_none_only_counts)
{
	timer_t t = make(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0);
	struct itimerspec its = { .it_value.tv_nsec = 20000000 }, got;
	CHECK_OK(timer_settime(t, 0, &its, NULL));
	CHECK_OK(timer_gettime(t, &got));
	CHECK(got.it_value.tv_nsec > 0);
	usleep(40000);
	CHECK_OK(timer_gettime(t, &got));
	CHECK_EQ(got.it_value.tv_nsec, 0);
}

static void *thread_timer(void *arg)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec its = { .it_value.tv_nsec = 20000000 };
	timer_t t;
	ev._sigev_un._tid = gettid();
	*(int *)arg = gettid();
	if (timer_create(CLOCK_MONOTONIC, &ev, &t) || timer_settime(t, 0, &its, NULL))
		return NULL;
	wait_hits(1);
	return NULL;
}

TEST(timer_for_a_thread)
{
	pthread_t th;
	int tid = 0;
	handle(SIGUSR1);
	pthread_create(&th, NULL, thread_timer, &tid);
	pthread_join(th, NULL);
	CHECK_EQ(hits, 1);
	CHECK_EQ(hit_tid, tid);
}

TEST(posix_timer_errors)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99 };
	struct itimerspec its = { .it_value.tv_nsec = -1 };
	int id;
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	ev.sigev_notify = 77;
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = SIGUSR1;
	ev._sigev_un._tid = getppid();
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
	CHECK_ERR(syscall(SYS_timer_create, 99, NULL, &id), EINVAL);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC_COARSE, NULL, &id), EOPNOTSUPP);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, (void *)1, &id), EFAULT);
	CHECK_ERR(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_timer_settime, 12345, 0, &its, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_gettime, 12345, &its), EINVAL);
	CHECK_ERR(syscall(SYS_timer_getoverrun, 12345), EINVAL);
	CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, &id));
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, &its, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, NULL, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_timer_settime, id, 0, (void *)1, NULL), EFAULT);
}

TEST(timers_end_with_fork_and_exec)
{
	timer_t t = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 0);
	struct itimerspec got;
	pid_t pid = fork();
	if (pid == 0)
		_exit(timer_gettime(t, &got) == -1 && errno == EINVAL ? 0 : 1);
	CHECK_CHILD(pid, 0);
}
T_MAIN

/*
 * clock_gettime(2), clock_getres(2), clock_settime(2), gettimeofday(2), settimeofday(2), time(2), nanosleep(2),
 * clock_nanosleep(2). Raw calls, so that the vDSO does not answer.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "tests/guest/t.h"

static long ms_since(const struct timespec *a)
{
	struct timespec b;
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a->tv_sec) * 1000 + (b.tv_nsec - a->tv_nsec) / 1000000;
}

TEST(every_clock_reads)
{
	static const int ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 11 };
	struct timespec ts, res;
	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		CHECK_OK(syscall(SYS_clock_gettime, ids[i], &ts));
		CHECK(ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000);
		CHECK_OK(syscall(SYS_clock_getres, ids[i], &res));
		CHECK_OK(syscall(SYS_clock_getres, ids[i], NULL));
	}
	CHECK_ERR(syscall(SYS_clock_gettime, 10, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_gettime, 99, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_getres, 99, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_gettime, 0, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_clock_getres, 0, (void *)1), EFAULT);
}

TEST(raw_call_and_vdso_agree)
{
	struct timespec a, b, c;
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK_OK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &b));
	clock_gettime(CLOCK_MONOTONIC, &c);
	CHECK(a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec <= b.tv_nsec));
	CHECK(b.tv_sec < c.tv_sec || (b.tv_sec == c.tv_sec && b.tv_nsec <= c.tv_nsec));
}

TEST(wall_clocks_agree)
{
	struct timespec ts;
	struct timeval tv;
	struct timezone tz;
	long t;
	CHECK_OK(syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts));
	CHECK_OK(syscall(SYS_gettimeofday, &tv, &tz));
	CHECK(tv.tv_sec - ts.tv_sec <= 1);
	long now = syscall(SYS_time, &t);
	CHECK_EQ(now, t);
	CHECK(now - ts.tv_sec <= 1);
	CHECK_OK(syscall(SYS_gettimeofday, NULL, NULL));
	CHECK_ERR(syscall(SYS_gettimeofday, (void *)1, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_time, (void *)1), EFAULT);
}

TEST(setting_the_clock_is_checked)
{
	struct timespec ts = { .tv_nsec = 2000000000 };
	struct timeval tv = { .tv_usec = 2000000 };
	CHECK_ERR(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_clock_settime, CLOCK_REALTIME, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_clock_settime, CLOCK_REALTIME, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_settimeofday, &tv, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_settimeofday, (void *)1, NULL), EFAULT);
}

TEST(nanosleep_sleeps)
{
	struct timespec start, ts = { .tv_nsec = 50000000 }, rem = { 7, 7 };
	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK_OK(syscall(SYS_nanosleep, &ts, &rem));
	CHECK(ms_since(&start) >= 50);
	CHECK(ms_since(&start) < 2000);
	CHECK_EQ(rem.tv_sec, 7); /* only written when interrupted */
	ts = (struct timespec){ 0, 1000000000 };
	CHECK_ERR(syscall(SYS_nanosleep, &ts, NULL), EINVAL);
	ts = (struct timespec){ -1, 0 };
	CHECK_ERR(syscall(SYS_nanosleep, &ts, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_nanosleep, (void *)1, NULL), EFAULT);
	ts = (struct timespec){ 0, 0 };
	CHECK_OK(syscall(SYS_nanosleep, &ts, NULL));
}

static void nothing(int sig)
{
	(void)sig;
}

TEST(interrupted_nanosleep_tells_the_rest)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct timespec ts = { .tv_sec = 2 }, rem = { 0, 0 };
	sigaction(SIGALRM, &sa, NULL);
	ualarm(50000, 0);
	CHECK_ERR(nanosleep(&ts, &rem), EINTR);
	long ms = rem.tv_sec * 1000 + rem.tv_nsec / 1000000;
	CHECK(ms > 500 && ms < 1960);
}

TEST(clock_nanosleep_absolute)
{
	static const int ids[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI };
	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct timespec t, now;
		clock_gettime(ids[i], &t);
		t.tv_nsec += 40000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_sec++;
			t.tv_nsec -= 1000000000;
		}
		CHECK_OK(syscall(SYS_clock_nanosleep, ids[i], TIMER_ABSTIME, &t, NULL));
		clock_gettime(ids[i], &now);
		CHECK(now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec));
	}
	struct timespec past = { 1, 0 };
	CHECK_OK(syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL));
}

TEST(clock_nanosleep_errors)
{
	struct timespec ts = { 0, 1 }, bad = { 0, -1 };
	CHECK_ERR(syscall(SYS_clock_nanosleep, 99, 0, &ts, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (void *)1, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_COARSE, 0, &ts, NULL), EOPNOTSUPP);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &ts, NULL), EOPNOTSUPP);
	CHECK_ERR(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &ts, NULL), EOPNOTSUPP);
}

static long cpu_ms(clockid_t id)
{
	struct timespec ts;
	CHECK_OK(syscall(SYS_clock_gettime, id, &ts));
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void burn(long ms)
{
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (ms_since(&start) < ms)
		;
}

TEST(cpu_clocks_count_work_not_sleep)
{
	long a = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
	usleep(100000);
	long b = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(b - a < 50);
	burn(200);
	long c = cpu_ms(CLOCK_PROCESS_CPUTIME_ID), d = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
	CHECK(c - b >= 50 && c - b <= 400);
	CHECK(d >= 50);
}

TEST(cpu_clock_of_a_child)
{
	clockid_t id;
	int p[2];
	char c;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		burn(150);
		write(p[1], "x", 1);
		pause();
	}
	CHECK_EQ(clock_getcpuclockid(pid, &id), 0);
	read(p[0], &c, 1);
	CHECK(cpu_ms(id) >= 30);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
	struct timespec ts;
	CHECK_ERR(syscall(SYS_clock_gettime, id, &ts), EINVAL);
}

static void *burn_thread(void *arg)
{
	burn(400);
	return arg;
}

TEST(sleep_on_the_process_cpu_clock)
{
	struct timespec ts = { .tv_nsec = 50000000 };
	pthread_t th;
	long a = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
	pthread_create(&th, NULL, burn_thread, NULL);
	CHECK_OK(syscall(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &ts, NULL));
	CHECK(cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - a >= 45);
	pthread_join(th, NULL);
}
T_MAIN

/* futex(2). */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/guest/t.h"

static uint32_t word, word2;

static long futex(uint32_t *a, int op, uint32_t val, const void *timeout, uint32_t *b, uint32_t val3)
{
	return syscall(SYS_futex, a, op, val, timeout, b, val3);
}

static void nap(int ms)
{
	const struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };
	nanosleep(&ts, NULL);
}

TEST(wait_checks_the_value)
{
	word = 1;
	CHECK_ERR(futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0), EAGAIN);
	CHECK_ERR(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), EAGAIN);
}

TEST(bad_arguments)
{
	const struct timespec bad = { 0, 1000000000 };
	CHECK_ERR(futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex((uint32_t *)8, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
	CHECK_ERR(futex(&word, FUTEX_WAIT, 0, &bad, NULL, 0), EINVAL);
	CHECK_ERR(futex(&word, FUTEX_WAIT, 0, (void *)8, NULL, 0), EFAULT);
	CHECK_ERR(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex(&word, 0x7f, 0, NULL, NULL, 0), ENOSYS);
}

TEST(wait_times_out)
{
	const struct timespec ts = { 0, 20000000 };
	struct timespec a, b;
	word = 0;
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK_ERR(futex(&word, FUTEX_WAIT, 0, &ts, NULL, 0), ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec >= 20000000);
	CHECK_ERR(futex(&word, FUTEX_WAIT_BITSET, 0, &a, NULL, 1), ETIMEDOUT);
	clock_gettime(CLOCK_REALTIME, &a);
	CHECK_ERR(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &a, NULL, 1), ETIMEDOUT);
}

static void *waiter(void *arg)
{
	return (void *)futex(arg, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

TEST(wake_counts)
{
	pthread_t t[3];
	long woken = 0;
	word = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waiter, &word), 0);
	while (woken < 3) {
		woken += futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		nap(1);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 0);
}

TEST(requeue_moves_waiters)
{
	pthread_t t[3];
	long n = 0;
	word = word2 = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waiter, &word), 0);
	CHECK_ERR(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)3, &word2, 1), EAGAIN);
	while (n < 3) {
		n += futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)3, &word2, 0);
		nap(1);
	}
	CHECK_EQ(futex(&word2, FUTEX_WAKE_PRIVATE, 3, NULL, NULL, 0), 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

TEST(shared_between_processes)
{
	uint32_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		while (*(volatile uint32_t *)p == 0)
			futex(p, FUTEX_WAIT, 0, NULL, NULL, 0);
		_exit(5);
	}
	nap(20);
	*(volatile uint32_t *)p = 1;
	futex(p, FUTEX_WAKE, 1, NULL, NULL, 0);
	CHECK_CHILD(pid, 5);
}

static void on_signal(int sig)
{
	(void)sig;
}

TEST(signal_interrupts_wait)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	pid_t me = getpid(), pid = fork();
	if (pid == 0) {
		nap(50);
		kill(me, SIGUSR1);
		_exit(0);
	}
	word = 0;
	CHECK_ERR(futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0), EINTR);
	CHECK_CHILD(pid, 0);
}

TEST(wake_op_changes_the_second_word)
{
	word = 0;
	word2 = 5;
	CHECK_EQ(futex(&word, FUTEX_WAKE_OP, 1, (void *)1, &word2, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5)), 0);
	CHECK_EQ(word2, 8);
}

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *hammer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&mu);
		counter++;
		pthread_mutex_unlock(&mu);
	}
	return NULL;
}

TEST(mutex_under_contention)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, hammer, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(counter, 160000);
}

TEST(robust_mutex_of_a_dead_thread)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_mutex_init(m, &attr), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(m);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), 0);
}

T_MAIN

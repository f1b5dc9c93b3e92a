/* poll(2), ppoll(2), select(2), pselect6(2). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */
static int p[2];
static volatile int hits;

static void handler(int sig)
{
	hits++;
}

static void catch(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static long ms_since(const struct timespec *a)
{
	struct timespec b;
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a->tv_sec) * 1000 + (b.tv_nsec - a->tv_nsec) / 1000000;
}

static pid_t write_later(int fd, int ms)
{
	pid_t pid = fork();
	if (pid == 0) {
		usleep((unsigned)ms * 1000);
		CHECK_EQ(write(fd, "w", 1), 1);
		_exit(0);
	}
	return pid;
}

TEST(poll_results)
{
	struct pollfd f[12];
	struct timespec t;
	CHECK_OK(pipe(p));
	f[0] = (struct pollfd){ p[0], POLLIN, 0x7f };
	f[1] = (struct pollfd){ p[1], POLLOUT, 0 };
	f[2] = (struct pollfd){ -5, POLLIN, 0x7f };
	f[3] = (struct pollfd){ 99, POLLIN, 0 };
	CHECK_EQ(poll(f, 4, -1), 2);
	CHECK_EQ(f[0].revents, 0);
	CHECK_EQ(f[1].revents, POLLOUT);
	CHECK_EQ(f[2].revents, 0);
	CHECK_EQ(f[3].revents, POLLNVAL);
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(poll(f, 1, 60), 0);
	CHECK(ms_since(&t) >= 60);
	CHECK_EQ(poll(NULL, 0, 30), 0);
	CHECK_EQ(poll(f, 1, 0), 0);
	struct pollfd *b = bad;
	CHECK_ERR(poll(b, 1, 0), EFAULT);
	struct rlimit lim = { 10, 10 };
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &lim));
	CHECK_ERR(poll(f, 11, 0), EINVAL);
}

TEST(poll_wakes)
{
	CHECK_OK(pipe(p));
	struct pollfd f = { p[0], POLLIN, 0 };
	pid_t pid = write_later(p[1], 100);
	CHECK_EQ(poll(&f, 1, 5000), 1);
	CHECK_EQ(f.revents, POLLIN);
	CHECK_CHILD(pid, 0);
	/* Several queues at once. */
	int q[2];
	CHECK_OK(pipe(q));
	struct pollfd g[3] = { { q[0], POLLIN, 0 }, { q[0], POLLRDNORM, 0 }, { p[1], POLLERR, 0 } };
	pid = write_later(q[1], 50);
	CHECK_EQ(poll(g, 3, 5000), 2);
	CHECK_CHILD(pid, 0);
}

TEST(poll_of_plain_files)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct pollfd f = { fd, POLLIN | POLLOUT | POLLPRI, 0 };
	CHECK_OK(fd);
	CHECK_EQ(poll(&f, 1, -1), 1);
	CHECK_EQ(f.revents, POLLIN | POLLOUT);
}

TEST(many_descriptors)
{
	struct pollfd f[200];
	CHECK_OK(pipe(p));
	for (int i = 0; i < 200; i++)
		f[i] = (struct pollfd){ p[0], POLLIN, 0 };
	pid_t pid = write_later(p[1], 50);
	CHECK_EQ(poll(f, 200, 5000), 200);
	CHECK_CHILD(pid, 0);
}

TEST(poll_and_signals)
{
	struct timespec t;
	CHECK_OK(pipe(p));
	struct pollfd f = { p[0], POLLIN, 0 };
	catch (SIGALRM, SA_RESTART);
	alarm(1);
	/* Never restarted after a handler. */
	CHECK_ERR(poll(&f, 1, -1), EINTR);
	CHECK_EQ(hits, 1);
	/* Without a handler it goes on to its first deadline. */
	signal(SIGCHLD, SIG_DFL);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(100000);
		kill(getppid(), SIGSTOP);
		usleep(100000);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(poll(&f, 1, 500), 0);
	CHECK(ms_since(&t) >= 500);
	CHECK(ms_since(&t) < 2000);
	CHECK_CHILD(pid, 0);
}

TEST(ppoll_mask_and_time)
{
	struct timespec ts = { 5, 0 };
	sigset_t none, block;
	CHECK_OK(pipe(p));
	struct pollfd f = { p[0], POLLIN, 0 };
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	catch (SIGUSR1, 0);
	CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
	raise(SIGUSR1);
	CHECK_EQ(hits, 0);
	CHECK_ERR(ppoll(&f, 1, &ts, &none), EINTR);
	CHECK_EQ(hits, 1);
	sigset_t after;
	CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &after));
	CHECK_EQ(sigismember(&after, SIGUSR1), 1);
	/* The kernel's call tells what is left; the C library hides it. */
	ts = (struct timespec){ 5, 0 };
	pid_t pid = write_later(p[1], 100);
	CHECK_EQ(syscall(SYS_ppoll, &f, 1, &ts, NULL, 8), 1);
	CHECK(ts.tv_sec == 4 && ts.tv_nsec > 0);
	CHECK_CHILD(pid, 0);
	ts = (struct timespec){ 0, 20000000 };
	CHECK_EQ(read(p[0], &pid, 1), 1);
	CHECK_EQ(syscall(SYS_ppoll, &f, 1, &ts, NULL, 8), 0);
	CHECK_EQ(ts.tv_sec, 0);
	CHECK_EQ(ts.tv_nsec, 0);
	ts.tv_nsec = 1000000000;
	CHECK_ERR(syscall(SYS_ppoll, &f, 1, &ts, NULL, 8), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &f, 1, NULL, &none, 4), EINVAL);
	CHECK_ERR(syscall(SYS_ppoll, &f, 1, bad, NULL, 8), EFAULT);
}

TEST(select_sets)
{
	fd_set r, w, x;
	struct timeval tv = { 2, 0 };
	CHECK_OK(pipe(p));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(p[0], &r);
	FD_SET(p[1], &w);
	FD_SET(p[0], &x);
	CHECK_EQ(select(10, &r, &w, &x, NULL), 1);
	CHECK(!FD_ISSET(p[0], &r));
	CHECK(FD_ISSET(p[1], &w));
	CHECK(!FD_ISSET(p[0], &x));
	FD_SET(p[0], &r);
	CHECK_EQ(write(p[1], "a", 1), 1);
	CHECK_EQ(select(p[1] + 1, &r, &w, NULL, &tv), 2);
	CHECK(tv.tv_sec == 1 || tv.tv_usec == 0);
	/* End of file is readable; a broken pipe is writable. */
	CHECK_EQ(read(p[0], &tv, 1), 1);
	close(p[1]);
	CHECK_EQ(select(p[0] + 1, &r, NULL, NULL, NULL), 1);
	FD_SET(50, &r);
	CHECK_ERR(select(51, &r, NULL, NULL, NULL), EBADF);
	CHECK_ERR(select(-1, &r, NULL, NULL, NULL), EINVAL);
	tv = (struct timeval){ -1, 0 };
	CHECK_ERR(select(0, NULL, NULL, NULL, &tv), EINVAL);
	/* Numbers that the table has no room for are not looked at. */
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	FD_SET(900, &r);
	CHECK_EQ(select(1024, &r, NULL, NULL, NULL), 1);
}

TEST(select_time)
{
	struct timespec t;
	struct timeval tv = { 0, 50000 };
	fd_set r;
	CHECK_OK(pipe(p));
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(select(p[0] + 1, &r, NULL, NULL, &tv), 0);
	CHECK(ms_since(&t) >= 50);
	CHECK_EQ(tv.tv_sec, 0);
	CHECK_EQ(tv.tv_usec, 0);
	CHECK(!FD_ISSET(p[0], &r));
	/* Microseconds above a second carry over. */
	tv = (struct timeval){ 0, 1100000 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(syscall(SYS_select, 0, NULL, NULL, NULL, &tv), 0);
	CHECK(ms_since(&t) >= 1100);
	FD_SET(p[0], &r);
	tv = (struct timeval){ 3, 0 };
	catch (SIGALRM, SA_RESTART);
	alarm(1);
	CHECK_ERR(select(p[0] + 1, &r, NULL, NULL, &tv), EINTR);
	CHECK(tv.tv_sec < 3 && tv.tv_sec >= 1);
	/* An interrupted call leaves the sets alone. */
	CHECK(FD_ISSET(p[0], &r));
}

TEST(pselect_mask)
{
	sigset_t none, block;
	fd_set r;
	CHECK_OK(pipe(p));
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	catch (SIGUSR1, SA_RESTART);
	CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
	raise(SIGUSR1);
	struct timespec ts = { 0, 10000000 };
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	CHECK_EQ(pselect(p[0] + 1, &r, NULL, NULL, &ts, NULL), 0);
	CHECK_EQ(hits, 0);
	FD_SET(p[0], &r);
	CHECK_ERR(pselect(p[0] + 1, &r, NULL, NULL, NULL, &none), EINTR);
	CHECK_EQ(hits, 1);
	struct {
		void *set;
		size_t size;
	} arg = { &none, 4 };
	CHECK_ERR(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, &arg), EINVAL);
	CHECK_ERR(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, bad), EFAULT);
}

static void *close_later(void *arg)
{
	usleep(50000);
	close(p[1]);
	return NULL;
}

TEST(hang_up_by_another_thread)
{
	pthread_t t;
	CHECK_OK(pipe(p));
	struct pollfd f = { p[0], 0, 0 };
	CHECK_EQ(pthread_create(&t, NULL, close_later, NULL), 0);
	CHECK_EQ(poll(&f, 1, 5000), 1);
	CHECK_EQ(f.revents, POLLHUP);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

TEST(sticky_timeouts_are_not_changed)
{
	struct timeval tv = { 0, 2000 };
	CHECK_OK(personality(PER_LINUX | STICKY_TIMEOUTS));
	CHECK_EQ(select(0, NULL, NULL, NULL, &tv), 0);
	CHECK_EQ(tv.tv_usec, 2000);
	CHECK_OK(personality(PER_LINUX));
	CHECK_EQ(select(0, NULL, NULL, NULL, &tv), 0);
	CHECK_EQ(tv.tv_usec, 0);
}

T_MAIN

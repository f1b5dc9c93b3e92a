/* epoll_create(2), epoll_create1(2), epoll_ctl(2), epoll_wait(2), epoll_pwait(2), epoll_pwait2(2). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */

static int ep, p[2];
static struct epoll_event ev[32];
static char buf[100000];

static int ctl(int set, int op, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u64 = 0x1234567800000000ull | (unsigned)fd };
	return epoll_ctl(set, op, fd, &e);
}

static void begin(void)
{
	ep = epoll_create1(EPOLL_CLOEXEC);
	CHECK_OK(ep);
	CHECK_OK(pipe2(p, O_NONBLOCK));
}

static int now(void)
{
	return epoll_wait(ep, ev, 32, 0);
}

static void put_byte(void)
{
	CHECK_EQ(write(p[1], "x", 1), 1);
}

TEST(arguments)
{
	begin();
	CHECK_EQ(fcntl(ep, F_GETFD), FD_CLOEXEC);
	CHECK_ERR(epoll_create1(1), EINVAL);
	CHECK_ERR(epoll_create(0), EINVAL);
	CHECK_OK(epoll_create(1));
	CHECK_ERR(ctl(99, EPOLL_CTL_ADD, p[0], EPOLLIN), EBADF);
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, 99, EPOLLIN), EBADF);
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, ep, EPOLLIN), EINVAL);
	CHECK_ERR(ctl(p[0], EPOLL_CTL_ADD, p[1], EPOLLIN), EINVAL);
	CHECK_ERR(ctl(ep, 9, p[0], EPOLLIN), EINVAL);
	CHECK_ERR(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN), ENOENT);
	CHECK_ERR(ctl(ep, EPOLL_CTL_DEL, p[0], EPOLLIN), ENOENT);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN), EEXIST);
	CHECK_ERR(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], bad), EFAULT);
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL));
	CHECK_ERR(epoll_wait(ep, ev, 0, 0), EINVAL);
	int minus = -1;
	CHECK_ERR(syscall(SYS_epoll_wait, ep, ev, minus, 0), EINVAL);
	CHECK_ERR(epoll_wait(p[0], ev, 1, 0), EINVAL);
	CHECK_ERR(epoll_wait(99, ev, 1, 0), EBADF);
	int f = open("/proc/self/exe", O_RDONLY);
	CHECK_OK(f);
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, f, EPOLLIN), EPERM);
	CHECK_ERR(read(ep, buf, 1), EINVAL);
}

TEST(level_triggered)
{
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT));
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLOUT);
	CHECK_EQ(ev[0].data.u64, 0x1234567800000000ull | (unsigned)p[1]);
	put_byte();
	CHECK_EQ(now(), 2);
	CHECK_EQ(now(), 2);
	CHECK_EQ(epoll_wait(ep, ev, 1, 0), 1);
	int first = (int)ev[0].data.u32;
	CHECK_EQ(epoll_wait(ep, ev, 1, 0), 1);
	CHECK((int)ev[0].data.u32 != first);
	CHECK_EQ(read(p[0], buf, 10), 1);
	CHECK_EQ(now(), 1);
	close(p[1]);
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLHUP);
}

TEST(edge_triggered)
{
	begin();
	put_byte();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLET));
	CHECK_EQ(now(), 1);
	CHECK_EQ(now(), 0);
	put_byte();
	CHECK_EQ(now(), 1);
	CHECK_EQ(now(), 0);
	CHECK_OK(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET));
	CHECK_EQ(now(), 1);
	CHECK_EQ(read(p[0], buf, 1), 1);
	CHECK_EQ(now(), 0);
	close(p[1]);
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLIN | EPOLLHUP);
	CHECK_EQ(now(), 0);
}

TEST(edge_of_a_writer)
{
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET));
	CHECK_EQ(now(), 1);
	CHECK_EQ(write(p[1], buf, sizeof(buf)), 65536);
	CHECK_EQ(now(), 0);
	CHECK_EQ(read(p[0], buf, 4095), 4095);
	CHECK_EQ(now(), 0);
	CHECK_EQ(read(p[0], buf, 1), 1);
	CHECK_EQ(now(), 1);
	CHECK_EQ(now(), 0);
}

TEST(one_shot)
{
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLONESHOT));
	put_byte();
	CHECK_EQ(now(), 1);
	put_byte();
	CHECK_EQ(now(), 0);
	CHECK_OK(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT));
	CHECK_EQ(now(), 1);
	close(p[1]);
	CHECK_EQ(now(), 0);
}

TEST(duplicates)
{
	begin();
	put_byte();
	int d = dup(p[0]);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, d, EPOLLIN | EPOLLET));
	CHECK_EQ(now(), 2);
	CHECK_EQ(now(), 1);
	/* The file is open by the other number: the closed one goes on reporting. */
	close(p[0]);
	CHECK_EQ(now(), 1);
	CHECK_EQ((int)ev[0].data.u32, p[0]);
	CHECK_ERR(ctl(ep, EPOLL_CTL_DEL, p[0], 0), EBADF);
	close(d);
	CHECK_EQ(now(), 0);
}

TEST(edge_across_fork)
{
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLET));
	pid_t pid = fork();
	if (pid == 0) {
		/* The set is shared: the child takes the edge. */
		put_byte();
		CHECK_EQ(epoll_wait(ep, ev, 1, 1000), 1);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(now(), 0);
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	put_byte();
	CHECK_EQ(now(), 1);
}

TEST(nesting)
{
	int set[6];
	begin();
	for (int i = 0; i < 6; i++)
		set[i] = epoll_create1(0);
	for (int i = 0; i < 4; i++)
		CHECK_OK(ctl(set[i], EPOLL_CTL_ADD, set[i + 1], EPOLLIN));
	CHECK_ERR(ctl(set[4], EPOLL_CTL_ADD, set[5], EPOLLIN), ELOOP);
	CHECK_ERR(ctl(set[2], EPOLL_CTL_ADD, set[0], EPOLLIN), ELOOP);
	CHECK_OK(ctl(set[4], EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_EQ(epoll_wait(set[0], ev, 1, 0), 0);
	put_byte();
	CHECK_EQ(epoll_wait(set[0], ev, 1, 0), 1);
	CHECK_EQ(epoll_wait(set[0], ev, 1, 0), 1);
	struct pollfd f = { set[0], POLLIN, 0 };
	CHECK_EQ(poll(&f, 1, 0), 1);
	CHECK_EQ(read(p[0], buf, 1), 1);
	CHECK_EQ(poll(&f, 1, 0), 0);
	CHECK_EQ(epoll_wait(set[0], ev, 1, 0), 0);
}

TEST(nested_edge)
{
	begin();
	int outer = epoll_create1(0);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_OK(ctl(outer, EPOLL_CTL_ADD, ep, EPOLLIN | EPOLLET));
	put_byte();
	CHECK_EQ(epoll_wait(outer, ev, 1, 0), 1);
	CHECK_EQ(epoll_wait(outer, ev, 1, 0), 0);
	CHECK_EQ(now(), 1);
	CHECK_EQ(epoll_wait(outer, ev, 1, 0), 0);
	put_byte();
	CHECK_EQ(epoll_wait(outer, ev, 1, 0), 1);
}

TEST(exclusive)
{
	begin();
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT), EINVAL);
	CHECK_ERR(ctl(ep, EPOLL_CTL_ADD, epoll_create1(0), EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE));
	CHECK_ERR(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN), EINVAL);
	put_byte();
	CHECK_EQ(now(), 1);
}

static void *wait_thread(void *arg)
{
	struct epoll_event e;
	return (void *)(long)epoll_wait(ep, &e, 1, 500);
}

TEST(one_edge_one_thread)
{
	pthread_t t[4];
	void *r;
	long woken = 0;
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLET));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_thread, NULL), 0);
	usleep(100000);
	put_byte();
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(t[i], &r), 0);
		woken += (long)r;
	}
	CHECK_EQ(woken, 1);
}

static void *add_thread(void *arg)
{
	usleep(100000);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT));
	return NULL;
}

TEST(added_while_waiting)
{
	pthread_t t;
	begin();
	CHECK_EQ(pthread_create(&t, NULL, add_thread, NULL), 0);
	CHECK_EQ(epoll_wait(ep, ev, 4, 5000), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static volatile int hits;
static void handler(int sig)
{
	hits++;
}

TEST(signals)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigset_t none, block;
	begin();
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	alarm(1);
	/* Not restarted, whatever SA_RESTART says. */
	CHECK_ERR(epoll_wait(ep, ev, 1, -1), EINTR);
	CHECK_EQ(hits, 1);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
	raise(SIGALRM);
	CHECK_EQ(epoll_pwait(ep, ev, 1, 50, NULL), 0);
	CHECK_EQ(hits, 1);
	CHECK_ERR(epoll_pwait(ep, ev, 1, -1, &none), EINTR);
	CHECK_EQ(hits, 2);
	sigset_t after;
	CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &after));
	CHECK_EQ(sigismember(&after, SIGALRM), 1);
	/* Events before signals. */
	raise(SIGALRM);
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT));
	CHECK_EQ(epoll_pwait(ep, ev, 1, -1, &none), 1);
	CHECK_EQ(hits, 2);
	CHECK_ERR(syscall(SYS_epoll_pwait, ep, ev, 1, 0, &none, 4), EINVAL);
}

TEST(pwait2)
{
	struct timespec ts = { 0, 30000000 }, a, b;
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &a));
	CHECK_EQ(syscall(SYS_epoll_pwait2, ep, ev, 1, &ts, NULL, 8), 0);
	CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &b));
	CHECK((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= 30000000);
	ts.tv_nsec = 1000000000;
	CHECK_ERR(syscall(SYS_epoll_pwait2, ep, ev, 1, &ts, NULL, 8), EINVAL);
	put_byte();
	CHECK_EQ(syscall(SYS_epoll_pwait2, ep, ev, 1, NULL, NULL, 8), 1);
}

TEST(sockets)
{
	int s[2];
	begin();
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, s[0], EPOLLIN | EPOLLRDHUP | EPOLLET));
	CHECK_EQ(now(), 0);
	CHECK_EQ(write(s[1], "a", 1), 1);
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLIN);
	CHECK_OK(shutdown(s[1], SHUT_WR));
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLIN | EPOLLRDHUP);
	close(s[1]);
	CHECK_EQ(now(), 1);
	CHECK_EQ(ev[0].events, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
}

TEST(result_buffer)
{
	begin();
	CHECK_OK(ctl(ep, EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET));
	CHECK_ERR(epoll_wait(ep, bad, 1, 0), EFAULT);
	/* The event is not lost by that. */
	CHECK_EQ(now(), 1);
}

T_MAIN

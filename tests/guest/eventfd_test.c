/* eventfd(2), eventfd2(2). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */

static void add(int fd, uint64_t n)
{
	CHECK_EQ(write(fd, &n, 8), 8);
}

static uint64_t take(int fd)
{
	uint64_t n = 0;
	CHECK_EQ(read(fd, &n, 8), 8);
	return n;
}

TEST(counter)
{
	char buf[32];
	uint64_t n;
	int fd = eventfd(5, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK_OK(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_EQ(take(fd), 5);
	CHECK_ERR(read(fd, &n, 8), EAGAIN);
	CHECK_ERR(read(fd, &n, 7), EINVAL);
	CHECK_ERR(write(fd, &n, 7), EINVAL);
	n = UINT64_MAX;
	CHECK_ERR(write(fd, &n, 8), EINVAL);
	add(fd, UINT64_MAX - 1);
	n = 1;
	CHECK_ERR(write(fd, &n, 8), EAGAIN);
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLIN);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 8);
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLOUT);
	CHECK_ERR(read(fd, bad, 8), EAGAIN);
	add(fd, 1);
	CHECK_ERR(read(fd, bad, 8), EFAULT);
	CHECK_ERR(eventfd(0, 0x10), EINVAL);
	int old = (int)syscall(SYS_eventfd, 3);
	CHECK_OK(old);
	CHECK_EQ(take(old), 3);
}

TEST(semaphore)
{
	uint64_t n;
	int fd = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
	CHECK_EQ(take(fd), 1);
	CHECK_EQ(take(fd), 1);
	CHECK_ERR(read(fd, &n, 8), EAGAIN);
}

static void *sleeper(void *arg)
{
	return (void *)take(*(int *)arg);
}

TEST(wakes_sleepers)
{
	pthread_t t[6];
	int fd = eventfd(0, EFD_SEMAPHORE);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sleeper, &fd), 0);
	usleep(50000);
	add(fd, 4);
	add(fd, 2);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

TEST(shared_after_fork)
{
	int fd = eventfd(0, 0);
	pid_t pid = fork();
	if (pid == 0) {
		add(fd, 7);
		_exit(0);
	}
	CHECK_EQ(take(fd), 7);
	CHECK_CHILD(pid, 0);
}

T_MAIN

/* timerfd_create(2), timerfd_settime(2), timerfd_gettime(2). */
#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */

#define MS 1000000l

static struct itimerspec spec(long value_ms, long interval_ms)
{
	return (struct itimerspec){ .it_value = { value_ms / 1000, value_ms % 1000 * MS },
				    .it_interval = { interval_ms / 1000, interval_ms % 1000 * MS } };
}

TEST(create_and_refuse)
{
	struct itimerspec its = spec(0, 0);
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	CHECK_OK(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
	CHECK_ERR(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0), EINVAL);
	CHECK_ERR(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL);
	CHECK_ERR(timerfd_settime(99, 0, &its, NULL), EBADF);
	CHECK_ERR(timerfd_settime(1, 0, &its, NULL), EINVAL);
	CHECK_ERR(timerfd_gettime(1, &its), EINVAL);
	CHECK_ERR(timerfd_settime(fd, 8, &its, NULL), EINVAL);
	CHECK_ERR(timerfd_settime(fd, 0, bad, NULL), EFAULT);
	its.it_value.tv_nsec = 1000 * MS;
	CHECK_ERR(timerfd_settime(fd, 0, &its, NULL), EINVAL);
	uint64_t n;
	CHECK_ERR(read(fd, &n, 8), EAGAIN);
	CHECK_ERR(read(fd, &n, 7), EINVAL);
	CHECK_ERR(write(fd, &n, 8), EINVAL);
}

TEST(one_shot)
{
	struct itimerspec its = spec(50, 0), old;
	uint64_t n;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	CHECK_OK(timerfd_gettime(fd, &old));
	CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_nsec > 0 && old.it_value.tv_nsec <= 50 * MS);
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK_EQ(n, 1);
	CHECK_OK(timerfd_gettime(fd, &old));
	CHECK_EQ(old.it_value.tv_sec, 0);
	CHECK_EQ(old.it_value.tv_nsec, 0);
}

TEST(periods)
{
	struct itimerspec its = spec(20, 20), old;
	uint64_t n;
	int fd = timerfd_create(CLOCK_BOOTTIME, 0);
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	usleep(110000);
	struct pollfd p = { fd, POLLIN, 0 };
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK(n >= 4 && n < 50);
	its = spec(0, 0);
	CHECK_OK(timerfd_settime(fd, 0, &its, &old));
	CHECK_EQ(old.it_interval.tv_nsec, 20 * MS);
	CHECK_EQ(poll(&p, 1, 60), 0);
}

TEST(absolute)
{
	struct itimerspec its = spec(0, 0);
	uint64_t n;
	int fd = timerfd_create(CLOCK_REALTIME, 0);
	CHECK_OK(clock_gettime(CLOCK_REALTIME, &its.it_value));
	its.it_value.tv_sec -= 10;
	CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL));
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK_EQ(n, 1);
	struct timespec before, after;
	CHECK_OK(clock_gettime(CLOCK_REALTIME, &before));
	its.it_value = before;
	its.it_value.tv_sec += 1;
	CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &its, NULL));
	CHECK_EQ(read(fd, &n, 8), 8);
	CHECK_OK(clock_gettime(CLOCK_REALTIME, &after));
	CHECK(after.tv_sec > before.tv_sec);
}

TEST(setting_anew_forgets)
{
	struct itimerspec its = spec(1, 0);
	uint64_t n;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	usleep(20000);
	its = spec(10000, 0);
	CHECK_OK(timerfd_settime(fd, 0, &its, NULL));
	CHECK_ERR(read(fd, &n, 8), EAGAIN);
}

T_MAIN

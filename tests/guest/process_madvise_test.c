/* process_madvise(2) */
#include "tests/guest/t.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#define P 4096ul

static long advise(int pidfd, struct iovec *v, size_t n, int advice, unsigned flags)
{
	return syscall(SYS_process_madvise, pidfd, v, n, advice, flags);
}

TEST(advice_for_itself)
{
	char *p = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memset(p, 1, 4 * P);
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	CHECK_OK(fd);
	struct iovec v[] = { { p, P }, { p + 2 * P, 2 * P } };
	CHECK_EQ(advise(fd, v, 2, MADV_COLD, 0), 3 * P);
	CHECK_EQ(advise(fd, v, 2, MADV_WILLNEED, 0), 3 * P);
	CHECK_EQ(p[0], 1);
	CHECK_EQ(advise(fd, v, 0, MADV_COLD, 0), 0);
}

TEST(arguments)
{
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = { p, P };
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0), pipefd[2];
	CHECK_OK(fd);
	CHECK_OK(pipe(pipefd));
	CHECK_ERR(advise(fd, &v, 1, MADV_COLD, 1), EINVAL);
	CHECK_ERR(advise(fd, &v, 2000, MADV_COLD, 0), EINVAL);
	CHECK_ERR(advise(fd, (void *)8, 1, MADV_COLD, 0), EFAULT);
	CHECK_ERR(advise(-1, &v, 1, MADV_COLD, 0), EBADF);
	CHECK_ERR(advise(pipefd[0], &v, 1, MADV_COLD, 0), EBADF);
}

T_MAIN

/* msync(2) */
#include "tests/guest/t.h"

#define P 4096ul

TEST(writes_reach_the_file)
{
	char name[] = "/tmp/msync_test.XXXXXX", c = 0;
	int fd = mkstemp(name);
	CHECK_OK(fd);
	unlink(name);
	CHECK_OK(ftruncate(fd, 2 * P));
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	p[P + 1] = 'm';
	CHECK_OK(msync(p, 2 * P, MS_SYNC));
	CHECK_OK(msync(p, 2 * P, MS_ASYNC));
	CHECK_OK(msync(p, 2 * P, MS_INVALIDATE));
	CHECK_OK(msync(p, 0, MS_SYNC));
	CHECK_EQ(pread(fd, &c, 1, P + 1), 1);
	CHECK_EQ(c, 'm');
}

TEST(arguments)
{
	char *p = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_ERR(msync(p, P, MS_SYNC | MS_ASYNC), EINVAL);
	CHECK_ERR(msync(p, P, 64), EINVAL);
	CHECK_ERR(msync(p + 1, P, MS_SYNC), EINVAL);
	CHECK_ERR(msync(p, ~0ul - P, MS_SYNC), ENOMEM);
	CHECK_OK(msync(p, 3 * P, 0));
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(msync(p, 3 * P, MS_SYNC), ENOMEM);
	CHECK_OK(msync(p, P, MS_SYNC));
}

T_MAIN

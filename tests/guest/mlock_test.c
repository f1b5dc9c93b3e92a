/* mlock(2), munlock(2), mlock2(2), mlockall(2), munlockall(2) */
#include "tests/guest/t.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#define P 4096ul

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	return p;
}

TEST(locked_pages_are_resident)
{
	unsigned char vec[2] = { 0, 0 };
	char *p = pages(2);
	CHECK_OK(mlock(p + 100, P));
	CHECK_OK(mincore(p, 2 * P, vec));
	CHECK_EQ(vec[0] & vec[1] & 1, 1);
	CHECK_ERR(madvise(p, P, MADV_DONTNEED), EINVAL);
	CHECK_OK(munlock(p, 2 * P));
	CHECK_OK(madvise(p, P, MADV_DONTNEED));
}

TEST(arguments)
{
	char *p = pages(3);
	CHECK_OK(mlock(p, 0));
	CHECK_ERR(mlock2(p, P, 8), EINVAL);
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(mlock(p, 3 * P), ENOMEM);
	CHECK_ERR(munlock(p + P, P), ENOMEM);
	CHECK_ERR(mlockall(0), EINVAL);
	CHECK_ERR(mlockall(64), EINVAL);
}

TEST(on_fault)
{
	unsigned char vec = 9;
	char *p = pages(1);
	CHECK_OK(mlock2(p, P, MLOCK_ONFAULT));
	CHECK_OK(mincore(p, P, &vec));
	CHECK_EQ(vec & 1, 0);
}

TEST(limit_without_privilege)
{
	struct rlimit rl = { 4 * P, 4 * P };
	char *p = pages(8);
	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &rl));
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		SKIP("cannot change to an ordinary user");
	CHECK_OK(mlock(p, 4 * P));
	CHECK_OK(mlock(p, 4 * P));
	CHECK_ERR(mlock(p + 4 * P, P), ENOMEM);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0), EAGAIN);
	CHECK_OK(munlock(p, P));
	CHECK_OK(mlock(p + 4 * P, P));
	rl.rlim_cur = 0;
	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &rl));
	CHECK_ERR(mlock(p, P), EPERM);
}

TEST(all)
{
	CHECK_OK(mlockall(MCL_CURRENT | MCL_FUTURE));
	unsigned char vec = 0;
	char *p = pages(1);
	CHECK_OK(mincore(p, P, &vec));
	CHECK_EQ(vec & 1, 1);
	CHECK_OK(munlockall());
	CHECK_OK(madvise(p, P, MADV_DONTNEED));
}

T_MAIN

/* mincore(2) */
#include "tests/guest/t.h"

#define P 4096ul

TEST(touched_pages_are_resident)
{
	unsigned char vec[4] = { 9, 9, 9, 9 };
	char *p = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(madvise(p, 4 * P, MADV_NOHUGEPAGE));
	p[0] = 1;
	p[2 * P] = 1;
	CHECK_OK(mincore(p, 4 * P, vec));
	CHECK_EQ(vec[0] & 1, 1);
	CHECK_EQ(vec[1] & 1, 0);
	CHECK_EQ(vec[2] & 1, 1);
	CHECK_EQ(vec[3] & 1, 0);
	CHECK_OK(madvise(p, 4 * P, MADV_DONTNEED));
	CHECK_OK(mincore(p, P, vec));
	CHECK_EQ(vec[0] & 1, 0);
}

TEST(arguments)
{
	unsigned char vec[3];
	char *p = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_ERR(mincore(p + 1, P, vec), EINVAL);
	CHECK_ERR(mincore(p, P, (void *)1), EFAULT);
	CHECK_ERR(mincore((void *)(1ul << 62), P, vec), ENOMEM);
	CHECK_OK(mincore(p, 0, vec));
	CHECK_OK(munmap(p + P, P));
	vec[0] = 9;
	CHECK_ERR(mincore(p, 3 * P, vec), ENOMEM);
	CHECK_EQ(vec[0], 0);
}

TEST(many_pages)
{
	static unsigned char vec[5000];
	char *p = mmap(NULL, 5000 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(madvise(p, 5000 * P, MADV_NOHUGEPAGE));
	p[4999 * P] = 1;
	memset(vec, 9, sizeof(vec));
	CHECK_OK(mincore(p, 5000 * P, vec));
	CHECK_EQ(vec[0] & 1, 0);
	CHECK_EQ(vec[4999] & 1, 1);
}

T_MAIN

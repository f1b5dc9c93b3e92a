/* mremap(2) */
#include "tests/guest/t.h"

#define P 4096ul
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	for (int i = 0; i < n; i++)
		p[i * P] = (char)(i + 1);
	return p;
}

TEST(arguments)
{
	char *p = pages(2);
	CHECK_ERR(mremap(p + 1, P, 2 * P, 0), EINVAL);
	CHECK_ERR(mremap(p, P, 0, 0), EINVAL);
	CHECK_ERR(mremap(p, P, P, 64), EINVAL);
	CHECK_ERR(mremap(p, P, P, MREMAP_FIXED, p + P), EINVAL);
	CHECK_ERR(mremap(p, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, p + 1), EINVAL);
	CHECK_ERR(mremap(p, 2 * P, 2 * P, MREMAP_MAYMOVE | MREMAP_FIXED, p + P), EINVAL);
	CHECK_ERR(mremap(p, P, 2 * P, MREMAP_DONTUNMAP | MREMAP_MAYMOVE, 0), EINVAL);
	CHECK_ERR(mremap(p, 0, P, MREMAP_MAYMOVE), EINVAL);
	CHECK_ERR(mremap(p, 3 * P, 5 * P, MREMAP_MAYMOVE), EFAULT);
	CHECK_OK(munmap(p, P));
	CHECK_ERR(mremap(p, P, 2 * P, MREMAP_MAYMOVE), EFAULT);
}

TEST(grows_in_place_when_there_is_room)
{
	char *p = pages(4);
	CHECK_OK(munmap(p + P, 3 * P));
	CHECK(mremap(p, P, 3 * P, 0) == p);
	CHECK_EQ(p[0], 1);
	CHECK_EQ(p[2 * P], 0);
	p[2 * P] = 1;
}

TEST(moves_only_when_allowed)
{
	char *p = pages(3);
	CHECK(mprotect(p + P, P, PROT_READ) == 0);
	CHECK_ERR(mremap(p, P, 2 * P, 0), ENOMEM);
	char *q = mremap(p, P, 8 * P, MREMAP_MAYMOVE);
	CHECK_OK(q);
	CHECK(q != p);
	CHECK_EQ(q[0], 1);
	CHECK_EQ(q[7 * P], 0);
	unsigned char vec;
	CHECK_ERR(mincore(p, P, &vec), ENOMEM);
}

TEST(shrinks)
{
	char *p = pages(4);
	unsigned char vec;
	CHECK(mremap(p, 4 * P, 2 * P, 0) == p);
	CHECK_EQ(p[P], 2);
	CHECK_ERR(mincore(p + 2 * P, P, &vec), ENOMEM);
	CHECK(mremap(p, 2 * P, 2 * P, 0) == p);
}

TEST(fixed_replaces_the_target)
{
	char *p = pages(2), *q = pages(3);
	CHECK(mremap(p, 2 * P, 2 * P, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK_EQ(q[0], 1);
	CHECK_EQ(q[P], 2);
	CHECK_EQ(q[2 * P], 3);
}

TEST(dontunmap_leaves_an_empty_mapping)
{
	char *p = pages(1);
	char *q = mremap(p, P, P, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
	CHECK_OK(q);
	CHECK(q != p);
	CHECK_EQ(q[0], 1);
	CHECK_EQ(p[0], 0);
	p[0] = 5;
	CHECK_EQ(q[0], 1);
}

TEST(old_size_zero_duplicates_shared_memory)
{
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	char *q = mremap(p, 0, P, MREMAP_MAYMOVE);
	CHECK_OK(q);
	p[9] = 8;
	CHECK_EQ(q[9], 8);
}

TEST(file_mapping_grows)
{
	char name[] = "/tmp/mremap_test.XXXXXX";
	int fd = mkstemp(name);
	CHECK_OK(fd);
	unlink(name);
	CHECK_OK(ftruncate(fd, 4 * P));
	CHECK_EQ(pwrite(fd, "q", 1, 3 * P), 1);
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	p = mremap(p, P, 4 * P, MREMAP_MAYMOVE);
	CHECK_OK(p);
	CHECK_EQ(p[3 * P], 'q');
	p[P] = 'r';
	char c;
	CHECK_EQ(pread(fd, &c, 1, P), 1);
	CHECK_EQ(c, 'r');
}

T_MAIN

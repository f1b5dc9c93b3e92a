/* madvise(2) */
#include "tests/guest/t.h"

#define P 4096ul
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memset(p, 1, n * P);
	return p;
}

TEST(arguments)
{
	char *p = pages(3);
	CHECK_ERR(madvise(p, P, 9999), EINVAL);
	CHECK_ERR(madvise(p + 1, P, MADV_NORMAL), EINVAL);
	CHECK_ERR(madvise(p, ~0ul, MADV_NORMAL), EINVAL);
	CHECK_OK(madvise(p, 0, MADV_DONTNEED));
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(madvise(p, 3 * P, MADV_DONTNEED), ENOMEM);
	/* The pieces around the hole were treated all the same. */
	CHECK_EQ(p[0], 0);
	CHECK_EQ(p[2 * P], 0);
}

TEST(dontneed_drops_private_memory)
{
	char *p = pages(2);
	CHECK_OK(madvise(p, P, MADV_DONTNEED));
	CHECK_EQ(p[0], 0);
	CHECK_EQ(p[P], 1);
}

TEST(hints_are_accepted)
{
	static const int hints[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_FREE,
				     MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT };
	char *p = pages(2);
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		CHECK_OK(madvise(p, 2 * P, hints[i]));
}

TEST(dontfork)
{
	char *p = pages(3);
	CHECK_OK(madvise(p + P, P, MADV_DONTFORK));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		unsigned char vec;
		if (p[0] != 1 || p[2 * P] != 1)
			_exit(1);
		_exit(mincore(p + P, P, &vec) == -1 && errno == ENOMEM ? 0 : 2);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(madvise(p + P, P, MADV_DOFORK));
	pid = fork();
	if (pid == 0)
		_exit(p[P] == 1 ? 0 : 3);
	CHECK_CHILD(pid, 0);
}

TEST(wipeonfork)
{
	char *p = pages(2);
	CHECK_OK(madvise(p, P, MADV_WIPEONFORK));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0)
		_exit(p[0] == 0 && p[P] == 1 ? 0 : 1);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(p[0], 1);
	char *s = mmap(NULL, P, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_ERR(madvise(s, P, MADV_WIPEONFORK), EINVAL);
}

TEST(populate)
{
	unsigned char vec[2] = { 0, 0 };
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(madvise(p, 2 * P, MADV_POPULATE_WRITE));
	CHECK_OK(mincore(p, 2 * P, vec));
	CHECK_EQ(vec[0] & vec[1] & 1, 1);
}

TEST(remove_punches_a_hole)
{
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memset(p, 5, 2 * P);
	CHECK_OK(madvise(p, P, MADV_REMOVE));
	CHECK_EQ(p[0], 0);
	CHECK_EQ(p[P], 5);
	CHECK_ERR(madvise(pages(1), P, MADV_REMOVE), EINVAL);
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

TEST(guard_pages)
{
	char *p = pages(3), c = 1;
	int pipe_[2];
	memset(p, 1, 3 * P);
	SKIP_IF(madvise(p + P, P, MADV_GUARD_INSTALL) != 0 && errno == EINVAL,
		"kernel before 6.13");
	pid_t pid = fork();
	if (pid == 0) {
		*(volatile char *)(p + P) = 2;
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
	CHECK_OK(pipe(pipe_));
	CHECK_EQ(write(pipe_[1], &c, 1), 1);
	CHECK_ERR(write(pipe_[1], p + P, 1), EFAULT);
	CHECK_ERR(read(pipe_[0], p + P, 1), EFAULT);
	CHECK_EQ(p[0] + p[2 * P], 2);
	CHECK_OK(mprotect(p + P, P, PROT_READ));
	CHECK_OK(mprotect(p + P, P, PROT_READ | PROT_WRITE));
	CHECK_ERR(write(pipe_[1], p + P, 1), EFAULT);
	CHECK_OK(madvise(p + P, P, MADV_GUARD_REMOVE));
	CHECK_EQ(p[P], 0);
}

T_MAIN

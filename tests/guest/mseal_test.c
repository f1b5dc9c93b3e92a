/* mseal(2) */
#include "tests/guest/t.h"

#include <sys/syscall.h>

#define P 4096ul
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static long seal(void *p, size_t n, unsigned long flags)
{
	return syscall(SYS_mseal, p, n, flags);
}

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	if (seal(p, 0, 0) != 0 && errno == ENOSYS)
		SKIP("kernel before 6.10");
	return p;
}

TEST(sealed_pages_stay)
{
	char *p = pages(4), *q = pages(2);
	p[P] = 3;
	CHECK_OK(seal(p + P, 2 * P, 0));
	CHECK_ERR(munmap(p + P, P), EPERM);
	CHECK_ERR(munmap(p, 4 * P), EPERM);
	CHECK_ERR(mprotect(p + 2 * P, P, PROT_READ), EPERM);
	CHECK_ERR(mmap(p + P, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), EPERM);
	CHECK_ERR(mremap(p + P, P, 2 * P, MREMAP_MAYMOVE), EPERM);
	CHECK_ERR(mremap(q, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, p + P), EPERM);
	CHECK_EQ(p[P], 3);
	CHECK_OK(munmap(p, P));
	CHECK_OK(munmap(p + 3 * P, P));
	/* Contents may be dropped only where they could be written. */
	CHECK_OK(madvise(p + P, P, MADV_DONTNEED));
	CHECK_EQ(p[P], 0);
}

TEST(read_only_contents_are_kept)
{
	char *p = pages(1);
	p[0] = 5;
	CHECK_OK(mprotect(p, P, PROT_READ));
	CHECK_OK(seal(p, P, 0));
	CHECK_OK(seal(p, P, 0));
	CHECK_ERR(madvise(p, P, MADV_DONTNEED), EPERM);
	CHECK_EQ(p[0], 5);
	pid_t pid = fork();
	if (pid == 0)
		_exit(munmap(p, P) == -1 && errno == EPERM ? 0 : 1);
	CHECK_CHILD(pid, 0);
}

TEST(arguments)
{
	char *p = pages(3);
	CHECK_ERR(seal(p, P, 1), EINVAL);
	CHECK_ERR(seal(p + 1, P, 0), EINVAL);
	CHECK_ERR(seal(p, ~0ul, 0), EINVAL);
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(seal(p, 3 * P, 0), ENOMEM);
	CHECK_OK(munmap(p, P));
}

T_MAIN

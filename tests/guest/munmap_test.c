/* munmap(2) */
#include "tests/guest/t.h"

#define P 4096ul

static sigjmp_buf jump;

static void on_fault(int sig)
{
	siglongjmp(jump, sig);
}

static int touch(volatile char *p)
{
	signal(SIGSEGV, on_fault);
	int sig = sigsetjmp(jump, 1);
	if (!sig)
		*p = 1;
	return sig;
}

TEST(arguments)
{
	char *p = mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_ERR(munmap(p + 1, P), EINVAL);
	CHECK_ERR(munmap(p, 0), EINVAL);
	CHECK_ERR(munmap((void *)(1ul << 63), P), EINVAL);
	CHECK_ERR(munmap(p, ~0ul), EINVAL);
	CHECK_OK(munmap(p, 1));
	CHECK_OK(munmap(p, P));
}

TEST(a_piece_in_the_middle)
{
	char *p = mmap(NULL, 5 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memset(p, 3, 5 * P);
	CHECK_OK(munmap(p + 2 * P, P));
	CHECK_EQ(p[2 * P - 1], 3);
	CHECK_EQ(touch(p + 2 * P), SIGSEGV);
	CHECK_EQ(p[3 * P], 3);
}

TEST(across_several_mappings_and_holes)
{
	char *p = mmap(NULL, 9 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(mprotect(p + 2 * P, P, PROT_READ));
	CHECK_OK(munmap(p + 4 * P, P));
	CHECK_OK(munmap(p + P, 7 * P));
	CHECK_EQ(touch(p), 0);
	CHECK_EQ(touch(p + 8 * P), 0);
	for (int i = 1; i < 8; i++)
		CHECK_EQ(touch(p + i * P), SIGSEGV);
}

T_MAIN

/* mprotect(2) */
#include "tests/guest/t.h"

#define P 4096ul

static sigjmp_buf jump;

static void on_fault(int sig)
{
	siglongjmp(jump, sig);
}

static int touch_write(volatile char *p)
{
	signal(SIGSEGV, on_fault);
	int sig = sigsetjmp(jump, 1);
	if (!sig)
		*p = 1;
	return sig;
}

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	return p;
}

TEST(arguments)
{
	char *p = pages(2);
	CHECK_ERR(mprotect(p + 1, P, PROT_READ), EINVAL);
	CHECK_ERR(mprotect(p, P, 0x1000), EINVAL);
	CHECK_ERR(mprotect(p, P, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
	CHECK_ERR(mprotect(p, P, PROT_READ | PROT_GROWSDOWN), EINVAL);
	CHECK_OK(mprotect(p, 0, PROT_READ));
	CHECK_ERR(mprotect(p, ~0ul, PROT_READ), ENOMEM);
	CHECK_OK(munmap(p, P));
	CHECK_ERR(mprotect(p, P, PROT_READ), ENOMEM);
	CHECK_ERR(mprotect(p, 2 * P, PROT_READ), ENOMEM);
	CHECK_EQ(touch_write(p + P), 0);
}

TEST(only_the_named_pages)
{
	char *p = pages(3);
	CHECK_OK(mprotect(p + P, 1, PROT_READ));
	CHECK_EQ(touch_write(p), 0);
	CHECK_EQ(touch_write(p + P), SIGSEGV);
	CHECK_EQ(touch_write(p + 2 * P), 0);
	CHECK_OK(mprotect(p, 3 * P, PROT_READ | PROT_WRITE));
	CHECK_EQ(touch_write(p + P), 0);
}

TEST(stops_at_a_hole_but_keeps_what_was_done)
{
	char *p = pages(3);
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(mprotect(p, 3 * P, PROT_READ), ENOMEM);
	CHECK_EQ(touch_write(p), SIGSEGV);
	CHECK_EQ(touch_write(p + 2 * P), 0);
}

TEST(contents_survive)
{
	char *p = pages(1);
	p[5] = 9;
	CHECK_OK(mprotect(p, P, PROT_NONE));
	CHECK_OK(mprotect(p, P, PROT_READ));
	CHECK_EQ(p[5], 9);
}

TEST(stack_made_executable_by_growsdown)
{
	char here;
	char *page = (char *)((unsigned long)&here & ~(P - 1));
	CHECK_OK(mprotect(page, P, PROT_READ | PROT_WRITE | PROT_GROWSDOWN));
}

T_MAIN

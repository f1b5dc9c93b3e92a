/* remap_file_pages(2), which Linux emulates by mmap since 4.0. */
#include "tests/guest/t.h"

#define P 4096ul

TEST(pages_change_places)
{
	char *p = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	for (int i = 0; i < 4; i++)
		p[i * P] = (char)(i + 1);
	CHECK_OK(remap_file_pages(p, P, 0, 3, 0));
	CHECK_EQ(p[0], 4);
	CHECK_EQ(p[P], 2);
	p[0] = 9;
	CHECK_EQ(p[3 * P], 9);
}

TEST(arguments)
{
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *s = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_ERR(remap_file_pages(p, P, 0, 0, 0), EINVAL);
	CHECK_ERR(remap_file_pages(s, P, PROT_READ, 0, 0), EINVAL);
	CHECK_ERR(remap_file_pages(s, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(remap_file_pages(s, 0x100000 * P, 0, 0, 0), EINVAL);
}

T_MAIN

/* brk(2), by the raw call: the C library hides its result. */
#include "tests/guest/t.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#define P 4096ul

static char *raw_brk(void *to)
{
	return (char *)syscall(SYS_brk, to);
}

TEST(grows_and_shrinks)
{
	char *start = raw_brk(NULL);
	CHECK(raw_brk(start + 10 * P) == start + 10 * P);
	memset(start, 5, 10 * P);
	CHECK(raw_brk(start + P) == start + P);
	CHECK(raw_brk(start + 3 * P) == start + 3 * P);
	/* What was given back is zero again. */
	unsigned long page = ((unsigned long)start + P + P - 1) & ~(P - 1);
	CHECK_EQ(*(char *)page, 0);
	CHECK_EQ(start[0], 5);
	CHECK(raw_brk(start) == start);
}

TEST(odd_addresses_are_kept)
{
	char *start = raw_brk(NULL);
	CHECK(raw_brk(start + 12345) == start + 12345);
	CHECK(raw_brk(NULL) == start + 12345);
	CHECK(raw_brk(start) == start);
}

TEST(refusals_give_the_old_value)
{
	char *start = raw_brk(NULL);
	CHECK(raw_brk((void *)1) == start);
	CHECK(raw_brk((void *)~0ul) == start);
	CHECK(raw_brk((void *)(1ul << 60)) == start);
	/* Another mapping in the way. */
	char *top = (char *)(((unsigned long)start + 100 * P) & ~(P - 1));
	CHECK(mmap(top, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == top);
	CHECK(raw_brk(top + P) == start);
}

TEST(data_limit)
{
	char *start = raw_brk(NULL);
	struct rlimit rl = { 1 << 20, 1 << 20 };
	CHECK_OK(setrlimit(RLIMIT_DATA, &rl));
	CHECK(raw_brk(start + (8 << 20)) == start);
}

TEST(heap_is_listed)
{
	char *start = raw_brk(NULL), line[400];
	bool found = false;
	CHECK(raw_brk(start + 64 * P) == start + 64 * P);
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[heap]"))
			found = true;
	CHECK(found);
}

T_MAIN

/* Heap memory through one door: see alloc.h. */
#include "platform/base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_size_t live;
static atomic_uint fail_countdown;

static bool should_fail(void)
{
	unsigned n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
	if (n == 0)
		return false;
	atomic_store_explicit(&fail_countdown, n - 1, memory_order_relaxed);
	return n == 1;
}

static void *count_new(void *p)
{
	if (p)
		atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
	return p;
}

void *mem_alloc(size_t size)
{
	return should_fail() ? NULL : count_new(malloc(size));
}

void *mem_zalloc(size_t size)
{
	return should_fail() ? NULL : count_new(calloc(1, size));
}

void *mem_calloc(size_t count, size_t size)
{
	return should_fail() ? NULL : count_new(calloc(count, size));
}

void *mem_realloc(void *old, size_t size)
{
	if (should_fail())
		return NULL;
	void *p = realloc(old, size);
	return old ? p : count_new(p);
}

char *mem_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = mem_alloc(len + 1);
	if (p) {
		memcpy(p, s, len);
		p[len] = 0;
	}
	return p;
}

char *mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
	if (!p)
		return;
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	free(p);
}

size_t mem_live_count(void)
{
	return atomic_load(&live);
}

void mem_fail_nth(unsigned n)
{
	atomic_store(&fail_countdown, n);
}

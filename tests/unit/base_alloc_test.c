/* Allocation: counted, overflow-checked, and made to fail on demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "platform/base/alloc.h"

static void counts_live_blocks(void **state)
{
	size_t before = mem_live_count();

	(void)state;
	char *a = mem_alloc(10), *b = mem_zalloc(20), *c = mem_strdup("abc");
	assert_non_null(a);
	assert_non_null(b);
	assert_string_equal(c, "abc");
	assert_int_equal(b[19], 0);
	assert_int_equal(mem_live_count(), before + 3);
	a = mem_realloc(a, 1000);
	assert_int_equal(mem_live_count(), before + 3);
	mem_free(a);
	mem_free(b);
	mem_free(c);
	mem_free(NULL);
	assert_int_equal(mem_live_count(), before);
}

static void multiplication_is_checked(void **state)
{
	(void)state;
	/* volatile: the compiler would see through it and warn */
	volatile size_t huge = SIZE_MAX / 2;
	void *p = mem_calloc(huge, 4);
	assert_null(p);
}

static void nth_fails_once(void **state)
{
	(void)state;
	mem_fail_nth(2);
	char *a = mem_alloc(1);
	char *b = mem_alloc(1);
	char *c = mem_alloc(1);
	assert_non_null(a);
	assert_null(b);
	assert_non_null(c);
	mem_free(a);
	mem_free(c);
	/* Off again before it strikes. */
	mem_fail_nth(1);
	mem_fail_nth(0);
	a = mem_strndup("abcdef", 3);
	assert_string_equal(a, "abc");
	mem_free(a);
}

static void failed_realloc_keeps_the_block(void **state)
{
	(void)state;
	char *a = mem_strdup("keep");
	mem_fail_nth(1);
	assert_null(mem_realloc(a, 4096));
	assert_string_equal(a, "keep");
	mem_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_live_blocks),
		cmocka_unit_test(multiplication_is_checked),
		cmocka_unit_test(nth_fails_once),
		cmocka_unit_test(failed_realloc_keeps_the_block),
	};
	return cmocka_run_group_tests_name("base_alloc", tests, NULL, NULL);
}

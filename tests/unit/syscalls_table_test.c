/* The table against the numbers of the C library's kernel headers, and against its own rules. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sentry/dispatch.h"

#define HEADER "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"

static void numbers_agree_with_the_headers(void **state)
{
	char line[256], name[128];
	unsigned nr, seen = 0;
	FILE *f = fopen(HEADER, "r");

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "#define __NR_%127s %u", name, &nr) != 2)
			continue;
		assert_true(nr < SYSCALL_TABLE_SIZE);
		assert_non_null(syscall_table[nr].name);
		assert_string_equal(syscall_table[nr].name, name);
		seen++;
	}
	fclose(f);
	assert_true(seen > 300);
}

/* Numbers 335-423 do not exist on x86-64; 469 is the last of Linux 6.18. */
static void every_number_has_one_row(void **state)
{
	(void)state;
	for (size_t nr = 0; nr < SYSCALL_TABLE_SIZE; nr++) {
		bool exists = nr <= 334 || (nr >= 424 && nr <= 469);
		assert_int_equal(exists, syscall_table[nr].name != NULL);
	}
}

static void rows_keep_the_rules(void **state)
{
	(void)state;
	for (size_t nr = 0; nr < SYSCALL_TABLE_SIZE; nr++) {
		const struct syscall_entry *e = &syscall_table[nr];
		if (!e->name)
			continue;
		bool served = e->coverage <= COVERAGE_STUB;
		assert_int_equal(served, e->call != NULL);
		/* What is not whole says why. */
		if (e->coverage != COVERAGE_FULL)
			assert_true(e->note[0] != 0);
		if (!served)
			assert_true(e->fixed_errno > 0 && e->fixed_errno < 134);
		for (unsigned i = 0; i < e->arg_count; i++) {
			assert_true(e->arg_kinds[i] < ARG_KIND_COUNT);
			assert_non_null(e->arg_names[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_agree_with_the_headers),
		cmocka_unit_test(every_number_has_one_row),
		cmocka_unit_test(rows_keep_the_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

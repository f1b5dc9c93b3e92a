/* The string builder: cut in fixed mode, grow in heap mode, quote, survive lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "platform/base/alloc.h"
#include "platform/base/fmt.h"

static void fixed_cuts(void **state)
{
	char buf[8];
	struct fmt f;

	(void)state;
	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_printf(&f, "%d-%s", 12, "ab");
	assert_string_equal(buf, "12-ab");
	assert_false(f.overflow);
	fmt_puts(&f, "cdef");
	assert_string_equal(buf, "12-abcd");
	assert_true(f.overflow);
	fmt_putc(&f, 'x');
	assert_string_equal(buf, "12-abcd");
	fmt_init_fixed(&f, NULL, 0);
	fmt_puts(&f, "nothing");
	fmt_fini(&f);
}

static void heap_grows(void **state)
{
	struct fmt f;
	char word[700];

	(void)state;
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = 0;
	fmt_init_heap(&f);
	for (int i = 0; i < 100; i++)
		fmt_printf(&f, "%s\n", word);
	assert_false(f.overflow);
	assert_int_equal(f.len, 100 * sizeof(word));
	assert_int_equal(strlen(f.buf), f.len);
	fmt_fini(&f);
	assert_null(f.buf);
}

static void quotes(void **state)
{
	char buf[100];
	struct fmt f;

	(void)state;
	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_quote(&f,
		  "a\"\\\n\t\0"
		  "1\x7f",
		  8, 32);
	assert_string_equal(buf, "\"a\\\"\\\\\\n\\t\\0001\\177\"");
	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_quote(&f, "abcdef", 6, 3);
	assert_string_equal(buf, "\"abc\"...");
	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_quote(&f, "\0x", 2, 32);
	assert_string_equal(buf, "\"\\0x\"");
	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_mangle(&f, "a b\\c", " \\");
	assert_string_equal(buf, "a\\040b\\134c");
}

static void each_allocation_may_fail(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 20; n++) {
		struct fmt f;
		size_t before = mem_live_count();
		fmt_init_heap(&f);
		mem_fail_nth(n);
		fmt_printf(&f, "%0600d", 1);
		fmt_printf(&f, "%0300d", 1);
		fmt_puts(&f, "end");
		mem_fail_nth(0);
		assert_true(f.overflow || f.len == 903);
		bool done = !f.overflow;
		fmt_fini(&f);
		assert_int_equal(mem_live_count(), before);
		if (done)
			return;
	}
	fail_msg("never succeeded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_cuts),
		cmocka_unit_test(heap_grows),
		cmocka_unit_test(quotes),
		cmocka_unit_test(each_allocation_may_fail),
	};
	return cmocka_run_group_tests_name("base_fmt", tests, NULL, NULL);
}

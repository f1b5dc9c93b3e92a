/* Readers and writers of bytes that nobody trusts, at each boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/base/parse.h"

static void reads_until_the_end(void **state)
{
	const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct reader r;

	(void)state;
	reader_init(&r, data, sizeof(data));
	assert_int_equal(read_u8(&r), 1);
	assert_int_equal(read_u16(&r), 0x0302);
	assert_int_equal(read_u32(&r), 0x07060504);
	assert_false(r.bad);
	assert_int_equal(r.left, 0);
	assert_int_equal(read_u8(&r), 0);
	assert_true(r.bad);
}

static void bad_sticks(void **state)
{
	const uint8_t data[4] = { 1, 1, 1, 1 };
	struct reader r;
	uint8_t buf[8] = { 9, 9, 9, 9, 9, 9, 9, 9 };

	(void)state;
	reader_init(&r, data, sizeof(data));
	assert_true(read_u64(&r) == 0);
	assert_true(r.bad);
	/* Bytes are left, but nobody gets them. */
	assert_int_equal(read_u8(&r), 0);
	read_bytes(&r, buf, 8);
	assert_int_equal(buf[7], 0);
	assert_null(read_span(&r, 1));
}

/* For each size around the edge: exactly those that fit succeed. */
static void spans_at_the_edge(void **state)
{
	const uint8_t data[16] = { 0 };

	(void)state;
	for (size_t have = 0; have <= 16; have++)
		for (size_t want = 0; want <= 17; want++) {
			struct reader r;
			reader_init(&r, data, have);
			const void *p = read_span(&r, want);
			assert_int_equal(p != NULL, want <= have);
			assert_int_equal(r.bad, want > have);
			assert_int_equal(r.left, want <= have ? have - want : have);
		}
	struct reader r;
	reader_init(&r, data, 16);
	assert_null(read_span(&r, SIZE_MAX));
}

static void writes_until_the_end(void **state)
{
	uint8_t buf[8] = { 0 };
	struct writer w;

	(void)state;
	writer_init(&w, buf, 7);
	write_u32(&w, 0x04030201);
	write_u16(&w, 0x0605);
	write_u16(&w, 0xffff);
	assert_true(w.bad);
	write_u8(&w, 7);
	assert_int_equal(buf[3], 4);
	assert_int_equal(buf[5], 6);
	assert_int_equal(buf[6], 0);
	assert_int_equal(buf[7], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_until_the_end),
		cmocka_unit_test(bad_sticks),
		cmocka_unit_test(spans_at_the_edge),
		cmocka_unit_test(writes_until_the_end),
	};
	return cmocka_run_group_tests_name("base_parse", tests, NULL, NULL);
}

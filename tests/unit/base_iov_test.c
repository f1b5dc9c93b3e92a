/* Iterators: pieces, empty segments, faults in the middle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "platform/base/iov.h"

/* A memory of 64 bytes at address 1000 whose rest faults; it copies up to the edge. */
struct small_mem {
	char bytes[64];
};

static ssize_t room(uint64_t addr, size_t n)
{
	if (addr < 1000 || addr >= 1064)
		return -EFAULT;
	return (ssize_t)MIN(n, (size_t)(1064 - addr));
}

static ssize_t small_in(void *arg, void *dst, uint64_t src, size_t n)
{
	struct small_mem *m = arg;
	ssize_t r = room(src, n);

	if (r > 0)
		memcpy(dst, m->bytes + (src - 1000), (size_t)r);
	return r;
}

static ssize_t small_out(void *arg, uint64_t dst, const void *src, size_t n)
{
	struct small_mem *m = arg;
	ssize_t r = room(dst, n);

	if (r > 0)
		memcpy(m->bytes + (dst - 1000), src, (size_t)r);
	return r;
}

static const struct umem_ops small_ops = { .copy_in = small_in, .copy_out = small_out };

static void all_or_nothing(void **state)
{
	struct small_mem m = { "0123456789" };
	struct umem u = { &small_ops, &m };
	char buf[16];

	(void)state;
	assert_int_equal(umem_read(&u, buf, 1002, 3), 0);
	assert_memory_equal(buf, "234", 3);
	assert_int_equal(umem_read(&u, buf, 1060, 5), -EFAULT);
	assert_int_equal(umem_read(&u, buf, 5000, 1), -EFAULT);
	/* No bytes, no fault, whatever the address. */
	assert_int_equal(umem_read(&u, buf, 5000, 0), 0);
	assert_int_equal(umem_write(&u, 1062, "xy", 2), 0);
	assert_int_equal(umem_write(&u, 1063, "xy", 2), -EFAULT);
}

static void walks_over_segments(void **state)
{
	struct small_mem m = { { 0 } };
	struct umem u = { &small_ops, &m };
	const struct iov_seg seg[] = {
		{ 1000, 0 }, { 1000, 3 }, { 9999, 0 }, { 1010, 2 }, { 1020, 4 }
	};
	struct iov_iter it;

	(void)state;
	iov_init(&it, &u, seg, ARRAY_SIZE(seg), IOV_FILL);
	assert_int_equal(it.count, 9);
	assert_int_equal(iov_copy_to(&it, "abcd", 4), 4);
	assert_int_equal(it.count, 5);
	assert_int_equal(iov_copy_to(&it, "efghijkl", 8), 5);
	assert_int_equal(it.count, 0);
	assert_memory_equal(m.bytes, "abc", 3);
	assert_memory_equal(m.bytes + 10, "de", 2);
	assert_memory_equal(m.bytes + 20, "fghi", 4);
	/* At the end nothing moves and that is no fault. */
	assert_int_equal(iov_copy_to(&it, "x", 1), 0);
}

static void fault_in_the_middle(void **state)
{
	struct small_mem m = { { 0 } };
	struct umem u = { &small_ops, &m };
	struct iov_iter it;
	char buf[32];

	(void)state;
	iov_init_one(&it, &u, 1060, 10, IOV_FILL);
	assert_int_equal(iov_copy_to(&it, "abcdefgh", 8), 4);
	assert_int_equal(it.count, 6);
	assert_int_equal(iov_copy_to(&it, "efgh", 4), -EFAULT);
	assert_int_equal(it.count, 6);

	const struct iov_seg seg[] = { { 1000, 4 }, { 7777, 4 } };
	memcpy(m.bytes, "wxyz", 4);
	iov_init(&it, &u, seg, 2, IOV_DRAIN);
	assert_int_equal(iov_copy_from(&it, buf, 8), 4);
	assert_memory_equal(buf, "wxyz", 4);
	assert_int_equal(iov_copy_from(&it, buf, 4), -EFAULT);
}

static void peek_advance_truncate(void **state)
{
	char data[] = "0123456789", buf[16];
	struct iov_iter it, copy;

	(void)state;
	iov_init_host(&it, data, 10, IOV_DRAIN);
	assert_int_equal(iov_peek(&it, buf, 4), 4);
	assert_memory_equal(buf, "0123", 4);
	assert_int_equal(it.count, 10);
	iov_advance(&it, 3);
	copy = it; /* may be copied: nothing points into itself */
	assert_int_equal(iov_copy_from(&copy, buf, 2), 2);
	assert_memory_equal(buf, "34", 2);
	iov_truncate(&it, 4);
	iov_truncate(&it, 100);
	assert_int_equal(iov_copy_from(&it, buf, 16), 4);
	assert_memory_equal(buf, "3456", 4);
}

static void zeros(void **state)
{
	static char big[3 * 4096];
	struct iov_iter it;

	(void)state;
	memset(big, 'x', sizeof(big));
	iov_init_host(&it, big, sizeof(big), IOV_FILL);
	assert_int_equal(iov_zero(&it, sizeof(big) - 1), sizeof(big) - 1);
	assert_int_equal(big[0], 0);
	assert_int_equal(big[sizeof(big) - 2], 0);
	assert_int_equal(big[sizeof(big) - 1], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(walks_over_segments),
		cmocka_unit_test(fault_in_the_middle),
		cmocka_unit_test(peek_advance_truncate),
		cmocka_unit_test(zeros),
	};
	return cmocka_run_group_tests_name("base_iov", tests, NULL, NULL);
}

/* Copies to and from guest memory, with the test process as the guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sentry/plat.h"
#include "sentry/task.h"
#include "tests/unit/self_platform.h"

#define P PAGE_SIZE
#define BASE (SELF_MIN + 0x10000000)
#define END (BASE + 2 * P) /* nothing is mapped from here on */

static struct task *t;

static int setup(void **state UNUSED)
{
	plat = &self_platform;
	self_reset();
	t = calloc(1, sizeof(*t));
	arena_init(&t->scratch);
	assert_int_equal(mm_new(&t->mm, &t->ctx), 0);
	struct mmap_request req = { .addr = BASE, .size = 2 * P, .prot = PROT_READ | PROT_WRITE,
				    .map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
	assert_int_equal(mm_mmap(t, &req), BASE);
	return 0;
}

static int teardown(void **state UNUSED)
{
	arena_fini(&t->scratch);
	plat->ctx_free(t->ctx);
	mm_unuse(t->mm);
	free(t);
	self_reset();
	return 0;
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static path_cgp str_at(uint64_t addr)
{
	return (path_cgp){ .addr = gaddr(addr) };
}

static void typed_copies(void **state UNUSED)
{
	struct timespec ts = { 5, 6 }, got;
	timespec_gp out = { .addr = gaddr(BASE + 100) };
	timespec_cgp in = { .addr = out.addr };
	timespec_cgp edge = { .addr = gaddr(END - 8) };

	assert_int_equal(guest_store(t, out, &ts), 0);
	assert_int_equal(guest_load(t, &got, in), 0);
	assert_int_equal(got.tv_nsec, 6);
	assert_int_equal(guest_load(t, &got, edge), -EFAULT);
	assert_int_equal(guest_write(t, gaddr(SELF_MAX - 4), &ts, 16), -EFAULT);
	assert_int_equal(guest_write(t, gaddr(UINT64_MAX - 4), &ts, 16), -EFAULT);
	assert_int_equal(guest_read(t, &got, gaddr(UINT64_MAX), 1), -EFAULT);
	assert_int_equal(guest_read(t, &got, gaddr(SELF_MAX), 0), 0);
}

static void strings(void **state UNUSED)
{
	char buf[64];
	const char *path;

	memcpy(at(END - 6), "hello", 6);
	assert_int_equal(guest_load_str(t, buf, sizeof(buf), str_at(END - 6)), 5);
	assert_string_equal(buf, "hello");
	assert_int_equal(guest_load_str(t, buf, 5, str_at(END - 6)), -ENAMETOOLONG);
	memcpy(at(END - 5), "hello", 5);
	assert_int_equal(guest_load_str(t, buf, sizeof(buf), str_at(END - 5)), -EFAULT);
	memset(at(BASE), 'a', 2 * P);
	assert_int_equal(guest_load_path(t, str_at(BASE), &path), -ENAMETOOLONG);
	((char *)at(BASE))[P - 1] = 0;
	assert_int_equal(guest_load_path(t, str_at(BASE), &path), 0);
	assert_int_equal(strlen(path), P - 1);
	((char *)at(BASE))[P + 10] = 0;
	assert_int_equal(guest_load_path(t, str_at(BASE + P - 5), &path), 0);
	assert_int_equal(guest_load_path(t, str_at(0), &path), -EFAULT);
}

static void growing_structs(void **state UNUSED)
{
	uint64_t k[3];
	buf_cgp in = { .addr = gaddr(BASE) };

	memset(at(BASE), 0, P);
	((uint64_t *)at(BASE))[0] = 7;
	assert_int_equal(guest_load_ext(t, k, sizeof(k), in, 8), 0);
	assert_int_equal(k[0], 7);
	assert_int_equal(k[1], 0);
	assert_int_equal(guest_load_ext(t, k, sizeof(k), in, 1000), 0);
	((char *)at(BASE))[999] = 1;
	assert_int_equal(guest_load_ext(t, k, sizeof(k), in, 1000), -E2BIG);
	assert_int_equal(guest_load_ext(t, k, sizeof(k), in, P + 1), -E2BIG);
	in.addr = gaddr(END - 16);
	assert_int_equal(guest_load_ext(t, k, sizeof(k), in, sizeof(k)), -EFAULT);
}

static void vectors(void **state UNUSED)
{
	struct iov_seg *v = at(BASE);
	iovec_cgp g = { .addr = gaddr(BASE) };
	struct iov_iter it;
	char data[8] = "abcdefg";

	v[0] = (struct iov_seg){ BASE + P, 3 };
	v[1] = (struct iov_seg){ BASE + P + 10, 5 };
	assert_int_equal(guest_iter(t, &it, g, 2, IOV_FILL), 0);
	assert_int_equal(it.count, 8);
	assert_int_equal(iov_copy_to(&it, data, 8), 8);
	assert_memory_equal(at(BASE + P), "abc", 3);
	assert_memory_equal(at(BASE + P + 10), "defg", 5);
	assert_int_equal(guest_iter(t, &it, g, 1025, IOV_FILL), -EINVAL);
	assert_int_equal(guest_iter(t, &it, g, 0, IOV_FILL), 0);
	assert_int_equal(it.count, 0);
	v[1].len = SIZE_MAX;
	assert_int_equal(guest_iter(t, &it, g, 2, IOV_FILL), -EINVAL);
	v[1].len = 1ul << 50;
	assert_int_equal(guest_iter(t, &it, g, 2, IOV_FILL), -EFAULT);
	g.addr = gaddr(END - 8);
	assert_int_equal(guest_iter(t, &it, g, 1, IOV_FILL), -EFAULT);
	assert_int_equal(guest_iter_buf(t, &it, gaddr(BASE), SELF_MAX, IOV_FILL), -EFAULT);
	/* A copy that runs into a hole stops there. */
	assert_int_equal(guest_iter_buf(t, &it, gaddr(END - 3), 8, IOV_FILL), 0);
	assert_int_equal(iov_copy_to(&it, data, 8), 3);
}

static void copies_grow_the_stack(void **state UNUSED)
{
	uint64_t top = BASE + (8u << 20);
	struct mmap_request req = { .addr = top - P, .size = P, .prot = PROT_READ | PROT_WRITE,
				    .map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN };
	char big[3 * P];

	memset(big, 'x', sizeof(big));
	assert_int_equal(mm_mmap(t, &req), top - P);
	assert_int_equal(guest_write(t, gaddr(top - sizeof(big)), big, sizeof(big)), 0);
	assert_memory_equal(at(top - sizeof(big)), big, sizeof(big));
	assert_int_equal(t->mm->vma_count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(typed_copies), T(strings), T(growing_structs), T(vectors), T(copies_grow_the_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Address spaces over the test process: our list must agree with /proc/self/maps after every kind of change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/task.h"
#include "sentry/vma.h"
#include "tests/unit/self_platform.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define BASE (SELF_MIN + 0x10000000)
#define P PAGE_SIZE

static struct task *t;

static int setup(void **state UNUSED)
{
	plat = &self_platform;
	self_reset();
	t = calloc(1, sizeof(*t));
	assert_int_equal(mm_new(&t->mm, &t->ctx), 0);
	return 0;
}

static int teardown(void **state UNUSED)
{
	plat->ctx_free(t->ctx);
	mm_unuse(t->mm);
	free(t);
	self_reset();
	return 0;
}

static int64_t map(uint64_t addr, uint64_t size, int prot, unsigned flags)
{
	struct mmap_request req = { .addr = addr, .size = size, .prot = prot, .map_flags = flags };
	return mm_mmap(t, &req);
}

/* Protection of the host's mapping at addr, -1 for none. */
struct host_range {
	uint64_t start, end;
	int prot;
};

static size_t host_ranges(struct host_range *out, size_t max)
{
	char line[512], perm[5];
	size_t n = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long start, end;
		assert_int_equal(sscanf(line, "%llx-%llx %4s", &start, &end, perm), 3);
		if (start < SELF_MIN || start >= SELF_MAX)
			continue;
		int prot = (perm[0] == 'r' ? PROT_READ : 0) | (perm[1] == 'w' ? PROT_WRITE : 0) |
			   (perm[2] == 'x' ? PROT_EXEC : 0);
		if (n && out[n - 1].end == start && out[n - 1].prot == prot) {
			out[n - 1].end = end;
			continue;
		}
		assert_true(n < max);
		out[n++] = (struct host_range){ start, end, prot };
	}
	fclose(f);
	return n;
}

/* The list and the host agree on addresses and protections, and the counters are right. */
static void check_agreement(void)
{
	static struct host_range host[4096];
	size_t n = host_ranges(host, ARRAY_SIZE(host)), i = 0, count = 0;
	uint64_t pages = 0, pos = 0;

	for (struct vma *v = vma_first_locked(t->mm); v; v = vma_next_locked(v)) {
		assert_true(v->start < v->end && v->start >= pos);
		pos = v->end;
		pages += (v->end - v->start) / P;
		count++;
		while (i < n && host[i].end <= v->start)
			i++;
		assert_true(i < n);
		assert_true(host[i].start <= v->start && host[i].end >= v->end);
		assert_int_equal(host[i].prot, v->prot);
	}
	uint64_t host_pages = 0;
	for (i = 0; i < n; i++)
		host_pages += (host[i].end - host[i].start) / P;
	assert_int_equal(host_pages, pages);
	assert_int_equal(t->mm->total_pages, pages);
	assert_int_equal(t->mm->vma_count, count);
}

static void mapping_merges_and_splits(void **state UNUSED)
{
	assert_int_equal(map(BASE, 2 * P, RW, ANON | MAP_FIXED), BASE);
	assert_int_equal(map(BASE + 2 * P, 2 * P, RW, ANON | MAP_FIXED), BASE + 2 * P);
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(mm_mprotect(t, BASE + P, P, PROT_READ), 0);
	assert_int_equal(t->mm->vma_count, 3);
	check_agreement();
	assert_int_equal(mm_mprotect(t, BASE + P, P, RW), 0);
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(mm_munmap(t, BASE + P, P), 0);
	assert_int_equal(t->mm->vma_count, 2);
	check_agreement();
	assert_int_equal(map(BASE, 4 * P, PROT_NONE, ANON | MAP_FIXED), BASE);
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(t->mm->data_pages, 0);
	check_agreement();
}

static void mmap_errors(void **state UNUSED)
{
	assert_int_equal(map(0, 0, RW, ANON), -EINVAL);
	assert_int_equal(map(0, UINT64_MAX, RW, ANON), -ENOMEM);
	assert_int_equal(map(0, SELF_MAX, RW, ANON), -ENOMEM);
	assert_int_equal(map(BASE + 1, P, RW, ANON | MAP_FIXED), -EINVAL);
	assert_int_equal(map(SELF_MAX - P, 2 * P, RW, ANON | MAP_FIXED), -ENOMEM);
	assert_int_equal(map(P, P, RW, ANON | MAP_FIXED), -EPERM);
	assert_int_equal(map(BASE, P, RW, MAP_ANONYMOUS), -EINVAL);
	assert_int_equal(map(BASE, P, RW, MAP_ANONYMOUS | MAP_SHARED | MAP_GROWSDOWN), -EINVAL);
	assert_int_equal(map(0, P, RW, ANON | MAP_HUGETLB), -ENOMEM);
	assert_int_equal(map(BASE, P, RW, ANON | MAP_FIXED_NOREPLACE), BASE);
	assert_int_equal(map(BASE - P, 2 * P, RW, ANON | MAP_FIXED_NOREPLACE), -EEXIST);
	check_agreement();
}

static void placement_is_top_down_and_reuses_holes(void **state UNUSED)
{
	uint64_t top = t->mm->mmap_base;

	assert_int_equal(map(0, P, RW, ANON), top - P);
	assert_int_equal(map(0, 3 * P, PROT_READ, ANON), top - 4 * P);
	assert_int_equal(map(0, P, RW, ANON), top - 5 * P);
	assert_int_equal(mm_munmap(t, top - 3 * P, 2 * P), 0);
	assert_int_equal(map(0, 3 * P, RW, ANON), top - 8 * P);
	assert_int_equal(map(0, 2 * P, RW, ANON), top - 3 * P);
	/* Hints: free ones are taken, others ignored. */
	assert_int_equal(map(BASE + 123, P, RW, ANON), BASE);
	assert_int_equal(map(BASE, P, RW, ANON), top - 9 * P);
	check_agreement();
}

static void mprotect_stops_at_a_hole(void **state UNUSED)
{
	assert_int_equal(map(BASE, P, RW, ANON | MAP_FIXED), BASE);
	assert_int_equal(map(BASE + 2 * P, P, RW, ANON | MAP_FIXED), BASE + 2 * P);
	assert_int_equal(mm_mprotect(t, BASE, 3 * P, PROT_READ), -ENOMEM);
	check_agreement();
	assert_int_equal(vma_find_locked(t->mm, BASE)->prot, PROT_READ);
	assert_int_equal(vma_find_locked(t->mm, BASE + 2 * P)->prot, RW);
	assert_int_equal(mm_mprotect(t, BASE + 1, P, PROT_READ), -EINVAL);
	assert_int_equal(mm_mprotect(t, BASE, 0, PROT_READ), 0);
	assert_int_equal(mm_mprotect(t, BASE, P, 0x100), -EINVAL);
	assert_int_equal(mm_mprotect(t, BASE, P, PROT_READ | PROT_GROWSDOWN), -EINVAL);
}

static void brk_moves(void **state UNUSED)
{
	struct mm *mm = t->mm;

	mm->start_brk = mm->brk = BASE;
	assert_int_equal(mm_brk(t, 0), BASE);
	assert_int_equal(mm_brk(t, BASE + 5000), BASE + 5000);
	assert_int_equal(mm_brk(t, BASE + 3 * P), BASE + 3 * P);
	assert_int_equal(mm->vma_count, 1);
	check_agreement();
	assert_int_equal(mm_brk(t, BASE + 10), BASE + 10);
	assert_int_equal(mm->total_pages, 1);
	assert_int_equal(map(BASE + 4 * P, P, RW, ANON | MAP_FIXED), BASE + 4 * P);
	assert_int_equal(mm_brk(t, BASE + 4 * P), BASE + 10);
	assert_int_equal(mm_brk(t, BASE), BASE);
	check_agreement();
}

static void mremap_in_place_and_away(void **state UNUSED)
{
	uint32_t word = 0x12345678, seen = 0;

	assert_int_equal(map(BASE, P, RW, ANON | MAP_FIXED), BASE);
	assert_int_equal(mm_copy_out(t->mm, BASE, &word, 4), 4);
	assert_int_equal(mm_mremap(t, BASE, P, 3 * P, 0, 0), BASE);
	assert_int_equal(map(BASE + 3 * P, P, PROT_READ, ANON | MAP_FIXED), BASE + 3 * P);
	assert_int_equal(mm_mremap(t, BASE, 3 * P, 5 * P, 0, 0), -ENOMEM);
	int64_t moved = mm_mremap(t, BASE, 3 * P, 5 * P, MREMAP_MAYMOVE, 0);
	assert_true(moved > 0 && moved != BASE);
	assert_int_equal(mm_copy_in(t->mm, &seen, (uint64_t)moved, 4), 4);
	assert_int_equal(seen, word);
	check_agreement();
	assert_int_equal(mm_mremap(t, (uint64_t)moved, 5 * P, 2 * P, 0, 0), moved);
	assert_int_equal(mm_mremap(t, (uint64_t)moved, 2 * P, 2 * P, MREMAP_MAYMOVE | MREMAP_FIXED, BASE + 2 * P),
			 BASE + 2 * P);
	check_agreement();
	assert_int_equal(mm_mremap(t, BASE + 2 * P, 2 * P, 2 * P, MREMAP_MAYMOVE | 4, 0) > 0, 1);
	check_agreement();
	assert_int_equal(mm_mremap(t, BASE, P, 2 * P, 0, 0), -EFAULT);
	assert_int_equal(mm_mremap(t, BASE + 2 * P, 0, P, MREMAP_MAYMOVE, 0), -EINVAL);
	assert_int_equal(mm_mremap(t, BASE + 2 * P, P, 0, 0, 0), -EINVAL);
	assert_int_equal(mm_mremap(t, BASE + 2 * P, P, P, MREMAP_FIXED, BASE), -EINVAL);
}

static void growing_mapping(void **state UNUSED)
{
	uint64_t top = BASE + (4u << 20);

	assert_int_equal(map(top - P, P, RW, ANON | MAP_FIXED | MAP_GROWSDOWN), top - P);
	assert_false(mm_grow(t, top));
	assert_true(mm_grow(t, top - 2 * P));
	check_agreement();
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(map(BASE, P, RW, ANON | MAP_FIXED), BASE);
	assert_true(mm_grow(t, BASE + P + STACK_GUARD_GAP));
	assert_false(mm_grow(t, BASE + P + STACK_GUARD_GAP - 1));
	check_agreement();
	/* The search keeps the distance, too. */
	int64_t r = map(top - (4u << 20) + 2 * P, P, RW, ANON);
	assert_true(r > 0 && (uint64_t)r >= top);
}

static void locks_and_advice(void **state UNUSED)
{
	uint8_t byte = 1;

	assert_int_equal(map(BASE, 4 * P, RW, ANON | MAP_FIXED), BASE);
	assert_int_equal(mm_mlock(t, BASE + P, P, MLOCK_NOW), 0);
	assert_int_equal(t->mm->locked_pages, 1);
	assert_int_equal(mm_madvise(t, BASE, 4 * P, MADV_DONTNEED), -EINVAL);
	assert_int_equal(mm_mlock(t, BASE, 4 * P, MLOCK_OFF), 0);
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(mm_copy_out(t->mm, BASE, &byte, 1), 1);
	assert_int_equal(mm_madvise(t, BASE, 4 * P, MADV_DONTNEED), 0);
	assert_int_equal(mm_copy_in(t->mm, &byte, BASE, 1), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(mm_madvise(t, BASE, 8 * P, MADV_NORMAL), -ENOMEM);
	assert_int_equal(mm_madvise(t, BASE, P, 12345), -EINVAL);
	assert_int_equal(mm_madvise(t, BASE + P, P, MADV_DONTFORK), 0);
	assert_int_equal(t->mm->vma_count, 3);
	assert_int_equal(mm_madvise(t, BASE + P, P, MADV_DOFORK), 0);
	assert_int_equal(t->mm->vma_count, 1);
	assert_int_equal(mm_mlockall(t, MCL_CURRENT), 0);
	assert_int_equal(t->mm->locked_pages, 4);
	assert_int_equal(mm_mlockall(t, 0), 0);
	assert_int_equal(t->mm->locked_pages, 0);
	check_agreement();
}

static void one_random_step(void)
{
	uint64_t addr = BASE + (uint64_t)(rand() % 64) * P;
	uint64_t size = (uint64_t)(1 + rand() % 16) * P;
	static const int prots[] = { PROT_NONE, PROT_READ, RW, PROT_READ | PROT_EXEC };
	int prot = prots[rand() % 4];
	int64_t ignored;

	switch (rand() % 7) {
	case 0:
	case 1:
		ignored = map(addr, size, prot, ANON | MAP_FIXED);
		break;
	case 2:
		ignored = map(rand() % 2 ? addr : 0, size, prot, ANON);
		break;
	case 3:
		ignored = mm_munmap(t, addr, size);
		break;
	case 4:
		ignored = mm_mprotect(t, addr, size, prot);
		break;
	case 5:
		ignored = mm_mremap(t, addr, size, (uint64_t)(1 + rand() % 16) * P, MREMAP_MAYMOVE, 0);
		break;
	default:
		ignored = mm_mremap(t, addr, size, (uint64_t)(1 + rand() % 16) * P,
				    MREMAP_MAYMOVE | MREMAP_FIXED, BASE + (uint64_t)(rand() % 64) * P);
		break;
	}
	(void)ignored;
}

static void random_changes_agree(void **state UNUSED)
{
	srand(1);
	for (int i = 0; i < 3000; i++) {
		one_random_step();
		if (i % 10 == 0)
			check_agreement();
	}
	check_agreement();
}

static void failures_leave_agreement(void **state UNUSED)
{
	srand(2);
	for (int i = 0; i < 2000; i++) {
		if (rand() % 2)
			self_fail_nth((unsigned)(1 + rand() % 2));
		else
			mem_fail_nth((unsigned)(1 + rand() % 3));
		one_random_step();
		self_fail_nth(0);
		mem_fail_nth(0);
		if (i % 10 == 0)
			check_agreement();
	}
}

static void nothing_leaks(void **state UNUSED)
{
	size_t before = mem_live_count();
	struct task *saved = t;

	setup(NULL);
	srand(3);
	for (int i = 0; i < 200; i++)
		one_random_step();
	teardown(NULL);
	t = saved;
	assert_int_equal(mem_live_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(mapping_merges_and_splits),
		T(mmap_errors),
		T(placement_is_top_down_and_reuses_holes),
		T(mprotect_stops_at_a_hole),
		T(brk_moves),
		T(mremap_in_place_and_away),
		T(growing_mapping),
		T(locks_and_advice),
		T(random_changes_agree),
		T(failures_leave_agreement),
		T(nothing_leaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

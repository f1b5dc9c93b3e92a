/* The first stack of a program, as the program will read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "fs/cred.h"
#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/stack.h"
#include "sentry/task.h"
#include "tests/unit/self_platform.h"

#define TOP (SELF_MAX - 0x100000)

static struct mm *mm;
static struct plat_ctx *ctx;
static struct cred *cred;

static int setup(void **state UNUSED)
{
	plat = &self_platform;
	self_reset();
	cred = cred_new(1000, 1001, NULL, 0);
	assert_non_null(cred);
	assert_int_equal(mm_new(&mm, &ctx), 0);
	return 0;
}

static int teardown(void **state UNUSED)
{
	cred_put(cred);
	plat->ctx_free(ctx);
	mm_unuse(mm);
	self_reset();
	return 0;
}

static const char strings[] = "prog\0-x\0HOME=/root\0A=1\0B=";

static struct stack_spec spec(void)
{
	return (struct stack_spec){
		.strings = strings,
		.strings_size = sizeof(strings),
		.argc = 2,
		.envc = 3,
		.execfn = "/bin/prog",
		.randomize = true,
		.cred = cred,
		.phdr = 0x400040,
		.phnum = 9,
		.base = 0x7000,
		.entry = 0x401000,
		.top = TOP,
		.rlimit = 8u << 20,
	};
}

static uint64_t aux(const uint64_t *av, uint64_t type)
{
	for (; av[0] != AT_NULL; av += 2)
		if (av[0] == type)
			return av[1];
	fail_msg("no auxv entry %lu", type);
	return 0;
}

static void program_sees_its_arguments(void **state UNUSED)
{
	struct stack_spec s = spec();
	uint64_t sp;

	assert_int_equal(stack_build(mm, ctx, &s, &sp), 0);
	assert_int_equal(sp % 16, 0);
	const uint64_t *w = (const void *)(uintptr_t)sp;
	assert_int_equal(w[0], 2);
	assert_string_equal((const char *)w[1], "prog");
	assert_string_equal((const char *)w[2], "-x");
	assert_int_equal(w[3], 0);
	assert_string_equal((const char *)w[4], "HOME=/root");
	assert_string_equal((const char *)w[6], "B=");
	assert_int_equal(w[7], 0);
	const uint64_t *av = w + 8;
	assert_string_equal((const char *)aux(av, AT_EXECFN), "/bin/prog");
	assert_string_equal((const char *)aux(av, AT_PLATFORM), "x86_64");
	assert_int_equal(aux(av, AT_PHDR), 0x400040);
	assert_int_equal(aux(av, AT_PHENT), 56);
	assert_int_equal(aux(av, AT_PHNUM), 9);
	assert_int_equal(aux(av, AT_BASE), 0x7000);
	assert_int_equal(aux(av, AT_ENTRY), 0x401000);
	assert_int_equal(aux(av, AT_UID), 1000);
	assert_int_equal(aux(av, AT_EGID), 1001);
	assert_int_equal(aux(av, AT_SECURE), 0);
	assert_int_equal(aux(av, AT_PAGESZ), 4096);
	assert_int_equal(aux(av, AT_CLKTCK), 100);
	assert_true(aux(av, AT_RANDOM) > sp && aux(av, AT_RANDOM) < TOP - 16);
	assert_memory_equal((const char *)mm->arg_start, "prog\0-x\0", mm->arg_end - mm->arg_start);
	assert_memory_equal((const char *)mm->env_start, "HOME=/root\0A=1\0B=", mm->env_end - mm->env_start);
	assert_int_equal(mm->start_stack, sp);
	assert_memory_equal(av, mm->auxv, mm->auxv_words * 8);
}

static void no_arguments_at_all(void **state UNUSED)
{
	struct stack_spec s = spec();
	uint64_t sp;

	s.strings_size = 0;
	s.argc = s.envc = 0;
	assert_int_equal(stack_build(mm, ctx, &s, &sp), 0);
	const uint64_t *w = (const void *)(uintptr_t)sp;
	assert_int_equal(w[0], 0);
	assert_int_equal(w[1], 0);
	assert_int_equal(w[2], 0);
	assert_int_equal(mm->arg_start, mm->env_end);
}

static void limits_and_failures(void **state UNUSED)
{
	struct stack_spec s = spec();
	size_t big = 1u << 20;
	char *many = calloc(1, big);
	uint64_t sp;

	memset(many, 'a', big - 1);
	s.strings = many;
	s.strings_size = big;
	s.argc = 1;
	s.envc = 0;
	s.rlimit = 1u << 20;
	assert_int_equal(stack_build(mm, ctx, &s, &sp), -E2BIG);
	s.rlimit = RLIM_INFINITY;
	assert_int_equal(stack_build(mm, ctx, &s, &sp), 0);
	/* The place is taken now. */
	assert_int_equal(stack_build(mm, ctx, &s, &sp), -EEXIST);
	free(many);
}

static void memory_may_run_out(void **state)
{
	uint64_t sp;
	int err;
	unsigned n = 1;

	do {
		struct stack_spec s = spec();
		mem_fail_nth(n++);
		err = stack_build(mm, ctx, &s, &sp);
		mem_fail_nth(0);
		teardown(state);
		setup(state);
	} while (err == -ENOMEM && n < 100);
	assert_int_equal(err, 0);
	assert_true(n > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(program_sees_its_arguments), T(no_arguments_at_all), T(limits_and_failures), T(memory_may_run_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

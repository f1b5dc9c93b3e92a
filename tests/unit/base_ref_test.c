/* Reference counts: the last put frees; misuse ends the process at the place it happens. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/base/ref.h"

struct thing {
	struct ref ref;
	int *freed;
};

DECLARE_REF(thing);

static void thing_free(struct thing *t)
{
	++*t->freed;
}

DEFINE_REF(thing);

static void last_put_frees(void **state)
{
	int freed = 0;
	struct thing t = { .freed = &freed };

	(void)state;
	ref_init(&t.ref);
	assert_ptr_equal(thing_get(&t), &t);
	assert_int_equal(ref_count(&t.ref), 2);
	thing_put(&t);
	assert_int_equal(freed, 0);
	thing_put(&t);
	assert_int_equal(freed, 1);
	thing_put(NULL);
}

static void lookup_of_a_dying_object(void **state)
{
	struct ref r;

	(void)state;
	ref_init(&r);
	assert_true(ref_inc_not_zero(&r));
	assert_false(ref_dec(&r));
	assert_true(ref_dec(&r));
	assert_false(ref_inc_not_zero(&r));
	assert_int_equal(ref_count(&r), 0);
}

/* True when fn ends its process by abort. */
static bool aborts(void (*fn)(struct ref *))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct ref r;
		close(2);
		signal(SIGABRT, SIG_DFL);
		ref_init(&r);
		fn(&r);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void get_after_free(struct ref *r)
{
	(void)!ref_dec(r);
	ref_inc(r);
}

static void put_after_free(struct ref *r)
{
	(void)!ref_dec(r);
	(void)!ref_dec(r);
}

static void overflow(struct ref *r)
{
	atomic_store(&r->count, 0x7fffffff);
	ref_inc(r);
}

static void fine(struct ref *r)
{
	ref_inc(r);
	(void)!ref_dec(r);
}

static void misuse_traps(void **state)
{
	(void)state;
	assert_true(aborts(get_after_free));
	assert_true(aborts(put_after_free));
	assert_true(aborts(overflow));
	assert_false(aborts(fine));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_put_frees),
		cmocka_unit_test(lookup_of_a_dying_object),
		cmocka_unit_test(misuse_traps),
	};
	return cmocka_run_group_tests_name("base_ref", tests, NULL, NULL);
}

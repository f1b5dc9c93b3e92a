/* The lock order is enforced in debug builds, and only there. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/base/lock.h"

static struct mutex inode_a = MUTEX_INIT(RANK_INODE), inode_b = MUTEX_INIT(RANK_INODE);
static struct mutex mm = MUTEX_INIT(RANK_MM), task = MUTEX_INIT(RANK_TASK);

static bool aborts(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		close(2);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void in_order(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&inode_a);
	mutex_lock(&mm);
	mutex_lock(&task);
	mutex_unlock(&inode_a); /* the order of unlocking is free */
	mutex_unlock(&task);
	mutex_unlock(&mm);
	lock_assert_none_held(NULL);
}

static void out_of_order(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&mm);
	mutex_lock(&inode_a);
}

static void same_rank(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&inode_a);
	mutex_lock(&inode_b);
}

static void same_rank_nested(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&inode_a);
	mutex_lock_nested(&inode_b);
	mutex_unlock(&inode_a);
	mutex_unlock(&inode_b);
}

static void nested_below_inner(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&mm);
	mutex_lock_nested(&inode_a);
}

static void pair(void) NO_LOCK_ANALYSIS
{
	mutex_lock_pair(&inode_a, &inode_b);
	mutex_unlock_pair(&inode_a, &inode_b);
	mutex_lock_pair(&inode_b, &inode_a);
	mutex_unlock_pair(&inode_b, &inode_a);
	mutex_lock_pair(&inode_a, &inode_a);
	mutex_unlock_pair(&inode_a, &inode_a);
	lock_assert_none_held(NULL);
}

static void unlock_unheld(void) NO_LOCK_ANALYSIS
{
	mutex_unlock(&mm);
}

static void sleep_with_a_lock(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&mm);
	lock_assert_none_held(&task);
}

static void sleep_with_the_one_lock(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&mm);
	lock_assert_none_held(&mm);
	mutex_unlock(&mm);
}

static void trylock(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&mm);
	/* Against the order, but a trylock cannot deadlock. */
	if (!mutex_trylock(&inode_a))
		_exit(1);
	mutex_unlock(&inode_a);
	mutex_unlock(&mm);
	lock_assert_none_held(NULL);
}

static void allowed(void **state)
{
	(void)state;
	assert_false(aborts(in_order));
	assert_false(aborts(same_rank_nested));
	assert_false(aborts(pair));
	assert_false(aborts(trylock));
	assert_false(aborts(sleep_with_the_one_lock));
}

static void refused(void **state)
{
	(void)state;
#ifdef PINFOLD_DEBUG
	assert_true(aborts(out_of_order));
	assert_true(aborts(same_rank));
	assert_true(aborts(nested_below_inner));
	assert_true(aborts(unlock_unheld));
	assert_true(aborts(sleep_with_a_lock));
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allowed),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests_name("base_lock", tests, NULL, NULL);
}

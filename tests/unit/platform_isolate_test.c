/* What a Landlock domain keeps from its members: other processes, and device nodes; what it leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/host/host_isolate.h"

static int word = 7;

static int read_word(pid_t pid)
{
	int copy = 0;
	struct iovec here = { &copy, sizeof(copy) }, there = { &word, sizeof(word) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0)
		return -errno;
	return copy;
}

/* A child that waits to be killed. */
static pid_t start_waiter(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* The number of the line that failed, 0 when all is as it should be. */
static int member(pid_t outsider, int abi)
{
	char from[64], to[64], dir[] = "/tmp/isolate-XXXXXX";

	if (read_word(outsider) != word)
		return 0; /* the host's own rules are stricter than ours */
	if (host_enter_domain())
		return __LINE__;
	if (read_word(outsider) != -EPERM)
		return __LINE__;
	if (abi >= 6 && (kill(outsider, 0) == 0 || errno != EPERM))
		return __LINE__;
	pid_t inside = start_waiter();
	if (read_word(inside) != word || kill(inside, SIGKILL) != 0 ||
	    waitpid(inside, NULL, 0) != inside)
		return __LINE__;
	/* Files may be moved between directories, as the gofer does. */
	if (!mkdtemp(dir))
		return __LINE__;
	snprintf(from, sizeof(from), "%s/a", dir);
	snprintf(to, sizeof(to), "%s/d", dir);
	if (mkdir(to, 0700) != 0 || close(open(from, O_CREAT | O_WRONLY, 0600)) != 0)
		return __LINE__;
	snprintf(to, sizeof(to), "%s/d/b", dir);
	if (rename(from, to) != 0)
		return __LINE__;
	if (mknod(from, S_IFCHR | 0600, 0x103) == 0)
		return __LINE__;
	unlink(to);
	snprintf(to, sizeof(to), "%s/d", dir);
	rmdir(to);
	rmdir(dir);
	return 0;
}

static void test_domain(void **state)
{
	int status, abi = host_landlock_abi();

	(void)state;
	if (abi < 2)
		skip();
	pid_t outsider = start_waiter();
	pid_t pid = fork();
	if (pid == 0)
		_exit(member(outsider, abi));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(outsider, SIGKILL);
	waitpid(outsider, NULL, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_domain) };

	return cmocka_run_group_tests_name("platform: isolation", tests, NULL, NULL);
}

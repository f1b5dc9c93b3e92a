/*
 * TAP helper for programs that check the kernel below them. One program, one subject, several
 * TESTs; each runs in a process of its own with a time limit, so that a crash or a hang costs one
 * line. The program must pass on the host kernel first: the host is the oracle.
 *
 *	#include "tests/guest/t.h"
 *
 *	TEST(read_of_a_bad_descriptor)
 *	{
 *		char c;
 *		CHECK_ERR(read(-1, &c, 1), EBADF);
 *	}
 *	T_MAIN
 *
 * Arguments choose tests by name; -n runs them without fork (early bring-up of a kernel).
 * Exit status: 0 all passed or skipped, 1 some failed.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define T_TIMEOUT_S 60 /* ptrace on a busy machine is slow */
#define T_EXIT_FAIL 1
#define T_EXIT_SKIP 77

struct t_case {
	const char *name;
	void (*fn)(void);
	struct t_case *next;
};

static struct t_case *t_first, **t_last = &t_first;
static pid_t t_pid; /* the process that runs the test's body */
static bool t_nofork;
static sigjmp_buf t_jump;
static char t_skip_reason[200];
static char *t_skip_shared; /* the same across fork; NULL without memory for it */

#define TEST(id)                                                                                   \
	static void t_fn_##id(void);                                                               \
	__attribute__((constructor)) static void t_reg_##id(void)                                  \
	{                                                                                          \
		static struct t_case c = { #id, t_fn_##id, NULL };                                 \
		*t_last = &c;                                                                      \
		t_last = &c.next;                                                                  \
	}                                                                                          \
	static void t_fn_##id(void)

/* Ends the test (or the helper process that a test forked) with `status`. */
__attribute__((noreturn, unused)) static void t_end(int status)
{
	fflush(stdout);
	if (t_nofork && getpid() == t_pid)
		siglongjmp(t_jump, status == 0 ? -1 : status);
	_exit(status);
}

__attribute__((noreturn, unused, format(printf, 3, 4))) static void t_fail(const char *file,
									   int line,
									   const char *format, ...)
{
	va_list ap;
	char text[600];

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	printf("# %s:%d: %s\n", file, line, text);
	t_end(T_EXIT_FAIL);
}

#define FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)

/* True, or the test has failed. errno is printed since it is usually why. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			FAIL("CHECK(%s) failed, errno %d (%s)", #cond, errno, strerror(errno));    \
	} while (0)

/* A call that must not give -1 (or MAP_FAILED). */
#define CHECK_OK(call)                                                                             \
	do {                                                                                       \
		if ((long)(call) == -1)                                                            \
			FAIL("%s: errno %d (%s)", #call, errno, strerror(errno));                  \
	} while (0)

/* Two integers that must be equal. */
#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		long long t_g = (long long)(got), t_w = (long long)(want);                         \
		if (t_g != t_w)                                                                    \
			FAIL("%s is %lld (%#llx), want %s = %lld, errno %d (%s)", #got, t_g, t_g,  \
			     #want, t_w, errno, strerror(errno));                                  \
	} while (0)

/* A call that must give -1 (or MAP_FAILED) with this errno. */
#define CHECK_ERR(call, want)                                                                      \
	do {                                                                                       \
		errno = 0;                                                                         \
		long long t_r = (long long)(call);                                                 \
		int t_e = errno;                                                                   \
		if (t_r != -1 || t_e != (want))                                                    \
			FAIL("%s gave %lld, errno %d (%s), want %s", #call, t_r, t_e,              \
			     strerror(t_e), #want);                                                \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *t_g = (got), *t_w = (want);                                            \
		if (strcmp(t_g, t_w) != 0)                                                         \
			FAIL("%s is \"%s\", want \"%s\"", #got, t_g, t_w);                         \
	} while (0)

#define CHECK_MEM(got, want, n)                                                                    \
	do {                                                                                       \
		if (memcmp((got), (want), (n)) != 0)                                               \
			FAIL("%s differs from %s", #got, #want);                                   \
	} while (0)

/* Ends the test as skipped; the reason is printed. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		snprintf(t_skip_shared ? t_skip_shared : t_skip_reason, sizeof(t_skip_reason),     \
			 __VA_ARGS__);                                                             \
		t_end(T_EXIT_SKIP);                                                                \
	} while (0)
#define SKIP_IF(cond, ...)                                                                         \
	do {                                                                                       \
		if (cond)                                                                          \
			SKIP(__VA_ARGS__);                                                         \
	} while (0)

/* Waits for a child that must exit with `status`. */
#define CHECK_CHILD(pid, status)                                                                   \
	do {                                                                                       \
		int t_s = -1;                                                                      \
		CHECK_EQ(waitpid((pid), &t_s, 0), (pid));                                          \
		if (!WIFEXITED(t_s) || WEXITSTATUS(t_s) != (status))                               \
			FAIL("child ended with wait status %#x, want exit %d", (unsigned)t_s,      \
			     (int)(status));                                                       \
	} while (0)

/* Waits for a child that must die of `signo`. */
#define CHECK_KILLED(pid, signo)                                                                   \
	do {                                                                                       \
		int t_s = -1;                                                                      \
		CHECK_EQ(waitpid((pid), &t_s, 0), (pid));                                          \
		if (!WIFSIGNALED(t_s) || WTERMSIG(t_s) != (signo))                                 \
			FAIL("child ended with wait status %#x, want signal %d", (unsigned)t_s,    \
			     (int)(signo));                                                        \
	} while (0)

/* Runs one case; the wait status, or an exit status in the same encoding without fork. */
static int t_run_one(struct t_case *c)
{
	int status = 0;

	if (t_nofork) {
		t_pid = getpid();
		int code = sigsetjmp(t_jump, 1);
		if (code == 0)
			c->fn();
		return code <= 0 ? 0 : code << 8;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0) {
		printf("# fork: %s\n", strerror(errno));
		return T_EXIT_FAIL << 8;
	}
	if (pid == 0) {
		t_pid = getpid();
		alarm(T_TIMEOUT_S);
		c->fn();
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			printf("# waitpid: %s\n", strerror(errno));
			return T_EXIT_FAIL << 8;
		}
	return status;
}

static bool t_selected(const char *name, int argc, char **argv)
{
	bool any = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-n") == 0)
			continue;
		any = true;
		if (strcmp(argv[i], name) == 0)
			return true;
	}
	return !any;
}

static int t_report(const struct t_case *c, int number, int status)
{
	const char *reason = t_skip_shared ? t_skip_shared : t_skip_reason;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("ok %d - %s\n", number, c->name);
		return 0;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == T_EXIT_SKIP) {
		printf("ok %d - %s # SKIP %s\n", number, c->name, reason);
		return 0;
	}
	if (WIFSIGNALED(status))
		printf("# %s: killed by signal %d (%s)%s\n", c->name, WTERMSIG(status),
		       strsignal(WTERMSIG(status)),
		       WTERMSIG(status) == SIGALRM ? ": took too long" : "");
	printf("not ok %d - %s\n", number, c->name);
	return 1;
}

static int t_main(int argc, char **argv)
{
	int number = 0, failed = 0;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-n") == 0)
			t_nofork = true;
	void *p = mmap(NULL, sizeof(t_skip_reason), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	t_skip_shared = p == MAP_FAILED ? NULL : p;
	for (struct t_case *c = t_first; c; c = c->next) {
		if (!t_selected(c->name, argc, argv))
			continue;
		failed += t_report(c, number + 1, t_run_one(c));
		number++;
	}
	printf("1..%d\n", number);
	fflush(stdout);
	return failed ? 1 : 0;
}

#define T_MAIN                                                                                     \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return t_main(argc, argv);                                                         \
	}

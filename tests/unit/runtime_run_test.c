/*
 * The command line up to the call of sandbox_run, which this file replaces: options, views,
 * secrets, environment, and the one line that each wrong word gets.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/base/log.h"
#include "runtime/cli.h"
#include "runtime/run.h"
#include "sentry/boot.h"

static struct sandbox_spec seen; /* of the last sandbox_run */
static int calls;
static int log_fd;
static char home[64];

int sandbox_run(const struct sandbox_spec *spec)
{
	seen = *spec;
	calls++;
	return 42;
}

static int run_words(const char *first, ...)
{
	static char *argv[32]; /* the spec points into it */
	int argc = 1;
	va_list ap;

	memset(argv, 0, sizeof(argv));
	argv[0] = strdup("run");
	va_start(ap, first);
	for (const char *w = first; w; w = va_arg(ap, const char *))
		argv[argc++] = strdup(w);
	va_end(ap);
	if (ftruncate(log_fd, 0) < 0 || lseek(log_fd, 0, SEEK_SET) < 0)
		fail();
	calls = 0;
	return cmd_run(argc, argv);
}

/* The words must be refused with one line that holds `part`. */
#define REFUSED(part, ...)                                                                         \
	do {                                                                                       \
		assert_int_equal(run_words(__VA_ARGS__, (char *)NULL), 125);                       \
		assert_int_equal(calls, 0);                                                        \
		check_log(part);                                                                   \
	} while (0)
#define ACCEPTED(...)                                                                              \
	do {                                                                                       \
		assert_int_equal(run_words(__VA_ARGS__, (char *)NULL), 42);                        \
		assert_int_equal(calls, 1);                                                        \
	} while (0)

static void check_log(const char *part)
{
	char text[1024];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	assert_true(n > 0);
	text[n] = 0;
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

static bool has(const char *const *list, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], s) == 0)
			return true;
	return false;
}

static bool hidden(const char *path)
{
	return has(seen.hidden, seen.hidden_count, path) ||
	       has(seen.absent, seen.absent_count, path);
}

static bool hidden_in_home(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", home, name);
	return hidden(path);
}

static const char *env(const char *name)
{
	size_t n = strlen(name);

	for (const char *const *e = seen.envp; *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static void sizes_and_times(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(parse_size("0", &v) && v == 0);
	assert_true(parse_size("4096", &v) && v == 4096);
	assert_true(parse_size("64k", &v) && v == 65536);
	assert_true(parse_size("1.5M", &v) && v == 1572864);
	assert_true(parse_size("2GiB", &v) && v == 2ull << 30);
	assert_true(parse_size("1GB", &v) && v == 1ull << 30);
	assert_true(parse_size("1T", &v) && v == 1ull << 40);
	const char *const bad_sizes[] = { "",     "-1",  "x", "1x",           "1kk",
					  "0x10", "1e3", ".", "99999999999T", "1 k" };
	for (size_t i = 0; i < ARRAY_SIZE(bad_sizes); i++)
		if (parse_size(bad_sizes[i], &v))
			fail_msg("size %s was taken", bad_sizes[i]);
	assert_true(parse_duration("10", &v) && v == 10000000000u);
	assert_true(parse_duration("1.5s", &v) && v == 1500000000u);
	assert_true(parse_duration("250ms", &v) && v == 250000000u);
	assert_true(parse_duration("2m", &v) && v == 120000000000u);
	assert_true(parse_duration("1h", &v) && v == 3600000000000u);
	const char *const bad_times[] = { "",    "s",   "-1s", "1y",          "1 s",
					  "nan", "inf", "1e9", "99999999999d" };
	for (size_t i = 0; i < ARRAY_SIZE(bad_times); i++)
		if (parse_duration(bad_times[i], &v))
			fail_msg("duration %s was taken", bad_times[i]);
}

static void plain_run(void **state)
{
	(void)state;
	ACCEPTED("--", "ls", "-l", "--rw");
	assert_string_equal(seen.argv[0], "ls");
	assert_string_equal(seen.argv[2], "--rw");
	assert_null(seen.argv[3]);
	assert_int_equal(seen.view_count, 1);
	assert_int_equal(seen.views[0].kind, VIEW_OVERLAY);
	assert_string_equal(seen.views[0].host, "/");
	assert_string_equal(seen.views[0].guest, "/");
	assert_int_equal(seen.uid, getuid());
	assert_int_equal(seen.trace_fd, -1);
	assert_int_equal(seen.timeout_ns, 0);
	assert_int_equal(seen.memory_limit, 0);
	assert_true(seen.pids_limit > 0);
	assert_null(seen.platform);
	assert_string_equal(seen.cwd, home);
	/* The first word that is no option begins the command, with or without "--". */
	ACCEPTED("ls", "--", "x");
	assert_string_equal(seen.argv[1], "--");
}

static void options_reach_the_spec(void **state)
{
	(void)state;
	ACCEPTED("--memory=512M", "--pids", "7", "-t", "1.5s", "--hostname", "box",
		 "--platform=ptrace", "-w/usr", "--", "ls");
	assert_true(seen.memory_limit == 512ull << 20);
	assert_int_equal(seen.pids_limit, 7);
	assert_int_equal(seen.timeout_ns, 1500000000);
	assert_string_equal(seen.hostname, "box");
	assert_string_equal(seen.platform, "ptrace");
	assert_string_equal(seen.cwd, "/usr");
}

static void trees(void **state)
{
	(void)state;
	ACCEPTED("-v", "/usr/share:/a/b/c:ro", "--rw", ".", "-v", "/etc:/a", "ls");
	assert_int_equal(seen.view_count, 4);
	/* Outer before inner, so that /a does not cover /a/b/c. */
	assert_string_equal(seen.views[1].guest, "/a");
	assert_int_equal(seen.views[1].kind, VIEW_RW);
	assert_string_equal(seen.views[2].guest, home);
	assert_string_equal(seen.views[2].host, home);
	assert_string_equal(seen.views[3].guest, "/a/b/c");
	assert_int_equal(seen.views[3].kind, VIEW_RO);
	ACCEPTED("-v", "/usr:/x//y/./z/", "ls");
	assert_string_equal(seen.views[1].guest, "/x/y/z");
	ACCEPTED("--rootfs", "/usr", "ls");
	assert_string_equal(seen.views[0].host, "/usr");
	/* The caller's directory is not there; no reason to fail. */
	assert_string_equal(seen.cwd, "/");
}

static void secrets(void **state)
{
	(void)state;
	ACCEPTED("ls");
	assert_true(hidden_in_home(".ssh"));
	assert_true(hidden_in_home(".aws"));
	assert_true(hidden_in_home(".bash_history"));
	assert_true(hidden_in_home(".mozilla"));
	assert_true(hidden_in_home(".docker/config.json"));
	assert_false(hidden_in_home(".docker"));
	assert_false(hidden(home));
	assert_true(hidden("/etc/shadow"));
	ACCEPTED("--show", ".ssh", "--show=/etc/shadow", "ls");
	assert_false(hidden_in_home(".ssh"));
	assert_false(hidden("/etc/shadow"));
	assert_true(hidden_in_home(".aws"));
	/* A link is hidden together with what it points at; --show lifts both by either name. */
	assert_int_equal(mkdir("real-keys", 0700), 0);
	assert_int_equal(symlink("real-keys", ".gnupg"), 0);
	ACCEPTED("ls");
	assert_true(hidden_in_home("real-keys"));
	ACCEPTED("--show", "real-keys", "ls");
	assert_false(hidden_in_home("real-keys"));
	assert_false(hidden_in_home(".gnupg"));
}

static void explicit_trees_and_secrets(void **state)
{
	(void)state;
	assert_int_equal(mkdir(".kube", 0700), 0);
	REFUSED("--show", "-v", ".kube:/k:ro", "ls");
	REFUSED("--show", "--ro", ".kube", "ls");
	ACCEPTED("--show", ".kube", "-v", ".kube:/k:ro", "ls");
}

static void variables(void **state)
{
	(void)state;
	setenv("MY_SECRET", "hunter2", 1);
	setenv("LC_TIME", "C", 1);
	setenv("PWD", "/nowhere", 1);
	ACCEPTED("ls");
	assert_null(env("MY_SECRET"));
	assert_string_equal(env("LC_TIME"), "C");
	assert_string_equal(env("HOME"), home);
	assert_string_equal(env("PWD"), home);
	assert_non_null(env("PATH"));
	ACCEPTED("-e", "MY_SECRET", "-e", "A=1", "-eA=2", "-e", "NOT_SET_ANYWHERE", "--env",
		 "E=", "ls");
	assert_string_equal(env("MY_SECRET"), "hunter2");
	assert_string_equal(env("A"), "2");
	assert_string_equal(env("E"), "");
	assert_null(env("NOT_SET_ANYWHERE"));
	ACCEPTED("--env-all", "ls");
	assert_string_equal(env("MY_SECRET"), "hunter2");
}

static void odd_surroundings(void **state)
{
	char *path = strdup(getenv("PATH"));

	(void)state;
	unsetenv("HOME");
	unsetenv("PATH");
	ACCEPTED("ls");
	assert_null(env("HOME"));
	assert_non_null(strstr(env("PATH"), "/usr/bin"));
	setenv("PATH", path, 1);
	/* A directory that was removed under our feet. */
	assert_int_equal(mkdir("gone", 0700), 0);
	assert_int_equal(chdir("gone"), 0);
	assert_int_equal(rmdir("../gone"), 0);
	ACCEPTED("ls");
	assert_string_equal(seen.cwd, "/");
	assert_int_equal(chdir(home), 0);
	setenv("HOME", home, 1);
	free(path);
}

static void closed_stdin_stays_unusable(void **state)
{
	int keep = dup(0);
	char c;

	(void)state;
	close(0);
	ACCEPTED("--trace=trace.out", "ls");
	assert_true(seen.trace_fd > 2);
	assert_int_equal(read(0, &c, 1), -1);
	assert_int_equal(errno, EBADF);
	close(seen.trace_fd);
	dup2(keep, 0);
	close(keep);
}

static void wrong_words(void **state)
{
	(void)state;
	REFUSED("no command", "--rw", ".");
	REFUSED("did you mean --memory", "--memry", "1M", "ls");
	REFUSED("unknown option -Z", "-Z", "ls");
	REFUSED("needs a value: DIR", "--rw");
	REFUSED("takes no value", "--env-all=x", "ls");
	REFUSED("not a size", "--memory", "lots", "ls");
	REFUSED("at least", "--memory", "1k", "ls");
	REFUSED("--pids 0", "--pids", "0", "ls");
	REFUSED("--timeout soon", "--timeout", "soon", "ls");
	REFUSED("did you mean 'ptrace'", "--platform", "ptrac", "ls");
	REFUSED("/no/such", "--ro", "/no/such", "ls");
	REFUSED("HOST:GUEST", "-v", "/usr", "ls");
	REFUSED("absolute", "-v", "/usr:rel", "ls");
	REFUSED("'..'", "-v", "/usr:/a/../b", "ls");
	REFUSED("'rx'", "-v", "/usr:/u:rx", "ls");
	REFUSED("not a directory", "--rootfs", "/etc/passwd", "ls");
	REFUSED("NAME=VALUE", "-e", "=x", "ls");
	REFUSED("cannot write", "--trace=/no/such/file", "ls");
	REFUSED("--hostname", "--hostname", "", "ls");
	/* A newline in the user's word must not make a second line. */
	REFUSED("?evil", "--ro", "/no\nevil", "ls");
}

static void shell(void **state)
{
	char *argv[] = { "pinfold", "-c", "echo $0", "name", NULL };

	(void)state;
	assert_int_equal(shell_shim(4, argv), 42);
	assert_string_equal(seen.argv[0], "/bin/sh");
	assert_string_equal(seen.argv[1], "-c");
	assert_string_equal(seen.argv[2], "echo $0");
	assert_string_equal(seen.argv[3], "name");
	assert_null(seen.argv[4]);
	assert_int_equal(shell_shim(2, argv), 125);
}

static int setup(void **state)
{
	(void)state;
	strcpy(home, "/tmp/pinfold-unit-XXXXXX");
	log_fd = memfd_create("log", 0);
	log_init(log_fd, LOG_WARN);
	if (!mkdtemp(home) || chdir(home) < 0)
		return -1;
	return setenv("HOME", home, 1);
}

static int teardown(void **state)
{
	(void)state;
	rmdir("real-keys");
	unlink(".gnupg");
	rmdir(".kube");
	unlink("trace.out");
	return rmdir(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_times),
		cmocka_unit_test(plain_run),
		cmocka_unit_test(options_reach_the_spec),
		cmocka_unit_test(trees),
		cmocka_unit_test(secrets),
		cmocka_unit_test(explicit_trees_and_secrets),
		cmocka_unit_test(variables),
		cmocka_unit_test(odd_surroundings),
		cmocka_unit_test(closed_stdin_stays_unusable),
		cmocka_unit_test(wrong_words),
		cmocka_unit_test(shell),
	};
	return cmocka_run_group_tests_name("runtime_run", tests, setup, teardown);
}

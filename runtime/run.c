/*
 * `pinfold run` and the shell shim `pinfold -c`: from options to a sandbox_spec, then the sentry
 * takes the process over.
 */
#include "runtime/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "runtime/run_options.h"

#define GROUPS_MAX 65536 /* Linux NGROUPS_MAX */

/*
 * A standard descriptor that the caller closed is filled with one that can neither be read nor
 * written (O_PATH gives EBADF, as the closed one would), so that nothing of ours lands on its
 * number.
 */
static int fill_std_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (open("/", O_PATH) != fd)
			return cli_error("cannot fill the closed descriptor %d: %s", fd,
					 strerror(errno));
	}
	return 0;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Where the command starts. Without -w: the caller's directory if it is there inside, else "/". */
static const char *choose_cwd(const struct run_options *o)
{
	if (o->workdir)
		return o->workdir;
	char *cwd = getcwd(NULL, 0);
	const char *out = "/";
	if (cwd && cwd[0] == '/') {
		const char *root = o->views[0].host;
		char *at = cli_printf("%s%s", strcmp(root, "/") == 0 ? "" : root, cwd);
		bool shown = is_dir(at);
		for (size_t i = 1; i < o->view_count && !shown; i++)
			shown = path_is_below(cwd, o->views[i].guest);
		if (shown)
			out = cli_strdup(cwd);
		mem_free(at);
	}
	free(cwd);
	return out;
}

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += path[0] == '/' && path[1] != 0;
	return n;
}

/* Outer trees first, so that none covers one that was named inside it; the order of equals is kept.
 */
static void sort_views(struct run_options *o)
{
	for (size_t i = 2; i < o->view_count; i++) {
		struct view v = o->views[i];
		size_t j = i;
		while (j > 1 && depth(o->views[j - 1].guest) > depth(v.guest)) {
			o->views[j] = o->views[j - 1];
			j--;
		}
		o->views[j] = v;
	}
}

/* The caller's supplementary groups. */
static int get_groups(struct sandbox_spec *spec)
{
	int n = getgroups(0, NULL);

	if (n < 0 || n > GROUPS_MAX)
		return cli_error("cannot read the caller's groups: %s", strerror(errno));
	gid_t *list = cli_alloc((size_t)MAX(n, 1) * sizeof(*list));
	n = getgroups(n, list);
	if (n < 0)
		return cli_error("cannot read the caller's groups: %s", strerror(errno));
	spec->groups = list;
	spec->group_count = (size_t)n;
	return 0;
}

static const char *host_name(void)
{
	char name[65] = "";

	if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
		return "pinfold";
	return cli_strdup(name);
}

static int run_spec(struct run_options *o, const char *const *argv)
{
	struct strings hidden = { 0 }, absent = { 0 }, env = { 0 };
	struct sandbox_spec spec = {
		.argv = argv,
		.cwd = choose_cwd(o),
		.platform = o->platform,
		.uid = getuid(),
		.gid = getgid(),
		.hostname = o->hostname ? o->hostname : host_name(),
		.memory_limit = o->memory,
		.pids_limit = (uint32_t)o->pids,
		.timeout_ns = o->timeout_ns,
		.trace_fd = o->trace_fd,
	};
	int err = get_groups(&spec);
	if (err)
		return err;
	sort_views(o);
	spec.views = o->views;
	spec.view_count = o->view_count;
	err = hidden_paths(o, spec.cwd, &hidden, &absent);
	if (err)
		return err;
	spec.hidden = hidden.item;
	spec.hidden_count = hidden.count;
	spec.absent = absent.item;
	spec.absent_count = absent.count;
	build_environment(o, spec.cwd, &env);
	spec.envp = env.item;
	return sandbox_run(&spec);
}

int cmd_run(int argc, char **argv)
{
	int first, err = fill_std_fds();
	struct run_options *o = cli_alloc(sizeof(*o));

	if (err)
		return err;
	run_options_init(o);
	err = run_options_parse(o, argc, argv, &first);
	if (err)
		return err;
	if (o->help) {
		run_options_print();
		return 0;
	}
	if (first >= argc)
		return cli_error(
			"run: no command was given; write pinfold run [OPTION...] -- CMD [ARG...]");
	return run_spec(o, (const char *const *)argv + first);
}

int shell_shim(int argc, char **argv)
{
	struct strings words = { 0 };
	int err = fill_std_fds();
	struct run_options *o = cli_alloc(sizeof(*o));

	if (err)
		return err;
	run_options_init(o);
	if (argc < 3)
		return cli_error("-c needs a string: what the shell is to run");
	strings_add(&words, "/bin/sh");
	for (int i = 1; i < argc; i++)
		strings_add(&words, argv[i]);
	return run_spec(o, words.item);
}

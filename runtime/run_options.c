/* Options of `pinfold run`: see run_options.h. Each has one function below, named in options.def.
 */
#include "runtime/run_options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"

/* Applies one option; `arg` is NULL when it takes none or the optional one is absent. 0 or
 * EXIT_SETUP. */
typedef int option_fn(struct run_options *o, const char *arg);

struct option {
	const char *name;
	char letter;
	const char *arg;
	option_fn *fn;
	const char *help;
};

static option_fn opt_rw, opt_ro, opt_volume, opt_rootfs, opt_workdir, opt_show, opt_env,
	opt_env_all, opt_memory, opt_pids, opt_timeout, opt_hostname, opt_platform, opt_trace,
	opt_help;

static const struct option options[] = {
#define OPTION(name, letter, arg, fn, help) { name, letter, arg, fn, help },
#include "runtime/options.def"
#undef OPTION
};

static const char *option_name(size_t i)
{
	return i < ARRAY_SIZE(options) ? options[i].name : NULL;
}

void run_options_init(struct run_options *o)
{
	*o = (struct run_options){ .view_count = 1, .pids = PIDS_DEFAULT, .trace_fd = -1 };
	o->views[0] = (struct view){ .kind = VIEW_OVERLAY, .host = "/", .guest = "/" };
}

/* The absolute, resolved host path of something that must exist; NULL after an error line. */
static const char *host_path(const char *option, const char *arg)
{
	char *real = realpath(arg, NULL);

	if (!real) {
		cli_error("%s %s: %s on this machine", option, arg[0] ? arg : "''",
			  errno == ENOENT ? "there is no such file or directory" : strerror(errno));
		return NULL;
	}
	char *copy = cli_strdup(real);
	free(real);
	return copy;
}

static int add_view(struct run_options *o, enum view_kind kind, const char *host, const char *guest)
{
	if (o->view_count == VIEWS_MAX)
		return cli_error("more than %d trees were named with --rw, --ro and -v", VIEWS_MAX);
	o->views[o->view_count++] = (struct view){ .kind = kind, .host = host, .guest = guest };
	return 0;
}

static int add_same_place(struct run_options *o, enum view_kind kind, const char *option,
			  const char *arg)
{
	const char *host = host_path(option, arg);

	return host ? add_view(o, kind, host, host) : EXIT_SETUP;
}

static int opt_rw(struct run_options *o, const char *arg)
{
	return add_same_place(o, VIEW_RW, "--rw", arg);
}

static int opt_ro(struct run_options *o, const char *arg)
{
	return add_same_place(o, VIEW_RO, "--ro", arg);
}

/* A guest path as the mount table wants it: absolute, single slashes, no "." or ".."; else NULL. */
static const char *clean_guest_path(const char *path)
{
	char *out = cli_alloc(strlen(path) + 2);
	size_t n = 0;

	if (path[0] != '/')
		return NULL;
	while (*path) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		if (len == 0)
			break;
		if (len > NAME_MAX || (len == 2 && memcmp(path, "..", 2) == 0))
			return NULL;
		if (len != 1 || path[0] != '.') {
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = 0;
	return out;
}

static int opt_volume(struct run_options *o, const char *arg)
{
	char *host = cli_strdup(arg);
	char *guest = strchr(host, ':');
	enum view_kind kind = VIEW_RW;

	if (!guest || guest == host || !guest[1])
		return cli_error("-v %s: write it as HOST:GUEST or HOST:GUEST:ro", arg);
	*guest++ = 0;
	char *mode = strchr(guest, ':');
	if (mode) {
		*mode++ = 0;
		if (strcmp(mode, "ro") == 0)
			kind = VIEW_RO;
		else if (strcmp(mode, "rw") != 0)
			return cli_error("-v %s: '%s' is no mode; write ro, rw or nothing", arg,
					 mode);
	}
	const char *clean = clean_guest_path(guest);
	if (!clean)
		return cli_error("-v %s: the path inside, '%s', must be absolute and without '..'",
				 arg, guest);
	const char *real = host_path("-v", host);
	return real ? add_view(o, kind, real, clean) : EXIT_SETUP;
}

static int opt_rootfs(struct run_options *o, const char *arg)
{
	struct stat st;
	const char *host = host_path("--rootfs", arg);

	if (!host)
		return EXIT_SETUP;
	if (stat(host, &st) < 0 || !S_ISDIR(st.st_mode))
		return cli_error("--rootfs %s: not a directory", arg);
	o->views[0].host = host;
	return 0;
}

static int opt_workdir(struct run_options *o, const char *arg)
{
	/* A relative one starts at the caller's directory, as it does for cd. */
	char *cwd = arg[0] == '/' ? NULL : getcwd(NULL, 0);
	char *full = cwd ? cli_printf("%s/%s", cwd, arg) : cli_strdup(arg);

	free(cwd);
	if (!arg[0] || full[0] != '/')
		return cli_error("-w %s: name a directory inside the sandbox, as an absolute path",
				 arg);
	o->workdir = full;
	return 0;
}

static int opt_show(struct run_options *o, const char *arg)
{
	char *cwd = arg[0] == '/' ? NULL : getcwd(NULL, 0);
	char *full = cwd ? cli_printf("%s/%s", cwd, arg) : cli_strdup(arg);

	free(cwd);
	/* Not resolved: both the name and what it points at are looked for in the table. */
	const char *clean = clean_guest_path(full);
	if (!clean)
		return cli_error("--show %s: name a path of this machine without '..'", arg);
	strings_add(&o->show, clean);
	char *real = realpath(full, NULL);
	if (real)
		strings_add(&o->show, cli_strdup(real));
	free(real);
	return 0;
}

static int opt_env(struct run_options *o, const char *arg)
{
	size_t n = strcspn(arg, "=");

	if (n == 0)
		return cli_error("-e %s: write it as NAME or NAME=VALUE", arg);
	if (arg[n] == '=') {
		strings_add(&o->env, arg);
		return 0;
	}
	/* Unset here, unset inside. */
	const char *value = getenv(arg);
	if (value)
		strings_add(&o->env, cli_printf("%s=%s", arg, value));
	return 0;
}

static int opt_env_all(struct run_options *o, const char *arg UNUSED)
{
	o->env_all = true;
	return 0;
}

static int opt_memory(struct run_options *o, const char *arg)
{
	if (!parse_size(arg, &o->memory))
		return cli_error("--memory %s: not a size; write it like 512M or 2G", arg);
	if (o->memory < 1024 * 1024)
		return cli_error("--memory %s: at least 1M is needed", arg);
	return 0;
}

static int opt_pids(struct run_options *o, const char *arg)
{
	if (!parse_count(arg, 1u << 22, &o->pids) || o->pids == 0)
		return cli_error("--pids %s: not a number from 1 to %u", arg, 1u << 22);
	return 0;
}

static int opt_timeout(struct run_options *o, const char *arg)
{
	if (!parse_duration(arg, &o->timeout_ns) || o->timeout_ns == 0)
		return cli_error("--timeout %s: not a duration; write it like 10s, 500ms, 5m or 1h",
				 arg);
	return 0;
}

static int opt_hostname(struct run_options *o, const char *arg)
{
	size_t n = strlen(arg);

	if (n == 0 || n > 64)
		return cli_error("--hostname %s: a name has 1 to 64 characters", arg);
	o->hostname = arg;
	return 0;
}

static const char *platform_name(size_t i)
{
	const struct platform_ops *p = platform_at(i);
	return p ? p->name : NULL;
}

static int opt_platform(struct run_options *o, const char *arg)
{
	if (!platform_find(arg)) {
		const char *near = cli_nearest(arg, platform_name);
		return cli_error("--platform %s: there is no such platform; %s'%s'%s", arg,
				 near ? "did you mean " : "the default is ",
				 near ? near : platform_name(0), near ? "?" : "");
	}
	o->platform = arg;
	return 0;
}

static int opt_trace(struct run_options *o, const char *arg)
{
	if (o->trace_fd >= 0)
		close(o->trace_fd);
	if (!arg) {
		o->trace_fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
		return o->trace_fd < 0 ? cli_error("--trace: stderr is closed; name a file") : 0;
	}
	int fd = open(arg, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return cli_error("--trace=%s: cannot write it: %s", arg, strerror(errno));
	/* The standard descriptors are the guest's, also where the caller left one closed. */
	o->trace_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return o->trace_fd < 0 ? cli_error("--trace=%s: %s", arg, strerror(errno)) : 0;
}

static int opt_help(struct run_options *o, const char *arg UNUSED)
{
	o->help = true;
	return 0;
}

static const struct option *find_long(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
			return &options[i];
	return NULL;
}

static const struct option *find_letter(char c)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].letter == c)
			return &options[i];
	return NULL;
}

static int unknown_option(const char *word)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	const char *near =
		name[0] == '-' && name[1] == '-' ? cli_nearest(name + 2, option_name) : NULL;
	if (near)
		return cli_error("unknown option %s; did you mean --%s?", name, near);
	return cli_error("unknown option %s; `pinfold run --help` lists them, and -- ends them",
			 name);
}

/* One option at argv[*i]; *i is moved to the last word that belongs to it. */
static int parse_one(struct run_options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *arg = NULL;
	const struct option *op;

	if (word[1] == '-') {
		size_t n = strcspn(word + 2, "=");
		op = find_long(word + 2, n);
		if (word[2 + n] == '=')
			arg = word + 2 + n + 1;
	} else {
		op = find_letter(word[1]);
		if (word[2])
			arg = word + 2;
	}
	if (!op)
		return unknown_option(word);
	if (!op->arg && arg)
		return cli_error("option --%s takes no value", op->name);
	if (op->arg && op->arg[0] != '[' && !arg) {
		if (*i + 1 >= argc)
			return cli_error("option %s needs a value: %s", word, op->arg);
		arg = argv[++*i];
	}
	return op->fn(o, arg);
}

int run_options_parse(struct run_options *o, int argc, char **argv, int *out_first)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		int err = parse_one(o, argc, argv, &i);
		if (err)
			return err;
	}
	*out_first = i;
	return 0;
}

void run_options_print(void)
{
	printf("usage: pinfold run [OPTION...] -- CMD [ARG...]\n\n"
	       "Runs CMD over your own files: it can read what you can, except secrets, and what "
	       "it\n"
	       "writes goes to an overlay that ends with it.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *p = &options[i];
		char head[64];
		bool optional = p->arg && p->arg[0] == '[';
		int n = p->letter ? snprintf(head, sizeof(head), "-%c, ", p->letter)
				  : snprintf(head, sizeof(head), "    ");
		snprintf(head + n, sizeof(head) - (size_t)n, "--%s%s%s", p->name,
			 !p->arg    ? ""
			 : optional ? "[="
				    : " ",
			 !p->arg ? "" : p->arg + optional);
		printf("  %-30s %s\n", head, p->help);
	}
	printf("\nExit status: that of CMD, 128+N when signal N ended it, 124 time-out, 125 the "
	       "sandbox could\n"
	       "not be set up, 126 CMD cannot be executed, 127 CMD was not found.\n");
}

/* The environment of the first process: the rows of env.def, what -e names, or everything. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/run_options.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct env_row {
	const char *name;
	bool prefix;
};

static const struct env_row rows[] = {
#define ENV(name) { name, false },
#define ENV_PREFIX(name) { name, true },
#include "runtime/env.def"
#undef ENV
#undef ENV_PREFIX
};

static bool is_allowed(const char *var)
{
	size_t n = strcspn(var, "=");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);
		if ((rows[i].prefix ? n > len : n == len) && memcmp(var, rows[i].name, len) == 0)
			return true;
	}
	return false;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/* A later setting of a name replaces the earlier one in its place. */
static void env_set(struct strings *l, const char *var)
{
	for (size_t i = 0; i < l->count; i++)
		if (same_name(l->item[i], var)) {
			l->item[i] = var;
			return;
		}
	strings_add(l, var);
}

void build_environment(const struct run_options *o, const char *cwd, struct strings *out)
{
	bool has_path = false, has_pwd = false;

	for (char **e = environ; *e; e++)
		if (o->env_all || is_allowed(*e))
			env_set(out, *e);
	for (size_t i = 0; i < o->env.count; i++)
		env_set(out, o->env.item[i]);
	for (size_t i = 0; i < out->count; i++) {
		has_path = has_path || strncmp(out->item[i], "PATH=", 5) == 0;
		has_pwd = has_pwd || strncmp(out->item[i], "PWD=", 4) == 0;
	}
	if (!has_path)
		env_set(out, "PATH=" DEFAULT_PATH);
	/* A PWD that is there must be true; a missing one is the shell's business. */
	if (has_pwd)
		env_set(out, cli_printf("PWD=%s", cwd));
	if (out->count == 0) {
		strings_add(out, NULL);
		out->count = 0;
	}
}

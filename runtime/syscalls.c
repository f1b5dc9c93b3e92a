/* `pinfold syscalls`: prints the coverage that the rows of syscalls/syscalls.def state. */
#include <string.h>
#include <unistd.h>

#include "runtime/cli.h"
#include "sentry/coverage.h"

struct format_row {
	const char *name;
	enum coverage_format format;
};

static const struct format_row formats[] = {
	{ "table", COVERAGE_TABLE },
	{ "md", COVERAGE_MARKDOWN },
	{ "json", COVERAGE_JSON },
};

int cmd_syscalls(int argc, char **argv)
{
	static const char option[] = "--format=";
	const char *want = "table";

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], option, sizeof(option) - 1) != 0)
			return cli_error(
				"syscalls: unknown option %s; there is --format=table|md|json",
				argv[i]);
		want = argv[i] + sizeof(option) - 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (strcmp(want, formats[i].name) != 0)
			continue;
		int err = coverage_print(formats[i].format, STDOUT_FILENO);
		return err ? cli_error("syscalls: cannot write: %s", strerror(-err)) : 0;
	}
	return cli_error("syscalls: unknown format %s; choose table, md or json", want);
}

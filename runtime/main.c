/* The command line: finds the command's row in commands.def and calls its function. */
#include <stdio.h>
#include <string.h>

#include "runtime/cli.h"
#include "runtime/run.h"

static const char *command_name(size_t i)
{
	return i < command_count ? commands[i].name : NULL;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return cli_error("no command was given; `pinfold help` lists them");
	const char *name = argv[1];
	if (strcmp(name, "-c") == 0)
		return shell_shim(argc, argv);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	const struct command *c = find_command(name);
	if (c)
		return c->run(argc - 1, argv + 1);
	const char *near = cli_nearest(name, command_name);
	if (near)
		return cli_error("unknown command %s; did you mean %s?", name, near);
	return cli_error(
		"unknown command %s; `pinfold help` lists them, `pinfold run -- %s` runs it", name,
		name);
}

/* `pinfold help` and `pinfold version`: everything printed comes from the tables. */
#include <stdio.h>
#include <string.h>

#include "runtime/cli.h"
#include "runtime/run_options.h"

const struct command commands[] = {
#define COMMAND(name, fn, usage, help) { #name, usage, help, fn },
#include "runtime/commands.def"
#undef COMMAND
};
const size_t command_count = ARRAY_SIZE(commands);

int cmd_help(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "run") == 0) {
		run_options_print();
		return 0;
	}
	printf("pinfold runs Linux programs in a user-space kernel of its own.\n\n");
	for (size_t i = 0; i < command_count; i++) {
		const struct command *c = &commands[i];
		char head[80];
		snprintf(head, sizeof(head), "%s %s", c->name, c->usage);
		printf("  pinfold %-36s %s\n", head, c->help);
	}
	printf("  pinfold %-36s %s\n", "-c STRING", "run a shell command line, as a shell does");
	printf("\n`pinfold help run` shows the options of run.\n");
	return 0;
}

int cmd_version(int argc UNUSED, char **argv UNUSED)
{
	printf("pinfold " PINFOLD_VERSION "\n");
	return 0;
}

/*
 * What every command of the command line shares: error lines, memory that cannot fail (a command
 * line that has no memory ends with a sentence), small parsers.
 */
#pragma once

#include "platform/base/types.h"

/* Exit statuses that are pinfold's own, as env(1), timeout(1) and docker(1) use them. */
#define EXIT_TIMEOUT 124
#define EXIT_SETUP 125

/* One row of commands.def. */
struct command {
	const char *name;
	const char *usage;
	const char *help;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status
					    */
};

extern const struct command commands[];
extern const size_t command_count;

#define COMMAND(name, fn, usage, help) int fn(int argc, char **argv);
#include "runtime/commands.def"
#undef COMMAND

/* Prints "pinfold: ..." as one line on stderr; returns EXIT_SETUP. */
int cli_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* Zeroed memory; ends the process with a sentence when there is none. The caller owns it. */
void *cli_alloc(size_t size) MUST_CHECK;
char *cli_strdup(const char *s) MUST_CHECK;
char *cli_printf(const char *format, ...) PRINTF_LIKE(1, 2) MUST_CHECK;

/* A list of strings that grows; always NULL-terminated once something was added. */
struct strings {
	const char **item;
	size_t count;
	size_t cap;
};

/* Borrows s for the life of the list. */
void strings_add(struct strings *l, const char *s);
bool strings_has(const struct strings *l, const char *s);

/* The name nearest to `word` in a table, or NULL when none is near. `name_at` gives NULL past the
 * end. */
const char *cli_nearest(const char *word, const char *(*name_at)(size_t i));

/* "512", "64k", "1.5G" (powers of 1024). False when it is none or does not fit. */
bool parse_size(const char *s, uint64_t *out_bytes) MUST_CHECK;
/* "10", "1.5s", "200ms", "3m", "2h", "1d"; nanoseconds. False when it is none or does not fit. */
bool parse_duration(const char *s, uint64_t *out_ns) MUST_CHECK;
bool parse_count(const char *s, uint64_t max, uint64_t *out) MUST_CHECK;

/* True when path is dir or lies below it; both absolute and without a slash at the end. */
bool path_is_below(const char *path, const char *dir);

/*
 * `pinfold syscalls`: how far each system call is served, as the rows of syscalls/syscalls.def
 * state it (the table of sentry/dispatch.h is made of them). docs/COVERAGE.md is the output of
 * --format=md.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/cli.h"
#include "sentry/dispatch.h"

static const char *const coverage_names[] = {
	[COVERAGE_FULL] = "full",       [COVERAGE_PARTIAL] = "partial", [COVERAGE_STUB] = "stub",
	[COVERAGE_REFUSED] = "refused", [COVERAGE_ABSENT] = "absent",
};

struct format_row {
	const char *name;
	void (*begin)(const unsigned counts[]);
	void (*row)(size_t number, const struct syscall_entry *e, bool first);
	void (*end)(const unsigned counts[]);
};

static void print_counts(const char *separator, const unsigned counts[])
{
	for (size_t i = 0; i < ARRAY_SIZE(coverage_names); i++)
		printf("%s%u %s", i ? separator : "", counts[i], coverage_names[i]);
	printf("\n");
}

static void table_begin(const unsigned counts[] UNUSED)
{
	printf("%4s  %-26s %-8s %s\n", "NR", "NAME", "SERVED", "NOTE");
}

static void table_row(size_t number, const struct syscall_entry *e, bool first UNUSED)
{
	printf("%4zu  %-26s %-8s %s\n", number, e->name, coverage_names[e->coverage], e->note);
}

static void table_end(const unsigned counts[])
{
	print_counts(", ", counts);
}

static void md_begin(const unsigned counts[])
{
	printf("# System calls\n\nMade by `pinfold syscalls --format=md` from "
	       "`syscalls/syscalls.def`.\n\n");
	print_counts(", ", counts);
	printf("\n| number | name | served | note |\n|---|---|---|---|\n");
}

static void md_row(size_t number, const struct syscall_entry *e, bool first UNUSED)
{
	printf("| %zu | `%s` | %s | ", number, e->name, coverage_names[e->coverage]);
	for (const char *c = e->note; *c; c++)
		printf(*c == '|' ? "\\%c" : "%c", *c);
	printf(" |\n");
}

static void md_end(const unsigned counts[] UNUSED)
{
}

static void json_begin(const unsigned counts[])
{
	printf("{\n  \"counts\": {");
	for (size_t i = 0; i < ARRAY_SIZE(coverage_names); i++)
		printf("%s\"%s\": %u", i ? ", " : "", coverage_names[i], counts[i]);
	printf("},\n  \"syscalls\": [");
}

static void json_row(size_t number, const struct syscall_entry *e, bool first)
{
	printf("%s\n    {\"number\": %zu, \"name\": \"%s\", \"served\": \"%s\", \"note\": \"",
	       first ? "" : ",", number, e->name, coverage_names[e->coverage]);
	/* Notes are plain ASCII of our own table. */
	for (const char *c = e->note; *c; c++)
		printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	printf("\"}");
}

static void json_end(const unsigned counts[] UNUSED)
{
	printf("\n  ]\n}\n");
}

static const struct format_row formats[] = {
	{ "table", table_begin, table_row, table_end },
	{ "md", md_begin, md_row, md_end },
	{ "json", json_begin, json_row, json_end },
};

static void print_all(const struct format_row *f)
{
	unsigned counts[ARRAY_SIZE(coverage_names)] = { 0 };
	bool first = true;

	for (size_t i = 0; i < SYSCALL_TABLE_SIZE; i++)
		if (syscall_table[i].name)
			counts[syscall_table[i].coverage]++;
	f->begin(counts);
	for (size_t i = 0; i < SYSCALL_TABLE_SIZE; i++) {
		if (!syscall_table[i].name)
			continue;
		f->row(i, &syscall_table[i], first);
		first = false;
	}
	f->end(counts);
}

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
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(want, formats[i].name) == 0) {
			print_all(&formats[i]);
			return 0;
		}
	return cli_error("syscalls: unknown format %s; choose table, md or json", want);
}

/* The coverage page, derived from the table: see coverage.h. */
#include "sentry/coverage.h"

#include <errno.h>

#include "platform/base/fmt.h"
#include "platform/host/host.h"
#include "sentry/dispatch.h"

static const char *const words[] = {
	[COVERAGE_FULL] = "full",       [COVERAGE_PARTIAL] = "partial", [COVERAGE_STUB] = "stub",
	[COVERAGE_REFUSED] = "refused", [COVERAGE_ABSENT] = "absent",
};

static void print_counts(struct fmt *f, const char *before, const char *sep)
{
	unsigned count[ARRAY_SIZE(words)] = { 0 }, total = 0;

	for (size_t i = 0; i < SYSCALL_TABLE_SIZE; i++) {
		if (!syscall_table[i].name)
			continue;
		count[syscall_table[i].coverage]++;
		total++;
	}
	fmt_printf(f, "%s%u calls", before, total);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		fmt_printf(f, "%s%u %s", sep, count[i], words[i]);
	fmt_putc(f, '\n');
}

static void print_json_string(struct fmt *f, const char *s)
{
	fmt_putc(f, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fmt_putc(f, '\\');
		fmt_putc(f, *s);
	}
	fmt_putc(f, '"');
}

static void print_row(struct fmt *f, enum coverage_format format, size_t nr,
		      const struct syscall_entry *e, bool first)
{
	switch (format) {
	case COVERAGE_TABLE:
		fmt_printf(f, "%3zu  %-24s %-8s %s\n", nr, e->name, words[e->coverage], e->note);
		return;
	case COVERAGE_MARKDOWN:
		fmt_printf(f, "| %zu | %s | %s | %s |\n", nr, e->name, words[e->coverage], e->note);
		return;
	case COVERAGE_JSON:
		fmt_printf(f,
			   "%s\n  {\"number\": %zu, \"name\": \"%s\", \"coverage\": \"%s\", "
			   "\"note\": ",
			   first ? "[" : ",", nr, e->name, words[e->coverage]);
		print_json_string(f, e->note);
		fmt_putc(f, '}');
	}
}

int coverage_print(enum coverage_format format, int fd)
{
	struct fmt f;
	bool first = true;

	fmt_init_heap(&f);
	if (format == COVERAGE_MARKDOWN) {
		fmt_puts(&f, "# System calls\n\nPrinted by `pinfold syscalls --format=md` from "
			     "`syscalls/syscalls.def`.\n\n");
		print_counts(&f, "", ", ");
		fmt_puts(&f, "\n| number | name | coverage | note |\n|---|---|---|---|\n");
	}
	for (size_t i = 0; i < SYSCALL_TABLE_SIZE; i++) {
		if (!syscall_table[i].name)
			continue;
		print_row(&f, format, i, &syscall_table[i], first);
		first = false;
	}
	if (format == COVERAGE_JSON)
		fmt_puts(&f, "\n]\n");
	if (format == COVERAGE_TABLE)
		print_counts(&f, "\n", ", ");
	ssize_t r = f.overflow ? -ENOMEM : 0;
	for (size_t off = 0; r >= 0 && off < f.len; off += (size_t)r)
		r = host_write(fd, f.buf + off, f.len - off);
	fmt_fini(&f);
	return r < 0 ? (int)r : 0;
}

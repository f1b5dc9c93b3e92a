/* Names of flags: see flags.h and flags.def. */
#include "sentry/flags.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct flag_row {
	enum flag_set set;
	uint32_t mask; /* of a value; 0: a bit */
	uint32_t value;
	const char *name;
};

static const struct flag_row rows[] = {
#define FLAG(set, name) { FLAGS_##set, 0, (uint32_t)(name), #name },
#define VALUE(set, mask, name) { FLAGS_##set, (uint32_t)(mask), (uint32_t)(name), #name },
#include "sentry/flags.def"
#undef FLAG
#undef VALUE
};

void flags_print(struct fmt *f, enum flag_set set, uint64_t v)
{
	uint32_t left = (uint32_t)v;
	const char *sep = "";

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct flag_row *r = &rows[i];
		if (r->set != set)
			continue;
		bool hit = r->mask ? ((uint32_t)v & r->mask) == r->value
				   : r->value && (left & r->value) == r->value;
		if (!hit)
			continue;
		left &= r->mask ? ~r->mask : ~r->value;
		fmt_printf(f, "%s%s", sep, r->name);
		sep = "|";
	}
	if (left)
		fmt_printf(f, "%s%#x", sep, left);
	else if (!*sep)
		fmt_putc(f, '0');
}

void flags_print_signal(struct fmt *f, int sig)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		fmt_printf(f, "SIG%s", name);
	else if (sig >= 32 && sig <= 64)
		fmt_printf(f, "SIGRT_%d", sig - 32);
	else
		fmt_printf(f, "%d", sig);
}

void flags_print_sigset(struct fmt *f, uint64_t set)
{
	const char *sep = "";

	fmt_putc(f, '[');
	for (int sig = 1; sig <= 64; sig++) {
		if (!(set >> (sig - 1) & 1))
			continue;
		const char *name = sigabbrev_np(sig);
		if (name)
			fmt_printf(f, "%s%s", sep, name);
		else
			fmt_printf(f, "%sRT_%d", sep, sig - 32);
		sep = " ";
	}
	fmt_putc(f, ']');
}

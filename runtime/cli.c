/* Shared parts of the command line: see cli.h. */
#include "runtime/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"

int cli_error(const char *format, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	/* One line, whatever the user's words contain. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	log_error("%s", text);
	return EXIT_SETUP;
}

static void *cli_check(void *p)
{
	if (!p) {
		cli_error("out of memory");
		exit(EXIT_SETUP);
	}
	return p;
}

void *cli_alloc(size_t size)
{
	return cli_check(mem_zalloc(size));
}

char *cli_strdup(const char *s)
{
	return cli_check(mem_strdup(s));
}

char *cli_printf(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	char *s = cli_alloc((size_t)n + 1);
	va_start(ap, format);
	vsnprintf(s, (size_t)n + 1, format, ap);
	va_end(ap);
	return s;
}

void strings_add(struct strings *l, const char *s)
{
	if (l->count + 2 > l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		l->item = cli_check(mem_realloc(l->item, cap * sizeof(l->item[0])));
		l->cap = cap;
	}
	l->item[l->count++] = s;
	l->item[l->count] = NULL;
}

bool strings_has(const struct strings *l, const char *s)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->item[i], s) == 0)
			return true;
	return false;
}

#define NEAR_MAX 32 /* longer words are not compared */

/* Levenshtein distance of two short words; large for long ones. */
static unsigned edit_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[NEAR_MAX + 1];

	if (n > NEAR_MAX || m > NEAR_MAX)
		return NEAR_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned above = row[j];
			unsigned best = MIN(above, row[j - 1]) + 1;
			row[j] = MIN(best, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

const char *cli_nearest(const char *word, const char *(*name_at)(size_t i))
{
	const char *best = NULL, *name;
	unsigned limit = (unsigned)MIN(strlen(word) / 2, 3u) + 1;

	for (size_t i = 0; (name = name_at(i)); i++) {
		unsigned d = edit_distance(word, name);
		if (d < limit) {
			limit = d;
			best = name;
		}
	}
	return best;
}

/* A decimal number with an optional fraction; *out_end is what follows. */
static bool parse_decimal(const char *s, double *out, const char **out_end)
{
	if ((*s < '0' || *s > '9') && *s != '.')
		return false;
	char *end;
	*out = strtod(s, &end);
	*out_end = end;
	/* strtod would also take "0x10" and "1e9", which nobody means here. */
	return end != s && strspn(s, "0123456789.") == (size_t)(end - s);
}

bool parse_size(const char *s, uint64_t *out_bytes)
{
	static const char units[] = "kmgt";
	double v;
	const char *end;

	if (!parse_decimal(s, &v, &end))
		return false;
	if (*end && *end != 'b' && *end != 'B') {
		const char *u = strchr(units, *end | 0x20);
		if (!u)
			return false;
		for (long i = 0; i <= u - units; i++)
			v *= 1024;
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'b' || *end == 'B')
		end++;
	if (*end || v >= 9e18)
		return false;
	*out_bytes = (uint64_t)v;
	return true;
}

bool parse_duration(const char *s, uint64_t *out_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "", 1e9 },   { "s", 1e9 },    { "ms", 1e6 },    { "us", 1e3 },
		{ "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 },
	};
	double v;
	const char *end;

	if (!parse_decimal(s, &v, &end))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (v * units[i].ns >= 9e18)
			return false;
		*out_ns = (uint64_t)(v * units[i].ns);
		return true;
	}
	return false;
}

bool parse_count(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
		if (v > max)
			return false;
	}
	*out = v;
	return true;
}

bool path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0);
}

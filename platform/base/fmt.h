/*
 * Bounded string builder for proc files, traces and logs. Growing mode uses the heap; fixed mode
 * cuts. After an allocation failure or a cut, `overflow` is set and further output is dropped.
 */
#pragma once

#include "platform/base/types.h"

struct fmt {
	char *buf; /* always NUL-terminated when cap > 0 */
	size_t len;
	size_t cap;
	bool heap;
	bool overflow;
};

void fmt_init_fixed(struct fmt *f, char *buf, size_t cap);
void fmt_init_heap(struct fmt *f);
/* Frees the heap buffer, if any. */
void fmt_fini(struct fmt *f);
void fmt_printf(struct fmt *f, const char *format, ...) PRINTF_LIKE(2, 3);
void fmt_puts(struct fmt *f, const char *s);
void fmt_putc(struct fmt *f, char c);
void fmt_write(struct fmt *f, const void *data, size_t n);
/* C-style quoting of at most `max` bytes, as strace prints buffers; "..." follows when cut. */
void fmt_quote(struct fmt *f, const void *data, size_t n, size_t max);
/* Octal escapes for space, tab, newline and backslash, as /proc/mounts and maps do. */
void fmt_mangle(struct fmt *f, const char *s, const char *esc);

/* Bounded string builder: see fmt.h. */
#include "platform/base/fmt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"

void fmt_init_fixed(struct fmt *f, char *buf, size_t cap)
{
	*f = (struct fmt){ .buf = buf, .cap = cap };
	if (cap)
		buf[0] = 0;
}

void fmt_init_heap(struct fmt *f)
{
	*f = (struct fmt){ .heap = true };
}

void fmt_fini(struct fmt *f)
{
	if (f->heap)
		mem_free(f->buf);
	*f = (struct fmt){ .heap = f->heap };
}

/* Room for n more bytes and the NUL. */
static bool fmt_reserve(struct fmt *f, size_t n)
{
	if (f->overflow)
		return false;
	if (f->len + n + 1 <= f->cap)
		return true;
	if (!f->heap)
		return false;
	size_t cap = MAX(f->cap * 2, MAX(f->len + n + 1, (size_t)256));
	char *p = mem_realloc(f->buf, cap);
	if (!p) {
		f->overflow = true;
		return false;
	}
	f->buf = p;
	f->cap = cap;
	return true;
}

void fmt_write(struct fmt *f, const void *data, size_t n)
{
	if (!fmt_reserve(f, n)) {
		if (f->heap || f->overflow || f->cap == 0)
			return;
		n = f->cap - f->len - 1;
		f->overflow = true;
	}
	memcpy(f->buf + f->len, data, n);
	f->len += n;
	f->buf[f->len] = 0;
}

void fmt_puts(struct fmt *f, const char *s)
{
	fmt_write(f, s, strlen(s));
}

void fmt_putc(struct fmt *f, char c)
{
	fmt_write(f, &c, 1);
}

void fmt_printf(struct fmt *f, const char *format, ...)
{
	char small[512];
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(small, sizeof(small), format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n < sizeof(small)) {
		fmt_write(f, small, (size_t)n);
		return;
	}
	char *big = mem_alloc((size_t)n + 1);
	if (!big) {
		f->overflow = true;
		return;
	}
	va_start(ap, format);
	vsnprintf(big, (size_t)n + 1, format, ap);
	va_end(ap);
	fmt_write(f, big, (size_t)n);
	mem_free(big);
}

void fmt_quote(struct fmt *f, const void *data, size_t n, size_t max)
{
	static const char plain[] = "\"\\\n\t\r\v\f";
	static const char letter[] = "\"\\ntrvf";
	const unsigned char *p = data;

	fmt_putc(f, '"');
	for (size_t i = 0; i < MIN(n, max); i++) {
		const char *q = p[i] ? strchr(plain, p[i]) : NULL;
		bool digit_next = i + 1 < MIN(n, max) && p[i + 1] >= '0' && p[i + 1] <= '9';
		if (q)
			fmt_printf(f, "\\%c", letter[q - plain]);
		else if (p[i] >= 0x20 && p[i] < 0x7f)
			fmt_putc(f, (char)p[i]);
		else
			fmt_printf(f, digit_next ? "\\%03o" : "\\%o", p[i]);
	}
	fmt_putc(f, '"');
	if (n > max)
		fmt_puts(f, "...");
}

void fmt_mangle(struct fmt *f, const char *s, const char *esc)
{
	for (; *s; s++) {
		if (strchr(esc, *s))
			fmt_printf(f, "\\%03o", (unsigned char)*s);
		else
			fmt_putc(f, *s);
	}
}

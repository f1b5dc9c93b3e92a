/* Log lines: see log.h. */
#include "platform/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int log_fd = 2;
static enum log_level log_max = LOG_WARN;

void log_init(int fd, enum log_level max)
{
	log_fd = fd;
	log_max = max;
}

bool log_enabled(enum log_level level)
{
	return level <= log_max;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;

	if (!log_enabled(level))
		return;
	int n = snprintf(buf, sizeof(buf), "pinfold: ");
	va_start(ap, fmt);
	int m = vsnprintf(buf + n, sizeof(buf) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	size_t len = MIN((size_t)n + (size_t)MAX(m, 0), sizeof(buf) - 2);
	buf[len++] = '\n';
	if (write(log_fd, buf, len) < 0)
		return; /* nobody is left to tell */
}

void bug_at(const char *file, int line, const char *what)
{
	log_line(LOG_ERROR, "internal error at %s:%d: %s", file, line, what);
	abort();
}

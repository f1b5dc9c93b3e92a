/*
 * Messages for the person who runs the sandbox. No allocation; one write per line to stderr (or the
 * --log descriptor); bounded length. Debug lines exist in debug builds or with PINFOLD_LOG=debug.
 */
#pragma once

#include "platform/base/types.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_init(int fd, enum log_level max);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool log_enabled(enum log_level level);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_enabled(LOG_DEBUG))                                                        \
			log_line(LOG_DEBUG, __VA_ARGS__);                                          \
	} while (0)

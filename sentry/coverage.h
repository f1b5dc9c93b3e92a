/* Prints the system-call table with its coverage: `pinfold syscalls`, docs/COVERAGE.md. */
#pragma once

#include "platform/base/types.h"

enum coverage_format { COVERAGE_TABLE, COVERAGE_MARKDOWN, COVERAGE_JSON };

/* Writes to a host descriptor. 0 or -errno. */
int coverage_print(enum coverage_format format, int fd) MUST_CHECK;

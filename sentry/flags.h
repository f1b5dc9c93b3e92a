/* Names of flag bits and enumerations, for traces: rows in sentry/flags.def. */
#pragma once

#include "platform/base/fmt.h"

enum flag_set {
	FLAGS_OPEN,
	FLAGS_PROT,
	FLAGS_MAP,
	FLAGS_CLONE,
	FLAGS_WHENCE, /* enumeration */
	FLAGS_CLOCK,  /* enumeration */
	FLAGS_FUTEX,  /* command and bits */
};

/* "O_WRONLY|O_CREAT|0x4" */
void flags_print(struct fmt *f, enum flag_set set, uint64_t v);
void flags_print_signal(struct fmt *f, int sig);
/* "[INT CHLD]" */
void flags_print_sigset(struct fmt *f, uint64_t set);

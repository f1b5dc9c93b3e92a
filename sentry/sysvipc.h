/* How /proc/sysvipc shows objects that live in syscalls/ (ipc_*.c), which the sentry must not
 * include. */
#pragma once

#include "platform/base/fmt.h"

enum { SYSVIPC_MSG, SYSVIPC_SEM, SYSVIPC_SHM, SYSVIPC_COUNT };

/* Appends one line per object; NULL until the first object is made. Defined in proc_files.c. */
extern void (*_Atomic sysvipc_show[SYSVIPC_COUNT])(struct fmt *out);

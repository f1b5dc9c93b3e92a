/* Making the helper processes of the sandbox. */
#pragma once

#include "platform/base/types.h"

/* A pair of connected SOCK_SEQPACKET sockets, close-on-exec. */
int host_seqpacket_pair(int out[2]) MUST_CHECK;
/* fork(2): 0 in the child, else its pid or -errno. The caller has one thread. */
int host_fork(void) MUST_CHECK;
int host_getpid(void);
int host_geteuid(void);
NORETURN void host_exit_now(int status); /* without any of libc's endings */

/* What uname(2) and /proc/version say. */
#pragma once

#include "platform/base/types.h"

/* A release that glibc, Go and systemd accept as recent; the surface we serve is that of
 * Linux 6.18. */
#define UTS_SYSNAME "Linux"
#define UTS_RELEASE "6.18.0-pinfold"
#define UTS_VERSION "#1 SMP PREEMPT_DYNAMIC pinfold"
#define UTS_MACHINE "x86_64"

void uts_init(const char *hostname);
/* Copies of at most 64 bytes and the NUL. */
void uts_get_hostname(char out[65]);
void uts_get_domainname(char out[65]);
void uts_set_hostname(const char *name, size_t len);
void uts_set_domainname(const char *name, size_t len);

/* AF_UNIX sockets: unix(7). */
#pragma once

#include "fs/sock.h"

extern const struct sock_family unix_family;
/* Lines of /proc/net/unix. */
void unix_show(struct fmt *out);

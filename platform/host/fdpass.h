/* Messages with descriptors over a local socket: the channel between the sentry and the gofer. */
#pragma once

#include "platform/base/types.h"

/*
 * Sends one message made of two parts (the second may be empty), with descriptor `fd` unless it is
 * -1. 0 or -errno; -EPIPE when the other side is gone, without a signal.
 */
int host_send_msg(int sock, const void *head, size_t head_size, const void *body, size_t body_size,
		  int fd) MUST_CHECK;
#define HOST_FD_LOST (-2)
/*
 * Receives one message. *out_fd is the descriptor that came with it (close-on-exec, the caller owns
 * it) or -1, or HOST_FD_LOST when there was one but no room for it; any further ones are closed.
 * Size of the message, 0 at the end of the channel, -EMSGSIZE when it did not fit, other -errno.
 */
ssize_t host_recv_msg(int sock, void *buf, size_t size, int *out_fd) MUST_CHECK;

/* Giving up rights: the calls that a helper process makes once, before it is confined. */
#pragma once

#include "platform/base/types.h"

/* Dies with the parent, in a session of its own, undumpable, without core files. -ESRCH: the parent
 * is gone. */
int host_detach(int parent_pid) MUST_CHECK;
/* Closes every descriptor but `keep` (ascending order) and 2; 0 and 1 become /dev/null. */
int host_close_others(const int *keep, size_t count) MUST_CHECK;
/* Raises the soft limit on descriptors to the hard one and gives it. */
int host_raise_fd_limit(uint32_t *out) MUST_CHECK;
/* Keeps only the capabilities in `mask` (bits of linux/capability.h), none ambient. */
int host_keep_caps(uint64_t mask) MUST_CHECK;
int host_no_new_privs(void) MUST_CHECK;
/* Puts the process and those that it will fork into a Landlock domain of their own, where the host
 * has one that can: members can trace, read the memory of and signal only each other, reach no
 * abstract socket of others and make no device node. Implies no_new_privs. Call it while there is
 * one thread. -errno when the host has Landlock and refuses. */
int host_enter_domain(void) MUST_CHECK;
/* Landlock's version; 0 when the host has none. */
int host_landlock_abi(void);
/* One rule: below (or at, for a file) what the O_PATH descriptor denotes, reading or reading and
 * writing. */
struct host_landlock_rule {
	int fd;
	bool is_dir, writable;
};
/* Restricts the process to the rules. abi as above, at least 1. */
int host_landlock(int abi, const struct host_landlock_rule *rules, size_t count) MUST_CHECK;

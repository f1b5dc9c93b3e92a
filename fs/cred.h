/*
 * Credentials as file systems see them. Immutable once shared: a change makes a copy and replaces
 * the pointer (credentials(7), capabilities(7)).
 */
#pragma once

#include "platform/base/ref.h"
#include "platform/base/types.h"

#define CRED_MAX_GROUPS 65536

struct cred {
	struct ref ref;
	uint32_t uid, euid, suid, fsuid;                                                   /* [I] */
	uint32_t gid, egid, sgid, fsgid;                                                   /* [I] */
	uint64_t cap_inheritable, cap_permitted, cap_effective, cap_bounding, cap_ambient; /* [I] */
	uint32_t securebits;                                                               /* [I] */
	size_t group_count;                                                                /* [I] */
	uint32_t *groups; /* [I] sorted ascending */
};

DECLARE_REF(cred);

/* A copy with count 1 that the caller may edit until it publishes it; NULL without memory. */
struct cred *cred_copy(const struct cred *old) MUST_CHECK;
/* A fresh set: all ids as given; all capabilities when uid is 0, none else. NULL without memory. */
struct cred *cred_new(uint32_t uid, uint32_t gid, const uint32_t *groups, size_t count) MUST_CHECK;
/* Is `gid` the fsgid or a supplementary group? */
bool cred_in_group(const struct cred *c, uint32_t gid);
/* CAP_* of linux/capability.h in the effective set. */
bool cred_capable(const struct cred *c, int cap);

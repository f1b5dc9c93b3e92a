/* Credentials: see cred.h. The rules of capabilities(7) for execve and setuid are in the sentry. */
#include "fs/cred.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "platform/base/alloc.h"

static void cred_free(struct cred *c)
{
	mem_free(c->groups);
	mem_free(c);
}

DEFINE_REF(cred);

/* Gives c a copy of the list; 0 or -ENOMEM. */
static int copy_groups(struct cred *c, const uint32_t *groups, size_t count)
{
	c->groups = NULL;
	c->group_count = 0;
	if (count == 0)
		return 0;
	c->groups = mem_calloc(count, sizeof(*groups));
	if (!c->groups)
		return -ENOMEM;
	memcpy(c->groups, groups, count * sizeof(*groups));
	c->group_count = count;
	return 0;
}

struct cred *cred_copy(const struct cred *old)
{
	struct cred *c = mem_alloc(sizeof(*c));

	if (!c)
		return NULL;
	memcpy(c, old, sizeof(*c));
	ref_init(&c->ref);
	if (copy_groups(c, old->groups, old->group_count) != 0) {
		mem_free(c);
		return NULL;
	}
	return c;
}

static int compare_gid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

struct cred *cred_new(uint32_t uid, uint32_t gid, const uint32_t *groups, size_t count)
{
	struct cred *c = count > CRED_MAX_GROUPS ? NULL : mem_zalloc(sizeof(*c));

	if (!c)
		return NULL;
	ref_init(&c->ref);
	c->uid = c->euid = c->suid = c->fsuid = uid;
	c->gid = c->egid = c->sgid = c->fsgid = gid;
	c->cap_bounding = (2ull << CAP_LAST_CAP) - 1;
	if (uid == 0) {
		c->cap_permitted = c->cap_bounding;
		c->cap_effective = c->cap_bounding;
	}
	if (copy_groups(c, groups, count) != 0) {
		mem_free(c);
		return NULL;
	}
	if (count > 0)
		qsort(c->groups, count, sizeof(*c->groups), compare_gid);
	return c;
}

bool cred_in_group(const struct cred *c, uint32_t gid)
{
	if (gid == c->fsgid)
		return true;
	size_t lo = 0, hi = c->group_count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (c->groups[mid] == gid)
			return true;
		if (c->groups[mid] < gid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

bool cred_capable(const struct cred *c, int cap)
{
	return c->cap_effective >> cap & 1;
}

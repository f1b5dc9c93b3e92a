/* Memory calls: arguments to sentry/mm.h; NUMA policies of a machine with one node. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>

#include "sentry/pidfd.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

long sys_mmap(struct task *t, struct gaddr addr, uint64_t length, uint64_t prot, uint64_t flags,
	      int fd, uint64_t offset)
{
	struct mmap_request req = {
		.addr = addr.va,
		.size = length,
		.prot = (int)prot,
		.map_flags = (unsigned)flags,
		.off = offset,
	};

	if (offset & ~PAGE_MASK)
		return -EINVAL;
	if (!(flags & MAP_ANONYMOUS)) {
		req.file = task_file(t, fd);
		if (!req.file)
			return -EBADF;
	}
	int64_t r = mm_mmap(t, &req);
	file_put(req.file);
	return r;
}

long sys_mprotect(struct task *t, struct gaddr addr, uint64_t length, uint64_t prot)
{
	/* Bits that an int cannot hold are as invalid as other unknown ones. */
	return prot >> 31 ? -EINVAL : mm_mprotect(t, addr.va, length, (int)prot);
}

long sys_munmap(struct task *t, struct gaddr addr, uint64_t length)
{
	return mm_munmap(t, addr.va, length);
}

long sys_brk(struct task *t, struct gaddr addr)
{
	return (long)mm_brk(t, addr.va);
}

long sys_mremap(struct task *t, struct gaddr old_addr, uint64_t old_size, uint64_t new_size,
		uint32_t flags, struct gaddr new_addr)
{
	return mm_mremap(t, old_addr.va, old_size, new_size, flags, new_addr.va);
}

long sys_msync(struct task *t, struct gaddr addr, uint64_t length, int flags)
{
	return mm_msync(t, addr.va, length, flags);
}

long sys_mincore(struct task *t, struct gaddr addr, uint64_t length, buf_gp vec)
{
	return mm_mincore(t, addr.va, length, vec);
}

long sys_madvise(struct task *t, struct gaddr addr, uint64_t length, int advice)
{
	return mm_madvise(t, addr.va, length, advice);
}

static bool may_lock(struct task *t)
{
	return task_capable(t, CAP_IPC_LOCK) || task_rlimit(t, RLIMIT_MEMLOCK) != 0;
}

long sys_mlock(struct task *t, struct gaddr addr, uint64_t len)
{
	return may_lock(t) ? mm_mlock(t, addr.va, len, MLOCK_NOW) : -EPERM;
}

long sys_mlock2(struct task *t, struct gaddr addr, uint64_t len, uint32_t flags)
{
	if (flags & ~(uint32_t)MLOCK_ONFAULT)
		return -EINVAL;
	if (!may_lock(t))
		return -EPERM;
	return mm_mlock(t, addr.va, len, flags ? MLOCK_LATER : MLOCK_NOW);
}

long sys_munlock(struct task *t, struct gaddr addr, uint64_t len)
{
	return mm_mlock(t, addr.va, len, MLOCK_OFF);
}

long sys_mlockall(struct task *t, int flags)
{
	if (flags == 0 || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) ||
	    flags == MCL_ONFAULT)
		return -EINVAL;
	return may_lock(t) ? mm_mlockall(t, flags) : -EPERM;
}

long sys_munlockall(struct task *t)
{
	return mm_mlockall(t, 0);
}

long sys_mseal(struct task *t, struct gaddr addr, uint64_t len, uint64_t flags)
{
	return flags ? -EINVAL : mm_mseal(t, addr.va, len);
}

long sys_remap_file_pages(struct task *t, struct gaddr addr, uint64_t size, uint64_t prot,
			  uint64_t pgoff, uint64_t flags)
{
	uint64_t start = page_down(addr.va);

	size = page_down(size);
	if (prot != 0 || start + size <= start || pgoff + (size >> PAGE_SHIFT) < pgoff ||
	    pgoff > UINT64_MAX >> PAGE_SHIFT)
		return -EINVAL;
	return mm_remap_file(t, start, size, pgoff << PAGE_SHIFT, (unsigned)flags);
}

/* ---- advice for another process ------------------------------------------------------------- */

static long process_advice(struct task *t, struct group *g, int advice)
{
	bool known = advice == MADV_COLD || advice == MADV_PAGEOUT || advice == MADV_WILLNEED ||
		     advice == MADV_COLLAPSE;

	if (!known && g != t->group)
		return -EINVAL;
	return g == t->group || task_capable(t, CAP_SYS_NICE) ? 0 : -EPERM;
}

long sys_process_madvise(struct task *t, int pidfd, iovec_cgp vec, uint64_t vlen, int advice,
			 uint32_t flags)
{
	struct iov_iter it;
	struct group *g;

	if (flags != 0)
		return -EINVAL;
	long r = guest_iter(t, &it, vec, vlen, IOV_FILL);
	if (r)
		return r;
	struct file *f = task_file(t, pidfd);
	if (!f)
		return -EBADF;
	r = pidfd_group(f, &g);
	file_put(f);
	if (r)
		return r;
	r = process_advice(t, g, advice);
	group_put(g);
	return r ? r : (long)it.count;
}

/* ---- NUMA policies -------------------------------------------------------------------------- */

#define MODE_FLAGS (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING)
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif
#define MPOL_MODES 7   /* up to MPOL_WEIGHTED_INTERLEAVE */
#define NODES_MAX 1024 /* MAX_NUMNODES of distribution kernels */

/* The set of nodes that a mask names; only node 0 exists. -EINVAL for others. */
static int load_nodes(struct task *t, u64_cgp mask, uint64_t maxnode, bool *out_any)
{
	uint64_t word;

	*out_any = false;
	if (maxnode == 0 || gaddr_is_null(mask.addr))
		return 0;
	maxnode--;
	if (maxnode > PAGE_SIZE * 8)
		return -EINVAL;
	for (uint64_t i = 0; i * 64 < maxnode; i++) {
		if (guest_read(t, &word, gaddr(mask.addr.va + i * 8), sizeof(word)))
			return -EFAULT;
		if (maxnode - i * 64 < 64)
			word &= (1ull << (maxnode - i * 64)) - 1;
		if (i == 0 && (word & 1))
			*out_any = true;
		if (word & ~(i == 0 ? 1ull : 0ull))
			return -EINVAL;
	}
	return 0;
}

/* The policy as it is remembered, or why it is none. */
static int make_policy(struct task *t, uint64_t mode, u64_cgp mask, uint64_t maxnode, uint32_t *out)
{
	uint64_t flags = mode & MODE_FLAGS, kind = mode & ~(uint64_t)MODE_FLAGS;
	const uint64_t both = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES;
	bool any;

	if (kind >= MPOL_MODES || (flags & both) == both)
		return -EINVAL;
	int err = load_nodes(t, mask, maxnode, &any);
	if (err)
		return err;
	/* A preferred node that is not named is the local one. */
	if (kind == MPOL_PREFERRED && !any) {
		if (flags)
			return -EINVAL;
		kind = MPOL_LOCAL;
	}
	if (kind == MPOL_DEFAULT || kind == MPOL_LOCAL ? any : !any)
		return -EINVAL;
	*out = kind == MPOL_DEFAULT ? 0 : (uint32_t)(kind | flags) | (any ? MEMPOLICY_NODE : 0);
	return 0;
}

long sys_mbind(struct task *t, struct gaddr addr, uint64_t len, uint64_t mode, u64_cgp nmask,
	       uint64_t maxnode, uint32_t flags)
{
	uint64_t end = addr.va + page_up(len);
	uint32_t policy;

	if (flags & ~(uint32_t)(MPOL_MF_STRICT | MPOL_MF_MOVE | MPOL_MF_MOVE_ALL))
		return -EINVAL;
	if ((flags & MPOL_MF_MOVE_ALL) && !task_capable(t, CAP_SYS_NICE))
		return -EPERM;
	if ((addr.va & ~PAGE_MASK) || end < addr.va)
		return -EINVAL;
	int err = make_policy(t, mode, nmask, maxnode, &policy);
	return err ? err : mm_mbind(t, addr.va, len, policy);
}

long sys_set_mempolicy(struct task *t, int mode, u64_cgp nmask, uint64_t maxnode)
{
	uint32_t policy;
	int err = make_policy(t, (uint32_t)mode, nmask, maxnode, &policy);

	if (!err)
		t->mempolicy = policy;
	return err;
}

static int store_nodes(struct task *t, u64_gp mask, uint64_t maxnode, uint64_t first)
{
	uint64_t words = (MIN(maxnode, (uint64_t)NODES_MAX) + 63) / 64;

	for (uint64_t i = 0; i < words; i++) {
		uint64_t word = i == 0 ? first : 0;
		if (guest_write(t, gaddr(mask.addr.va + i * 8), &word, sizeof(word)))
			return -EFAULT;
	}
	return 0;
}

/* What get_mempolicy reports for a policy: with MPOL_F_NODE a node, which is always 0. */
static int policy_value(uint64_t flags, uint32_t policy, int32_t *out)
{
	*out = (int32_t)(policy & ~MEMPOLICY_NODE);
	if (flags & MPOL_F_NODE) {
		if (!(flags & MPOL_F_ADDR) && (*out & ~MODE_FLAGS) != MPOL_INTERLEAVE)
			return -EINVAL;
		*out = 0;
	}
	return 0;
}

long sys_get_mempolicy(struct task *t, i32_gp policy, u64_gp nmask, uint64_t maxnode,
		       struct gaddr addr, uint64_t flags)
{
	bool allowed = flags & MPOL_F_MEMS_ALLOWED;
	uint32_t found = t->mempolicy;
	int32_t value = 0;
	int err = 0;

	if (flags & ~(uint64_t)(MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED))
		return -EINVAL;
	if (!gaddr_is_null(nmask.addr) && maxnode < 1)
		return -EINVAL;
	if (allowed) {
		if (flags & (MPOL_F_NODE | MPOL_F_ADDR))
			return -EINVAL;
		found = MEMPOLICY_NODE;
	} else if (flags & MPOL_F_ADDR) {
		err = mm_get_policy(t, addr.va, &found);
	} else if (addr.va) {
		err = -EINVAL;
	}
	if (!err)
		err = policy_value(flags, found, &value);
	if (err)
		return err;
	if (!gaddr_is_null(policy.addr) && guest_store(t, policy, &value))
		return -EFAULT;
	if (gaddr_is_null(nmask.addr))
		return 0;
	return store_nodes(t, nmask, maxnode, found & MEMPOLICY_NODE ? 1 : 0);
}

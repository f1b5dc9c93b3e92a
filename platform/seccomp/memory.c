/*
 * Mapping calls: each is ordered from the parked thread `via`. The filter lets stub code map
 * anonymous memory and unmap on its own; a descriptor is lent through the notifier for one mmap.
 * What the stub says about success is the guest's claim, which harms nobody but the guest when it
 * is a lie.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/seccomp/internal.h"
#include "platform/stub/copy.h"

/* Result of a call that gives 0. */
static int plain(struct plat_ctx *via, int64_t r)
{
	if (r <= 0)
		return (int)r;
	as_kill(via->as);
	return -ESRCH;
}

/* mmap with a lent descriptor. via->as->mu held. */
static int64_t map_lent(struct plat_ctx *via, const struct stub_command *map, int fd)
{
	struct stub_command list[2] = { *map, { .nr = SYS_close, .args = { STUB_FD } } };
	unsigned done;
	int err;

	ctx_order(via, map->nr, map->args, fd);
	int64_t r = ctx_calls(via, list, 2, &done);
	bool asked = ctx_orders_end(via, &err);
	if (r == -ESRCH)
		return r;
	if (!asked || done == 1) {
		as_kill(via->as);
		return -ESRCH;
	}
	if (done == 2)
		return list[0].result;
	/* Refused by mmap: the descriptor is still open there, unless it never arrived. */
	if (err == 0 && ctx_call(via, SYS_close, STUB_FD, 0, 0, 0, 0, 0) != 0) {
		as_kill(via->as);
		return -ESRCH;
	}
	return r;
}

/* A call that passes only because we ordered it. */
static int64_t ordered_call(struct plat_ctx *via, struct stub_command *c)
{
	unsigned done;
	int err;

	ctx_order(via, c->nr, c->args, -1);
	int64_t r = ctx_calls(via, c, 1, &done);
	if (ctx_orders_end(via, &err) || r < 0)
		return r;
	as_kill(via->as);
	return -ESRCH;
}

int memory_map(struct plat_ctx *via, const struct plat_map *m)
{
	bool anon = (m->flags & PLAT_MAP_ANON) != 0;

	if (!stub_range_ok(m->addr, m->size) || (m->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC)))
		return -EINVAL;
	struct stub_command map = {
		.nr = SYS_mmap,
		.args = { m->addr, m->size, (uint64_t)m->prot, stub_map_flags(m->flags),
			  anon ? (uint64_t)-1 : STUB_FD, anon ? 0 : m->off },
	};
	unsigned done;

	mutex_lock(&via->as->mu);
	int64_t r;
	if (!anon)
		r = map_lent(via, &map, m->fd);
	else if (m->flags & PLAT_MAP_SHARED)
		r = ordered_call(via, &map);
	else
		r = ctx_calls(via, &map, 1, &done);
	mutex_unlock(&via->as->mu);
	if (r < 0)
		return (int)r;
	return plain(via, r - (int64_t)m->addr);
}

int memory_unmap(struct plat_ctx *via, uint64_t addr, uint64_t size)
{
	if (!stub_range_ok(addr, size))
		return -EINVAL;
	return plain(via, ctx_call(via, SYS_munmap, addr, size, 0, 0, 0, 0));
}

int memory_protect(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot)
{
	if (!stub_range_ok(addr, size) || (prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC)))
		return -EINVAL;
	struct stub_command c = { .nr = SYS_mprotect, .args = { addr, size, (uint64_t)prot } };
	unsigned done;
	return plain(via, prot & PROT_WRITE ? ordered_call(via, &c) : ctx_calls(via, &c, 1, &done));
}

int memory_remap(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		 uint64_t new_size, bool dontunmap)
{
	uint64_t flags = stub_remap_flags(old_addr, new_addr, dontunmap);

	if (!stub_range_ok(old_addr, old_size ? old_size : PAGE_SIZE) ||
	    !stub_range_ok(new_addr, new_size))
		return -EINVAL;
	int64_t r = ctx_call(via, SYS_mremap, old_addr, old_size, new_size, flags,
			     flags ? new_addr : 0, 0);
	if (r < 0)
		return (int)r;
	return plain(via, r - (int64_t)new_addr);
}

int memory_advise(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice)
{
	if (!stub_advice_ok(advice) || !stub_range_ok(addr, size))
		return -EINVAL;
	return plain(via, ctx_call(via, SYS_madvise, addr, size, (uint64_t)advice, 0, 0, 0));
}

int memory_resident(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec)
{
	const uint8_t *window = (const uint8_t *)via->sh + STUB_WINDOW_OFF;
	uint64_t there = stub_slot_addr(via->slot) + STUB_WINDOW_OFF;

	if (!stub_range_ok(addr, size))
		return -EINVAL;
	for (uint64_t pages = size / PAGE_SIZE; pages > 0;) {
		uint64_t n = MIN(pages, STUB_WINDOW_SIZE);
		int err =
			plain(via, ctx_call(via, SYS_mincore, addr, n * PAGE_SIZE, there, 0, 0, 0));
		if (err)
			return err;
		memcpy(vec, window, n);
		addr += n * PAGE_SIZE;
		vec += n;
		pages -= n;
	}
	return 0;
}

int memory_lock(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on)
{
	if (!stub_range_ok(addr, size))
		return -EINVAL;
	return plain(via, ctx_call(via, on ? SYS_mlock : SYS_munlock, addr, size, 0, 0, 0, 0));
}

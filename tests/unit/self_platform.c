/* See self_platform.h. Address spaces and contexts are tokens; contexts cannot run. */
#include "tests/unit/self_platform.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct plat_info info = { .task_min = SELF_MIN, .task_max = SELF_MAX };
static unsigned fail_countdown;

void self_fail_nth(unsigned n)
{
	fail_countdown = n;
}

void self_reset(void)
{
	munmap((void *)SELF_MIN, SELF_MAX - SELF_MIN);
	fail_countdown = 0;
}

static int result(int r)
{
	return r < 0 ? -errno : 0;
}

static bool fails(void)
{
	return fail_countdown && --fail_countdown == 0;
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static const struct plat_info *self_info(void)
{
	return &info;
}

static int self_as_new(struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	*out_as = malloc(1);
	*out_ctx = malloc(1);
	return *out_as && *out_ctx ? 0 : -ENOMEM;
}

static void self_as_free(struct plat_as *as)
{
	free(as);
}

static void self_ctx_free(struct plat_ctx *ctx)
{
	free(ctx);
}

static int self_map(struct plat_ctx *via UNUSED, const struct plat_map *m)
{
	int flags = MAP_FIXED | (m->flags & PLAT_MAP_SHARED ? MAP_SHARED : MAP_PRIVATE);

	if (m->addr < SELF_MIN || m->addr + m->size > SELF_MAX)
		return -EINVAL;
	if (fails())
		return -ENOMEM;
	if (m->flags & PLAT_MAP_ANON)
		flags |= MAP_ANONYMOUS;
	if (m->flags & PLAT_MAP_POPULATE)
		flags |= MAP_POPULATE;
	return mmap(at(m->addr), m->size, m->prot, flags | MAP_NORESERVE, m->flags & PLAT_MAP_ANON ? -1 : m->fd,
		    m->flags & PLAT_MAP_ANON ? 0 : (off_t)m->off) == MAP_FAILED ?
		       -errno :
		       0;
}

static int self_unmap(struct plat_ctx *via UNUSED, uint64_t addr, uint64_t size)
{
	return fails() ? -ENOMEM : result(munmap(at(addr), size));
}

static int self_protect(struct plat_ctx *via UNUSED, uint64_t addr, uint64_t size, int prot)
{
	return fails() ? -ENOMEM : result(mprotect(at(addr), size, prot));
}

static int self_remap(struct plat_ctx *via UNUSED, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		      uint64_t new_size, bool dontunmap)
{
	int flags = 0;

	if (fails())
		return -ENOMEM;
	if (new_addr != old_addr || dontunmap)
		flags = MREMAP_MAYMOVE | MREMAP_FIXED | (dontunmap ? 4 : 0);
	return mremap(at(old_addr), old_size, new_size, flags, at(new_addr)) == MAP_FAILED ? -errno : 0;
}

static int self_advise(struct plat_ctx *via UNUSED, uint64_t addr, uint64_t size, int advice)
{
	return result(madvise(at(addr), size, advice));
}

static int self_resident(struct plat_ctx *via UNUSED, uint64_t addr, uint64_t size, uint8_t *vec)
{
	return result(mincore(at(addr), size, vec));
}

static int self_lock(struct plat_ctx *via UNUSED, uint64_t addr, uint64_t size, bool on)
{
	return result(on ? mlock(at(addr), size) : munlock(at(addr), size));
}

static ssize_t self_copy_in(struct plat_as *as UNUSED, void *dst, uint64_t addr, size_t n)
{
	struct iovec local = { dst, n }, remote = { at(addr), n };
	ssize_t r = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return r > 0 || n == 0 ? r : -EFAULT;
}

static ssize_t self_copy_out(struct plat_as *as UNUSED, uint64_t addr, const void *src, size_t n)
{
	struct iovec local = { (void *)(uintptr_t)src, n }, remote = { at(addr), n };
	ssize_t r = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

	return r > 0 || n == 0 ? r : -EFAULT;
}

const struct platform_ops self_platform = {
	.name = "self",
	.summary = "the test process",
	.info = self_info,
	.as_new = self_as_new,
	.as_free = self_as_free,
	.ctx_free = self_ctx_free,
	.map = self_map,
	.unmap = self_unmap,
	.protect = self_protect,
	.remap = self_remap,
	.advise = self_advise,
	.resident = self_resident,
	.lock = self_lock,
	.copy_in = self_copy_in,
	.copy_out = self_copy_out,
	.force_in = self_copy_in,
	.force_out = self_copy_out,
};

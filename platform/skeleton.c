/*
 * Template of a platform: it compiles and refuses to start. Copy it to platform/NAME/, fill the
 * functions in the order in which they stand, add a row to platforms.def; the tests in
 * tests/unit/platform_*_test.c then run on it, and they are the acceptance test. platform.h has the
 * contract of each function.
 */
#include <errno.h>
#include <stdio.h>

#include "platform/platform.h"

/* What a platform keeps per address space and per guest thread. */
struct plat_as {
	int pid;
};

struct plat_ctx {
	struct plat_as *as;
};

extern const struct platform_ops skeleton_platform;

static struct plat_info info;

static int skeleton_probe(char *why, size_t why_size)
{
	snprintf(why, why_size, "the skeleton runs nothing");
	return -ENOSYS;
}

static int skeleton_start(void)
{
	return -ENOSYS;
}

static bool skeleton_child_event(int pid, int status)
{
	(void)pid;
	(void)status;
	return false;
}

static void skeleton_main_request(void)
{
}

static const struct plat_info *skeleton_info(void)
{
	return &info;
}

static int skeleton_as_new(struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	(void)out_as;
	(void)out_ctx;
	return -ENOSYS;
}

static int skeleton_as_fork(struct plat_ctx *caller, struct plat_as **out_as,
			    struct plat_ctx **out_ctx)
{
	(void)caller;
	(void)out_as;
	(void)out_ctx;
	return -ENOSYS;
}

static void skeleton_as_free(struct plat_as *as)
{
	(void)as;
}

static int skeleton_ctx_clone(struct plat_ctx *caller, struct plat_ctx **out_ctx)
{
	(void)caller;
	(void)out_ctx;
	return -ENOSYS;
}

static void skeleton_ctx_free(struct plat_ctx *ctx)
{
	(void)ctx;
}

static int skeleton_map(struct plat_ctx *via, const struct plat_map *m)
{
	(void)via;
	(void)m;
	return -ENOSYS;
}

static int skeleton_unmap(struct plat_ctx *via, uint64_t addr, uint64_t size)
{
	(void)via;
	(void)addr;
	(void)size;
	return -ENOSYS;
}

static int skeleton_protect(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot)
{
	(void)via;
	(void)addr;
	(void)size;
	(void)prot;
	return -ENOSYS;
}

static int skeleton_remap(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size,
			  uint64_t new_addr, uint64_t new_size, bool dontunmap)
{
	(void)via;
	(void)old_addr;
	(void)old_size;
	(void)new_addr;
	(void)new_size;
	(void)dontunmap;
	return -ENOSYS;
}

static int skeleton_advise(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice)
{
	(void)via;
	(void)addr;
	(void)size;
	(void)advice;
	return -ENOSYS;
}

static int skeleton_resident(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec)
{
	(void)via;
	(void)addr;
	(void)size;
	(void)vec;
	return -ENOSYS;
}

static int skeleton_lock(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on)
{
	(void)via;
	(void)addr;
	(void)size;
	(void)on;
	return -ENOSYS;
}

static ssize_t skeleton_copy_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	(void)as;
	(void)dst;
	(void)addr;
	(void)n;
	return -ESRCH;
}

static ssize_t skeleton_copy_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	(void)as;
	(void)addr;
	(void)src;
	(void)n;
	return -ESRCH;
}

static int skeleton_cmpxchg32(struct plat_ctx *via, uint64_t addr, uint32_t old, uint32_t new,
			      uint32_t *seen)
{
	(void)via;
	(void)addr;
	(void)old;
	(void)new;
	(void)seen;
	return -EFAULT;
}

static long skeleton_futex(struct plat_ctx *ctx, const uint64_t args[6],
			   const struct timespec *timeout)
{
	(void)ctx;
	(void)args;
	(void)timeout;
	return -ENOSYS;
}

static void skeleton_run(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev)
{
	(void)ctx;
	(void)regs;
	*ev = (struct plat_event){ .kind = PLAT_DEAD };
}

static void skeleton_interrupt(struct plat_ctx *ctx)
{
	(void)ctx;
}

static int skeleton_fp_get(struct plat_ctx *ctx, void *buf)
{
	(void)ctx;
	(void)buf;
	return -ESRCH;
}

static int skeleton_fp_set(struct plat_ctx *ctx, const void *buf)
{
	(void)ctx;
	(void)buf;
	return -ESRCH;
}

static int skeleton_host_pid(struct plat_as *as)
{
	(void)as;
	return 0;
}

const struct platform_ops skeleton_platform = {
	.name = "skeleton",
	.summary = "a template",
	.probe = skeleton_probe,
	.start = skeleton_start,
	.child_event = skeleton_child_event,
	.main_request = skeleton_main_request,
	.info = skeleton_info,
	.as_new = skeleton_as_new,
	.as_fork = skeleton_as_fork,
	.as_free = skeleton_as_free,
	.ctx_clone = skeleton_ctx_clone,
	.ctx_free = skeleton_ctx_free,
	.map = skeleton_map,
	.unmap = skeleton_unmap,
	.protect = skeleton_protect,
	.remap = skeleton_remap,
	.advise = skeleton_advise,
	.resident = skeleton_resident,
	.lock = skeleton_lock,
	.copy_in = skeleton_copy_in,
	.copy_out = skeleton_copy_out,
	.force_in = skeleton_copy_in,
	.force_out = skeleton_copy_out,
	.cmpxchg32 = skeleton_cmpxchg32,
	.futex = skeleton_futex,
	.run = skeleton_run,
	.interrupt = skeleton_interrupt,
	.fp_get = skeleton_fp_get,
	.fp_set = skeleton_fp_set,
	.host_pid = skeleton_host_pid,
};

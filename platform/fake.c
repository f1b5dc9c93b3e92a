/*
 * The fake platform: see fake.h. One lock over everything; made for small tests, not for speed.
 */
#include "platform/fake.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/base/alloc.h"
#include "platform/base/fmt.h"
#include "platform/base/list.h"
#include "platform/base/lock.h"

#define MAX_STEPS 256
#define FP_SIZE 832

struct area {
	struct list link;
	uint64_t addr, size;
	int prot;
	uint8_t *bytes;
};

struct plat_as {
	struct list areas;
	int number;
	unsigned live;
};

struct plat_ctx {
	struct plat_as *as;
	atomic_bool kicked;
	uint8_t fp[FP_SIZE];
};

struct step {
	struct plat_event ev;
	fake_step_fn *set;
	void *arg;
	uint64_t args[7];
};

static struct mutex mu = MUTEX_INIT(RANK_PLATFORM);
static struct step steps[MAX_STEPS];
static size_t step_first, step_end;
static struct regs last_regs;
static char record_buf[16384];
static struct fmt record;
static unsigned fail_countdown;
static int fail_err;
static int spaces_made;

static const struct plat_info info = {
	.task_min = 0x10000,
	.task_max = 0x7fffc0000000,
	.fp_size = FP_SIZE,
};

static void note(const char *what, uint64_t a, uint64_t b, int64_t c)
{
	if (!record.buf)
		fmt_init_fixed(&record, record_buf, sizeof(record_buf));
	fmt_printf(&record, "%s %#lx %#lx %ld\n", what, (unsigned long)a, (unsigned long)b,
		   (long)c);
}

void fake_push(const struct plat_event *ev, fake_step_fn *set, void *arg)
{
	mutex_lock(&mu);
	BUG_ON(step_end == MAX_STEPS);
	steps[step_end++] = (struct step){ .ev = *ev, .set = set, .arg = arg };
	mutex_unlock(&mu);
}

void fake_push_syscall(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		       uint64_t a5)
{
	mutex_lock(&mu);
	BUG_ON(step_end == MAX_STEPS);
	steps[step_end++] = (struct step){
		.ev = { .kind = PLAT_SYSCALL, .arch = AUDIT_ARCH_X86_64 },
		.args = { nr, a0, a1, a2, a3, a4, a5 },
	};
	mutex_unlock(&mu);
}

const struct regs *fake_last_regs(void)
{
	return &last_regs;
}

const char *fake_record(void)
{
	return record_buf;
}

void fake_reset(void)
{
	mutex_lock(&mu);
	step_first = step_end = 0;
	record_buf[0] = 0;
	record = (struct fmt){ 0 };
	fail_countdown = 0;
	spaces_made = 0;
	mutex_unlock(&mu);
}

void fake_fail_nth(unsigned n, int err)
{
	fail_countdown = n;
	fail_err = err;
}

static int fake_probe(char *why, size_t why_size)
{
	if (why_size)
		why[0] = 0;
	return 0;
}

static int fake_start(void)
{
	return 0;
}

static bool fake_child_event(int pid, int status)
{
	(void)pid;
	(void)status;
	return false;
}

static void fake_main_request(void)
{
}

static const struct plat_info *fake_info(void)
{
	return &info;
}

static struct plat_as *as_alloc(void)
{
	struct plat_as *as = mem_zalloc(sizeof(*as));

	if (as) {
		list_init(&as->areas);
		as->number = ++spaces_made;
	}
	return as;
}

static void area_free(struct area *a)
{
	list_del_init(&a->link);
	mem_free(a->bytes);
	mem_free(a);
}

static struct area *area_add(struct plat_as *as, uint64_t addr, uint64_t size, int prot)
{
	struct area *a = mem_zalloc(sizeof(*a));

	if (!a)
		return NULL;
	a->bytes = mem_zalloc(size);
	if (!a->bytes) {
		mem_free(a);
		return NULL;
	}
	a->addr = addr;
	a->size = size;
	a->prot = prot;
	list_add_tail(&as->areas, &a->link);
	return a;
}

static void as_destroy(struct plat_as *as)
{
	while (!list_empty(&as->areas))
		area_free(list_first(&as->areas, struct area, link));
	mem_free(as);
}

static int with_ctx(struct plat_as *as, struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	struct plat_ctx *ctx = as ? mem_zalloc(sizeof(*ctx)) : NULL;

	if (!ctx) {
		if (as)
			as_destroy(as);
		return -ENOMEM;
	}
	ctx->as = as;
	as->live = 1;
	*out_as = as;
	*out_ctx = ctx;
	return 0;
}

static int fake_as_new(struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	mutex_lock(&mu);
	int err = with_ctx(as_alloc(), out_as, out_ctx);
	note("as_new", 0, 0, err);
	mutex_unlock(&mu);
	return err;
}

static int fake_as_fork(struct plat_ctx *caller, struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	mutex_lock(&mu);
	struct plat_as *as = as_alloc();
	bool whole = as != NULL;
	if (as) {
		list_for_each(l, &caller->as->areas) {
			struct area *a = list_entry(l, struct area, link);
			struct area *copy = area_add(as, a->addr, a->size, a->prot);
			whole = whole && copy;
			if (copy)
				memcpy(copy->bytes, a->bytes, a->size);
		}
	}
	if (as && !whole) {
		as_destroy(as);
		as = NULL;
	}
	int err = with_ctx(as, out_as, out_ctx);
	if (!err)
		memcpy((*out_ctx)->fp, caller->fp, FP_SIZE);
	note("as_fork", (uint64_t)caller->as->number, 0, err);
	mutex_unlock(&mu);
	return err;
}

static void fake_as_free(struct plat_as *as)
{
	mutex_lock(&mu);
	BUG_ON(as->live != 0);
	note("as_free", (uint64_t)as->number, 0, 0);
	as_destroy(as);
	mutex_unlock(&mu);
}

static int fake_ctx_clone(struct plat_ctx *caller, struct plat_ctx **out_ctx)
{
	struct plat_ctx *ctx = mem_zalloc(sizeof(*ctx));

	if (!ctx)
		return -ENOMEM;
	mutex_lock(&mu);
	ctx->as = caller->as;
	ctx->as->live++;
	memcpy(ctx->fp, caller->fp, FP_SIZE);
	note("ctx_clone", (uint64_t)ctx->as->number, 0, 0);
	mutex_unlock(&mu);
	*out_ctx = ctx;
	return 0;
}

static void fake_ctx_free(struct plat_ctx *ctx)
{
	mutex_lock(&mu);
	ctx->as->live--;
	note("ctx_free", (uint64_t)ctx->as->number, 0, 0);
	mutex_unlock(&mu);
	mem_free(ctx);
}

static bool should_fail(void)
{
	return fail_countdown && --fail_countdown == 0;
}

/* Removes [addr, addr + size) from the areas, cutting those that overlap its ends. mu held. */
static int cut(struct plat_as *as, uint64_t addr, uint64_t size)
{
	uint64_t end = addr + size;

	list_for_each_safe(l, &as->areas) {
		struct area *a = list_entry(l, struct area, link);
		uint64_t a_end = a->addr + a->size;
		if (a->addr >= end || a_end <= addr)
			continue;
		if (a->addr < addr) {
			struct area *head = area_add(as, a->addr, addr - a->addr, a->prot);
			if (!head)
				return -ENOMEM;
			memcpy(head->bytes, a->bytes, head->size);
		}
		if (a_end > end) {
			struct area *tail = area_add(as, end, a_end - end, a->prot);
			if (!tail)
				return -ENOMEM;
			memcpy(tail->bytes, a->bytes + (end - a->addr), tail->size);
		}
		area_free(a);
	}
	return 0;
}

static int fake_map(struct plat_ctx *via, const struct plat_map *m)
{
	int err = 0;

	mutex_lock(&mu);
	note("map", m->addr, m->size, m->prot);
	if (should_fail())
		err = fail_err;
	if (!err)
		err = cut(via->as, m->addr, m->size);
	if (!err && !area_add(via->as, m->addr, m->size, m->prot))
		err = -ENOMEM;
	mutex_unlock(&mu);
	return err;
}

static int fake_unmap(struct plat_ctx *via, uint64_t addr, uint64_t size)
{
	mutex_lock(&mu);
	note("unmap", addr, size, 0);
	int err = should_fail() ? fail_err : cut(via->as, addr, size);
	mutex_unlock(&mu);
	return err;
}

static int fake_protect(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot)
{
	int err = 0;

	mutex_lock(&mu);
	note("protect", addr, size, prot);
	if (should_fail())
		err = fail_err;
	list_for_each(l, &via->as->areas) {
		struct area *a = list_entry(l, struct area, link);
		/* Whole areas only: tests that need finer protection run on a real platform. */
		if (!err && a->addr >= addr && a->addr + a->size <= addr + size)
			a->prot = prot;
	}
	mutex_unlock(&mu);
	return err;
}

static int fake_remap(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		      uint64_t new_size, bool dontunmap)
{
	int err = 0;

	mutex_lock(&mu);
	note("remap", old_addr, new_addr, (int64_t)new_size);
	struct area *from = NULL;
	list_for_each(l, &via->as->areas) {
		struct area *a = list_entry(l, struct area, link);
		if (a->addr <= old_addr && old_addr + old_size <= a->addr + a->size)
			from = a;
	}
	uint8_t *keep = from ? mem_zalloc(new_size) : NULL;
	if (should_fail())
		err = fail_err;
	else if (!from)
		err = -EFAULT;
	else if (!keep)
		err = -ENOMEM;
	if (!err) {
		int prot = from->prot;
		memcpy(keep, from->bytes + (old_addr - from->addr), MIN(old_size, new_size));
		err = dontunmap ? 0 : cut(via->as, old_addr, old_size);
		if (!err)
			err = cut(via->as, new_addr, new_size);
		struct area *to = err ? NULL : area_add(via->as, new_addr, new_size, prot);
		if (to)
			memcpy(to->bytes, keep, new_size);
		else if (!err)
			err = -ENOMEM;
	}
	mem_free(keep);
	mutex_unlock(&mu);
	return err;
}

static int fake_advise(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice)
{
	(void)via;
	mutex_lock(&mu);
	note("advise", addr, size, advice);
	int err = should_fail() ? fail_err : 0;
	mutex_unlock(&mu);
	return err;
}

static int fake_resident(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec)
{
	(void)via;
	(void)addr;
	memset(vec, 1, size / PAGE_SIZE);
	return 0;
}

static int fake_lock(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on)
{
	(void)via;
	mutex_lock(&mu);
	note("lock", addr, size, on);
	mutex_unlock(&mu);
	return 0;
}

/* Bytes from addr on that lie in one area with the protection; NULL when none. mu held. */
static uint8_t *find(struct plat_as *as, uint64_t addr, int prot, size_t *out_n)
{
	list_for_each(l, &as->areas) {
		struct area *a = list_entry(l, struct area, link);
		if (addr < a->addr || addr >= a->addr + a->size || (a->prot & prot) != prot)
			continue;
		*out_n = a->addr + a->size - addr;
		return a->bytes + (addr - a->addr);
	}
	return NULL;
}

static ssize_t copy(struct plat_as *as, void *in, const void *out, uint64_t addr, size_t n,
		    int prot)
{
	size_t done = 0, room;

	mutex_lock(&mu);
	while (done < n) {
		uint8_t *p = find(as, addr + done, prot, &room);
		if (!p)
			break;
		size_t k = MIN(room, n - done);
		if (in)
			memcpy((uint8_t *)in + done, p, k);
		else
			memcpy(p, (const uint8_t *)out + done, k);
		done += k;
	}
	mutex_unlock(&mu);
	return done || n == 0 ? (ssize_t)done : -EFAULT;
}

static ssize_t fake_copy_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	return copy(as, dst, NULL, addr, n, PROT_READ);
}

static ssize_t fake_copy_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	return copy(as, NULL, src, addr, n, PROT_WRITE);
}

static ssize_t fake_force_in(struct plat_as *as, void *dst, uint64_t addr, size_t n)
{
	return copy(as, dst, NULL, addr, n, 0);
}

static ssize_t fake_force_out(struct plat_as *as, uint64_t addr, const void *src, size_t n)
{
	return copy(as, NULL, src, addr, n, 0);
}

static int fake_cmpxchg32(struct plat_ctx *via, uint64_t addr, uint32_t old, uint32_t new,
			  uint32_t *seen)
{
	size_t room;
	int err = -EFAULT;

	mutex_lock(&mu);
	uint8_t *p = (addr & 3) ? NULL : find(via->as, addr, PROT_READ | PROT_WRITE, &room);
	if (p) {
		memcpy(seen, p, sizeof(*seen));
		if (*seen == old)
			memcpy(p, &new, sizeof(new));
		err = 0;
	}
	mutex_unlock(&mu);
	return err;
}

static long fake_futex(struct plat_ctx *ctx, const uint64_t args[6], const struct timespec *timeout)
{
	int cmd = (int)args[1] & FUTEX_CMD_MASK;

	(void)timeout;
	mutex_lock(&mu);
	note("futex", args[0], args[1], (int64_t)args[2]);
	mutex_unlock(&mu);
	if (cmd != FUTEX_WAIT && cmd != FUTEX_WAIT_BITSET)
		return 0;
	return atomic_load(&ctx->kicked) ? -EINTR : -EAGAIN;
}

static void fake_run(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev)
{
	bool kicked = atomic_exchange(&ctx->kicked, false);

	mutex_lock(&mu);
	last_regs = *regs;
	*ev = (struct plat_event){ .kind = kicked ? PLAT_INTERRUPT : PLAT_DEAD };
	if (!kicked && step_first < step_end) {
		struct step *s = &steps[step_first++];
		*ev = s->ev;
		if (ev->kind == PLAT_SYSCALL && !s->set) {
			regs->orig_rax = s->args[0];
			regs->rdi = s->args[1];
			regs->rsi = s->args[2];
			regs->rdx = s->args[3];
			regs->r10 = s->args[4];
			regs->r8 = s->args[5];
			regs->r9 = s->args[6];
			regs->rax = (uint64_t)-ENOSYS;
			regs->rip += 2;
		}
		if (s->set)
			s->set(regs, s->arg);
	}
	mutex_unlock(&mu);
}

static void fake_interrupt(struct plat_ctx *ctx)
{
	atomic_store(&ctx->kicked, true);
}

static int fake_fp_get(struct plat_ctx *ctx, void *buf)
{
	memcpy(buf, ctx->fp, FP_SIZE);
	return 0;
}

static int fake_fp_set(struct plat_ctx *ctx, const void *buf)
{
	memcpy(ctx->fp, buf, FP_SIZE);
	return 0;
}

static int fake_host_pid(struct plat_as *as)
{
	(void)as;
	return 0;
}

const struct platform_ops fake_platform = {
	.name = "fake",
	.summary = "a script instead of a processor, for tests",
	.probe = fake_probe,
	.start = fake_start,
	.child_event = fake_child_event,
	.main_request = fake_main_request,
	.info = fake_info,
	.as_new = fake_as_new,
	.as_fork = fake_as_fork,
	.as_free = fake_as_free,
	.ctx_clone = fake_ctx_clone,
	.ctx_free = fake_ctx_free,
	.map = fake_map,
	.unmap = fake_unmap,
	.protect = fake_protect,
	.remap = fake_remap,
	.advise = fake_advise,
	.resident = fake_resident,
	.lock = fake_lock,
	.copy_in = fake_copy_in,
	.copy_out = fake_copy_out,
	.force_in = fake_force_in,
	.force_out = fake_force_out,
	.cmpxchg32 = fake_cmpxchg32,
	.futex = fake_futex,
	.run = fake_run,
	.interrupt = fake_interrupt,
	.fp_get = fake_fp_get,
	.fp_set = fake_fp_set,
	.host_pid = fake_host_pid,
};

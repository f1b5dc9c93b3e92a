/*
 * The life of an address space: blank, forked, shared, gone; copies to and from it; growing stacks;
 * faults. What changes its mappings on request is in mmap.c, mremap.c and mm_advice.c; the list
 * itself in vma.c.
 *
 * Two counts: `ref` keeps the struct, `users` keeps the stub. Readers from outside
 * (process_vm_readv, /proc) become users for as long as they copy.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/task.h"
#include "sentry/vma.h"

#define STACK_GROW_STEP (128ul << 10)

static void mm_free(struct mm *mm)
{
	BUG_ON(mm->as || mm->vmas.node);
	while (mm->spare)
		mem_free(vma_take_locked(mm));
	mutex_fini(&mm->mu);
	mem_free(mm);
}

DEFINE_REF(mm);

static struct mm *mm_alloc(void)
{
	static atomic_ullong last_id;
	struct mm *mm = mem_zalloc(sizeof(*mm));

	if (!mm)
		return NULL;
	ref_init(&mm->ref);
	mm->id = atomic_fetch_add(&last_id, 1) + 1;
	atomic_init(&mm->users, 1);
	mutex_init(&mm->mu, RANK_MM);
	mm->mmap_base = mm->hole_from = plat->info()->task_max;
	mm->dumpable = 1;
	return mm;
}

static int add_region(struct mm *mm, const struct plat_region *r, unsigned flag)
{
	if (r->size == 0)
		return 0;
	int err = vma_reserve_locked(mm);
	if (err)
		return err;
	struct vma *v = vma_take_locked(mm);
	*v = (struct vma){
		.start = r->addr, .end = r->addr + r->size, .prot = r->prot, .flags = flag
	};
	if (flag == VMA_VDSO)
		v->flags |= VMA_MAYWRITE; /* private: a debugger may set breakpoints */
	vma_insert_locked(mm, v);
	return 0;
}

/* One blank address space, made while the boot had to wait for something else. */
static struct mm *_Atomic prepared;
static struct plat_ctx *prepared_ctx; /* written before, read after its owner took `prepared` */

int mm_prepare(void)
{
	struct mm *mm;
	int err = mm_new(&mm, &prepared_ctx);

	if (!err)
		atomic_store(&prepared, mm);
	return err;
}

int mm_new(struct mm **out_mm, struct plat_ctx **out_ctx)
{
	struct mm *mm = atomic_exchange(&prepared, NULL);

	if (mm) {
		*out_mm = mm;
		*out_ctx = prepared_ctx;
		return 0;
	}
	mm = mm_alloc();
	int err;

	if (!mm)
		return -ENOMEM;
	mutex_lock(&mm->mu);
	err = add_region(mm, &plat->info()->vvar, VMA_VVAR);
	if (!err)
		err = add_region(mm, &plat->info()->vdso, VMA_VDSO);
	if (!err)
		err = plat->as_new(&mm->as, out_ctx);
	mutex_unlock(&mm->mu);
	if (err) {
		mm_unuse(mm);
		return err;
	}
	*out_mm = mm;
	return 0;
}

/* ---- fork ----------------------------------------------------------------------------------- */

static void copy_fields(struct mm *n, const struct mm *old)
{
	n->mmap_base = old->mmap_base;
	n->hole_from = old->mmap_base;
	n->start_brk = old->start_brk;
	n->brk = old->brk;
	n->start_code = old->start_code;
	n->end_code = old->end_code;
	n->start_data = old->start_data;
	n->end_data = old->end_data;
	n->start_stack = old->start_stack;
	n->arg_start = old->arg_start;
	n->arg_end = old->arg_end;
	n->env_start = old->env_start;
	n->env_end = old->env_end;
	for (size_t i = 0; i < ARRAY_SIZE(n->auxv); i++)
		n->auxv[i] = old->auxv[i];
	n->auxv_words = old->auxv_words;
	n->dumpable = old->dumpable;
	n->membarrier_state = old->membarrier_state;
	if (old->exe) {
		n->exe = file_get(old->exe);
		BUG_ON(inode_deny_write(file_inode(n->exe)) != 0); /* ours is denied already */
	}
}

/* The list without what MADV_DONTFORK leaves out. Memory locks are not inherited. */
static int copy_vmas_locked(struct mm *n, struct mm *old)
{
	struct rb_node *last = NULL;

	for (struct vma *v = vma_first_locked(old); v; v = vma_next_locked(v)) {
		if (v->flags & VMA_DONTFORK)
			continue;
		struct vma *c = mem_alloc(sizeof(*c));
		if (!c)
			return -ENOMEM;
		*c = *v;
		c->dead_next = NULL;
		c->flags &= ~VMA_LOCKED;
		if (c->file)
			file_get(c->file);
		rb_insert(&n->vmas, &c->node, last, last ? &last->right : &n->vmas.node);
		/* In ascending order the next one hangs below the rightmost node. */
		last = &c->node;
		n->vma_count++;
		vma_account_locked(n, c);
	}
	return 0;
}

/* The host follows MADV_DONTFORK too; this makes sure that list and stub agree on every platform.
 */
static int drop_dontfork_locked(struct mm *old, struct plat_ctx *child)
{
	for (struct vma *v = vma_first_locked(old); v; v = vma_next_locked(v)) {
		if (!(v->flags & VMA_DONTFORK))
			continue;
		int err = plat->unmap(child, v->start, v->end - v->start);
		if (err)
			return err;
	}
	return 0;
}

int mm_fork(struct task *t, struct mm **out_mm, struct plat_ctx **out_ctx)
{
	struct mm *old = t->mm, *n = mm_alloc();
	struct plat_ctx *ctx = NULL;
	int err;

	if (!n)
		return -ENOMEM;
	mutex_lock(&old->mu);
	/* Nobody else knows n: its lock is not needed. */
	copy_fields(n, old);
	err = copy_vmas_locked(n, old);
	if (!err)
		err = plat->as_fork(t->ctx, &n->as, &ctx);
	if (!err)
		err = drop_dontfork_locked(old, ctx);
	mutex_unlock(&old->mu);
	if (err) {
		if (ctx)
			plat->ctx_free(ctx);
		mm_unuse(n);
		return err;
	}
	*out_mm = n;
	*out_ctx = ctx;
	return 0;
}

/* ---- users ---------------------------------------------------------------------------------- */

void mm_use(struct mm *mm)
{
	BUG_ON(atomic_fetch_add(&mm->users, 1) <= 0);
}

struct mm *mm_use_of(struct task *t)
{
	struct mm *mm;

	mutex_lock(&t->mu);
	mm = t->mm;
	int users = mm ? atomic_load(&mm->users) : 0;
	while (users > 0 && !atomic_compare_exchange_weak(&mm->users, &users, users + 1))
		;
	mm = users > 0 ? mm_get(mm) : NULL;
	mutex_unlock(&t->mu);
	return mm;
}

void mm_unuse(struct mm *mm)
{
	struct vma *dead = NULL;
	struct plat_as *as;
	struct file *exe;

	if (atomic_fetch_sub(&mm->users, 1) == 1) {
		mutex_lock(&mm->mu);
		as = mm->as;
		mm->as = NULL;
		exe = mm->exe;
		mm->exe = NULL;
		for (struct vma *v = vma_first_locked(mm); v; v = vma_next_locked(v)) {
			v->dead_next = dead;
			dead = v;
		}
		mm->vmas.node = NULL;
		mm->vma_count = 0;
		mutex_unlock(&mm->mu);
		if (as)
			plat->as_free(as);
		if (exe)
			inode_allow_write(file_inode(exe));
		file_put(exe);
		vma_free_dead(dead);
	}
	mm_put(mm);
}

struct file *mm_exe(struct mm *mm)
{
	mutex_lock(&mm->mu);
	struct file *f = mm->exe ? file_get(mm->exe) : NULL;
	mutex_unlock(&mm->mu);
	return f;
}

/* ---- copies --------------------------------------------------------------------------------- */

typedef ssize_t copy_in_fn(struct plat_as *as, void *dst, uint64_t addr, size_t n);
typedef ssize_t copy_out_fn(struct plat_as *as, uint64_t addr, const void *src, size_t n);

/* The part of [addr, addr+n) in user space: our own pages in a stub lie above and are nobody's
 * buffer. */
static size_t clamp(uint64_t addr, size_t n)
{
	uint64_t max = plat->info()->task_max;
	return addr >= max ? 0 : (size_t)MIN(n, max - addr);
}

static ssize_t copy_in(struct mm *mm, copy_in_fn *fn, void *dst, uint64_t addr, size_t n)
{
	size_t part = clamp(addr, n);

	if (n == 0)
		return 0;
	return part && mm->as ? fn(mm->as, dst, addr, part) : -EFAULT;
}

static ssize_t copy_out(struct mm *mm, copy_out_fn *fn, uint64_t addr, const void *src, size_t n)
{
	size_t part = clamp(addr, n);

	if (n == 0)
		return 0;
	return part && mm->as ? fn(mm->as, addr, src, part) : -EFAULT;
}

ssize_t mm_copy_in(struct mm *mm, void *dst, uint64_t addr, size_t n)
{
	return copy_in(mm, plat->copy_in, dst, addr, n);
}

ssize_t mm_copy_out(struct mm *mm, uint64_t addr, const void *src, size_t n)
{
	return copy_out(mm, plat->copy_out, addr, src, n);
}

ssize_t mm_force_in(struct mm *mm, void *dst, uint64_t addr, size_t n)
{
	ssize_t done = copy_in(mm, plat->force_in, dst, addr, n);
	size_t have = done > 0 ? (size_t)done : 0;

	/* A platform may obey protections; a stopped tracee of the caller can lift them itself. */
	if (have < n)
		have += ptrace_force_in(mm, (char *)dst + have, addr + have,
					clamp(addr + have, n - have));
	return have || n == 0 ? (ssize_t)have : -EFAULT;
}

ssize_t mm_force_out(struct mm *mm, uint64_t addr, const void *src, size_t n)
{
	ssize_t done = copy_out(mm, plat->force_out, addr, src, n);
	size_t have = done > 0 ? (size_t)done : 0;

	if (have < n)
		have += ptrace_force_out(mm, addr + have, (const char *)src + have,
					 clamp(addr + have, n - have));
	return have || n == 0 ? (ssize_t)have : -EFAULT;
}

/* ---- faults and growing mappings --------------------------------------------------------------
 */

int mm_fault_code(struct mm *mm, uint64_t addr, int host_code)
{
	mutex_lock(&mm->mu);
	struct vma *v = vma_find_locked(mm, addr);
	bool mapped = v && v->start <= addr;
	mutex_unlock(&mm->mu);
	if (host_code != SEGV_MAPERR && host_code != SEGV_ACCERR)
		return host_code;
	return mapped ? SEGV_ACCERR : SEGV_MAPERR;
}

/* How far down v may begin: a step more than asked, but inside the limits and off what lies below.
 */
static uint64_t grow_to_locked(struct vma *v, uint64_t addr)
{
	struct vma *below = vma_prev_locked(v);
	uint64_t want = page_down(addr), limit = mm_limit(RLIMIT_STACK);
	uint64_t lowest = plat->info()->task_min;

	if (below) {
		/* A growing neighbour is part of the same stack, a PROT_NONE one is a guard page.
		 */
		bool guard = (below->flags & VMA_GROWSDOWN) || below->prot == PROT_NONE;
		lowest = MAX(lowest, below->end + (guard ? 0 : STACK_GUARD_GAP));
	}
	if (limit < v->end)
		lowest = MAX(lowest, page_up(v->end - limit));
	if (want < lowest)
		return 0;
	uint64_t easy = v->start > STACK_GROW_STEP ? v->start - STACK_GROW_STEP : 0;
	return MIN(want, MAX(easy, lowest));
}

static bool grow_locked(struct mm *mm, struct plat_ctx *via, uint64_t addr, struct vma **dead)
{
	struct vma *v = vma_find_locked(mm, addr);

	if (!v || v->start <= addr || !(v->flags & VMA_GROWSDOWN) || v->file)
		return false;
	uint64_t to = grow_to_locked(v, addr);
	if (!to)
		return false;
	uint64_t pages = (v->start - to) >> PAGE_SHIFT;
	if (!mm_may_expand_locked(mm, v->prot, v->flags, pages) ||
	    ((v->flags & VMA_LOCKED) && mm_may_lock_locked(mm, pages)) || vma_reserve_locked(mm))
		return false;
	struct plat_map m = {
		.addr = to, .size = v->start - to, .prot = v->prot, .flags = PLAT_MAP_ANON, .fd = -1
	};
	if (plat->map(via, &m))
		return false;
	vma_unaccount_locked(mm, v);
	v->start = to;
	vma_account_locked(mm, v);
	vma_merge_locked(mm, v->start, v->end, dead);
	return true;
}

bool mm_grow(struct task *t, uint64_t addr)
{
	struct vma *dead = NULL;

	mutex_lock(&t->mm->mu);
	bool grown = grow_locked(t->mm, t->ctx, addr, &dead);
	mutex_unlock(&t->mm->mu);
	vma_free_dead(dead);
	return grown;
}

/*
 * mremap: growing and shrinking in place, moving, MREMAP_FIXED, MREMAP_DONTUNMAP, duplicating
 * shared mappings (old size 0). One mapping at a time; checks and errors as mm/mremap.c of the
 * kernel.
 */
#include <errno.h>
#include <sys/mman.h>

#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/task.h"
#include "sentry/vma.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

struct mremap_request {
	uint64_t old_addr, old_size, new_addr, new_size;
	unsigned flags;
};

static int check_request(const struct mremap_request *r)
{
	uint64_t max = plat->info()->task_max;

	if ((r->flags & ~(unsigned)(MREMAP_FIXED | MREMAP_MAYMOVE | MREMAP_DONTUNMAP)) ||
	    ((r->flags & MREMAP_FIXED) && !(r->flags & MREMAP_MAYMOVE)) ||
	    ((r->flags & MREMAP_DONTUNMAP) &&
	     (!(r->flags & MREMAP_MAYMOVE) || r->old_size != r->new_size)) ||
	    (r->old_addr & ~PAGE_MASK) || r->new_size == 0)
		return -EINVAL;
	if (r->flags & MREMAP_FIXED) {
		if ((r->new_addr & ~PAGE_MASK) || r->new_size > max ||
		    r->new_addr > max - r->new_size)
			return -EINVAL;
		if (r->old_addr + r->old_size > r->new_addr &&
		    r->new_addr + r->new_size > r->old_addr)
			return -EINVAL;
		if (r->new_addr < plat->info()->task_min)
			return -EPERM;
	}
	return 0;
}

static int cut(struct mm *mm, struct plat_ctx *via, uint64_t start, uint64_t size,
	       struct vma **dead)
{
	if (!vma_range_used_locked(mm, start, start + size))
		return 0;
	int err = plat->unmap(via, start, size);
	if (!err)
		vma_cut_locked(mm, start, start + size, dead);
	return err;
}

/* May v, from old_addr on, become new_size long? (vma_to_resize) */
static int check_resize_locked(struct mm *mm, const struct vma *v, const struct mremap_request *r)
{
	uint64_t grow = r->new_size > r->old_size ? r->new_size - r->old_size : 0;

	if (r->old_size == 0 && !(v->flags & VMA_SHARED))
		return -EINVAL;
	if (r->old_size > v->end - r->old_addr)
		return -EFAULT;
	if ((v->flags & (VMA_VDSO | VMA_VVAR)) && (grow || (r->flags & MREMAP_DONTUNMAP)))
		return grow ? -EFAULT : -EINVAL;
	if (v->file && v->off + (r->old_addr - v->start) + r->new_size > INT64_MAX)
		return -EINVAL;
	if (grow && (v->flags & VMA_LOCKED) && mm_may_lock_locked(mm, grow >> PAGE_SHIFT))
		return -EAGAIN;
	uint64_t extra = r->flags & MREMAP_DONTUNMAP ? r->new_size : grow;
	return mm_may_expand_locked(mm, v->prot, v->flags, extra >> PAGE_SHIFT) ? 0 : -ENOMEM;
}

static int64_t grow_in_place_locked(struct mm *mm, struct plat_ctx *via, struct vma *v,
				    const struct mremap_request *r, struct vma **dead)
{
	int err = plat->remap(via, r->old_addr, r->old_size, r->old_addr, r->new_size, false);
	if (err)
		return err;
	vma_unaccount_locked(mm, v);
	v->end = r->old_addr + r->new_size;
	vma_account_locked(mm, v);
	if (v->flags & VMA_LOCKED)
		(void)mm_populate_locked(via, v);
	vma_merge_locked(mm, v->start, v->end, dead);
	return (int64_t)r->old_addr;
}

/* v is the mapping of old_addr. The target range is free. */
static int64_t move_locked(struct mm *mm, struct plat_ctx *via, const struct vma *v,
			   const struct mremap_request *r, uint64_t target, struct vma **dead)
{
	bool keep = r->flags & MREMAP_DONTUNMAP;
	int err = plat->remap(via, r->old_addr, r->old_size, target, r->new_size, keep);
	if (err)
		return err;
	struct vma *n = vma_take_locked(mm);
	*n = *v;
	n->dead_next = NULL;
	n->start = target;
	n->end = target + r->new_size;
	if (n->file) {
		file_get(n->file);
		n->off = v->off + (r->old_addr - v->start);
	}
	if (r->old_size && !keep)
		vma_cut_locked(mm, r->old_addr, r->old_addr + r->old_size, dead);
	vma_insert_locked(mm, n);
	if ((n->flags & VMA_LOCKED) && r->new_size > r->old_size)
		(void)mm_populate_locked(via, n);
	vma_merge_locked(mm, target, target + r->new_size, dead);
	return (int64_t)target;
}

/* MREMAP_FIXED and MREMAP_DONTUNMAP. */
static int64_t remap_to_locked(struct mm *mm, struct plat_ctx *via, struct mremap_request *r,
			       struct vma **dead)
{
	uint64_t target = r->new_addr;
	int err = 0;

	if (r->flags & MREMAP_FIXED)
		err = cut(mm, via, r->new_addr, r->new_size, dead);
	if (!err && r->old_size > r->new_size) {
		err = cut(mm, via, r->old_addr + r->new_size, r->old_size - r->new_size, dead);
		r->old_size = r->new_size;
	}
	if (!err)
		err = vma_reserve_locked(mm);
	if (err)
		return err;
	struct vma *v = vma_find_locked(mm, r->old_addr);
	if (!v || v->start > r->old_addr)
		return -EFAULT;
	err = check_resize_locked(mm, v, r);
	if (err)
		return err;
	if (!(r->flags & MREMAP_FIXED)) {
		target = mm_pick_addr_locked(mm, r->new_addr, r->new_size);
		if (!target)
			return -ENOMEM;
	}
	return move_locked(mm, via, v, r, target, dead);
}

static int64_t remap_locked(struct mm *mm, struct plat_ctx *via, struct mremap_request *r,
			    struct vma **dead)
{
	int err = vma_reserve_locked(mm);
	if (err)
		return err;
	struct vma *v = vma_find_locked(mm, r->old_addr);
	if (!v || v->start > r->old_addr)
		return -EFAULT;
	if (vma_range_sealed_locked(mm, r->old_addr, r->old_addr + MAX(r->old_size, PAGE_SIZE)) ||
	    ((r->flags & MREMAP_FIXED) &&
	     vma_range_sealed_locked(mm, r->new_addr, r->new_addr + r->new_size)))
		return -EPERM;
	if (r->flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
		return remap_to_locked(mm, via, r, dead);
	if (r->old_size >= r->new_size) {
		if (r->old_size > r->new_size)
			err = cut(mm, via, r->old_addr + r->new_size, r->old_size - r->new_size,
				  dead);
		return err ? err : (int64_t)r->old_addr;
	}
	err = check_resize_locked(mm, v, r);
	if (err)
		return err;
	uint64_t end = r->old_addr + r->new_size;
	struct vma *next = vma_next_locked(v);
	if (r->old_size && r->old_size == v->end - r->old_addr && end > r->old_addr &&
	    end <= plat->info()->task_max && (!next || end <= vma_gap_start(next)))
		return grow_in_place_locked(mm, via, v, r, dead);
	if (!(r->flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	uint64_t target = mm_pick_addr_locked(mm, 0, r->new_size);
	return target ? move_locked(mm, via, v, r, target, dead) : -ENOMEM;
}

int64_t mm_mremap(struct task *t, uint64_t old_addr, uint64_t old_size, uint64_t new_size,
		  unsigned flags, uint64_t new_addr)
{
	struct mremap_request r = { old_addr, page_up(old_size), new_addr, page_up(new_size),
				    flags };
	struct vma *dead = NULL;
	int64_t result = check_request(&r);

	if (result)
		return result;
	if (r.new_size > plat->info()->task_max)
		return -ENOMEM;
	mutex_lock(&t->mm->mu);
	result = remap_locked(t->mm, t->ctx, &r, &dead);
	mutex_unlock(&t->mm->mu);
	vma_free_dead(dead);
	return result;
}

int mm_remap_file(struct task *t, uint64_t addr, uint64_t size, uint64_t off, unsigned map_flags)
{
	struct mmap_request req = { .addr = addr, .size = size, .off = off };
	struct mm *mm = t->mm;
	int64_t err = -EINVAL;

	mutex_lock(&mm->mu);
	struct vma *v = vma_find_locked(mm, addr);
	if (v && v->start <= addr && v->end >= addr + size && v->file && (v->flags & VMA_SHARED)) {
		req.file = file_get(v->file);
		req.prot = v->prot;
		req.vma_flags = v->flags & VMA_ANON_FILE;
		req.map_flags = (map_flags & MAP_NONBLOCK) | MAP_SHARED | MAP_FIXED | MAP_POPULATE |
				(v->flags & VMA_LOCKED ? MAP_LOCKED : 0);
	}
	mutex_unlock(&mm->mu);
	if (req.file)
		err = mm_mmap(t, &req);
	file_put(req.file);
	return err < 0 ? (int)err : 0;
}

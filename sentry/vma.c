/*
 * The VMA list: an ordered tree of non-overlapping ranges with counters beside it. Pure
 * bookkeeping: the platform is told by the callers. Structs come from a reserve filled before a
 * change begins, so that no step in the middle can fail.
 *
 * Free places are found by walking down from mmap_base. The walk is short because the address space
 * remembers up to where there is no hole worth looking at (hole_from, hole_max), as Linux did
 * before its trees were augmented.
 */
#include "sentry/vma.h"

#include <errno.h>
#include <sys/mman.h>

#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/plat.h"

static struct vma *vma_of(struct rb_node *n)
{
	return n ? container_of(n, struct vma, node) : NULL;
}

struct vma *vma_first_locked(struct mm *mm)
{
	return vma_of(rb_first(&mm->vmas));
}

struct vma *vma_next_locked(struct vma *v)
{
	return vma_of(rb_next(&v->node));
}

struct vma *vma_prev_locked(struct vma *v)
{
	return vma_of(rb_prev(&v->node));
}

struct vma *vma_find_locked(struct mm *mm, uint64_t addr)
{
	struct rb_node *n = mm->vmas.node;
	struct vma *best = NULL;

	while (n) {
		struct vma *v = vma_of(n);
		if (v->end > addr) {
			best = v;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

_Atomic int vma_max_count = VMA_MAX;

int vma_reserve_locked(struct mm *mm)
{
	if (mm->vma_count + 2 > (unsigned)atomic_load(&vma_max_count))
		return -ENOMEM;
	while (mm->spare_count < VMA_SPARE) {
		struct vma *v = mem_zalloc(sizeof(*v));
		if (!v)
			return -ENOMEM;
		v->dead_next = mm->spare;
		mm->spare = v;
		mm->spare_count++;
	}
	return 0;
}

struct vma *vma_take_locked(struct mm *mm)
{
	struct vma *v = mm->spare;

	BUG_ON(!v);
	mm->spare = v->dead_next;
	mm->spare_count--;
	v->dead_next = NULL;
	return v;
}

void vma_free_dead(struct vma *dead)
{
	while (dead) {
		struct vma *v = dead;
		dead = v->dead_next;
		file_put(v->file);
		mem_free(v);
	}
}

/* ---- counters ----------------------------------------------------------------------------- */

bool vma_is_data(int prot, unsigned flags)
{
	return (prot & PROT_WRITE) && !(flags & (VMA_SHARED | VMA_GROWSDOWN));
}

static void account(struct mm *mm, const struct vma *v, uint64_t sign)
{
	uint64_t pages = ((v->end - v->start) >> PAGE_SHIFT) * sign;

	mm->total_pages += pages;
	if (v->flags & VMA_GROWSDOWN)
		mm->stack_pages += pages;
	else if ((v->prot & PROT_EXEC) && !(v->prot & PROT_WRITE))
		mm->exec_pages += pages;
	else if (vma_is_data(v->prot, v->flags))
		mm->data_pages += pages;
	if (v->flags & VMA_SHARED)
		mm->shared_pages += pages;
	if (v->flags & VMA_LOCKED)
		mm->locked_pages += pages;
}

void vma_account_locked(struct mm *mm, const struct vma *v)
{
	account(mm, v, 1);
}

void vma_unaccount_locked(struct mm *mm, const struct vma *v)
{
	account(mm, v, UINT64_MAX); /* -1 */
}

/* ---- inserting and removing --------------------------------------------------------------- */

void vma_insert_locked(struct mm *mm, struct vma *v)
{
	struct rb_node **link = &mm->vmas.node, *parent = NULL;

	BUG_ON(v->start >= v->end || ((v->start | v->end) & ~PAGE_MASK));
	while (*link) {
		struct vma *o = vma_of(*link);
		parent = *link;
		BUG_ON(v->start < o->end && o->start < v->end);
		link = v->start < o->start ? &parent->left : &parent->right;
	}
	rb_insert(&mm->vmas, &v->node, parent, link);
	mm->vma_count++;
	vma_account_locked(mm, v);
}

static void vma_erase_locked(struct mm *mm, struct vma *v, struct vma **dead)
{
	vma_unaccount_locked(mm, v);
	rb_erase(&mm->vmas, &v->node);
	mm->vma_count--;
	v->dead_next = *dead;
	*dead = v;
}

/* v keeps [start, at); a new VMA gets the rest. Counters of the sum do not change. */
static struct vma *vma_split_locked(struct mm *mm, struct vma *v, uint64_t at)
{
	struct vma *n = vma_take_locked(mm);

	*n = *v;
	n->dead_next = NULL;
	n->start = at;
	if (n->file) {
		file_get(n->file);
		n->off += at - v->start;
	}
	vma_unaccount_locked(mm, v);
	v->end = at;
	vma_account_locked(mm, v);
	vma_insert_locked(mm, n);
	return n;
}

void vma_isolate_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	struct vma *v = vma_find_locked(mm, start);

	if (v && v->start < start)
		vma_split_locked(mm, v, start);
	v = vma_find_locked(mm, end - 1);
	if (v && v->start < end && v->end > end)
		vma_split_locked(mm, v, end);
}

/* A place became free: the hole around it may be bigger than what the search has seen. */
static void note_hole_locked(struct mm *mm, uint64_t start)
{
	struct vma *next = vma_find_locked(mm, start);
	struct vma *prev = next ? vma_prev_locked(next) : vma_of(rb_last(&mm->vmas));
	uint64_t hi = MIN(next ? next->start : mm->mmap_base, mm->mmap_base);
	uint64_t lo = prev ? prev->end : 0;

	if (hi > mm->hole_from && hi > lo)
		mm->hole_max = MAX(mm->hole_max, hi - lo);
}

void vma_cut_locked(struct mm *mm, uint64_t start, uint64_t end, struct vma **dead)
{
	struct vma *v = vma_find_locked(mm, start), *next;
	bool any = false;

	if (!v || v->start >= end)
		return;
	if (v->start < start && v->end > end) {
		vma_split_locked(mm, v, end);
		any = true;
	}
	for (; v && v->start < end; v = next) {
		next = vma_next_locked(v);
		any = true;
		if (v->start >= start && v->end <= end) {
			vma_erase_locked(mm, v, dead);
			continue;
		}
		vma_unaccount_locked(mm, v);
		if (v->start < start) {
			v->end = start;
		} else {
			v->off += v->file ? end - v->start : 0;
			v->start = end;
		}
		vma_account_locked(mm, v);
	}
	if (any)
		note_hole_locked(mm, start);
}

static bool can_merge(const struct vma *a, const struct vma *b)
{
	return a->end == b->start && a->prot == b->prot && a->flags == b->flags &&
	       a->file == b->file && a->policy == b->policy &&
	       !(a->flags & (VMA_VDSO | VMA_VVAR)) &&
	       (!a->file || a->off + (a->end - a->start) == b->off);
}

void vma_merge_locked(struct mm *mm, uint64_t start, uint64_t end, struct vma **dead)
{
	struct vma *v = vma_find_locked(mm, start ? start - 1 : 0), *next;

	for (; v; v = next) {
		next = vma_next_locked(v);
		if (!next || next->start > end)
			break;
		if (!can_merge(v, next))
			continue;
		uint64_t new_end = next->end;
		vma_erase_locked(mm, next, dead);
		vma_unaccount_locked(mm, v);
		v->end = new_end;
		vma_account_locked(mm, v);
		next = v;
	}
}

/* ---- questions ---------------------------------------------------------------------------- */

bool vma_range_used_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	struct vma *v = vma_find_locked(mm, start);
	return v && v->start < end;
}

bool vma_range_sealed_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	for (struct vma *v = vma_find_locked(mm, start); v && v->start < end;
	     v = vma_next_locked(v))
		if (v->flags & VMA_SEALED)
			return true;
	return false;
}

uint64_t vma_range_bytes_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	for (struct vma *v = vma_find_locked(mm, start); v && v->start < end;
	     v = vma_next_locked(v))
		sum += MIN(v->end, end) - MAX(v->start, start);
	return sum;
}

bool vma_range_full_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	for (struct vma *v = vma_find_locked(mm, start); v && v->start <= start;
	     v = vma_next_locked(v)) {
		if (v->end >= end)
			return true;
		start = v->end;
	}
	return false;
}

uint64_t vma_gap_start(const struct vma *v)
{
	if (!(v->flags & VMA_GROWSDOWN))
		return v->start;
	return v->start > STACK_GUARD_GAP ? v->start - STACK_GUARD_GAP : 0;
}

uint64_t vma_find_gap_in_locked(struct mm *mm, uint64_t lo, uint64_t hi, uint64_t size)
{
	struct vma *v;

	for (v = vma_find_locked(mm, lo); v && lo < hi; v = vma_next_locked(v)) {
		if (vma_gap_start(v) > lo && vma_gap_start(v) - lo >= size)
			break;
		lo = MAX(lo, v->end);
	}
	return lo < hi && hi - lo >= size ? lo : 0;
}

uint64_t vma_find_gap_locked(struct mm *mm, uint64_t size)
{
	uint64_t min = plat->info()->task_min;
	uint64_t hi, max_seen;
	struct vma *v;

	if (size <= mm->hole_max) {
		hi = mm->mmap_base;
		max_seen = 0;
	} else {
		hi = mm->hole_from;
		max_seen = mm->hole_max;
	}
	v = vma_find_locked(mm, hi - 1);
	if (v && v->start >= hi)
		v = vma_prev_locked(v);
	if (!v) {
		struct rb_node *last = rb_last(&mm->vmas);
		v = vma_of(last);
		if (v && v->start >= hi)
			v = vma_prev_locked(v);
	}
	/* What lies just above hi may be growing down towards it. */
	struct vma *above = vma_find_locked(mm, hi);
	if (above && above->start >= hi)
		hi = MIN(hi, vma_gap_start(above));
	for (;; v = vma_prev_locked(v)) {
		uint64_t lo = MAX(v ? v->end : 0, min);
		if (hi > lo && hi - lo >= size) {
			mm->hole_from = hi - size;
			mm->hole_max = max_seen;
			return hi - size;
		}
		if (!v)
			return 0;
		if (hi > lo)
			max_seen = MAX(max_seen, hi - lo);
		hi = MIN(hi, vma_gap_start(v));
	}
}

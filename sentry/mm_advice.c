/*
 * madvise, msync, mincore, mlock, mlockall: calls that walk over mappings without making any. Each
 * works mapping by mapping like Linux: what came before an error stays done.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <linux/capability.h>
#include <sys/mman.h>

#include "sentry/plat.h"
#include "sentry/task.h"
#include "sentry/vma.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* ---- madvise -------------------------------------------------------------------------------- */

/* What an advice does to the flags of a mapping. */
static bool flag_change(int advice, unsigned *out_set, unsigned *out_clear)
{
	static const struct {
		int advice;
		unsigned set, clear;
	} rows[] = {
		{ MADV_DONTFORK, VMA_DONTFORK, 0 },     { MADV_DOFORK, 0, VMA_DONTFORK },
		{ MADV_WIPEONFORK, VMA_WIPEONFORK, 0 }, { MADV_KEEPONFORK, 0, VMA_WIPEONFORK },
		{ MADV_DONTDUMP, VMA_DONTDUMP, 0 },     { MADV_DODUMP, 0, VMA_DONTDUMP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].advice == advice) {
			*out_set = rows[i].set;
			*out_clear = rows[i].clear;
			return true;
		}
	}
	return false;
}

/* 0 or -errno. MADV_MERGEABLE is not known: to merge equal pages would be a side channel between
 * sandboxes. Guards are the host's, which may be too old for them (before Linux 6.13). */
static int check_advice(const struct vma *v, int advice)
{
	bool special = v->flags & (VMA_VDSO | VMA_VVAR);

	switch (advice) {
	case MADV_NORMAL:
	case MADV_RANDOM:
	case MADV_SEQUENTIAL:
	case MADV_DONTFORK:
	case MADV_DONTDUMP:
	case MADV_DODUMP:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
	case MADV_COLLAPSE:
		return 0;
	case MADV_WILLNEED:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
		return 0;
	case MADV_GUARD_INSTALL:
	case MADV_GUARD_REMOVE:
		return (v->flags & (VMA_LOCKED | VMA_SHARED)) || v->file || special ? -EINVAL : 0;
	case MADV_DONTNEED:
	case MADV_COLD:
	case MADV_PAGEOUT:
		return (v->flags & VMA_LOCKED) || special ? -EINVAL : 0;
	case MADV_DONTNEED_LOCKED:
	case MADV_DOFORK:
		return special ? -EINVAL : 0;
	case MADV_FREE:
	case MADV_WIPEONFORK:
		return v->file || (v->flags & VMA_SHARED) ? -EINVAL : 0;
	case MADV_KEEPONFORK:
		return 0;
	}
	return -EINVAL;
}

static bool is_hint(int advice)
{
	return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL ||
	       advice == MADV_WILLNEED || advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE ||
	       advice == MADV_DONTDUMP || advice == MADV_DODUMP || advice == MADV_COLD ||
	       advice == MADV_PAGEOUT;
}

/* What throws contents away: as good as a change to memory that nobody may write. */
static bool is_discard(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_DONTNEED_LOCKED ||
	       advice == MADV_DONTFORK || advice == MADV_WIPEONFORK;
}

/* One piece inside one mapping. */
static int advise_locked(struct task *t, const struct vma *v, uint64_t start, uint64_t end,
			 int advice, struct vma **dead)
{
	struct mm *mm = t->mm;
	unsigned set, clear;
	int err = check_advice(v, advice);

	if (err)
		return err;
	if ((v->flags & VMA_SEALED) && !v->file && !(v->prot & PROT_WRITE) && is_discard(advice))
		return -EPERM;
	bool flags = flag_change(advice, &set, &clear);
	if (flags) {
		err = vma_reserve_locked(mm);
		if (err)
			return err;
	}
	err = plat->advise(t->ctx, start, end - start, advice);
	if (err && !is_hint(advice))
		return err;
	if (!flags)
		return 0;
	vma_isolate_locked(mm, start, end);
	struct vma *piece = vma_find_locked(mm, start);
	piece->flags = (piece->flags | set) & ~clear;
	vma_merge_locked(mm, start, end, dead);
	return 0;
}

static int advise_range(struct task *t, uint64_t start, uint64_t end, int advice)
{
	struct mm *mm = t->mm;
	struct vma *dead = NULL;
	int err = 0, hole = 0;

	mutex_lock(&mm->mu);
	while (start < end && !err) {
		struct vma *v = vma_find_locked(mm, start);
		if (!v || v->start >= end) {
			hole = -ENOMEM;
			break;
		}
		if (v->start > start) {
			hole = -ENOMEM;
			start = v->start;
		}
		uint64_t stop = MIN(v->end, end);
		err = advise_locked(t, v, start, stop, advice, &dead);
		start = stop;
	}
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return err ? err : hole;
}

/* MADV_REMOVE punches holes into the files behind shared mappings; files are used without the lock.
 */
static int remove_range(struct task *t, uint64_t start, uint64_t end)
{
	struct mm *mm = t->mm;
	int err = 0, hole = 0;

	while (start < end && !err) {
		struct file *f = NULL;
		uint64_t off = 0, stop = end;

		mutex_lock(&mm->mu);
		struct vma *v = vma_find_locked(mm, start);
		if (!v || v->start >= end) {
			hole = -ENOMEM;
		} else if (v->start > start) {
			hole = -ENOMEM;
			stop = v->start;
		} else {
			stop = MIN(v->end, end);
			if ((v->flags & VMA_LOCKED) || !v->file || !v->file->ops->fallocate)
				err = -EINVAL;
			else if (!(v->flags & VMA_SHARED) || !(v->flags & VMA_MAYWRITE) ||
				 !(v->prot & PROT_WRITE))
				err = -EACCES;
			else
				f = file_get(v->file);
			off = v->off + (start - v->start);
		}
		mutex_unlock(&mm->mu);
		if (f)
			err = f->ops->fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off,
						stop - start);
		file_put(f);
		start = stop;
	}
	return err ? err : hole;
}

int mm_madvise(struct task *t, uint64_t addr, uint64_t size, int advice)
{
	const struct vma any = { .flags = VMA_MAYWRITE };
	uint64_t end = addr + page_up(size);

	if (advice != MADV_REMOVE && check_advice(&any, advice) < 0)
		return -EINVAL;
	if ((addr & ~PAGE_MASK) || (size && page_up(size) == 0) || end < addr)
		return -EINVAL;
	if (end == addr)
		return 0;
	if (advice == MADV_REMOVE)
		return remove_range(t, addr, end);
	return advise_range(t, addr, end, advice);
}

/* ---- msync ---------------------------------------------------------------------------------- */

int mm_msync(struct task *t, uint64_t addr, uint64_t size, int flags)
{
	uint64_t end = addr + page_up(size), pos = addr;
	struct mm *mm = t->mm;
	int err = 0, hole = 0;

	if ((flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC)) || (addr & ~PAGE_MASK) ||
	    (flags & (MS_ASYNC | MS_SYNC)) == (MS_ASYNC | MS_SYNC))
		return -EINVAL;
	if (end < addr)
		return -ENOMEM;
	while (pos < end && !err) {
		struct file *f = NULL;

		mutex_lock(&mm->mu);
		struct vma *v = vma_find_locked(mm, pos);
		if (!v || v->start > pos)
			hole = -ENOMEM;
		if (v && v->start < end && (flags & MS_INVALIDATE) && (v->flags & VMA_LOCKED))
			err = -EBUSY;
		else if (v && v->start < end && (flags & MS_SYNC) && (v->flags & VMA_SHARED) &&
			 v->file && v->file->ops->fsync)
			f = file_get(v->file);
		pos = v ? v->end : end;
		mutex_unlock(&mm->mu);
		if (f)
			err = f->ops->fsync(f, true);
		file_put(f);
	}
	return err ? err : hole;
}

/* ---- mincore -------------------------------------------------------------------------------- */

int mm_mincore(struct task *t, uint64_t addr, uint64_t size, buf_gp vec)
{
	uint8_t bytes[2048];
	uint64_t pages = page_up(size) >> PAGE_SHIFT, done = 0;
	struct mm *mm = t->mm;

	if (addr & ~PAGE_MASK)
		return -EINVAL;
	if (!guest_range_ok(t, gaddr(addr), size))
		return -ENOMEM;
	if (!guest_range_ok(t, vec.addr, pages))
		return -EFAULT;
	while (done < pages) {
		uint64_t start = addr + (done << PAGE_SHIFT);
		uint64_t n = MIN(pages - done, sizeof(bytes));
		int err = -ENOMEM;

		mutex_lock(&mm->mu);
		struct vma *v = vma_find_locked(mm, start);
		if (v && v->start <= start) {
			n = MIN(n, (v->end - start) >> PAGE_SHIFT);
			err = plat->resident(t->ctx, start, n << PAGE_SHIFT, bytes);
		}
		mutex_unlock(&mm->mu);
		if (err)
			return err;
		for (uint64_t i = 0; i < n; i++)
			bytes[i] &= 1;
		if (guest_write(t, gaddr(vec.addr.va + done), bytes, n))
			return -EFAULT;
		done += n;
	}
	return 0;
}

/* ---- mlock ---------------------------------------------------------------------------------- */

static uint64_t locked_bytes_locked(struct mm *mm, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	for (struct vma *v = vma_find_locked(mm, start); v && v->start < end;
	     v = vma_next_locked(v))
		if (v->flags & VMA_LOCKED)
			sum += MIN(v->end, end) - MAX(v->start, start);
	return sum;
}

/* Marks what is mapped up to the first hole. */
static int mark_locked(struct mm *mm, uint64_t start, uint64_t end, bool on, struct vma **dead)
{
	int err = vma_reserve_locked(mm);
	uint64_t pos = start;

	if (err)
		return err;
	vma_isolate_locked(mm, start, end);
	for (struct vma *v = vma_find_locked(mm, start); v && v->start == pos && pos < end;
	     v = vma_next_locked(v)) {
		vma_unaccount_locked(mm, v);
		v->flags = on ? v->flags | VMA_LOCKED : v->flags & ~VMA_LOCKED;
		vma_account_locked(mm, v);
		pos = v->end;
	}
	vma_merge_locked(mm, start, end, dead);
	return pos < end ? -ENOMEM : 0;
}

static int populate_range_locked(struct task *t, uint64_t start, uint64_t end)
{
	int err = 0;

	for (struct vma *v = vma_find_locked(t->mm, start); v && v->start < end && !err;
	     v = vma_next_locked(v)) {
		struct vma piece = *v;
		piece.start = MAX(v->start, start);
		piece.end = MIN(v->end, end);
		err = mm_populate_locked(t->ctx, &piece);
	}
	return err;
}

/* The host may never have locked it: its answer says nothing. */
static void host_unlock(struct task *t, uint64_t start, uint64_t end)
{
	int answer = plat->lock(t->ctx, start, end - start, false);
	(void)answer;
}

static int lock_range_locked(struct task *t, uint64_t start, uint64_t end, enum mlock_mode mode,
			     struct vma **dead)
{
	struct mm *mm = t->mm;

	if (mode != MLOCK_OFF) {
		uint64_t more = end - start - locked_bytes_locked(mm, start, end);
		int err = mm_may_lock_locked(mm, more >> PAGE_SHIFT);
		if (err)
			return err == -EAGAIN ? -ENOMEM : err;
	}
	int err = mark_locked(mm, start, end, mode != MLOCK_OFF, dead);
	if (err)
		return err;
	if (mode == MLOCK_NOW)
		return populate_range_locked(t, start, end);
	if (mode == MLOCK_OFF)
		host_unlock(t, start, end);
	return 0;
}

int mm_mlock(struct task *t, uint64_t addr, uint64_t size, enum mlock_mode mode)
{
	uint64_t start = page_down(addr);
	uint64_t end = start + page_up(size + (addr - start));
	struct vma *dead = NULL;

	if (end < start)
		return -EINVAL;
	if (end > plat->info()->task_max)
		return -ENOMEM;
	if (end == start)
		return 0;
	mutex_lock(&t->mm->mu);
	int err = lock_range_locked(t, start, end, mode, &dead);
	mutex_unlock(&t->mm->mu);
	vma_free_dead(dead);
	return err;
}

static void mark_all_locked(struct task *t, bool on)
{
	struct mm *mm = t->mm;

	for (struct vma *v = vma_first_locked(mm); v; v = vma_next_locked(v)) {
		if (v->flags & (VMA_VDSO | VMA_VVAR))
			continue;
		if (!on && (v->flags & VMA_LOCKED))
			host_unlock(t, v->start, v->end);
		vma_unaccount_locked(mm, v);
		v->flags = on ? v->flags | VMA_LOCKED : v->flags & ~VMA_LOCKED;
		vma_account_locked(mm, v);
	}
}

int mm_mlockall(struct task *t, int flags)
{
	uint64_t max = plat->info()->task_max;
	bool on = flags & MCL_CURRENT;
	struct vma *dead = NULL;
	struct mm *mm = t->mm;
	int err = 0;

	mutex_lock(&mm->mu);
	uint64_t more = mm->total_pages - mm->locked_pages;
	if (flags)
		err = mm_may_lock_locked(mm, on ? more : 0);
	if (err == -EAGAIN)
		err = on ? -ENOMEM : 0;
	if (!err) {
		mm->future_flags = flags & MCL_FUTURE ? VMA_LOCKED : 0;
		if (on || !flags)
			mark_all_locked(t, on);
		vma_merge_locked(mm, 0, max, &dead);
	}
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return err;
}

/* ---- mseal, mbind ---------------------------------------------------------------------------- */

/* Sets flags and policy of all of [addr, addr + size); `hole` is the error when not all of it is
 * mapped. */
static int mark_range(struct task *t, uint64_t addr, uint64_t size, unsigned flags,
		      const uint32_t *policy, int hole)
{
	uint64_t end = addr + page_up(size);
	struct vma *dead = NULL;
	struct mm *mm = t->mm;

	if ((addr & ~PAGE_MASK) || (size && page_up(size) == 0) || end < addr)
		return -EINVAL;
	if (end == addr)
		return 0;
	mutex_lock(&mm->mu);
	int err = vma_range_full_locked(mm, addr, end) ? vma_reserve_locked(mm) : hole;
	if (!err) {
		vma_isolate_locked(mm, addr, end);
		for (struct vma *v = vma_find_locked(mm, addr); v && v->start < end;
		     v = vma_next_locked(v)) {
			v->flags |= flags;
			if (policy)
				v->policy = *policy;
		}
		vma_merge_locked(mm, addr, end, &dead);
	}
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return err;
}

int mm_mseal(struct task *t, uint64_t addr, uint64_t size)
{
	return mark_range(t, addr, size, VMA_SEALED, NULL, -ENOMEM);
}

int mm_mbind(struct task *t, uint64_t addr, uint64_t size, uint32_t policy)
{
	return mark_range(t, addr, size, 0, &policy, -EFAULT);
}

int mm_get_policy(struct task *t, uint64_t addr, uint32_t *out_policy)
{
	struct mm *mm = t->mm;

	mutex_lock(&mm->mu);
	struct vma *v = vma_find_locked(mm, addr);
	bool mapped = v && v->start <= addr;
	*out_policy = mapped ? v->policy : 0;
	mutex_unlock(&mm->mu);
	return mapped ? 0 : -EFAULT;
}

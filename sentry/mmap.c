/*
 * mmap, munmap, mprotect, brk: checks in the order in which Linux makes them, then the platform
 * call, then the list. What could fail after the platform call was checked or set aside before it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>

#include "fs/mount.h"
#include "fs/tmpfs.h"
#include "sentry/limits.h"
#include "sentry/plat.h"
#include "sentry/task.h"
#include "sentry/vma.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif
#ifndef MAP_ABOVE4G
#define MAP_ABOVE4G 0x80
#endif
#define MAP_TYPE_MASK 0x0fu
/* What a file system without special support accepts with MAP_SHARED_VALIDATE (LEGACY_MAP_MASK). */
#define MAP_LEGACY                                                                                 \
	(MAP_SHARED | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_DENYWRITE | MAP_EXECUTABLE |   \
	 MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK | MAP_STACK |    \
	 MAP_HUGETLB | MAP_32BIT | MAP_ABOVE4G | (21u << 26) | (30u << 26))

uint64_t mm_limit(int resource)
{
	struct task *t = current_task();
	return t ? task_rlimit(t, resource) : RLIM_INFINITY;
}

bool mm_may_expand_locked(struct mm *mm, int prot, unsigned flags, uint64_t pages)
{
	if (mm->total_pages + pages > mm_limit(RLIMIT_AS) >> PAGE_SHIFT)
		return false;
	return !vma_is_data(prot, flags) ||
	       mm->data_pages + pages <= mm_limit(RLIMIT_DATA) >> PAGE_SHIFT;
}

int mm_may_lock_locked(struct mm *mm, uint64_t pages)
{
	struct task *t = current_task();
	uint64_t limit = mm_limit(RLIMIT_MEMLOCK);

	if (!t || task_capable(t, CAP_IPC_LOCK))
		return 0;
	if (limit == 0)
		return -EPERM;
	return mm->locked_pages + pages > limit >> PAGE_SHIFT ? -EAGAIN : 0;
}

/* ---- where ---------------------------------------------------------------------------------- */

uint64_t mm_pick_addr_locked(struct mm *mm, uint64_t hint, uint64_t size)
{
	const struct plat_info *info = plat->info();
	uint64_t addr = page_down(hint);

	if (addr && addr < info->task_min)
		addr = info->task_min;
	if (addr && addr < info->task_max && size <= info->task_max - addr) {
		struct vma *next = vma_find_locked(mm, addr);
		if (!next || (next->start >= addr && addr + size <= vma_gap_start(next)))
			return addr;
	}
	addr = vma_find_gap_locked(mm, size);
	/* Above mmap_base and below it from the bottom: the kernel's fallback as well. */
	return addr ? addr : vma_find_gap_in_locked(mm, info->task_min, info->task_max, size);
}

/* The address of a new mapping, or -errno. */
static int64_t choose_addr_locked(struct mm *mm, const struct mmap_request *req, uint64_t size)
{
	const struct plat_info *info = plat->info();
	uint64_t addr = 0;

	if (size > info->task_max)
		return -ENOMEM;
	if (req->map_flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
		if (req->addr > info->task_max - size)
			return -ENOMEM;
		if (req->addr & ~PAGE_MASK)
			return -EINVAL;
		if (req->addr < info->task_min)
			return -EPERM;
		if ((req->map_flags & MAP_FIXED_NOREPLACE) &&
		    vma_range_used_locked(mm, req->addr, req->addr + size))
			return -EEXIST;
		return (int64_t)req->addr;
	}
	if (req->map_flags & MAP_32BIT) {
		/* The kernel's window for it: 1 GiB to 2 GiB. */
		addr = vma_find_gap_in_locked(mm, 0x40000000, 0x80000000, size);
		return addr ? (int64_t)addr : -ENOMEM;
	}
	addr = mm_pick_addr_locked(mm, req->addr, size);
	return addr ? (int64_t)addr : -ENOMEM;
}

/* ---- what ----------------------------------------------------------------------------------- */

static bool on_noexec_mount(struct file *f)
{
	return f->path.mnt && (atomic_load(&f->path.mnt->flags) & MS_NOEXEC);
}

/* Fills the flags of a file mapping or says why not. */
static int check_file(struct file *f, const struct mmap_request *req, struct vma *v)
{
	unsigned type = req->map_flags & MAP_TYPE_MASK;

	if (type == MAP_SHARED_VALIDATE && (req->map_flags & ~MAP_LEGACY & ~MAP_TYPE_MASK))
		return -EOPNOTSUPP;
	if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE && type != MAP_PRIVATE)
		return -EINVAL;
	if (file_flags(f) & O_PATH)
		return -EBADF;
	if (type != MAP_PRIVATE) {
		if ((req->prot & PROT_WRITE) && !file_can_write(f))
			return -EACCES;
		v->flags |= VMA_SHARED;
	}
	if (!file_can_read(f))
		return -EACCES;
	if (on_noexec_mount(f)) {
		if (req->prot & PROT_EXEC)
			return -EPERM;
		v->flags |= VMA_NOEXEC;
	}
	if (!f->ops->mmap)
		return -ENODEV;
	if (req->map_flags & MAP_GROWSDOWN)
		return -EINVAL;
	if (type == MAP_PRIVATE || file_can_write(f))
		v->flags |= VMA_MAYWRITE;
	return 0;
}

static int check_anonymous(const struct mmap_request *req, struct vma *v)
{
	v->flags |= VMA_MAYWRITE;
	switch (req->map_flags & MAP_TYPE_MASK) {
	case MAP_SHARED:
		if (req->map_flags & MAP_GROWSDOWN)
			return -EINVAL;
		v->flags |= VMA_SHARED;
		return 0;
	case MAP_DROPPABLE:
		/* Pages need not be dropped, but must not reach a child: state of random
		 * generators. */
		if (req->map_flags & (MAP_LOCKED | MAP_HUGETLB))
			return -EINVAL;
		v->flags |= VMA_WIPEONFORK | VMA_NORESERVE;
		return 0;
	case MAP_PRIVATE:
		return 0;
	}
	return -EINVAL;
}

static int check_kind(const struct mmap_request *req, uint64_t size, struct vma *v)
{
	unsigned huge = req->map_flags >> 26 & 63;
	struct task *t = current_task();

	v->prot = req->prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
	v->flags |= req->vma_flags;
	if (req->map_flags & MAP_NORESERVE)
		v->flags |= VMA_NORESERVE;
	if (req->map_flags & MAP_GROWSDOWN)
		v->flags |= VMA_GROWSDOWN;
	if (req->file && req->off + size > INT64_MAX)
		return -EOVERFLOW;
	if ((req->map_flags & MAP_HUGETLB) &&
	    (req->file || (huge != 0 && huge != 21 && huge != 30)))
		return -EINVAL;
	if (req->map_flags & MAP_HUGETLB)
		return -ENOMEM; /* as a kernel whose pool of huge pages is empty */
	int err = req->file ? check_file(req->file, req, v) : check_anonymous(req, v);
	if (err)
		return err;
	if (t && (t->personality & READ_IMPLIES_EXEC) && (v->prot & PROT_READ) &&
	    !(v->flags & VMA_NOEXEC))
		v->prot |= PROT_EXEC;
	return 0;
}

/* What the host is to map. Shared anonymous memory gets a file of its own; v->file is referenced.
 */
static int find_backing(const struct mmap_request *req, uint64_t size, struct vma *v,
			struct file_map *fm)
{
	bool shared = v->flags & VMA_SHARED;
	int err = 0;

	*fm = (struct file_map){ .host_fd = -1 };
	if (req->file) {
		err = req->file->ops->mmap(req->file, v->prot, shared, fm);
		if (err)
			return err;
		if (fm->host_fd >= 0) {
			v->file = file_get(req->file);
			v->off = req->off;
			return 0;
		}
	}
	if (!shared)
		return 0;
	struct task *t = current_task();
	v->flags |= VMA_ANON_FILE;
	err = memfd_file_new("/dev/zero", 0, t ? t->cred : NULL, &v->file);
	if (!err)
		err = vfs_ftruncate(v->file, size);
	if (!err)
		err = v->file->ops->mmap(v->file, v->prot, true, fm);
	return err;
}

/* ---- doing it ------------------------------------------------------------------------------- */

static int check_limits_locked(struct mm *mm, const struct mmap_request *req, const struct vma *v)
{
	uint64_t pages = (v->end - v->start) >> PAGE_SHIFT;
	uint64_t replaced = vma_range_bytes_locked(mm, v->start, v->end) >> PAGE_SHIFT;

	if (v->flags & VMA_LOCKED) {
		int err = mm_may_lock_locked(mm, pages);
		if (err == -EPERM && !(req->map_flags & MAP_LOCKED))
			err = -EAGAIN;
		if (err)
			return err;
	}
	return mm_may_expand_locked(mm, v->prot, v->flags, pages - MIN(pages, replaced)) ? 0
											 : -ENOMEM;
}

int mm_populate_locked(struct plat_ctx *via, const struct vma *v)
{
	/* The host's own limit on locked memory is not the guest's: then the pages are just
	 * present. */
	if (plat->lock(via, v->start, v->end - v->start, true) == 0)
		return 0;
	int advice = (v->prot & PROT_WRITE) && !(v->flags & VMA_SHARED) ? MADV_POPULATE_WRITE
									: MADV_POPULATE_READ;
	return plat->advise(via, v->start, v->end - v->start, advice) ? -ENOMEM : 0;
}

static int map_locked(struct mm *mm, struct plat_ctx *via, const struct mmap_request *req,
		      const struct vma *v, const struct file_map *fm, struct vma **dead)
{
	struct plat_map m = {
		.addr = v->start, .size = v->end - v->start, .prot = v->prot, .fd = -1
	};

	if (v->flags & VMA_SHARED)
		m.flags |= PLAT_MAP_SHARED;
	if (v->flags & VMA_NORESERVE)
		m.flags |= PLAT_MAP_NORESERVE;
	if ((req->map_flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE)
		m.flags |= PLAT_MAP_POPULATE;
	if (fm->host_fd >= 0) {
		m.fd = fm->host_fd;
		m.off = v->off + fm->off_add;
	} else {
		m.flags |= PLAT_MAP_ANON;
	}
	int err = plat->map(via, &m);
	if (err) {
		/* The host may have dropped what was there before it failed, as mmap(2) may. */
		if (vma_range_used_locked(mm, v->start, v->end) &&
		    !plat->unmap(via, m.addr, m.size))
			vma_cut_locked(mm, v->start, v->end, dead);
		return err;
	}
	if (v->flags & VMA_WIPEONFORK) {
		err = plat->advise(via, m.addr, m.size, MADV_WIPEONFORK);
		if (err && !plat->unmap(via, m.addr, m.size))
			vma_cut_locked(mm, v->start, v->end, dead);
	}
	return err;
}

/* v is a description on the caller's stack with its file referenced; the reference moves into the
 * list. */
static int64_t mmap_locked(struct mm *mm, struct plat_ctx *via, const struct mmap_request *req,
			   uint64_t size, struct vma *v, const struct file_map *fm,
			   struct vma **dead)
{
	int err = vma_reserve_locked(mm);
	if (err)
		return err;
	int64_t addr = choose_addr_locked(mm, req, size);
	if (addr < 0)
		return addr;
	v->start = (uint64_t)addr;
	v->end = v->start + size;
	if (vma_range_sealed_locked(mm, v->start, v->end))
		return -EPERM;
	if ((req->map_flags & MAP_LOCKED) || (mm->future_flags & VMA_LOCKED))
		v->flags |= VMA_LOCKED;
	err = check_limits_locked(mm, req, v);
	if (!err)
		err = map_locked(mm, via, req, v, fm, dead);
	if (err)
		return err;
	vma_cut_locked(mm, v->start, v->end, dead);
	struct vma *n = vma_take_locked(mm);
	*n = *v;
	v->file = NULL;
	vma_insert_locked(mm, n);
	if (n->flags & VMA_LOCKED)
		(void)mm_populate_locked(via, n); /* mmap(2): not populating is no failure */
	vma_merge_locked(mm, (uint64_t)addr, (uint64_t)addr + size, dead);
	return addr;
}

int64_t mm_mmap_on(struct mm *mm, struct plat_ctx *via, const struct mmap_request *req)
{
	uint64_t size = page_up(req->size);
	struct vma v = { 0 }, *dead = NULL;
	struct file_map fm;

	if (req->size == 0)
		return -EINVAL;
	if (size == 0)
		return -ENOMEM;
	if (size > plat->info()->task_max)
		return -ENOMEM;
	int64_t r = check_kind(req, size, &v);
	if (!r)
		r = find_backing(req, size, &v, &fm);
	if (!r) {
		mutex_lock(&mm->mu);
		r = mmap_locked(mm, via, req, size, &v, &fm, &dead);
		mutex_unlock(&mm->mu);
	}
	file_put(v.file);
	vma_free_dead(dead);
	return r;
}

int64_t mm_mmap(struct task *t, const struct mmap_request *req)
{
	return mm_mmap_on(t->mm, t->ctx, req);
}

int mm_munmap(struct task *t, uint64_t addr, uint64_t size)
{
	uint64_t max = plat->info()->task_max;
	struct vma *dead = NULL;
	struct mm *mm = t->mm;

	if ((addr & ~PAGE_MASK) || addr > max || size > max - addr || size == 0)
		return -EINVAL;
	size = page_up(size);
	mutex_lock(&mm->mu);
	int err = 0;
	if (vma_range_used_locked(mm, addr, addr + size)) {
		err = vma_range_sealed_locked(mm, addr, addr + size) ? -EPERM
								     : vma_reserve_locked(mm);
		if (!err)
			err = plat->unmap(t->ctx, addr, size);
		if (!err)
			vma_cut_locked(mm, addr, addr + size, &dead);
	}
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return err;
}

/* ---- mprotect ------------------------------------------------------------------------------- */

static int may_protect_locked(struct mm *mm, const struct vma *v, int prot, uint64_t bytes)
{
	if (v->flags & VMA_SEALED)
		return -EPERM;
	if ((prot & PROT_WRITE) && !(v->flags & VMA_MAYWRITE))
		return -EACCES;
	if ((prot & PROT_EXEC) && (v->flags & VMA_NOEXEC))
		return -EACCES;
	if (vma_is_data(prot, v->flags) && !vma_is_data(v->prot, v->flags) &&
	    mm->data_pages + (bytes >> PAGE_SHIFT) > mm_limit(RLIMIT_DATA) >> PAGE_SHIFT)
		return -ENOMEM;
	return 0;
}

/* How far [start, end) can be changed, and why not further: mprotect keeps what it has done before
 * an error. */
static int protectable_locked(struct mm *mm, uint64_t start, uint64_t end, int prot,
			      uint64_t *out_stop)
{
	uint64_t pos = start;

	for (struct vma *v = vma_find_locked(mm, start); pos < end; v = vma_next_locked(v)) {
		if (!v || v->start > pos) {
			*out_stop = pos;
			return -ENOMEM;
		}
		uint64_t stop = MIN(v->end, end);
		int err = may_protect_locked(mm, v, prot, stop - pos);
		if (err) {
			*out_stop = pos;
			return err;
		}
		pos = stop;
	}
	*out_stop = end;
	return 0;
}

static int set_prot_locked(struct mm *mm, struct plat_ctx *via, uint64_t start, uint64_t end,
			   int prot, struct vma **dead)
{
	int err = vma_reserve_locked(mm);
	if (!err)
		err = plat->protect(via, start, end - start, prot);
	if (err)
		return err;
	vma_isolate_locked(mm, start, end);
	for (struct vma *v = vma_find_locked(mm, start); v && v->start < end;
	     v = vma_next_locked(v)) {
		vma_unaccount_locked(mm, v);
		v->prot = prot;
		vma_account_locked(mm, v);
	}
	vma_merge_locked(mm, start, end, dead);
	return 0;
}

/* PROT_GROWSDOWN: the change begins at the start of the growing mapping. */
static int grow_start_locked(struct mm *mm, uint64_t end, uint64_t *start)
{
	struct vma *v = vma_find_locked(mm, *start);

	if (!v || v->start >= end)
		return -ENOMEM;
	if (!(v->flags & VMA_GROWSDOWN))
		return -EINVAL;
	*start = v->start;
	return 0;
}

int mm_mprotect(struct task *t, uint64_t addr, uint64_t size, int prot)
{
	int grows = prot & (PROT_GROWSDOWN | PROT_GROWSUP);
	uint64_t end = addr + page_up(size), stop = addr;
	struct vma *dead = NULL;
	struct mm *mm = t->mm;

	prot &= ~grows;
	if (grows == (PROT_GROWSDOWN | PROT_GROWSUP) || (addr & ~PAGE_MASK))
		return -EINVAL;
	if (size == 0)
		return 0;
	if (end <= addr || end > plat->info()->task_max)
		return -ENOMEM;
	if (prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC | 8 /* PROT_SEM */))
		return -EINVAL;
	prot &= PROT_READ | PROT_WRITE | PROT_EXEC;
	if ((t->personality & READ_IMPLIES_EXEC) && (prot & PROT_READ))
		prot |= PROT_EXEC;
	mutex_lock(&mm->mu);
	int err = grows & PROT_GROWSUP ? -EINVAL : 0;
	if (grows & PROT_GROWSDOWN)
		err = grow_start_locked(mm, end, &addr);
	if (!err) {
		err = protectable_locked(mm, addr, end, prot, &stop);
		int done = stop > addr ? set_prot_locked(mm, t->ctx, addr, stop, prot, &dead) : 0;
		err = done ? done : err;
	}
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return err;
}

/* ---- brk ------------------------------------------------------------------------------------ */

static int brk_grow_locked(struct mm *mm, struct plat_ctx *via, uint64_t from, uint64_t to,
			   struct vma **dead)
{
	struct vma *next = vma_find_locked(mm, from);
	uint64_t pages = (to - from) >> PAGE_SHIFT;
	unsigned flags = VMA_MAYWRITE | mm->future_flags;

	if (to > plat->info()->task_max || (next && to + PAGE_SIZE > vma_gap_start(next)))
		return -ENOMEM;
	if (!mm_may_expand_locked(mm, PROT_READ | PROT_WRITE, flags, pages) ||
	    vma_reserve_locked(mm) || ((flags & VMA_LOCKED) && mm_may_lock_locked(mm, pages)))
		return -ENOMEM;
	struct plat_map m = { .addr = from,
			      .size = to - from,
			      .prot = PROT_READ | PROT_WRITE,
			      .flags = PLAT_MAP_ANON,
			      .fd = -1 };
	int err = plat->map(via, &m);
	if (err)
		return err;
	struct vma *v = vma_take_locked(mm);
	*v = (struct vma){
		.start = from, .end = to, .prot = PROT_READ | PROT_WRITE, .flags = flags
	};
	vma_insert_locked(mm, v);
	if (flags & VMA_LOCKED)
		(void)mm_populate_locked(via, v);
	vma_merge_locked(mm, from, to, dead);
	return 0;
}

uint64_t mm_brk(struct task *t, uint64_t addr)
{
	struct mm *mm = t->mm;
	struct vma *dead = NULL;
	int err = 0;

	mutex_lock(&mm->mu);
	uint64_t old = page_up(mm->brk), new = page_up(addr);
	uint64_t limit = mm_limit(RLIMIT_DATA);
	if (addr < mm->start_brk || new < addr ||
	    (limit != RLIM_INFINITY &&
	     addr - mm->start_brk + (mm->end_data - mm->start_data) > limit))
		err = -EINVAL;
	else if (new > old)
		err = brk_grow_locked(mm, t->ctx, old, new, &dead);
	else if (new < old && vma_range_used_locked(mm, new, old)) {
		err = vma_range_sealed_locked(mm, new, old) ? -EPERM : vma_reserve_locked(mm);
		if (!err)
			err = plat->unmap(t->ctx, new, old - new);
		if (!err)
			vma_cut_locked(mm, new, old, &dead);
	}
	if (!err)
		mm->brk = addr;
	uint64_t result = mm->brk;
	mutex_unlock(&mm->mu);
	vma_free_dead(dead);
	return result;
}

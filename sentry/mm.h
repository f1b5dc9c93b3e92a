/*
 * An address space: the list of VMAs, which is the one source of truth for addresses,
 * /proc/PID/maps, limits and accounting; the platform carries mappings out.
 *
 * Lock: mm->mu (rank MM) around every change; the platform calls are made with it held, `via` the
 * calling task's own parked context. No file-system lock may be taken under it (references to files
 * are put after unlocking).
 */
#pragma once

#include "fs/vfs.h"
#include "platform/base/rbtree.h"
#include "platform/platform.h"
#include "sentry/guest.h"

struct task;

/* vma->flags */
#define VMA_SHARED 1u /* MAP_SHARED */
#define VMA_NORESERVE 2u
#define VMA_STACK 4u /* [stack] */
#define VMA_HEAP 8u  /* [heap] */
#define VMA_VDSO 16u
#define VMA_VVAR 32u
#define VMA_LOCKED 64u
#define VMA_DONTFORK 128u /* MADV_DONTFORK */
#define VMA_WIPEONFORK 256u
#define VMA_GROWSDOWN 512u
#define VMA_MAYWRITE 1024u /* mprotect may add PROT_WRITE (file opened for writing or private) */
#define VMA_DONTDUMP 2048u
#define VMA_ANON_FILE 8192u /* shared anonymous memory: the file is ours, shown as /dev/zero */
#define VMA_NOEXEC 4096u    /* mprotect may not add PROT_EXEC: the file lies on a noexec mount */
#define VMA_SEALED 16384u   /* mseal(2): no unmapping, moving, changing of protection */

struct vma {
	struct rb_node node;
	uint64_t start, end; /* [mm->mu] page aligned, start < end */
	int prot;            /* [mm->mu] PROT_* */
	unsigned flags;      /* [mm->mu] */
	struct file *file; /* [mm->mu] referenced; NULL for anonymous. Shared anonymous memory has a
			      memfd file */
	uint64_t off;      /* [mm->mu] of start in the file, bytes */
	uint32_t policy;   /* [mm->mu] mbind(2): mode, its flags, MEMPOLICY_NODE; 0 the default */
	struct vma *dead_next; /* list of removed ones, until the lock is dropped */
};

/* A growing mapping keeps this distance to what lies below it (stack_guard_gap of the kernel). */
#define STACK_GUARD_GAP (256 * PAGE_SIZE)

struct mm {
	struct ref ref;      /* users: tasks, /proc readers */
	uint64_t id;         /* [I] never used again */
	atomic_int users;    /* tasks; the stub is freed with the last one */
	struct mutex mu;     /* rank MM */
	struct plat_as *as;  /* [I] until the last user is gone, then NULL under mu */
	struct rb_root vmas; /* [mu] */
	struct vma *spare;  /* [mu] structs set aside, so that a change under way cannot lack memory
			     */
	size_t spare_count; /* [mu] */
	uint64_t hole_from; /* [mu] every hole in [hole_from, mmap_base) has at most hole_max bytes
			     */
	uint64_t hole_max;  /* [mu] */
	size_t vma_count;   /* [mu] */
	uint64_t total_pages; /* [mu] sum of sizes / 4096 */
	uint64_t data_pages, stack_pages, exec_pages, shared_pages, locked_pages; /* [mu] */
	uint64_t mmap_base;      /* [I] top-down search starts here */
	uint64_t start_brk, brk; /* [mu] */
	uint64_t start_code, end_code, start_data, end_data, start_stack; /* [I] after exec */
	uint64_t arg_start, arg_end, env_start, env_end; /* [mu] prctl may change them */
	struct file *exe;      /* [mu] referenced: /proc/PID/exe; write-denied */
	unsigned future_flags; /* [mu] VMA_LOCKED after mlockall(MCL_FUTURE) */
	uint64_t auxv[64];     /* [I] after exec */
	size_t auxv_words;
	int dumpable;                    /* [a] prctl(PR_SET_DUMPABLE) */
	uint64_t membarrier_state;       /* [a] */
	bool thp_disable;                /* [a] prctl(PR_SET_THP_DISABLE): remembered */
	_Atomic uint64_t cpu_claimed_ns; /* [a] processor time of the stub that threads took with
					    them: cputime.c */
};

DECLARE_REF(mm);

/* Blank address space (vDSO VMAs only) with its first context. users is 1. Gives both. */
int mm_new(struct mm **out_mm, struct plat_ctx **out_ctx) MUST_CHECK;
/* Makes ahead what the next mm_new() gives. 0 or -errno. Called once, at boot. */
int mm_prepare(void) MUST_CHECK;
/* fork: a copy through the caller's context. Gives both. */
int mm_fork(struct task *t, struct mm **out_mm, struct plat_ctx **out_ctx) MUST_CHECK;
void mm_use(struct mm *mm);
/* The address space of another task, used and referenced (pair with mm_unuse); NULL when it has
 * ended. */
struct mm *mm_use_of(struct task *t) MUST_CHECK;
/* The task stops using mm; the last user frees the stub and puts all files. Takes one reference as
 * well. */
void mm_unuse(struct mm *mm);

struct mmap_request {
	uint64_t addr, size; /* size > 0, not yet rounded */
	int prot;
	unsigned map_flags; /* MAP_* of mmap(2) */
	unsigned vma_flags; /* extra VMA_* (loader) */
	struct file *file;  /* borrowed; NULL anonymous */
	uint64_t off;
};

/* All act on the current task's mm via its context. Address or -errno as mmap(2). */
int64_t mm_mmap(struct task *t, const struct mmap_request *req) MUST_CHECK;
/* The same on an explicit address space (exec builds the new one before it switches). */
int64_t mm_mmap_on(struct mm *mm, struct plat_ctx *via, const struct mmap_request *req) MUST_CHECK;
int mm_munmap(struct task *t, uint64_t addr, uint64_t size) MUST_CHECK;
int mm_mprotect(struct task *t, uint64_t addr, uint64_t size, int prot) MUST_CHECK;
int64_t mm_mremap(struct task *t, uint64_t old_addr, uint64_t old_size, uint64_t new_size,
		  unsigned flags, uint64_t new_addr) MUST_CHECK;
uint64_t mm_brk(struct task *t, uint64_t addr);
/* A NUMA policy names node 0, the only one. */
#define MEMPOLICY_NODE 0x80000000u
/* mbind(2), remembered only. -EFAULT when something in the range is not mapped. */
int mm_mbind(struct task *t, uint64_t addr, uint64_t size, uint32_t policy) MUST_CHECK;
/* The policy of the mapping at addr; -EFAULT. */
int mm_get_policy(struct task *t, uint64_t addr, uint32_t *out_policy) MUST_CHECK;
/* mseal(2); remap_file_pages(2), which re-maps another part of the file that lies there. */
int mm_mseal(struct task *t, uint64_t addr, uint64_t size) MUST_CHECK;
int mm_remap_file(struct task *t, uint64_t addr, uint64_t size, uint64_t off, unsigned map_flags)
	MUST_CHECK;
int mm_madvise(struct task *t, uint64_t addr, uint64_t size, int advice) MUST_CHECK;
int mm_msync(struct task *t, uint64_t addr, uint64_t size, int flags) MUST_CHECK;
int mm_mincore(struct task *t, uint64_t addr, uint64_t size, buf_gp vec) MUST_CHECK;
enum mlock_mode { MLOCK_OFF, MLOCK_NOW, MLOCK_LATER /* as pages come: MLOCK_ONFAULT */ };
int mm_mlock(struct task *t, uint64_t addr, uint64_t size, enum mlock_mode mode) MUST_CHECK;
/* mlockall(2) with MCL_* flags; 0 is munlockall(2). */
int mm_mlockall(struct task *t, int flags) MUST_CHECK;

/* A fault that the host could not serve: true when a growing mapping (the stack, MAP_GROWSDOWN) now
 * reaches addr and the access is to be tried again. The loop asks this first on every SIGSEGV. */
bool mm_grow(struct task *t, uint64_t addr);

/* Page fault that the host could not serve: should the sentry's signal be SIGSEGV with SEGV_MAPERR
 * or ACCERR? (The host's own code is used when the VMA list agrees.) */
int mm_fault_code(struct mm *mm, uint64_t addr, int host_code);

/* Copies from any thread while the caller holds a reference with users > 0. As platform
 * copy_in/out. */
ssize_t mm_copy_in(struct mm *mm, void *dst, uint64_t addr, size_t n) MUST_CHECK;
ssize_t mm_copy_out(struct mm *mm, uint64_t addr, const void *src, size_t n) MUST_CHECK;
/* Ignoring protection (ptrace, /proc/PID/mem). */
ssize_t mm_force_in(struct mm *mm, void *dst, uint64_t addr, size_t n) MUST_CHECK;
ssize_t mm_force_out(struct mm *mm, uint64_t addr, const void *src, size_t n) MUST_CHECK;

/* /proc/PID/exe: a referenced file or NULL. */
struct file *mm_exe(struct mm *mm) MUST_CHECK;

/* First VMA with end > addr, or NULL. mu held. */
struct vma *vma_find_locked(struct mm *mm, uint64_t addr);
struct vma *vma_next_locked(struct vma *v);
/* /proc/PID/maps. */
void mm_show_maps(struct mm *mm, struct path root, struct fmt *out);
void mm_show_smaps(struct mm *mm, struct path root, struct fmt *out);

/*
 * Editing the VMA list of an address space: inside sentry/ only (mm.c, mmap.c, mremap.c,
 * mm_advice.c, exec.c). Everything here wants mm->mu held and makes no platform call.
 */
#pragma once

#include "sentry/mm.h"

/* The most structs that one call can need: mremap cuts the old place, the new place and inserts. */
#define VMA_SPARE 4
/* vm.max_map_count: how many mappings an address space may have, at most VMA_MAX. */
extern _Atomic int vma_max_count;

/* Sets aside VMA_SPARE structs and checks the limit of the number of mappings; -ENOMEM. */
int vma_reserve_locked(struct mm *mm) MUST_CHECK;
/* A zeroed struct from the reserve. */
struct vma *vma_take_locked(struct mm *mm);
void vma_insert_locked(struct mm *mm, struct vma *v);
/* Takes [start, end) out of the list, splitting at the ends; removed structs go onto *dead. */
void vma_cut_locked(struct mm *mm, uint64_t start, uint64_t end, struct vma **dead);
/* Splits so that no VMA crosses start or end. */
void vma_isolate_locked(struct mm *mm, uint64_t start, uint64_t end);
/* Joins what can be joined in and around [start, end). */
void vma_merge_locked(struct mm *mm, uint64_t start, uint64_t end, struct vma **dead);
/* After unlocking: puts the files and frees. */
void vma_free_dead(struct vma *dead);

/* Changes of protection, flags or size must keep the counters right: unaccount, change, account. */
void vma_account_locked(struct mm *mm, const struct vma *v);
void vma_unaccount_locked(struct mm *mm, const struct vma *v);
bool vma_is_data(int prot, unsigned flags);

struct vma *vma_prev_locked(struct vma *v);
struct vma *vma_first_locked(struct mm *mm);
/* Is any address of [start, end) mapped? All of it? How many bytes? */
bool vma_range_used_locked(struct mm *mm, uint64_t start, uint64_t end);
bool vma_range_sealed_locked(struct mm *mm, uint64_t start, uint64_t end);
bool vma_range_full_locked(struct mm *mm, uint64_t start, uint64_t end);
uint64_t vma_range_bytes_locked(struct mm *mm, uint64_t start, uint64_t end);
/* Lowest address at which something else may end below v: its start, less the guard gap when it
 * grows. */
uint64_t vma_gap_start(const struct vma *v);

/* Highest (top down from mmap_base) or, within [lo, hi), lowest free place for size bytes; 0 when
 * none. */
uint64_t vma_find_gap_locked(struct mm *mm, uint64_t size);
uint64_t vma_find_gap_in_locked(struct mm *mm, uint64_t lo, uint64_t hi, uint64_t size);

/* The current task's limit, RLIM_INFINITY outside tasks (unit tests, boot). */
uint64_t mm_limit(int resource);
/* May the address space grow by `pages` of the given kind? RLIMIT_AS and RLIMIT_DATA. */
bool mm_may_expand_locked(struct mm *mm, int prot, unsigned flags, uint64_t pages);
/* May `pages` more be locked? 0, -EPERM (no right at all) or -EAGAIN (limit). */
int mm_may_lock_locked(struct mm *mm, uint64_t pages) MUST_CHECK;
/* A free place as mmap(2) without MAP_FIXED picks it; 0 when there is none. */
uint64_t mm_pick_addr_locked(struct mm *mm, uint64_t hint, uint64_t size);
/* Faults pages in as mlock(2) does and locks them where the host lets us. 0 or -ENOMEM. */
int mm_populate_locked(struct plat_ctx *via, const struct vma *v);

/*
 * Reference counts that trap where they break. DEFINE_REF(file) in a .c file needs
 * `static void file_free(struct file *)` before it and defines file_get and file_put for a struct
 * with a member `struct ref ref`; DECLARE_REF(file) in the header declares them.
 */
#pragma once

#include <stdatomic.h>

#include "platform/base/types.h"

struct ref {
	atomic_uint count;
};

static inline void ref_init(struct ref *r)
{
	atomic_init(&r->count, 1);
}

static inline void ref_inc(struct ref *r)
{
	unsigned old = atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
	BUG_ON(old == 0 || old >= 0x7fffffff);
}

/* Takes a reference unless the count has already fallen to 0 (lookups in caches). */
static inline MUST_CHECK bool ref_inc_not_zero(struct ref *r)
{
	unsigned old = atomic_load_explicit(&r->count, memory_order_relaxed);
	do {
		if (old == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&r->count, &old, old + 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

/* True when this was the last reference. */
static inline MUST_CHECK bool ref_dec(struct ref *r)
{
	unsigned old = atomic_fetch_sub_explicit(&r->count, 1, memory_order_acq_rel);
	BUG_ON(old == 0);
	return old == 1;
}

static inline unsigned ref_count(struct ref *r)
{
	return atomic_load_explicit(&r->count, memory_order_acquire);
}

/* x_get returns its argument; x_put accepts NULL and calls x_free on the last reference. */
#define DECLARE_REF(type)                                                                          \
	struct type *type##_get(struct type *obj);                                                 \
	void type##_put(struct type *obj)

#define DEFINE_REF(type)                                                                           \
	struct type *type##_get(struct type *obj)                                                  \
	{                                                                                          \
		ref_inc(&obj->ref);                                                                \
		return obj;                                                                        \
	}                                                                                          \
	void type##_put(struct type *obj)                                                          \
	{                                                                                          \
		if (obj && ref_dec(&obj->ref))                                                     \
			type##_free(obj);                                                          \
	}                                                                                          \
	struct type

/*
 * The name cache, as namei and mounts use it (fs/dentry.c). A hashed dentry is referenced by the
 * cache; it is unused when that reference is the only one. A dentry's inode never changes: a name
 * that comes into being gets a new dentry in place of the negative one.
 */
#pragma once

#include "fs/vfs.h"

/* An unhashed dentry; references parent (NULL: a root), takes ino (may be NULL). NULL without
 * memory (ino is put). */
struct dentry *dentry_new(struct superblock *sb, struct dentry *parent, const char *name,
			  struct inode *ino) MUST_CHECK;
/* The cached child of that name, referenced, or NULL. */
struct dentry *dcache_find(struct dentry *parent, const char *name, size_t len) MUST_CHECK;
/* Makes d findable. Does nothing on file systems that want no cache. */
void dcache_add(struct dentry *d);
/* As dcache_add, even there: mount points must be found again. */
void dcache_add_always(struct dentry *d);
/* Makes d not findable; deleted: its name is gone from the directory. */
void dcache_drop(struct dentry *d, bool deleted);
/* rename(2): d becomes `name` in parent, and what had that name (may be NULL) is dropped as
 * deleted. heap_name: a heap copy of name when it is longer than name_inline, else NULL (takes). */
void dcache_move(struct dentry *d, struct dentry *parent, const char *name, char *heap_name,
		 struct dentry *replaced);
/* RENAME_EXCHANGE. */
void dcache_exchange(struct dentry *a, struct dentry *b);
/* Is `a` d itself or above it in the same file system? */
bool dentry_is_ancestor(struct dentry *a, struct dentry *d);
/* Evicts until the cache is within its bound. No lock may be held that an inode's free needs. */
void dcache_trim(void);
/* Evicts up to `want` unused names, the oldest first; how many it did. Same condition. */
size_t dcache_shrink(size_t want);
/* Forgets all dentries of sb: it is being freed. */
void dcache_purge(struct superblock *sb);
/* Number of cached dentries, for tests. */
size_t dcache_count(void);
/* The lock, for walks over several dentries (path_name). Rank DENTRY. */
void dcache_lock(void);
void dcache_unlock(void);

/*
 * The cache of names: a hash table over (parent, name) with a keyed hash, so that a guest cannot
 * choose names that collide, and a list in order of insertion for eviction. One short mutex guards
 * all of it. What it is not: the truth. A file system's own directory is; the VFS keeps both in
 * step under the directory's mu.
 *
 * The cache's own reference means that put needs no lock unless it is the last one. A parent is
 * referenced by its children, so only leaves are ever unused.
 */
#include "fs/dcache.h"

#include <string.h>

#include "fs/inotify.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"

#define BUCKET_COUNT 4096u
/* Bound on cached names: about 200 bytes each, and what their inodes hold. */
#define CACHE_MAX 16384u
/* How many entries one trim looks at: in-use ones are passed over. */
#define TRIM_SCAN 64

static struct mutex lock = MUTEX_INIT(RANK_DENTRY);
static struct list buckets[BUCKET_COUNT]; /* [lock] */
static struct list lru = LIST_INIT(lru);  /* [lock] oldest first */
static size_t cached;                     /* [lock] */
static uint64_t hash_key[2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_once(void)
{
	for (size_t i = 0; i < BUCKET_COUNT; i++)
		list_init(&buckets[i]);
	host_random(hash_key, sizeof(hash_key));
}

static uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein) of the name, with the parent as its first word. */
static struct list *bucket_of(struct dentry *parent, const char *name, size_t len)
{
	uint64_t v[4] = { hash_key[0] ^ 0x736f6d6570736575u, hash_key[1] ^ 0x646f72616e646f6du,
			  hash_key[0] ^ 0x6c7967656e657261u, hash_key[1] ^ 0x7465646279746573u };
	uint64_t m = (uintptr_t)parent;
	size_t off = 0;

	for (;;) {
		v[3] ^= m;
		sip_round(v);
		v[0] ^= m;
		if (off > len)
			break;
		m = (uint64_t)len << 56;
		memcpy(&m, name + off, MIN(len - off, 8u));
		off += 8;
	}
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return &buckets[(v[0] ^ v[1] ^ v[2] ^ v[3]) % BUCKET_COUNT];
}

void dcache_lock(void) NO_LOCK_ANALYSIS
{
	mutex_lock(&lock);
}

void dcache_unlock(void) NO_LOCK_ANALYSIS
{
	mutex_unlock(&lock);
}

/* Iterative: freeing the last child may free a long chain of parents. */
static void dentry_free(struct dentry *d)
{
	while (d) {
		struct dentry *parent = d->parent == d ? NULL : d->parent;

		BUG_ON(d->hashed);
		if (d->deleted && d->inode)
			fsnotify_deleted(d->inode);
		inode_put(d->inode);
		if (d->name != d->name_inline)
			mem_free(d->name);
		mem_free(d);
		d = parent && ref_dec(&parent->ref) ? parent : NULL;
	}
}

DEFINE_REF(dentry);

static bool fits_inline(size_t len)
{
	return len < sizeof(((struct dentry *)NULL)->name_inline);
}

struct dentry *dentry_new(struct superblock *sb, struct dentry *parent, const char *name,
			  struct inode *ino)
{
	size_t len = strlen(name);
	struct dentry *d = mem_zalloc(sizeof(*d));

	pthread_once(&once, init_once);
	if (d)
		d->name = fits_inline(len) ? d->name_inline : mem_alloc(len + 1);
	if (!d || !d->name) {
		mem_free(d);
		inode_put(ino);
		return NULL;
	}
	ref_init(&d->ref);
	memcpy(d->name, name, len + 1);
	d->sb = sb;
	d->parent = parent ? dentry_get(parent) : d;
	d->inode = ino;
	list_init(&d->hash_link);
	list_init(&d->lru_link);
	return d;
}

struct dentry *dcache_find(struct dentry *parent, const char *name, size_t len)
{
	struct list *b = bucket_of(parent, name, len);
	struct dentry *found = NULL;

	mutex_lock(&lock);
	list_for_each(pos, b) {
		struct dentry *d = list_entry(pos, struct dentry, hash_link);
		if (d->parent == parent && strncmp(d->name, name, len) == 0 && !d->name[len]) {
			found = dentry_get(d);
			break;
		}
	}
	mutex_unlock(&lock);
	return found;
}

static void add_locked(struct dentry *d)
{
	if (d->hashed || d->deleted)
		return;
	d->hashed = true;
	dentry_get(d);
	list_add(bucket_of(d->parent, d->name, strlen(d->name)), &d->hash_link);
	list_add_tail(&lru, &d->lru_link);
	cached++;
}

/* The caller holds a reference of its own, so the cache's is never the last. */
static void drop_locked(struct dentry *d, bool deleted)
{
	d->deleted |= deleted;
	if (!d->hashed)
		return;
	d->hashed = false;
	list_del_init(&d->hash_link);
	list_del_init(&d->lru_link);
	cached--;
	BUG_ON(ref_dec(&d->ref));
}

void dcache_add_always(struct dentry *d)
{
	mutex_lock(&lock);
	if (d->parent != d)
		add_locked(d);
	mutex_unlock(&lock);
}

void dcache_add(struct dentry *d)
{
	if (!d->sb->no_cache)
		dcache_add_always(d);
}

void dcache_drop(struct dentry *d, bool deleted)
{
	mutex_lock(&lock);
	drop_locked(d, deleted);
	mutex_unlock(&lock);
}

/* Changes name and parent of d; *heap_name is consumed when used. The old parent is given for
 * putting. */
static struct dentry *set_place_locked(struct dentry *d, struct dentry *parent, const char *name,
				       char *heap_name)
{
	struct dentry *old = d->parent;

	if (d->name != d->name_inline)
		mem_free(d->name);
	if (heap_name) {
		d->name = heap_name;
	} else {
		d->name = d->name_inline;
		memcpy(d->name_inline, name, strlen(name) + 1);
	}
	d->parent = dentry_get(parent);
	return old;
}

void dcache_move(struct dentry *d, struct dentry *parent, const char *name, char *heap_name,
		 struct dentry *replaced)
{
	mutex_lock(&lock);
	bool was_hashed = d->hashed;
	drop_locked(d, false);
	if (replaced)
		drop_locked(replaced, true);
	struct dentry *old = set_place_locked(d, parent, name, heap_name);
	if (was_hashed)
		add_locked(d);
	mutex_unlock(&lock);
	dentry_put(old);
}

void dcache_exchange(struct dentry *a, struct dentry *b)
{
	mutex_lock(&lock);
	bool a_hashed = a->hashed, b_hashed = b->hashed;
	drop_locked(a, false);
	drop_locked(b, false);
	char *a_heap = a->name == a->name_inline ? NULL : a->name;
	char *b_heap = b->name == b->name_inline ? NULL : b->name;
	char tmp[sizeof(a->name_inline)];
	memcpy(tmp, a->name_inline, sizeof(tmp));
	memcpy(a->name_inline, b->name_inline, sizeof(tmp));
	memcpy(b->name_inline, tmp, sizeof(tmp));
	a->name = b_heap ? b_heap : a->name_inline;
	b->name = a_heap ? a_heap : b->name_inline;
	struct dentry *p = a->parent;
	a->parent = b->parent;
	b->parent = p;
	if (a_hashed)
		add_locked(a);
	if (b_hashed)
		add_locked(b);
	mutex_unlock(&lock);
}

void dentry_name(struct dentry *d, char out[NAME_LEN_MAX + 1])
{
	mutex_lock(&lock);
	size_t len = MIN(strlen(d->name), (size_t)NAME_LEN_MAX);
	memcpy(out, d->name, len);
	out[len] = 0;
	mutex_unlock(&lock);
}

struct dentry *dentry_parent(struct dentry *d)
{
	mutex_lock(&lock);
	struct dentry *p = dentry_get(d->parent);
	mutex_unlock(&lock);
	return p;
}

bool dentry_is_deleted(struct dentry *d)
{
	mutex_lock(&lock);
	bool deleted = d->deleted;
	mutex_unlock(&lock);
	return deleted;
}

bool dentry_is_ancestor(struct dentry *a, struct dentry *d)
{
	mutex_lock(&lock);
	while (d != a && d->parent != d)
		d = d->parent;
	mutex_unlock(&lock);
	return d == a;
}

/* Takes d out of the cache and onto `out`, which now holds the cache's reference. */
static void collect_locked(struct dentry *d, struct list *out)
{
	d->hashed = false;
	list_del_init(&d->hash_link);
	list_del_init(&d->lru_link);
	list_add_tail(out, &d->lru_link);
	cached--;
}

static void put_collected(struct list *gone)
{
	while (!list_empty(gone)) {
		struct dentry *d = list_first(gone, struct dentry, lru_link);
		list_del_init(&d->lru_link);
		dentry_put(d);
	}
}

void dcache_trim(void)
{
	struct list gone = LIST_INIT(gone);

	mutex_lock(&lock);
	for (int i = 0; i < TRIM_SCAN && cached > CACHE_MAX; i++) {
		struct dentry *d = list_first(&lru, struct dentry, lru_link);
		/* New references come from the table only, under the lock: 1 stays 1. */
		if (ref_count(&d->ref) == 1) {
			collect_locked(d, &gone);
		} else {
			list_del_init(&d->lru_link);
			list_add_tail(&lru, &d->lru_link);
		}
	}
	mutex_unlock(&lock);
	put_collected(&gone);
}

size_t dcache_shrink(size_t want)
{
	struct list gone = LIST_INIT(gone);
	size_t done = 0;

	mutex_lock(&lock);
	for (size_t left = cached; left > 0 && done < want; left--) {
		struct dentry *d = list_first(&lru, struct dentry, lru_link);
		if (ref_count(&d->ref) == 1) {
			collect_locked(d, &gone);
			done++;
		} else {
			list_del_init(&d->lru_link);
			list_add_tail(&lru, &d->lru_link);
		}
	}
	mutex_unlock(&lock);
	put_collected(&gone);
	return done;
}

void dcache_purge(struct superblock *sb)
{
	struct list gone = LIST_INIT(gone);

	mutex_lock(&lock);
	list_for_each_safe(pos, &lru) {
		struct dentry *d = list_entry(pos, struct dentry, lru_link);
		if (d->sb == sb)
			collect_locked(d, &gone);
	}
	mutex_unlock(&lock);
	put_collected(&gone);
}

size_t dcache_count(void)
{
	mutex_lock(&lock);
	size_t n = cached;
	mutex_unlock(&lock);
	return n;
}

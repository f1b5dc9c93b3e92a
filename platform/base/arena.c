/* Scratch memory: see arena.h. */
#include "platform/base/arena.h"

#include <string.h>

#include "platform/base/alloc.h"

#define BLOCK_SIZE 8192

struct arena_block {
	struct arena_block *next;
	size_t size; /* of data */
	size_t used;
	_Alignas(16) char data[];
};

void arena_init(struct arena *a)
{
	*a = (struct arena){ 0 };
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->blocks;

	if (size > ARENA_MAX)
		return NULL;
	size = (size + 15) & ~(size_t)15;
	if (!b || b->size - b->used < size) {
		size_t want = MAX(size, (size_t)BLOCK_SIZE - sizeof(*b));
		if (a->total + want > ARENA_MAX)
			return NULL;
		b = mem_alloc(sizeof(*b) + want);
		if (!b)
			return NULL;
		*b = (struct arena_block){ .next = a->blocks, .size = want };
		a->blocks = b;
		a->total += want;
	}
	void *p = b->data + b->used;
	b->used += size;
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = arena_alloc(a, n);
	if (p)
		memcpy(p, s, n);
	return p;
}

void arena_reset(struct arena *a)
{
	while (a->blocks && (a->blocks->next || a->blocks->size > BLOCK_SIZE)) {
		struct arena_block *b = a->blocks;
		a->blocks = b->next;
		a->total -= b->size;
		mem_free(b);
	}
	if (a->blocks)
		a->blocks->used = 0;
}

void arena_fini(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;
		a->blocks = b->next;
		mem_free(b);
	}
	*a = (struct arena){ 0 };
}

/*
 * Scratch memory of one system call: paths, vectors, small structs. Nothing is freed one by one;
 * arena_reset frees all when the call ends. Bounded: a guest cannot make it grow past ARENA_MAX.
 */
#pragma once

#include "platform/base/types.h"

#define ARENA_MAX (4u << 20)

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t total;
};

void arena_init(struct arena *a);
/* 16-byte aligned, not zeroed; NULL without memory or past the bound. */
void *arena_alloc(struct arena *a, size_t size) MUST_CHECK;
char *arena_strdup(struct arena *a, const char *s) MUST_CHECK;
/* Keeps one small block for the next call. */
void arena_reset(struct arena *a);
void arena_fini(struct arena *a);

/*
 * The only way to heap memory. Every function returns NULL when there is none and every caller
 * handles that; unit tests make the n-th allocation fail.
 */
#pragma once

#include "platform/base/types.h"

void *mem_alloc(size_t size) MUST_CHECK;
void *mem_zalloc(size_t size) MUST_CHECK;
/* Checks count * size for overflow; zeroed. */
void *mem_calloc(size_t count, size_t size) MUST_CHECK;
/* On failure the old block is untouched. */
void *mem_realloc(void *old, size_t size) MUST_CHECK;
char *mem_strdup(const char *s) MUST_CHECK;
char *mem_strndup(const char *s, size_t n) MUST_CHECK;
/* NULL is allowed. */
void mem_free(void *p);

/* Number of live blocks; debug and test builds only report leaks by it. */
size_t mem_live_count(void);
/* Test hook: the n-th allocation from now fails (1 = the next); 0 switches it off. */
void mem_fail_nth(unsigned n);

/*
 * The few words that every file uses: sizes, container_of, attributes, BUG().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The surrounding object of an embedded member. */
#define container_of(ptr, type, member)                                                            \
	((type *)(void *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#define MUST_CHECK __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096ul
#define PAGE_MASK (~(PAGE_SIZE - 1))

static inline uint64_t page_down(uint64_t x)
{
	return x & PAGE_MASK;
}

/* Rounds up to a page; wraps to 0 at the very top, so callers check for result < argument. */
static inline uint64_t page_up(uint64_t x)
{
	return (x + PAGE_SIZE - 1) & PAGE_MASK;
}

/* Ends the process with file and line on stderr. For states that no guest can cause. */
NORETURN void bug_at(const char *file, int line, const char *what);

#define BUG(what) bug_at(__FILE__, __LINE__, what)
#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!!(cond), 0))                                                 \
			bug_at(__FILE__, __LINE__, #cond);                                         \
	} while (0)

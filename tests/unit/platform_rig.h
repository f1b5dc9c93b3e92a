/*
 * Drives a platform's ops table without any kernel on top: each test runs in a process of its own,
 * whose main thread does what the sentry's does (child events, requests) while the test runs on a
 * second thread. A failed CHECK ends that process.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/platform.h"

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_) {                                                                    \
			fprintf(stderr, "%s:%d: %s is %lld (%#llx), want %s = %lld\n", __FILE__,   \
				__LINE__, #a, a_, (unsigned long long)a_, #b, b_);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Where rig_guest() puts things. */
#define RIG_CODE 0x400000ul
#define RIG_DATA 0x500000ul
#define RIG_DATA_SIZE 0x10000ul
#define RIG_STACK 0x600000ul
#define RIG_STACK_SIZE 0x10000ul

struct guest {
	const struct platform_ops *ops;
	struct plat_as *as;
	struct plat_ctx *ctx;
	struct regs regs;
	struct plat_event ev;
};

typedef void rig_fn(const struct platform_ops *ops);

/* Exit status of the test process: 0 passed, 77 skipped, 128 + n died of signal n. */
int rig_run(const struct platform_ops *ops, rig_fn *fn, int seconds);
/* Starts such a process and returns its pid. */
int rig_spawn(const struct platform_ops *ops, rig_fn *fn, int seconds);

/* A guest with code, data and stack whose registers point at the code. */
void rig_guest(struct guest *g, const struct platform_ops *ops, const void *code, size_t size);
/* Starts again at `code` + off with a fresh stack pointer. */
void rig_at(struct guest *g, size_t off);
/* Runs to the next event, which must be the call `nr`. */
void rig_syscall(struct guest *g, uint64_t nr);
/* Sets the result of the call that just came. */
void rig_return(struct guest *g, uint64_t value);
void rig_fork(struct guest *parent, struct guest *out_child);
void rig_clone(struct guest *caller, struct guest *out_thread);
void rig_free(struct guest *g);
void rig_map_anon(struct guest *g, uint64_t addr, uint64_t size, int prot, unsigned flags);
uint64_t rig_peek(struct guest *g, uint64_t addr);
void rig_poke(struct guest *g, uint64_t addr, uint64_t value);
/* Runs fn(arg) on another thread. */
void rig_thread(void *(*fn)(void *), void *arg);
/* Number of processes that are children of `pid`. */
int rig_children_of(int pid);
uint64_t rig_now_ns(void);

/* main() of a test: runs every function on every platform, as cmocka tests. */
struct rig_test {
	const char *name;
	rig_fn *fn;
	int seconds; /* 0: the usual limit */
	bool bare;   /* runs on the main thread of its process and the platform is not started */
};
int rig_main(const char *group, const struct rig_test *tests, size_t count);

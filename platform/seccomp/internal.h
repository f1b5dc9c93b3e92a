/*
 * Inside the seccomp platform. Reading order: seccomp.c (the interface, run), handover.c (how a
 * stub thread is told what to do), notify.c (what it may not do alone), space.c (birth and death),
 * slots.c.
 *
 * Locks, both RANK_PLATFORM: plat_as.mu first, then sec.mu nested. plat_as.mu is held over a whole
 * ordered sequence in one stub (a descriptor is lent under one number at a time); sec.mu guards
 * tables and orders for moments only. Nothing waits for ever under either: the death of a stub,
 * which the main thread learns and notes under sec.mu, wakes whoever waits for that stub.
 *
 * Field letters: [I] set before others see the object, [S] sec.mu, [A] plat_as.mu, [a] atomic,
 * [t] the thread that owns the context.
 */
#pragma once

#include <stdatomic.h>

#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "platform/platform.h"
#include "platform/stub/frame.h"
#include "platform/stub/futex.h"
#include "platform/stub/layout.h"

#define SLOT_NONE UINT32_MAX
#define PID_BUCKETS 256
#define MAX_ORDERS 4

/* One call that a stub thread may make once, by user notification. */
struct order {
	uint64_t nr;
	uint64_t args[6];
	int lend_fd; /* descriptor to add under STUB_FD first; -1: none */
	int err;     /* [S] -errno when it could not be granted */
	bool done;   /* [S] granted (or refused with err) */
};

struct plat_as {
	struct mutex mu;
	struct list link;        /* [S] in its pid bucket, once the pid is known */
	struct list ctxs;        /* [S] */
	uint32_t slots;          /* [S] list of all slots ever mapped in this stub */
	uint32_t idle_slots;     /* [A] list of those whose thread has ended or is ending */
	unsigned live;           /* [S] contexts not yet freed */
	atomic_int pid;          /* 0 until the kernel told us */
	atomic_bool dead;        /* reaped, or it never lived */
	bool freed;              /* [S] as_free was called */
	bool linked;             /* [S] */
	struct plat_ctx *leader; /* [A] first thread, parked for ever once its context is freed */
};

struct plat_ctx {
	struct plat_as *as;               /* [I] */
	struct list link;                 /* [S] in as->ctxs */
	struct list pending;              /* [S] in sec.pending while orders stand */
	struct stub_shared *sh;           /* [I] our view of the slot */
	uint32_t slot;                    /* [I] */
	int tid;                          /* [S] host thread */
	uint64_t cookie;                  /* [I] of a new process */
	bool hello;                       /* [S] the announcement was seen */
	bool is_leader;                   /* [I] first thread of its process */
	struct order orders[MAX_ORDERS];  /* [S] */
	unsigned order_count, order_next; /* [S] */
	uint32_t uc_off, fp_off;          /* [t] where in the slot; checked */
	uint64_t fs_base, gs_base;        /* [t] as loaded in the stub thread */
	atomic_bool running;              /* inside run() or futex() */
	atomic_bool kicked;               /* interrupt() came */
};

/* The platform's state. */
struct seccomp_state {
	struct mutex mu;
	struct plat_info info;         /* [I] */
	int listener;                  /* [I] */
	int slots_fd;                  /* [I] */
	uint8_t *slots;                /* [I] our mapping of the memfd */
	int own_pid;                   /* [I] */
	atomic_int notifier_tid;       /* 0 until it runs */
	bool has_fsgs;                 /* [I] */
	struct plat_as *zygote;        /* [I] */
	struct plat_ctx *zygote_ctx;   /* [I] */
	struct list pids[PID_BUCKETS]; /* [S] */
	struct list pending;           /* [S] contexts with orders */
	struct list newborn; /* [S] contexts of processes that have not announced themselves */
};

extern struct seccomp_state sec;
extern const struct platform_ops seccomp_platform;

/* slots.c */
int slots_init(void) MUST_CHECK;
/* A free slot, zeroed, or SLOT_NONE. */
uint32_t slot_alloc(void);
/* Puts a slot on a list of an address space / takes the first. */
void slot_push(uint32_t *list, uint32_t slot);
/* Frees all slots of a list of owned ones. No thread that maps them may live. */
void slots_release(uint32_t *list);
void slot_idle_push(uint32_t *list, uint32_t slot);
/* Takes a slot whose thread is gone off the list; SLOT_NONE when there is none. */
uint32_t slot_idle_take(uint32_t *list);
static inline struct stub_shared *slot_shared(uint32_t slot)
{
	return (struct stub_shared *)(void *)(sec.slots + (size_t)slot * STUB_SLOT_SIZE);
}

/* handover.c */
extern unsigned seccomp_urge_steps; /* half seconds; tests make it short */
/* Gives the turn to the stub thread and waits until it parks again. 0 or -ESRCH. */
int ctx_ring(struct plat_ctx *ctx) MUST_CHECK;
/* Waits until the stub thread parks. 0, -ESRCH when its process died, -ETIMEDOUT after ms (< 0:
 * never). */
int ctx_wait(struct plat_ctx *ctx, int ms) MUST_CHECK;
/* Announces a call that the next ring may make through the notifier, in the order of the calls. */
void ctx_order(struct plat_ctx *ctx, uint64_t nr, const uint64_t args[6], int lend_fd);
/* Withdraws what is left. True when every order was granted. *out_err: the first refusal, else 0.
 */
bool ctx_orders_end(struct plat_ctx *ctx, int *out_err);
/* Runs commands in the stub, up to the first error. *out_done: how many succeeded. Returns the
 * result of the last one run (>= 0, or -errno as the host gave it), or -ESRCH when the stub died or
 * lied. */
int64_t ctx_calls(struct plat_ctx *ctx, struct stub_command *list, unsigned count,
		  unsigned *out_done);
/* One plain call. */
int64_t ctx_call(struct plat_ctx *ctx, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3, uint64_t a4, uint64_t a5);
/* Kills the stub process because it broke the rules. */
void as_kill(struct plat_as *as);

/* seccomp.c */
/* Copies what the kernel wrote into the slot when the thread parked. False when it makes no sense.
 */
bool seccomp_collect(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev);
/* Puts registers into the frame; sanitises *regs' bases. */
void seccomp_load_regs(struct plat_ctx *ctx, struct regs *regs);

/* notify.c */
int notify_start(void) MUST_CHECK;

/* space.c */
/* Forks the first stub, from which all others come; waits until it is there. */
int space_boot(void) MUST_CHECK;
int space_boot_wait(void) MUST_CHECK;
bool space_child_event(int pid, int status);
void space_spread(const void *cpus, size_t size);
int space_new(struct plat_as **out_as, struct plat_ctx **out_ctx) MUST_CHECK;
int space_fork(struct plat_ctx *caller, struct plat_as **out_as, struct plat_ctx **out_ctx)
	MUST_CHECK;
int space_clone(struct plat_ctx *caller, struct plat_ctx **out_ctx) MUST_CHECK;
void space_ctx_free(struct plat_ctx *ctx);
void space_as_free(struct plat_as *as);

/* memory.c */
int memory_map(struct plat_ctx *via, const struct plat_map *m);
int memory_unmap(struct plat_ctx *via, uint64_t addr, uint64_t size);
int memory_protect(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot);
int memory_remap(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		 uint64_t new_size, bool dontunmap);
int memory_advise(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice);
int memory_resident(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec);
int memory_lock(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on);

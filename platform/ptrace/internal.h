/*
 * Inside the ptrace platform. Reading order: ptrace.c (the interface), tracer.c (what the tracing
 * thread does), space.c (birth and death).
 *
 * The host lets only the thread that traces a stub make ptrace requests for it: the sentry's main
 * thread. Other threads put a struct request on a queue, signal the main thread and sleep.
 * Functions named tracer_* run on the main thread only and therefore need no lock among themselves;
 * fields marked [T] are theirs.
 *
 * Field letters: [I] set before others see the object, [T] tracing thread, [a] atomic, [t] owner
 * thread.
 */
#pragma once

#include <stdatomic.h>

#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "platform/platform.h"
#include "platform/stub/frame.h"
#include "platform/stub/layout.h"

#define TID_BUCKETS 256

/* A page area of our own in every stub, private to it: messages of recvmsg, timeouts, mincore
 * bytes. */
#define SCRATCH STUB_SLOTS
#define SCRATCH_SIZE STUB_SLOT_SIZE
#define SCRATCH_VEC (SCRATCH + STUB_WINDOW_OFF)
#define SCRATCH_TIMES (SCRATCH + STUB_STACK_OFF)
#define SCRATCH_TIMES_COUNT (STUB_STACK_SIZE / sizeof(struct timespec))

enum mode {
	MODE_PARKED, /* stopped, nothing asked of it */
	MODE_GUEST,  /* runs guest code */
	MODE_FUTEX,  /* sleeps in an injected futex call */
};

struct plat_as {
	struct list ctxs;        /* [T] all host threads of the process */
	int pid;                 /* [I] */
	unsigned live;           /* [T] contexts not yet freed */
	unsigned threads_made;   /* [T] */
	atomic_bool dead;        /* no code of it runs any more */
	bool reaped;             /* [T] */
	bool freed;              /* [T] as_free was called */
	struct plat_ctx *leader; /* [T] first thread, kept stopped once its context is freed */
};

struct plat_ctx {
	struct plat_as *as;   /* [I] */
	struct list link;     /* [T] in as->ctxs */
	struct list tid_link; /* [T] */
	int tid;              /* [I] */
	unsigned number;      /* [I] place of its timeout in the scratch area */
	enum mode mode;       /* [T] */
	bool gone;            /* [T] the host thread has ended */
	bool ending;          /* [T] on our order */
	uint32_t event;       /* futex word: 1 when a stop was reported */
	struct regs regs;     /* [T] until event, then [t] */
	struct plat_event ev; /* the same */
	long result;          /* the same; of a futex call */
	atomic_bool running;  /* inside run() or futex() */
	atomic_bool kicked;   /* interrupt() came */
};

/* Arguments of one request; which fields count depends on fn. */
struct request {
	struct list link;
	long (*fn)(struct request *rq);
	struct plat_as *as;
	struct plat_ctx *ctx;
	uint64_t nr, args[6];
	const struct plat_map *map;
	struct regs *regs;
	void *buf;
	const void *data;
	struct plat_as **out_as;
	struct plat_ctx **out_ctx;
	long result;
	uint32_t done; /* futex word */
};

struct ptrace_state {
	struct mutex mu;               /* RANK_PLATFORM */
	struct list queue;             /* [mu] */
	int main_pid, main_tid;        /* [I] */
	int sock;                      /* [I] our end of the channel for descriptors */
	struct plat_info info;         /* [I] */
	struct plat_ctx *zygote;       /* [I] */
	int stub_group;                /* [I] process group of all stubs */
	int early_tid;                 /* [T] a thread that stopped before we knew it */
	struct list tids[TID_BUCKETS]; /* [T] */
};

extern struct ptrace_state pt;

/* Has fn carried out by the tracing thread; returns its result. */
long request_do(struct request *rq);

/* tracer.c */
struct plat_ctx *tracer_find(int tid);
void tracer_add(struct plat_ctx *ctx);
/* Makes a parked thread do one system call. Its result, or -ESRCH when the stub died. */
long tracer_call(struct plat_ctx *ctx, uint64_t nr, const uint64_t args[6]);
/* Waits until a given thread stops; the stop signal with the event above it, or -ESRCH. */
int tracer_wait(struct plat_ctx *ctx);
/* Waits for the first stop of a thread that was just cloned. 0 or -ESRCH. */
int tracer_wait_newborn(int tid);
/* Loads registers and resumes with a ptrace request. 0 or -ESRCH. */
int tracer_resume(struct plat_ctx *ctx, const struct regs *regs, int how) MUST_CHECK;
bool tracer_event(int tid, int status);
int tracer_get_fp(struct plat_ctx *ctx, void *image) MUST_CHECK;
int tracer_set_fp(struct plat_ctx *ctx, const void *image) MUST_CHECK;
/* Registers to run a piece of the blob with. */
struct regs tracer_blob_regs(const uint8_t *part);
void tracer_report(struct plat_ctx *ctx);

/* Request bodies. */
long tracer_run(struct request *rq);
long tracer_futex(struct request *rq);
long tracer_plain_call(struct request *rq);
long tracer_map(struct request *rq);
long tracer_cmpxchg(struct request *rq);
long tracer_force_in(struct request *rq);
long tracer_force_out(struct request *rq);

/* space.c */
int tspace_start(void) MUST_CHECK;
long tspace_new(struct request *rq);
long tspace_fork(struct request *rq);
long tspace_clone(struct request *rq);
long tspace_ctx_free(struct request *rq);
long tspace_as_free(struct request *rq);
/* A thread has ended. */
void tspace_thread_gone(struct plat_ctx *ctx);

/*
 * The platform: how guest code runs and how guest memory is made. The sentry decides what is mapped
 * where (sentry/mm.h is the one source of truth); a platform carries it out. It speaks of address
 * spaces, mappings and contexts, never of pages, so that a backend with its own pager fits too.
 *
 * Objects:
 *  - struct plat_as, an address space: one stub process. Created blank or by fork.
 *  - struct plat_ctx, a context: one guest thread in an address space: one host thread in the stub.
 *    Only the sentry thread of that task calls run/futex/fp on it. A context that is not inside
 *    run() is "parked"; mapping calls go `via` a parked context of the same address space, which is
 *    the calling task's own.
 *
 * Everything a stub says is the guest's claim: values are copied once, range-checked, then used.
 * Errors are -errno. -ESRCH from any call means that the stub process is gone (killed from outside
 * or by its own fault); the sentry then kills the guest process with SIGKILL.
 */
#pragma once

#include <time.h>

#include "platform/base/types.h"
#include "platform/regs.h"

enum plat_event_kind {
	PLAT_SYSCALL,   /* a system call: number in regs.orig_rax, arguments in regs, arch below */
	PLAT_FAULT,     /* a synchronous signal: signo, code, addr, trapno, err */
	PLAT_INTERRUPT, /* plat interrupt() was called; nothing else happened */
	PLAT_DEAD,      /* the stub is gone */
};

struct plat_event {
	enum plat_event_kind kind;
	uint32_t arch;   /* PLAT_SYSCALL: AUDIT_ARCH_X86_64 or AUDIT_ARCH_I386 */
	int signo;       /* PLAT_FAULT: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP */
	int code;        /* si_code as the host kernel gave it */
	uint64_t addr;   /* si_addr */
	uint64_t trapno; /* hardware exception number and error code, as in sigcontext */
	uint64_t err;
};

/* flags of struct plat_map */
#define PLAT_MAP_SHARED 1u /* else private, copy on write */
#define PLAT_MAP_ANON 2u   /* fd is ignored */
#define PLAT_MAP_NORESERVE 4u
#define PLAT_MAP_POPULATE 8u
#define PLAT_MAP_LOCKED 16u
#define PLAT_MAP_NOREPLACE                                                                         \
	32u /* -EEXIST when something is mapped there (the sentry checks itself) */

struct plat_map {
	uint64_t addr;  /* page aligned, inside [plat_info.task_min, plat_info.task_max) */
	uint64_t size;  /* page aligned, > 0 */
	int prot;       /* PROT_* */
	unsigned flags; /* PLAT_MAP_* */
	int fd;         /* sentry descriptor, borrowed for the call */
	uint64_t off;   /* page aligned */
};

/* A piece of the host's vDSO as it lies in every blank address space. */
struct plat_region {
	uint64_t addr;
	uint64_t size; /* 0: absent */
	int prot;
};

struct plat_info {
	uint64_t task_min, task_max; /* guest addresses: [task_min, task_max) */
	struct plat_region vvar;     /* data pages of the vDSO */
	struct plat_region vdso;     /* its code, for AT_SYSINFO_EHDR */
	size_t fp_size; /* bytes of the XSAVE image: sigcontext fpstate with its sw_reserved */
};

struct plat_as;
struct plat_ctx;

struct platform_ops {
	const char *name;
	const char *summary; /* one line for help and doctor */

	/* 0 when the host can do it; else -errno and one clear sentence in why. No lasting effect.
	 */
	int (*probe)(char *why, size_t why_size);
	/* Called once on the sentry's main thread while it is the only thread and before its
	 * seccomp filter. Starts what blank stubs come from. Stubs die with the calling thread. */
	int (*start)(void) MUST_CHECK;
	/* Called once after start, on the same thread and before the filter, when the caller has
	 * nothing else to do: waits until blank stubs can be had. NULL: start waited. */
	int (*ready)(void) MUST_CHECK;
	/* Lets all threads of all stubs, and the platform's own, run on these processors (a
	 * cpu_set_t of so many bytes), as those do that come later. Any thread. NULL: not possible.
	 */
	void (*spread)(const void *cpus, size_t size);
	/* Called on the main thread for each child that waitid() reported (SIGCHLD). status as in
	 * wait(2). True when the pid was a stub. May be a stop (ptrace). */
	bool (*child_event)(int pid, int status);
	/* Called on the main thread when the signal PLAT_REQUEST_SIGNAL arrives: run queued
	 * requests. */
	void (*main_request)(void);
	const struct plat_info *(*info)(void);

	/* A blank address space (vDSO only) and its first context, parked. Both given. */
	int (*as_new)(struct plat_as **out_as, struct plat_ctx **out_ctx) MUST_CHECK;
	/* A copy (copy-on-write) of the caller's address space with one context that has the
	 * caller's FP state and fs/gs base, parked. Both given. -EAGAIN/-ENOMEM as fork(2). */
	int (*as_fork)(struct plat_ctx *caller, struct plat_as **out_as, struct plat_ctx **out_ctx)
		MUST_CHECK;
	/* Kills the stub process. All its contexts must have been freed. */
	void (*as_free)(struct plat_as *as);
	/* One more context in the caller's address space, with the caller's FP state. */
	int (*ctx_clone)(struct plat_ctx *caller, struct plat_ctx **out_ctx) MUST_CHECK;
	/* Ends the host thread; takes ctx. Not from inside run(). */
	void (*ctx_free)(struct plat_ctx *ctx);

	int (*map)(struct plat_ctx *via, const struct plat_map *m) MUST_CHECK;
	int (*unmap)(struct plat_ctx *via, uint64_t addr, uint64_t size) MUST_CHECK;
	int (*protect)(struct plat_ctx *via, uint64_t addr, uint64_t size, int prot) MUST_CHECK;
	/* Moves or resizes one mapping; new_addr is always given (may equal old). dontunmap as
	 * mremap(2) MREMAP_DONTUNMAP. old_size 0 duplicates a shared mapping. */
	int (*remap)(struct plat_ctx *via, uint64_t old_addr, uint64_t old_size, uint64_t new_addr,
		     uint64_t new_size, bool dontunmap) MUST_CHECK;
	/* madvise(2) advice that is harmless: DONTNEED, FREE, WILLNEED, (NO)HUGEPAGE, DONTFORK...
	 * the platform refuses others with -EINVAL. */
	int (*advise)(struct plat_ctx *via, uint64_t addr, uint64_t size, int advice) MUST_CHECK;
	/* mincore(2): one byte per page into vec. */
	int (*resident)(struct plat_ctx *via, uint64_t addr, uint64_t size, uint8_t *vec)
		MUST_CHECK;
	/* mlock(2)/munlock(2). */
	int (*lock)(struct plat_ctx *via, uint64_t addr, uint64_t size, bool on) MUST_CHECK;

	/* Bytes copied before the first fault, or -EFAULT. Obeys page protections. Any thread. */
	ssize_t (*copy_in)(struct plat_as *as, void *dst, uint64_t addr, size_t n);
	ssize_t (*copy_out)(struct plat_as *as, uint64_t addr, const void *src, size_t n);
	/* As copy_*, ignoring page protections (guest ptrace POKE, /proc/pid/mem). */
	ssize_t (*force_in)(struct plat_as *as, void *dst, uint64_t addr, size_t n);
	ssize_t (*force_out)(struct plat_as *as, uint64_t addr, const void *src, size_t n);
	/* Atomic compare-and-exchange of an aligned 32-bit word; *seen gets what was there. 0 or
	 * -EFAULT. */
	int (*cmpxchg32)(struct plat_ctx *via, uint64_t addr, uint32_t old, uint32_t new,
			 uint32_t *seen) MUST_CHECK;
	/* futex(2) carried out by the guest thread itself on its own memory: op is one of WAIT,
	 * WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET, WAKE_BITSET with or without PRIVATE and
	 * CLOCK_REALTIME. args are the six words of the call, except that for waits args[3] is
	 * ignored and `timeout` (NULL: for ever; struct as for that op: relative for WAIT, else
	 * absolute) is used. -EINTR when interrupt() was called before or meanwhile (sticky until
	 * run() gives PLAT_INTERRUPT); waits only. */
	long (*futex)(struct plat_ctx *ctx, const uint64_t args[6], const struct timespec *timeout);

	/* Loads *regs, runs the guest until something happens, stores the registers back. Registers
	 * are sanitised: eflags keeps only what user code may set, cs/ss are the user's, rip/rsp
	 * any value (a non-canonical one makes a fault). fs_base/gs_base are loaded when changed.
	 */
	void (*run)(struct plat_ctx *ctx, struct regs *regs, struct plat_event *ev);
	/* From any thread: run() or futex() in progress, else the next one, returns early. */
	void (*interrupt)(struct plat_ctx *ctx);

	/* The FP image (plat_info.fp_size bytes, format of the fpstate in a signal frame). The
	 * guest may pass garbage to fp_set; -EINVAL then or a reset state, never harm. */
	int (*fp_get)(struct plat_ctx *ctx, void *buf) MUST_CHECK;
	int (*fp_set)(struct plat_ctx *ctx, const void *buf) MUST_CHECK;
	/* Single-step the next run() (guest ptrace): PLAT_FAULT SIGTRAP after one instruction comes
	 * from TF in eflags, so no extra call is needed. */
	/* Host pid of the stub, for resource sampling (/proc/PID/statm); 0 when none. */
	int (*host_pid)(struct plat_as *as);
};

/* A blocked signal that platforms queue to the main thread to get its attention (SIGRTMIN+2). */
#define PLAT_REQUEST_SIGNAL 36

/* One row per platform in platforms.def; the first is the default. */
const struct platform_ops *platform_find(const char *name);
const struct platform_ops *platform_at(size_t i); /* NULL past the end */

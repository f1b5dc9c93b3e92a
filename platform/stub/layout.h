/*
 * What lies where in a stub process, and the page through which the sentry and a stub thread talk.
 * The stub's assembly (platform/stub/code.c) uses the SH_* offsets; assertions below tie them to
 * struct stub_shared.
 *
 * Top of the user address space in every stub:
 *
 *	vDSO          below STUB_BASE, fixed place, same inner layout as the host's
 *	STUB_CODE     our code, read and execute only, sealed where the kernel can
 *	STUB_SLOTS    slot i at STUB_SLOTS + i * STUB_SLOT_SIZE: one per thread, from one memfd
 *
 * A slot: one page `struct stub_shared`, the argument window, the signal stack. The kernel writes
 *the signal frame (registers and XSAVE image) on that stack, hence straight into memory the sentry
 *sees. All of it is the guest's to scribble on.
 */
#pragma once

#include "platform/base/types.h"

#define STUB_BASE 0x7fffc0000000ul
#define STUB_TOP 0x7ffffffff000ul /* end of the user address space with four-level page tables */
#define STUB_CODE 0x7fffc0010000ul
#define STUB_CODE_SIZE 0x1000ul
#define STUB_SLOTS 0x7fffc1000000ul
#define STUB_SLOT_SIZE 0x10000ul
#define STUB_SLOT_COUNT 16127ul
#define STUB_TASK_MIN 0x10000ul
#define STUB_TASK_MAX STUB_BASE
/* The vDSO's code starts here; its data pages lie below. 64 KiB are room for any kernel's. */
#define STUB_VDSO 0x7fffbfff0000ul

#define STUB_WINDOW_OFF 0x1000ul
#define STUB_WINDOW_SIZE 0x7000ul
#define STUB_STACK_OFF 0x8000ul
#define STUB_STACK_SIZE 0x8000ul

/* The descriptor number under which a file is lent to a stub for one mapping. */
#define STUB_FD 3

/* In the unused fourth argument of madvise: the sentry is to be asked, so that it knows. */
#define STUB_ASK 1

/* The signal that takes a stub thread out of guest code or a futex sleep (SIGUSR1). */
#define STUB_KICK 10

/* Values of `turn`. */
#define TURN_SENTRY 1 /* the stub thread is parked */
#define TURN_STUB 2   /* the stub thread works or the guest runs */
#define TURN_DEAD 3   /* written by the sentry when the process is gone */
#define TURN_KICKED 4 /* as TURN_STUB, and the sentry wants the thread back soon */

/* Values of `op`. */
#define STUB_OP_RESUME 1
#define STUB_OP_CALLS 2
#define STUB_OP_FUTEX 3
#define STUB_OP_CMPXCHG 4
#define STUB_OP_EXIT 5

/* Bits of `flags`. */
#define STUB_SET_FS 1
#define STUB_SET_GS 2

#define STUB_COMMANDS 8

#define SH_TURN 0
#define SH_OP 4
#define SH_COUNT 8
#define SH_SIGNO 12
#define SH_UC 16
#define SH_SI 24
#define SH_FS 32
#define SH_GS 40
#define SH_FLAGS 48
#define SH_HAS_FSGS 52
#define SH_TID 56
#define SH_COMMANDS 128
#define SH_TIMEOUT 640
#define SH_CX_ADDR 656
#define SH_CX_OLD 664
#define SH_CX_NEW 668
#define SH_RESULT 672
#define SH_CX_SEEN 680

/* One host call that the sentry orders. */
struct stub_command {
	uint64_t nr;
	uint64_t args[6];
	int64_t result;
};

struct stub_shared {
	uint32_t turn; /* futex word of both sides */
	uint32_t op;
	uint32_t count;  /* of commands */
	int32_t signo;   /* why the thread parked: number of the host signal */
	uint64_t uc;     /* stub address of the signal frame's ucontext */
	uint64_t si;     /* and of its siginfo */
	uint64_t fs, gs; /* bases: as found when parking, as wanted when resuming */
	uint32_t flags;
	uint32_t has_fsgs; /* the fsgsbase instructions may be used */
	uint32_t tid;      /* cleared by the kernel when the thread is gone */
	uint32_t pad[17];
	struct stub_command commands[STUB_COMMANDS];
	int64_t timeout[2]; /* struct timespec of a futex wait */
	uint64_t cx_addr;
	uint32_t cx_old, cx_new;
	int64_t result; /* of STUB_OP_FUTEX, STUB_OP_CMPXCHG and the boot */
	uint32_t cx_seen;
};

#define SH_CHECK(field, off)                                                                       \
	_Static_assert(offsetof(struct stub_shared, field) == (off), "layout of the shared page")
SH_CHECK(turn, SH_TURN);
SH_CHECK(op, SH_OP);
SH_CHECK(count, SH_COUNT);
SH_CHECK(signo, SH_SIGNO);
SH_CHECK(uc, SH_UC);
SH_CHECK(si, SH_SI);
SH_CHECK(fs, SH_FS);
SH_CHECK(gs, SH_GS);
SH_CHECK(flags, SH_FLAGS);
SH_CHECK(has_fsgs, SH_HAS_FSGS);
SH_CHECK(tid, SH_TID);
SH_CHECK(commands, SH_COMMANDS);
SH_CHECK(timeout, SH_TIMEOUT);
SH_CHECK(cx_addr, SH_CX_ADDR);
SH_CHECK(cx_old, SH_CX_OLD);
SH_CHECK(cx_new, SH_CX_NEW);
SH_CHECK(result, SH_RESULT);
SH_CHECK(cx_seen, SH_CX_SEEN);
_Static_assert(sizeof(struct stub_shared) <= PAGE_SIZE, "one page");
_Static_assert(STUB_SLOTS + STUB_SLOT_COUNT * STUB_SLOT_SIZE <= STUB_TOP, "slots fit");

static inline uint64_t stub_slot_addr(uint32_t slot)
{
	return STUB_SLOTS + slot * STUB_SLOT_SIZE;
}

/* The blob: copied to STUB_CODE in every stub. */
extern const uint8_t stub_code_begin[], stub_code_end[];
/* Entry points, as they lie in our own image; see stub_code_addr(). */
extern const uint8_t stub_handler[];  /* signal handler of every stub */
extern const uint8_t stub_restorer[]; /* sa_restorer, for form's sake */
extern const uint8_t stub_zygote[];   /* end of the seccomp zygote's boot: park */
extern const uint8_t stub_trap[];     /* end of the ptrace stub's boot: breakpoint */
extern const uint8_t stub_syscall[];  /* a lone syscall instruction followed by a breakpoint */
extern const uint8_t stub_cmpxchg[];  /* lock cmpxchg %edx,(%rdi) followed by a breakpoint */
extern const uint8_t stub_boot[];     /* void (list, count, sp, entry): see boot.c */

/* Where a part of the blob lies in a stub. */
static inline uint64_t stub_code_addr(const uint8_t *part)
{
	return STUB_CODE + (uint64_t)(part - stub_code_begin);
}

/*
 * Signal frames as the kernel writes and reads them on x86-64, and the XSAVE image in them. The
 * image with its software-reserved part is also the form in which the interface hands out FP state.
 */
#pragma once

#include "platform/base/types.h"
#include "platform/regs.h"

/* Kernel struct sigcontext. */
struct frame_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate; /* address in the stub */
	uint64_t reserved[8];
};

/* Kernel struct ucontext. */
struct frame_ucontext {
	uint64_t flags;
	uint64_t link;
	uint64_t stack_sp;
	uint32_t stack_flags, pad;
	uint64_t stack_size;
	struct frame_sigcontext mc;
	uint64_t sigmask;
};

/* The part of siginfo that we read. */
struct frame_siginfo {
	int32_t signo, error, code, pad;
	union {
		uint64_t addr; /* faults */
		struct {
			uint64_t call_addr;
			int32_t nr;
			uint32_t arch;
		} sys; /* SIGSYS */
	};
	uint64_t rest[12];
};

/* What lies on the signal stack below the XSAVE image. */
struct frame {
	uint64_t pretcode;
	struct frame_ucontext uc;
	struct frame_siginfo si;
};

_Static_assert(offsetof(struct frame_ucontext, mc.rip) == 168, "UC_RIP of code.c");
_Static_assert(sizeof(struct frame_ucontext) == 304, "kernel layout");
_Static_assert(sizeof(struct frame_siginfo) == 128, "kernel layout");

/* Learns the size and features of this host's XSAVE image from a signal to itself. Once, while the
 * process has one thread. 0 or -errno. */
int fp_measure(void) MUST_CHECK;
/* Bytes of the image, plat_info.fp_size. */
size_t fp_size(void);
/* Bytes of the plain XSAVE area, without the trailing magic word, as PTRACE_GETREGSET has it. */
size_t fp_xsave_size(void);
/* The state of a fresh thread. */
void fp_init(void *image);
/* Makes any bytes an image that the kernel accepts: the header becomes ours, reserved bits are
 * cleared. */
void fp_sanitise(void *image);

/* Clears what user code may not set and gives the segments of user code. */
void regs_sanitise(struct regs *r);
/* True when the CPU's fsgsbase instructions may be used by user code. */
bool regs_has_fsgsbase(void);
/* A base that wrfsbase and arch_prctl accept: user space or zero. */
uint64_t regs_base_sanitise(uint64_t base);

/* General registers between a frame and struct regs; fs_base, gs_base and orig_rax are not in
 * frames. */
void frame_get_regs(const struct frame_sigcontext *mc, struct regs *out_regs);
void frame_set_regs(struct frame_sigcontext *mc, const struct regs *r);

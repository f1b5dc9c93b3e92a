/*
 * The general registers of a guest thread, in the order of Linux' struct user_regs_struct
 * (ptrace(2) PTRACE_GETREGS), so that both platforms and guest ptrace share one layout.
 */
#pragma once

#include "platform/base/types.h"

struct regs {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	uint64_t rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
	uint64_t fs_base, gs_base, ds, es, fs, gs;
};

_Static_assert(sizeof(struct regs) == 27 * 8, "layout of user_regs_struct");

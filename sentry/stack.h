/* The first stack of a program: strings, vectors and the auxiliary vector (fs/binfmt_elf.c). */
#pragma once

#include "sentry/mm.h"

struct cred;

struct stack_spec {
	const char *strings; /* argc then envc NUL-terminated strings, back to back */
	size_t strings_size;
	int argc, envc;
	const char *execfn; /* AT_EXECFN */
	bool exec_stack;
	bool randomize;
	bool secure;                       /* AT_SECURE */
	const struct cred *cred;           /* new credentials */
	uint64_t phdr, phnum, base, entry; /* AT_PHDR, AT_PHNUM, AT_BASE, AT_ENTRY */
	uint64_t top;                      /* end of the stack, page aligned */
	uint64_t rlimit;                   /* RLIMIT_STACK */
};

/* Maps the stack into a blank address space and fills it; sets start_stack, arg and env ranges and
 * auxv of mm. *out_sp is where the program's rsp begins. -E2BIG, -ENOMEM, -EFAULT. */
int stack_build(struct mm *mm, struct plat_ctx *via, const struct stack_spec *s, uint64_t *out_sp)
	MUST_CHECK;

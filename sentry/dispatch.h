/*
 * The system-call table as the sentry sees it. syscalls/table.c defines it from
 * syscalls/syscalls.def; the sentry never includes syscalls/.
 */
#pragma once

#include "platform/base/types.h"

struct task;

enum coverage {
	COVERAGE_FULL,    /* as Linux */
	COVERAGE_PARTIAL, /* the note says what is missing */
	COVERAGE_STUB,    /* fixed answer; the note says which */
	COVERAGE_REFUSED, /* security decision; the note says why */
	COVERAGE_ABSENT,  /* not served; the note says why */
};

enum arg_kind {
#define KIND(name, type, printer) ARG_##name,
#define KINDP(name, type, printer) ARG_##name,
#include "sentry/kinds.def"
#undef KIND
#undef KINDP
	ARG_KIND_COUNT
};

struct syscall_entry {
	const char *name;                                     /* NULL: no such number */
	long (*call)(struct task *t, const uint64_t args[6]); /* NULL for REFUSED and ABSENT */
	const char *note;
	const char *arg_names[6];
	uint8_t arg_kinds[6]; /* enum arg_kind */
	uint8_t arg_count;
	uint8_t coverage; /* enum coverage */
	bool waits;       /* may block: a trace prints the entry before the call */
	int fixed_errno;  /* for call == NULL */
};

#define SYSCALL_TABLE_SIZE 512
extern const struct syscall_entry syscall_table[SYSCALL_TABLE_SIZE];

/* Runs one system call for the current task: decodes, traces, calls, returns the result (count,
 * -errno or an internal restart code). nr is the number as the guest gave it. */
long syscall_dispatch(struct task *t, uint32_t arch, uint64_t nr, const uint64_t args[6]);

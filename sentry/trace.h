/* --trace: one line per system call, in strace's manner, printed from the table. */
#pragma once

#include "sentry/dispatch.h"

struct task;

/* Sends the trace to a host descriptor; -1 switches it off. Before the first task runs. */
void trace_init(int fd);
bool trace_on(void);

/* What is printed before the call runs: the arguments that the guest gives, up to the first that it
 * receives. */
struct trace_line {
	char text[1024];
	size_t len;
	unsigned next_arg; /* first argument not printed yet */
};

void trace_enter(struct trace_line *l, struct task *t, const struct syscall_entry *e,
		 const uint64_t args[6]);
void trace_exit(struct trace_line *l, struct task *t, const struct syscall_entry *e,
		const uint64_t args[6], long ret);
/* A call that does not return (exit, successful exec of another thread). */
void trace_unfinished(struct trace_line *l, struct task *t);

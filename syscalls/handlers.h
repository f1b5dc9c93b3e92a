/*
 * Prototypes of all handlers, expanded from syscalls.def. Every file with handlers includes this,
 * so a body that disagrees with its row does not compile. A handler runs on the task's own sentry
 * thread without any lock and returns a count, -errno or an internal restart code
 * (sentry/restart.h).
 */
#pragma once

#include "sentry/dispatch.h"
#include "sentry/guest.h"

/* The C type of each kind, by name. */
#define KIND(name, type, printer) typedef type kind_##name;
#define KINDP(name, type, printer) typedef type kind_##name;
#include "sentry/kinds.def"
#undef KIND
#undef KINDP

#define SYSCALL0(nr, name, cov, waits, note) long sys_##name(struct task *t);
#define SYSCALL1(nr, name, cov, waits, note, k1, n1) long sys_##name(struct task *t, kind_##k1 n1);
#define SYSCALL2(nr, name, cov, waits, note, k1, n1, k2, n2)                                       \
	long sys_##name(struct task *t, kind_##k1 n1, kind_##k2 n2);
#define SYSCALL3(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3)                               \
	long sys_##name(struct task *t, kind_##k1 n1, kind_##k2 n2, kind_##k3 n3);
#define SYSCALL4(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4)                       \
	long sys_##name(struct task *t, kind_##k1 n1, kind_##k2 n2, kind_##k3 n3, kind_##k4 n4);
#define SYSCALL5(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5)               \
	long sys_##name(struct task *t, kind_##k1 n1, kind_##k2 n2, kind_##k3 n3, kind_##k4 n4,    \
			kind_##k5 n5);
#define SYSCALL6(nr, name, cov, waits, note, k1, n1, k2, n2, k3, n3, k4, n4, k5, n5, k6, n6)       \
	long sys_##name(struct task *t, kind_##k1 n1, kind_##k2 n2, kind_##k3 n3, kind_##k4 n4,    \
			kind_##k5 n5, kind_##k6 n6);
#define NOSYSCALL(nr, name, cov, err, why)
#include "syscalls/syscalls.def"
#undef SYSCALL0
#undef SYSCALL1
#undef SYSCALL2
#undef SYSCALL3
#undef SYSCALL4
#undef SYSCALL5
#undef SYSCALL6
#undef NOSYSCALL

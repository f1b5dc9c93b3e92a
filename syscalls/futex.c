/*
 * futex(2). Waiting and waking are done by the guest thread itself on its own memory (platform
 * futex op), so private and shared futexes, requeueing and WAKE_OP have the host kernel's
 * semantics. Here: argument checks in the order of kernel/futex/syscalls.c, time-outs, restart.
 * Priority inheritance would need host thread ids in the word: absent.
 */
#include <errno.h>
#include <linux/futex.h>

#include "sentry/plat.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

static bool cmd_known(int cmd)
{
	switch (cmd) {
	case FUTEX_WAIT:
	case FUTEX_WAKE:
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_WAKE_OP:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAKE_BITSET:
		return true;
	default:
		return false;
	}
}

/* An absolute wait; words are {uaddr, op, val, bitset}, deadline in the op's clock. */
static long futex_wait(struct task *t, const uint64_t w[4], const struct timespec *abs)
{
	const uint64_t args[6] = { w[0], w[1], w[2], 0, 0, w[3] };
	return plat->futex(t->ctx, args, abs);
}

static long futex_wait_again(struct task *t)
{
	const struct timespec abs = { .tv_sec = (time_t)t->restart.words[4],
				      .tv_nsec = (long)t->restart.words[5] };
	long ret = futex_wait(t, t->restart.words, &abs);
	return ret == -EINTR ? -ERESTART_RESTARTBLOCK : ret;
}

static void timespec_add_now(struct timespec *ts)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (__builtin_add_overflow(ts->tv_sec, now.tv_sec, &ts->tv_sec))
		ts->tv_sec = INT64_MAX - 1;
	ts->tv_nsec += now.tv_nsec;
	if (ts->tv_nsec >= 1000000000) {
		ts->tv_nsec -= 1000000000;
		ts->tv_sec++;
	}
}

static long do_wait(struct task *t, uint64_t uaddr, int op, uint32_t val, uint64_t timeout,
		    uint32_t bitset)
{
	int cmd = op & FUTEX_CMD_MASK;
	int abs_op = FUTEX_WAIT_BITSET | (op & ~FUTEX_CMD_MASK);
	const uint64_t words[4] = { uaddr, (uint64_t)(unsigned)abs_op, val,
				    cmd == FUTEX_WAIT ? FUTEX_BITSET_MATCH_ANY : bitset };
	struct timespec ts;

	if (!timeout) {
		long ret = futex_wait(t, words, NULL);
		return ret == -EINTR ? -ERESTARTSYS : ret;
	}
	timespec_cgp p = { .addr = gaddr(timeout) };
	if (guest_load(t, &ts, p))
		return -EFAULT;
	if (ts.tv_sec < 0 || (uint64_t)ts.tv_nsec >= 1000000000)
		return -EINVAL;
	if (cmd == FUTEX_WAIT)
		timespec_add_now(&ts); /* relative for WAIT, absolute for WAIT_BITSET */
	long ret = futex_wait(t, words, &ts);
	if (ret != -EINTR)
		return ret;
	t->restart = (struct restart_block){ .fn = futex_wait_again };
	for (int i = 0; i < 4; i++)
		t->restart.words[i] = words[i];
	t->restart.words[4] = (uint64_t)ts.tv_sec;
	t->restart.words[5] = (uint64_t)ts.tv_nsec;
	return -ERESTART_RESTARTBLOCK;
}

long sys_futex(struct task *t, u32_gp uaddr, int op, uint32_t val, uint64_t timeout, u32_gp uaddr2,
	       uint32_t val3)
{
	int cmd = op & FUTEX_CMD_MASK;

	if (!cmd_known(cmd) || (op & ~(FUTEX_CMD_MASK | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)))
		return -ENOSYS;
	if ((op & FUTEX_CLOCK_REALTIME) && cmd != FUTEX_WAIT_BITSET)
		return -ENOSYS;
	if (uaddr.addr.va & 3)
		return -EINVAL;
	if (!guest_range_ok(t, uaddr.addr, 4))
		return -EFAULT;
	if (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET)
		return do_wait(t, uaddr.addr.va, op, val, timeout, val3);
	if (cmd == FUTEX_REQUEUE || cmd == FUTEX_CMP_REQUEUE || cmd == FUTEX_WAKE_OP) {
		if (uaddr2.addr.va & 3)
			return -EINVAL;
		if (!guest_range_ok(t, uaddr2.addr, 4))
			return -EFAULT;
	}
	const uint64_t args[6] = { uaddr.addr.va, (uint64_t)(unsigned)op, val,
				   timeout,       uaddr2.addr.va,         val3 };
	long ret = plat->futex(t->ctx, args, NULL);
	/* Waking never sleeps; an interrupt only means "try again". */
	return ret == -EINTR ? -ERESTARTNOINTR : ret;
}

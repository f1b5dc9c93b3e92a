/*
 * Talking to a stub thread: the turn word, ordered calls, orders for the notifier.
 *
 * Both sides sleep on `turn`. The stub side may write anything there at any time; the sentry's loop
 * only ends when it reads TURN_SENTRY or the process is dead, and sleeps on whatever other value it
 * read, so a hostile value costs at most the hostile guest's own time. When a process has been
 * reaped nobody but the sentry writes its slots, and TURN_DEAD stays.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/seccomp/internal.h"

/* The largest errno that a system call of the host's can give to user code. */
#define MAX_USER_ERRNO 133

/* How long a thread may take to come back when asked: far longer than any single call it may be in.
 */
#define URGE_STEP_MS 500
unsigned seccomp_urge_steps = 20;

void as_kill(struct plat_as *as)
{
	int pid = atomic_load(&as->pid);

	if (pid > 0 && !atomic_load(&as->dead))
		kill(pid, SIGKILL);
}

/* A step of waiting for a thread that was asked to come back: asks again, and gives up on it after
 * a while. A guest can make its thread deaf (it can set the signal mask by jumping into our
 * rt_sigreturn) or end it; its process must then go, lest the sentry thread never comes back
 * either. */
static void urge(struct plat_ctx *ctx, unsigned *steps)
{
	int pid = atomic_load(&ctx->as->pid);

	if (pid <= 0 || !ctx->tid)
		return;
	if (syscall(SYS_tgkill, pid, ctx->tid, atomic_load(&ctx->running) ? STUB_KICK : 0) < 0 ||
	    ++*steps >= seccomp_urge_steps)
		as_kill(ctx->as);
}

int ctx_wait(struct plat_ctx *ctx, int ms)
{
	struct timespec step = { .tv_nsec = (ms < 0 ? URGE_STEP_MS : ms) * 1000000l };
	uint32_t *turn = &ctx->sh->turn;
	unsigned steps = 0;

	for (;;) {
		uint32_t t = __atomic_load_n(turn, __ATOMIC_SEQ_CST);
		if (atomic_load(&ctx->as->dead))
			return -ESRCH;
		if (t == TURN_SENTRY)
			return 0;
		/* interrupt() changes the word after it has set `kicked`, so we cannot miss it
		 * here. */
		bool kicked = atomic_load(&ctx->kicked);
		if (futex_wait(turn, t, ms < 0 && !kicked ? NULL : &step) != -ETIMEDOUT)
			continue;
		if (ms >= 0)
			return -ETIMEDOUT;
		urge(ctx, &steps);
	}
}

int ctx_ring(struct plat_ctx *ctx)
{
	/* Should the process die right now: child_event() sets `dead` before it writes TURN_DEAD,
	 * and we read `dead` after writing the turn, so one of us sees the other. */
	__atomic_store_n(&ctx->sh->turn, TURN_STUB, __ATOMIC_SEQ_CST);
	futex_wake(&ctx->sh->turn);
	return ctx_wait(ctx, -1);
}

void ctx_order(struct plat_ctx *ctx, uint64_t nr, const uint64_t args[6], int lend_fd)
{
	mutex_lock_nested(&sec.mu);
	BUG_ON(ctx->order_count == MAX_ORDERS);
	struct order *o = &ctx->orders[ctx->order_count++];
	*o = (struct order){ .nr = nr, .lend_fd = lend_fd };
	for (int i = 0; i < 6; i++)
		o->args[i] = args[i];
	if (ctx->order_count == 1)
		list_add_tail(&sec.pending, &ctx->pending);
	mutex_unlock(&sec.mu);
}

bool ctx_orders_end(struct plat_ctx *ctx, int *out_err)
{
	bool all = true;

	*out_err = 0;
	mutex_lock_nested(&sec.mu);
	for (unsigned i = 0; i < ctx->order_count; i++) {
		all = all && ctx->orders[i].done;
		if (ctx->orders[i].done && ctx->orders[i].err && !*out_err)
			*out_err = ctx->orders[i].err;
	}
	ctx->order_count = ctx->order_next = 0;
	list_del_init(&ctx->pending);
	mutex_unlock(&sec.mu);
	return all;
}

int64_t ctx_calls(struct plat_ctx *ctx, struct stub_command *list, unsigned count,
		  unsigned *out_done)
{
	struct stub_shared *sh = ctx->sh;
	int64_t result = 0;

	BUG_ON(count > STUB_COMMANDS);
	*out_done = 0;
	for (unsigned i = 0; i < count; i++)
		sh->commands[i] = list[i];
	sh->count = count;
	sh->op = STUB_OP_CALLS;
	if (ctx_ring(ctx))
		return -ESRCH;
	for (unsigned i = 0; i < count; i++) {
		result = __atomic_load_n(&sh->commands[i].result, __ATOMIC_RELAXED);
		list[i].result = result;
		if (result < 0)
			break;
		++*out_done;
	}
	if (result < -MAX_USER_ERRNO) {
		as_kill(ctx->as);
		return -ESRCH;
	}
	return result;
}

int64_t ctx_call(struct plat_ctx *ctx, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
		 uint64_t a3, uint64_t a4, uint64_t a5)
{
	struct stub_command c = { .nr = nr, .args = { a0, a1, a2, a3, a4, a5 } };
	unsigned done;

	return ctx_calls(ctx, &c, 1, &done);
}

/* Stubs and sentries that die at any moment: nobody hangs, nothing is left behind. */
#include "tests/unit/platform_rig.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "platform/base/alloc.h"

/* clang-format off */
__asm__(
".pushsection .rodata\n"
".globl k_begin, k_end, k_forever\n"
"k_begin:	mov $39,%eax; syscall; jmp k_begin\n"
"k_forever:	jmp k_forever\n"
"k_end:\n"
".popsection\n");
/* clang-format on */

extern const uint8_t k_begin[], k_end[], k_forever[];

static void start(struct guest *g, const struct platform_ops *ops)
{
	rig_guest(g, ops, k_begin, (size_t)(k_end - k_begin));
}

struct killer {
	int pid;
	unsigned delay_us;
};

static void *kill_later(void *arg)
{
	struct killer k = *(struct killer *)arg;

	free(arg);
	usleep(k.delay_us);
	kill(k.pid, SIGKILL);
	return NULL;
}

static void kill_in(struct guest *g, unsigned us)
{
	struct killer *k = malloc(sizeof(*k));

	*k = (struct killer){ .pid = g->ops->host_pid(g->as), .delay_us = us };
	if (k->pid > 0)
		rig_thread(kill_later, k);
	else
		free(k);
}

static void wait_dead(struct guest *g)
{
	for (int i = 0; i < 5000 && g->ops->host_pid(g->as) != 0; i++)
		usleep(1000);
	CHECK_EQ(g->ops->host_pid(g->as), 0);
}

static void test_each_state(const struct platform_ops *ops)
{
	struct guest g, other;
	struct plat_as *as;
	struct plat_ctx *ctx;
	uint64_t wait[6] = { RIG_DATA, FUTEX_WAIT, 0 };
	uint64_t word;
	uint32_t seen;

	/* In guest code. */
	start(&g, ops);
	rig_at(&g, (size_t)(k_forever - k_begin));
	kill_in(&g, 20000);
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_DEAD);
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_DEAD);
	rig_free(&g);
	/* Asleep on a futex. */
	start(&g, ops);
	kill_in(&g, 20000);
	CHECK_EQ(ops->futex(g.ctx, wait, NULL), -ESRCH);
	rig_free(&g);
	/* Parked. */
	start(&g, ops);
	rig_clone(&g, &other);
	kill(ops->host_pid(g.as), SIGKILL);
	wait_dead(&g);
	struct plat_map m = { .addr = 0x1000000, .size = PAGE_SIZE, .prot = PROT_READ, .fd = 0 };
	CHECK_EQ(ops->map(g.ctx, &m), -ESRCH);
	CHECK_EQ(ops->unmap(g.ctx, 0x1000000, PAGE_SIZE), -ESRCH);
	CHECK_EQ(ops->copy_in(g.as, &word, RIG_DATA, 8), -ESRCH);
	CHECK_EQ(ops->cmpxchg32(g.ctx, RIG_DATA, 0, 1, &seen), -ESRCH);
	CHECK_EQ(ops->as_fork(g.ctx, &as, &ctx), -ESRCH);
	CHECK_EQ(ops->ctx_clone(g.ctx, &ctx), -ESRCH);
	CHECK_EQ(ops->futex(other.ctx, wait, NULL), -ESRCH);
	ops->interrupt(g.ctx);
	ops->ctx_free(other.ctx);
	rig_free(&g);
	/* The platform still works. */
	start(&g, ops);
	rig_syscall(&g, 39);
	rig_free(&g);
}

/* Everything that a task does, until the stub is found dead. */
static void work_until_dead(struct guest *g, unsigned seed)
{
	const struct platform_ops *ops = g->ops;
	uint64_t wake[6] = { RIG_DATA, FUTEX_WAKE, 1 };
	int fd = memfd_create("k", 0);

	CHECK_EQ(ftruncate(fd, PAGE_SIZE), 0);
	for (unsigned i = seed;; i++) {
		struct plat_map m = {
			.addr = 0x1000000, .size = PAGE_SIZE, .prot = PROT_READ, .fd = fd
		};
		struct guest child = *g;
		long err = 0;
		switch (i % 6) {
		case 0:
			err = ops->map(g->ctx, &m);
			break;
		case 1:
			err = ops->as_fork(g->ctx, &child.as, &child.ctx);
			if (err == 0)
				rig_free(&child);
			break;
		case 2:
			err = ops->ctx_clone(g->ctx, &child.ctx);
			if (err == 0)
				ops->ctx_free(child.ctx);
			break;
		case 3:
			ops->run(g->ctx, &g->regs, &g->ev);
			err = g->ev.kind == PLAT_DEAD ? -ESRCH : 0;
			break;
		case 4:
			err = ops->futex(g->ctx, wake, NULL);
			break;
		case 5:
			err = ops->unmap(g->ctx, 0x1000000, PAGE_SIZE);
			break;
		}
		if (err == -ESRCH)
			break;
		/* A fork whose child or parent was killed underway may fail softly. */
		CHECK(err == 0 || err == -EAGAIN);
	}
	close(fd);
}

static void test_random_moments(const struct platform_ops *ops)
{
	uint64_t end = rig_now_ns() + 6000000000u;

	for (unsigned i = 0; i < 150 && rig_now_ns() < end; i++) {
		struct guest g;
		start(&g, ops);
		kill_in(&g, i * 97 % 6000);
		work_until_dead(&g, i);
		rig_free(&g);
	}
	struct guest g;
	start(&g, ops);
	rig_syscall(&g, 39);
	rig_free(&g);
}

/* Each allocation fails in turn: -ENOMEM, nothing leaks, and the next attempt works. */
static void test_no_memory(const struct platform_ops *ops)
{
	struct guest g;
	struct plat_as *as;
	struct plat_ctx *ctx;

	start(&g, ops);
	size_t live = mem_live_count();
	for (int what = 0; what < 3; what++)
		for (unsigned n = 1;; n++) {
			mem_fail_nth(n);
			int err = what == 0   ? ops->as_new(&as, &ctx)
				  : what == 1 ? ops->as_fork(g.ctx, &as, &ctx)
					      : ops->ctx_clone(g.ctx, &ctx);
			mem_fail_nth(0);
			if (err) {
				CHECK_EQ(err, -ENOMEM);
				CHECK_EQ(mem_live_count(), live);
				continue;
			}
			rig_syscall(&g, 39);
			ops->ctx_free(ctx);
			if (what < 2)
				ops->as_free(as);
			for (int i = 0; i < 1000 && mem_live_count() != live; i++)
				usleep(1000);
			CHECK_EQ(mem_live_count(), live);
			break;
		}
	rig_free(&g);
}

/* A sentry with many stubs, for ever. */
static void busy(const struct platform_ops *ops)
{
	static struct guest g[6];

	start(&g[0], ops);
	for (int i = 1; i < 5; i++)
		rig_fork(&g[0], &g[i]);
	for (;;) {
		rig_syscall(&g[1], 39);
		rig_fork(&g[0], &g[5]);
		rig_syscall(&g[5], 39);
		rig_free(&g[5]);
	}
}

static void test_sentry_killed(const struct platform_ops *ops)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned i = 0; i < 40; i++) {
		int pid = rig_spawn(ops, busy, 30);
		int status, left = 5000;
		/* Early ones hit the start, later ones forks underway. */
		usleep(i < 15 ? i * 400 : 10000 + i * 733);
		kill(pid, SIGKILL);
		/* All orphans come to us; they must end without any help. */
		while (left > 0) {
			int got = waitpid(-1, &status, WNOHANG | __WALL);
			if (got < 0)
				break;
			if (got == 0) {
				usleep(1000);
				left--;
			}
		}
		CHECK(left > 0);
		CHECK_EQ(rig_children_of(getpid()), 0);
	}
}

static const struct rig_test tests[] = {
	{ "killed in each state", test_each_state, 0, false },
	{ "killed at random moments", test_random_moments, 60, false },
	{ "no memory", test_no_memory, 0, false },
	{ "sentry killed", test_sentry_killed, 60, true },
};

int main(void)
{
	return rig_main("platform: death", tests, ARRAY_SIZE(tests));
}

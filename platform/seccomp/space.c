/*
 * Birth and death of address spaces and contexts.
 *
 * fork, in one ordered sequence of the parent thread: map the child's slot (notified, so that the
 * memfd is lent for that call only), clone with CLONE_PARENT onto the frame that the sentry made in
 * that slot, unmap the slot again. All other slots are MADV_DONTFORK, so the child has its own slot
 * and no other. The child announces itself (notify.c), checks that the sentry lives, and parks.
 *
 * The first thread of a process never exits while others live: the host kernel would take the
 * memory of a process whose leader is gone as gone for process_vm_readv. It stays parked and serves
 * the next clone.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/host/host.h"
#include "platform/seccomp/filter.h"
#include "platform/seccomp/internal.h"
#include "platform/stub/boot.h"

/* A new thread parks within microseconds; after this long something holds it back on purpose. */
#define BIRTH_STEP_MS 50
#define BIRTH_STEPS 400

/* Where the sentry builds a frame in a slot. */
static uint32_t built_fp_off(void)
{
	return (uint32_t)((STUB_SLOT_SIZE - fp_size()) & ~63ul);
}

static uint32_t built_frame_off(void)
{
	/* As at the entry of a function: rsp + 8 is a multiple of 16. */
	return (uint32_t)(((built_fp_off() - sizeof(struct frame)) & ~15ul) - 8);
}

/* Fills a new slot: a frame to return to with the FP state of `from`, or a fresh one. */
static void slot_prepare(struct plat_ctx *ctx, const struct plat_ctx *from)
{
	uint8_t *base = (uint8_t *)ctx->sh;
	uint8_t *fp = base + built_fp_off();
	struct frame f = { 0 };

	memset(ctx->sh, 0, sizeof(*ctx->sh));
	ctx->sh->turn = TURN_STUB;
	ctx->sh->has_fsgs = sec.has_fsgs;
	ctx->sh->tid = 1;
	if (from) {
		memcpy(fp, (const uint8_t *)from->sh + from->fp_off, fp_size());
		fp_sanitise(fp);
	} else {
		fp_init(fp);
	}
	/* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS. */
	f.uc.flags = 7;
	f.uc.stack_sp = stub_slot_addr(ctx->slot) + STUB_STACK_OFF;
	f.uc.stack_flags = 1u << 31; /* SS_AUTODISARM */
	f.uc.stack_size = STUB_STACK_SIZE;
	f.uc.mc.fpstate = stub_slot_addr(ctx->slot) + built_fp_off();
	f.uc.mc.eflags = 0x202;
	f.uc.mc.cs = 0x33;
	f.uc.mc.ss = 0x2b;
	memcpy(base + built_frame_off(), &f, sizeof(f));
	ctx->fp_off = built_fp_off();
	ctx->uc_off = built_frame_off() + (uint32_t)offsetof(struct frame, uc);
}

static uint64_t frame_sp(const struct plat_ctx *ctx)
{
	return stub_slot_addr(ctx->slot) + built_frame_off();
}

static struct plat_ctx *ctx_alloc(struct plat_as *as, uint32_t slot)
{
	struct plat_ctx *ctx = mem_zalloc(sizeof(*ctx));

	if (!ctx)
		return NULL;
	list_init(&ctx->link);
	list_init(&ctx->pending);
	ctx->as = as;
	ctx->slot = slot;
	ctx->sh = slot_shared(slot);
	return ctx;
}

static struct plat_as *as_alloc(void)
{
	struct plat_as *as = mem_zalloc(sizeof(*as));

	if (!as)
		return NULL;
	mutex_init(&as->mu, RANK_PLATFORM);
	list_init(&as->link);
	list_init(&as->ctxs);
	as->slots = SLOT_NONE;
	as->idle_slots = SLOT_NONE;
	return as;
}

/* The process is gone and nobody refers to it. */
static void as_destroy(struct plat_as *as)
{
	slots_release(&as->slots);
	mem_free(as->leader);
	mutex_fini(&as->mu);
	mem_free(as);
}

static void ctx_link(struct plat_ctx *ctx)
{
	mutex_lock_nested(&sec.mu);
	list_add_tail(&ctx->as->ctxs, &ctx->link);
	ctx->as->live++;
	mutex_unlock(&sec.mu);
}

static bool is_own_child(int pid)
{
	siginfo_t si;

	return pid > 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       si.si_pid == 0;
}

/* Waits for a new thread to park. `pid` is the child as its parent claims, 0 for a thread. */
static int await_birth(struct plat_ctx *ctx, int pid)
{
	for (int i = 0; i < BIRTH_STEPS; i++) {
		int err = ctx_wait(ctx, BIRTH_STEP_MS);
		if (err != -ETIMEDOUT)
			return err;
		mutex_lock_nested(&sec.mu);
		bool hello = ctx->hello;
		mutex_unlock(&sec.mu);
		if (pid && !hello && !is_own_child(pid))
			return -ESRCH;
	}
	return -ESRCH;
}

static struct stub_command command(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
				   uint64_t a4, uint64_t a5)
{
	return (struct stub_command){ .nr = nr, .args = { a0, a1, a2, a3, a4, a5 } };
}

static void order(struct plat_ctx *ctx, const struct stub_command *c, int lend_fd)
{
	ctx_order(ctx, c->nr, c->args, lend_fd);
}

static struct stub_command map_slot(uint32_t slot)
{
	return command(SYS_mmap, stub_slot_addr(slot), STUB_SLOT_SIZE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, STUB_FD, (uint64_t)slot * STUB_SLOT_SIZE);
}

static uint64_t tid_addr(const struct plat_ctx *ctx)
{
	return stub_slot_addr(ctx->slot) + SH_TID;
}

/* Makes the parent drop the slot of a child that was not born. */
static void unmap_slot(struct plat_ctx *parent, uint32_t slot)
{
	struct stub_command c =
		command(SYS_munmap, stub_slot_addr(slot), STUB_SLOT_SIZE, 0, 0, 0, 0);
	unsigned done;
	int err;

	order(parent, &c, -1);
	int64_t r = ctx_calls(parent, &c, 1, &done);
	if (!ctx_orders_end(parent, &err) || r)
		as_kill(parent->as);
}

/* The ordered sequence in the parent. 0 and the child's pid as claimed, else -errno; *out_mapped
 * tells whether the parent may still have the child's slot. parent->as->mu held. */
static int order_fork(struct plat_ctx *parent, struct plat_ctx *child, int *out_pid,
		      bool *out_mapped)
{
	struct stub_command list[4] = {
		map_slot(child->slot),
		command(SYS_close, STUB_FD, 0, 0, 0, 0, 0),
		command(SYS_clone, CLONE_PARENT | CLONE_CHILD_CLEARTID | SIGCHLD, frame_sp(child),
			0, tid_addr(child), (uint64_t)sec.own_pid, child->cookie),
		command(SYS_munmap, stub_slot_addr(child->slot), STUB_SLOT_SIZE, 0, 0, 0, 0),
	};
	unsigned done;
	int err;

	order(parent, &list[0], sec.slots_fd);
	order(parent, &list[2], -1);
	order(parent, &list[3], -1);
	int64_t r = ctx_calls(parent, list, 4, &done);
	bool all = ctx_orders_end(parent, &err);
	*out_pid = done > 2 ? (int)list[2].result : 0;
	*out_mapped = true;
	if (done == 4 && all && !err) {
		*out_mapped = false;
		return 0;
	}
	if (r == -ESRCH || done > 2 || done == 1) {
		as_kill(parent->as);
		return -ESRCH;
	}
	if (done == 2) {
		unmap_slot(parent, child->slot);
	} else if (err == 0) {
		/* The mapping failed; the descriptor is still there. */
		if (ctx_call(parent, SYS_close, STUB_FD, 0, 0, 0, 0, 0) != 0)
			as_kill(parent->as);
	}
	*out_mapped = atomic_load(&parent->as->dead);
	return r < 0 ? (int)r : -EAGAIN;
}

/* parent->as->mu held. fp_from: whose FP state the child gets, NULL for a fresh one. */
static int fork_locked(struct plat_ctx *parent, struct plat_ctx *child,
		       const struct plat_ctx *fp_from)
{
	bool mapped;
	int pid;

	slot_prepare(child, fp_from);
	child->fs_base = parent->fs_base;
	child->gs_base = parent->gs_base;
	mutex_lock_nested(&sec.mu);
	list_add_tail(&sec.newborn, &child->pending);
	mutex_unlock(&sec.mu);
	int err = order_fork(parent, child, &pid, &mapped);
	if (!err)
		err = await_birth(child, pid) ? -EAGAIN : 0;
	mutex_lock_nested(&sec.mu);
	list_del_init(&child->pending);
	/* A slot that the parent may still see stays with the parent until that is reaped. */
	slot_push(mapped ? &parent->as->slots : &child->as->slots, child->slot);
	mutex_unlock(&sec.mu);
	return err;
}

static int fork_from(struct plat_ctx *parent, const struct plat_ctx *fp_from,
		     struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	uint32_t slot = slot_alloc();
	struct plat_as *as = as_alloc();
	struct plat_ctx *ctx = slot != SLOT_NONE && as ? ctx_alloc(as, slot) : NULL;

	if (!ctx) {
		if (slot != SLOT_NONE) {
			uint32_t back = SLOT_NONE;
			slot_push(&back, slot);
			slots_release(&back);
		}
		if (as)
			as_destroy(as);
		return slot == SLOT_NONE ? -EAGAIN : -ENOMEM;
	}
	ctx->is_leader = true;
	host_random(&ctx->cookie, sizeof(ctx->cookie));
	ctx_link(ctx);
	mutex_lock(&parent->as->mu);
	int err = atomic_load(&parent->as->dead) ? -ESRCH : fork_locked(parent, ctx, fp_from);
	mutex_unlock(&parent->as->mu);
	if (err) {
		space_ctx_free(ctx);
		space_as_free(as);
		return err;
	}
	*out_as = as;
	*out_ctx = ctx;
	return 0;
}

int space_new(struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	int err = fork_from(sec.zygote_ctx, NULL, out_as, out_ctx);

	/* Not the caller's stub is gone but our zygote. */
	return err == -ESRCH ? -EAGAIN : err;
}

int space_fork(struct plat_ctx *caller, struct plat_as **out_as, struct plat_ctx **out_ctx)
{
	return fork_from(caller, caller, out_as, out_ctx);
}

/* as->mu held. Makes the parked first thread serve again. */
static struct plat_ctx *revive_leader(struct plat_ctx *caller)
{
	struct plat_ctx *ctx = caller->as->leader;
	uint8_t *fp = (uint8_t *)ctx->sh + ctx->fp_off;

	caller->as->leader = NULL;
	memcpy(fp, (const uint8_t *)caller->sh + caller->fp_off, fp_size());
	fp_sanitise(fp);
	atomic_store(&ctx->kicked, false);
	mutex_lock_nested(&sec.mu);
	caller->as->live++;
	mutex_unlock(&sec.mu);
	return ctx;
}

/* The ordered sequence of a new thread; 0 and its tid, or -errno. as->mu held. */
static int order_thread(struct plat_ctx *caller, struct plat_ctx *ctx, bool map, int *out_tid)
{
	struct stub_command list[4];
	unsigned count = 0, done, mapped = map ? 3 : 0;
	int err;

	if (map) {
		list[count++] = map_slot(ctx->slot);
		list[count++] = command(SYS_close, STUB_FD, 0, 0, 0, 0, 0);
		list[count++] = command(SYS_madvise, stub_slot_addr(ctx->slot), STUB_SLOT_SIZE,
					MADV_DONTFORK, STUB_ASK, 0, 0);
		order(caller, &list[0], sec.slots_fd);
		/* Were it left out, a later child would keep a mapping of a slot that is given to
		 * another process once this one is gone. */
		order(caller, &list[2], -1);
	}
	list[count++] = command(SYS_clone,
				CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
					CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
				frame_sp(ctx), 0, tid_addr(ctx), 0, 0);
	order(caller, &list[count - 1], -1);
	int64_t r = ctx_calls(caller, list, count, &done);
	bool all = ctx_orders_end(caller, &err);
	if (done == count && all) {
		*out_tid = (int)r;
		return 0;
	}
	if (r >= 0 || (done > 0 && done < mapped) || r == -ESRCH) {
		as_kill(caller->as);
		return -ESRCH;
	}
	if (map && done == 0 && err == 0 &&
	    ctx_call(caller, SYS_close, STUB_FD, 0, 0, 0, 0, 0) != 0)
		as_kill(caller->as);
	return (int)r;
}

/* as->mu held. */
static int clone_locked(struct plat_ctx *caller, struct plat_ctx **out_ctx)
{
	struct plat_as *as = caller->as;
	int tid = 0;

	uint32_t slot = slot_idle_take(&as->idle_slots);
	bool map = slot == SLOT_NONE;
	if (map)
		slot = slot_alloc();
	if (slot == SLOT_NONE)
		return -EAGAIN;
	if (map) {
		mutex_lock_nested(&sec.mu);
		slot_push(&as->slots, slot);
		mutex_unlock(&sec.mu);
	}
	struct plat_ctx *ctx = ctx_alloc(as, slot);
	if (!ctx)
		return -ENOMEM;
	ctx->fs_base = caller->fs_base;
	ctx->gs_base = caller->gs_base;
	slot_prepare(ctx, caller);
	ctx_link(ctx);
	int err = order_thread(caller, ctx, map, &tid);
	if (!err && (tid <= 0 || syscall(SYS_tgkill, atomic_load(&as->pid), tid, 0) < 0))
		err = -ESRCH;
	if (!err)
		err = await_birth(ctx, 0);
	if (err) {
		if (err == -ESRCH)
			as_kill(as);
		mutex_lock_nested(&sec.mu);
		list_del_init(&ctx->link);
		as->live--;
		mutex_unlock(&sec.mu);
		mem_free(ctx);
		return err;
	}
	mutex_lock_nested(&sec.mu);
	ctx->tid = tid;
	mutex_unlock(&sec.mu);
	*out_ctx = ctx;
	return 0;
}

int space_clone(struct plat_ctx *caller, struct plat_ctx **out_ctx)
{
	struct plat_as *as = caller->as;
	int err = 0;

	mutex_lock(&as->mu);
	if (atomic_load(&as->dead))
		err = -ESRCH;
	else if (as->leader)
		*out_ctx = revive_leader(caller);
	else
		err = clone_locked(caller, out_ctx);
	mutex_unlock(&as->mu);
	return err;
}

void space_ctx_free(struct plat_ctx *ctx)
{
	struct plat_as *as = ctx->as;

	mutex_lock(&as->mu);
	mutex_lock_nested(&sec.mu);
	bool last = --as->live == 0;
	bool keep = ctx->is_leader && !last;
	if (!keep)
		list_del_init(&ctx->link);
	mutex_unlock(&sec.mu);
	/* The last thread stays parked until as_free() kills the process. */
	if (!last && !keep && !atomic_load(&as->dead)) {
		ctx->sh->op = STUB_OP_EXIT;
		__atomic_store_n(&ctx->sh->turn, TURN_STUB, __ATOMIC_SEQ_CST);
		futex_wake(&ctx->sh->turn);
		slot_idle_push(&as->idle_slots, ctx->slot);
	}
	if (keep)
		as->leader = ctx;
	mutex_unlock(&as->mu);
	if (!keep)
		mem_free(ctx);
}

void space_as_free(struct plat_as *as)
{
	mutex_lock(&sec.mu);
	BUG_ON(as->live != 0);
	/* The kernel must tell of its death first; never linked means never born. */
	bool gone = atomic_load(&as->dead) || !as->linked;
	as->freed = true;
	if (!gone)
		as_kill(as);
	mutex_unlock(&sec.mu);
	if (gone)
		as_destroy(as);
}

bool space_child_event(int pid, int status)
{
	struct plat_as *as = NULL;

	mutex_lock(&sec.mu);
	list_for_each(l, &sec.pids[(unsigned)pid % PID_BUCKETS]) {
		as = list_entry(l, struct plat_as, link);
		if (atomic_load(&as->pid) == pid)
			break;
		as = NULL;
	}
	if (!as || WIFSTOPPED(status) || WIFCONTINUED(status)) {
		mutex_unlock(&sec.mu);
		return as != NULL;
	}
	atomic_store(&as->dead, true);
	list_del_init(&as->link);
	list_for_each(l, &as->ctxs) {
		struct plat_ctx *ctx = list_entry(l, struct plat_ctx, link);
		__atomic_store_n(&ctx->sh->turn, TURN_DEAD, __ATOMIC_SEQ_CST);
		futex_wake(&ctx->sh->turn);
	}
	bool freed = as->freed;
	mutex_unlock(&sec.mu);
	if (as == sec.zygote)
		log_warn("the stub zygote was killed (status %#x); no new program can start",
			 status);
	if (freed)
		as_destroy(as);
	return true;
}

void space_spread(const void *cpus, size_t size)
{
	int notifier = atomic_load(&sec.notifier_tid);

	if (notifier)
		sched_setaffinity(notifier, size, cpus);
	mutex_lock(&sec.mu);
	for (size_t i = 0; i < PID_BUCKETS; i++) {
		list_for_each(l, &sec.pids[i]) {
			struct plat_as *as = list_entry(l, struct plat_as, link);
			list_for_each(c, &as->ctxs) {
				int tid = list_entry(c, struct plat_ctx, link)->tid;
				if (tid)
					sched_setaffinity(tid, size, cpus);
			}
		}
	}
	mutex_unlock(&sec.mu);
}

static int await_zygote(struct plat_ctx *ctx, int pid)
{
	siginfo_t si;

	for (;;) {
		if (ctx_wait(ctx, 20) == 0)
			return 0;
		memset(&si, 0, sizeof(si));
		if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG) < 0 || si.si_pid == pid) {
			log_error("the first stub ended at step %d of its start", si.si_status);
			return -EIO;
		}
	}
}

int space_boot(void)
{
	static struct filter filter;
	struct sock_fprog prog;
	struct boot_spec spec = { .slots_fd = sec.slots_fd, .keep_fd = -1, .filter = &prog };
	int pid;

	filter_build(&filter);
	prog = (struct sock_fprog){ .len = (unsigned short)filter.len, .filter = filter.code };
	struct plat_as *as = as_alloc();
	struct plat_ctx *ctx = as ? ctx_alloc(as, slot_alloc()) : NULL;
	if (!ctx)
		return -ENOMEM;
	slot_prepare(ctx, NULL);
	ctx->is_leader = true;
	ctx_link(ctx);
	int err = boot_first_stub(&spec, &sec.info, &pid);
	if (err)
		return err;
	ctx->tid = pid;
	sec.zygote = as;
	sec.zygote_ctx = ctx;
	return 0;
}

int space_boot_wait(void)
{
	struct plat_as *as = sec.zygote;
	struct plat_ctx *ctx = sec.zygote_ctx;
	struct stub_command list[2] = {
		command(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE, 0, 0, 0),
		command(SYS_munmap, boot_temp_addr(), BOOT_TEMP_SIZE, 0, 0, 0, 0),
	};
	unsigned done;
	int err = await_zygote(ctx, ctx->tid);

	if (err)
		return err;
	sec.listener = (int)ctx->sh->result;
	atomic_store(&as->pid, ctx->tid);
	as->linked = true;
	slot_push(&as->slots, ctx->slot);
	list_add(&sec.pids[(unsigned)ctx->tid % PID_BUCKETS], &as->link);
	return ctx_calls(ctx, list, ARRAY_SIZE(list), &done) == 0 ? 0 : -EIO;
}

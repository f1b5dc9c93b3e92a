/*
 * The slot of a stub thread full of arbitrary bytes, as a hostile guest can make it: whatever it
 * says, the sentry reads inside the slot only, gives events of the known kinds, and writes back
 * registers that the kernel accepts.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "platform/seccomp/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOT 3u

/* Input: 16 words of control, then bytes that fill the top of the signal stack. */
static void fill_slot(struct stub_shared *sh, const uint8_t *data, size_t size)
{
	uint8_t *base = (uint8_t *)sh;
	size_t head = MIN(size, 128), rest = MIN(size - head, STUB_STACK_SIZE);

	memset(base, 0, STUB_SLOT_SIZE);
	memcpy(sh, data, head);
	memcpy(base + STUB_SLOT_SIZE - rest, data + head, rest);
	/* Half of the inputs point near the truth, or the checks would refuse nearly all. */
	if (size > 1 && (data[1] & 1)) {
		uint64_t top = stub_slot_addr(SLOT) + STUB_SLOT_SIZE;
		uint64_t fp = (top - fp_size()) & ~63ul;
		struct frame *f =
			(struct frame *)(void *)(base + STUB_SLOT_SIZE - (top - fp) - 512);
		sh->uc = fp - 512 + offsetof(struct frame, uc) - (data[1] >> 4);
		sh->si = fp - 512 + offsetof(struct frame, si);
		if (data[1] & 2)
			f->uc.mc.fpstate = fp + (data[1] & 4 ? 64 : 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *slot, *image;
	struct plat_as as = { .slots = SLOT_NONE };
	struct plat_event ev;
	struct regs regs;

	if (!slot) {
		if (fp_measure())
			abort();
		/* Exactly one slot, so that the sanitizer sees any step out of it. */
		slot = aligned_alloc(4096, STUB_SLOT_SIZE);
		image = malloc(fp_size());
		sec.has_fsgs = true;
	}
	struct plat_ctx ctx = { .as = &as, .slot = SLOT, .sh = (struct stub_shared *)(void *)slot };
	fill_slot(ctx.sh, data, size);
	if (!seccomp_collect(&ctx, &regs, &ev))
		return 0;
	if (ev.kind == PLAT_FAULT && ev.signo != SIGSEGV && ev.signo != SIGBUS &&
	    ev.signo != SIGFPE && ev.signo != SIGILL && ev.signo != SIGTRAP)
		abort();
	if (ev.kind == PLAT_DEAD)
		abort();
	if (seccomp_platform.fp_get(&ctx, image) || seccomp_platform.fp_set(&ctx, image))
		abort();
	seccomp_load_regs(&ctx, &regs);
	const struct frame_ucontext *uc = (const void *)(slot + ctx.uc_off);
	if ((uc->mc.cs != 0x33 && uc->mc.cs != 0x23) || uc->mc.ss != 0x2b ||
	    !(uc->mc.eflags & 0x200) || (uc->mc.eflags & 0x3000) || uc->sigmask != 0 ||
	    regs.fs_base >= STUB_TOP)
		abort();
	return 0;
}

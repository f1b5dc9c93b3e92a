/*
 * The frame of a signal handler on the guest's stack and the way back: arch/x86/kernel/signal_64.c.
 * The layout is ABI: unwinders and garbage collectors read and change it. From high to low
 * addresses: red zone (128 bytes), FP image (64-byte aligned), struct rt_frame whose first word is
 * the handler's return address, so that rsp + 8 is 16-byte aligned as after a call.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/task.h"

#define RED_ZONE 128
#define USER_CS 0x33
#define USER_SS 0x2b

#define K_SS_AUTODISARM (1u << 31)
#define K_SS_FLAG_BITS K_SS_AUTODISARM
#define K_MINSIGSTKSZ 2048 /* sigaltstack's lower bound on x86 */

#define UC_FP_XSTATE 1u
#define UC_SIGCONTEXT_SS 2u
#define UC_STRICT_RESTORE_SS 4u

#define EFLAGS_DF 0x400ull
#define EFLAGS_TF 0x100ull
#define EFLAGS_RF 0x10000ull
/* What sigreturn takes from the frame: AC OF DF TF SF ZF AF PF CF RF. */
#define EFLAGS_RESTORED 0x50dd5ull

/* The legacy region of an XSAVE image ends with sw_reserved (struct _fpx_sw_bytes). */
#define FX_SIZE 512
#define FX_SW_OFF 464
#define FX_MAGIC1 0x46505853u
#define FX_FCW_INIT 0x37f
#define FX_MXCSR_OFF 24
#define FX_MXCSR_INIT 0x1f80
#define XHDR_OFF 512
#define XHDR_SIZE 64
#define XFEATURE_FP_SSE 3u

struct k_sigcontext {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate;
	uint64_t reserved[8];
};
_Static_assert(sizeof(struct k_sigcontext) == 256, "sigcontext ABI");

struct rt_frame {
	uint64_t pretcode;
	uint64_t uc_flags;
	uint64_t uc_link;
	struct k_stack uc_stack;
	struct k_sigcontext mc;
	uint64_t sigmask;
	struct k_siginfo info;
};
_Static_assert(sizeof(struct rt_frame) == 440, "rt_sigframe ABI");

/* ---- alternate stack ------------------------------------------------------------------------- */

static bool stack_holds(const struct k_stack *ss, uint64_t sp)
{
	return sp > ss->sp && sp - ss->sp <= ss->size;
}

bool sigstack_contains(const struct k_stack *ss, uint64_t sp)
{
	/* With autodisarm the stack is forgotten while a handler runs on it, so nobody is ever "on"
	 * it. */
	return !((uint32_t)ss->flags & K_SS_AUTODISARM) && stack_holds(ss, sp);
}

int sigstack_flags(const struct k_stack *ss, uint64_t sp)
{
	if (ss->size == 0)
		return SS_DISABLE;
	return sigstack_contains(ss, sp) ? SS_ONSTACK : 0;
}

int sigstack_set(struct task *t, const struct k_stack *ss, uint64_t sp)
{
	uint32_t mode = (uint32_t)ss->flags & ~K_SS_FLAG_BITS;

	if (sigstack_contains(&t->altstack, sp))
		return -EPERM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
		return -EINVAL;
	if (mode == SS_DISABLE) {
		t->altstack = (struct k_stack){ .flags = ss->flags };
		return 0;
	}
	if (ss->size < K_MINSIGSTKSZ)
		return -ENOMEM;
	t->altstack = (struct k_stack){ .sp = ss->sp, .size = ss->size, .flags = ss->flags };
	return 0;
}

/* ---- building -------------------------------------------------------------------------------- */

/* Chooses the addresses; false when an alternate stack would overflow. */
static bool place_frame(struct task *t, const struct k_sigaction *sa, size_t fp_size,
			uint64_t *out_frame, uint64_t *out_fp)
{
	const struct k_stack *ss = &t->altstack;
	uint64_t sp = t->regs.rsp - RED_ZONE;
	bool nested = sigstack_contains(ss, t->regs.rsp), entering = false;

	if ((sa->flags & K_SA_ONSTACK) && sigstack_flags(ss, t->regs.rsp) == 0) {
		sp = ss->sp + ss->size;
		entering = true;
	}
	sp = (sp - fp_size) & ~63ull;
	*out_fp = sp;
	sp = ((sp - sizeof(struct rt_frame)) & ~15ull) - 8;
	*out_frame = sp;
	return !(nested || entering) || stack_holds(ss, sp);
}

static void fill_context(struct task *t, struct k_sigcontext *mc, uint64_t fp, uint64_t oldmask)
{
	const struct regs *r = &t->regs;

	*mc = (struct k_sigcontext){
		.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.rdi = r->rdi,
		.rsi = r->rsi,
		.rbp = r->rbp,
		.rbx = r->rbx,
		.rdx = r->rdx,
		.rax = r->rax,
		.rcx = r->rcx,
		.rsp = r->rsp,
		.rip = r->rip,
		.eflags = r->eflags,
		.cs = USER_CS,
		.ss = USER_SS,
		.err = t->fault_err,
		.trapno = t->fault_trapno,
		.cr2 = t->fault_addr,
		.oldmask = oldmask,
		.fpstate = fp,
	};
}

/* Turns an image into the state that a handler starts with: everything at its initial value. */
static void fp_reset(uint8_t *image, size_t size)
{
	const uint16_t fcw = FX_FCW_INIT;
	const uint32_t mxcsr = FX_MXCSR_INIT;

	memset(image, 0, FX_SW_OFF);
	memcpy(image, &fcw, sizeof(fcw));
	memcpy(image + FX_MXCSR_OFF, &mxcsr, sizeof(mxcsr));
	if (size >= XHDR_OFF + XHDR_SIZE)
		memset(image + XHDR_OFF, 0, XHDR_SIZE);
}

/* Copies the FP state to the guest's stack and resets it. */
static int save_fp(struct task *t, uint64_t addr, size_t size)
{
	uint8_t *image = mem_zalloc(size);

	if (!image)
		return -ENOMEM;
	int err = plat->fp_get(t->ctx, image);
	if (!err)
		err = guest_write(t, gaddr(addr), image, size);
	if (!err) {
		fp_reset(image, size);
		err = plat->fp_set(t->ctx, image);
	}
	mem_free(image);
	return err;
}

static void enter_handler(struct task *t, int sig, const struct k_sigaction *sa, uint64_t frame)
{
	struct regs *r = &t->regs;

	r->rdi = (uint64_t)sig;
	r->rax = 0;
	r->rsi = frame + offsetof(struct rt_frame, info);
	r->rdx = frame + offsetof(struct rt_frame, uc_flags);
	r->rip = sa->handler;
	r->rsp = frame;
	r->cs = USER_CS;
	r->ss = USER_SS;
	r->eflags &= ~(EFLAGS_DF | EFLAGS_TF | EFLAGS_RF);
	r->orig_rax = UINT64_MAX;
}

int sigframe_setup(struct task *t, int sig, const struct k_siginfo *info,
		   const struct k_sigaction *sa, uint64_t oldmask)
{
	size_t fp_size = plat->info()->fp_size;
	uint64_t addr, fp;
	struct rt_frame f = {
		.pretcode = sa->restorer,
		.uc_flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.uc_stack = t->altstack,
		.sigmask = oldmask,
		.info = *info,
	};

	/* x86-64 has no other way back than the restorer that the C library gives. */
	if (!(sa->flags & K_SA_RESTORER) || !place_frame(t, sa, fp_size, &addr, &fp))
		return -EFAULT;
	if (fp_size > FX_SIZE)
		f.uc_flags |= UC_FP_XSTATE;
	fill_context(t, &f.mc, fp, oldmask);
	int err = guest_write(t, gaddr(addr), &f, sizeof(f));
	if (!err)
		err = save_fp(t, fp, fp_size);
	if (err)
		return -EFAULT;
	if ((uint32_t)t->altstack.flags & K_SS_AUTODISARM)
		t->altstack = (struct k_stack){ .flags = SS_DISABLE };
	enter_handler(t, sig, sa, addr);
	return 0;
}

/* ---- the way back ---------------------------------------------------------------------------- */

static void restore_regs(struct regs *r, const struct k_sigcontext *mc)
{
	r->r8 = mc->r8;
	r->r9 = mc->r9;
	r->r10 = mc->r10;
	r->r11 = mc->r11;
	r->r12 = mc->r12;
	r->r13 = mc->r13;
	r->r14 = mc->r14;
	r->r15 = mc->r15;
	r->rdi = mc->rdi;
	r->rsi = mc->rsi;
	r->rbp = mc->rbp;
	r->rbx = mc->rbx;
	r->rdx = mc->rdx;
	r->rax = mc->rax;
	r->rcx = mc->rcx;
	r->rsp = mc->rsp;
	r->rip = mc->rip;
	r->eflags = (r->eflags & ~EFLAGS_RESTORED) | (mc->eflags & EFLAGS_RESTORED);
	/* LINUX: takes cs and ss from the frame. A 32-bit segment would leave the filter's world.
	 */
	r->cs = USER_CS;
	r->ss = USER_SS;
	r->orig_rax = UINT64_MAX;
}

/* The extended part of the image is used only if sw_reserved says that it is there and whole. */
static bool fp_is_extended(const uint8_t *image, size_t size)
{
	uint32_t magic, ext_size;

	memcpy(&magic, image + FX_SW_OFF, sizeof(magic));
	memcpy(&ext_size, image + FX_SW_OFF + 4, sizeof(ext_size));
	return size > FX_SIZE && magic == FX_MAGIC1 && ext_size <= size &&
	       ext_size >= XHDR_OFF + XHDR_SIZE;
}

static int restore_fp(struct task *t, uint64_t addr)
{
	size_t size = plat->info()->fp_size;
	uint8_t *image = mem_zalloc(size);
	int err = 0;

	if (!image)
		return -ENOMEM;
	if (addr == 0) {
		/* The current image supplies sw_reserved. */
		err = plat->fp_get(t->ctx, image);
		fp_reset(image, size);
	} else {
		err = guest_read(t, image, gaddr(addr), MIN(size, FX_SIZE));
		if (!err && fp_is_extended(image, size)) {
			err = guest_read(t, image, gaddr(addr), size);
		} else if (!err && size >= XHDR_OFF + XHDR_SIZE) {
			/* A bare FXSAVE area: the rest is at its initial value. */
			uint8_t *own = mem_zalloc(size);
			err = own ? plat->fp_get(t->ctx, own) : -ENOMEM;
			if (!err) {
				const uint64_t have = XFEATURE_FP_SSE;
				memcpy(image + FX_SW_OFF, own + FX_SW_OFF, FX_SIZE - FX_SW_OFF);
				memcpy(image + size - 4, own + size - 4, 4);
				memcpy(image + XHDR_OFF, &have, sizeof(have));
			}
			mem_free(own);
		}
	}
	if (!err)
		err = plat->fp_set(t->ctx, image);
	mem_free(image);
	return err;
}

long signal_sigreturn(struct task *t)
{
	struct rt_frame f;
	/* The handler's ret has taken pretcode off the stack. */
	uint64_t addr = t->regs.rsp - 8;

	/* info is not read back. */
	if (guest_read(t, &f, gaddr(addr), offsetof(struct rt_frame, info)) != 0)
		goto bad_frame;
	signal_set_blocked(t, f.sigmask);
	restore_regs(&t->regs, &f.mc);
	t->regs_replaced = true;
	if (restore_fp(t, f.mc.fpstate) != 0)
		goto bad_frame;
	/* Errors other than a bad address are ignored, as the kernel does. */
	(void)!sigstack_set(t, &f.uc_stack, t->regs.rsp);
	return (long)t->regs.rax;

bad_frame:
	t->regs_replaced = true;
	signal_force_segv(t, 0);
	return 0;
}

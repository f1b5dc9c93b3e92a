/* Signal frames and XSAVE images: see frame.h. */
#include "platform/stub/frame.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "platform/stub/layout.h"

#define FP_MAGIC1 0x46505853u
#define FP_MAGIC2 0x46505845u
#define FP_MAX 12288 /* AMX included; a frame must fit the signal stack twice */
#define FP_SW_OFF 464
#define FP_HEADER_OFF 512
#define FP_HEADER_SIZE 64
#define FP_LEGACY_SIZE 512

#define EFLAGS_IF 0x200u
#define EFLAGS_ONE 0x2u
/* CF PF AF ZF SF TF DF OF NT RF AC ID: what user code can set itself. */
#define EFLAGS_USER 0x254dd5u

/* Software-reserved bytes of the image. */
struct fp_sw {
	uint32_t magic1;
	uint32_t extended_size; /* with the trailing magic word */
	uint64_t features;
	uint32_t size; /* without */
	uint32_t pad[7];
};

static struct fp_sw fp_sw;
static uint32_t fp_mxcsr_mask;

static void measure_handler(int signo, siginfo_t *si, void *context)
{
	const ucontext_t *uc = context;
	const uint8_t *image = (const uint8_t *)uc->uc_mcontext.fpregs;

	(void)signo;
	(void)si;
	if (!image)
		return;
	memcpy(&fp_sw, image + FP_SW_OFF, sizeof(fp_sw));
	memcpy(&fp_mxcsr_mask, image + 28, sizeof(fp_mxcsr_mask));
}

int fp_measure(void)
{
	struct sigaction sa = { .sa_sigaction = measure_handler, .sa_flags = SA_SIGINFO };
	struct sigaction old;
	sigset_t set, old_set;

	memset(&fp_sw, 0, sizeof(fp_sw));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigaction(SIGUSR1, &sa, &old) < 0)
		return -errno;
	sigprocmask(SIG_UNBLOCK, &set, &old_set);
	raise(SIGUSR1);
	sigprocmask(SIG_SETMASK, &old_set, NULL);
	sigaction(SIGUSR1, &old, NULL);
	if (fp_mxcsr_mask == 0)
		fp_mxcsr_mask = 0xffbf;
	/* A CPU without XSAVE has no business here; nor has one whose image outgrows the signal
	 * stack. */
	if (fp_sw.magic1 != FP_MAGIC1 || fp_sw.extended_size != fp_sw.size + 4 ||
	    fp_sw.size < FP_HEADER_OFF + FP_HEADER_SIZE || fp_sw.extended_size > FP_MAX)
		return -ENOTSUP;
	return 0;
}

size_t fp_size(void)
{
	return fp_sw.extended_size;
}

size_t fp_xsave_size(void)
{
	return fp_sw.size;
}

void fp_init(void *image)
{
	uint8_t *p = image;
	uint16_t fcw = 0x37f;
	uint32_t mxcsr = 0x1f80;

	memset(p, 0, fp_sw.extended_size);
	memcpy(p, &fcw, sizeof(fcw));
	memcpy(p + 24, &mxcsr, sizeof(mxcsr));
	fp_sanitise(p);
}

void fp_sanitise(void *image)
{
	uint8_t *p = image;
	uint32_t mxcsr;
	uint32_t magic2 = FP_MAGIC2;
	uint64_t features;

	memcpy(&mxcsr, p + 24, sizeof(mxcsr));
	mxcsr &= fp_mxcsr_mask;
	memcpy(p + 24, &mxcsr, sizeof(mxcsr));
	memcpy(p + 28, &fp_mxcsr_mask, sizeof(fp_mxcsr_mask));
	memcpy(p + FP_SW_OFF, &fp_sw, sizeof(fp_sw));
	memcpy(&features, p + FP_HEADER_OFF, sizeof(features));
	features &= fp_sw.features;
	memset(p + FP_HEADER_OFF, 0, FP_HEADER_SIZE);
	memcpy(p + FP_HEADER_OFF, &features, sizeof(features));
	memcpy(p + fp_sw.size, &magic2, sizeof(magic2));
}

void regs_sanitise(struct regs *r)
{
	r->eflags = (r->eflags & EFLAGS_USER) | EFLAGS_IF | EFLAGS_ONE;
	if (r->cs != 0x23)
		r->cs = 0x33;
	r->ss = 0x2b;
}

bool regs_has_fsgsbase(void)
{
	return (getauxval(AT_HWCAP2) & 2) != 0;
}

uint64_t regs_base_sanitise(uint64_t base)
{
	return base < STUB_TOP ? base : 0;
}

void frame_get_regs(const struct frame_sigcontext *mc, struct regs *out_regs)
{
	struct regs *r = out_regs;

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
	r->eflags = mc->eflags;
	r->cs = mc->cs;
	r->ss = mc->ss;
	r->ds = r->es = r->fs = r->gs = 0;
}

void frame_set_regs(struct frame_sigcontext *mc, const struct regs *r)
{
	struct regs s = *r;

	regs_sanitise(&s);
	mc->r8 = s.r8;
	mc->r9 = s.r9;
	mc->r10 = s.r10;
	mc->r11 = s.r11;
	mc->r12 = s.r12;
	mc->r13 = s.r13;
	mc->r14 = s.r14;
	mc->r15 = s.r15;
	mc->rdi = s.rdi;
	mc->rsi = s.rsi;
	mc->rbp = s.rbp;
	mc->rbx = s.rbx;
	mc->rdx = s.rdx;
	mc->rax = s.rax;
	mc->rcx = s.rcx;
	mc->rsp = s.rsp;
	mc->rip = s.rip;
	mc->eflags = s.eflags;
	mc->cs = (uint16_t)s.cs;
	mc->ss = (uint16_t)s.ss;
	mc->gs = mc->fs = 0;
}

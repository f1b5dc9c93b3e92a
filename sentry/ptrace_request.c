/*
 * Guest ptrace(2), the tracer's side: attaching, and the requests on a stopped tracee. Between
 * begin_request and end_request the tracee cannot leave its stop, so its registers, its context and
 * its memory are ours to use.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "sentry/plat.h"
#include "sentry/ptrace_guest.h"
#include "sentry/ptrace_priv.h"

/* Requests of arch/x86/include/uapi/asm/ptrace-abi.h, and those that glibc's header lacks. */
#define K_PTRACE_GETREGS 12
#define K_PTRACE_SETREGS 13
#define K_PTRACE_GETFPREGS 14
#define K_PTRACE_SETFPREGS 15
#define K_PTRACE_ARCH_PRCTL 30
#define K_PTRACE_SYSEMU 31

#define NT_X86_XSTATE_NUMBER 0x202
#define OPTIONS_KNOWN (PTRACE_O_MASK & ~(PTRACE_O_TRACESECCOMP | PTRACE_O_SUSPEND_SECCOMP))
#define FX_SIZE 512
#define FX_SW_OFF 464 /* sw_reserved: magic1, extended size, features, size */
#define FX_SW_SIZE 48
#define SW_FEATURES_OFF 8
#define USER_CS 0x33
#define USER_SS 0x2b
/* struct user of sys/user.h: PEEKUSER offsets */
#define USER_SIZE 912
#define DEBUGREG_OFF 848

/* ---- attaching ------------------------------------------------------------------------------- */

static int attach_checked(struct task *t, struct task *o, struct tracer *tr)
{
	int err = -EPERM;

	mutex_lock(&tasks_mu);
	mutex_lock(&o->sighand->mu);
	if (!o->exiting && !o->tracer) {
		tracer_attach_locked(tr, t, o);
		/* In a group stop already: it turns that into a stop for the tracer. */
		if (o->stop_parked) {
			o->trap_wanted = true;
			waitq_wake_all(&o->group->cont_wait, 0);
		}
		err = 0;
	}
	mutex_unlock(&o->sighand->mu);
	if (!err && !tr->seized) {
		struct k_siginfo info;
		siginfo_init(&info, SIGSTOP, SI_USER);
		signal_send_task_locked(o, &info);
	}
	mutex_unlock(&tasks_mu);
	return err;
}

static int attach(struct task *t, int pid, bool seize, uint64_t addr, uint64_t data)
{
	if (seize && (addr || (data & ~(uint64_t)OPTIONS_KNOWN)))
		return -EIO;
	struct task *o = task_find(pid);
	if (!o)
		return -ESRCH;
	int err = o->group == t->group ? -EPERM : task_may_access(t, o);
	struct tracer *tr = err ? NULL : mem_zalloc(sizeof(*tr));
	if (!err && !tr)
		err = -ENOMEM;
	if (!err) {
		tr->seized = seize;
		tr->options = seize ? (unsigned)data : 0;
		err = attach_checked(t, o, tr);
		if (err)
			mem_free(tr);
	}
	task_put(o);
	return err;
}

/* The parent becomes our tracer. */
static int trace_me(struct task *t)
{
	struct tracer *tr = mem_zalloc(sizeof(*tr));
	int err = -EPERM;

	if (!tr)
		return -ENOMEM;
	mutex_lock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	struct task *parent = t->group->parent_task;
	if (parent && !t->tracer) {
		tracer_attach_locked(tr, parent, t);
		err = 0;
	}
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	if (err)
		mem_free(tr);
	return err;
}

/* ---- a request's frame ----------------------------------------------------------------------- */

/* Holds o in its stop. -ESRCH when it is not stopped; one that listens counts as running. tasks_mu
 * held. */
static int hold_locked(struct task *o) REQUIRES(tasks_mu)
{
	int err = -ESRCH;

	mutex_lock(&o->sighand->mu);
	if (o->tracer && o->trap_stopped && !o->tracer->listening && !o->kill_pending) {
		o->trap_busy++;
		err = 0;
	}
	mutex_unlock(&o->sighand->mu);
	return err;
}

/* The tracee `pid` of t, referenced and held in its stop unless need_stop is false. -ESRCH when it
 * is not ours or runs. */
static int begin_request(struct task *t, int pid, bool need_stop, struct task **out)
{
	mutex_lock(&tasks_mu);
	struct task *o = task_find_locked(pid);
	int err = o && o->tracer && o->tracer->tracer == t ? 0 : -ESRCH;
	if (!err && need_stop)
		err = hold_locked(o);
	if (!err)
		*out = task_get(o);
	mutex_unlock(&tasks_mu);
	return err;
}

static void end_request(struct task *o)
{
	mutex_lock(&o->sighand->mu);
	o->trap_busy--;
	waitq_wake_all(&o->group->cont_wait, 0);
	mutex_unlock(&o->sighand->mu);
	task_put(o);
}

/* ---- copies past protections ------------------------------------------------------------------
 */

/* One piece inside a page. The protection is lifted and put back by the stopped tracee, with the
 * list of mappings locked. Shared mappings that may not be written are left alone, as the kernel
 * does (FOLL_FORCE). */
static bool force_piece(struct task *o, uint64_t addr, void *buf, size_t n, bool write)
{
	struct mm *mm = o->mm;
	int need = write ? PROT_WRITE : PROT_READ;
	uint64_t page = page_down(addr);
	bool done = false;

	mutex_lock(&mm->mu);
	struct vma *v = vma_find_locked(mm, addr);
	if (v && v->start <= addr &&
	    !(write && (v->flags & VMA_SHARED) && !(v->prot & PROT_WRITE)) &&
	    plat->protect(o->ctx, page, PAGE_SIZE, v->prot | need) == 0) {
		ssize_t r = write ? plat->copy_out(mm->as, addr, buf, n)
				  : plat->copy_in(mm->as, buf, addr, n);
		done = r == (ssize_t)n;
		if (plat->protect(o->ctx, page, PAGE_SIZE, v->prot) != 0)
			log_debug("page %#llx of %d keeps a lifted protection",
				  (unsigned long long)page, o->tid);
	}
	mutex_unlock(&mm->mu);
	return done;
}

static size_t force_copy(struct mm *mm, uint64_t addr, char *buf, size_t n, bool write)
{
	struct task *t = current_task();
	size_t done = 0;

	if (!t || n == 0)
		return 0;
	mutex_lock(&tasks_mu);
	struct task *o = tracee_in_mm_locked(t, mm);
	if (o && hold_locked(o) == 0)
		task_get(o);
	else
		o = NULL;
	mutex_unlock(&tasks_mu);
	if (!o)
		return 0;
	while (o->mm == mm && done < n) {
		size_t part = MIN(n - done, PAGE_SIZE - (addr + done) % PAGE_SIZE);
		if (!force_piece(o, addr + done, buf + done, part, write))
			break;
		done += part;
	}
	end_request(o);
	return done;
}

size_t ptrace_force_in(struct mm *mm, void *dst, uint64_t addr, size_t n)
{
	return force_copy(mm, addr, dst, n, false);
}

size_t ptrace_force_out(struct mm *mm, uint64_t addr, const void *src, size_t n)
{
	return force_copy(mm, addr, (char *)(uintptr_t)src, n, true);
}

/* ---- registers ------------------------------------------------------------------------------- */

static void regs_get(struct task *o, struct regs *r)
{
	*r = o->regs;
	r->orig_rax = o->syscall_nr;
	r->cs = USER_CS;
	r->ss = USER_SS;
	mutex_lock(&o->sighand->mu);
	if (o->tracer && o->tracer->forced_tf)
		r->eflags &= ~EFLAGS_TF;
	mutex_unlock(&o->sighand->mu);
}

/* The platform sanitises flags and segments when it loads them. -EIO for a base outside user space.
 */
static int regs_set(struct task *o, const struct regs *r)
{
	uint64_t max = plat->info()->task_max;

	if (r->fs_base >= max || r->gs_base >= max)
		return -EIO;
	o->regs = *r;
	o->regs.cs = USER_CS;
	o->regs.ss = USER_SS;
	/* The number decides whether a call is made, or restarted; -1 prevents both. */
	o->syscall_nr = (int64_t)r->orig_rax < 0 ? UINT64_MAX : (uint32_t)r->orig_rax;
	return 0;
}

static long peek_user(struct task *t, struct task *o, uint64_t addr, uint64_t data)
{
	struct regs r;
	uint64_t word = 0;

	if (addr % sizeof(word) || addr > USER_SIZE - sizeof(word))
		return -EIO;
	if (addr < sizeof(r)) {
		regs_get(o, &r);
		memcpy(&word, (const char *)&r + addr, sizeof(word));
	}
	return guest_write(t, gaddr(data), &word, sizeof(word));
}

static long poke_user(struct task *o, uint64_t addr, uint64_t data)
{
	struct regs r;

	if (addr % sizeof(data) || addr > USER_SIZE - sizeof(data))
		return -EIO;
	if (addr < sizeof(r)) {
		regs_get(o, &r);
		memcpy((char *)&r + addr, &data, sizeof(data));
		return regs_set(o, &r);
	}
	/* LINUX: has hardware breakpoints; without them only switching all off works. */
	return addr >= DEBUGREG_OFF && data == 0 ? 0 : -EIO;
}

/* The image as the register set shows it: the feature mask at the front of sw_reserved, the rest of
 * it zero. */
static uint8_t *fp_image(struct task *o, size_t *out_size)
{
	size_t size = plat->info()->fp_size;
	uint8_t *image = mem_zalloc(size);
	uint64_t features;

	if (!image)
		return NULL;
	if (plat->fp_get(o->ctx, image) != 0) {
		mem_free(image);
		return NULL;
	}
	memcpy(&features, image + FX_SW_OFF + SW_FEATURES_OFF, sizeof(features));
	memset(image + FX_SW_OFF, 0, FX_SW_SIZE);
	memcpy(image + FX_SW_OFF, &features, sizeof(features));
	/* The second magic behind the image is the frame's, not the state's. */
	*out_size = size > FX_SIZE ? size - sizeof(uint32_t) : FX_SIZE;
	return image;
}

static long fp_get(struct task *t, struct task *o, uint64_t addr, size_t want, size_t *out_size)
{
	size_t size;
	uint8_t *image = fp_image(o, &size);

	if (!image)
		return -ENOMEM;
	*out_size = MIN(want, size);
	int err = guest_write(t, gaddr(addr), image, *out_size);
	mem_free(image);
	return err;
}

static long fp_set(struct task *t, struct task *o, uint64_t addr, size_t size)
{
	size_t whole = plat->info()->fp_size;
	uint8_t *image = mem_zalloc(whole), sw[FX_SW_SIZE];

	if (!image)
		return -ENOMEM;
	int err = plat->fp_get(o->ctx, image);
	memcpy(sw, image + FX_SW_OFF, sizeof(sw));
	if (!err)
		err = guest_read(t, image, gaddr(addr),
				 MIN(size, whole > FX_SIZE ? whole - 4 : whole));
	memcpy(image + FX_SW_OFF, sw, sizeof(sw));
	if (!err)
		err = plat->fp_set(o->ctx, image);
	mem_free(image);
	return err;
}

static long get_regset(struct task *t, struct task *o, uint64_t type, struct iovec *iov)
{
	struct regs r;
	size_t size;
	long err;

	switch (type) {
	case NT_PRSTATUS:
		regs_get(o, &r);
		iov->iov_len = MIN(iov->iov_len, sizeof(r));
		return guest_write(t, gaddr((uintptr_t)iov->iov_base), &r, iov->iov_len);
	case NT_FPREGSET:
	case NT_X86_XSTATE_NUMBER:
		err = fp_get(t, o, (uintptr_t)iov->iov_base,
			     type == NT_FPREGSET ? MIN(iov->iov_len, (size_t)FX_SIZE)
						 : iov->iov_len,
			     &size);
		iov->iov_len = size;
		return err;
	default:
		return -EINVAL;
	}
}

static long set_regset(struct task *t, struct task *o, uint64_t type, struct iovec *iov)
{
	struct regs r;

	switch (type) {
	case NT_PRSTATUS:
		regs_get(o, &r);
		iov->iov_len = MIN(iov->iov_len, sizeof(r));
		if (guest_read(t, &r, gaddr((uintptr_t)iov->iov_base), iov->iov_len) != 0)
			return -EFAULT;
		return regs_set(o, &r);
	case NT_FPREGSET:
		return fp_set(t, o, (uintptr_t)iov->iov_base, MIN(iov->iov_len, (size_t)FX_SIZE));
	case NT_X86_XSTATE_NUMBER:
		return fp_set(t, o, (uintptr_t)iov->iov_base, iov->iov_len);
	default:
		return -EINVAL;
	}
}

static long regset(struct task *t, struct task *o, bool set, uint64_t type, uint64_t data)
{
	struct iovec iov;

	if (guest_read(t, &iov, gaddr(data), sizeof(iov)) != 0)
		return -EFAULT;
	if (type != NT_X86_XSTATE_NUMBER && iov.iov_len % sizeof(uint64_t))
		return -EINVAL;
	long err = set ? set_regset(t, o, type, &iov) : get_regset(t, o, type, &iov);
	return err ? err : guest_write(t, gaddr(data), &iov, sizeof(iov));
}

/* ---- memory, infos --------------------------------------------------------------------------- */

static long peek(struct task *t, struct task *o, uint64_t addr, uint64_t data)
{
	uint64_t word;

	if (mm_force_in(o->mm, &word, addr, sizeof(word)) != (ssize_t)sizeof(word))
		return -EIO;
	return guest_write(t, gaddr(data), &word, sizeof(word));
}

static long poke(struct task *o, uint64_t addr, uint64_t data)
{
	return mm_force_out(o->mm, addr, &data, sizeof(data)) == (ssize_t)sizeof(data) ? 0 : -EIO;
}

static long siginfo(struct task *t, struct task *o, bool set, uint64_t data)
{
	/* Only stops at a signal have one; for the others the kernel makes up SIGTRAP with the
	 * stop's code. */
	struct k_siginfo made, *info = o->trap_info;

	if (o->tracer->kind == TRAP_GROUP && !o->tracer->seized)
		return -EINVAL;
	if (!info) {
		siginfo_init(&made, o->tracer->code & 0x7f, o->tracer->code);
		made.rt.pid = o->group->tgid;
		made.rt.uid = o->cred->uid;
		info = &made;
	}
	return set ? guest_read(t, info, gaddr(data), sizeof(*info))
		   : guest_write(t, gaddr(data), info, sizeof(*info));
}

static long signal_mask(struct task *t, struct task *o, bool set, uint64_t size, uint64_t data)
{
	uint64_t mask = o->restore_blocked ? o->saved_blocked : o->blocked;

	if (size != sizeof(mask))
		return -EINVAL;
	if (!set)
		return guest_write(t, gaddr(data), &mask, sizeof(mask));
	if (guest_read(t, &mask, gaddr(data), sizeof(mask)) != 0)
		return -EFAULT;
	o->restore_blocked = false;
	signal_set_blocked(o, mask);
	return 0;
}

struct k_syscall_info {
	uint8_t op, reserved;
	uint16_t flags;
	uint32_t arch;
	uint64_t ip, sp;
	uint64_t nr_or_rval;
	uint64_t args[6]; /* at an exit the first byte is is_error */
};
#define SYSCALL_INFO_NONE_SIZE 24
#define SYSCALL_INFO_EXIT_SIZE 33
#define SYSCALL_INFO_ENTRY_SIZE 80

static long syscall_info(struct task *t, struct task *o, uint64_t size, uint64_t data)
{
	const struct regs *r = &o->regs;
	struct k_syscall_info si = { .arch = AUDIT_ARCH_X86_64, .ip = r->rip, .sp = r->rsp };
	size_t len = SYSCALL_INFO_NONE_SIZE;

	if (o->tracer->kind == TRAP_SYSCALL_ENTRY) {
		si.op = PTRACE_SYSCALL_INFO_ENTRY;
		si.nr_or_rval = o->syscall_nr;
		const uint64_t args[6] = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 };
		memcpy(si.args, args, sizeof(args));
		len = SYSCALL_INFO_ENTRY_SIZE;
	} else if (o->tracer->kind == TRAP_SYSCALL_EXIT) {
		si.op = PTRACE_SYSCALL_INFO_EXIT;
		si.nr_or_rval = r->rax;
		si.args[0] = (int64_t)r->rax < 0 && (int64_t)r->rax >= -4095;
		len = SYSCALL_INFO_EXIT_SIZE;
	}
	if (guest_write(t, gaddr(data), &si, MIN(size, len)) != 0)
		return -EFAULT;
	return (long)len;
}

static long event_message(struct task *t, struct task *o, uint64_t data)
{
	return guest_write(t, gaddr(data), &o->tracer->message, sizeof(o->tracer->message));
}

static long set_options(struct task *o, uint64_t data)
{
	if (data & ~(uint64_t)OPTIONS_KNOWN)
		return -EINVAL;
	mutex_lock(&o->sighand->mu);
	o->tracer->options = (unsigned)data;
	mutex_unlock(&o->sighand->mu);
	return 0;
}

static long arch_prctl(struct task *t, struct task *o, uint64_t data, uint64_t op)
{
	struct regs r = o->regs;

	switch (op) {
	case 0x1001: /* ARCH_SET_GS */
		r.gs_base = data;
		break;
	case 0x1002: /* ARCH_SET_FS */
		r.fs_base = data;
		break;
	case 0x1003: /* ARCH_GET_FS */
		return guest_write(t, gaddr(data), &r.fs_base, sizeof(r.fs_base));
	case 0x1004: /* ARCH_GET_GS */
		return guest_write(t, gaddr(data), &r.gs_base, sizeof(r.gs_base));
	default:
		return -EINVAL;
	}
	if (data >= plat->info()->task_max)
		return -EPERM;
	o->regs.fs_base = r.fs_base;
	o->regs.gs_base = r.gs_base;
	return 0;
}

/* ---- resuming -------------------------------------------------------------------------------- */

static long resume(struct task *o, enum resume_mode mode, uint64_t sig)
{
	if (sig > SIG_COUNT)
		return -EIO;
	mutex_lock(&o->sighand->mu);
	struct tracer *tr = o->tracer;
	tr->mode = mode;
	if (mode == RESUME_STEP && !(o->regs.eflags & EFLAGS_TF)) {
		o->regs.eflags |= EFLAGS_TF;
		tr->forced_tf = true;
	}
	o->trap_sig = (int)sig;
	o->trap_stopped = false;
	/* end_request wakes it. */
	mutex_unlock(&o->sighand->mu);
	return 0;
}

static long listen_only(struct task *o)
{
	long err = -EIO;

	mutex_lock(&o->sighand->mu);
	if (o->tracer->seized && o->tracer->kind == TRAP_GROUP) {
		o->tracer->listening = true;
		err = 0;
	}
	mutex_unlock(&o->sighand->mu);
	return err;
}

static long detach(struct task *t, int pid, uint64_t sig)
{
	struct task *o;

	if (sig > SIG_COUNT)
		return -EIO;
	int err = begin_request(t, pid, true, &o);
	if (err)
		return err;
	mutex_lock(&tasks_mu);
	tracer_detach_locked(o->tracer, (int)sig);
	mutex_unlock(&tasks_mu);
	end_request(o);
	return 0;
}

/* Requests on a tracee that need not be stopped. */
static long interrupt(struct task *t, int pid)
{
	struct task *o;
	int err = begin_request(t, pid, false, &o);

	if (err)
		return err;
	mutex_lock(&o->sighand->mu);
	err = o->tracer && o->tracer->seized ? 0 : -EIO;
	if (!err && (!o->trap_stopped || o->tracer->listening)) {
		o->trap_wanted = true;
		signal_recalc_locked(o);
	}
	mutex_unlock(&o->sighand->mu);
	task_put(o);
	return err;
}

static long kill_tracee(struct task *t, int pid)
{
	struct k_siginfo info;
	struct task *o;
	int err = begin_request(t, pid, false, &o);

	if (err)
		return err;
	siginfo_init(&info, SIGKILL, SI_USER);
	err = signal_send_task(o, &info);
	task_put(o);
	return err;
}

static long on_stopped(struct task *t, struct task *o, int64_t request, uint64_t addr,
		       uint64_t data)
{
	size_t size;

	switch (request) {
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
		return peek(t, o, addr, data);
	case PTRACE_POKETEXT:
	case PTRACE_POKEDATA:
		return poke(o, addr, data);
	case PTRACE_PEEKUSR:
		return peek_user(t, o, addr, data);
	case PTRACE_POKEUSR:
		return poke_user(o, addr, data);
	case K_PTRACE_GETREGS:
	case K_PTRACE_SETREGS: {
		struct iovec iov = { (void *)(uintptr_t)data, sizeof(struct regs) };
		return request == K_PTRACE_GETREGS ? get_regset(t, o, NT_PRSTATUS, &iov)
						   : set_regset(t, o, NT_PRSTATUS, &iov);
	}
	case K_PTRACE_GETFPREGS:
		return fp_get(t, o, data, FX_SIZE, &size);
	case K_PTRACE_SETFPREGS:
		return fp_set(t, o, data, FX_SIZE);
	case PTRACE_GETREGSET:
	case PTRACE_SETREGSET:
		return regset(t, o, request == PTRACE_SETREGSET, addr, data);
	case PTRACE_GETSIGINFO:
	case PTRACE_SETSIGINFO:
		return siginfo(t, o, request == PTRACE_SETSIGINFO, data);
	case PTRACE_GETSIGMASK:
	case PTRACE_SETSIGMASK:
		return signal_mask(t, o, request == PTRACE_SETSIGMASK, addr, data);
	case PTRACE_GETEVENTMSG:
		return event_message(t, o, data);
	case PTRACE_SETOPTIONS:
		return set_options(o, data);
	case PTRACE_GET_SYSCALL_INFO:
		return syscall_info(t, o, addr, data);
	case K_PTRACE_ARCH_PRCTL:
		return arch_prctl(t, o, addr, data);
	case PTRACE_LISTEN:
		return listen_only(o);
	case PTRACE_CONT:
		return resume(o, RESUME_CONT, data);
	case PTRACE_SYSCALL:
		return resume(o, RESUME_SYSCALL, data);
	case PTRACE_SINGLESTEP:
		return resume(o, RESUME_STEP, data);
	case K_PTRACE_SYSEMU:
		return resume(o, RESUME_SYSEMU, data);
	default:
		return -EIO;
	}
}

long ptrace_request(struct task *t, int64_t request, int pid, uint64_t addr, uint64_t data)
{
	struct task *o;

	switch (request) {
	case PTRACE_TRACEME:
		return trace_me(t);
	case PTRACE_ATTACH:
	case PTRACE_SEIZE:
		return attach(t, pid, request == PTRACE_SEIZE, addr, data);
	case PTRACE_DETACH:
		return detach(t, pid, data);
	case PTRACE_INTERRUPT:
		return interrupt(t, pid);
	case PTRACE_KILL:
		return kill_tracee(t, pid);
	default:
		break;
	}
	int err = begin_request(t, pid, true, &o);
	if (err)
		return err;
	long ret = on_stopped(t, o, request, addr, data);
	end_request(o);
	return ret;
}

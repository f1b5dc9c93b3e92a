/*
 * prctl(2) and arch_prctl(2), personality(2), kcmp(2). An option that no x86 kernel has, or that
 * needs a part of the kernel that we lack, gives EINVAL as a kernel without it does.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/prctl.h>
#include <string.h>

#include "fs/cred.h"
#include "sentry/plat.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

#define CAP_COUNT (CAP_LAST_CAP + 1)
#define CAP_MASK(cap) (1ull << (cap))
#define SECBIT_KEEP_CAPS (1u << 4)
#define SECBIT_KEEP_CAPS_LOCKED (1u << 5)
#define SECBIT_NO_CAP_AMBIENT_RAISE (1u << 6)
#define SECBITS_ALL 0xffu
#define SECBITS_LOCKS 0xaau /* each lock is the bit above the one it locks */
#define MM_MAP_SIZE 104     /* sizeof(struct prctl_mm_map) */
#define VMA_NAME_MAX 80
#define K_PR_GET_AUXV 0x41555856
#define K_PR_SET_PTRACER_ANY UINT64_MAX

/* The words of one call. */
struct prctl_args {
	uint64_t a2, a3, a4, a5;
};

static bool rest_is_zero(const struct prctl_args *a)
{
	return !a->a3 && !a->a4 && !a->a5;
}

static bool all_zero(const struct prctl_args *a)
{
	return !a->a2 && rest_is_zero(a);
}

static long store_int(struct task *t, uint64_t addr, int32_t value)
{
	return guest_write(t, gaddr(addr), &value, sizeof(value));
}

/* ---- name, death signal and other small state -------------------------------------------------
 */

static long set_name(struct task *t, uint64_t addr)
{
	char name[sizeof(t->comm)];
	path_cgp src = { .addr = { addr } };
	ssize_t len = guest_load_str(t, name, sizeof(name), src);

	/* A longer name is cut. */
	if (len == -ENAMETOOLONG)
		len = guest_read(t, name, gaddr(addr), sizeof(name) - 1)
			      ? -EFAULT
			      : (ssize_t)sizeof(name) - 1;
	if (len < 0)
		return len;
	mutex_lock(&t->sighand->mu);
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, name, (size_t)len);
	mutex_unlock(&t->sighand->mu);
	return 0;
}

static long get_name(struct task *t, uint64_t addr)
{
	char name[sizeof(t->comm)];

	mutex_lock(&t->sighand->mu);
	memcpy(name, t->comm, sizeof(name));
	mutex_unlock(&t->sighand->mu);
	return guest_write(t, gaddr(addr), name, sizeof(name));
}

static long set_pdeathsig(struct task *t, uint64_t sig)
{
	if (sig > SIG_COUNT)
		return -EINVAL;
	mutex_lock(&tasks_mu);
	t->pdeath_signal = (int)sig;
	mutex_unlock(&tasks_mu);
	return 0;
}

static long get_pdeathsig(struct task *t, uint64_t addr)
{
	mutex_lock(&tasks_mu);
	int sig = t->pdeath_signal;
	mutex_unlock(&tasks_mu);
	return store_int(t, addr, sig);
}

static long set_dumpable(struct task *t, uint64_t value)
{
	if (value > 1)
		return -EINVAL;
	t->mm->dumpable = (int)value;
	return 0;
}

static long set_subreaper(struct task *t, uint64_t on)
{
	mutex_lock(&tasks_mu);
	t->group->is_subreaper = on != 0;
	mutex_unlock(&tasks_mu);
	return 0;
}

static long get_subreaper(struct task *t, uint64_t addr)
{
	mutex_lock(&tasks_mu);
	bool on = t->group->is_subreaper;
	mutex_unlock(&tasks_mu);
	return store_int(t, addr, on);
}

static long set_no_new_privs(struct task *t, const struct prctl_args *a)
{
	if (a->a2 != 1 || !rest_is_zero(a))
		return -EINVAL;
	t->no_new_privs = true;
	return 0;
}

static long set_timerslack(struct task *t, uint64_t ns)
{
	t->timer_slack_ns = (int64_t)ns <= 0 ? t->default_slack_ns : ns;
	return 0;
}

static long mce_kill(struct task *t, const struct prctl_args *a)
{
	if (a->a4 || a->a5)
		return -EINVAL;
	switch (a->a2) {
	case PR_MCE_KILL_CLEAR:
		if (a->a3)
			return -EINVAL;
		t->mce_kill = 0;
		return 0;
	case PR_MCE_KILL_SET:
		if (a->a3 > PR_MCE_KILL_DEFAULT)
			return -EINVAL;
		t->mce_kill = a->a3 == PR_MCE_KILL_DEFAULT ? 0 : (uint8_t)(a->a3 + 1);
		return 0;
	default:
		return -EINVAL;
	}
}

static long io_flusher(struct task *t, int option, const struct prctl_args *a)
{
	if (!task_capable(t, CAP_SYS_RESOURCE))
		return -EPERM;
	if (!rest_is_zero(a) || a->a2 > (option == PR_SET_IO_FLUSHER))
		return -EINVAL;
	if (option == PR_GET_IO_FLUSHER)
		return t->io_flusher;
	t->io_flusher = a->a2;
	return 0;
}

/* Yama's exception list: what we check on access is identity only, so it is checked and has no
 * effect. */
static long set_ptracer(uint64_t pid)
{
	if (pid == 0 || pid == K_PR_SET_PTRACER_ANY)
		return 0;
	struct task *o = pid > INT32_MAX ? NULL : task_find((int)pid);
	if (!o)
		return -EINVAL;
	task_put(o);
	return 0;
}

/* ---- capabilities -----------------------------------------------------------------------------
 */

static long drop_bounding(struct task *t, uint64_t cap)
{
	if (!task_capable(t, CAP_SETPCAP))
		return -EPERM;
	if (cap >= CAP_COUNT)
		return -EINVAL;
	struct cred *new = cred_copy(t->cred);
	if (!new)
		return -ENOMEM;
	new->cap_bounding &= ~CAP_MASK(cap);
	task_set_cred(t, new);
	return 0;
}

static uint32_t securebits(struct task *t)
{
	return (t->cred->securebits & ~SECBIT_KEEP_CAPS) |
	       (t->securebits_keep_caps ? SECBIT_KEEP_CAPS : 0);
}

static long set_securebits(struct task *t, uint64_t bits)
{
	uint32_t old = securebits(t);
	uint32_t locked = (old & SECBITS_LOCKS) >> 1;

	/* Locked bits and locks themselves stay. */
	if (((old ^ bits) & locked) || (old & SECBITS_LOCKS & ~bits) ||
	    (bits & ~(uint64_t)SECBITS_ALL) || !task_capable(t, CAP_SETPCAP))
		return -EPERM;
	struct cred *new = cred_copy(t->cred);
	if (!new)
		return -ENOMEM;
	new->securebits = (uint32_t)bits & ~SECBIT_KEEP_CAPS;
	t->securebits_keep_caps = bits & SECBIT_KEEP_CAPS;
	task_set_cred(t, new);
	return 0;
}

static long set_keepcaps(struct task *t, uint64_t on)
{
	if (on > 1)
		return -EINVAL;
	if (t->cred->securebits & SECBIT_KEEP_CAPS_LOCKED)
		return -EPERM;
	t->securebits_keep_caps = on;
	return 0;
}

static long cap_ambient(struct task *t, const struct prctl_args *a)
{
	const struct cred *c = t->cred;

	if (a->a4 || a->a5)
		return -EINVAL;
	if (a->a2 == PR_CAP_AMBIENT_CLEAR_ALL ? a->a3 != 0 : a->a3 >= CAP_COUNT)
		return -EINVAL;
	uint64_t bit = CAP_MASK(a->a3), ambient = c->cap_ambient;
	switch (a->a2) {
	case PR_CAP_AMBIENT_IS_SET:
		return !!(ambient & bit);
	case PR_CAP_AMBIENT_CLEAR_ALL:
		ambient = 0;
		break;
	case PR_CAP_AMBIENT_LOWER:
		ambient &= ~bit;
		break;
	case PR_CAP_AMBIENT_RAISE:
		if (!(c->cap_permitted & c->cap_inheritable & bit) ||
		    (c->securebits & SECBIT_NO_CAP_AMBIENT_RAISE))
			return -EPERM;
		ambient |= bit;
		break;
	default:
		return -EINVAL;
	}
	struct cred *new = cred_copy(c);
	if (!new)
		return -ENOMEM;
	new->cap_ambient = ambient;
	task_set_cred(t, new);
	return 0;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

static long set_mm(struct task *t, const struct prctl_args *a)
{
	if (a->a5 || (a->a4 && a->a2 != PR_SET_MM_AUXV && a->a2 != PR_SET_MM_MAP &&
		      a->a2 != PR_SET_MM_MAP_SIZE))
		return -EINVAL;
	if (a->a2 == PR_SET_MM_MAP_SIZE)
		return store_int(t, a->a3, MM_MAP_SIZE);
	/* LINUX: lets CAP_SYS_RESOURCE move the borders that /proc shows; only checkpoint tools do.
	 */
	return -EPERM;
}

static bool is_name_char(char c)
{
	return c >= ' ' && c <= '~' && !strchr("\\`$[]", c);
}

/* The name of an anonymous mapping: checked, not shown. */
static long set_vma_name(struct task *t, const struct prctl_args *a)
{
	char name[VMA_NAME_MAX];

	if (a->a2 != PR_SET_VMA_ANON_NAME)
		return -EINVAL;
	if (a->a5) {
		path_cgp src = { .addr = { a->a5 } };
		ssize_t len = guest_load_str(t, name, sizeof(name), src);
		if (len < 0)
			return len == -ENAMETOOLONG ? -EINVAL : len;
		for (ssize_t i = 0; i < len; i++)
			if (!is_name_char(name[i]))
				return -EINVAL;
	}
	uint64_t end = a->a3 + page_up(a->a4);
	if (a->a3 % PAGE_SIZE || end < a->a3)
		return -EINVAL;
	if (end == a->a3)
		return 0;
	mutex_lock(&t->mm->mu);
	struct vma *v = vma_find_locked(t->mm, a->a3);
	bool mapped = v && v->start < end;
	mutex_unlock(&t->mm->mu);
	return mapped ? 0 : -ENOMEM;
}

static long get_auxv(struct task *t, const struct prctl_args *a)
{
	uint64_t size = t->mm->auxv_words * sizeof(t->mm->auxv[0]);

	if (a->a4 || a->a5)
		return -EINVAL;
	if (guest_write(t, gaddr(a->a2), t->mm->auxv, MIN(size, a->a3)) != 0)
		return -EFAULT;
	return (long)sizeof(t->mm->auxv);
}

static long thp_disable(struct task *t, int option, const struct prctl_args *a)
{
	if (option == PR_GET_THP_DISABLE)
		return all_zero(a) ? (long)t->mm->thp_disable : -EINVAL;
	if (!rest_is_zero(a))
		return -EINVAL;
	t->mm->thp_disable = a->a2;
	return 0;
}

/* The host decides about mitigations; a guest cannot change them. */
static long speculation(int option, const struct prctl_args *a)
{
	if (a->a4 || a->a5 || (option == PR_GET_SPECULATION_CTRL && a->a3))
		return -EINVAL;
	if (a->a2 > 2 /* PR_SPEC_L1D_FLUSH */)
		return -ENODEV;
	return option == PR_GET_SPECULATION_CTRL ? PR_SPEC_NOT_AFFECTED : -ENXIO;
}

/* Options about capabilities and identity; -ENOSYS: not one of them. */
static long prctl_cred(struct task *t, int option, const struct prctl_args *a)
{
	switch (option) {
	case PR_SET_KEEPCAPS:
		return set_keepcaps(t, a->a2);
	case PR_GET_KEEPCAPS:
		return t->securebits_keep_caps;
	case PR_CAPBSET_READ:
		return a->a2 >= CAP_COUNT ? -EINVAL : !!(t->cred->cap_bounding & CAP_MASK(a->a2));
	case PR_CAPBSET_DROP:
		return drop_bounding(t, a->a2);
	case PR_GET_SECUREBITS:
		return (long)securebits(t);
	case PR_SET_SECUREBITS:
		return set_securebits(t, a->a2);
	case PR_CAP_AMBIENT:
		return cap_ambient(t, a);
	case PR_SET_NO_NEW_PRIVS:
		return set_no_new_privs(t, a);
	case PR_GET_NO_NEW_PRIVS:
		return all_zero(a) ? (long)t->no_new_privs : -EINVAL;
	case PR_SET_PTRACER:
		return set_ptracer(a->a2);
	case PR_GET_SECCOMP:
		return 0;
	default:
		return -ENOSYS;
	}
}

/* Options about memory and the machine; -ENOSYS: not one of them. */
static long prctl_machine(struct task *t, int option, const struct prctl_args *a)
{
	switch (option) {
	case PR_GET_TSC:
		return store_int(t, a->a2, PR_TSC_ENABLE);
	case PR_SET_TSC:
		return a->a2 == PR_TSC_ENABLE ? 0 : -EINVAL;
	case PR_SET_MM:
		return set_mm(t, a);
	case PR_SET_VMA:
		return set_vma_name(t, a);
	case K_PR_GET_AUXV:
		return get_auxv(t, a);
	case PR_SET_THP_DISABLE:
	case PR_GET_THP_DISABLE:
		return thp_disable(t, option, a);
	case PR_GET_SPECULATION_CTRL:
	case PR_SET_SPECULATION_CTRL:
		return speculation(option, a);
	case PR_MCE_KILL:
		return mce_kill(t, a);
	case PR_MCE_KILL_GET:
		if (!all_zero(a))
			return -EINVAL;
		return t->mce_kill ? t->mce_kill - 1 : PR_MCE_KILL_DEFAULT;
	case PR_SET_IO_FLUSHER:
	case PR_GET_IO_FLUSHER:
		return io_flusher(t, option, a);
	/* No counters can be opened, so there are none to switch. */
	case PR_TASK_PERF_EVENTS_DISABLE:
	case PR_TASK_PERF_EVENTS_ENABLE:
		return 0;
	default:
		return -ENOSYS;
	}
}

static long prctl_process(struct task *t, int option, const struct prctl_args *a)
{
	switch (option) {
	case PR_SET_PDEATHSIG:
		return set_pdeathsig(t, a->a2);
	case PR_GET_PDEATHSIG:
		return get_pdeathsig(t, a->a2);
	case PR_SET_DUMPABLE:
		return set_dumpable(t, a->a2);
	case PR_GET_DUMPABLE:
		return t->mm->dumpable;
	case PR_SET_NAME:
		return set_name(t, a->a2);
	case PR_GET_NAME:
		return get_name(t, a->a2);
	case PR_SET_CHILD_SUBREAPER:
		return set_subreaper(t, a->a2);
	case PR_GET_CHILD_SUBREAPER:
		return get_subreaper(t, a->a2);
	case PR_SET_TIMERSLACK:
		return set_timerslack(t, a->a2);
	case PR_GET_TIMERSLACK:
		return (long)t->timer_slack_ns;
	case PR_SET_TIMING:
		return a->a2 == PR_TIMING_STATISTICAL ? 0 : -EINVAL;
	case PR_GET_TIMING:
		return PR_TIMING_STATISTICAL;
	case PR_GET_TID_ADDRESS:
		return guest_write(t, gaddr(a->a2), &t->clear_child_tid,
				   sizeof(t->clear_child_tid));
	default:
		return -ENOSYS;
	}
}

long sys_prctl(struct task *t, int option, uint64_t arg2, uint64_t arg3, uint64_t arg4,
	       uint64_t arg5)
{
	const struct prctl_args a = { arg2, arg3, arg4, arg5 };
	long ret = prctl_process(t, option, &a);

	if (ret == -ENOSYS)
		ret = prctl_cred(t, option, &a);
	if (ret == -ENOSYS)
		ret = prctl_machine(t, option, &a);
	return ret == -ENOSYS ? -EINVAL : ret;
}

/* ---- x86 --------------------------------------------------------------------------------------
 */

#ifndef ARCH_GET_CPUID
#define ARCH_GET_CPUID 0x1011
#define ARCH_SET_CPUID 0x1012
#endif

long sys_arch_prctl(struct task *t, int op, uint64_t addr)
{
	switch (op) {
	case ARCH_SET_FS:
	case ARCH_SET_GS:
		if (addr >= plat->info()->task_max)
			return -EPERM;
		if (op == ARCH_SET_FS)
			t->regs.fs_base = addr;
		else
			t->regs.gs_base = addr;
		return 0;
	case ARCH_GET_FS:
		return guest_write(t, gaddr(addr), &t->regs.fs_base, sizeof(t->regs.fs_base));
	case ARCH_GET_GS:
		return guest_write(t, gaddr(addr), &t->regs.gs_base, sizeof(t->regs.gs_base));
	case ARCH_GET_CPUID:
		return 1;
	case ARCH_SET_CPUID:
		return -ENODEV;
	default:
		return -EINVAL;
	}
}

long sys_personality(struct task *t, uint64_t persona)
{
	long old = (long)t->personality;

	if ((uint32_t)persona != UINT32_MAX)
		t->personality = (uint32_t)persona;
	return old;
}

/* ---- kcmp -------------------------------------------------------------------------------------
 */

/* Order of two addresses that says nothing about where they are: equal, or by a scramble of a
 * constant key. */
static long compare(const void *a, const void *b)
{
	uint64_t x = (uintptr_t)a * 0x9e3779b97f4a7c15ull, y = (uintptr_t)b * 0x9e3779b97f4a7c15ull;

	return x == y ? 0 : x < y ? 1 : 2;
}

static struct file *file_of(struct task *o, uint64_t fd)
{
	struct file *f = NULL;

	mutex_lock(&o->mu);
	struct fdtable *files = o->files ? fdtable_get(o->files) : NULL;
	mutex_unlock(&o->mu);
	if (files && fd <= INT32_MAX)
		f = fd_get(files, (int)fd);
	fdtable_put(files);
	return f;
}

static long compare_files(struct task *a, struct task *b, uint64_t fd1, uint64_t fd2)
{
	struct file *f1 = file_of(a, fd1), *f2 = file_of(b, fd2);
	long ret = f1 && f2 ? compare(f1, f2) : -EBADF;

	file_put(f1);
	file_put(f2);
	return ret;
}

static long kcmp(struct task *a, struct task *b, int type, uint64_t idx1, uint64_t idx2)
{
	switch (type) {
	case KCMP_FILE:
		return compare_files(a, b, idx1, idx2);
	case KCMP_VM:
		return compare(a->mm, b->mm);
	case KCMP_FILES:
		return compare(a->files, b->files);
	case KCMP_FS:
		return compare(a->fs, b->fs);
	case KCMP_SIGHAND:
		return compare(a->sighand, b->sighand);
	/* No task has an I/O context, and undo lists hang on the semaphores: there is nothing that
	 * could differ. */
	case KCMP_IO:
	case KCMP_SYSVSEM:
		return 0;
	default:
		return -EINVAL;
	}
}

long sys_kcmp(struct task *t, int pid1, int pid2, int type, uint64_t idx1, uint64_t idx2)
{
	struct task *a = task_find(pid1), *b = task_find(pid2);
	long ret = -ESRCH;

	if (a && b) {
		ret = task_may_access(t, a);
		if (!ret)
			ret = task_may_access(t, b);
		if (!ret)
			ret = kcmp(a, b, type, idx1, idx2);
	}
	task_put(a);
	task_put(b);
	return ret;
}

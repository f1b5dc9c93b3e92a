/* One system call: from six words to a handler and back. See dispatch.h. */
#include "sentry/dispatch.h"

#include <errno.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include "platform/base/log.h"
#include "sentry/restart.h"
#include "sentry/task.h"
#include "sentry/trace.h"

static const struct syscall_entry unknown = { .name = NULL, .fixed_errno = ENOSYS };

static const struct syscall_entry *entry_for(uint32_t arch, uint64_t nr)
{
	/* 32-bit entry (int 0x80) and x32 numbers (bit 30) are calls of another ABI: a kernel
	 * without CONFIG_IA32_EMULATION and CONFIG_X86_X32. */
	if (arch != AUDIT_ARCH_X86_64 || nr >= SYSCALL_TABLE_SIZE)
		return &unknown;
	return &syscall_table[nr];
}

static long call_entry(struct task *t, const struct syscall_entry *e, uint64_t nr,
		       const uint64_t args[6])
{
	if (e->call)
		return e->call(t, args);
	log_debug("task %d: system call %lu (%s) is not served", t->tid, (unsigned long)nr,
		  e->name ? e->name : "unknown");
	return e->fixed_errno ? -e->fixed_errno : -ENOSYS;
}

/* Only a count, an address, an errno or a restart code may leave the sentry. */
static bool result_is_sound(long ret)
{
	return ret >= 0 || ret >= -133 || (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK) ||
	       ret < -4095;
}

long syscall_dispatch(struct task *t, uint32_t arch, uint64_t nr, const uint64_t args[6])
{
	const struct syscall_entry *e = entry_for(arch, nr);
	struct trace_line line;
	bool traced = trace_on();

	if (traced)
		trace_enter(&line, t, e, args);
	/* These two do not come back to have their result printed. */
	if (traced && arch == AUDIT_ARCH_X86_64 && (nr == SYS_exit || nr == SYS_exit_group))
		trace_unfinished(&line, t);
	long ret = call_entry(t, e, nr, args);
	BUG_ON(!result_is_sound(ret));
	if (traced)
		trace_exit(&line, t, e, args, ret);
	return ret;
}

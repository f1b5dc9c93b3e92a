/*
 * Installing the filter of a role: see seccomp.h. The programs are data, generated from host.def by
 * gen_filter.c at build time.
 *
 * Debug builds replace "kill" by "trap", whose handler names the call; PINFOLD_CONFINE=off in their
 * environment leaves the filter out, so that a debugger or strace can be attached.
 */
#include "platform/host/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host_filter.h"
#include "platform/base/log.h"

/* Most instructions of one program; gen_filter refuses more than BPF_MAXINSNS. */
#define FILTER_MAX BPF_MAXINSNS

struct filter {
	const struct sock_filter *insn;
	unsigned short count;
};

static const struct filter filters[HOST_ROLE_COUNT] = {
	[HOST_SENTRY] = { filter_sentry, ARRAY_SIZE(filter_sentry) },
	[HOST_SENTRY_PTRACE] = { filter_sentry_ptrace, ARRAY_SIZE(filter_sentry_ptrace) },
	[HOST_GOFER] = { filter_gofer, ARRAY_SIZE(filter_gofer) },
	[HOST_WATCHER] = { filter_watcher, ARRAY_SIZE(filter_watcher) },
};

#ifdef PINFOLD_DEBUG
static struct sock_filter trapping[FILTER_MAX];

static void on_violation(int signo UNUSED, siginfo_t *info, void *uc UNUSED)
{
	unsigned nr = (unsigned)info->si_syscall;
	const char *name = nr < ARRAY_SIZE(host_call_names) ? host_call_names[nr] : NULL;

	log_error(
		"host call %u (%s) at %p has no row for this role, or not with these arguments, in "
		"platform/host/host.def",
		nr, name ? name : "unknown", info->si_call_addr);
	abort();
}

/* The same program with a trap in place of the kill, and the handler for it. */
static int filter_for_debug(struct filter *f)
{
	struct sigaction sa = { .sa_sigaction = on_violation, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigset_t set;

	memcpy(trapping, f->insn, f->count * sizeof(trapping[0]));
	for (unsigned i = 0; i < f->count; i++)
		if (trapping[i].code == (BPF_RET | BPF_K) &&
		    trapping[i].k == SECCOMP_RET_KILL_PROCESS)
			trapping[i].k = SECCOMP_RET_TRAP;
	f->insn = trapping;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	if (sigaction(SIGSYS, &sa, NULL) < 0 || pthread_sigmask(SIG_UNBLOCK, &set, NULL) != 0)
		return -errno;
	return 0;
}
#endif

int host_confine(enum host_role role)
{
	struct filter f = filters[role];

#ifdef PINFOLD_DEBUG
	const char *env = getenv("PINFOLD_CONFINE");
	if (env && strcmp(env, "off") == 0)
		return 0;
	int err = filter_for_debug(&f);
	if (err)
		return err;
#endif
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* sock_fprog is not const-correct; the kernel only reads. */
	struct sock_fprog prog = { .len = f.count,
				   .filter = (struct sock_filter *)(uintptr_t)f.insn };
	/* All threads, also those that were started before. A positive result is the id of a thread
	 * that has another filter and could not follow. */
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (r > 0)
		return -EBUSY;
	return r < 0 ? -errno : 0;
}

/*
 * `pinfold doctor`: tries each thing of doctor.def, prints what was found and what is lost without
 * it. Probes with a lasting effect run in a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/platform.h"
#include "runtime/cli.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#define HWCAP2_FSGSBASE_BIT 2u /* arch/x86/include/uapi/asm/hwcap2.h */
#define DETAIL_SIZE 160

/* Whether the thing is there; `detail` (DETAIL_SIZE bytes, empty) may say more. */
typedef bool probe_fn(char *detail);

/* Runs fn in a child, so that its effects end with it. */
static bool in_child(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn() ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* The first line of a small file without its newline; false when it cannot be read. */
static bool read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return true;
}

static bool probe_kernel(char *detail)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) < 0)
		return false;
	snprintf(detail, DETAIL_SIZE, "%s", u.release);
	sscanf(u.release, "%u.%u", &major, &minor);
	return major > 5 || (major == 5 && minor >= 15);
}

static bool action_available(uint32_t action)
{
	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

static bool probe_seccomp(char *detail UNUSED)
{
	return action_available(SECCOMP_RET_KILL_PROCESS) && action_available(SECCOMP_RET_TRAP);
}

static bool probe_notify(char *detail UNUSED)
{
	return action_available(SECCOMP_RET_USER_NOTIF);
}

/* ADDFD came with 5.9 and its atomic form, which stubs need, with 5.14; the ioctl number is known
 * only on a listener, so the version stands for it. */
static bool probe_addfd(char *detail)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (!probe_notify(detail) || uname(&u) < 0)
		return false;
	sscanf(u.release, "%u.%u", &major, &minor);
	return major > 5 || (major == 5 && minor >= 14);
}

/* A child that only waits; the caller kills it. */
static pid_t idle_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool probe_process_vm(char *detail)
{
	static int word = 42;
	int seen = 0;
	pid_t pid = idle_child();

	if (pid < 0)
		return false;
	struct iovec here = { &seen, sizeof(seen) }, there = { &word, sizeof(word) };
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	if (n < 0)
		snprintf(detail, DETAIL_SIZE, "%s", strerror(errno));
	end_child(pid);
	return n == (ssize_t)sizeof(seen) && seen == 42;
}

static bool probe_ptrace(char *detail)
{
	pid_t pid = idle_child();

	if (pid < 0)
		return false;
	bool ok = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
	if (!ok)
		snprintf(detail, DETAIL_SIZE, "%s", strerror(errno));
	end_child(pid);
	return ok;
}

static bool probe_yama(char *detail)
{
	char line[16];

	if (!read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line))) {
		snprintf(detail, DETAIL_SIZE, "no yama");
		return true;
	}
	snprintf(detail, DETAIL_SIZE, "scope %s", line);
	return line[0] == '0' || line[0] == '1';
}

static bool probe_openat2(char *detail UNUSED)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int root = open("/", O_PATH | O_CLOEXEC);
	long fd = syscall(SYS_openat2, root, ".", &how, sizeof(how));

	if (fd >= 0)
		close((int)fd);
	close(root);
	return fd >= 0;
}

static bool probe_landlock(char *detail)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 1)
		return false;
	snprintf(detail, DETAIL_SIZE, "ABI %ld", abi);
	return true;
}

static bool try_userns(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}

static bool probe_userns(char *detail UNUSED)
{
	return in_child(try_userns);
}

static bool probe_cgroup(char *detail)
{
	char line[512], path[640];

	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) != 0 ||
	    !read_line("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::/", 4) != 0) {
		snprintf(detail, DETAIL_SIZE, "no unified hierarchy");
		return false;
	}
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.procs", line + 3);
	if (access(path, W_OK) != 0) {
		snprintf(detail, DETAIL_SIZE, "%.100s is not ours to divide", line + 3);
		return false;
	}
	snprintf(detail, DETAIL_SIZE, "%.100s", line + 3);
	return true;
}

static bool probe_fsgsbase(char *detail UNUSED)
{
	return getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_BIT;
}

static bool probe_mseal(char *detail UNUSED)
{
	/* A flag that does not exist: EINVAL where there is the call, ENOSYS where not. */
	return syscall(SYS_mseal, 0, 0, 1ul) < 0 && errno == EINVAL;
}

struct check {
	const char *name;
	probe_fn *probe;
	bool needed;
	const char *cost;
};

static const struct check checks[] = {
#define CHECK(name, probe, needed, cost) { name, probe, needed, cost },
#include "runtime/doctor.def"
#undef CHECK
};

/* True unless something needed is missing. */
static bool print_checks(void)
{
	bool good = true;

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		const struct check *c = &checks[i];
		char detail[DETAIL_SIZE] = "";
		bool there = c->probe(detail);
		printf("%-8s %-32s %s\n",
		       there       ? "yes"
		       : c->needed ? "MISSING"
				   : "no",
		       c->name, detail);
		if (!there)
			printf("%-8s   without it: %s\n", "", c->cost);
		good = good && (there || !c->needed);
	}
	return good;
}

/* True when some platform works. */
static bool print_platforms(void)
{
	const struct platform_ops *p, *first = NULL;

	for (size_t i = 0; (p = platform_at(i)); i++) {
		char why[256] = "";
		int err = p->probe(why, sizeof(why));
		printf("%-8s platform %-23s %s\n", err ? "no" : "yes", p->name,
		       err ? why : p->summary);
		if (!err && !first)
			first = p;
	}
	if (!first)
		printf("\nNo platform works on this machine: pinfold cannot run anything here.\n");
	else if (first == platform_at(0))
		printf("\nThe default platform, %s, works here.\n", first->name);
	else
		printf("\nThe default platform does not work here; use --platform=%s.\n",
		       first->name);
	return first != NULL;
}

int cmd_doctor(int argc, char **argv)
{
	if (argc > 1)
		return cli_error("doctor: unknown argument %s; it takes none", argv[1]);
	bool good = print_checks();
	/* Not &&: both parts are to be printed. */
	if (!print_platforms())
		good = false;
	return good ? 0 : 1;
}

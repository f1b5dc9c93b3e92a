/* Calls about the system as a whole: uname, sysinfo, random bytes, host name, kernel log. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/random.h>
#include <string.h>
#include <sys/utsname.h>

#include "platform/host/host.h"
#include "sentry/limits.h"
#include "sentry/proc.h"
#include "sentry/resources.h"
#include "sentry/task.h"
#include "sentry/uts.h"
#include "syscalls/handlers.h"

long sys_uname(struct task *t, utsname_gp buf)
{
	struct utsname u;

	memset(&u, 0, sizeof(u));
	memcpy(u.sysname, UTS_SYSNAME, sizeof(UTS_SYSNAME));
	memcpy(u.release, UTS_RELEASE, sizeof(UTS_RELEASE));
	memcpy(u.version, UTS_VERSION, sizeof(UTS_VERSION));
	memcpy(u.machine, UTS_MACHINE, sizeof(UTS_MACHINE));
	uts_get_hostname(u.nodename);
	uts_get_domainname(u.domainname);
	return guest_store(t, buf, &u);
}

static int load_name(struct task *t, buf_cgp name, uint64_t len, char out[64])
{
	if (!task_capable(t, CAP_SYS_ADMIN))
		return -EPERM;
	if (len > 64)
		return -EINVAL;
	return guest_read(t, out, name.addr, len);
}

long sys_sethostname(struct task *t, buf_cgp name, uint64_t len)
{
	char buf[64];
	int err = load_name(t, name, len, buf);

	if (!err)
		uts_set_hostname(buf, len);
	return err;
}

long sys_setdomainname(struct task *t, buf_cgp name, uint64_t len)
{
	char buf[64];
	int err = load_name(t, name, len, buf);

	if (!err)
		uts_set_domainname(buf, len);
	return err;
}

long sys_sysinfo(struct task *t, sysinfo_gp info)
{
	struct resource_usage use;
	struct sysinfo si;

	resources_get(&use);
	memset(&si, 0, sizeof(si));
	si.uptime = (long)(use.uptime_ns / 1000000000u);
	si.totalram = use.mem_total;
	si.freeram = use.mem_free;
	si.mem_unit = 1;
	si.procs = (unsigned short)pid_task_count();
	return guest_store(t, info, &si);
}

long sys_getrandom(struct task *t, buf_gp buf, uint64_t buflen, uint32_t flags)
{
	char chunk[4096];
	struct iov_iter it;
	uint64_t done = 0;

	if (flags & ~(uint32_t)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE))
		return -EINVAL;
	if ((flags & (GRND_RANDOM | GRND_INSECURE)) == (GRND_RANDOM | GRND_INSECURE))
		return -EINVAL;
	int err = guest_iter_buf(t, &it, buf.addr, MIN(buflen, RW_COUNT_MAX), IOV_FILL);
	if (err)
		return err;
	while (it.count > 0) {
		size_t n = MIN(it.count, sizeof(chunk));
		host_random(chunk, n);
		ssize_t c = iov_copy_to(&it, chunk, n);
		if (c < 0)
			return done ? (long)done : c;
		done += (uint64_t)c;
		/* Large requests are interruptible after each page, as in drivers/char/random.c. */
		if ((size_t)c < n || (it.count && signal_pending(t)))
			break;
	}
	memset(chunk, 0, sizeof(chunk));
	return (long)done;
}

static int filesystem_index(struct task *t, uint64_t name_addr)
{
	char wanted[32];
	const char *name;
	ssize_t n = guest_load_str(t, wanted, sizeof(wanted), (path_cgp){ gaddr(name_addr) });

	if (n < 0)
		return n == -ENAMETOOLONG ? -EINVAL : (int)n;
	for (uint32_t i = 0; (name = proc_filesystem(i)) != NULL; i++)
		if (strcmp(name, wanted) == 0)
			return (int)i;
	return -EINVAL;
}

/* Kinds of file systems by number, as sysfs(2) of System V has them. */
long sys_sysfs(struct task *t, int option, uint64_t arg1, uint64_t arg2)
{
	const char *name;
	uint32_t count = 0;

	switch (option) {
	case 1:
		return filesystem_index(t, arg1);
	case 2:
		name = proc_filesystem((uint32_t)arg1);
		return name ? guest_write(t, gaddr(arg2), name, strlen(name) + 1) : -EINVAL;
	case 3:
		while (proc_filesystem(count))
			count++;
		return count;
	default:
		return -EINVAL;
	}
}

/* Without a terminal there is nothing to hang up. */
long sys_vhangup(struct task *t)
{
	mutex_lock(&tasks_mu);
	bool has_terminal = t->group->ctty != NULL;
	mutex_unlock(&tasks_mu);
	return has_terminal || !task_capable(t, CAP_SYS_TTY_CONFIG) ? -EPERM : 0;
}

/* An empty log: reads give nothing, sizes are 0 (syslog(2)). */
long sys_syslog(struct task *t, int type, buf_gp buf, int len)
{
	enum {
		CLOSE,
		OPEN,
		READ,
		READ_ALL,
		READ_CLEAR,
		CLEAR,
		CONSOLE_OFF,
		CONSOLE_ON,
		LEVEL,
		UNREAD,
		BUFFER
	};

	if (type < CLOSE || type > BUFFER)
		return -EINVAL;
	if (!task_capable(t, CAP_SYSLOG) && type != READ_ALL && type != BUFFER)
		return -EPERM;
	if (type == READ || type == READ_ALL || type == READ_CLEAR)
		return gaddr_is_null(buf.addr) || len < 0 ? -EINVAL : 0;
	if (type == LEVEL)
		return len < 1 || len > 8 ? -EINVAL : 0;
	return 0;
}

/* As a kernel without CONFIG_SECCOMP_FILTER: strict mode and filters are refused (seccomp(2)). */
long sys_seccomp(struct task *t UNUSED, uint32_t operation UNUSED, uint32_t flags UNUSED,
		 buf_cgp args UNUSED)
{
	return -EINVAL;
}

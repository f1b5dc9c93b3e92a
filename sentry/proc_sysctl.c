/*
 * /proc/sys. Constants are what a default kernel says and what our own limits are; only names of
 * the machine and a few limits can be changed.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fs/inotify.h"
#include "fs/lease.h"
#include "fs/pipe.h"
#include "fs/pty.h"
#include "platform/host/host.h"
#include "sentry/limits.h"
#include "sentry/proc_priv.h"
#include "sentry/vma.h"
#include "sentry/uts.h"

#define STR_(x) #x
#define STR(x) STR_(x)
#define BOOT_ID_BYTES 16

/* A random UUID, version 4 (RFC 9562). */
static void show_uuid(const uint8_t bytes[BOOT_ID_BYTES], struct fmt *out)
{
	for (int i = 0; i < BOOT_ID_BYTES; i++)
		fmt_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
	fmt_putc(out, '\n');
}

static void random_uuid(uint8_t bytes[BOOT_ID_BYTES])
{
	host_random(bytes, BOOT_ID_BYTES);
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
}

static int show_new_uuid(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	uint8_t bytes[BOOT_ID_BYTES];

	random_uuid(bytes);
	show_uuid(bytes, out);
	return 0;
}

static int show_boot_id(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	static struct mutex mu = MUTEX_INIT(RANK_HASH);
	static uint8_t id[BOOT_ID_BYTES];

	mutex_lock(&mu);
	if (!id[8])
		random_uuid(id);
	mutex_unlock(&mu);
	show_uuid(id, out);
	return 0;
}

static int show_hostname(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	char name[65];

	uts_get_hostname(name);
	fmt_printf(out, "%s\n", name);
	return 0;
}

static int show_domainname(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	char name[65];

	uts_get_domainname(name);
	fmt_printf(out, "%s\n", name);
	return 0;
}

static int store_name(const char *text, size_t size, void (*set)(const char *name, size_t len))
{
	if (!task_capable(current_task(), CAP_SYS_ADMIN))
		return -EPERM;
	const char *end = memchr(text, '\n', size);
	size_t len = end ? (size_t)(end - text) : size;
	set(text, MIN(len, (size_t)64));
	return 0;
}

static int store_hostname(const struct pseudo_ref *ref UNUSED, const char *text, size_t size)
{
	return store_name(text, size, uts_set_hostname);
}

static int store_domainname(const struct pseudo_ref *ref UNUSED, const char *text, size_t size)
{
	return store_name(text, size, uts_set_domainname);
}

static int show_threads_max(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	fmt_printf(out, "%llu\n",
		   (unsigned long long)current_task()->group->rlim[RLIMIT_NPROC].rlim_max);
	return 0;
}

/* Limits that root may move, within what we allow ourselves. */
static const struct tunable {
	const char *name;
	_Atomic int *value;
	int min, max;
} tunables[] = {
	{ "lease-break-time", &lease_break_seconds, INT_MIN, INT_MAX },
	{ "pipe-max-size", &pipe_max_size, PAGE_SIZE, PIPE_UNPRIVILEGED_MAX },
	{ "max_user_instances", &inotify_max_instances, 0, INOTIFY_INSTANCES_MAX },
	{ "max_map_count", &vma_max_count, 0, VMA_MAX },
};

static const struct tunable *tunable_of(const struct pseudo_ref *ref)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(tunables) && strcmp(tunables[i].name, ref->row->name) != 0)
		i++;
	return &tunables[i];
}

static int show_tunable(const struct pseudo_ref *ref, struct fmt *out)
{
	fmt_printf(out, "%d\n", atomic_load(tunable_of(ref)->value));
	return 0;
}

static int parse_int(const char *text, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno || end == text || (*end && *end != '\n') ? -EINVAL : 0;
}

static int store_tunable(const struct pseudo_ref *ref, const char *text, size_t size UNUSED)
{
	const struct tunable *u = tunable_of(ref);
	long v;

	if (parse_int(text, &v) < 0 || v < u->min || v > u->max)
		return -EINVAL;
	atomic_store(u->value, (int)v);
	return 0;
}

/* There is no page cache of ours to drop. */
static int store_drop_caches(const struct pseudo_ref *ref UNUSED, const char *text,
			     size_t size UNUSED)
{
	long v;

	return parse_int(text, &v) < 0 || v < 0 ? -EINVAL : 0;
}

static int show_pty_count(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	fmt_printf(out, "%d\n", pts_count());
	return 0;
}

/* Everything here but names is fixed, also for root. */
static int may_open_fixed(const struct pseudo_ref *ref UNUSED, int flags,
			  const struct cred *c UNUSED)
{
	return (flags & O_ACCMODE) == O_RDONLY ? 0 : -EACCES;
}

#define SYSCTL(n, t)                                                                               \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | 0644, .text = t "\n", .may_open = may_open_fixed    \
	}
#define SYSCTL_FN(n, m, fn)                                                                        \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | (m), .show = (fn), .may_open = may_open_fixed       \
	}

#define TUNABLE(n)                                                                                 \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | 0644, .show = show_tunable, .store = store_tunable  \
	}

static const struct pseudo_row random_rows[] = {
	SYSCTL_FN("uuid", 0444, show_new_uuid),
	SYSCTL_FN("boot_id", 0444, show_boot_id),
	SYSCTL("entropy_avail", "256"),
	SYSCTL("poolsize", "256"),
	SYSCTL("urandom_min_reseed_secs", "60"),
	SYSCTL("write_wakeup_threshold", "256"),
	{},
};

static const struct pseudo_row pty_rows[] = {
	SYSCTL("max", STR(PTY_MAX)),
	SYSCTL_FN("nr", 0444, show_pty_count),
	SYSCTL("reserve", "0"),
	{},
};

static const struct pseudo_row yama_rows[] = { SYSCTL("ptrace_scope", "0"), {} };
static const struct pseudo_row seccomp_rows[] = {
	SYSCTL("actions_avail", "kill_process kill_thread trap errno user_notif trace log allow"),
	SYSCTL("actions_logged", "kill_process kill_thread trap errno user_notif trace log"),
	{},
};
static const struct pseudo_row keys_rows[] = { SYSCTL("maxkeys", "200"),
					       SYSCTL("maxbytes", "20000"),
					       {} };

static const struct pseudo_row kernel_rows[] = {
	SYSCTL("ostype", UTS_SYSNAME),
	SYSCTL("osrelease", UTS_RELEASE),
	SYSCTL("version", UTS_VERSION),
	{ .name = "hostname",
	  .mode = S_IFREG | 0644,
	  .show = show_hostname,
	  .store = store_hostname },
	{ .name = "domainname",
	  .mode = S_IFREG | 0644,
	  .show = show_domainname,
	  .store = store_domainname },
	SYSCTL("pid_max", STR(PID_MAX_DEFAULT)),
	SYSCTL_FN("threads-max", 0644, show_threads_max),
	SYSCTL("cap_last_cap", STR(CAP_LAST_CAP)),
	SYSCTL("ngroups_max", "65536"),
	SYSCTL("overflowuid", "65534"),
	SYSCTL("overflowgid", "65534"),
	SYSCTL("core_pattern", "core"),
	SYSCTL("core_uses_pid", "0"),
	SYSCTL("core_pipe_limit", "0"),
	SYSCTL("arch", UTS_MACHINE),
	SYSCTL("shmmax", "18446744073692774399"),
	SYSCTL("shmall", "18446744073692774399"),
	SYSCTL("shmmni", "4096"),
	SYSCTL("shm_rmid_forced", "0"),
	SYSCTL("msgmax", "8192"),
	SYSCTL("msgmnb", "16384"),
	SYSCTL("msgmni", "1024"),
	SYSCTL("sem", "32000\t1048576\t500\t1024"),
	SYSCTL("randomize_va_space", "2"),
	SYSCTL("dmesg_restrict", "1"),
	SYSCTL("kptr_restrict", "1"),
	SYSCTL("perf_event_paranoid", "4"),
	SYSCTL("perf_event_max_sample_rate", "100000"),
	SYSCTL("perf_event_mlock_kb", "516"),
	SYSCTL("unprivileged_bpf_disabled", "2"),
	SYSCTL("io_uring_disabled", "2"),
	SYSCTL("panic", "0"),
	SYSCTL("panic_on_oops", "0"),
	SYSCTL("printk", "4\t4\t1\t7"),
	SYSCTL("tainted", "0"),
	SYSCTL("sched_rt_period_us", "1000000"),
	SYSCTL("sched_rt_runtime_us", "950000"),
	SYSCTL("sched_rr_timeslice_ms", "100"),
	SYSCTL("sched_autogroup_enabled", "0"),
	SYSCTL("numa_balancing", "0"),
	SYSCTL("nmi_watchdog", "0"),
	SYSCTL("sysrq", "0"),
	SYSCTL("ctrl-alt-del", "0"),
	PROC_DIR("random", random_rows),
	PROC_DIR("pty", pty_rows),
	PROC_DIR("yama", yama_rows),
	PROC_DIR("seccomp", seccomp_rows),
	PROC_DIR("keys", keys_rows),
	{},
};

static const struct pseudo_row vm_rows[] = {
	SYSCTL("overcommit_memory", "1"),
	SYSCTL("overcommit_ratio", "50"),
	SYSCTL("overcommit_kbytes", "0"),
	TUNABLE("max_map_count"),
	{ .name = "drop_caches", .mode = S_IFREG | 0200, .store = store_drop_caches },
	SYSCTL("mmap_min_addr", "65536"),
	SYSCTL("mmap_rnd_bits", "28"),
	SYSCTL("swappiness", "60"),
	SYSCTL("dirty_ratio", "20"),
	SYSCTL("dirty_background_ratio", "10"),
	SYSCTL("min_free_kbytes", "67584"),
	SYSCTL("vfs_cache_pressure", "100"),
	SYSCTL("nr_hugepages", "0"),
	SYSCTL("nr_overcommit_hugepages", "0"),
	SYSCTL("hugetlb_shm_group", "0"),
	SYSCTL("legacy_va_layout", "0"),
	SYSCTL("page-cluster", "3"),
	SYSCTL("panic_on_oom", "0"),
	SYSCTL("oom_kill_allocating_task", "0"),
	SYSCTL("unprivileged_userfaultfd", "0"),
	SYSCTL("zone_reclaim_mode", "0"),
	SYSCTL("user_reserve_kbytes", "131072"),
	SYSCTL("admin_reserve_kbytes", "8192"),
	{},
};

static const struct pseudo_row inotify_rows[] = {
	TUNABLE("max_user_instances"),
	SYSCTL("max_user_watches", "1048576"),
	SYSCTL("max_queued_events", "16384"),
	{},
};
static const struct pseudo_row epoll_rows[] = { SYSCTL("max_user_watches", "1048576"), {} };
static const struct pseudo_row mqueue_rows[] = {
	SYSCTL("msg_default", "10"),       SYSCTL("msg_max", "10"),
	SYSCTL("msgsize_default", "8192"), SYSCTL("msgsize_max", "8192"),
	SYSCTL("queues_max", "256"),       {},
};

static const struct pseudo_row fs_rows[] = {
	SYSCTL("file-max", "9223372036854775807"),
	SYSCTL("file-nr", "1024\t0\t9223372036854775807"),
	SYSCTL("nr_open", "1048576"),
	SYSCTL("inode-nr", "1024\t0"),
	SYSCTL("inode-state", "1024\t0\t0\t0\t0\t0\t0"),
	SYSCTL("dentry-state", "1024\t0\t45\t0\t0\t0"),
	TUNABLE("pipe-max-size"),
	SYSCTL("pipe-user-pages-hard", "0"),
	SYSCTL("pipe-user-pages-soft", "16384"),
	SYSCTL("protected_symlinks", "1"),
	SYSCTL("protected_hardlinks", "1"),
	SYSCTL("protected_fifos", "0"),
	SYSCTL("protected_regular", "0"),
	SYSCTL("suid_dumpable", "0"),
	SYSCTL("aio-max-nr", "65536"),
	SYSCTL("aio-nr", "0"),
	TUNABLE("lease-break-time"),
	SYSCTL("leases-enable", "1"),
	SYSCTL("dir-notify-enable", "1"),
	SYSCTL("overflowuid", "65534"),
	SYSCTL("overflowgid", "65534"),
	SYSCTL("mount-max", "100000"),
	PROC_DIR("inotify", inotify_rows),
	PROC_DIR("epoll", epoll_rows),
	PROC_DIR("mqueue", mqueue_rows),
	{},
};

static const struct pseudo_row net_core_rows[] = {
	SYSCTL("somaxconn", "4096"),
	SYSCTL("rmem_default", "212992"),
	SYSCTL("rmem_max", "212992"),
	SYSCTL("wmem_default", "212992"),
	SYSCTL("wmem_max", "212992"),
	SYSCTL("optmem_max", "131072"),
	SYSCTL("netdev_max_backlog", "1000"),
	SYSCTL("default_qdisc", "pfifo_fast"),
	{},
};

static const struct pseudo_row net_ipv4_rows[] = {
	SYSCTL("ip_forward", "0"),
	SYSCTL("ip_default_ttl", "64"),
	SYSCTL("ip_local_port_range", "32768\t60999"),
	SYSCTL("ip_local_reserved_ports", ""),
	SYSCTL("ip_unprivileged_port_start", "1024"),
	SYSCTL("ip_nonlocal_bind", "0"),
	SYSCTL("ping_group_range", "1\t0"),
	SYSCTL("tcp_rmem", "4096\t131072\t6291456"),
	SYSCTL("tcp_wmem", "4096\t16384\t4194304"),
	SYSCTL("tcp_mem", "188469\t251294\t376938"),
	SYSCTL("tcp_congestion_control", "cubic"),
	SYSCTL("tcp_available_congestion_control", "reno cubic"),
	SYSCTL("tcp_allowed_congestion_control", "reno cubic"),
	SYSCTL("tcp_fin_timeout", "60"),
	SYSCTL("tcp_keepalive_time", "7200"),
	SYSCTL("tcp_keepalive_intvl", "75"),
	SYSCTL("tcp_keepalive_probes", "9"),
	SYSCTL("tcp_max_syn_backlog", "1024"),
	SYSCTL("tcp_sack", "1"),
	SYSCTL("tcp_timestamps", "1"),
	SYSCTL("tcp_window_scaling", "1"),
	SYSCTL("tcp_syncookies", "1"),
	SYSCTL("tcp_tw_reuse", "2"),
	SYSCTL("tcp_fastopen", "0"),
	{},
};

static const struct pseudo_row ipv6_all_rows[] = {
	SYSCTL("disable_ipv6", "0"),
	SYSCTL("forwarding", "0"),
	{},
};
static const struct pseudo_row ipv6_conf_rows[] = {
	PROC_DIR("all", ipv6_all_rows),
	PROC_DIR("default", ipv6_all_rows),
	PROC_DIR("lo", ipv6_all_rows),
	{},
};
static const struct pseudo_row net_ipv6_rows[] = {
	SYSCTL("bindv6only", "0"),
	PROC_DIR("conf", ipv6_conf_rows),
	{},
};
static const struct pseudo_row net_unix_rows[] = { SYSCTL("max_dgram_qlen", "10"), {} };

static const struct pseudo_row net_rows[] = {
	PROC_DIR("core", net_core_rows),
	PROC_DIR("ipv4", net_ipv4_rows),
	PROC_DIR("ipv6", net_ipv6_rows),
	PROC_DIR("unix", net_unix_rows),
	{},
};

static const struct pseudo_row user_rows[] = {
	SYSCTL("max_user_namespaces", "0"),
	SYSCTL("max_pid_namespaces", "0"),
	SYSCTL("max_net_namespaces", "0"),
	SYSCTL("max_mnt_namespaces", "0"),
	SYSCTL("max_inotify_instances", "128"),
	SYSCTL("max_inotify_watches", "1048576"),
	{},
};

static const struct pseudo_row no_rows[] = { {} };

const struct pseudo_row proc_sys_rows[] = {
	PROC_DIR("abi", no_rows),    PROC_DIR("debug", no_rows),      PROC_DIR("dev", no_rows),
	PROC_DIR("fs", fs_rows),     PROC_DIR("kernel", kernel_rows), PROC_DIR("net", net_rows),
	PROC_DIR("user", user_rows), PROC_DIR("vm", vm_rows),         {},
};

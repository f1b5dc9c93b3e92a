/*
 * Files of /proc about the machine: cpuinfo, meminfo, stat, uptime, loadavg, vmstat, interrupts.
 * The processors' description is the host's, read before the sentry is confined; the rest is the
 * sandbox's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/waitq.h"
#include "platform/host/host.h"
#include "sentry/proc.h"
#include "sentry/proc_priv.h"
#include "sentry/resources.h"

#define CPU_MAX 1024
/* A description has about 1.5 KiB per processor. */
#define CPUINFO_MAX (4u << 20)
#define KB 1024u

static struct mutex cpuinfo_mu = MUTEX_INIT(RANK_HASH);
static int cpuinfo_fd = -1;             /* [cpuinfo_mu] the host's, until it was read */
static char *cpuinfo;                   /* [cpuinfo_mu] its text, cut to our processors */
static uint64_t boot_mono;              /* [I] */
static struct timespec boot_real;       /* [I] */
static uint64_t cpu_mask[CPU_MAX / 64]; /* [I] */

/* ---- processors --------------------------------------------------------------------------- */

bool proc_has_cpu(unsigned cpu)
{
	return cpu < CPU_MAX && (cpu_mask[cpu / 64] >> (cpu % 64) & 1);
}

unsigned proc_cpu_end(void)
{
	unsigned end = CPU_MAX;

	while (end > 0 && !proc_has_cpu(end - 1))
		end--;
	return end;
}

/* Groups of 32 bits, the highest first, with commas, as the kernel's %*pb. */
void proc_show_cpu_mask(struct fmt *out)
{
	unsigned words = (proc_cpu_end() + 31) / 32;

	for (unsigned i = words; i-- > 0;) {
		uint32_t word = (uint32_t)(cpu_mask[i / 2] >> (i % 2 * 32));
		fmt_printf(out, i + 1 == words ? "%x" : "%08x", word);
		if (i > 0)
			fmt_putc(out, ',');
	}
}

void proc_show_cpu_list(struct fmt *out)
{
	const char *comma = "";

	for (unsigned i = 0; i < CPU_MAX; i++) {
		unsigned first = i;
		if (!proc_has_cpu(i))
			continue;
		while (proc_has_cpu(i + 1))
			i++;
		fmt_printf(out, first == i ? "%s%u" : "%s%u-%u", comma, first, i);
		comma = ",";
	}
}

/* The whole text of an open host file; NULL when it cannot be read. */
static char *read_host_text(int fd)
{
	struct fmt text;
	char chunk[4096];

	fmt_init_heap(&text);
	for (;;) {
		ssize_t n = host_read(fd, chunk, sizeof(chunk));
		if (n <= 0 || text.len > CPUINFO_MAX)
			break;
		fmt_write(&text, chunk, (size_t)n);
	}
	return text.buf;
}

/* Keeps the paragraphs of the processors that are ours. */
static int keep_own_cpus(const char *text, char **out)
{
	struct fmt kept;

	fmt_init_heap(&kept);
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t size = end ? (size_t)(end + 2 - text) : strlen(text);
		const char *colon = memchr(text, ':', size);
		bool is_cpu = strncmp(text, "processor", 9) == 0 && colon;
		if (!is_cpu || proc_has_cpu((unsigned)strtoul(colon + 1, NULL, 10)))
			fmt_write(&kept, text, size);
		text += size;
	}
	if (kept.overflow) {
		fmt_fini(&kept);
		return -ENOMEM;
	}
	*out = kept.buf;
	return 0;
}

int proc_capture_host(void)
{
	struct resource_usage r;

	resources_cpu_mask(cpu_mask);
	resources_get(&r);
	boot_mono = mono_now_ns() - r.uptime_ns;
	clock_gettime(CLOCK_REALTIME, &boot_real);
	/* Read when somebody asks: the host looks at every processor for it. A host without a
	 * readable /proc has nothing to show, and that is no reason to fail. */
	cpuinfo_fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	return 0;
}

uint64_t proc_boot_mono(void)
{
	return boot_mono;
}

static int cpuinfo_locked(void)
{
	int err = 0;

	if (cpuinfo_fd < 0)
		return 0;
	char *text = read_host_text(cpuinfo_fd);
	if (text)
		err = keep_own_cpus(text, &cpuinfo);
	mem_free(text);
	if (!err) {
		host_close(cpuinfo_fd);
		cpuinfo_fd = -1;
	}
	return err;
}

int proc_show_cpuinfo(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	mutex_lock(&cpuinfo_mu);
	int err = cpuinfo_locked();
	if (cpuinfo)
		fmt_puts(out, cpuinfo);
	mutex_unlock(&cpuinfo_mu);
	return err;
}

/* ---- memory ------------------------------------------------------------------------------- */

int proc_show_meminfo(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	struct resource_usage r;

	resources_get(&r);
	unsigned long total = r.mem_total / KB, free_kb = MIN(r.mem_free, r.mem_total) / KB;
	unsigned long used = total - free_kb;
	const struct {
		const char *name;
		unsigned long kb;
	} rows[] = {
		{ "MemTotal:", total },
		{ "MemFree:", free_kb },
		{ "MemAvailable:", free_kb },
		{ "Buffers:", 0 },
		{ "Cached:", 0 },
		{ "SwapCached:", 0 },
		{ "Active:", used },
		{ "Inactive:", 0 },
		{ "Active(anon):", used },
		{ "Inactive(anon):", 0 },
		{ "Active(file):", 0 },
		{ "Inactive(file):", 0 },
		{ "Unevictable:", 0 },
		{ "Mlocked:", 0 },
		{ "SwapTotal:", 0 },
		{ "SwapFree:", 0 },
		{ "Dirty:", 0 },
		{ "Writeback:", 0 },
		{ "AnonPages:", used },
		{ "Mapped:", 0 },
		{ "Shmem:", 0 },
		{ "KReclaimable:", 0 },
		{ "Slab:", 0 },
		{ "SReclaimable:", 0 },
		{ "SUnreclaim:", 0 },
		{ "KernelStack:", 0 },
		{ "PageTables:", 0 },
		{ "NFS_Unstable:", 0 },
		{ "Bounce:", 0 },
		{ "WritebackTmp:", 0 },
		{ "CommitLimit:", total / 2 },
		{ "Committed_AS:", used },
		{ "VmallocTotal:", 34359738367ul },
		{ "VmallocUsed:", 0 },
		{ "VmallocChunk:", 0 },
		{ "Percpu:", 0 },
		{ "AnonHugePages:", 0 },
		{ "ShmemHugePages:", 0 },
		{ "ShmemPmdMapped:", 0 },
		{ "FileHugePages:", 0 },
		{ "FilePmdMapped:", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		fmt_printf(out, "%-16s%8lu kB\n", rows[i].name, rows[i].kb);
	fmt_puts(out,
		 "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n"
		 "HugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:               0 "
		 "kB\n");
	return 0;
}

int proc_show_vmstat(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	static const char *const zero_rows[] = {
		"nr_inactive_anon", "nr_active_anon", "nr_inactive_file", "nr_active_file",
		"nr_unevictable",   "nr_mapped",      "nr_file_pages",    "nr_dirty",
		"nr_writeback",     "nr_shmem",       "pgpgin",           "pgpgout",
		"pswpin",           "pswpout",        "pgalloc_normal",   "pgfree",
		"pgactivate",       "pgdeactivate",   "pgfault",          "pgmajfault",
		"pgrefill",         "pgscan_kswapd",  "pgscan_direct",    "pgsteal_kswapd",
		"pgsteal_direct",   "oom_kill",
	};
	struct resource_usage r;

	resources_get(&r);
	fmt_printf(out, "nr_free_pages %llu\n", (unsigned long long)(r.mem_free / PAGE_SIZE));
	for (size_t i = 0; i < ARRAY_SIZE(zero_rows); i++)
		fmt_printf(out, "%s 0\n", zero_rows[i]);
	return 0;
}

/* ---- time --------------------------------------------------------------------------------- */

/* Processor time of all processes there have been, in ns: what each used and what it inherited from
 * children it waited for. Never less than before, though unwaited-for children take theirs with
 * them. */
static void total_times(uint64_t *out_user, uint64_t *out_sys)
{
	static _Atomic uint64_t max_user, max_sys;
	uint64_t user_sum = 0, sys_sum = 0;

	mutex_lock(&tasks_mu);
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		uint64_t user, sys;
		group_times_locked(g, &user, &sys);
		user_sum += user + g->child_utime_ns;
		sys_sum += sys + g->child_stime_ns;
	}
	mutex_unlock(&tasks_mu);
	if (user_sum > atomic_load(&max_user))
		atomic_store(&max_user, user_sum);
	if (sys_sum > atomic_load(&max_sys))
		atomic_store(&max_sys, sys_sum);
	*out_user = atomic_load(&max_user);
	*out_sys = atomic_load(&max_sys);
}

/* Running and all threads. */
static void count_tasks(int *out_running, int *out_all)
{
	*out_running = *out_all = 0;
	mutex_lock(&tasks_mu);
	list_for_each(pos, group_list_locked()) {
		struct group *g = list_entry(pos, struct group, all_link);
		list_for_each(pos2, &g->threads) {
			struct task *t = list_entry(pos2, struct task, group_link);
			++*out_all;
			*out_running += t == current_task() ||
					(t->state == TASK_RUNNING && t->syscall_nr == UINT64_MAX);
		}
	}
	mutex_unlock(&tasks_mu);
}

/* The highest id so far stands for the number of forks. */
static int last_pid(void)
{
	int last = 1;

	mutex_lock(&tasks_mu);
	list_for_each(pos, group_list_locked())
		last = MAX(last, list_entry(pos, struct group, all_link)->tgid);
	mutex_unlock(&tasks_mu);
	return last;
}

static void cpu_line(struct fmt *out, const char *name, uint64_t user, uint64_t sys, uint64_t all)
{
	uint64_t busy = user + sys, idle = all > busy ? all - busy : 0;

	fmt_printf(out, "%s %llu 0 %llu %llu 0 0 0 0 0 0\n", name, (unsigned long long)user,
		   (unsigned long long)sys, (unsigned long long)idle);
}

int proc_show_global_stat(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	unsigned cpus = MAX(resources_cpu_count(), 1u);
	uint64_t uptime = (mono_now_ns() - boot_mono) / NS_PER_TICK, user, sys;
	int running, all;
	char name[16];

	total_times(&user, &sys);
	user /= NS_PER_TICK;
	sys /= NS_PER_TICK;
	count_tasks(&running, &all);
	cpu_line(out, "cpu ", user, sys, uptime * cpus);
	for (unsigned i = 0; i < CPU_MAX; i++) {
		struct fmt text;
		if (!proc_has_cpu(i))
			continue;
		fmt_init_fixed(&text, name, sizeof(name));
		fmt_printf(&text, "cpu%u", i);
		cpu_line(out, name, user / cpus, sys / cpus, uptime);
	}
	fmt_printf(out,
		   "intr 0\nctxt 0\nbtime %lld\nprocesses %d\nprocs_running %d\nprocs_blocked 0\n",
		   (long long)boot_real.tv_sec, last_pid(), running);
	fmt_puts(out, "softirq 0 0 0 0 0 0 0 0 0 0 0\n");
	return 0;
}

int proc_show_uptime(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	uint64_t up = mono_now_ns() - boot_mono, user, sys;
	uint64_t all = up * MAX(resources_cpu_count(), 1u);

	total_times(&user, &sys);
	uint64_t idle = all > user + sys ? all - user - sys : 0;
	fmt_printf(out, "%llu.%02llu %llu.%02llu\n", (unsigned long long)(up / 1000000000u),
		   (unsigned long long)(up / 10000000u % 100),
		   (unsigned long long)(idle / 1000000000u),
		   (unsigned long long)(idle / 10000000u % 100));
	return 0;
}

/* LINUX: averages over 1, 5 and 15 minutes. Nothing samples here, since an idle sandbox does not
 * run; the number of threads that run now is the best that can be said, and it is said once. */
int proc_show_loadavg(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	int running, all;

	count_tasks(&running, &all);
	fmt_printf(out, "%d.00 0.00 0.00 %d/%d %d\n", running > 1 ? running - 1 : 0, running, all,
		   last_pid());
	return 0;
}

int proc_show_interrupts(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	fmt_puts(out, "           ");
	for (unsigned i = 0; i < CPU_MAX; i++)
		if (proc_has_cpu(i))
			fmt_printf(out, "CPU%-8u", i);
	fmt_putc(out, '\n');
	return 0;
}

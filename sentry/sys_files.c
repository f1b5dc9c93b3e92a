/* /sys, as far as programs read it: processors, memory nodes, the loopback interface, mount points.
 */
#include <errno.h>
#include <string.h>

#include "sentry/proc.h"
#include "sentry/proc_priv.h"
#include "sentry/resources.h"

#define SYSFS_MAGIC 0x62656572
#define KB 1024u

static const struct pseudo_row no_rows[] = { {} };

/* ---- processors --------------------------------------------------------------------------- */

static int show_cpu_list(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	proc_show_cpu_list(out);
	fmt_putc(out, '\n');
	return 0;
}

static int show_cpu_mask(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	proc_show_cpu_mask(out);
	fmt_putc(out, '\n');
	return 0;
}

/* Key 0 of a processor's node is its number. Each is a core of its own in one package. */
static int show_own_number(const struct pseudo_ref *ref, struct fmt *out)
{
	fmt_printf(out, "%llu\n", (unsigned long long)ref->key[0]);
	return 0;
}

static int show_own_mask(const struct pseudo_ref *ref, struct fmt *out)
{
	unsigned words = (proc_cpu_end() + 31) / 32, own = (unsigned)ref->key[0];

	for (unsigned i = words; i-- > 0;)
		fmt_printf(out, i + 1 == words ? "%x%s" : "%08x%s",
			   i == own / 32 ? 1u << own % 32 : 0u, i > 0 ? "," : "\n");
	return 0;
}

static const struct pseudo_row topology_rows[] = {
	PROC_FILE("core_id", 0444, show_own_number),
	PROC_FILE("thread_siblings", 0444, show_own_mask),
	PROC_FILE("thread_siblings_list", 0444, show_own_number),
	PROC_FILE("core_cpus", 0444, show_own_mask),
	PROC_FILE("core_cpus_list", 0444, show_own_number),
	PROC_FILE("cluster_cpus", 0444, show_own_mask),
	PROC_FILE("cluster_cpus_list", 0444, show_own_number),
	PROC_FILE("core_siblings", 0444, show_cpu_mask),
	PROC_FILE("core_siblings_list", 0444, show_cpu_list),
	PROC_FILE("package_cpus", 0444, show_cpu_mask),
	PROC_FILE("package_cpus_list", 0444, show_cpu_list),
	PROC_FILE("die_cpus", 0444, show_cpu_mask),
	PROC_FILE("die_cpus_list", 0444, show_cpu_list),
	PROC_TEXT("physical_package_id", "0\n"),
	PROC_TEXT("die_id", "0\n"),
	{},
};

static const struct pseudo_row one_cpu_rows[] = { PROC_DIR("topology", topology_rows), {} };
static const struct pseudo_row one_cpu_row = PROC_DIR("", one_cpu_rows);

static int cpu_lookup(const struct pseudo_ref *dir UNUSED, const char *name, struct pseudo_ref *out)
{
	int cpu = strncmp(name, "cpu", 3) == 0 ? proc_parse_number(name + 3) : -1;

	if (cpu < 0 || !proc_has_cpu((unsigned)cpu))
		return -ENOENT;
	*out = (struct pseudo_ref){ .row = &one_cpu_row, .key = { (uint64_t)cpu } };
	return 0;
}

static int cpu_next(const struct pseudo_ref *dir UNUSED, uint64_t *cookie,
		    char name[NAME_LEN_MAX + 1], struct pseudo_ref *out)
{
	struct fmt text;

	while (*cookie < proc_cpu_end() && !proc_has_cpu((unsigned)*cookie))
		++*cookie;
	if (*cookie >= proc_cpu_end())
		return -ENOENT;
	*out = (struct pseudo_ref){ .row = &one_cpu_row, .key = { *cookie } };
	fmt_init_fixed(&text, name, NAME_LEN_MAX + 1);
	fmt_printf(&text, "cpu%llu", (unsigned long long)*cookie);
	return 0;
}

static const struct pseudo_dir_ops cpu_dir = { .lookup = cpu_lookup, .next = cpu_next };

static const struct pseudo_row smt_rows[] = { PROC_TEXT("active", "0\n"),
					      PROC_TEXT("control", "notsupported\n"),
					      {} };

static const struct pseudo_row cpu_rows[] = {
	PROC_FILE("online", 0444, show_cpu_list),
	PROC_FILE("possible", 0444, show_cpu_list),
	PROC_FILE("present", 0444, show_cpu_list),
	PROC_TEXT("offline", "\n"),
	PROC_TEXT("isolated", "\n"),
	PROC_TEXT("kernel_max", "1023\n"),
	PROC_DIR("smt", smt_rows),
	{},
};

/* ---- memory ------------------------------------------------------------------------------- */

static int show_node_meminfo(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	struct resource_usage r;

	resources_get(&r);
	unsigned long total = r.mem_total / KB, free_kb = MIN(r.mem_free, r.mem_total) / KB;
	fmt_printf(out, "Node 0 MemTotal:       %8lu kB\nNode 0 MemFree:        %8lu kB\n", total,
		   free_kb);
	fmt_printf(out, "Node 0 MemUsed:        %8lu kB\n", total - free_kb);
	return 0;
}

static const struct pseudo_row node0_rows[] = {
	PROC_FILE("cpulist", 0444, show_cpu_list),
	PROC_FILE("cpumap", 0444, show_cpu_mask),
	PROC_FILE("meminfo", 0444, show_node_meminfo),
	PROC_TEXT("distance", "10\n"),
	{},
};

static const struct pseudo_row node_rows[] = {
	PROC_TEXT("online", "0\n"),
	PROC_TEXT("possible", "0\n"),
	PROC_TEXT("has_cpu", "0\n"),
	PROC_TEXT("has_memory", "0\n"),
	PROC_TEXT("has_normal_memory", "0\n"),
	PROC_DIR("node0", node0_rows),
	{},
};

static const struct pseudo_row thp_rows[] = {
	PROC_TEXT("enabled", "always [madvise] never\n"),
	PROC_TEXT("defrag", "always defer defer+madvise [madvise] never\n"),
	PROC_TEXT("shmem_enabled", "always within_size advise [never] deny force\n"),
	PROC_TEXT("hpage_pmd_size", "2097152\n"),
	PROC_TEXT("use_zero_page", "1\n"),
	{},
};

static const struct pseudo_row huge_2m_rows[] = {
	PROC_TEXT("nr_hugepages", "0\n"),
	PROC_TEXT("free_hugepages", "0\n"),
	PROC_TEXT("resv_hugepages", "0\n"),
	PROC_TEXT("surplus_hugepages", "0\n"),
	PROC_TEXT("nr_overcommit_hugepages", "0\n"),
	{},
};

static const struct pseudo_row hugepages_rows[] = { PROC_DIR("hugepages-2048kB", huge_2m_rows),
						    {} };

static const struct pseudo_row mm_rows[] = {
	PROC_DIR("transparent_hugepage", thp_rows),
	PROC_DIR("hugepages", hugepages_rows),
	{},
};

/* ---- network ------------------------------------------------------------------------------ */

static const struct pseudo_row lo_statistics_rows[] = {
	PROC_TEXT("rx_bytes", "0\n"),
	PROC_TEXT("tx_bytes", "0\n"),
	PROC_TEXT("rx_packets", "0\n"),
	PROC_TEXT("tx_packets", "0\n"),
	PROC_TEXT("rx_errors", "0\n"),
	PROC_TEXT("tx_errors", "0\n"),
	PROC_TEXT("rx_dropped", "0\n"),
	PROC_TEXT("tx_dropped", "0\n"),
	{},
};

static const struct pseudo_row lo_rows[] = {
	PROC_TEXT("address", "00:00:00:00:00:00\n"),
	PROC_TEXT("broadcast", "00:00:00:00:00:00\n"),
	PROC_TEXT("addr_len", "6\n"),
	PROC_TEXT("mtu", "65536\n"),
	PROC_TEXT("flags", "0x9\n"),
	PROC_TEXT("operstate", "unknown\n"),
	PROC_TEXT("type", "772\n"),
	PROC_TEXT("ifindex", "1\n"),
	PROC_TEXT("iflink", "1\n"),
	PROC_TEXT("carrier", "1\n"),
	PROC_TEXT("tx_queue_len", "1000\n"),
	PROC_TEXT("uevent", "INTERFACE=lo\nIFINDEX=1\n"),
	PROC_DIR("statistics", lo_statistics_rows),
	{},
};

static int lo_readlink(const struct pseudo_ref *ref UNUSED, char *buf, size_t size)
{
	static const char target[] = "../../devices/virtual/net/lo";

	if (sizeof(target) > size)
		return -ENAMETOOLONG;
	memcpy(buf, target, sizeof(target));
	return sizeof(target) - 1;
}

static const struct pseudo_row class_net_rows[] = {
	{ .name = "lo", .mode = S_IFLNK | 0777, .readlink = lo_readlink },
	{},
};

/* ---- the tree ----------------------------------------------------------------------------- */

static const struct pseudo_row virtual_net_rows[] = { PROC_DIR("lo", lo_rows), {} };
static const struct pseudo_row virtual_rows[] = { PROC_DIR("net", virtual_net_rows), {} };
static const struct pseudo_row system_rows[] = {
	{ .name = "cpu", .mode = S_IFDIR | 0555, .children = cpu_rows, .dir = &cpu_dir },
	PROC_DIR("node", node_rows),
	{},
};
static const struct pseudo_row devices_rows[] = {
	PROC_DIR("system", system_rows),
	PROC_DIR("virtual", virtual_rows),
	{},
};
static const struct pseudo_row class_rows[] = {
	PROC_DIR("block", no_rows),        PROC_DIR("mem", no_rows),
	PROC_DIR("misc", no_rows),         PROC_DIR("net", class_net_rows),
	PROC_DIR("tty", no_rows),          PROC_DIR("thermal", no_rows),
	PROC_DIR("power_supply", no_rows), {},
};
static const struct pseudo_row fs_rows[] = { PROC_DIR("cgroup", no_rows), {} };
static const struct pseudo_row kernel_rows[] = {
	PROC_DIR("mm", mm_rows),
	PROC_DIR("debug", no_rows),
	PROC_DIR("security", no_rows),
	PROC_TEXT("address_bits", "64\n"),
	PROC_TEXT("cpu_byteorder", "little\n"),
	PROC_TEXT("fscaps", "1\n"),
	PROC_TEXT("profiling", "0\n"),
	{},
};
static const struct pseudo_row dev_rows[] = { PROC_DIR("block", no_rows),
					      PROC_DIR("char", no_rows),
					      {} };

static const struct pseudo_row root_rows[] = {
	PROC_DIR("block", no_rows),
	PROC_DIR("bus", no_rows),
	PROC_DIR("class", class_rows),
	PROC_DIR("dev", dev_rows),
	PROC_DIR("devices", devices_rows),
	PROC_DIR("firmware", no_rows),
	PROC_DIR("fs", fs_rows),
	PROC_DIR("kernel", kernel_rows),
	PROC_DIR("module", no_rows),
	PROC_DIR("power", no_rows),
	{},
};

static const struct pseudo_row root_row = PROC_DIR("", root_rows);
static const struct pseudo_tree sys_tree = {
	.fs_name = "sysfs",
	.magic = SYSFS_MAGIC,
	.root = &root_row,
	.file_size = 4096,
};

int sysfs_new(struct superblock **out)
{
	return pseudofs_new(&sys_tree, out);
}

/*
 * /proc: the root of the tree, its links to the caller, and the files that fit here. Start reading
 * at root_rows; processes are in proc_pid.c, the machine in proc_host.c.
 */
#include <errno.h>
#include <string.h>

#include "fs/lock_file.h"
#include "sentry/proc.h"
#include "sentry/proc_priv.h"
#include "sentry/sysvipc.h"
#include "sentry/uts.h"

#define PROC_SUPER_MAGIC 0x9fa0

/* ---- links to the caller ------------------------------------------------------------------ */

static int self_readlink(const struct pseudo_ref *ref UNUSED, char *buf, size_t size)
{
	struct task *t = current_task();
	struct fmt text;

	if (!t)
		return -ENOENT;
	fmt_init_fixed(&text, buf, size);
	fmt_printf(&text, "%d", t->group->tgid);
	return text.overflow ? -ENAMETOOLONG : (int)text.len;
}

static int thread_self_readlink(const struct pseudo_ref *ref UNUSED, char *buf, size_t size)
{
	struct task *t = current_task();
	struct fmt text;

	if (!t)
		return -ENOENT;
	fmt_init_fixed(&text, buf, size);
	fmt_printf(&text, "%d/task/%d", t->group->tgid, t->tid);
	return text.overflow ? -ENAMETOOLONG : (int)text.len;
}

static int fixed_readlink(const char *target, char *buf, size_t size)
{
	size_t n = strlen(target);

	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(buf, target, n + 1);
	return (int)n;
}

static int mounts_readlink(const struct pseudo_ref *ref UNUSED, char *buf, size_t size)
{
	return fixed_readlink("self/mounts", buf, size);
}

static int net_readlink(const struct pseudo_ref *ref UNUSED, char *buf, size_t size)
{
	return fixed_readlink("self/net", buf, size);
}

/* ---- processes ---------------------------------------------------------------------------- */

static int root_lookup(const struct pseudo_ref *dir UNUSED, const char *name,
		       struct pseudo_ref *out)
{
	int id = proc_parse_number(name);
	struct task *t = id > 0 ? task_find(id) : NULL;

	if (!t)
		return -ENOENT;
	/* A thread has a directory of this kind too, though it is not listed. */
	bool leader = t->group->tgid == id;
	*out = (struct pseudo_ref){
		.row = &proc_pid_row,
		.key = { (uint64_t)t->group->tgid, leader ? 0 : (uint64_t)id },
	};
	task_put(t);
	return 0;
}

static int root_next(const struct pseudo_ref *dir UNUSED, uint64_t *cookie,
		     char name[NAME_LEN_MAX + 1], struct pseudo_ref *out)
{
	struct group *g = *cookie > INT32_MAX ? NULL : group_next((int)*cookie);
	struct fmt text;

	if (!g)
		return -ENOENT;
	*cookie = (uint64_t)g->tgid;
	*out = (struct pseudo_ref){ .row = &proc_pid_row, .key = { *cookie } };
	fmt_init_fixed(&text, name, NAME_LEN_MAX + 1);
	fmt_printf(&text, "%d", g->tgid);
	group_put(g);
	return 0;
}

static const struct pseudo_dir_ops root_dir = { .lookup = root_lookup, .next = root_next };

/* Nodes about a process are good as long as it is there. */
static bool node_is_valid(const struct pseudo_ref *ref)
{
	if (ref->key[0] == 0)
		return true;
	struct task *t = proc_task(ref);
	if (!t)
		return false;
	task_put(t);
	return true;
}

/* ---- small files -------------------------------------------------------------------------- */

static int show_locks(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	lock_show(out);
	return 0;
}

/* All are without a device. The order is that of sysfs(2). */
static const char *const filesystems[] = {
	"sysfs",  "tmpfs",  "proc",    "devtmpfs", "sockfs",
	"pipefs", "devpts", "overlay", "mqueue",   "ramfs",
};

const char *proc_filesystem(uint32_t index)
{
	return index < ARRAY_SIZE(filesystems) ? filesystems[index] : NULL;
}

static int show_filesystems(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(filesystems); i++)
		fmt_printf(out, "nodev\t%s\n", filesystems[i]);
	return 0;
}

/* /proc has one link more for each process. */
static void root_attr(const struct pseudo_ref *ref UNUSED, struct fs_stat *st)
{
	mutex_lock(&tasks_mu);
	list_for_each(pos, group_list_locked())
		st->nlink++;
	mutex_unlock(&tasks_mu);
}

#define VERSION_TEXT                                                                               \
	UTS_SYSNAME " version " UTS_RELEASE " (pinfold@localhost) (gcc (GCC) " __VERSION__         \
		    ", GNU ld (GNU Binutils) 2.40) " UTS_VERSION "\n"
#define DEVICES_TEXT                                                                               \
	"Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n128 "         \
	"ptm\n136 pts\n"                                                                           \
	"\nBlock devices:\n"
#define BUDDY_TEXT                                                                                 \
	"Node 0, zone   Normal      0      0      0      0      0      0      0      0      0    " \
	"  0      0 \n"
#define CGROUPS_TEXT "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
#define SYSVIPC_MSG_TEXT                                                                           \
	"       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid  " \
	"    "                                                                                     \
	"stime      rtime      ctime\n"
#define SYSVIPC_SEM_TEXT                                                                           \
	"       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"
#define SYSVIPC_SHM_TEXT                                                                           \
	"       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  " \
	"cgid      atime      dtime      ctime                   rss                  swap\n"
#define PRESSURE_SOME "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
#define PRESSURE_TEXT PRESSURE_SOME "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"

void (*_Atomic sysvipc_show[SYSVIPC_COUNT])(struct fmt *out);

static int show_sysvipc(const char *header, int kind, struct fmt *out)
{
	void (*show)(struct fmt *) = sysvipc_show[kind];

	fmt_puts(out, header);
	if (show)
		show(out);
	return 0;
}

static int show_sysvipc_msg(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	return show_sysvipc(SYSVIPC_MSG_TEXT, SYSVIPC_MSG, out);
}

static int show_sysvipc_sem(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	return show_sysvipc(SYSVIPC_SEM_TEXT, SYSVIPC_SEM, out);
}

static int show_sysvipc_shm(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	return show_sysvipc(SYSVIPC_SHM_TEXT, SYSVIPC_SHM, out);
}

static const struct pseudo_row sysvipc_rows[] = {
	PROC_FILE("msg", 0444, show_sysvipc_msg),
	PROC_FILE("sem", 0444, show_sysvipc_sem),
	PROC_FILE("shm", 0444, show_sysvipc_shm),
	{},
};

static const struct pseudo_row pressure_rows[] = {
	PROC_TEXT("cpu", PRESSURE_TEXT),
	PROC_TEXT("io", PRESSURE_TEXT),
	PROC_TEXT("memory", PRESSURE_TEXT),
	{},
};

static const struct pseudo_row tty_rows[] = {
	PROC_TEXT("drivers", "/dev/tty             /dev/tty        5       0 system:/dev/tty\n"
			     "/dev/console         /dev/console    5       1 system:console\n"
			     "/dev/ptmx            /dev/ptmx       5       2 system\n"
			     "pty_slave            /dev/pts      136 0-1048575 pty:slave\n"
			     "pty_master           /dev/ptm      128 0-1048575 pty:master\n"),
	{},
};

#define PROC_LINK(n, fn)                                                                           \
	{                                                                                          \
		.name = (n), .mode = S_IFLNK | 0777, .readlink = (fn)                              \
	}

static const struct pseudo_row root_rows[] = {
	PROC_LINK("self", self_readlink),
	PROC_LINK("thread-self", thread_self_readlink),
	PROC_LINK("mounts", mounts_readlink),
	PROC_LINK("net", net_readlink),
	PROC_FILE("cpuinfo", 0444, proc_show_cpuinfo),
	PROC_FILE("meminfo", 0444, proc_show_meminfo),
	PROC_FILE("stat", 0444, proc_show_global_stat),
	PROC_FILE("uptime", 0444, proc_show_uptime),
	PROC_FILE("loadavg", 0444, proc_show_loadavg),
	PROC_FILE("vmstat", 0444, proc_show_vmstat),
	PROC_FILE("interrupts", 0444, proc_show_interrupts),
	PROC_FILE("locks", 0444, show_locks),
	PROC_FILE("config.gz", 0444, proc_show_config_gz),
	PROC_TEXT("version", VERSION_TEXT),
	PROC_FILE("filesystems", 0444, show_filesystems),
	PROC_TEXT("cmdline", "console=tty0\n"),
	PROC_TEXT("devices", DEVICES_TEXT),
	PROC_TEXT("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
	PROC_TEXT("partitions", "major minor  #blocks  name\n\n"),
	PROC_TEXT("diskstats", ""),
	PROC_TEXT("buddyinfo", BUDDY_TEXT),
	PROC_TEXT("cgroups", CGROUPS_TEXT),
	PROC_TEXT("modules", ""),
	PROC_TEXT("consoles", ""),
	PROC_TEXT("execdomains", "0-0\tLinux           \t[kernel]\n"),
	PROC_TEXT("misc", ""),
	PROC_TEXT("key-users", ""),
	PROC_DIR("sys", proc_sys_rows),
	PROC_DIR("sysvipc", sysvipc_rows),
	PROC_DIR("pressure", pressure_rows),
	PROC_DIR("tty", tty_rows),
	{},
};

static const struct pseudo_row root_row = {
	.name = "",
	.mode = S_IFDIR | 0555,
	.children = root_rows,
	.dir = &root_dir,
	.attr = root_attr,
};

static const struct pseudo_tree proc_tree = {
	.fs_name = "proc",
	.magic = PROC_SUPER_MAGIC,
	.root = &root_row,
	.valid = node_is_valid,
};

int procfs_new(struct superblock **out)
{
	return pseudofs_new(&proc_tree, out);
}

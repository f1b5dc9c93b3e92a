/* The files of /proc/PID and /proc/PID/task/TID, except the longer ones: proc_stat.c, proc_fd.c. */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fs/mount.h"
#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/proc_priv.h"

/* Bytes of a process's memory that one call copies on the sentry's stack. */
#define CHUNK 4096
/* Longest command line or environment that is shown: what exec lets in. */
#define STRINGS_MAX ARG_MAX_TOTAL
/* Longest text written to a small file here. */
#define NUMBER_TEXT_MAX 32

struct task *proc_task(const struct pseudo_ref *ref)
{
	struct task *t = task_find((int)(ref->key[1] ? ref->key[1] : ref->key[0]));

	if (t && (uint64_t)t->group->tgid != ref->key[0]) {
		task_put(t);
		return NULL;
	}
	return t;
}

int proc_may_look(const struct pseudo_ref *ref)
{
	struct task *me = current_task(), *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	int err = !me || task_may_access(me, t) == 0 ? 0 : -EACCES;
	task_put(t);
	return err;
}

int proc_may_open(const struct pseudo_ref *ref, int flags UNUSED, const struct cred *c UNUSED)
{
	return proc_may_look(ref);
}

/* 0 when it has none. */
static uint64_t proc_mm_id(const struct pseudo_ref *ref)
{
	struct task *t = proc_task(ref);
	uint64_t id = 0;

	if (!t)
		return 0;
	mutex_lock(&t->mu);
	if (t->mm)
		id = t->mm->id;
	mutex_unlock(&t->mu);
	task_put(t);
	return id;
}

int proc_mm(const struct pseudo_ref *ref, struct mm **out)
{
	int err = proc_may_look(ref);
	struct task *t = err ? NULL : proc_task(ref);

	*out = NULL;
	if (!t)
		return err ? err : -ESRCH;
	*out = mm_use_of(t);
	task_put(t);
	return 0;
}

void proc_task_attr(const struct pseudo_ref *ref, struct fs_stat *st)
{
	struct task *t = proc_task(ref);

	st->ctime = st->mtime = st->atime = fs_now();
	if (!t)
		return;
	mutex_lock(&t->mu);
	st->uid = t->cred->euid;
	st->gid = t->cred->egid;
	/* A process whose inside is secret belongs to root here (proc(5)), but for its directory.
	 */
	bool secret = t->mm && t->mm->dumpable != 1;
	mutex_unlock(&t->mu);
	if (secret && !S_ISDIR(st->mode))
		st->uid = st->gid = 0;
	task_put(t);
}

int proc_parse_number(const char *name)
{
	long value = 0;

	if (!*name || (name[0] == '0' && name[1]))
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		value = value * 10 + (*name - '0');
		if (value > INT_MAX)
			return -1;
	}
	return (int)value;
}

struct path proc_current_root(void)
{
	struct fs_ctx *fs = current_task()->fs;

	mutex_lock(&fs->mu);
	struct path root = path_get(fs->root);
	mutex_unlock(&fs->mu);
	return root;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Appends guest memory [from, to) as far as it is mapped and readable; the strings of a program
 * always are, unless it took the right from itself. */
static void show_memory(struct mm *mm, uint64_t from, uint64_t to, struct fmt *out)
{
	char chunk[CHUNK];

	if (to < from || to - from > STRINGS_MAX)
		return;
	while (from < to) {
		size_t want = MIN(to - from, sizeof(chunk));
		ssize_t n = mm_copy_in(mm, chunk, from, want);
		if (n <= 0)
			return;
		fmt_write(out, chunk, (size_t)n);
		from += (size_t)n;
	}
}

static int show_cmdline(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);
	struct mm *mm = t ? mm_use_of(t) : NULL;

	if (!t)
		return -ESRCH;
	task_put(t);
	if (!mm)
		return 0;
	uint64_t from = mm->arg_start, to = mm->arg_end, env_end = mm->env_end;
	show_memory(mm, from, to, out);
	/* A program that overwrote its arguments with a longer title may run on into the
	 * environment: then the last byte is not NUL, and the title ends at the first one. */
	if (out->len > 0 && out->buf[out->len - 1] != 0 && env_end > to) {
		show_memory(mm, to, MIN(env_end, to + CHUNK), out);
		out->len = strnlen(out->buf, out->len);
	}
	mm_unuse(mm);
	return 0;
}

static int show_environ(const struct pseudo_ref *ref, struct fmt *out)
{
	struct mm *mm;
	int err = proc_mm(ref, &mm);

	if (err || !mm)
		return err;
	show_memory(mm, mm->env_start, mm->env_end, out);
	mm_unuse(mm);
	return 0;
}

static int show_auxv(const struct pseudo_ref *ref, struct fmt *out)
{
	struct mm *mm;
	int err = proc_mm(ref, &mm);

	if (err || !mm)
		return err;
	fmt_write(out, mm->auxv, MIN(mm->auxv_words, ARRAY_SIZE(mm->auxv)) * sizeof(mm->auxv[0]));
	mm_unuse(mm);
	return 0;
}

static int show_maps_by(const struct pseudo_ref *ref, struct fmt *out,
			void (*show)(struct mm *mm, struct path root, struct fmt *out))
{
	struct mm *mm;
	int err = proc_mm(ref, &mm);

	if (err || !mm)
		return err;
	struct path root = proc_current_root();
	show(mm, root, out);
	path_put(root);
	mm_unuse(mm);
	return 0;
}

static int show_maps(const struct pseudo_ref *ref, struct fmt *out)
{
	return show_maps_by(ref, out, mm_show_maps);
}

static int show_smaps(const struct pseudo_ref *ref, struct fmt *out)
{
	return show_maps_by(ref, out, mm_show_smaps);
}

static ssize_t mem_read(const struct pseudo_ref *ref, struct iov_iter *it, uint64_t pos)
{
	char chunk[CHUNK];
	struct mm *mm;
	size_t done = 0;
	ssize_t n = proc_mm(ref, &mm);

	if (n < 0 || !mm)
		return n;
	while (it->count > 0) {
		n = mm_force_in(mm, chunk, pos + done, MIN(it->count, sizeof(chunk)));
		if (n > 0)
			n = iov_copy_to(it, chunk, (size_t)n);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	mm_unuse(mm);
	/* An address without memory is an I/O error of this file. */
	return done ? (ssize_t)done : it->count ? -EIO : 0;
}

static ssize_t mem_write(const struct pseudo_ref *ref, struct iov_iter *it, uint64_t pos)
{
	char chunk[CHUNK];
	struct mm *mm;
	size_t done = 0;
	ssize_t n = proc_mm(ref, &mm);

	if (n < 0 || !mm)
		return n;
	while (it->count > 0) {
		n = iov_peek(it, chunk, MIN(it->count, sizeof(chunk)));
		if (n < 0) {
			mm_unuse(mm);
			return done ? (ssize_t)done : n;
		}
		n = mm_force_out(mm, pos + done, chunk, (size_t)n);
		if (n <= 0)
			break;
		iov_advance(it, (size_t)n);
		done += (size_t)n;
	}
	mm_unuse(mm);
	return done ? (ssize_t)done : it->count ? -EIO : 0;
}

/* ---- small files -------------------------------------------------------------------------- */

static int show_comm(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);
	char comm[sizeof(t->comm) + 1];

	if (!t)
		return -ESRCH;
	mutex_lock(&t->sighand->mu);
	memcpy(comm, t->comm, sizeof(t->comm));
	mutex_unlock(&t->sighand->mu);
	comm[sizeof(t->comm)] = 0;
	task_put(t);
	fmt_printf(out, "%s\n", comm);
	return 0;
}

/* Only threads of the same process may rename a task. */
static int store_comm(const struct pseudo_ref *ref, const char *text, size_t size)
{
	struct task *t = proc_task(ref), *me = current_task();

	if (!t)
		return -ESRCH;
	bool allowed = t->group == me->group;
	if (allowed) {
		/* A newline at the end stays, as in Linux. */
		size_t n = MIN(size, sizeof(t->comm) - 1);
		mutex_lock(&t->sighand->mu);
		memset(t->comm, 0, sizeof(t->comm));
		memcpy(t->comm, text, n);
		mutex_unlock(&t->sighand->mu);
	}
	task_put(t);
	return allowed ? 0 : -EINVAL;
}

static void show_limit(struct fmt *out, uint64_t value)
{
	if (value == RLIM_INFINITY)
		fmt_printf(out, "%-20s ", "unlimited");
	else
		fmt_printf(out, "%-20llu ", (unsigned long long)value);
}

static int show_limits(const struct pseudo_ref *ref, struct fmt *out)
{
	static const struct {
		const char *name, *unit;
	} rows[RLIM_NLIMITS] = {
		[RLIMIT_CPU] = { "Max cpu time", "seconds" },
		[RLIMIT_FSIZE] = { "Max file size", "bytes" },
		[RLIMIT_DATA] = { "Max data size", "bytes" },
		[RLIMIT_STACK] = { "Max stack size", "bytes" },
		[RLIMIT_CORE] = { "Max core file size", "bytes" },
		[RLIMIT_RSS] = { "Max resident set", "bytes" },
		[RLIMIT_NPROC] = { "Max processes", "processes" },
		[RLIMIT_NOFILE] = { "Max open files", "files" },
		[RLIMIT_MEMLOCK] = { "Max locked memory", "bytes" },
		[RLIMIT_AS] = { "Max address space", "bytes" },
		[RLIMIT_LOCKS] = { "Max file locks", "locks" },
		[RLIMIT_SIGPENDING] = { "Max pending signals", "signals" },
		[RLIMIT_MSGQUEUE] = { "Max msgqueue size", "bytes" },
		[RLIMIT_NICE] = { "Max nice priority", "" },
		[RLIMIT_RTPRIO] = { "Max realtime priority", "" },
		[RLIMIT_RTTIME] = { "Max realtime timeout", "us" },
	};
	struct rlimit lim[RLIM_NLIMITS];
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	mutex_lock(&t->sighand->mu);
	memcpy(lim, t->group->rlim, sizeof(lim));
	mutex_unlock(&t->sighand->mu);
	task_put(t);
	fmt_printf(out, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fmt_printf(out, "%-25s ", rows[i].name);
		show_limit(out, lim[i].rlim_cur);
		show_limit(out, lim[i].rlim_max);
		fmt_printf(out, "%-10s\n", rows[i].unit);
	}
	return 0;
}

static int show_mount_table(const struct pseudo_ref *ref, struct fmt *out, bool mountinfo)
{
	struct task *t = proc_task(ref);
	struct fs_ctx *fs = NULL;

	if (!t)
		return -ESRCH;
	mutex_lock(&t->mu);
	if (t->fs)
		fs = fs_ctx_get(t->fs);
	mutex_unlock(&t->mu);
	task_put(t);
	if (!fs)
		return -EINVAL;
	mutex_lock(&fs->mu);
	struct path root = path_get(fs->root);
	mutex_unlock(&fs->mu);
	fs_ctx_put(fs);
	mount_show(root, out, mountinfo);
	path_put(root);
	return 0;
}

static int show_mounts(const struct pseudo_ref *ref, struct fmt *out)
{
	return show_mount_table(ref, out, false);
}

static int show_mountinfo(const struct pseudo_ref *ref, struct fmt *out)
{
	return show_mount_table(ref, out, true);
}

/* Made of the first three columns of the mounts file. */
static int show_mountstats(const struct pseudo_ref *ref, struct fmt *out)
{
	struct fmt lines;

	fmt_init_heap(&lines);
	int err = show_mount_table(ref, &lines, false);
	for (char *line = lines.buf; !err && line && *line;) {
		char *end = strchr(line, '\n'), *save = NULL;
		if (end)
			*end = 0;
		const char *source = strtok_r(line, " ", &save),
			   *where = strtok_r(NULL, " ", &save);
		const char *type = strtok_r(NULL, " ", &save);
		if (type)
			fmt_printf(out, "device %s mounted on %s with fstype %s\n", source, where,
				   type);
		line = end ? end + 1 : NULL;
	}
	fmt_fini(&lines);
	return err;
}

static int show_oom_adj(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	fmt_printf(out, "%d\n", t->group->oom_score_adj);
	task_put(t);
	return 0;
}

static int store_oom_adj(const struct pseudo_ref *ref, const char *text, size_t size UNUSED)
{
	char *end;
	long value = strtol(text, &end, 10);
	struct task *t;

	if (end == text || (*end && *end != '\n') || value < -1000 || value > 1000)
		return -EINVAL;
	t = proc_task(ref);
	if (!t)
		return -ESRCH;
	int err = 0;
	if (value < t->group->oom_score_adj && !task_capable(current_task(), CAP_SYS_RESOURCE))
		err = -EACCES;
	else
		t->group->oom_score_adj = (int)value;
	task_put(t);
	return err;
}

/* As the kernel computes it for a process that uses next to nothing: two thirds of (1000 + adj). */
static int show_oom_score(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	fmt_printf(out, "%d\n", (1000 + t->group->oom_score_adj) * 2 / 3);
	task_put(t);
	return 0;
}

static int show_personality(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	fmt_printf(out, "%08llx\n", (unsigned long long)t->personality);
	task_put(t);
	return 0;
}

static int show_timerslack(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	fmt_printf(out, "%llu\n", (unsigned long long)t->timer_slack_ns);
	task_put(t);
	return 0;
}

static int show_schedstat(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);
	uint64_t user, sys;

	if (!t)
		return -ESRCH;
	task_times(t, &user, &sys);
	task_put(t);
	fmt_printf(out, "%llu 0 1\n", (unsigned long long)(user + sys));
	return 0;
}

static int show_syscall(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	if (t->syscall_nr == UINT64_MAX)
		fmt_puts(out, "running\n");
	else
		fmt_printf(out, "%lld 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", (long long)t->syscall_nr);
	task_put(t);
	return 0;
}

static int show_attr(const struct pseudo_ref *ref UNUSED, struct fmt *out UNUSED)
{
	/* A kernel without a security module answers so. */
	return -EINVAL;
}

static int show_children(const struct pseudo_ref *ref, struct fmt *out)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	mutex_lock(&tasks_mu);
	list_for_each(pos, &t->group->children) {
		struct group *child = list_entry(pos, struct group, sibling);
		if (child->parent_task == t || (!child->parent_task && t == t->group->leader))
			fmt_printf(out, "%d ", child->tgid);
	}
	mutex_unlock(&tasks_mu);
	task_put(t);
	return 0;
}

/* ---- task/ -------------------------------------------------------------------------------- */

static int task_dir_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out)
{
	int tid = proc_parse_number(name);
	struct task *t = tid > 0 ? task_find(tid) : NULL;

	if (!t)
		return -ENOENT;
	bool mine = (uint64_t)t->group->tgid == dir->key[0];
	task_put(t);
	if (!mine)
		return -ENOENT;
	*out = (struct pseudo_ref){ .row = &proc_tid_row, .key = { dir->key[0], (uint64_t)tid } };
	return 0;
}

/* Ids are not in order in the list; the smallest one that is large enough is next. */
static int task_dir_next(const struct pseudo_ref *dir, uint64_t *cookie,
			 char name[NAME_LEN_MAX + 1], struct pseudo_ref *out)
{
	struct group *g = group_find((int)dir->key[0]);
	uint64_t best = UINT64_MAX;
	struct fmt text;

	if (!g)
		return -ENOENT;
	mutex_lock(&tasks_mu);
	list_for_each(pos, &g->threads) {
		uint64_t tid = (uint64_t)list_entry(pos, struct task, group_link)->tid;
		if (tid >= *cookie && tid < best)
			best = tid;
	}
	mutex_unlock(&tasks_mu);
	group_put(g);
	if (best == UINT64_MAX)
		return -ENOENT;
	*cookie = best;
	*out = (struct pseudo_ref){ .row = &proc_tid_row, .key = { dir->key[0], best } };
	fmt_init_fixed(&text, name, NAME_LEN_MAX + 1);
	fmt_printf(&text, "%llu", (unsigned long long)best);
	return 0;
}

static const struct pseudo_dir_ops proc_task_dir = { .lookup = task_dir_lookup,
						     .next = task_dir_next };

/* ---- rows --------------------------------------------------------------------------------- */

#define TASK_FILE(n, m, fn)                                                                        \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | (m), .show = (fn), .attr = proc_task_attr           \
	}
#define TASK_TEXT(n, m, t)                                                                         \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | (m), .text = (t), .attr = proc_task_attr            \
	}
#define TASK_SECRET(n, m, fn)                                                                      \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | (m), .show = (fn), .attr = proc_task_attr,          \
		.may_open = proc_may_open, .owner = proc_mm_id                                     \
	}
#define TASK_LINK(n, fn)                                                                           \
	{                                                                                          \
		.name = (n), .mode = S_IFLNK | 0777, .readlink = proc_readlink_##fn,               \
		.follow = proc_follow_##fn, .attr = proc_task_attr                                 \
	}
#define TASK_DIR(n, m, rows, ops)                                                                  \
	{                                                                                          \
		.name = (n), .mode = S_IFDIR | (m), .children = (rows), .dir = (ops),              \
		.attr = proc_task_attr                                                             \
	}

static const struct pseudo_row attr_rows[] = {
	TASK_FILE("current", 0666, show_attr),
	TASK_FILE("prev", 0444, show_attr),
	TASK_FILE("exec", 0666, show_attr),
	{},
};

#define ID_MAP_TEXT "         0          0 4294967295\n"

/* What a process and a thread have in common. */
#define COMMON_ROWS                                                                                \
	TASK_DIR("fd", 0500, NULL, &proc_fd_dir),                                                  \
		TASK_DIR("fdinfo", 0555, NULL, &proc_fdinfo_dir),                                  \
		TASK_DIR("ns", 0511, NULL, &proc_ns_dir),                                          \
		TASK_DIR("net", 0555, proc_net_rows, NULL),                                        \
		TASK_DIR("attr", 0555, attr_rows, NULL),                                           \
		TASK_SECRET("environ", 0400, show_environ), TASK_SECRET("auxv", 0400, show_auxv),  \
		TASK_FILE("status", 0444, proc_show_status),                                       \
		TASK_SECRET("personality", 0400, show_personality),                                \
		TASK_FILE("limits", 0444, show_limits),                                            \
		{ .name = "comm",                                                                  \
		  .mode = S_IFREG | 0644,                                                          \
		  .show = show_comm,                                                               \
		  .store = store_comm,                                                             \
		  .attr = proc_task_attr },                                                        \
		TASK_SECRET("syscall", 0400, show_syscall),                                        \
		TASK_FILE("cmdline", 0444, show_cmdline), TASK_FILE("stat", 0444, proc_show_stat), \
		TASK_FILE("statm", 0444, proc_show_statm), TASK_SECRET("maps", 0444, show_maps),   \
		TASK_SECRET("smaps", 0444, show_smaps),                                            \
		{ .name = "mem",                                                                   \
		  .mode = S_IFREG | 0600,                                                          \
		  .read_at = mem_read,                                                             \
		  .write_at = mem_write,                                                           \
		  .attr = proc_task_attr,                                                          \
		  .may_open = proc_may_open,                                                       \
		  .owner = proc_mm_id },                                                           \
		TASK_LINK("cwd", cwd), TASK_LINK("root", root), TASK_LINK("exe", exe),             \
		TASK_FILE("mounts", 0444, show_mounts),                                            \
		TASK_FILE("mountinfo", 0444, show_mountinfo), TASK_TEXT("wchan", 0444, "0"),       \
		TASK_FILE("schedstat", 0444, show_schedstat), TASK_TEXT("cpuset", 0444, "/\n"),    \
		TASK_TEXT("cgroup", 0444, "0::/\n"), TASK_FILE("oom_score", 0444, show_oom_score), \
		{ .name = "oom_score_adj",                                                         \
		  .mode = S_IFREG | 0644,                                                          \
		  .show = show_oom_adj,                                                            \
		  .store = store_oom_adj,                                                          \
		  .attr = proc_task_attr },                                                        \
		TASK_TEXT("loginuid", 0644, "4294967295"),                                         \
		TASK_TEXT("sessionid", 0444, "4294967295"),                                        \
		TASK_TEXT(                                                                         \
			"io", 0400,                                                                \
			"rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n"  \
			"cancelled_write_bytes: 0\n"),                                             \
		TASK_TEXT("uid_map", 0644, ID_MAP_TEXT), TASK_TEXT("gid_map", 0644, ID_MAP_TEXT),  \
		TASK_TEXT("projid_map", 0644, ID_MAP_TEXT),                                        \
		TASK_TEXT("setgroups", 0644, "allow\n")

static const struct pseudo_row tid_rows[] = {
	COMMON_ROWS,
	TASK_FILE("children", 0444, show_children),
	{},
};

static const struct pseudo_row pid_rows[] = {
	TASK_DIR("task", 0555, NULL, &proc_task_dir),
	COMMON_ROWS,
	TASK_FILE("mountstats", 0400, show_mountstats),
	TASK_FILE("timerslack_ns", 0666, show_timerslack),
	TASK_TEXT("coredump_filter", 0644, "00000033\n"),
	{},
};

const struct pseudo_row proc_tid_row = TASK_DIR("", 0555, tid_rows, NULL);
const struct pseudo_row proc_pid_row = TASK_DIR("", 0555, pid_rows, NULL);

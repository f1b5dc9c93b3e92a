/* /proc/PID/stat, statm and status (proc_pid_stat(5), proc_pid_status(5)). */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "fs/tty.h"
#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/proc_priv.h"

#define PAGE_KB (PAGE_SIZE / 1024)
#define PF_RANDOMIZE 0x00400000u
#define PF_FORKNOEXEC 0x00000040u

/* What the lines need, gathered under the right locks. */
struct snapshot {
	char comm[16];
	char state;
	int tgid, tid, ppid, pgrp, sid, tty_nr, tpgid, tracer, threads, nice, exit_signal,
		exit_code;
	bool did_exec, no_new_privs, all_threads;
	uint64_t utime, stime, cutime, cstime; /* ticks */
	uint64_t start;                        /* ticks since boot */
	uint64_t pending, shared_pending, blocked, ignored, caught;
	uint64_t rss_limit;
	int policy, prio;
	uint32_t umask;
	int fd_size;
	const struct cred *cred; /* referenced */
	struct {
		bool present;
		uint64_t total, data, stack, exec, shared, locked; /* pages */
		uint64_t start_code, end_code, start_stack, start_data, end_data, brk;
		uint64_t arg_start, arg_end, env_start, env_end;
		uint64_t anon, file; /* resident pages */
	} mm;
};

/* Pages that one look at a process's residency examines: 4 GiB, some milliseconds. */
#define RESIDENT_LOOK_MAX (1u << 20)
#define RESIDENT_CHUNK 4096

/* Guest threads do not report when they sleep; one that is inside a call and is not the reader is
 * taken to wait in it. */
static char state_of(struct task *t)
{
	if (t->group->zombie || t->state == TASK_ZOMBIE)
		return 'Z';
	switch (t->state) {
	case TASK_STOPPED:
		return 'T';
	case TASK_TRACED:
		return 't';
	case TASK_DEAD:
		return 'X';
	default:
		break;
	}
	if (t == current_task() || t->syscall_nr == UINT64_MAX)
		return 'R';
	return 'S';
}

static const char *state_name(char state)
{
	switch (state) {
	case 'S':
		return "S (sleeping)";
	case 'T':
		return "T (stopped)";
	case 't':
		return "t (tracing stop)";
	case 'Z':
		return "Z (zombie)";
	case 'X':
		return "X (dead)";
	}
	return "R (running)";
}

static void snap_tree(struct task *t, struct snapshot *s)
{
	struct group *g = t->group;
	uint64_t user, sys;

	mutex_lock(&tasks_mu);
	s->state = state_of(t);
	s->tgid = g->tgid;
	s->tid = t->tid;
	s->ppid = g->parent ? g->parent->tgid : 0;
	s->pgrp = g->pgrp;
	s->sid = g->sid;
	s->threads = g->thread_count;
	s->exit_signal = t == g->leader ? g->exit_signal : -1;
	s->exit_code = g->zombie ? g->exit_code : 0;
	s->did_exec = g->did_exec;
	s->nice = g->nice;
	s->start = g->start_ns;
	if (s->all_threads)
		group_times_locked(g, &user, &sys);
	else
		task_times(t, &user, &sys);
	s->utime = user / NS_PER_TICK;
	s->stime = sys / NS_PER_TICK;
	s->cutime = g->child_utime_ns / NS_PER_TICK;
	s->cstime = g->child_stime_ns / NS_PER_TICK;
	s->policy = t->sched_policy;
	s->prio = t->sched_prio;
	s->no_new_privs = t->no_new_privs;
	mutex_unlock(&tasks_mu);
	uint64_t boot = proc_boot_mono();
	s->start = s->start > boot ? (s->start - boot) / NS_PER_TICK : 0;
}

static void snap_signals(struct task *t, struct snapshot *s)
{
	struct sighand *sh = t->sighand;

	mutex_lock(&sh->mu);
	for (size_t i = 0; i < sizeof(s->comm); i++)
		s->comm[i] = t->comm[i];
	s->pending = t->pending.set;
	s->shared_pending = t->group->pending.set;
	s->blocked = t->blocked;
	for (int sig = 1; sig <= SIG_COUNT; sig++) {
		if (sh->action[sig].handler == K_SIG_IGN)
			s->ignored |= SIG_BIT(sig);
		else if (sh->action[sig].handler != K_SIG_DFL)
			s->caught |= SIG_BIT(sig);
	}
	s->rss_limit = t->group->rlim[RLIMIT_RSS].rlim_cur;
	mutex_unlock(&sh->mu);
	s->comm[sizeof(s->comm) - 1] = 0;
}

static void snap_pointers(struct task *t, struct snapshot *s)
{
	mutex_lock(&t->mu);
	/* Counting a reference is the one change that a shared cred allows. */
	s->cred = cred_get((struct cred *)(uintptr_t)t->cred);
	struct fs_ctx *fs = t->fs ? fs_ctx_get(t->fs) : NULL;
	struct fdtable *files = t->files ? fdtable_get(t->files) : NULL;
	mutex_unlock(&t->mu);
	if (fs) {
		mutex_lock(&fs->mu);
		s->umask = fs->umask;
		mutex_unlock(&fs->mu);
		fs_ctx_put(fs);
	}
	if (files) {
		int n = fdtable_count(files);
		for (s->fd_size = 64; s->fd_size < n;)
			s->fd_size *= 2;
		fdtable_put(files);
	}
}

/* The resident pages of up to RESIDENT_CHUNK of v from *at on; *at moves. mm->mu held; mm is the
 * caller's. */
static uint64_t count_resident_locked(const struct vma *v, uint64_t *at)
{
	uint8_t bytes[RESIDENT_CHUNK];
	uint64_t n = MIN((v->end - *at) >> PAGE_SHIFT, sizeof(bytes)), found = 0;

	if (plat->resident(current_task()->ctx, *at, n << PAGE_SHIFT, bytes))
		memset(bytes, 0, sizeof(bytes));
	for (uint64_t i = 0; i < n; i++)
		found += bytes[i] & 1;
	*at += n << PAGE_SHIFT;
	return found;
}

/* LINUX: counts resident pages. The host does that for a stub, out of the sentry's reach. The
 * caller can be asked about its own anonymous memory; of files, and of other processes, what is
 * shown is what could be resident at most. */
static void snap_resident(struct mm *mm, struct snapshot *s)
{
	struct task *me = current_task();
	bool own = me && me->mm == mm;
	uint64_t at = 0, looks = 0;
	struct vma *v;

	mutex_lock(&mm->mu);
	while ((v = vma_find_locked(mm, at)) != NULL) {
		at = MAX(at, v->start);
		uint64_t pages = (v->end - at) >> PAGE_SHIFT;
		if (own && !v->file && v->prot != PROT_NONE && looks < RESIDENT_LOOK_MAX) {
			looks += MIN(pages, (uint64_t)RESIDENT_CHUNK);
			s->mm.anon += count_resident_locked(v, &at);
			continue;
		}
		if (v->prot != PROT_NONE)
			*(v->file ? &s->mm.file : &s->mm.anon) += pages;
		at = v->end;
	}
	mutex_unlock(&mm->mu);
}

static void snap_mm(struct task *t, struct snapshot *s)
{
	struct mm *mm = mm_use_of(t);

	if (!mm)
		return;
	mutex_lock(&mm->mu);
	s->mm.present = true;
	s->mm.total = mm->total_pages;
	s->mm.data = mm->data_pages;
	s->mm.stack = mm->stack_pages;
	s->mm.exec = mm->exec_pages;
	s->mm.shared = mm->shared_pages;
	s->mm.locked = mm->locked_pages;
	s->mm.start_code = mm->start_code;
	s->mm.end_code = mm->end_code;
	s->mm.start_stack = mm->start_stack;
	s->mm.start_data = mm->start_data;
	s->mm.end_data = mm->end_data;
	s->mm.brk = mm->start_brk;
	s->mm.arg_start = mm->arg_start;
	s->mm.arg_end = mm->arg_end;
	s->mm.env_start = mm->env_start;
	s->mm.env_end = mm->env_end;
	mutex_unlock(&mm->mu);
	snap_resident(mm, s);
	mm_unuse(mm);
}

/* cred of *s is to be put. */
static int snap(const struct pseudo_ref *ref, struct snapshot *s)
{
	struct task *t = proc_task(ref);

	if (!t)
		return -ESRCH;
	*s = (struct snapshot){ .all_threads = ref->key[1] == 0 };
	snap_tree(t, s);
	snap_signals(t, s);
	snap_pointers(t, s);
	snap_mm(t, s);
	tty_proc_numbers(s->sid, &s->tty_nr, &s->tpgid);
	task_put(t);
	return 0;
}

static void snap_done(struct snapshot *s)
{
	cred_put((struct cred *)(uintptr_t)s->cred);
}

static uint64_t resident_pages(const struct snapshot *s)
{
	return MIN(s->mm.total, s->mm.anon + s->mm.file);
}

/* The priority column: 20 + nice, negative for real-time policies. */
static int priority_of(const struct snapshot *s)
{
	bool real_time = s->policy == SCHED_FIFO || s->policy == SCHED_RR;

	return real_time ? -1 - s->prio : 20 + s->nice;
}

int proc_show_stat(const struct pseudo_ref *ref, struct fmt *out)
{
	struct snapshot s;
	int err = snap(ref, &s);

	if (err)
		return err;
	bool may_look = proc_may_look(ref) == 0;
#define SECRET(x) ((unsigned long long)(may_look ? (x) : 0))
	fmt_printf(out, "%d (%s) %c %d %d %d %d %d %u 0 0 0 0 %llu %llu %llu %llu %d %d %d 0 %llu ",
		   ref->key[1] ? s.tid : s.tgid, s.comm, s.state, s.ppid, s.pgrp, s.sid, s.tty_nr,
		   s.tpgid, PF_RANDOMIZE | (s.did_exec ? 0 : PF_FORKNOEXEC),
		   (unsigned long long)s.utime, (unsigned long long)s.stime,
		   (unsigned long long)s.cutime, (unsigned long long)s.cstime, priority_of(&s),
		   s.nice, s.threads, (unsigned long long)s.start);
	fmt_printf(out, "%llu %llu %llu %llu %llu %llu 0 0 ",
		   (unsigned long long)(s.mm.total * PAGE_SIZE),
		   (unsigned long long)resident_pages(&s), (unsigned long long)s.rss_limit,
		   SECRET(s.mm.start_code), SECRET(s.mm.end_code), SECRET(s.mm.start_stack));
	/* The four sets are those of the first 31 signals, as they always were here. */
	fmt_printf(out, "%llu %llu %llu %llu 0 0 0 %d 0 %d %d 0 0 0 ",
		   (unsigned long long)(s.pending & 0x7fffffff),
		   (unsigned long long)(s.blocked & 0x7fffffff),
		   (unsigned long long)(s.ignored & 0x7fffffff),
		   (unsigned long long)(s.caught & 0x7fffffff), s.exit_signal,
		   s.policy == SCHED_FIFO || s.policy == SCHED_RR ? s.prio : 0, s.policy);
	fmt_printf(out, "%llu %llu %llu %llu %llu %llu %llu %d\n", SECRET(s.mm.start_data),
		   SECRET(s.mm.end_data), SECRET(s.mm.brk), SECRET(s.mm.arg_start),
		   SECRET(s.mm.arg_end), SECRET(s.mm.env_start), SECRET(s.mm.env_end),
		   may_look ? s.exit_code : 0);
#undef SECRET
	snap_done(&s);
	return 0;
}

int proc_show_statm(const struct pseudo_ref *ref, struct fmt *out)
{
	struct snapshot s;
	int err = snap(ref, &s);

	if (err)
		return err;
	fmt_printf(
		out, "%llu %llu %llu %llu 0 %llu 0\n", (unsigned long long)s.mm.total,
		(unsigned long long)resident_pages(&s), (unsigned long long)s.mm.shared,
		(unsigned long long)((s.mm.end_code - s.mm.start_code + PAGE_SIZE - 1) / PAGE_SIZE),
		(unsigned long long)(s.mm.data + s.mm.stack));
	snap_done(&s);
	return 0;
}

/* ---- status ------------------------------------------------------------------------------- */

static void status_ids(const struct snapshot *s, struct fmt *out)
{
	const struct cred *c = s->cred;

	fmt_printf(out, "Tgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\nTracerPid:\t%d\n", s->tgid,
		   s->tid, s->ppid, s->tracer);
	fmt_printf(out, "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\nFDSize:\t%d\nGroups:\t",
		   c->uid, c->euid, c->suid, c->fsuid, c->gid, c->egid, c->sgid, c->fsgid,
		   s->fd_size);
	for (size_t i = 0; i < c->group_count; i++)
		fmt_printf(out, i ? " %u" : "%u", c->groups[i]);
	fmt_printf(out, " \nNStgid:\t%d\nNSpid:\t%d\nNSpgid:\t%d\nNSsid:\t%d\nKthread:\t0\n",
		   s->tgid, s->tid, s->pgrp, s->sid);
}

static void status_memory(const struct snapshot *s, struct fmt *out)
{
	if (!s->mm.present)
		return;
	unsigned long total = s->mm.total * PAGE_KB, rss = resident_pages(s) * PAGE_KB;
	unsigned long text =
		((s->mm.end_code - s->mm.start_code + PAGE_SIZE - 1) / PAGE_SIZE) * PAGE_KB;
	unsigned long exec = s->mm.exec * PAGE_KB;
	const struct {
		const char *name;
		unsigned long kb;
	} rows[] = {
		{ "VmPeak", total },
		{ "VmSize", total },
		{ "VmLck", s->mm.locked * PAGE_KB },
		{ "VmPin", 0 },
		{ "VmHWM", rss },
		{ "VmRSS", rss },
		{ "RssAnon", MIN(rss, s->mm.anon * PAGE_KB) },
		{ "RssFile", rss - MIN(rss, s->mm.anon * PAGE_KB) },
		{ "RssShmem", 0 },
		{ "VmData", s->mm.data * PAGE_KB },
		{ "VmStk", s->mm.stack * PAGE_KB },
		{ "VmExe", text },
		{ "VmLib", exec > text ? exec - text : 0 },
		{ "VmPTE", 4 + total / 512 },
		{ "VmSwap", 0 },
		{ "HugetlbPages", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		fmt_printf(out, "%s:\t%8lu kB\n", rows[i].name, rows[i].kb);
	fmt_puts(out, "CoreDumping:\t0\nTHP_enabled:\t1\nuntag_mask:\t0xffffffffffffffff\n");
}

static void status_signals(const struct snapshot *s, struct fmt *out)
{
	fmt_printf(out, "Threads:\t%d\nSigQ:\t0/4096\n", s->threads);
	const struct {
		const char *name;
		uint64_t set;
	} rows[] = {
		{ "SigPnd", s->pending },
		{ "ShdPnd", s->shared_pending },
		{ "SigBlk", s->blocked },
		{ "SigIgn", s->ignored },
		{ "SigCgt", s->caught },
		{ "CapInh", s->cred->cap_inheritable },
		{ "CapPrm", s->cred->cap_permitted },
		{ "CapEff", s->cred->cap_effective },
		{ "CapBnd", s->cred->cap_bounding },
		{ "CapAmb", s->cred->cap_ambient },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		fmt_printf(out, "%s:\t%016llx\n", rows[i].name, (unsigned long long)rows[i].set);
	fmt_printf(out, "NoNewPrivs:\t%d\nSeccomp:\t0\nSeccomp_filters:\t0\n", s->no_new_privs);
	fmt_puts(out, "Speculation_Store_Bypass:\tthread vulnerable\n"
		      "SpeculationIndirectBranch:\tconditional enabled\n");
}

int proc_show_status(const struct pseudo_ref *ref, struct fmt *out)
{
	struct snapshot s;
	int err = snap(ref, &s);

	if (err)
		return err;
	fmt_puts(out, "Name:\t");
	fmt_mangle(out, s.comm, "\n\\");
	fmt_printf(out, "\nUmask:\t%04o\nState:\t%s\n", s.umask, state_name(s.state));
	status_ids(&s, out);
	status_memory(&s, out);
	status_signals(&s, out);
	fmt_puts(out, "Cpus_allowed:\t");
	proc_show_cpu_mask(out);
	fmt_puts(out, "\nCpus_allowed_list:\t");
	proc_show_cpu_list(out);
	fmt_puts(out, "\nMems_allowed:\t1\nMems_allowed_list:\t0\n"
		      "voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n");
	snap_done(&s);
	return 0;
}

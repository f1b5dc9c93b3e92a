/*
 * From a spec to a running sandbox. Order matters: everything that forks comes while there is one
 * thread; everything that opens host files comes before the filter; the first guest instruction
 * comes after it. The main thread then only takes host signals (children, terminal, time-out) and
 * must live as long as the process, because stubs and gofer die with it.
 */
#include "sentry/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/gofer_client.h"
#include "fs/hostfd.h"
#include "gofer/gofer.h"
#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/base/thread.h"
#include "platform/host/host_isolate.h"
#include "platform/host/seccomp.h"
#include "sentry/init_exec.h"
#include "sentry/limits.h"
#include "sentry/memwatch.h"
#include "sentry/onecpu.h"
#include "sentry/plat.h"
#include "sentry/proc.h"
#include "sentry/resources.h"
#include "sentry/session.h"
#include "sentry/stub_death.h"
#include "sentry/task.h"
#include "sentry/task_hooks.h"
#include "sentry/trace.h"
#include "sentry/uts.h"
#include "sentry/view.h"

#define STATUS_TIMEOUT 124
#define STATUS_SETUP 125

/* Queued to the main thread when the first process has ended, or stopped. */
#define DONE_SIGNAL (PLAT_REQUEST_SIGNAL + 1)
#define STOP_SIGNAL (PLAT_REQUEST_SIGNAL + 2)
/* From the watcher of the memory limit. */
#define MEMORY_SIGNAL (PLAT_REQUEST_SIGNAL + 3)

static pid_t main_tid;
static int init_status; /* wait status of the first process; written before DONE_SIGNAL is queued */

static int fail(const char *what, int err)
{
	log_error("%s: %s", what, strerror(-err));
	return err;
}

static int choose_platform(const struct sandbox_spec *spec)
{
	plat = spec->platform ? platform_find(spec->platform) : platform_at(0);
	if (!plat) {
		log_error("no platform is called '%s'; 'pinfold doctor' lists them",
			  spec->platform);
		return -EINVAL;
	}
	return 0;
}

/* Only a platform that does not start is asked why: the probe costs more than the start. `start` is
 * one of its steps. */
static int start_platform(int (*start)(void))
{
	char why[256];
	int err = start();

	if (err && plat->probe(why, sizeof(why)) != 0)
		log_error("platform %s does not work here: %s", plat->name, why);
	else if (err)
		return fail("cannot start the platform", err);
	return err;
}

/* Guest files use host descriptors; the hard limit bounds them. */
static void raise_fd_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* What else was inherited is nobody's here: the guest gets the three standard ones, and our
 * processes have no use for the caller's files. `keep` is the trace's, or -1. */
static void close_inherited(int keep)
{
	if (keep >= 3)
		close_range((unsigned)keep + 1, ~0u, 0);
	if (keep != 3)
		close_range(3, keep > 3 ? (unsigned)keep - 1 : ~0u, 0);
}

static int start_gofer(const struct sandbox_spec *spec, struct gofer_client **out, int *out_pid)
{
	struct gofer_export *exports = mem_calloc(spec->view_count, sizeof(*exports));
	struct gofer_config cfg = {
		.exports = exports,
		.hidden = spec->hidden,
		.hidden_count = spec->hidden_count,
		.absent = spec->absent,
		.absent_count = spec->absent_count,
	};
	int fd, pid;

	if (!exports)
		return -ENOMEM;
	for (size_t i = 0; i < spec->view_count; i++) {
		const struct view *v = &spec->views[i];
		if (v->kind == VIEW_TMPFS)
			continue;
		exports[cfg.export_count++] =
			(struct gofer_export){ .host_path = v->host,
					       .writable = v->kind == VIEW_RW };
	}
	int err = gofer_start(&cfg, &fd, &pid);
	mem_free(exports);
	*out_pid = pid;
	return err ? err : gofer_client_new(fd, out);
}

/* Descriptors 0-2 of the caller become the guest's. One that is closed stays closed inside; its
 * number is taken here so that nothing of ours lands on it. */
static int stdio_files(struct fdtable *files, const struct fs_lookup *at)
{
	struct file *f;

	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFL) < 0) {
			if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
				return -errno;
			continue;
		}
		int err = hostfd_open_std(at, fd, &f);
		if (err)
			return err;
		err = fd_install(files, f, fd, false);
		if (err < 0) {
			file_put(f);
			return err;
		}
	}
	return 0;
}

static int make_init_task(const struct sandbox_spec *spec, struct gofer_client *gofer,
			  struct task **out)
{
	struct path root;
	struct fs_ctx *fs;
	struct fdtable *files;
	struct cred *cred = cred_new(spec->uid, spec->gid, spec->groups, spec->group_count);
	/* The tree is built with all capabilities: mount points may be made where the user may not
	 * write. */
	struct cred *builder = cred_new(0, 0, NULL, 0);
	int err = cred && builder ? 0 : -ENOMEM;

	if (!err)
		err = view_build(spec, gofer, builder, &root);
	cred_put(builder);
	if (err)
		return err;
	/* The root's reference is the sandbox's own and stays. */
	err = fs_ctx_new(root, root, 022, &fs);
	if (!err)
		err = fdtable_new(&files);
	if (!err)
		err = stdio_files(files, &(struct fs_lookup){ .ctx = fs, .cred = cred });
	if (!err)
		err = task_new_init(cred, fs, files, out);
	if (err)
		return fail("cannot make the first process", err);
	hosttty_give_to_session((*out)->group->sid, (*out)->group->pgrp);
	fs_ctx_put(fs);
	fdtable_put(files);
	cred_put(cred);
	return 0;
}

/* The first process has ended: called with tasks_mu held. */
static void init_ended(int status)
{
	init_status = status;
	syscall(SYS_tgkill, getpid(), main_tid, DONE_SIGNAL);
}

/* The first process was stopped (Ctrl-Z): called with tasks_mu held. */
static void init_stopped(bool stopped)
{
	if (stopped)
		syscall(SYS_tgkill, getpid(), main_tid, STOP_SIGNAL);
}

/* pinfold stops with its first process, so that the shell outside gets its terminal back, and both
 * go on together. */
static void stop_with_guest(void)
{
	struct k_siginfo info;
	struct group *g = group_find(1);

	if (!g)
		return;
	mutex_lock(&tasks_mu);
	bool stopped = g->stopped;
	int pgrp = g->pgrp;
	mutex_unlock(&tasks_mu);
	group_put(g);
	if (!stopped)
		return;
	hosttty_restore();
	kill(getpid(), SIGSTOP);
	/* Here after SIGCONT. */
	hosttty_resume();
	siginfo_init(&info, SIGCONT, SI_KERNEL);
	signal_send_pgrp(pgrp, &info);
}

static void reap_children(void)
{
	int status;
	pid_t pid;
	bool ended = false;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL | WUNTRACED)) > 0) {
		ended = ended || WIFSIGNALED(status) || WIFEXITED(status);
		if (!plat->child_event(pid, status))
			log_debug("child %d ended with status %#x", pid, status);
	}
	if (ended)
		stub_death_check();
}

/* A signal that somebody sent to pinfold reaches the command; one that the terminal made reaches
 * the foreground group. */
static void forward(const siginfo_t *si)
{
	struct k_siginfo info;
	struct group *g;

	if (si->si_code > 0 && hosttty_signal(si->si_signo))
		return;
	g = group_find(1);
	if (!g)
		return;
	siginfo_init(&info, si->si_signo, SI_USER);
	signal_send_group(g, &info);
	group_put(g);
}

/* Until the first process has ended; its wait status, -ETIMEDOUT, or -ENOMEM at the memory limit.
 */
static int main_loop(deadline_t deadline)
{
	sigset_t all;
	siginfo_t si;

	sigfillset(&all);
	for (;;) {
		struct timespec ts, *tsp = NULL;
		deadline_t next = MIN(deadline, onecpu_until());
		if (next != DEADLINE_NEVER) {
			uint64_t now = mono_now_ns(), left = next > now ? next - now : 0;
			ts = (struct timespec){ (time_t)(left / 1000000000u),
						(long)(left % 1000000000u) };
			tsp = &ts;
		}
		int sig = sigtimedwait(&all, &si, tsp);
		if (sig < 0 && errno == EAGAIN) {
			if (next == deadline)
				return -ETIMEDOUT;
			onecpu_end();
		}
		if (sig < 0)
			continue;
		if (sig == DONE_SIGNAL)
			return init_status;
		if (sig == MEMORY_SIGNAL)
			return -ENOMEM;
		if (sig == SIGCHLD)
			reap_children();
		else if (sig == STOP_SIGNAL)
			stop_with_guest();
		else if (sig == PLAT_REQUEST_SIGNAL)
			plat->main_request();
		else if (sig != SIGPIPE)
			forward(&si);
	}
}

static int exit_status(const struct sandbox_spec *spec, int status)
{
	if (status == -ETIMEDOUT) {
		log_error("time-out of %.3g s: the sandbox was ended",
			  (double)spec->timeout_ns / 1e9);
		return STATUS_TIMEOUT;
	}
	if (status == -ENOMEM) {
		log_error("memory limit of %lu MiB reached: the sandbox was ended",
			  (unsigned long)(spec->memory_limit >> 20));
		return 128 + SIGKILL;
	}
	if (init_exec_failure())
		return init_exec_failure();
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The parts of the kernel that ask nobody. */
static int prepare_kernel(const struct sandbox_spec *spec)
{
	int err = proc_capture_host();

	if (err)
		return fail("cannot read the host's properties", err);
	task_hooks_install();
	stop_init_hook = init_stopped;
	init_end_hook = init_ended;
	/* Who is not watched by a shell is not stopped by its terminal (an orphaned process group).
	 */
	session_init_is_watched = session_is_watched_outside();
	uts_init(spec->hostname);
	trace_init(spec->trace_fd);
	pid_set_limit((int)MIN(spec->pids_limit ? spec->pids_limit : TASKS_MAX_DEFAULT,
			       (uint32_t)PID_MAX_DEFAULT));
	return 0;
}

/* Everything before the first task. The helpers are forked first and waited for when first needed:
 * the platform by ready(), the gofer by the first request. */
static int prepare(const struct sandbox_spec *spec, struct task **out_init)
{
	struct gofer_client *gofer;
	int gofer_pid, err = choose_platform(spec);

	if (err)
		return err;
	close_inherited(spec->trace_fd);
	raise_fd_limit();
	/* First of all, so that the helpers and the stubs are in it too: who takes over the sentry
	 * can then reach no other process of the user's. */
	err = host_enter_domain();
	if (err)
		return fail("cannot enter a Landlock domain", err);
	err = resources_init(spec->memory_limit);
	if (err)
		return fail("cannot read the host's properties", err);
	if (spec->memory_limit && (err = memwatch_start(spec->memory_limit, MEMORY_SIGNAL)))
		return fail("cannot watch the memory limit", err);
	onecpu_begin();
	onecpu_note(main_tid);
	err = start_gofer(spec, &gofer, &gofer_pid);
	if (err)
		return fail("cannot start the gofer", err);
	onecpu_note(gofer_pid);
	/* Nothing below needs any; the gofer, which does, has its own. */
	err = host_keep_caps(0);
	if (err)
		return fail("cannot drop capabilities", err);
	err = start_platform(plat->start);
	if (err)
		return err;
	err = prepare_kernel(spec);
	if (!err && plat->ready)
		err = start_platform(plat->ready);
	if (err)
		return err;
	err = mm_prepare();
	if (err)
		return fail("cannot make the first process", err);
	return make_init_task(spec, gofer, out_init);
}

static int run_threads(struct task *init, const struct sandbox_spec *spec)
{
	int err =
		host_confine(strcmp(plat->name, "ptrace") == 0 ? HOST_SENTRY_PTRACE : HOST_SENTRY);

	if (!err)
		err = init_exec_start(init, spec);
	/* Else the end of it starts the timers, unless one is armed before. */
	return err || onecpu_until() != DEADLINE_NEVER ? err : timer_start_thread();
}

int sandbox_run(const struct sandbox_spec *spec)
{
	struct task *init;
	sigset_t all;

	main_tid = gettid();
	/* One arena: an idle sandbox stays small, and malloc never asks sysfs for the processors
	 * nor procfs for the overcommit mode, which the filter forbids. Each thread's cache takes
	 * the load off its lock. */
	mallopt(M_ARENA_MAX, 1);
	/* An arena that shrinks makes malloc read /proc/sys/vm/overcommit_memory, which is
	 * forbidden too. */
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	if (prepare(spec, &init))
		return STATUS_SETUP;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	deadline_t deadline =
		spec->timeout_ns ? deadline_after_ns(spec->timeout_ns) : DEADLINE_NEVER;
	int err = run_threads(init, spec);
	if (err) {
		fail("cannot confine the sentry", err);
		return STATUS_SETUP;
	}
	int status = exit_status(spec, main_loop(deadline));
	hosttty_restore();
	return status;
}

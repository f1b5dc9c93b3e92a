/* Test rig for platforms: see platform_rig.h. */
#include "tests/unit/platform_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "platform/base/thread.h"

struct start {
	const struct platform_ops *ops;
	rig_fn *fn;
};

static void *test_thread(void *arg)
{
	struct start *s = arg;

	s->fn(s->ops);
	_exit(0);
}

static NORETURN void sentry_main(const struct platform_ops *ops, rig_fn *fn, int seconds)
{
	struct start s = { .ops = ops, .fn = fn };
	sigset_t set;
	siginfo_t si;
	pthread_t thread;

	sigfillset(&set);
	sigdelset(&set, SIGALRM);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm((unsigned)seconds);
	CHECK_EQ(ops->start(), 0);
	if (ops->ready)
		CHECK_EQ(ops->ready(), 0);
	CHECK_EQ(thread_start(&thread, test_thread, &s), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, PLAT_REQUEST_SIGNAL);
	for (;;) {
		int sig = sigwaitinfo(&set, &si);
		if (sig == PLAT_REQUEST_SIGNAL)
			ops->main_request();
		for (;;) {
			int status;
			int pid = waitpid(-1, &status, WNOHANG | __WALL);
			if (pid <= 0)
				break;
			ops->child_event(pid, status);
		}
	}
}

int rig_spawn(const struct platform_ops *ops, rig_fn *fn, int seconds)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		sentry_main(ops, fn, seconds);
	return pid;
}

static int run_bare(const struct platform_ops *ops, rig_fn *fn, int seconds)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		alarm((unsigned)seconds);
		fn(ops);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 255;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int rig_run(const struct platform_ops *ops, rig_fn *fn, int seconds)
{
	int status;
	pid_t pid = rig_spawn(ops, fn, seconds);

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 255;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void rig_map_anon(struct guest *g, uint64_t addr, uint64_t size, int prot, unsigned flags)
{
	struct plat_map m = {
		.addr = addr, .size = size, .prot = prot, .flags = PLAT_MAP_ANON | flags, .fd = -1
	};

	CHECK_EQ(g->ops->map(g->ctx, &m), 0);
}

void rig_at(struct guest *g, size_t off)
{
	g->regs = (struct regs){ 0 };
	g->regs.rip = RIG_CODE + off;
	g->regs.rsp = RIG_STACK + RIG_STACK_SIZE - 64;
	g->regs.eflags = 0x202;
	g->regs.cs = 0x33;
	g->regs.ss = 0x2b;
}

void rig_guest(struct guest *g, const struct platform_ops *ops, const void *code, size_t size)
{
	*g = (struct guest){ .ops = ops };
	CHECK_EQ(ops->as_new(&g->as, &g->ctx), 0);
	rig_map_anon(g, RIG_CODE, page_up(size), PROT_READ | PROT_WRITE, 0);
	rig_map_anon(g, RIG_DATA, RIG_DATA_SIZE, PROT_READ | PROT_WRITE, 0);
	rig_map_anon(g, RIG_STACK, RIG_STACK_SIZE, PROT_READ | PROT_WRITE, 0);
	CHECK_EQ(ops->copy_out(g->as, RIG_CODE, code, size), size);
	CHECK_EQ(ops->protect(g->ctx, RIG_CODE, page_up(size), PROT_READ | PROT_EXEC), 0);
	rig_at(g, 0);
}

void rig_syscall(struct guest *g, uint64_t nr)
{
	do {
		g->ops->run(g->ctx, &g->regs, &g->ev);
	} while (g->ev.kind == PLAT_INTERRUPT);
	if (g->ev.kind == PLAT_FAULT)
		fprintf(stderr, "fault: signal %d code %d at %#lx, rip %#lx\n", g->ev.signo,
			g->ev.code, g->ev.addr, g->regs.rip);
	CHECK_EQ(g->ev.kind, PLAT_SYSCALL);
	CHECK_EQ(g->regs.orig_rax, nr);
}

void rig_return(struct guest *g, uint64_t value)
{
	g->regs.rax = value;
}

void rig_fork(struct guest *parent, struct guest *out_child)
{
	*out_child = *parent;
	CHECK_EQ(parent->ops->as_fork(parent->ctx, &out_child->as, &out_child->ctx), 0);
}

void rig_clone(struct guest *caller, struct guest *out_thread)
{
	*out_thread = *caller;
	CHECK_EQ(caller->ops->ctx_clone(caller->ctx, &out_thread->ctx), 0);
}

void rig_free(struct guest *g)
{
	g->ops->ctx_free(g->ctx);
	g->ops->as_free(g->as);
}

uint64_t rig_peek(struct guest *g, uint64_t addr)
{
	uint64_t v;

	CHECK_EQ(g->ops->copy_in(g->as, &v, addr, sizeof(v)), sizeof(v));
	return v;
}

void rig_poke(struct guest *g, uint64_t addr, uint64_t value)
{
	CHECK_EQ(g->ops->copy_out(g->as, addr, &value, sizeof(value)), sizeof(value));
}

void rig_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	CHECK_EQ(thread_start(&thread, fn, arg), 0);
}

int rig_children_of(int pid)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int count = 0;

	CHECK(d != NULL);
	while ((e = readdir(d))) {
		char path[300], buf[512];
		int ppid;
		char state;
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		int fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		ssize_t n = read(fd, buf, sizeof(buf) - 1);
		close(fd);
		buf[n > 0 ? n : 0] = 0;
		char *p = strrchr(buf, ')');
		if (p && sscanf(p + 1, " %c %d", &state, &ppid) == 2 && ppid == pid && state != 'Z')
			count++;
	}
	closedir(d);
	return count;
}

uint64_t rig_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct bound {
	const struct platform_ops *ops;
	const struct rig_test *test;
};

static void run_bound(void **state)
{
	const struct bound *b = *state;
	char why[256] = "";

	if (b->ops->probe(why, sizeof(why)) != 0) {
		/* Not cmocka's skip(), which older versions print as "not ok". */
		print_message("# skipped, %s: %s\n", b->ops->name, why);
		return;
	}
	int seconds = b->test->seconds ? b->test->seconds : 20;
	int status = b->test->bare ? run_bare(b->ops, b->test->fn, seconds)
				   : rig_run(b->ops, b->test->fn, seconds);
	assert_true(status == 0 || status == 77);
}

int rig_main(const char *group, const struct rig_test *tests, size_t count)
{
	static struct CMUnitTest cm[128];
	static struct bound bound[128];
	static char names[128][96];
	const char *only = getenv("PLATFORM"), *only_test = getenv("TEST");
	size_t n = 0;

	for (size_t p = 0; platform_at(p); p++)
		for (size_t i = 0; i < count && n < ARRAY_SIZE(cm); i++) {
			const struct platform_ops *ops = platform_at(p);
			if (only && strcmp(only, ops->name) != 0)
				continue;
			if (only_test && strcmp(only_test, tests[i].name) != 0)
				continue;
			bound[n] = (struct bound){ .ops = ops, .test = &tests[i] };
			snprintf(names[n], sizeof(names[n]), "%s: %s", ops->name, tests[i].name);
			cm[n] = (struct CMUnitTest){ .name = names[n],
						     .test_func = run_bound,
						     .initial_state = &bound[n] };
			n++;
		}
	return _cmocka_run_group_tests(group, cm, n, NULL, NULL);
}

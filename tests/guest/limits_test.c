/* getrlimit(2), setrlimit(2), prlimit64(2), getrusage(2), times(2). */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>

#include "tests/guest/t.h"

TEST(limits_read_and_set)
{
	struct rlimit rl, old, was;
	CHECK_OK(syscall(SYS_getrlimit, RLIMIT_NOFILE, &rl));
	CHECK(rl.rlim_cur <= rl.rlim_max);
	was = rl;
	rl.rlim_cur = 100;
	CHECK_OK(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &rl, &old));
	CHECK_EQ(old.rlim_cur, was.rlim_cur);
	CHECK_OK(syscall(SYS_getrlimit, RLIMIT_NOFILE, &old));
	CHECK_EQ(old.rlim_cur, 100);
	CHECK_OK(syscall(SYS_setrlimit, RLIMIT_NOFILE, &was));
}

TEST(limit_errors)
{
	struct rlimit rl = { 10, 5 };
	CHECK_ERR(syscall(SYS_getrlimit, 16, &rl), EINVAL);
	CHECK_ERR(syscall(SYS_getrlimit, RLIMIT_CPU, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_setrlimit, RLIMIT_CPU, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl), EINVAL);
	CHECK_ERR(syscall(SYS_prlimit64, 0x7ffffff, RLIMIT_CPU, NULL, NULL), ESRCH);
	CHECK_ERR(syscall(SYS_prlimit64, 0, 99, NULL, NULL), EINVAL);
	rl.rlim_max = RLIM_INFINITY;
	CHECK_ERR(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl), EPERM); /* above fs.nr_open */
}

TEST(hard_limit_only_falls)
{
	struct rlimit rl = { 10, 20 };
	CHECK_OK(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl));
	if (geteuid() == 0)
		CHECK_OK(setresuid(1000, 1000, 1000));
	rl.rlim_max = 30;
	CHECK_ERR(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl), EPERM);
	rl = (struct rlimit){ 20, 20 };
	CHECK_OK(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl));
}

TEST(limits_are_inherited)
{
	struct rlimit rl = { 77, 77 };
	CHECK_OK(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl));
	pid_t pid = fork();
	if (pid == 0) {
		getrlimit(RLIMIT_NOFILE, &rl);
		_exit((int)rl.rlim_cur);
	}
	CHECK_CHILD(pid, 77);
}

TEST(nofile_is_enforced)
{
	struct rlimit rl = { 5, 5 };
	CHECK_OK(syscall(SYS_setrlimit, RLIMIT_NOFILE, &rl));
	int fd, n = 0;
	while ((fd = dup(0)) >= 0 && n++ < 100)
		CHECK(fd < 5);
	CHECK_EQ(errno, EMFILE);
}

static volatile sig_atomic_t xcpu;

static void on_xcpu(int sig)
{
	(void)sig;
	xcpu++;
}

TEST(cpu_limit_sends_xcpu_then_kills)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit rl = { 1, 2 };
		signal(SIGXCPU, on_xcpu);
		setrlimit(RLIMIT_CPU, &rl);
		while (!xcpu)
			;
		for (;;)
			;
	}
	CHECK_KILLED(pid, SIGKILL);
}

TEST(getrusage_errors_and_growth)
{
	struct rusage a, b;
	CHECK_ERR(getrusage(5, &a), EINVAL);
	CHECK_ERR(syscall(SYS_getrusage, RUSAGE_SELF, (void *)1), EFAULT);
	CHECK_OK(getrusage(RUSAGE_SELF, &a));
	clock_t end = clock() + CLOCKS_PER_SEC / 20;
	while (clock() < end)
		;
	CHECK_OK(getrusage(RUSAGE_SELF, &b));
	long ua = a.ru_utime.tv_sec * 1000000 + a.ru_utime.tv_usec + a.ru_stime.tv_sec * 1000000 + a.ru_stime.tv_usec;
	long ub = b.ru_utime.tv_sec * 1000000 + b.ru_utime.tv_usec + b.ru_stime.tv_sec * 1000000 + b.ru_stime.tv_usec;
	CHECK(ub - ua >= 30000 && ub - ua < 2000000);
	CHECK_OK(getrusage(RUSAGE_THREAD, &b));
	CHECK_OK(getrusage(RUSAGE_CHILDREN, &b));
}

TEST(peak_memory)
{
	struct rusage ru;
	size_t size = 64 << 20;
	pid_t pid = fork();
	int st;
	if (pid == 0) {
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, 1, size);
		getrusage(RUSAGE_SELF, &ru);
		_exit(ru.ru_maxrss >= 64 << 10 && ru.ru_maxrss < 128 << 10 ? 0 : 1);
	}
	CHECK_EQ(wait4(pid, &st, 0, &ru), pid);
	CHECK_EQ(st, 0);
	CHECK(ru.ru_maxrss >= 64 << 10 && ru.ru_maxrss < 128 << 10);
	CHECK_OK(getrusage(RUSAGE_CHILDREN, &ru));
	CHECK(ru.ru_maxrss >= 64 << 10);
}

TEST(times_counts_ticks)
{
	struct tms t;
	clock_t a = times(&t);
	CHECK(a > 0);
	usleep(50000);
	clock_t b = times(NULL);
	CHECK(b - a >= 4 && b - a < 500);
	CHECK_ERR(syscall(SYS_times, (void *)1), EFAULT);
}
T_MAIN

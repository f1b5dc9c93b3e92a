/* prctl(2), arch_prctl(2), personality(2), kcmp(2). */
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

TEST(thread_name)
{
	char name[17] = { 0 };
	CHECK_OK(prctl(PR_SET_NAME, "a name that is too long"));
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK_STR(name, "a name that is ");
	CHECK_OK(prctl(PR_SET_NAME, ""));
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK_STR(name, "");
	CHECK_ERR(prctl(PR_SET_NAME, 1), EFAULT);
	CHECK_ERR(prctl(PR_GET_NAME, 1), EFAULT);
}

TEST(unknown_options)
{
	CHECK_ERR(prctl(99999, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_SET_UNALIGN, 1), EINVAL);
	CHECK_ERR(prctl(PR_GET_FPEMU, 1), EINVAL);
}

TEST(pdeathsig)
{
	int sig = 99;
	CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGTERM));
	CHECK_OK(prctl(PR_GET_PDEATHSIG, &sig));
	CHECK_EQ(sig, SIGTERM);
	CHECK_ERR(prctl(PR_SET_PDEATHSIG, 65), EINVAL);
	CHECK_ERR(prctl(PR_GET_PDEATHSIG, 1), EFAULT);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_GET_PDEATHSIG, &sig);
		_exit(sig); /* not inherited */
	}
	CHECK_CHILD(pid, 0);
}

TEST(dumpable)
{
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
	CHECK_OK(prctl(PR_SET_DUMPABLE, 0));
	CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
	CHECK_ERR(prctl(PR_SET_DUMPABLE, 2), EINVAL);
	CHECK_OK(prctl(PR_SET_DUMPABLE, 1));
}

TEST(no_new_privs)
{
	CHECK_ERR(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL);
	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	pid_t pid = fork();
	if (pid == 0)
		_exit(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	CHECK_CHILD(pid, 1);
}

TEST(subreaper)
{
	int on = 99;
	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &on));
	CHECK_EQ(on, 1);
	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 0));
}

TEST(timer_slack)
{
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 1234));
	CHECK_EQ(prctl(PR_GET_TIMERSLACK), 1234);
	pid_t pid = fork();
	if (pid == 0) {
		/* inherited, and what 0 means from now on */
		if (prctl(PR_GET_TIMERSLACK) != 1234 || prctl(PR_SET_TIMERSLACK, 99) || prctl(PR_SET_TIMERSLACK, 0))
			_exit(1);
		_exit(prctl(PR_GET_TIMERSLACK) == 1234 ? 0 : 2);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(prctl(PR_SET_TIMERSLACK, 0));
	CHECK(prctl(PR_GET_TIMERSLACK) != 1234);
}

TEST(keepcaps_and_securebits)
{
	CHECK_EQ(prctl(PR_GET_KEEPCAPS), 0);
	CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
	CHECK_EQ(prctl(PR_GET_KEEPCAPS), 1);
	CHECK_EQ(prctl(PR_GET_SECUREBITS) & 16, 16);
	CHECK_ERR(prctl(PR_SET_KEEPCAPS, 2), EINVAL);
	SKIP_IF(geteuid() != 0, "needs root");
	CHECK_OK(prctl(PR_SET_SECUREBITS, 4 | 8)); /* NO_SETUID_FIXUP and its lock */
	CHECK_EQ(prctl(PR_GET_SECUREBITS), 12);
	CHECK_ERR(prctl(PR_SET_SECUREBITS, 0), EPERM);
	CHECK_ERR(prctl(PR_SET_SECUREBITS, 0x1000), EPERM);
}

TEST(bounding_set)
{
	CHECK_ERR(prctl(PR_CAPBSET_READ, 200), EINVAL);
	SKIP_IF(geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_KILL) != 1, "needs CAP_KILL in the bounding set");
	CHECK_OK(prctl(PR_CAPBSET_DROP, CAP_KILL));
	CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_KILL), 0);
	CHECK_ERR(prctl(PR_CAPBSET_DROP, 200), EINVAL);
	CHECK_OK(setresuid(1000, 1000, 1000));
	CHECK_ERR(prctl(PR_CAPBSET_DROP, CAP_CHOWN), EPERM);
}

TEST(ambient_set)
{
	CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0), 0);
	CHECK_ERR(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 200, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_CAP_AMBIENT, 9, CAP_KILL, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0), EPERM); /* not inheritable */
	CHECK_ERR(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0), EINVAL);
	CHECK_OK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	CHECK_OK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_KILL, 0, 0));
}

TEST(tsc_and_timing)
{
	int tsc = 0;
	CHECK_OK(prctl(PR_GET_TSC, &tsc));
	CHECK_EQ(tsc, PR_TSC_ENABLE);
	CHECK_OK(prctl(PR_SET_TSC, PR_TSC_ENABLE));
	CHECK_EQ(prctl(PR_GET_TIMING), 0);
	CHECK_ERR(prctl(PR_SET_TIMING, 1), EINVAL);
}

TEST(memory_options)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0);
	CHECK_OK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
	CHECK_ERR(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0), EINVAL);
	/* the name may be refused by a kernel without it, a bad one is always refused */
	CHECK_ERR(prctl(PR_SET_VMA, 77, p, 4096, "x"), EINVAL);
	CHECK_ERR(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 4096, "bad[name]"), EINVAL);
}

TEST(machine_check_policy)
{
	CHECK_EQ(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), PR_MCE_KILL_DEFAULT);
	CHECK_OK(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
	CHECK_EQ(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), PR_MCE_KILL_EARLY);
	CHECK_OK(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0));
	CHECK_EQ(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), PR_MCE_KILL_DEFAULT);
	CHECK_ERR(prctl(PR_MCE_KILL, 9, 0, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 9, 0, 0), EINVAL);
	CHECK_ERR(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 1, 0), EINVAL);
}

TEST(fs_and_gs_base)
{
	unsigned long fs = 0, gs = 1, word = 42, got;
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs));
	CHECK(fs != 0);
	__asm__("mov %%fs:0, %0" : "=r"(got));
	CHECK_EQ(got, *(unsigned long *)fs);
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_SET_GS, &word));
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_GS, &gs));
	CHECK(gs == (unsigned long)&word);
	__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
	CHECK_EQ(got, 42);
	getppid();
	__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
	CHECK_EQ(got, 42);
	CHECK_ERR(syscall(SYS_arch_prctl, ARCH_SET_FS, ~0ul), EPERM);
	CHECK_ERR(syscall(SYS_arch_prctl, ARCH_GET_FS, 1), EFAULT);
	CHECK_ERR(syscall(SYS_arch_prctl, 0x7777, 0), EINVAL);
}

TEST(gs_base_survives_fork)
{
	unsigned long word = 7, got;
	CHECK_OK(syscall(SYS_arch_prctl, ARCH_SET_GS, &word));
	pid_t pid = fork();
	if (pid == 0) {
		__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
		_exit((int)got);
	}
	CHECK_CHILD(pid, 7);
}

TEST(personality_is_remembered)
{
	long old = personality(0xffffffff);
	CHECK_EQ(personality(ADDR_NO_RANDOMIZE | (unsigned long)old), old);
	CHECK_EQ(personality(0xffffffff), ADDR_NO_RANDOMIZE | old);
	pid_t pid = fork();
	if (pid == 0)
		_exit(personality(0xffffffff) & ADDR_NO_RANDOMIZE ? 3 : 4);
	CHECK_CHILD(pid, 3);
}

static void *pause_forever(void *arg)
{
	*(int *)arg = gettid();
	for (;;)
		pause();
	return NULL;
}

TEST(kcmp_compares)
{
	pthread_t th;
	volatile int tid = 0;
	int me = getpid(), fd = open("/dev/null", O_RDONLY), dupfd = dup(fd), other = open("/dev/null", O_RDONLY);
	long r = syscall(SYS_kcmp, me, me, KCMP_VM, 0, 0);
	SKIP_IF(r < 0 && (errno == ENOSYS || errno == EPERM), "kernel without kcmp");
	CHECK_EQ(r, 0);
	CHECK_EQ(syscall(SYS_kcmp, me, me, KCMP_FILE, fd, dupfd), 0);
	CHECK(syscall(SYS_kcmp, me, me, KCMP_FILE, fd, other) > 0);
	CHECK_ERR(syscall(SYS_kcmp, me, me, KCMP_FILE, fd, 999), EBADF);
	CHECK_ERR(syscall(SYS_kcmp, me, 0x7ffffff, KCMP_VM, 0, 0), ESRCH);
	CHECK_ERR(syscall(SYS_kcmp, me, me, 99, 0, 0), EINVAL);
	pthread_create(&th, NULL, pause_forever, (void *)&tid);
	while (!tid)
		usleep(1000);
	CHECK_EQ(syscall(SYS_kcmp, me, tid, KCMP_FILES, 0, 0), 0);
	CHECK_EQ(syscall(SYS_kcmp, me, tid, KCMP_SIGHAND, 0, 0), 0);
	CHECK_EQ(syscall(SYS_kcmp, me, tid, KCMP_IO, 0, 0), 0);
	CHECK_EQ(syscall(SYS_kcmp, me, tid, KCMP_SYSVSEM, 0, 0), 0);
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	CHECK(syscall(SYS_kcmp, me, pid, KCMP_VM, 0, 0) > 0);
	CHECK(syscall(SYS_kcmp, me, pid, KCMP_FILES, 0, 0) > 0);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}
T_MAIN

/* wait4(2), waitid(2), exit(2), exit_group(2), and job control: stop and continue. */
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

static pid_t child_exiting(int code)
{
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0)
		_exit(code);
	return pid;
}

static pid_t child_pausing(void)
{
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

TEST(exit_status_is_one_byte)
{
	int st;
	pid_t pid = child_exiting(0x1234);
	CHECK_EQ(wait4(-1, &st, 0, NULL), pid);
	CHECK_EQ(st, 0x3400);
	CHECK_ERR(wait4(-1, &st, 0, NULL), ECHILD);
}

TEST(wait_errors)
{
	int st;
	CHECK_ERR(wait4(-1, &st, 0x100, NULL), EINVAL);
	CHECK_ERR(wait4(getpid(), &st, 0, NULL), ECHILD);
	CHECK_ERR(wait4(1, &st, 0, NULL), ECHILD);
	CHECK_ERR(wait4(INT32_MIN, &st, 0, NULL), ESRCH);
	CHECK_ERR(syscall(SYS_waitid, 9, 0, NULL, WEXITED, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_ALL, 0, NULL, 0, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_ALL, 0, NULL, WNOHANG, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_PID, 0, NULL, WEXITED, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_PGID, -1, NULL, WEXITED, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_PIDFD, -1, NULL, WEXITED, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_waitid, P_PIDFD, 77, NULL, WEXITED, NULL), EBADF);
	CHECK_ERR(syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED, NULL), ECHILD);
	child_exiting(0);
	CHECK_ERR(wait4(-1, (int *)1, 0, NULL), EFAULT);
	CHECK_ERR(wait4(-1, &st, 0, NULL), ECHILD); /* it is gone all the same */
}

TEST(wnohang_finds_nothing_yet)
{
	int st = 99;
	siginfo_t si;
	pid_t pid = child_pausing();
	CHECK_EQ(wait4(pid, &st, WNOHANG, NULL), 0);
	CHECK_EQ(st, 99);
	memset(&si, 1, sizeof(si));
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG));
	CHECK_EQ(si.si_signo, 0);
	CHECK_EQ(si.si_pid, 0);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(waitid_fills_the_info)
{
	siginfo_t si;
	pid_t pid = child_exiting(5);
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT));
	CHECK_EQ(si.si_signo, SIGCHLD);
	CHECK_EQ(si.si_code, CLD_EXITED);
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(si.si_uid, getuid());
	CHECK_EQ(si.si_status, 5);
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WEXITED)); /* WNOWAIT left it */
	CHECK_ERR(waitid(P_PID, (id_t)pid, &si, WEXITED), ECHILD);
	pid = child_pausing();
	kill(pid, SIGTERM);
	CHECK_OK(waitid(P_ALL, 0, &si, WEXITED));
	CHECK_EQ(si.si_code, CLD_KILLED);
	CHECK_EQ(si.si_status, SIGTERM);
}

TEST(wait_by_process_group)
{
	int st;
	pid_t a = fork();
	if (a == 0) {
		setpgid(0, 0);
		_exit(1);
	}
	setpgid(a, a);
	pid_t b = child_exiting(2);
	CHECK_EQ(waitpid(-a, &st, 0), a);
	CHECK_EQ(WEXITSTATUS(st), 1);
	CHECK_ERR(waitpid(-a, &st, 0), ECHILD);
	CHECK_EQ(waitpid(0, &st, 0), b);
}

TEST(stop_and_continue)
{
	int st;
	siginfo_t si;
	pid_t pid = child_pausing();
	/* a group of its own, which we watch: SIGTSTP does not stop an orphaned one */
	CHECK_OK(setpgid(pid, pid));
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	CHECK_EQ(st, 0x137f);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED | WNOHANG), 0); /* reported once */
	kill(pid, SIGCONT);
	CHECK_EQ(waitpid(pid, &st, WCONTINUED), pid);
	CHECK_EQ(st, 0xffff);
	CHECK(WIFCONTINUED(st));
	/* SIGTSTP does not stop an orphaned process group, which ours may be. */
	CHECK_OK(setpgid(pid, pid));
	kill(pid, SIGTSTP);
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WSTOPPED));
	CHECK_EQ(si.si_code, CLD_STOPPED);
	CHECK_EQ(si.si_status, SIGTSTP);
	kill(pid, SIGCONT);
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WCONTINUED));
	CHECK_EQ(si.si_code, CLD_CONTINUED);
	CHECK_EQ(si.si_status, SIGCONT);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(sigkill_ends_a_stopped_process)
{
	int st;
	pid_t pid = child_pausing();
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	kill(pid, SIGTERM); /* waits until it continues */
	usleep(20000);
	CHECK_EQ(waitpid(pid, &st, WNOHANG), 0);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(term_waits_for_cont)
{
	int st;
	pid_t pid = child_pausing();
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	kill(pid, SIGTERM);
	kill(pid, SIGCONT);
	CHECK_KILLED(pid, SIGTERM);
}

static void *spin(void *arg)
{
	for (;;)
		++*(volatile long *)arg;
	return NULL;
}

TEST(stop_stops_every_thread)
{
	volatile long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int st;
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t th;
		pthread_create(&th, NULL, spin, (void *)shared);
		for (;;)
			pause();
	}
	while (*shared == 0)
		usleep(1000);
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	long before = *shared;
	usleep(50000);
	CHECK_EQ(*shared, before);
	kill(pid, SIGCONT);
	CHECK_EQ(waitpid(pid, &st, WCONTINUED), pid);
	usleep(50000);
	CHECK(*shared != before);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

static volatile sig_atomic_t chld_count, chld_code;

static void on_chld(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	chld_count++;
	chld_code = si->si_code;
}

TEST(sigchld_tells_of_stop_continue_and_end)
{
	struct sigaction sa = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO | SA_RESTART };
	int st;
	sigaction(SIGCHLD, &sa, NULL);
	pid_t pid = child_pausing();
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	usleep(10000);
	CHECK_EQ(chld_count, 1);
	CHECK_EQ(chld_code, CLD_STOPPED);
	kill(pid, SIGCONT);
	CHECK_EQ(waitpid(pid, &st, WCONTINUED), pid);
	usleep(10000);
	CHECK_EQ(chld_count, 2);
	CHECK_EQ(chld_code, CLD_CONTINUED);
	kill(pid, SIGTERM);
	CHECK_KILLED(pid, SIGTERM);
	usleep(10000);
	CHECK_EQ(chld_count, 3);
	CHECK_EQ(chld_code, CLD_KILLED);
}

TEST(nocldstop_and_nocldwait)
{
	struct sigaction sa = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP | SA_RESTART };
	int st;
	sigaction(SIGCHLD, &sa, NULL);
	pid_t pid = child_pausing();
	kill(pid, SIGSTOP);
	CHECK_EQ(waitpid(pid, &st, WUNTRACED), pid);
	usleep(10000);
	CHECK_EQ(chld_count, 0);
	sa.sa_flags = SA_SIGINFO | SA_NOCLDWAIT | SA_RESTART;
	sigaction(SIGCHLD, &sa, NULL);
	kill(pid, SIGKILL);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD); /* waits for the end, then finds nobody */
	CHECK_EQ(chld_count, 1);
}

TEST(ignored_sigchld_reaps)
{
	int st;
	signal(SIGCHLD, SIG_IGN);
	pid_t pid = child_exiting(3);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD);
	CHECK_ERR(kill(pid, 0), ESRCH);
}

static int child_fn(void *arg)
{
	(void)arg;
	_exit(9);
}

static char clone_stack[16384] __attribute__((aligned(16)));

TEST(clone_children_need_their_flag)
{
	int st;
	pid_t pid = clone(child_fn, clone_stack + sizeof(clone_stack), 0, NULL); /* no exit signal */
	CHECK_OK(pid);
	CHECK_ERR(waitpid(pid, &st, 0), ECHILD);
	CHECK_EQ(waitpid(pid, &st, __WCLONE), pid);
	CHECK_EQ(WEXITSTATUS(st), 9);
	pid = clone(child_fn, clone_stack + sizeof(clone_stack), 0, NULL);
	CHECK_EQ(waitpid(pid, &st, __WALL), pid);
	pid = child_exiting(1);
	CHECK_ERR(waitpid(pid, &st, __WCLONE), ECHILD);
	CHECK_EQ(waitpid(pid, &st, __WALL), pid);
}

static pid_t thread_child;

static void *fork_in_thread(void *arg)
{
	(void)arg;
	thread_child = child_exiting(4);
	return NULL;
}

TEST(any_thread_waits_unless_wnothread)
{
	pthread_t th;
	int st;
	/* the forking thread lives on, so that the child stays its own */
	pid_t mine = child_exiting(1);
	CHECK_EQ(waitpid(mine, &st, __WNOTHREAD), mine);
	pthread_create(&th, NULL, fork_in_thread, NULL);
	pthread_join(th, NULL);
	CHECK_EQ(waitpid(thread_child, &st, 0), thread_child);
	CHECK_EQ(WEXITSTATUS(st), 4);
}

static void *exit_thread(void *arg)
{
	usleep(50000);
	syscall(SYS_exit, 33);
	return arg;
}

TEST(process_ends_with_its_last_thread)
{
	int st;
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t th;
		pthread_create(&th, NULL, exit_thread, NULL);
		syscall(SYS_exit, 44);
	}
	usleep(20000);
	CHECK_EQ(waitpid(pid, &st, WNOHANG), 0); /* a zombie leader is not waited for */
	CHECK_CHILD(pid, 33); /* the last thread's code counts (Linux 6.1) */
}

static void *exit_group_thread(void *arg)
{
	_exit(55);
	return arg;
}

TEST(exit_group_from_a_thread)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t th;
		pthread_create(&th, NULL, exit_group_thread, NULL);
		for (;;)
			pause();
	}
	CHECK_CHILD(pid, 55);
}

TEST(orphans_get_another_parent)
{
	int p[2], ppid = 0;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		pid_t middle = getpid();
		if (fork() == 0) {
			while (getppid() == middle)
				usleep(1000);
			int pp = getppid();
			write(p[1], &pp, sizeof(pp));
			_exit(0);
		}
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(p[0], &ppid, sizeof(ppid)), sizeof(ppid));
	CHECK(ppid != pid);
	int st;
	CHECK_ERR(wait4(-1, &st, 0, NULL), ECHILD);
}

TEST(subreaper_gets_the_orphans)
{
	int st;
	CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			usleep(30000);
			_exit(66);
		}
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK(wait4(-1, &st, 0, NULL) > 0);
	CHECK_EQ(WEXITSTATUS(st), 66);
}

TEST(pdeathsig_is_sent)
{
	int p[2];
	char c;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			write(p[1], "x", 1);
			close(p[0]);
			for (;;)
				pause(); /* the pipe closes when this one dies */
		}
		read(p[0], &c, 1);
		_exit(0);
	}
	close(p[1]);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(p[0], &c, 1), 0);
}

TEST(wait_is_interrupted)
{
	struct sigaction sa = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO };
	int st;
	sigaction(SIGALRM, &sa, NULL);
	pid_t pid = child_pausing();
	ualarm(30000, 0);
	CHECK_ERR(waitpid(pid, &st, 0), EINTR);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(core_flag_follows_the_limit)
{
	struct rlimit rl = { 0, RLIM_INFINITY };
	int st;
	pid_t pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &rl);
		abort();
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGABRT && !WCOREDUMP(st));
}

TEST(rusage_of_a_child)
{
	struct rusage ru, all;
	int st;
	pid_t pid = fork();
	if (pid == 0) {
		struct timespec a, b;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		do
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		while (b.tv_sec * 1000 + b.tv_nsec / 1000000 < 60);
		_exit(0);
	}
	CHECK_EQ(wait4(pid, &st, 0, &ru), pid);
	long ms = ru.ru_utime.tv_sec * 1000 + ru.ru_utime.tv_usec / 1000 + ru.ru_stime.tv_sec * 1000 +
		  ru.ru_stime.tv_usec / 1000;
	CHECK(ms >= 40 && ms < 5000);
	CHECK_OK(getrusage(RUSAGE_CHILDREN, &all));
	CHECK(all.ru_utime.tv_sec * 1000000 + all.ru_utime.tv_usec >=
	      ru.ru_utime.tv_sec * 1000000 + ru.ru_utime.tv_usec);
}

TEST(orphaned_stopped_group_gets_hup)
{
	int p[2], st;
	char c = 0;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		/* leader of a session whose child stops; the leader's end orphans the child's group */
		setsid();
		pid_t kid = fork();
		if (kid == 0) {
			setpgid(0, 0);
			close(p[0]);
			signal(SIGHUP, SIG_DFL);
			for (;;)
				pause();
		}
		setpgid(kid, kid);
		kill(kid, SIGSTOP);
		waitpid(kid, &st, WUNTRACED);
		_exit(0);
	}
	close(p[1]);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(p[0], &c, 1), 0); /* dead of SIGHUP */
}

TEST(tstp_does_not_stop_an_orphaned_group)
{
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		raise(SIGTSTP);
		_exit(7);
	}
	CHECK_CHILD(pid, 7);
}
T_MAIN

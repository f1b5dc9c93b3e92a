/* clone(2), clone3(2), fork(2), vfork(2), unshare(2). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

static char stack[65536] __attribute__((aligned(16)));
static volatile int shared;

static int add_one(void *arg)
{
	shared += *(int *)arg;
	return 7;
}

TEST(fork_copies_memory)
{
	int local = 1;
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		local = 2;
		shared = 5;
		_exit(local + shared);
	}
	CHECK_CHILD(pid, 7);
	CHECK_EQ(local, 1);
	CHECK_EQ(shared, 0);
}

TEST(fork_keeps_parent_ids)
{
	pid_t me = getpid(), pid = fork();
	if (pid == 0)
		_exit(getppid() == me && getpid() != me && gettid() == getpid() ? 0 : 1);
	CHECK_CHILD(pid, 0);
}

TEST(fork_deep_and_wide)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();
		CHECK_OK(pid);
		if (pid == 0)
			_exit(i);
		CHECK_CHILD(pid, i);
	}
	pid_t kids[20];
	for (int i = 0; i < 20; i++)
		if ((kids[i] = fork()) == 0)
			_exit(i);
	for (int i = 0; i < 20; i++)
		CHECK_CHILD(kids[i], i);
}

TEST(vfork_shares_memory_and_waits)
{
	volatile int seen = 0;
	pid_t pid = vfork();
	CHECK_OK(pid);
	if (pid == 0) {
		seen = 42;
		usleep(20000);
		_exit(3);
	}
	CHECK_EQ(seen, 42);
	CHECK_CHILD(pid, 3);
}

TEST(clone_vm_runs_on_its_own_stack)
{
	int step = 4;
	int pid = clone(add_one, stack + sizeof(stack), CLONE_VM | SIGCHLD, &step);
	CHECK_OK(pid);
	CHECK_CHILD(pid, 7);
	CHECK_EQ(shared, 4);
}

TEST(clone_stores_ids)
{
	int ptid = 0, ctid = 0;
	long pid = syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, &ptid, &ctid, 0);
	CHECK_OK(pid);
	if (pid == 0)
		_exit(ctid == getpid() ? 0 : 1);
	CHECK_EQ(ptid, pid);
	CHECK_EQ(ctid, 0); /* the child's copy was written, not ours */
	CHECK_CHILD(pid, 0);
}

TEST(clone_refuses_bad_flags)
{
	CHECK_ERR(syscall(SYS_clone, CLONE_THREAD | SIGCHLD, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0), EINVAL);
	CHECK_ERR(syscall(SYS_clone, CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, 0, 0, 0, 0), EINVAL);
}

TEST(clone_files_shares_the_table)
{
	int fds[2];
	CHECK_OK(pipe(fds));
	long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	CHECK_OK(pid);
	if (pid == 0) {
		close(fds[0]);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_ERR(fcntl(fds[0], F_GETFD), EBADF);
}

TEST(clone3_pidfd_and_exit_signal)
{
	int pidfd = -1;
	struct clone_args a = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)&pidfd, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	CHECK_OK(pid);
	if (pid == 0)
		_exit(9);
	CHECK(pidfd >= 0);
	CHECK_EQ(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	siginfo_t si = { 0 };
	CHECK_OK(waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED));
	CHECK_EQ(si.si_pid, pid);
	CHECK_EQ(si.si_status, 9);
}

TEST(clone3_checks_its_struct)
{
	struct {
		struct clone_args a;
		uint64_t tail;
	} big = { .a = { .exit_signal = SIGCHLD }, .tail = 1 };
	CHECK_ERR(syscall(SYS_clone3, &big, 8), EINVAL);
	CHECK_ERR(syscall(SYS_clone3, &big, sizeof(big)), E2BIG);
	struct clone_args a = { .exit_signal = 65 };
	CHECK_ERR(syscall(SYS_clone3, &a, sizeof(a)), EINVAL);
	a = (struct clone_args){ .exit_signal = SIGCHLD, .stack = (uint64_t)stack };
	CHECK_ERR(syscall(SYS_clone3, &a, sizeof(a)), EINVAL);
	CHECK_ERR(syscall(SYS_clone3, NULL, sizeof(a)), EFAULT);
}

static void *thread_body(void *arg)
{
	return (void *)((long)arg + gettid() - gettid());
}

TEST(threads_many)
{
	pthread_t t[60];
	for (long i = 0; i < 60; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread_body, (void *)i), 0);
	for (long i = 0; i < 60; i++) {
		void *r;
		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK_EQ(r, i);
	}
}

static void *fork_in_thread(void *arg)
{
	(void)arg;
	pid_t pid = fork();
	if (pid == 0)
		_exit(gettid() == getpid() ? 11 : 1);
	CHECK_CHILD(pid, 11);
	return NULL;
}

TEST(fork_from_threads)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fork_in_thread, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static __thread int tls_value = 3;

TEST(fork_keeps_thread_pointer)
{
	tls_value = 77;
	pid_t pid = fork();
	if (pid == 0)
		_exit(tls_value);
	CHECK_CHILD(pid, 77);
}

TEST(fork_keeps_vector_state)
{
	double x = 1.5, y;
	__asm__ volatile("movsd %0, %%xmm9" ::"m"(x) : "xmm9");
	long pid = syscall(SYS_fork);
	__asm__ volatile("movsd %%xmm9, %0" : "=m"(y));
	if (pid == 0)
		_exit(y == 1.5 ? 0 : 1);
	CHECK_CHILD(pid, 0);
	CHECK(y == 1.5);
}

TEST(unshare_files_and_fs)
{
	CHECK_OK(unshare(CLONE_FILES));
	CHECK_OK(unshare(CLONE_FS));
	CHECK_ERR(syscall(SYS_unshare, 0x1), EINVAL);
}

TEST(clone3_checks_flags_before_rights)
{
	struct clone_args a = { .flags = CLONE_NEWNS | CLONE_FS };
	CHECK_ERR(syscall(SYS_clone3, &a, sizeof(a)), EINVAL);
	a.flags = CLONE_NEWUSER | CLONE_FS;
	CHECK_ERR(syscall(SYS_clone3, &a, sizeof(a)), EINVAL);
}

T_MAIN

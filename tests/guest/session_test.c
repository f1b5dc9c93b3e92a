/*
 * getpid(2), gettid(2), getppid(2), getpgid(2), getpgrp(2), setpgid(2), getsid(2), setsid(2), set_tid_address(2),
 * set_robust_list(2), get_robust_list(2).
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

TEST(ids_of_a_process)
{
	CHECK_EQ(getpid(), gettid());
	CHECK_EQ(getpgrp(), getpgid(0));
	CHECK_EQ(getpgid(getpid()), getpgrp());
	CHECK_EQ(getsid(0), getsid(getpid()));
	CHECK_ERR(getpgid(0x7ffffff), ESRCH);
	CHECK_ERR(getsid(0x7ffffff), ESRCH);
	CHECK_ERR(getsid(-1), ESRCH);
}

static void *ids_in_thread(void *arg)
{
	*(int *)arg = getpid() != gettid() && getpgid(gettid()) == getpgrp();
	return NULL;
}

TEST(threads_share_the_process_id)
{
	pthread_t th;
	int ok = 0;
	pthread_create(&th, NULL, ids_in_thread, &ok);
	pthread_join(th, NULL);
	CHECK_EQ(ok, 1);
}

TEST(setsid_makes_session_and_group)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (setsid() != getpid() || getsid(0) != getpid() || getpgrp() != getpid())
			_exit(1);
		if (setsid() != -1 || errno != EPERM)
			_exit(2);
		if (setpgid(0, 0) != -1 || errno != EPERM) /* a session leader stays where it is */
			_exit(3);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
}

TEST(setsid_fails_for_a_group_leader)
{
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		_exit(setsid() == -1 && errno == EPERM ? 0 : 1);
	}
	CHECK_CHILD(pid, 0);
}

TEST(setpgid_rules)
{
	CHECK_ERR(setpgid(0, -1), EINVAL);
	CHECK_ERR(setpgid(-1, 0), EINVAL);
	CHECK_ERR(setpgid(0x7ffffff, 0), ESRCH);
	CHECK_ERR(setpgid(getppid(), 0), ESRCH);
	CHECK_ERR(setpgid(0, 0x7ffffff), EPERM);
	int go[2], p[2];
	char c;
	pipe(go);
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		read(go[0], &c, 1);
		setsid();
		write(p[1], "x", 1);
		pause();
	}
	CHECK_OK(setpgid(pid, pid));
	CHECK_EQ(getpgid(pid), pid);
	CHECK_OK(setpgid(pid, getpgrp()));
	write(go[1], "x", 1);
	read(p[0], &c, 1);
	CHECK_ERR(setpgid(pid, getpgrp()), EPERM); /* another session */
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(setpgid_after_exec_is_too_late)
{
	int p[2];
	char c;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[0]);
		dup2(p[1], 1);
		execl("/bin/sh", "sh", "-c", "echo x; sleep 5", (char *)NULL);
		_exit(127);
	}
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_ERR(setpgid(pid, pid), EACCES);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(robust_list_is_kept)
{
	struct {
		void *list;
		long off;
		void *pending;
	} head = { &head, 0, NULL };
	void *got;
	size_t len;
	CHECK_ERR(syscall(SYS_set_robust_list, &head, 12), EINVAL);
	CHECK_OK(syscall(SYS_set_robust_list, &head, 24));
	CHECK_OK(syscall(SYS_get_robust_list, 0, &got, &len));
	CHECK(got == &head);
	CHECK_EQ(len, 24);
	CHECK_ERR(syscall(SYS_get_robust_list, 0x7ffffff, &got, &len), ESRCH);
	CHECK_ERR(syscall(SYS_get_robust_list, 0, (void *)1, &len), EFAULT);
}

TEST(robust_mutex_of_a_dead_owner)
{
	pthread_mutexattr_t a;
	pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(m, &a);
	int p[2];
	char c;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_mutex_lock(m);
		write(p[1], "x", 1);
		usleep(50000);
		_exit(0);
	}
	read(p[0], &c, 1);
	CHECK_EQ(pthread_mutex_lock(m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(m), 0);
	CHECK_EQ(pthread_mutex_unlock(m), 0);
	CHECK_CHILD(pid, 0);
}

TEST(set_tid_address_gives_the_tid)
{
	int word = 0;
	CHECK_EQ(syscall(SYS_set_tid_address, &word), gettid());
}
T_MAIN

/*
 * One guest process reaches for another's memory, descriptors and secrets without the right:
 * another user's, one that made itself undumpable, and a set-user-ID program by what was opened
 * before.
 */
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/guest/t.h"

#define VICTIM 1234
#define THIEF 1235

static volatile uint64_t secret = 0x5ec2e7;

/* A process with these ids that waits; `undumpable` as prctl(2) has it. */
static pid_t start_victim(int uid, bool undumpable)
{
	int p[2];
	char c;

	CHECK_OK(pipe(p));
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(9);
		prctl(PR_SET_DUMPABLE, undumpable ? 0 : 1);
		secret = 0x7ea1;
		c = 'x';
		if (write(p[1], &c, 1) != 1)
			_exit(9);
		for (;;)
			pause();
	}
	CHECK_EQ(read(p[0], &c, 1), 1);
	close(p[0]);
	close(p[1]);
	return pid;
}

static void become(int uid)
{
	CHECK_OK(setresgid(uid, uid, uid));
	CHECK_OK(setresuid(uid, uid, uid));
}

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags);
}

static void try_memory(pid_t pid)
{
	uint64_t word = 1;
	struct iovec here = { &word, 8 }, there = { (void *)(uintptr_t)&secret, 8 };

	CHECK_ERR(process_vm_readv(pid, &here, 1, &there, 1, 0), EPERM);
	CHECK_ERR(process_vm_writev(pid, &here, 1, &there, 1, 0), EPERM);
	CHECK_ERR(ptrace(PTRACE_ATTACH, pid, 0, 0), EPERM);
	CHECK_ERR(ptrace(PTRACE_SEIZE, pid, 0, 0), EPERM);
	CHECK_ERR(ptrace(PTRACE_PEEKDATA, pid, &secret, 0), ESRCH);
	CHECK_ERR(ptrace(PTRACE_POKEDATA, pid, &secret, 1), ESRCH);
	CHECK_EQ(word, 1);
}

static void try_proc(pid_t pid)
{
	static const char *const files[] = { "mem",   "environ", "auxv",        "maps",
					     "smaps", "io",      "personality", "syscall",
					     "fd/0",  "cwd/",    "root/etc",    "fdinfo/0" };
	char path[64], target[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open_proc(pid, files[i], O_RDONLY);
		if (fd >= 0)
			FAIL("/proc/PID/%s could be opened", files[i]);
		CHECK(errno == EACCES || errno == EPERM);
	}
	CHECK(open_proc(pid, "mem", O_RDWR) < 0);
	CHECK(open_proc(pid, "oom_score_adj", O_WRONLY) < 0);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	CHECK(readlink(path, target, sizeof(target)) < 0);
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	CHECK(readlink(path, target, sizeof(target)) < 0);
	CHECK(chdir(path) < 0);
}

static void try_handles(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	CHECK(pidfd >= 0);
	CHECK_ERR(syscall(SYS_pidfd_getfd, pidfd, 0, 0), EPERM);
	CHECK_ERR(syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, 0, 0), EPERM);
	CHECK_ERR(syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0), EPERM);
	close(pidfd);
}

static void try_control(pid_t pid)
{
	struct rlimit64 r = { 0, 0 };
	struct sched_param sp = { 0 };
	cpu_set_t set;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	CHECK_ERR(kill(pid, SIGKILL), EPERM);
	CHECK_ERR(syscall(SYS_tgkill, pid, pid, SIGKILL), EPERM);
	CHECK_ERR(syscall(SYS_tkill, pid, SIGSTOP), EPERM);
	CHECK_ERR(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0), EPERM);
	CHECK_ERR(syscall(SYS_prlimit64, pid, RLIMIT_CPU, &r, NULL), EPERM);
	CHECK_ERR(setpriority(PRIO_PROCESS, (id_t)pid, 10), EPERM);
	CHECK_ERR(sched_setscheduler(pid, SCHED_BATCH, &sp), EPERM);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CHECK_ERR(sched_setaffinity(pid, sizeof(set), &set), EPERM);
	close(pidfd);
}

TEST(another_users_process)
{
	SKIP_IF(geteuid() != 0, "needs two users");
	pid_t victim = start_victim(VICTIM, false);
	pid_t pid = fork();
	if (pid == 0) {
		become(THIEF);
		try_memory(victim);
		try_proc(victim);
		try_handles(victim);
		try_control(victim);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(kill(victim, SIGKILL));
	CHECK_KILLED(victim, SIGKILL);
}

TEST(an_undumpable_process_of_ones_own)
{
	SKIP_IF(geteuid() != 0, "needs to become a user");
	pid_t victim = start_victim(VICTIM, true);
	pid_t pid = fork();
	if (pid == 0) {
		become(VICTIM);
		try_memory(victim);
		try_handles(victim);
		CHECK(open_proc(victim, "mem", O_RDONLY) < 0);
		CHECK(open_proc(victim, "maps", O_RDONLY) < 0);
		CHECK(open_proc(victim, "environ", O_RDONLY) < 0);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(kill(victim, SIGKILL));
	CHECK_KILLED(victim, SIGKILL);
}

/* Ids given up are not had back by anything but execve of a program that has them. */
TEST(given_up_ids_stay_given_up)
{
	SKIP_IF(geteuid() != 0, "not root");
	become(THIEF);
	CHECK_ERR(setuid(0), EPERM);
	CHECK_ERR(seteuid(0), EPERM);
	CHECK_ERR(setgid(0), EPERM);
	CHECK_ERR(setresuid(-1, 0, -1), EPERM);
	CHECK_ERR(chroot("/tmp"), EPERM);
	struct stat st;
	int fd = open("/etc/passwd", O_RDONLY);
	CHECK_ERR(fchmod(fd, 0666), EPERM);
	CHECK_ERR(fchown(fd, THIEF, THIEF), EPERM);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_uid, 0);
}

/* A program that one may execute but not read is not read from the memory of its process. */
TEST(memory_of_an_unreadable_program)
{
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint64_t word;
	struct iovec here = { &word, 8 }, there = { (void *)(uintptr_t)&secret, 8 };
	char command[600];

	SKIP_IF(geteuid() != 0, "needs to become a user");
	CHECK(n > 0);
	self[n] = 0;
	mkdir("/tmp/unreadable", 0755);
	snprintf(command, sizeof(command),
		 "cp '%s' /tmp/unreadable/p && chmod 711 /tmp/unreadable/p", self);
	CHECK_EQ(system(command), 0);
	pid_t victim = fork();
	if (victim == 0) {
		become(VICTIM);
		setenv("WAIT", "1", 1);
		execl("/tmp/unreadable/p", "p", NULL);
		_exit(9);
	}
	usleep(300000);
	pid_t pid = fork();
	if (pid == 0) {
		become(VICTIM);
		CHECK_ERR(process_vm_readv(victim, &here, 1, &there, 1, 0), EPERM);
		CHECK_ERR(ptrace(PTRACE_ATTACH, victim, 0, 0), EPERM);
		CHECK(open_proc(victim, "mem", O_RDONLY) < 0);
		CHECK(open_proc(victim, "exe", O_RDONLY) < 0);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(kill(victim, SIGKILL));
	CHECK_KILLED(victim, SIGKILL);
	unlink("/tmp/unreadable/p");
	rmdir("/tmp/unreadable");
}

/* The memory file of a process, opened before an execve and kept, does not reach what is there
 * after: a set-user-ID program would write its messages into itself (CVE-2012-0056). */
__attribute__((constructor)) static void executed_victim(void)
{
	const char *fd_text = getenv("MEM_FD");
	uint64_t word = 666;

	if (getenv("WAIT"))
		for (;;)
			pause();
	if (!fd_text)
		return;
	ssize_t w = pwrite(atoi(fd_text), &word, 8, (off_t)&secret);
	ssize_t r = pread(atoi(fd_text), &word, 8, (off_t)&secret);
	_exit(w <= 0 && r <= 0 && secret == 0x5ec2e7 ? 0 : 1);
}

TEST(own_memory_file_from_before_execve)
{
	char fd_text[16], self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	CHECK(n > 0);
	self[n] = 0;
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("/proc/self/mem", O_RDWR);
		snprintf(fd_text, sizeof(fd_text), "%d", fd);
		setenv("MEM_FD", fd_text, 1);
		execl(self, self, NULL);
		_exit(9);
	}
	CHECK_CHILD(pid, 0);
}

T_MAIN

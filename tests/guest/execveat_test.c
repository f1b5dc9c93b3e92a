/* execveat(2) */
#include "tests/guest/t.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static long execveat_raw(int dirfd, const char *path, char *const argv[], int flags)
{
	return syscall(SYS_execveat, dirfd, path, argv, environ, flags);
}

static char *true_argv[] = { "true", NULL };

#define CHILD_EXECS(call, code)                                                                    \
	do {                                                                                       \
		pid_t t_child = fork();                                                            \
		if (t_child == 0) {                                                                \
			call;                                                                      \
			_exit(100 + errno);                                                        \
		}                                                                                  \
		CHECK_CHILD(t_child, code);                                                        \
	} while (0)

TEST(relative_to_a_directory)
{
	int bin = open("/bin", O_RDONLY | O_DIRECTORY);
	CHECK_OK(bin);
	CHILD_EXECS(execveat_raw(bin, "true", true_argv, 0), 0);
	CHILD_EXECS(execveat_raw(bin, "false", true_argv, 0), 1);
	CHILD_EXECS(execveat_raw(AT_FDCWD, "/bin/true", true_argv, 0), 0);
	CHILD_EXECS(execveat_raw(-1, "/bin/true", true_argv, 0), 0);
}

TEST(by_descriptor)
{
	int fd = open("/bin/true", O_RDONLY), path = open("/bin/true", O_PATH | O_CLOEXEC);
	CHILD_EXECS(execveat_raw(fd, "", true_argv, AT_EMPTY_PATH), 0);
	CHILD_EXECS(execveat_raw(path, "", true_argv, AT_EMPTY_PATH), 0);
}

TEST(errors)
{
	int fd = open("/bin/true", O_RDONLY), dir = open("/tmp", O_RDONLY);
	CHECK_ERR(execveat_raw(fd, "", true_argv, 0), ENOENT);
	CHECK_ERR(execveat_raw(fd, "true", true_argv, 0), ENOTDIR);
	CHECK_ERR(execveat_raw(-1, "true", true_argv, 0), EBADF);
	CHECK_ERR(execveat_raw(-1, "", true_argv, AT_EMPTY_PATH), EBADF);
	CHECK_ERR(execveat_raw(fd, "", true_argv, 0x40), ENOENT);
	CHECK_ERR(execveat_raw(AT_FDCWD, "/bin/true", true_argv, 0x40), EINVAL);
	CHECK_ERR(execveat_raw(dir, "", true_argv, AT_EMPTY_PATH), EACCES);
	CHECK_ERR(execveat_raw(AT_FDCWD, "/nonexistent", true_argv, 0), ENOENT);
	char name[] = "/tmp/execveat_test.XXXXXX";
	int made = mkstemp(name);
	CHECK_OK(made);
	unlink(name);
	CHECK_OK(symlink("/bin/true", name));
	CHECK_ERR(execveat_raw(AT_FDCWD, name, true_argv, AT_SYMLINK_NOFOLLOW), ELOOP);
	CHILD_EXECS(execveat_raw(AT_FDCWD, name, true_argv, 0), 0);
	unlink(name);
}

TEST(script_by_close_on_exec_descriptor_cannot_be_read)
{
	char name[] = "/tmp/execveat_test.XXXXXX";
	int fd = mkstemp(name);
	CHECK_OK(fd);
	CHECK_EQ(write(fd, "#!/bin/sh\nexit 5\n", 17), 17);
	CHECK_OK(fchmod(fd, 0755));
	close(fd);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	CHECK_ERR(execveat_raw(fd, "", true_argv, AT_EMPTY_PATH), ENOENT);
	unlink(name);
}

TEST(program_in_a_memfd)
{
	char buf[65536];
	ssize_t n;
	int in = open("/proc/self/exe", O_RDONLY), fd = memfd_create("prog", 0);
	CHECK_OK(in);
	CHECK_OK(fd);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(fd, buf, (size_t)n), n);
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY);
	CHECK_OK(ro);
	close(fd);
	char *argv[] = { "prog", "no_such_test", NULL };
	CHILD_EXECS((close(1), execveat_raw(ro, "", argv, AT_EMPTY_PATH)), 0);
}

T_MAIN

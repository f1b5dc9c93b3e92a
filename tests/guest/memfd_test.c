/* memfd_create(2) and seals. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

TEST(a_file_without_a_name)
{
	char link[64], path[64], buf[16];
	struct stat st;
	int fd = memfd_create("my name", MFD_CLOEXEC);
	CHECK_OK(fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	CHECK_OK(fstat(fd, &st));
	CHECK(S_ISREG(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0777);
	CHECK_EQ(st.st_size, 0);
	CHECK_EQ(st.st_nlink, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	CHECK(n > 0);
	link[n] = 0;
	CHECK_STR(link, "/memfd:my name (deleted)");
	CHECK_EQ(write(fd, "hello", 5), 5);
	CHECK_EQ(pread(fd, buf, 16, 1), 4);
	CHECK_OK(ftruncate(fd, 100000));
	char *m = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(m != MAP_FAILED);
	CHECK_MEM(m, "hello", 5);
	m[50000] = 'x';
	CHECK_EQ(pread(fd, buf, 1, 50000), 1);
	CHECK_EQ(buf[0], 'x');
}

TEST(arguments)
{
	char name[300];
	memset(name, 'n', sizeof(name));
	name[249] = 0;
	CHECK_OK(memfd_create(name, 0));
	name[249] = 'n';
	name[250] = 0;
	CHECK_ERR(memfd_create(name, 0), EINVAL);
	CHECK_ERR(memfd_create("x", 0x80), EINVAL);
	void *volatile bad = (void *)8;
	CHECK_ERR(memfd_create(bad, 0), EFAULT);
	CHECK_OK(memfd_create("", 0));
}

TEST(seals)
{
	int fd = memfd_create("s", 0);
	CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL);
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
	fd = memfd_create("s", MFD_ALLOW_SEALING);
	CHECK_EQ(fcntl(fd, F_GET_SEALS), 0);
	CHECK_OK(ftruncate(fd, 8192));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	CHECK_ERR(ftruncate(fd, 4096), EPERM);
	CHECK_OK(ftruncate(fd, 16384));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	CHECK_ERR(ftruncate(fd, 20000), EPERM);
	void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(m != MAP_FAILED);
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
	CHECK_OK(munmap(m, 4096));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK_ERR(write(fd, "x", 1), EPERM);
	CHECK_ERR(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	CHECK_ERR(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
	CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_ERR(fcntl(p[0], F_GET_SEALS), EINVAL);
}

TEST(executable)
{
	int in = open("/proc/self/exe", O_RDONLY);
	int fd = memfd_create("exe", MFD_CLOEXEC);
	char buf[65536];
	ssize_t n;
	CHECK_OK(in);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(fd, buf, (size_t)n), n);
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = { "memfd", "arguments", NULL }, *envp[] = { NULL };
		freopen("/dev/null", "w", stdout);
		fexecve(fd, argv, envp);
		_exit(99);
	}
	CHECK_CHILD(pid, 0);
}

T_MAIN

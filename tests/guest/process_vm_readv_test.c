/* process_vm_readv(2) */
#include "tests/guest/t.h"

#include <sys/uio.h>

#define P 4096ul

static char *shared_pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	return p;
}

/* A child with the same memory layout that waits to be killed. */
static pid_t child_with(char *p, char value)
{
	int fds[2];
	char c;
	CHECK_OK(pipe(fds));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		alarm(10);
		memset(p, value, P);
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK_EQ(read(fds[0], &c, 1), 1);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(reads_another_process)
{
	char *p = shared_pages(1), a[10], b[20];
	pid_t pid = child_with(p, 'q');
	struct iovec local[] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct iovec remote[] = { { p + 5, 7 }, { p + 100, 23 } };
	CHECK_EQ(process_vm_readv(pid, local, 2, remote, 2, 0), 30);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(a[i], 'q');
	CHECK_EQ(b[19], 'q');
	CHECK_EQ(p[5], 0);
	end(pid);
}

TEST(reads_itself)
{
	char src[] = "hello", dst[8] = "";
	struct iovec local = { dst, 6 }, remote = { src, 6 };
	CHECK_EQ(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), 6);
	CHECK_STR(dst, "hello");
}

TEST(partial_at_a_hole)
{
	char *p = shared_pages(2), dst[2 * P];
	CHECK_OK(munmap(p + P, P));
	struct iovec local = { dst, sizeof(dst) };
	struct iovec remote[] = { { p, P }, { p + P, P } };
	CHECK_EQ(process_vm_readv(getpid(), &local, 1, remote, 2, 0), P);
	struct iovec hole = { p + P, P };
	CHECK_ERR(process_vm_readv(getpid(), &local, 1, &hole, 1, 0), EFAULT);
}

TEST(arguments)
{
	char c;
	struct iovec v = { &c, 1 };
	CHECK_ERR(process_vm_readv(getpid(), &v, 1, &v, 1, 1), EINVAL);
	CHECK_ERR(process_vm_readv(getpid(), &v, 2000, &v, 1, 0), EINVAL);
	CHECK_ERR(process_vm_readv(getpid(), &v, 1, &v, 2000, 0), EINVAL);
	CHECK_ERR(process_vm_readv(getpid(), (void *)1, 1, &v, 1, 0), EFAULT);
	CHECK_ERR(process_vm_readv(getpid(), &v, 1, (void *)1, 1, 0), EFAULT);
	CHECK_ERR(process_vm_readv(0x3fffffff, &v, 1, &v, 1, 0), ESRCH);
	CHECK_EQ(process_vm_readv(getpid(), &v, 0, &v, 1, 0), 0);
	CHECK_EQ(process_vm_readv(getpid(), &v, 1, &v, 0, 0), 0);
}

TEST(needs_the_right)
{
	char *p = shared_pages(1), c;
	if (geteuid() != 0)
		SKIP("needs root to make another user");
	pid_t pid = child_with(p, 'z'), reader = fork();
	CHECK_OK(reader);
	if (reader == 0) {
		struct iovec local = { &c, 1 }, remote = { p, 1 };
		CHECK_OK(setresuid(65534, 65534, 65534));
		CHECK_ERR(process_vm_readv(pid, &local, 1, &remote, 1, 0), EPERM);
		_exit(0);
	}
	CHECK_CHILD(reader, 0);
	end(pid);
}

TEST(large)
{
	size_t n = 3u << 20;
	char *a = malloc(n), *b = malloc(n);
	for (size_t i = 0; i < n; i++)
		a[i] = (char)(i * 7);
	struct iovec local = { b, n }, remote = { a, n };
	CHECK_EQ(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), (long)n);
	CHECK_MEM(a, b, n);
}

T_MAIN

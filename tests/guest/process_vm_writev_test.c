/* process_vm_writev(2) */
#include "tests/guest/t.h"

#include <sys/uio.h>

#define P 4096ul

TEST(writes_into_another_process)
{
	int up[2], down[2];
	char c;
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(pipe(up));
	CHECK_OK(pipe(down));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		if (write(up[1], "r", 1) != 1 || read(down[0], &c, 1) != 1)
			_exit(9);
		_exit(memcmp(p + 10, "hello", 5) == 0 && p[15] == 0 ? 0 : 1);
	}
	CHECK_EQ(read(up[0], &c, 1), 1);
	struct iovec local[] = { { "hel", 3 }, { "lo", 2 } };
	struct iovec remote = { p + 10, 5 };
	CHECK_EQ(process_vm_writev(pid, local, 2, &remote, 1, 0), 5);
	CHECK_EQ(p[10], 0);
	CHECK_EQ(write(down[1], "g", 1), 1);
	CHECK_CHILD(pid, 0);
}

TEST(read_only_memory_is_refused)
{
	char *p = mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec local = { "x", 1 }, remote = { p, 1 };
	CHECK_ERR(process_vm_writev(getpid(), &local, 1, &remote, 1, 0), EFAULT);
}

TEST(arguments)
{
	char c = 0;
	struct iovec v = { &c, 1 };
	CHECK_ERR(process_vm_writev(getpid(), &v, 1, &v, 1, 1), EINVAL);
	CHECK_ERR(process_vm_writev(0x3fffffff, &v, 1, &v, 1, 0), ESRCH);
	CHECK_EQ(process_vm_writev(getpid(), &v, 1, &v, 1, 0), 1);
}

T_MAIN

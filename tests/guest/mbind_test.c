/* mbind(2), set_mempolicy(2), get_mempolicy(2) on a machine with one memory node. */
#include "tests/guest/t.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#define P 4096ul

static long mbind(void *p, size_t n, int mode, unsigned long *mask, unsigned long max, unsigned flags)
{
	return syscall(SYS_mbind, p, n, mode, mask, max, flags);
}

static long set_policy(int mode, unsigned long *mask, unsigned long max)
{
	return syscall(SYS_set_mempolicy, mode, mask, max);
}

static long get_policy(int *mode, unsigned long *mask, unsigned long max, void *addr, unsigned flags)
{
	return syscall(SYS_get_mempolicy, mode, mask, max, addr, flags);
}

/* A kernel without NUMA has none of these calls. */
static void need(void)
{
	if (get_policy(NULL, NULL, 0, NULL, 0) != 0 && errno == ENOSYS)
		SKIP("kernel without NUMA");
}

static char *pages(int n)
{
	char *p = mmap(NULL, n * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	return p;
}

TEST(policy_of_the_task)
{
	unsigned long node = 1, seen[16];
	int mode = 9;
	need();
	CHECK_OK(get_policy(&mode, NULL, 0, NULL, 0));
	CHECK_EQ(mode, MPOL_DEFAULT);
	CHECK_OK(set_policy(MPOL_BIND, &node, 64));
	memset(seen, 0xff, sizeof(seen));
	CHECK_OK(get_policy(&mode, seen, 1024, NULL, 0));
	CHECK_EQ(mode, MPOL_BIND);
	CHECK_EQ(seen[0], 1);
	pid_t pid = fork();
	if (pid == 0)
		_exit(get_policy(&mode, NULL, 0, NULL, 0) == 0 ? mode : 99);
	CHECK_CHILD(pid, MPOL_BIND);
	CHECK_OK(set_policy(MPOL_PREFERRED, NULL, 0));
	CHECK_OK(get_policy(&mode, seen, 1024, NULL, 0));
	CHECK_EQ(mode, MPOL_LOCAL);
	CHECK_EQ(seen[0], 0);
	CHECK_OK(set_policy(MPOL_DEFAULT, NULL, 0));
}

TEST(policy_of_memory)
{
	unsigned long node = 1;
	int mode;
	need();
	char *p = pages(3);
	CHECK_OK(mbind(p + P, P, MPOL_INTERLEAVE, &node, 64, 0));
	CHECK_OK(get_policy(&mode, NULL, 0, p + P, MPOL_F_ADDR));
	CHECK_EQ(mode, MPOL_INTERLEAVE);
	CHECK_OK(get_policy(&mode, NULL, 0, p, MPOL_F_ADDR));
	CHECK_EQ(mode, MPOL_DEFAULT);
	CHECK_OK(get_policy(&mode, NULL, 0, p, MPOL_F_ADDR | MPOL_F_NODE));
	CHECK_EQ(mode, 0);
	CHECK_OK(mbind(p, 3 * P, MPOL_DEFAULT, NULL, 0, 0));
	CHECK_OK(munmap(p + P, P));
	CHECK_ERR(mbind(p, 3 * P, MPOL_BIND, &node, 64, 0), EFAULT);
}

TEST(arguments)
{
	unsigned long node = 1, none = 0, far = 1ul << 40;
	int mode;
	need();
	char *p = pages(1);
	CHECK_ERR(set_policy(77, NULL, 0), EINVAL);
	CHECK_ERR(set_policy(MPOL_BIND, &none, 64), EINVAL);
	CHECK_ERR(set_policy(MPOL_BIND, &far, 64), EINVAL);
	CHECK_ERR(set_policy(MPOL_DEFAULT, &node, 64), EINVAL);
	CHECK_ERR(set_policy(MPOL_BIND, (void *)8, 64), EFAULT);
	CHECK_ERR(mbind(p + 1, P, MPOL_BIND, &node, 64, 0), EINVAL);
	CHECK_ERR(mbind(p, P, MPOL_BIND, &node, 64, 0x100), EINVAL);
	CHECK_OK(mbind(p, 0, MPOL_BIND, &node, 64, 0));
	CHECK_ERR(get_policy(&mode, NULL, 0, p, 0), EINVAL);
	CHECK_ERR(get_policy(&mode, NULL, 0, NULL, 0x100), EINVAL);
	CHECK_ERR(get_policy(&mode, NULL, 0, NULL, MPOL_F_NODE), EINVAL);
	CHECK_ERR(get_policy(&mode, NULL, 0, NULL, MPOL_F_NODE | MPOL_F_MEMS_ALLOWED), EINVAL);
	CHECK_ERR(get_policy(&mode, NULL, 0, (void *)8, MPOL_F_ADDR), EFAULT);
}

T_MAIN

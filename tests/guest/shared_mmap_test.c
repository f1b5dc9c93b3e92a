/* Shared mappings between processes: anonymous, files, /dev/zero, memfd. */
#include "tests/guest/t.h"

#include <fcntl.h>
#include <stdatomic.h>

#define P 4096ul

/* The child adds 1000 times, the parent too; all must arrive. */
static void check_shared(char *p)
{
	atomic_int *n = (atomic_int *)(void *)p;
	atomic_store(n, 0);
	pid_t pid = fork();
	CHECK_OK(pid);
	for (int i = 0; i < 1000; i++)
		atomic_fetch_add(n, 1);
	if (pid == 0)
		_exit(0);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(atomic_load(n), 2000);
}

TEST(anonymous)
{
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_EQ(p[P], 0);
	check_shared(p);
	check_shared(p + P);
}

TEST(anonymous_survives_the_parent)
{
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	pid_t pid = fork();
	if (pid == 0) {
		pid_t grandchild = fork();
		if (grandchild == 0) {
			p[7] = 7;
			_exit(0);
		}
		waitpid(grandchild, NULL, 0);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(p[7], 7);
}

TEST(file)
{
	char name[] = "/tmp/shared_mmap_test.XXXXXX";
	int fd = mkstemp(name);
	CHECK_OK(fd);
	CHECK_OK(ftruncate(fd, P));
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	check_shared(p);
	/* Two independent opens see one file. */
	int again = open(name, O_RDWR);
	char *q = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
	CHECK_OK(q);
	p[100] = 'k';
	CHECK_EQ(q[100], 'k');
	unlink(name);
	q[101] = 'l';
	CHECK_EQ(p[101], 'l');
}

TEST(dev_zero)
{
	int fd = open("/dev/zero", O_RDWR);
	CHECK_OK(fd);
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	check_shared(p);
	char *q = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK_OK(q);
	q[0] = 1;
	CHECK_EQ(q[1], 0);
}

TEST(memfd)
{
	int fd = memfd_create("shared", MFD_ALLOW_SEALING);
	CHECK_OK(fd);
	CHECK_OK(ftruncate(fd, P));
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	check_shared(p);
	CHECK_OK(munmap(p, P));
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK_ERR(mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
	CHECK_OK(mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
}

TEST(private_stays_private)
{
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	p[0] = 1;
	pid_t pid = fork();
	if (pid == 0) {
		p[0] = 2;
		_exit(p[0]);
	}
	CHECK_CHILD(pid, 2);
	CHECK_EQ(p[0], 1);
}

T_MAIN

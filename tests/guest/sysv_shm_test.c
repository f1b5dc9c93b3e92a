/* shmget(2), shmat(2), shmdt(2), shmctl(2). */
#include <sys/shm.h>

#include "tests/guest/t.h"

static int id;

static struct shmid_ds stat_of(int seg)
{
	struct shmid_ds ds;
	CHECK_OK(shmctl(seg, IPC_STAT, &ds));
	return ds;
}

TEST(keys_and_sizes)
{
	int key = 0x70000000 + getpid();
	CHECK_ERR(shmget(key, 100, 0600), ENOENT);
	CHECK_ERR(shmget(key, 0, IPC_CREAT | 0600), EINVAL);
	id = shmget(key, 5000, IPC_CREAT | 0600);
	CHECK_OK(id);
	CHECK_EQ(shmget(key, 5000, 0), id);
	CHECK_EQ(shmget(key, 0, 0), id);
	CHECK_ERR(shmget(key, 5001, 0), EINVAL);
	CHECK_ERR(shmget(key, 100, IPC_CREAT | IPC_EXCL), EEXIST);
	struct shmid_ds ds = stat_of(id);
	CHECK_EQ(ds.shm_segsz, 5000);
	CHECK_EQ(ds.shm_nattch, 0);
	CHECK_EQ(ds.shm_cpid, getpid());
	CHECK_EQ(ds.shm_perm.mode & 0777, 0600);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_ERR(shmget(key, 100, 0), ENOENT);
	CHECK_ERR(shmat(id, NULL, 0), EINVAL);
	CHECK_ERR(shmctl(id, IPC_RMID, NULL), EINVAL);
}

TEST(shared_between_processes)
{
	id = shmget(IPC_PRIVATE, 10000, 0600);
	char *a = shmat(id, NULL, 0);
	CHECK(a != (void *)-1);
	CHECK_EQ(a[9999], 0);
	char *b = shmat(id, NULL, SHM_RDONLY);
	CHECK(b != (void *)-1 && b != a);
	a[5] = 'x';
	CHECK_EQ(b[5], 'x');
	CHECK_EQ(stat_of(id).shm_nattch, 2);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_EQ(stat_of(id).shm_nattch, 4);
		a[6] = 'y';
		char *c = shmat(id, NULL, 0);
		c[7] = 'z';
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(b[6], 'y');
	CHECK_EQ(b[7], 'z');
	CHECK_EQ(stat_of(id).shm_nattch, 2);
	pid = fork();
	if (pid == 0) {
		b[0] = 1;
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
	CHECK_OK(shmdt(a));
	CHECK_ERR(shmdt(a), EINVAL);
	CHECK_ERR(shmdt(b + 1), EINVAL);
	CHECK_OK(shmdt(b));
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
}

TEST(removed_with_the_last_detach)
{
	id = shmget(IPC_PRIVATE, 4096, 0600);
	char *a = shmat(id, NULL, 0);
	CHECK(a != (void *)-1);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_EQ(stat_of(id).shm_perm.mode & 01000, 01000);
	/* Linux lets one attach what is marked for removal. */
	char *b = shmat(id, NULL, 0);
	CHECK(b != (void *)-1);
	a[0] = 'q';
	CHECK_EQ(b[0], 'q');
	CHECK_OK(shmdt(a));
	CHECK_EQ(stat_of(id).shm_nattch, 1);
	CHECK_OK(munmap(b, 4096));
	struct shmid_ds ds;
	CHECK_ERR(shmctl(id, IPC_STAT, &ds), EINVAL);
	/* A process that ends detaches. */
	id = shmget(IPC_PRIVATE, 4096, 0600);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(shmat(id, NULL, 0) != (void *)-1);
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
		kill(getpid(), SIGKILL);
	}
	CHECK_KILLED(pid, SIGKILL);
	CHECK_ERR(shmctl(id, IPC_STAT, &ds), EINVAL);
}

TEST(places)
{
	char *hole = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	id = shmget(IPC_PRIVATE, 8192, 0600);
	CHECK_ERR(shmat(id, hole, 0), EINVAL);
	CHECK_ERR(shmat(id, hole + 1, SHM_REMAP), EINVAL);
	CHECK_ERR(shmat(id, NULL, SHM_REMAP), EINVAL);
	CHECK(shmat(id, hole + 4096 + 10, SHM_REMAP | SHM_RND) == hole + 4096);
	hole[4096] = 1;
	/* A hole in the attachment: shmdt takes what is left. */
	CHECK_OK(munmap(hole + 4096, 4096));
	char *other = mmap(hole + 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	other[0] = 'o';
	CHECK_OK(shmdt(hole + 4096));
	CHECK_EQ(other[0], 'o');
	CHECK_EQ(stat_of(id).shm_nattch, 0);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
}

TEST(permissions)
{
	if (getuid() != 0)
		SKIP("needs root to change ids");
	id = shmget(IPC_PRIVATE, 4096, 0644);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(setgid(4321));
		CHECK_OK(setuid(1234));
		CHECK_ERR(shmat(id, NULL, 0), EACCES);
		CHECK(shmat(id, NULL, SHM_RDONLY) != (void *)-1);
		CHECK_ERR(shmctl(id, IPC_RMID, NULL), EPERM);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
}

T_MAIN

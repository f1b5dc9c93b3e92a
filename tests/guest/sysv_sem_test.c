/* semget(2), semop(2), semtimedop(2), semctl(2). */
#include <pthread.h>
#include <sys/sem.h>
#include <time.h>

#include "tests/guest/t.h"

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */
static int id;

static void handler(int sig)
{
}

static int op(int num, int value, int flags)
{
	struct sembuf s = { (unsigned short)num, (short)value, (short)flags };
	return semop(id, &s, 1);
}

static int get(int num, int cmd)
{
	return semctl(id, num, cmd);
}

static void begin(int n)
{
	id = semget(IPC_PRIVATE, n, 0600);
	CHECK_OK(id);
}

static void end(void)
{
	CHECK_OK(semctl(id, 0, IPC_RMID));
}

TEST(keys)
{
	int key = 0x50000000 + getpid();
	CHECK_ERR(semget(key, 3, 0600), ENOENT);
	id = semget(key, 3, IPC_CREAT | 0600);
	CHECK_OK(id);
	CHECK_EQ(semget(key, 3, 0600), id);
	CHECK_EQ(semget(key, 0, 0), id);
	CHECK_ERR(semget(key, 4, 0600), EINVAL);
	CHECK_ERR(semget(key, 3, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
	CHECK_ERR(semget(IPC_PRIVATE, 0, 0600), EINVAL);
	CHECK_ERR(semget(IPC_PRIVATE, -1, 0600), EINVAL);
	CHECK_ERR(semget(IPC_PRIVATE, 40000, 0600), EINVAL);
	struct semid_ds ds;
	CHECK_OK(semctl(id, 0, IPC_STAT, (union semun){ .buf = &ds }));
	CHECK_EQ(ds.sem_nsems, 3);
	CHECK_EQ(ds.sem_perm.mode & 0777, 0600);
	CHECK_EQ(ds.sem_perm.cuid, geteuid());
	CHECK_EQ(ds.sem_perm.__key, key);
	CHECK_EQ(ds.sem_otime, 0);
	CHECK_ERR(semctl(id, 0, IPC_STAT, (union semun){ .buf = bad }), EFAULT);
	end();
	CHECK_ERR(semget(key, 3, 0600), ENOENT);
	CHECK_ERR(semctl(id, 0, GETVAL), EINVAL);
	CHECK_ERR(op(0, 1, 0), EINVAL);
	CHECK_ERR(semctl(-1, 0, GETVAL), EINVAL);
}

TEST(values)
{
	unsigned short all[3] = { 1, 2, 3 };
	begin(3);
	CHECK_OK(semctl(id, 0, SETALL, (union semun){ .array = all }));
	CHECK_OK(semctl(id, 1, SETVAL, (union semun){ .val = 7 }));
	memset(all, 0, sizeof(all));
	CHECK_OK(semctl(id, 0, GETALL, (union semun){ .array = all }));
	CHECK_EQ(all[0], 1);
	CHECK_EQ(all[1], 7);
	CHECK_EQ(all[2], 3);
	CHECK_EQ(get(1, GETPID), getpid());
	CHECK_ERR(semctl(id, 3, GETVAL), EINVAL);
	CHECK_ERR(semctl(id, 1, SETVAL, (union semun){ .val = 40000 }), ERANGE);
	CHECK_ERR(semctl(id, 1, SETVAL, (union semun){ .val = -1 }), ERANGE);
	CHECK_ERR(semctl(id, 0, 999), EINVAL);
	end();
}

TEST(operations)
{
	struct sembuf v[3] = { { 0, 2, 0 }, { 1, -1, IPC_NOWAIT }, { 0, -1, 0 } };
	begin(2);
	/* All or nothing. */
	CHECK_ERR(semop(id, v, 3), EAGAIN);
	CHECK_EQ(get(0, GETVAL), 0);
	CHECK_OK(op(1, 5, 0));
	CHECK_OK(semop(id, v, 3));
	CHECK_EQ(get(0, GETVAL), 1);
	CHECK_EQ(get(1, GETVAL), 4);
	CHECK_ERR(op(0, 0, IPC_NOWAIT), EAGAIN);
	CHECK_OK(op(0, -1, 0));
	CHECK_OK(op(0, 0, IPC_NOWAIT));
	CHECK_ERR(op(2, 1, 0), EFBIG);
	CHECK_ERR(semop(id, v, 0), EINVAL);
	CHECK_ERR(semop(id, v, 600), E2BIG);
	CHECK_ERR(semop(id, bad, 1), EFAULT);
	CHECK_OK(op(0, 32767, 0));
	CHECK_ERR(op(0, 1, 0), ERANGE);
	end();
}

static void *down(void *arg)
{
	return (void *)(long)(op(0, -1, 0) == 0 ? 0 : errno);
}

static void *zero(void *arg)
{
	return (void *)(long)(op(1, 0, 0) == 0 ? 0 : errno);
}

TEST(sleepers)
{
	pthread_t a, b, z;
	void *r;
	begin(2);
	CHECK_OK(op(1, 1, 0));
	CHECK_EQ(pthread_create(&a, NULL, down, NULL), 0);
	CHECK_EQ(pthread_create(&b, NULL, down, NULL), 0);
	CHECK_EQ(pthread_create(&z, NULL, zero, NULL), 0);
	usleep(100000);
	CHECK_EQ(get(0, GETNCNT), 2);
	CHECK_EQ(get(0, GETZCNT), 0);
	CHECK_EQ(get(1, GETZCNT), 1);
	CHECK_OK(op(0, 2, 0));
	CHECK_OK(semctl(id, 1, SETVAL, (union semun){ .val = 0 }));
	CHECK_EQ(pthread_join(a, &r), 0);
	CHECK_EQ((long)r, 0);
	CHECK_EQ(pthread_join(b, &r), 0);
	CHECK_EQ((long)r, 0);
	CHECK_EQ(pthread_join(z, &r), 0);
	CHECK_EQ((long)r, 0);
	CHECK_EQ(get(0, GETVAL), 0);
	/* Removal wakes with EIDRM. */
	CHECK_EQ(pthread_create(&a, NULL, down, NULL), 0);
	usleep(50000);
	end();
	CHECK_EQ(pthread_join(a, &r), 0);
	CHECK_EQ((long)r, EIDRM);
}

TEST(time_and_signals)
{
	struct sembuf s = { 0, -1, 0 };
	struct timespec ts = { 0, 50000000 }, a, b;
	begin(1);
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK_ERR(semtimedop(id, &s, 1, &ts), EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 50);
	ts.tv_nsec = -1;
	CHECK_ERR(semtimedop(id, &s, 1, &ts), EINVAL);
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	alarm(1);
	CHECK_ERR(op(0, -1, 0), EINTR);
	end();
}

TEST(undo_at_exit)
{
	begin(2);
	CHECK_OK(op(0, 5, 0));
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(op(0, -3, SEM_UNDO));
		CHECK_OK(op(1, 4, SEM_UNDO));
		CHECK_OK(op(1, 1, 0));
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(get(0, GETVAL), 5);
	CHECK_EQ(get(1, GETVAL), 1);
	/* Killed while it holds: the sleeper gets it. */
	CHECK_OK(semctl(id, 0, SETVAL, (union semun){ .val = 1 }));
	pid = fork();
	if (pid == 0) {
		CHECK_OK(op(0, -1, SEM_UNDO));
		pause();
	}
	while (get(0, GETVAL) != 0)
		usleep(1000);
	pid_t waiter = fork();
	if (waiter == 0) {
		CHECK_OK(op(0, -1, 0));
		_exit(0);
	}
	usleep(50000);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
	CHECK_CHILD(waiter, 0);
	/* SETVAL ends the debts. */
	pid = fork();
	if (pid == 0) {
		CHECK_OK(op(0, 3, SEM_UNDO));
		CHECK_OK(semctl(id, 0, SETVAL, (union semun){ .val = 10 }));
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(get(0, GETVAL), 10);
	end();
}

TEST(permissions)
{
	struct semid_ds ds;
	if (getuid() != 0)
		SKIP("needs root to change ids");
	begin(1);
	CHECK_OK(semctl(id, 0, IPC_STAT, (union semun){ .buf = &ds }));
	ds.sem_perm.mode = 0644;
	CHECK_OK(semctl(id, 0, IPC_SET, (union semun){ .buf = &ds }));
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(setgid(4321));
		CHECK_OK(setuid(1234));
		CHECK_EQ(get(0, GETVAL), 0);
		CHECK_ERR(op(0, 1, 0), EACCES);
		CHECK_OK(op(0, 0, 0));
		CHECK_ERR(semctl(id, 0, IPC_RMID), EPERM);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	end();
}

T_MAIN

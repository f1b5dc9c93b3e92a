/* msgget(2), msgsnd(2), msgrcv(2), msgctl(2). */
#include <pthread.h>
#include <sys/msg.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */
static struct {
	long type;
	char text[9000];
} m;
static int id;

static void handler(int sig)
{
}

static void begin(void)
{
	id = msgget(IPC_PRIVATE, 0600);
	CHECK_OK(id);
}

static void put(long type, const char *text)
{
	m.type = type;
	strcpy(m.text, text);
	CHECK_OK(msgsnd(id, &m, strlen(text), 0));
}

static void expect(long type, int flags, const char *text)
{
	memset(&m, 0, sizeof(m));
	CHECK_EQ(msgrcv(id, &m, 100, type, flags), (long)strlen(text));
	CHECK_STR(m.text, text);
}

TEST(order_and_types)
{
	begin();
	put(3, "three");
	put(1, "one");
	put(2, "two");
	put(1, "uno");
	expect(1, 0, "one");
	expect(-2, 0, "uno");
	CHECK_EQ(m.type, 1);
	expect(3, MSG_EXCEPT, "two");
	put(9, "nine");
	expect(0, 0, "three");
	CHECK_ERR(msgrcv(id, &m, 100, 4, IPC_NOWAIT), ENOMSG);
	expect(-100, 0, "nine");
	CHECK_ERR(msgrcv(id, &m, 100, 0, IPC_NOWAIT), ENOMSG);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
}

TEST(sizes)
{
	begin();
	put(1, "0123456789");
	CHECK_ERR(msgrcv(id, &m, 5, 0, 0), E2BIG);
	memset(&m, 0, sizeof(m));
	CHECK_EQ(msgrcv(id, &m, 5, 0, MSG_NOERROR), 5);
	CHECK_STR(m.text, "01234");
	m.type = 1;
	CHECK_OK(msgsnd(id, &m, 0, 0));
	CHECK_EQ(msgrcv(id, &m, 0, 0, 0), 0);
	CHECK_OK(msgsnd(id, &m, 8192, 0));
	CHECK_ERR(msgsnd(id, &m, 8193, 0), EINVAL);
	CHECK_ERR(msgsnd(id, &m, (size_t)-1, 0), EINVAL);
	CHECK_OK(msgsnd(id, &m, 8192, 0));
	CHECK_ERR(msgsnd(id, &m, 1, IPC_NOWAIT), EAGAIN);
	struct msqid_ds ds;
	CHECK_OK(msgctl(id, IPC_STAT, &ds));
	CHECK_EQ(ds.msg_qnum, 2);
	CHECK_EQ(ds.__msg_cbytes, 16384);
	CHECK_EQ(ds.msg_qbytes, 16384);
	CHECK_EQ(ds.msg_lspid, getpid());
	m.type = 0;
	CHECK_ERR(msgsnd(id, &m, 1, 0), EINVAL);
	CHECK_ERR(msgsnd(id, bad, 1, 0), EFAULT);
	CHECK_ERR(msgsnd(-1, &m, 1, 0), EINVAL);
	CHECK_ERR(msgrcv(id, bad, 8192, 0, 0), EFAULT);
	/* It was taken all the same. */
	CHECK_OK(msgctl(id, IPC_STAT, &ds));
	CHECK_EQ(ds.msg_qnum, 1);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
}

TEST(keys)
{
	int key = 0x60000000 + getpid();
	CHECK_ERR(msgget(key, 0600), ENOENT);
	id = msgget(key, IPC_CREAT | 0600);
	CHECK_OK(id);
	CHECK_EQ(msgget(key, 0600), id);
	CHECK_ERR(msgget(key, IPC_CREAT | IPC_EXCL), EEXIST);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
	CHECK_ERR(msgctl(id, IPC_RMID, NULL), EINVAL);
	CHECK_ERR(msgctl(id, 999, NULL), EINVAL);
}

static void *receiver(void *arg)
{
	struct {
		long type;
		char text[10];
	} r;
	long n = msgrcv(id, &r, 10, (long)arg, 0);
	return (void *)(n >= 0 ? n : -errno);
}

TEST(sleepers)
{
	pthread_t a, b;
	void *r;
	begin();
	CHECK_EQ(pthread_create(&a, NULL, receiver, (void *)5), 0);
	CHECK_EQ(pthread_create(&b, NULL, receiver, (void *)6), 0);
	usleep(50000);
	put(6, "six");
	CHECK_EQ(pthread_join(b, &r), 0);
	CHECK_EQ((long)r, 3);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
	CHECK_EQ(pthread_join(a, &r), 0);
	CHECK_EQ((long)r, -EIDRM);
	/* A sender waits for room. */
	begin();
	m.type = 1;
	CHECK_OK(msgsnd(id, &m, 8192, 0));
	CHECK_OK(msgsnd(id, &m, 8192, 0));
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_OK(msgsnd(id, &m, 100, 0));
		_exit(0);
	}
	usleep(50000);
	CHECK_EQ(msgrcv(id, &m, 9000, 0, 0), 8192);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(msgrcv(id, &m, 9000, 0, 0), 8192);
	CHECK_EQ(msgrcv(id, &m, 9000, 0, 0), 100);
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	alarm(1);
	CHECK_ERR(msgrcv(id, &m, 100, 0, 0), EINTR);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
}

T_MAIN

/* mq_open(2), mq_unlink(2), mq_timedsend(2), mq_timedreceive(2), mq_notify(2), mq_getsetattr(2). */
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/guest/t.h"

static char name[64], buf[9000];

static void handler(int sig)
{
}

static mqd_t make(int flags, long messages, long size)
{
	struct mq_attr a = { .mq_maxmsg = messages, .mq_msgsize = size };
	snprintf(name, sizeof(name), "/mq_test_%d", getpid());
	mq_unlink(name);
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL | flags, 0600, &a);
	CHECK_OK(q);
	return q;
}

TEST(priorities)
{
	unsigned prio;
	mqd_t q = make(O_NONBLOCK, 5, 100);
	CHECK_ERR(mq_receive(q, buf, 100, NULL), EAGAIN);
	CHECK_OK(mq_send(q, "low", 3, 1));
	CHECK_OK(mq_send(q, "high", 4, 9));
	CHECK_OK(mq_send(q, "low2", 4, 1));
	CHECK_OK(mq_send(q, "", 0, 32767));
	CHECK_ERR(mq_send(q, "x", 1, 32768), EINVAL);
	CHECK_EQ(mq_receive(q, buf, 100, &prio), 0);
	CHECK_EQ(prio, 32767);
	CHECK_EQ(mq_receive(q, buf, 100, &prio), 4);
	CHECK_EQ(prio, 9);
	CHECK_EQ(mq_receive(q, buf, 100, &prio), 3);
	CHECK_EQ(mq_receive(q, buf, 200, &prio), 4);
	CHECK_MEM(buf, "low2", 4);
	CHECK_ERR(mq_receive(q, buf, 99, &prio), EMSGSIZE);
	CHECK_ERR(mq_send(q, buf, 101, 0), EMSGSIZE);
	for (int i = 0; i < 5; i++)
		CHECK_OK(mq_send(q, "m", 1, 0));
	CHECK_ERR(mq_send(q, "m", 1, 0), EAGAIN);
	struct mq_attr a;
	CHECK_OK(mq_getattr(q, &a));
	CHECK_EQ(a.mq_curmsgs, 5);
	CHECK_EQ(a.mq_maxmsg, 5);
	CHECK_EQ(a.mq_msgsize, 100);
	CHECK_EQ(a.mq_flags, O_NONBLOCK);
	a.mq_flags = 0;
	CHECK_OK(mq_setattr(q, &a, NULL));
	CHECK_OK(mq_getattr(q, &a));
	CHECK_EQ(a.mq_flags, 0);
	CHECK_OK(mq_unlink(name));
}

TEST(names)
{
	struct mq_attr a = { .mq_maxmsg = 0, .mq_msgsize = 10 };
	mqd_t q = make(0, 2, 10), r;
	CHECK_EQ(fcntl(q, F_GETFD), FD_CLOEXEC);
	CHECK_ERR(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL), EEXIST);
	r = mq_open(name, O_RDONLY);
	CHECK_OK(r);
	CHECK_OK(mq_send(q, "hi", 2, 0));
	CHECK_EQ(mq_receive(r, buf, 10, NULL), 2);
	CHECK_ERR(mq_send(r, "x", 1, 0), EBADF);
	CHECK_OK(mq_unlink(name));
	CHECK_ERR(mq_unlink(name), ENOENT);
	CHECK_ERR(mq_open(name, O_RDONLY), ENOENT);
	/* Without a name it lives on. */
	CHECK_OK(mq_send(q, "hi", 2, 0));
	CHECK_ERR(mq_open(name, O_RDWR | O_CREAT, 0600, &a), EINVAL);
	CHECK_ERR(syscall(SYS_mq_open, "", O_RDWR, 0, NULL), ENOENT);
	CHECK_ERR(syscall(SYS_mq_open, "a/b", O_RDWR | O_CREAT, 0600, NULL), EACCES);
	char longname[300];
	memset(longname, 'n', 299);
	longname[299] = 0;
	CHECK_ERR(syscall(SYS_mq_open, longname, O_RDWR, 0, NULL), ENAMETOOLONG);
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_ERR(mq_getattr(p[0], &a), EBADF);
	CHECK_ERR(mq_send(p[1], "x", 1, 0), EBADF);
}

TEST(waiting)
{
	struct timespec ts;
	mqd_t q = make(0, 1, 10);
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += 50000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	CHECK_ERR(mq_timedreceive(q, buf, 10, NULL, &ts), ETIMEDOUT);
	ts.tv_nsec = 1000000000;
	CHECK_ERR(mq_timedreceive(q, buf, 10, NULL, &ts), EINVAL);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(50000);
		CHECK_OK(mq_send(q, "one", 3, 0));
		/* Full until the parent reads. */
		CHECK_OK(mq_send(q, "two", 3, 0));
		_exit(0);
	}
	CHECK_EQ(mq_receive(q, buf, 10, NULL), 3);
	CHECK_EQ(mq_receive(q, buf, 10, NULL), 3);
	CHECK_CHILD(pid, 0);
	struct pollfd f = { q, POLLIN | POLLOUT, 0 };
	CHECK_EQ(poll(&f, 1, 0), 1);
	CHECK_EQ(f.revents, POLLOUT);
	struct sigaction sa = { .sa_handler = handler };
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	alarm(1);
	CHECK_ERR(mq_receive(q, buf, 10, NULL), EINTR);
	CHECK_OK(mq_unlink(name));
}

TEST(notification)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	siginfo_t si;
	sigset_t set;
	ev.sigev_value.sival_int = 99;
	mqd_t q = make(O_NONBLOCK, 5, 10);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(mq_notify(q, &ev));
	CHECK_ERR(mq_notify(q, &ev), EBUSY);
	CHECK_OK(mq_send(q, "x", 1, 0));
	struct timespec ts = { 2, 0 };
	CHECK_EQ(sigtimedwait(&set, &si, &ts), SIGUSR1);
	CHECK_EQ(si.si_code, SI_MESGQ);
	CHECK_EQ(si.si_pid, getpid());
	CHECK_EQ(si.si_value.sival_int, 99);
	/* Once only, and only for an empty queue. */
	CHECK_OK(mq_notify(q, &ev));
	CHECK_OK(mq_send(q, "x", 1, 0));
	ts = (struct timespec){ 0, 20000000 };
	CHECK_ERR(sigtimedwait(&set, &si, &ts), EAGAIN);
	CHECK_OK(mq_notify(q, NULL));
	CHECK_EQ(mq_receive(q, buf, 10, NULL), 1);
	CHECK_EQ(mq_receive(q, buf, 10, NULL), 1);
	CHECK_OK(mq_send(q, "x", 1, 0));
	CHECK_ERR(sigtimedwait(&set, &si, &ts), EAGAIN);
	ev.sigev_signo = 99;
	CHECK_ERR(mq_notify(q, &ev), EINVAL);
	CHECK_OK(mq_unlink(name));
}

TEST(events_are_checked_before_the_descriptor)
{
	struct sigevent bad = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65 };
	CHECK_ERR(syscall(SYS_mq_notify, -1, &bad), EINVAL);
	bad.sigev_notify = 77;
	CHECK_ERR(syscall(SYS_mq_notify, -1, &bad), EINVAL);
	CHECK_ERR(syscall(SYS_mq_notify, -1, NULL), EBADF);
	CHECK_ERR(syscall(SYS_mq_notify, -1, (void *)8), EFAULT);
}

T_MAIN

/* Record locks of fcntl(2), open-file-description locks, flock(2). */
#include <sys/file.h>

#include "tests/guest/t_file.h"

static int set(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	return fcntl(fd, cmd, &fl);
}

/* Type that another process would meet. */
static int probe(off_t start, off_t len, struct flock *out)
{
	int p[2];
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	CHECK_OK(pipe(p));
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("f", O_RDWR);
		if (fcntl(fd, F_GETLK, &fl) != 0 || write(p[1], &fl, sizeof(fl)) != sizeof(fl))
			_exit(1);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(p[0], &fl, sizeof(fl)), sizeof(fl));
	if (out)
		*out = fl;
	close(p[0]);
	close(p[1]);
	return fl.l_type;
}

TEST(fcntl_locks_between_processes)
{
	struct flock fl;
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_OK(set(fd, F_SETLK, F_WRLCK, 10, 10));
	CHECK_EQ(probe(0, 10, NULL), F_UNLCK);
	CHECK_EQ(probe(15, 1, &fl), F_WRLCK);
	CHECK(fl.l_start == 10 && fl.l_len == 10 && fl.l_pid == getpid());
	CHECK_OK(set(fd, F_SETLK, F_RDLCK, 12, 2));
	CHECK_EQ(probe(12, 1, &fl), F_RDLCK);
	CHECK_OK(set(fd, F_SETLK, F_UNLCK, 0, 15));
	CHECK_EQ(probe(0, 0, &fl), F_WRLCK);
	CHECK(fl.l_start == 15 && fl.l_len == 5);
	CHECK_OK(set(fd, F_SETLK, F_WRLCK, 0, 0));
	CHECK_EQ(probe(1000000, 1, &fl), F_WRLCK);
	CHECK(fl.l_start == 0 && fl.l_len == 0);
	/* Closing any descriptor of the file drops them all. */
	CHECK_OK(close(open("f", O_RDONLY)));
	CHECK_EQ(probe(0, 0, NULL), F_UNLCK);
}

TEST(fcntl_lock_errors)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -1 };
	fresh_dir();
	make_file("f", "abc");
	int r = open("f", O_RDONLY), w = open("f", O_WRONLY);
	CHECK_ERR(set(r, F_SETLK, F_WRLCK, 0, 1), EBADF);
	CHECK_ERR(set(w, F_SETLK, F_RDLCK, 0, 1), EBADF);
	CHECK_ERR(set(w, F_SETLK, 77, 0, 1), EINVAL);
	CHECK_ERR(set(w, F_SETLK, F_WRLCK, -1, 1), EINVAL);
	CHECK_ERR(set(99, F_SETLK, F_WRLCK, 0, 1), EBADF);
	CHECK_ERR(fcntl(w, F_SETLK, &fl), EINVAL);
	CHECK_ERR(fcntl(w, F_SETLK, bad_ptr), EFAULT);
	fl.l_whence = SEEK_END;
	CHECK_OK(fcntl(w, F_SETLK, &fl));
	fl.l_whence = 9;
	CHECK_ERR(fcntl(w, F_SETLK, &fl), EINVAL);
}

TEST(fcntl_setlkw_waits)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644), go[2], got[2];
	char c;
	CHECK_OK(pipe(go));
	CHECK_OK(pipe(got));
	CHECK_OK(set(fd, F_SETLK, F_WRLCK, 0, 1));
	pid_t pid = fork();
	if (pid == 0) {
		/* Children do not inherit the lock. */
		if (set(fd, F_SETLK, F_WRLCK, 0, 1) != -1 || errno != EAGAIN)
			_exit(1);
		if (write(go[1], "x", 1) != 1 || set(fd, F_SETLKW, F_WRLCK, 0, 1) != 0)
			_exit(2);
		_exit(write(got[1], "y", 1) == 1 ? 0 : 3);
	}
	CHECK_EQ(read(go[0], &c, 1), 1);
	usleep(100000);
	CHECK_OK(fcntl(got[0], F_SETFL, O_NONBLOCK));
	CHECK_ERR(read(got[0], &c, 1), EAGAIN);
	CHECK_OK(set(fd, F_SETLK, F_UNLCK, 0, 1));
	CHECK_CHILD(pid, 0);
}

static void on_alarm(int sig)
{
}

TEST(fcntl_setlkw_is_interrupted)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644), go[2];
	char c;
	CHECK_OK(pipe(go));
	CHECK_OK(set(fd, F_SETLK, F_WRLCK, 0, 1));
	pid_t pid = fork();
	if (pid == 0) {
		struct sigaction sa = { .sa_handler = on_alarm };
		sigaction(SIGALRM, &sa, NULL);
		alarm(1);
		int r = set(fd, F_SETLKW, F_WRLCK, 0, 1);
		_exit(r == -1 && errno == EINTR ? 0 : 1);
	}
	close(go[1]);
	CHECK_EQ(read(go[0], &c, 1), 0);
	CHECK_CHILD(pid, 0);
}

TEST(fcntl_setlkw_deadlock)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644), go[2];
	char c;
	CHECK_OK(pipe(go));
	CHECK_OK(set(fd, F_SETLK, F_WRLCK, 0, 1));
	pid_t pid = fork();
	if (pid == 0) {
		if (set(fd, F_SETLK, F_WRLCK, 1, 1) != 0 || write(go[1], "x", 1) != 1)
			_exit(1);
		_exit(set(fd, F_SETLKW, F_WRLCK, 0, 1) == 0 ? 0 : 2);
	}
	CHECK_EQ(read(go[0], &c, 1), 1);
	usleep(200000);
	CHECK_ERR(set(fd, F_SETLKW, F_WRLCK, 1, 1), EDEADLK);
	CHECK_OK(set(fd, F_SETLK, F_UNLCK, 0, 1));
	CHECK_CHILD(pid, 0);
}

TEST(ofd_locks)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	fresh_dir();
	int a = open("f", O_CREAT | O_RDWR, 0644), b = open("f", O_RDWR), copy = dup(a);
	CHECK_OK(set(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	CHECK_OK(set(copy, F_OFD_SETLK, F_WRLCK, 0, 10));
	CHECK_ERR(set(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
	CHECK_ERR(set(b, F_SETLK, F_RDLCK, 5, 1), EAGAIN);
	CHECK_OK(fcntl(b, F_OFD_GETLK, &fl));
	CHECK(fl.l_type == F_WRLCK && fl.l_pid == -1 && fl.l_len == 10);
	fl.l_pid = 1;
	CHECK_ERR(fcntl(b, F_OFD_SETLK, &fl), EINVAL);
	CHECK_OK(close(open("f", O_RDONLY)));
	CHECK_ERR(set(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
	CHECK_OK(close(a));
	CHECK_ERR(set(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
	CHECK_OK(close(copy));
	CHECK_OK(set(b, F_OFD_SETLK, F_RDLCK, 5, 1));
}

TEST(flock_rules)
{
	fresh_dir();
	int a = open("f", O_CREAT | O_RDWR, 0644), b = open("f", O_RDONLY), c = dup(a);
	CHECK_OK(flock(a, LOCK_SH));
	CHECK_OK(flock(b, LOCK_SH | LOCK_NB));
	CHECK_ERR(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK_OK(flock(b, LOCK_UN));
	CHECK_OK(flock(a, LOCK_EX));
	CHECK_ERR(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	CHECK_OK(flock(c, LOCK_EX | LOCK_NB));
	CHECK_OK(close(a));
	CHECK_ERR(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	CHECK_OK(close(c));
	CHECK_OK(flock(b, LOCK_EX | LOCK_NB));
	CHECK_ERR(flock(b, 64), EINVAL);
	CHECK_ERR(flock(b, LOCK_NB), EINVAL);
	CHECK_ERR(flock(99, LOCK_SH), EBADF);
	/* Record locks and flock do not see each other. */
	int w = open("f", O_RDWR);
	CHECK_OK(set(w, F_SETLK, F_WRLCK, 0, 0));
}

TEST(flock_waits_and_is_inherited)
{
	fresh_dir();
	int a = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_OK(flock(a, LOCK_EX));
	pid_t pid = fork();
	if (pid == 0) {
		/* The child shares the open file, hence the lock; a fresh one must wait. */
		int fresh = open("f", O_RDWR);
		if (flock(a, LOCK_EX | LOCK_NB) != 0 || flock(fresh, LOCK_EX | LOCK_NB) != -1)
			_exit(1);
		close(a);
		_exit(flock(fresh, LOCK_EX) == 0 ? 0 : 2);
	}
	usleep(100000);
	CHECK_OK(flock(a, LOCK_UN));
	CHECK_CHILD(pid, 0);
}

T_MAIN

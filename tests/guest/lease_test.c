/* fcntl(2): F_SETLEASE, F_GETLEASE. In /dev/shm, since not every file system has leases. */
#include "tests/guest/t_file.h"

static volatile int told, about;

static void on_signal(int sig)
{
	told = sig;
}

static void on_info(int sig, siginfo_t *si, void *context)
{
	told = sig;
	about = si->si_fd;
}

static void shm_dir(void)
{
	SKIP_IF(chdir("/dev/shm") != 0, "needs /dev/shm");
	fresh_dir();
}

TEST(who_may_have_which_lease)
{
	int p[2];
	shm_dir();
	int w = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(fcntl(w, F_GETLEASE), F_UNLCK);
	CHECK_ERR(fcntl(w, F_SETLEASE, F_UNLCK), EAGAIN);
	CHECK_ERR(fcntl(w, F_SETLEASE, F_RDLCK), EAGAIN); /* it is itself a writer */
	CHECK_ERR(fcntl(w, F_SETLEASE, 9), EINVAL);
	CHECK_OK(fcntl(w, F_SETLEASE, F_WRLCK));
	CHECK_EQ(fcntl(w, F_GETLEASE), F_WRLCK);
	CHECK_EQ(fcntl(w, F_GETOWN), getpid());
	int d = dup(w);
	CHECK_OK(close(w)); /* the lease is the open file's */
	CHECK_EQ(fcntl(d, F_GETLEASE), F_WRLCK);
	CHECK_OK(close(d));
	int r = open("f", O_RDONLY), r2 = open("f", O_RDONLY);
	CHECK_OK(fcntl(r, F_SETLEASE, F_RDLCK));
	CHECK_OK(fcntl(r2, F_SETLEASE, F_RDLCK));
	CHECK_ERR(fcntl(r2, F_SETLEASE, F_WRLCK), EAGAIN);
	CHECK_OK(pipe(p));
	CHECK_ERR(fcntl(p[0], F_SETLEASE, F_RDLCK), EINVAL);
	CHECK_EQ(fcntl(p[0], F_GETLEASE), F_UNLCK);
	become_user();
	CHECK_ERR(fcntl(r, F_SETLEASE, F_UNLCK), EACCES);
}

TEST(an_open_that_does_not_wait_still_tells)
{
	shm_dir();
	make_file("f", "text");
	int r = open("f", O_RDONLY);
	struct sigaction sa = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO };
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(fcntl(r, F_SETLEASE, F_RDLCK));
	CHECK_OK(fcntl(r, F_SETSIG, SIGUSR1));
	CHECK_OK(open("f", O_RDONLY)); /* readers do not mind each other */
	CHECK_EQ(told, 0);
	CHECK_ERR(open("f", O_WRONLY | O_NONBLOCK), EAGAIN);
	CHECK_EQ(told, SIGUSR1);
	CHECK_EQ(about, r);
	CHECK_EQ(fcntl(r, F_GETLEASE), F_UNLCK); /* what it is to become */
	CHECK_OK(fcntl(r, F_SETLEASE, F_UNLCK));
	CHECK_OK(open("f", O_WRONLY | O_NONBLOCK));
}

TEST(a_writer_waits_until_the_lease_is_dropped)
{
	shm_dir();
	make_file("f", "text");
	int r = open("f", O_RDONLY);
	signal(SIGIO, on_signal);
	CHECK_OK(fcntl(r, F_SETLEASE, F_RDLCK));
	pid_t pid = fork();
	if (pid == 0) {
		close(r);
		_exit(truncate("f", 1) == 0 ? 5 : 6);
	}
	while (told != SIGIO)
		usleep(1000);
	struct stat st;
	CHECK_OK(fstat(r, &st));
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
	CHECK_OK(fcntl(r, F_SETLEASE, F_UNLCK));
	CHECK_CHILD(pid, 5);
}

TEST(a_reader_needs_only_a_downgrade)
{
	shm_dir();
	int w = open("f", O_CREAT | O_RDWR, 0644);
	signal(SIGIO, on_signal);
	CHECK_OK(fcntl(w, F_SETLEASE, F_WRLCK));
	pid_t pid = fork();
	if (pid == 0)
		_exit(open("f", O_RDONLY) >= 0 ? 5 : 6);
	while (told != SIGIO)
		usleep(1000);
	CHECK_EQ(fcntl(w, F_GETLEASE), F_RDLCK);
	/* A lease for reading needs a file without writers, and we are one. */
	CHECK_ERR(fcntl(w, F_SETLEASE, F_RDLCK), EAGAIN);
	CHECK_OK(close(w)); /* not the last descriptor: the child's copy keeps the lease */
	CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

T_MAIN

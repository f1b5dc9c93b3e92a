/* pipe(2), pipe2(2), and FIFOs: fifo(7). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "tests/guest/t.h"

static void *volatile bad = (void *)8; /* an address that nothing is mapped at */

static int p[2];
static char big[200000];

static void handler(int sig)
{
}

/* Without SA_RESTART. */
static void catch(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	CHECK_OK(sigaction(sig, &sa, NULL));
}

TEST(flags_and_fields)
{
	struct stat st;
	CHECK_OK(pipe(p));
	CHECK_EQ(p[0], 3);
	CHECK_EQ(p[1], 4);
	CHECK_EQ(fcntl(p[0], F_GETFL), O_RDONLY);
	CHECK_EQ(fcntl(p[1], F_GETFL), O_WRONLY);
	CHECK_EQ(fcntl(p[0], F_GETFD), 0);
	CHECK_OK(fstat(p[0], &st));
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_ERR(lseek(p[0], 0, SEEK_CUR), ESPIPE);
	CHECK_ERR(pread(p[0], big, 1, 0), ESPIPE);
	CHECK_ERR(read(p[1], big, 1), EBADF);
	CHECK_ERR(write(p[0], big, 1), EBADF);
	CHECK_OK(pipe2(p, O_CLOEXEC | O_NONBLOCK));
	CHECK_EQ(fcntl(p[0], F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(p[1], F_GETFL), O_WRONLY | O_NONBLOCK);
	CHECK_ERR(read(p[0], big, 1), EAGAIN);
	CHECK_ERR(pipe2(p, O_RDWR), EINVAL);
	CHECK_ERR(pipe2(bad, 0), EFAULT);
	int again[2];
	CHECK_OK(pipe(again));
	CHECK_EQ(again[0], 7);
}

TEST(link_name_in_proc)
{
	char link[64], path[64];
	struct stat st;
	CHECK_OK(pipe(p));
	CHECK_OK(fstat(p[0], &st));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	CHECK(n > 0);
	link[n] = 0;
	snprintf(path, sizeof(path), "pipe:[%lu]", (unsigned long)st.st_ino);
	CHECK_STR(link, path);
}

TEST(partial_writes_and_atomicity)
{
	CHECK_OK(pipe2(p, O_NONBLOCK));
	CHECK_EQ(write(p[1], big, sizeof(big)), 65536);
	CHECK_ERR(write(p[1], big, 1), EAGAIN);
	CHECK_EQ(read(p[0], big, 4095), 4095);
	/* A page's room, but not for one byte more than a page. */
	CHECK_ERR(write(p[1], big, 4096), EAGAIN);
	CHECK_EQ(read(p[0], big, 1), 1);
	CHECK_EQ(write(p[1], big, 5000), 4096);
	int n;
	CHECK_OK(ioctl(p[0], FIONREAD, &n));
	CHECK_EQ(n, 65536);
	CHECK_EQ(write(p[1], big, 0), 0);
}

TEST(eof_and_sigpipe)
{
	CHECK_OK(pipe(p));
	CHECK_EQ(write(p[1], "abc", 3), 3);
	close(p[1]);
	CHECK_EQ(read(p[0], big, 10), 3);
	CHECK_EQ(read(p[0], big, 10), 0);
	CHECK_OK(pipe(p));
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		CHECK_OK(write(p[1], "x", 1));
		_exit(1);
	}
	CHECK_KILLED(pid, SIGPIPE);
}

TEST(duplicates_keep_it_open)
{
	CHECK_OK(pipe(p));
	int d = dup(p[1]);
	close(p[1]);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_EQ(write(d, "kid", 3), 3);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	close(d);
	CHECK_EQ(read(p[0], big, 10), 3);
	CHECK_EQ(read(p[0], big, 10), 0);
}

TEST(interrupted_read)
{
	CHECK_OK(pipe(p));
	catch (SIGALRM, 0);
	alarm(1);
	CHECK_ERR(read(p[0], big, 1), EINTR);
	/* With SA_RESTART it goes on, until the data comes. */
	catch (SIGALRM, SA_RESTART);
	pid_t pid = fork();
	if (pid == 0) {
		sleep(2);
		CHECK_EQ(write(p[1], "q", 1), 1);
		_exit(0);
	}
	alarm(1);
	CHECK_EQ(read(p[0], big, 1), 1);
	CHECK_CHILD(pid, 0);
}

TEST(interrupted_write_counts_what_it_did)
{
	CHECK_OK(pipe(p));
	catch (SIGALRM, SA_RESTART);
	alarm(1);
	CHECK_EQ(write(p[1], big, sizeof(big)), 65536);
	catch (SIGALRM, 0);
	alarm(1);
	CHECK_ERR(write(p[1], big, sizeof(big)), EINTR);
}

static void *reader(void *arg)
{
	char c;
	return (void *)(long)read(p[0], &c, 1);
}

TEST(many_sleepers)
{
	pthread_t t[10];
	void *r;
	long got = 0;
	CHECK_OK(pipe(p));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, reader, NULL), 0);
	usleep(100000);
	CHECK_EQ(write(p[1], "12345", 5), 5);
	usleep(100000);
	close(p[1]);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(pthread_join(t[i], &r), 0);
		got += (long)r;
	}
	CHECK_EQ(got, 5);
}

TEST(packet_mode)
{
	CHECK_OK(pipe2(p, O_DIRECT | O_NONBLOCK));
	CHECK_EQ(fcntl(p[1], F_GETFL) & O_DIRECT, O_DIRECT);
	CHECK_EQ(write(p[1], "one", 3), 3);
	CHECK_EQ(write(p[1], "three", 5), 5);
	CHECK_EQ(read(p[0], big, 100), 3);
	CHECK_EQ(read(p[0], big, 2), 2);
	CHECK_ERR(read(p[0], big, 2), EAGAIN);
	CHECK_OK(fcntl(p[1], F_SETFL, O_NONBLOCK));
	CHECK_EQ(write(p[1], "a", 1), 1);
	CHECK_EQ(write(p[1], "b", 1), 1);
	CHECK_EQ(read(p[0], big, 100), 2);
}

TEST(sizes)
{
	CHECK_OK(pipe2(p, O_NONBLOCK));
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 65536);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 5000), 8192);
	CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 8192);
	CHECK_EQ(write(p[1], big, sizeof(big)), 8192);
	CHECK_ERR(fcntl(p[1], F_SETPIPE_SZ, 4096), EBUSY);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
	CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 100), -1);
	int fd = open("/dev/null", O_RDWR);
	CHECK_ERR(fcntl(fd, F_GETPIPE_SZ), EBADF);
}

TEST(bad_buffers)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK_OK(munmap(page + 4096, 4096));
	CHECK_OK(pipe2(p, O_NONBLOCK));
	CHECK_ERR(write(p[1], bad, 10), EFAULT);
	CHECK_ERR(read(p[0], big, 10), EAGAIN);
	CHECK_EQ(write(p[1], "0123456789", 10), 10);
	CHECK_ERR(read(p[0], bad, 10), EFAULT);
	/* Nothing was lost by the failed read. */
	CHECK_ERR(read(p[0], page + 4091, 10), EFAULT);
	CHECK_EQ(read(p[0], big, 10), 10);
	CHECK_MEM(big, "0123456789", 10);
}

TEST(poll_bits)
{
	struct pollfd f[2];
	CHECK_OK(pipe2(p, O_NONBLOCK));
	f[0] = (struct pollfd){ p[0], POLLIN | POLLRDNORM | POLLRDHUP, 0 };
	f[1] = (struct pollfd){ p[1], POLLOUT | POLLWRNORM, 0 };
	CHECK_EQ(poll(f, 2, 0), 1);
	CHECK_EQ(f[1].revents, POLLOUT | POLLWRNORM);
	CHECK_EQ(write(p[1], big, sizeof(big)), 65536);
	CHECK_EQ(poll(f, 2, 0), 1);
	CHECK_EQ(f[0].revents, POLLIN | POLLRDNORM);
	close(p[0]);
	CHECK_EQ(poll(f + 1, 1, 0), 1);
	CHECK_EQ(f[1].revents, POLLERR);
	CHECK_OK(pipe(p));
	CHECK_EQ(write(p[1], "x", 1), 1);
	close(p[1]);
	f[0] = (struct pollfd){ p[0], POLLIN, 0 };
	CHECK_EQ(poll(f, 1, 0), 1);
	CHECK_EQ(f[0].revents, POLLIN | POLLHUP);
	CHECK_EQ(read(p[0], big, 1), 1);
	CHECK_EQ(poll(f, 1, 0), 1);
	CHECK_EQ(f[0].revents, POLLHUP);
}

/* ---- FIFOs ---- */

static char fifo[64];

static void make_fifo(void)
{
	snprintf(fifo, sizeof(fifo), "/tmp/fifo_test_%d", getpid());
	unlink(fifo);
	CHECK_OK(mkfifo(fifo, 0600));
}

TEST(fifo_open_rules)
{
	make_fifo();
	CHECK_ERR(open(fifo, O_WRONLY | O_NONBLOCK), ENXIO);
	int r = open(fifo, O_RDONLY | O_NONBLOCK);
	CHECK_OK(r);
	struct pollfd f = { r, POLLIN, 0 };
	CHECK_EQ(poll(&f, 1, 0), 0);
	CHECK_EQ(read(r, big, 1), 0);
	int w = open(fifo, O_WRONLY | O_NONBLOCK);
	CHECK_OK(w);
	CHECK_ERR(read(r, big, 1), EAGAIN);
	close(w);
	CHECK_EQ(poll(&f, 1, 0), 1);
	CHECK_EQ(f.revents, POLLHUP);
	close(r);
	int rw = open(fifo, O_RDWR);
	CHECK_OK(rw);
	CHECK_EQ(write(rw, "x", 1), 1);
	CHECK_EQ(read(rw, big, 1), 1);
	close(rw);
	catch (SIGALRM, 0);
	alarm(1);
	CHECK_ERR(open(fifo, O_RDONLY), EINTR);
	unlink(fifo);
}

TEST(fifo_meeting)
{
	make_fifo();
	pid_t pid = fork();
	if (pid == 0) {
		usleep(200000);
		int w = open(fifo, O_WRONLY);
		CHECK_OK(w);
		CHECK_EQ(write(w, "met", 3), 3);
		_exit(0);
	}
	int r = open(fifo, O_RDONLY);
	CHECK_OK(r);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(r, big, 10), 3);
	CHECK_EQ(read(r, big, 10), 0);
	unlink(fifo);
}

TEST(reopen_by_proc)
{
	char path[64];
	CHECK_OK(pipe(p));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[1]);
	int w = open(path, O_WRONLY);
	CHECK_OK(w);
	CHECK_EQ(write(w, "via", 3), 3);
	CHECK_EQ(read(p[0], big, 10), 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	int w2 = open(path, O_WRONLY);
	CHECK_OK(w2);
	close(w);
	close(p[1]);
	CHECK_EQ(write(w2, "!", 1), 1);
	CHECK_EQ(read(p[0], big, 10), 1);
}

T_MAIN

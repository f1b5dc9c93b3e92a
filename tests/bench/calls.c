/*
 * Nanoseconds per operation, as "name ns" lines. Runs natively and inside; each operation is repeated in
 * batches for about a fifth of a second and the median of the batches counts.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 9
#define PAGES 256

static const char *self;
static int null_fd, file_fd, to_peer[2], from_peer[2];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void op_getpid(void)
{
	syscall(SYS_getpid);
}

static void op_clock(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
}

static void op_read(void)
{
	char c;
	if (pread(file_fd, &c, 1, 0) != 1)
		die("pread");
}

static void op_read_64k(void)
{
	static char buf[65536];
	if (pread(file_fd, buf, sizeof(buf), 0) != sizeof(buf))
		die("pread");
}

static void op_write(void)
{
	if (write(null_fd, "x", 1) != 1)
		die("write");
}

static void op_open_close(void)
{
	int fd = open("/etc/passwd", O_RDONLY);
	if (fd < 0)
		die("open");
	close(fd);
}

static void op_stat(void)
{
	struct stat st;
	if (stat("/etc/passwd", &st) < 0)
		die("stat");
}

static void op_pipe(void)
{
	char c = 'x';
	if (write(to_peer[1], &c, 1) != 1 || read(from_peer[0], &c, 1) != 1)
		die("pipe");
}

static void *peer(void *arg)
{
	char c;
	while (read(to_peer[0], &c, 1) == 1)
		if (write(from_peer[1], &c, 1) != 1)
			break;
	return arg;
}

static void op_fork(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
}

static void op_exec(void)
{
	char *argv[] = { (char *)self, "exit", NULL };
	pid_t pid;

	if (posix_spawn(&pid, self, NULL, NULL, argv, environ) != 0 || waitpid(pid, NULL, 0) != pid)
		die("exec");
}

static void *nothing(void *arg)
{
	return arg;
}

static void op_thread(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, nothing, NULL) != 0)
		die("thread");
	pthread_join(t, NULL);
}

/* PAGES pages per call; the result is divided. */
static void op_touch(void)
{
	char *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < PAGES; i++)
		p[i * 4096] = 1;
	munmap(p, PAGES * 4096);
}

static void op_mmap(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	munmap(p, 4096);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(const char *name, void (*op)(void), int divide)
{
	double batch[BATCHES];
	long n = 1;

	/* As many as fill some twenty milliseconds. */
	for (;;) {
		double start = now();
		for (long i = 0; i < n; i++)
			op();
		double took = now() - start;
		if (took > 2e6 || n > 1000000) {
			n = (long)((double)n * 2e7 / took) + 1;
			break;
		}
		n *= 4;
	}
	for (int b = 0; b < BATCHES; b++) {
		double start = now();
		for (long i = 0; i < n; i++)
			op();
		batch[b] = (now() - start) / (double)n / divide;
	}
	qsort(batch, BATCHES, sizeof(batch[0]), by_value);
	printf("%s %.0f\n", name, batch[BATCHES / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/pinfold-bench-XXXXXX";
	static char data[65536];
	pthread_t t;

	if (argc > 1 && strcmp(argv[1], "exit") == 0)
		return 0;
	if (argc > 1 && strcmp(argv[1], "sleep") == 0)
		return (int)sleep(1000);
	self = argv[0];
	null_fd = open("/dev/null", O_WRONLY);
	file_fd = mkstemp(name);
	if (null_fd < 0 || file_fd < 0 || write(file_fd, data, sizeof(data)) != sizeof(data))
		die("setup");
	unlink(name);
	if (pipe(to_peer) < 0 || pipe(from_peer) < 0)
		die("pipe");
	measure("getpid", op_getpid, 1);
	measure("clock_gettime", op_clock, 1);
	measure("read", op_read, 1);
	measure("read_64k", op_read_64k, 1);
	measure("write", op_write, 1);
	measure("open_close", op_open_close, 1);
	measure("stat", op_stat, 1);
	measure("mmap_munmap", op_mmap, 1);
	measure("page_touch", op_touch, PAGES);
	measure("fork_wait", op_fork, 1);
	measure("spawn_exec_wait", op_exec, 1);
	if (pthread_create(&t, NULL, peer, NULL) != 0)
		die("thread");
	measure("pipe_round_trip", op_pipe, 1);
	close(to_peer[1]);
	pthread_join(t, NULL);
	measure("thread_join", op_thread, 1);
	return 0;
}

/* The nodes of /dev and what reading, writing, mapping and seeking them does: null(4), random(4),
 * full(4). */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/guest/t.h"

/* Out of the compiler's sight. */
static void *volatile bad_address = (void *)1;

static int dev_open(const char *name, int flags)
{
	int fd = open(name, flags);

	CHECK_OK(fd);
	return fd;
}

TEST(numbers_and_modes)
{
	static const struct {
		const char *name;
		unsigned major, minor;
	} rows[] = {
		{ "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
		{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
		{ "/dev/ptmx", 5, 2 },
	};
	struct stat st;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(stat(rows[i].name, &st));
		CHECK(S_ISCHR(st.st_mode));
		CHECK_EQ(st.st_mode & 0777, 0666);
		CHECK_EQ(major(st.st_rdev), rows[i].major);
		CHECK_EQ(minor(st.st_rdev), rows[i].minor);
		CHECK_EQ(st.st_size, 0);
	}
	CHECK_OK(stat("/dev/shm", &st));
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(st.st_mode & 07777, 01777);
	CHECK_OK(stat("/dev/pts", &st));
	CHECK(S_ISDIR(st.st_mode));
}

TEST(null_swallows_and_ends)
{
	int fd = dev_open("/dev/null", O_RDWR);
	char buf[16];

	CHECK_EQ(write(fd, "hello", 5), 5);
	CHECK_EQ(read(fd, buf, sizeof(buf)), 0);
	CHECK_EQ(lseek(fd, 100, SEEK_SET), 0);
	CHECK_EQ(pwrite(fd, "x", 1, 1000), 1);
	CHECK_EQ(pread(fd, buf, 1, 1000), 0);
	/* Not even looked at. */
	CHECK_EQ(write(fd, bad_address, 5), 5);
	CHECK_ERR(ioctl(fd, 0x5401 /* TCGETS */, buf), ENOTTY);
	CHECK(!isatty(fd));
	CHECK_ERR(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV);
}

TEST(null_with_o_trunc_and_append)
{
	int fd = dev_open("/dev/null", O_WRONLY | O_TRUNC | O_APPEND | O_CREAT);

	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_ERR(read(fd, &fd, 1), EBADF);
}

TEST(zero_gives_zeros)
{
	int fd = dev_open("/dev/zero", O_RDWR);
	char buf[100];

	memset(buf, 'x', sizeof(buf));
	CHECK_EQ(read(fd, buf, sizeof(buf)), sizeof(buf));
	for (size_t i = 0; i < sizeof(buf); i++)
		CHECK_EQ(buf[i], 0);
	CHECK_EQ(write(fd, buf, 10), 10);
	CHECK_ERR(read(fd, bad_address, 10), EFAULT);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
}

TEST(zero_maps_as_anonymous_memory)
{
	int fd = dev_open("/dev/zero", O_RDWR);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED);
	CHECK(q != MAP_FAILED);
	CHECK_EQ(p[5000], 0);
	p[5000] = 1;
	q[0] = 1;
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		p[5000] = 2;
		q[0] = 2;
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(p[5000], 1);
	CHECK_EQ(q[0], 2);
}

TEST(full_is_full)
{
	int fd = dev_open("/dev/full", O_RDWR);
	char c = 'x';

	CHECK_ERR(write(fd, &c, 1), ENOSPC);
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(c, 0);
}

TEST(random_differs)
{
	static const char *const names[] = { "/dev/random", "/dev/urandom" };
	char a[64], b[64];

	for (int i = 0; i < 2; i++) {
		int fd = dev_open(names[i], O_RDWR);
		CHECK_EQ(read(fd, a, sizeof(a)), sizeof(a));
		CHECK_EQ(read(fd, b, sizeof(b)), sizeof(b));
		CHECK(memcmp(a, b, sizeof(a)) != 0);
		CHECK_EQ(write(fd, a, sizeof(a)), sizeof(a));
		CHECK_ERR(read(fd, bad_address, 16), EFAULT);
		close(fd);
	}
}

TEST(random_in_one_large_read)
{
	static char big[1 << 20];
	int fd = dev_open("/dev/urandom", O_RDONLY);

	CHECK_EQ(read(fd, big, sizeof(big)), sizeof(big));
	CHECK(memcmp(big, big + sizeof(big) / 2, 4096) != 0);
}

TEST(devices_are_always_ready)
{
	struct pollfd p[2] = {
		{ .fd = dev_open("/dev/null", O_RDWR), .events = POLLIN | POLLOUT },
		{ .fd = dev_open("/dev/zero", O_RDWR), .events = POLLIN | POLLOUT },
	};

	CHECK_EQ(poll(p, 2, 0), 2);
	CHECK_EQ(p[0].revents, POLLIN | POLLOUT);
	CHECK_EQ(p[1].revents, POLLIN | POLLOUT);
}

TEST(links_of_the_standard_streams)
{
	char buf[64] = { 0 };

	CHECK_EQ(readlink("/dev/fd", buf, sizeof(buf)), 13);
	CHECK_STR(buf, "/proc/self/fd");
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_OK(dup2(p[0], 0));
	CHECK_EQ(write(p[1], "ab", 2), 2);
	int fd = dev_open("/dev/stdin", O_RDONLY);
	CHECK_EQ(read(fd, buf, 1), 1);
	CHECK_EQ(buf[0], 'a');
	char name[32];
	snprintf(name, sizeof(name), "/dev/fd/%d", p[0]);
	fd = dev_open(name, O_RDONLY);
	CHECK_EQ(read(fd, buf, 1), 1);
	CHECK_EQ(buf[0], 'b');
}

TEST(no_device_behind_a_number)
{
	char name[] = "/tmp/dev_nodes_XXXXXX", node[64];

	CHECK(mkdtemp(name));
	snprintf(node, sizeof(node), "%s/node", name);
	int r = mknod(node, S_IFCHR | 0666, makedev(0x7e, 77));
	if (r < 0) {
		rmdir(name);
		SKIP("mknod: %s", strerror(errno));
	}
	errno = 0;
	int fd = open(node, O_RDWR), e = errno;
	unlink(node);
	CHECK_OK(mknod(node, S_IFCHR | 0666, makedev(1, 3)));
	int null = open(node, O_RDWR), e2 = errno;
	unlink(node);
	rmdir(name);
	CHECK_EQ(fd, -1);
	/* A file system mounted with nodev refuses all. */
	CHECK(e == ENXIO || e == EACCES);
	CHECK(null >= 0 || e2 == EACCES);
}

T_MAIN

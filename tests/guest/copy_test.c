/* sendfile(2), copy_file_range(2), splice(2), tee(2), vmsplice(2). */
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "tests/guest/t_file.h"

static char big[300000];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7 + i / 251);
}

static int big_file(const char *name)
{
	int fd = open(name, O_CREAT | O_RDWR, 0644);
	CHECK_EQ(write(fd, big, sizeof(big)), sizeof(big));
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void same_as_big(int fd, size_t size)
{
	static char got[sizeof(big)];
	CHECK_EQ(pread(fd, got, sizeof(got), 0), size);
	CHECK_MEM(got, big, size);
}

TEST(sendfile_to_a_file)
{
	off_t off = 10;
	char buf[16];
	fresh_dir();
	fill();
	int in = big_file("in"), out = open("out", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(sendfile(out, in, NULL, sizeof(big) + 5), sizeof(big));
	CHECK_EQ(lseek(in, 0, SEEK_CUR), sizeof(big));
	same_as_big(out, sizeof(big));
	CHECK_EQ(sendfile(out, in, NULL, 10), 0);
	CHECK_EQ(sendfile(out, in, &off, 4), 4);
	CHECK_EQ(off, 14);
	CHECK_EQ(pread(out, buf, 16, sizeof(big)), 4);
	CHECK_MEM(buf, big + 10, 4);
	off = -1;
	CHECK_ERR(sendfile(out, in, &off, 4), EINVAL);
	CHECK_ERR(sendfile(99, in, NULL, 4), EBADF);
	int append = open("out", O_WRONLY | O_APPEND);
	CHECK_EQ(lseek(in, 0, SEEK_SET), 0);
	CHECK_ERR(sendfile(append, in, NULL, 4), EINVAL);
	int w = open("in", O_WRONLY);
	CHECK_ERR(sendfile(out, w, NULL, 4), EBADF);
}

TEST(sendfile_to_a_pipe)
{
	int p[2];
	char buf[8];
	fresh_dir();
	make_file("f", "abcdef");
	CHECK_OK(pipe(p));
	int in = open("f", O_RDONLY);
	CHECK_EQ(sendfile(p[1], in, NULL, 4), 4);
	CHECK_EQ(read(p[0], buf, 8), 4);
	CHECK_MEM(buf, "abcd", 4);
}

TEST(copy_file_range_rules)
{
	off_t a = 5, b = 7;
	int p[2];
	fresh_dir();
	fill();
	int in = big_file("in"), out = open("out", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(copy_file_range(in, NULL, out, NULL, 1000, 0), 1000);
	same_as_big(out, 1000);
	CHECK_EQ(lseek(in, 0, SEEK_CUR), 1000);
	CHECK_EQ(copy_file_range(in, &a, out, &b, 10, 0), 10);
	CHECK(a == 15 && b == 17);
	CHECK_ERR(copy_file_range(in, NULL, out, NULL, 1, 1), EINVAL);
	a = 0;
	b = 5;
	CHECK_ERR(copy_file_range(in, &a, in, &b, 10, 0), EINVAL);
	b = 200000;
	CHECK_EQ(copy_file_range(in, &a, in, &b, 10, 0), 10);
	int ap = open("out", O_WRONLY | O_APPEND), d = open(".", O_RDONLY), r = open("out", O_RDONLY);
	CHECK_ERR(copy_file_range(in, NULL, ap, NULL, 1, 0), EBADF);
	CHECK_ERR(copy_file_range(in, NULL, r, NULL, 1, 0), EBADF);
	CHECK_ERR(copy_file_range(d, NULL, out, NULL, 1, 0), EISDIR);
	CHECK_OK(pipe(p));
	CHECK_ERR(copy_file_range(p[0], NULL, out, NULL, 1, 0), EINVAL);
	a = sizeof(big);
	CHECK_EQ(copy_file_range(in, &a, out, NULL, 10, 0), 0);
}

TEST(splice_file_pipe_file)
{
	int p[2];
	loff_t off = 0, end;
	size_t done = 0;
	fresh_dir();
	fill();
	CHECK_OK(pipe(p));
	int in = big_file("in"), out = open("out", O_CREAT | O_RDWR, 0644);
	while (done < sizeof(big)) {
		ssize_t n = splice(in, &off, p[1], NULL, 65536, 0);
		CHECK(n > 0);
		for (ssize_t left = n; left > 0;) {
			ssize_t w = splice(p[0], NULL, out, NULL, (size_t)left, SPLICE_F_MOVE);
			CHECK(w > 0);
			left -= w;
		}
		done += (size_t)n;
	}
	CHECK_EQ(off, sizeof(big));
	CHECK_EQ(lseek(in, 0, SEEK_CUR), 0);
	same_as_big(out, sizeof(big));
	CHECK_EQ(splice(in, &off, p[1], NULL, 10, 0), 0);
	CHECK_ERR(splice(p[0], NULL, out, NULL, 10, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERR(splice(in, NULL, out, NULL, 10, 0), EINVAL);
	CHECK_ERR(splice(in, NULL, p[1], NULL, 10, 1 << 10), EINVAL);
	end = 0;
	CHECK_ERR(splice(p[0], &end, out, NULL, 10, 0), ESPIPE);
	CHECK_ERR(splice(99, NULL, p[1], NULL, 10, 0), EBADF);
	CHECK_OK(close(p[1]));
	CHECK_EQ(splice(p[0], NULL, out, NULL, 10, 0), 0);
}

TEST(tee_copies)
{
	int p[2], q[2];
	char buf[8];
	CHECK_OK(pipe(p));
	CHECK_OK(pipe(q));
	CHECK_EQ(write(p[1], "abc", 3), 3);
	CHECK_EQ(tee(p[0], q[1], 10, 0), 3);
	CHECK_EQ(read(p[0], buf, 8), 3);
	CHECK_EQ(read(q[0], buf, 8), 3);
	CHECK_MEM(buf, "abc", 3);
	CHECK_ERR(tee(p[0], q[1], 10, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERR(tee(p[0], p[1], 10, 0), EINVAL);
	CHECK_EQ(write(p[1], "xy", 2), 2);
	CHECK_EQ(splice(p[0], NULL, q[1], NULL, 10, 0), 2);
	CHECK_EQ(read(q[0], buf, 8), 2);
}

TEST(vmsplice_both_ways)
{
	int p[2];
	char buf[16] = { 0 };
	struct iovec w[2] = { { "abc", 3 }, { "def", 3 } }, r = { buf, 16 };
	CHECK_OK(pipe(p));
	CHECK_EQ(vmsplice(p[1], w, 2, 0), 6);
	CHECK_EQ(vmsplice(p[0], &r, 1, 0), 6);
	CHECK_STR(buf, "abcdef");
	CHECK_ERR(vmsplice(p[0], &r, 1, SPLICE_F_NONBLOCK), EAGAIN);
	fresh_dir();
	make_file("f", "x");
	CHECK_ERR(vmsplice(open("f", O_RDWR), w, 1, 0), EBADF);
}

TEST(vmsplice_returns_when_the_pipe_is_full)
{
	int p[2];
	struct iovec v = { big, sizeof(big) };
	CHECK_OK(pipe(p));
	alarm(20);
	long n = vmsplice(p[1], &v, 1, 0);
	CHECK(n > 0 && n < (long)sizeof(big));
	CHECK_ERR(vmsplice(p[1], &v, 1, SPLICE_F_NONBLOCK), EAGAIN);
}

T_MAIN

/*
 * read(2), write(2), readv(2), writev(2), pread64(2), pwrite64(2), preadv(2), pwritev(2), preadv2(2), pwritev2(2),
 * lseek(2), ftruncate(2), fallocate(2), fsync(2), fdatasync(2), sync(2), syncfs(2), sync_file_range(2),
 * fadvise64(2), readahead(2).
 */
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/guest/t_file.h"

TEST(read_and_write)
{
	char buf[16] = { 0 };
	int p[2];
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(write(fd, "hello", 5), 5);
	CHECK_EQ(read(fd, buf, 5), 0);
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(read(fd, buf, 3), 3);
	CHECK_STR(buf, "ell");
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	CHECK_EQ(write(fd, NULL, 0), 0);
	CHECK_ERR(write(fd, bad_ptr, 1), EFAULT);
	CHECK_ERR(read(fd, bad_ptr, 1), EFAULT);
	CHECK_ERR(read(fd, bad_ptr - 4104, 8), EFAULT);
	CHECK_ERR(read(99, buf, 1), EBADF);
	CHECK_ERR(write(-1, buf, 1), EBADF);
	int w = open("f", O_WRONLY), r = open("f", O_RDONLY), d = open(".", O_RDONLY);
	CHECK_ERR(read(w, buf, 1), EBADF);
	CHECK_ERR(write(r, buf, 1), EBADF);
	CHECK_ERR(read(d, buf, 1), EISDIR);
	CHECK_ERR(write(d, buf, 1), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(lseek(p[0], 0, SEEK_SET), ESPIPE);
	CHECK_ERR(pread(p[0], buf, 1, 0), ESPIPE);
}

TEST(write_partial_at_a_fault)
{
	char *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[8192];
	fresh_dir();
	CHECK_OK(munmap(m + 4096, 4096));
	memset(m, 'a', 4096);
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(write(fd, m + 4000, 200), 96);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 96);
	CHECK_EQ(pwrite(fd, buf, sizeof(buf), 0), sizeof(buf));
	CHECK_EQ(pread(fd, m + 4000, 200, 0), 96);
}

TEST(sparse_files)
{
	char buf[10];
	struct stat st;
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(lseek(fd, 1000000, SEEK_SET), 1000000);
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 1000001);
	CHECK_EQ(pread(fd, buf, 10, 500000), 10);
	CHECK_MEM(buf, "\0\0\0\0\0\0\0\0\0\0", 10);
	CHECK_EQ(lseek(fd, 1000000, SEEK_DATA), 1000000);
	CHECK_EQ(lseek(fd, 1000000, SEEK_HOLE), 1000001);
	CHECK_ERR(lseek(fd, 1000001, SEEK_DATA), ENXIO);
	CHECK_ERR(lseek(fd, 1000001, SEEK_HOLE), ENXIO);
}

TEST(lseek_errors)
{
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(lseek(fd, 10, SEEK_SET), 10);
	CHECK_ERR(lseek(fd, -1, SEEK_SET), EINVAL);
	CHECK_ERR(lseek(fd, -11, SEEK_CUR), EINVAL);
	CHECK_ERR(lseek(fd, -1, SEEK_END), EINVAL);
	CHECK_ERR(lseek(fd, 0, 5), EINVAL);
	CHECK_ERR(lseek(fd, 0, -1), EINVAL);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
	CHECK_ERR(lseek(99, 0, SEEK_SET), EBADF);
}

TEST(positions_are_shared_by_dup_and_fork)
{
	char c;
	fresh_dir();
	make_file("f", "abcdef");
	int fd = open("f", O_RDONLY), copy = dup(fd), other = open("f", O_RDONLY);
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(read(copy, &c, 1), 1);
	CHECK_EQ(c, 'b');
	CHECK_EQ(read(other, &c, 1), 1);
	CHECK_EQ(c, 'a');
	pid_t pid = fork();
	if (pid == 0)
		t_end(read(fd, &c, 1) == 1 && c == 'c' ? 0 : 1);
	CHECK_CHILD(pid, 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
}

TEST(positional_calls)
{
	char buf[8] = { 0 };
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(pwrite(fd, "abc", 3, 2), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
	CHECK_EQ(pread(fd, buf, 8, 1), 4);
	CHECK_MEM(buf, "\0abc", 4);
	CHECK_ERR(pread(fd, buf, 1, -1), EINVAL);
	CHECK_ERR(pwrite(fd, buf, 1, -1), EINVAL);
	CHECK_ERR(pread(99, buf, 1, 0), EBADF);
	CHECK_EQ(pread(fd, buf, 1, 1000), 0);
	CHECK_ERR(pwrite(fd, buf, 8, LLONG_MAX - 2), EINVAL);
}

TEST(append_mode)
{
	fresh_dir();
	int a = open("f", O_CREAT | O_WRONLY | O_APPEND, 0644), b = open("f", O_WRONLY | O_APPEND);
	CHECK_EQ(write(a, "12", 2), 2);
	CHECK_EQ(write(b, "34", 2), 2);
	CHECK_EQ(lseek(a, 0, SEEK_SET), 0);
	CHECK_EQ(write(a, "56", 2), 2);
	CHECK_EQ(lseek(a, 0, SEEK_CUR), 6);
	file_is("f", "123456");
	CHECK_OK(fcntl(b, F_SETFL, 0));
	CHECK_EQ(lseek(b, 0, SEEK_SET), 0);
	CHECK_EQ(write(b, "x", 1), 1);
	file_is("f", "x23456");
}

TEST(vectors)
{
	char a[4] = { 0 }, b[8] = { 0 };
	struct iovec w[3] = { { "abc", 3 }, { NULL, 0 }, { "defgh", 5 } };
	struct iovec r[2] = { { a, 3 }, { b, 8 } };
	struct iovec bad[1] = { { a, (size_t)-1 } };
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_EQ(writev(fd, w, 3), 8);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(readv(fd, r, 2), 8);
	CHECK_STR(a, "abc");
	CHECK_STR(b, "defgh");
	CHECK_EQ(preadv(fd, r, 1, 4), 3);
	CHECK_STR(a, "efg");
	CHECK_EQ(pwritev(fd, w, 1, 5), 3);
	CHECK_EQ(readv(fd, r, 0), 0);
	CHECK_ERR(readv(fd, bad, 1), EINVAL);
	CHECK_ERR(syscall(SYS_readv, fd, r, 1025), EINVAL);
	CHECK_ERR(syscall(SYS_readv, fd, r, -1), EINVAL);
	CHECK_ERR(syscall(SYS_readv, fd, 8, 1), EFAULT);
	CHECK_ERR(preadv(fd, r, 1, -1), EINVAL);
	CHECK_ERR(readv(99, r, 1), EBADF);
}

TEST(vectors_with_flags)
{
	char a[4] = { 0 };
	struct iovec r = { a, 3 }, w = { "xyz", 3 };
	fresh_dir();
	make_file("f", "abcdef");
	int fd = open("f", O_RDWR);
	CHECK_EQ(preadv2(fd, &r, 1, -1, 0), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
	CHECK_EQ(preadv2(fd, &r, 1, 1, RWF_HIPRI), 3);
	CHECK_STR(a, "bcd");
	CHECK_EQ(pwritev2(fd, &w, 1, 0, RWF_APPEND), 3);
	file_is("f", "abcdefxyz");
	CHECK_EQ(pwritev2(fd, &w, 1, 0, RWF_DSYNC), 3);
	CHECK_ERR(preadv2(fd, &r, 1, 0, 1 << 20), EOPNOTSUPP);
	CHECK_ERR(preadv2(fd, &r, 1, -2, 0), EINVAL);
}

TEST(ftruncate_rules)
{
	struct stat st;
	int p[2];
	fresh_dir();
	make_file("f", "abcdef");
	int fd = open("f", O_RDWR), r = open("f", O_RDONLY);
	CHECK_OK(ftruncate(fd, 2));
	file_is("f", "ab");
	CHECK_OK(ftruncate(fd, 100));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 100);
	CHECK_ERR(ftruncate(fd, -1), EINVAL);
	CHECK_ERR(ftruncate(r, 0), EINVAL);
	CHECK_ERR(ftruncate(99, 0), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(ftruncate(p[1], 0), EINVAL);
}

TEST(fallocate_rules)
{
	struct stat st;
	char buf[4];
	int p[2];
	fresh_dir();
	make_file("f", "abcdef");
	int fd = open("f", O_RDWR), r = open("f", O_RDONLY);
	CHECK_OK(fallocate(fd, 0, 0, 10000));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 10000);
	CHECK_OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 20000));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 10000);
	CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	CHECK_EQ(pread(fd, buf, 4, 0), 4);
	CHECK_MEM(buf, "\0\0\0\0", 4);
	CHECK_ERR(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP);
	CHECK_ERR(fallocate(fd, 0, -1, 10), EINVAL);
	CHECK_ERR(fallocate(fd, 0, 0, 0), EINVAL);
	CHECK_ERR(fallocate(fd, 0x1000, 0, 1), EOPNOTSUPP);
	CHECK_ERR(fallocate(r, 0, 0, 1), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(fallocate(p[1], 0, 0, 1), ESPIPE);
}

TEST(file_size_limit)
{
	struct rlimit lim = { 10, 10 };
	fresh_dir();
	signal(SIGXFSZ, SIG_IGN);
	int fd = open("f", O_CREAT | O_RDWR, 0644);
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &lim));
	CHECK_EQ(write(fd, "0123456789ab", 12), 10);
	CHECK_ERR(write(fd, "x", 1), EFBIG);
	CHECK_ERR(ftruncate(fd, 11), EFBIG);
	CHECK_ERR(fallocate(fd, 0, 0, 11), EFBIG);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGXFSZ, SIG_DFL);
		t_end((int)write(fd, "x", 1));
	}
	CHECK_KILLED(pid, SIGXFSZ);
}

TEST(syncing)
{
	int p[2];
	fresh_dir();
	make_file("f", "x");
	int fd = open("f", O_RDWR);
	CHECK_OK(fsync(fd));
	CHECK_OK(fdatasync(fd));
	CHECK_OK(syncfs(fd));
	CHECK_OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	sync();
	CHECK_OK(pipe(p));
	CHECK_ERR(fsync(p[1]), EINVAL);
	CHECK_ERR(fsync(99), EBADF);
	CHECK_ERR(syncfs(99), EBADF);
	CHECK_ERR(sync_file_range(fd, 0, 0, 1 << 10), EINVAL);
	CHECK_ERR(sync_file_range(fd, -1, 0, 0), EINVAL);
	CHECK_ERR(sync_file_range(p[0], 0, 0, 0), ESPIPE);
}

TEST(advice)
{
	int p[2];
	fresh_dir();
	make_file("f", "x");
	int fd = open("f", O_RDONLY), w = open("f", O_WRONLY);
	CHECK_OK(syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_WILLNEED));
	CHECK_ERR(syscall(SYS_fadvise64, fd, 0, 0, 77), EINVAL);
	CHECK_ERR(syscall(SYS_fadvise64, 99, 0, 0, 0), EBADF);
	CHECK_OK(pipe(p));
	CHECK_ERR(syscall(SYS_fadvise64, p[0], 0, 0, 0), ESPIPE);
	CHECK_OK(readahead(fd, 0, 10));
	CHECK_ERR(readahead(w, 0, 10), EBADF);
	CHECK_ERR(readahead(p[0], 0, 10), EINVAL);
}

TEST(positions_on_a_pipe_are_refused_first)
{
	char c = 0;
	struct iovec v = { &c, 1 };
	int p[2];
	fresh_dir();
	CHECK_OK(pipe(p));
	CHECK_ERR(pwritev2(p[0], &v, 1, 0, 0), ESPIPE);
	CHECK_ERR(preadv2(p[1], &v, 1, 0, 0), ESPIPE);
	CHECK_ERR(pwritev2(p[0], &v, 1, -1, 0), EBADF);
	CHECK_ERR(preadv2(p[1], &v, 1, -1, 0), EBADF);
	make_file("f", "x");
	CHECK_ERR(pwritev(open("f", O_RDONLY), &v, 1, 0), EBADF);
}

TEST(cachestat_counts_pages_with_data)
{
	uint64_t range[2] = { 0, 0 }, st[5];
	const long cachestat = 451; /* Linux 6.5 */
	fresh_dir();
	int p[2], fd = open("f", O_CREAT | O_RDWR, 0600);
	CHECK_OK(ftruncate(fd, 40960));
	CHECK_EQ(pwrite(fd, "x", 1, 20000), 1);
	CHECK_EQ(lseek(fd, 7, SEEK_SET), 7);
	SKIP_IF(syscall(cachestat, fd, range, st, 0) == -1 && errno == ENOSYS, "old kernel");
	CHECK_EQ(st[0], 1);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7);
	range[1] = 16384;
	CHECK_OK(syscall(cachestat, fd, range, st, 0));
	CHECK_EQ(st[0], 0);
	range[1]++;
	CHECK_OK(syscall(cachestat, fd, range, st, 0));
	CHECK_EQ(st[0], 1);
	CHECK_OK(pipe(p));
	CHECK_OK(syscall(cachestat, p[0], range, st, 0));
	CHECK_EQ(st[0], 0);
	CHECK_ERR(syscall(cachestat, fd, range, st, 1), EINVAL);
	CHECK_ERR(syscall(cachestat, fd, (void *)8, st, 1), EFAULT);
	CHECK_ERR(syscall(cachestat, fd, range, (void *)8, 0), EFAULT);
	CHECK_ERR(syscall(cachestat, -1, (void *)8, st, 1), EBADF);
}

T_MAIN

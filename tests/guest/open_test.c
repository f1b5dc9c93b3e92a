/* open(2), openat(2), openat2(2), creat(2), close(2), umask(2). */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"
#include "tests/guest/t_file.h"

TEST(open_creates_with_umask)
{
	struct stat st;
	fresh_dir();
	umask(027);
	int fd = open("f", O_CREAT | O_EXCL | O_RDWR, 0666);
	CHECK_OK(fd);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0640);
	CHECK_EQ(st.st_size, 0);
	CHECK_ERR(open("f", O_CREAT | O_EXCL | O_RDWR, 0666), EEXIST);
	CHECK_EQ(umask(0), 027);
	CHECK_OK(close(fd));
	CHECK_ERR(close(fd), EBADF);
}

TEST(open_errors)
{
	char big[300], path[4200];
	fresh_dir();
	make_file("f", "abc");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(symlink("loop", "loop"));
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(symlink("d", "ld"));
	CHECK_ERR(open("", O_RDONLY), ENOENT);
	CHECK_ERR(open("none", O_RDONLY), ENOENT);
	CHECK_ERR(open("none/x", O_RDONLY), ENOENT);
	CHECK_ERR(open("f/x", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("f/", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("f/.", O_RDONLY), ENOTDIR);
	CHECK_ERR(open("d", O_WRONLY), EISDIR);
	CHECK_ERR(open("d", O_RDWR), EISDIR);
	CHECK_ERR(open("d", O_CREAT | O_RDONLY, 0666), EISDIR);
	CHECK_ERR(open("d/", O_CREAT | O_RDONLY, 0666), EISDIR);
	CHECK_ERR(open("new/", O_CREAT | O_RDWR, 0666), EISDIR);
	CHECK_ERR(open(".", O_CREAT | O_EXCL, 0666), EEXIST);
	CHECK_ERR(open("f", O_DIRECTORY), ENOTDIR);
	CHECK_ERR(open("loop", O_RDONLY), ELOOP);
	CHECK_ERR(open("loop/x", O_RDONLY), ELOOP);
	CHECK_ERR(open("l", O_NOFOLLOW), ELOOP);
	CHECK_ERR(open("ld", O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	CHECK_ERR(open("l", O_CREAT | O_EXCL | O_RDWR, 0666), EEXIST);
	CHECK_ERR(syscall(SYS_open, (char *)8, O_RDONLY), EFAULT);
	memset(big, 'n', sizeof(big));
	big[256] = 0;
	CHECK_ERR(open(big, O_CREAT | O_RDWR, 0666), ENAMETOOLONG);
	big[255] = 0;
	CHECK_OK(open(big, O_CREAT | O_RDWR, 0666));
	for (int i = 0; i < 4100; i++)
		path[i] = i % 2 ? '/' : '.';
	path[4095] = 0;
	CHECK_OK(open(path, O_RDONLY));
	path[4095] = '.';
	path[4096] = 0;
	CHECK_ERR(open(path, O_RDONLY), ENAMETOOLONG);
}

TEST(open_follows_dangling_links_to_create)
{
	fresh_dir();
	CHECK_OK(symlink("target", "l"));
	CHECK_ERR(open("l", O_RDWR), ENOENT);
	CHECK_OK(open("l", O_CREAT | O_RDWR, 0666));
	CHECK_OK(access("target", F_OK));
	CHECK_OK(symlink("no/target", "l2"));
	CHECK_ERR(open("l2", O_CREAT | O_RDWR, 0666), ENOENT);
}

TEST(open_forty_links_and_no_more)
{
	char from[16], to[16];
	fresh_dir();
	make_file("l0", "x");
	for (int i = 1; i <= 41; i++) {
		snprintf(from, sizeof(from), "l%d", i - 1);
		snprintf(to, sizeof(to), "l%d", i);
		CHECK_OK(symlink(from, to));
	}
	CHECK_OK(open("l40", O_RDONLY));
	CHECK_ERR(open("l41", O_RDONLY), ELOOP);
}

TEST(open_truncates)
{
	struct stat st;
	fresh_dir();
	make_file("f", "abc");
	int fd = open("f", O_WRONLY | O_TRUNC);
	CHECK_OK(fd);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 0);
	fd = creat("g", 0644);
	CHECK_EQ(write(fd, "xyz", 3), 3);
	CHECK_ERR(read(fd, from_nowhere, 1), EBADF);
	fd = creat("g", 0644);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_size, 0);
}

TEST(open_path_descriptors)
{
	char buf[8];
	struct stat st;
	fresh_dir();
	make_file("f", "abc");
	CHECK_OK(symlink("f", "l"));
	int fd = open("l", O_PATH | O_NOFOLLOW);
	CHECK_OK(fd);
	CHECK_OK(fstat(fd, &st));
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(readlinkat(fd, "", buf, sizeof(buf)), 1);
	fd = open("f", O_PATH);
	CHECK_ERR(read(fd, buf, 1), EBADF);
	CHECK_ERR(write(fd, buf, 1), EBADF);
	CHECK_ERR(fchmod(fd, 0600), EBADF);
	CHECK_ERR(lseek(fd, 0, SEEK_SET), EBADF);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	CHECK_ERR(fcntl(fd, F_SETFL, 0), EBADF);
	CHECK_OK(dup(fd));
	CHECK_ERR(openat(fd, "x", O_RDONLY), ENOTDIR);
}

TEST(open_tmpfile)
{
	struct stat st;
	char path[64];
	fresh_dir();
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);
	SKIP_IF(fd < 0 && errno == EOPNOTSUPP, "no O_TMPFILE here");
	CHECK_OK(fd);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(write(fd, "hi", 2), 2);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_nlink, 1);
	file_is("named", "hi");
	CHECK_ERR(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL);
	CHECK_ERR(open("named", O_TMPFILE | O_RDWR, 0600), ENOTDIR);
	fd = open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_ERR(linkat(AT_FDCWD, path, AT_FDCWD, "n2", AT_SYMLINK_FOLLOW), ENOENT);
}

TEST(open_lowest_descriptor_and_limit)
{
	struct rlimit lim;
	fresh_dir();
	int a = open(".", O_RDONLY), b = open(".", O_RDONLY);
	CHECK(a >= 0 && b == a + 1);
	CHECK_OK(close(a));
	CHECK_EQ(open(".", O_RDONLY), a);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = (rlim_t)b + 1;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &lim));
	CHECK_ERR(open("new", O_CREAT | O_RDWR, 0600), EMFILE);
	CHECK_ERR(access("new", F_OK), ENOENT);
}

TEST(openat_relative_and_bad_descriptors)
{
	fresh_dir();
	CHECK_OK(mkdir("d", 0755));
	make_file("d/f", "x");
	int d = open("d", O_RDONLY | O_DIRECTORY);
	CHECK_OK(openat(d, "f", O_RDONLY));
	CHECK_OK(openat(d, "../d/f", O_RDONLY));
	int f = openat(d, "f", O_RDONLY);
	CHECK_ERR(openat(f, "x", O_RDONLY), ENOTDIR);
	CHECK_ERR(openat(999, "f", O_RDONLY), EBADF);
	CHECK_OK(openat(999, "/", O_RDONLY));
	CHECK_ERR(openat(999, "", O_RDONLY), ENOENT);
	int p[2];
	CHECK_OK(pipe(p));
	CHECK_ERR(openat(p[0], "f", O_RDONLY), ENOTDIR);
}

TEST(open_permissions)
{
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(chmod("f", 0600));
	CHECK_OK(mkdir("closed", 0700));
	make_file("closed/f", "x");
	CHECK_OK(chmod("closed/f", 0666));
	become_user();
	CHECK_ERR(open("f", O_RDONLY), EACCES);
	CHECK_ERR(open("closed/f", O_RDONLY), EACCES);
	CHECK_ERR(open("new", O_CREAT | O_RDWR, 0666), EACCES);
	CHECK_ERR(open("closed/none", O_RDONLY), EACCES);
}

TEST(open_of_running_programs)
{
	char buf[65536];
	fresh_dir();
	int in = open("/proc/self/exe", O_RDONLY), out = open("copy", O_CREAT | O_WRONLY, 0755);
	ssize_t n;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(out, buf, (size_t)n), n);
	CHECK_ERR(execl("copy", "copy", NULL), ETXTBSY);
	CHECK_OK(close(out));
	int up[2], down[2];
	char c;
	CHECK_OK(pipe(up));
	CHECK_OK(pipe(down));
	if (fork() == 0) {
		/* Runs the test that waits; its standard streams are our pipes. */
		dup2(down[0], 0);
		dup2(up[1], 1);
		setenv("T_WAIT", "1", 1);
		execl("copy", "copy", "-n", "waits_when_told", NULL);
		_exit(1);
	}
	CHECK_EQ(read(up[0], &c, 1), 1);
	CHECK_ERR(open("copy", O_WRONLY), ETXTBSY);
	CHECK_ERR(open("copy", O_RDWR | O_TRUNC), ETXTBSY);
	CHECK_ERR(truncate("copy", 0), ETXTBSY);
	CHECK_OK(open("copy", O_RDONLY));
	CHECK_OK(unlink("copy"));
	CHECK_EQ(write(down[1], "x", 1), 1);
}

TEST(waits_when_told)
{
	char c = '.';
	if (getenv("T_WAIT"))
		_exit(write(1, &c, 1) == 1 && read(0, &c, 1) == 1 ? 0 : 1);
}

static int openat2_(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags, .mode = mode, .resolve = resolve };
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

TEST(openat2_checks_its_arguments)
{
	char big[64] = { 0 };
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(openat2_(AT_FDCWD, "f", O_RDONLY, 0, 0));
	CHECK_ERR(openat2_(AT_FDCWD, "f", O_RDONLY | 1ull << 40, 0, 0), EINVAL);
	CHECK_ERR(openat2_(AT_FDCWD, "f", O_RDONLY, 0600, 0), EINVAL);
	CHECK_ERR(openat2_(AT_FDCWD, "g", O_CREAT | O_RDWR, 0200000, 0), EINVAL);
	CHECK_ERR(openat2_(AT_FDCWD, "f", O_RDONLY, 0, 1 << 20), EINVAL);
	CHECK_ERR(openat2_(AT_FDCWD, "f", O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT), EINVAL);
	CHECK_ERR(openat2_(AT_FDCWD, "f", O_PATH | O_RDWR, 0, 0), EINVAL);
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", big, 8), EINVAL);
	CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", big, sizeof(big)));
	big[60] = 1;
	CHECK_ERR(syscall(SYS_openat2, AT_FDCWD, "f", big, sizeof(big)), E2BIG);
}

TEST(openat2_resolve_flags)
{
	fresh_dir();
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	make_file("d/f", "x");
	CHECK_OK(symlink("/f", "d/abs"));
	CHECK_OK(symlink("../../top", "d/e/up"));
	CHECK_OK(symlink("f", "d/rel"));
	int d = open("d", O_RDONLY);
	CHECK_OK(openat2_(d, "e/../f", O_RDONLY, 0, RESOLVE_BENEATH));
	CHECK_ERR(openat2_(d, "..", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(openat2_(d, "e/../../d/f", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(openat2_(d, "/", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(openat2_(d, "abs", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
	CHECK_ERR(openat2_(d, "e/up", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
	CHECK_OK(openat2_(d, "abs", O_RDONLY, 0, RESOLVE_IN_ROOT));
	CHECK_OK(openat2_(d, "/../../f", O_RDONLY, 0, RESOLVE_IN_ROOT));
	CHECK_ERR(openat2_(d, "e/up", O_RDONLY, 0, RESOLVE_IN_ROOT), ENOENT);
	CHECK_ERR(openat2_(d, "rel", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), ELOOP);
	CHECK_OK(openat2_(d, "rel", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS));
	CHECK_ERR(openat2_(AT_FDCWD, "/proc/self/exe", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS), ELOOP);
	CHECK_ERR(openat2_(AT_FDCWD, "/proc/self", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
}

TEST(created_query)
{
	const int query = 1024 + 4; /* F_CREATED_QUERY, Linux 6.12 */
	char name[40];
	fresh_dir();
	int fd = open("f", O_CREAT | O_RDWR, 0600);
	SKIP_IF(fcntl(fd, query, 0) == -1 && errno == EINVAL, "kernel before 6.12");
	CHECK_EQ(fcntl(fd, query, 0), 1);
	CHECK_EQ(fcntl(dup(fd), query, 0), 1);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK_EQ(fcntl(open(name, O_RDWR), query, 0), 0);
	CHECK_EQ(fcntl(open("f", O_CREAT | O_RDWR, 0600), query, 0), 0);
	CHECK_EQ(fcntl(open("f", O_PATH), query, 0), 0);
}

T_MAIN

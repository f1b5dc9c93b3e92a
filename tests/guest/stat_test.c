/*
 * stat(2), fstat(2), lstat(2), newfstatat(2), statx(2), statfs(2), fstatfs(2), ustat(2), chmod(2), fchmod(2),
 * fchmodat(2), fchmodat2(2), chown(2), fchown(2), lchown(2), fchownat(2), utime(2), utimes(2), utimensat(2),
 * futimesat(2).
 */
#include <linux/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <utime.h>

#include "tests/guest/t_file.h"

TEST(stat_of_kinds)
{
	struct stat a, b;
	int p[2];
	fresh_dir();
	make_file("f", "hello");
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(stat("f", &a));
	CHECK_EQ(a.st_size, 5);
	CHECK_EQ(a.st_nlink, 1);
	CHECK_EQ(a.st_mode, S_IFREG | 0644);
	CHECK_EQ(a.st_uid, geteuid());
	CHECK(a.st_blksize > 0 && a.st_ino != 0);
	CHECK_OK(stat("l", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(a.st_dev, b.st_dev);
	CHECK_OK(lstat("l", &b));
	CHECK(S_ISLNK(b.st_mode) && b.st_size == 1);
	CHECK_ERR(stat("l/", &b), ENOTDIR);
	CHECK_OK(stat("/dev/null", &b));
	CHECK(S_ISCHR(b.st_mode) && b.st_rdev == makedev(1, 3));
	CHECK_OK(pipe(p));
	CHECK_OK(fstat(p[0], &b));
	CHECK(S_ISFIFO(b.st_mode));
	CHECK_ERR(fstat(99, &b), EBADF);
	CHECK_ERR(stat("none", &b), ENOENT);
	CHECK_ERR(syscall(SYS_stat, "f", (void *)8), EFAULT);
	CHECK_ERR(syscall(SYS_stat, (void *)8, &b), EFAULT);
}

TEST(newfstatat_flags)
{
	struct stat a, b;
	int p[2];
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(symlink("f", "l"));
	int fd = open("f", O_RDONLY);
	CHECK_OK(syscall(SYS_newfstatat, fd, "", &a, AT_EMPTY_PATH));
	CHECK_OK(syscall(SYS_newfstatat, AT_FDCWD, "l", &b, 0));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_OK(syscall(SYS_newfstatat, AT_FDCWD, "l", &b, AT_SYMLINK_NOFOLLOW));
	CHECK(S_ISLNK(b.st_mode));
	CHECK_OK(syscall(SYS_newfstatat, AT_FDCWD, "", &b, AT_EMPTY_PATH));
	CHECK(S_ISDIR(b.st_mode));
	CHECK_ERR(syscall(SYS_newfstatat, fd, "", &a, 0), ENOENT);
	CHECK_ERR(syscall(SYS_newfstatat, fd, "", &a, 1), EINVAL);
	CHECK_OK(pipe(p));
	CHECK_OK(syscall(SYS_newfstatat, p[0], "", &a, AT_EMPTY_PATH));
	CHECK(S_ISFIFO(a.st_mode));
}

TEST(statx_fields)
{
	struct statx x;
	struct stat st;
	fresh_dir();
	make_file("f", "hello");
	CHECK_OK(stat("f", &st));
	CHECK_OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
	CHECK_EQ(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
	CHECK_EQ(x.stx_size, 5);
	CHECK_EQ(x.stx_ino, st.st_ino);
	CHECK_EQ(makedev(x.stx_dev_major, x.stx_dev_minor), st.st_dev);
	CHECK_EQ(x.stx_mode, st.st_mode);
	CHECK_EQ(x.stx_mtime.tv_sec, st.st_mtim.tv_sec);
	CHECK_ERR(statx(AT_FDCWD, "f", 0, STATX__RESERVED, &x), EINVAL);
	CHECK_ERR(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0, &x), EINVAL);
	CHECK_ERR(statx(AT_FDCWD, "f", 1, 0, &x), EINVAL);
	CHECK_ERR(statx(AT_FDCWD, "", 0, 0, &x), ENOENT);
	CHECK_OK(statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &x));
	CHECK(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

TEST(statfs_and_ustat)
{
	struct statfs a, b;
	struct stat st;
	char u[64];
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(statfs("f", &a));
	CHECK(a.f_bsize > 0 && a.f_namelen == 255);
	int fd = open("f", O_RDONLY);
	CHECK_OK(fstatfs(fd, &b));
	CHECK_EQ(a.f_type, b.f_type);
	CHECK_ERR(statfs("none", &a), ENOENT);
	CHECK_ERR(fstatfs(99, &a), EBADF);
	CHECK_OK(statfs("/proc", &a));
	CHECK_EQ(a.f_type, 0x9fa0);
	CHECK_OK(stat("f", &st));
	CHECK_OK(syscall(SYS_ustat, (unsigned)st.st_dev, u));
	CHECK_ERR(syscall(SYS_ustat, 0xfffffffe, u), EINVAL);
}

TEST(chmod_rules)
{
	struct stat st;
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(chmod("l", 04711));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_mode, S_IFREG | 04711);
	int fd = open("f", O_RDONLY);
	CHECK_OK(fchmod(fd, 0644));
	CHECK_OK(syscall(SYS_fchmodat, AT_FDCWD, "f", 0600));
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_mode & 07777, 0600);
	long r = syscall(452 /* fchmodat2 */, AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW);
	if (r != -1 || errno != ENOSYS) {
		CHECK_ERR(syscall(452, AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP);
		CHECK_OK(syscall(452, fd, "", 0640, AT_EMPTY_PATH));
		CHECK_ERR(syscall(452, AT_FDCWD, "f", 0600, 1), EINVAL);
	}
	CHECK_ERR(chmod("none", 0600), ENOENT);
	CHECK_ERR(fchmod(99, 0600), EBADF);
	CHECK_OK(chmod("f", 0666));
	become_user();
	CHECK_ERR(chmod("f", 0600), EPERM);
}

TEST(chown_rules)
{
	struct stat st;
	SKIP_IF(geteuid() != 0, "needs root");
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(chmod("f", 06755));
	CHECK_OK(chown("l", 1000, -1));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_uid, 1000);
	CHECK_EQ(st.st_gid, 0);
	CHECK_EQ(st.st_mode & 07777, 0755);
	CHECK_OK(lchown("l", 5, 6));
	CHECK_OK(lstat("l", &st));
	CHECK_EQ(st.st_uid, 5);
	int fd = open("f", O_RDONLY);
	CHECK_OK(fchown(fd, -1, 1000));
	CHECK_OK(fchownat(fd, "", -1, 1000, AT_EMPTY_PATH));
	CHECK_ERR(fchownat(AT_FDCWD, "f", 0, 0, 1), EINVAL);
	become_user();
	CHECK_OK(chown("f", 1000, 1000));
	CHECK_OK(chown("f", -1, 1000));
	CHECK_ERR(chown("f", 0, -1), EPERM);
	CHECK_ERR(chown("f", -1, 0), EPERM);
	CHECK_ERR(chown("l", 0, 0), EPERM);
	/* The group is the user's own: set-gid is kept by chmod. */
	CHECK_OK(chmod("f", 02755));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_mode & 07777, 02755);
}

TEST(utimensat_rules)
{
	struct timespec ts[2] = { { 100, 5 }, { 200, 6 } };
	struct stat st;
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK_OK(stat("f", &st));
	CHECK(st.st_atim.tv_sec == 100 && st.st_atim.tv_nsec == 5);
	CHECK(st.st_mtim.tv_sec == 200 && st.st_mtim.tv_nsec == 6);
	ts[0].tv_nsec = UTIME_OMIT;
	ts[1].tv_nsec = UTIME_NOW;
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_atim.tv_sec, 100);
	CHECK(st.st_mtim.tv_sec > 1000000);
	ts[1].tv_nsec = UTIME_OMIT;
	CHECK_OK(utimensat(AT_FDCWD, "does not exist", ts, 0));
	ts[0].tv_nsec = 1000000000;
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 0), EINVAL);
	ts[0].tv_nsec = 0;
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 1), EINVAL);
	int fd = open("f", O_RDONLY);
	CHECK_OK(syscall(SYS_utimensat, fd, NULL, ts, 0));
	CHECK_ERR(syscall(SYS_utimensat, fd, NULL, ts, AT_SYMLINK_NOFOLLOW), EINVAL);
	CHECK_OK(symlink("f", "l"));
	ts[1].tv_nsec = 0;
	CHECK_OK(utimensat(AT_FDCWD, "l", ts, AT_SYMLINK_NOFOLLOW));
	CHECK_OK(lstat("l", &st));
	CHECK_EQ(st.st_mtim.tv_sec, 200);
	CHECK_OK(chmod("f", 0666));
	become_user();
	CHECK_OK(utimensat(AT_FDCWD, "f", NULL, 0));
	CHECK_ERR(utimensat(AT_FDCWD, "f", ts, 0), EPERM);
}

TEST(older_time_calls)
{
	struct timeval tv[2] = { { 10, 20 }, { 30, 40 } };
	struct utimbuf ub = { 7, 8 };
	struct stat st;
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(syscall(SYS_utimes, "f", tv));
	CHECK_OK(stat("f", &st));
	CHECK(st.st_atim.tv_sec == 10 && st.st_mtim.tv_nsec == 40000);
	CHECK_OK(syscall(SYS_utime, "f", &ub));
	CHECK_OK(stat("f", &st));
	CHECK(st.st_atim.tv_sec == 7 && st.st_mtim.tv_sec == 8);
	CHECK_OK(syscall(SYS_futimesat, AT_FDCWD, "f", tv));
	tv[0].tv_usec = 1000000;
	CHECK_ERR(syscall(SYS_utimes, "f", tv), EINVAL);
	CHECK_ERR(syscall(SYS_utime, "none", NULL), ENOENT);
}

TEST(writes_change_times_and_setid)
{
	struct timespec ts[2] = { { 100, 0 }, { 100, 0 } };
	struct stat st;
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(chmod("f", 04777));
	CHECK_OK(utimensat(AT_FDCWD, "f", ts, 0));
	become_user();
	int fd = open("f", O_WRONLY);
	CHECK_EQ(write(fd, "y", 1), 1);
	CHECK_OK(stat("f", &st));
	CHECK(st.st_mtim.tv_sec > 100 && st.st_ctim.tv_sec > 100);
	CHECK_EQ(st.st_mode & 07777, 0777);
}

T_MAIN

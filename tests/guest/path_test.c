/*
 * mkdir(2), mkdirat(2), rmdir(2), mknod(2), mknodat(2), link(2), linkat(2), symlink(2), symlinkat(2), unlink(2),
 * unlinkat(2), rename(2), renameat(2), renameat2(2), readlink(2), readlinkat(2), chdir(2), fchdir(2), chroot(2),
 * getcwd(2), access(2), faccessat(2), faccessat2(2), truncate(2).
 */
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "tests/guest/t_file.h"

TEST(mkdir_modes_and_errors)
{
	struct stat st;
	fresh_dir();
	make_file("f", "x");
	umask(022);
	CHECK_OK(mkdir("d", 07777));
	CHECK_OK(stat("d", &st));
	CHECK_EQ(st.st_mode, S_IFDIR | 01755);
	CHECK_EQ(st.st_nlink, 2);
	CHECK_OK(mkdir("d/e/", 0700));
	CHECK_OK(stat("d", &st));
	CHECK_EQ(st.st_nlink, 3);
	CHECK_ERR(mkdir("d", 0777), EEXIST);
	CHECK_ERR(mkdir("f", 0777), EEXIST);
	CHECK_ERR(mkdir("/", 0777), EEXIST);
	CHECK_ERR(mkdir(".", 0777), EEXIST);
	CHECK_ERR(mkdir("d/..", 0777), EEXIST);
	CHECK_ERR(mkdir("", 0777), ENOENT);
	CHECK_ERR(mkdir("no/d", 0777), ENOENT);
	CHECK_ERR(mkdir("f/d", 0777), ENOTDIR);
	CHECK_OK(symlink("nowhere", "l"));
	CHECK_ERR(mkdir("l", 0777), EEXIST);
	int d = open("d", O_RDONLY);
	CHECK_OK(mkdirat(d, "g", 0700));
	CHECK_OK(access("d/g", F_OK));
	CHECK_ERR(mkdirat(99, "g", 0700), EBADF);
}

TEST(mkdir_inherits_the_group_of_a_setgid_directory)
{
	struct stat st;
	SKIP_IF(geteuid() != 0, "needs root");
	fresh_dir();
	CHECK_OK(mkdir("d", 0777));
	CHECK_OK(chown("d", 0, 1234));
	CHECK_OK(chmod("d", 02777));
	CHECK_OK(mkdir("d/e", 0755));
	CHECK_OK(stat("d/e", &st));
	CHECK_EQ(st.st_gid, 1234);
	CHECK_EQ(st.st_mode & 07777, 02755);
	make_file("d/f", "");
	CHECK_OK(stat("d/f", &st));
	CHECK_EQ(st.st_gid, 1234);
	CHECK_EQ(st.st_mode & 07777, 0644);
}

TEST(rmdir_errors)
{
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	CHECK_OK(symlink("d", "l"));
	CHECK_ERR(rmdir("d"), ENOTEMPTY);
	CHECK_ERR(rmdir("f"), ENOTDIR);
	CHECK_ERR(rmdir("l"), ENOTDIR);
	CHECK_ERR(rmdir("no"), ENOENT);
	CHECK_ERR(rmdir("d/."), EINVAL);
	CHECK_ERR(rmdir("d/e/.."), ENOTEMPTY);
	CHECK_ERR(rmdir("/"), EBUSY);
	CHECK_OK(rmdir("d/e/"));
	CHECK_ERR(unlinkat(AT_FDCWD, "d", 0), EISDIR);
	CHECK_ERR(unlinkat(AT_FDCWD, "d", 1), EINVAL);
	CHECK_OK(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
	CHECK_ERR(access("d", F_OK), ENOENT);
}

TEST(getcwd_and_a_removed_directory)
{
	char buf[4096], small[2];
	fresh_dir();
	CHECK(getcwd(buf, sizeof(buf)) != NULL);
	CHECK_ERR(syscall(SYS_getcwd, small, 2), ERANGE);
	CHECK_ERR(syscall(SYS_getcwd, (char *)8, 4096), EFAULT);
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(chdir("d"));
	strcat(buf, "/d");
	char now[4096];
	CHECK_EQ(syscall(SYS_getcwd, now, sizeof(now)), strlen(buf) + 1);
	CHECK_STR(now, buf);
	CHECK_OK(rename("../d", "../renamed"));
	CHECK(getcwd(now, sizeof(now)) != NULL);
	CHECK(strstr(now, "/renamed") != NULL);
	CHECK_OK(rmdir("../renamed"));
	CHECK_ERR(syscall(SYS_getcwd, now, sizeof(now)), ENOENT);
	CHECK_ERR(open("f", O_CREAT | O_RDWR, 0600), ENOENT);
	CHECK_ERR(mkdir("x", 0700), ENOENT);
	CHECK_OK(access(".", F_OK));
	CHECK_OK(chdir(".."));
}

TEST(chdir_and_fchdir)
{
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("closed", 0600));
	CHECK_ERR(chdir("f"), ENOTDIR);
	CHECK_ERR(chdir("none"), ENOENT);
	CHECK_ERR(chdir(""), ENOENT);
	int here = open(".", O_PATH), f = open("f", O_RDONLY);
	CHECK_OK(chdir("d"));
	CHECK_ERR(access("f", F_OK), ENOENT);
	CHECK_OK(fchdir(here));
	CHECK_OK(access("f", F_OK));
	CHECK_ERR(fchdir(f), ENOTDIR);
	CHECK_ERR(fchdir(99), EBADF);
	become_user();
	CHECK_ERR(chdir("closed"), EACCES);
}

TEST(chroot_confines)
{
	char buf[64];
	SKIP_IF(geteuid() != 0, "needs root");
	fresh_dir();
	make_file("inside", "x");
	CHECK_OK(mkdir("d", 0755));
	CHECK_ERR(chroot("inside"), ENOTDIR);
	CHECK_OK(chroot("."));
	CHECK_OK(access("/inside", F_OK));
	CHECK_OK(access("/../../inside", F_OK));
	CHECK_OK(chdir("/d/.."));
	CHECK(getcwd(buf, sizeof(buf)) != NULL);
	CHECK_STR(buf, "/");
	become_user();
	CHECK_ERR(chroot("/d"), EPERM);
}

TEST(mknod_kinds)
{
	struct stat st;
	fresh_dir();
	CHECK_OK(mknod("reg", 0600, 0));
	CHECK_OK(stat("reg", &st));
	CHECK_EQ(st.st_mode, S_IFREG | 0600);
	CHECK_OK(mkfifo("fifo", 0644));
	CHECK_OK(stat("fifo", &st));
	CHECK(S_ISFIFO(st.st_mode));
	CHECK_OK(mknodat(AT_FDCWD, "sock", S_IFSOCK | 0600, 0));
	CHECK_ERR(open("sock", O_RDWR), ENXIO);
	CHECK_ERR(mknod("reg", S_IFIFO | 0600, 0), EEXIST);
	CHECK_ERR(mknod("dir", S_IFDIR | 0600, 0), EPERM);
	CHECK_ERR(mknod("bad", S_IFLNK | 0600, 0), EINVAL);
	CHECK_ERR(mknod("slash/", S_IFIFO | 0600, 0), ENOENT);
	CHECK_OK(chmod(".", 0777));
	become_user();
	CHECK_ERR(mknod("device", S_IFBLK | 0600, makedev(8, 0)), EPERM);
}

TEST(link_counts_and_errors)
{
	struct stat a, b;
	fresh_dir();
	make_file("f", "abc");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(symlink("f", "l"));
	CHECK_OK(link("f", "g"));
	CHECK_OK(stat("f", &a));
	CHECK_OK(stat("g", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(a.st_nlink, 2);
	CHECK_ERR(link("f", "g"), EEXIST);
	CHECK_ERR(link("none", "x"), ENOENT);
	CHECK_ERR(link("d", "x"), EPERM);
	CHECK_ERR(link("f", "no/x"), ENOENT);
	CHECK_ERR(link("f", "x/"), ENOENT);
	CHECK_OK(link("l", "hl"));
	CHECK_OK(lstat("hl", &b));
	CHECK(S_ISLNK(b.st_mode));
	CHECK_OK(linkat(AT_FDCWD, "l", AT_FDCWD, "hf", AT_SYMLINK_FOLLOW));
	CHECK_OK(lstat("hf", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_ERR(linkat(AT_FDCWD, "l", AT_FDCWD, "x", 1), EINVAL);
	CHECK_ERR(linkat(AT_FDCWD, "", AT_FDCWD, "x", 0), ENOENT);
	int fd = open("f", O_RDONLY);
	CHECK_OK(linkat(fd, "", AT_FDCWD, "byfd", AT_EMPTY_PATH));
	CHECK_OK(unlink("f"));
	file_is("g", "abc");
}

TEST(symlink_and_readlink)
{
	char buf[5000], target[4200];
	struct stat st;
	fresh_dir();
	CHECK_OK(symlink("some/where", "l"));
	CHECK_EQ(readlink("l", buf, sizeof(buf)), 10);
	CHECK_MEM(buf, "some/where", 10);
	CHECK_EQ(readlink("l", buf, 4), 4);
	CHECK_ERR(readlink("l", buf, 0), EINVAL);
	CHECK_ERR(readlink(".", buf, 10), EINVAL);
	CHECK_ERR(readlink("none", buf, 10), ENOENT);
	CHECK_OK(lstat("l", &st));
	CHECK_EQ(st.st_size, 10);
	CHECK_EQ(st.st_mode, S_IFLNK | 0777);
	CHECK_ERR(symlink("x", "l"), EEXIST);
	CHECK_ERR(symlink("", "m"), ENOENT);
	CHECK_ERR(symlink("x", ""), ENOENT);
	CHECK_ERR(symlink("x", "m/"), ENOENT);
	memset(target, 'a', sizeof(target));
	target[4095] = 0;
	CHECK_OK(symlink(target, "long"));
	CHECK_EQ(readlink("long", buf, sizeof(buf)), 4095);
	target[4095] = 'a';
	target[4096] = 0;
	CHECK_ERR(symlink(target, "longer"), ENAMETOOLONG);
	int d = open(".", O_RDONLY);
	CHECK_OK(symlinkat("t", d, "at"));
	CHECK_EQ(readlinkat(d, "at", buf, sizeof(buf)), 1);
}

TEST(unlink_errors_and_open_files)
{
	char buf[8];
	struct stat st;
	fresh_dir();
	make_file("f", "abc");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(symlink("d", "l"));
	CHECK_ERR(unlink("d"), EISDIR);
	CHECK_ERR(unlink("."), EISDIR);
	CHECK_ERR(unlink("/"), EISDIR);
	CHECK_ERR(unlink("none"), ENOENT);
	CHECK_ERR(unlink("f/"), ENOTDIR);
	CHECK_ERR(unlink("f/x"), ENOTDIR);
	CHECK_ERR(unlink("l/"), ENOTDIR);
	CHECK_OK(unlink("l"));
	int fd = open("f", O_RDWR);
	CHECK_OK(unlink("f"));
	CHECK_EQ(pread(fd, buf, 8, 0), 3);
	CHECK_EQ(pwrite(fd, "xyz!", 4, 0), 4);
	CHECK_OK(fstat(fd, &st));
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(st.st_size, 4);
	make_file("f", "new");
	CHECK_EQ(pread(fd, buf, 8, 0), 4);
}

TEST(rename_plain)
{
	struct stat st;
	fresh_dir();
	make_file("f", "abc");
	make_file("g", "old");
	CHECK_OK(rename("f", "g"));
	file_is("g", "abc");
	CHECK_ERR(access("f", F_OK), ENOENT);
	CHECK_OK(link("g", "h"));
	CHECK_OK(rename("g", "h"));
	CHECK_OK(stat("g", &st));
	CHECK_EQ(st.st_nlink, 2);
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("e", 0755));
	make_file("d/f", "x");
	CHECK_OK(rename("d", "e"));
	file_is("e/f", "x");
	CHECK_OK(rename("e", "e2/"));
	CHECK_OK(rename("e2/f", "top"));
	int d = open("e2", O_RDONLY);
	CHECK_OK(renameat(AT_FDCWD, "top", d, "back"));
	file_is("e2/back", "x");
	CHECK_OK(rename("g", "./g"));
}

TEST(rename_errors)
{
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("d/e", 0755));
	CHECK_OK(mkdir("full", 0755));
	make_file("full/x", "x");
	CHECK_ERR(rename("none", "x"), ENOENT);
	CHECK_ERR(rename("f", "no/x"), ENOENT);
	CHECK_ERR(rename("f", "d"), EISDIR);
	CHECK_ERR(rename("d", "f"), ENOTDIR);
	CHECK_ERR(rename("d", "full"), ENOTEMPTY);
	CHECK_ERR(rename("d", "d/e/x"), EINVAL);
	CHECK_ERR(rename("d/e", "d"), ENOTEMPTY);
	CHECK_ERR(rename("f", "x/"), ENOTDIR);
	CHECK_ERR(rename("f/", "x"), ENOTDIR);
	CHECK_ERR(rename(".", "x"), EBUSY);
	CHECK_ERR(rename("d/..", "x"), EBUSY);
	CHECK_ERR(rename("f", "."), EBUSY);
	CHECK_ERR(rename("f", ""), ENOENT);
}

TEST(renameat2_flags)
{
	struct stat a, b, c;
	fresh_dir();
	make_file("f", "f");
	make_file("g", "g");
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(stat("f", &a));
	CHECK_ERR(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE), EEXIST);
	CHECK_OK(renameat2(AT_FDCWD, "f", AT_FDCWD, "h", RENAME_NOREPLACE));
	CHECK_OK(renameat2(AT_FDCWD, "h", AT_FDCWD, "f", 0));
	CHECK_ERR(renameat2(AT_FDCWD, "f", AT_FDCWD, "none", RENAME_EXCHANGE), ENOENT);
	CHECK_ERR(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
	CHECK_ERR(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", 64), EINVAL);
	CHECK_OK(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE));
	CHECK_OK(stat("d", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_OK(stat("f", &c));
	CHECK(S_ISDIR(c.st_mode));
	CHECK_OK(mkdir("f/x", 0755));
	CHECK_ERR(renameat2(AT_FDCWD, "f", AT_FDCWD, "f/x", RENAME_EXCHANGE), EINVAL);
	CHECK_ERR(renameat2(AT_FDCWD, "f/x", AT_FDCWD, "f", RENAME_EXCHANGE), EINVAL);
}

TEST(sticky_directories)
{
	fresh_dir();
	CHECK_OK(mkdir("t", 0755));
	CHECK_OK(chmod("t", 01777));
	make_file("t/root", "x");
	CHECK_OK(mkdir("t/dir", 0755));
	become_user();
	make_file("t/mine", "x");
	CHECK_ERR(unlink("t/root"), EPERM);
	CHECK_ERR(rmdir("t/dir"), EPERM);
	CHECK_ERR(rename("t/root", "t/x"), EPERM);
	CHECK_ERR(rename("t/mine", "t/root"), EPERM);
	CHECK_OK(rename("t/mine", "t/mine2"));
	CHECK_OK(unlink("t/mine2"));
}

TEST(access_by_real_ids)
{
	fresh_dir();
	make_file("f", "x");
	CHECK_OK(chmod("f", 0600));
	CHECK_OK(mkdir("d", 0700));
	CHECK_OK(access("f", F_OK));
	CHECK_OK(access("f", R_OK | W_OK));
	CHECK_ERR(access("f", X_OK), EACCES);
	CHECK_OK(access("d", X_OK));
	CHECK_ERR(access("f", 8), EINVAL);
	CHECK_ERR(access("none", F_OK), ENOENT);
	CHECK_ERR(access("f/x", F_OK), ENOTDIR);
	CHECK_ERR(syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, 1), EINVAL);
	int fd = open("f", O_RDONLY);
	CHECK_OK(syscall(SYS_faccessat2, fd, "", R_OK, AT_EMPTY_PATH));
	CHECK_OK(syscall(SYS_faccessat, AT_FDCWD, "f", R_OK));
	SKIP_IF(geteuid() != 0, "the rest needs root");
	/* Effective root, real user. */
	CHECK_OK(setresuid(1000, 0, 0));
	CHECK_ERR(access("f", R_OK), EACCES);
	CHECK_OK(syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, AT_EACCESS));
}

TEST(truncate_by_path)
{
	struct stat st;
	char buf[16];
	fresh_dir();
	make_file("f", "abcdef");
	CHECK_OK(truncate("f", 3));
	file_is("f", "abc");
	CHECK_OK(truncate("f", 10));
	CHECK_OK(stat("f", &st));
	CHECK_EQ(st.st_size, 10);
	int fd = open("f", O_RDONLY);
	CHECK_EQ(read(fd, buf, 16), 10);
	CHECK_MEM(buf, "abc\0\0\0\0\0\0\0", 10);
	CHECK_ERR(truncate("f", -1), EINVAL);
	CHECK_ERR(truncate(".", 0), EISDIR);
	CHECK_ERR(truncate("none", 0), ENOENT);
	CHECK_ERR(truncate("f/x", 0), ENOTDIR);
	CHECK_OK(mkfifo("fifo", 0600));
	CHECK_ERR(truncate("fifo", 0), EINVAL);
	become_user();
	CHECK_ERR(truncate("f", 0), EACCES);
}

T_MAIN

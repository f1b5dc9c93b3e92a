/* mount(2), umount2(2), pivot_root(2). On a host they need a mount namespace of the test's own. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "tests/guest/t_file.h"

static void need_mounts(void)
{
	/* A kernel with one mount namespace refuses; there the whole sandbox is ours. */
	if (unshare(CLONE_NEWNS) == 0)
		CHECK_OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	fresh_dir();
	CHECK_OK(mkdir("m", 0755));
	CHECK_OK(mkdir("n", 0755));
	if (mount("tmp", "m", "tmpfs", 0, NULL) != 0)
		SKIP("no right to mount: %s", strerror(errno));
}

TEST(mount_tmpfs_and_umount)
{
	struct stat a, b;
	need_mounts();
	CHECK_OK(stat(".", &a));
	CHECK_OK(stat("m", &b));
	CHECK(a.st_dev != b.st_dev);
	make_file("m/f", "x");
	CHECK_OK(stat("m/..", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_ERR(rmdir("m"), EBUSY);
	CHECK_ERR(rename("m", "x"), EBUSY);
	make_file("g", "x");
	CHECK_ERR(rename("g", "m/g"), EXDEV);
	CHECK_ERR(link("g", "m/g"), EXDEV);
	CHECK_ERR(umount2("n", 0), EINVAL);
	CHECK_ERR(umount2("m", 1 << 10), EINVAL);
	int fd = open("m/f", O_RDONLY);
	CHECK_ERR(umount2("m", 0), EBUSY);
	CHECK_OK(close(fd));
	CHECK_OK(umount2("m", 0));
	CHECK_ERR(access("m/f", F_OK), ENOENT);
}

TEST(mount_flags)
{
	need_mounts();
	make_file("m/f", "x");
	CHECK_OK(mount(NULL, "m", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	CHECK_ERR(open("m/f", O_RDWR), EROFS);
	CHECK_ERR(open("m/new", O_CREAT | O_RDWR, 0600), EROFS);
	CHECK_ERR(mkdir("m/d", 0755), EROFS);
	CHECK_ERR(mkdir("m/f", 0755), EEXIST);
	CHECK_ERR(unlink("m/f"), EROFS);
	CHECK_ERR(chmod("m/f", 0600), EROFS);
	CHECK_ERR(access("m/f", W_OK), EROFS);
	CHECK_ERR(truncate("m/f", 0), EROFS);
	CHECK_OK(open("m/f", O_RDONLY));
	CHECK_OK(mount(NULL, "m", NULL, MS_REMOUNT | MS_NOEXEC, NULL));
	CHECK_OK(chmod("m/f", 0755));
	CHECK_ERR(access("m/f", X_OK), EACCES);
	CHECK_OK(umount2("m", MNT_DETACH));
}

TEST(mount_bind_and_detach)
{
	need_mounts();
	make_file("m/f", "x");
	CHECK_OK(mount("m", "n", NULL, MS_BIND, NULL));
	file_is("n/f", "x");
	make_file("n/g", "y");
	file_is("m/g", "y");
	CHECK_ERR(rename("m/f", "n/h"), EXDEV);
	make_file("target", "");
	CHECK_OK(mount("m/f", "target", NULL, MS_BIND, NULL));
	file_is("target", "x");
	CHECK_ERR(mount("m", "target", NULL, MS_BIND, NULL), ENOTDIR);
	CHECK_OK(umount2("target", 0));
	int fd = open("n/f", O_RDONLY);
	CHECK_ERR(umount2("n", 0), EBUSY);
	CHECK_OK(umount2("n", MNT_DETACH));
	CHECK_ERR(access("n/f", F_OK), ENOENT);
	char c;
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_OK(umount2("m", 0));
}

TEST(mount_errors)
{
	need_mounts();
	CHECK_ERR(mount("x", "m", "nosuchfs", 0, NULL), ENODEV);
	CHECK_ERR(mount("x", "none", "tmpfs", 0, NULL), ENOENT);
	CHECK_ERR(mount("none", "m", NULL, MS_BIND, NULL), ENOENT);
	CHECK_ERR(mount("x", "m", "tmpfs", 0, "nonsense=1"), EINVAL);
	CHECK_ERR(umount2("none", 0), ENOENT);
	CHECK_OK(umount2("m", 0));
	become_user();
	CHECK_ERR(mount("x", "n", "tmpfs", 0, NULL), EPERM);
	CHECK_ERR(umount2("n", 0), EPERM);
	CHECK_ERR(syscall(SYS_pivot_root, "n", "n"), EPERM);
}

TEST(mount_table)
{
	char line[4096], cwd[2048], want[4096];
	bool found = false;
	need_mounts();
	CHECK(getcwd(cwd, sizeof(cwd)) != NULL);
	snprintf(want, sizeof(want), "tmp %s/m tmpfs rw", cwd);
	FILE *f = fopen("/proc/self/mounts", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		found |= strncmp(line, want, strlen(want)) == 0;
	CHECK(found);
	CHECK_OK(umount2("m", 0));
}

T_MAIN

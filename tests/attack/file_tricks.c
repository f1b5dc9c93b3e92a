/*
 * More ways to a file that one may not have: descriptors opened again, nameless links, mounts over
 * and beside, set-user-ID and device files, names in other cases. See file_escape.c for the plain
 * ones.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "tests/guest/t.h"

#define USER 1235

static bool in_sandbox(void)
{
	return access("/etc/shadow", F_OK) != 0;
}

static bool readable(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	bool got = fd >= 0 && read(fd, &c, 1) == 1;

	close(fd);
	return got;
}

static void become_user(void)
{
	CHECK_OK(setresgid(USER, USER, USER));
	CHECK_OK(setresuid(USER, USER, USER));
}

/* A descriptor for reading stays one, however it is opened again. */
TEST(reopening_gives_no_rights)
{
	char path[64];

	SKIP_IF(geteuid() != 0, "needs to become a user");
	int fd = open("/tmp/reopen", O_CREAT | O_RDWR | O_TRUNC, 0644);
	CHECK_OK(fd);
	CHECK_EQ(write(fd, "keep", 4), 4);
	close(fd);
	pid_t pid = fork();
	if (pid == 0) {
		become_user();
		fd = open("/tmp/reopen", O_RDONLY);
		CHECK_OK(fd);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		CHECK_ERR(open(path, O_RDWR), EACCES);
		CHECK_ERR(open(path, O_WRONLY | O_TRUNC), EACCES);
		CHECK_ERR(truncate(path, 0), EACCES);
		CHECK_ERR(ftruncate(fd, 0), EINVAL);
		CHECK_ERR(write(fd, "x", 1), EBADF);
		CHECK(fallocate(fd, 0, 0, 10) < 0);
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
		snprintf(path, sizeof(path), "/dev/fd/%d", fd);
		CHECK_ERR(open(path, O_RDWR), EACCES);
		int o_path = open("/tmp/reopen", O_PATH);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", o_path);
		CHECK_ERR(open(path, O_RDWR), EACCES);
		CHECK_ERR(write(o_path, "x", 1), EBADF);
		CHECK_ERR(fchmod(o_path, 0666), EBADF);
		CHECK_ERR(chmod(path, 0666), EPERM);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	struct stat st;
	CHECK_OK(stat("/tmp/reopen", &st));
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(st.st_mode & 0777, 0644);
	unlink("/tmp/reopen");
}

/* A name for a descriptor that one may only hold: linkat with AT_EMPTY_PATH wants a capability, and
 * through /proc the protection of hard links holds. */
TEST(links_to_what_is_held)
{
	char path[64];

	SKIP_IF(geteuid() != 0, "needs to become a user");
	mkdir("/tmp/links", 01777);
	chmod("/tmp/links", 01777);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open("/etc/passwd", O_PATH);
		CHECK_OK(fd);
		become_user();
		CHECK(linkat(fd, "", AT_FDCWD, "/tmp/links/a", AT_EMPTY_PATH) < 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/links/b", AT_SYMLINK_FOLLOW) < 0);
		CHECK(link("/etc/passwd", "/tmp/links/c") < 0);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(rmdir("/tmp/links"));
}

TEST(a_directory_that_may_not_be_searched)
{
	SKIP_IF(geteuid() != 0, "needs to become a user");
	mkdir("/tmp/closed", 0700);
	close(open("/tmp/closed/inside", O_CREAT | O_WRONLY, 0666));
	pid_t pid = fork();
	if (pid == 0) {
		int held = open("/tmp/closed", O_PATH | O_DIRECTORY);
		become_user();
		CHECK_ERR(openat(held, "inside", O_RDONLY), EACCES);
		CHECK_ERR(open("/tmp/closed/inside", O_RDONLY), EACCES);
		CHECK_ERR(open("/proc/self/root/tmp/closed/inside", O_RDONLY), EACCES);
		CHECK_ERR(fchdir(held), EACCES);
		CHECK_ERR(chdir("/tmp/closed"), EACCES);
		CHECK_ERR(renameat(held, "inside", AT_FDCWD, "/tmp/out"), EACCES);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	unlink("/tmp/closed/inside");
	rmdir("/tmp/closed");
}

TEST(hidden_below_mounts)
{
	static const char *const sources[] = { "/etc", "/", "/proc/self/root", "/usr/../etc" };
	char path[128];

	SKIP_IF(!in_sandbox(), "/etc/shadow is there");
	mkdir("/tmp/mnt", 0755);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		for (int rec = 0; rec < 2; rec++) {
			if (mount(sources[i], "/tmp/mnt", NULL, MS_BIND | (rec ? MS_REC : 0u),
				  NULL) != 0)
				continue;
			CHECK_ERR(open("/tmp/mnt/shadow", O_RDONLY), ENOENT);
			CHECK_ERR(open("/tmp/mnt/etc/shadow", O_RDONLY), ENOENT);
			CHECK_OK(umount2("/tmp/mnt", MNT_DETACH));
		}
	if (mount("o", "/tmp/mnt", "overlay", 0, "lowerdir=/etc,upperdir=/tmp/u,workdir=/tmp/w") ==
	    0) {
		CHECK_ERR(open("/tmp/mnt/shadow", O_RDONLY), ENOENT);
		umount2("/tmp/mnt", MNT_DETACH);
	}
	/* A file as a mount point, and a mount on a name that is not there. */
	snprintf(path, sizeof(path), "%s", "/etc/shadow");
	CHECK(mount("/etc/passwd", path, NULL, MS_BIND, NULL) < 0);
	CHECK(mount(path, "/tmp/mnt", NULL, MS_BIND, NULL) < 0);
	rmdir("/tmp/mnt");
}

/* What lies below the kernel's own trees on the host does not come to light without them. */
TEST(below_unmounted_trees)
{
	static const char *const trees[] = { "/proc", "/sys", "/dev" };
	DIR *d;

	SKIP_IF(!in_sandbox(), "not on the host");
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (unshare(CLONE_NEWNS) != 0 && geteuid() != 0)
				_exit(0);
			while (umount2(trees[i], MNT_DETACH) == 0)
				;
			d = opendir(trees[i]);
			for (struct dirent *e; d && (e = readdir(d)) != NULL;)
				if (strcmp(e->d_name, "sda") == 0 ||
				    strcmp(e->d_name, "kcore") == 0 ||
				    strcmp(e->d_name, "mem") == 0 ||
				    strcmp(e->d_name, "debug") == 0)
					_exit(1);
			_exit(readable("/proc/kcore") || readable("/dev/mem") ? 1 : 0);
		}
		CHECK_CHILD(pid, 0);
		/* The tree of mounts is common to all inside; put it back for the next tests. */
		if (i == 0)
			mount("proc", "/proc", "proc", 0, NULL);
	}
}

TEST(pivot_root_and_moves)
{
	SKIP_IF(!in_sandbox(), "not on the host");
	mkdir("/tmp/new", 0755);
	mkdir("/tmp/new/old", 0755);
	CHECK(syscall(SYS_pivot_root, ".", ".") < 0 || readable("/etc/passwd"));
	pid_t pid = fork();
	if (pid == 0) {
		if (mount("/tmp/new", "/tmp/new", NULL, MS_BIND, NULL) == 0 &&
		    syscall(SYS_pivot_root, "/tmp/new", "/tmp/new/old") == 0) {
			if (readable("/old/etc/shadow") || readable("/old/../etc/shadow"))
				_exit(1);
			(void)!chdir("/old");
			for (int i = 0; i < 40; i++)
				(void)!chdir("..");
			if (readable("etc/shadow"))
				_exit(1);
			(void)!syscall(SYS_pivot_root, "/old", "/old/tmp/new");
		}
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	umount2("/tmp/new", MNT_DETACH);
	rmdir("/tmp/new/old");
	rmdir("/tmp/new");
}

/* A set-user-ID program of a user's gives nobody's rights but that user's. */
TEST(set_user_id_of_others)
{
	struct stat st;

	SKIP_IF(geteuid() != 0, "needs to become a user");
	mkdir("/tmp/suid", 01777);
	CHECK_OK(chmod("/tmp/suid", 01777));
	pid_t pid = fork();
	if (pid == 0) {
		become_user();
		int fd = open("/tmp/suid/own", O_CREAT | O_RDWR | O_TRUNC, 0755);
		CHECK_OK(fd);
		CHECK_OK(fchmod(fd, 04755));
		CHECK_ERR(fchown(fd, 0, 0), EPERM);
		/* Writing takes the bit away. */
		CHECK_EQ(write(fd, "x", 1), 1);
		CHECK_OK(fstat(fd, &st));
		CHECK_EQ(st.st_mode & 04000, 0);
		CHECK_ERR(mknod("/tmp/suid/node", S_IFCHR | 0666, makedev(1, 5)), EPERM);
		CHECK_ERR(mknod("/tmp/suid/node", S_IFBLK | 0666, makedev(8, 0)), EPERM);
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	CHECK_OK(stat("/tmp/suid/own", &st));
	CHECK_EQ(st.st_uid, USER);
	unlink("/tmp/suid/own");
	rmdir("/tmp/suid");
}

TEST(other_spellings_of_hidden_names)
{
	static const char *const names[] = { "/etc/SHADOW",        "/etc/Shadow",   "/etc/shadow/",
					     "/etc/shadow/.",      "/etc/shadow//", "/etc/shadow-",
					     "/etc/gshadow",       "/etc/./shadow", "/etc//shadow",
					     "/etc/shad\xc0\xafow" };

	SKIP_IF(!in_sandbox(), "not on the host");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(!readable(names[i]));
	/* All calls that take a name agree that it is not there. */
	char buf[256];
	struct stat st;
	CHECK_ERR(lstat("/etc/shadow", &st), ENOENT);
	CHECK_ERR(readlink("/etc/shadow", buf, sizeof(buf)), ENOENT);
	CHECK_ERR(syscall(SYS_getxattr, "/etc/shadow", "user.x", buf, sizeof(buf)), ENOENT);
	CHECK_ERR(truncate("/etc/shadow", 0), ENOENT);
	CHECK_ERR(chmod("/etc/shadow", 0644), ENOENT);
	CHECK_ERR(unlink("/etc/shadow"), ENOENT);
	CHECK_ERR(syscall(SYS_openat, AT_FDCWD, "/etc/shadow", O_PATH), ENOENT);
	CHECK_ERR(syscall(SYS_inotify_add_watch, syscall(SYS_inotify_init1, 0), "/etc/shadow", 2),
		  ENOENT);
	CHECK(syscall(SYS_name_to_handle_at, AT_FDCWD, "/etc/shadow", buf, buf + 128, 0) < 0);
	CHECK_ERR(execl("/etc/shadow", "x", NULL), ENOENT);
}

T_MAIN

/*
 * Ways out of the file tree, tried from inside. /etc/shadow is hidden by default: no route may find
 * it. Host devices, host processes and host descriptors must not be reachable, and nothing that is
 * written may reach the host (the read-only lower tree).
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "tests/guest/t.h"

#define HIDDEN "/etc/shadow"

static bool readable(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool got = read(fd, &c, 1) == 1;
	close(fd);
	return got;
}

TEST(hidden_by_every_name)
{
	static const char *const ways[] = {
		HIDDEN,
		"/../etc/shadow",
		"/etc/../etc/./shadow",
		"/proc/self/root/etc/shadow",
		"/proc/1/root/etc/shadow",
		"/proc/self/cwd/../../../../../../etc/shadow",
		"/proc/thread-self/root/../etc/shadow",
		"/bin/../etc/shadow",
		"//etc//shadow",
		"/usr/../proc/self/root/etc/shadow",
	};
	CHECK(readable("/etc/passwd"));
	CHECK_OK(chdir("/"));
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		CHECK_ERR(open(ways[i], O_RDONLY), ENOENT);
	CHECK_ERR(access(HIDDEN, F_OK), ENOENT);
	struct stat st;
	CHECK_ERR(lstat(HIDDEN, &st), ENOENT);
	int dir = open("/etc", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	CHECK_ERR(openat(dir, "shadow", O_RDONLY), ENOENT);
	DIR *d = fdopendir(dir);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		CHECK(strcmp(e->d_name, "shadow") != 0);
	closedir(d);
}

TEST(hidden_through_links)
{
	CHECK(symlink(HIDDEN, "/tmp/l") == 0 || errno == EEXIST);
	CHECK_ERR(open("/tmp/l", O_RDONLY), ENOENT);
	CHECK_ERR(link(HIDDEN, "/tmp/h"), ENOENT);
	CHECK_ERR(rename(HIDDEN, "/tmp/r"), ENOENT);
	CHECK(symlink("/proc/self/root/etc", "/tmp/e") == 0 || errno == EEXIST);
	CHECK_ERR(open("/tmp/e/shadow", O_RDONLY), ENOENT);
	unlink("/tmp/l");
	unlink("/tmp/e");
}

/* Moving what leads to it must not uncover it. */
TEST(hidden_after_moving_the_directory)
{
	if (rename("/etc", "/etc-moved") != 0) {
		CHECK(errno == EACCES || errno == EPERM);
		SKIP("not root: /etc cannot be moved");
	}
	int fd = open("/etc-moved/shadow", O_RDONLY);
	CHECK(fd < 0 && errno == ENOENT);
	CHECK(readable("/etc-moved/passwd"));
	/* What is made in its place is the guest's own. */
	fd = open("/etc-moved/shadow", O_CREAT | O_EXCL | O_RDWR, 0600);
	CHECK(fd >= 0);
	struct stat st;
	CHECK_OK(fstat(fd, &st));
	CHECK(st.st_size == 0);
	close(fd);
	CHECK_OK(unlink("/etc-moved/shadow"));
	CHECK_ERR(open("/etc-moved/shadow", O_RDONLY), ENOENT);
	CHECK_OK(rename("/etc-moved", "/etc"));
}

TEST(mount_tricks)
{
	mkdir("/tmp/m", 0755);
	if (mount("/etc", "/tmp/m", NULL, MS_BIND, NULL) == 0) {
		CHECK_ERR(open("/tmp/m/shadow", O_RDONLY), ENOENT);
		CHECK_OK(umount2("/tmp/m", MNT_DETACH));
	}
	/* Block devices and kernel file systems of the host do not become mounts. */
	CHECK(mount("/dev/sda", "/tmp/m", "ext4", 0, NULL) < 0);
	CHECK(mount("/dev/vda", "/tmp/m", "ext4", 0, NULL) < 0);
	if (mount("none", "/tmp/m", "proc", 0, NULL) == 0) {
		CHECK(!readable("/tmp/m/kcore"));
		CHECK(!readable("/tmp/m/1/root/etc/shadow"));
		CHECK_OK(umount2("/tmp/m", MNT_DETACH));
	}
	rmdir("/tmp/m");
}

TEST(chroot_and_back)
{
	mkdir("/tmp/jail", 0755);
	int outside = open("/", O_RDONLY | O_DIRECTORY);
	CHECK(outside >= 0);
	if (chroot("/tmp/jail") != 0) {
		CHECK(errno == EPERM);
		SKIP("not root: no chroot");
	}
	/* The classic escape leads to the sandbox's root at most. */
	CHECK_OK(fchdir(outside));
	for (int i = 0; i < 64; i++)
		CHECK_OK(chdir(".."));
	CHECK_OK(chroot("."));
	CHECK(readable("/etc/passwd"));
	CHECK_ERR(open(HIDDEN, O_RDONLY), ENOENT);
	rmdir("/tmp/jail");
}

TEST(magic_links_lead_to_own_files_only)
{
	char path[64], target[4096];
	int fd = open("/etc/passwd", O_RDONLY);
	CHECK(fd >= 0);
	for (int i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		/* Descriptors of the sandbox itself (channels, memory files, stubs) are not the
		 * guest's. */
		CHECK(strstr(target, "pinfold") == NULL || strncmp(target, "/", 1) == 0);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_ERR(open(path, O_RDWR | O_DIRECTORY), ENOTDIR);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/../shadow", fd);
	CHECK(open(path, O_RDONLY) < 0);
	close(fd);
}

TEST(no_host_processes)
{
	DIR *d = opendir("/proc");
	int count = 0;
	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9') {
			char path[300];
			snprintf(path, sizeof(path), "/proc/%s/root/etc/shadow", e->d_name);
			CHECK(!readable(path));
			count++;
		}
	closedir(d);
	CHECK(count >= 1 && count < 20);
}

TEST(no_host_devices)
{
	static const struct {
		mode_t type;
		unsigned major, minor;
	} nodes[] = { { S_IFCHR, 1, 1 },    { S_IFCHR, 1, 2 }, { S_IFCHR, 1, 4 },
		      { S_IFCHR, 10, 232 }, { S_IFBLK, 8, 0 }, { S_IFBLK, 254, 0 },
		      { S_IFBLK, 7, 0 },    { S_IFCHR, 4, 0 } };
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		unlink("/tmp/node");
		if (mknod("/tmp/node", nodes[i].type | 0600,
			  makedev(nodes[i].major, nodes[i].minor)) == 0)
			CHECK(open("/tmp/node", O_RDWR | O_NONBLOCK) < 0);
		CHECK(open("/tmp/node", O_RDONLY | O_NONBLOCK) < 0);
	}
	unlink("/tmp/node");
	CHECK(!readable("/dev/mem"));
	CHECK(!readable("/dev/kmsg"));
	CHECK(!readable("/dev/sda"));
	CHECK(!readable("/sys/kernel/debug/sched/debug"));
}

TEST(handles_by_number)
{
	struct {
		struct file_handle h;
		unsigned char bytes[128];
	} fh = { .h.handle_bytes = 128 };
	int id;
	/* A made-up handle of the host's root directory (ext4, xfs: inode 2 or 128). */
	fh.h.handle_bytes = 8;
	fh.h.handle_type = 1;
	fh.bytes[0] = 2;
	CHECK(open_by_handle_at(AT_FDCWD, &fh.h, O_RDONLY) < 0);
	fh.h.handle_bytes = 128;
	if (name_to_handle_at(AT_FDCWD, "/etc/passwd", &fh.h, &id, 0) == 0)
		CHECK(open_by_handle_at(AT_FDCWD, &fh.h, O_RDWR) < 0 || access(HIDDEN, F_OK) < 0);
}

/* A thread swaps a directory and a link to what is hidden, while names are resolved through them.
 */
static volatile int stop_swapping;

static void *swap(void *arg)
{
	(void)arg;
	while (!stop_swapping)
		syscall(SYS_renameat2, AT_FDCWD, "/tmp/race/d", AT_FDCWD, "/tmp/race/l",
			2 /* EXCHANGE */);
	return NULL;
}

TEST(rename_race)
{
	pthread_t t;
	system("rm -rf /tmp/race");
	CHECK_OK(mkdir("/tmp/race", 0755));
	CHECK_OK(mkdir("/tmp/race/d", 0755));
	CHECK_OK(symlink("/../../../etc", "/tmp/race/l"));
	CHECK_OK(close(open("/tmp/race/d/shadow", O_CREAT | O_WRONLY, 0644)));
	CHECK(pthread_create(&t, NULL, swap, NULL) == 0);
	for (int i = 0; i < 2000; i++) {
		CHECK(!readable("/tmp/race/d/shadow"));
		CHECK(!readable("/tmp/race/d/../../../../etc/shadow"));
	}
	stop_swapping = 1;
	pthread_join(t, NULL);
}

T_MAIN

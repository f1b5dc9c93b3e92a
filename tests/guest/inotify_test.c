/* inotify_init(2), inotify_init1(2), inotify_add_watch(2), inotify_rm_watch(2). */
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "tests/guest/t_file.h"

static char events[4096];
static ssize_t size, at;

static void expect(int wd, uint32_t mask, const char *name)
{
	struct inotify_event e;
	CHECK(at + (ssize_t)sizeof(e) <= size);
	memcpy(&e, events + at, sizeof(e));
	CHECK_EQ(e.mask, mask);
	CHECK_EQ(e.wd, wd);
	if (name)
		CHECK_STR(events + at + sizeof(e), name);
	else
		CHECK_EQ(e.len, 0);
	at += (ssize_t)sizeof(e) + e.len;
}

static void load(int fd)
{
	size = read(fd, events, sizeof(events));
	at = 0;
}

TEST(inotify_events_of_a_directory)
{
	fresh_dir();
	CHECK_OK(mkdir("d", 0755));
	int q = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	CHECK_OK(q);
	CHECK_EQ(fcntl(q, F_GETFD), FD_CLOEXEC);
	int wd = inotify_add_watch(q, "d", IN_ALL_EVENTS);
	CHECK_EQ(wd, 1);
	make_file("d/f", "abc");
	file_is("d/f", "abc");
	CHECK_OK(chmod("d/f", 0600));
	CHECK_OK(rename("d/f", "d/g"));
	CHECK_OK(mkdir("d/sub", 0755));
	CHECK_OK(rmdir("d/sub"));
	CHECK_OK(link("d/g", "d/h"));
	CHECK_OK(unlink("d/h"));
	CHECK_OK(truncate("d/g", 0));
	load(q);
	expect(wd, IN_CREATE, "f");
	expect(wd, IN_OPEN, "f");
	expect(wd, IN_MODIFY, "f");
	expect(wd, IN_CLOSE_WRITE, "f");
	expect(wd, IN_OPEN, "f");
	expect(wd, IN_ACCESS, "f");
	expect(wd, IN_CLOSE_NOWRITE, "f");
	expect(wd, IN_ATTRIB, "f");
	expect(wd, IN_MOVED_FROM, "f");
	expect(wd, IN_MOVED_TO, "g");
	expect(wd, IN_CREATE | IN_ISDIR, "sub");
	expect(wd, IN_DELETE | IN_ISDIR, "sub");
	expect(wd, IN_CREATE, "h");
	expect(wd, IN_DELETE, "h");
	expect(wd, IN_MODIFY, "g");
	CHECK_EQ(at, size);
	CHECK_OK(unlink("d/g"));
	CHECK_OK(rmdir("d"));
	load(q);
	expect(wd, IN_DELETE, "g");
	expect(wd, IN_DELETE_SELF, NULL);
	expect(wd, IN_IGNORED, NULL);
	CHECK_EQ(at, size);
}

TEST(inotify_events_of_a_file)
{
	fresh_dir();
	make_file("f", "x");
	int q = inotify_init();
	int wd = inotify_add_watch(q, "f", IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
	CHECK_OK(rename("f", "g"));
	CHECK_OK(unlink("g"));
	load(q);
	expect(wd, IN_MOVE_SELF, NULL);
	expect(wd, IN_ATTRIB, NULL);
	expect(wd, IN_DELETE_SELF, NULL);
	expect(wd, IN_IGNORED, NULL);
	CHECK_EQ(at, size);
}

TEST(inotify_move_cookies)
{
	struct inotify_event a, b;
	fresh_dir();
	CHECK_OK(mkdir("d", 0755));
	CHECK_OK(mkdir("e", 0755));
	make_file("d/f", "x");
	int q = inotify_init();
	int d = inotify_add_watch(q, "d", IN_MOVE), e = inotify_add_watch(q, "e", IN_MOVE);
	CHECK_OK(rename("d/f", "e/g"));
	load(q);
	memcpy(&a, events, sizeof(a));
	memcpy(&b, events + sizeof(a) + a.len, sizeof(b));
	CHECK(a.cookie != 0 && a.cookie == b.cookie);
	expect(d, IN_MOVED_FROM, "f");
	expect(e, IN_MOVED_TO, "g");
}

TEST(inotify_reading)
{
	char small[8];
	int n;
	struct pollfd pf = { .events = POLLIN };
	fresh_dir();
	int q = inotify_init1(IN_NONBLOCK);
	int wd = inotify_add_watch(q, ".", IN_CREATE);
	pf.fd = q;
	CHECK_ERR(read(q, events, sizeof(events)), EAGAIN);
	CHECK_EQ(poll(&pf, 1, 0), 0);
	make_file("f", "");
	CHECK_EQ(poll(&pf, 1, 0), 1);
	CHECK_OK(ioctl(q, FIONREAD, &n));
	CHECK_EQ(n, 32);
	CHECK_ERR(read(q, small, sizeof(small)), EINVAL);
	make_file("g", "");
	CHECK_EQ(read(q, events, 40), 32);
	load(q);
	expect(wd, IN_CREATE, "g");
	/* Identical neighbours are one event. */
	CHECK_EQ(inotify_add_watch(q, ".", IN_ATTRIB), wd);
	CHECK_OK(chmod("f", 0600));
	CHECK_OK(chmod("f", 0600));
	load(q);
	expect(wd, IN_ATTRIB, "f");
	CHECK_EQ(at, size);
}

TEST(inotify_watch_flags)
{
	fresh_dir();
	make_file("f", "");
	CHECK_OK(symlink("f", "l"));
	int q = inotify_init1(IN_NONBLOCK);
	CHECK_ERR(inotify_add_watch(q, "f", IN_ONLYDIR | IN_CREATE), ENOTDIR);
	int wd = inotify_add_watch(q, "f", IN_OPEN | IN_ONESHOT);
	CHECK_OK(close(open("f", O_RDONLY)));
	CHECK_OK(close(open("f", O_RDONLY)));
	load(q);
	expect(wd, IN_OPEN, NULL);
	expect(wd, IN_IGNORED, NULL);
	CHECK_EQ(at, size);
	wd = inotify_add_watch(q, "f", IN_OPEN);
	CHECK_ERR(inotify_add_watch(q, "f", IN_OPEN | IN_MASK_CREATE), EEXIST);
	CHECK_EQ(inotify_add_watch(q, "f", IN_ATTRIB | IN_MASK_ADD), wd);
	CHECK_EQ(inotify_add_watch(q, "l", IN_OPEN), wd);
	CHECK(inotify_add_watch(q, "l", IN_OPEN | IN_DONT_FOLLOW) != wd);
	CHECK_OK(inotify_rm_watch(q, wd));
	load(q);
	expect(wd, IN_IGNORED, NULL);
}

TEST(inotify_errors)
{
	fresh_dir();
	make_file("f", "");
	int q = inotify_init(), f = open("f", O_RDONLY);
	CHECK_ERR(inotify_init1(1), EINVAL);
	CHECK_ERR(inotify_add_watch(q, "none", IN_OPEN), ENOENT);
	CHECK_ERR(inotify_add_watch(q, "f", 0), EINVAL);
	CHECK_ERR(inotify_add_watch(f, "f", IN_OPEN), EINVAL);
	CHECK_ERR(inotify_add_watch(99, "f", IN_OPEN), EBADF);
	CHECK_ERR(inotify_rm_watch(q, 5), EINVAL);
	CHECK_ERR(inotify_rm_watch(f, 1), EINVAL);
	CHECK_ERR(syscall(SYS_inotify_add_watch, q, bad_ptr, IN_OPEN), EFAULT);
	CHECK_OK(chmod("f", 0600));
	become_user();
	CHECK_ERR(inotify_add_watch(q, "f", IN_OPEN), EACCES);
}

TEST(inotify_wakes_a_reader)
{
	fresh_dir();
	int q = inotify_init();
	int wd = inotify_add_watch(q, ".", IN_CREATE);
	pid_t pid = fork();
	if (pid == 0) {
		usleep(100000);
		make_file("later", "");
		_exit(0);
	}
	load(q);
	expect(wd, IN_CREATE, "later");
	CHECK_CHILD(pid, 0);
}

TEST(events_of_a_directory_itself)
{
	char path[40], text[400] = "";
	fresh_dir();
	CHECK_OK(mkdir("d", 0755));
	int q = inotify_init1(IN_NONBLOCK);
	int wd = inotify_add_watch(q, "d", IN_MOVE_SELF | IN_DELETE_SELF | IN_EXCL_UNLINK);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", q);
	int info = open(path, O_RDONLY);
	CHECK(read(info, text, sizeof(text) - 1) > 0);
	CHECK(strstr(text, "mask:4000c00 ") != NULL);
	CHECK_OK(rename("d", "e"));
	CHECK_OK(rmdir("e"));
	load(q);
	expect(wd, IN_MOVE_SELF, NULL);
	expect(wd, IN_DELETE_SELF, NULL);
	expect(wd, IN_IGNORED, NULL);
}

T_MAIN

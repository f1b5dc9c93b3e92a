/* getdents(2), getdents64(2), and seeking in directories. */
#include <dirent.h>
#include <sys/syscall.h>

#include "tests/guest/t_file.h"

struct dent64 {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

TEST(getdents64_lists_everything_once)
{
	char buf[512], name[32], seen[300] = { 0 };
	int dots = 0;
	fresh_dir();
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "file%03d", i);
		make_file(name, "");
	}
	int d = open(".", O_RDONLY | O_DIRECTORY);
	for (;;) {
		long n = syscall(SYS_getdents64, d, buf, sizeof(buf));
		CHECK(n >= 0);
		if (n == 0)
			break;
		for (long at = 0; at < n;) {
			struct dent64 *e = (struct dent64 *)(buf + at);
			CHECK(e->reclen >= 24 && e->reclen % 8 == 0);
			if (strncmp(e->name, "file", 4) == 0) {
				CHECK_EQ(e->type, DT_REG);
				seen[atoi(e->name + 4)]++;
			} else {
				CHECK_EQ(e->type, DT_DIR);
				dots++;
			}
			at += e->reclen;
		}
	}
	for (int i = 0; i < 300; i++)
		CHECK_EQ(seen[i], 1);
	CHECK_EQ(dots, 2);
	CHECK_EQ(syscall(SYS_getdents64, d, buf, sizeof(buf)), 0);
	CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
	CHECK(syscall(SYS_getdents64, d, buf, sizeof(buf)) > 0);
}

TEST(getdents_old_records)
{
	char buf[4096];
	bool found = false;
	struct old {
		unsigned long ino, off;
		unsigned short reclen;
		char name[];
	};
	fresh_dir();
	CHECK_OK(symlink("x", "link"));
	int d = open(".", O_RDONLY);
	long n = syscall(SYS_getdents, d, buf, sizeof(buf));
	CHECK(n > 0);
	for (long at = 0; at < n;) {
		struct old *e = (struct old *)(buf + at);
		if (strcmp(e->name, "link") == 0) {
			CHECK_EQ(buf[at + e->reclen - 1], DT_LNK);
			found = true;
		}
		at += e->reclen;
	}
	CHECK(found);
}

TEST(getdents_errors)
{
	char buf[4096];
	fresh_dir();
	make_file("f", "");
	int f = open("f", O_RDONLY), d = open(".", O_RDONLY);
	CHECK_ERR(syscall(SYS_getdents64, f, buf, sizeof(buf)), ENOTDIR);
	CHECK_ERR(syscall(SYS_getdents64, 99, buf, sizeof(buf)), EBADF);
	CHECK_ERR(syscall(SYS_getdents64, d, buf, 10), EINVAL);
	CHECK_ERR(syscall(SYS_getdents64, d, bad_ptr, 4096), EFAULT);
	CHECK_OK(mkdir("gone", 0755));
	d = open("gone", O_RDONLY);
	CHECK_OK(rmdir("gone"));
	CHECK_ERR(syscall(SYS_getdents64, d, buf, sizeof(buf)), ENOENT);
}

TEST(readdir_while_removing)
{
	char name[32];
	int left = 0;
	fresh_dir();
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "file%03d", i);
		make_file(name, "");
	}
	DIR *d = opendir(".");
	struct dirent *e;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] == 'f')
			CHECK_OK(unlink(e->d_name));
	rewinddir(d);
	while ((e = readdir(d)) != NULL)
		left += e->d_name[0] == 'f';
	CHECK_EQ(left, 0);
}

TEST(telldir_and_seekdir)
{
	char name[32], first[256];
	fresh_dir();
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(name, "");
	}
	DIR *d = opendir(".");
	for (int i = 0; i < 7; i++)
		CHECK(readdir(d) != NULL);
	long at = telldir(d);
	strcpy(first, readdir(d)->d_name);
	while (readdir(d))
		;
	seekdir(d, at);
	CHECK_STR(readdir(d)->d_name, first);
}

T_MAIN

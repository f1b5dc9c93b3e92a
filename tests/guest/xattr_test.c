/*
 * setxattr(2), lsetxattr(2), fsetxattr(2), getxattr(2), lgetxattr(2), fgetxattr(2), listxattr(2), llistxattr(2),
 * flistxattr(2), removexattr(2), lremovexattr(2), fremovexattr(2).
 */
#include <sys/xattr.h>

#include "tests/guest/t_file.h"

static void xattr_dir(void)
{
	fresh_dir();
	make_file("f", "x");
	if (setxattr("f", "user.probe", "", 0, 0) != 0 && errno == EOPNOTSUPP)
		SKIP("no user attributes here");
	CHECK_OK(removexattr("f", "user.probe"));
}

TEST(xattr_set_get_remove)
{
	char buf[64];
	xattr_dir();
	int fd = open("f", O_RDONLY);
	CHECK_OK(setxattr("f", "user.a", "hello", 5, 0));
	CHECK_EQ(getxattr("f", "user.a", NULL, 0), 5);
	CHECK_EQ(getxattr("f", "user.a", buf, sizeof(buf)), 5);
	CHECK_MEM(buf, "hello", 5);
	CHECK_ERR(getxattr("f", "user.a", buf, 3), ERANGE);
	CHECK_ERR(getxattr("f", "user.none", buf, 3), ENODATA);
	CHECK_OK(fsetxattr(fd, "user.b", "", 0, 0));
	CHECK_EQ(fgetxattr(fd, "user.b", buf, sizeof(buf)), 0);
	CHECK_ERR(setxattr("f", "user.a", "x", 1, XATTR_CREATE), EEXIST);
	CHECK_ERR(setxattr("f", "user.c", "x", 1, XATTR_REPLACE), ENODATA);
	CHECK_OK(setxattr("f", "user.a", "x", 1, XATTR_REPLACE));
	CHECK_EQ(getxattr("f", "user.a", buf, sizeof(buf)), 1);
	CHECK_OK(removexattr("f", "user.a"));
	CHECK_ERR(removexattr("f", "user.a"), ENODATA);
	CHECK_OK(fremovexattr(fd, "user.b"));
}

static bool has(const char *list, ssize_t n, const char *name)
{
	for (const char *p = list; p < list + n; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return true;
	return false;
}

TEST(xattr_list)
{
	char buf[256];
	xattr_dir();
	CHECK_OK(setxattr("f", "user.one", "1", 1, 0));
	CHECK_OK(setxattr("f", "user.two", "2", 1, 0));
	ssize_t n = listxattr("f", buf, sizeof(buf));
	CHECK(n >= 18);
	CHECK(has(buf, n, "user.one") && has(buf, n, "user.two"));
	CHECK_EQ(listxattr("f", NULL, 0), n);
	CHECK_ERR(listxattr("f", buf, 5), ERANGE);
	int fd = open("f", O_RDONLY);
	CHECK_EQ(flistxattr(fd, buf, sizeof(buf)), n);
	CHECK_EQ(llistxattr("f", buf, sizeof(buf)), n);
	CHECK_ERR(listxattr("none", buf, sizeof(buf)), ENOENT);
}

TEST(xattr_errors)
{
	char name[300], buf[8];
	static char big[70000];
	xattr_dir();
	CHECK_OK(symlink("f", "l"));
	CHECK_ERR(lsetxattr("l", "user.a", "x", 1, 0), EPERM);
	CHECK_ERR(lgetxattr("l", "user.a", buf, 8), ENODATA);
	CHECK_ERR(lremovexattr("l", "user.a"), EPERM);
	CHECK_ERR(setxattr("f", "", "x", 1, 0), ERANGE);
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[256] = 0;
	CHECK_ERR(setxattr("f", name, "x", 1, 0), ERANGE);
	CHECK_ERR(setxattr("f", "user.a", "x", 1, 8), EINVAL);
	CHECK_ERR(setxattr("f", "user.a", big, sizeof(big), 0), E2BIG);
	CHECK_ERR(setxattr("f", "noprefix", "x", 1, 0), EOPNOTSUPP);
	CHECK_ERR(setxattr("f", "user.a", bad_ptr, 8, 0), EFAULT);
	CHECK_ERR(setxattr("none", "user.a", "x", 1, 0), ENOENT);
	CHECK_ERR(fsetxattr(99, "user.a", "x", 1, 0), EBADF);
	CHECK_OK(chmod("f", 0644));
	become_user();
	CHECK_ERR(setxattr("f", "user.a", "x", 1, 0), EACCES);
	CHECK_ERR(setxattr("f", "trusted.a", "x", 1, 0), EPERM);
	CHECK_ERR(getxattr("f", "trusted.a", buf, 8), ENODATA);
}

T_MAIN

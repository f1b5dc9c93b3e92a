/* What tests of file calls share: a directory of their own, small files, an ordinary user. */
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "tests/guest/t.h"

__attribute__((unused)) static char from_nowhere[16];
/* An address that nothing is mapped at; volatile, so that the compiler does not see through it. */
__attribute__((unused)) static char *volatile bad_ptr = (char *)8;

/* Makes a fresh directory below the current one and enters it. */
__attribute__((unused)) static void fresh_dir(void)
{
	char name[] = "t.XXXXXX";
	CHECK(mkdtemp(name) != NULL);
	CHECK_OK(chmod(name, 0755));
	CHECK_OK(chdir(name));
	umask(022);
}

__attribute__((unused)) static void make_file(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	CHECK_OK(fd);
	CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
	CHECK_OK(close(fd));
}

__attribute__((unused)) static void file_is(const char *name, const char *text)
{
	char buf[4096];
	int fd = open(name, O_RDONLY);
	CHECK_OK(fd);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	CHECK(n >= 0);
	buf[n] = 0;
	CHECK_STR(buf, text);
	CHECK_OK(close(fd));
}

/* From here on the test is user 1000 without capabilities; skipped unless it began as root. */
__attribute__((unused)) static void become_user(void)
{
	SKIP_IF(geteuid() != 0, "needs root to become another user");
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(1000, 1000, 1000));
	CHECK_OK(setresuid(1000, 1000, 1000));
}

/* uname(2), sysinfo(2), getrandom(2), sethostname(2), syslog(2). */
#define _GNU_SOURCE
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "tests/guest/t.h"

TEST(uname_fills_all_fields)
{
	struct utsname u;
	CHECK_OK(uname(&u));
	CHECK_STR(u.sysname, "Linux");
	CHECK_STR(u.machine, "x86_64");
	CHECK(u.release[0] >= '3');
	CHECK(u.nodename[0] != 0);
	CHECK_ERR(syscall(SYS_uname, (void *)8), EFAULT);
}

TEST(hostname_can_be_changed)
{
	struct utsname u, back;
	SKIP_IF(geteuid() != 0, "needs root");
	CHECK_OK(uname(&back));
	CHECK_OK(sethostname(back.nodename, strlen(back.nodename)));
	CHECK_OK(uname(&u));
	CHECK_STR(u.nodename, back.nodename);
	char big[80] = { 0 };
	CHECK_ERR(sethostname(big, 65), EINVAL);
	CHECK_ERR(syscall(SYS_sethostname, (void *)8, 3), EFAULT);
}

TEST(sysinfo_is_sane)
{
	struct sysinfo si;
	CHECK_OK(sysinfo(&si));
	CHECK(si.mem_unit >= 1);
	CHECK(si.totalram > 0 && si.freeram <= si.totalram);
	CHECK(si.uptime >= 0);
	CHECK_ERR(syscall(SYS_sysinfo, (void *)8), EFAULT);
}

TEST(getrandom_fills)
{
	unsigned char a[64] = { 0 }, b[64] = { 0 };
	static char big[100000];
	CHECK_EQ(getrandom(a, sizeof(a), 0), 64);
	CHECK_EQ(getrandom(b, sizeof(b), GRND_NONBLOCK), 64);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
	CHECK_EQ(getrandom(big, sizeof(big), 0), (long)sizeof(big));
	CHECK_EQ(getrandom(a, 0, 0), 0);
	CHECK_ERR(getrandom(a, 1, 0x80), EINVAL);
	CHECK_ERR(getrandom(a, 1, GRND_RANDOM | GRND_INSECURE), EINVAL);
	CHECK_ERR(syscall(SYS_getrandom, (void *)8, 1, 0), EFAULT);
}

TEST(unknown_calls)
{
	CHECK_ERR(syscall(500), ENOSYS);
	CHECK_ERR(syscall(100000), ENOSYS);
	CHECK_ERR(syscall(-1), ENOSYS);
	CHECK_ERR(syscall(0x40000000 + 39), ENOSYS); /* x32 getpid */
}

TEST(kinds_of_file_systems)
{
	char name[64];
	long n = syscall(SYS_sysfs, 3);
	CHECK(n > 0);
	for (long i = 0; i < n; i++) {
		CHECK_OK(syscall(SYS_sysfs, 2, i, name));
		CHECK_EQ(syscall(SYS_sysfs, 1, name), i);
	}
	CHECK_ERR(syscall(SYS_sysfs, 2, n, name), EINVAL);
	CHECK_ERR(syscall(SYS_sysfs, 2, 0, (void *)8), EFAULT);
	CHECK_ERR(syscall(SYS_sysfs, 1, "no such file system, by any name"), EINVAL);
	CHECK_ERR(syscall(SYS_sysfs, 1, (void *)8), EFAULT);
	CHECK_ERR(syscall(SYS_sysfs, 4), EINVAL);
}

TEST(hang_up_without_a_terminal)
{
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		_exit(syscall(SYS_vhangup) == 0 ? 0 : errno);
	}
	CHECK_CHILD(pid, geteuid() == 0 ? 0 : EPERM);
}

T_MAIN

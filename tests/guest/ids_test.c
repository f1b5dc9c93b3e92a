/*
 * getuid(2), geteuid(2), getresuid(2), setuid(2), setreuid(2), setresuid(2), setfsuid(2), getgid(2), getegid(2),
 * getresgid(2), setgid(2), setregid(2), setresgid(2), setfsgid(2), getgroups(2), setgroups(2), capget(2), capset(2).
 * Raw calls, so that the C library does not spread them over threads.
 */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/guest/t.h"

#define KEEP ((unsigned)-1)

static void check_uids(unsigned r, unsigned e, unsigned s)
{
	unsigned a = 1, b = 2, c = 3;
	CHECK_OK(syscall(SYS_getresuid, &a, &b, &c));
	CHECK_EQ(a, r);
	CHECK_EQ(b, e);
	CHECK_EQ(c, s);
	CHECK_EQ(syscall(SYS_getuid), r);
	CHECK_EQ(syscall(SYS_geteuid), e);
}

static void check_gids(unsigned r, unsigned e, unsigned s)
{
	unsigned a = 1, b = 2, c = 3;
	CHECK_OK(syscall(SYS_getresgid, &a, &b, &c));
	CHECK_EQ(a, r);
	CHECK_EQ(b, e);
	CHECK_EQ(c, s);
	CHECK_EQ(syscall(SYS_getgid), r);
	CHECK_EQ(syscall(SYS_getegid), e);
}

static struct __user_cap_data_struct caps[2];

static void get_caps(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	CHECK_OK(syscall(SYS_capget, &h, caps));
}

static long set_caps(unsigned eff, unsigned perm, unsigned inh)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { eff, perm, inh }, { 0, 0, 0 } };
	return syscall(SYS_capset, &h, d);
}

#define NEED_ROOT SKIP_IF(syscall(SYS_geteuid) != 0, "needs root")

TEST(bad_pointers)
{
	unsigned x;
	CHECK_ERR(syscall(SYS_getresuid, (void *)1, &x, &x), EFAULT);
	CHECK_ERR(syscall(SYS_getresgid, &x, &x, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_setuid, KEEP), EINVAL);
	CHECK_ERR(syscall(SYS_setgid, KEEP), EINVAL);
}

TEST(setuid_of_root_sets_all)
{
	NEED_ROOT;
	CHECK_OK(syscall(SYS_setuid, 1000));
	check_uids(1000, 1000, 1000);
	CHECK_ERR(syscall(SYS_setuid, 0), EPERM);
	CHECK_ERR(syscall(SYS_setresuid, KEEP, 0, KEEP), EPERM);
	CHECK_OK(syscall(SYS_setresuid, 1000, 1000, KEEP));
	get_caps();
	CHECK_EQ(caps[0].effective, 0);
	CHECK_EQ(caps[0].permitted, 0);
}

TEST(seteuid_goes_there_and_back)
{
	NEED_ROOT;
	CHECK_OK(syscall(SYS_setresuid, KEEP, 1000, KEEP));
	check_uids(0, 1000, 0);
	get_caps();
	CHECK_EQ(caps[0].effective, 0);
	CHECK(caps[0].permitted != 0);
	CHECK_OK(syscall(SYS_setuid, 0)); /* only the effective id now */
	check_uids(0, 0, 0);
	get_caps();
	CHECK_EQ(caps[0].effective, caps[0].permitted);
}

TEST(setreuid_saves_the_effective_id)
{
	NEED_ROOT;
	CHECK_OK(syscall(SYS_setreuid, 1000, 2000));
	check_uids(1000, 2000, 2000);
	CHECK_OK(syscall(SYS_setreuid, 2000, 1000)); /* swap */
	check_uids(2000, 1000, 1000);
	CHECK_ERR(syscall(SYS_setreuid, 3000, KEEP), EPERM);
	CHECK_ERR(syscall(SYS_setreuid, KEEP, 3000), EPERM);
}

TEST(setfsuid_reports_the_old_one)
{
	NEED_ROOT;
	CHECK_EQ(syscall(SYS_setfsuid, 1000), 0);
	CHECK_EQ(syscall(SYS_setfsuid, KEEP), 1000);
	CHECK_EQ(syscall(SYS_setfsuid, 0), 1000);
	CHECK_EQ(syscall(SYS_setfsgid, 1000), 0);
	CHECK_EQ(syscall(SYS_setfsgid, KEEP), 1000);
}

TEST(group_ids)
{
	NEED_ROOT;
	CHECK_OK(syscall(SYS_setregid, 100, 200));
	check_gids(100, 200, 200);
	CHECK_OK(syscall(SYS_setresgid, 1, 2, 3));
	check_gids(1, 2, 3);
	CHECK_OK(syscall(SYS_setgid, 7));
	check_gids(7, 7, 7);
	CHECK_OK(syscall(SYS_setuid, 1000));
	CHECK_ERR(syscall(SYS_setgid, 0), EPERM);
	CHECK_ERR(syscall(SYS_setregid, 0, KEEP), EPERM);
	CHECK_ERR(syscall(SYS_setresgid, KEEP, KEEP, 0), EPERM);
	CHECK_OK(syscall(SYS_setgid, 7));
}

TEST(supplementary_groups)
{
	unsigned in[3] = { 30, 10, 20 }, out[8];
	NEED_ROOT;
	CHECK_OK(syscall(SYS_setgroups, 3, in));
	CHECK_EQ(syscall(SYS_getgroups, 0, NULL), 3);
	CHECK_ERR(syscall(SYS_getgroups, 2, out), EINVAL);
	CHECK_ERR(syscall(SYS_getgroups, -1, out), EINVAL);
	CHECK_ERR(syscall(SYS_getgroups, 8, (void *)1), EFAULT);
	CHECK_EQ(syscall(SYS_getgroups, 8, out), 3);
	CHECK_EQ(out[0] + out[1] + out[2], 60);
	CHECK_ERR(syscall(SYS_setgroups, 65537, in), EINVAL);
	CHECK_ERR(syscall(SYS_setgroups, 1, (void *)1), EFAULT);
	CHECK_OK(syscall(SYS_setgroups, 0, NULL));
	CHECK_EQ(syscall(SYS_getgroups, 8, out), 0);
	CHECK_OK(syscall(SYS_setuid, 1000));
	CHECK_ERR(syscall(SYS_setgroups, 0, NULL), EPERM);
}

TEST(capget_knows_its_versions)
{
	struct __user_cap_header_struct h = { 0, 0 };
	CHECK_OK(syscall(SYS_capget, &h, NULL));
	CHECK_EQ(h.version, _LINUX_CAPABILITY_VERSION_3);
	h.version = 1;
	CHECK_ERR(syscall(SYS_capget, &h, caps), EINVAL);
	CHECK_ERR(syscall(SYS_capget, (void *)1, caps), EFAULT);
	h.pid = -1;
	CHECK_ERR(syscall(SYS_capget, &h, caps), EINVAL);
	h.pid = 0x7ffffff;
	CHECK_ERR(syscall(SYS_capget, &h, caps), ESRCH);
	h.pid = getppid();
	CHECK_ERR(syscall(SYS_capset, &h, caps), EPERM);
}

TEST(capset_only_takes_away)
{
	NEED_ROOT;
	get_caps();
	unsigned kill_bit = 1u << CAP_KILL, setuid_bit = 1u << CAP_SETUID;
	CHECK_OK(set_caps(kill_bit, kill_bit | setuid_bit, 0));
	get_caps();
	CHECK_EQ(caps[0].effective, kill_bit);
	CHECK_EQ(caps[0].permitted, kill_bit | setuid_bit);
	CHECK_ERR(syscall(SYS_setuid, 1000), EPERM); /* not effective */
	CHECK_OK(set_caps(setuid_bit, setuid_bit, 0));
	CHECK_ERR(set_caps(kill_bit, kill_bit, 0), EPERM);
	CHECK_ERR(set_caps(setuid_bit, 0, 0), EPERM);
	CHECK_OK(syscall(SYS_setuid, 1000));
}

TEST(keepcaps_keeps_the_permitted_set)
{
	NEED_ROOT;
	CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
	CHECK_OK(syscall(SYS_setuid, 1000));
	get_caps();
	CHECK(caps[0].permitted != 0);
	CHECK_EQ(caps[0].effective, 0);
}
T_MAIN

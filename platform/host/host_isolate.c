/* Giving up rights: see host_isolate.h. */
#include "platform/host/host_isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of the oldest build machine: include/uapi/linux/landlock.h. */
#define LL_REFER (1ull << 13)     /* ABI 2 */
#define LL_TRUNCATE (1ull << 14)  /* ABI 3 */
#define LL_IOCTL_DEV (1ull << 15) /* ABI 5 */
#define LL_FILE_READ LANDLOCK_ACCESS_FS_READ_FILE
#define LL_FILE_WRITE LANDLOCK_ACCESS_FS_WRITE_FILE
#define LL_ALL_1 ((1ull << 13) - 1)

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int host_detach(int parent_pid)
{
	struct rlimit none = { 0, 0 };

	setsid(); /* fails for a leader, which is as good */
	int err = result(prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (!err && getppid() != parent_pid)
		err = -ESRCH;
	if (!err)
		err = result(prctl(PR_SET_DUMPABLE, 0));
	if (!err)
		err = result(setrlimit(RLIMIT_CORE, &none));
	umask(0);
	return err;
}

static int close_between(unsigned first, unsigned last)
{
	return first > last ? 0 : result(syscall(SYS_close_range, first, last, 0));
}

int host_close_others(const int *keep, size_t count)
{
	unsigned next = 3;

	for (size_t i = 0; i < count; i++) {
		if (keep[i] < 3)
			return -EINVAL;
		int err = close_between(next, (unsigned)keep[i] - 1);
		if (err)
			return err;
		next = (unsigned)keep[i] + 1;
	}
	int err = close_between(next, ~0u);
	if (err)
		return err;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0)
		err = -errno;
	if (null > 2)
		close(null);
	return err;
}

int host_raise_fd_limit(uint32_t *out)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return -errno;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) != 0)
		return -errno;
	*out = l.rlim_cur > 1u << 20 ? 1u << 20 : (uint32_t)l.rlim_cur;
	return 0;
}

int host_keep_caps(uint64_t mask)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	if ((data[0].permitted | data[1].permitted | data[0].inheritable | data[1].inheritable) ==
	    0)
		return 0;
	for (int i = 0; i < 2; i++) {
		uint32_t m = (uint32_t)(mask >> (32 * i)) & data[i].permitted;
		data[i].permitted = m;
		data[i].effective = m;
		data[i].inheritable = 0;
	}
	return result(syscall(SYS_capset, &head, data));
}

int host_no_new_privs(void)
{
	return result(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

int host_landlock_abi(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return r < 0 ? 0 : (int)r;
}

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define LL_SCOPED 3ull /* abstract sockets, signals */

/* What the domain takes from its members in the file tree: hardly anything. A right that is not
 * given somewhere is lost, and moves between directories are lost unless they are given. */
static int domain_ruleset(int abi)
{
	const uint64_t nodes = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
	struct ruleset_attr attr = { .fs = nodes | LL_REFER, .scoped = abi >= 6 ? LL_SCOPED : 0 };
	struct landlock_path_beneath_attr all = { .allowed_access = LL_REFER };
	size_t size = abi >= 6 ? sizeof(attr) : sizeof(attr.fs);

	int set = result(syscall(SYS_landlock_create_ruleset, &attr, size, 0));
	if (set < 0)
		return set;
	all.parent_fd = open("/", O_PATH | O_CLOEXEC);
	int err = result(all.parent_fd);
	if (err >= 0) {
		err = result(
			syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &all, 0));
		close(all.parent_fd);
	}
	if (err < 0)
		close(set);
	return err < 0 ? err : set;
}

int host_enter_domain(void)
{
	int abi = host_landlock_abi();

	/* Version 1 would forbid every move between directories. */
	if (abi < 2)
		return 0;
	int err = host_no_new_privs();
	if (err)
		return err;
	int set = domain_ruleset(abi);
	if (set < 0)
		return set;
	err = result(syscall(SYS_landlock_restrict_self, set, 0));
	close(set);
	/* So many domains inside each other that there is no room for one more. */
	return err == -E2BIG ? 0 : err;
}

static uint64_t all_rights(int abi)
{
	return LL_ALL_1 | (abi >= 2 ? LL_REFER : 0) | (abi >= 3 ? LL_TRUNCATE : 0) |
	       (abi >= 5 ? LL_IOCTL_DEV : 0);
}

static uint64_t rights_of(const struct host_landlock_rule *r, uint64_t all)
{
	uint64_t file = LL_FILE_READ | (r->writable ? LL_FILE_WRITE | LL_TRUNCATE : 0);
	uint64_t dir = LANDLOCK_ACCESS_FS_READ_DIR;

	if (r->writable)
		dir = all & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
					LANDLOCK_ACCESS_FS_MAKE_BLOCK | LL_IOCTL_DEV);
	return (r->is_dir ? file | dir : file) & all;
}

int host_landlock(int abi, const struct host_landlock_rule *rules, size_t count)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = all_rights(abi) };
	int err = 0;

	int set = result(syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0));
	if (set < 0)
		return set;
	for (size_t i = 0; i < count && !err; i++) {
		struct landlock_path_beneath_attr p = {
			.allowed_access = rights_of(&rules[i], attr.handled_access_fs),
			.parent_fd = rules[i].fd,
		};
		err = result(
			syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &p, 0));
	}
	if (!err)
		err = result(syscall(SYS_landlock_restrict_self, set, 0));
	close(set);
	return err;
}

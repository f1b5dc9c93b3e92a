/* Host calls on names: see host_path.h. */
#include "platform/host/host_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FD_NAME_SIZE 12

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

/* The name of a descriptor below the working directory. */
static const char *fd_name(int fd, char buf[FD_NAME_SIZE])
{
	snprintf(buf, FD_NAME_SIZE, "%d", fd);
	return buf;
}

int host_enter_fd_dir(void)
{
	return result(chdir("/proc/self/fd"));
}

int host_open_beneath(int dir, const char *name, int flags, uint32_t mode)
{
	/* openat2 refuses flags that mean nothing together with O_PATH. */
	int extra = flags & O_PATH ? 0 : O_NOCTTY;
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | extra | O_CLOEXEC | O_NOFOLLOW),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};
	/* EAGAIN: a rename somewhere made the kernel unsure about "beneath"; one name has no "..",
	 * so a few retries always settle it. */
	for (int tries = 0;; tries++) {
		long r = syscall(SYS_openat2, dir, name, &how, sizeof(how));
		if (r >= 0 || (errno != EINTR && (errno != EAGAIN || tries > 100)))
			return result(r);
	}
}

int host_open_config_path(const char *path, int extra)
{
	return result(open(path, O_PATH | O_CLOEXEC | extra));
}

int host_reopen(int fd, int flags)
{
	char name[FD_NAME_SIZE];
	int r;
	do {
		r = result(openat(AT_FDCWD, fd_name(fd, name), flags | O_CLOEXEC | O_NOCTTY));
	} while (r == -EINTR);
	return r;
}

int host_open_dot(int dir, int flags, uint32_t mode)
{
	return result(openat(dir, ".", flags | O_CLOEXEC, mode));
}

int host_statx_fd(int fd, struct statx *out)
{
	return result(statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			    STATX_BASIC_STATS | STATX_BTIME, out));
}

int host_statfs_fd(int fd, struct statfs *out)
{
	return result(fstatfs(fd, out));
}

ssize_t host_readlink_fd(int fd, char *buf, size_t size)
{
	return result(readlinkat(fd, "", buf, size));
}

ssize_t host_getdents(int fd, void *buf, size_t size)
{
	return result(syscall(SYS_getdents64, fd, buf, size));
}

int host_mkdir_at(int dir, const char *name, uint32_t mode)
{
	return result(mkdirat(dir, name, mode));
}

int host_mknod_at(int dir, const char *name, uint32_t mode)
{
	return result(mknodat(dir, name, mode, 0));
}

int host_symlink_at(const char *target, int dir, const char *name)
{
	return result(symlinkat(target, dir, name));
}

int host_link_fd(int fd, int dir, const char *name)
{
	char buf[FD_NAME_SIZE];
	return result(linkat(AT_FDCWD, fd_name(fd, buf), dir, name, AT_SYMLINK_FOLLOW));
}

int host_unlink_at(int dir, const char *name, bool is_dir)
{
	return result(unlinkat(dir, name, is_dir ? AT_REMOVEDIR : 0));
}

int host_rename_at(int old_dir, const char *old_name, int new_dir, const char *new_name,
		   unsigned flags)
{
	/* libc's wrapper makes another call when there are no flags. */
	return result(syscall(SYS_renameat2, old_dir, old_name, new_dir, new_name, flags));
}

int host_chmod_fd(int fd, uint32_t mode)
{
	char name[FD_NAME_SIZE];
	/* The kernel's own call has no flags; libc's wrapper would probe for some. */
	return result(syscall(SYS_fchmodat, AT_FDCWD, fd_name(fd, name), mode));
}

int host_chown_fd(int fd, uint32_t uid, uint32_t gid)
{
	return result(fchownat(fd, "", uid, gid, AT_EMPTY_PATH));
}

int host_utimens_fd(int fd, const struct timespec times[2])
{
	char name[FD_NAME_SIZE];
	return result(utimensat(AT_FDCWD, fd_name(fd, name), times, 0));
}

ssize_t host_getxattr_fd(int fd, const char *name, void *buf, size_t size)
{
	char path[FD_NAME_SIZE];
	return result(getxattr(fd_name(fd, path), name, buf, size));
}

ssize_t host_listxattr_fd(int fd, char *buf, size_t size)
{
	char path[FD_NAME_SIZE];
	return result(listxattr(fd_name(fd, path), buf, size));
}

int host_setxattr_fd(int fd, const char *name, const void *val, size_t size, int flags)
{
	char path[FD_NAME_SIZE];
	return result(setxattr(fd_name(fd, path), name, val, size, flags));
}

int host_removexattr_fd(int fd, const char *name)
{
	char path[FD_NAME_SIZE];
	return result(removexattr(fd_name(fd, path), name));
}

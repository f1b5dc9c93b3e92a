/*
 * Host calls on names, for the gofer alone: every one takes a descriptor and either one name below
 * it or nothing. All give -errno. What needs a path to a descriptor that was opened with O_PATH
 * ("reopen", chmod, extended attributes) goes through the working directory, which
 * host_enter_fd_dir has made the process's own /proc/self/fd; no name that a peer sent is ever
 * resolved there.
 */
#pragma once

#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>

#include "platform/base/types.h"

/* Makes /proc/self/fd the working directory. Once, before any of the calls marked [fd dir]. */
int host_enter_fd_dir(void) MUST_CHECK;
/* openat2 with RESOLVE_BENEATH, NO_MAGICLINKS, NO_SYMLINKS; O_CLOEXEC, O_NOFOLLOW and O_NOCTTY are
 * added. */
int host_open_beneath(int dir, const char *name, int flags, uint32_t mode) MUST_CHECK;
/* Opens an absolute path of the configuration as O_PATH | extra, following symbolic links. */
int host_open_config_path(const char *path, int extra) MUST_CHECK;
/* Opens again what an O_PATH descriptor denotes. [fd dir] */
int host_reopen(int fd, int flags) MUST_CHECK;
/* The directory itself for reading, or a nameless file in it (O_TMPFILE in flags). */
int host_open_dot(int dir, int flags, uint32_t mode) MUST_CHECK;
int host_statx_fd(int fd, struct statx *out) MUST_CHECK;
int host_statfs_fd(int fd, struct statfs *out) MUST_CHECK;
ssize_t host_readlink_fd(int fd, char *buf, size_t size) MUST_CHECK;
ssize_t host_getdents(int fd, void *buf, size_t size) MUST_CHECK;
int host_mkdir_at(int dir, const char *name, uint32_t mode) MUST_CHECK;
int host_mknod_at(int dir, const char *name, uint32_t mode) MUST_CHECK;
int host_symlink_at(const char *target, int dir, const char *name) MUST_CHECK;
int host_link_fd(int fd, int dir, const char *name) MUST_CHECK; /* [fd dir] */
int host_unlink_at(int dir, const char *name, bool is_dir) MUST_CHECK;
int host_rename_at(int old_dir, const char *old_name, int new_dir, const char *new_name,
		   unsigned flags) MUST_CHECK;
int host_chmod_fd(int fd, uint32_t mode) MUST_CHECK;                    /* [fd dir] */
int host_chown_fd(int fd, uint32_t uid, uint32_t gid) MUST_CHECK;       /* -1: unchanged */
int host_utimens_fd(int fd, const struct timespec times[2]) MUST_CHECK; /* [fd dir] */
ssize_t host_getxattr_fd(int fd, const char *name, void *buf, size_t size) MUST_CHECK; /* [fd dir]
											*/
ssize_t host_listxattr_fd(int fd, char *buf, size_t size) MUST_CHECK; /* [fd dir] */
int host_setxattr_fd(int fd, const char *name, const void *val, size_t size, int flags)
	MUST_CHECK;                                           /* [fd dir] */
int host_removexattr_fd(int fd, const char *name) MUST_CHECK; /* [fd dir] */

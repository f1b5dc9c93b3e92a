/*
 * Names to paths, and the operations that begin with a name. A `struct fs_ctx` is what CLONE_FS
 * shares: root, working directory, umask.
 */
#pragma once

#include "fs/vfs.h"

struct fs_ctx {
	struct ref ref;
	struct mutex mu;  /* rank FS_CTX */
	struct path root; /* [mu] referenced */
	struct path cwd;  /* [mu] referenced */
	uint32_t umask;   /* [mu] */
};

DECLARE_REF(fs_ctx);
int fs_ctx_new(struct path root, struct path cwd, uint32_t umask, struct fs_ctx **out) MUST_CHECK;
int fs_ctx_copy(struct fs_ctx *old, struct fs_ctx **out) MUST_CHECK;

/* Who looks up, and from where. base.dentry NULL means the working directory. */
struct fs_lookup {
	struct fs_ctx *ctx;
	const struct cred *cred;
	struct path base; /* borrowed: directory of the dirfd */
	uint64_t resolve; /* RESOLVE_* of openat2(2) */
};

/* fs.protected_symlinks and fs.protected_hardlinks are on, as distributions set them;
 * protected_fifos and protected_regular are off. */
#define LOOKUP_FOLLOW 1u    /* follow a symlink in the last component */
#define LOOKUP_DIRECTORY 2u /* -ENOTDIR unless a directory */
#define LOOKUP_EMPTY 4u     /* an empty name means base itself (AT_EMPTY_PATH) */
#define LOOKUP_NO_AUTOMOUNT 8u

/* Gives *out (path_put it). Errors as path_resolution(7): ENOENT, ENOTDIR, EACCES, ELOOP,
 * ENAMETOOLONG. */
int path_lookup(const struct fs_lookup *l, const char *name, unsigned flags, struct path *out)
	MUST_CHECK;
/* Absolute name of p seen from root, "(unreachable)…" / " (deleted)" as d_path in the kernel;
 * length or -errno. */
int path_name(struct path p, struct path root, char *buf, size_t size) MUST_CHECK;

/* open(2)/openat2(2): flags are O_*; gives a file. */
int vfs_open(const struct fs_lookup *l, const char *name, int flags, uint32_t mode,
	     struct file **out) MUST_CHECK;
/* Opens what a path refers to (re-open of /proc/PID/fd, exec). */
int vfs_open_path(struct path p, int flags, const struct cred *c, struct file **out) MUST_CHECK;
/* Gives f's path, for magic links; a nameless file (pipe, socket) gets a path of its own. */
int file_path(struct file *f, struct path *out) MUST_CHECK;
int vfs_mkdir(const struct fs_lookup *l, const char *name, uint32_t mode) MUST_CHECK;
int vfs_mknod(const struct fs_lookup *l, const char *name, uint32_t mode, uint64_t rdev) MUST_CHECK;
/* As mknod for S_IFSOCK, giving the new path (bind(2)). */
int vfs_mknod_path(const struct fs_lookup *l, const char *name, uint32_t mode, struct path *out)
	MUST_CHECK;
int vfs_symlink(const struct fs_lookup *l, const char *target, const char *name) MUST_CHECK;
int vfs_link(const struct fs_lookup *old, const char *old_name, const struct fs_lookup *new,
	     const char *new_name, unsigned flags /* LOOKUP_* for the old name */) MUST_CHECK;
int vfs_unlink(const struct fs_lookup *l, const char *name) MUST_CHECK;
int vfs_rmdir(const struct fs_lookup *l, const char *name) MUST_CHECK;
int vfs_rename(const struct fs_lookup *old, const char *old_name, const struct fs_lookup *new,
	       const char *new_name, unsigned flags) MUST_CHECK;
int vfs_readlink(struct path p, char *buf, size_t size) MUST_CHECK;
int vfs_getattr(struct path p, struct fs_stat *out) MUST_CHECK;
/* Checks ownership and capabilities (chmod(2), chown(2), utimensat(2), truncate(2)), clears set-id
 * bits. */
int vfs_setattr(struct path p, const struct cred *c, const struct iattr *attr) MUST_CHECK;
/* The same on an inode; the caller has checked the mount. */
int inode_setattr(struct inode *ino, const struct cred *c, const struct iattr *attr) MUST_CHECK;
/* Clears set-id bits after a write by c that may not keep them; cheap when there are none. */
int inode_drop_setid(struct inode *ino, const struct cred *c) MUST_CHECK;
/* Sets the size, whatever the permissions (O_TRUNC, ftruncate); RLIMIT_FSIZE with SIGXFSZ. */
int inode_truncate(struct inode *ino, const struct cred *c, uint64_t size) MUST_CHECK;
int vfs_truncate(struct path p, const struct cred *c, uint64_t size) MUST_CHECK;
int vfs_ftruncate(struct file *f, uint64_t size) MUST_CHECK;
int vfs_statfs(struct path p, struct fs_statfs *out) MUST_CHECK;
/* access(2) with the given credentials; mask of MAY_*, 0 = existence. */
int vfs_access(struct path p, const struct cred *c, int mask) MUST_CHECK;

/* Data; pos NULL: the file's own position (locked inside). Checks mode of opening, O_APPEND,
 * limits, notifies watchers. */
ssize_t vfs_read(struct file *f, struct iov_iter *it, int64_t *pos) MUST_CHECK;
ssize_t vfs_write(struct file *f, struct iov_iter *it, int64_t *pos) MUST_CHECK;
/* As vfs_write of a file opened with O_APPEND (RWF_APPEND), or as without it (RWF_NOAPPEND). */
ssize_t vfs_write_append(struct file *f, struct iov_iter *it, int64_t *pos, bool append) MUST_CHECK;

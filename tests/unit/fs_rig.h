/* For tests of file systems through the VFS: any super block as the root mount, and short calls on
 * names. */
#pragma once

#include "fs/mount.h"
#include "fs/namei.h"

struct fs_rig {
	struct mount *mnt;
	struct fs_ctx *ctx;
	struct cred *cred;
	struct fs_lookup at;
	size_t live;
};

/* Before anything of the test is allocated. */
void fs_rig_begin(struct fs_rig *r);
/* Takes sb. uid 0 or another. */
void fs_rig_mount(struct fs_rig *r, struct superblock *sb, uint32_t uid);
void fs_rig_unmount(struct fs_rig *r);
/* Fails the test when memory blocks are left. */
void fs_rig_end(struct fs_rig *r);

/* Makes a directory below $TMPDIR or /tmp. */
void rig_temp_dir(char *buf, size_t size);

int rig_open(struct fs_rig *r, const char *name, int flags, uint32_t mode, struct file **out);
/* Writes a whole new file; reads a whole file into buf with a NUL: its size or -errno. */
int rig_put(struct fs_rig *r, const char *name, const char *text);
ssize_t rig_get(struct fs_rig *r, const char *name, char *buf, size_t size);
int rig_append(struct fs_rig *r, const char *name, const char *text);
int rig_stat(struct fs_rig *r, const char *name, struct fs_stat *out); /* does not follow */
int rig_chmod(struct fs_rig *r, const char *name, uint32_t mode);
int rig_truncate(struct fs_rig *r, const char *name, uint64_t size);
/* Names of a directory without dots, sorted, joined by blanks; the number of entries or -errno. */
int rig_list(struct fs_rig *r, const char *name, char *buf, size_t size);
int rig_getxattr(struct fs_rig *r, const char *name, const char *key, char *buf, size_t size);
int rig_setxattr(struct fs_rig *r, const char *name, const char *key, const char *val);
ssize_t rig_pwrite(struct file *f, const void *data, size_t n, int64_t off);
ssize_t rig_pread(struct file *f, void *data, size_t n, int64_t off);
/* The text or the error of a file as a string, for assert_string_equal. */
const char *rig_text(struct fs_rig *r, const char *name);
const char *rig_names(struct fs_rig *r, const char *name);

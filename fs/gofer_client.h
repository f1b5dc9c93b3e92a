/*
 * The sentry's end of the channel to the gofer (gofer/proto.h): one function per message. One
 * request at a time; the lock has rank GOFER, so any file-system lock may be held. What comes back
 * is checked; a channel that broke or a reply that is no reply gives -EIO, for ever.
 */
#pragma once

#include "fs/vfs.h"
#include "gofer/proto.h"

struct gofer_client;
DECLARE_REF(gofer_client);

/* Takes fd, also on error. Gives. */
int gofer_client_new(int fd, struct gofer_client **out) MUST_CHECK;

/* A handle with the attributes it had when it was made. */
struct gofer_node {
	uint32_t fid;
	struct gofer_attr attr;
};

int gofer_attach(struct gofer_client *c, uint32_t export, struct gofer_node *out,
		 bool *out_writable) MUST_CHECK;
/*
 * Resolves up to GOFER_WALK_MAX names below fid; out has room for as many nodes. *out_count were
 * found (at least 1 when 0 is returned), *out_stop is why it ended early, or 0.
 */
int gofer_walk(struct gofer_client *c, uint32_t fid, const char *const *names, unsigned count,
	       struct gofer_node *out, unsigned *out_count, int *out_stop) MUST_CHECK;
/* One name; *out_target is a heap copy of its text when it is a symbolic link (the caller frees
 * it), else NULL. */
int gofer_lookup(struct gofer_client *c, uint32_t fid, const char *name, struct gofer_node *out,
		 char **out_target) MUST_CHECK;
int gofer_getattr(struct gofer_client *c, uint32_t fid, struct gofer_attr *out) MUST_CHECK;
/* *out_fd is a host descriptor that the caller owns. */
int gofer_open(struct gofer_client *c, uint32_t fid, uint32_t flags, int *out_fd) MUST_CHECK;

/* Who owns what is made. */
struct gofer_owner {
	uint32_t mode, uid, gid;
};
int gofer_create(struct gofer_client *c, uint32_t dir, const char *name,
		 const struct gofer_owner *o, struct gofer_node *out, int *out_fd) MUST_CHECK;
int gofer_tmpfile(struct gofer_client *c, uint32_t dir, const struct gofer_owner *o,
		  struct gofer_node *out, int *out_fd) MUST_CHECK;
int gofer_mkdir(struct gofer_client *c, uint32_t dir, const char *name, const struct gofer_owner *o,
		struct gofer_node *out) MUST_CHECK;
int gofer_mknod(struct gofer_client *c, uint32_t dir, const char *name, const struct gofer_owner *o,
		struct gofer_node *out) MUST_CHECK;
int gofer_symlink(struct gofer_client *c, uint32_t dir, const char *name, const char *target,
		  const struct gofer_owner *o, struct gofer_node *out) MUST_CHECK;
int gofer_link(struct gofer_client *c, uint32_t fid, uint32_t dir, const char *name) MUST_CHECK;
int gofer_unlink(struct gofer_client *c, uint32_t dir, const char *name, bool is_dir) MUST_CHECK;
int gofer_rename(struct gofer_client *c, uint32_t old_dir, const char *old_name, uint32_t new_dir,
		 const char *new_name, unsigned flags) MUST_CHECK;
/* NUL-terminated text; its length. */
int gofer_readlink(struct gofer_client *c, uint32_t fid, char *buf, size_t size) MUST_CHECK;
/* attr->valid has the bits of fs/vfs.h, which are those of the protocol. */
int gofer_setattr(struct gofer_client *c, uint32_t fid, const struct iattr *attr,
		  struct gofer_attr *out) MUST_CHECK;
int gofer_statfs(struct gofer_client *c, uint32_t fid, struct fs_statfs *out) MUST_CHECK;

/* A piece of a listing, as it came. */
struct gofer_list {
	bool end;
	uint64_t next_pos;
	size_t size;
	uint8_t data[GOFER_READDIR_SIZE + 64];
};

struct gofer_dirent {
	uint64_t ino, off;
	unsigned dtype;
	char name[GOFER_NAME_MAX + 1];
};

int gofer_readdir(struct gofer_client *c, uint32_t dir, uint64_t pos, struct gofer_list *out)
	MUST_CHECK;
/* Decodes the entry at *at and advances; false at the end (or at nonsense). */
bool gofer_list_next(const struct gofer_list *l, size_t *at, struct gofer_dirent *out);
ssize_t gofer_getxattr(struct gofer_client *c, uint32_t fid, const char *name, void *buf,
		       size_t size) MUST_CHECK;
ssize_t gofer_listxattr(struct gofer_client *c, uint32_t fid, char *buf, size_t size) MUST_CHECK;
int gofer_setxattr(struct gofer_client *c, uint32_t fid, const char *name, const void *val,
		   size_t size, int flags) MUST_CHECK;
int gofer_removexattr(struct gofer_client *c, uint32_t fid, const char *name) MUST_CHECK;
/* Forgets a handle; told to the gofer together with others. */
void gofer_forget(struct gofer_client *c, uint32_t fid);

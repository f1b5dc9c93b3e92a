/* The inside of tmpfs: fs/tmpfs.c (inodes, super block), fs/tmpfs_dir.c (names), fs/tmpfs_file.c
 * (data). */
#pragma once

#include "fs/memfile.h"
#include "fs/tmpfs.h"
#include "fs/xattrs.h"
#include "platform/base/rbtree.h"

struct tmpfs {
	struct mem_pool pool;
	_Atomic uint64_t inodes; /* in use */
	uint64_t max_inodes;     /* [I] 0: no limit */
	_Atomic uint64_t next_ino;
	uint32_t mode, uid, gid; /* [I] of the root, for show_options */
};

struct tmpfs_inode {
	struct inode base;
	struct mutex attr_mu; /* rank HASH: attributes are read with and without the inode's mu */
	uint32_t mode, uid, gid;             /* [attr_mu] mode with type */
	uint32_t nlink;                      /* [attr_mu] */
	struct timespec atime, mtime, ctime; /* [attr_mu] */
	struct timespec btime;               /* [I] */
	struct xattrs xattrs;                /* [attr_mu] */
	union {
		struct memfile data; /* S_IFREG */
		char *target;        /* S_IFLNK [I] */
		struct {
			struct rb_root by_name; /* [base.mu] */
			struct rb_root by_off;  /* [base.mu] */
			uint64_t next_off; /* [base.mu] never used twice, so positions stay valid */
			_Atomic size_t count; /* [base.mu] to change */
			_Atomic uint64_t parent_ino;
		} dir; /* S_IFDIR */
	};
	bool sealable;         /* [I] data is a memfd that takes seals */
	struct list dead_link; /* while a tree is being freed */
};

struct tmpfs_entry {
	struct rb_node name_node;
	struct rb_node off_node;
	uint64_t off;
	struct tmpfs_inode *inode; /* referenced */
	char name[];
};

static inline struct tmpfs_inode *to_tmpfs(struct inode *ino)
{
	return container_of(ino, struct tmpfs_inode, base);
}

static inline struct tmpfs *tmpfs_of(struct tmpfs_inode *ti)
{
	return ti->base.sb->priv;
}

extern const struct inode_ops tmpfs_dir_inode_ops, tmpfs_file_inode_ops, tmpfs_other_inode_ops;

/* mode with type. -ENOSPC at the limit of inodes. Gives; nlink is 1, 2 for a directory. */
int tmpfs_inode_new(struct superblock *sb, uint32_t mode, uint32_t uid, uint32_t gid,
		    struct tmpfs_inode **out) MUST_CHECK;
/* Sets times to now: bits ATTR_ATIME, ATTR_MTIME, ATTR_CTIME. */
void tmpfs_touch(struct tmpfs_inode *ti, unsigned which);
/* After a read: relatime rules, O_NOATIME, mount flags. */
void tmpfs_accessed(struct file *f);
/* Adds to nlink and sets ctime. */
void tmpfs_add_link(struct tmpfs_inode *ti, int n);
/* Drops all entries of a directory; inodes whose last reference that was are put on `dead`. */
void tmpfs_dir_clear(struct tmpfs_inode *dir, struct list *dead);

int tmpfs_getattr(struct inode *ino, struct fs_stat *out);
int tmpfs_setattr(struct inode *ino, const struct iattr *attr);
ssize_t tmpfs_getxattr(struct inode *ino, const char *name, void *buf, size_t size);
int tmpfs_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags);
ssize_t tmpfs_listxattr(struct inode *ino, char *buf, size_t size);
int tmpfs_removexattr(struct inode *ino, const char *name);
void tmpfs_free(struct inode *ino);
int tmpfs_open_file(struct inode *ino, int flags, const struct cred *c, struct file **out);

/*
 * The inside of overlayfs: fs/overlayfs.c (inodes, attributes, super block), overlayfs_copy.c
 * (copy-up), overlayfs_dir.c (names), overlayfs_list.c (listings).
 */
#pragma once

#include "fs/overlayfs.h"
#include "fs/tmpfs_priv.h"
#include "platform/base/rbtree.h"

#define OVL_BUCKETS 1024

struct ovl {
	struct superblock *sb;            /* [I] borrowed: it owns us */
	struct superblock *lower, *upper; /* [I] referenced */
	bool shared;                      /* [I] the lower tree may change by itself */
	struct mutex table_mu;            /* rank HASH */
	struct list table[OVL_BUCKETS];   /* [table_mu] inodes by their lower inode */
	struct list all;                  /* [table_mu] every inode */
};

/* One changed name of a directory; what has none is as the lower directory says. */
struct ovl_entry {
	struct rb_node node;
	struct ovl_inode *inode; /* referenced; NULL: a whiteout */
	bool over_lower;         /* the lower directory has this name */
	char name[];
};

struct ovl_inode {
	struct inode base;
	struct inode *lower;                 /* [I] referenced, may be NULL */
	_Atomic(struct tmpfs_inode *) upper; /* [copy_mu] set once; referenced. Attributes and data,
						no names */
	atomic_bool data_below; /* [copy_mu] to clear: upper has attributes only, the data is still
				   below */
	struct mutex copy_mu;   /* rank INODE, after base.mu: one copy-up at a time; nlink */
	int nlink_delta;        /* [copy_mu] links gained or lost before the copy-up */
	bool table_pin; /* [copy_mu] the table holds a reference: other lower names lead here */
	struct mutex small_mu;         /* rank HASH */
	struct rb_root entries;        /* [small_mu] of a directory */
	struct ovl_inode *hint_parent; /* [small_mu] referenced: where a lower name was found, until
					  pinned there */
	char *hint_name;               /* [small_mu] */
	_Atomic uint64_t parent_ino;   /* of a directory, for ".." */
	atomic_bool removed;           /* a directory without a name: it has no links */
	_Atomic uint64_t walked_at;    /* mono ns when the lower name was last seen to lead here */
	struct list table_link;        /* [table_mu] */
	struct list all_link;          /* [table_mu] */
	struct list dead_link;         /* while freeing */
};

static inline struct ovl_inode *to_ovl(struct inode *ino)
{
	return container_of(ino, struct ovl_inode, base);
}

static inline struct ovl *ovl_of(struct inode *ino)
{
	return ino->sb->priv;
}

static inline struct tmpfs_inode *ovl_upper(struct ovl_inode *oi)
{
	return atomic_load(&oi->upper);
}

extern const struct inode_ops ovl_dir_inode_ops, ovl_file_inode_ops, ovl_other_inode_ops;

/* The inode over a lower one (takes lower), found in `dir` (NULL: the root) by `name`. Gives. */
int ovl_inode_over(struct ovl *fs, struct inode *lower, struct ovl_inode *dir, const char *name,
		   struct inode **out) MUST_CHECK;
/* A new inode in memory only. Gives. */
int ovl_inode_fresh(struct ovl *fs, uint32_t mode, uint32_t uid, uint32_t gid,
		    struct ovl_inode **out) MUST_CHECK;
/* Drops what the directory's changed names refer to; what that was the last reference of goes to
 * `dead`. */
void ovl_clear_entries(struct ovl_inode *oi, struct list *dead);
void ovl_free_dead(struct list *dead);

/*
 * Makes the upper part: attributes and extended attributes. Nothing to do when it is there. base.mu
 * of the inode or of its directory may be held.
 */
int ovl_copy_up(struct ovl_inode *oi) MUST_CHECK;
#define OVL_COPY_ALL UINT64_MAX
/* The same with the data of a regular file, at most `size` bytes of it. */
int ovl_copy_data(struct ovl_inode *oi, uint64_t size) MUST_CHECK;
/* Adds to the number of links. */
void ovl_add_link(struct ovl_inode *oi, int n);
/* From now on this name leads here, whatever happens below. */
int ovl_pin(struct ovl_inode *oi) MUST_CHECK;

/* small_mu is held. */
struct ovl_entry *ovl_find_entry(struct ovl_inode *dir, const char *name);
struct ovl_entry *ovl_entry_new(const char *name) MUST_CHECK;
void ovl_insert_entry(struct ovl_inode *dir, struct ovl_entry *e);

/* Is nothing visible in the directory? 1, 0 or -errno. Its base.mu is held. */
int ovl_is_empty(struct ovl_inode *dir) MUST_CHECK;
int ovl_open_dir(struct inode *ino, int flags, const struct cred *c, struct file **out);

int ovl_getattr(struct inode *ino, struct fs_stat *out);
int ovl_setattr(struct inode *ino, const struct iattr *attr);
ssize_t ovl_getxattr(struct inode *ino, const char *name, void *buf, size_t size);
int ovl_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags);
ssize_t ovl_listxattr(struct inode *ino, char *buf, size_t size);
int ovl_removexattr(struct inode *ino, const char *name);
void ovl_free(struct inode *ino);

/* The inside of goferfs: fs/goferfs.c (inodes, super block), fs/goferfs_dir.c, fs/goferfs_file.c.
 */
#pragma once

#include "fs/gofer_client.h"
#include "fs/goferfs.h"

#define GOFERFS_BUCKETS 1024
#define GOFERFS_DEVS 200
/* Names and attributes of a shared tree are believed for so long: the time in which an edit of the
 * host should show, and on a writable tree just long enough that the checks of one call ask once.
 */
#define GOFERFS_TTL_NS 1000000000ull
#define GOFERFS_TTL_WRITABLE_NS 200000ull

struct goferfs {
	struct gofer_client *client;        /* [I] referenced */
	struct superblock *sb;              /* [I] borrowed: it owns us */
	uint32_t root_fid;                  /* [I] */
	bool shared, writable;              /* [I] */
	struct mutex table_mu;              /* rank HASH */
	struct list table[GOFERFS_BUCKETS]; /* [table_mu] inodes by host device and number */
	struct list clock; /* [table_mu] inodes whose handle can be got again, oldest first */
	uint64_t devs[GOFERFS_DEVS]; /* [table_mu] host devices in order of appearance */
	size_t dev_count;            /* [table_mu] */
};

/* A host descriptor of a regular file; several open files may share one (pread and pwrite only). */
struct host_file {
	struct ref ref;
	int fd; /* [I] */
};
DECLARE_REF(host_file);
int host_file_new(int fd, struct host_file **out) MUST_CHECK; /* takes fd */

struct goferfs_inode {
	struct inode base;
	_Atomic uint32_t fid;     /* 0: none at present */
	atomic_bool fid_used;     /* since the clock last came by */
	atomic_bool given_up;     /* no handle ever again */
	struct goferfs_inode *up; /* [I] referenced: by which name below which directory the handle
				     is got again; */
	char *up_name;            /* [I] NULL on writable trees, where names change */
	struct list clock_link;   /* [table_mu] */
	uint64_t host_dev, host_ino; /* [I] */
	int64_t host_birth; /* [I] ns; tells apart what had the same number one after the other; 0:
			       unknown */
	uint64_t dev_index; /* [I] of the host device, for numbers */
	struct list table_link;     /* [table_mu] */
	struct mutex attr_mu;       /* rank HASH */
	struct gofer_attr attr;     /* [attr_mu] */
	uint64_t attr_at;           /* [attr_mu] mono ns when attr was true; 0: never */
	_Atomic uint64_t walked_at; /* mono ns when a name was last seen to lead here */
	struct host_file *reader;   /* [attr_mu] open for reading, kept for the next opener */
	struct host_file *writer;   /* [attr_mu] of one of the files open for writing; borrowed from
				       it */
	struct host_file *creator;  /* [attr_mu] what creating it opened, for the one open that
				       follows */
	char *target; /* [attr_mu] text of a symbolic link, once read; then it stays */
};

static inline struct goferfs_inode *to_goferfs(struct inode *ino)
{
	return container_of(ino, struct goferfs_inode, base);
}

static inline struct goferfs *goferfs_of(struct inode *ino)
{
	return ino->sb->priv;
}

/*
 * Handles (fs/goferfs_handle.c). A request on an inode looks like this:
 *
 *	int tries = 0;
 *	do {
 *		err = goferfs_fid(gi, &fid);
 *		if (!err)
 *			err = gofer_...(client, fid, ...);
 *	} while (goferfs_again(gi, fid, err, &tries));
 */
int goferfs_fid(struct goferfs_inode *gi, uint32_t *out) MUST_CHECK;
/* The handle went away meanwhile, or handles or descriptors ran out and there is room now: make it
 * again. */
bool goferfs_again(struct goferfs_inode *gi, uint32_t fid, long err, int *tries);
/* No handle any more, and no way to get one. */
void goferfs_drop_handle(struct goferfs_inode *gi);
/* The handle of a fresh walk for an inode that has none (takes fid). */
void goferfs_adopt(struct goferfs_inode *gi, uint32_t fid);

extern const struct inode_ops goferfs_dir_inode_ops, goferfs_file_inode_ops,
	goferfs_other_inode_ops;

/* The inode for a node that a walk or a creation in `dir` (NULL: the root) gave (takes its handle).
 * Gives. */
int goferfs_inode_get(struct goferfs *fs, const struct gofer_node *node, struct inode *dir,
		      const char *name, struct inode **out) MUST_CHECK;
/* When it was born, for goferfs_inode.host_birth. */
int64_t goferfs_birth(const struct gofer_attr *a);
/* The text of a symbolic link (takes; NULL: not known). */
void goferfs_know_target(struct goferfs_inode *gi, char *target);
/* The attributes are to be asked for again. */
void goferfs_stale(struct inode *ino);
/* The guest's number for a host inode on the same device as `like`. */
uint64_t goferfs_number(const struct goferfs_inode *like, uint64_t host_ino);

int goferfs_getattr(struct inode *ino, struct fs_stat *out);
int goferfs_setattr(struct inode *ino, const struct iattr *attr);
ssize_t goferfs_getxattr(struct inode *ino, const char *name, void *buf, size_t size);
int goferfs_setxattr(struct inode *ino, const char *name, const void *val, size_t size, int flags);
ssize_t goferfs_listxattr(struct inode *ino, char *buf, size_t size);
int goferfs_removexattr(struct inode *ino, const char *name);
void goferfs_free(struct inode *ino);
/* Keeps what creating the file opened (takes hf) for the open that follows. */
void goferfs_keep_creator(struct goferfs_inode *gi, struct host_file *hf);
/* Gives up the descriptors that are only kept. */
void goferfs_drop_kept(struct goferfs_inode *gi);
int goferfs_open_file(struct inode *ino, int flags, const struct cred *c, struct file **out);

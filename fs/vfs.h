/*
 * The virtual file system: mount, dentry, inode, file, and the operations a file system fills in.
 *
 * Modelled on Linux' VFS so that its rules can be kept. Names resolve in fs/namei.c over a cache of
 * dentries (fs/dentry.c) in a tree of mounts (fs/mount.c). An inode is a file's identity and
 * attributes; a `struct file` is one open description. fs/ never sees a task: it gets credentials
 *and iterators, and asks the few things that need a task through fs/hooks.h.
 *
 * Locks on entry of the operations (all may sleep unless noted):
 *
 *	inode_ops.lookup create mkdir mknod symlink link unlink rmdir    dir->mu held
 *	inode_ops.rename             sb->rename_mu and both directories' mu held
 *	inode_ops.setattr            inode->mu held
 *	inode_ops.getattr readlink follow open *xattr                    none
 *	file_ops.read write seek     file->pos_mu held when pos is &file->pos; no inode->mu; write
 *to a regular file: inode->write_mu, and *pos is the end with O_APPEND file_ops.poll none; must not
 *sleep file_ops.release             none; last reference is gone
 *
 * unlink, rmdir and rename may take the victim's mu below the directory's. After a successful rmdir
 *the VFS marks the victim dead, so that nothing more is created in it. revalidate is called on the
 * directory's ops, for negative dentries too, with or without its mu; never for a mount point.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/cred.h"
#include "fs/poll.h"
#include "platform/base/fmt.h"
#include "platform/base/iov.h"
#include "platform/base/list.h"
#include "platform/base/lock.h"
#include "platform/base/ref.h"

#define NAME_LEN_MAX 255
#define PATH_LEN_MAX 4096 /* with the NUL, as PATH_MAX */
#define SYMLINK_DEPTH_MAX 40

/* Attributes, wide enough for statx(2). Times are real time. */
struct fs_stat {
	uint64_t dev, ino, rdev; /* device numbers in the kernel's 32-bit-major encoding: makedev(3)
				  */
	uint32_t mode;           /* S_IFMT | permission bits */
	uint32_t nlink, uid, gid;
	uint64_t size, blocks; /* blocks of 512 bytes */
	uint32_t blksize;
	struct timespec atime, mtime, ctime, btime;
	bool has_btime;
	uint64_t attributes, attributes_mask; /* STATX_ATTR_* */
};

/* What setattr changes; bits of `valid`. */
#define ATTR_MODE 1u
#define ATTR_UID 2u
#define ATTR_GID 4u
#define ATTR_SIZE 8u
#define ATTR_ATIME 16u /* atime is given explicitly */
#define ATTR_MTIME 32u
#define ATTR_ATIME_NOW 64u
#define ATTR_MTIME_NOW 128u
#define ATTR_CHOWN                                                                                 \
	512u /* from chown(2): set-id bits go even if no id changes; not seen by setattr */
#define ATTR_CTIME 256u /* set ctime to now (implied by every other change) */

struct iattr {
	unsigned valid;
	uint32_t mode; /* permission bits only (07777) */
	uint32_t uid, gid;
	uint64_t size;
	struct timespec atime, mtime;
};

struct fs_statfs {
	int64_t type; /* honest f_type: TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC... */
	uint64_t bsize, blocks, bfree, bavail, files, ffree;
	uint64_t fsid;
	uint32_t namelen, frsize, flags;
};

struct inode;
struct dentry;
struct mount;
struct file;
struct superblock;

struct path {
	struct mount *mnt;
	struct dentry *dentry;
};

/* ---- super blocks ------------------------------------------------------------------------- */

struct sb_ops {
	int (*statfs)(struct superblock *sb, struct fs_statfs *out); /* required */
	void (*free)(struct superblock *sb);                         /* optional: frees sb->priv */
	/* optional: mount options as /proc/mounts shows them after rw/ro, each with a leading comma
	 */
	void (*show_options)(struct superblock *sb, struct fmt *out);
};

struct superblock {
	struct ref ref;
	const struct sb_ops *ops; /* [I] */
	const char *fs_name;      /* [I] "tmpfs", "overlay", … as in /proc/mounts */
	uint64_t dev;             /* [I] st_dev */
	bool readonly;            /* [I] EROFS for every change */
	bool no_cache;            /* [I] dentries are revalidated or never kept (procfs pids) */
	struct dentry *root;      /* [I] */
	struct mutex rename_mu;   /* one rename at a time per file system */
	void *priv;               /* [I] */
};

DECLARE_REF(superblock);
/* Gives a super block without root; root is set with superblock_set_root (takes the inode). */
int superblock_new(const struct sb_ops *ops, const char *fs_name, void *priv,
		   struct superblock **out_sb) MUST_CHECK;
int superblock_set_root(struct superblock *sb, struct inode *root) MUST_CHECK;
/* A fresh anonymous device number, as Linux gives to tmpfs and proc (major 0). */
uint64_t superblock_new_dev(void);

/* ---- inodes ------------------------------------------------------------------------------- */

struct fs_lookup; /* who asks: fs/namei.h */

struct inode_ops {
	/* Directories. Names are not NUL-terminated copies: `name` is a C string of <= 255 bytes
	 * without
	 * '/'. lookup gives an inode or -ENOENT. */
	int (*lookup)(struct inode *dir, const char *name, struct inode **out);
	int (*create)(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		      struct inode **out);
	int (*mkdir)(struct inode *dir, const char *name, uint32_t mode, const struct cred *c,
		     struct inode **out);
	int (*mknod)(struct inode *dir, const char *name, uint32_t mode, uint64_t rdev,
		     const struct cred *c, struct inode **out);
	int (*symlink)(struct inode *dir, const char *name, const char *target,
		       const struct cred *c, struct inode **out);
	int (*link)(struct inode *dir, const char *name, struct inode *target);
	int (*unlink)(struct inode *dir, const char *name, struct inode *victim);
	int (*rmdir)(struct inode *dir, const char *name, struct inode *victim);
	/* target: what new_name is now, or NULL. flags: RENAME_NOREPLACE, RENAME_EXCHANGE,
	 * RENAME_WHITEOUT; -EINVAL for those a file system cannot do. */
	int (*rename)(struct inode *old_dir, const char *old_name, struct inode *source,
		      struct inode *new_dir, const char *new_name, struct inode *target,
		      unsigned flags);
	/* A nameless regular file (O_TMPFILE); optional. */
	int (*tmpfile)(struct inode *dir, uint32_t mode, const struct cred *c, struct inode **out);

	/* Symbolic links: NUL-terminated target into buf; its length. follow is for magic links of
	 * /proc: gives a path (with references) instead of text; optional. */
	int (*readlink)(struct inode *ino, char *buf, size_t size);
	int (*follow)(struct inode *ino, struct path *out);

	int (*getattr)(struct inode *ino, struct fs_stat *out);      /* required */
	int (*setattr)(struct inode *ino, const struct iattr *attr); /* optional: -EPERM */
	/* Opens; the VFS has checked permissions and done O_TRUNC/O_CREAT/O_EXCL. Gives a file made
	 * with file_new; path is set by the VFS afterwards. Required unless only
	 * fifo/socket/symlink. */
	int (*open)(struct inode *ino, int flags, const struct cred *c, struct file **out);
	/* May a cached dentry still be used? 1 yes, 0 no (looked up anew), -errno. Optional. */
	int (*revalidate)(struct dentry *d);
	/* Overrides the mode-bit check (procfs, gofer trees); mask of MAY_*; optional. */
	int (*permission)(struct inode *ino, const struct cred *c, int mask);

	/* xattr(7); size 0 asks for the length; -ENODATA, -ERANGE, -EOPNOTSUPP. Optional. */
	ssize_t (*getxattr)(struct inode *ino, const char *name, void *buf, size_t size);
	int (*setxattr)(struct inode *ino, const char *name, const void *val, size_t size,
			int flags);
	ssize_t (*listxattr)(struct inode *ino, char *buf, size_t size);
	int (*removexattr)(struct inode *ino, const char *name);
	void (*free)(struct inode *ino);   /* optional: frees the surrounding object (else
					      mem_free(ino)) */
	void (*unused)(struct inode *ino); /* optional: called right before free */
};

#define MAY_EXEC 1
#define MAY_WRITE 2
#define MAY_READ 4

struct inode {
	struct ref ref;
	const struct inode_ops *ops; /* [I] */
	struct superblock *sb; /* [I] borrowed: mounts keep it; inodes of a dead sb are unreachable
				*/
	uint64_t ino;          /* [I] */
	uint32_t type;         /* [I] S_IFMT part of the mode */
	uint64_t rdev;         /* [I] for device nodes */
	struct mutex mu;       /* entries of a directory, size and attributes of a file */
	struct list posix_locks; /* [lock_file.c's lock] */
	struct list flocks;      /* [lock_file.c's lock] */
	struct list watches;     /* [inotify's lock] */
	atomic_int readers;      /* regular: open only for reading */
	void *ipc;               /* [mu] pipe of a fifo, bound unix socket: owned by those files */
	atomic_int writers;      /* open for writing; negative: denied by exec (ETXTBSY) */
	struct mutex write_mu;   /* one write at a time (O_APPEND); rank FILE_POS, after a file's
				    pos_mu */
	atomic_bool no_setid;    /* seen without set-id bits: writes need not look again */
	bool dead;               /* [mu] a removed directory: nothing can be created in it */
	bool linkable;           /* [mu] from O_TMPFILE without O_EXCL: link(2) works at nlink 0 */
};

DECLARE_REF(inode);
/* Initialises the embedded base; the count is 1. */
void inode_init(struct inode *ino, struct superblock *sb, const struct inode_ops *ops,
		uint64_t number, uint32_t type);
/* Mode-bit check of path_resolution(7) with capabilities and -EROFS for MAY_WRITE on files. */
int inode_permission(struct inode *ino, const struct cred *c, int mask) MUST_CHECK;
/* Owner, group and mode of a new object in a directory with attributes `dir`: a set-gid directory
 * hands down its group, and its set-gid bit to directories. `mode` has the type bits. */
void inode_new_owner(const struct fs_stat *dir, const struct cred *c, uint32_t *mode,
		     uint32_t *out_uid, uint32_t *out_gid);
/* fsuid owns it, or CAP_FOWNER. */
bool inode_owner_or_capable(const struct fs_stat *st, const struct cred *c);
/* Writers against running programs: -ETXTBSY when the other side holds it. Each success is paired.
 */
int inode_get_write(struct inode *ino) MUST_CHECK;
void inode_put_write(struct inode *ino);
int inode_deny_write(struct inode *ino) MUST_CHECK;
void inode_allow_write(struct inode *ino);

/* ---- dentries ----------------------------------------------------------------------------- */

struct dentry {
	struct ref ref;
	struct superblock *sb;       /* [I] */
	struct dentry *parent;       /* [dcache lock] referenced; itself for a root */
	struct inode *inode;         /* [I] referenced; NULL: known not to exist */
	char *name;                  /* [dcache lock] name_inline or heap */
	struct list hash_link;       /* [dcache lock] */
	struct list lru_link;        /* [dcache lock] */
	bool hashed;                 /* [dcache lock] in the cache, which holds a reference */
	bool deleted;                /* [dcache lock] its name was removed */
	atomic_int is_mountpoint;    /* [a] how many mounts cover it */
	_Atomic uint64_t checked_at; /* [a] mono ns of the last revalidation, for file systems that
					age names */
	char name_inline[32];        /* [dcache lock] */
};

DECLARE_REF(dentry);
/* Copies of what a concurrent rename may change. The parent is given (put it); a root's is itself.
 */
void dentry_name(struct dentry *d, char out[NAME_LEN_MAX + 1]);
struct dentry *dentry_parent(struct dentry *d) MUST_CHECK;
bool dentry_is_deleted(struct dentry *d);
struct path path_get(struct path p);
void path_put(struct path p);

/* ---- open files --------------------------------------------------------------------------- */

/* Where readdir puts entries; returns 0 to go on, non-zero (kept by readdir as "buffer full") to
 * stop. off is the position after this entry: seeking there continues behind it. */
struct dir_sink {
	int (*emit)(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype,
		    int64_t off);
};

/* What to map for a mapping of a file. */
struct file_map {
	int host_fd; /* borrowed while the file is referenced; -1: anonymous memory (/dev/zero) */
	uint64_t off_add; /* added to the guest's offset */
};

struct file_ops {
	/* pos is in/out; stream files ignore it. Bytes, 0 at the end, -EAGAIN with O_NONBLOCK,
	 * -ERESTARTSYS when a signal came first. -EPIPE: the caller raises SIGPIPE. Required by
	 * mode. */
	ssize_t (*read)(struct file *f, struct iov_iter *it, int64_t *pos);
	ssize_t (*write)(struct file *f, struct iov_iter *it, int64_t *pos);
	/* New position or -errno; NULL: -ESPIPE. Helper: file_seek_size. */
	int64_t (*seek)(struct file *f, int64_t off, int whence);
	/* Emits entries from *pos on. 0 or -errno; NULL: -ENOTDIR. */
	int (*readdir)(struct file *f, struct dir_sink *sink, int64_t *pos);
	uint32_t (*poll)(struct file *f, struct poll_table *pt); /* NULL: always readable and
								    writable */
	/* arg is a guest address or a plain word; um reaches guest memory. NULL: -ENOTTY. */
	long (*ioctl)(struct file *f, unsigned cmd, uint64_t arg, const struct umem *um);
	int (*mmap)(struct file *f, int prot, bool shared, struct file_map *out); /* NULL: -ENODEV
										   */
	int (*fsync)(struct file *f, bool datasync); /* NULL: -EINVAL */
	int (*fallocate)(struct file *f, int mode, uint64_t off,
			 uint64_t len); /* NULL:
					   -EOPNOTSUPP/-ESPIPE
					 */
	/* ftruncate(2) by the open file, which may be allowed more than its inode's setattr;
	 * inode->mu is held; optional. */
	int (*truncate)(struct file *f, uint64_t size);
	int (*flush)(struct file *f);    /* each close(2); optional */
	void (*release)(struct file *f); /* frees the surrounding object (required) */
	/* Text of /proc/PID/fd links for files without a path ("pipe:[7]"); /proc/PID/fdinfo
	 * extras. */
	void (*describe)(struct file *f, struct fmt *out);
	void (*show_fdinfo)(struct file *f, struct fmt *out);
	/* Told when F_SETFL changed O_NONBLOCK, O_ASYNC…; optional. -errno refuses. */
	int (*set_flags)(struct file *f, unsigned new_flags);
	/* Short way for reading into a host page cache mapping: host descriptor and true when reads
	 * and writes at pos may go to it directly (regular host files); optional. */
	int (*host_fd)(struct file *f);
};

/* Who gets SIGIO (F_SETOWN); interpreted by the sentry. */
struct file_owner {
	int type; /* F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP, or -1 */
	int id;
	int sig; /* F_SETSIG */
	int fd;  /* what si_fd says; -1 when unknown */
	uint32_t uid, euid;
};

struct file {
	struct ref ref;
	const struct file_ops *ops; /* [I] */
	struct inode *inode;        /* [I] referenced; NULL for a few anonymous kinds */
	struct path path;           /* [I] referenced; dentry NULL for nameless files */
	atomic_uint flags; /* [a] O_ACCMODE and status flags as F_GETFL gives them, plus O_PATH */
	struct cred *cred; /* [I] of the opener */
	struct mutex pos_mu;
	int64_t pos;             /* [pos_mu] */
	struct file_owner owner; /* [pos_mu] */
	struct fasync *async;    /* [fasync's lock] waiter for O_ASYNC, or NULL */
	struct list epoll_links; /* [epoll's lock] interest entries on this file */
	bool counts_writer;      /* [I] holds one of inode->writers */
	bool counts_reader;      /* [I] holds one of inode->readers */
	bool created;            /* [I] this open made the file (F_CREATED_QUERY) */
	atomic_uint lock_count;  /* [a] flock and OFD locks that may exist on it (lock_file.c) */
};

DECLARE_REF(file);
/* Initialises the embedded base: count 1, takes no reference on inode but keeps the given one
 * (takes). */
void file_init(struct file *f, const struct file_ops *ops, struct inode *ino, unsigned flags);
static inline unsigned file_flags(struct file *f)
{
	return atomic_load_explicit(&f->flags, memory_order_relaxed);
}
bool file_can_read(struct file *f);
bool file_can_write(struct file *f);
bool file_nonblock(struct file *f);
/* The inode that the file was opened by: that of its name, which a stacked file system may back
 * with another. Locks, watches and attributes go by this one. NULL for a few anonymous kinds. */
static inline struct inode *file_inode(struct file *f)
{
	return f->path.dentry ? f->path.dentry->inode : f->inode;
}
static inline bool file_is_dir(struct file *f)
{
	return file_inode(f) && file_inode(f)->type == S_IFDIR;
}
/* lseek for files with a known size: SEEK_SET/CUR/END/DATA/HOLE over [0, size). Updates f->pos. */
int64_t file_seek_size(struct file *f, int64_t off, int whence, int64_t size);
/* Poll bits of f, POLLIN|POLLOUT when it has no op. */
uint32_t file_poll(struct file *f, struct poll_table *pt);

/* A plain inode for anonymous files (eventfd, epoll, sockets, pipes): mode as S_IFxxx|0600; its
 * st_ino is unique; owner ids from cred (may be NULL). Gives. */
int anon_inode_new(uint32_t mode, const struct cred *c, struct inode **out) MUST_CHECK;

/* Coarse real time for timestamps. */
struct timespec fs_now(void);

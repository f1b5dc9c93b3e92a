/*
 * A tree of generated files, the ground of /proc and /sys. A tree is described by constant rows; a
 * directory may in addition have entries that come and go (processes, descriptors). Every node is
 * named by its row and three numbers, so a node holds no object alive: the content callbacks look
 * their object up again each time and return -ESRCH or -ENOENT when it has gone.
 *
 * Locks: callbacks run with no pseudofs lock held, except lookup (the directory inode's mutex, as
 * for any inode_ops.lookup). They may sleep and take any lock inside that.
 */
#pragma once

#include "fs/vfs.h"

struct pseudo_row;

/* One node. Keys mean what the rows of the tree say, for example process id and generation. */
struct pseudo_ref {
	const struct pseudo_row *row;
	uint64_t key[3];
};

struct pseudo_dir_ops {
	/* The changing entry called `name`; -ENOENT when there is none. Static rows come first. */
	int (*lookup)(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out);
	/* The first changing entry whose cookie is >= *cookie: its name, node and own cookie.
	 * -ENOENT at the end. */
	int (*next)(const struct pseudo_ref *dir, uint64_t *cookie, char name[NAME_LEN_MAX + 1],
		    struct pseudo_ref *out);
};

/* What each kind of row fills in; the rest stays NULL. */
struct pseudo_row {
	const char *name;
	uint32_t mode; /* S_IFREG, S_IFDIR or S_IFLNK with permission bits */

	/* Regular: constant content, instead of show. */
	const char *text;
	/* Regular: the whole content. 0 or -errno of read(2). */
	int (*show)(const struct pseudo_ref *ref, struct fmt *out);
	/* Regular: the bytes of one write(2), NUL-terminated, at most PSEUDO_WRITE_MAX of them. 0
	 * or -errno; a success takes all bytes. */
	int (*store)(const struct pseudo_ref *ref, const char *text, size_t size);
	/* Regular: instead of show and store, reads and writes at a position (not generated text).
	 */
	ssize_t (*read_at)(const struct pseudo_ref *ref, struct iov_iter *it, uint64_t pos);
	ssize_t (*write_at)(const struct pseudo_ref *ref, struct iov_iter *it, uint64_t pos);
	/* Any file that opens: a check of its own before, 0 or -errno. */
	int (*may_open)(const struct pseudo_ref *ref, int flags, const struct cred *c);
	/* Whose content it is: an open file gives nothing any more once this has changed. NULL:
	 * always the same's. */
	uint64_t (*owner)(const struct pseudo_ref *ref);

	/* Links: text as readlink(2) gives it, NUL-terminated; its length or -errno. follow makes
	 * the link a magic one. */
	int (*readlink)(const struct pseudo_ref *ref, char *buf, size_t size);
	int (*follow)(const struct pseudo_ref *ref, struct path *out);

	/* Directories. */
	const struct pseudo_row *children; /* ends with a row without a name */
	const struct pseudo_dir_ops *dir;

	/* Changes owner, mode, size or times from the default (root, row mode, 0, now). */
	void (*attr)(const struct pseudo_ref *ref, struct fs_stat *st);
	/* Is the static row present under this parent? Rows that need a feature; NULL: yes. */
	bool (*present)(const struct pseudo_ref *ref);
};

#define PSEUDO_WRITE_MAX (PAGE_SIZE - 1)

struct pseudo_tree {
	const char *fs_name;
	int64_t magic;                 /* f_type of statfs(2) */
	const struct pseudo_row *root; /* S_IFDIR */
	uint64_t file_size;            /* st_size of regular files: 0 in proc, 4096 in sysfs */
	/* May a node found earlier still be used? NULL: always. */
	bool (*valid)(const struct pseudo_ref *ref);
};

/* Gives a mountable super block over the constant tree. 0 or -ENOMEM. */
int pseudofs_new(const struct pseudo_tree *tree, struct superblock **out) MUST_CHECK;
/* The node behind an inode of a pseudo file system, or NULL for another's inode. */
const struct pseudo_ref *pseudofs_ref(struct inode *ino);
/* st_ino of a node: the same each time. */
uint64_t pseudofs_ino(const struct pseudo_ref *ref);

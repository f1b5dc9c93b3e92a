/* The tree of mounts. One mount namespace for now; the structure allows more. */
#pragma once

#include "fs/vfs.h"

struct mount {
	struct ref ref;
	struct superblock *sb; /* [I] referenced */
	struct dentry *root;   /* [I] referenced: what shows at the mount point (bind mounts: any
				  dentry) */
	struct mount *parent;  /* [mount lock] NULL for the root or a detached mount */
	struct dentry *mountpoint; /* [mount lock] referenced, in parent */
	struct list children;      /* [mount lock] */
	struct list child_link;    /* [mount lock] */
	atomic_uint flags;  /* [a] MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME… */
	int id, parent_id;  /* [I] as in mountinfo */
	char *source;       /* [I] first column of /proc/mounts */
	bool attached;      /* [mount lock] in the namespace */
	bool expiry_mark;   /* [mount lock] MNT_EXPIRE was asked once */
	struct mount *copy; /* [mount lock] scratch of a recursive bind */
};

/* More mounts than this give -ENOSPC (fs.mount-max of Linux is 100000). */
#define MOUNT_MAX 10000

DECLARE_REF(mount);

/* The first mount of the namespace. Takes sb. Gives. */
int mount_new_root(struct superblock *sb, const char *source, unsigned flags, struct mount **out)
	MUST_CHECK;
/* Mounts sb (takes) at `where`; -EBUSY, -ENOTDIR. */
int mount_attach(struct path where, struct superblock *sb, const char *source, unsigned flags)
	MUST_CHECK;
/* Bind: shows `what` at `where`. */
int mount_bind(struct path where, struct path what, unsigned flags, bool recursive) MUST_CHECK;
/* umount2(2): the topmost mount at p; MNT_DETACH, UMOUNT_NOFOLLOW; -EINVAL when p is no mount
 * point, -EBUSY. */
int mount_detach(struct path p, int flags) MUST_CHECK;
int mount_remount(struct path p, unsigned flags) MUST_CHECK;
/* What covers p, all the way up (takes p, gives). And from the root of a mount down to its mount
 * point: false when there is nothing below. */
struct path mount_traverse(struct path p);
bool mount_follow_up(struct path *p);
bool mount_is_readonly(struct mount *m);
/* -EROFS when nothing on m may be changed: its own flag or the super block's. */
int mount_want_write(struct mount *m) MUST_CHECK;
/* A mount outside every tree, as the kernel keeps for what has no name (memfd). Takes sb. Gives. */
int mount_new_detached(struct superblock *sb, const char *source, unsigned flags,
		       struct mount **out) MUST_CHECK;
/* mount(2) with MS_MOVE: from must be the root of a mount. */
int mount_move(struct path from, struct path to) MUST_CHECK;
/* pivot_root(2): new_root (root of a mount) becomes the root of the tree, the old one shows at
 * put_old. */
int mount_pivot(struct path new_root, struct path put_old, struct path root) MUST_CHECK;
/* Is p below (or at) root? */
bool path_is_under(struct path p, struct path root);
/* Lines of /proc/PID/mounts and /proc/PID/mountinfo, as seen from root. */
void mount_show(struct path root, struct fmt *out, bool mountinfo);
/* A super block with this st_dev among the mounts of root's tree, referenced, or NULL (ustat(2)).
 */
struct superblock *mount_find_dev(struct path root, uint64_t dev) MUST_CHECK;

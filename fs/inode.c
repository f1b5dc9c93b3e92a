/*
 * Inodes: the embedded base, permission bits, and the plain inode behind anonymous files.
 * Attributes live in the file systems; the VFS asks for them by getattr.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "fs/hooks.h"
#include "fs/vfs.h"
#include "platform/base/alloc.h"

#define ANON_BLOCK_SIZE 4096

static void inode_free(struct inode *ino)
{
	BUG_ON(!list_empty(&ino->watches) || !list_empty(&ino->flocks));
	if (ino->ops->unused)
		ino->ops->unused(ino);
	mutex_fini(&ino->mu);
	mutex_fini(&ino->write_mu);
	if (ino->ops->free)
		ino->ops->free(ino);
	else
		mem_free(ino);
}

DEFINE_REF(inode);

void inode_init(struct inode *ino, struct superblock *sb, const struct inode_ops *ops,
		uint64_t number, uint32_t type)
{
	ref_init(&ino->ref);
	ino->ops = ops;
	ino->sb = sb;
	ino->ino = number;
	ino->type = type & S_IFMT;
	ino->rdev = 0;
	mutex_init(&ino->mu, RANK_INODE);
	mutex_init(&ino->write_mu, RANK_FILE_POS);
	list_init(&ino->posix_locks);
	list_init(&ino->flocks);
	list_init(&ino->watches);
	ino->ipc = NULL;
	atomic_init(&ino->writers, 0);
	atomic_init(&ino->readers, 0);
	atomic_init(&ino->no_setid, false);
	ino->dead = false;
	ino->linkable = false;
}

/* What capabilities grant when the mode bits do not: the DAC rules of capabilities(7). */
static bool granted_by_capability(const struct fs_stat *st, const struct cred *c, int mask)
{
	if (S_ISDIR(st->mode)) {
		if (!(mask & MAY_WRITE) && cred_capable(c, CAP_DAC_READ_SEARCH))
			return true;
		return cred_capable(c, CAP_DAC_OVERRIDE);
	}
	if (mask == MAY_READ && cred_capable(c, CAP_DAC_READ_SEARCH))
		return true;
	if (!(mask & MAY_EXEC) || (st->mode & 0111))
		return cred_capable(c, CAP_DAC_OVERRIDE);
	return false;
}

static int mode_permission(struct inode *ino, const struct cred *c, int mask)
{
	struct fs_stat st;
	int err = ino->ops->getattr(ino, &st);

	if (err)
		return err;
	uint32_t bits = st.mode;
	if (c->fsuid == st.uid)
		bits >>= 6;
	else if (cred_in_group(c, st.gid))
		bits >>= 3;
	if (((uint32_t)mask & ~bits & 7) == 0 || granted_by_capability(&st, c, mask))
		return 0;
	return -EACCES;
}

int inode_permission(struct inode *ino, const struct cred *c, int mask)
{
	mask &= MAY_READ | MAY_WRITE | MAY_EXEC;
	if ((mask & MAY_WRITE) && ino->sb->readonly &&
	    (ino->type == S_IFREG || ino->type == S_IFDIR || ino->type == S_IFLNK))
		return -EROFS;
	if (mask == 0)
		return 0;
	if (ino->ops->permission)
		return ino->ops->permission(ino, c, mask);
	return mode_permission(ino, c, mask);
}

void inode_new_owner(const struct fs_stat *dir, const struct cred *c, uint32_t *mode,
		     uint32_t *out_uid, uint32_t *out_gid)
{
	*out_uid = c->fsuid;
	*out_gid = c->fsgid;
	if (!(dir->mode & S_ISGID))
		return;
	*out_gid = dir->gid;
	if (S_ISDIR(*mode))
		*mode |= S_ISGID;
	else if ((*mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		 !cred_in_group(c, dir->gid) && !cred_capable(c, CAP_FSETID))
		*mode &= ~(uint32_t)S_ISGID;
}

bool inode_owner_or_capable(const struct fs_stat *st, const struct cred *c)
{
	return c->fsuid == st->uid || cred_capable(c, CAP_FOWNER);
}

int inode_get_write(struct inode *ino)
{
	int n = atomic_load(&ino->writers);

	do {
		if (n < 0)
			return -ETXTBSY;
	} while (!atomic_compare_exchange_weak(&ino->writers, &n, n + 1));
	return 0;
}

void inode_put_write(struct inode *ino)
{
	BUG_ON(atomic_fetch_sub(&ino->writers, 1) <= 0);
}

int inode_deny_write(struct inode *ino)
{
	int n = atomic_load(&ino->writers);

	do {
		if (n > 0)
			return -ETXTBSY;
	} while (!atomic_compare_exchange_weak(&ino->writers, &n, n - 1));
	return 0;
}

void inode_allow_write(struct inode *ino)
{
	BUG_ON(atomic_fetch_add(&ino->writers, 1) >= 0);
}

struct timespec fs_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return ts;
}

/* ---- anonymous inodes --------------------------------------------------------------------- */

struct anon_inode {
	struct inode base;
	uint32_t mode, uid, gid; /* [base.mu] */
	struct timespec time;    /* [I] all three times */
};

static int anon_statfs(struct superblock *sb UNUSED, struct fs_statfs *out)
{
	*out = (struct fs_statfs){ .type = 0x09041934 /* ANON_INODE_FS_MAGIC */,
				   .bsize = ANON_BLOCK_SIZE,
				   .frsize = ANON_BLOCK_SIZE,
				   .namelen = NAME_LEN_MAX };
	return 0;
}

static const struct sb_ops anon_sb_ops = { .statfs = anon_statfs };
/* Never freed: anonymous inodes have no mount that would keep it. */
static struct superblock anon_sb = {
	.ref = { 1 },
	.ops = &anon_sb_ops,
	.fs_name = "anon_inodefs",
	.dev = 15,
	.rename_mu = MUTEX_INIT(RANK_RENAME),
};
static _Atomic uint64_t next_anon_ino = 4096;

static struct anon_inode *to_anon(struct inode *ino)
{
	return container_of(ino, struct anon_inode, base);
}

static int anon_getattr(struct inode *ino, struct fs_stat *out)
{
	struct anon_inode *a = to_anon(ino);

	mutex_lock(&ino->mu);
	*out = (struct fs_stat){ .dev = anon_sb.dev,
				 .ino = ino->ino,
				 .mode = a->mode,
				 .nlink = 1,
				 .uid = a->uid,
				 .gid = a->gid,
				 .blksize = ANON_BLOCK_SIZE,
				 .atime = a->time,
				 .mtime = a->time,
				 .ctime = a->time };
	mutex_unlock(&ino->mu);
	return 0;
}

static int anon_setattr(struct inode *ino, const struct iattr *attr)
{
	struct anon_inode *a = to_anon(ino);

	if (attr->valid & ATTR_SIZE)
		return -EINVAL;
	if (attr->valid & ATTR_MODE)
		a->mode = (a->mode & S_IFMT) | (attr->mode & 07777);
	if (attr->valid & ATTR_UID)
		a->uid = attr->uid;
	if (attr->valid & ATTR_GID)
		a->gid = attr->gid;
	return 0;
}

static void anon_free(struct inode *ino)
{
	mem_free(to_anon(ino));
}

static const struct inode_ops anon_inode_ops = {
	.getattr = anon_getattr,
	.setattr = anon_setattr,
	.free = anon_free,
};

int anon_inode_new(uint32_t mode, const struct cred *c, struct inode **out)
{
	struct anon_inode *a = mem_zalloc(sizeof(*a));

	if (!a)
		return -ENOMEM;
	inode_init(&a->base, &anon_sb, &anon_inode_ops, atomic_fetch_add(&next_anon_ino, 1), mode);
	a->mode = mode;
	a->uid = c ? c->fsuid : 0;
	a->gid = c ? c->fsgid : 0;
	a->time = fs_now();
	*out = &a->base;
	return 0;
}

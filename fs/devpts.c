/*
 * The devpts file system: see pty.h. A directory with "ptmx" and one node per terminal. Attributes
 * live in the table's entries, since inodes come and go with names in the dentry cache.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fs/pty.h"
#include "platform/base/alloc.h"

#define DEVPTS_MAGIC 0x1cd1
#define TTY_GID 5 /* as distributions mount devpts; glibc's grantpt expects nothing else */
#define INO_ROOT 1
#define INO_PTMX 2
#define INO_FIRST 3
#define ROOT_MODE (S_IFDIR | 0755)
#define PTMX_MODE (S_IFCHR | 0666)

struct pts_entry {
	struct ref ref;
	int index;               /* [I] */
	struct tty *tty;         /* [I] referenced */
	uint32_t mode, uid, gid; /* [table_mu] */
	struct timespec time;    /* [table_mu] */
};

struct pts_inode {
	struct inode inode;
	struct pts_entry *entry; /* [I] referenced; NULL for the root and ptmx */
};

static struct mutex table_mu = MUTEX_INIT(RANK_HASH);
static struct pts_entry *table[PTY_MAX]; /* [table_mu] each referenced */
static int table_count;                  /* [table_mu] */

static const struct inode_ops pts_root_ops;
static const struct inode_ops pts_node_ops;
static const struct file_ops pts_dir_ops;

static void pts_entry_put(struct pts_entry *e)
{
	if (!e || !ref_dec(&e->ref))
		return;
	tty_put(e->tty);
	mem_free(e);
}

/* Referenced, or NULL. */
static struct pts_entry *entry_find(unsigned index)
{
	struct pts_entry *e = NULL;

	mutex_lock(&table_mu);
	if (index < PTY_MAX && table[index]) {
		e = table[index];
		ref_inc(&e->ref);
	}
	mutex_unlock(&table_mu);
	return e;
}

int pts_register(struct tty *t, uint32_t uid, uint32_t mode)
{
	struct pts_entry *e = mem_zalloc(sizeof(*e));
	int index = 0;

	if (!e)
		return -ENOMEM;
	ref_init(&e->ref);
	*e = (struct pts_entry){
		.ref = e->ref, .mode = S_IFCHR | mode, .uid = uid, .gid = TTY_GID, .time = fs_now()
	};
	mutex_lock(&table_mu);
	while (index < PTY_MAX && table[index])
		index++;
	if (index < PTY_MAX) {
		e->index = index;
		e->tty = tty_get(t);
		t->rdev = makedev(PTS_MAJOR, index);
		table[index] = e;
		table_count++;
	}
	mutex_unlock(&table_mu);
	if (index < PTY_MAX)
		return index;
	mem_free(e);
	return -ENOSPC;
}

void pts_unregister(int index)
{
	mutex_lock(&table_mu);
	struct pts_entry *e = table[index];
	table[index] = NULL;
	table_count -= e != NULL;
	mutex_unlock(&table_mu);
	pts_entry_put(e);
}

int pts_count(void)
{
	mutex_lock(&table_mu);
	int n = table_count;
	mutex_unlock(&table_mu);
	return n;
}

int pts_open(struct inode *ino, int flags, struct file **out)
{
	struct pts_entry *e = entry_find(minor(ino->rdev));

	if (!e)
		return -EIO;
	int err = tty_open(e->tty, inode_get(ino), flags, out);
	pts_entry_put(e);
	return err;
}

/* ---- inodes ------------------------------------------------------------------------------- */

static struct pts_entry *entry_of(struct inode *ino)
{
	return container_of(ino, struct pts_inode, inode)->entry;
}

/* Takes e. */
static int pts_inode_new(struct superblock *sb, struct pts_entry *e, uint64_t number, uint32_t type,
			 struct inode **out)
{
	struct pts_inode *pi = mem_zalloc(sizeof(*pi));

	if (!pi) {
		pts_entry_put(e);
		return -ENOMEM;
	}
	inode_init(&pi->inode, sb, type == S_IFDIR ? &pts_root_ops : &pts_node_ops, number, type);
	pi->inode.rdev = e ? e->tty->rdev : makedev(5, TTYAUX_PTMX);
	pi->entry = e;
	*out = &pi->inode;
	return 0;
}

/* A decimal number without leading zeros, or -1. */
static int parse_index(const char *name)
{
	int value = 0;

	if (!*name || (name[0] == '0' && name[1]))
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9' || value >= PTY_MAX)
			return -1;
		value = value * 10 + (*name - '0');
	}
	return value;
}

static int pts_lookup(struct inode *dir, const char *name, struct inode **out)
{
	if (strcmp(name, "ptmx") == 0)
		return pts_inode_new(dir->sb, NULL, INO_PTMX, S_IFCHR, out);
	int index = parse_index(name);
	struct pts_entry *e = index < 0 ? NULL : entry_find((unsigned)index);
	if (!e)
		return -ENOENT;
	return pts_inode_new(dir->sb, e, (uint64_t)index + INO_FIRST, S_IFCHR, out);
}

static int pts_revalidate(struct dentry *d)
{
	if (!d->inode)
		return 0;
	struct pts_entry *mine = entry_of(d->inode);
	if (!mine)
		return 1;
	mutex_lock(&table_mu);
	bool same = table[mine->index] == mine;
	mutex_unlock(&table_mu);
	return same;
}

static int pts_getattr(struct inode *ino, struct fs_stat *out)
{
	struct pts_entry *e = entry_of(ino);

	*out = (struct fs_stat){
		.dev = ino->sb->dev,
		.ino = ino->ino,
		.rdev = ino->type == S_IFCHR ? ino->rdev : 0,
		.mode = ino->type == S_IFDIR ? ROOT_MODE : PTMX_MODE,
		.nlink = ino->type == S_IFDIR ? 2 : 1,
		.blksize = 1024,
	};
	mutex_lock(&table_mu);
	if (e) {
		out->mode = e->mode;
		out->uid = e->uid;
		out->gid = e->gid;
		out->atime = out->mtime = out->ctime = e->time;
	}
	mutex_unlock(&table_mu);
	if (!e)
		out->atime = out->mtime = out->ctime = fs_now();
	return 0;
}

static int pts_setattr(struct inode *ino, const struct iattr *attr)
{
	struct pts_entry *e = entry_of(ino);

	if (!e)
		return -EPERM;
	mutex_lock(&table_mu);
	if (attr->valid & ATTR_MODE)
		e->mode = S_IFCHR | (attr->mode & 07777);
	if (attr->valid & ATTR_UID)
		e->uid = attr->uid;
	if (attr->valid & ATTR_GID)
		e->gid = attr->gid;
	if (attr->valid & (ATTR_MTIME | ATTR_MTIME_NOW))
		e->time = attr->valid & ATTR_MTIME ? attr->mtime : fs_now();
	mutex_unlock(&table_mu);
	return 0;
}

static void pts_inode_free(struct inode *ino)
{
	struct pts_inode *pi = container_of(ino, struct pts_inode, inode);

	pts_entry_put(pi->entry);
	mem_free(pi);
}

static void pts_dir_release(struct file *f)
{
	mem_free(f);
}

static int pts_open_dir(struct inode *ino, int flags, const struct cred *c UNUSED,
			struct file **out)
{
	struct file *f = mem_zalloc(sizeof(*f));

	if (!f)
		return -ENOMEM;
	file_init(f, &pts_dir_ops, inode_get(ino), (unsigned)flags);
	*out = f;
	return 0;
}

static const struct inode_ops pts_root_ops = {
	.lookup = pts_lookup,
	.getattr = pts_getattr,
	.setattr = pts_setattr,
	.open = pts_open_dir,
	.revalidate = pts_revalidate,
	.free = pts_inode_free,
};

static const struct inode_ops pts_node_ops = {
	.getattr = pts_getattr,
	.setattr = pts_setattr,
	.free = pts_inode_free,
};

/* ---- the directory ------------------------------------------------------------------------ */

/* Positions: ".", "..", "ptmx", then the terminals by number. */
static int emit_fixed(struct dir_sink *sink, int64_t *pos)
{
	static const struct {
		const char *name;
		uint64_t ino;
		unsigned type;
	} fixed[] = { { ".", INO_ROOT, DT_DIR },
		      { "..", INO_ROOT, DT_DIR },
		      { "ptmx", INO_PTMX, DT_CHR } };

	for (; *pos < (int64_t)ARRAY_SIZE(fixed); ++*pos)
		if (sink->emit(sink, fixed[*pos].name, fixed[*pos].ino, fixed[*pos].type, *pos + 1))
			return 1;
	return 0;
}

static bool index_used(int64_t index)
{
	mutex_lock(&table_mu);
	bool used = table[index] != NULL;
	mutex_unlock(&table_mu);
	return used;
}

static int pts_readdir(struct file *f UNUSED, struct dir_sink *sink, int64_t *pos)
{
	char name[16];
	struct fmt out;

	if (*pos < 0 || emit_fixed(sink, pos))
		return 0;
	for (; *pos < INO_FIRST + PTY_MAX; ++*pos) {
		int64_t index = *pos - INO_FIRST;
		if (!index_used(index))
			continue;
		fmt_init_fixed(&out, name, sizeof(name));
		fmt_printf(&out, "%d", (int)index);
		if (sink->emit(sink, name, (uint64_t)index + INO_FIRST, DT_CHR, *pos + 1))
			return 0;
	}
	return 0;
}

static int64_t pts_dir_seek(struct file *f, int64_t off, int whence)
{
	return file_seek_size(f, off, whence, INO_FIRST + PTY_MAX);
}

static const struct file_ops pts_dir_ops = {
	.seek = pts_dir_seek,
	.readdir = pts_readdir,
	.release = pts_dir_release,
};

/* ---- super block -------------------------------------------------------------------------- */

static int devpts_statfs(struct superblock *sb UNUSED, struct fs_statfs *out)
{
	*out = (struct fs_statfs){
		.type = DEVPTS_MAGIC, .bsize = 4096, .frsize = 4096, .namelen = NAME_LEN_MAX
	};
	return 0;
}

static void devpts_options(struct superblock *sb UNUSED, struct fmt *out)
{
	fmt_printf(out, ",gid=%d,mode=620,ptmxmode=666", TTY_GID);
}

static const struct sb_ops devpts_sb_ops = {
	.statfs = devpts_statfs,
	.show_options = devpts_options,
};

int devpts_new(struct superblock **out)
{
	struct superblock *sb;
	struct inode *root;

	int err = superblock_new(&devpts_sb_ops, "devpts", NULL, &sb);
	if (err)
		return err;
	err = pts_inode_new(sb, NULL, INO_ROOT, S_IFDIR, &root);
	if (!err)
		err = superblock_set_root(sb, root);
	if (err) {
		superblock_put(sb);
		return err;
	}
	*out = sb;
	return 0;
}

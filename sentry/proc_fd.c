/* Links out of /proc/PID: descriptors, cwd, root, exe, namespaces; and fdinfo. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "fs/dcache.h"
#include "fs/mount.h"
#include "platform/base/alloc.h"
#include "sentry/proc_priv.h"

#define LINK_MODE(f) (S_IFLNK | (file_can_read(f) ? 0500u : 0u) | (file_can_write(f) ? 0300u : 0u))
#define NSFS_MAGIC 0x6e736673

/* ---- descriptors -------------------------------------------------------------------------- */

/* The descriptor table of a node's task, referenced, or NULL. */
static struct fdtable *files_of(const struct pseudo_ref *ref)
{
	struct task *t = proc_task(ref);
	struct fdtable *files = NULL;

	if (!t)
		return NULL;
	mutex_lock(&t->mu);
	if (t->files)
		files = fdtable_get(t->files);
	mutex_unlock(&t->mu);
	task_put(t);
	return files;
}

/* The file of a node below fd/ or fdinfo/, referenced. */
static int file_of_node(const struct pseudo_ref *ref, struct file **out)
{
	int err = proc_may_look(ref);
	struct fdtable *files = err ? NULL : files_of(ref);

	if (!files)
		return err ? err : -ENOENT;
	*out = fd_get(files, (int)ref->key[2]);
	fdtable_put(files);
	return *out ? 0 : -ENOENT;
}

/* What the link of a file says; its length or -errno. */
static int describe_file(struct file *f, char *buf, size_t size)
{
	struct fmt text;

	if (f->path.dentry && !f->ops->describe) {
		struct path root = proc_current_root();
		int n = path_name(f->path, root, buf, size);
		path_put(root);
		return n;
	}
	fmt_init_fixed(&text, buf, size);
	if (f->ops->describe)
		f->ops->describe(f, &text);
	else
		fmt_puts(&text, "anon_inode:[unknown]");
	return text.overflow ? -ENAMETOOLONG : (int)text.len;
}

static int fd_readlink(const struct pseudo_ref *ref, char *buf, size_t size)
{
	struct file *f;
	int err = file_of_node(ref, &f);

	if (err)
		return err;
	int n = describe_file(f, buf, size);
	file_put(f);
	return n;
}

static int fd_follow(const struct pseudo_ref *ref, struct path *out)
{
	struct file *f;
	int err = file_of_node(ref, &f);

	if (err)
		return err;
	err = file_path(f, out);
	file_put(f);
	return err;
}

static void fd_attr(const struct pseudo_ref *ref, struct fs_stat *st)
{
	struct file *f;

	proc_task_attr(ref, st);
	st->size = 64;
	if (file_of_node(ref, &f))
		return;
	st->mode = LINK_MODE(f);
	file_put(f);
}

static int show_fdinfo(const struct pseudo_ref *ref, struct fmt *out)
{
	struct file *f;
	int err = file_of_node(ref, &f);
	uint64_t ino = 0;
	int64_t pos;

	if (err)
		return err;
	struct fdtable *files = files_of(ref);
	int cloexec = files ? fd_get_cloexec(files, (int)ref->key[2]) : 0;
	if (files)
		fdtable_put(files);
	struct inode *inode = file_inode(f);
	if (inode)
		ino = inode->ino;
	/* A read of this very file holds its own position's lock, and no other here. */
	pos = f->pos;
	fmt_printf(out, "pos:\t%lld\nflags:\t0%o\nmnt_id:\t%d\nino:\t%llu\n", (long long)pos,
		   file_flags(f) | (cloexec > 0 ? (unsigned)O_CLOEXEC : 0u),
		   f->path.mnt ? f->path.mnt->id : 15, (unsigned long long)ino);
	if (f->ops->show_fdinfo)
		f->ops->show_fdinfo(f, out);
	file_put(f);
	return 0;
}

static const struct pseudo_row fd_row = {
	.name = "",
	.mode = S_IFLNK | 0700,
	.readlink = fd_readlink,
	.follow = fd_follow,
	.attr = fd_attr,
};

static const struct pseudo_row fdinfo_row = {
	.name = "",
	.mode = S_IFREG | 0444,
	.show = show_fdinfo,
	.attr = proc_task_attr,
};

static int fd_dir_lookup(const struct pseudo_ref *dir, const char *name,
			 const struct pseudo_row *row, struct pseudo_ref *out)
{
	int fd = proc_parse_number(name);
	struct file *f;

	if (fd < 0)
		return -ENOENT;
	*out = *dir;
	out->row = row;
	out->key[2] = (uint64_t)fd;
	int err = file_of_node(out, &f);
	if (!err)
		file_put(f);
	return err == -EACCES ? err : err ? -ENOENT : 0;
}

static int fd_dir_next(const struct pseudo_ref *dir, uint64_t *cookie, const struct pseudo_row *row,
		       char name[NAME_LEN_MAX + 1], struct pseudo_ref *out)
{
	struct fdtable *files = files_of(dir);
	struct fmt text;

	if (!files)
		return -ENOENT;
	int fd = *cookie > INT32_MAX ? -1 : fd_next(files, (int)*cookie);
	fdtable_put(files);
	if (fd < 0)
		return -ENOENT;
	*cookie = (uint64_t)fd;
	*out = *dir;
	out->row = row;
	out->key[2] = (uint64_t)fd;
	fmt_init_fixed(&text, name, NAME_LEN_MAX + 1);
	fmt_printf(&text, "%d", fd);
	return 0;
}

static int fd_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out)
{
	return fd_dir_lookup(dir, name, &fd_row, out);
}

static int fd_dir_read(const struct pseudo_ref *dir, uint64_t *cookie, char name[NAME_LEN_MAX + 1],
		       struct pseudo_ref *out)
{
	int err = proc_may_look(dir);
	return err ? err : fd_dir_next(dir, cookie, &fd_row, name, out);
}

static int fdinfo_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out)
{
	return fd_dir_lookup(dir, name, &fdinfo_row, out);
}

static int fdinfo_dir_read(const struct pseudo_ref *dir, uint64_t *cookie,
			   char name[NAME_LEN_MAX + 1], struct pseudo_ref *out)
{
	int err = proc_may_look(dir);
	return err ? err : fd_dir_next(dir, cookie, &fdinfo_row, name, out);
}

const struct pseudo_dir_ops proc_fd_dir = { .lookup = fd_lookup, .next = fd_dir_read };
const struct pseudo_dir_ops proc_fdinfo_dir = { .lookup = fdinfo_lookup, .next = fdinfo_dir_read };

/* ---- cwd, root, exe ----------------------------------------------------------------------- */

enum which_path { PATH_CWD, PATH_ROOT, PATH_EXE };

/* Gives the path; -ENOENT for a process that has none any more. */
static int exe_path(struct task *t, struct path *out)
{
	struct mm *mm = mm_use_of(t);

	if (!mm)
		return -ENOENT;
	struct file *exe = mm_exe(mm);
	mm_unuse(mm);
	if (!exe)
		return -ENOENT;
	int err = file_path(exe, out);
	file_put(exe);
	return err;
}

static int task_path(const struct pseudo_ref *ref, enum which_path which, struct path *out)
{
	int err = proc_may_look(ref);
	struct task *t = err ? NULL : proc_task(ref);
	struct fs_ctx *fs = NULL;

	if (!t)
		return err ? err : -ESRCH;
	if (which == PATH_EXE) {
		err = exe_path(t, out);
		task_put(t);
		return err;
	}
	mutex_lock(&t->mu);
	if (t->fs)
		fs = fs_ctx_get(t->fs);
	mutex_unlock(&t->mu);
	task_put(t);
	if (!fs)
		return -ENOENT;
	mutex_lock(&fs->mu);
	*out = path_get(which == PATH_CWD ? fs->cwd : fs->root);
	mutex_unlock(&fs->mu);
	fs_ctx_put(fs);
	return 0;
}

static int task_readlink(const struct pseudo_ref *ref, enum which_path which, char *buf,
			 size_t size)
{
	struct path p;
	int n = task_path(ref, which, &p);

	if (n)
		return n;
	struct path root = proc_current_root();
	n = path_name(p, root, buf, size);
	path_put(root);
	path_put(p);
	return n;
}

int proc_readlink_cwd(const struct pseudo_ref *ref, char *buf, size_t size)
{
	return task_readlink(ref, PATH_CWD, buf, size);
}

int proc_follow_cwd(const struct pseudo_ref *ref, struct path *out)
{
	return task_path(ref, PATH_CWD, out);
}

int proc_readlink_root(const struct pseudo_ref *ref, char *buf, size_t size)
{
	return task_readlink(ref, PATH_ROOT, buf, size);
}

int proc_follow_root(const struct pseudo_ref *ref, struct path *out)
{
	return task_path(ref, PATH_ROOT, out);
}

int proc_readlink_exe(const struct pseudo_ref *ref, char *buf, size_t size)
{
	return task_readlink(ref, PATH_EXE, buf, size);
}

int proc_follow_exe(const struct pseudo_ref *ref, struct path *out)
{
	return task_path(ref, PATH_EXE, out);
}

/* ---- namespaces --------------------------------------------------------------------------- */

/* There is one of each kind, with the number that Linux gives to the first. */
static const struct {
	const char *name, *kind;
	unsigned number;
} namespaces[] = {
	{ "cgroup", "cgroup", 4026531835u }, { "ipc", "ipc", 4026531839u },
	{ "mnt", "mnt", 4026531841u },       { "net", "net", 4026531840u },
	{ "pid", "pid", 4026531836u },       { "pid_for_children", "pid", 4026531836u },
	{ "time", "time", 4026531834u },     { "time_for_children", "time", 4026531834u },
	{ "user", "user", 4026531837u },     { "uts", "uts", 4026531838u },
};

static int ns_readlink(const struct pseudo_ref *ref, char *buf, size_t size)
{
	struct fmt text;
	size_t i = ref->key[2];
	int err = proc_may_look(ref);

	if (err)
		return err;
	fmt_init_fixed(&text, buf, size);
	fmt_printf(&text, "%s:[%u]", namespaces[i].kind, namespaces[i].number);
	return text.overflow ? -ENAMETOOLONG : (int)text.len;
}

/* The file behind a namespace link: only its identity matters. */
static void nsfs_attr(const struct pseudo_ref *ref, struct fs_stat *st)
{
	st->ino = namespaces[ref->key[2]].number;
}

static int nsfs_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out);

static const struct pseudo_row nsfs_file_row = {
	.name = "",
	.mode = S_IFREG | 0444,
	.text = "",
	.attr = nsfs_attr,
};
static const struct pseudo_dir_ops nsfs_dir_ops = { .lookup = nsfs_lookup };
static const struct pseudo_row nsfs_root_row = { .name = "",
						 .mode = S_IFDIR | 0555,
						 .dir = &nsfs_dir_ops };
static const struct pseudo_tree nsfs_tree = {
	.fs_name = "nsfs",
	.magic = NSFS_MAGIC,
	.root = &nsfs_root_row,
};

static int nsfs_lookup(const struct pseudo_ref *dir UNUSED, const char *name,
		       struct pseudo_ref *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (strcmp(name, namespaces[i].name) == 0) {
			*out = (struct pseudo_ref){ .row = &nsfs_file_row, .key = { 0, 0, i } };
			return 0;
		}
	return -ENOENT;
}

static struct mutex nsfs_mu = MUTEX_INIT(RANK_MOUNT);
static struct mount *nsfs_mount; /* [nsfs_mu] made at the first use, kept for ever */

/* Two first users at a time may each make one; the loser's is put. */
static int nsfs_mount_get(struct mount **out)
{
	struct superblock *sb;
	struct mount *m;

	mutex_lock(&nsfs_mu);
	m = nsfs_mount;
	mutex_unlock(&nsfs_mu);
	if (!m) {
		int err = pseudofs_new(&nsfs_tree, &sb);
		if (!err)
			err = mount_new_detached(sb, "nsfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, &m);
		if (err)
			return err;
		mutex_lock(&nsfs_mu);
		struct mount *mine = m;
		if (nsfs_mount)
			m = nsfs_mount;
		else
			nsfs_mount = m;
		mutex_unlock(&nsfs_mu);
		if (m != mine)
			mount_put(mine);
	}
	*out = mount_get(m);
	return 0;
}

static int ns_follow(const struct pseudo_ref *ref, struct path *out)
{
	char text[64];
	struct inode *ino;
	struct mount *m;
	int err = ns_readlink(ref, text, sizeof(text));

	if (err < 0)
		return err;
	err = nsfs_mount_get(&m);
	if (err)
		return err;
	struct inode *root = m->sb->root->inode;
	mutex_lock(&root->mu);
	err = root->ops->lookup(root, namespaces[ref->key[2]].name, &ino);
	mutex_unlock(&root->mu);
	if (!err) {
		out->mnt = m;
		out->dentry = dentry_new(m->sb, m->sb->root, text, ino);
		err = out->dentry ? 0 : -ENOMEM;
	}
	if (err)
		mount_put(m);
	return err;
}

static const struct pseudo_row ns_row = {
	.name = "",
	.mode = S_IFLNK | 0777,
	.readlink = ns_readlink,
	.follow = ns_follow,
	.attr = proc_task_attr,
};

static void ns_ref(const struct pseudo_ref *dir, size_t i, struct pseudo_ref *out)
{
	*out = *dir;
	out->row = &ns_row;
	out->key[2] = i;
}

static int ns_lookup(const struct pseudo_ref *dir, const char *name, struct pseudo_ref *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (strcmp(name, namespaces[i].name) == 0) {
			ns_ref(dir, i, out);
			return 0;
		}
	return -ENOENT;
}

static int ns_next(const struct pseudo_ref *dir, uint64_t *cookie, char name[NAME_LEN_MAX + 1],
		   struct pseudo_ref *out)
{
	struct fmt text;

	if (*cookie >= ARRAY_SIZE(namespaces))
		return -ENOENT;
	ns_ref(dir, *cookie, out);
	fmt_init_fixed(&text, name, NAME_LEN_MAX + 1);
	fmt_puts(&text, namespaces[*cookie].name);
	return 0;
}

const struct pseudo_dir_ops proc_ns_dir = { .lookup = ns_lookup, .next = ns_next };

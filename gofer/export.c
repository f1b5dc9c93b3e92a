/*
 * The trees that are shown, and the handles to what is in them.
 *
 * Every object is reached by openat2 from a handle's descriptor with one name that is neither "."
 * nor
 * "..", under RESOLVE_BENEATH and without symbolic links: the kernel itself refuses to leave the
 * directory, so no race of renames or links matters. A handle never changes what it denotes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "gofer/serve.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "platform/host/host_path.h"

#define FID_INDEX_BITS 20
#define FID_INDEX_MASK ((1u << FID_INDEX_BITS) - 1)
#define GENERATION_MASK 0xfffu

/* ---- what is never shown ------------------------------------------------------------------ */

/* File systems that are windows into the host's kernel: statfs(2), linux/magic.h. */
static const uint32_t kernel_fs[] = {
	0x9fa0,     /* proc */
	0x62656572, /* sysfs */
	0x27e0eb,   /* cgroup */
	0x63677270, /* cgroup2 */
	0x64626720, /* debugfs */
	0x74726163, /* tracefs */
	0x73636673, /* securityfs */
	0xf97cff8c, /* selinuxfs */
	0x43415d53, /* smackfs */
	0x5a3c69f0, /* apparmorfs */
	0x1cd1,     /* devpts */
	0xcafe4a11, /* bpf */
	0x6165676c, /* pstore */
	0xde5e81e4, /* efivarfs */
	0x62656570, /* configfs */
	0x42494e4d, /* binfmt_misc */
	0x19800202, /* mqueue */
	0x65735543, /* fusectl */
	0x6e736673, /* nsfs */
	0x7655821,  /* resctrl */
	0x6c6f6f70, /* binderfs */
};

static bool is_kernel_fs(int fd)
{
	struct statfs s;

	if (host_statfs_fd(fd, &s) != 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kernel_fs); i++)
		if ((uint32_t)s.f_type == kernel_fs[i])
			return true;
	return false;
}

static uint64_t dev_of(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

static bool is_emptied(const struct gofer *g, const struct statx *st)
{
	for (size_t i = 0; i < ARRAY_SIZE(g->emptied); i++)
		if (g->emptied[i][1] == st->stx_ino && g->emptied[i][0] == dev_of(st))
			return true;
	return false;
}

static void note_emptied(struct gofer *g)
{
	static const char *const paths[] = { "/proc", "/sys", "/dev" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct statx st;
		int fd = host_open_config_path(paths[i], O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (host_statx_fd(fd, &st) == 0) {
			g->emptied[i][0] = dev_of(&st);
			g->emptied[i][1] = st.stx_ino;
		}
		host_close(fd);
	}
}

int gofer_init(struct gofer *g, const struct gofer_config *cfg, const int *root_fds,
	       uint32_t fid_max)
{
	*g = (struct gofer){ .fid_max = MIN(fid_max, FID_INDEX_MASK) };
	g->roots = mem_calloc(cfg->export_count, sizeof(*g->roots));
	if (!g->roots) {
		for (size_t i = 0; i < cfg->export_count; i++)
			host_close(root_fds[i]);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cfg->export_count; i++)
		g->roots[i] = (struct gofer_root){ root_fds[i], cfg->exports[i].writable };
	g->root_count = cfg->export_count;
	note_emptied(g);
	int err = hidden_init(&g->hidden, cfg->hidden, cfg->hidden_count);
	if (!err)
		err = hidden_add_absent(&g->hidden, cfg->absent, cfg->absent_count);
	if (err)
		gofer_fini(g);
	return err;
}

void gofer_fini(struct gofer *g)
{
	for (uint32_t i = 0; i < g->fid_count; i++) {
		if (g->fids[i].fd < 0)
			continue;
		fid_close_dir(g, &g->fids[i]);
		host_close(g->fids[i].fd);
	}
	mem_free(g->fids);
	for (size_t i = 0; i < g->root_count; i++)
		host_close(g->roots[i].fd);
	mem_free(g->roots);
	hidden_fini(&g->hidden);
	*g = (struct gofer){ 0 };
}

/* ---- handles ------------------------------------------------------------------------------ */

static int fid_reserve(struct gofer *g)
{
	/* A listing needs a descriptor more; both kinds share the limit. */
	if (g->live_fids + g->open_dirs >= g->fid_max)
		return -EMFILE;
	if (g->free_fid || g->fid_count < g->fid_cap)
		return 0;
	uint32_t cap = g->fid_cap ? MIN(g->fid_cap * 2, g->fid_max) : MIN(256u, g->fid_max);
	struct gofer_fid *fids = mem_realloc(g->fids, cap * sizeof(*fids));
	if (!fids)
		return -ENOMEM;
	g->fids = fids;
	g->fid_cap = cap;
	return 0;
}

int fid_new(struct gofer *g, int fd, uint16_t export, const struct statx *st, uint32_t *out_id)
{
	uint32_t i;
	uint16_t generation = 1;

	int err = fid_reserve(g);
	if (err) {
		host_close(fd);
		return err;
	}
	if (g->free_fid) {
		i = g->free_fid - 1;
		g->free_fid = g->fids[i].next_free;
		generation = (g->fids[i].generation + 1) & GENERATION_MASK;
	} else {
		i = g->fid_count++;
	}
	g->fids[i] = (struct gofer_fid){
		.fd = fd,
		.dir_fd = -1,
		.dev = dev_of(st),
		.ino = st->stx_ino,
		.type = st->stx_mode & S_IFMT,
		.generation = generation,
		.export = export,
	};
	g->live_fids++;
	*out_id = (i + 1) | (uint32_t)generation << FID_INDEX_BITS;
	return 0;
}

struct gofer_fid *fid_get(struct gofer *g, uint32_t id)
{
	uint32_t i = (id & FID_INDEX_MASK) - 1;

	if ((id & FID_INDEX_MASK) == 0 || i >= g->fid_count)
		return NULL;
	struct gofer_fid *f = &g->fids[i];
	return f->fd >= 0 && f->generation == id >> FID_INDEX_BITS ? f : NULL;
}

void fid_close_dir(struct gofer *g, struct gofer_fid *f)
{
	if (f->dir_fd < 0)
		return;
	host_close(f->dir_fd);
	f->dir_fd = -1;
	g->open_dirs--;
}

void fid_close(struct gofer *g, uint32_t id)
{
	struct gofer_fid *f = fid_get(g, id);

	if (!f)
		return;
	fid_close_dir(g, f);
	host_close(f->fd);
	f->fd = -1;
	g->live_fids--;
	f->next_free = g->free_fid;
	g->free_fid = (uint32_t)(f - g->fids) + 1;
}

/* ---- walking ------------------------------------------------------------------------------ */

static int open_and_stat(int dir, const char *name, int *out_fd, struct statx *out)
{
	int fd = host_open_beneath(dir, name, O_PATH, 0);

	if (fd < 0)
		return fd;
	int err = host_statx_fd(fd, out);
	if (err) {
		host_close(fd);
		return err;
	}
	*out_fd = fd;
	return 0;
}

/* Internal: there is something, but it is not to be known. */
#define EHIDDEN 4000

/* Opens what is visible under that name; *out_node and *out_empty say more about it. */
static int open_visible(struct gofer *g, const struct gofer_fid *dir, const char *name, int *out_fd,
			struct statx *st, struct hidden_node **out_node, bool *out_empty)
{
	int fd;

	if (dir->type != S_IFDIR)
		return -ENOTDIR;
	if (dir->empty)
		return -ENOENT;
	int err = open_and_stat(dir->fd, name, &fd, st);
	if (err)
		return err;
	*out_node = hidden_find(&g->hidden, dir->hidden, name, dev_of(st), st->stx_ino, fd);
	*out_empty = is_emptied(g, st) || (dev_of(st) != dir->dev && is_kernel_fs(fd));
	if ((*out_node && (*out_node)->terminal) || (*out_empty && !S_ISDIR(st->stx_mode))) {
		host_close(fd);
		return -EHIDDEN;
	}
	*out_fd = fd;
	return 0;
}

int export_step(struct gofer *g, uint32_t dir, const char *name, uint32_t *out_id,
		struct statx *out)
{
	struct gofer_fid *d = fid_get(g, dir);
	struct hidden_node *node;
	bool empty;
	int fd;

	if (!d)
		return -ESTALE;
	uint16_t export = d->export;
	int err = open_visible(g, d, name, &fd, out, &node, &empty);
	if (!err)
		err = fid_new(g, fd, export, out, out_id); /* may move d */
	if (err)
		return err == -EHIDDEN ? -ENOENT : err;
	struct gofer_fid *f = fid_get(g, *out_id);
	f->hidden = node;
	f->empty = empty;
	return 0;
}

int export_check_name(struct gofer *g, const struct gofer_fid *dir, const char *name,
		      bool *out_exists)
{
	struct hidden_node *node;
	struct statx st;
	bool empty;
	int fd;

	*out_exists = false;
	/* What does not exist cannot be made either: the host has something there, or may have. */
	if (hidden_name(dir->hidden, name))
		return -EACCES;
	int err = open_visible(g, dir, name, &fd, &st, &node, &empty);
	if (err == -EHIDDEN)
		return -EACCES;
	if (err)
		return err == -ENOENT ? 0 : err;
	host_close(fd);
	*out_exists = true;
	return 0;
}

int export_attach(struct gofer *g, uint32_t index, uint32_t *out_id, struct statx *out)
{
	if (index >= g->root_count)
		return -ENOENT;
	int fd = host_dup_cloexec(g->roots[index].fd);
	if (fd < 0)
		return fd;
	int err = host_statx_fd(fd, out);
	if (err) {
		host_close(fd);
		return err;
	}
	struct hidden_node *node = hidden_find(&g->hidden, NULL, "", dev_of(out), out->stx_ino, fd);
	bool empty = is_emptied(g, out) || is_kernel_fs(fd);
	if ((node && node->terminal) || (empty && !S_ISDIR(out->stx_mode))) {
		host_close(fd);
		return -ENOENT;
	}
	err = fid_new(g, fd, (uint16_t)index, out, out_id);
	if (err)
		return err;
	struct gofer_fid *f = fid_get(g, *out_id);
	f->hidden = node;
	f->empty = empty;
	return 0;
}

void attr_from_statx(struct gofer_attr *a, const struct statx *st, const struct gofer_fid *f)
{
	*a = (struct gofer_attr){
		.dev = dev_of(st),
		.ino = st->stx_ino,
		.rdev = makedev(st->stx_rdev_major, st->stx_rdev_minor),
		.size = st->stx_size,
		.blocks = st->stx_blocks,
		.atime_s = st->stx_atime.tv_sec,
		.mtime_s = st->stx_mtime.tv_sec,
		.ctime_s = st->stx_ctime.tv_sec,
		.btime_s = st->stx_btime.tv_sec,
		.atime_ns = st->stx_atime.tv_nsec,
		.mtime_ns = st->stx_mtime.tv_nsec,
		.ctime_ns = st->stx_ctime.tv_nsec,
		.btime_ns = st->stx_btime.tv_nsec,
		.mode = st->stx_mode,
		.nlink = st->stx_nlink,
		.uid = st->stx_uid,
		.gid = st->stx_gid,
		.blksize = st->stx_blksize,
		.flags = (st->stx_mask & STATX_BTIME ? GOFER_ATTR_BTIME : 0) |
			 (f->empty ? GOFER_ATTR_EMPTY : 0),
	};
}

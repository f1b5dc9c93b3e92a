/*
 * System V shared memory: shmget(2), shmop(2), shmctl(2).
 *
 * A segment is a nameless memory file. Each shmat makes an attachment: a file that hands mappings
 * through to the segment's file and holds the segment, so that the last unmapping, in whatever way
 * and by whatever process, releases it. fork shares the attachment; how many mappings there are
 * (shm_nattch) is counted when somebody asks.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>

#include "fs/namei.h"
#include "fs/tmpfs.h"
#include "platform/base/alloc.h"
#include "syscalls/ipc.h"

#define SEGMENTS_MAX 4096 /* SHMMNI */
#define SEGMENT_SIZE_MAX (INT64_MAX & PAGE_MASK)
#define HUGE_FLAGS SHM_HUGETLB
#define SHM_DEST_BIT 01000 /* in shm_perm.mode: removed, waits for the last detach */
#define SHM_LOCKED_BIT 02000

struct segment {
	struct ipc_obj obj;
	struct file *file;                  /* [I] referenced: a memfd */
	uint64_t size;                      /* [I] as asked for */
	int creator, last;                  /* [mu] process ids */
	time_t attached, detached, changed; /* [mu] */
	unsigned attachments;               /* [mu] live struct attachment */
	bool doomed;                        /* [mu] IPC_RMID: goes with the last attachment */
	bool locked;                        /* [mu] SHM_LOCK: remembered */
};

struct attachment {
	struct file file;
	struct segment *seg; /* [I] referenced */
};

static const struct ipc_type shm_type;
static const struct file_ops attachment_ops;

static struct segment *to_segment(struct ipc_obj *o)
{
	return container_of(o, struct segment, obj);
}

/* ---- segments ----------------------------------------------------------------------------- */

static int shm_create(struct task *t, int key, uint64_t size, struct ipc_obj **out)
{
	char name[32];

	if (size < 1 || size > SEGMENT_SIZE_MAX)
		return -EINVAL;
	struct segment *s = mem_zalloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	snprintf(name, sizeof(name), "SYSV%08x", (unsigned)key);
	int err = memfd_file_new(name, 0, t->cred, &s->file);
	if (!err) {
		err = vfs_ftruncate(s->file, page_up(size));
		if (err)
			file_put(s->file);
	}
	if (err) {
		mem_free(s);
		return err == -ENOMEM ? -ENOMEM : -ENOSPC;
	}
	ipc_obj_init(&s->obj, &shm_type, key, t);
	s->size = size;
	s->creator = t->group->tgid;
	s->changed = ipc_now();
	*out = &s->obj;
	return 0;
}

static int shm_check(struct ipc_obj *o, uint64_t size)
{
	return size > to_segment(o)->size ? -EINVAL : 0;
}

static void shm_free(struct ipc_obj *o)
{
	struct segment *s = to_segment(o);

	file_put(s->file);
	ipc_obj_fini(o);
	mem_free(s);
}

/* nattch: LINUX counts mappings; attachments are what can be counted under this lock. */
static void shm_show(struct ipc_obj *o, struct fmt *out)
{
	struct segment *s = to_segment(o);

	fmt_printf(out,
		   "%10d %10d  %4o %21lu %5u %5u  %5u %5u %5u %5u %5u %10lld %10lld %10lld %21lu "
		   "%21lu\n",
		   o->key, o->id, o->mode & 0777, s->size, (unsigned)s->creator, (unsigned)s->last,
		   s->attachments, o->uid, o->gid, o->cuid, o->cgid, (long long)s->attached,
		   (long long)s->detached, (long long)s->changed, page_up(s->size), 0ul);
}

static void shm_show_all(struct fmt *out)
{
	ipc_show(&shm_type, out);
}

static struct ipc_table shm_table = { .mu = MUTEX_INIT(RANK_HASH) };
static const struct ipc_type shm_type = {
	.table = &shm_table,
	.limit = SEGMENTS_MAX,
	.create = shm_create,
	.check = shm_check,
	.free = shm_free,
	.show_locked = shm_show,
	.show_all = shm_show_all,
	.show_kind = SYSVIPC_SHM,
};

long sys_shmget(struct task *t, int key, uint64_t size, int shmflg)
{
	/* No huge pages are configured here, as on most machines. */
	if (shmflg & HUGE_FLAGS)
		return -ENOMEM;
	return ipc_get(&shm_type, t, key, size, shmflg);
}

/* ---- attachments -------------------------------------------------------------------------- */

static int attachment_mmap(struct file *f, int prot, bool shared, struct file_map *out)
{
	struct segment *s = container_of(f, struct attachment, file)->seg;
	return s->file->ops->mmap(s->file, prot, shared, out);
}

static void attachment_release(struct file *f)
{
	struct attachment *a = container_of(f, struct attachment, file);
	struct segment *s = a->seg;

	mutex_lock(&s->obj.mu);
	s->detached = ipc_now();
	bool gone = --s->attachments == 0 && s->doomed && !s->obj.removed;
	if (gone)
		ipc_remove_locked(&s->obj);
	mutex_unlock(&s->obj.mu);
	if (gone)
		ipc_obj_put(&s->obj); /* the table's */
	ipc_obj_put(&s->obj);
	mem_free(a);
}

static void attachment_describe(struct file *f, struct fmt *out)
{
	struct segment *s = container_of(f, struct attachment, file)->seg;
	fmt_printf(out, "/SYSV%08x (deleted)", (unsigned)s->obj.key);
}

static const struct file_ops attachment_ops = {
	.mmap = attachment_mmap,
	.release = attachment_release,
	.describe = attachment_describe,
};

/* A new attachment of s, checked and counted. Gives. */
static int attach_file(struct task *t, struct segment *s, int flags, struct file **out)
{
	unsigned want = flags & SHM_RDONLY ? 0444 : 0666;

	if (flags & SHM_EXEC)
		want |= 0111;
	struct attachment *a = mem_zalloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	mutex_lock(&s->obj.mu);
	int err = s->obj.removed ? -EIDRM : ipc_permission_locked(&s->obj, t, want);
	if (!err) {
		s->attachments++;
		s->attached = ipc_now();
		s->last = t->group->tgid;
	}
	mutex_unlock(&s->obj.mu);
	if (err) {
		mem_free(a);
		return err;
	}
	a->seg = s;
	ipc_obj_get(&s->obj);
	file_init(&a->file, &attachment_ops, inode_get(s->file->inode),
		  flags & SHM_RDONLY ? O_RDONLY : O_RDWR);
	*out = &a->file;
	return 0;
}

/* Where the guest wants it: checked as do_shmat of the kernel. */
static int attach_place(uint64_t *addr, int flags)
{
	if (*addr == 0)
		return flags & SHM_REMAP ? -EINVAL : 0;
	if (*addr % PAGE_SIZE == 0)
		return 0;
	if (!(flags & SHM_RND))
		return -EINVAL;
	*addr = page_down(*addr);
	return *addr == 0 && (flags & SHM_REMAP) ? -EINVAL : 0;
}

long sys_shmat(struct task *t, int shmid, struct gaddr shmaddr, int shmflg)
{
	uint64_t addr = shmaddr.va;
	struct file *f;
	struct ipc_obj *o;

	if (shmid < 0)
		return -EINVAL;
	int err = attach_place(&addr, shmflg);
	if (err)
		return err;
	err = ipc_find(&shm_type, shmid, &o);
	if (err)
		return err;
	err = attach_file(t, to_segment(o), shmflg, &f);
	uint64_t size = to_segment(o)->size;
	ipc_obj_put(o);
	if (err)
		return err;
	struct mmap_request req = {
		.addr = addr, .size = size, .file = f, .prot = PROT_READ, .map_flags = MAP_SHARED
	};
	if (!(shmflg & SHM_RDONLY))
		req.prot |= PROT_WRITE;
	if (shmflg & SHM_EXEC)
		req.prot |= PROT_EXEC;
	if (addr)
		req.map_flags |= shmflg & SHM_REMAP ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	int64_t at = mm_mmap(t, &req);
	file_put(f);
	return at == -EEXIST ? -EINVAL : at;
}

/* The next piece of the attachment that begins at `base`, from `addr` on: what shmdt must unmap. */
static bool next_piece(struct mm *mm, uint64_t base, uint64_t *addr, struct file **f,
		       uint64_t *out_end)
{
	bool found = false;

	mutex_lock(&mm->mu);
	for (struct vma *v = vma_find_locked(mm, *addr); v; v = vma_next_locked(v)) {
		if (!v->file || v->file->ops != &attachment_ops || v->start < base ||
		    v->start - base != v->off)
			continue;
		/* The first piece decides which attachment it is. */
		if (*f ? v->file != *f
		       : v->start > base + container_of(v->file, struct attachment, file)
						    ->seg->size)
			continue;
		if (!*f)
			*f = file_get(v->file);
		*addr = v->start;
		*out_end = v->end;
		found = true;
		break;
	}
	mutex_unlock(&mm->mu);
	return found;
}

long sys_shmdt(struct task *t, struct gaddr shmaddr)
{
	uint64_t base = shmaddr.va, at = base, end;
	struct file *f = NULL;
	long ret = -EINVAL;

	if (base % PAGE_SIZE)
		return -EINVAL;
	while (next_piece(t->mm, base, &at, &f, &end)) {
		int err = mm_munmap(t, at, end - at);
		if (err) {
			ret = err;
			break;
		}
		ret = 0;
		at = end;
	}
	if (f) {
		struct segment *s = container_of(f, struct attachment, file)->seg;
		mutex_lock(&s->obj.mu);
		s->last = t->group->tgid;
		mutex_unlock(&s->obj.mu);
	}
	file_put(f);
	return ret;
}

/* ---- shmctl ------------------------------------------------------------------------------- */

/* How many mappings of s one address space has. */
static unsigned count_in(struct mm *mm, const struct segment *s)
{
	unsigned n = 0;

	mutex_lock(&mm->mu);
	for (struct vma *v = vma_find_locked(mm, 0); v; v = vma_next_locked(v))
		if (v->file && v->file->ops == &attachment_ops &&
		    container_of(v->file, struct attachment, file)->seg == s)
			n++;
	mutex_unlock(&mm->mu);
	return n;
}

/* A living thread of g, referenced, or NULL. */
static struct task *thread_of(struct group *g)
{
	struct task *t = NULL;

	mutex_lock(&tasks_mu);
	if (!g->zombie && !list_empty(&g->threads))
		t = task_get(list_first(&g->threads, struct task, group_link));
	mutex_unlock(&tasks_mu);
	return t;
}

static unsigned count_attached(const struct segment *s)
{
	unsigned n = 0;
	struct group *g;

	for (int from = 1; (g = group_next(from)) != NULL;) {
		struct task *t = thread_of(g);
		struct mm *mm = t ? mm_use_of(t) : NULL;
		if (mm) {
			n += count_in(mm, s);
			mm_unuse(mm);
		}
		task_put(t);
		from = g->tgid + 1;
		group_put(g);
	}
	return n;
}

static long shm_info(struct task *t, int cmd, buf_gp buf)
{
	int used, highest = ipc_highest_index(&shm_type, &used);

	if (cmd == IPC_INFO) {
		struct shminfo info = { .shmmax = 18446744073692774399ul,
					.shmmin = 1,
					.shmmni = SEGMENTS_MAX,
					.shmseg = SEGMENTS_MAX,
					.shmall = 18446744073692774399ul };
		return guest_write(t, buf.addr, &info, sizeof(info)) ? -EFAULT : highest;
	}
	struct shm_info info = { .used_ids = used };
	for (int i = 0; i <= highest; i++) {
		struct ipc_obj *o;
		if (ipc_find_index(&shm_type, i, &o) != 0)
			continue;
		info.shm_tot += page_up(to_segment(o)->size) / PAGE_SIZE;
		info.shm_rss += page_up(to_segment(o)->size) / PAGE_SIZE;
		ipc_obj_put(o);
	}
	return guest_write(t, buf.addr, &info, sizeof(info)) ? -EFAULT : highest;
}

static long shm_stat(struct task *t, int id, int cmd, buf_gp buf)
{
	struct shmid_ds ds = { 0 };
	struct ipc_obj *o;

	int err = cmd == IPC_STAT ? ipc_find(&shm_type, id, &o) : ipc_find_index(&shm_type, id, &o);
	if (err)
		return err;
	struct segment *s = to_segment(o);
	unsigned attached = count_attached(s);
	mutex_lock(&o->mu);
	if (cmd != SHM_STAT_ANY)
		err = ipc_permission_locked(o, t, 0444);
	if (!err && o->removed)
		err = -EIDRM;
	ipc_fill_perm_locked(o, &ds.shm_perm);
	ds.shm_perm.mode |= (s->doomed ? SHM_DEST_BIT : 0) | (s->locked ? SHM_LOCKED_BIT : 0);
	ds.shm_segsz = s->size;
	ds.shm_atime = s->attached;
	ds.shm_dtime = s->detached;
	ds.shm_ctime = s->changed;
	ds.shm_cpid = s->creator;
	ds.shm_lpid = s->last;
	ds.shm_nattch = attached;
	mutex_unlock(&o->mu);
	long ret = cmd == IPC_STAT ? 0 : o->id;
	ipc_obj_put(o);
	if (!err)
		err = guest_write(t, buf.addr, &ds, sizeof(ds));
	return err ? err : ret;
}

static int shm_lock_locked(struct task *t, struct segment *s, bool on)
{
	const struct cred *c = t->cred;

	if (!task_capable(t, CAP_IPC_LOCK)) {
		if (c->euid != s->obj.uid && c->euid != s->obj.cuid)
			return -EPERM;
		if (on && task_rlimit(t, RLIMIT_MEMLOCK) == 0)
			return -EPERM;
	}
	/* LINUX: pins the pages. The host decides what is swapped; we only tell who asks. */
	s->locked = on;
	return 0;
}

/* IPC_RMID: at once, or with the last attachment; the key is free from now on either way. */
static bool doom_locked(struct segment *s)
{
	s->doomed = true;
	mutex_lock(&shm_table.mu);
	s->obj.key = IPC_PRIVATE;
	mutex_unlock(&shm_table.mu);
	if (s->attachments)
		return false;
	ipc_remove_locked(&s->obj);
	return true;
}

static int shm_change(struct task *t, struct ipc_obj *o, int cmd, const struct shmid_ds *ds)
{
	struct segment *s = to_segment(o);
	bool removed = false;

	mutex_lock(&o->mu);
	int err = o->removed ? -EIDRM : 0;
	if (!err && cmd != SHM_LOCK && cmd != SHM_UNLOCK)
		err = ipc_owner_locked(o, t);
	if (!err && cmd == IPC_RMID) {
		removed = doom_locked(s);
	} else if (!err && cmd == IPC_SET) {
		ipc_set_perm_locked(o, &ds->shm_perm);
		s->changed = ipc_now();
	} else if (!err) {
		err = shm_lock_locked(t, s, cmd == SHM_LOCK);
	}
	mutex_unlock(&o->mu);
	if (removed)
		ipc_obj_put(o); /* the table's */
	return err;
}

long sys_shmctl(struct task *t, int shmid, int cmd, buf_gp buf)
{
	struct shmid_ds ds;
	struct ipc_obj *o;

	if (shmid < 0 || cmd < 0)
		return -EINVAL;
	switch (cmd) {
	case IPC_INFO:
	case SHM_INFO:
		return shm_info(t, cmd, buf);
	case IPC_STAT:
	case SHM_STAT:
	case SHM_STAT_ANY:
		return shm_stat(t, shmid, cmd, buf);
	case IPC_SET:
		if (guest_read(t, &ds, buf.addr, sizeof(ds)) != 0)
			return -EFAULT;
		break;
	case IPC_RMID:
	case SHM_LOCK:
	case SHM_UNLOCK:
		break;
	default:
		return -EINVAL;
	}
	int err = ipc_find(&shm_type, shmid, &o);
	if (err)
		return err;
	err = shm_change(t, o, cmd, &ds);
	ipc_obj_put(o);
	return err;
}

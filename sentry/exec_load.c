/*
 * Executable images: opening, reading and mapping them into a blank address space. The bytes come
 * from the guest by way of elf.c, which has checked every sum.
 */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "fs/mount.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "sentry/exec_priv.h"
#include "sentry/plat.h"
#include "sentry/vma.h"

/* Where the kernel puts position-independent programs: two thirds of the address space. */
#define PIE_BASE 0x555555554000ull
#define MMAP_RANDOM_BITS 28 /* pages: vm.mmap_rnd_bits of x86-64 */
#define STACK_RANDOM_PAGES 0x3fffffull
#define BRK_RANDOM_BYTES (1ull << 30)
#define GAP_MIN (128ull << 20) /* room for the stack between its top and mmap_base */

/* ---- files ---------------------------------------------------------------------------------- */

/* The kernel may read a program that the caller may only execute. */
static int open_for_kernel(struct path p, const struct cred *c, struct file **out)
{
	int err = vfs_open_path(p, O_RDONLY, c, out);

	if (err != -EACCES)
		return err;
	struct cred *k = cred_copy(c);
	if (!k)
		return -ENOMEM;
	k->cap_effective |= 1ull << CAP_DAC_READ_SEARCH;
	err = vfs_open_path(p, O_RDONLY, k, out);
	cred_put(k);
	return err;
}

static int check_path(struct path p, const struct cred *c)
{
	struct inode *ino = p.dentry->inode;

	if (!ino || ino->type != S_IFREG || (atomic_load(&p.mnt->flags) & MS_NOEXEC))
		return ino && ino->type == S_IFLNK ? -ELOOP : -EACCES;
	return inode_permission(ino, c, MAY_EXEC);
}

int exec_open(struct task *t, const struct path *dir, const char *path, unsigned lookup_flags,
	      struct file **out)
{
	struct fs_lookup l = { .ctx = t->fs, .cred = t->cred };
	struct path p;

	if (dir)
		l.base = *dir;
	int err = path_lookup(&l, path, lookup_flags, &p);
	if (err)
		return err;
	err = check_path(p, t->cred);
	if (!err)
		err = open_for_kernel(p, t->cred, out);
	path_put(p);
	if (err)
		return err;
	err = inode_deny_write(file_inode(*out));
	if (err) {
		file_put(*out);
		*out = NULL;
	}
	return err;
}

int exec_open_nameless(struct task *t, struct file *f, struct file **out)
{
	if (!f->inode || f->inode->type != S_IFREG || !file_can_read(f))
		return -EACCES;
	int err = inode_permission(f->inode, t->cred, MAY_EXEC);
	if (!err)
		err = inode_deny_write(file_inode(f));
	if (!err)
		*out = file_get(f);
	return err;
}

void exec_close(struct file *f)
{
	if (!f)
		return;
	inode_allow_write(file_inode(f));
	file_put(f);
}

ssize_t exec_read(struct file *f, void *buf, size_t n, uint64_t off)
{
	size_t done = 0;

	while (done < n) {
		struct iov_iter it;
		int64_t pos = (int64_t)(off + done);
		iov_init_host(&it, (char *)buf + done, n - done, IOV_FILL);
		ssize_t r = vfs_read(f, &it, &pos);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

/* ---- headers -------------------------------------------------------------------------------- */

int exec_parse(struct exec_image *img, const char *head, size_t size, int bad)
{
	int err = elf_parse_header(head, size, &img->header);

	if (err)
		return bad;
	if (!img->file->ops->mmap)
		return bad;
	size_t bytes = img->header.phnum * ELF_PHDR_SIZE;
	void *phdrs = mem_alloc(bytes);
	img->elf.segs = mem_calloc(img->header.phnum, sizeof(*img->elf.segs));
	struct elf_segment *segs = img->elf.segs;
	ssize_t r = -ENOMEM;
	if (phdrs && segs)
		r = exec_read(img->file, phdrs, bytes, img->header.phoff);
	if (r < 0)
		err = (int)r;
	else if ((size_t)r < bytes)
		err = bad;
	else if (elf_parse_phdrs(&img->header, phdrs, bytes, segs, &img->elf))
		err = bad;
	img->elf.segs = segs;
	mem_free(phdrs);
	return err;
}

void exec_image_fini(struct exec_image *img)
{
	exec_close(img->file);
	mem_free(img->elf.segs);
	*img = (struct exec_image){ 0 };
}

int exec_find_interp(struct exec *x)
{
	const struct elf_image *elf = &x->main.elf;
	char head[ELF_HEADER_SIZE];
	int err;

	if (!elf->interp_size)
		return 0;
	char *path = mem_alloc(elf->interp_size);
	if (!path)
		return -ENOMEM;
	ssize_t r = exec_read(x->main.file, path, elf->interp_size, elf->interp_off);
	if (r >= 0 && (uint64_t)r < elf->interp_size)
		err = -EIO;
	else if (r < 0)
		err = (int)r;
	else if (path[elf->interp_size - 1] != 0)
		err = -ENOEXEC;
	else
		err = exec_open(x->t, NULL, path, LOOKUP_FOLLOW, &x->interp.file);
	mem_free(path);
	if (err)
		return err;
	r = exec_read(x->interp.file, head, sizeof(head), 0);
	if (r < 0)
		return (int)r;
	return (size_t)r < sizeof(head) ? -EIO
					: exec_parse(&x->interp, head, sizeof(head), -ELIBBAD);
}

/* ---- places --------------------------------------------------------------------------------- */

static uint64_t random_below(struct exec *x, uint64_t n)
{
	uint64_t r = 0;

	if (x->randomize)
		host_random(&r, sizeof(r));
	return r % n;
}

static void plan_layout(struct exec *x)
{
	const struct plat_info *info = plat->info();
	uint64_t top = info->task_max, stack = task_rlimit(x->t, RLIMIT_STACK);

	if (info->vdso.size)
		top = MIN(top, info->vdso.addr);
	if (info->vvar.size)
		top = MIN(top, info->vvar.addr);
	top = page_down(top) - PAGE_SIZE;
	uint64_t gap = MIN(MAX(stack, GAP_MIN), info->task_max / 6 * 5);
	gap = page_up(gap) + STACK_GUARD_GAP + (STACK_RANDOM_PAGES << PAGE_SHIFT);
	x->mm->mmap_base = top - gap - (random_below(x, 1ull << MMAP_RANDOM_BITS) << PAGE_SHIFT);
	x->mm->hole_from = x->mm->mmap_base;
	x->stack_top = top - (random_below(x, STACK_RANDOM_PAGES + 1) << PAGE_SHIFT);
}

/* The load bias of an image: programs with an interpreter go to PIE_BASE, all else where mmap would
 * put it. */
static int choose_bias(struct exec *x, struct exec_image *img, bool is_main)
{
	const struct plat_info *info = plat->info();
	uint64_t size = img->elf.hi - img->elf.lo, base;

	if (!img->header.dyn) {
		img->bias = 0;
		if (img->elf.lo < info->task_min || img->elf.hi > info->task_max)
			return -ENOMEM;
		mutex_lock(&x->mm->mu);
		bool used = vma_range_used_locked(x->mm, img->elf.lo, img->elf.hi);
		mutex_unlock(&x->mm->mu);
		return used ? -EEXIST : 0;
	}
	if (is_main && x->interp.file) {
		base = PIE_BASE + (random_below(x, 1ull << MMAP_RANDOM_BITS) << PAGE_SHIFT);
	} else {
		mutex_lock(&x->mm->mu);
		base = vma_find_gap_locked(x->mm, size + img->elf.align - PAGE_SIZE);
		mutex_unlock(&x->mm->mu);
		if (!base)
			return -ENOMEM;
		base += img->elf.align - PAGE_SIZE;
	}
	base &= ~(img->elf.align - 1);
	if (base < info->task_min || size > info->task_max - base)
		return -ENOMEM;
	img->bias = base - img->elf.lo;
	return 0;
}

/* ---- mapping -------------------------------------------------------------------------------- */

static int map_anon(struct exec *x, uint64_t start, uint64_t end, int prot)
{
	struct mmap_request req = { .addr = start,
				    .size = end - start,
				    .prot = prot,
				    .map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };

	if (start >= end)
		return 0;
	int64_t r = mm_mmap_on(x->mm, x->ctx, &req);
	return r < 0 ? (int)r : 0;
}

/* Zeroes from the end of the file's bytes to the end of the page. Read-only ones keep the file's,
 * as in Linux. */
static int pad_zero(struct exec *x, uint64_t addr, int prot)
{
	static const char zeros[PAGE_SIZE];
	size_t n = (size_t)(page_up(addr) - addr);

	if (n == 0 || !(prot & PROT_WRITE))
		return 0;
	return mm_copy_out(x->mm, addr, zeros, n) == (ssize_t)n ? 0 : -EFAULT;
}

static int map_segment(struct exec *x, struct exec_image *img, const struct elf_segment *s)
{
	uint64_t start = page_down(s->vaddr + img->bias);
	uint64_t file_end = s->vaddr + img->bias + s->filesz;
	uint64_t end = page_up(s->vaddr + img->bias + s->memsz);

	if (s->filesz) {
		struct mmap_request req = {
			.addr = start,
			.size = file_end - start,
			.prot = s->prot,
			.map_flags = MAP_PRIVATE | MAP_FIXED,
			.file = img->file,
			.off = page_down(s->off),
		};
		int64_t r = mm_mmap_on(x->mm, x->ctx, &req);
		if (r < 0)
			return (int)r;
		if (s->memsz == s->filesz)
			return 0;
		int err = pad_zero(x, file_end, s->prot);
		if (err)
			return err;
		start = page_up(file_end);
	}
	return map_anon(x, start, end, s->prot);
}

static int map_image(struct exec *x, struct exec_image *img, bool is_main)
{
	int err = choose_bias(x, img, is_main);

	for (size_t i = 0; i < img->elf.seg_count && !err; i++)
		err = map_segment(x, img, &img->elf.segs[i]);
	return err;
}

static void set_ranges(struct exec *x)
{
	const struct exec_image *img = &x->main;
	struct mm *mm = x->mm;
	uint64_t brk = page_up(img->elf.brk + img->bias);

	mm->start_code = img->elf.start_code + img->bias;
	mm->end_code = img->elf.end_code + img->bias;
	mm->start_data = img->elf.start_data + img->bias;
	mm->end_data = img->elf.end_data + img->bias;
	/* A program without interpreter lies among the mappings: its heap would have no room there.
	 */
	if (img->header.dyn && !x->interp.file && x->randomize)
		brk = PIE_BASE;
	mm->start_brk = mm->brk = brk + page_down(random_below(x, BRK_RANDOM_BYTES));
}

int exec_map(struct exec *x)
{
	int err = mm_new(&x->mm, &x->ctx);

	if (err)
		return err;
	plan_layout(x);
	err = map_image(x, &x->main, true);
	if (!err && x->interp.file)
		err = map_image(x, &x->interp, false);
	if (err)
		return err;
	set_ranges(x);
	x->entry = x->interp.file ? x->interp.header.entry + x->interp.bias
				  : x->main.header.entry + x->main.bias;
	x->mm->exe = file_get(x->main.file);
	err = inode_deny_write(file_inode(x->mm->exe));
	BUG_ON(err != 0); /* main.file holds one already */
	return 0;
}

/*
 * /proc/PID/maps and smaps. The list is copied under the lock, with references, and printed without
 * it, because names and inode numbers come from file systems.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/plat.h"
#include "sentry/task.h"
#include "sentry/vma.h"

#define NAME_COLUMN                                                                                \
	73 /* where names begin: fs/proc/task_mmu.c pads to 25 + 6 * sizeof(void *) - 1, then a    \
	      blank */

struct snapshot {
	struct vma *vmas; /* copies; file referenced */
	size_t count;
	uint64_t start_brk, brk, start_stack;
	bool own; /* the address space of the calling task: residency can be asked */
};

static int snapshot_take(struct mm *mm, struct snapshot *s)
{
	struct task *t = current_task();
	size_t room;

	*s = (struct snapshot){ .own = t && t->mm == mm };
	mutex_lock(&mm->mu);
	room = mm->vma_count;
	s->vmas = mem_calloc(room + 1, sizeof(*s->vmas));
	if (!s->vmas) {
		mutex_unlock(&mm->mu);
		return -ENOMEM;
	}
	for (struct vma *v = vma_first_locked(mm); v; v = vma_next_locked(v)) {
		s->vmas[s->count++] = *v;
		if (v->file)
			file_get(v->file);
	}
	s->start_brk = mm->start_brk;
	s->brk = mm->brk;
	s->start_stack = mm->start_stack;
	mutex_unlock(&mm->mu);
	return 0;
}

static void snapshot_fini(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++)
		file_put(s->vmas[i].file);
	mem_free(s->vmas);
}

static const char *special_name(const struct snapshot *s, const struct vma *v)
{
	if (v->flags & VMA_VVAR)
		return "[vvar]";
	if (v->flags & VMA_VDSO)
		return "[vdso]";
	if (v->flags & VMA_ANON_FILE)
		return "/dev/zero (deleted)";
	if (v->file)
		return NULL;
	if (v->start < s->brk && v->end > s->start_brk)
		return "[heap]";
	if (v->start <= s->start_stack && v->end >= s->start_stack)
		return "[stack]";
	return NULL;
}

static void file_name(struct file *f, struct path root, struct fmt *out)
{
	char *buf = mem_alloc(PATH_LEN_MAX);

	if (!buf)
		return;
	if (f->path.dentry && path_name(f->path, root, buf, PATH_LEN_MAX) >= 0)
		fmt_mangle(out, buf, "\n");
	else if (f->ops->describe)
		f->ops->describe(f, out);
	mem_free(buf);
}

static void show_line(const struct snapshot *s, const struct vma *v, struct path root,
		      struct fmt *out)
{
	size_t begin = out->len;
	struct fs_stat st = { 0 };
	const char *name = special_name(s, v);

	if (v->file && v->file->inode && v->file->inode->ops->getattr(v->file->inode, &st))
		st = (struct fs_stat){ 0 };
	fmt_printf(out, "%08llx-%08llx %c%c%c%c %08llx %02x:%02x %llu ",
		   (unsigned long long)v->start, (unsigned long long)v->end,
		   v->prot & PROT_READ ? 'r' : '-', v->prot & PROT_WRITE ? 'w' : '-',
		   v->prot & PROT_EXEC ? 'x' : '-', v->flags & VMA_SHARED ? 's' : 'p',
		   (unsigned long long)(v->file ? v->off : 0), major(st.dev), minor(st.dev),
		   (unsigned long long)st.ino);
	if (name || v->file) {
		while (out->len - begin < NAME_COLUMN && !out->overflow)
			fmt_putc(out, ' ');
		if (name)
			fmt_puts(out, name);
		else
			file_name(v->file, root, out);
	}
	fmt_putc(out, '\n');
}

void mm_show_maps(struct mm *mm, struct path root, struct fmt *out)
{
	struct snapshot s;

	if (snapshot_take(mm, &s)) {
		out->overflow = true;
		return;
	}
	for (size_t i = 0; i < s.count; i++)
		show_line(&s, &s.vmas[i], root, out);
	snapshot_fini(&s);
}

/* ---- smaps ---------------------------------------------------------------------------------- */

/* Resident kB of private memory. LINUX: counts the pages of each mapping; the sentry does not see
 * page tables, so residency is asked from the host for the caller's own anonymous memory and is 0
 * elsewhere. */
static uint64_t resident_kb(const struct snapshot *s, const struct vma *v)
{
	uint8_t bytes[1024];
	uint64_t kb = 0;
	struct task *t = current_task();

	if (!s->own || v->file)
		return 0;
	for (uint64_t at = v->start; at < v->end;) {
		uint64_t n = MIN((v->end - at) >> PAGE_SHIFT, sizeof(bytes));
		mutex_lock(&t->mm->mu);
		int err = plat->resident(t->ctx, at, n << PAGE_SHIFT, bytes);
		mutex_unlock(&t->mm->mu);
		if (err)
			break;
		for (uint64_t i = 0; i < n; i++)
			kb += bytes[i] & 1 ? 4 : 0;
		at += n << PAGE_SHIFT;
	}
	return kb;
}

static void show_vm_flags(const struct vma *v, struct fmt *out)
{
	bool special = v->flags & (VMA_VVAR | VMA_VDSO), shared = v->flags & VMA_SHARED;
	const struct {
		bool on;
		const char *name;
	} rows[] = {
		{ v->prot & PROT_READ, "rd" },
		{ v->prot & PROT_WRITE, "wr" },
		{ v->prot & PROT_EXEC, "ex" },
		{ shared, "sh" },
		{ true, "mr" },
		{ (v->flags & VMA_MAYWRITE) || (v->flags & VMA_VDSO), "mw" },
		{ !(v->flags & VMA_NOEXEC) && !(v->flags & VMA_VVAR), "me" },
		{ shared, "ms" },
		{ v->flags & VMA_GROWSDOWN, "gd" },
		{ v->flags & VMA_VVAR, "pf" },
		{ v->flags & VMA_LOCKED, "lo" },
		{ v->flags & VMA_VVAR, "io" },
		{ v->flags & VMA_DONTFORK, "dc" },
		{ special, "de" },
		{ !shared && (v->prot & PROT_WRITE), "ac" },
		{ v->flags & VMA_NORESERVE, "nr" },
		{ v->flags & VMA_WIPEONFORK, "wf" },
		{ (v->flags & VMA_DONTDUMP) || (v->flags & VMA_VVAR), "dd" },
		{ v->flags & VMA_SEALED, "sl" },
	};

	fmt_puts(out, "VmFlags: ");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].on)
			fmt_printf(out, "%s ", rows[i].name);
	fmt_putc(out, '\n');
}

static void show_kb(struct fmt *out, const char *name, uint64_t kb)
{
	fmt_printf(out, "%-16s%8llu kB\n", name, (unsigned long long)kb);
}

static void show_counts(const struct snapshot *s, const struct vma *v, struct fmt *out)
{
	static const char *const tail[] = {
		"KSM:",           "LazyFree:",       "AnonHugePages:",   "ShmemPmdMapped:",
		"FilePmdMapped:", "Shared_Hugetlb:", "Private_Hugetlb:", "Swap:",
		"SwapPss:",
	};
	uint64_t rss = resident_kb(s, v);

	show_kb(out, "Size:", (v->end - v->start) >> 10);
	show_kb(out, "KernelPageSize:", 4);
	show_kb(out, "MMUPageSize:", 4);
	show_kb(out, "Rss:", rss);
	show_kb(out, "Pss:", rss);
	show_kb(out, "Pss_Dirty:", rss);
	show_kb(out, "Shared_Clean:", 0);
	show_kb(out, "Shared_Dirty:", 0);
	show_kb(out, "Private_Clean:", 0);
	show_kb(out, "Private_Dirty:", rss);
	show_kb(out, "Referenced:", rss);
	show_kb(out, "Anonymous:", rss);
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++)
		show_kb(out, tail[i], 0);
	show_kb(out, "Locked:", v->flags & VMA_LOCKED ? rss : 0);
	fmt_puts(out, "THPeligible:           0\n");
	show_vm_flags(v, out);
}

void mm_show_smaps(struct mm *mm, struct path root, struct fmt *out)
{
	struct snapshot s;

	if (snapshot_take(mm, &s)) {
		out->overflow = true;
		return;
	}
	for (size_t i = 0; i < s.count; i++) {
		show_line(&s, &s.vmas[i], root, out);
		show_counts(&s, &s.vmas[i], out);
	}
	snapshot_fini(&s);
}

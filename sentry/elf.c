/* ELF parser: see elf.h. The rules are those of fs/binfmt_elf.c of the kernel. */
#include "sentry/elf.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#include "platform/base/parse.h"

_Static_assert(sizeof(Elf64_Phdr) == ELF_PHDR_SIZE && sizeof(Elf64_Ehdr) == ELF_HEADER_SIZE,
	       "ELF ABI");

int elf_parse_header(const void *buf, size_t size, struct elf_header *out)
{
	struct reader r;
	Elf64_Ehdr e;

	reader_init(&r, buf, size);
	read_bytes(&r, &e, sizeof(e));
	if (r.bad || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if ((e.e_type != ET_EXEC && e.e_type != ET_DYN) || e.e_machine != EM_X86_64 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	if (e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phnum == 0 ||
	    e.e_phnum > ELF_PHDRS_MAX / sizeof(Elf64_Phdr) || e.e_phoff > INT64_MAX - ELF_PHDRS_MAX)
		return -ENOEXEC;
	*out = (struct elf_header){
		.dyn = e.e_type == ET_DYN,
		.entry = e.e_entry,
		.phoff = e.e_phoff,
		.phnum = e.e_phnum,
	};
	return 0;
}

static int prot_of(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

static int check_load(const Elf64_Phdr *p)
{
	if (p->p_filesz > p->p_memsz || p->p_memsz > ELF_ADDR_MAX ||
	    p->p_vaddr > ELF_ADDR_MAX - p->p_memsz)
		return -ENOEXEC;
	if (p->p_filesz > INT64_MAX - PAGE_SIZE ||
	    p->p_offset > INT64_MAX - PAGE_SIZE - p->p_filesz)
		return -ENOEXEC;
	/* A file page can only be mapped to a page. */
	if (p->p_filesz && ((p->p_vaddr ^ p->p_offset) & ~PAGE_MASK))
		return -EINVAL;
	return 0;
}

static void note_ranges(struct elf_image *img, const Elf64_Phdr *p)
{
	if ((p->p_flags & PF_X) && p->p_vaddr < img->start_code)
		img->start_code = p->p_vaddr;
	img->start_data = MAX(img->start_data, p->p_vaddr);
	if (p->p_flags & PF_X)
		img->end_code = MAX(img->end_code, p->p_vaddr + p->p_filesz);
	img->end_data = MAX(img->end_data, p->p_vaddr + p->p_filesz);
	img->brk = MAX(img->brk, p->p_vaddr + p->p_memsz);
	img->lo = MIN(img->lo, page_down(p->p_vaddr));
	img->hi = MAX(img->hi, page_up(p->p_vaddr + p->p_memsz));
}

static int add_load(struct elf_image *img, const struct elf_header *h, const Elf64_Phdr *p)
{
	int err = check_load(p);

	if (err)
		return err;
	/* Only powers of two count; others are ignored as in maximum_alignment. */
	if (p->p_align > img->align && (p->p_align & (p->p_align - 1)) == 0 &&
	    p->p_align < ELF_ADDR_MAX / 4)
		img->align = p->p_align;
	if (p->p_offset <= h->phoff && h->phoff - p->p_offset < p->p_filesz)
		img->phdr_addr = h->phoff - p->p_offset + p->p_vaddr;
	if (p->p_memsz == 0)
		return 0;
	note_ranges(img, p);
	img->segs[img->seg_count++] = (struct elf_segment){
		.vaddr = p->p_vaddr,
		.memsz = p->p_memsz,
		.off = p->p_offset,
		.filesz = p->p_filesz,
		.prot = prot_of(p->p_flags),
	};
	return 0;
}

/* The first PT_INTERP counts. */
static int add_interp(struct elf_image *img, const Elf64_Phdr *p)
{
	if (img->interp_size)
		return 0;
	if (p->p_filesz > PATH_MAX || p->p_filesz < 2 || p->p_offset > INT64_MAX - PATH_MAX)
		return -ENOEXEC;
	img->interp_off = p->p_offset;
	img->interp_size = p->p_filesz;
	return 0;
}

int elf_parse_phdrs(const struct elf_header *h, const void *phdrs, size_t size,
		    struct elf_segment *segs, struct elf_image *out)
{
	struct reader r;
	int err = 0;

	*out = (struct elf_image){
		.segs = segs, .align = PAGE_SIZE, .lo = UINT64_MAX, .start_code = UINT64_MAX
	};
	reader_init(&r, phdrs, size);
	for (size_t i = 0; i < h->phnum && !err; i++) {
		Elf64_Phdr p;
		read_bytes(&r, &p, sizeof(p));
		if (r.bad)
			return -ENOEXEC;
		if (p.p_type == PT_LOAD)
			err = add_load(out, h, &p);
		else if (p.p_type == PT_INTERP)
			err = add_interp(out, &p);
		else if (p.p_type == PT_GNU_STACK)
			out->exec_stack = p.p_flags & PF_X;
	}
	if (err)
		return err;
	if (out->seg_count == 0 || h->entry > ELF_ADDR_MAX)
		return -ENOEXEC;
	if (out->start_code == UINT64_MAX)
		out->start_code = out->end_code = out->lo;
	return 0;
}

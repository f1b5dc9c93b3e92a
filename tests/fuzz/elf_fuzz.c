/*
 * The ELF parser on arbitrary bytes: the input is a whole file. What it accepts must be safe to map: sums do not
 * wrap, everything lies in [lo, hi), offsets agree with addresses.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "sentry/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_segment(const struct elf_image *img, const struct elf_segment *s)
{
	BUG_ON(s->memsz == 0 || s->filesz > s->memsz);
	BUG_ON(s->vaddr + s->memsz < s->vaddr || s->vaddr + s->memsz > ELF_ADDR_MAX);
	BUG_ON(page_down(s->vaddr) < img->lo || page_up(s->vaddr + s->memsz) > img->hi);
	BUG_ON(s->filesz && ((s->vaddr ^ s->off) & ~PAGE_MASK));
	BUG_ON(s->off > INT64_MAX || s->off + s->filesz > INT64_MAX);
	BUG_ON(s->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_header h;
	struct elf_image img;

	if (elf_parse_header(data, size, &h))
		return 0;
	BUG_ON(h.phnum == 0 || h.phnum * ELF_PHDR_SIZE > ELF_PHDRS_MAX);
	if (h.phoff > size || h.phnum * ELF_PHDR_SIZE > size - h.phoff)
		return 0;
	struct elf_segment *segs = calloc(h.phnum, sizeof(*segs));
	if (!segs)
		return 0;
	if (elf_parse_phdrs(&h, data + h.phoff, h.phnum * ELF_PHDR_SIZE, segs, &img) == 0) {
		BUG_ON(img.seg_count == 0 || img.seg_count > h.phnum);
		BUG_ON(img.lo >= img.hi || ((img.lo | img.hi) & ~PAGE_MASK) || img.hi > ELF_ADDR_MAX);
		BUG_ON(img.align < PAGE_SIZE || (img.align & (img.align - 1)));
		BUG_ON(img.brk > img.hi || img.start_code > img.end_code);
		BUG_ON(img.interp_size > 4096 || (img.interp_size && img.interp_off > INT64_MAX - 4096));
		for (size_t i = 0; i < img.seg_count; i++)
			check_segment(&img, &img.segs[i]);
	}
	free(segs);
	return 0;
}

/*
 * Parsing of ELF executables: pure functions over bytes that nobody trusts. They decide what would
 * be mapped; sentry/exec.c does it. All sums are checked, so that what comes out can be added to a
 * load bias of at most ELF_ADDR_MAX without wrapping.
 */
#pragma once

#include "platform/base/types.h"

#define ELF_ADDR_MAX 0x7ffffffff000ull /* end of the user address space */
#define ELF_PHDRS_MAX 65536            /* bytes of program headers, as in load_elf_phdrs */
#define ELF_PHDR_SIZE 56
#define ELF_HEADER_SIZE 64

struct elf_header {
	bool dyn; /* ET_DYN: position independent */
	uint64_t entry;
	uint64_t phoff;
	size_t phnum; /* 1 … ELF_PHDRS_MAX / ELF_PHDR_SIZE */
};

/* A PT_LOAD with memsz > 0. filesz <= memsz; off and vaddr agree within a page. */
struct elf_segment {
	uint64_t vaddr, memsz, off, filesz;
	int prot; /* PROT_* */
};

struct elf_image {
	struct elf_segment *segs; /* the caller's array */
	size_t seg_count;         /* at least 1 */
	uint64_t lo, hi;          /* all segments lie in [lo, hi), page aligned */
	uint64_t align;           /* greatest alignment wanted, a power of two >= a page */
	uint64_t phdr_addr; /* where the program headers end up (AT_PHDR), 0 when in no segment */
	uint64_t interp_off, interp_size; /* path of the interpreter in the file, with its NUL; size
					     0: none */
	bool exec_stack;                  /* PT_GNU_STACK asks for it */
	uint64_t start_code, end_code, start_data, end_data, brk; /* as mm_struct has them, unbiased
								   */
};

/* From the first bytes of a file. -ENOEXEC when it is nothing that we run. */
int elf_parse_header(const void *buf, size_t size, struct elf_header *out) MUST_CHECK;
/* From h->phnum program headers. segs has room for h->phnum. -ENOEXEC or -EINVAL. */
int elf_parse_phdrs(const struct elf_header *h, const void *phdrs, size_t size,
		    struct elf_segment *segs, struct elf_image *out) MUST_CHECK;

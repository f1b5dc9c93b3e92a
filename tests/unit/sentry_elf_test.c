/* The ELF parser: what it takes, what it refuses, and what it computes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sentry/elf.h"

static Elf64_Ehdr ehdr;
static Elf64_Phdr phdr[4];
static struct elf_header header;
static struct elf_segment segs[4];
static struct elf_image img;

static int setup(void **state UNUSED)
{
	ehdr = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_entry = 0x1040,
		.e_phoff = 64,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	memset(phdr, 0, sizeof(phdr));
	phdr[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x1800,
				.p_memsz = 0x1800, .p_align = 0x1000 };
	phdr[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 0x3e00,
				.p_offset = 0x2e00, .p_filesz = 0x100, .p_memsz = 0x5000, .p_align = 0x200000 };
	return 0;
}

static int parse(void)
{
	int err = elf_parse_header(&ehdr, sizeof(ehdr), &header);
	return err ? err : elf_parse_phdrs(&header, phdr, header.phnum * sizeof(*phdr), segs, &img);
}

static void plain_image(void **state UNUSED)
{
	assert_int_equal(parse(), 0);
	assert_true(header.dyn);
	assert_int_equal(img.seg_count, 2);
	assert_int_equal(img.lo, 0);
	assert_int_equal(img.hi, 0x9000);
	assert_int_equal(img.align, 0x200000);
	assert_int_equal(img.phdr_addr, 64);
	assert_int_equal(img.brk, 0x8e00);
	assert_int_equal(img.end_code, 0x1800);
	assert_int_equal(img.start_data, 0x3e00);
	assert_int_equal(img.end_data, 0x3f00);
	assert_int_equal(segs[0].prot, PROT_READ | PROT_EXEC);
	assert_int_equal(segs[1].prot, PROT_READ | PROT_WRITE);
	assert_false(img.exec_stack);
	assert_int_equal(img.interp_size, 0);
}

static void headers_refused(void **state UNUSED)
{
	assert_int_equal(elf_parse_header(&ehdr, sizeof(ehdr) - 1, &header), -ENOEXEC);
	ehdr.e_machine = EM_386;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	ehdr.e_type = ET_REL;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	ehdr.e_phentsize = 32;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	ehdr.e_phnum = 0;
	assert_int_equal(parse(), -ENOEXEC);
	ehdr.e_phnum = 1171;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	ehdr.e_phoff = UINT64_MAX - 8;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	ehdr.e_ident[1] = 'e';
	assert_int_equal(parse(), -ENOEXEC);
}

static void segments_refused(void **state UNUSED)
{
	phdr[1].p_filesz = phdr[1].p_memsz + 1;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	phdr[1].p_vaddr = UINT64_MAX - 0x1000 + 0xe00;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	phdr[1].p_memsz = UINT64_MAX;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	phdr[1].p_offset = INT64_MAX - 0x1ff;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	phdr[1].p_offset += 8;
	assert_int_equal(parse(), -EINVAL);
	setup(NULL);
	phdr[0].p_type = phdr[1].p_type = PT_NULL;
	assert_int_equal(parse(), -ENOEXEC);
	setup(NULL);
	assert_int_equal(elf_parse_header(&ehdr, sizeof(ehdr), &header), 0);
	assert_int_equal(elf_parse_phdrs(&header, phdr, 2 * sizeof(*phdr) - 1, segs, &img), -ENOEXEC);
}

static void interpreter_and_stack(void **state UNUSED)
{
	ehdr.e_phnum = 4;
	phdr[2] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x318, .p_filesz = 0x1c };
	phdr[3] = (Elf64_Phdr){ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W | PF_X };
	assert_int_equal(parse(), 0);
	assert_int_equal(img.interp_off, 0x318);
	assert_int_equal(img.interp_size, 0x1c);
	assert_true(img.exec_stack);
	phdr[2].p_filesz = 1;
	assert_int_equal(parse(), -ENOEXEC);
	phdr[2].p_filesz = 4097;
	assert_int_equal(parse(), -ENOEXEC);
}

static void odd_alignment_is_ignored(void **state UNUSED)
{
	phdr[1].p_align = 0x3000;
	assert_int_equal(parse(), 0);
	assert_int_equal(img.align, 0x1000);
	phdr[1].p_align = 1ull << 63;
	assert_int_equal(parse(), 0);
	assert_int_equal(img.align, 0x1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plain_image, setup),
		cmocka_unit_test_setup(headers_refused, setup),
		cmocka_unit_test_setup(segments_refused, setup),
		cmocka_unit_test_setup(interpreter_and_stack, setup),
		cmocka_unit_test_setup(odd_alignment_is_ignored, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

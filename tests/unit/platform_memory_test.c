/* Mappings of every kind, copies with partial counts, and the vDSO, on each platform. */
#include "tests/unit/platform_rig.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

/* clang-format off */
__asm__(
".pushsection .rodata\n"
".globl m_begin, m_end\n"
"m_begin:	mov $60,%eax; syscall; jmp m_begin\n"
"m_end:\n"
".popsection\n");
/* clang-format on */

extern const uint8_t m_begin[], m_end[];

static void start(struct guest *g, const struct platform_ops *ops)
{
	rig_guest(g, ops, m_begin, (size_t)(m_end - m_begin));
}

static int file_of(const char *text, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, (off_t)size), 0);
	CHECK_EQ(pwrite(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static int map_fd(struct guest *g, uint64_t addr, uint64_t size, int prot, unsigned flags, int fd,
		  uint64_t off)
{
	struct plat_map m = {
		.addr = addr, .size = size, .prot = prot, .flags = flags, .fd = fd, .off = off
	};

	return g->ops->map(g->ctx, &m);
}

static void test_files(const struct platform_ops *ops)
{
	struct guest g, child;
	char buf[16] = "";
	int fd = file_of("hello", 3 * PAGE_SIZE);

	start(&g, ops);
	CHECK_EQ(map_fd(&g, 0x1000000, PAGE_SIZE, PROT_READ | PROT_WRITE, 0, fd, 0), 0);
	CHECK_EQ(map_fd(&g, 0x2000000, 3 * PAGE_SIZE, PROT_READ | PROT_WRITE, PLAT_MAP_SHARED, fd,
			0),
		 0);
	CHECK_EQ(map_fd(&g, 0x3000000, PAGE_SIZE, PROT_READ, PLAT_MAP_POPULATE, fd, PAGE_SIZE), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1000000, 6), 6);
	CHECK_EQ(strcmp(buf, "hello"), 0);
	CHECK_EQ(ops->copy_out(g.as, 0x1000000, "J", 1), 1);
	CHECK_EQ(pread(fd, buf, 6, 0), 6);
	CHECK_EQ(strcmp(buf, "hello"), 0);
	CHECK_EQ(ops->copy_out(g.as, 0x2000000, "M", 1), 1);
	CHECK_EQ(ops->copy_out(g.as, 0x2001000, "second", 7), 7);
	CHECK_EQ(pread(fd, buf, 6, 0), 6);
	CHECK_EQ(strcmp(buf, "Mello"), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x3000000, 7), 7);
	CHECK_EQ(strcmp(buf, "second"), 0);
	rig_fork(&g, &child);
	CHECK_EQ(ops->copy_out(child.as, 0x2000000, "X", 1), 1);
	CHECK_EQ(rig_peek(&g, 0x2000000) & 0xff, 'X');
	CHECK_EQ(rig_peek(&child, 0x1000000) & 0xff, 'J');
	/* The child can map on its own. */
	CHECK_EQ(map_fd(&child, 0x4000000, PAGE_SIZE, PROT_READ, PLAT_MAP_SHARED, fd, 0), 0);
	CHECK_EQ(rig_peek(&child, 0x4000000) & 0xff, 'X');
	/* Refusals leave no descriptor behind and the next call works. */
	int ro = open("/proc/self/exe", O_RDONLY);
	CHECK_EQ(map_fd(&g, 0x5000000, PAGE_SIZE, PROT_WRITE, PLAT_MAP_SHARED, ro, 0), -EACCES);
	int dir = open("/", O_RDONLY | O_DIRECTORY);
	CHECK_EQ(map_fd(&g, 0x5000000, PAGE_SIZE, PROT_READ, 0, dir, 0), -ENODEV);
	CHECK_EQ(map_fd(&g, 0x5000000, PAGE_SIZE, PROT_READ, 0, 9999, 0), -EBADF);
	CHECK_EQ(map_fd(&g, 0x5000000, PAGE_SIZE, PROT_READ, 0, ro, 0), 0);
	CHECK_EQ(rig_peek(&g, 0x5000000) & 0xffffffff, 0x464c457f);
	CHECK_EQ(map_fd(&g, 0x5000000, PAGE_SIZE, PROT_READ, PLAT_MAP_NOREPLACE, ro, 0), -EEXIST);
	rig_syscall(&g, 60);
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/fd/3", ops->host_pid(g.as));
	if (strcmp(ops->name, "seccomp") == 0)
		CHECK_EQ(lstat(path, &st), -1);
	rig_free(&child);
	rig_free(&g);
}

static void test_ranges(const struct platform_ops *ops)
{
	struct guest g;
	uint8_t vec[64] = { 0 };
	uint64_t max = ops->info()->task_max;

	start(&g, ops);
	rig_map_anon(&g, 0x1000000, 16 * PAGE_SIZE, PROT_READ | PROT_WRITE, 0);
	rig_poke(&g, 0x1003000, 3);
	rig_poke(&g, 0x1004000, 4);
	/* Copies stop at the first page that is not there. */
	char *buf = malloc(64 * PAGE_SIZE);
	CHECK_EQ(ops->unmap(g.ctx, 0x1008000, PAGE_SIZE), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1007100, 0x4000), 0xf00);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1008100, 0x4000), -EFAULT);
	CHECK_EQ(ops->copy_out(g.as, 0x1000000, buf, 0x10000), 0x8000);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1000000, 0), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, max - 8, 16), -EFAULT);
	CHECK_EQ(ops->copy_in(g.as, buf, max + 0x1000000, 16), -EFAULT);
	CHECK_EQ(ops->copy_in(g.as, buf, UINT64_MAX - 4, 16), -EFAULT);
	/* Protections count. */
	CHECK_EQ(ops->protect(g.ctx, 0x1004000, PAGE_SIZE, PROT_READ), 0);
	CHECK_EQ(ops->copy_out(g.as, 0x1004000, buf, 8), -EFAULT);
	CHECK_EQ(ops->protect(g.ctx, 0x1004000, PAGE_SIZE, PROT_NONE), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1004000, 8), -EFAULT);
	CHECK_EQ(ops->protect(g.ctx, 0x1008000, PAGE_SIZE, PROT_READ), -ENOMEM);
	CHECK_EQ(ops->protect(g.ctx, 0x1004000, PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
	rig_poke(&g, 0x1003000, 3);
	/* Move, shrink, grow. */
	CHECK_EQ(ops->remap(g.ctx, 0x1002000, 2 * PAGE_SIZE, 0x2000000, 4 * PAGE_SIZE, false), 0);
	CHECK_EQ(rig_peek(&g, 0x2001000), 3);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x1003000, 8), -EFAULT);
	CHECK_EQ(ops->remap(g.ctx, 0x2000000, 4 * PAGE_SIZE, 0x2000000, 2 * PAGE_SIZE, false), 0);
	CHECK_EQ(ops->copy_in(g.as, buf, 0x2002000, 8), -EFAULT);
	CHECK_EQ(ops->remap(g.ctx, 0x2000000, 2 * PAGE_SIZE, 0x2000000, 8 * PAGE_SIZE, false), 0);
	rig_poke(&g, 0x2007000, 7);
	CHECK_EQ(ops->remap(g.ctx, 0x2000000, 8 * PAGE_SIZE, 0x3000000, 8 * PAGE_SIZE, true), 0);
	CHECK_EQ(rig_peek(&g, 0x3007000), 7);
	CHECK_EQ(rig_peek(&g, 0x2007000), 0);
	/* Duplicate of a shared mapping. */
	rig_map_anon(&g, 0x4000000, PAGE_SIZE, PROT_READ | PROT_WRITE, PLAT_MAP_SHARED);
	CHECK_EQ(ops->remap(g.ctx, 0x4000000, 0, 0x4100000, PAGE_SIZE, false), 0);
	rig_poke(&g, 0x4000000, 44);
	CHECK_EQ(rig_peek(&g, 0x4100000), 44);
	/* Advice, residency, locks. */
	CHECK_EQ(ops->advise(g.ctx, 0x3000000, 8 * PAGE_SIZE, MADV_DONTNEED), 0);
	CHECK_EQ(rig_peek(&g, 0x3007000), 0);
	CHECK_EQ(ops->advise(g.ctx, 0x3000000, PAGE_SIZE, MADV_MERGEABLE), -EINVAL);
	CHECK_EQ(ops->advise(g.ctx, 0x3000000, PAGE_SIZE, 12345), -EINVAL);
	CHECK_EQ(ops->resident(g.ctx, 0x3000000, 8 * PAGE_SIZE, vec), 0);
	CHECK_EQ(vec[7] & 1, 1);
	CHECK_EQ(vec[3] & 1, 0);
	CHECK_EQ(ops->resident(g.ctx, 0x1008000, PAGE_SIZE, vec), -ENOMEM);
	CHECK_EQ(ops->lock(g.ctx, 0x3000000, 4 * PAGE_SIZE, true), 0);
	CHECK_EQ(ops->resident(g.ctx, 0x3000000, 8 * PAGE_SIZE, vec), 0);
	CHECK_EQ(vec[3] & 1, 1);
	CHECK_EQ(ops->lock(g.ctx, 0x3000000, 4 * PAGE_SIZE, false), 0);
	/* Nothing reaches our own region. */
	CHECK_EQ(ops->unmap(g.ctx, max, PAGE_SIZE), -EINVAL);
	CHECK_EQ(ops->unmap(g.ctx, 0x10000, max), -EINVAL);
	CHECK_EQ(ops->protect(g.ctx, max + 0x10000, PAGE_SIZE, PROT_READ | PROT_WRITE), -EINVAL);
	CHECK_EQ(ops->unmap(g.ctx, 0x1000000, 0), -EINVAL);
	CHECK_EQ(ops->unmap(g.ctx, 0x1000001, PAGE_SIZE), -EINVAL);
	CHECK_EQ(map_fd(&g, max, PAGE_SIZE, PROT_READ, PLAT_MAP_ANON, -1, 0), -EINVAL);
	CHECK_EQ(ops->remap(g.ctx, 0x3000000, PAGE_SIZE, max, PAGE_SIZE, false), -EINVAL);
	/* Everything below it may go at once. */
	CHECK_EQ(ops->unmap(g.ctx, ops->info()->task_min, max - ops->info()->task_min), 0);
	rig_map_anon(&g, RIG_CODE, PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, 0);
	CHECK_EQ(ops->copy_out(g.as, RIG_CODE, m_begin, (size_t)(m_end - m_begin)),
		 m_end - m_begin);
	rig_at(&g, 0);
	rig_syscall(&g, 60);
	rig_free(&g);
}

static void test_force(const struct platform_ops *ops)
{
	struct guest g;
	char buf[32] = "";

	start(&g, ops);
	rig_map_anon(&g, 0x1000000, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE, 0);
	CHECK_EQ(ops->copy_out(g.as, 0x1000ff0, "0123456789abcdefghijklmnopqrst", 30), 30);
	CHECK_EQ(ops->force_in(g.as, buf, 0x1000ff3, 20), 20);
	CHECK_EQ(memcmp(buf, "3456789abcdefghijklm", 20), 0);
	CHECK_EQ(ops->protect(g.ctx, 0x1000000, 2 * PAGE_SIZE, PROT_READ), 0);
	ssize_t n = ops->force_out(g.as, 0x1000ff5, "XYZXYZXYZXYZX", 13);
	if (n != -EFAULT) {
		CHECK_EQ(n, 13);
		CHECK_EQ(ops->copy_in(g.as, buf, 0x1000ff0, 30), 30);
		CHECK_EQ(memcmp(buf, "01234XYZXYZXYZXYZXijklmnopqrst", 30), 0);
	}
	CHECK_EQ(ops->force_in(g.as, buf, 0x9000000, 8), -EFAULT);
	CHECK_EQ(ops->force_in(g.as, buf, ops->info()->task_max, 8), -EFAULT);
	rig_free(&g);
}

static void test_vdso(const struct platform_ops *ops)
{
	struct guest g;
	const struct plat_info *info = ops->info();
	Elf64_Ehdr eh;

	start(&g, ops);
	CHECK(info->fp_size >= 576);
	CHECK(info->task_max > 0x7ff000000000);
	if (info->vdso.size == 0)
		_exit(77);
	CHECK(info->vdso.addr + info->vdso.size <= info->task_max);
	CHECK_EQ(info->vvar.addr + info->vvar.size, info->vdso.addr);
	CHECK_EQ(ops->copy_in(g.as, &eh, info->vdso.addr, sizeof(eh)), sizeof(eh));
	CHECK_EQ(memcmp(eh.e_ident, ELFMAG, SELFMAG), 0);
	/* Call clock_gettime through it: found by its symbol. */
	uint8_t image[16384];
	CHECK(info->vdso.size <= sizeof(image));
	CHECK_EQ(ops->copy_in(g.as, image, info->vdso.addr, info->vdso.size), info->vdso.size);
	const Elf64_Shdr *sh = (const void *)(image + eh.e_shoff);
	uint64_t entry = 0;
	for (int i = 0; i < eh.e_shnum; i++) {
		if (sh[i].sh_type != SHT_DYNSYM)
			continue;
		const Elf64_Sym *sym = (const void *)(image + sh[i].sh_offset);
		const char *names = (const char *)image + sh[sh[i].sh_link].sh_offset;
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++)
			if (strcmp(names + sym[k].st_name, "__vdso_clock_gettime") == 0)
				entry = info->vdso.addr + sym[k].st_value;
	}
	CHECK(entry != 0);
	rig_poke(&g, g.regs.rsp, RIG_CODE);
	g.regs.rip = entry;
	g.regs.rdi = 1;
	g.regs.rsi = RIG_DATA;
	ops->run(g.ctx, &g.regs, &g.ev);
	CHECK_EQ(g.ev.kind, PLAT_SYSCALL);
	/* Either it answered in place, or this host's clock needs a call. */
	if (g.regs.orig_rax == 60) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		CHECK(rig_peek(&g, RIG_DATA) <= (uint64_t)now.tv_sec);
		CHECK(rig_peek(&g, RIG_DATA) + 10 > (uint64_t)now.tv_sec);
	} else {
		CHECK_EQ(g.regs.orig_rax, 228);
	}
	rig_free(&g);
}

static const struct rig_test tests[] = {
	{ "files", test_files, 0, false },
	{ "ranges", test_ranges, 0, false },
	{ "force", test_force, 0, false },
	{ "vdso", test_vdso, 0, false },
};

int main(void)
{
	return rig_main("platform: memory", tests, ARRAY_SIZE(tests));
}

/*
 * The first stack of a program. From the top down: eight zero bytes, the name of the program, the
 * environment strings, the argument strings, a random gap, "x86_64", 16 random bytes, and at rsp:
 * argc, argv, NULL, envp, NULL, the auxiliary vector.
 */
#include "sentry/stack.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "fs/cred.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "sentry/elf.h"
#include "sentry/plat.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define STACK_EXTRA (128ul << 10) /* mapped below what exec needs, as setup_arg_pages does */
#define CLOCKS_PER_SECOND 100     /* USER_HZ */

struct layout {
	uint64_t execfn, env_start, arg_start; /* addresses of the strings */
	uint64_t platform, random;
	uint64_t sp;
	size_t vector_bytes;
};

static void put_aux(struct mm *mm, uint64_t type, uint64_t value)
{
	BUG_ON(mm->auxv_words + 2 > ARRAY_SIZE(mm->auxv));
	mm->auxv[mm->auxv_words++] = type;
	mm->auxv[mm->auxv_words++] = value;
}

/* EDX of CPUID leaf 1, as the kernel gives it. getauxval in a static program gives libc's own word
 * instead. */
static uint64_t cpu_features(void)
{
	uint32_t eax, ebx, ecx, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) ? edx : 0;
}

/* In the kernel's order: some programs count on AT_SYSINFO_EHDR coming first. */
static void fill_auxv(struct mm *mm, const struct stack_spec *s, const struct layout *l)
{
	const struct plat_info *info = plat->info();
	const struct cred *c = s->cred;

	mm->auxv_words = 0;
	if (info->vdso.size)
		put_aux(mm, AT_SYSINFO_EHDR, info->vdso.addr);
	if (getauxval(AT_MINSIGSTKSZ))
		put_aux(mm, AT_MINSIGSTKSZ, getauxval(AT_MINSIGSTKSZ));
	put_aux(mm, AT_HWCAP, cpu_features());
	put_aux(mm, AT_PAGESZ, PAGE_SIZE);
	put_aux(mm, AT_CLKTCK, CLOCKS_PER_SECOND);
	put_aux(mm, AT_PHDR, s->phdr);
	put_aux(mm, AT_PHENT, ELF_PHDR_SIZE);
	put_aux(mm, AT_PHNUM, s->phnum);
	put_aux(mm, AT_BASE, s->base);
	put_aux(mm, AT_FLAGS, 0);
	put_aux(mm, AT_ENTRY, s->entry);
	put_aux(mm, AT_UID, c->uid);
	put_aux(mm, AT_EUID, c->euid);
	put_aux(mm, AT_GID, c->gid);
	put_aux(mm, AT_EGID, c->egid);
	put_aux(mm, AT_SECURE, s->secure);
	put_aux(mm, AT_RANDOM, l->random);
	put_aux(mm, AT_HWCAP2, getauxval(AT_HWCAP2));
	put_aux(mm, AT_EXECFN, l->execfn);
	put_aux(mm, AT_PLATFORM, l->platform);
	put_aux(mm, AT_NULL, 0);
}

#define AUXV_WORDS_MAX 64

static void plan(const struct stack_spec *s, struct layout *l)
{
	uint64_t p = s->top - 8, jitter = 0;

	l->execfn = p - (strlen(s->execfn) + 1);
	l->arg_start = l->execfn - s->strings_size;
	if (s->randomize)
		host_random(&jitter, sizeof(jitter));
	p = (l->arg_start - jitter % 8192) & ~15ull;
	l->platform = p - sizeof("x86_64");
	l->random = (l->platform - 16) & ~15ull;
	l->vector_bytes = ((size_t)s->argc + (size_t)s->envc + 3 + AUXV_WORDS_MAX) * 8;
	l->sp = (l->random - l->vector_bytes) & ~15ull;
}

static int map_stack(struct mm *mm, struct plat_ctx *via, const struct stack_spec *s,
		     const struct layout *l)
{
	uint64_t need = s->top - page_down(l->sp);
	uint64_t size = need + STACK_EXTRA;

	/* exec(2): a quarter of the limit is for strings and vectors; the kernel always allows 128
	 * KiB. */
	if (need > (6ul << 20) || (need > STACK_EXTRA && need > s->rlimit / 4 + 2 * PAGE_SIZE))
		return -E2BIG;
	if (size > s->rlimit)
		size = MAX(need, page_down(s->rlimit));
	struct mmap_request req = {
		.addr = s->top - size,
		.size = size,
		.prot = PROT_READ | PROT_WRITE | (s->exec_stack ? PROT_EXEC : 0),
		.map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN,
		.vma_flags = VMA_STACK,
	};
	int64_t r = mm_mmap_on(mm, via, &req);
	return r < 0 ? (int)r : 0;
}

static int put(struct mm *mm, uint64_t addr, const void *data, size_t n)
{
	return mm_copy_out(mm, addr, data, n) == (ssize_t)n ? 0 : -EFAULT;
}

/* Appends the addresses of n strings and a NULL; returns the address behind them. */
static uint64_t put_vector(uint64_t *words, size_t *count, const char **strings, uint64_t addr,
			   int n)
{
	for (int i = 0; i < n; i++) {
		size_t len = strlen(*strings) + 1;
		words[(*count)++] = addr;
		addr += len;
		*strings += len;
	}
	words[(*count)++] = 0;
	return addr;
}

static int put_vectors(struct mm *mm, const struct stack_spec *s, const struct layout *l)
{
	const char *strings = s->strings;
	size_t count = 0;
	uint64_t *words = mem_zalloc(l->vector_bytes);

	if (!words)
		return -ENOMEM;
	words[count++] = (uint64_t)s->argc;
	mm->arg_start = l->arg_start;
	mm->arg_end = mm->env_start = put_vector(words, &count, &strings, l->arg_start, s->argc);
	mm->env_end = put_vector(words, &count, &strings, mm->env_start, s->envc);
	memcpy(words + count, mm->auxv, mm->auxv_words * 8);
	count += mm->auxv_words;
	int err = put(mm, l->sp, words, count * 8);
	mem_free(words);
	return err;
}

int stack_build(struct mm *mm, struct plat_ctx *via, const struct stack_spec *s, uint64_t *out_sp)
{
	uint8_t seed[16];
	struct layout l;

	plan(s, &l);
	int err = map_stack(mm, via, s, &l);
	if (err)
		return err;
	host_random(seed, sizeof(seed));
	fill_auxv(mm, s, &l);
	err = put(mm, l.execfn, s->execfn, strlen(s->execfn) + 1);
	if (!err)
		err = put(mm, l.arg_start, s->strings, s->strings_size);
	if (!err)
		err = put(mm, l.platform, "x86_64", sizeof("x86_64"));
	if (!err)
		err = put(mm, l.random, seed, sizeof(seed));
	if (!err)
		err = put_vectors(mm, s, &l);
	mm->start_stack = l.sp;
	*out_sp = l.sp;
	return err;
}

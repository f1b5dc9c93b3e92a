/*
 * Build-time tool: turns host.def into the header host_filter.h with one BPF program per role, so
 * that start-up costs one system call and no library. Not part of the binary.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <asm/ioctls.h>
#include <unistd.h>

/* Calls newer than the headers of Debian 12. */
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
/* Not in the userspace headers under these names with glibc's fcntl.h alone. */
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

#define SENTRY 1u
#define PTRACER 2u
#define GOFER 4u
#define WATCHER 8u

struct role {
	const char *name;
	unsigned rows; /* rows with one of these bits belong to it */
};

static const struct role roles[] = {
	{ "sentry", SENTRY },
	{ "sentry_ptrace", SENTRY | PTRACER },
	{ "gofer", GOFER },
	{ "watcher", WATCHER },
};

struct row {
	const char *name;
	int number;
	unsigned roles;
	const char *reason;
	int error; /* 0: allow */
	unsigned cond_count;
	struct scmp_arg_cmp cond[4];
};

#define EQ(i, v)                                                                                   \
	{                                                                                          \
		.arg = (i), .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)(v)                        \
	}
#define LE(i, v)                                                                                   \
	{                                                                                          \
		.arg = (i), .op = SCMP_CMP_LE, .datum_a = (scmp_datum_t)(v)                        \
	}
#define BITS(i, m, v)                                                                              \
	{                                                                                          \
		.arg = (i), .op = SCMP_CMP_MASKED_EQ, .datum_a = (scmp_datum_t)(m),                \
		.datum_b = (scmp_datum_t)(v)                                                       \
	}
#define COUNT(...)                                                                                 \
	(sizeof((const struct scmp_arg_cmp[]){ __VA_ARGS__ }) / sizeof(struct scmp_arg_cmp))

#define HOSTCALL(n, who, why) { #n, __NR_##n, (who), why, 0, 0, { { 0 } } },
#define HOSTCALL_IF(n, who, why, ...)                                                              \
	{ #n, __NR_##n, (who), why, 0, COUNT(__VA_ARGS__), { __VA_ARGS__ } },
#define HOSTCALL_ERRNO(n, who, why, err) { #n, __NR_##n, (who), why, (err), 0, { { 0 } } },

static const struct row rows[] = {
#include "platform/host/host.def"
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("gen_filter: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* A plain row beside another for the same call and role would make the other void. */
static void check_rows(const struct role *role)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (!rows[i].reason[0])
			die("%s has no reason", rows[i].name);
		for (size_t j = 0; j < ROW_COUNT; j++)
			if (i != j && rows[i].number == rows[j].number && !rows[i].cond_count &&
			    (rows[i].roles & role->rows) && (rows[j].roles & role->rows))
				die("%s has two rows for role %s, one without conditions",
				    rows[i].name, role->name);
	}
}

static void add_rows(scmp_filter_ctx ctx, const struct role *role)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];
		if (!(r->roles & role->rows))
			continue;
		uint32_t action = r->error ? SCMP_ACT_ERRNO((unsigned)r->error) : SCMP_ACT_ALLOW;
		int err = seccomp_rule_add_exact_array(ctx, action, r->number, r->cond_count,
						       r->cond_count ? r->cond : NULL);
		if (err)
			die("%s for role %s: %s", r->name, role->name, strerror(-err));
	}
}

/* libseccomp exports to a descriptor. */
static void print_program(scmp_filter_ctx ctx, const char *name)
{
	FILE *f = tmpfile();
	struct sock_filter insn;
	unsigned count = 0;

	if (!f)
		die("tmpfile: %s", strerror(errno));
	if (seccomp_export_bpf(ctx, fileno(f)) != 0)
		die("cannot export the filter of %s", name);
	rewind(f);
	printf("static const struct sock_filter filter_%s[] = {\n", name);
	while (fread(&insn, sizeof(insn), 1, f) == 1) {
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", insn.code, insn.jt, insn.jf, insn.k);
		count++;
	}
	printf("};\n\n");
	fclose(f);
	if (count == 0 || count > BPF_MAXINSNS)
		die("the filter of %s has %u instructions", name, count);
}

static void print_names(void)
{
	printf("#ifdef PINFOLD_DEBUG\nstatic const char *const host_call_names[] = {\n");
	for (int nr = 0; nr < 512; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr);
		if (name)
			printf("\t[%d] = \"%s\",\n", nr, name);
		free(name);
	}
	printf("};\n#endif\n");
}

int main(void)
{
	/* The program is for the machine that runs pinfold: what the kernel of the build machine
	 * has (a sandbox may have no seccomp) does not matter. Level 3 knows KILL_PROCESS. */
	if (seccomp_api_set(3) != 0)
		die("libseccomp is too old");
	printf("/* Made by platform/host/gen_filter.c from platform/host/host.def. */\n");
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		check_rows(&roles[i]);
		scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
		if (!ctx)
			die("no memory");
		if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0 ||
		    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0)
			die("libseccomp is too old");
		add_rows(ctx, &roles[i]);
		print_program(ctx, roles[i].name);
		seccomp_release(ctx);
	}
	print_names();
	return 0;
}

/*
 * Birth of the first stub: see boot.h.
 *
 * The child of fork() is a copy of the sentry, whose image, heap, stack or vDSO may lie anywhere,
 * also where the stub's own parts shall be. So the work is done in three steps:
 *  1. ordinary C code: settle signals, limits, descriptors; make a temporary area at a low address
 *     with two copies of our code, slot 0 and a list of system calls; move the vDSO there;
 *  2. stub_boot, running in the first copy without any stack, goes through the list: unmap
 * everything else, move the second copy, the slot and the vDSO to their final places, install the
 * filter;
 *  3. it jumps to the final copy; the sentry later has the temporary area unmapped.
 */
#include "platform/stub/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/stub/frame.h"
#include "platform/stub/layout.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Where the temporary area may be; the first free place is taken. Far from where kernels put
 * things, but sanitizers spread over much of the address space. */
#define TEMP_FIRST 0x200000000000ul
#define TEMP_STEP 0x040000000000ul
#define TEMP_TRIES 20
#define TEMP_CODE_RUN 0x1000ul
#define TEMP_CODE_MOVE 0x2000ul
#define TEMP_FILTER 0x4000ul
#define TEMP_FILTER_SIZE 0xc000ul
#define TEMP_SLOT 0x10000ul
#define TEMP_VDSO 0x20000ul
#define TEMP_VDSO_SIZE 0x10000ul

#define MAX_COMMANDS 48
#define PIECES 4

/* Exit statuses of a child that fails in step 1; step 2 uses the number of the command. */
enum boot_exit {
	BOOT_TEMP_AREA = 101,
	BOOT_VDSO,
	BOOT_SLOT,
	BOOT_RSEQ,
	BOOT_ORPHAN,
	BOOT_KEEP_FD,
	BOOT_CAPABILITIES
};

struct piece {
	uint64_t start, size;
	bool code;
};

struct list_builder {
	struct stub_command *list;
	size_t count;
};

static struct piece pieces[PIECES];
static size_t piece_count;
static bool vdso_sealed;
static uint64_t temp_addr;

uint64_t boot_temp_addr(void)
{
	return temp_addr;
}

static int choose_temp(void)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		void *want = (void *)(TEMP_FIRST + i * TEMP_STEP);
		void *p = mmap(want, BOOT_TEMP_SIZE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == MAP_FAILED)
			continue;
		munmap(p, BOOT_TEMP_SIZE);
		if (p == want) {
			temp_addr = (uint64_t)p;
			return 0;
		}
	}
	return -ENOMEM;
}

/* Newer kernels may have sealed it, so that it can be neither moved nor unmapped. A change of
 * protection that changes nothing tells. */
static bool is_sealed(const struct piece *p)
{
	return mprotect((void *)p->start, p->size, PROT_READ | PROT_EXEC) < 0 && errno == EPERM;
}

/* Finds the parts of the vDSO; they are contiguous, data first. */
static int find_vdso(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	if (!f)
		return -errno;
	piece_count = 0;
	vdso_sealed = false;
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		bool code = strstr(line, "[vdso]") != NULL;
		if (!code && !strstr(line, "[vvar"))
			continue;
		if (sscanf(line, "%lx-%lx ", &start, &end) != 2 || piece_count == PIECES)
			continue;
		struct piece *p = &pieces[piece_count++];
		*p = (struct piece){ start, end - start, code };
		vdso_sealed = vdso_sealed || (code && is_sealed(p));
	}
	fclose(f);
	/* It stays where it is then, which must be in the guest's part. */
	if (vdso_sealed && pieces[piece_count - 1].start >= STUB_BASE - TEMP_VDSO_SIZE)
		return -ENOTSUP;
	return 0;
}

/* Where the vDSO's code will start relative to its first piece; the layout is kept. */
static uint64_t piece_final(size_t i)
{
	if (vdso_sealed)
		return pieces[i].start;
	for (size_t k = 0; k < piece_count; k++)
		if (pieces[k].code)
			return STUB_VDSO + pieces[i].start - pieces[k].start;
	return 0;
}

static void describe_vdso(struct plat_info *info)
{
	memset(&info->vvar, 0, sizeof(info->vvar));
	memset(&info->vdso, 0, sizeof(info->vdso));
	for (size_t i = 0; i < piece_count; i++) {
		struct plat_region *r = pieces[i].code ? &info->vdso : &info->vvar;
		if (r->size == 0)
			r->addr = piece_final(i);
		r->size = piece_final(i) + pieces[i].size - r->addr;
		r->prot = PROT_READ | (pieces[i].code ? PROT_EXEC : 0);
	}
}

static void add(struct list_builder *b, uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
		uint64_t a3, uint64_t a4, bool may_fail)
{
	b->list[b->count++] = (struct stub_command){
		.nr = nr,
		.args = { a0, a1, a2, a3, a4, 0 },
		.result = may_fail,
	};
}

static void add_move(struct list_builder *b, uint64_t from, uint64_t to, uint64_t size)
{
	add(b, SYS_mremap, from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to, false);
}

static void *map_at(uint64_t addr, uint64_t size, int prot, int flags, int fd)
{
	void *want = (void *)addr;
	void *p = mmap(want, size, prot, flags | MAP_FIXED, fd, 0);
	return p == want ? p : NULL;
}

/* The kernel's struct sigaction. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};

#define KERNEL_SA_RESTORER 0x04000000ul

static void set_signals(bool traced)
{
	static const int handled[] = {
		SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, STUB_KICK
	};
	struct kernel_sigaction sa = { 0 };
	uint64_t in_handler = ~((1ul << (SIGSEGV - 1)) | (1ul << (SIGBUS - 1)));
	uint64_t mask = traced ? 0 : in_handler;
	stack_t no_stack = { .ss_flags = SS_DISABLE };

	for (int i = 1; i <= 64; i++)
		syscall(SYS_rt_sigaction, i, &sa, NULL, 8);
	sa.handler = stub_code_addr(stub_handler);
	sa.restorer = stub_code_addr(stub_restorer);
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++) {
		int s = handled[i];
		bool nests = s == SIGSEGV || s == SIGBUS;
		sa.flags = SA_SIGINFO | SA_ONSTACK | KERNEL_SA_RESTORER | (nests ? SA_NODEFER : 0u);
		sa.mask = in_handler;
		syscall(SYS_rt_sigaction, s, &sa, NULL, 8);
	}
	/* A stub that has not run yet is parked as if in the handler: same mask, no signal stack
	 * armed. A traced one must be open to the kick, which its tracer sees. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	syscall(SYS_sigaltstack, &no_stack, NULL);
}

static void leave_libc(void)
{
	/* The kernel must not write into thread data that will be gone. */
	if (__rseq_size) {
		char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
		long err = -1;
		/* It must be the size that libc registered: 32 at first, more in newer ones. */
		for (unsigned size = 32; err && size <= 512; size += 32)
			err = syscall(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
		if (err)
			_exit(BOOT_RSEQ);
	}
	syscall(SYS_set_robust_list, NULL, 24);
	syscall(SYS_set_tid_address, NULL);
}

/* A stub needs no privilege; CAP_IPC_LOCK, for one, would lift the bound on what a guest can lock.
 */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &head, none) < 0)
		_exit(BOOT_CAPABILITIES);
}

static void keep_only(int fd)
{
	if (dup2(fd, STUB_FD) < 0)
		_exit(BOOT_KEEP_FD);
	syscall(SYS_close_range, 0, STUB_FD - 1, 0);
	syscall(SYS_close_range, STUB_FD + 1, ~0u, 0);
}

static uint8_t *make_temp(const struct boot_spec *spec)
{
	size_t code_size = (size_t)(stub_code_end - stub_code_begin);
	void *temp = mmap((void *)temp_addr, BOOT_TEMP_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	uint8_t *t = temp;

	if (temp != (void *)temp_addr)
		_exit(BOOT_TEMP_AREA);
	memcpy(t + TEMP_CODE_RUN, stub_code_begin, code_size);
	memcpy(t + TEMP_CODE_MOVE, stub_code_begin, code_size);
	if (mprotect(t + TEMP_CODE_RUN, 2 * STUB_CODE_SIZE, PROT_READ | PROT_EXEC) < 0)
		_exit(BOOT_TEMP_AREA);
	if (spec->slots_fd >= 0 && !map_at(temp_addr + TEMP_SLOT, STUB_SLOT_SIZE,
					   PROT_READ | PROT_WRITE, MAP_SHARED, spec->slots_fd))
		_exit(BOOT_SLOT);
	return t;
}

/* Moves the vDSO out of the way. */
static void lift_vdso(void)
{
	for (size_t i = 0; i < piece_count; i++) {
		uint64_t to = temp_addr + TEMP_VDSO + pieces[i].start - pieces[0].start;
		void *p = mremap((void *)pieces[i].start, pieces[i].size, pieces[i].size,
				 MREMAP_MAYMOVE | MREMAP_FIXED, (void *)to);
		if (p != (void *)to)
			_exit(BOOT_VDSO);
	}
}

/* Unmaps [from, to) but for a sealed vDSO. */
static void add_unmap(struct list_builder *b, uint64_t from, uint64_t to)
{
	uint64_t start = to, end = to;

	if (vdso_sealed && pieces[0].start > from && pieces[0].start < to) {
		start = pieces[0].start;
		end = pieces[piece_count - 1].start + pieces[piece_count - 1].size;
	}
	add(b, SYS_munmap, from, start - from, 0, 0, 0, false);
	if (end < to)
		add(b, SYS_munmap, end, to - end, 0, 0, 0, false);
}

static void add_filter(struct list_builder *b, uint8_t *temp, const struct sock_fprog *filter)
{
	struct sock_fprog *copy = (struct sock_fprog *)(void *)(temp + TEMP_FILTER);
	struct sock_filter *code = (struct sock_filter *)(void *)(copy + 1);

	memcpy(code, filter->filter, filter->len * sizeof(*code));
	*copy = (struct sock_fprog){ .len = filter->len, .filter = code };
	add(b, SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW, (uint64_t)copy, 0, 0,
	    false);
}

static NORETURN void child_main(const struct boot_spec *spec, int parent, uint64_t sp)
{
	struct rlimit no_core = { 0, 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(BOOT_ORPHAN);
	setsid();
	setrlimit(RLIMIT_CORE, &no_core);
	if (chdir("/") < 0)
		_exit(BOOT_TEMP_AREA);
	prctl(PR_SET_NAME, "pinfold-stub");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	set_signals(spec->traced);
	uint8_t *temp = make_temp(spec);
	if (!spec->filter)
		keep_only(spec->keep_fd);
	drop_capabilities();
	if (spec->traced && ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
		_exit(BOOT_ORPHAN);
	leave_libc();

	struct list_builder b = { .list = (struct stub_command *)(void *)temp };
	size_t moved = vdso_sealed ? 0 : piece_count;
	if (moved)
		lift_vdso();
	add_unmap(&b, STUB_TASK_MIN, temp_addr);
	add_unmap(&b, temp_addr + BOOT_TEMP_SIZE, STUB_TOP);
	add_move(&b, temp_addr + TEMP_CODE_MOVE, STUB_CODE, STUB_CODE_SIZE);
	if (spec->slots_fd >= 0) {
		add_move(&b, temp_addr + TEMP_SLOT, STUB_SLOTS, STUB_SLOT_SIZE);
		add(&b, SYS_madvise, STUB_SLOTS, STUB_SLOT_SIZE, MADV_DONTFORK, 0, 0, false);
	}
	for (size_t i = 0; i < moved; i++)
		add_move(&b, temp_addr + TEMP_VDSO + pieces[i].start - pieces[0].start,
			 piece_final(i), pieces[i].size);
	/* The sentry's thread pointer must not show in the guest. ARCH_SET_FS, ARCH_SET_GS. */
	add(&b, SYS_arch_prctl, 0x1002, 0, 0, 0, 0, false);
	add(&b, SYS_arch_prctl, 0x1001, 0, 0, 0, 0, false);
	add(&b, SYS_mseal, STUB_CODE, STUB_CODE_SIZE, 0, 0, 0, true);
	if (spec->filter)
		add_filter(&b, temp, spec->filter);

	void (*run)(struct stub_command *, size_t, uint64_t, uint64_t);
	void *at = temp + TEMP_CODE_RUN + (stub_boot - stub_code_begin);
	memcpy(&run, &at, sizeof(run));
	run(b.list, b.count, sp, stub_code_addr(spec->traced ? stub_trap : stub_zygote));
	__builtin_unreachable();
}

int boot_first_stub(const struct boot_spec *spec, struct plat_info *info, int *out_pid)
{
	int parent = getpid();
	int err = find_vdso();

	if (!err)
		err = choose_temp();
	if (err)
		return err;
	if ((size_t)(stub_code_end - stub_code_begin) > STUB_CODE_SIZE)
		BUG("the stub's code outgrew its page");
	describe_vdso(info);
	info->task_min = STUB_TASK_MIN;
	info->task_max = STUB_TASK_MAX;
	info->fp_size = fp_size();
	uint64_t sp = stub_slot_addr(0) + STUB_SLOT_SIZE - 64;
	/* The listener that the filter's installation makes shall be ours too, and pidfd_getfd is
	 * forbidden in common containers: share the descriptor table for this moment. */
	pid_t pid =
		(pid_t)syscall(SYS_clone, (spec->filter ? CLONE_FILES : 0) | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_main(spec, parent, sp);
	*out_pid = pid;
	return 0;
}

/*
 * Every way into a kernel that user code has. What the guest reaches is the sandbox's kernel, by
 * the native call; all others are refused, and none reaches the host's.
 */
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#include "tests/attack/stub.h"
#include "tests/guest/t.h"

static long raw64(long nr)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr) : "rcx", "r11", "memory");
	return r;
}

static long raw_int80(long nr, long arg)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(arg)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
}

TEST(syscall_instruction_reaches_the_sandbox)
{
	CHECK_EQ(raw64(SYS_getpid), getpid());
	CHECK_EQ(raw64(SYS_gettid), getpid());
}

TEST(int80_is_refused)
{
	/* 20 is getpid and 1 exit in the i386 table. */
	CHECK_EQ(raw_int80(20, 0), -ENOSYS);
	pid_t pid = fork();
	if (pid == 0) {
		raw_int80(1, 77);
		_exit(3);
	}
	CHECK_CHILD(pid, 3);
}

TEST(x32_numbers_are_refused)
{
	CHECK_EQ(raw64(0x40000000 | SYS_getpid), -ENOSYS);
	CHECK_EQ(raw64(0x40000000 | 520), -ENOSYS);
	CHECK_EQ(raw64(-1), -ENOSYS);
	CHECK_EQ(raw64(0x7fffffff), -ENOSYS);
}

TEST(sysenter_is_refused)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		/* exit(77) of i386; whatever comes after, it must not be that. */
		static uint64_t stack[64];
		__asm__ volatile(
			"mov %0, %%rbp; mov $1, %%eax; mov $77, %%ebx; sysenter" ::"r"(&stack[32])
			: "rax", "rbx", "memory");
		_exit(3);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 77));
}

/* 32-bit code: mov $20,%eax; int $0x80; lret */
static const uint8_t compat_code[] = { 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xcb };

TEST(compatibility_mode_is_refused)
{
	uint8_t *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct {
		uint32_t off;
		uint16_t seg;
	} __attribute__((packed)) target;
	long r;

	CHECK_OK(low);
	memcpy(low, compat_code, sizeof(compat_code));
	/* Back to 64-bit code through a far jump stub in low memory: the far return needs a 32-bit
	 * address. */
	uint8_t *back = low + 64;
	/* 64-bit: mov %r12,%rsp; ret */
	memcpy(back, "\x4c\x89\xe4\xc3", 4);
	uint32_t *stack = (uint32_t *)(void *)(low + 8192 - 64);
	stack[0] = (uint32_t)(uintptr_t)back;
	stack[1] = 0x33;
	target.off = (uint32_t)(uintptr_t)low;
	target.seg = 0x23;
	__asm__ volatile("call 1f\n"
			 "jmp 2f\n"
			 "1: mov %%rsp, %%r12\n"
			 "mov %2, %%rsp\n"
			 "ljmp *(%1)\n"
			 "2:\n"
			 : "=a"(r)
			 : "r"(&target), "r"(stack)
			 : "r12", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "memory");
	CHECK_EQ((int)r, -ENOSYS);
}

TEST(vsyscall_page_is_harmless)
{
	long (*vtime)(long *) = (long (*)(long *))0xffffffffff600400ul;

	stub_catch_faults();
	if (sigsetjmp(stub_jump, 1)) {
		CHECK_EQ(stub_signal, SIGSEGV);
		return;
	}
	long now = vtime(NULL), want = time(NULL);
	CHECK(now <= want && now + 5 > want);
}

T_MAIN

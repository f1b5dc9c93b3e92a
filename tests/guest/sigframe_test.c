/*
 * sigaltstack(2), rt_sigreturn(2), faults: what a handler finds in its arguments and on its stack, and what the
 * interrupted code finds afterwards.
 */
#include <immintrin.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "tests/guest/t.h"

static siginfo_t info;
static ucontext_t context;
static sigjmp_buf env;
static volatile int hits;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	hits++;
	info = *si;
	memcpy(&context, uc, sizeof(context));
	siglongjmp(env, 1);
}

static void catch(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	CHECK_OK(sigaction(sig, &sa, NULL));
}

TEST(segv_maperr)
{
	catch(SIGSEGV);
	if (!sigsetjmp(env, 1))
		*(volatile char *)0x1234 = 1;
	CHECK_EQ(hits, 1);
	CHECK_EQ(info.si_signo, SIGSEGV);
	CHECK_EQ(info.si_code, SEGV_MAPERR);
	CHECK_EQ((long)info.si_addr, 0x1234);
	CHECK_EQ(context.uc_mcontext.gregs[REG_CR2], 0x1234);
	CHECK_EQ(context.uc_mcontext.gregs[REG_TRAPNO], 14);
	CHECK_EQ(context.uc_mcontext.gregs[REG_ERR] & 4, 4); /* by user code; a ptrace stop does not tell a write */
}

TEST(segv_accerr)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	catch(SIGSEGV);
	if (!sigsetjmp(env, 1))
		*(volatile char *)(p + 7) = 1;
	CHECK_EQ(info.si_code, SEGV_ACCERR);
	CHECK((char *)info.si_addr == p + 7);
}

TEST(segv_non_canonical)
{
	catch(SIGSEGV);
	if (!sigsetjmp(env, 1))
		*(volatile char *)0x8000000000000000ul = 1;
	CHECK_EQ(info.si_code, SI_KERNEL);
	CHECK_EQ((long)info.si_addr, 0);
}

TEST(sigbus_past_the_end_of_a_file)
{
	int fd = memfd_create("x", 0);
	char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	catch(SIGBUS);
	if (!sigsetjmp(env, 1))
		(void)*(volatile char *)p;
	CHECK_EQ(info.si_signo, SIGBUS);
	CHECK_EQ(info.si_code, BUS_ADRERR);
	CHECK((char *)info.si_addr == p);
}

TEST(divide_by_zero)
{
	catch(SIGFPE);
	if (!sigsetjmp(env, 1))
		__asm__ volatile("xor %%edx, %%edx; mov $1, %%eax; div %%edx" ::: "eax", "edx", "cc");
	CHECK_EQ(info.si_signo, SIGFPE);
	CHECK_EQ(info.si_code, FPE_INTDIV);
	CHECK_EQ(context.uc_mcontext.gregs[REG_RIP], (long)info.si_addr);
}

TEST(illegal_instruction)
{
	catch(SIGILL);
	if (!sigsetjmp(env, 1))
		__asm__ volatile("ud2");
	CHECK_EQ(info.si_signo, SIGILL);
	CHECK_EQ(info.si_code, ILL_ILLOPN);
	CHECK_EQ(context.uc_mcontext.gregs[REG_RIP], (long)info.si_addr);
}

TEST(breakpoint)
{
	catch(SIGTRAP);
	if (!sigsetjmp(env, 1))
		__asm__ volatile("int3");
	CHECK_EQ(info.si_signo, SIGTRAP);
	CHECK_EQ(info.si_code, SI_KERNEL);
}

TEST(privileged_instruction)
{
	catch(SIGSEGV);
	if (!sigsetjmp(env, 1))
		__asm__ volatile("hlt");
	CHECK_EQ(info.si_signo, SIGSEGV);
	CHECK_EQ(info.si_code, SI_KERNEL);
}

TEST(blocked_fault_kills)
{
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t s;
		catch(SIGSEGV);
		sigfillset(&s);
		sigprocmask(SIG_BLOCK, &s, NULL);
		*(volatile char *)0 = 1;
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_IGN);
		*(volatile char *)0 = 1;
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
}

/* ---- registers ---- */

static void clobber(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si, (void)uc;
	hits++;
	__asm__ volatile("xor %%ebx, %%ebx; xor %%ecx, %%ecx; xor %%r8, %%r8; xor %%r15, %%r15;"
			 "pxor %%xmm0, %%xmm0; pxor %%xmm15, %%xmm15; std; cld; fninit" ::
				 : "rbx", "rcx", "r8", "r15", "xmm0", "xmm15", "cc");
}

TEST(general_and_vector_registers_survive)
{
	struct sigaction sa = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO };
	long in[2] = { 0x1122334455667788, 0x99aabbccddeeff00 }, out[2], rbx, r8, r15, flags;
	long pid = getpid();
	sigaction(SIGUSR1, &sa, NULL);
	__asm__ volatile("movdqu %[in], %%xmm0\n movdqu %[in], %%xmm15\n mov $0x5a5a, %%rbx\n mov $0x77, %%r8\n"
			 "mov $0x99, %%r15\n stc\n"
			 "mov %[nr], %%rax\n mov %[pid], %%rdi\n mov $10, %%rsi\n syscall\n"
			 "pushf\n pop %[flags]\n movdqu %%xmm15, %[out]\n mov %%rbx, %[b]\n mov %%r8, %[e]\n mov %%r15, %[f]\n"
			 : [out] "=m"(out), [b] "=m"(rbx), [e] "=m"(r8), [f] "=m"(r15), [flags] "=&r"(flags)
			 : [in] "m"(in), [nr] "i"((long)SYS_kill), [pid] "r"(pid)
			 : "rax", "rdi", "rsi", "rcx", "r11", "rbx", "r8", "r15", "xmm0", "xmm15", "memory", "cc");
	CHECK_EQ(hits, 1);
	CHECK_EQ(out[0], in[0]);
	CHECK_EQ(out[1], in[1]);
	CHECK_EQ(rbx, 0x5a5a);
	CHECK_EQ(r8, 0x77);
	CHECK_EQ(r15, 0x99);
	CHECK_EQ(flags & 1, 1);
}

__attribute__((target("avx"))) static int avx_survives(void)
{
	float in[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[8];
	__m256 v = _mm256_loadu_ps(in);
	__asm__ volatile("" : "+x"(v));
	long ret, nr = SYS_kill, pid = getpid(), sig = SIGUSR1;
	__asm__ volatile("syscall" : "=a"(ret), "+x"(v) : "a"(nr), "D"(pid), "S"(sig) : "rcx", "r11", "memory");
	_mm256_storeu_ps(out, v);
	return memcmp(in, out, sizeof(in)) == 0;
}

TEST(avx_survives)
{
	struct sigaction sa = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO };
	SKIP_IF(!__builtin_cpu_supports("avx"), "no AVX");
	sigaction(SIGUSR1, &sa, NULL);
	CHECK(avx_survives());
	CHECK_EQ(hits, 1);
}

static unsigned handler_mode;

static unsigned rounding(void)
{
	return _mm_getcsr() & _MM_ROUND_MASK;
}

static void set_rounding(unsigned mode)
{
	_mm_setcsr((_mm_getcsr() & ~(unsigned)_MM_ROUND_MASK) | mode);
}

static void read_mode(int sig)
{
	(void)sig;
	handler_mode = rounding();
	set_rounding(_MM_ROUND_UP);
}

TEST(handler_starts_with_default_fp_modes)
{
	signal(SIGUSR1, read_mode);
	set_rounding(_MM_ROUND_DOWN);
	raise(SIGUSR1);
	CHECK_EQ(handler_mode, _MM_ROUND_NEAREST);
	CHECK_EQ(rounding(), _MM_ROUND_DOWN);
}

static void change_context(int sig, siginfo_t *si, void *p)
{
	ucontext_t *uc = p;
	(void)sig, (void)si;
	hits++;
	uc->uc_mcontext.gregs[REG_RAX] = 4242;
	sigaddset(&uc->uc_sigmask, SIGUSR2);
}

TEST(changes_to_the_context_take_effect)
{
	struct sigaction sa = { .sa_sigaction = change_context, .sa_flags = SA_SIGINFO };
	sigset_t now;
	sigaction(SIGUSR1, &sa, NULL);
	long ret, nr = SYS_kill, pid = getpid(), sig = SIGUSR1;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(pid), "S"(sig) : "rcx", "r11", "memory");
	CHECK_EQ(ret, 4242);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGUSR2), 1);
}

static void skip_insn(int sig, siginfo_t *si, void *p)
{
	ucontext_t *uc = p;
	(void)sig, (void)si;
	hits++;
	uc->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
}

TEST(handler_can_step_over_a_fault)
{
	struct sigaction sa = { .sa_sigaction = skip_insn, .sa_flags = SA_SIGINFO };
	sigaction(SIGILL, &sa, NULL);
	for (int i = 0; i < 100; i++)
		__asm__ volatile("ud2" ::: "memory");
	CHECK_EQ(hits, 100);
}

static void check_frame(int sig, siginfo_t *si, void *p)
{
	ucontext_t *uc = p;
	unsigned long frame = (unsigned long)__builtin_frame_address(0);
	(void)sig, (void)si;
	hits = frame % 16 == 0; /* rsp + 8 at entry is aligned, rbp was pushed */
	if (uc->uc_mcontext.fpregs == NULL || (unsigned long)uc->uc_mcontext.fpregs % 64)
		hits = -1;
	if ((uc->uc_flags & 6) != 6)
		hits = -2;
	if ((uc->uc_mcontext.gregs[REG_CSGSFS] & 0xffff) != 0x33)
		hits = -3;
	if (uc->uc_link)
		hits = -4;
}

TEST(frame_is_aligned)
{
	struct sigaction sa = { .sa_sigaction = check_frame, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	CHECK_EQ(hits, 1);
}

TEST(red_zone_is_kept)
{
	struct sigaction sa = { .sa_sigaction = clobber, .sa_flags = SA_SIGINFO };
	long a, b, pid = getpid();
	sigaction(SIGUSR1, &sa, NULL);
	__asm__ volatile("movq $0x1111, -8(%%rsp)\n movq $0x2222, -128(%%rsp)\n"
			 "mov %[nr], %%rax\n mov %[pid], %%rdi\n mov $10, %%rsi\n syscall\n"
			 "mov -8(%%rsp), %[a]\n mov -128(%%rsp), %[b]\n"
			 : [a] "=&r"(a), [b] "=&r"(b)
			 : [nr] "i"((long)SYS_kill), [pid] "r"(pid)
			 : "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc", "xmm0", "xmm15");
	CHECK_EQ(a, 0x1111);
	CHECK_EQ(b, 0x2222);
}

/* ---- alternate stacks ---- */

static char alt[65536] __attribute__((aligned(16)));
static stack_t in_handler;
static volatile int on_alt, nested_errno;

static void on_altstack(int sig, siginfo_t *si, void *p)
{
	ucontext_t *uc = p;
	char here;
	(void)sig, (void)si;
	hits++;
	on_alt = &here >= alt && &here < alt + sizeof(alt);
	sigaltstack(NULL, &in_handler);
	errno = 0;
	stack_t ss = { .ss_flags = SS_DISABLE };
	nested_errno = sigaltstack(&ss, NULL) ? errno : 0;
	context.uc_stack = uc->uc_stack;
}

static void use_alt(int flags)
{
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt), .ss_flags = flags };
	struct sigaction sa = { .sa_sigaction = on_altstack, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	CHECK_OK(sigaltstack(&ss, NULL));
	sigaction(SIGUSR1, &sa, NULL);
}

TEST(altstack_is_used)
{
	stack_t ss;
	use_alt(0);
	raise(SIGUSR1);
	CHECK_EQ(on_alt, 1);
	CHECK_EQ(in_handler.ss_flags, SS_ONSTACK);
	CHECK_EQ(nested_errno, EPERM);
	CHECK(context.uc_stack.ss_sp == alt);
	sigaltstack(NULL, &ss);
	CHECK_EQ(ss.ss_flags, 0);
	CHECK(ss.ss_sp == alt);
}

TEST(altstack_autodisarm)
{
	stack_t ss;
	use_alt((int)(1u << 31));
	raise(SIGUSR1);
	CHECK_EQ(on_alt, 1);
	CHECK_EQ(in_handler.ss_flags, SS_DISABLE);
	CHECK_EQ(nested_errno, 0);
	sigaltstack(NULL, &ss);
	CHECK(ss.ss_sp == alt); /* sigreturn arms it again */
	CHECK_EQ(ss.ss_flags, (int)(1u << 31));
}

TEST(sigaltstack_errors)
{
	stack_t ss = { .ss_sp = alt, .ss_size = 100 }, old;
	CHECK_ERR(sigaltstack(&ss, NULL), ENOMEM);
	ss.ss_size = sizeof(alt);
	ss.ss_flags = 77;
	CHECK_ERR(sigaltstack(&ss, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_sigaltstack, (void *)1, NULL), EFAULT);
	CHECK_ERR(syscall(SYS_sigaltstack, NULL, (void *)1), EFAULT);
	CHECK_OK(sigaltstack(NULL, &old));
	CHECK_EQ(old.ss_flags, SS_DISABLE);
}

static volatile long bottom;

static void overflow(volatile char *p);
static void (*volatile overflow_again)(volatile char *p) = overflow;

static void overflow(volatile char *p)
{
	volatile char buf[4096];
	buf[0] = (char)(long)p;
	bottom++;
	overflow_again(buf);
	buf[1] = 1;
}

static void on_overflow(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	info = *si;
	siglongjmp(env, 1);
}

TEST(stack_overflow_is_handled_on_the_altstack)
{
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
	struct sigaction sa = { .sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaltstack(&ss, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	if (!sigsetjmp(env, 1))
		overflow(NULL);
	CHECK(bottom > 1000);
	CHECK_EQ(info.si_code, SEGV_MAPERR);
}

TEST(stack_overflow_without_altstack_kills)
{
	pid_t pid = fork();
	if (pid == 0) {
		catch(SIGSEGV);
		overflow(NULL);
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
}

TEST(bad_frame_of_sigreturn_kills)
{
	pid_t pid = fork();
	if (pid == 0) {
		__asm__ volatile("mov $8, %%rsp\n mov $15, %%eax\n syscall" ::: "rax", "rcx", "r11", "memory");
		_exit(0);
	}
	CHECK_KILLED(pid, SIGSEGV);
}

TEST(altstack_is_kept_by_fork)
{
	use_alt(0);
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGUSR1);
		_exit(on_alt ? 0 : 1);
	}
	CHECK_CHILD(pid, 0);
}
T_MAIN

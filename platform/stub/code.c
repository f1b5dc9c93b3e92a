/*
 * The code that runs inside a stub: position independent, no stack but the slot's, no data but the
 * shared page, no libc, no TLS. Assembly, because it needs exact instruction windows and must look
 * the same in every build mode.
 *
 * Registers while parked or working: rbx = slot, r12 = the signal frame to return to. Both survive
 * system calls. The handler is entered by the kernel with rdi = signal, rsi = siginfo, rdx =
 * ucontext and rsp = frame on the slot's signal stack; the slot is found by masking rsp.
 *
 * Every signal is blocked while the handler runs, except SIGSEGV and SIGBUS, which cmpxchg needs,
 * and STUB_KICK during a futex sleep. A kick that lands between "unblocked" and "asleep" moves the
 * thread to stub_fx_abort, so none is lost.
 *
 * Nothing here defends itself: the guest may jump to any instruction with any registers. What the
 * filter lets through from these addresses must be harmless in its hands (stub_calls.def).
 */
#include "platform/stub/layout.h"

#define STR_(x) #x
#define STR(x) STR_(x)
#define F(off) STR(off) "(%rbx)"

/* Offset of rip in ucontext: uc_flags, uc_link, uc_stack, then the sigcontext. */
#define UC_RIP "168(%rdx)"

/* clang-format off */
__asm__(
".pushsection .text.stub,\"ax\",@progbits\n"
".balign 64\n"
".globl stub_code_begin, stub_code_end, stub_handler, stub_restorer, stub_zygote, stub_trap\n"
".globl stub_syscall, stub_cmpxchg, stub_boot\n"
"stub_code_begin:\n"

"stub_handler:\n"
"	mov	" UC_RIP ", %r8\n"
"	lea	stub_cx_begin(%rip), %r9\n"
"	cmp	%r9, %r8\n"
"	jb	1f\n"
"	lea	stub_cx_end(%rip), %r9\n"
"	cmp	%r9, %r8\n"
"	jae	1f\n"
"	lea	stub_cx_fault(%rip), %r9\n"
"	mov	%r9, " UC_RIP "\n"
"	jmp	stub_restore\n"
"1:	cmp	$" STR(STUB_KICK) ", %edi\n"
"	jne	stub_publish\n"
"	lea	stub_fx_begin(%rip), %r9\n"
"	cmp	%r9, %r8\n"
"	jb	stub_publish\n"
"	lea	stub_fx_end(%rip), %r9\n"
"	cmp	%r9, %r8\n"
"	jae	stub_publish\n"
"	lea	stub_fx_done(%rip), %r9\n"
"	cmp	%r9, %r8\n"
"	jae	stub_restore\n"
"	lea	stub_fx_abort(%rip), %r9\n"
"	mov	%r9, " UC_RIP "\n"
"stub_restore:\n"
"	lea	8(%rsp), %rsp\n"
"stub_restorer:\n"
"	mov	$15, %eax\n"                       /* rt_sigreturn */
"	syscall\n"
"	hlt\n"

/* Tells the sentry what happened. */
"stub_publish:\n"
"	mov	%rsp, %r12\n"
"	mov	%rsp, %rbx\n"
"	and	$-0x10000, %rbx\n"
"	mov	%edi, " F(SH_SIGNO) "\n"
"	mov	%rdx, " F(SH_UC) "\n"
"	mov	%rsi, " F(SH_SI) "\n"
"	cmpl	$0, " F(SH_HAS_FSGS) "\n"
"	je	stub_park\n"
"	rdfsbase %rax\n"
"	mov	%rax, " F(SH_FS) "\n"
"	rdgsbase %rax\n"
"	mov	%rax, " F(SH_GS) "\n"

/* Gives the turn to the sentry and waits to get it back. */
"stub_park:\n"
"	mov	$" STR(TURN_SENTRY) ", %eax\n"
"	xchg	%eax, " F(SH_TURN) "\n"
"	lea	" F(SH_TURN) ", %rdi\n"
"	mov	$1, %esi\n"                        /* FUTEX_WAKE, one */
"	mov	$1, %edx\n"
"	mov	$202, %eax\n"
"	syscall\n"
"2:	cmpl	$" STR(TURN_SENTRY) ", " F(SH_TURN) "\n"
"	jne	stub_work\n"
"	lea	" F(SH_TURN) ", %rdi\n"
"	xor	%esi, %esi\n"                      /* FUTEX_WAIT */
"	mov	$" STR(TURN_SENTRY) ", %edx\n"
"	xor	%r10d, %r10d\n"
"	mov	$202, %eax\n"
"	syscall\n"
"	jmp	2b\n"

"stub_work:\n"
"	mov	" F(SH_OP) ", %eax\n"
"	cmp	$" STR(STUB_OP_RESUME) ", %eax\n"
"	je	stub_resume\n"
"	cmp	$" STR(STUB_OP_CALLS) ", %eax\n"
"	je	stub_calls\n"
"	cmp	$" STR(STUB_OP_FUTEX) ", %eax\n"
"	je	stub_futex\n"
"	cmp	$" STR(STUB_OP_CMPXCHG) ", %eax\n"
"	je	stub_cx\n"
"	xor	%edi, %edi\n"                      /* STUB_OP_EXIT */
"	mov	$60, %eax\n"
"	syscall\n"
"	hlt\n"

/* Back to the guest. */
"stub_resume:\n"
"	testl	$" STR(STUB_SET_FS) ", " F(SH_FLAGS) "\n"
"	jz	4f\n"
"	mov	" F(SH_FS) ", %rsi\n"
"	cmpl	$0, " F(SH_HAS_FSGS) "\n"
"	je	3f\n"
"	wrfsbase %rsi\n"
"	jmp	4f\n"
"3:	mov	$0x1002, %edi\n"                   /* ARCH_SET_FS */
"	mov	$158, %eax\n"
"	syscall\n"
"4:	testl	$" STR(STUB_SET_GS) ", " F(SH_FLAGS) "\n"
"	jz	6f\n"
"	mov	" F(SH_GS) ", %rsi\n"
"	cmpl	$0, " F(SH_HAS_FSGS) "\n"
"	je	5f\n"
"	wrgsbase %rsi\n"
"	jmp	6f\n"
"5:	mov	$0x1001, %edi\n"                   /* ARCH_SET_GS */
"	mov	$158, %eax\n"
"	syscall\n"
"6:	lea	8(%r12), %rsp\n"
"	jmp	stub_restorer\n"

/* Runs the list of commands up to the first error. */
"stub_calls:\n"
"	lea	" F(SH_COMMANDS) ", %r13\n"
"	mov	" F(SH_COUNT) ", %r14d\n"
"7:	test	%r14d, %r14d\n"
"	jz	stub_park\n"
"	mov	0(%r13), %rax\n"
"	mov	8(%r13), %rdi\n"
"	mov	16(%r13), %rsi\n"
"	mov	24(%r13), %rdx\n"
"	mov	32(%r13), %r10\n"
"	mov	40(%r13), %r8\n"
"	mov	48(%r13), %r9\n"
"	mov	%eax, %r15d\n"
"	syscall\n"
"	cmp	$56, %r15d\n"                      /* clone: the child goes its own way */
"	jne	8f\n"
"	test	%rax, %rax\n"
"	jz	stub_child\n"
"8:	mov	%rax, 56(%r13)\n"
"	cmp	$-4095, %rax\n"
"	jae	stub_park\n"
"	add	$64, %r13\n"
"	dec	%r14d\n"
"	jmp	7b\n"

/* A new thread or process: rsp is the frame the sentry made in its slot; rdi to r9 are still the
 * arguments of clone. What a process needs to announce itself comes from there and not from the slot, so
 * that it works (and is refused) even when the sentry has given the birth up meanwhile. */
"stub_child:\n"
"	mov	%rsp, %r12\n"
"	mov	%rsp, %rbx\n"
"	and	$-0x10000, %rbx\n"
"	test	$0x100, %edi\n"                   /* CLONE_VM: a thread */
"	jnz	stub_park\n"
"	mov	%r8d, %r15d\n"                    /* the sentry's pid, in an unused argument */
"	mov	$1, %edi\n"                        /* prctl(PR_SET_PDEATHSIG, SIGKILL, cookie) */
"	mov	$9, %esi\n"
"	mov	%r9, %rdx\n"                      /* the cookie, in another */
"	xor	%r10d, %r10d\n"
"	xor	%r8d, %r8d\n"
"	mov	$157, %eax\n"
"	syscall\n"
"	test	%rax, %rax\n"
"	jnz	9f\n"
"	mov	$110, %eax\n"                      /* getppid: the sentry may have died before prctl */
"	syscall\n"
"	cmp	%r15d, %eax\n"
"	jne	9f\n"
"	mov	%rbx, %rdi\n"                      /* madvise(slot, MADV_DONTFORK) */
"	mov	$0x10000, %esi\n"
"	mov	$10, %edx\n"
"	mov	$28, %eax\n"
"	syscall\n"
"	jmp	stub_park\n"
"9:	mov	$1, %edi\n"
"	mov	$231, %eax\n"                      /* exit_group */
"	syscall\n"
"	hlt\n"

/* A futex wait of the guest's, interruptible by STUB_KICK. */
"stub_futex:\n"
"	sub	$8, %rsp\n"
"	movq	$" STR(1 << (STUB_KICK - 1)) ", (%rsp)\n"
"	mov	$1, %edi\n"                        /* SIG_UNBLOCK */
"	mov	%rsp, %rsi\n"
"	xor	%edx, %edx\n"
"	mov	$8, %r10d\n"
"	mov	$14, %eax\n"
"	syscall\n"
"stub_fx_begin:\n"
"	mov	" STR(SH_COMMANDS) "+8(%rbx), %rdi\n"
"	mov	" STR(SH_COMMANDS) "+16(%rbx), %rsi\n"
"	mov	" STR(SH_COMMANDS) "+24(%rbx), %rdx\n"
"	mov	" STR(SH_COMMANDS) "+32(%rbx), %r10\n"
"	mov	" STR(SH_COMMANDS) "+40(%rbx), %r8\n"
"	mov	" STR(SH_COMMANDS) "+48(%rbx), %r9\n"
"	mov	$202, %eax\n"
"	syscall\n"
"stub_fx_done:\n"
"	mov	%rax, " F(SH_RESULT) "\n"
"	xor	%edi, %edi\n"                      /* SIG_BLOCK */
"	mov	%rsp, %rsi\n"
"	xor	%edx, %edx\n"
"	mov	$8, %r10d\n"
"	mov	$14, %eax\n"
"	syscall\n"
"stub_fx_end:\n"
"	mov	%r12, %rsp\n"
"	jmp	stub_park\n"
"stub_fx_abort:\n"
"	mov	$-4, %rax\n"                       /* -EINTR */
"	jmp	stub_fx_done\n"

/* Compare and exchange on guest memory that may fault. */
"stub_cx:\n"
"	mov	" F(SH_CX_ADDR) ", %rdi\n"
"	mov	" F(SH_CX_OLD) ", %eax\n"
"	mov	" F(SH_CX_NEW) ", %edx\n"
"stub_cx_begin:\n"
"	lock cmpxchg %edx, (%rdi)\n"
"stub_cx_end:\n"
"	mov	%eax, " F(SH_CX_SEEN) "\n"
"	movq	$0, " F(SH_RESULT) "\n"
"	jmp	stub_park\n"
"stub_cx_fault:\n"
"	movq	$-14, " F(SH_RESULT) "\n"          /* -EFAULT */
"	jmp	stub_park\n"

/* End of the seccomp zygote's boot: rdi = listener, rsp = frame in slot 0. */
"stub_zygote:\n"
"	mov	%rsp, %r12\n"
"	mov	%rsp, %rbx\n"
"	and	$-0x10000, %rbx\n"
"	mov	%rdi, " F(SH_RESULT) "\n"
"	jmp	stub_park\n"

/* Pieces for the ptrace platform. */
"stub_trap:\n"
"	int3\n"
"	jmp	stub_trap\n"
"stub_syscall:\n"
"	syscall\n"
"	int3\n"
"stub_cmpxchg:\n"
"	lock cmpxchg %edx, (%rdi)\n"
"	int3\n"

/* rdi = commands, esi = count, rdx = final rsp, rcx = final rip. Uses no stack, since everything but
 * the page of commands and this code disappears meanwhile. A command whose result field is not 0 may
 * fail; else the process ends with the command's number. */
"stub_boot:\n"
"	mov	%rdi, %r13\n"
"	mov	%esi, %r14d\n"
"	mov	%rdx, %rbp\n"
"	mov	%rcx, %r12\n"
"	xor	%ebx, %ebx\n"
"10:	inc	%ebx\n"
"	mov	0(%r13), %rax\n"
"	mov	8(%r13), %rdi\n"
"	mov	16(%r13), %rsi\n"
"	mov	24(%r13), %rdx\n"
"	mov	32(%r13), %r10\n"
"	mov	40(%r13), %r8\n"
"	mov	48(%r13), %r9\n"
"	syscall\n"
"	cmp	$-4095, %rax\n"
"	jb	11f\n"
"	cmpq	$0, 56(%r13)\n"
"	je	12f\n"
"11:	add	$64, %r13\n"
"	dec	%r14d\n"
"	jnz	10b\n"
"	mov	%rax, %rdi\n"
"	mov	%rbp, %rsp\n"
"	jmp	*%r12\n"
"12:	mov	%ebx, %edi\n"
"	mov	$231, %eax\n"
"	syscall\n"
"	hlt\n"
"stub_code_end:\n"
".popsection\n");
/* clang-format on */

/* What an attacker knows about the process that carries the guest: fixed addresses
 * (platform/stub/layout.h). */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#define STUB_BASE 0x7fffc0000000ul
#define STUB_CODE 0x7fffc0010000ul
#define STUB_CODE_SIZE 0x1000ul
#define STUB_SLOTS 0x7fffc1000000ul
#define STUB_SLOT_SIZE 0x10000ul

static sigjmp_buf stub_jump;
static volatile int stub_signal;
static void *volatile stub_fault_addr;

static void stub_on_fault(int signo, siginfo_t *si, void *uc)
{
	(void)uc;
	stub_signal = signo;
	stub_fault_addr = si->si_addr;
	siglongjmp(stub_jump, 1);
}

static void stub_catch_faults(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS, SIGFPE };
	struct sigaction sa = { .sa_sigaction = stub_on_fault, .sa_flags = SA_SIGINFO };

	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigaction(faults[i], &sa, NULL);
}

/* 0, or the signal that reading the byte gives. */
static inline int stub_read(uint64_t addr, uint8_t *out)
{
	if (sigsetjmp(stub_jump, 1))
		return stub_signal;
	*out = *(volatile uint8_t *)addr;
	return 0;
}

/* 0, or the signal that writing the byte gives. */
static inline int stub_write(uint64_t addr, uint8_t value)
{
	if (sigsetjmp(stub_jump, 1))
		return stub_signal;
	*(volatile uint8_t *)addr = value;
	return 0;
}

/* Addresses of "syscall" in the stub's code; none outside a sandbox. */
static inline unsigned stub_gadgets(uint64_t *out, unsigned max)
{
	uint8_t a, b;
	unsigned n = 0;

	if (stub_read(STUB_CODE, &a))
		return 0;
	for (uint64_t p = STUB_CODE; p < STUB_CODE + STUB_CODE_SIZE - 1 && n < max; p++)
		if (!stub_read(p, &a) && a == 0x0f && !stub_read(p + 1, &b) && b == 0x05)
			out[n++] = p;
	return n;
}

/* Jumps to `gadget` with the registers of a system call. Seldom returns. */
__attribute__((noreturn)) static inline void stub_go(uint64_t gadget, uint64_t nr,
						     const uint64_t a[6])
{
	register uint64_t r10 __asm__("r10") = a[3];
	register uint64_t r8 __asm__("r8") = a[4];
	register uint64_t r9 __asm__("r9") = a[5];
	register uint64_t r11 __asm__("r11") = gadget;

	__asm__ volatile("jmp *%%r11" ::"a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8),
			 "r"(r9), "r"(r11)
			 : "memory");
	__builtin_unreachable();
}

/*
 * The guest jumps into the code that we keep in its process, with registers of its choice. What our
 * code may call is harmless; all else ends the process, and only that.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/attack/stub.h"
#include "tests/guest/t.h"

static char scratch[4096] = "/etc/passwd";

struct attempt {
	const char *name;
	uint64_t nr, args[6];
};

/* The process must not live on after any of these. */
static const struct attempt attempts[] = {
	{ "open", SYS_open, { (uint64_t)scratch, O_RDONLY } },
	{ "openat", SYS_openat, { (uint64_t)-100, (uint64_t)scratch, O_RDWR | O_CREAT, 0600 } },
	{ "execve", SYS_execve, { (uint64_t)scratch, 0, 0 } },
	{ "socket", SYS_socket, { 2, 1, 0 } },
	{ "kill", SYS_kill, { (uint64_t)-1, 0 } },
	/* Nobody's pid: where ptrace serves the call, it must not stop process 1. */
	{ "ptrace", SYS_ptrace, { 16, 0x7fffffff } },
	{ "fork", SYS_fork, { 0 } },
	{ "clone", SYS_clone, { SIGCHLD } },
	{ "clone3", SYS_clone3, { (uint64_t)scratch, 88 } },
	{ "mmap of a descriptor", SYS_mmap, { 0, 4096, PROT_READ, MAP_PRIVATE, 0, 0 } },
	{ "mmap over the stub",
	  SYS_mmap,
	  { STUB_CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, (uint64_t)-1, 0 } },
	{ "munmap of the stub", SYS_munmap, { STUB_CODE, 4096 } },
	{ "mprotect of the stub",
	  SYS_mprotect,
	  { STUB_CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC } },
	{ "mremap of a slot", SYS_mremap, { STUB_SLOTS, 0, 65536, 3, 0x10000000 } },
	{ "prctl", SYS_prctl, { PR_SET_PDEATHSIG, 0 } },
	{ "seccomp", SYS_seccomp, { 1, 0, (uint64_t)scratch } },
	{ "process_vm_readv",
	  SYS_process_vm_readv,
	  { 1, (uint64_t)scratch, 1, (uint64_t)scratch, 1 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 8, (uint64_t)scratch } },
};

TEST(refused_calls_end_the_process)
{
	uint64_t gadgets[64];

	stub_catch_faults();
	unsigned n = stub_gadgets(gadgets, 64);
	SKIP_IF(n == 0, "no stub here");
	for (int s = 1; s < 32; s++)
		signal(s, SIG_DFL);
	for (unsigned g = 0; g < n; g++)
		for (unsigned i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
			int status;
			pid_t pid = fork();
			if (pid == 0) {
				/* On the ptrace platform the call is served as any other and our
				 * code goes on. */
				alarm(2);
				setsid();
				stub_go(gadgets[g], attempts[i].nr, attempts[i].args);
			}
			CHECK(pid > 0);
			CHECK_EQ(waitpid(pid, &status, 0), pid);
			/* On the seccomp platform the filter kills, and
			 * tests/unit/platform_hostile_test.c wants exactly that; on ptrace our code
			 * goes on and may also reach one of its exits. */
			CHECK(WIFSIGNALED(status) || WIFEXITED(status));
			if (g > 2)
				i += 3; /* the first ones in full, a sample of the rest */
		}
}

TEST(jumps_anywhere_leave_others_alone)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	for (int s = 1; s < 32; s++)
		signal(s, SIG_DFL);
	for (uint64_t off = 0; off < 900; off += 13) {
		static const uint64_t args[6] = {
			STUB_SLOTS, STUB_SLOTS + 8, 64, 0, STUB_SLOTS, 0
		};
		int status, waited = 0;
		pid_t pid = fork();
		if (pid == 0)
			stub_go(STUB_CODE + off, off, args);
		CHECK(pid > 0);
		/* It may sleep for ever; then it must be killable. */
		while (waitpid(pid, &status, WNOHANG) == 0) {
			usleep(5000);
			if (++waited == 20)
				kill(pid, SIGKILL);
			CHECK(waited < 3000);
		}
	}
}

/* A forged signal frame with all signals blocked, then an endless loop: SIGKILL must still work. */
TEST(a_deaf_thread_can_be_killed)
{
	uint64_t gadgets[64];
	static uint64_t frame[128];
	static volatile uint64_t *spinning;

	stub_catch_faults();
	unsigned n = stub_gadgets(gadgets, 64);
	SKIP_IF(n == 0, "no stub here");
	spinning = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	if (pid == 0) {
		static const uint64_t none[6];
		frame[0] = 6; /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
		__asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0\n"
				 "jmp 2f\n"
				 "1: incq (%%rbx); jmp 1b\n"
				 "2:\n"
				 : "=m"(frame[5 + 16])::"rax");
		frame[5 + 11] = (uint64_t)spinning;
		frame[5 + 15] = (uint64_t)&frame[100];
		frame[5 + 17] = 0x202;
		frame[5 + 18] = 0x002b000000000033;
		frame[5 + 32] = ~0ul;
		__asm__ volatile("mov %0, %%rsp; mov $15, %%eax; jmp *%1" ::"r"(frame),
				 "r"(gadgets[0]), "m"(none));
	}
	CHECK(pid > 0);
	for (int i = 0; i < 100 && *spinning == 0; i++)
		usleep(10000);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

T_MAIN

/*
 * Every field of the page that a guest thread shares with the sentry, set to chosen values by a
 * second thread while the first makes calls, sleeps in futexes, gets signals, starts threads and
 * forks. The attacker may die; everybody else goes on. Offsets: struct stub_shared in
 * platform/stub/layout.h.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/attack/stub.h"
#include "tests/guest/t.h"

struct field {
	const char *name;
	unsigned off, size;
};

static const struct field fields[] = {
	{ "turn", 0, 4 },
	{ "op", 4, 4 },
	{ "count", 8, 4 },
	{ "signo", 12, 4 },
	{ "uc", 16, 8 },
	{ "si", 24, 8 },
	{ "fs", 32, 8 },
	{ "gs", 40, 8 },
	{ "flags", 48, 4 },
	{ "has_fsgs", 52, 4 },
	{ "tid", 56, 4 },
	{ "command nr", 128, 8 },
	{ "command arg 0", 136, 8 },
	{ "command arg 1", 144, 8 },
	{ "command arg 2", 152, 8 },
	{ "command arg 3", 160, 8 },
	{ "command arg 4", 168, 8 },
	{ "command arg 5", 176, 8 },
	{ "command result", 184, 8 },
	{ "second nr", 192, 8 },
	{ "second result", 248, 8 },
	{ "third nr", 256, 8 },
	{ "third result", 312, 8 },
	{ "timeout s", 640, 8 },
	{ "timeout ns", 648, 8 },
	{ "cx_addr", 656, 8 },
	{ "cx_old", 664, 4 },
	{ "cx_new", 668, 4 },
	{ "result", 672, 8 },
	{ "cx_seen", 680, 4 },
};

static uint64_t own_slot;
static const struct field *target;
static volatile bool go;

static uint64_t find_slot(void)
{
	uint8_t byte;

	for (uint64_t i = 0; i < 512; i++)
		if (stub_read(STUB_SLOTS + i * STUB_SLOT_SIZE, &byte) == 0)
			return STUB_SLOTS + i * STUB_SLOT_SIZE;
	return 0;
}

static void *scribbler(void *arg)
{
	const uint64_t values[] = { 0,
				    1,
				    2,
				    3,
				    4,
				    5,
				    0x7fffffff,
				    0x80000000,
				    UINT64_MAX,
				    (uint64_t)-4095,
				    (uint64_t)-4096,
				    (uint64_t)-134,
				    (uint64_t)-38,
				    (uint64_t)INT64_MIN,
				    STUB_BASE,
				    STUB_CODE,
				    own_slot,
				    own_slot + 0x7fff,
				    own_slot + 0x8000,
				    own_slot + 0xfff8,
				    own_slot + 0xffff,
				    own_slot + STUB_SLOT_SIZE,
				    0x8000000000000000,
				    0x10000 };
	volatile uint32_t *at32 = (uint32_t *)(own_slot + target->off);
	volatile uint64_t *at64 = (uint64_t *)(own_slot + target->off);

	(void)arg;
	while (!go)
		;
	for (unsigned i = 0;; i++) {
		uint64_t v = values[i % (sizeof(values) / sizeof(values[0]))];
		if (target->size == 4)
			*at32 = (uint32_t)v;
		else
			*at64 = v;
		/* Runs of writes and pauses of different lengths, to hit each step of a call. */
		for (volatile unsigned k = 0; k < (i & 0x3ff); k++)
			;
	}
	return NULL;
}

static void on_signal(int signo)
{
	(void)signo;
}

static void *nothing(void *arg)
{
	return arg;
}

static void victim(unsigned which)
{
	pthread_t t, u;
	uint32_t word = 0;
	struct timespec soon = { 0, 100000 };

	target = &fields[which];
	own_slot = find_slot();
	signal(SIGALRM, SIG_DFL);
	signal(SIGUSR2, on_signal);
	alarm(3);
	pthread_create(&t, NULL, scribbler, NULL);
	go = true;
	for (unsigned i = 0;; i++) {
		getppid();
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, &soon, NULL, 0);
		void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);
		if (p != MAP_FAILED) {
			mprotect(p, 4096, PROT_READ);
			munmap(p, 8192);
		}
		raise(SIGUSR2);
		if (i % 8 == 0 && fork() == 0)
			_exit(0);
		if (i % 8 == 4 && pthread_create(&u, NULL, nothing, NULL) == 0)
			pthread_detach(u);
	}
}

/* This process, which the attacker's shares nothing with, must not notice. */
static void check_bystander(void)
{
	int p[2];
	char c = 'a';

	CHECK_OK(pipe(p));
	pid_t pid = fork();
	if (pid == 0)
		_exit(write(p[1], &c, 1) == 1 ? 5 : 6);
	CHECK_CHILD(pid, 5);
	CHECK_EQ(read(p[0], &c, 1), 1);
	close(p[0]);
	close(p[1]);
}

static void attack(unsigned from, unsigned to)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	for (unsigned i = from; i < to; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			setpgid(0, 0);
			close(2);
			victim(i);
		}
		CHECK(pid > 0);
		usleep(150000);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) || WIFEXITED(status));
		kill(-pid, SIGKILL);
		check_bystander();
	}
}

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

TEST(state_fields)
{
	attack(0, 11);
}

TEST(command_fields)
{
	attack(11, 23);
}

TEST(futex_and_exchange_fields)
{
	attack(23, FIELDS);
}

/* The signal frame itself, which the kernel writes into the slot and reads back: registers, the
 * pointer to the FP state, its header. */
static void *frame_scribbler(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg | 1;

	while (!go)
		;
	for (;;) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		*(volatile uint64_t *)(own_slot + 0x8000 + seed % 0x8000 / 8 * 8) =
			seed & 0x10000 ? seed : own_slot + (seed >> 48);
	}
	return NULL;
}

TEST(signal_frames)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	for (uintptr_t round = 1; round <= 12; round++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			pthread_t t;
			close(2);
			alarm(3);
			own_slot = find_slot();
			pthread_create(&t, NULL, frame_scribbler, (void *)(round * 77777));
			go = true;
			for (;;)
				getppid();
		}
		CHECK(pid > 0);
		usleep(100000);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		check_bystander();
	}
}

T_MAIN

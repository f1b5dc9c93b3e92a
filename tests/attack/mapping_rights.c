/*
 * A right that a guest process does not have over a file or a piece of shared memory, taken through
 * the code that we keep in its process: a mapping for reading is made writable by our own mprotect,
 * a mapping of a slot is kept by a child. The sentry orders what may be dangerous, and nothing else
 * passes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/attack/stub.h"
#include "tests/guest/t.h"

struct jump {
	uint64_t gadget, nr, args[6];
};

static __thread bool jumped;

/* The jump seldom ends well; its thread must not go on with the other's work. */
static void on_fault(int signo)
{
	if (jumped)
		for (;;)
			pause();
	stub_signal = signo;
	siglongjmp(stub_jump, 1);
}

static void *jumper(void *arg)
{
	const struct jump *j = arg;

	jumped = true;
	stub_go(j->gadget, j->nr, j->args);
}

/* In a child with a second thread: the second makes the call by our code, the first tries to write
 * to what it may only read. True when the write landed. */
static bool written_after(const struct jump *j, volatile char *at, volatile char *truth)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t t;
		static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS, SIGFPE };
		close(2); /* libc may complain about what the jump did to it */
		for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			signal(faults[i], on_fault);
		pthread_create(&t, NULL, jumper, (void *)(uintptr_t)j);
		for (int i = 0; i < 40; i++) {
			if (sigsetjmp(stub_jump, 1) == 0) {
				*at = 'W';
				_exit(1);
			}
			usleep(5000);
		}
		_exit(0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return *truth == 'W';
}

static void try_all(volatile char *view, volatile char *truth)
{
	uint64_t gadgets[64];

	stub_catch_faults();
	unsigned n = stub_gadgets(gadgets, 64);
	SKIP_IF(n == 0, "no stub here");
	*truth = 'R';
	for (unsigned i = 0; i < n; i++)
		for (int prot = PROT_WRITE; prot <= 7; prot++) {
			struct jump j = { gadgets[i],
					  SYS_mprotect,
					  { (uint64_t)view, 4096, (uint64_t)prot } };
			if (i > 3 && prot != 3)
				continue;
			CHECK(!written_after(&j, view, truth));
		}
}

TEST(read_only_mapping_of_a_file_stays_read_only)
{
	char path[] = "/dev/shm/mapping-XXXXXX";
	int rw = mkstemp(path);

	CHECK_OK(rw);
	CHECK_OK(ftruncate(rw, 4096));
	int ro = open(path, O_RDONLY);
	CHECK_OK(ro);
	char *truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, rw, 0);
	char *view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ro, 0);
	CHECK(truth != MAP_FAILED && view != MAP_FAILED);
	CHECK_ERR(mprotect(view, 4096, PROT_READ | PROT_WRITE), EACCES);
	try_all(view, truth);
	unlink(path);
}

TEST(read_only_shared_memory_stays_read_only)
{
	int id = shmget(IPC_PRIVATE, 4096, 0600);

	CHECK_OK(id);
	char *truth = shmat(id, NULL, 0), *view = shmat(id, NULL, SHM_RDONLY);
	CHECK((intptr_t)truth != -1 && (intptr_t)view != -1);
	shmctl(id, IPC_RMID, NULL);
	CHECK_ERR(mprotect(view, 4096, PROT_READ | PROT_WRITE), EACCES);
	try_all(view, truth);
}

TEST(sealed_memory_file_stays_read_only)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);

	CHECK_OK(fd);
	CHECK_OK(ftruncate(fd, 4096));
	char *truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(truth != MAP_FAILED);
	CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	char *view = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(view != MAP_FAILED);
	try_all(view, truth);
}

/* The sentry orders a thread by a list of calls in our page; a racing thread puts another call in
 * the place of the one that keeps the page from later children. */
static volatile bool started;

static void *blotter(void *arg)
{
	volatile uint64_t *command = arg; /* third command: number */

	started = true;
	for (;;)
		if (*command == SYS_madvise)
			*command = SYS_sched_yield;
	return NULL;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Slots that a forked child can read; its own is one. */
static int slots_of_a_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int seen = 0;
		uint8_t byte;
		for (uint64_t i = 0; i < 256; i++)
			seen += stub_read(STUB_SLOTS + i * STUB_SLOT_SIZE, &byte) == 0;
		_exit(seen);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

TEST(slots_are_not_inherited)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	CHECK_EQ(slots_of_a_child(), 1);
	for (int round = 0; round < 20; round++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			pthread_t t;
			uint64_t own = 0;
			for (uint64_t i = 0; i < 256 && !own; i++)
				if (stub_read(STUB_SLOTS + i * STUB_SLOT_SIZE, &byte) == 0)
					own = STUB_SLOTS + i * STUB_SLOT_SIZE;
			pthread_create(&t, NULL, blotter, (void *)(own + 128 + 2 * 64));
			while (!started)
				;
			for (int i = 0; i < 4; i++)
				pthread_create(&t, NULL, idle, NULL);
			_exit(slots_of_a_child() > 1 ? 1 : 0);
		}
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	}
}

T_MAIN

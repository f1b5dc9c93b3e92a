/*
 * The guest attacks the memory that we keep in its process: by system calls, by plain writes, and
 * by noise in the shared pages while they are in use. At most the attacker dies.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/attack/stub.h"
#include "tests/guest/t.h"

TEST(our_code_cannot_be_written)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	CHECK_EQ(stub_write(STUB_CODE, 0xcc), SIGSEGV);
	CHECK((uint64_t)stub_fault_addr == STUB_CODE);
	CHECK_EQ(stub_write(STUB_CODE + 0xfff, 0xcc), SIGSEGV);
}

TEST(mapping_calls_do_not_reach_our_region)
{
	static const uint64_t places[] = { STUB_BASE, STUB_CODE, STUB_SLOTS,
					   STUB_SLOTS + STUB_SLOT_SIZE, 0x7fffffffe000ul };
	uint8_t byte;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	CHECK_OK(page);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *p = (void *)places[i];
		CHECK_EQ(mmap(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED,
			 1);
		CHECK_EQ(mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), -1);
		CHECK_EQ(mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, p) == MAP_FAILED,
			 1);
		CHECK_EQ(mremap(p, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED, 1);
		munmap(p, 4096);
		madvise(p, 4096, MADV_DONTNEED);
		mlock(p, 4096);
	}
	/* All of it is still there and we still run. */
	CHECK_EQ(stub_read(STUB_CODE, &byte), 0);
	CHECK(getppid() > 0);
}

TEST(copies_do_not_reach_our_region)
{
	uint64_t word = 0;
	uint8_t byte;
	struct iovec here = { &word, 8 }, there = { (void *)STUB_SLOTS, 8 };
	int p[2];

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	CHECK_OK(pipe(p));
	CHECK_ERR(write(p[1], (void *)STUB_CODE, 8), EFAULT);
	CHECK_ERR(write(p[1], (void *)STUB_SLOTS, 8), EFAULT);
	CHECK_EQ(write(p[1], "12345678", 8), 8);
	CHECK_ERR(read(p[0], (void *)STUB_SLOTS, 8), EFAULT);
	CHECK_EQ(process_vm_readv(getpid(), &here, 1, &there, 1, 0), -1);
	CHECK_EQ(process_vm_writev(getpid(), &here, 1, &there, 1, 0), -1);
	int fd = open("/proc/self/mem", O_RDWR);
	if (fd >= 0) {
		CHECK(pread(fd, &word, 8, (off_t)STUB_SLOTS) <= 0);
		CHECK(pwrite(fd, &word, 8, (off_t)STUB_CODE) <= 0);
	}
}

TEST(our_region_is_not_in_the_maps)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	SKIP_IF(!f, "no /proc/self/maps");
	uint8_t byte;
	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start < 0x800000000000ul)
			CHECK(end <= STUB_BASE);
	}
	fclose(f);
}

static volatile uint64_t noise_words;

static void *noise(void *arg)
{
	uint64_t seed = (uint64_t)arg * 0x9e3779b97f4a7c15u + 1;

	for (;;) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		/* Every slot that is mapped here; which ones are is part of the guess. */
		uint64_t at =
			STUB_SLOTS + seed % 64 * STUB_SLOT_SIZE + (seed >> 20) % noise_words * 8;
		if (sigsetjmp(stub_jump, 1) == 0)
			*(volatile uint64_t *)at = seed & 0x100 ? seed & 15 : seed;
	}
	return NULL;
}

static void noisy_child(unsigned round)
{
	pthread_t t;
	uint8_t byte = 0;

	alarm(2);
	noise_words = round % 2 ? 90 : STUB_SLOT_SIZE / 8;
	pthread_create(&t, NULL, noise, (void *)(uintptr_t)(round + 1));
	for (unsigned i = 0;; i++) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);
		getppid();
		if (p != MAP_FAILED)
			munmap(p, 4096);
		if (i % 16 == 0 && fork() == 0)
			_exit(byte);
	}
}

TEST(noise_in_shared_pages_kills_only_its_author)
{
	uint8_t byte;

	stub_catch_faults();
	SKIP_IF(stub_read(STUB_CODE, &byte), "no stub here");
	for (unsigned round = 0; round < 10; round++) {
		int status;
		pid_t pid = fork();
		if (pid == 0)
			noisy_child(round);
		CHECK(pid > 0);
		usleep(300000);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
	}
}

T_MAIN

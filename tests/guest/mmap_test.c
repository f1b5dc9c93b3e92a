/* mmap(2): placement, flags, errors, files, protections that really hold. */
#include "tests/guest/t.h"

#include <fcntl.h>
#include <sys/resource.h>

#define P 4096ul

static char template[] = "/tmp/mmap_test.XXXXXX";

/* A file of n pages, each filled with its number + 'A'. */
static int make_file(int pages)
{
	char name[64], page[P];
	strcpy(name, template);
	int fd = mkstemp(name);
	CHECK_OK(fd);
	unlink(name);
	for (int i = 0; i < pages; i++) {
		memset(page, 'A' + i, P);
		CHECK_EQ(write(fd, page, P), P);
	}
	return fd;
}

static sigjmp_buf jump;
static volatile int fault_code;
static void *volatile fault_addr;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	fault_code = si->si_code;
	fault_addr = si->si_addr;
	siglongjmp(jump, sig);
}

/* The signal that touching p raises, 0 for none. */
static int touch(volatile char *p, bool write)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	int sig = sigsetjmp(jump, 1);
	if (sig)
		return sig;
	if (write)
		*p = 1;
	else
		(void)*p;
	return 0;
}

TEST(anonymous_memory_is_zero_and_writable)
{
	char *p = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	for (size_t i = 0; i < 3 * P; i++)
		CHECK_EQ(p[i], 0);
	memset(p, 7, 3 * P);
	CHECK_OK(munmap(p, 3 * P));
	CHECK_EQ(touch(p, false), SIGSEGV);
	CHECK_EQ(fault_code, SEGV_MAPERR);
	CHECK(fault_addr == p);
}

TEST(protections_hold)
{
	char *p = mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_EQ(touch(p, false), 0);
	CHECK_EQ(touch(p, true), SIGSEGV);
	CHECK_EQ(fault_code, SEGV_ACCERR);
	p = mmap(NULL, P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_EQ(touch(p, false), SIGSEGV);
	CHECK_EQ(fault_code, SEGV_ACCERR);
}

TEST(arguments_are_checked)
{
	int fd = make_file(1);
	CHECK_ERR(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, fd, 100), EINVAL);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, -1, 0), EBADF);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, 9999, 0), EBADF);
	CHECK_ERR(mmap(NULL, P, PROT_READ, 0, fd, 0), EINVAL);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERR(mmap(NULL, ~0ul - P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERR(mmap(NULL, ~0ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERR(mmap((void *)0x10001, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
	CHECK_ERR(mmap((void *)(1ul << 60), P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), ENOMEM);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, fd, 0x7ffffffffffff000), EOVERFLOW);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_SHARED_VALIDATE | 0x80000 /* MAP_SYNC */, fd, 0), EOPNOTSUPP);
}

TEST(access_mode_of_the_file_counts)
{
	char name[64];
	strcpy(name, template);
	int rw = mkstemp(name);
	CHECK_OK(rw);
	int ro = open(name, O_RDONLY), wo = open(name, O_WRONLY);
	unlink(name);
	CHECK_OK(ro);
	CHECK_OK(wo);
	CHECK_OK(ftruncate(rw, P));
	CHECK_ERR(mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0), EACCES);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, wo, 0), EACCES);
	CHECK_ERR(mmap(NULL, P, PROT_WRITE, MAP_SHARED, wo, 0), EACCES);
	char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0);
	CHECK_OK(p);
	p[0] = 'x';
	p = mmap(NULL, P, PROT_READ, MAP_SHARED, ro, 0);
	CHECK_OK(p);
	CHECK_ERR(mprotect(p, P, PROT_READ | PROT_WRITE), EACCES);
	p = mmap(NULL, P, PROT_READ, MAP_SHARED, rw, 0);
	CHECK_OK(p);
	CHECK_OK(mprotect(p, P, PROT_READ | PROT_WRITE));
	int pipefd[2], dir = open("/", O_RDONLY);
	CHECK_OK(pipe(pipefd));
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, pipefd[0], 0), ENODEV);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, dir, 0), ENODEV);
	int path = open("/", O_PATH);
	CHECK_ERR(mmap(NULL, P, PROT_READ, MAP_PRIVATE, path, 0), EBADF);
}

TEST(file_contents_private_and_shared)
{
	int fd = make_file(3);
	char c;
	char *p = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	char *s = mmap(NULL, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, P);
	CHECK_OK(p);
	CHECK_OK(s);
	CHECK_EQ(p[0], 'A');
	CHECK_EQ(p[2 * P], 'C');
	CHECK_EQ(s[0], 'B');
	p[0] = 'x';
	s[1] = 'y';
	CHECK_EQ(pread(fd, &c, 1, 0), 1);
	CHECK_EQ(c, 'A');
	CHECK_EQ(pread(fd, &c, 1, P + 1), 1);
	CHECK_EQ(c, 'y');
	CHECK_EQ(pwrite(fd, "z", 1, P + 2), 1);
	CHECK_EQ(s[2], 'z');
	close(fd);
	CHECK_EQ(s[2], 'z');
}

TEST(beyond_the_end_of_a_file)
{
	int fd = make_file(1);
	CHECK_OK(ftruncate(fd, 100));
	char *p = mmap(NULL, 3 * P, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	CHECK_EQ(p[99], 'A');
	CHECK_EQ(p[100], 0);
	CHECK_EQ(touch(p + P, false), SIGBUS);
	CHECK_EQ(fault_code, BUS_ADRERR);
	CHECK_OK(ftruncate(fd, 2 * P));
	CHECK_EQ(touch(p + P, true), 0);
}

TEST(fixed_replaces_and_noreplace_does_not)
{
	char *p = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memset(p, 1, 4 * P);
	CHECK(mmap(p + P, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + P);
	CHECK_EQ(p[P], 0);
	CHECK_EQ(p[2 * P], 1);
	CHECK_ERR(mmap(p, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
	CHECK_OK(munmap(p + 3 * P, P));
	CHECK(mmap(p + 3 * P, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
	      p + 3 * P);
}

TEST(hints)
{
	char *p = mmap(NULL, 16 * P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	CHECK_OK(munmap(p + 4 * P, 4 * P));
	CHECK(mmap(p + 5 * P + 1, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == p + 5 * P);
	char *q = mmap(p, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(q);
	CHECK(q < p || q >= p + 16 * P || (q >= p + 4 * P && q < p + 8 * P));
	char *low = mmap(NULL, P, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK_OK(low);
	CHECK((unsigned long)low < 0x80000000ul);
}

TEST(code_runs)
{
	/* mov $42,%eax; ret */
	static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
	unsigned char *p = mmap(NULL, P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	memcpy(p, code, sizeof(code));
	CHECK_OK(mprotect(p, P, PROT_READ | PROT_EXEC));
	int (*fn)(void) = (int (*)(void))(void *)p;
	CHECK_EQ(fn(), 42);
}

TEST(growing_mapping)
{
	/* Room below a MAP_GROWSDOWN page: it grows when touched, up to the guard gap of what lies below. */
	char *room = mmap(NULL, 1024 * P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(room);
	CHECK_OK(munmap(room + P, 1023 * P));
	char *top = room + 1024 * P;
	char *p = mmap(top - P, P, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	CHECK(p == top - P);
	for (int i = 1; i < 300; i++) {
		CHECK_EQ(touch(top - i * P, true), 0);
		CHECK_EQ(top[-i * (long)P], 1);
	}
}

static int deep(int n)
{
	volatile char frame[8192];
	frame[0] = (char)n;
	return n == 0 ? frame[0] : deep(n - 1) + frame[0] - frame[0];
}

TEST(stack_grows)
{
	CHECK_EQ(deep(700), 0);
	/* A system call may be the first to touch it. */
	char big[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);
	CHECK_OK(fd);
	CHECK_EQ(read(fd, big, sizeof(big)), sizeof(big));
	CHECK_EQ(big[0], 0);
}

TEST(address_space_limit)
{
	struct rlimit rl = { 256ul << 20, 256ul << 20 };
	CHECK_OK(setrlimit(RLIMIT_AS, &rl));
	CHECK_ERR(mmap(NULL, 512ul << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_OK(mmap(NULL, 16ul << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

TEST(many_mappings)
{
	char *p = mmap(NULL, 2000 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(p);
	for (int i = 0; i < 2000; i += 2)
		CHECK_OK(mprotect(p + i * P, P, PROT_READ));
	for (int i = 1; i < 2000; i += 2)
		p[i * P] = 3;
	CHECK_EQ(touch(p + 2 * P, true), SIGSEGV);
	CHECK_OK(munmap(p, 2000 * P));
}

TEST(listed_in_maps)
{
	int fd = make_file(2);
	char *p = mmap(NULL, 2 * P, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK_OK(p);
	char line[600], want[64];
	bool found = false, stack = false;
	snprintf(want, sizeof(want), "%08lx-%08lx r-xs 00000000 ", (unsigned long)p, (unsigned long)p + 2 * P);
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, want, strlen(want)) == 0) {
			found = true;
			CHECK(strstr(line, "/tmp/mmap_test.") && strstr(line, " (deleted)\n"));
			CHECK_EQ(strchr(line, '/') - line, 73);
		}
		if (strstr(line, "[stack]"))
			stack = true;
	}
	CHECK(found && stack);
}

T_MAIN

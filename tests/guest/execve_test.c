/* execve(2): arguments, scripts, errors, what is kept and what is reset. The program executes itself with
 * "--child WHAT" to look at a fresh image. */
#include "tests/guest/t.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static char self[256];
static char dir[64];

static void make_dir(void)
{
	strcpy(dir, "/tmp/execve_test.XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
}

/* A file in dir with this content and mode; its path. */
static char *make(const char *name, const char *text, mode_t mode)
{
	char *path = malloc(256);
	if (!dir[0])
		make_dir();
	snprintf(path, 256, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_OK(fd);
	CHECK_EQ(write(fd, text, strlen(text)), (long)strlen(text));
	close(fd);
	CHECK_OK(chmod(path, mode));
	return path;
}

static void clean(void)
{
	char cmd[128];
	snprintf(cmd, sizeof(cmd), "/bin/rm");
	pid_t pid = fork();
	if (pid == 0) {
		execl(cmd, "rm", "-rf", dir, NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	dir[0] = 0;
}

/* Runs argv in a child; its wait status. What it prints goes to buf. */
static int run(const char *path, char *const argv[], char *const envp[], char *buf, size_t size)
{
	int p[2], status;
	size_t len = 0;
	ssize_t n;

	CHECK_OK(pipe(p));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		execve(path, argv, envp ? envp : environ);
		_exit(100 + errno % 100);
	}
	close(p[1]);
	while (buf && (n = read(p[0], buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (buf)
		buf[len] = 0;
	close(p[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

#define EXITED(n) ((n) << 8)

TEST(arguments_and_environment_arrive)
{
	char buf[256];
	char *argv[] = { "prog", "--child", "args", "", "a b", NULL };
	char *envp[] = { "ONE=1", "TWO=", NULL };
	CHECK_EQ(run(self, argv, envp, buf, sizeof(buf)), EXITED(0));
	CHECK_STR(buf, "prog|--child|args||a b|;ONE=1|TWO=|;");
}

TEST(no_arguments_give_an_empty_one)
{
	char buf[256];
	char *none[] = { NULL };
	char *envp[] = { "CHILD=args", NULL };
	CHECK_EQ(run(self, none, envp, buf, sizeof(buf)), EXITED(0));
	CHECK_STR(buf, "|;CHILD=args|;");
	int p[2];
	CHECK_OK(pipe(p));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		syscall(SYS_execve, self, NULL, envp);
		_exit(9);
	}
	CHECK_CHILD(pid, 0);
	CHECK_EQ(read(p[0], buf, sizeof(buf)), 14);
}

TEST(errors_by_file)
{
	char *argv[] = { "x", NULL };
	CHECK_ERR(execve("/nonexistent/x", argv, environ), ENOENT);
	CHECK_ERR(execve("/etc/passwd/x", argv, environ), ENOTDIR);
	CHECK_ERR(execve("/tmp", argv, environ), EACCES);
	CHECK_ERR(execve("", argv, environ), ENOENT);
	CHECK_ERR(execve(make("plain", "#!/bin/sh\n", 0644), argv, environ), EACCES);
	CHECK_ERR(execve(make("text", "hello", 0755), argv, environ), ENOEXEC);
	CHECK_ERR(execve(make("empty", "", 0755), argv, environ), ENOEXEC);
	CHECK_ERR(execve(make("cut", "\177ELF\2\1\1", 0755), argv, environ), ENOEXEC);
	char *path = make("busy", "#!/bin/sh\n", 0755);
	int fd = open(path, O_WRONLY);
	CHECK_ERR(execve(path, argv, environ), ETXTBSY);
	close(fd);
	CHECK_ERR(syscall(SYS_execve, 1, argv, environ), EFAULT);
	CHECK_ERR(syscall(SYS_execve, self, 1, environ), EFAULT);
	char *bad[] = { "x", (char *)1, NULL };
	CHECK_ERR(execve(self, bad, environ), EFAULT);
	CHECK_ERR(execve("/nonexistent", bad, environ), ENOENT);
	clean();
}

TEST(scripts)
{
	char buf[512], text[400], want[512];
	snprintf(text, sizeof(text), "#! \t%s --child\t \nargs\n", self);
	char *path = make("script", text, 0755);
	char *argv[] = { "dropped", "args", "two", NULL };
	char *envp[] = { NULL };
	/* argv: interpreter, its one argument, path, the rest. */
	snprintf(text, sizeof(text), "#!%s   --child args  x \n", self);
	char *path2 = make("script2", text, 0755);
	CHECK_EQ(run(path2, argv, envp, buf, sizeof(buf)), EXITED(0));
	snprintf(want, sizeof(want), "%s|--child args  x|%s|args|two|;;", self, path2);
	CHECK_STR(buf, want);
	CHECK_EQ(run(path, argv, envp, buf, sizeof(buf)), EXITED(0));
	snprintf(want, sizeof(want), "%s|--child|%s|args|two|;;", self, path);
	CHECK_STR(buf, want);
	clean();
}

TEST(script_errors)
{
	char *argv[] = { "x", NULL }, longline[400];
	CHECK_ERR(execve(make("none", "#!\n", 0755), argv, environ), ENOEXEC);
	CHECK_ERR(execve(make("blank", "#!  \t \n", 0755), argv, environ), ENOEXEC);
	CHECK_ERR(execve(make("missing", "#!/nonexistent/sh\n", 0755), argv, environ), ENOENT);
	CHECK_ERR(execve(make("dir", "#!/tmp\n", 0755), argv, environ), EACCES);
	memset(longline, 'a', sizeof(longline));
	memcpy(longline, "#!/", 3);
	longline[399] = 0;
	CHECK_ERR(execve(make("long", longline, 0755), argv, environ), ENOEXEC);
	clean();
}

TEST(script_of_scripts)
{
	char *argv[] = { "x", NULL }, *envp[] = { NULL }, text[400], name[16], buf[1024];
	char *path = self;
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "#!%s\n", path);
		snprintf(name, sizeof(name), "s%d", i);
		path = make(name, text, 0755);
	}
	char *env_args[] = { "CHILD=args", NULL };
	CHECK_EQ(run(path, argv, env_args, buf, sizeof(buf)), EXITED(0));
	snprintf(text, sizeof(text), "#!%s\n", path);
	path = make("one_too_many", text, 0755);
	CHECK_ERR(execve(path, argv, envp), ELOOP);
	path = make("itself", "", 0755);
	snprintf(text, sizeof(text), "#!%s\n", path);
	CHECK_ERR(execve(make("itself", text, 0755), argv, envp), ELOOP);
	clean();
}

TEST(size_limits)
{
	size_t n = 131072;
	char *big = malloc(n + 1);
	memset(big, 'a', n);
	big[n] = 0;
	char *argv[] = { "prog", "--child", "count", big, NULL };
	CHECK_ERR(execve(self, argv, environ), E2BIG);
	big[n - 1] = 0;
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(4));
	char **many = calloc(64, sizeof(char *));
	many[0] = "prog";
	for (int i = 1; i < 60; i++)
		many[i] = big;
	CHECK_ERR(execve(self, many, environ), E2BIG);
	struct rlimit rl = { 1 << 20, 1 << 20 };
	CHECK_OK(setrlimit(RLIMIT_STACK, &rl));
	char *three[] = { "prog", big, big, big, NULL };
	CHECK_ERR(execve(self, three, environ), E2BIG);
}

TEST(many_strings)
{
	char **argv = calloc(20004, sizeof(char *));
	argv[0] = "prog";
	argv[1] = "--child";
	argv[2] = "count";
	for (int i = 3; i < 20000; i++)
		argv[i] = "xyz";
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(20000 % 251));
}

TEST(close_on_exec)
{
	int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char sa[16], sb[16];
	snprintf(sa, sizeof(sa), "%d", a);
	snprintf(sb, sizeof(sb), "%d", b);
	char *argv[] = { "prog", "--child", "fds", sa, sb, NULL };
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(1));
}

TEST(signals)
{
	sigset_t set;
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, (void (*)(int))make_dir);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	char *argv[] = { "prog", "--child", "signals", NULL };
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(0));
}

TEST(auxiliary_vector)
{
	char *argv[] = { "prog", "--child", "auxv", NULL };
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(0));
}

TEST(registers_at_start)
{
	char *argv[] = { "renamed", "--child", "comm", NULL };
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(0));
}

static void *exec_thread(void *arg)
{
	char *argv[] = { "prog", "--child", "ids", arg, NULL };
	execve(self, argv, environ);
	_exit(99);
}

static void *spin_thread(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

TEST(exec_from_a_thread_takes_the_leaders_id)
{
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		pthread_t a, b, c;
		char id[16];
		snprintf(id, sizeof(id), "%d", getpid());
		pthread_create(&a, NULL, spin_thread, NULL);
		pthread_create(&b, NULL, spin_thread, NULL);
		pthread_create(&c, NULL, exec_thread, id);
		for (;;)
			pause();
	}
	CHECK_CHILD(pid, 0);
}

TEST(exec_from_a_thread_after_the_leader_ended)
{
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		pthread_t c;
		static char id[16];
		snprintf(id, sizeof(id), "%d", getpid());
		pthread_create(&c, NULL, exec_thread, id);
		syscall(SYS_exit, 0);
	}
	CHECK_CHILD(pid, 0);
}

TEST(exec_with_threads_from_the_leader)
{
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		pthread_t t;
		char id[16];
		snprintf(id, sizeof(id), "%d", getpid());
		for (int i = 0; i < 8; i++)
			pthread_create(&t, NULL, spin_thread, NULL);
		exec_thread(id);
	}
	CHECK_CHILD(pid, 0);
}

TEST(vfork_and_exec)
{
	volatile int x = 1;
	char *argv[] = { "prog", "--child", "count", NULL };
	for (int i = 0; i < 20; i++) {
		pid_t pid = vfork();
		CHECK_OK(pid);
		if (pid == 0) {
			x = 2;
			execve(self, argv, environ);
			_exit(98);
		}
		CHECK_EQ(x, 2);
		CHECK_CHILD(pid, 3);
		x = 1;
	}
}

TEST(failed_exec_leaves_everything)
{
	char *argv[] = { "x", NULL };
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p[0] = 4;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_ERR(execve("/nonexistent", argv, environ), ENOENT);
	CHECK_EQ(p[0], 4);
	CHECK_OK(fcntl(fd, F_GETFD));
}

TEST(dynamic_program)
{
	char buf[64];
	char *argv[] = { "echo", "hi", NULL };
	if (access("/bin/echo", X_OK) != 0)
		SKIP("no /bin/echo");
	CHECK_EQ(run("/bin/echo", argv, NULL, buf, sizeof(buf)), EXITED(0));
	CHECK_STR(buf, "hi\n");
	/* By its loader. */
	char *direct[] = { "ld", "/bin/echo", "ho", NULL };
	if (access("/lib64/ld-linux-x86-64.so.2", X_OK) == 0) {
		CHECK_EQ(run("/lib64/ld-linux-x86-64.so.2", direct, NULL, buf, sizeof(buf)), EXITED(0));
		CHECK_STR(buf, "ho\n");
	}
}

TEST(set_user_id)
{
	char path[256], cmd[600];
	if (geteuid() != 0)
		SKIP("needs root");
	make_dir();
	snprintf(path, sizeof(path), "%s/suid", dir);
	CHECK_OK(chmod(dir, 0755));
	snprintf(cmd, sizeof(cmd), "cp %s %s", self, path);
	CHECK_EQ(system(cmd), 0);
	CHECK_OK(chown(path, 1234, 4321));
	CHECK_OK(chmod(path, 06755));
	char *argv[] = { "prog", "--child", "suid", NULL };
	int status = run(path, argv, NULL, NULL, 0);
	if (WEXITSTATUS(status) == 77) {
		clean();
		SKIP("mounted nosuid");
	}
	CHECK_EQ(status, EXITED(0));
	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	status = run(path, argv, NULL, NULL, 0);
	CHECK_EQ(status, EXITED(77));
	clean();
}

TEST(capabilities_of_an_ordinary_user_and_root)
{
	char *argv[] = { "prog", "--child", "caps", NULL };
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_EQ(run(self, argv, NULL, NULL, 0), EXITED(1));
	char *copy = make("copy", "", 0755), cmd[600];
	CHECK_OK(chmod(dir, 0755));
	snprintf(cmd, sizeof(cmd), "cp %s %s", self, copy);
	CHECK_EQ(system(cmd), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
		setresuid(1000, 1000, 1000);
		execve(copy, argv, environ);
		_exit(50);
	}
	CHECK_CHILD(pid, 0);
	clean();
}

/* Damaged headers: the call fails, or the child dies; the kernel lives on. */
TEST(damaged_programs)
{
	char *path = make("damaged", "", 0755);
	char *argv[] = { "damaged", "--child", "count", NULL };
	static unsigned char whole[8 << 20], bad[1024];
	int in = open(self, O_RDONLY), errors = 0, deaths = 0, runs = 0;
	ssize_t size = read(in, whole, sizeof(whole));
	CHECK(size > (ssize_t)sizeof(bad));
	close(in);
	int fd = open(path, O_WRONLY | O_TRUNC);
	CHECK_EQ(write(fd, whole, (size_t)size), size);
	srand(7);
	for (int i = 0; i < 150; i++) {
		memcpy(bad, whole, sizeof(bad));
		for (int n = 1 + rand() % 4; n > 0; n--) {
			int at = 16 + rand() % (i % 2 ? 48 : 300);
			bad[at] = (unsigned char)(rand() % 3 ? rand() : 0xff);
		}
		fd = open(path, O_WRONLY);
		CHECK_EQ(pwrite(fd, bad, sizeof(bad), 0), (long)sizeof(bad));
		close(fd);
		pid_t pid = fork();
		if (pid == 0) {
			alarm(2);
			close(1);
			close(2);
			execve(path, argv, environ);
			_exit(111);
		}
		int status;
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (WIFSIGNALED(status))
			deaths++;
		else if (WEXITSTATUS(status) == 111)
			errors++;
		else
			runs++;
	}
	CHECK(errors > 0 && errors + deaths + runs == 150);
	clean();
}

/* ---- the other side ------------------------------------------------------------------------- */

static void print_list(char **v)
{
	for (; *v; v++)
		printf("%s|", *v);
	printf(";");
}

static int child_signals(void)
{
	struct sigaction sa;
	sigset_t set;
	stack_t ss;

	sigaction(SIGUSR1, NULL, &sa);
	if (sa.sa_handler != SIG_IGN)
		return 1;
	sigaction(SIGUSR2, NULL, &sa);
	if (sa.sa_handler != SIG_DFL)
		return 2;
	sigprocmask(SIG_SETMASK, NULL, &set);
	if (!sigismember(&set, SIGTERM) || sigismember(&set, SIGINT))
		return 3;
	sigaltstack(NULL, &ss);
	return ss.ss_flags == SS_DISABLE ? 0 : 4;
}

static int child_auxv(void)
{
	const unsigned char *random = (void *)getauxval(AT_RANDOM);
	int zeros = 0;

	if (getauxval(AT_PAGESZ) != 4096 || getauxval(AT_CLKTCK) != 100 || getauxval(AT_PHENT) != 56)
		return 1;
	if (getauxval(AT_UID) != getuid() || getauxval(AT_EGID) != getegid() || getauxval(AT_SECURE))
		return 2;
	if (strcmp((char *)getauxval(AT_EXECFN), self) != 0)
		return 3;
	if (strcmp((char *)getauxval(AT_PLATFORM), "x86_64") != 0)
		return 4;
	for (int i = 0; i < 16; i++)
		zeros += random[i] == 0;
	if (zeros > 8)
		return 5;
	const Elf64_Phdr *ph = (void *)getauxval(AT_PHDR);
	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
		if (ph[i].p_type == PT_LOAD)
			return getauxval(AT_MINSIGSTKSZ) >= 2048 ? 0 : 7;
	return 6;
}

static int child_comm(void)
{
	char name[17] = "", line[600], link[300];
	const char *base = strrchr(self, '/') + 1;

	prctl(PR_GET_NAME, name);
	if (strncmp(name, base, 15) != 0)
		return 1;
	FILE *f = fopen("/proc/self/cmdline", "r");
	size_t n = f ? fread(line, 1, sizeof(line), f) : 0;
	if (n != 21 || memcmp(line, "renamed\0--child\0comm", 21) != 0)
		return 2;
	ssize_t len = readlink("/proc/self/exe", link, sizeof(link) - 1);
	if (len < 0)
		return 3;
	link[len] = 0;
	return strcmp(link, self) == 0 ? 0 : 4;
}

static int child_caps(void)
{
	struct {
		unsigned version;
		int pid;
	} head = { 0x20080522, 0 };
	struct {
		unsigned effective, permitted, inheritable;
	} data[2];

	if (syscall(SYS_capget, &head, data) != 0)
		return 40;
	return data[0].effective != 0;
}

static int child(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (strcmp(what, "args") == 0 || (argc > 1 && strstr(argv[1], "--child args")) ||
	    (argc > 3 && strcmp(argv[3], "args") == 0)) {
		print_list(argv);
		print_list(environ);
		return 0;
	}
	if (strcmp(what, "count") == 0)
		return argc % 251;
	if (strcmp(what, "fds") == 0)
		return (fcntl(atoi(argv[3]), F_GETFD) >= 0) + 2 * (fcntl(atoi(argv[4]), F_GETFD) >= 0);
	if (strcmp(what, "signals") == 0)
		return child_signals();
	if (strcmp(what, "auxv") == 0)
		return child_auxv();
	if (strcmp(what, "comm") == 0)
		return child_comm();
	if (strcmp(what, "ids") == 0)
		return getpid() == atoi(argv[3]) && gettid() == getpid() ? 0 : 1;
	if (strcmp(what, "suid") == 0) {
		if (geteuid() == 0)
			return 77;
		uid_t r, e, s;
		getresuid(&r, &e, &s);
		return r == 0 && e == 1234 && s == 1234 && getegid() == 4321 && getauxval(AT_SECURE) == 1 ? 0 : 1;
	}
	if (strcmp(what, "caps") == 0)
		return child_caps();
	return 200;
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 && argv[0])
		strncpy(self, argv[0], sizeof(self) - 1);
	if (getenv("CHILD")) {
		print_list(argv);
		print_list(environ);
		return 0;
	}
	if (argc > 1 && strncmp(argv[1], "--child", 7) == 0)
		return child(argc, argv);
	return t_main(argc, argv);
}

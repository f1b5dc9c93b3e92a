/* /proc as programs read it: proc(5). */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "tests/guest/t.h"

static char text[65536];

/* An address in the program's code. */
static void *code_address(void)
{
	return (void *)(uintptr_t)code_address;
}

/* A whole file as text; its length. */
static ssize_t slurp(const char *name)
{
	int fd = open(name, O_RDONLY);
	size_t n = 0;

	CHECK_OK(fd);
	for (;;) {
		ssize_t r = read(fd, text + n, sizeof(text) - 1 - n);
		CHECK_OK(r);
		if (r == 0)
			break;
		n += (size_t)r;
	}
	text[n] = 0;
	close(fd);
	return (ssize_t)n;
}

/* The value behind "name" in lines of the form "name:\tvalue". */
static const char *field(const char *name)
{
	static char value[256];
	size_t len = strlen(name);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, name, len) == 0 && line[len] == ':') {
			const char *v = line + len + 1;
			v += strspn(v, " \t");
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(v, "\n"), v);
			return value;
		}
	}
	FAIL("no field %s", name);
}

static const char *link_of(const char *name)
{
	static char target[4096];
	ssize_t n = readlink(name, target, sizeof(target) - 1);

	CHECK_OK(n);
	target[n] = 0;
	return target;
}

TEST(self_links)
{
	char want[64];

	snprintf(want, sizeof(want), "%d", getpid());
	CHECK_STR(link_of("/proc/self"), want);
	snprintf(want, sizeof(want), "%d/task/%d", getpid(), (int)syscall(SYS_gettid));
	CHECK_STR(link_of("/proc/thread-self"), want);
	CHECK_STR(link_of("/proc/mounts"), "self/mounts");
	CHECK_STR(link_of("/proc/net"), "self/net");
	struct statfs fs;
	CHECK_OK(statfs("/proc", &fs));
	CHECK_EQ(fs.f_type, 0x9fa0);
}

TEST(stat_fields)
{
	char comm[64], state;
	int pid, ppid, pgrp, sid, tty, tpgid, nice, threads, exit_signal;
	unsigned long start, vsize, startcode, endcode, startstack;
	long rss, prio;

	CHECK_OK(prctl(PR_SET_NAME, "a (b) c"));
	slurp("/proc/self/stat");
	int n = sscanf(text, "%d (%63[^\n]", &pid, comm);
	CHECK_EQ(n, 2);
	char *close_paren = strrchr(text, ')');
	CHECK(close_paren);
	CHECK_EQ(strncmp(strchr(text, '(') + 1, "a (b) c)", 8), 0);
	n = sscanf(close_paren + 2,
		   "%c %d %d %d %d %d %*u %*u %*u %*u %*u %*u %*u %*u %*u %ld %d %d %*d %lu %lu "
		   "%ld %*u "
		   "%lu %lu %lu %*u %*u %*u %*u %*u %*u %*u %*u %*u %d",
		   &state, &ppid, &pgrp, &sid, &tty, &tpgid, &prio, &nice, &threads, &start, &vsize,
		   &rss, &startcode, &endcode, &startstack, &exit_signal);
	CHECK_EQ(n, 16);
	CHECK_EQ(pid, getpid());
	CHECK_EQ(state, 'R');
	CHECK_EQ(ppid, getppid());
	CHECK_EQ(pgrp, getpgrp());
	CHECK_EQ(sid, getsid(0));
	CHECK_EQ(prio, 20 + nice);
	CHECK_EQ(threads, 1);
	CHECK(vsize > 4096);
	CHECK(rss > 0);
	CHECK(startcode < (unsigned long)code_address() && (unsigned long)code_address() < endcode);
	CHECK(startstack > (unsigned long)&n);
	CHECK_EQ(exit_signal, SIGCHLD);
	/* 52 fields in all. */
	int spaces = 0;
	for (char *p = close_paren; *p; p++)
		spaces += *p == ' ';
	CHECK_EQ(spaces, 50);
	/* The process began after boot and before now. */
	slurp("/proc/uptime");
	CHECK(start / 100.0 <= atof(text) + 0.02);
}

TEST(statm_and_status_agree)
{
	unsigned long size, resident, shared, code, lib, data, dirty;

	slurp("/proc/self/statm");
	CHECK_EQ(sscanf(text, "%lu %lu %lu %lu %lu %lu %lu", &size, &resident, &shared, &code, &lib,
			&data, &dirty),
		 7);
	slurp("/proc/self/status");
	CHECK_EQ(strtoul(field("VmSize"), NULL, 10), size * 4);
	CHECK(resident > 0 && resident <= size);
	CHECK_EQ(lib, 0);
	CHECK_EQ(dirty, 0);
}

TEST(status_fields)
{
	char want[64];

	umask(027);
	CHECK_OK(prctl(PR_SET_NAME, "status-name"));
	signal(SIGUSR1, SIG_IGN);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	slurp("/proc/self/status");
	CHECK_STR(field("Name"), "status-name");
	CHECK_STR(field("Umask"), "0027");
	CHECK_STR(field("State"), "R (running)");
	CHECK_EQ(atoi(field("Pid")), getpid());
	CHECK_EQ(atoi(field("Tgid")), getpid());
	CHECK_EQ(atoi(field("PPid")), getppid());
	CHECK_EQ(atoi(field("TracerPid")), 0);
	CHECK_EQ(atoi(field("Threads")), 1);
	snprintf(want, sizeof(want), "%d\t%d\t%d\t%d", getuid(), geteuid(), geteuid(), geteuid());
	CHECK_STR(field("Uid"), want);
	CHECK(strtoull(field("SigIgn"), NULL, 16) & (1ull << (SIGUSR1 - 1)));
	CHECK(strtoull(field("SigBlk"), NULL, 16) & (1ull << (SIGUSR2 - 1)));
	CHECK(strtoull(field("SigPnd"), NULL, 16) & (1ull << (SIGUSR2 - 1)));
	CHECK_STR(field("NoNewPrivs"), "0");
	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	slurp("/proc/self/status");
	CHECK_STR(field("NoNewPrivs"), "1");
}

TEST(comm_can_be_written)
{
	char name[17] = { 0 };
	int fd = open("/proc/self/comm", O_RDWR);

	CHECK_OK(fd);
	CHECK_EQ(write(fd, "renamed", 7), 7);
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK_STR(name, "renamed");
	CHECK_EQ(write(fd, "a-name-longer-than-fifteen", 26), 26);
	CHECK_OK(prctl(PR_GET_NAME, name));
	CHECK_STR(name, "a-name-longer-t");
	slurp("/proc/self/comm");
	CHECK_STR(text, "a-name-longer-t\n");
}

/* Reads a file of a shell that waits for input, started with the given environment. */
static ssize_t read_of_shell(const char *what, char *const envp[])
{
	char name[64];
	int p[2], status;

	CHECK_OK(pipe(p));
	pid_t pid = fork();
	CHECK_OK(pid);
	if (pid == 0) {
		dup2(p[0], 0);
		close(p[1]);
		execve("/bin/sh", (char *[]){ "sh", "-c", "read x", "x y", NULL }, envp);
		_exit(1);
	}
	/* The new program has its arguments last. */
	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	for (int i = 0; i < 500; i++) {
		if (slurp(name) > 0 && strcmp(text, "sh") == 0)
			break;
		usleep(10000);
	}
	snprintf(name, sizeof(name), "/proc/%d/%s", pid, what);
	ssize_t n = slurp(name);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return n;
}

TEST(cmdline_of_a_child)
{
	CHECK_EQ(read_of_shell("cmdline", (char *[]){ NULL }), 17);
	CHECK_MEM(text, "sh\0-c\0read x\0x y\0", 17);
}

TEST(environ_of_a_child)
{
	CHECK_EQ(read_of_shell("environ", (char *[]){ "A=1", "PATH=/usr/bin:/bin", NULL }), 23);
	CHECK_MEM(text, "A=1\0PATH=/usr/bin:/bin\0", 23);
}

TEST(zombie)
{
	char name[64];
	int status;
	pid_t pid = fork();

	CHECK_OK(pid);
	if (pid == 0)
		_exit(7);
	siginfo_t si;
	CHECK_OK(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT));
	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	slurp(name);
	CHECK_EQ(strrchr(text, ')')[2], 'Z');
	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	CHECK_EQ(slurp(name), 0);
	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	CHECK_ERR(readlink(name, text, 100), ENOENT);
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	slurp(name);
	CHECK_STR(field("State"), "Z (zombie)");
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_ERR(open(name, O_RDONLY), ENOENT);
}

TEST(open_file_of_a_process_that_has_gone)
{
	char name[64], c;
	pid_t pid = fork();

	CHECK_OK(pid);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	int fd = open(name, O_RDONLY);
	CHECK_OK(fd);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
	CHECK_ERR(read(fd, &c, 1), ESRCH);
}

TEST(exe_cwd_root)
{
	char cwd[4096];
	struct stat a, b;

	CHECK_OK(chdir("/usr"));
	CHECK(getcwd(cwd, sizeof(cwd)));
	CHECK_STR(link_of("/proc/self/cwd"), cwd);
	CHECK_STR(link_of("/proc/self/root"), "/");
	CHECK(strstr(link_of("/proc/self/exe"), "proc_self_test"));
	CHECK_OK(stat("/proc/self/exe", &a));
	CHECK_OK(stat(link_of("/proc/self/exe"), &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_OK(stat("/proc/self/cwd/bin", &a));
	CHECK_OK(stat("/usr/bin", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
}

TEST(descriptors)
{
	char name[64];
	int p[2], fd = open("/proc/self/exe", O_RDONLY);
	struct stat st, other;

	CHECK_OK(fd);
	CHECK_OK(pipe(p));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK(strstr(link_of(name), "proc_self_test"));
	CHECK_OK(lstat(name, &st));
	CHECK_EQ(st.st_mode, S_IFLNK | 0500);
	CHECK_OK(stat(name, &st));
	CHECK_OK(fstat(fd, &other));
	CHECK_EQ(st.st_ino, other.st_ino);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", p[1]);
	CHECK_EQ(strncmp(link_of(name), "pipe:[", 6), 0);
	CHECK_OK(lstat(name, &st));
	CHECK_EQ(st.st_mode, S_IFLNK | 0300);
	/* Opening a pipe again gives another description of it. */
	int again = open(name, O_WRONLY | O_NONBLOCK);
	CHECK_OK(again);
	CHECK_EQ(write(again, "x", 1), 1);
	char c;
	CHECK_EQ(read(p[0], &c, 1), 1);
	close(fd);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK_ERR(readlink(name, text, 10), ENOENT);
	/* The directory lists what is open. */
	DIR *d = opendir("/proc/self/fd");
	CHECK(d);
	bool seen = false;
	for (struct dirent *e; (e = readdir(d));)
		seen |= atoi(e->d_name) == p[1];
	closedir(d);
	CHECK(seen);
}

TEST(fdinfo)
{
	char name[64];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK_OK(fd);
	CHECK_EQ(lseek(fd, 123, SEEK_SET), 123);
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	slurp(name);
	CHECK_STR(field("pos"), "123");
	CHECK_EQ(strtol(field("flags"), NULL, 8) & (O_CLOEXEC | O_ACCMODE), O_CLOEXEC);
	CHECK(atoi(field("mnt_id")) > 0);
}

TEST(deleted_file)
{
	char name[] = "/tmp/proc_self_XXXXXX", link[64], want[64];
	int fd = mkstemp(name);

	SKIP_IF(fd < 0, "no writable /tmp");
	CHECK_OK(unlink(name));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(want, sizeof(want), "%s (deleted)", name);
	CHECK_STR(link_of(link), want);
	CHECK_EQ(write(fd, "still", 5), 5);
	int again = open(link, O_RDONLY);
	CHECK_OK(again);
	CHECK_EQ(read(again, text, 10), 5);
}

TEST(maps_lines)
{
	slurp("/proc/self/maps");
	unsigned long start, end, off, last = 0;
	char perms[8];
	bool stack = false, own = false, vdso = false;
	unsigned long here = (unsigned long)code_address();

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		CHECK_EQ(sscanf(line, "%lx-%lx %4s %lx", &start, &end, perms, &off), 4);
		CHECK(start < end && start >= last);
		last = end;
		if (here >= start && here < end) {
			own = true;
			CHECK_EQ(perms[2], 'x');
			CHECK(strstr(line, "proc_self_test"));
			CHECK_EQ(line[73], '/');
		}
		stack |= strstr(line, "[stack]") && (unsigned long)&last >= start &&
			 (unsigned long)&last < end;
		vdso |= strstr(line, "[vdso]") != NULL;
	}
	CHECK(own);
	CHECK(stack);
	CHECK(vdso || !getauxval(AT_SYSINFO_EHDR));
}

TEST(mem)
{
	static int value = 42;
	int fd = open("/proc/self/mem", O_RDWR), got = 0, put = 43;

	CHECK_OK(fd);
	CHECK_EQ(pread(fd, &got, sizeof(got), (off_t)(uintptr_t)&value), sizeof(got));
	CHECK_EQ(got, 42);
	CHECK_EQ(pwrite(fd, &put, sizeof(put), (off_t)(uintptr_t)&value), sizeof(put));
	CHECK_EQ(*(volatile int *)&value, 43);
	CHECK_ERR(pread(fd, &got, sizeof(got), 16), EIO);
	CHECK_EQ(lseek(fd, (off_t)(uintptr_t)&value, SEEK_SET), (off_t)(uintptr_t)&value);
	CHECK_EQ(read(fd, &got, sizeof(got)), sizeof(got));
	CHECK_EQ(got, 43);
}

TEST(auxv)
{
	unsigned long *v = (unsigned long *)(void *)text;
	ssize_t n = slurp("/proc/self/auxv");

	CHECK(n > 16 && n % 16 == 0);
	bool found = false;
	for (size_t i = 0; i + 1 < (size_t)n / 8; i += 2)
		if (v[i] == AT_ENTRY)
			found = v[i + 1] == getauxval(AT_ENTRY);
	CHECK(found);
	CHECK_EQ(v[n / 8 - 2], AT_NULL);
}

TEST(limits)
{
	struct rlimit r = { 100, 200 };
	char want[200];

	CHECK_OK(setrlimit(RLIMIT_NOFILE, &r));
	slurp("/proc/self/limits");
	CHECK_EQ(strncmp(text,
			 "Limit                     Soft Limit           Hard Limit           "
			 "Units     \n",
			 79),
		 0);
	snprintf(want, sizeof(want), "%-25s %-20s %-20s %-10s\n", "Max open files", "100", "200",
		 "files");
	CHECK(strstr(text, want));
}

static void *thread_main(void *arg)
{
	int *fds = arg;
	char c = 'r';

	prctl(PR_SET_NAME, "worker");
	if (write(fds[1], &c, 1) != 1)
		abort();
	while (read(fds[2], &c, 1) < 0)
		;
	return NULL;
}

TEST(threads)
{
	int up[2], down[2];
	pthread_t thread;
	char c;

	CHECK_OK(pipe(up));
	CHECK_OK(pipe(down));
	int fds[3] = { up[0], up[1], down[0] };
	CHECK_EQ(pthread_create(&thread, NULL, thread_main, fds), 0);
	CHECK_EQ(read(up[0], &c, 1), 1);
	DIR *d = opendir("/proc/self/task");
	CHECK(d);
	int count = 0, other = 0;
	for (struct dirent *e; (e = readdir(d));) {
		int tid = atoi(e->d_name);
		if (tid > 0)
			count++;
		if (tid > 0 && tid != getpid())
			other = tid;
	}
	closedir(d);
	CHECK_EQ(count, 2);
	char name[64];
	snprintf(name, sizeof(name), "/proc/self/task/%d/comm", other);
	slurp(name);
	CHECK_STR(text, "worker\n");
	snprintf(name, sizeof(name), "/proc/%d/status", other);
	slurp(name);
	CHECK_EQ(atoi(field("Pid")), other);
	CHECK_EQ(atoi(field("Tgid")), getpid());
	CHECK_STR(field("Threads"), "2");
	CHECK_EQ(write(down[1], &c, 1), 1);
	pthread_join(thread, NULL);
}

TEST(namespaces)
{
	struct stat a, b;

	CHECK_EQ(strncmp(link_of("/proc/self/ns/mnt"), "mnt:[", 5), 0);
	unsigned long number = strtoul(link_of("/proc/self/ns/pid") + 5, NULL, 10);
	CHECK_OK(stat("/proc/self/ns/pid", &a));
	CHECK_EQ(a.st_ino, number);
	CHECK_OK(stat("/proc/self/ns/pid_for_children", &b));
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(a.st_dev, b.st_dev);
	int fd = open("/proc/self/ns/uts", O_RDONLY);
	CHECK_OK(fd);
}

TEST(mounts_and_mountinfo)
{
	slurp("/proc/self/mounts");
	CHECK(strstr(text, " /proc proc "));
	slurp("/proc/self/mountinfo");
	bool root = false;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		int id, parent, at = 0;
		unsigned major, minor;
		char where[4096], what[4096];
		CHECK_EQ(sscanf(line, "%d %d %u:%u %4095s %4095s %n", &id, &parent, &major, &minor,
				what, where, &at),
			 6);
		CHECK(strstr(line + at, " - "));
		root |= strcmp(where, "/") == 0;
	}
	CHECK(root);
}

TEST(oom_score_adj)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR);

	CHECK_OK(fd);
	CHECK_EQ(write(fd, "500", 3), 3);
	slurp("/proc/self/oom_score_adj");
	CHECK_STR(text, "500\n");
	CHECK_ERR(write(fd, "1001", 4), EINVAL);
	CHECK_ERR(write(fd, "x", 1), EINVAL);
}

TEST(names_that_do_not_exist)
{
	CHECK_ERR(open("/proc/self/nothing", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/0", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/01", O_RDONLY), ENOENT);
	CHECK_ERR(open("/proc/999999999", O_RDONLY), ENOENT);
	/* What comes first, the look or the right to write, does not matter. */
	CHECK(open("/proc/self/new", O_RDWR | O_CREAT, 0600) < 0 &&
	      (errno == ENOENT || errno == EACCES));
	CHECK(mkdir("/proc/x", 0700) < 0 && (errno == ENOENT || errno == EACCES || errno == EPERM));
	CHECK(unlink("/proc/self/stat") < 0 && (errno == EPERM || errno == EACCES));
}

TEST(reading_again_from_the_start)
{
	int fd = open("/proc/uptime", O_RDONLY);
	char a[64] = { 0 }, b[64] = { 0 };

	CHECK_OK(fd);
	CHECK(read(fd, a, sizeof(a)) > 0);
	CHECK_EQ(read(fd, b, sizeof(b)), 0);
	usleep(50000);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK(read(fd, b, sizeof(b)) > 0);
	CHECK(strcmp(a, b) != 0);
	CHECK_ERR(lseek(fd, 0, SEEK_END), EINVAL);
}

TEST(listing_of_processes)
{
	pid_t pid = fork();
	bool child = false, self = false, one = false;

	CHECK_OK(pid);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	DIR *d = opendir("/proc");
	CHECK(d);
	int last = 0;
	for (struct dirent *e; (e = readdir(d));) {
		int id = atoi(e->d_name);
		if (id <= 0)
			continue;
		CHECK(id > last);
		CHECK_EQ(e->d_type, DT_DIR);
		last = id;
		child |= id == pid;
		self |= id == getpid();
		one |= id == 1;
	}
	closedir(d);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
	CHECK(child);
	CHECK(self);
	CHECK(one);
}

TEST(system_files)
{
	struct utsname u;
	char want[300];

	CHECK_OK(uname(&u));
	slurp("/proc/sys/kernel/osrelease");
	snprintf(want, sizeof(want), "%s\n", u.release);
	CHECK_STR(text, want);
	slurp("/proc/sys/kernel/hostname");
	snprintf(want, sizeof(want), "%s\n", u.nodename);
	CHECK_STR(text, want);
	slurp("/proc/version");
	snprintf(want, sizeof(want), "Linux version %s ", u.release);
	CHECK_EQ(strncmp(text, want, strlen(want)), 0);
	slurp("/proc/meminfo");
	struct sysinfo si;
	CHECK_OK(sysinfo(&si));
	CHECK_EQ(strtoul(field("MemTotal"), NULL, 10), si.totalram * si.mem_unit / 1024);
	CHECK_EQ(strncmp(text, "MemTotal:       ", 16), 0);
	CHECK(strtoul(field("MemAvailable"), NULL, 10) > 0);
	slurp("/proc/stat");
	CHECK_EQ(strncmp(text, "cpu  ", 5), 0);
	CHECK(strstr(text, "\ncpu0 "));
	CHECK(strstr(text, "\nbtime "));
	time_t btime = (time_t)strtoul(strstr(text, "\nbtime ") + 7, NULL, 10);
	CHECK(btime <= time(NULL));
	slurp("/proc/cpuinfo");
	int cpus = 0;
	for (const char *p = text; (p = strstr(p, "processor\t:")); p++)
		cpus++;
	CHECK_EQ(cpus, sysconf(_SC_NPROCESSORS_ONLN));
	slurp("/proc/loadavg");
	float a, b, c;
	int running, all, last;
	CHECK_EQ(sscanf(text, "%f %f %f %d/%d %d", &a, &b, &c, &running, &all, &last), 6);
	CHECK(running >= 1 && all >= running);
	slurp("/proc/filesystems");
	CHECK(strstr(text, "nodev\tproc\n"));
}

TEST(random_ids)
{
	char first[64];

	CHECK_EQ(slurp("/proc/sys/kernel/random/uuid"), 37);
	strcpy(first, text);
	slurp("/proc/sys/kernel/random/uuid");
	CHECK(strcmp(first, text) != 0);
	CHECK_EQ(text[14], '4');
	CHECK_EQ(slurp("/proc/sys/kernel/random/boot_id"), 37);
	strcpy(first, text);
	slurp("/proc/sys/kernel/random/boot_id");
	CHECK_STR(first, text);
}

TEST(numbers_in_sys)
{
	static const char *const names[] = {
		"/proc/sys/kernel/pid_max",       "/proc/sys/kernel/threads-max",
		"/proc/sys/kernel/cap_last_cap",  "/proc/sys/vm/max_map_count",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max",
		"/proc/sys/fs/nr_open",           "/proc/sys/fs/pipe-max-size",
		"/proc/sys/net/core/somaxconn",   "/proc/sys/fs/inotify/max_user_watches",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		slurp(names[i]);
		CHECK(text[0] >= '0' && text[0] <= '9');
		CHECK_EQ(text[strlen(text) - 1], '\n');
	}
}

TEST(sysfs_cpus)
{
	struct statfs fs;

	CHECK_OK(statfs("/sys", &fs));
	CHECK_EQ(fs.f_type, 0x62656572);
	slurp("/sys/devices/system/cpu/online");
	CHECK(text[0] >= '0' && text[0] <= '9');
	slurp("/sys/devices/system/cpu/possible");
	CHECK(text[0] >= '0' && text[0] <= '9');
	struct stat st;
	CHECK_OK(stat("/sys/devices/system/cpu/online", &st));
	CHECK_EQ(st.st_size, 4096);
}

T_MAIN

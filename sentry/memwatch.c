/*
 * The memory limit without a cgroup. Guest memory belongs to the stubs, so neither the sentry nor a
 * resource limit per process knows the sum; and the sentry may open no file of /proc. A helper
 * process does: it reads which children the sentry's main thread has and what they hold, at
 * intervals that fit the distance to the limit. The cheap figure (statm) counts pages that are
 * shared after a fork once per process; only when it is over the limit is the exact one
 * (smaps_rollup, proportional) read.
 *
 * What is in tmpfs, memfds and shared memory lies in memory files of the sentry. It charges what is
 * written to them against a limit of its own (fs/memfile.c), which is as high; but a page that a
 * guest touches in a mapping is seen by the host only. So their real sizes are looked at too, and
 * end the sandbox when they are far above that limit.
 */
#include "sentry/memwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/log.h"
#include "platform/base/waitq.h"
#include "platform/host/host.h"
#include "platform/host/host_isolate.h"
#include "platform/host/host_path.h"
#include "platform/host/seccomp.h"

#define GROWTH_PER_NS 4            /* bytes: faster than a processor fills fresh pages */
#define SLEEP_MIN_NS 2000000ull    /* 2 ms */
#define SLEEP_MAX_NS 100000000ull  /* 100 ms: what an idle sandbox costs then is not measurable */
#define COST_SHARE 50              /* sleeps at least this many times as long as a look took */
#define FILES_SLACK (8ull << 20)   /* for the pages that the sentry shares with stubs */
#define CHILDREN_SIZE (256 * 1024) /* text of all pids */

static char children[CHILDREN_SIZE];

/* The text of a small file of /proc, NUL-terminated; its length or -errno. */
static ssize_t read_proc(int proc, const char *name, char *buf, size_t size)
{
	size_t n = 0;
	int fd = host_open_beneath(proc, name, O_RDONLY, 0);

	if (fd < 0)
		return fd;
	ssize_t r = 1;
	while (r > 0 && n < size - 1) {
		r = host_read(fd, buf + n, size - 1 - n);
		n += r > 0 ? (size_t)r : 0;
	}
	host_close(fd);
	buf[n] = 0;
	return r < 0 ? r : (ssize_t)n;
}

/* Anonymous bytes of one process; 0 when it is gone. */
static uint64_t cheap_bytes(int proc, int pid)
{
	char name[32], text[128];
	unsigned long resident, shared;

	snprintf(name, sizeof(name), "%d/statm", pid);
	if (read_proc(proc, name, text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 || resident < shared)
		return 0;
	return (resident - shared) * PAGE_SIZE;
}

static uint64_t field_bytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* The process's proportional share of what is not file content; the cheap figure where that is not
 * told. */
static uint64_t exact_bytes(int proc, int pid)
{
	char name[32], text[2048];

	snprintf(name, sizeof(name), "%d/smaps_rollup", pid);
	if (read_proc(proc, name, text, sizeof(text)) <= 0 || !strstr(text, "Pss_Anon:"))
		return cheap_bytes(proc, pid);
	return field_bytes(text, "Pss_Anon:") + field_bytes(text, "Pss_Shmem:") +
	       field_bytes(text, "SwapPss:");
}

/* Sum over the children of the sentry's main thread; -errno when they cannot be listed. */
static int64_t sum(int proc, int sentry, uint64_t (*bytes)(int proc, int pid))
{
	char name[64];
	uint64_t total = 0;

	snprintf(name, sizeof(name), "%d/task/%d/children", sentry, sentry);
	ssize_t n = read_proc(proc, name, children, sizeof(children));
	if (n < 0)
		return n;
	for (char *p = children, *end;; p = end) {
		long pid = strtol(p, &end, 10);
		if (end == p)
			return (int64_t)total;
		total += bytes(proc, (int)pid);
	}
}

/* Bytes in the sentry's memory files, which are the files of device `dev`; 0 when they cannot be
 * listed. */
static uint64_t memory_files(int proc, int sentry, dev_t dev)
{
	_Alignas(8) char buf[4096];
	char name[32];
	uint64_t total = 0;
	ssize_t n;

	snprintf(name, sizeof(name), "%d/fd", sentry);
	int dir = host_open_beneath(proc, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return 0;
	while ((n = host_getdents(dir, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			/* The kernel's struct linux_dirent64: inode, offset, length, type, name. */
			uint16_t length;
			struct stat st;
			memcpy(&length, buf + at + 16, sizeof(length));
			if (fstatat(dir, buf + at + 19, &st, 0) == 0 && st.st_dev == dev)
				total += (uint64_t)st.st_blocks * 512;
			at += length;
		}
	host_close(dir);
	return total;
}

static void pause_for(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

static NORETURN void watch(int proc, int sentry, uint64_t limit, int signo, dev_t dev)
{
	uint64_t files_limit = limit + limit / 16 + FILES_SLACK;

	for (;;) {
		uint64_t start = mono_now_ns();
		int64_t used = sum(proc, sentry, cheap_bytes);
		if (used > (int64_t)limit)
			used = sum(proc, sentry, exact_bytes);
		uint64_t files = memory_files(proc, sentry, dev);
		if (used > (int64_t)limit || files > files_limit) {
			/* Positive errors have nobody to go to: the sentry is our parent, or we are
			 * dead. */
			syscall(SYS_tgkill, sentry, sentry, signo);
			_exit(0);
		}
		uint64_t took = mono_now_ns() - start;
		uint64_t left = used < 0 ? limit : limit - (uint64_t)used;
		left = MIN(left, files_limit - files);
		uint64_t ns = MIN(MAX(left / GROWTH_PER_NS, SLEEP_MIN_NS), SLEEP_MAX_NS);
		pause_for(MAX(ns, took * COST_SHARE));
	}
}

static NORETURN void child_main(int proc, int sentry, uint64_t limit, int signo, dev_t dev)
{
	int err = host_detach(sentry);

	if (!err)
		err = host_close_others(&proc, 1);
	if (!err)
		err = host_confine(HOST_WATCHER);
	if (err) {
		log_error("the memory limit cannot be watched: error %d", -err);
		_exit(1);
	}
	watch(proc, sentry, limit, signo, dev);
}

int memwatch_start(uint64_t limit, int signo)
{
	int sentry = getpid();
	/* Above the standard descriptors, which may be closed. */
	int proc = host_open_config_path("/proc", O_DIRECTORY);

	if (proc < 0)
		return -ENOTSUP;
	if (sum(proc, sentry, cheap_bytes) < 0) {
		host_close(proc);
		return -ENOTSUP;
	}
	/* All memory files of a kernel are on one device. */
	struct stat st = { 0 };
	int sample = host_memfd("pinfold-sample");
	int err = sample < 0 ? sample : host_fstat(sample, &st);
	if (sample >= 0)
		host_close(sample);
	pid_t pid = err ? 0 : fork();
	if (!err && pid == 0)
		child_main(proc, sentry, limit, signo, st.st_dev);
	if (pid < 0)
		err = -errno;
	host_close(proc);
	return err;
}

/* /proc/sys: limits that root may move, and that they are obeyed. Each is put back. */
#include "tests/guest/t_file.h"

#define P 4096

static long get(const char *name)
{
	long v = -1;
	FILE *f = fopen(name, "r");
	CHECK(f && fscanf(f, "%ld", &v) == 1);
	fclose(f);
	return v;
}

/* 0 or an error number. */
static int put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY);
	if (fd < 0)
		return errno;
	int err = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return err;
}

static void put_or_skip(const char *name, long v)
{
	char text[32];
	snprintf(text, sizeof(text), "%ld\n", v);
	SKIP_IF(put(name, text) != 0, "%s cannot be written here", name);
	CHECK_EQ(get(name), v);
}

TEST(size_of_pipes)
{
	const char *name = "/proc/sys/fs/pipe-max-size";
	int p[2];
	long old = get(name);
	CHECK_OK(pipe(p));
	put_or_skip(name, 131072);
	if (setuid(1000) == 0)
		CHECK_ERR(fcntl(p[0], F_SETPIPE_SZ, 262144), EPERM);
	CHECK_EQ(fcntl(p[0], F_SETPIPE_SZ, 131072), 131072);
	CHECK(old > 0);
}

TEST(put_back_the_size_of_pipes)
{
	put_or_skip("/proc/sys/fs/pipe-max-size", 1048576);
}

TEST(number_of_mappings)
{
	const char *name = "/proc/sys/vm/max_map_count";
	long old = get(name), n = 0;
	put_or_skip(name, 20000); /* enough for whoever else is there */
	while (n < 30000 && mmap(NULL, P, n & 1 ? PROT_READ : PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		n++;
	int err = errno;
	put_or_skip(name, old);
	CHECK(n > 19000 && n <= 20000);
	CHECK_EQ(err, ENOMEM);
}

TEST(rubbish_is_refused)
{
	const char *name = "/proc/sys/fs/lease-break-time";
	put_or_skip(name, 44);
	CHECK_EQ(put(name, "x"), EINVAL);
	CHECK_EQ(put(name, "99999999999"), EINVAL);
	CHECK_EQ(get(name), 44);
	put_or_skip(name, 45);
	CHECK_EQ(put("/proc/sys/vm/drop_caches", "x"), EINVAL);
	CHECK(open("/proc/sys/kernel/ostype", O_WRONLY) == -1);
}

T_MAIN

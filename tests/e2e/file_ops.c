/*
 * Random calls on a few names, from a seed; prints every result. The same seed must print the same
 * on the host's kernel and on ours: same_files.sh compares. Usage: file_ops names|locks SEED COUNT,
 * in an empty directory that lies six levels deep, since ".." is among the names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define FILES 8
#define UP "../../../../../.."

static unsigned long state;
static int files[FILES], base;
static char data[4096];

static unsigned pick(unsigned n)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(state >> 33) % n;
}

static void print_result(const char *call, const char *a, const char *b, long r)
{
	printf("%s %s %s = %ld %s\n", call, a, b, r, r < 0 ? strerrorname_np(errno) : "");
}

/* What two file systems agree on: no link counts and sizes of directories. */
static void print_stat(const char *name)
{
	struct stat st;

	if (lstat(name, &st) != 0)
		printf("  %s: %s\n", name, strerrorname_np(errno));
	else if (S_ISDIR(st.st_mode))
		printf("  %s: %o %u:%u\n", name, st.st_mode, st.st_uid, st.st_gid);
	else
		printf("  %s: %o %u:%u %lu links %ld bytes\n", name, st.st_mode, st.st_uid,
		       st.st_gid, (unsigned long)st.st_nlink, (long)st.st_size);
}

static bool is_plain(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static void print_file(int fd)
{
	struct stat st;

	if (is_plain(fd) && fstat(fd, &st) == 0)
		printf("  fd: %o %ld bytes, at %ld\n", st.st_mode, (long)st.st_size,
		       (long)lseek(fd, 0, SEEK_CUR));
}

/* `up`: with ".." among the parts. Symlinks never lead up, and names do so by five levels at most:
 * with the check in stay_inside, nothing outside the six levels can be reached. */
static void make_name(char out[64], bool up)
{
	static const char *const parts[] = {
		"a", "b", "c", "d", "a", "b", ".", "..", "l", "m", ""
	};
	int depth = 1 + (int)pick(4);

	strcpy(out, pick(12) ? "" : pick(2) || !up ? "./" : "../");
	for (int i = 0; i < depth; i++) {
		strcat(out, i ? "/" : "");
		const char *part = parts[pick(i ? 11 : 10)];
		strcat(out, !up && strcmp(part, "..") == 0 ? "." : part);
	}
	if (pick(8) == 0)
		strcat(out, "/");
}

/* ---- calls on names ----------------------------------------------------------------------- */

typedef void op_fn(const char *a, const char *b);

static void op_mkdir(const char *a, const char *b)
{
	print_result("mkdir", a, "", mkdir(a, pick(6) ? 0777 : pick(01000)));
	print_stat(a);
}

static void op_rmdir(const char *a, const char *b)
{
	print_result("rmdir", a, "", rmdir(a));
}

static void op_unlink(const char *a, const char *b)
{
	print_result("unlink", a, "", unlink(a));
}

static void op_rename(const char *a, const char *b)
{
	unsigned flags = pick(3) ? 0 : pick(4);
	printf("flags %u ", flags);
	print_result("renameat2", a, b, renameat2(AT_FDCWD, a, AT_FDCWD, b, flags));
}

static void op_link(const char *a, const char *b)
{
	int flags = pick(2) ? AT_SYMLINK_FOLLOW : 0;
	printf("flags %d ", flags);
	print_result("linkat", a, b, linkat(AT_FDCWD, a, AT_FDCWD, b, flags));
}

static void op_symlink(const char *a, const char *b)
{
	char body[64];

	make_name(body, false);
	print_result("symlink", body, a, symlink(body, a));
	print_stat(a);
}

static void op_readlink(const char *a, const char *b)
{
	print_result("readlink", a, "", readlink(a, data, sizeof(data)));
}

static void op_mknod(const char *a, const char *b)
{
	print_result("mknod", a, "", mknod(a, (pick(2) ? S_IFIFO : S_IFREG) | 0644, 0));
	print_stat(a);
}

static int open_flags(void)
{
	static const int some[] = {
		0,           O_CREAT, O_EXCL,           O_TRUNC,           O_APPEND, O_NOFOLLOW,
		O_DIRECTORY, O_PATH,  O_CREAT | O_EXCL, O_CREAT | O_TRUNC, O_CREAT
	};
	return some[pick(11)] | some[pick(11)] | (int)pick(4) | O_NONBLOCK;
}

static void op_open(const char *a, const char *b)
{
	int flags = open_flags(), *slot = &files[pick(FILES)];
	int fd = open(a, flags, pick(5) ? 0666 : pick(01000));

	printf("flags %o ", flags);
	print_result("open", a, "", fd < 0 ? -1 : 0);
	if (fd < 0)
		return;
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
	print_file(fd);
}

static void op_openat2(const char *a, const char *b)
{
	static const unsigned resolve[] = { 0, RESOLVE_BENEATH, RESOLVE_IN_ROOT,
					    RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS };
	struct open_how how = { .flags = (unsigned)open_flags(), .resolve = resolve[pick(5)] };

	how.mode = how.flags & O_CREAT ? 0644 : 0;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, a, &how, sizeof(how));
	printf("flags %llo resolve %llx ", how.flags, how.resolve);
	print_result("openat2", a, "", fd < 0 ? -1 : 0);
	if (fd >= 0)
		close(fd);
}

static void op_close(const char *a, const char *b)
{
	int *slot = &files[pick(FILES)];

	if (*slot >= 0)
		close(*slot);
	*slot = -1;
}

/* Reads, writes, seeks and truncates regular files only: directories seek as their file system
 * likes. */
static void op_data(const char *a, const char *b)
{
	int fd = files[pick(FILES)], kind = (int)pick(6);
	size_t n = pick(600);
	long off = (long)pick(3000) - 50, r = 0;

	if (!is_plain(fd))
		return;
	if (kind == 0)
		r = read(fd, data, n);
	else if (kind == 1)
		r = write(fd, data, n);
	else if (kind == 2)
		r = pwrite(fd, data, n, off);
	else if (kind == 3)
		r = pread(fd, data, n, off);
	else if (kind == 4)
		r = lseek(fd, off, (int)pick(3));
	else
		r = ftruncate(fd, off);
	printf("data %d %zu %ld = %ld %s\n", kind, n, off, r, r < 0 ? strerrorname_np(errno) : "");
	print_file(fd);
}

static void op_truncate(const char *a, const char *b)
{
	print_result("truncate", a, "", truncate(a, pick(2000)));
	print_stat(a);
}

static void op_chmod(const char *a, const char *b)
{
	print_result("chmod", a, "", chmod(a, pick(01000)));
	print_stat(a);
}

static void op_chown(const char *a, const char *b)
{
	uid_t uid = pick(3) ? (uid_t)-1 : 1000 * pick(2);
	gid_t gid = pick(3) ? (gid_t)-1 : 1000 * pick(2);

	print_result("fchownat", a, "",
		     fchownat(AT_FDCWD, a, uid, gid, pick(2) ? AT_SYMLINK_NOFOLLOW : 0));
	print_stat(a);
}

static void op_access(const char *a, const char *b)
{
	print_result("access", a, "", access(a, (int)pick(8)));
}

static void op_chdir(const char *a, const char *b)
{
	print_result("chdir", a, "", pick(2) ? fchdir(base) : chdir(a));
}

static void op_times(const char *a, const char *b)
{
	struct timespec ts[2] = { { pick(100), pick(2) ? UTIME_OMIT : UTIME_NOW },
				  { pick(1000), pick(2) ? 5 : UTIME_OMIT } };
	print_result("utimensat", a, "",
		     utimensat(AT_FDCWD, a, ts, pick(2) ? AT_SYMLINK_NOFOLLOW : 0));
}

static op_fn *const ops[] = { op_mkdir,  op_mkdir, op_mkdir,  op_rmdir,   op_unlink,   op_rename,
			      op_rename, op_link,  op_link,   op_symlink, op_readlink, op_mknod,
			      op_open,   op_open,  op_open,   op_open,    op_open,     op_openat2,
			      op_close,  op_data,  op_data,   op_data,    op_data,     op_truncate,
			      op_chmod,  op_chown, op_access, op_chdir,   op_times };

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int no_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static void list(const char *dir, int depth)
{
	struct dirent **e;
	int n = scandir(dir, &e, no_dots, by_name);
	char path[4096];
	struct stat st;

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, e[i]->d_name);
		print_stat(path);
		if (depth < 30 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			list(path, depth + 1);
	}
}

/* The working directory may have moved up with a rename, or be gone: back to where names are
 * harmless. */
static void stay_inside(const char *home)
{
	char now[4096];

	if ((!getcwd(now, sizeof(now)) || strncmp(now, home, strlen(home)) != 0) &&
	    fchdir(base) != 0)
		abort();
}

static void names(int count)
{
	char a[64], b[64], home[4096];

	base = open(".", O_RDONLY);
	if (base < 0 || !getcwd(home, sizeof(home)) || !strstr(home, "/1/2/3/4/5/6")) {
		fprintf(stderr, "file_ops: not in a directory that is deep enough\n");
		exit(2);
	}
	for (int i = 0; i < FILES; i++)
		files[i] = -1;
	for (int i = 0; i < count; i++) {
		stay_inside(home);
		make_name(a, true);
		make_name(b, true);
		printf("%d ", i);
		ops[pick(sizeof(ops) / sizeof(ops[0]))](a, b);
	}
	if (fchdir(base) == 0)
		list(UP, 0);
}

/* ---- locks -------------------------------------------------------------------------------- */

static void one_lock(int fd)
{
	static const int cmds[] = { F_OFD_SETLK, F_OFD_SETLK, F_OFD_GETLK, F_SETLK, F_GETLK };
	static const short types[] = { F_UNLCK, F_RDLCK, F_WRLCK };
	struct flock fl = { .l_type = types[pick(3)],
			    .l_whence = (short)(pick(10) ? SEEK_SET : pick(4)),
			    .l_start = (long)pick(60) - (pick(10) ? 0 : 50),
			    .l_len = pick(8) ? (long)pick(30) - (pick(8) ? 0 : 20) : 0 };
	int cmd = cmds[pick(5)];

	printf("%d: cmd %d type %d whence %d %ld+%ld", fd, cmd, fl.l_type, fl.l_whence,
	       (long)fl.l_start, (long)fl.l_len);
	int r = fcntl(fd, cmd, &fl);
	printf(" = %d %s%s\n", r, r < 0 ? strerrorname_np(errno) : "",
	       r == 0 && (cmd == F_OFD_GETLK || cmd == F_GETLK) && fl.l_type != F_UNLCK ? "held"
											: "");
}

static void locks(int count)
{
	static const int modes[] = { O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY };
	static const int flocks[] = { LOCK_SH, LOCK_EX, LOCK_UN };

	for (int i = 0; i < 5; i++)
		files[i] = open("locked", O_CREAT | modes[i], 0644);
	for (int i = 0; i < count; i++) {
		int k = (int)pick(5);
		if (pick(12) == 0) {
			int op = flocks[pick(3)], r = flock(files[k], op | LOCK_NB);
			printf("flock %d %d = %d\n", k, op, r);
		} else if (pick(40) == 0) {
			close(files[k]);
			files[k] = open("locked", O_RDWR);
		} else {
			one_lock(files[k]);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	state = strtoul(argv[2], NULL, 10);
	umask(022);
	memset(data, 'x', sizeof(data));
	if (strcmp(argv[1], "names") == 0)
		names(atoi(argv[3]));
	else
		locks(atoi(argv[3]));
	return 0;
}

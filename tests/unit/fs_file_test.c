/* Open files, descriptor tables, record locks, inotify; against the memory file system. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fs/fdtable.h"
#include "fs/inotify.h"
#include "fs/lock_file.h"
#include "platform/base/alloc.h"
#include "tests/unit/memfs.h"

static struct memfs_world w;

static int setup(void **state)
{
	(void)state;
	memfs_world_init(&w);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return memfs_world_fini(&w);
}

static struct file *open_file(const char *name, int flags)
{
	struct file *f;

	assert_int_equal(vfs_open(&w.as_root, name, flags, 0644, &f), 0);
	return f;
}

static ssize_t put(struct file *f, const char *s, int64_t *pos)
{
	struct iov_iter it;
	char copy[64];

	strcpy(copy, s);
	iov_init_host(&it, copy, strlen(s), IOV_DRAIN);
	return vfs_write(f, &it, pos);
}

static ssize_t get(struct file *f, char *buf, size_t n, int64_t *pos)
{
	struct iov_iter it;

	memset(buf, 0, n);
	iov_init_host(&it, buf, n, IOV_FILL);
	return vfs_read(f, &it, pos);
}

static void positions(void **state)
{
	char buf[32];
	struct file *f = open_file("f", O_CREAT | O_RDWR);
	int64_t pos = 3;

	(void)state;
	assert_int_equal(put(f, "abcdef", NULL), 6);
	assert_int_equal(get(f, buf, 4, NULL), 0);
	assert_int_equal(get(f, buf, 4, &pos), 3);
	assert_string_equal(buf, "def");
	assert_int_equal(f->pos, 6);
	pos = -1;
	assert_int_equal(get(f, buf, 4, &pos), -EINVAL);
	pos = INT64_MAX;
	assert_int_equal(put(f, "x", &pos), -EINVAL);
	assert_int_equal(f->ops->seek(f, -7, SEEK_END), -EINVAL);
	assert_int_equal(f->ops->seek(f, 2, SEEK_SET), 2);
	assert_int_equal(f->ops->seek(f, 6, SEEK_DATA), -ENXIO);
	assert_int_equal(f->ops->seek(f, 2, SEEK_HOLE), 6);
	file_put(f);
	f = open_file("f", O_WRONLY | O_APPEND);
	assert_int_equal(get(f, buf, 1, NULL), -EBADF);
	pos = 0;
	assert_int_equal(put(f, "gh", &pos), 2);
	file_put(f);
	f = open_file("f", O_RDONLY);
	assert_int_equal(put(f, "x", NULL), -EBADF);
	assert_int_equal(get(f, buf, 16, NULL), 8);
	assert_string_equal(buf, "abcdefgh");
	file_put(f);
	f = open_file("/", O_RDONLY);
	assert_int_equal(get(f, buf, 1, NULL), -EISDIR);
	file_put(f);
	f = open_file("f", O_PATH);
	assert_int_equal(get(f, buf, 1, NULL), -EBADF);
	file_put(f);
}

static void size_limit(void **state)
{
	struct file *f = open_file("f", O_CREAT | O_RDWR);

	(void)state;
	memfs_rlimit_fsize = 4;
	assert_int_equal(put(f, "abcdef", NULL), 4);
	assert_int_equal(memfs_last_signal, 0);
	assert_int_equal(put(f, "x", NULL), -EFBIG);
	assert_int_equal(memfs_last_signal, SIGXFSZ);
	memfs_last_signal = 0;
	assert_int_equal(vfs_ftruncate(f, 5), -EFBIG);
	assert_int_equal(memfs_last_signal, SIGXFSZ);
	assert_int_equal(vfs_ftruncate(f, 1), 0);
	file_put(f);
}

static void setid_bits(void **state)
{
	struct iattr a = { .valid = ATTR_MODE, .mode = 06755 };
	struct iattr own = { .valid = ATTR_UID, .uid = 1000 };
	struct fs_stat st;
	struct file *f = open_file("f", O_CREAT | O_RDWR);
	struct path p = f->path;

	(void)state;
	assert_int_equal(vfs_setattr(p, w.user_cred, &own), -EPERM);
	assert_int_equal(vfs_setattr(p, w.root_cred, &own), 0);
	assert_int_equal(vfs_setattr(p, w.user_cred, &a), 0);
	assert_int_equal(vfs_getattr(p, &st), 0);
	/* The group is not the user's: set-gid is not given. */
	assert_int_equal(st.mode & 07777, 04755);
	assert_int_equal(vfs_setattr(p, w.root_cred, &a), 0);
	file_put(f);
	assert_int_equal(vfs_open(&w.as_user, "f", O_RDWR, 0, &f), 0);
	assert_int_equal(put(f, "x", NULL), 1);
	assert_int_equal(vfs_getattr(f->path, &st), 0);
	assert_int_equal(st.mode & 07777, 0755);
	assert_int_equal(vfs_setattr(f->path, w.root_cred, &a), 0);
	own.uid = 0;
	assert_int_equal(vfs_setattr(f->path, w.root_cred, &own), 0);
	assert_int_equal(vfs_getattr(f->path, &st), 0);
	assert_int_equal(st.mode & 07777, 0755);
	file_put(f);
}

static void descriptors(void **state)
{
	struct fdtable *t, *u;
	struct file *f = open_file("f", O_CREAT | O_RDWR), *old;

	(void)state;
	assert_int_equal(fdtable_new(&t), 0);
	assert_int_equal(fd_install(t, file_get(f), 0, false), 0);
	assert_int_equal(fd_install(t, file_get(f), 0, true), 1);
	assert_int_equal(fd_install(t, file_get(f), 200, false), 200);
	assert_int_equal(fd_install(t, file_get(f), 0, false), 2);
	assert_int_equal(fd_close(t, 1), 0);
	assert_int_equal(fd_close(t, 1), -EBADF);
	assert_int_equal(fd_install(t, file_get(f), 0, true), 1);
	memfs_rlimit_nofile = 3;
	assert_int_equal(fd_install(t, f, 0, false), -EMFILE);
	assert_int_equal(fd_replace(t, 3, f, false, &old), -EBADF);
	memfs_rlimit_nofile = 1024;
	assert_int_equal(fd_replace(t, 200, file_get(f), true, &old), 0);
	assert_ptr_equal(old, f);
	file_put(old);
	assert_int_equal(fdtable_copy(t, &u), 0);
	assert_int_equal(fdtable_count(u), 4);
	fd_close_on_exec(u);
	assert_int_equal(fdtable_count(u), 2);
	assert_int_equal(fd_next(u, 1), 2);
	assert_int_equal(fd_next(u, 3), -1);
	fd_close_range(t, 1, 100, false);
	assert_int_equal(fdtable_count(t), 2);
	fd_close_range(t, 0, ~0u, true);
	assert_int_equal(fd_get_cloexec(t, 0), 1);
	assert_int_equal(fd_get_cloexec(t, 1), -EBADF);
	fdtable_put(u);
	fdtable_put(t);
	file_put(f);
}

static int set(struct file *f, const void *owner, int type, int64_t from, int64_t to)
{
	struct lock_range r = { .start = from, .end = to, .type = type };
	return lock_range_set(f, owner, 7, &r, false);
}

static void show_is(const char *want)
{
	struct fmt out;
	char got[200] = "";
	size_t n = 0;

	fmt_init_heap(&out);
	lock_show(&out);
	/* Type and range of each line. */
	for (char *line = out.len ? strtok(out.buf, "\n") : NULL; line; line = strtok(NULL, "\n")) {
		char kind[8], type[8], from[16], to[16];
		assert_int_equal(
			sscanf(line, "%*s %7s %*s %7s %*s %*s %15s %15s", kind, type, from, to), 4);
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%c%s-%s ", type[0], from, to);
	}
	assert_string_equal(got, want);
	fmt_fini(&out);
}

static void record_locks(void **state)
{
	struct file *f = open_file("f", O_CREAT | O_RDWR);
	struct lock_range want = { .start = 0, .end = INT64_MAX, .type = F_WRLCK }, out;
	int a, b;

	(void)state;
	assert_int_equal(set(f, &a, F_WRLCK, 0, 99), 0);
	assert_int_equal(set(f, &b, F_RDLCK, 50, 60), -EAGAIN);
	assert_int_equal(set(f, &b, F_RDLCK, 100, 109), 0);
	assert_int_equal(set(f, &a, F_RDLCK, 40, 49), 0);
	lock_range_get(f, &b, &want, &out);
	assert_int_equal(out.type, F_WRLCK);
	assert_int_equal(out.start, 0);
	assert_int_equal(out.end, 39);
	assert_int_equal(out.pid, 7);
	assert_int_equal(set(f, &b, F_UNLCK, 0, INT64_MAX), 0);
	assert_int_equal(set(f, &a, F_UNLCK, 10, 19), 0);
	show_is("W0-9 W50-99 R40-49 W20-39 ");
	assert_int_equal(set(f, &a, F_WRLCK, 10, 49), 0);
	show_is("W0-99 ");
	assert_int_equal(set(f, f, F_RDLCK, 5, 5), -EAGAIN);
	lock_file_closed(f, &a);
	show_is("");
	assert_int_equal(set(f, f, F_WRLCK, 5, INT64_MAX), 0);
	lock_range_get(f, &b, &want, &out);
	assert_int_equal(out.pid, -1);
	file_put(f);
	show_is("");
}

static void flocks(void **state)
{
	struct file *f = open_file("f", O_CREAT | O_RDWR), *g = open_file("f", O_RDONLY);

	(void)state;
	assert_int_equal(lock_flock(f, LOCK_SH), 0);
	assert_int_equal(lock_flock(g, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(lock_flock(g, LOCK_EX | LOCK_NB), -EAGAIN);
	/* A conversion that fails has lost the old lock. */
	assert_int_equal(lock_flock(f, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(lock_flock(g, LOCK_SH | LOCK_NB), -EAGAIN);
	file_put(f);
	assert_int_equal(lock_flock(g, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(lock_flock(g, LOCK_UN), 0);
	file_put(g);
}

struct waiting {
	struct file *f;
	const void *owner;
	int64_t at;
	int result;
};

static void *wait_lock(void *arg)
{
	struct waiting *x = arg;
	struct lock_range r = { .start = x->at, .end = x->at, .type = F_WRLCK };

	x->result = lock_range_set(x->f, x->owner, 8, &r, true);
	return NULL;
}

static void waiting_and_deadlock(void **state)
{
	struct file *f = open_file("f", O_CREAT | O_RDWR);
	int a, b;
	pthread_t th;
	struct waiting x = { .f = f, .owner = &b, .at = 1, .result = 99 };
	struct lock_range r = { .start = 2, .end = 2, .type = F_WRLCK };

	(void)state;
	assert_int_equal(set(f, &a, F_WRLCK, 1, 1), 0);
	assert_int_equal(set(f, &b, F_WRLCK, 2, 2), 0);
	assert_int_equal(pthread_create(&th, NULL, wait_lock, &x), 0);
	usleep(50000);
	/* b waits for a's byte 1; a waiting for b's byte 2 would never end. */
	assert_int_equal(lock_range_set(f, &a, 7, &r, true), -EDEADLK);
	assert_int_equal(set(f, &a, F_UNLCK, 1, 1), 0);
	pthread_join(th, NULL);
	assert_int_equal(x.result, 0);
	lock_file_closed(f, &b);
	show_is("");
	file_put(f);
}

static size_t next_event(const char *buf, size_t off, int wd, uint32_t mask, const char *name)
{
	struct inotify_event e;

	memcpy(&e, buf + off, sizeof(e));
	assert_int_equal(e.wd, wd);
	assert_int_equal(e.mask, mask);
	if (name)
		assert_string_equal(buf + off + sizeof(e), name);
	else
		assert_int_equal(e.len, 0);
	return off + sizeof(e) + e.len;
}

static struct inode *inode_of(const char *name)
{
	struct path p;

	assert_int_equal(path_lookup(&w.as_root, name, 0, &p), 0);
	struct inode *ino = inode_get(p.dentry->inode);
	path_put(p);
	return ino;
}

static void watches(void **state)
{
	struct file *q, *f;
	char buf[1024];
	size_t at = 0;

	(void)state;
	assert_int_equal(inotify_file_new(O_NONBLOCK, &q), 0);
	assert_int_equal(vfs_mkdir(&w.as_root, "d", 0755), 0);
	struct inode *d = inode_of("d");
	assert_int_equal(inotify_add(q, d, IN_ALL_EVENTS), 1);
	assert_int_equal(inotify_add(q, d, IN_ALL_EVENTS), 1);
	assert_int_equal(get(q, buf, sizeof(buf), NULL), -EAGAIN);
	f = open_file("d/f", O_CREAT | O_RDWR);
	assert_int_equal(
		inotify_add(q, f->path.dentry->inode, IN_DELETE_SELF | IN_MODIFY | IN_ONESHOT), 2);
	assert_int_equal(get(q, buf, 8, NULL), -EINVAL);
	assert_int_equal(put(f, "x", NULL), 1);
	assert_int_equal(put(f, "x", NULL), 1);
	assert_int_equal(vfs_rename(&w.as_root, "d/f", &w.as_root, "d/g", 0), 0);
	file_put(f);
	assert_int_equal(vfs_unlink(&w.as_root, "d/g"), 0);
	inode_put(d);
	assert_int_equal(vfs_rmdir(&w.as_root, "d"), 0);
	ssize_t n = get(q, buf, sizeof(buf), NULL);
	at = next_event(buf, at, 1, IN_CREATE, "f");
	at = next_event(buf, at, 1, IN_OPEN, "f");
	at = next_event(buf, at, 1, IN_MODIFY, "f");
	at = next_event(buf, at, 2, IN_MODIFY, NULL);
	at = next_event(buf, at, 2, IN_IGNORED, NULL);
	at = next_event(buf, at, 1, IN_MODIFY, "f");
	at = next_event(buf, at, 1, IN_MOVED_FROM, "f");
	at = next_event(buf, at, 1, IN_MOVED_TO, "g");
	at = next_event(buf, at, 1, IN_CLOSE_WRITE, "g");
	at = next_event(buf, at, 1, IN_DELETE, "g");
	at = next_event(buf, at, 1, IN_DELETE_SELF, NULL);
	at = next_event(buf, at, 1, IN_IGNORED, NULL);
	assert_int_equal(n, at);
	assert_int_equal(inotify_rm(q, 1), -EINVAL);
	file_put(q);
}

static void failing_constructors(void **state)
{
	struct fdtable *t, *u;
	struct file *f;

	(void)state;
	for (unsigned n = 1; n < 5; n++) {
		mem_fail_nth(n);
		int e1 = fdtable_new(&t);
		int e2 = e1 ? e1 : fdtable_copy(t, &u);
		int e3 = inotify_file_new(0, &f);
		struct cred *c = cred_copy(w.user_cred);
		mem_fail_nth(0);
		assert_true((e1 == 0 || e1 == -ENOMEM) && (e2 == 0 || e2 == -ENOMEM));
		if (!e1 && !e2)
			fdtable_put(u);
		if (!e1)
			fdtable_put(t);
		if (!e3)
			file_put(f);
		cred_put(c);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(positions),
		T(size_limit),
		T(setid_bits),
		T(descriptors),
		T(record_locks),
		T(flocks),
		T(waiting_and_deadlock),
		T(watches),
		T(failing_constructors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

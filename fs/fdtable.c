/*
 * Descriptor tables: an array of files with a bit for close-on-exec. The lock is a leaf: files are
 * put, flushed and unlocked after it was dropped.
 */
#include "fs/fdtable.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "fs/hooks.h"
#include "fs/lock_file.h"
#include "platform/base/alloc.h"

#define FD_MAX (1 << 20) /* fs.nr_open of Linux */
#define FIRST_SIZE 64

struct fd_entry {
	struct file *file;
	bool cloexec;
};

struct fdtable {
	struct ref ref;
	struct mutex mu;          /* rank FDTABLE */
	struct fd_entry *entries; /* [mu] */
	int size;                 /* [mu] */
	int count;                /* [mu] used ones */
	int lowest;               /* [mu] no free number is below it */
};

static void fdtable_free(struct fdtable *t)
{
	fd_close_all(t);
	mutex_fini(&t->mu);
	mem_free(t->entries);
	mem_free(t);
}

DEFINE_REF(fdtable);

static int table_new(int size, struct fdtable **out)
{
	struct fdtable *t = mem_zalloc(sizeof(*t));

	if (t)
		t->entries = mem_calloc((size_t)size, sizeof(*t->entries));
	if (!t || !t->entries) {
		mem_free(t);
		return -ENOMEM;
	}
	ref_init(&t->ref);
	mutex_init(&t->mu, RANK_FDTABLE);
	t->size = size;
	*out = t;
	return 0;
}

int fdtable_new(struct fdtable **out)
{
	return table_new(FIRST_SIZE, out);
}

int fdtable_copy(struct fdtable *old, struct fdtable **out)
{
	struct fdtable *t;
	int size, err;

	for (;;) {
		mutex_lock(&old->mu);
		size = old->size;
		mutex_unlock(&old->mu);
		err = table_new(size, &t);
		if (err)
			return err;
		mutex_lock(&old->mu);
		if (old->size == size)
			break;
		mutex_unlock(&old->mu);
		fdtable_put(t);
	}
	memcpy(t->entries, old->entries, (size_t)size * sizeof(*t->entries));
	t->count = old->count;
	t->lowest = old->lowest;
	for (int i = 0; i < size; i++)
		if (t->entries[i].file)
			file_get(t->entries[i].file);
	mutex_unlock(&old->mu);
	*out = t;
	return 0;
}

struct file *fd_get(struct fdtable *t, int fd)
{
	struct file *f = NULL;

	mutex_lock(&t->mu);
	if (fd >= 0 && fd < t->size && t->entries[fd].file)
		f = file_get(t->entries[fd].file);
	mutex_unlock(&t->mu);
	return f;
}

struct file *fd_get_io(struct fdtable *t, int fd)
{
	struct file *f = fd_get(t, fd);

	if (f && (file_flags(f) & O_PATH)) {
		file_put(f);
		f = NULL;
	}
	return f;
}

static int fd_limit(void)
{
	uint64_t limit = fs_hooks ? fs_hooks->rlimit(RLIMIT_NOFILE) : FD_MAX;

	return limit < FD_MAX ? (int)limit : FD_MAX;
}

static int grow_locked(struct fdtable *t, int want)
{
	int size = t->size;

	while (size <= want)
		size *= 2;
	if (size == t->size)
		return 0;
	struct fd_entry *e = mem_realloc(t->entries, (size_t)size * sizeof(*e));
	if (!e)
		return -ENOMEM;
	memset(e + t->size, 0, (size_t)(size - t->size) * sizeof(*e));
	t->entries = e;
	t->size = size;
	return 0;
}

static int find_free_locked(struct fdtable *t, int min)
{
	int fd = MAX(min, t->lowest);

	while (fd < t->size && t->entries[fd].file)
		fd++;
	return fd;
}

static void set_locked(struct fdtable *t, int fd, struct file *f, bool cloexec)
{
	if (!t->entries[fd].file)
		t->count++;
	t->entries[fd] = (struct fd_entry){ .file = f, .cloexec = cloexec };
}

/* Gives the file. */
static struct file *clear_locked(struct fdtable *t, int fd)
{
	struct file *f = t->entries[fd].file;

	if (!f)
		return NULL;
	t->entries[fd] = (struct fd_entry){ NULL, false };
	t->count--;
	t->lowest = MIN(t->lowest, fd);
	return f;
}

int fd_check_room(struct fdtable *t, int min)
{
	int limit = fd_limit();

	mutex_lock(&t->mu);
	int fd = find_free_locked(t, min);
	mutex_unlock(&t->mu);
	return fd >= limit ? -EMFILE : 0;
}

int fd_install(struct fdtable *t, struct file *f, int min, bool cloexec)
{
	int limit = fd_limit();

	mutex_lock(&t->mu);
	int fd = find_free_locked(t, min);
	int err = fd >= limit ? -EMFILE : grow_locked(t, fd);
	if (!err) {
		set_locked(t, fd, f, cloexec);
		if (min <= t->lowest)
			t->lowest = fd + 1;
	}
	mutex_unlock(&t->mu);
	return err ? err : fd;
}

int fd_replace(struct fdtable *t, int fd, struct file *f, bool cloexec, struct file **out_old)
{
	if (fd < 0 || fd >= fd_limit())
		return -EBADF;
	mutex_lock(&t->mu);
	int err = grow_locked(t, fd);
	if (!err) {
		*out_old = t->entries[fd].file;
		set_locked(t, fd, f, cloexec);
	}
	mutex_unlock(&t->mu);
	return err;
}

struct file *fd_remove(struct fdtable *t, int fd)
{
	struct file *f = NULL;

	mutex_lock(&t->mu);
	if (fd >= 0 && fd < t->size)
		f = clear_locked(t, fd);
	mutex_unlock(&t->mu);
	return f;
}

int fd_get_cloexec(struct fdtable *t, int fd)
{
	int r = -EBADF;

	mutex_lock(&t->mu);
	if (fd >= 0 && fd < t->size && t->entries[fd].file)
		r = t->entries[fd].cloexec;
	mutex_unlock(&t->mu);
	return r;
}

int fd_set_cloexec(struct fdtable *t, int fd, bool on)
{
	int r = -EBADF;

	mutex_lock(&t->mu);
	if (fd >= 0 && fd < t->size && t->entries[fd].file) {
		t->entries[fd].cloexec = on;
		r = 0;
	}
	mutex_unlock(&t->mu);
	return r;
}

int fd_finish_close(struct fdtable *t, struct file *f)
{
	int err = 0;

	if (!(file_flags(f) & O_PATH)) {
		if (f->ops->flush)
			err = f->ops->flush(f);
		lock_file_closed(f, t);
	}
	file_put(f);
	return err;
}

int fd_close(struct fdtable *t, int fd)
{
	struct file *f = fd_remove(t, fd);

	return f ? fd_finish_close(t, f) : -EBADF;
}

/* Closes, or marks, all numbers in [first, last] for which the test holds. */
static void close_some(struct fdtable *t, int first, int last, bool only_cloexec)
{
	for (int fd = first; fd <= last; fd++) {
		struct file *f = NULL;

		mutex_lock(&t->mu);
		while (fd <= last && fd < t->size &&
		       (!t->entries[fd].file || (only_cloexec && !t->entries[fd].cloexec)))
			fd++;
		bool end = fd > last || fd >= t->size;
		if (!end)
			f = clear_locked(t, fd);
		mutex_unlock(&t->mu);
		if (end)
			return;
		fd_finish_close(t, f);
	}
}

void fd_close_range(struct fdtable *t, unsigned first, unsigned last, bool cloexec_only)
{
	int lo = (int)MIN(first, (unsigned)FD_MAX), hi = (int)MIN(last, (unsigned)FD_MAX);

	if (!cloexec_only) {
		close_some(t, lo, hi, false);
		return;
	}
	mutex_lock(&t->mu);
	for (int fd = lo; fd <= hi && fd < t->size; fd++)
		if (t->entries[fd].file)
			t->entries[fd].cloexec = true;
	mutex_unlock(&t->mu);
}

void fd_close_on_exec(struct fdtable *t)
{
	close_some(t, 0, FD_MAX, true);
}

void fd_close_all(struct fdtable *t)
{
	close_some(t, 0, FD_MAX, false);
}

int fd_next(struct fdtable *t, int fd)
{
	fd = MAX(fd, 0);
	mutex_lock(&t->mu);
	while (fd < t->size && !t->entries[fd].file)
		fd++;
	if (fd >= t->size)
		fd = -1;
	mutex_unlock(&t->mu);
	return fd;
}

int fdtable_count(struct fdtable *t)
{
	mutex_lock(&t->mu);
	int n = t->count;
	mutex_unlock(&t->mu);
	return n;
}

bool fdtable_is_shared(struct fdtable *t)
{
	return ref_count(&t->ref) > 1;
}

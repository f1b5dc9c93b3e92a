/* open(2), openat(2), openat2(2), creat(2). */
#include <errno.h>
#include <linux/openat2.h>

#include "syscalls/fs_util.h"

#define O_LARGEFILE_BIT 0100000
#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)
#define KNOWN_FLAGS                                                                                \
	(O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |      \
	 O_DSYNC | O_ASYNC | O_DIRECT | O_LARGEFILE_BIT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME |   \
	 O_CLOEXEC | O_PATH | TMPFILE_BIT)
#define KNOWN_RESOLVE                                                                              \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH |         \
	 RESOLVE_IN_ROOT | RESOLVE_CACHED)
#define PATH_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC)

/* flags are known ones. */
static long do_open(struct task *t, int dirfd, path_cgp path, int flags, uint32_t mode,
		    uint64_t resolve)
{
	const char *name;
	struct file *f;
	struct at a;

	if ((flags & TMPFILE_BIT) && !(flags & O_DIRECTORY) && !(flags & O_PATH))
		return -EINVAL;
	if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY) && !(flags & O_PATH))
		return -EINVAL;
	int err = guest_load_path(t, path, &name);
	if (!err && !*name)
		err = -ENOENT;
	if (!err)
		err = fd_check_room(t->files, 0);
	/* Below a root of its own an absolute name begins at dirfd, too. */
	bool scoped = resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH);
	if (!err)
		err = at_begin(t, dirfd, scoped ? "" : name, &a);
	if (err)
		return err;
	a.l.resolve = resolve;
	err = vfs_open(&a.l, name, flags, mode & 07777, &f);
	at_end(&a);
	return err ? err : install_file(t, f, flags & O_CLOEXEC);
}

long sys_open(struct task *t, path_cgp path, int flags, uint32_t mode)
{
	return do_open(t, AT_FDCWD, path, flags & KNOWN_FLAGS, mode, 0);
}

long sys_openat(struct task *t, int dirfd, path_cgp path, int flags, uint32_t mode)
{
	return do_open(t, dirfd, path, flags & KNOWN_FLAGS, mode, 0);
}

long sys_creat(struct task *t, path_cgp path, uint32_t mode)
{
	return do_open(t, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, 0);
}

static int check_how(const struct open_how *how)
{
	uint64_t flags = how->flags;
	bool makes = flags & (O_CREAT | TMPFILE_BIT);

	if ((flags & ~(uint64_t)KNOWN_FLAGS) || (how->resolve & ~(uint64_t)KNOWN_RESOLVE))
		return -EINVAL;
	if ((how->resolve & RESOLVE_BENEATH) && (how->resolve & RESOLVE_IN_ROOT))
		return -EINVAL;
	if (makes ? how->mode & ~07777ull : how->mode != 0)
		return -EINVAL;
	if ((flags & O_PATH) && (flags & ~(uint64_t)PATH_FLAGS))
		return -EINVAL;
	if ((how->resolve & RESOLVE_CACHED) && (flags & (O_TRUNC | O_CREAT | TMPFILE_BIT)))
		return -EAGAIN;
	return 0;
}

long sys_openat2(struct task *t, int dirfd, path_cgp path, buf_cgp how, uint64_t size)
{
	struct open_how h;

	if (size < sizeof(h))
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	int err = guest_load_ext(t, &h, sizeof(h), how, size);
	if (!err)
		err = check_how(&h);
	if (err)
		return err;
	return do_open(t, dirfd, path, (int)h.flags, (uint32_t)h.mode,
		       h.resolve & ~(uint64_t)RESOLVE_CACHED);
}

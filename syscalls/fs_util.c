/* See fs_util.h. */
#include "syscalls/fs_util.h"

#include <errno.h>

int path_of_fd(struct task *t, int fd, bool is_io, struct path *out)
{
	struct file *f = is_io ? fd_get_io(t->files, fd) : fd_get(t->files, fd);

	if (!f)
		return -EBADF;
	int err = file_path(f, out);
	file_put(f);
	return err;
}

int at_begin(struct task *t, int dirfd, const char *name, struct at *a)
{
	*a = (struct at){ .l = { .ctx = t->fs, .cred = t->cred } };
	if (name[0] == '/' || dirfd == AT_FDCWD)
		return 0;
	int err = path_of_fd(t, dirfd, false, &a->held);
	a->l.base = a->held;
	return err;
}

void at_end(struct at *a)
{
	path_put(a->held);
}

int path_at(struct task *t, int dirfd, path_cgp name, unsigned lflags, struct path *out)
{
	const char *s = "";
	struct at a;
	int err = 0;

	if (!(lflags & LOOKUP_EMPTY) || !gaddr_is_null(name.addr))
		err = guest_load_path(t, name, &s);
	if (!err && !*s && !(lflags & LOOKUP_EMPTY))
		err = -ENOENT;
	if (!err)
		err = at_begin(t, dirfd, s, &a);
	if (err)
		return err;
	err = path_lookup(&a.l, s, lflags, out);
	at_end(&a);
	return err;
}

long install_file(struct task *t, struct file *f, bool cloexec)
{
	int fd = fd_install(t->files, f, 0, cloexec);

	if (fd < 0)
		file_put(f);
	return fd;
}

/* pipe(2), pipe2(2). */
#include "fs/pipe.h"

#include <errno.h>

#include "syscalls/fs_util.h"

/* Puts both at free numbers (takes them) and tells the guest. */
static long install_pair(struct task *t, struct file *a, struct file *b, bool cloexec, i32_gp out)
{
	int32_t fds[2];

	fds[0] = (int32_t)install_file(t, a, cloexec);
	if (fds[0] < 0) {
		file_put(b);
		return fds[0];
	}
	fds[1] = (int32_t)install_file(t, b, cloexec);
	long ret = fds[1];
	if (ret >= 0) {
		ret = guest_store_n(t, out, 2, fds);
		if (ret == 0)
			return 0;
		fd_close(t->files, fds[1]);
	}
	fd_close(t->files, fds[0]);
	return ret;
}

long sys_pipe2(struct task *t, i32_gp fds, int flags)
{
	struct file *r, *w;

	/* O_NOTIFICATION_PIPE is O_EXCL: a kernel without watch queues. */
	if (flags & O_EXCL)
		return flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT | O_EXCL) ? -EINVAL : -ENOPKG;
	if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT))
		return -EINVAL;
	int err = pipe_new((unsigned)flags & (O_NONBLOCK | O_DIRECT), t->cred, &r, &w);
	if (err)
		return err;
	return install_pair(t, r, w, flags & O_CLOEXEC, fds);
}

long sys_pipe(struct task *t, i32_gp fds)
{
	return sys_pipe2(t, fds, 0);
}

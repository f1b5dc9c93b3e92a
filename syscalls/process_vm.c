/* process_vm_readv, process_vm_writev: bytes between the caller and a process it may look into. */
#include <errno.h>

#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

#define BOUNCE_SIZE (64u << 10)

/* The remote vector: addresses of another process, hence checked by the copies themselves. */
static int load_remote(struct task *t, iovec_cgp v, uint64_t count, struct iov_seg **out)
{
	*out = NULL;
	if (count > IOV_MAX_SEGS)
		return -EINVAL;
	if (count == 0)
		return 0;
	*out = arena_alloc(&t->scratch, sizeof(**out) * count);
	if (!*out)
		return -ENOMEM;
	if (guest_load_n(t, *out, count, v))
		return -EFAULT;
	for (size_t i = 0; i < count; i++)
		if ((ssize_t)(*out)[i].len < 0)
			return -EINVAL;
	return 0;
}

/* One step of at most BOUNCE_SIZE bytes: what was moved, or -EFAULT. */
static ssize_t step(struct mm *mm, uint64_t addr, size_t n, struct iov_iter *local, bool write,
		    char *bounce)
{
	if (!write) {
		ssize_t got = mm_copy_in(mm, bounce, addr, n);
		return got <= 0 ? -EFAULT : iov_copy_to(local, bounce, (size_t)got);
	}
	ssize_t got = iov_peek(local, bounce, n);
	if (got <= 0)
		return -EFAULT;
	ssize_t put = mm_copy_out(mm, addr, bounce, (size_t)got);
	if (put > 0)
		iov_advance(local, (size_t)put);
	return put <= 0 ? -EFAULT : put;
}

static ssize_t transfer(struct mm *mm, const struct iov_seg *remote, size_t count,
			struct iov_iter *local, bool write)
{
	char *bounce = mem_alloc(BOUNCE_SIZE);
	ssize_t done = 0;

	if (!bounce)
		return -ENOMEM;
	for (size_t i = 0; i < count && local->count; i++) {
		size_t off = 0;
		while (off < remote[i].len && local->count) {
			size_t n = MIN(MIN(remote[i].len - off, local->count), (size_t)BOUNCE_SIZE);
			ssize_t r = step(mm, remote[i].base + off, n, local, write, bounce);
			if (r <= 0) {
				mem_free(bounce);
				return done ? done : -EFAULT;
			}
			off += (size_t)r;
			done += r;
			if ((size_t)r < n) {
				mem_free(bounce);
				return done;
			}
		}
	}
	mem_free(bounce);
	return done;
}

static int find_mm(struct task *t, int pid, struct mm **out)
{
	struct task *target = task_find(pid);

	if (!target)
		return -ESRCH;
	int err = target->group == t->group ? 0 : task_may_access(t, target);
	if (!err) {
		*out = mm_use_of(target);
		if (!*out)
			err = -ESRCH;
	}
	task_put(target);
	return err;
}

static long process_vm(struct task *t, int pid, iovec_cgp lvec, uint64_t liovcnt, iovec_cgp rvec,
		       uint64_t riovcnt, uint64_t flags, bool write)
{
	struct iov_iter local;
	struct iov_seg *remote;
	struct mm *mm = NULL;

	if (flags != 0)
		return -EINVAL;
	long r = guest_iter(t, &local, lvec, liovcnt, write ? IOV_DRAIN : IOV_FILL);
	if (r || local.count == 0)
		return r;
	r = load_remote(t, rvec, riovcnt, &remote);
	if (r)
		return r;
	r = find_mm(t, pid, &mm);
	if (r)
		return r;
	r = transfer(mm, remote, riovcnt, &local, write);
	mm_unuse(mm);
	return r;
}

long sys_process_vm_readv(struct task *t, int pid, iovec_cgp lvec, uint64_t liovcnt, iovec_cgp rvec,
			  uint64_t riovcnt, uint64_t flags)
{
	return process_vm(t, pid, lvec, liovcnt, rvec, riovcnt, flags, false);
}

long sys_process_vm_writev(struct task *t, int pid, iovec_cgp lvec, uint64_t liovcnt,
			   iovec_cgp rvec, uint64_t riovcnt, uint64_t flags)
{
	return process_vm(t, pid, lvec, liovcnt, rvec, riovcnt, flags, true);
}

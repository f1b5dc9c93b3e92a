/* execve, execveat: copying the strings in; the rest is sentry/exec.c. */
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/limits.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif
#define TOTAL_MAX                                                                                  \
	(6ull << 20) /* three quarters of the default stack: MAX_ARG_PAGES' successor in fs/exec.c \
		      */

/* Strings under way. Neighbouring strings share pages, so the last page read is kept. */
struct copier {
	struct task *t;
	char *buf;
	size_t size, cap;
	uint64_t limit;    /* strings and their pointers, bytes */
	uint64_t pointers; /* bytes of pointers so far */
	uint64_t page;     /* address of what is in data; 1: none */
	char data[PAGE_SIZE];
};

static int append(struct copier *c, const char *p, size_t n)
{
	if (c->size + n + c->pointers > c->limit)
		return -E2BIG;
	if (c->size + n > c->cap) {
		size_t cap = MAX(c->cap * 2, c->size + n + PAGE_SIZE);
		char *buf = mem_realloc(c->buf, cap);
		if (!buf)
			return -ENOMEM;
		c->buf = buf;
		c->cap = cap;
	}
	memcpy(c->buf + c->size, p, n);
	c->size += n;
	return 0;
}

static int copy_string(struct copier *c, uint64_t addr)
{
	size_t len = 0;

	for (;;) {
		size_t in_page = addr & (PAGE_SIZE - 1);
		if (c->page != page_down(addr)) {
			c->page = 1;
			if (guest_read(c->t, c->data, gaddr(page_down(addr)), PAGE_SIZE))
				return -EFAULT;
			c->page = page_down(addr);
		}
		const char *p = c->data + in_page;
		const char *nul = memchr(p, 0, PAGE_SIZE - in_page);
		size_t n = nul ? (size_t)(nul - p) + 1 : PAGE_SIZE - in_page;
		len += n;
		if (len > ARG_STR_MAX)
			return -E2BIG;
		int err = append(c, p, n);
		if (err || nul)
			return err;
		addr += n;
	}
}

/* A vector of strings; a null vector is an empty one. Number of strings or -errno. */
static int copy_vector(struct copier *c, u64_cgp v)
{
	uint64_t ptr, at = v.addr.va;
	int n = 0;

	if (gaddr_is_null(v.addr))
		return 0;
	for (;; n++, at += sizeof(ptr)) {
		if (guest_read(c->t, &ptr, gaddr(at), sizeof(ptr)))
			return -EFAULT;
		if (!ptr)
			return n;
		c->pointers += sizeof(ptr);
		int err = copy_string(c, ptr);
		if (err)
			return err;
	}
}

static int copy_args(struct copier *c, u64_cgp argv, u64_cgp envp, struct exec_request *req)
{
	int n = copy_vector(c, argv);

	if (n < 0)
		return n;
	if (n == 0) {
		/* Programs count on argv[0]: since 5.18 Linux gives them an empty one. */
		int err = append(c, "", 1);
		if (err)
			return err;
		n = 1;
	}
	req->argc = n;
	n = copy_vector(c, envp);
	if (n < 0)
		return n;
	req->envc = n;
	req->strings = c->buf;
	req->strings_size = c->size;
	return 0;
}

/* Linux opens the file before it looks at the strings: a missing file is told first. */
static int first_error(struct task *t, const struct exec_request *req, int err)
{
	struct fs_lookup l = { .ctx = t->fs, .cred = t->cred, .base = req->dir };
	struct path p;
	if (req->nameless)
		return err;
	int lookup = path_lookup(&l, req->path, req->lookup_flags, &p);
	if (lookup)
		return lookup;
	path_put(p);
	return err;
}

static long do_exec(struct task *t, struct exec_request *req, u64_cgp argv, u64_cgp envp)
{
	struct copier *c = mem_alloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct copier){ .t = t, .page = 1 };
	c->limit = MAX(MIN(task_rlimit(t, RLIMIT_STACK) / 4, TOTAL_MAX), (uint64_t)ARG_STR_MAX);
	int err = copy_args(c, argv, envp, req);
	if (err)
		err = first_error(t, req, err);
	else
		err = task_exec(t, req);
	mem_free(c->buf);
	mem_free(c);
	return err;
}

long sys_execve(struct task *t, path_cgp path, u64_cgp argv, u64_cgp envp)
{
	struct exec_request req = { .lookup_flags = LOOKUP_FOLLOW };
	int err = guest_load_path(t, path, &req.path);

	return err ? err : do_exec(t, &req, argv, envp);
}

/* The name under which a program opened by descriptor is known to itself. */
static int fd_name(struct task *t, int dirfd, struct exec_request *req)
{
	char buf[sizeof("/dev/fd/-2147483648/") + PATH_LEN_MAX];
	struct fmt f;

	fmt_init_fixed(&f, buf, sizeof(buf));
	fmt_printf(&f, "/dev/fd/%d", dirfd);
	if (req->path[0]) {
		fmt_putc(&f, '/');
		fmt_puts(&f, req->path);
	}
	req->name = arena_strdup(&t->scratch, buf);
	req->name_vanishes = fd_get_cloexec(t->files, dirfd) == 1;
	return req->name ? 0 : -ENOMEM;
}

long sys_execveat(struct task *t, int dirfd, path_cgp path, u64_cgp argv, u64_cgp envp, int flags)
{
	struct exec_request req = { .lookup_flags =
					    flags & AT_SYMLINK_NOFOLLOW ? 0 : LOOKUP_FOLLOW };
	struct file *dir = NULL;

	long err = guest_load_path(t, path, &req.path);
	if (err)
		return err;
	if (flags & AT_EMPTY_PATH)
		req.lookup_flags |= LOOKUP_EMPTY;
	else if (!req.path[0])
		return -ENOENT;
	if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_EXECVE_CHECK))
		return -EINVAL;
	req.check_only = flags & AT_EXECVE_CHECK;
	if (req.path[0] != '/' && dirfd != AT_FDCWD) {
		dir = task_file(t, dirfd);
		if (!dir)
			return -EBADF;
		if (req.path[0] && !file_is_dir(dir))
			err = -ENOTDIR;
		else if (!dir->path.dentry)
			req.nameless = dir;
		req.dir = dir->path;
		if (!err)
			err = fd_name(t, dirfd, &req);
	}
	if (!err)
		err = do_exec(t, &req, argv, envp);
	file_put(dir);
	return err;
}

/* What the handlers of file calls share: descriptors and names as the guest gives them. */
#pragma once

#include "sentry/task.h"
#include "syscalls/handlers.h"

/* The start of a lookup from a dirfd. at_end must follow at_begin that gave 0. */
struct at {
	struct fs_lookup l;
	struct path held; /* referenced: what dirfd refers to */
};

/* name decides whether dirfd matters. -EBADF. */
int at_begin(struct task *t, int dirfd, const char *name, struct at *a) MUST_CHECK;
void at_end(struct at *a);

/* A guest's name to a path (gives); lflags are LOOKUP_*. An empty name is -ENOENT without
 * LOOKUP_EMPTY, and a NULL one is taken for empty with it. */
int path_at(struct task *t, int dirfd, path_cgp name, unsigned lflags, struct path *out) MUST_CHECK;
/* The path of a descriptor (gives); with is_io O_PATH descriptors are -EBADF. */
int path_of_fd(struct task *t, int fd, bool is_io, struct path *out) MUST_CHECK;

/* Puts f at the lowest free number (takes f in any case). */
long install_file(struct task *t, struct file *f, bool cloexec);
/* LOOKUP_* for AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH. */
static inline unsigned lookup_of_at(int at_flags)
{
	return (at_flags & AT_SYMLINK_NOFOLLOW ? 0 : LOOKUP_FOLLOW) |
	       (at_flags & AT_EMPTY_PATH ? LOOKUP_EMPTY : 0);
}

/* What the tests of pipes, sockets and event files share: a world with credentials, and calls in threads. */
#pragma once

#include <pthread.h>

#include "fs/hooks.h"
#include "tests/unit/memfs.h"

extern struct memfs_world io_world;
extern const struct cred *io_cred; /* who the caller is: root unless a test changes it */
extern int io_tgid;

/* cmocka fixtures; the teardown fails when memory is left. */
int io_setup(void **state);
int io_teardown(void **state);

ssize_t io_put(struct file *f, const void *data, size_t n);
ssize_t io_get(struct file *f, void *buf, size_t n);

/* A call that may block, in a thread of its own. */
struct io_call {
	ssize_t (*fn)(struct io_call *c);
	struct file *f;
	void *arg;
	char *buf;
	size_t n;
	ssize_t ret;
	struct sleeper sleeper;
	pthread_t thread;
	atomic_bool done;
};

ssize_t io_call_read(struct io_call *c);
ssize_t io_call_write(struct io_call *c);
void io_start(struct io_call *c);
/* Gives a started call time to fall asleep; fails the test if it has returned. */
void io_expect_blocked(struct io_call *c);
ssize_t io_join(struct io_call *c);
/* A signal for that thread. */
void io_interrupt(struct io_call *c);
/* Runs make() with the 1st, 2nd, … allocation failing until it succeeds (0); it must give -ENOMEM or
 * -ENOBUFS before, and leave nothing. */
void io_fail_each_allocation(int (*make)(void));

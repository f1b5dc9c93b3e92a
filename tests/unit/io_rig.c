/* See io_rig.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "platform/base/alloc.h"
#include "tests/unit/io_rig.h"

struct memfs_world io_world;
const struct cred *io_cred;
int io_tgid;
static struct fs_hooks hooks;

static const struct cred *current_cred(void)
{
	return io_cred;
}

static int current_tgid(void)
{
	return io_tgid;
}

int io_setup(void **state)
{
	(void)state;
	memfs_world_init(&io_world);
	hooks = *fs_hooks;
	hooks.current_cred = current_cred;
	hooks.current_tgid = current_tgid;
	fs_hooks = &hooks;
	io_cred = io_world.root_cred;
	io_tgid = 100;
	return 0;
}

int io_teardown(void **state)
{
	(void)state;
	return memfs_world_fini(&io_world);
}

ssize_t io_put(struct file *f, const void *data, size_t n)
{
	struct iov_iter it;

	iov_init_one(&it, &umem_host, (uintptr_t)data, n, IOV_DRAIN);
	return vfs_write(f, &it, NULL);
}

ssize_t io_get(struct file *f, void *buf, size_t n)
{
	struct iov_iter it;

	iov_init_host(&it, buf, n, IOV_FILL);
	return vfs_read(f, &it, NULL);
}

ssize_t io_call_read(struct io_call *c)
{
	return io_get(c->f, c->buf, c->n);
}

ssize_t io_call_write(struct io_call *c)
{
	return io_put(c->f, c->buf, c->n);
}

static void *call_main(void *arg)
{
	struct io_call *c = arg;

	sleeper_set_self(&c->sleeper);
	c->ret = c->fn(c);
	atomic_store(&c->done, true);
	return NULL;
}

void io_start(struct io_call *c)
{
	sleeper_init(&c->sleeper);
	atomic_store(&c->done, false);
	assert_int_equal(pthread_create(&c->thread, NULL, call_main, c), 0);
}

void io_expect_blocked(struct io_call *c)
{
	usleep(20000);
	assert_false(atomic_load(&c->done));
}

ssize_t io_join(struct io_call *c)
{
	for (int i = 0; i < 5000 && !atomic_load(&c->done); i++)
		usleep(1000);
	assert_true(atomic_load(&c->done));
	pthread_join(c->thread, NULL);
	return c->ret;
}

void io_interrupt(struct io_call *c)
{
	sleeper_interrupt(&c->sleeper);
}

void io_fail_each_allocation(int (*make)(void))
{
	for (unsigned n = 1; n < 100; n++) {
		size_t live = mem_live_count();
		mem_fail_nth(n);
		int err = make();
		mem_fail_nth(0);
		assert_int_equal(mem_live_count(), live);
		if (err == 0)
			return;
		if (err != -ENOMEM && err != -ENOBUFS)
			fail_msg("allocation %u: error %d", n, err);
	}
	fail_msg("never succeeded");
}

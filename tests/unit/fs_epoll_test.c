/* epoll: fs/epoll.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/epoll.h"
#include "fs/eventfd.h"
#include "fs/pipe.h"
#include "platform/base/alloc.h"
#include "tests/unit/io_rig.h"

static struct file *ep, *r, *w;
static struct epoll_event evs[64];
static char buf[70000];

static void setup_pipe(void)
{
	assert_int_equal(epoll_new(io_cred, &ep), 0);
	assert_int_equal(pipe_new(O_NONBLOCK, io_cred, &r, &w), 0);
}

static void close_all(void)
{
	file_put(r);
	file_put(w);
	file_put(ep);
}

static int ctl_on(struct file *set, int op, int fd, struct file *f, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)fd + 1000 };
	return epoll_control(set, op, fd, f, &ev);
}

static int ctl(int op, int fd, struct file *f, uint32_t events)
{
	return ctl_on(ep, op, fd, f, events);
}

static int wait_on(struct file *set, int max, deadline_t deadline)
{
	struct iov_iter it;

	iov_init_host(&it, evs, (size_t)max * sizeof(evs[0]), IOV_FILL);
	return epoll_wait_events(set, &it, max, deadline);
}

static int now(void)
{
	return wait_on(ep, 64, 0);
}

static void put_byte(void)
{
	assert_int_equal(io_put(w, "x", 1), 1);
}

static void level(void **state)
{
	(void)state;
	setup_pipe();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN), -EEXIST);
	assert_int_equal(ctl(EPOLL_CTL_MOD, 4, r, EPOLLIN), -ENOENT);
	assert_int_equal(ctl(EPOLL_CTL_DEL, 4, r, 0), -ENOENT);
	assert_int_equal(ctl(77, 3, r, 0), -EINVAL);
	assert_int_equal(now(), 0);
	put_byte();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(now(), 1);
		assert_int_equal(evs[0].events, EPOLLIN);
		assert_int_equal(evs[0].data.u64, 1003);
	}
	assert_int_equal(file_poll(ep, NULL), POLLIN | POLLRDNORM);
	assert_int_equal(io_get(r, buf, 10), 1);
	assert_int_equal(now(), 0);
	assert_int_equal(file_poll(ep, NULL), 0);
	/* Unasked for, but always told. */
	assert_int_equal(ctl(EPOLL_CTL_MOD, 3, r, 0), 0);
	file_put(w);
	assert_int_equal(now(), 1);
	assert_int_equal(evs[0].events, EPOLLHUP);
	assert_int_equal(ctl(EPOLL_CTL_DEL, 3, r, 0), 0);
	assert_int_equal(now(), 0);
	file_put(r);
	file_put(ep);
}

static void edge(void **state)
{
	(void)state;
	setup_pipe();
	put_byte();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLET), 0);
	assert_int_equal(now(), 1);
	assert_int_equal(now(), 0);
	put_byte();
	put_byte();
	assert_int_equal(now(), 1);
	assert_int_equal(now(), 0);
	/* MOD looks anew. */
	assert_int_equal(ctl(EPOLL_CTL_MOD, 3, r, EPOLLIN | EPOLLET), 0);
	assert_int_equal(now(), 1);
	assert_int_equal(now(), 0);
	/* An edge that is gone before anybody looks is no event. */
	put_byte();
	assert_int_equal(io_get(r, buf, 10), 4);
	assert_int_equal(now(), 0);
	/* A writer's edge: full, then not. */
	assert_int_equal(ctl(EPOLL_CTL_ADD, 4, w, EPOLLOUT | EPOLLET), 0);
	assert_int_equal(now(), 1);
	assert_int_equal(io_put(w, buf, 65536), 65536);
	assert_int_equal(io_get(r, buf, 100), 100);
	assert_int_equal(now(), 1);
	assert_int_equal(evs[0].events, EPOLLIN);
	assert_int_equal(io_get(r, buf, 4096), 4096);
	assert_int_equal(now(), 1);
	assert_int_equal(evs[0].events, EPOLLOUT);
	close_all();
}

static void one_shot(void **state)
{
	(void)state;
	setup_pipe();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLONESHOT), 0);
	put_byte();
	assert_int_equal(now(), 1);
	put_byte();
	assert_int_equal(now(), 0);
	assert_int_equal(ctl(EPOLL_CTL_MOD, 3, r, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(now(), 1);
	file_put(w);
	assert_int_equal(now(), 0);
	w = NULL;
	close_all();
}

static void exclusive(void **state)
{
	(void)state;
	setup_pipe();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT), -EINVAL);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLEXCLUSIVE | EPOLLET), 0);
	assert_int_equal(ctl(EPOLL_CTL_MOD, 3, r, EPOLLIN), -EINVAL);
	assert_int_equal(ctl(EPOLL_CTL_MOD, 3, r, EPOLLIN | EPOLLEXCLUSIVE), -EINVAL);
	put_byte();
	assert_int_equal(now(), 1);
	close_all();
}

static void closing_leaves_the_set(void **state)
{
	struct file *more;

	(void)state;
	setup_pipe();
	/* Two numbers for one file (dup): two items, both go with the last reference. */
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 9, r, EPOLLIN), 0);
	more = file_get(r);
	put_byte();
	assert_int_equal(now(), 2);
	file_put(more);
	assert_int_equal(now(), 2);
	file_put(r);
	assert_int_equal(now(), 0);
	r = NULL;
	close_all();
}

static void many_ready_take_turns(void **state)
{
	enum { N = 10 };
	struct file *e[N];
	unsigned seen = 0;

	(void)state;
	setup_pipe();
	for (int i = 0; i < N; i++) {
		assert_int_equal(eventfd_new(1, 0, io_cred, &e[i]), 0);
		assert_int_equal(ctl(EPOLL_CTL_ADD, i, e[i], EPOLLIN), 0);
	}
	/* Level triggered, three at a time: nobody starves. */
	for (int round = 0; round < 4; round++) {
		int n = wait_on(ep, 3, 0);
		assert_int_equal(n, 3);
		for (int i = 0; i < n; i++)
			seen |= 1u << (evs[i].data.u64 - 1000);
	}
	assert_int_equal(seen, (1u << N) - 1);
	for (int i = 0; i < N; i++)
		file_put(e[i]);
	close_all();
}

static ssize_t call_wait(struct io_call *c)
{
	struct epoll_event ev;
	struct iov_iter it;

	iov_init_host(&it, &ev, sizeof(ev), IOV_FILL);
	return epoll_wait_events(c->f, &it, 1, c->n ? deadline_after_ns(c->n) : DEADLINE_NEVER);
}

static void sleepers(void **state)
{
	struct io_call c = { .fn = call_wait }, d = { .fn = call_wait, .n = 20000000 };

	(void)state;
	setup_pipe();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLET), 0);
	c.f = d.f = ep;
	io_start(&c);
	io_expect_blocked(&c);
	put_byte();
	assert_int_equal(io_join(&c), 1);
	io_start(&d);
	assert_int_equal(io_join(&d), 0);
	io_start(&c);
	io_expect_blocked(&c);
	io_interrupt(&c);
	assert_int_equal(io_join(&c), -EINTR);
	/* Added while somebody waits. */
	struct file *e;
	assert_int_equal(eventfd_new(1, 0, io_cred, &e), 0);
	io_start(&c);
	io_expect_blocked(&c);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 4, e, EPOLLIN), 0);
	assert_int_equal(io_join(&c), 1);
	file_put(e);
	close_all();
}

static void one_edge_wakes_one(void **state)
{
	struct io_call c[3];
	int woken = 0;

	(void)state;
	setup_pipe();
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLET), 0);
	for (int i = 0; i < 3; i++) {
		c[i] = (struct io_call){ .fn = call_wait, .f = ep, .n = 300000000 };
		io_start(&c[i]);
	}
	io_expect_blocked(&c[0]);
	put_byte();
	for (int i = 0; i < 3; i++)
		woken += io_join(&c[i]) == 1;
	assert_int_equal(woken, 1);
	close_all();
}

static void nested(void **state)
{
	struct file *chain[6];

	(void)state;
	setup_pipe();
	for (int i = 0; i < 6; i++)
		assert_int_equal(epoll_new(io_cred, &chain[i]), 0);
	assert_int_equal(ctl_on(chain[0], EPOLL_CTL_ADD, 1, chain[0], EPOLLIN), -EINVAL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ctl_on(chain[i], EPOLL_CTL_ADD, 1, chain[i + 1], EPOLLIN), 0);
	assert_int_equal(ctl_on(chain[4], EPOLL_CTL_ADD, 1, chain[5], EPOLLIN), -ELOOP);
	assert_int_equal(ctl_on(chain[5], EPOLL_CTL_ADD, 1, chain[0], EPOLLIN), -ELOOP);
	assert_int_equal(ctl_on(chain[2], EPOLL_CTL_ADD, 1, chain[0], EPOLLIN), -ELOOP);
	assert_int_equal(ctl_on(chain[1], EPOLL_CTL_ADD, 2, chain[0], EPOLLIN), -ELOOP);
	/* Readiness travels up. */
	assert_int_equal(ctl_on(chain[4], EPOLL_CTL_ADD, 7, r, EPOLLIN), 0);
	assert_int_equal(wait_on(chain[0], 1, 0), 0);
	struct io_call c = { .fn = call_wait, .f = chain[0] };
	io_start(&c);
	io_expect_blocked(&c);
	put_byte();
	assert_int_equal(io_join(&c), 1);
	assert_int_equal(wait_on(chain[0], 1, 0), 1);
	assert_int_equal(wait_on(chain[4], 1, 0), 1);
	assert_int_equal(evs[0].data.u64, 1007);
	assert_int_equal(io_get(r, buf, 10), 1);
	assert_int_equal(wait_on(chain[0], 1, 0), 0);
	/* Freed from the middle. */
	file_put(chain[2]);
	put_byte();
	assert_int_equal(wait_on(chain[0], 1, 0), 0);
	for (int i = 0; i < 6; i++)
		if (i != 2)
			file_put(chain[i]);
	close_all();
}

static void nested_edge(void **state)
{
	struct file *outer;

	(void)state;
	setup_pipe();
	assert_int_equal(epoll_new(io_cred, &outer), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
	assert_int_equal(ctl_on(outer, EPOLL_CTL_ADD, 1, ep, EPOLLIN | EPOLLET), 0);
	put_byte();
	assert_int_equal(wait_on(outer, 1, 0), 1);
	assert_int_equal(wait_on(outer, 1, 0), 0);
	/* A level-triggered report inside is no new edge outside. */
	assert_int_equal(now(), 1);
	assert_int_equal(wait_on(outer, 1, 0), 0);
	put_byte();
	assert_int_equal(wait_on(outer, 1, 0), 1);
	file_put(outer);
	close_all();
}

static void not_for_plain_files(void **state)
{
	struct file *f;

	(void)state;
	setup_pipe();
	assert_int_equal(vfs_open(&io_world.as_root, "plain", O_CREAT | O_RDWR, 0600, &f), 0);
	assert_int_equal(ctl(EPOLL_CTL_ADD, 3, f, EPOLLIN), -EPERM);
	assert_int_equal(ctl_on(r, EPOLL_CTL_ADD, 3, w, EPOLLIN), -EINVAL);
	assert_int_equal(wait_on(r, 1, 0), -EINVAL);
	file_put(f);
	close_all();
}

/* Files come and go, sets come and go, events fly: the sanitizers watch. */
static atomic_bool stop;
static struct file *shared_set;

static ssize_t stress_wait(struct io_call *c)
{
	while (!atomic_load(&stop)) {
		struct epoll_event ev[4];
		struct iov_iter it;
		iov_init_host(&it, ev, sizeof(ev), IOV_FILL);
		int n = epoll_wait_events(c->f, &it, 4, deadline_after_ns(1000000));
		if (n < 0)
			return n;
	}
	return 0;
}

static ssize_t stress_files(struct io_call *c)
{
	struct epoll_event ev = { .events = EPOLLIN | (c->n & 1 ? EPOLLET : 0) };

	for (int i = 0; i < 300; i++) {
		struct file *f, *set;
		if (eventfd_new(0, 0, NULL, &f) || epoll_new(NULL, &set))
			return -ENOMEM;
		if (epoll_control(shared_set, EPOLL_CTL_ADD, (int)c->n, f, &ev) ||
		    epoll_control(set, EPOLL_CTL_ADD, (int)c->n, f, &ev) ||
		    epoll_control(shared_set, EPOLL_CTL_ADD, (int)c->n, set, &ev))
			return -EINVAL;
		eventfd_signal(f, 1);
		if (i & 1)
			(void)!epoll_control(shared_set, EPOLL_CTL_DEL, (int)c->n, f, NULL);
		if (i & 2) {
			file_put(set);
			eventfd_signal(f, 1);
			file_put(f);
		} else {
			file_put(f);
			file_put(set);
		}
	}
	return 0;
}

static void stress(void **state)
{
	struct io_call waiters[2], makers[2];

	(void)state;
	assert_int_equal(epoll_new(io_cred, &shared_set), 0);
	atomic_store(&stop, false);
	for (size_t i = 0; i < 2; i++) {
		waiters[i] = (struct io_call){ .fn = stress_wait, .f = shared_set };
		makers[i] = (struct io_call){ .fn = stress_files, .n = i + 1 };
		io_start(&waiters[i]);
		io_start(&makers[i]);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(io_join(&makers[i]), 0);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(io_join(&waiters[i]), 0);
	assert_int_equal(wait_on(shared_set, 64, 0), 0);
	file_put(shared_set);
}

static int make_and_add(void)
{
	struct file *set;

	int err = epoll_new(io_cred, &set);
	if (err)
		return err;
	err = ctl_on(set, EPOLL_CTL_ADD, 3, r, EPOLLIN);
	file_put(set);
	return err;
}

static void without_memory(void **state)
{
	(void)state;
	setup_pipe();
	io_fail_each_allocation(make_and_add);
	close_all();
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, io_setup, io_teardown)
	const struct CMUnitTest tests[] = {
		T(level), T(edge), T(one_shot), T(exclusive), T(closing_leaves_the_set), T(many_ready_take_turns),
		T(sleepers), T(one_edge_wakes_one), T(nested), T(nested_edge), T(not_for_plain_files), T(stress),
		T(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

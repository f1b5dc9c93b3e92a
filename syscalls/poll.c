/*
 * poll(2), ppoll(2), select(2), pselect6(2).
 *
 * One core, poll_files, over an array of (file, wanted bits). In the first round each file names
 *its wait queues and gets waiters of ours; later rounds only ask. What is left of the time goes
 *back to the guest (ppoll, select, pselect6), and an interrupted call: poll              continues
 *until its first deadline (restart block), -EINTR if a handler ran ppoll, select, …  starts again
 *with the time that was stored, -EINTR if a handler ran
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "platform/base/alloc.h"
#include "sentry/timers.h"
#include "syscalls/fs_util.h"

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull
#define WAITERS_PER_BLOCK 32u
#define ALWAYS (POLLERR | POLLHUP)

/* What select(2) takes for readable, writable, exceptional (fs/select.c). */
#define SELECT_IN (POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR)
#define SELECT_OUT (POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR)
#define SELECT_EX POLLPRI

struct poll_entry {
	struct file *file; /* referenced; NULL: not open, or not asked for */
	uint32_t want;
	uint32_t got;
};

struct waiter_block {
	struct waiter_block *next;
	unsigned used;
	struct waiter w[WAITERS_PER_BLOCK];
};

/* Collects the waiters of one call. */
struct collector {
	struct poll_table pt;
	struct sleeper *sleeper;
	struct waiter_block *blocks;
	uint32_t want; /* of the file being asked */
	bool failed;   /* no memory */
};

static void collect_queue(struct poll_table *pt, struct waitq *q)
{
	struct collector *c = container_of(pt, struct collector, pt);

	if (!c->blocks || c->blocks->used == WAITERS_PER_BLOCK) {
		struct waiter_block *b = mem_zalloc(sizeof(*b));
		if (!b) {
			c->failed = true;
			return;
		}
		b->next = c->blocks;
		c->blocks = b;
	}
	struct waiter *w = &c->blocks->w[c->blocks->used++];
	waiter_init_sleeper(w, c->sleeper, c->want);
	waitq_add(q, w);
}

static void collector_fini(struct collector *c)
{
	while (c->blocks) {
		struct waiter_block *b = c->blocks;
		c->blocks = b->next;
		for (unsigned i = 0; i < b->used; i++)
			waitq_remove(&b->w[i]);
		mem_free(b);
	}
}

/* Asks all; how many have something to report. c NULL: without waiters. */
static int poll_round(struct poll_entry *e, size_t n, struct collector *c)
{
	int count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!e[i].file) {
			count += e[i].got != 0;
			continue;
		}
		/* Once something was found we shall not sleep, so the rest needs no waiters. */
		bool register_it = c && count == 0;
		if (register_it)
			c->want = e[i].want;
		e[i].got = file_poll(e[i].file, register_it ? &c->pt : NULL) & e[i].want;
		count += e[i].got != 0;
	}
	return count;
}

/* Waits until some entry has something; deadline 0: does not wait. Count, 0, -ERESTARTSYS, -ENOMEM.
 */
static int poll_files(struct poll_entry *e, size_t n, deadline_t deadline)
{
	struct collector c = { .pt = { .queue = collect_queue }, .sleeper = sleeper_self() };
	bool last = deadline == 0;

	sleeper_prepare(c.sleeper);
	int ret = poll_round(e, n, last ? NULL : &c);
	while (ret == 0 && !last && !c.failed) {
		int err = sleeper_sleep(c.sleeper, deadline);
		last = err != 0;
		sleeper_prepare(c.sleeper);
		ret = poll_round(e, n, NULL);
		if (ret == 0 && err == -ERESTARTSYS)
			ret = err;
	}
	collector_fini(&c);
	if (ret == 0 && c.failed)
		ret = -ENOMEM;
	return ret;
}

static void entries_free(struct poll_entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		file_put(e[i].file);
	mem_free(e);
}

/* ---- time --------------------------------------------------------------------------------- */

/* A relative time in ns as a deadline; 0 stays 0. */
static deadline_t deadline_of(uint64_t ns)
{
	return ns ? deadline_after_ns(ns) : 0;
}

static struct timespec time_left(deadline_t deadline)
{
	uint64_t now = mono_now_ns();
	return ns_to_timespec(deadline > now ? deadline - now : 0);
}

/* -ERESTARTSYS of the core in the words of ppoll, select and pselect6. A time that cannot be stored
 * makes a restart impossible: it would begin with the old one. */
static long finish(long ret, bool stored)
{
	if (ret == -ERESTARTSYS)
		return stored ? -ERESTARTNOHAND : -EINTR;
	return ret;
}

/* Loads a timeout in ns. -EFAULT, -EINVAL. NULL: for ever. */
static int load_timespec(struct task *t, timespec_gp timeout, deadline_t *out)
{
	timespec_cgp from = { .addr = timeout.addr };
	struct timespec ts;
	uint64_t ns;

	*out = DEADLINE_NEVER;
	if (gaddr_is_null(timeout.addr))
		return 0;
	if (guest_load(t, &ts, from) != 0)
		return -EFAULT;
	if (timespec_to_ns(&ts, &ns) != 0)
		return -EINVAL;
	*out = deadline_of(ns);
	return 0;
}

static bool store_time_left(struct task *t, timespec_gp timeout, deadline_t deadline)
{
	/* Nothing to store for a zero timeout either. */
	if (gaddr_is_null(timeout.addr) || deadline == 0)
		return true;
	if (t->personality & STICKY_TIMEOUTS)
		return false;
	struct timespec left = time_left(deadline);
	return guest_store(t, timeout, &left) == 0;
}

/* ---- poll --------------------------------------------------------------------------------- */

/* Descriptors to entries. */
static void entries_of_pollfds(struct task *t, const struct pollfd *p, struct poll_entry *e,
			       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i].fd < 0)
			continue;
		e[i].want = (uint16_t)p[i].events | ALWAYS;
		e[i].file = fd_get_io(t->files, p[i].fd);
		if (!e[i].file)
			e[i].got = POLLNVAL;
	}
}

/* The common part of poll and ppoll: count, 0, -ERESTARTSYS and errors. */
static long poll_pollfds(struct task *t, pollfd_gp fds, uint32_t nfds, deadline_t deadline)
{
	pollfd_cgp from = { .addr = fds.addr };
	long ret = -ENOMEM;

	if (nfds > task_rlimit(t, RLIMIT_NOFILE) || nfds > INT_MAX / sizeof(struct pollfd))
		return -EINVAL;
	struct pollfd *p = mem_calloc(MAX(nfds, 1u), sizeof(*p));
	struct poll_entry *e = mem_calloc(MAX(nfds, 1u), sizeof(*e));
	if (!p || !e)
		goto out;
	ret = nfds ? guest_load_n(t, p, nfds, from) : 0;
	if (ret)
		goto out;
	entries_of_pollfds(t, p, e, nfds);
	ret = poll_files(e, nfds, deadline);
	if (ret == -ENOMEM)
		goto out;
	for (size_t i = 0; i < nfds; i++)
		p[i].revents = (short)e[i].got;
	/* LINUX: stores only revents. One copy of the whole array is much cheaper for us, and fd
	 * and events are what the guest gave unless another thread changes them during the call. */
	if (nfds && guest_store_n(t, fds, nfds, p) != 0)
		ret = -EFAULT;
out:
	if (e)
		entries_free(e, nfds);
	mem_free(p);
	return ret;
}

/* words of the restart block of poll */
#define POLL_FDS 0
#define POLL_NFDS 1

static long poll_continue(struct task *t)
{
	pollfd_gp fds = { .addr = { t->restart.words[POLL_FDS] } };
	long ret = poll_pollfds(t, fds, (uint32_t)t->restart.words[POLL_NFDS], t->restart.deadline);

	if (ret != -ERESTARTSYS)
		return ret;
	t->restart.fn = poll_continue;
	return -ERESTART_RESTARTBLOCK;
}

long sys_poll(struct task *t, pollfd_gp fds, uint32_t nfds, int timeout)
{
	t->restart.deadline =
		timeout < 0 ? DEADLINE_NEVER : deadline_of((uint64_t)timeout * NS_PER_MS);
	t->restart.words[POLL_FDS] = fds.addr.va;
	t->restart.words[POLL_NFDS] = nfds;
	return poll_continue(t);
}

long sys_ppoll(struct task *t, pollfd_gp fds, uint32_t nfds, timespec_gp timeout,
	       sigset_cgp sigmask, uint64_t sigsetsize)
{
	deadline_t deadline;
	uint64_t mask;
	bool masked;

	int err = load_timespec(t, timeout, &deadline);
	if (!err)
		err = signal_load_mask(t, sigmask, sigsetsize, &mask, &masked);
	if (err)
		return err;
	if (masked)
		signal_temp_mask_begin(t, mask);
	long ret = poll_pollfds(t, fds, nfds, deadline);
	if (masked)
		signal_temp_mask_end(t, ret == -ERESTARTSYS);
	return finish(ret, store_time_left(t, timeout, deadline));
}

/* ---- select ------------------------------------------------------------------------------- */

#define SET_READ 0
#define SET_WRITE 1
#define SET_EXCEPT 2
#define SET_COUNT 3
#define WORD_BITS 64u

/* Three bit sets of the guest and their copies. */
struct fd_sets {
	struct gaddr addr[SET_COUNT];
	uint64_t *bits[SET_COUNT]; /* parts of one block; NULL: no set given */
	uint64_t *block;
	size_t words;
	int nfds;
};

/* The kernel looks at no more numbers than the descriptor table has room for. */
static int limit_nfds(struct task *t, int nfds)
{
	int last = -1, size = (int)WORD_BITS;

	for (int fd = fd_next(t->files, 0); fd >= 0 && fd < nfds; fd = fd_next(t->files, fd + 1))
		last = fd;
	while (size <= last)
		size *= 2;
	return MIN(nfds, size);
}

static int sets_load(struct task *t, struct fd_sets *s)
{
	s->words = ((size_t)s->nfds + WORD_BITS - 1) / WORD_BITS;
	s->block = mem_calloc(MAX(s->words, 1u) * SET_COUNT, sizeof(uint64_t));
	if (!s->block)
		return -ENOMEM;
	for (int k = 0; k < SET_COUNT; k++) {
		fdset_cgp from = { .addr = s->addr[k] };
		if (gaddr_is_null(from.addr))
			continue;
		s->bits[k] = s->block + (size_t)k * s->words;
		if (s->words && guest_load_n(t, s->bits[k], s->words, from) != 0)
			return -EFAULT;
	}
	return 0;
}

static bool set_has(const struct fd_sets *s, int kind, int fd)
{
	return s->bits[kind] &&
	       (s->bits[kind][(unsigned)fd / WORD_BITS] >> ((unsigned)fd % WORD_BITS) & 1);
}

static uint32_t wanted_events(const struct fd_sets *s, int fd)
{
	return (set_has(s, SET_READ, fd) ? SELECT_IN : 0u) |
	       (set_has(s, SET_WRITE, fd) ? SELECT_OUT : 0u) |
	       (set_has(s, SET_EXCEPT, fd) ? (uint32_t)SELECT_EX : 0u);
}

/* One entry per number that is in some set. -EBADF when one is not open. */
static int entries_of_sets(struct task *t, const struct fd_sets *s, struct poll_entry **out,
			   size_t *out_count)
{
	size_t n = 0;

	for (int fd = 0; fd < s->nfds; fd++)
		n += wanted_events(s, fd) != 0;
	struct poll_entry *e = mem_calloc(MAX(n, 1u), sizeof(*e));
	if (!e)
		return -ENOMEM;
	n = 0;
	for (int fd = 0; fd < s->nfds; fd++) {
		uint32_t want = wanted_events(s, fd);
		if (!want)
			continue;
		e[n].file = fd_get_io(t->files, fd);
		if (!e[n].file) {
			entries_free(e, n);
			return -EBADF;
		}
		e[n++].want = want;
	}
	*out = e;
	*out_count = n;
	return 0;
}

/* Keeps in the sets what was found; the number of bits that stay. */
static long sets_update(struct fd_sets *s, const struct poll_entry *e)
{
	static const uint32_t events[SET_COUNT] = { SELECT_IN, SELECT_OUT, SELECT_EX };
	long bits = 0;

	for (int fd = 0; fd < s->nfds; fd++) {
		if (!wanted_events(s, fd))
			continue;
		for (int k = 0; k < SET_COUNT; k++) {
			if (!set_has(s, k, fd))
				continue;
			if (e->got & events[k])
				bits++;
			else
				s->bits[k][(unsigned)fd / WORD_BITS] &=
					~(1ull << ((unsigned)fd % WORD_BITS));
		}
		e++;
	}
	return bits;
}

static int sets_store(struct task *t, const struct fd_sets *s)
{
	for (int k = 0; k < SET_COUNT; k++) {
		fdset_gp to = { .addr = s->addr[k] };
		if (s->bits[k] && s->words && guest_store_n(t, to, s->words, s->bits[k]) != 0)
			return -EFAULT;
	}
	return 0;
}

/* The common part of select and pselect6: number of bits, 0, -ERESTARTSYS and errors. */
static long select_sets(struct task *t, int nfds, struct gaddr r, struct gaddr w, struct gaddr x,
			deadline_t deadline)
{
	struct fd_sets s = { .addr = { r, w, x } };
	struct poll_entry *e;
	size_t n;

	if (nfds < 0)
		return -EINVAL;
	s.nfds = limit_nfds(t, nfds);
	long ret = sets_load(t, &s);
	if (!ret)
		ret = entries_of_sets(t, &s, &e, &n);
	if (!ret) {
		ret = poll_files(e, n, deadline);
		if (ret >= 0) {
			ret = sets_update(&s, e);
			if (sets_store(t, &s) != 0)
				ret = -EFAULT;
		}
		entries_free(e, n);
	}
	mem_free(s.block);
	return ret;
}

long sys_select(struct task *t, int nfds, fdset_gp readfds, fdset_gp writefds, fdset_gp exceptfds,
		timeval_gp timeout)
{
	timeval_cgp from = { .addr = timeout.addr };
	deadline_t deadline = DEADLINE_NEVER;
	bool timed = !gaddr_is_null(timeout.addr), stored = true;
	struct timeval tv;

	if (timed) {
		uint64_t ns;
		if (guest_load(t, &tv, from) != 0)
			return -EFAULT;
		/* More than a second of microseconds is carried over. */
		if (tv.tv_sec < 0 || tv.tv_usec < 0)
			return -EINVAL;
		struct timespec ts = { .tv_nsec = tv.tv_usec % 1000000 * 1000 };
		if (__builtin_add_overflow(tv.tv_sec, tv.tv_usec / 1000000, &ts.tv_sec))
			ts.tv_sec = INT64_MAX / (int64_t)NS_PER_S;
		if (timespec_to_ns(&ts, &ns) != 0)
			return -EINVAL;
		deadline = deadline_of(ns);
	}
	long ret = select_sets(t, nfds, readfds.addr, writefds.addr, exceptfds.addr, deadline);
	if (timed && deadline != 0 && (t->personality & STICKY_TIMEOUTS)) {
		stored = false;
	} else if (timed && deadline != 0) {
		struct timespec left = time_left(deadline);
		tv = (struct timeval){ .tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000 };
		stored = guest_store(t, timeout, &tv) == 0;
	}
	return finish(ret, stored);
}

long sys_pselect6(struct task *t, int nfds, fdset_gp readfds, fdset_gp writefds, fdset_gp exceptfds,
		  timespec_gp timeout, u64_cgp sigmask)
{
	uint64_t arg[2] = { 0, 0 }; /* address and size of the mask */
	deadline_t deadline;
	uint64_t mask;
	bool masked;

	if (!gaddr_is_null(sigmask.addr) && guest_load_n(t, arg, 2, sigmask) != 0)
		return -EFAULT;
	int err = load_timespec(t, timeout, &deadline);
	sigset_cgp set = { .addr = { arg[0] } };
	if (!err)
		err = signal_load_mask(t, set, arg[1], &mask, &masked);
	if (err)
		return err;
	if (masked)
		signal_temp_mask_begin(t, mask);
	long ret = select_sets(t, nfds, readfds.addr, writefds.addr, exceptfds.addr, deadline);
	if (masked)
		signal_temp_mask_end(t, ret == -ERESTARTSYS);
	return finish(ret, store_time_left(t, timeout, deadline));
}

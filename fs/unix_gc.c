/*
 * Descriptors in flight (SCM_RIGHTS) and the collection of cycles.
 *
 * A socket whose only references come from receive queues can be received only from one of these
 * queues. If all of them belong to sockets in the same situation, nobody can ever reach it: a
 * cycle.
 *
 * Candidates are the sockets in flight whose file has no reference besides those. For each,
 * references from queues of candidates are subtracted (gc_inner); what still has some is reachable,
 * and so is everything in its queue, and so on. The queues of the rest are emptied, which breaks
 * the cycles; ordinary reference counting does the rest.
 *
 * Why it is safe without stopping the world: counts of flight change only under flight_mu, before a
 * message enters a queue and after it has left one. A socket that somebody holds, or whose message
 * has been taken out but not yet uncounted, has a reference or a flight count that no scanned queue
 * explains, so it counts as reachable, with all that its queue holds. To take a descriptor out one
 * must hold such a socket.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include "fs/hooks.h"
#include "fs/unix_priv.h"

#define GC_FIRST 4096 /* no sender collects below this number */

static struct mutex flight_mu = MUTEX_INIT(RANK_SOCK); /* before any socket's mu */
static struct list flights = LIST_INIT(flights);       /* [flight_mu] of unix_sock.flight_link */
static size_t files_in_flight;                         /* [flight_mu] of every kind */
static size_t gc_threshold = GC_FIRST; /* [flight_mu] files in flight that make a sender collect */

static struct unix_sock *unix_of_file(struct file *f)
{
	struct sock *sk = sock_of(f);
	return sk && sk->family == AF_UNIX ? to_unix(sk) : NULL;
}

static bool too_many_locked(void)
{
	if (!fs_hooks || !fs_hooks->rlimit)
		return false;
	if (files_in_flight <= fs_hooks->rlimit(RLIMIT_NOFILE))
		return false;
	const struct cred *c = fs_hooks->current_cred();
	return !c || (!cred_capable(c, CAP_SYS_RESOURCE) && !cred_capable(c, CAP_SYS_ADMIN));
}

/* Collection happens when a socket closes. Who only sends and never closes one must collect as
 * well, at numbers that double as long as nothing is found. */
static void gc_when_many(void)
{
	mutex_lock(&flight_mu);
	bool many = files_in_flight > gc_threshold;
	mutex_unlock(&flight_mu);
	if (!many)
		return;
	unix_gc();
	mutex_lock(&flight_mu);
	gc_threshold = MAX(files_in_flight * 2, (size_t)GC_FIRST);
	mutex_unlock(&flight_mu);
}

int unix_flight_add(struct sock_scm *scm)
{
	if (scm->file_count == 0)
		return 0;
	gc_when_many();
	mutex_lock(&flight_mu);
	if (too_many_locked()) {
		mutex_unlock(&flight_mu);
		return -ETOOMANYREFS;
	}
	files_in_flight += scm->file_count;
	for (unsigned i = 0; i < scm->file_count; i++) {
		struct unix_sock *u = unix_of_file(scm->files[i]);
		if (u && u->in_flight++ == 0)
			list_add_tail(&flights, &u->flight_link);
	}
	mutex_unlock(&flight_mu);
	return 0;
}

void unix_flight_sub(struct sock_scm *scm)
{
	if (scm->file_count == 0)
		return;
	mutex_lock(&flight_mu);
	files_in_flight -= scm->file_count;
	for (unsigned i = 0; i < scm->file_count; i++) {
		struct unix_sock *u = unix_of_file(scm->files[i]);
		if (u && --u->in_flight == 0)
			list_del_init(&u->flight_link);
	}
	mutex_unlock(&flight_mu);
}

/* ---- the collection ----------------------------------------------------------------------- */

typedef void gc_visit_fn(struct unix_sock *u);

/* Calls fn for each candidate that a queue of u holds. u->mu is taken. */
static void visit_queue(struct unix_sock *u, gc_visit_fn *fn) NO_LOCK_ANALYSIS
{
	mutex_lock_nested(&u->sk.mu);
	list_for_each(pos, &u->rx) {
		struct unix_msg *m = list_entry(pos, struct unix_msg, link);
		for (unsigned i = 0; i < m->scm.file_count; i++) {
			struct unix_sock *in = unix_of_file(m->scm.files[i]);
			if (in && in->gc_candidate)
				fn(in);
		}
	}
	/* Connections that nobody has accepted are reached through their listener: their own queues
	 * have no other owner. Listener before embryo is the order of these locks. */
	list_for_each(pos, &u->accept_queue) {
		struct unix_sock *e = list_entry(pos, struct unix_sock, accept_link);
		visit_queue(e, fn);
	}
	mutex_unlock(&u->sk.mu);
}

static struct list gc_work = LIST_INIT(gc_work); /* [flight_mu] reachable, queue not yet looked at
						  */

static void count_inner(struct unix_sock *u)
{
	u->gc_inner++;
}

static void mark_reachable(struct unix_sock *u)
{
	if (u->gc_reachable)
		return;
	u->gc_reachable = true;
	list_add_tail(&gc_work, &u->gc_link);
}

static bool only_in_flight(struct unix_sock *u)
{
	mutex_lock_nested(&u->sk.mu);
	bool only = u->sk.file && ref_count(&u->sk.file->ref) == u->in_flight;
	mutex_unlock(&u->sk.mu);
	return only;
}

static void find_candidates_locked(void)
{
	list_for_each(pos, &flights) {
		struct unix_sock *u = list_entry(pos, struct unix_sock, flight_link);
		u->gc_candidate = only_in_flight(u);
		u->gc_reachable = false;
		u->gc_inner = 0;
	}
	list_for_each(pos, &flights) {
		struct unix_sock *u = list_entry(pos, struct unix_sock, flight_link);
		if (u->gc_candidate)
			visit_queue(u, count_inner);
	}
}

static void spread_reachable_locked(void)
{
	list_for_each(pos, &flights) {
		struct unix_sock *u = list_entry(pos, struct unix_sock, flight_link);
		if (u->gc_candidate && u->in_flight > u->gc_inner)
			mark_reachable(u);
	}
	while (!list_empty(&gc_work)) {
		struct unix_sock *u = list_first(&gc_work, struct unix_sock, gc_link);
		list_del_init(&u->gc_link);
		visit_queue(u, mark_reachable);
	}
}

static void steal_queue(struct unix_sock *u, struct list *garbage) NO_LOCK_ANALYSIS
{
	mutex_lock_nested(&u->sk.mu);
	list_splice_tail(garbage, &u->rx);
	u->rx_count = 0;
	u->rx_bytes = 0;
	list_for_each(pos, &u->accept_queue) {
		struct unix_sock *e = list_entry(pos, struct unix_sock, accept_link);
		steal_queue(e, garbage);
	}
	mutex_unlock(&u->sk.mu);
}

void unix_gc(void)
{
	struct list garbage;

	list_init(&garbage);
	mutex_lock(&flight_mu);
	if (list_empty(&flights)) {
		mutex_unlock(&flight_mu);
		return;
	}
	find_candidates_locked();
	spread_reachable_locked();
	list_for_each(pos, &flights) {
		struct unix_sock *u = list_entry(pos, struct unix_sock, flight_link);
		if (u->gc_candidate && !u->gc_reachable)
			steal_queue(u, &garbage);
		u->gc_candidate = false;
	}
	mutex_unlock(&flight_mu);
	unix_free_messages(&garbage);
}

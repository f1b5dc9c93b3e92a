/*
 * System V semaphores: semget(2), semop(2), semctl(2).
 *
 * An operation vector is tried under the set's lock: applied as a whole, or undone and slept on
 * until the set changes. Sleepers are on a list too, since semctl tells how many wait for what
 * (GETNCNT, GETZCNT).
 *
 * SEM_UNDO adjustments belong to a process (threads of one share them) and hang at the set; when a
 * process ends, the sentry calls sem_exit through group_exit_hook.
 */
#include <errno.h>
#include <string.h>
#include <sys/sem.h>

#include "platform/base/alloc.h"
#include "sentry/exit.h"
#include "sentry/timers.h"
#include "syscalls/ipc.h"

#define SET_SEMS_MAX 32000   /* SEMMSL */
#define OPS_MAX 500          /* SEMOPM */
#define VALUE_MAX 32767      /* SEMVMX */
#define SETS_MAX 1024        /* SEMMNI is 32000; a set may have 32000 semaphores of 8 bytes */
#define SEMS_TOTAL (1 << 20) /* SEMMNS: 8 MiB of ours */

struct semaphore {
	int value;
	int pid; /* of the last operation */
};

struct sem_undo {
	struct list link; /* [mu] */
	int tgid;         /* [I] */
	short adjust[];   /* [mu] one per semaphore */
};

struct sem_waiter {
	struct list link; /* [mu] */
	int index;        /* [mu] of the semaphore that stopped it */
	bool for_zero;    /* [mu] */
};

struct sem_set {
	struct ipc_obj obj;
	struct list waiters;      /* [mu] */
	struct list undos;        /* [mu] */
	time_t operated, changed; /* [mu] */
	int count;                /* [I] */
	struct semaphore sems[];  /* [mu] */
};

static const struct ipc_type sem_type;
static atomic_int sems_in_use; /* of all sets */

static struct sem_set *to_set(struct ipc_obj *o)
{
	return container_of(o, struct sem_set, obj);
}

static int sem_create(struct task *t, int key, uint64_t param, struct ipc_obj **out)
{
	int count = (int)param;

	if (count <= 0)
		return -EINVAL;
	if (atomic_fetch_add(&sems_in_use, count) > SEMS_TOTAL - count) {
		atomic_fetch_sub(&sems_in_use, count);
		return -ENOSPC;
	}
	struct sem_set *s = mem_zalloc(sizeof(*s) + (size_t)count * sizeof(s->sems[0]));
	if (!s) {
		atomic_fetch_sub(&sems_in_use, count);
		return -ENOMEM;
	}
	ipc_obj_init(&s->obj, &sem_type, key, t);
	list_init(&s->waiters);
	list_init(&s->undos);
	s->count = count;
	s->changed = ipc_now();
	*out = &s->obj;
	return 0;
}

static int sem_check(struct ipc_obj *o, uint64_t param)
{
	return (int)param > to_set(o)->count ? -EINVAL : 0;
}

static void sem_free(struct ipc_obj *o)
{
	struct sem_set *s = to_set(o);

	list_for_each_safe(pos, &s->undos)
		mem_free(list_entry(pos, struct sem_undo, link));
	atomic_fetch_sub(&sems_in_use, s->count);
	ipc_obj_fini(o);
	mem_free(s);
}

static void sem_show(struct ipc_obj *o, struct fmt *out)
{
	struct sem_set *s = to_set(o);

	fmt_printf(out, "%10d %10d  %4o %10u %5u %5u %5u %5u %10lld %10lld\n", o->key, o->id,
		   o->mode & 0777, (unsigned)s->count, o->uid, o->gid, o->cuid, o->cgid,
		   (long long)s->operated, (long long)s->changed);
}

static void sem_show_all(struct fmt *out)
{
	ipc_show(&sem_type, out);
}

static struct ipc_table sem_table = { .mu = MUTEX_INIT(RANK_HASH) };
static const struct ipc_type sem_type = {
	.table = &sem_table,
	.limit = SETS_MAX,
	.create = sem_create,
	.check = sem_check,
	.free = sem_free,
	.show_locked = sem_show,
	.show_all = sem_show_all,
	.show_kind = SYSVIPC_SEM,
};

long sys_semget(struct task *t, int key, int nsems, int semflg)
{
	if (nsems < 0 || nsems > SET_SEMS_MAX)
		return -EINVAL;
	return ipc_get(&sem_type, t, key, (uint64_t)nsems, semflg);
}

/* ---- undo --------------------------------------------------------------------------------- */

/* What a process owes the set; NULL: nothing yet. */
static struct sem_undo *undo_find_locked(struct sem_set *s, int tgid)
{
	list_for_each(pos, &s->undos) {
		struct sem_undo *u = list_entry(pos, struct sem_undo, link);
		if (u->tgid == tgid)
			return u;
	}
	return NULL;
}

static int undo_make_locked(struct sem_set *s, int tgid, struct sem_undo **out)
{
	struct sem_undo *u = undo_find_locked(s, tgid);

	if (!u) {
		u = mem_zalloc(sizeof(*u) + (size_t)s->count * sizeof(u->adjust[0]));
		if (!u)
			return -ENOMEM;
		u->tgid = tgid;
		list_add_tail(&s->undos, &u->link);
	}
	*out = u;
	return 0;
}

/* A process has ended: pays what it owes to one set. */
static void undo_apply(struct sem_set *s, int tgid)
{
	mutex_lock(&s->obj.mu);
	struct sem_undo *u = undo_find_locked(s, tgid);
	if (u && !s->obj.removed) {
		for (int i = 0; i < s->count; i++) {
			if (u->adjust[i] == 0)
				continue;
			int v = s->sems[i].value + u->adjust[i];
			s->sems[i].value = MIN(MAX(v, 0), VALUE_MAX);
			s->sems[i].pid = tgid;
		}
		s->operated = ipc_now();
	}
	if (u)
		list_del_init(&u->link);
	mutex_unlock(&s->obj.mu);
	if (u)
		waitq_wake_all(&s->obj.wait, 0);
	mem_free(u);
}

static void sem_exit(struct group *g)
{
	int used, highest = ipc_highest_index(&sem_type, &used);

	for (int i = 0; used && i <= highest; i++) {
		struct ipc_obj *o;
		if (ipc_find_index(&sem_type, i, &o) != 0)
			continue;
		undo_apply(to_set(o), g->tgid);
		ipc_obj_put(o);
	}
}

/* SETVAL and SETALL end all debts on what they set; index -1: everything. */
static void undo_clear_locked(struct sem_set *s, int index)
{
	list_for_each(pos, &s->undos) {
		struct sem_undo *u = list_entry(pos, struct sem_undo, link);
		for (int i = 0; i < s->count; i++)
			if (index < 0 || i == index)
				u->adjust[i] = 0;
	}
}

/* ---- semop -------------------------------------------------------------------------------- */

/* Takes back the first n operations. */
static void undo_ops_locked(struct sem_set *s, struct sem_undo *u, const struct sembuf *ops,
			    size_t n)
{
	while (n-- > 0) {
		s->sems[ops[n].sem_num].value -= ops[n].sem_op;
		if (ops[n].sem_flg & SEM_UNDO)
			u->adjust[ops[n].sem_num] += ops[n].sem_op;
	}
}

/* Applies all or nothing: 0, 1 when it must wait (*out_index, *out_zero say for what), -EAGAIN,
 * -ERANGE. */
static int try_ops_locked(struct sem_set *s, struct sem_undo *u, const struct sembuf *ops, size_t n,
			  int *out_index, bool *out_zero)
{
	for (size_t i = 0; i < n; i++) {
		const struct sembuf *op = &ops[i];
		struct semaphore *sem = &s->sems[op->sem_num];
		int v = sem->value + op->sem_op, err = 0;
		if (op->sem_op == 0 ? sem->value != 0 : v < 0)
			err = op->sem_flg & IPC_NOWAIT ? -EAGAIN : 1;
		else if (v > VALUE_MAX)
			err = -ERANGE;
		else if ((op->sem_flg & SEM_UNDO) &&
			 (u->adjust[op->sem_num] - op->sem_op < -VALUE_MAX - 1 ||
			  u->adjust[op->sem_num] - op->sem_op > VALUE_MAX))
			err = -ERANGE;
		if (err) {
			*out_index = op->sem_num;
			*out_zero = op->sem_op == 0;
			undo_ops_locked(s, u, ops, i);
			return err;
		}
		sem->value = v;
		if (op->sem_flg & SEM_UNDO)
			u->adjust[op->sem_num] = (short)(u->adjust[op->sem_num] - op->sem_op);
	}
	return 0;
}

/* One sleep of a vector that must wait. */
static int sem_wait_locked(struct sem_set *s, struct sem_waiter *w, deadline_t deadline)
	NO_LOCK_ANALYSIS
{
	list_add_tail(&s->waiters, &w->link);
	int err = waitq_wait(&s->obj.wait, &s->obj.mu, 0, deadline);
	list_del_init(&w->link);
	if (err == -ETIMEDOUT)
		return -EAGAIN;
	return err ? -EINTR : 0;
}

static int run_ops_locked(struct task *t, struct sem_set *s, const struct sembuf *ops, size_t n,
			  deadline_t deadline)
{
	struct sem_undo *u = NULL;
	struct sem_waiter w;
	bool alter = false, undo = false;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].sem_num >= s->count)
			return -EFBIG;
		alter |= ops[i].sem_op != 0;
		undo |= (ops[i].sem_flg & SEM_UNDO) != 0;
	}
	int err = s->obj.removed ? -EIDRM : ipc_permission_locked(&s->obj, t, alter ? 0222 : 0444);
	while (!err) {
		/* Looked up each time: SETALL does not free it, but the end of a set may come
		 * between. */
		if (undo)
			err = undo_make_locked(s, t->group->tgid, &u);
		if (!err)
			err = try_ops_locked(s, u, ops, n, &w.index, &w.for_zero);
		if (err <= 0)
			break;
		err = sem_wait_locked(s, &w, deadline);
		if (s->obj.removed)
			err = -EIDRM;
	}
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		s->sems[ops[i].sem_num].pid = t->group->tgid;
	s->operated = ipc_now();
	return 0;
}

static long sem_op(struct task *t, int semid, buf_cgp sops, uint64_t nsops, deadline_t deadline)
{
	struct ipc_obj *o;

	if (nsops < 1 || semid < 0)
		return -EINVAL;
	if (nsops > OPS_MAX)
		return -E2BIG;
	struct sembuf *ops = arena_alloc(&t->scratch, nsops * sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	if (guest_read(t, ops, sops.addr, nsops * sizeof(*ops)) != 0)
		return -EFAULT;
	int err = ipc_find(&sem_type, semid, &o);
	if (err)
		return err;
	group_exit_hook = sem_exit;
	mutex_lock(&o->mu);
	err = run_ops_locked(t, to_set(o), ops, nsops, deadline);
	mutex_unlock(&o->mu);
	if (!err)
		waitq_wake_all(&o->wait, 0);
	ipc_obj_put(o);
	return err;
}

long sys_semop(struct task *t, int semid, buf_cgp sops, uint64_t nsops)
{
	return sem_op(t, semid, sops, nsops, DEADLINE_NEVER);
}

long sys_semtimedop(struct task *t, int semid, buf_cgp sops, uint64_t nsops, timespec_cgp timeout)
{
	deadline_t deadline = DEADLINE_NEVER;
	struct timespec ts;
	uint64_t ns;

	if (!gaddr_is_null(timeout.addr)) {
		if (guest_load(t, &ts, timeout) != 0)
			return -EFAULT;
		if (timespec_to_ns(&ts, &ns) != 0)
			return -EINVAL;
		deadline = deadline_after_ns(ns);
	}
	return sem_op(t, semid, sops, nsops, deadline);
}

/* ---- semctl ------------------------------------------------------------------------------- */

static long sem_info(struct task *t, int cmd, struct gaddr buf)
{
	struct seminfo info = { .semmap = SEMS_TOTAL,
				.semmni = SETS_MAX,
				.semmns = SEMS_TOTAL,
				.semmnu = SEMS_TOTAL,
				.semmsl = SET_SEMS_MAX,
				.semopm = OPS_MAX,
				.semume = OPS_MAX,
				.semusz = 20,
				.semvmx = VALUE_MAX,
				.semaem = VALUE_MAX };
	int used, highest = ipc_highest_index(&sem_type, &used);

	if (cmd == SEM_INFO) {
		info.semusz = used;
		info.semaem = 0;
		for (int i = 0; i <= highest; i++) {
			struct ipc_obj *o;
			if (ipc_find_index(&sem_type, i, &o) != 0)
				continue;
			info.semaem += to_set(o)->count;
			ipc_obj_put(o);
		}
	}
	return guest_write(t, buf, &info, sizeof(info)) ? -EFAULT : highest;
}

static long sem_stat(struct task *t, int id, int cmd, struct gaddr buf)
{
	struct semid_ds ds = { 0 };
	struct ipc_obj *o;

	int err = cmd == IPC_STAT ? ipc_find(&sem_type, id, &o) : ipc_find_index(&sem_type, id, &o);
	if (err)
		return err;
	mutex_lock(&o->mu);
	if (cmd != SEM_STAT_ANY)
		err = ipc_permission_locked(o, t, 0444);
	if (!err && o->removed)
		err = -EIDRM;
	ipc_fill_perm_locked(o, &ds.sem_perm);
	ds.sem_otime = to_set(o)->operated;
	ds.sem_ctime = to_set(o)->changed;
	ds.sem_nsems = (unsigned long)to_set(o)->count;
	mutex_unlock(&o->mu);
	long ret = cmd == IPC_STAT ? 0 : o->id;
	ipc_obj_put(o);
	if (!err)
		err = guest_write(t, buf, &ds, sizeof(ds));
	return err ? err : ret;
}

static int count_waiters_locked(struct sem_set *s, int index, bool for_zero)
{
	int n = 0;

	list_for_each(pos, &s->waiters) {
		struct sem_waiter *w = list_entry(pos, struct sem_waiter, link);
		n += w->index == index && w->for_zero == for_zero;
	}
	return n;
}

static int set_value_locked(struct sem_set *s, int index, int pid, int value)
{
	if (value < 0 || value > VALUE_MAX)
		return -ERANGE;
	undo_clear_locked(s, index);
	s->sems[index].value = value;
	s->sems[index].pid = pid;
	s->changed = ipc_now();
	return 0;
}

/* The commands on one semaphore. */
static long sem_one_locked(struct task *t, struct sem_set *s, int index, int cmd, int value)
{
	int err = ipc_permission_locked(&s->obj, t, cmd == SETVAL ? 0222 : 0444);

	if (err)
		return err;
	if (index < 0 || index >= s->count)
		return -EINVAL;
	switch (cmd) {
	case GETVAL:
		return s->sems[index].value;
	case GETPID:
		return s->sems[index].pid;
	case GETNCNT:
		return count_waiters_locked(s, index, false);
	case GETZCNT:
		return count_waiters_locked(s, index, true);
	default:
		return set_value_locked(s, index, t->group->tgid, value);
	}
}

/* GETALL and SETALL; copies to and from the guest are allowed under this lock (PIPE < MM). */
static int sem_all_locked(struct task *t, struct sem_set *s, int cmd, struct gaddr at)
{
	size_t size = (size_t)s->count * sizeof(unsigned short);
	int err = ipc_permission_locked(&s->obj, t, cmd == SETALL ? 0222 : 0444);

	if (err)
		return err;
	unsigned short *v = mem_alloc(size);
	if (!v)
		return -ENOMEM;
	if (cmd == GETALL) {
		for (int i = 0; i < s->count; i++)
			v[i] = (unsigned short)s->sems[i].value;
		err = guest_write(t, at, v, size);
	} else {
		err = guest_read(t, v, at, size);
		for (int i = 0; i < s->count && !err; i++)
			err = v[i] > VALUE_MAX ? -ERANGE : 0;
		for (int i = 0; i < s->count && !err; i++) {
			s->sems[i].value = v[i];
			s->sems[i].pid = t->group->tgid;
		}
		if (!err) {
			undo_clear_locked(s, -1);
			s->changed = ipc_now();
		}
	}
	mem_free(v);
	return err;
}

static long sem_change_locked(struct task *t, struct sem_set *s, int cmd, const struct semid_ds *ds)
{
	int err = ipc_owner_locked(&s->obj, t);

	if (err)
		return err;
	if (cmd == IPC_RMID) {
		ipc_remove_locked(&s->obj);
		return 0;
	}
	ipc_set_perm_locked(&s->obj, &ds->sem_perm);
	s->changed = ipc_now();
	return 0;
}

/* Everything that works on one set. */
static long sem_command(struct task *t, struct ipc_obj *o, int semnum, int cmd, uint64_t arg,
			const struct semid_ds *ds)
{
	struct sem_set *s = to_set(o);
	long ret;

	mutex_lock(&o->mu);
	if (o->removed)
		ret = -EIDRM;
	else if (cmd == GETALL || cmd == SETALL)
		ret = sem_all_locked(t, s, cmd, gaddr(arg));
	else if (cmd == IPC_SET || cmd == IPC_RMID)
		ret = sem_change_locked(t, s, cmd, ds);
	else
		ret = sem_one_locked(t, s, semnum, cmd, (int)arg);
	mutex_unlock(&o->mu);
	if (ret == 0 && (cmd == SETVAL || cmd == SETALL))
		waitq_wake_all(&o->wait, 0);
	if (ret == 0 && cmd == IPC_RMID)
		ipc_obj_put(o); /* the table's */
	return ret;
}

long sys_semctl(struct task *t, int semid, int semnum, int cmd, uint64_t arg)
{
	struct semid_ds ds;
	struct ipc_obj *o;

	if (semid < 0)
		return -EINVAL;
	switch (cmd) {
	case IPC_INFO:
	case SEM_INFO:
		return sem_info(t, cmd, gaddr(arg));
	case IPC_STAT:
	case SEM_STAT:
	case SEM_STAT_ANY:
		return sem_stat(t, semid, cmd, gaddr(arg));
	case IPC_SET:
		if (guest_read(t, &ds, gaddr(arg), sizeof(ds)) != 0)
			return -EFAULT;
		break;
	case GETVAL:
	case GETPID:
	case GETNCNT:
	case GETZCNT:
	case SETVAL:
	case GETALL:
	case SETALL:
	case IPC_RMID:
		break;
	default:
		return -EINVAL;
	}
	int err = ipc_find(&sem_type, semid, &o);
	if (err)
		return err;
	long ret = sem_command(t, o, semnum, cmd, arg, &ds);
	ipc_obj_put(o);
	return ret;
}

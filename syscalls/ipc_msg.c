/* System V message queues: msgget(2), msgop(2), msgctl(2). */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/msg.h>

#include "platform/base/alloc.h"
#include "syscalls/ipc.h"

#define MSG_SIZE_MAX 8192 /* MSGMAX */
#define QUEUE_BYTES 16384 /* MSGMNB */
#define QUEUES_MAX 1024   /* MSGMNI is 32000; a sandbox's queues hold 16 MiB at most */
#define WAKE_SENDER POLLOUT
#define WAKE_RECEIVER POLLIN

struct message {
	struct list link; /* [queue mu] */
	long type;        /* [I] */
	size_t size;      /* [I] */
	char data[];
};

struct msg_queue {
	struct ipc_obj obj;
	struct list messages;           /* [mu] oldest first */
	size_t bytes, count, max_bytes; /* [mu] */
	int last_sender, last_receiver; /* [mu] */
	time_t sent, received, changed; /* [mu] */
};

static const struct ipc_type msg_type;

static struct msg_queue *to_queue(struct ipc_obj *o)
{
	return container_of(o, struct msg_queue, obj);
}

static int msg_create(struct task *t, int key, uint64_t param UNUSED, struct ipc_obj **out)
{
	struct msg_queue *q = mem_zalloc(sizeof(*q));
	if (!q)
		return -ENOMEM;
	ipc_obj_init(&q->obj, &msg_type, key, t);
	list_init(&q->messages);
	q->max_bytes = QUEUE_BYTES;
	q->changed = ipc_now();
	*out = &q->obj;
	return 0;
}

static int msg_check(struct ipc_obj *o UNUSED, uint64_t param UNUSED)
{
	return 0;
}

static void msg_free(struct ipc_obj *o)
{
	struct msg_queue *q = to_queue(o);

	list_for_each_safe(pos, &q->messages)
		mem_free(list_entry(pos, struct message, link));
	ipc_obj_fini(o);
	mem_free(q);
}

static void msg_show(struct ipc_obj *o, struct fmt *out)
{
	struct msg_queue *q = to_queue(o);

	fmt_printf(out,
		   "%10d %10d  %4o  %10lu %10lu %5u %5u %5u %5u %5u %5u %10lld %10lld %10lld\n",
		   o->key, o->id, o->mode & 0777, q->bytes, q->count, (unsigned)q->last_sender,
		   (unsigned)q->last_receiver, o->uid, o->gid, o->cuid, o->cgid, (long long)q->sent,
		   (long long)q->received, (long long)q->changed);
}

static void msg_show_all(struct fmt *out)
{
	ipc_show(&msg_type, out);
}

static struct ipc_table msg_table = { .mu = MUTEX_INIT(RANK_HASH) };
static const struct ipc_type msg_type = {
	.table = &msg_table,
	.limit = QUEUES_MAX,
	.create = msg_create,
	.check = msg_check,
	.free = msg_free,
	.show_locked = msg_show,
	.show_all = msg_show_all,
	.show_kind = SYSVIPC_MSG,
};

long sys_msgget(struct task *t, int key, int msgflg)
{
	return ipc_get(&msg_type, t, key, 0, msgflg);
}

/* ---- sending ------------------------------------------------------------------------------ */

static int message_load(struct task *t, buf_cgp msgp, uint64_t size, struct message **out)
{
	int64_t type;

	if (size > MSG_SIZE_MAX)
		return -EINVAL;
	if (guest_read(t, &type, msgp.addr, sizeof(type)) != 0)
		return -EFAULT;
	if (type < 1)
		return -EINVAL;
	struct message *m = mem_alloc(sizeof(*m) + size);
	if (!m)
		return -ENOMEM;
	list_init(&m->link);
	m->type = type;
	m->size = size;
	if (size && guest_read(t, m->data, gaddr(msgp.addr.va + sizeof(type)), size) != 0) {
		mem_free(m);
		return -EFAULT;
	}
	*out = m;
	return 0;
}

/* Sleeps until woken. These calls are never restarted after a handler (signal(7)). */
static int wait_locked(struct ipc_obj *o, uint32_t mask) NO_LOCK_ANALYSIS
{
	int err = waitq_wait(&o->wait, &o->mu, mask, DEADLINE_NEVER);
	return err == -ERESTARTSYS ? -ERESTARTNOHAND : err;
}

static int send_locked(struct task *t, struct msg_queue *q, struct message *m, int flags)
{
	for (;;) {
		if (q->obj.removed)
			return -EIDRM;
		int err = ipc_permission_locked(&q->obj, t, 0222);
		if (err)
			return err;
		if (q->bytes + m->size <= q->max_bytes && q->count + 1 <= q->max_bytes)
			break;
		err = flags & IPC_NOWAIT ? -EAGAIN : wait_locked(&q->obj, WAKE_SENDER);
		if (err)
			return err;
	}
	list_add_tail(&q->messages, &m->link);
	q->bytes += m->size;
	q->count++;
	q->last_sender = t->group->tgid;
	q->sent = ipc_now();
	return 0;
}

long sys_msgsnd(struct task *t, int msqid, buf_cgp msgp, uint64_t msgsz, int msgflg)
{
	struct message *m;
	struct ipc_obj *o;

	if (msqid < 0)
		return -EINVAL;
	int err = message_load(t, msgp, msgsz, &m);
	if (err)
		return err;
	err = ipc_find(&msg_type, msqid, &o);
	if (err) {
		mem_free(m);
		return err;
	}
	mutex_lock(&o->mu);
	err = send_locked(t, to_queue(o), m, msgflg);
	mutex_unlock(&o->mu);
	if (err)
		mem_free(m);
	else
		waitq_wake_all(&o->wait, WAKE_RECEIVER);
	ipc_obj_put(o);
	return err;
}

/* ---- receiving ---------------------------------------------------------------------------- */

/* The message that `type` and flags choose, or NULL. */
static struct message *choose_locked(struct msg_queue *q, long type, int flags)
{
	struct message *lowest = NULL;
	long index = 0;

	list_for_each(pos, &q->messages) {
		struct message *m = list_entry(pos, struct message, link);
		if (flags & MSG_COPY) {
			if (index++ == type)
				return m;
		} else if (type == 0 || (type > 0 && (m->type == type) == !(flags & MSG_EXCEPT))) {
			return m;
		} else if (type < 0 && m->type <= (type == INT64_MIN ? INT64_MAX : -type) &&
			   (!lowest || m->type < lowest->type)) {
			lowest = m;
		}
	}
	return lowest;
}

/* Takes a message off the queue (or copies it); gives it. */
static int receive_locked(struct task *t, struct msg_queue *q, uint64_t size, long type, int flags,
			  struct message **out)
{
	struct message *m;

	for (;;) {
		if (q->obj.removed)
			return -EIDRM;
		int err = ipc_permission_locked(&q->obj, t, 0444);
		if (err)
			return err;
		m = choose_locked(q, type, flags);
		if (m)
			break;
		err = flags & IPC_NOWAIT ? -ENOMSG : wait_locked(&q->obj, WAKE_RECEIVER);
		if (err)
			return err;
	}
	if (m->size > size && !(flags & MSG_NOERROR))
		return -E2BIG;
	if (flags & MSG_COPY) {
		struct message *copy = mem_alloc(sizeof(*copy) + m->size);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, m, sizeof(*copy) + m->size);
		*out = copy;
		return 0;
	}
	list_del_init(&m->link);
	q->bytes -= m->size;
	q->count--;
	q->last_receiver = t->group->tgid;
	q->received = ipc_now();
	*out = m;
	return 0;
}

long sys_msgrcv(struct task *t, int msqid, buf_gp msgp, uint64_t msgsz, int64_t msgtyp, int msgflg)
{
	struct message *m = NULL;
	struct ipc_obj *o;

	if (msqid < 0 || (int64_t)msgsz < 0)
		return -EINVAL;
	if ((msgflg & MSG_COPY) && ((msgflg & MSG_EXCEPT) || !(msgflg & IPC_NOWAIT)))
		return -EINVAL;
	int err = ipc_find(&msg_type, msqid, &o);
	if (err)
		return err;
	mutex_lock(&o->mu);
	err = receive_locked(t, to_queue(o), msgsz, msgtyp, msgflg, &m);
	mutex_unlock(&o->mu);
	if (!err && !(msgflg & MSG_COPY))
		waitq_wake_all(&o->wait, WAKE_SENDER);
	ipc_obj_put(o);
	if (err)
		return err;
	size_t n = MIN(m->size, msgsz);
	int64_t type = m->type;
	/* The message is gone when it cannot be stored, as on Linux. */
	err = guest_write(t, msgp.addr, &type, sizeof(type));
	if (!err && n)
		err = guest_write(t, gaddr(msgp.addr.va + sizeof(type)), m->data, n);
	mem_free(m);
	return err ? err : (long)n;
}

/* ---- control ------------------------------------------------------------------------------ */

static void fill_locked(struct msg_queue *q, struct msqid_ds *out)
{
	memset(out, 0, sizeof(*out));
	ipc_fill_perm_locked(&q->obj, &out->msg_perm);
	out->msg_stime = q->sent;
	out->msg_rtime = q->received;
	out->msg_ctime = q->changed;
	out->__msg_cbytes = q->bytes;
	out->msg_qnum = q->count;
	out->msg_qbytes = q->max_bytes;
	out->msg_lspid = q->last_sender;
	out->msg_lrpid = q->last_receiver;
}

static int set_locked(struct task *t, struct msg_queue *q, const struct msqid_ds *ds)
{
	if (ds->msg_qbytes > QUEUE_BYTES && !task_capable(t, CAP_SYS_RESOURCE))
		return -EPERM;
	ipc_set_perm_locked(&q->obj, &ds->msg_perm);
	/* The limit on a sandbox's memory holds for the privileged too. */
	q->max_bytes = MIN(ds->msg_qbytes, (msglen_t)(1 << 20));
	q->changed = ipc_now();
	return 0;
}

static long msg_info(struct task *t, int cmd, buf_gp buf)
{
	struct msginfo info = { .msgmap = QUEUE_BYTES,
				.msgmax = MSG_SIZE_MAX,
				.msgmnb = QUEUE_BYTES,
				.msgmni = QUEUES_MAX,
				.msgssz = 16,
				.msgtql = QUEUE_BYTES,
				.msgseg = 0xffff,
				.msgpool = QUEUES_MAX * QUEUE_BYTES / 1024 };
	int used;
	int highest = ipc_highest_index(&msg_type, &used);

	if (cmd == MSG_INFO) {
		info.msgpool = used;
		info.msgmap = info.msgtql = 0;
		for (int i = 0; i <= highest; i++) {
			struct ipc_obj *o;
			if (ipc_find_index(&msg_type, i, &o) != 0)
				continue;
			mutex_lock(&o->mu);
			info.msgmap += (int)to_queue(o)->count;
			info.msgtql += (int)to_queue(o)->bytes;
			mutex_unlock(&o->mu);
			ipc_obj_put(o);
		}
	}
	return guest_write(t, buf.addr, &info, sizeof(info)) ? -EFAULT : highest;
}

static long msg_stat(struct task *t, int id, int cmd, buf_gp buf)
{
	struct msqid_ds ds;
	struct ipc_obj *o;

	int err = cmd == IPC_STAT ? ipc_find(&msg_type, id, &o) : ipc_find_index(&msg_type, id, &o);
	if (err)
		return err;
	mutex_lock(&o->mu);
	if (cmd != MSG_STAT_ANY)
		err = ipc_permission_locked(o, t, 0444);
	if (!err && o->removed)
		err = -EIDRM;
	if (!err)
		fill_locked(to_queue(o), &ds);
	mutex_unlock(&o->mu);
	long ret = cmd == IPC_STAT ? 0 : o->id;
	ipc_obj_put(o);
	if (!err)
		err = guest_write(t, buf.addr, &ds, sizeof(ds));
	return err ? err : ret;
}

long sys_msgctl(struct task *t, int msqid, int cmd, buf_gp buf)
{
	struct msqid_ds ds;
	struct ipc_obj *o;

	if (msqid < 0 || cmd < 0)
		return -EINVAL;
	switch (cmd) {
	case IPC_INFO:
	case MSG_INFO:
		return msg_info(t, cmd, buf);
	case IPC_STAT:
	case MSG_STAT:
	case MSG_STAT_ANY:
		return msg_stat(t, msqid, cmd, buf);
	case IPC_SET:
		if (guest_read(t, &ds, buf.addr, sizeof(ds)) != 0)
			return -EFAULT;
		break;
	case IPC_RMID:
		break;
	default:
		return -EINVAL;
	}
	int err = ipc_find(&msg_type, msqid, &o);
	if (err)
		return err;
	mutex_lock(&o->mu);
	err = o->removed ? -EIDRM : ipc_owner_locked(o, t);
	bool removed = !err && cmd == IPC_RMID;
	if (removed)
		ipc_remove_locked(o);
	else if (!err)
		err = set_locked(t, to_queue(o), &ds);
	mutex_unlock(&o->mu);
	if (!err && cmd == IPC_SET)
		waitq_wake_all(&o->wait, 0);
	if (removed)
		ipc_obj_put(o); /* the table's */
	ipc_obj_put(o);
	return err;
}

/*
 * What System V semaphores, message queues and shared memory share: keys, ids, permissions
 * (sysvipc(7)). An object is found by id in its table, then worked on under its own lock; a removed
 * one stays until the last reference goes.
 */
#pragma once

#include <sys/ipc.h>

#include "sentry/sysvipc.h"
#include "sentry/task.h"
#include "syscalls/handlers.h"

struct ipc_obj {
	struct ref ref;
	struct mutex mu; /* rank PIPE */
	struct waitq wait;
	const struct ipc_type *type; /* [I] */
	int id;                      /* [I] once in the table */
	int key;                     /* [table mu] IPC_PRIVATE: none */
	uint32_t cuid, cgid;         /* [I] */
	uint32_t uid, gid, mode;     /* [mu] */
	bool removed;                /* [mu] */
};

struct ipc_table {
	struct mutex mu;        /* rank HASH */
	struct ipc_obj **slots; /* [mu] referenced */
	unsigned size, used;    /* [mu] */
	unsigned seq;           /* [mu] makes ids of reused slots differ */
};

struct ipc_type {
	struct ipc_table *table;
	unsigned limit; /* objects of one sandbox */
	/* A new object with everything but the base set, for `param` (size, number); -errno. */
	int (*create)(struct task *t, int key, uint64_t param, struct ipc_obj **out);
	/* Does an existing object satisfy param? 0 or -EINVAL. */
	int (*check)(struct ipc_obj *o, uint64_t param);
	void (*free)(struct ipc_obj *o);
	/* One line of /proc/sysvipc; o->mu held. */
	void (*show_locked)(struct ipc_obj *o, struct fmt *out);
	/* The same for all; where the sentry finds it. */
	void (*show_all)(struct fmt *out);
	int show_kind; /* SYSVIPC_* */
};

DECLARE_REF(ipc_obj);
/* Initialises the base with one reference, owner as the caller. */
void ipc_obj_init(struct ipc_obj *o, const struct ipc_type *type, int key, struct task *t);
void ipc_obj_fini(struct ipc_obj *o);
/* semget(2) and kin: the id, -ENOENT, -EEXIST, -EACCES, -ENOSPC, -ENOMEM and what create and check
 * give. */
long ipc_get(const struct ipc_type *type, struct task *t, int key, uint64_t param, int flags);
/* The object of an id, referenced: -EINVAL. */
int ipc_find(const struct ipc_type *type, int id, struct ipc_obj **out) MUST_CHECK;
/* The object in slot `index` (…_STAT commands), referenced: -EINVAL. */
int ipc_find_index(const struct ipc_type *type, int index, struct ipc_obj **out) MUST_CHECK;
/* The highest used slot, 0 when there is none (…_INFO commands), and how many are used. */
int ipc_highest_index(const struct ipc_type *type, int *out_used);
/* May the caller do what `flags` (permission bits) want? o->mu held. 0 or -EACCES. */
int ipc_permission_locked(struct ipc_obj *o, struct task *t, unsigned flags) MUST_CHECK;
/* May the caller change or remove it? o->mu held. 0 or -EPERM. */
int ipc_owner_locked(struct ipc_obj *o, struct task *t) MUST_CHECK;
/* IPC_RMID: takes it out of the table; sleepers find `removed`. o->mu held, dropped and taken
 * again. */
void ipc_remove_locked(struct ipc_obj *o);
void ipc_fill_perm_locked(const struct ipc_obj *o, struct ipc_perm *out);
/* IPC_SET of the owner fields. */
void ipc_set_perm_locked(struct ipc_obj *o, const struct ipc_perm *p);
/* show_all of a type: shows each object that the caller may read. */
void ipc_show(const struct ipc_type *type, struct fmt *out);
/* Real time in seconds, for the time stamps. */
time_t ipc_now(void);

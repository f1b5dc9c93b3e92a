/*
 * THE lock order, outermost first. A thread may take a lock only if every lock it holds has a
 * smaller rank (debug builds abort otherwise). Two locks of one rank need mutex_lock_nested(),
 * whose caller states the order in a comment.
 *
 * Consequences worth remembering:
 *  - a copy to or from guest memory may be made under an inode lock (INODE < MM), but no
 *    file-system lock may be taken while an mm lock is held;
 *  - a wait-queue callback runs under WAITQ and may only wake (SLEEPER) or take EPOLL_READY;
 *  - the fd-table lock is a leaf as far as file operations go: take the reference, drop it, act.
 */
#pragma once

enum lock_rank {
	RANK_CONTROL,     /* whole-sandbox requests: boot, exec from the CLI, shutdown */
	RANK_EXEC,        /* one group's exec / exit serialisation */
	RANK_EPOLL,       /* an epoll set's interest list */
	RANK_FILE_POS,    /* a file's position */
	RANK_MOUNT,       /* the mount tree */
	RANK_RENAME,      /* one file system's rename */
	RANK_INODE,       /* an inode; parent before child, else ascending address */
	RANK_DENTRY,      /* a dentry's or file system's name cache */
	RANK_FILE_LOCKS,  /* POSIX and flock lists of an inode */
	RANK_HOSTPOLL,    /* the set of host streams that are watched; files' own locks inside */
	RANK_CTTY,        /* which session has which controlling terminal */
	RANK_TTY,         /* a terminal and its line discipline */
	RANK_SOCK,        /* a socket; ascending address for two */
	RANK_PIPE,        /* a pipe or other stream buffer */
	RANK_MM,          /* an address space's VMA list */
	RANK_MAPPABLE,    /* what maps a file */
	RANK_FUTEX,       /* a futex bucket; ascending address for two */
	RANK_PLATFORM,    /* platform address spaces and orders */
	RANK_GOFER,       /* the channel to the gofer: one request at a time */
	RANK_TASKS,       /* the task tree, ids, sessions, parent/child links */
	RANK_SIGHAND,     /* signal handlers, pending signals, group state */
	RANK_TASK,        /* a task's own small state */
	RANK_FDTABLE,     /* a descriptor table */
	RANK_FS_CTX,      /* cwd, root, umask */
	RANK_NET,         /* the network stack core */
	RANK_TIMER,       /* the timer heap */
	RANK_WAITQ,       /* a wait queue's list of waiters */
	RANK_EPOLL_READY, /* an epoll set's ready list, taken from wake-up callbacks */
	RANK_SLEEPER,     /* one thread's sleep state */
	RANK_HASH,        /* small tables that call nothing (ids, names) */
	RANK_LOG,         /* the log and the trace output */
	RANK_COUNT
};

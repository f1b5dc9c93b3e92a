/* Shared by the proc_*.c files. Keys of a /proc node: [0] tgid, [1] tid or 0 for the process
 * itself, [2] a descriptor number or what else the row says. */
#pragma once

#include "fs/pseudofs.h"
#include "sentry/task.h"

/* Clock ticks of times(2) and /proc: USER_HZ. */
#define PROC_HZ 100
#define NS_PER_TICK (1000000000u / PROC_HZ)

#define PROC_FILE(n, m, fn)                                                                        \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | (m), .show = (fn)                                   \
	}
#define PROC_TEXT(n, t)                                                                            \
	{                                                                                          \
		.name = (n), .mode = S_IFREG | 0444, .text = (t)                                   \
	}
#define PROC_DIR(n, rows)                                                                          \
	{                                                                                          \
		.name = (n), .mode = S_IFDIR | 0555, .children = (rows)                            \
	}

/* The task that a node is about, referenced; NULL when it has ended. */
struct task *proc_task(const struct pseudo_ref *ref) MUST_CHECK;
/* Its address space, used and referenced (mm_unuse it), when the caller may look into it. 0 with
 * NULL for a zombie; -ESRCH, -EACCES. */
int proc_mm(const struct pseudo_ref *ref, struct mm **out) MUST_CHECK;
/* -EACCES unless the caller may look into the node's task (ptrace(2), PTRACE_MODE_READ). */
int proc_may_look(const struct pseudo_ref *ref) MUST_CHECK;
/* may_open of files that show a process's inside. */
int proc_may_open(const struct pseudo_ref *ref, int flags, const struct cred *c) MUST_CHECK;
/* Owner of the files of a process. */
void proc_task_attr(const struct pseudo_ref *ref, struct fs_stat *st);
/* A decimal number without sign or leading zeros in [0, INT_MAX], or -1. */
int proc_parse_number(const char *name);
/* The caller's root directory, referenced. */
struct path proc_current_root(void);
/* Nanoseconds of the monotonic clock at which the sandbox began. */
uint64_t proc_boot_mono(void);
/* The CPUs of the sandbox as a hexadecimal mask ("3") and as a list ("0-1"), without a newline. */
void proc_show_cpu_mask(struct fmt *out);
void proc_show_cpu_list(struct fmt *out);
bool proc_has_cpu(unsigned cpu);
/* The highest number + 1. */
unsigned proc_cpu_end(void);

/* proc_pid.c: rows of /proc/PID; tid rows below task/. */
extern const struct pseudo_row proc_pid_row, proc_tid_row;
/* proc_stat.c */
int proc_show_stat(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_status(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_statm(const struct pseudo_ref *ref, struct fmt *out);
/* proc_fd.c */
extern const struct pseudo_dir_ops proc_fd_dir, proc_fdinfo_dir, proc_ns_dir;
int proc_readlink_cwd(const struct pseudo_ref *ref, char *buf, size_t size);
int proc_follow_cwd(const struct pseudo_ref *ref, struct path *out);
int proc_readlink_root(const struct pseudo_ref *ref, char *buf, size_t size);
int proc_follow_root(const struct pseudo_ref *ref, struct path *out);
int proc_readlink_exe(const struct pseudo_ref *ref, char *buf, size_t size);
int proc_follow_exe(const struct pseudo_ref *ref, struct path *out);
/* proc_net.c, proc_sysctl.c, proc_host.c: rows ended by one without a name */
extern const struct pseudo_row proc_net_rows[], proc_sys_rows[];
int proc_show_cpuinfo(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_meminfo(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_global_stat(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_uptime(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_loadavg(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_vmstat(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_interrupts(const struct pseudo_ref *ref, struct fmt *out);
int proc_show_config_gz(const struct pseudo_ref *ref, struct fmt *out);

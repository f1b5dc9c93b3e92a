/* The contents of /proc and /sys: proc_files.c and its neighbours. */
#pragma once

#include "fs/vfs.h"

/* Reads what is shown of the host (cpu model, memory size); before the seccomp filter. 0 or -errno.
 */
int proc_capture_host(void) MUST_CHECK;
int procfs_new(struct superblock **out) MUST_CHECK;
int sysfs_new(struct superblock **out) MUST_CHECK;
/* The index-th kind of file system of /proc/filesystems; NULL past the end. */
const char *proc_filesystem(uint32_t index);

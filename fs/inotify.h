/*
 * inotify(7): event queues, watches on inodes, and the notifications that the VFS sends. All
 * fsnotify calls are cheap when nobody watches anything.
 */
#pragma once

#include "fs/vfs.h"

#define INOTIFY_INSTANCES_MAX 1024 /* of the sandbox; Linux: 128 for each user */
/* How many there may be now: /proc/sys/fs/inotify/max_user_instances. */
extern _Atomic int inotify_max_instances;
/* A queue as an open file; flags: IN_NONBLOCK (O_NONBLOCK). Gives. */
int inotify_file_new(unsigned flags, struct file **out) MUST_CHECK;
/* inotify_add_watch(2) on a resolved inode: watch descriptor or -errno; -EINVAL when f is no
 * inotify file. */
int inotify_add(struct file *f, struct inode *ino, uint32_t mask) MUST_CHECK;
int inotify_rm(struct file *f, int wd) MUST_CHECK;
bool file_is_inotify(struct file *f);

/* Tells the watchers of ino. name: the entry concerned, for a directory; else NULL. is_dir adds
 * IN_ISDIR. No lock of rank >= FILE_LOCKS may be held. */
void fsnotify(struct inode *ino, uint32_t mask, uint32_t cookie, const char *name);
/* Tells the watchers of d's inode, and those of its parent with d's name. */
void fsnotify_dentry(struct dentry *d, uint32_t mask);
/* The same for an open file (nameless ones: the inode only). */
void fsnotify_file(struct file *f, uint32_t mask);
/* rename: both directories and the moved inode; a fresh cookie. */
void fsnotify_move(struct inode *old_dir, const char *old_name, struct inode *new_dir,
		   const char *new_name, struct inode *moved);
/* The inode lost its last name and opener: IN_DELETE_SELF, IN_IGNORED. */
void fsnotify_deleted(struct inode *ino);
/* sb is going away: IN_UNMOUNT and IN_IGNORED for its watches. */
void inotify_unmount(struct superblock *sb);

/*
 * /dev: a tmpfs with the usual nodes in it, and what device numbers mean when a node is opened.
 */
#pragma once

#include "fs/vfs.h"

/* Gives a super block of type tmpfs with null zero full random urandom tty console ptmx, the
 * directories pts shm mqueue, and the links fd stdin stdout stderr core. Users may add and remove
 * names. */
int devfs_new(struct superblock **out) MUST_CHECK;
/* The same into the root of an existing, empty, writable super block. */
int devfs_populate(struct superblock *sb) MUST_CHECK;

/*
 * Opens a character device node by its number, whatever file system holds it. -ENXIO when there is
 * no such device; otherwise the device's own errors. Gives.
 */
int chrdev_open(struct inode *ino, int flags, const struct cred *c, struct file **out) MUST_CHECK;

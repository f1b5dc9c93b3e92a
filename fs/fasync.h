/*
 * O_ASYNC: a signal to the file's owner when it becomes readable or writable (fcntl(2), F_SETOWN,
 * F_SETSIG). Pipes, sockets and terminals have it; on other files the flag means nothing.
 */
#pragma once

#include "fs/vfs.h"

/* Switches notification of f; fd is what si_fd will say. 0, -ENOMEM or -EAGAIN (no thread). The
 * caller holds a reference and no lock. */
int fasync_set(struct file *f, int fd, bool on) MUST_CHECK;
/* The last reference of f is going. */
void fasync_file_gone(struct file *f);

/*
 * The terminal from which pinfold was started, as a terminal inside. The host's kernel does the
 * line editing and the echo: modes and sizes are passed on to it. Sessions, process groups and job
 * control are our own.
 */
#pragma once

#include "fs/tty.h"

bool hosttty_is_terminal(int host_fd);
/* Enters the terminal behind host_fd (borrowed) into devpts unless it is there, and gives its name,
 * "/dev/pts/N". 0 or -errno. */
int hosttty_name(int host_fd, char *buf, size_t size) MUST_CHECK;
/* A file without a name over the terminal (borrows host_fd: our own messages may go there too). */
int hosttty_file_new(int host_fd, int flags, struct file **out) MUST_CHECK;
/* Boot, after the first process exists: the terminal (if any stream is one) becomes the controlling
 * terminal of session sid. */
void hosttty_give_to_session(int sid, int pgrp);
/* A signal that the host sent to pinfold because of its terminal (SIGINT, SIGQUIT, SIGTSTP,
 * SIGWINCH, SIGHUP): on to the guest's foreground group. False when there is no such group. */
bool hosttty_signal(int sig);
/* Puts the host's terminal modes back to what they were at start: at exit, and before pinfold stops
 * itself. */
void hosttty_restore(void);
/* After a stop: the guest's modes again. */
void hosttty_resume(void);

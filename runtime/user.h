/* Who calls, and whose homes there are. */
#pragma once

#include "runtime/cli.h"

/*
 * Homes of the caller: HOME of the environment and the one of the password file, with symbolic
 * links resolved as well as not. No entry is "/" and none ends in a slash. Borrowed strings live
 * for ever.
 */
void user_own_homes(struct strings *out);

/* Homes of all other people on the machine: entries of /home, /root, homes of ids from 1000 on. */
void user_other_homes(const struct strings *own, struct strings *out);

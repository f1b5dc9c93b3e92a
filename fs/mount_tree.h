/* Inside view of the mount tree, for fs/mount.c and fs/mount_show.c only. */
#pragma once

#include "fs/mount.h"

void mount_tree_lock(void);
void mount_tree_unlock(void);
/* The next mount in preorder below top (lock held); NULL at the end. */
struct mount *mount_next(struct mount *m, struct mount *top);

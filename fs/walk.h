/* The state of one name resolution: for fs/namei.c, fs/open.c and fs/namei_ops.c only. */
#pragma once

#include "fs/dcache.h"
#include "fs/mount.h"
#include "fs/namei.h"

/* What the last component is; only LAST_NORM is looked up. */
enum last_type { LAST_NORM, LAST_ROOT, LAST_DOT, LAST_DOTDOT };

struct walk_frame {
	const char *rest; /* what follows the symlink's name */
	char *buf;        /* the text that rest points into, NULL for the caller's */
};

struct walk {
	const struct fs_lookup *l;
	struct path root; /* referenced */
	struct path cur;  /* referenced */
	int links;        /* symlinks followed so far */
	char *text;       /* the link body being walked, NULL for the caller's name */
	enum last_type last_type;
	bool last_slash; /* the last component is followed by '/' */
	char last[NAME_LEN_MAX + 1];
	struct dentry *link_dir; /* referenced: where the last symlink was found */
	int depth;
	struct walk_frame stack[SYMLINK_DEPTH_MAX];
};

/* Sets root and start. walk_end must follow in any case. */
int walk_begin(struct walk *w, const struct fs_lookup *l, const char *name) MUST_CHECK;
/* Resolves all but the last component: cur is the directory, last the rest. */
int walk_parent(struct walk *w, const char *name) MUST_CHECK;
void walk_end(struct walk *w);
/* Looks the last component up in cur; gives a dentry, which may be negative. dir->mu must not be
 * held. */
int walk_lookup(struct walk *w, struct dentry **out) MUST_CHECK;
/* The same with cur's inode mu held. */
int walk_lookup_locked(struct dentry *dir, const char *name, struct dentry **out) MUST_CHECK;
/* Steps from cur to d (takes) and into what is mounted there. */
int walk_step(struct walk *w, struct dentry *d) MUST_CHECK;
/* Handles a last component of ".", ".." or "/". */
int walk_dots(struct walk *w) MUST_CHECK;
/* cur is the symlink that was the last component: continues until the next last component.
 * *out_jumped: a magic link, cur is the final object. */
int walk_follow_last(struct walk *w, bool *out_jumped) MUST_CHECK;
/* RESOLVE_BENEATH and IN_ROOT: is the result still inside? */
int walk_complete(struct walk *w) MUST_CHECK;

/* Rules shared by all changes of a directory (path_resolution(7), sticky directories). */
int dir_may_create(struct inode *dir, const struct cred *c) MUST_CHECK;
int dir_may_delete(struct inode *dir, struct dentry *victim, const struct cred *c, bool is_dir)
	MUST_CHECK;
/* Creates a regular file with dir's mu held in place of the negative dentry; gives the new dentry.
 */
int dir_create_locked(struct dentry *dir, struct dentry *negative, uint32_t mode,
		      const struct cred *c, struct dentry **out) MUST_CHECK;
/* mode & ~umask of the lookup's context. */
uint32_t walk_mode(const struct fs_lookup *l, uint32_t mode);

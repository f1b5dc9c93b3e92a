/* The inside of the gofer: what is exported (export.c, hidden.c), its handles, and the answers
 * (serve.c). */
#pragma once

#include "gofer/gofer.h"
#include "gofer/proto.h"
#include "platform/base/types.h"

struct statx;

/* ---- hidden objects ----------------------------------------------------------------------- */

/* The hidden paths as a tree of names. A directory that leads to one has a node; so has each handle
 * to it. */
struct hidden_node {
	struct hidden_node *child, *next;
	struct hidden_node *same; /* of a directory: its node under the first name it was met by;
				     NULL: not looked at */
	bool missing;             /* it did not exist when it was looked at */
	bool terminal;            /* this and all below does not exist */
	char *name;
};

/* Known objects of the tree, so that a rename, a hard link or a bind mount does not uncover them.
 */
struct hidden_id {
	uint64_t dev, ino;
	struct hidden_node *node;
	int fd; /* keeps the number from being used again */
};

struct hidden {
	struct hidden_node root;
	struct hidden_id *ids;
	size_t id_count, id_cap;
};

int hidden_init(struct hidden *h, const char *const *paths, size_t count) MUST_CHECK;
/* Adds paths that do not exist, without looking for them. On an error h is empty. */
int hidden_add_absent(struct hidden *h, const char *const *paths, size_t count) MUST_CHECK;
void hidden_fini(struct hidden *h);
/* The node of an object found as `name` below a directory with node `parent` (either may be NULL).
 * Remembers objects that it knows by name only; fd is the object's, borrowed. */
struct hidden_node *hidden_find(struct hidden *h, struct hidden_node *parent, const char *name,
				uint64_t dev, uint64_t ino, int fd);
/* Is that name in such a directory hidden, whether or not it exists? */
bool hidden_name(const struct hidden_node *parent, const char *name);
/* Is there a hidden object with that number on that device? */
bool hidden_number(const struct hidden *h, uint64_t dev, uint64_t ino);

/* ---- handles ------------------------------------------------------------------------------ */

struct gofer_fid {
	int fd;           /* O_PATH, -1: free */
	int dir_fd;       /* open for listing, -1 */
	uint64_t dir_pos; /* of dir_fd */
	uint64_t dev, ino;
	struct hidden_node *hidden;
	uint32_t type;      /* S_IFMT bits */
	uint32_t next_free; /* index + 1 */
	uint16_t generation;
	uint16_t export;
	bool empty; /* a directory that shows nothing */
};

struct gofer_root {
	int fd; /* O_PATH */
	bool writable;
};

struct gofer {
	struct gofer_root *roots;
	size_t root_count;
	struct gofer_fid *fids;
	uint32_t fid_count, fid_cap, fid_max;
	uint32_t free_fid;  /* index + 1 */
	uint32_t live_fids; /* handles in use */
	uint32_t open_dirs; /* of these with a dir_fd */
	struct hidden hidden;
	uint64_t emptied[3][2]; /* dev and ino of /proc, /sys, /dev */
	bool is_root;
};

/* Takes the descriptors of roots; fid_max bounds the handles. */
int gofer_init(struct gofer *g, const struct gofer_config *cfg, const int *root_fds,
	       uint32_t fid_max) MUST_CHECK;
void gofer_fini(struct gofer *g);

/* A handle for a new descriptor (takes fd, also on error). -EMFILE, -ENOMEM. */
int fid_new(struct gofer *g, int fd, uint16_t export, const struct statx *st, uint32_t *out_id)
	MUST_CHECK;
/* NULL: no such handle. */
struct gofer_fid *fid_get(struct gofer *g, uint32_t id);
void fid_close(struct gofer *g, uint32_t id);
void fid_close_dir(struct gofer *g, struct gofer_fid *f);

/*
 * One step of a walk: opens `name` in the directory and makes a handle of it. -ENOENT also for what
 * is hidden or lies on a file system that is never shown.
 */
int export_step(struct gofer *g, uint32_t dir, const char *name, uint32_t *out_id,
		struct statx *out) MUST_CHECK;
/* The root of an export. */
int export_attach(struct gofer *g, uint32_t index, uint32_t *out_id, struct statx *out) MUST_CHECK;
/* 0 when `name` in the directory may be changed or made; *out_exists tells which. */
int export_check_name(struct gofer *g, const struct gofer_fid *dir, const char *name,
		      bool *out_exists) MUST_CHECK;
void attr_from_statx(struct gofer_attr *a, const struct statx *st, const struct gofer_fid *f);

/* ---- process ------------------------------------------------------------------------------ */

/*
 * Answers one request. reply has room for GOFER_MSG_SIZE bytes; *out_fd is a descriptor to send
 * along (the caller closes it) or -1. Returns the size of the reply, 0 when the request is not even
 * a header.
 */
size_t gofer_handle(struct gofer *g, const void *request, size_t size, void *reply, int *out_fd);
/* Serves until the channel ends. */
void gofer_serve(struct gofer *g, int channel);
/* The stages of giving up rights: see isolate.c. keep: descriptors that stay, ascending. */
int isolate_process(const int *keep, size_t count, int parent_pid, uint32_t *out_fid_max)
	MUST_CHECK;
int isolate_rights(const struct gofer *g) MUST_CHECK;

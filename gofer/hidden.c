/*
 * What does not exist. A hidden path is known in two ways. By name: the directory that leads to it
 * has a node in a tree of names, whatever the directory is called and wherever it lies, so a name
 * that appears later is hidden too. By identity: what existed at the start, or was once met under
 * its name, is known by device and inode number; the gofer holds it open, so the number cannot be
 * used again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "gofer/serve.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "platform/host/host_path.h"

/* Objects remembered at most; a host that makes more of them while the sandbox runs hides those by
 * name. */
#define ID_MAX 1024

static struct hidden_node *find_child(const struct hidden_node *parent, const char *name,
				      size_t len)
{
	for (struct hidden_node *n = parent->child; n; n = n->next)
		if (strncmp(n->name, name, len) == 0 && n->name[len] == 0)
			return n;
	return NULL;
}

static int add_child(struct hidden_node *parent, const char *name, size_t len,
		     struct hidden_node **out)
{
	struct hidden_node *n = mem_zalloc(sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->name = mem_strndup(name, len);
	if (!n->name) {
		mem_free(n);
		return -ENOMEM;
	}
	n->next = parent->child;
	parent->child = n;
	*out = n;
	return 0;
}

static struct hidden_node *find_id(const struct hidden *h, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < h->id_count; i++)
		if (h->ids[i].ino == ino && h->ids[i].dev == dev)
			return h->ids[i].node;
	return NULL;
}

/* Takes fd. Being full or out of memory loses an identity, never a name. */
static void remember(struct hidden *h, struct hidden_node *node, uint64_t dev, uint64_t ino, int fd)
{
	if (h->id_count == h->id_cap && h->id_cap < ID_MAX) {
		size_t cap = h->id_cap ? h->id_cap * 2 : 32;
		struct hidden_id *ids = mem_realloc(h->ids, cap * sizeof(*ids));
		if (ids) {
			h->ids = ids;
			h->id_cap = cap;
		}
	}
	if (h->id_count == h->id_cap) {
		host_close(fd);
		return;
	}
	h->ids[h->id_count++] = (struct hidden_id){ dev, ino, node, fd };
}

/* Remembers what `path` is now; *out_mode is its mode, 0 when there is nothing. The node that
 * identity already had, or `node`. */
static struct hidden_node *note_path(struct hidden *h, struct hidden_node *node, const char *path,
				     int extra, uint32_t *out_mode)
{
	struct statx st;
	int fd = host_open_config_path(path, extra);

	*out_mode = 0;
	if (fd < 0)
		return node;
	if (host_statx_fd(fd, &st) != 0) {
		host_close(fd);
		return node;
	}
	*out_mode = st.stx_mode;
	uint64_t dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	struct hidden_node *known = find_id(h, dev, st.stx_ino);
	if (known) {
		host_close(fd);
		return known;
	}
	remember(h, node, dev, st.stx_ino, fd);
	return node;
}

/* A directory on the way, looked at once however many hidden paths go through it. The same
 * directory by another name is one node for both. */
static struct hidden_node *enter_directory(struct hidden *h, struct hidden_node *node,
					   const char *path)
{
	uint32_t mode;

	if (!node->same) {
		node->same = note_path(h, node, path, 0, &mode);
		node->missing = mode == 0;
	}
	return node->same;
}

/* The hidden object itself: a link and what it leads to. */
static void note_terminal(struct hidden *h, struct hidden_node *node, const char *path)
{
	uint32_t mode;

	node->terminal = true;
	(void)note_path(h, node, path, O_NOFOLLOW, &mode);
	if (S_ISLNK(mode))
		(void)note_path(h, node, path, 0, &mode);
}

/* Adds one absolute path, component by component; what is absent is not looked for. `path` is
 * edited and restored. */
static int add_path(struct hidden *h, char *path, bool absent)
{
	struct hidden_node *node = enter_directory(h, &h->root, "/");
	bool missing = false;
	char *p = path;

	for (;;) {
		while (*p == '/')
			p++;
		size_t len = strcspn(p, "/");
		if (len == 0)
			break;
		struct hidden_node *child = find_child(node, p, len);
		if (!child) {
			int err = add_child(node, p, len, &child);
			if (err)
				return err;
		}
		char *end = p + len;
		bool last = end[strspn(end, "/")] == 0;
		char saved = *end;
		*end = 0;
		node = child;
		/* Below what does not exist nothing can be looked at: names alone are known. */
		if (last && (missing || absent))
			child->terminal = true;
		else if (last)
			note_terminal(h, child, path);
		else if (!missing)
			node = enter_directory(h, child, path);
		missing = missing || (!last && child->missing);
		*end = saved;
		p = end;
	}
	return 0;
}

static int add_paths(struct hidden *h, const char *const *paths, size_t count, bool absent)
{
	for (size_t i = 0; i < count; i++) {
		char *copy = mem_strdup(paths[i]);
		int err = copy ? add_path(h, copy, absent) : -ENOMEM;
		mem_free(copy);
		if (err) {
			hidden_fini(h);
			return err;
		}
	}
	return 0;
}

int hidden_init(struct hidden *h, const char *const *paths, size_t count)
{
	*h = (struct hidden){ 0 };
	return add_paths(h, paths, count, false);
}

int hidden_add_absent(struct hidden *h, const char *const *paths, size_t count)
{
	return add_paths(h, paths, count, true);
}

void hidden_fini(struct hidden *h)
{
	/* Iterative: children are moved up to be freed next. */
	struct hidden_node *list = h->root.child;

	while (list) {
		struct hidden_node *n = list, *tail = n->child;
		list = n->next;
		if (tail) {
			while (tail->next)
				tail = tail->next;
			tail->next = list;
			list = n->child;
		}
		mem_free(n->name);
		mem_free(n);
	}
	for (size_t i = 0; i < h->id_count; i++)
		host_close(h->ids[i].fd);
	mem_free(h->ids);
	*h = (struct hidden){ 0 };
}

struct hidden_node *hidden_find(struct hidden *h, struct hidden_node *parent, const char *name,
				uint64_t dev, uint64_t ino, int fd)
{
	struct hidden_node *n = h->root.child ? find_id(h, dev, ino) : NULL;

	if (n || !parent)
		return n;
	n = find_child(parent, name, strlen(name));
	if (n) {
		int copy = host_dup_cloexec(fd);
		if (copy >= 0)
			remember(h, n, dev, ino, copy);
	}
	return n;
}

bool hidden_name(const struct hidden_node *parent, const char *name)
{
	const struct hidden_node *n = parent ? find_child(parent, name, strlen(name)) : NULL;

	return n && n->terminal;
}

bool hidden_number(const struct hidden *h, uint64_t dev, uint64_t ino)
{
	const struct hidden_node *n = h->root.child ? find_id(h, dev, ino) : NULL;

	return n && n->terminal;
}

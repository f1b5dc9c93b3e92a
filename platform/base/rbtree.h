/*
 * Ordered tree for VMAs and timers: intrusive, the caller compares. Insertion is two steps, as in
 * Linux: walk down to find `parent` and `link`, then rb_insert.
 */
#pragma once

#include "platform/base/types.h"

struct rb_node {
	struct rb_node *parent;
	struct rb_node *left;
	struct rb_node *right;
	bool red;
};

struct rb_root {
	struct rb_node *node;
};

/* Links `n` at *link below `parent` (NULL for the root) and rebalances. */
void rb_insert(struct rb_root *root, struct rb_node *n, struct rb_node *parent,
	       struct rb_node **link);
void rb_erase(struct rb_root *root, struct rb_node *n);
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_last(const struct rb_root *root);
struct rb_node *rb_next(const struct rb_node *n);
struct rb_node *rb_prev(const struct rb_node *n);

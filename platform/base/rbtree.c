/* Red-black tree (Cormen et al., chapter 13) with parent pointers; NULL leaves are black. */
#include "platform/base/rbtree.h"

static bool is_red(const struct rb_node *n)
{
	return n && n->red;
}

/* Puts `b` where `a` hung. */
static void replace_child(struct rb_root *root, struct rb_node *a, struct rb_node *b)
{
	struct rb_node *p = a->parent;

	if (!p)
		root->node = b;
	else if (p->left == a)
		p->left = b;
	else
		p->right = b;
	if (b)
		b->parent = p;
}

static void rotate_left(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *r = n->right;

	n->right = r->left;
	if (r->left)
		r->left->parent = n;
	replace_child(root, n, r);
	r->left = n;
	n->parent = r;
}

static void rotate_right(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *l = n->left;

	n->left = l->right;
	if (l->right)
		l->right->parent = n;
	replace_child(root, n, l);
	l->right = n;
	n->parent = l;
}

void rb_insert(struct rb_root *root, struct rb_node *n, struct rb_node *parent,
	       struct rb_node **link)
{
	*n = (struct rb_node){ .parent = parent, .red = true };
	*link = n;
	while (is_red(n->parent)) {
		struct rb_node *p = n->parent, *g = p->parent;
		bool left = p == g->left;
		struct rb_node *uncle = left ? g->right : g->left;

		if (is_red(uncle)) {
			p->red = uncle->red = false;
			g->red = true;
			n = g;
			continue;
		}
		if (left && n == p->right) {
			rotate_left(root, p);
			p = n;
		} else if (!left && n == p->left) {
			rotate_right(root, p);
			p = n;
		}
		p->red = false;
		g->red = true;
		if (left)
			rotate_right(root, g);
		else
			rotate_left(root, g);
		break;
	}
	root->node->red = false;
}

/* `n` (maybe NULL) below `p` lacks one black node. */
static void erase_fixup(struct rb_root *root, struct rb_node *n, struct rb_node *p)
{
	while (n != root->node && !is_red(n)) {
		bool left = n == p->left;
		struct rb_node *s = left ? p->right : p->left;

		if (is_red(s)) {
			s->red = false;
			p->red = true;
			if (left)
				rotate_left(root, p);
			else
				rotate_right(root, p);
			s = left ? p->right : p->left;
		}
		struct rb_node *near = left ? s->left : s->right;
		struct rb_node *far = left ? s->right : s->left;
		if (!is_red(near) && !is_red(far)) {
			s->red = true;
			n = p;
			p = n->parent;
			continue;
		}
		if (!is_red(far)) {
			near->red = false;
			s->red = true;
			if (left)
				rotate_right(root, s);
			else
				rotate_left(root, s);
			far = s;
			s = near;
		}
		s->red = p->red;
		p->red = false;
		far->red = false;
		if (left)
			rotate_left(root, p);
		else
			rotate_right(root, p);
		n = root->node;
	}
	if (n)
		n->red = false;
}

void rb_erase(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *child, *parent;
	bool black;

	if (n->left && n->right) {
		struct rb_node *next = rb_next(n);
		black = !next->red;
		child = next->right;
		parent = next->parent == n ? next : next->parent;
		if (next->parent != n) {
			replace_child(root, next, child);
			next->right = n->right;
			next->right->parent = next;
		}
		replace_child(root, n, next);
		next->left = n->left;
		next->left->parent = next;
		next->red = n->red;
	} else {
		child = n->left ? n->left : n->right;
		parent = n->parent;
		black = !n->red;
		replace_child(root, n, child);
	}
	if (black)
		erase_fixup(root, child, parent);
}

struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *n = root->node;
	while (n && n->left)
		n = n->left;
	return n;
}

struct rb_node *rb_last(const struct rb_root *root)
{
	struct rb_node *n = root->node;
	while (n && n->right)
		n = n->right;
	return n;
}

struct rb_node *rb_next(const struct rb_node *n)
{
	if (n->right) {
		struct rb_node *r = n->right;
		while (r->left)
			r = r->left;
		return r;
	}
	while (n->parent && n == n->parent->right)
		n = n->parent;
	return n->parent;
}

struct rb_node *rb_prev(const struct rb_node *n)
{
	if (n->left) {
		struct rb_node *l = n->left;
		while (l->right)
			l = l->right;
		return l;
	}
	while (n->parent && n == n->parent->left)
		n = n->parent;
	return n->parent;
}

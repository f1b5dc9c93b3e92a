/* Red-black trees against a sorted array, with the invariants checked after each step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "platform/base/rbtree.h"

#define KEYS 300

struct entry {
	struct rb_node node;
	int key;
	bool in;
};

static struct entry entries[KEYS];
static struct rb_root root;
static uint32_t seed = 12345;

static uint32_t next_random(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static void insert(struct entry *e)
{
	struct rb_node **link = &root.node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = e->key < container_of(parent, struct entry, node)->key ? &parent->left
									      : &parent->right;
	}
	rb_insert(&root, &e->node, parent, link);
	e->in = true;
}

/* The number of black nodes on every path; the test fails when paths differ or two reds meet. */
static int black_height(const struct rb_node *n)
{
	if (!n)
		return 1;
	assert_true(!n->left || n->left->parent == n);
	assert_true(!n->right || n->right->parent == n);
	if (n->red) {
		assert_true(!n->left || !n->left->red);
		assert_true(!n->right || !n->right->red);
	}
	int left = black_height(n->left);
	assert_int_equal(left, black_height(n->right));
	return left + !n->red;
}

static void check_tree(void)
{
	struct rb_node *n = rb_first(&root);

	assert_true(!root.node || (!root.node->red && !root.node->parent));
	black_height(root.node);
	for (int i = 0; i < KEYS; i++) {
		if (!entries[i].in)
			continue;
		assert_ptr_equal(n, &entries[i].node);
		n = rb_next(n);
	}
	assert_null(n);
	n = rb_last(&root);
	for (int i = KEYS - 1; i >= 0; i--) {
		if (!entries[i].in)
			continue;
		assert_ptr_equal(n, &entries[i].node);
		n = rb_prev(n);
	}
	assert_null(n);
}

static void reset(void)
{
	memset(entries, 0, sizeof(entries));
	root = (struct rb_root){ 0 };
	for (int i = 0; i < KEYS; i++)
		entries[i].key = i;
}

static void random_steps(void **state)
{
	(void)state;
	reset();
	for (int step = 0; step < 4000; step++) {
		struct entry *e = &entries[next_random() % KEYS];
		if (e->in) {
			rb_erase(&root, &e->node);
			e->in = false;
		} else {
			insert(e);
		}
		if (step % 7 == 0)
			check_tree();
	}
	check_tree();
}

static void ascending_then_from_both_ends(void **state)
{
	(void)state;
	reset();
	check_tree();
	for (int i = 0; i < KEYS; i++)
		insert(&entries[i]);
	check_tree();
	for (int i = 0; i < KEYS / 2; i++) {
		rb_erase(&root, &entries[i].node);
		entries[i].in = false;
		check_tree();
		rb_erase(&root, &entries[KEYS - 1 - i].node);
		entries[KEYS - 1 - i].in = false;
		check_tree();
	}
	assert_null(root.node);
	assert_null(rb_first(&root));
	assert_null(rb_last(&root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_steps),
		cmocka_unit_test(ascending_then_from_both_ends),
	};
	return cmocka_run_group_tests_name("base_rbtree", tests, NULL, NULL);
}

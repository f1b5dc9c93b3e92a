/* Lists: order, removal while walking, splice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/base/list.h"

struct item {
	int value;
	struct list link;
};

static void expect(struct list *head, const int *want, size_t n)
{
	size_t i = 0;

	list_for_each(l, head) {
		assert_true(i < n);
		assert_int_equal(list_entry(l, struct item, link)->value, want[i]);
		i++;
	}
	assert_int_equal(i, n);
	/* Backwards too. */
	for (struct list *l = head->prev; l != head; l = l->prev)
		assert_int_equal(list_entry(l, struct item, link)->value, want[--i]);
	assert_int_equal(i, 0);
}

static void add_at_both_ends(void **state)
{
	struct list head = LIST_INIT(head);
	struct item a = { .value = 1 }, b = { .value = 2 }, c = { .value = 3 };

	(void)state;
	assert_true(list_empty(&head));
	list_add(&head, &b.link);
	list_add(&head, &a.link);
	list_add_tail(&head, &c.link);
	expect(&head, (int[]){ 1, 2, 3 }, 3);
	assert_int_equal(list_first(&head, struct item, link)->value, 1);
	assert_int_equal(list_last(&head, struct item, link)->value, 3);
	assert_false(list_empty(&head));
}

static void remove_twice(void **state)
{
	struct list head = LIST_INIT(head);
	struct item a = { .value = 1 }, b = { .value = 2 };

	(void)state;
	list_add_tail(&head, &a.link);
	list_add_tail(&head, &b.link);
	list_del_init(&a.link);
	list_del_init(&a.link);
	expect(&head, (int[]){ 2 }, 1);
	list_del_init(&b.link);
	assert_true(list_empty(&head));
}

static void remove_while_walking(void **state)
{
	struct list head = LIST_INIT(head);
	struct item items[6];

	(void)state;
	for (int i = 0; i < 6; i++) {
		items[i].value = i;
		list_add_tail(&head, &items[i].link);
	}
	list_for_each_safe(l, &head) {
		if (list_entry(l, struct item, link)->value % 2)
			list_del_init(l);
	}
	expect(&head, (int[]){ 0, 2, 4 }, 3);
}

static void splice(void **state)
{
	struct list a = LIST_INIT(a), b = LIST_INIT(b);
	struct item x = { .value = 1 }, y = { .value = 2 }, z = { .value = 3 };

	(void)state;
	list_splice_tail(&a, &b);
	assert_true(list_empty(&a));
	list_add_tail(&b, &y.link);
	list_add_tail(&b, &z.link);
	list_add_tail(&a, &x.link);
	list_splice_tail(&a, &b);
	assert_true(list_empty(&b));
	expect(&a, (int[]){ 1, 2, 3 }, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_at_both_ends),
		cmocka_unit_test(remove_twice),
		cmocka_unit_test(remove_while_walking),
		cmocka_unit_test(splice),
	};
	return cmocka_run_group_tests_name("base_list", tests, NULL, NULL);
}

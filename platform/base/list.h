/*
 * Intrusive doubly linked circular list. A head and a link are the same type; an initialised link
 * that is in no list points at itself, so list_del_init is safe to call twice.
 */
#pragma once

#include "platform/base/types.h"

struct list {
	struct list *prev;
	struct list *next;
};

#define LIST_INIT(name)                                                                            \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}

static inline void list_init(struct list *l)
{
	l->prev = l;
	l->next = l;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_insert_between(struct list *n, struct list *prev, struct list *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

/* Adds as the first element. */
static inline void list_add(struct list *head, struct list *n)
{
	list_insert_between(n, head, head->next);
}

/* Adds as the last element. */
static inline void list_add_tail(struct list *head, struct list *n)
{
	list_insert_between(n, head->prev, head);
}

static inline void list_del_init(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

/* Moves all elements of `from` to the end of `to`; `from` is empty afterwards. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)
#define list_last(head, type, member) list_entry((head)->prev, type, member)

/* The body may not remove `pos`; list_for_each_safe allows that. */
#define list_for_each(pos, head)                                                                   \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)
#define list_for_each_safe(pos, head)                                                              \
	for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head);              \
	     pos = pos##_next, pos##_next = pos->next)

/*
 * Bounds-checked reader and writer of bytes that nobody trusts: gofer messages, ELF headers,
 * packets. After the first failure `bad` stays set and every further read gives zeros.
 */
#pragma once

#include <string.h>

#include "platform/base/types.h"

struct reader {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static inline void reader_init(struct reader *r, const void *data, size_t size)
{
	*r = (struct reader){ .p = data, .left = size };
}

/* Copies n bytes and advances; on lack of bytes fills zeros and sets bad. */
static inline void read_bytes(struct reader *r, void *dst, size_t n)
{
	if (r->bad || n > r->left) {
		r->bad = true;
		memset(dst, 0, n);
		return;
	}
	memcpy(dst, r->p, n);
	r->p += n;
	r->left -= n;
}

/* Pointer to n bytes inside the input, or NULL. */
static inline const void *read_span(struct reader *r, size_t n)
{
	if (r->bad || n > r->left) {
		r->bad = true;
		return NULL;
	}
	const void *p = r->p;
	r->p += n;
	r->left -= n;
	return p;
}

#define DEFINE_READ(name, type)                                                                    \
	static inline type read_##name(struct reader *r)                                           \
	{                                                                                          \
		type v;                                                                            \
		read_bytes(r, &v, sizeof(v));                                                      \
		return v;                                                                          \
	}
DEFINE_READ(u8, uint8_t)
DEFINE_READ(u16, uint16_t)
DEFINE_READ(u32, uint32_t)
DEFINE_READ(u64, uint64_t)
#undef DEFINE_READ

struct writer {
	uint8_t *p;
	size_t left;
	bool bad;
};

static inline void writer_init(struct writer *w, void *data, size_t size)
{
	*w = (struct writer){ .p = data, .left = size };
}

static inline void write_bytes(struct writer *w, const void *src, size_t n)
{
	if (w->bad || n > w->left) {
		w->bad = true;
		return;
	}
	memcpy(w->p, src, n);
	w->p += n;
	w->left -= n;
}

#define DEFINE_WRITE(name, type)                                                                   \
	static inline void write_##name(struct writer *w, type v)                                  \
	{                                                                                          \
		write_bytes(w, &v, sizeof(v));                                                     \
	}
DEFINE_WRITE(u8, uint8_t)
DEFINE_WRITE(u16, uint16_t)
DEFINE_WRITE(u32, uint32_t)
DEFINE_WRITE(u64, uint64_t)
#undef DEFINE_WRITE

/*
 * The line discipline (termios(3), n_tty of Linux): what happens to bytes between the driver side
 * of a terminal and the programs that read and write it. Pure state, no lock and no sleep of its
 * own: the terminal's mutex is held around every call.
 */
#pragma once

#include <asm/termbits.h>

#include "platform/base/iov.h"
#include "platform/base/types.h"

#define LDISC_IN_SIZE 4096u   /* longest line, as N_TTY_BUF_SIZE */
#define LDISC_OUT_SIZE 16384u /* power of two */
#define LDISC_ECHO_ROOM 4096u /* of the output buffer kept free for echoes */

/* Events that the caller acts on after a call; bits. */
#define LDISC_SIG_INT 1u
#define LDISC_SIG_QUIT 2u
#define LDISC_SIG_TSTP 4u
#define LDISC_FLUSHED 8u /* both queues were emptied */
#define LDISC_STOPPED 16u
#define LDISC_STARTED 32u

struct ldisc {
	const struct termios2 *tio; /* the terminal's */

	uint8_t in[LDISC_IN_SIZE];
	uint8_t line_end[LDISC_IN_SIZE / 8]; /* bit: this byte ends a line */
	unsigned head, canon_head, tail; /* free-running; canon_head: end of the last whole line */
	bool lnext;                      /* the next byte is literal */
	bool erasing;                    /* inside \…/ of ECHOPRT */
	bool stopped;                    /* by the STOP character or TCXONC */
	unsigned column, canon_column;
	unsigned events; /* LDISC_* since ldisc_take_events */

	uint8_t *out; /* LDISC_OUT_SIZE */
	unsigned out_head, out_tail;
};

/* 0 or -ENOMEM. tio is kept. */
int ldisc_init(struct ldisc *ld, const struct termios2 *tio) MUST_CHECK;
void ldisc_fini(struct ldisc *ld);
/* Linux' defaults for a fresh terminal. */
void termios_init(struct termios2 *tio);

/* Bytes typed on the driver side. How many were taken; fewer when the reader must catch up first.
 */
size_t ldisc_receive(struct ldisc *ld, const uint8_t *data, size_t n);
/* Would ldisc_receive take a byte now? */
bool ldisc_can_receive(const struct ldisc *ld);
/* Bytes that a program wrote; as many as fit, with output processing. */
size_t ldisc_output(struct ldisc *ld, const uint8_t *data, size_t n);
/* Would ldisc_output take a byte now? */
bool ldisc_can_output(const struct ldisc *ld);
/* Bytes waiting for the driver side, and taking them. */
size_t ldisc_out_count(const struct ldisc *ld);
size_t ldisc_out_take(struct ldisc *ld, uint8_t *dst, size_t n);

/* Is there something to read: a whole line, or `min` bytes outside canonical mode? */
bool ldisc_can_read(const struct ldisc *ld, size_t min);
/* Bytes that TIOCINQ reports. */
size_t ldisc_in_count(const struct ldisc *ld);
/* Moves one line, or what there is outside canonical mode. Bytes (0: end of file) or -EFAULT. */
ssize_t ldisc_read(struct ldisc *ld, struct iov_iter *it);
void ldisc_flush_in(struct ldisc *ld);
void ldisc_flush_out(struct ldisc *ld);
/* After tio changed from `old`. */
void ldisc_termios_changed(struct ldisc *ld, const struct termios2 *old);
unsigned ldisc_take_events(struct ldisc *ld);

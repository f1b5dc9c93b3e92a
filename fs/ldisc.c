/*
 * The line discipline: see ldisc.h.
 *
 * Input lives in one ring. Outside canonical mode everything between tail and head may be read. In
 * canonical mode what lies between tail and canon_head is whole lines, and what lies between
 * canon_head and head is the line that is being typed, which ERASE, WERASE and KILL still change.
 * Each byte that ends a line is marked in line_end; an end-of-file character is kept as a marked
 * NUL and never handed out.
 */
#include "fs/ldisc.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"

#define IN_MASK (LDISC_IN_SIZE - 1)
#define OUT_MASK (LDISC_OUT_SIZE - 1)
#define EOF_MARK 0
#define TAB_SIZE 8

static bool iflag(const struct ldisc *ld, tcflag_t f)
{
	return ld->tio->c_iflag & f;
}

static bool oflag(const struct ldisc *ld, tcflag_t f)
{
	return ld->tio->c_oflag & f;
}

static bool lflag(const struct ldisc *ld, tcflag_t f)
{
	return ld->tio->c_lflag & f;
}

/* Is c the control character in slot i? NUL in a slot switches it off. */
static bool is_cc(const struct ldisc *ld, uint8_t c, int i)
{
	return c == ld->tio->c_cc[i] && ld->tio->c_cc[i] != 0;
}

static bool is_continuation(const struct ldisc *ld, uint8_t c)
{
	return iflag(ld, IUTF8) && (c & 0xc0) == 0x80;
}

static bool is_control(uint8_t c)
{
	return c < 0x20 || c == 0x7f;
}

void termios_init(struct termios2 *tio)
{
	static const cc_t cc[] = {
		[VINTR] = 3,     [VQUIT] = 28,   [VERASE] = 127, [VKILL] = 21, [VEOF] = 4,
		[VMIN] = 1,      [VSTART] = 17,  [VSTOP] = 19,   [VSUSP] = 26, [VREPRINT] = 18,
		[VDISCARD] = 15, [VWERASE] = 23, [VLNEXT] = 22,
	};

	*tio = (struct termios2){
		.c_iflag = ICRNL | IXON,
		.c_oflag = OPOST | ONLCR,
		.c_cflag = B38400 | CS8 | CREAD,
		.c_lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
		.c_ispeed = 38400,
		.c_ospeed = 38400,
	};
	memcpy(tio->c_cc, cc, sizeof(cc));
}

int ldisc_init(struct ldisc *ld, const struct termios2 *tio)
{
	*ld = (struct ldisc){ .tio = tio };
	ld->out = mem_alloc(LDISC_OUT_SIZE);
	return ld->out ? 0 : -ENOMEM;
}

void ldisc_fini(struct ldisc *ld)
{
	mem_free(ld->out);
	ld->out = NULL;
}

/* ---- output ------------------------------------------------------------------------------- */

size_t ldisc_out_count(const struct ldisc *ld)
{
	return ld->out_head - ld->out_tail;
}

static size_t out_room(const struct ldisc *ld)
{
	return LDISC_OUT_SIZE - ldisc_out_count(ld);
}

/* Room for one byte more, which becomes at most a tab's width, beside the part kept for echoes. */
bool ldisc_can_output(const struct ldisc *ld)
{
	return !ld->stopped && out_room(ld) >= LDISC_ECHO_ROOM + TAB_SIZE;
}

/* Echoes that find no room are lost, as in Linux. */
static void emit(struct ldisc *ld, uint8_t c)
{
	if (out_room(ld) > 0)
		ld->out[ld->out_head++ & OUT_MASK] = c;
}

static void emit_tab(struct ldisc *ld)
{
	unsigned spaces = TAB_SIZE - (ld->column & (TAB_SIZE - 1));

	ld->column += spaces;
	if ((ld->tio->c_oflag & TABDLY) != XTABS) {
		emit(ld, '\t');
		return;
	}
	while (spaces-- > 0)
		emit(ld, ' ');
}

static void emit_newline(struct ldisc *ld)
{
	if (oflag(ld, ONLRET))
		ld->column = 0;
	if (oflag(ld, ONLCR)) {
		ld->column = 0;
		emit(ld, '\r');
	}
	ld->canon_column = ld->column;
	emit(ld, '\n');
}

static void emit_return(struct ldisc *ld)
{
	if (oflag(ld, ONOCR) && ld->column == 0)
		return;
	if (oflag(ld, OCRNL)) {
		if (oflag(ld, ONLRET))
			ld->canon_column = ld->column = 0;
		emit(ld, '\n');
		return;
	}
	ld->canon_column = ld->column = 0;
	emit(ld, '\r');
}

/* One byte through output processing. */
static void put_processed(struct ldisc *ld, uint8_t c)
{
	if (!oflag(ld, OPOST)) {
		emit(ld, c);
		return;
	}
	switch (c) {
	case '\n':
		emit_newline(ld);
		return;
	case '\r':
		emit_return(ld);
		return;
	case '\t':
		emit_tab(ld);
		return;
	case '\b':
		if (ld->column > 0)
			ld->column--;
		break;
	default:
		if (is_control(c))
			break;
		if (oflag(ld, OLCUC))
			c = (uint8_t)toupper(c);
		if (!is_continuation(ld, c))
			ld->column++;
	}
	emit(ld, c);
}

size_t ldisc_output(struct ldisc *ld, const uint8_t *data, size_t n)
{
	size_t done = 0;

	while (done < n && ldisc_can_output(ld))
		put_processed(ld, data[done++]);
	return done;
}

size_t ldisc_out_take(struct ldisc *ld, uint8_t *dst, size_t n)
{
	size_t have = MIN(n, ldisc_out_count(ld));

	for (size_t i = 0; i < have; i++)
		dst[i] = ld->out[ld->out_tail++ & OUT_MASK];
	return have;
}

/* ---- echo --------------------------------------------------------------------------------- */

static void echo_text(struct ldisc *ld, const char *s)
{
	while (*s)
		put_processed(ld, (uint8_t)*s++);
}

/* A byte as ECHOCTL shows it. */
static void echo_char(struct ldisc *ld, uint8_t c)
{
	if (lflag(ld, ECHOCTL) && is_control(c) && c != '\t') {
		put_processed(ld, '^');
		put_processed(ld, c ^ 0100);
	} else {
		put_processed(ld, c);
	}
}

static void finish_erasing(struct ldisc *ld)
{
	if (ld->erasing) {
		put_processed(ld, '/');
		ld->erasing = false;
	}
}

/* ---- erasing ------------------------------------------------------------------------------ */

static uint8_t in_at(const struct ldisc *ld, unsigned i)
{
	return ld->in[i & IN_MASK];
}

/* Columns that the text before a tab takes since the last tab or the line's begin. */
static unsigned columns_before_tab(const struct ldisc *ld)
{
	unsigned columns = 0;

	for (unsigned i = ld->head; i != ld->canon_head;) {
		uint8_t c = in_at(ld, --i);
		if (c == '\t')
			return columns;
		if (is_control(c))
			columns += lflag(ld, ECHOCTL) ? 2 : 0;
		else if (!is_continuation(ld, c))
			columns++;
	}
	return columns + ld->canon_column;
}

/* Wipes one character off the screen; it has left the buffer already. */
static void echo_wipe(struct ldisc *ld, uint8_t c)
{
	if (c == '\t') {
		unsigned width = TAB_SIZE - (columns_before_tab(ld) & (TAB_SIZE - 1));
		while (width-- > 0)
			put_processed(ld, '\b');
		return;
	}
	if (is_control(c) && !lflag(ld, ECHOCTL))
		return;
	echo_text(ld, is_control(c) ? "\b \b\b \b" : "\b \b");
}

static void echo_erased(struct ldisc *ld, unsigned from, unsigned count, bool by_char)
{
	uint8_t c = in_at(ld, from);

	if (!lflag(ld, ECHO))
		return;
	if (lflag(ld, ECHOPRT)) {
		if (!ld->erasing) {
			put_processed(ld, '\\');
			ld->erasing = true;
		}
		for (unsigned i = 0; i < count; i++)
			echo_char(ld, in_at(ld, from + i));
	} else if (by_char && !lflag(ld, ECHOE)) {
		echo_char(ld, ld->tio->c_cc[VERASE]);
	} else {
		echo_wipe(ld, c);
	}
}

/* The start of the last character of the line (multi-byte with IUTF8). */
static unsigned last_char_start(const struct ldisc *ld)
{
	unsigned i = ld->head;

	do
		i--;
	while (i != ld->canon_head && is_continuation(ld, in_at(ld, i)));
	return i;
}

static void kill_line(struct ldisc *ld)
{
	ld->head = ld->canon_head;
	finish_erasing(ld);
	echo_char(ld, ld->tio->c_cc[VKILL]);
	if (lflag(ld, ECHOK))
		put_processed(ld, '\n');
}

/* ERASE, WERASE or KILL; `slot` is its c_cc index. */
static void erase(struct ldisc *ld, int slot)
{
	bool word_seen = false;

	if (ld->head == ld->canon_head)
		return;
	if (slot == VKILL && !lflag(ld, ECHO)) {
		ld->head = ld->canon_head;
		return;
	}
	if (slot == VKILL && !(lflag(ld, ECHOK) && lflag(ld, ECHOKE) && lflag(ld, ECHOE))) {
		kill_line(ld);
		return;
	}
	while (ld->head != ld->canon_head) {
		unsigned start = last_char_start(ld);
		uint8_t c = in_at(ld, start);
		if (slot == VWERASE) {
			if (isalnum(c) || c == '_' || c >= 0x80)
				word_seen = true;
			else if (word_seen)
				break;
		}
		unsigned count = ld->head - start;
		ld->head = start;
		echo_erased(ld, start, count, slot == VERASE);
		if (slot == VERASE)
			break;
	}
	if (ld->head == ld->canon_head && lflag(ld, ECHO))
		finish_erasing(ld);
}

static void reprint(struct ldisc *ld, uint8_t c)
{
	finish_erasing(ld);
	echo_char(ld, c);
	put_processed(ld, '\n');
	for (unsigned i = ld->canon_head; i != ld->head; i++)
		echo_char(ld, in_at(ld, i));
}

/* ---- input -------------------------------------------------------------------------------- */

static bool is_line_end(const struct ldisc *ld, unsigned i)
{
	return ld->line_end[(i & IN_MASK) / 8] & (1u << (i & 7));
}

static void set_line_end(struct ldisc *ld, unsigned i, bool on)
{
	uint8_t bit = (uint8_t)(1u << (i & 7));
	uint8_t *b = &ld->line_end[(i & IN_MASK) / 8];

	*b = (uint8_t)(on ? *b | bit : *b & ~bit);
}

size_t ldisc_in_count(const struct ldisc *ld)
{
	size_t n = 0;

	if (!lflag(ld, ICANON) || lflag(ld, EXTPROC))
		return ld->head - ld->tail;
	for (unsigned i = ld->tail; i != ld->canon_head; i++)
		n += !(is_line_end(ld, i) && in_at(ld, i) == EOF_MARK);
	return n;
}

static size_t in_room(const struct ldisc *ld)
{
	return LDISC_IN_SIZE - (ld->head - ld->tail);
}

/* The last place is kept for the character that ends a line. */
static void put_input(struct ldisc *ld, uint8_t c)
{
	if (in_room(ld) <= 1) {
		if (iflag(ld, IMAXBEL))
			emit(ld, '\a');
		return;
	}
	set_line_end(ld, ld->head, false);
	ld->in[ld->head++ & IN_MASK] = c;
}

static void put_line_end(struct ldisc *ld, uint8_t c)
{
	if (in_room(ld) == 0)
		return;
	set_line_end(ld, ld->head, true);
	ld->in[ld->head++ & IN_MASK] = c;
	ld->canon_head = ld->head;
}

static void echo_input(struct ldisc *ld, uint8_t c)
{
	if (!lflag(ld, ECHO))
		return;
	finish_erasing(ld);
	if (c == '\n') {
		put_processed(ld, '\n');
		return;
	}
	if (ld->canon_head == ld->head)
		ld->canon_column = ld->column;
	echo_char(ld, c);
}

static void put_echoed(struct ldisc *ld, uint8_t c)
{
	echo_input(ld, c);
	/* PARMRK doubles this byte, so that it differs from a mark. */
	if (c == 0xff && iflag(ld, PARMRK))
		put_input(ld, c);
	put_input(ld, c);
}

/* Editing characters of canonical mode. True when c was one. */
static bool receive_edit(struct ldisc *ld, uint8_t c)
{
	bool extended = lflag(ld, IEXTEN);

	if (is_cc(ld, c, VERASE))
		erase(ld, VERASE);
	else if (is_cc(ld, c, VKILL))
		erase(ld, VKILL);
	else if (extended && is_cc(ld, c, VWERASE))
		erase(ld, VWERASE);
	else if (extended && is_cc(ld, c, VLNEXT)) {
		ld->lnext = true;
		if (lflag(ld, ECHO)) {
			finish_erasing(ld);
			if (lflag(ld, ECHOCTL))
				echo_text(ld, "^\b");
		}
	} else if (extended && lflag(ld, ECHO) && is_cc(ld, c, VREPRINT))
		reprint(ld, c);
	else
		return false;
	return true;
}

/* Characters that end a line in canonical mode. True when c was one. */
static bool receive_line_end(struct ldisc *ld, uint8_t c)
{
	if (c == '\n') {
		if (lflag(ld, ECHO) || lflag(ld, ECHONL)) {
			finish_erasing(ld);
			put_processed(ld, '\n');
		}
		put_line_end(ld, c);
		return true;
	}
	if (is_cc(ld, c, VEOF)) {
		put_line_end(ld, EOF_MARK);
		return true;
	}
	if (is_cc(ld, c, VEOL) || (lflag(ld, IEXTEN) && is_cc(ld, c, VEOL2))) {
		echo_input(ld, c);
		put_line_end(ld, c);
		return true;
	}
	return false;
}

static void start_output(struct ldisc *ld)
{
	if (ld->stopped) {
		ld->stopped = false;
		ld->events |= LDISC_STARTED;
	}
}

static bool receive_flow(struct ldisc *ld, uint8_t c)
{
	if (!iflag(ld, IXON))
		return false;
	if (is_cc(ld, c, VSTART)) {
		start_output(ld);
		return true;
	}
	if (is_cc(ld, c, VSTOP)) {
		if (!ld->stopped)
			ld->events |= LDISC_STOPPED;
		ld->stopped = true;
		return true;
	}
	return false;
}

static bool receive_signal(struct ldisc *ld, uint8_t c)
{
	unsigned event;

	if (!lflag(ld, ISIG))
		return false;
	if (is_cc(ld, c, VINTR))
		event = LDISC_SIG_INT;
	else if (is_cc(ld, c, VQUIT))
		event = LDISC_SIG_QUIT;
	else if (is_cc(ld, c, VSUSP))
		event = LDISC_SIG_TSTP;
	else
		return false;
	ld->events |= event;
	if (!lflag(ld, NOFLSH)) {
		ldisc_flush_in(ld);
		ldisc_flush_out(ld);
		ld->events |= LDISC_FLUSHED;
	}
	if (iflag(ld, IXON))
		start_output(ld);
	if (lflag(ld, ECHO))
		echo_char(ld, c);
	return true;
}

/* CR and NL as c_iflag maps them; false: the byte is dropped. */
static bool map_newline(const struct ldisc *ld, uint8_t *c)
{
	if (*c == '\r') {
		if (iflag(ld, IGNCR))
			return false;
		if (iflag(ld, ICRNL))
			*c = '\n';
	} else if (*c == '\n' && iflag(ld, INLCR)) {
		*c = '\r';
	}
	return true;
}

static void receive_byte(struct ldisc *ld, uint8_t c)
{
	if (iflag(ld, ISTRIP))
		c &= 0x7f;
	if (iflag(ld, IUCLC) && lflag(ld, IEXTEN))
		c = (uint8_t)tolower(c);
	if (ld->lnext) {
		ld->lnext = false;
		put_echoed(ld, c);
		return;
	}
	if (lflag(ld, EXTPROC)) {
		put_echoed(ld, c);
		return;
	}
	if (receive_flow(ld, c) || receive_signal(ld, c))
		return;
	if (ld->stopped && iflag(ld, IXON) && iflag(ld, IXANY))
		start_output(ld);
	if (!map_newline(ld, &c))
		return;
	if (lflag(ld, ICANON) && (receive_edit(ld, c) || receive_line_end(ld, c)))
		return;
	put_echoed(ld, c);
}

/* A reader that has whole lines, or raw bytes, to take makes room later; a line too long does not.
 */
static bool must_wait_for_reader(const struct ldisc *ld)
{
	if (in_room(ld) > 2)
		return false;
	return !lflag(ld, ICANON) || ld->canon_head != ld->tail;
}

bool ldisc_can_receive(const struct ldisc *ld)
{
	return !must_wait_for_reader(ld);
}

size_t ldisc_receive(struct ldisc *ld, const uint8_t *data, size_t n)
{
	size_t i = 0;

	while (i < n && !must_wait_for_reader(ld))
		receive_byte(ld, data[i++]);
	return i;
}

/* ---- reading ------------------------------------------------------------------------------ */

bool ldisc_can_read(const struct ldisc *ld, size_t min)
{
	if (lflag(ld, ICANON) && !lflag(ld, EXTPROC))
		return ld->canon_head != ld->tail;
	return ld->head - ld->tail >= MAX(min, (size_t)1);
}

/* Copies [tail, tail + n) and advances by what was copied. */
static ssize_t copy_in_ring(struct ldisc *ld, struct iov_iter *it, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t at = ld->tail & IN_MASK;
		size_t step = MIN(n - done, LDISC_IN_SIZE - at);
		ssize_t r = iov_copy_to(it, ld->in + at, step);
		if (r < 0)
			return done ? (ssize_t)done : r;
		ld->tail += (unsigned)r;
		done += (size_t)r;
		if ((size_t)r < step)
			break;
	}
	return (ssize_t)done;
}

static ssize_t read_line(struct ldisc *ld, struct iov_iter *it)
{
	size_t n = 0, max = it->count;
	bool ends = false;

	while (n < max && ld->tail + n != ld->canon_head) {
		unsigned i = ld->tail + (unsigned)n;
		if (is_line_end(ld, i)) {
			ends = true;
			break;
		}
		n++;
	}
	unsigned end = ld->tail + (unsigned)n;
	bool is_eof = end != ld->canon_head && is_line_end(ld, end) && in_at(ld, end) == EOF_MARK;
	if (ends && !is_eof)
		n++;
	ssize_t r = copy_in_ring(ld, it, n);
	/* An end-of-file mark right behind the bytes goes with them, also when the buffer is full.
	 */
	if (r == (ssize_t)n && is_eof)
		ld->tail++;
	return r;
}

ssize_t ldisc_read(struct ldisc *ld, struct iov_iter *it)
{
	if (lflag(ld, ICANON) && !lflag(ld, EXTPROC))
		return read_line(ld, it);
	ssize_t r = copy_in_ring(ld, it, MIN((size_t)(ld->head - ld->tail), it->count));
	ld->canon_head = ld->tail;
	return r;
}

void ldisc_flush_in(struct ldisc *ld)
{
	ld->tail = ld->canon_head = ld->head;
	ld->lnext = false;
	ld->erasing = false;
}

void ldisc_flush_out(struct ldisc *ld)
{
	ld->out_tail = ld->out_head;
}

void ldisc_termios_changed(struct ldisc *ld, const struct termios2 *old)
{
	if ((old->c_lflag ^ ld->tio->c_lflag) & (ICANON | EXTPROC)) {
		memset(ld->line_end, 0, sizeof(ld->line_end));
		ld->canon_head = ld->tail;
		/* What was typed in raw mode becomes one readable line. */
		if (lflag(ld, ICANON) && ld->head != ld->tail) {
			set_line_end(ld, ld->head - 1, true);
			ld->canon_head = ld->head;
		}
		ld->erasing = false;
		ld->lnext = false;
	}
	if ((old->c_iflag & IXON) && !iflag(ld, IXON))
		start_output(ld);
}

unsigned ldisc_take_events(struct ldisc *ld)
{
	unsigned e = ld->events;

	ld->events = 0;
	return e;
}

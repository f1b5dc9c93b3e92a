/* The line discipline under any mode and any bytes from both sides: no overrun, and what it counts
 * is so. */
#include <stdint.h>
#include <string.h>

#include "fs/ldisc.h"
#include "platform/base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_modes(struct ldisc *ld, struct termios2 *tio, struct reader *r)
{
	struct termios2 old = *tio;

	tio->c_iflag = read_u32(r);
	tio->c_oflag = read_u32(r);
	tio->c_lflag = read_u32(r);
	read_bytes(r, tio->c_cc, sizeof(tio->c_cc));
	ldisc_termios_changed(ld, &old);
}

static void read_some(struct ldisc *ld, size_t n)
{
	uint8_t buf[256];
	struct iov_iter it;
	size_t before = ldisc_in_count(ld);

	n = MIN(n + 1, sizeof(buf));
	iov_init_host(&it, buf, n, IOV_FILL);
	ssize_t got = ldisc_read(ld, &it);
	if (got < 0 || (size_t)got > n || (size_t)got > before)
		__builtin_trap();
	if (ldisc_in_count(ld) != before - (size_t)got)
		__builtin_trap();
}

/* Each step is a byte that says what, a byte that says how much, and bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ldisc ld;
	struct termios2 tio;
	struct reader r;
	uint8_t out[512];

	termios_init(&tio);
	if (ldisc_init(&ld, &tio))
		return 0;
	reader_init(&r, data, size);
	while (r.left > 1 && !r.bad) {
		uint8_t what = read_u8(&r), n = read_u8(&r);
		const uint8_t *bytes = read_span(&r, MIN((size_t)n, r.left));
		switch (what % 6) {
		case 0:
			set_modes(&ld, &tio, &r);
			break;
		case 1:
			read_some(&ld, n);
			break;
		case 2:
			ldisc_out_take(&ld, out, (size_t)n * 2);
			break;
		case 3:
			/* Many times, so that the rings wrap. */
			for (int i = 0; bytes && i < 40; i++)
				ldisc_receive(&ld, bytes,
					      MIN((size_t)n, (size_t)(data + size - bytes)));
			break;
		case 4:
			for (int i = 0; bytes && i < 40; i++)
				ldisc_output(&ld, bytes,
					     MIN((size_t)n, (size_t)(data + size - bytes)));
			break;
		default:
			if (n & 1)
				ldisc_flush_in(&ld);
			else
				ldisc_flush_out(&ld);
		}
		if (ldisc_out_count(&ld) > LDISC_OUT_SIZE || ld.head - ld.tail > LDISC_IN_SIZE)
			__builtin_trap();
		if (ld.canon_head - ld.tail > ld.head - ld.tail)
			__builtin_trap();
		ldisc_take_events(&ld);
	}
	ldisc_fini(&ld);
	return 0;
}

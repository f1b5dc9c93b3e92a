/*
 * Printing of system calls. Each kind of argument has a printer (sentry/kinds.def); names of flags
 * come from sentry/flags.def. IN arguments are printed before the call, so that what the guest gave
 * is shown even if the call changes it; the rest when the result is known (strace's two phases).
 */
#include "sentry/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/fmt.h"
#include "platform/base/lock.h"
#include "platform/host/host.h"
#include "sentry/flags.h"
#include "sentry/task.h"

#define STR_SHOWN 32 /* bytes of a buffer that are shown, as strace -s */

enum printer {
	P_INT,
	P_UINT,
	P_HEX,
	P_FD,
	P_DIRFD,
	P_ID,
	P_SIG,
	P_MODE,
	P_OFLAGS,
	P_PROT,
	P_MAPFLAGS,
	P_WHENCE,
	P_CLOCK,
	P_CLONEFLAGS,
	P_FUTEXOP,
	P_ADDR,
	P_STR,
	P_BUF,
	P_I32,
	P_I64,
	P_ARGV,
	P_TS,
	P_TV,
	P_STAT,
	P_SIGSET,
	P_RLIMIT,
	P_SOCKADDR,
};

static const struct {
	enum printer printer;
	const char *name;
} kinds[] = {
#define KIND(name, type, printer) { printer, #name },
#define KINDP(name, type, printer) { printer, #name },
#include "sentry/kinds.def"
#undef KIND
#undef KINDP
};

static struct mutex trace_mu = MUTEX_INIT(RANK_LOG);
static int trace_fd = -1;

void trace_init(int fd)
{
	trace_fd = fd;
}

bool trace_on(void)
{
	return trace_fd >= 0;
}

static bool kind_is_out(unsigned kind)
{
	return strstr(kinds[kind].name, "OUT") != NULL;
}

static void print_line(const char *text, size_t len)
{
	mutex_lock(&trace_mu);
	ssize_t r = host_write(trace_fd, text, len);
	if (r < 0)
		trace_fd = -1; /* the reader is gone */
	mutex_unlock(&trace_mu);
}

static void print_string(struct fmt *f, struct task *t, uint64_t addr)
{
	char buf[256];
	path_cgp p = { .addr = gaddr(addr) };
	ssize_t n = guest_load_str(t, buf, sizeof(buf), p);

	if (n >= 0)
		fmt_quote(f, buf, (size_t)n, sizeof(buf));
	else if (n == -ENAMETOOLONG)
		fmt_quote(f, buf, sizeof(buf), sizeof(buf) - 1);
	else
		fmt_printf(f, "%#lx", addr);
}

/* Bytes at addr; how many is told by the result (received) or the next argument (given). */
static void print_buffer(struct fmt *f, struct task *t, uint64_t addr, uint64_t size)
{
	char buf[STR_SHOWN];
	size_t n = MIN(size, sizeof(buf));

	if (guest_read(t, buf, gaddr(addr), n) == 0)
		fmt_quote(f, buf, n, size > n ? n : size);
	else
		fmt_printf(f, "%#lx", addr);
	if (size > n)
		fmt_puts(f, "...");
}

static void print_argv(struct fmt *f, struct task *t, uint64_t addr)
{
	uint64_t p;

	fmt_putc(f, '[');
	for (int i = 0; i < 16; i++) {
		if (guest_read(t, &p, gaddr(addr + 8 * (unsigned)i), 8) || !p)
			break;
		if (i)
			fmt_puts(f, ", ");
		print_string(f, t, p);
	}
	fmt_putc(f, ']');
}

static void print_pair(struct fmt *f, struct task *t, uint64_t addr, const char *a, const char *b)
{
	int64_t w[2];

	if (guest_read(t, w, gaddr(addr), sizeof(w)))
		fmt_printf(f, "%#lx", addr);
	else
		fmt_printf(f, "{%s=%ld, %s=%ld}", a, w[0], b, w[1]);
}

static void print_stat(struct fmt *f, struct task *t, uint64_t addr)
{
	struct stat st;

	if (guest_read(t, &st, gaddr(addr), sizeof(st)))
		fmt_printf(f, "%#lx", addr);
	else
		fmt_printf(f, "{st_mode=%#o, st_size=%ld, ...}", st.st_mode, st.st_size);
}

static void print_word(struct fmt *f, struct task *t, uint64_t addr, size_t size)
{
	int64_t v = 0;

	if (guest_read(t, &v, gaddr(addr), size))
		fmt_printf(f, "%#lx", addr);
	else
		fmt_printf(f, "[%ld]", size == 4 ? (int32_t)v : v);
}

static void print_sigset(struct fmt *f, struct task *t, uint64_t addr)
{
	uint64_t set;

	if (guest_read(t, &set, gaddr(addr), sizeof(set)))
		fmt_printf(f, "%#lx", addr);
	else
		flags_print_sigset(f, set);
}

static void print_address(struct fmt *f, struct task *t, enum printer p, uint64_t addr,
			  uint64_t size)
{
	if (addr == 0) {
		fmt_puts(f, "NULL");
		return;
	}
	switch (p) {
	case P_STR:
		print_string(f, t, addr);
		return;
	case P_BUF:
	case P_SOCKADDR:
		print_buffer(f, t, addr, size);
		return;
	case P_I32:
		print_word(f, t, addr, 4);
		return;
	case P_I64:
		print_word(f, t, addr, 8);
		return;
	case P_ARGV:
		print_argv(f, t, addr);
		return;
	case P_TS:
		print_pair(f, t, addr, "tv_sec", "tv_nsec");
		return;
	case P_TV:
		print_pair(f, t, addr, "tv_sec", "tv_usec");
		return;
	case P_RLIMIT:
		print_pair(f, t, addr, "rlim_cur", "rlim_max");
		return;
	case P_STAT:
		print_stat(f, t, addr);
		return;
	case P_SIGSET:
		print_sigset(f, t, addr);
		return;
	default:
		fmt_printf(f, "%#lx", addr);
	}
}

static void print_value(struct fmt *f, enum printer p, uint64_t v)
{
	switch (p) {
	case P_INT:
		fmt_printf(f, "%ld", (long)v);
		return;
	case P_FD:
		fmt_printf(f, "%d", (int)v);
		return;
	case P_DIRFD:
		if ((int)v == AT_FDCWD)
			fmt_puts(f, "AT_FDCWD");
		else
			fmt_printf(f, "%d", (int)v);
		return;
	case P_UINT:
		fmt_printf(f, "%lu", v);
		return;
	case P_ID:
		fmt_printf(f, "%d", (int)v);
		return;
	case P_MODE:
		fmt_printf(f, "%#o", (unsigned)v);
		return;
	case P_SIG:
		flags_print_signal(f, (int)v);
		return;
	case P_OFLAGS:
		flags_print(f, FLAGS_OPEN, v);
		return;
	case P_PROT:
		flags_print(f, FLAGS_PROT, v);
		return;
	case P_MAPFLAGS:
		flags_print(f, FLAGS_MAP, v);
		return;
	case P_CLONEFLAGS:
		flags_print(f, FLAGS_CLONE, v);
		return;
	case P_WHENCE:
		flags_print(f, FLAGS_WHENCE, v);
		return;
	case P_CLOCK:
		flags_print(f, FLAGS_CLOCK, v);
		return;
	case P_FUTEXOP:
		flags_print(f, FLAGS_FUTEX, v);
		return;
	default:
		fmt_printf(f, "%#lx", v);
	}
}

/* Argument i; `received` is how many bytes the call stored, when known. Arguments narrower than a
 * word are cut as the decoder cuts them. */
static void print_arg(struct fmt *f, struct task *t, const struct syscall_entry *e,
		      const uint64_t args[6], unsigned i, uint64_t received)
{
	enum printer p = kinds[e->arg_kinds[i]].printer;
	uint64_t v = args[i];

	if (i)
		fmt_puts(f, ", ");
	if (e->arg_kinds[i] == ARG_INT || e->arg_kinds[i] == ARG_PID)
		v = (uint64_t)(int64_t)(int32_t)v;
	else if (e->arg_kinds[i] == ARG_UINT)
		v = (uint32_t)v;
	if (p >= P_ADDR)
		print_address(f, t, p, v,
			      kind_is_out(e->arg_kinds[i]) ? received : (i < 5 ? args[i + 1] : 0));
	else
		print_value(f, p, v);
}

/* A builder that goes on where the line ends. One byte is kept for the newline. */
static void line_fmt(struct fmt *f, struct trace_line *l)
{
	*f = (struct fmt){ .buf = l->text, .len = l->len, .cap = sizeof(l->text) - 1 };
}

void trace_enter(struct trace_line *l, struct task *t, const struct syscall_entry *e,
		 const uint64_t args[6])
{
	struct fmt f;

	l->len = 0;
	l->next_arg = 0;
	line_fmt(&f, l);
	fmt_printf(&f, "%d %s(", t->tid, e->name ? e->name : "syscall");
	while (l->next_arg < e->arg_count && !kind_is_out(e->arg_kinds[l->next_arg]))
		print_arg(&f, t, e, args, l->next_arg++, 0);
	l->len = f.len;
}

void trace_exit(struct trace_line *l, struct task *t, const struct syscall_entry *e,
		const uint64_t args[6], long ret)
{
	struct fmt f;

	line_fmt(&f, l);
	while (l->next_arg < e->arg_count) {
		unsigned i = l->next_arg++;
		/* After a failure what the guest was to receive is only an address. */
		if (ret < 0 && ret >= -4095 && kind_is_out(e->arg_kinds[i]) && args[i])
			fmt_printf(&f, "%s%#lx", i ? ", " : "", args[i]);
		else
			print_arg(&f, t, e, args, i, (uint64_t)ret);
	}
	if (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK)
		fmt_puts(&f, ") = ? (interrupted)");
	else if (ret < 0 && ret >= -4095)
		fmt_printf(&f, ") = -1 %s (%s)", strerrorname_np((int)-ret),
			   strerrordesc_np((int)-ret));
	else if (ret > 0xffff || ret < 0)
		fmt_printf(&f, ") = %#lx", ret);
	else
		fmt_printf(&f, ") = %ld", ret);
	l->text[f.len] = '\n';
	print_line(l->text, f.len + 1);
}

void trace_unfinished(struct trace_line *l, struct task *t UNUSED)
{
	struct fmt f;

	line_fmt(&f, l);
	fmt_puts(&f, ") = ?");
	l->text[f.len] = '\n';
	print_line(l->text, f.len + 1);
}

/* Guest memory by process_vm_readv and process_vm_writev, and common checks: see copy.h. */
#include "platform/stub/copy.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "platform/platform.h"
#include "platform/stub/layout.h"

/* The host kernel's own limit for one transfer, rounded down. */
#define CHUNK (1ul << 30)

static ssize_t copy(int pid, void *local, uint64_t addr, size_t n, bool write)
{
	size_t done = 0;

	/* The guest's own part of the address space only: our slots are not its memory. */
	if (addr >= STUB_TASK_MAX)
		return n ? -EFAULT : 0;
	n = MIN(n, STUB_TASK_MAX - addr);
	while (done < n) {
		size_t want = MIN(n - done, CHUNK);
		struct iovec here = { .iov_base = (char *)local + done, .iov_len = want };
		struct iovec there = { .iov_base = (void *)(addr + done), .iov_len = want };
		ssize_t r = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
				  : process_vm_readv(pid, &here, 1, &there, 1, 0);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && done == 0)
			return errno == EFAULT ? -EFAULT : errno == ENOMEM ? -ENOMEM : -ESRCH;
		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

ssize_t stub_copy_in(int pid, void *dst, uint64_t addr, size_t n)
{
	return copy(pid, dst, addr, n, false);
}

ssize_t stub_copy_out(int pid, uint64_t addr, const void *src, size_t n)
{
	/* process_vm_writev wants a writable pointer but only reads from it. */
	union {
		const void *in;
		void *out;
	} u = { .in = src };

	return copy(pid, u.out, addr, n, true);
}

bool stub_range_ok(uint64_t addr, uint64_t size)
{
	return ((addr | size) & ~PAGE_MASK) == 0 && size > 0 && size <= STUB_TASK_MAX &&
	       addr >= STUB_TASK_MIN && addr <= STUB_TASK_MAX - size;
}

bool stub_advice_ok(int advice)
{
	static const uint8_t harmless[] = {
#define ADVICE(name, number) number,
#include "platform/stub/advice.def"
#undef ADVICE
	};

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (harmless[i] == advice)
			return true;
	return false;
}

uint64_t stub_map_flags(unsigned plat_flags)
{
	uint64_t flags = (plat_flags & PLAT_MAP_SHARED) ? MAP_SHARED : MAP_PRIVATE;

	flags |= (plat_flags & PLAT_MAP_NOREPLACE) ? MAP_FIXED_NOREPLACE : MAP_FIXED;
	flags |= (plat_flags & PLAT_MAP_ANON) ? MAP_ANONYMOUS : 0;
	flags |= (plat_flags & PLAT_MAP_NORESERVE) ? MAP_NORESERVE : 0;
	flags |= (plat_flags & PLAT_MAP_POPULATE) ? MAP_POPULATE : 0;
	flags |= (plat_flags & PLAT_MAP_LOCKED) ? MAP_LOCKED : 0;
	return flags;
}

uint64_t stub_remap_flags(uint64_t old_addr, uint64_t new_addr, bool dontunmap)
{
	if (dontunmap)
		return MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	return new_addr == old_addr ? 0 : MREMAP_MAYMOVE | MREMAP_FIXED;
}

/* A relative timeout becomes an absolute one, so that a restart does not lengthen it. */
static bool to_absolute(const struct timespec *rel, struct timespec *out_abs)
{
	struct timespec now;

	if (rel->tv_sec < 0 || rel->tv_nsec < 0 || rel->tv_nsec >= 1000000000)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	out_abs->tv_nsec = now.tv_nsec + rel->tv_nsec;
	int64_t carry = out_abs->tv_nsec >= 1000000000;
	out_abs->tv_nsec -= carry * 1000000000;
	if (__builtin_add_overflow(now.tv_sec + carry, rel->tv_sec, &out_abs->tv_sec))
		out_abs->tv_sec = INT64_MAX;
	return true;
}

int stub_futex_kind(uint64_t args[6], const struct timespec *timeout, struct timespec *out_when)
{
	uint32_t op = (uint32_t)args[1];

	if (args[0] >= STUB_TASK_MAX)
		return -EFAULT;
	switch (op & (uint32_t)FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		if (op & FUTEX_CLOCK_REALTIME)
			return -ENOSYS;
		args[1] = FUTEX_WAIT_BITSET | (op & FUTEX_PRIVATE_FLAG);
		args[5] = FUTEX_BITSET_MATCH_ANY;
		if (timeout && !to_absolute(timeout, out_when))
			return -EINVAL;
		return STUB_FUTEX_WAITS;
	case FUTEX_WAIT_BITSET:
		if (timeout)
			*out_when = *timeout;
		return STUB_FUTEX_WAITS;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_WAKE_OP:
		return args[4] >= STUB_TASK_MAX ? -EFAULT : STUB_FUTEX_PLAIN;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		return STUB_FUTEX_PLAIN;
	default:
		return -ENOSYS;
	}
}

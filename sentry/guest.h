/*
 * Guest addresses are types, not pointers. A guest address can only be used through the functions
 *below; the compiler rejects arithmetic, dereference, storing through an address that the guest
 *only gives, and ignored results.
 *
 *	X_gp   the guest receives here (we store)      X_cgp  the guest gives here (we load)
 *
 * Fetch once: after guest_load the guest's copy is not looked at again in that call.
 */
#pragma once

#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "platform/base/iov.h"
#include "platform/base/types.h"

struct task;

struct gaddr {
	uint64_t va;
};

static inline struct gaddr gaddr(uint64_t va)
{
	return (struct gaddr){ va };
}

static inline bool gaddr_is_null(struct gaddr a)
{
	return a.va == 0;
}

/* Defines name_gp and name_cgp for objects of type T. `type_` exists for the type checker only. */
#define GUEST_PTR(name, T)                                                                         \
	typedef union {                                                                            \
		struct gaddr addr;                                                                 \
		T *type_;                                                                          \
	} name##_gp;                                                                               \
	typedef union {                                                                            \
		struct gaddr addr;                                                                 \
		const T *type_;                                                                    \
	} name##_cgp

/* Kernel ABI structs that the C library lacks or lays out otherwise. */
struct k_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct k_stack {
	uint64_t sp;
	int32_t flags;
	int32_t pad;
	uint64_t size;
};

union k_sigval {
	int32_t i;
	uint64_t ptr;
};

/* siginfo_t of x86-64, by its users (include/uapi/asm-generic/siginfo.h). */
struct k_siginfo {
	int32_t si_signo, si_errno, si_code, pad0;
	union {
		struct {
			int32_t pid;
			uint32_t uid;
			union k_sigval value; /* of rt queue; at offset 24 */
		} rt;
		struct {
			int32_t tid, overrun;
			union k_sigval value;
			int32_t sys_private;
		} timer;
		struct {
			int32_t pid;
			uint32_t uid;
			int32_t status, pad;
			int64_t utime, stime;
		} chld;
		struct {
			uint64_t addr;
			int16_t addr_lsb, pad[3];
			uint64_t lower, upper;
		} fault;
		struct {
			int64_t band;
			int32_t fd;
		} poll;
		struct {
			uint64_t call_addr;
			int32_t syscall;
			uint32_t arch;
		} sys;
		uint8_t raw[112];
	};
};
_Static_assert(sizeof(struct k_siginfo) == 128, "siginfo ABI");

struct k_itimerspec {
	struct timespec interval, value;
};

struct k_sigevent {
	union k_sigval value;
	int32_t signo, notify;
	int32_t tid;
	uint8_t pad[44];
};
_Static_assert(sizeof(struct k_sigevent) == 64, "sigevent ABI");

GUEST_PTR(buf, void);
GUEST_PTR(path, char); /* NUL-terminated strings: paths and others */
GUEST_PTR(i32, int32_t);
GUEST_PTR(u32, uint32_t);
GUEST_PTR(i64, int64_t);
GUEST_PTR(u64, uint64_t);
GUEST_PTR(timespec, struct timespec);
GUEST_PTR(timeval, struct timeval);
GUEST_PTR(timezone, struct timezone);
GUEST_PTR(itimerval, struct itimerval);
GUEST_PTR(itimerspec, struct k_itimerspec);
GUEST_PTR(stat, struct stat);
GUEST_PTR(statx, struct statx);
GUEST_PTR(statfs, struct statfs);
GUEST_PTR(sigset, uint64_t);
GUEST_PTR(sigaction, struct k_sigaction);
GUEST_PTR(siginfo, struct k_siginfo);
GUEST_PTR(sigevent, struct k_sigevent);
GUEST_PTR(stack, struct k_stack);
GUEST_PTR(rlimit, struct rlimit);
GUEST_PTR(rusage, struct rusage);
GUEST_PTR(tms, struct tms);
GUEST_PTR(utsname, struct utsname);
GUEST_PTR(sysinfo, struct sysinfo);
GUEST_PTR(iovec, struct iov_seg);
GUEST_PTR(pollfd, struct pollfd);
GUEST_PTR(fdset, uint64_t);
GUEST_PTR(epevent, struct epoll_event);
GUEST_PTR(msghdr, struct msghdr);
GUEST_PTR(mmsghdr, struct mmsghdr);
_Static_assert(sizeof(struct iov_seg) == sizeof(struct iovec), "struct iovec ABI");

/* Raw copies between the task's memory and ours: 0 or -EFAULT. Use the typed macros. */
int guest_read(struct task *t, void *dst, struct gaddr src, size_t n) MUST_CHECK;
int guest_write(struct task *t, struct gaddr dst, const void *src, size_t n) MUST_CHECK;

/* Loads one object: type of *dst must be the pointee of src (an X_cgp). */
#define guest_load(t, dst, src)                                                                    \
	({                                                                                         \
		_Static_assert(__builtin_types_compatible_p(__typeof__(*(dst)),                    \
							    __typeof__(*(src).type_)) ||           \
				       __builtin_types_compatible_p(const __typeof__(*(dst)),      \
								    __typeof__(*(src).type_)),     \
			       "guest_load: wrong type");                                          \
		guest_read((t), (dst), (src).addr, sizeof(*(dst)));                                \
	})

/* Stores one object through an X_gp. */
#define guest_store(t, dst, src)                                                                   \
	({                                                                                         \
		__typeof__((dst).type_) check_ = 0;                                                \
		_Static_assert(__builtin_types_compatible_p(__typeof__(*(src)),                    \
							    __typeof__(*check_)) ||                \
				       __builtin_types_compatible_p(__typeof__(*(src)),            \
								    const __typeof__(*check_)),    \
			       "guest_store: wrong type");                                         \
		(void)check_;                                                                      \
		guest_write((t), (dst).addr, (src), sizeof(*(src)));                               \
	})

/* n objects; n is bounded by the caller's array. */
#define guest_load_n(t, dst, n, src) guest_read((t), (dst), (src).addr, sizeof(*(dst)) * (n))
#define guest_store_n(t, dst, n, src) guest_write((t), (dst).addr, (src), sizeof(*(src)) * (n))

/* NUL-terminated string: its length, -ENAMETOOLONG when it does not fit cap bytes, -EFAULT. */
ssize_t guest_load_str(struct task *t, char *dst, size_t cap, path_cgp src) MUST_CHECK;
/* A path into a PATH_LEN_MAX buffer from the task's scratch (freed when the call ends); -ENOMEM,
 * -ENAMETOOLONG, -EFAULT. Empty paths are returned as such. */
int guest_load_path(struct task *t, path_cgp src, const char **out_path) MUST_CHECK;
/* Growing structs (openat2, clone3): copies min(ksize, usize), zero-fills, and wants an unknown
 * tail to be zero (-E2BIG). */
int guest_load_ext(struct task *t, void *dst, size_t ksize, buf_cgp src, uint64_t usize) MUST_CHECK;
/* The vector is copied once into *out_segs (scratch) and checked: -EINVAL (count > 1024, negative
 * length), total cut to RW_COUNT_MAX as Linux does, -EFAULT. */
int guest_iter(struct task *t, struct iov_iter *it, iovec_cgp v, uint64_t count, enum iov_dir dir)
	MUST_CHECK;
/* One buffer as an iterator; checks the address range (-EFAULT when it leaves user space). */
int guest_iter_buf(struct task *t, struct iov_iter *it, struct gaddr buf, uint64_t len,
		   enum iov_dir dir) MUST_CHECK;
/* Is [a, a+size) inside user space? */
bool guest_range_ok(struct task *t, struct gaddr a, uint64_t size);
/* The memory of the task as a umem, for ioctls and socket options. */
struct umem guest_umem(struct task *t);

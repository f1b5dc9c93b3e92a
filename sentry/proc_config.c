/*
 * /proc/config.gz: what this kernel has and has not, in the form programs look for when they decide
 * whether to use a feature. Options that we do not list do not exist here. The text is stored in a
 * gzip container (RFC 1952) as uncompressed blocks (RFC 1951): it is small, and so no compressor
 * has to be carried along.
 */
#include <string.h>

#include "sentry/proc_priv.h"

#define STORED_MAX 0xffffu /* bytes in one uncompressed block */
#define CRC_POLY 0xedb88320u

static const char config_text[] = "#\n"
				  "# Automatically generated file; DO NOT EDIT.\n"
				  "# Linux/x86 6.18.0 Kernel Configuration\n"
				  "#\n"
				  "CONFIG_64BIT=y\n"
				  "CONFIG_X86_64=y\n"
				  "CONFIG_X86=y\n"
				  "CONFIG_MMU=y\n"
				  "CONFIG_SMP=y\n"
				  "CONFIG_HZ=100\n"
				  "CONFIG_HZ_100=y\n"
				  "CONFIG_PREEMPT=y\n"
				  "# CONFIG_PREEMPT_RT is not set\n"
				  "CONFIG_MULTIUSER=y\n"
				  "CONFIG_IKCONFIG=y\n"
				  "CONFIG_IKCONFIG_PROC=y\n"
				  "CONFIG_SYSVIPC=y\n"
				  "CONFIG_POSIX_MQUEUE=y\n"
				  "CONFIG_POSIX_TIMERS=y\n"
				  "CONFIG_HIGH_RES_TIMERS=y\n"
				  "CONFIG_CROSS_MEMORY_ATTACH=y\n"
				  "CONFIG_FUTEX=y\n"
				  "CONFIG_EPOLL=y\n"
				  "CONFIG_SIGNALFD=y\n"
				  "CONFIG_TIMERFD=y\n"
				  "CONFIG_EVENTFD=y\n"
				  "CONFIG_ADVISE_SYSCALLS=y\n"
				  "CONFIG_MEMBARRIER=y\n"
				  "CONFIG_KCMP=y\n"
				  "CONFIG_MEMFD_CREATE=y\n"
				  "CONFIG_SHMEM=y\n"
				  "CONFIG_BINFMT_ELF=y\n"
				  "CONFIG_BINFMT_SCRIPT=y\n"
				  "# CONFIG_COREDUMP is not set\n"
				  "CONFIG_UNIX=y\n"
				  "CONFIG_NET=y\n"
				  "CONFIG_UNIX98_PTYS=y\n"
				  "CONFIG_TTY=y\n"
				  "CONFIG_DEVTMPFS=y\n"
				  "CONFIG_TMPFS=y\n"
				  "CONFIG_TMPFS_XATTR=y\n"
				  "CONFIG_OVERLAY_FS=y\n"
				  "CONFIG_PROC_FS=y\n"
				  "CONFIG_PROC_SYSCTL=y\n"
				  "CONFIG_SYSFS=y\n"
				  "CONFIG_FILE_LOCKING=y\n"
				  "CONFIG_INOTIFY_USER=y\n"
				  "# CONFIG_DNOTIFY is not set\n"
				  "# CONFIG_FANOTIFY is not set\n"
				  "# CONFIG_QUOTA is not set\n"
				  "# CONFIG_AIO is not set\n"
				  "# CONFIG_IO_URING is not set\n"
				  "# CONFIG_USERFAULTFD is not set\n"
				  "# CONFIG_NAMESPACES is not set\n"
				  "# CONFIG_CGROUPS is not set\n"
				  "# CONFIG_CHECKPOINT_RESTORE is not set\n"
				  "# CONFIG_NUMA is not set\n"
				  "# CONFIG_SWAP is not set\n"
				  "# CONFIG_KSM is not set\n"
				  "# CONFIG_MEMORY_FAILURE is not set\n"
				  "# CONFIG_HUGETLBFS is not set\n"
				  "# CONFIG_MODULES is not set\n"
				  "# CONFIG_BPF_SYSCALL is not set\n"
				  "# CONFIG_PERF_EVENTS is not set\n"
				  "# CONFIG_SECCOMP is not set\n"
				  "# CONFIG_KEYS is not set\n"
				  "# CONFIG_SECURITY_LANDLOCK is not set\n"
				  "# CONFIG_BSD_PROCESS_ACCT is not set\n"
				  "# CONFIG_RSEQ is not set\n"
				  "# CONFIG_BLK_DEV_LOOP is not set\n"
				  "# CONFIG_TRACING is not set\n"
				  "# CONFIG_KVM is not set\n";

static uint32_t crc32_of(const char *data, size_t size)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < size; i++) {
		crc ^= (uint8_t)data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ CRC_POLY : crc >> 1;
	}
	return ~crc;
}

/* `bytes` bytes of `v`, the lowest first. */
static void put_le(struct fmt *out, uint32_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		fmt_putc(out, (char)(v >> (8 * i)));
}

int proc_show_config_gz(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	/* Magic, method "deflate", no flags, no time, no hint, written on Unix. */
	static const char head[10] = { 0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	uint32_t size = sizeof(config_text) - 1;

	_Static_assert(sizeof(config_text) - 1 <= STORED_MAX, "one block holds the text");
	fmt_write(out, head, sizeof(head));
	fmt_putc(out, 1); /* the last block, stored */
	put_le(out, size, 2);
	put_le(out, ~size, 2);
	fmt_write(out, config_text, size);
	put_le(out, crc32_of(config_text, size), 4);
	put_le(out, size, 4);
	return 0;
}

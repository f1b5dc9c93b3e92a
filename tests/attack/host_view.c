/*
 * What of the host can be seen or reached that is not a file: processes, sockets, descriptors,
 * kernel interfaces. Nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "tests/guest/t.h"

static bool in_sandbox(void)
{
	char text[512] = "";
	int fd = open("/proc/version", O_RDONLY);

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strstr(text, "pinfold") != NULL;
}

static bool listed(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0;
}

/* Signal 0 and the null ptrace request tell whether a process exists. */
TEST(only_own_processes_exist)
{
	char c = 0;
	struct iovec iov = { &c, 1 };
	int found = 0;

	SKIP_IF(!in_sandbox(), "on the host everything is there");
	for (int pid = 1; pid < 40000; pid++) {
		if (kill(pid, 0) != 0 && errno == ESRCH)
			continue;
		CHECK(listed(pid) || kill(pid, 0) != 0);
		found++;
	}
	CHECK(found >= 1 && found < 20);
	CHECK(getppid() < 1000 && getpid() < 1000);
	CHECK_ERR(ptrace(PTRACE_ATTACH, 30000, 0, 0), ESRCH);
	CHECK_ERR(syscall(SYS_pidfd_open, 30000, 0), ESRCH);
	CHECK_ERR(process_vm_readv(30000, &iov, 1, &iov, 1, 0), ESRCH);
}

/* Killing everybody ends the sandbox's processes at most: this one, by itself, is spared. */
TEST(kill_all_reaches_own_processes_only)
{
	SKIP_IF(!in_sandbox(), "not on the host");
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		signal(SIGURG, SIG_IGN);
		_exit(kill(-1, SIGURG) == 0 || errno == ESRCH ? 0 : 1);
	}
	CHECK_CHILD(pid, 0);
}

TEST(no_descriptor_but_the_standard_ones)
{
	struct stat st;
	char path[64], target[256];

	SKIP_IF(!in_sandbox(), "not on the host");
	for (int fd = 3; fd < 4096; fd++)
		CHECK_ERR(fcntl(fd, F_GETFD), EBADF);
	for (int fd = 0; fd < 3; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		/* A descriptor is not opened again with more rights than it has. */
		int flags = fcntl(fd, F_GETFL);
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (flags & O_ACCMODE) == O_RDONLY)
			CHECK(open(path, O_WRONLY) < 0 && open(path, O_RDWR) < 0);
	}
}

static int connect_un(int type, const char *name, size_t len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	CHECK_OK(fd);
	memcpy(a.sun_path, name, len);
	int r = connect(fd, (struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	int err = errno;
	close(fd);
	errno = err;
	return r;
}

TEST(no_host_sockets)
{
	static const char *const paths[] = { "/run/systemd/notify",
					     "/run/systemd/journal/socket",
					     "/run/systemd/journal/dev-log",
					     "/dev/log",
					     "/run/dbus/system_bus_socket",
					     "/var/run/docker.sock",
					     "/run/containerd/containerd.sock",
					     "/run/udev/control",
					     "/tmp/.X11-unix/X0",
					     "/var/run/nscd/socket" };
	static const char *const abstract[] = { "/tmp/.X11-unix/X0",
						"/org/kernel/linux/storage/multipathd",
						"/tmp/dbus-session",
						"ISCSIADM_ABSTRACT_NAMESPACE" };
	char name[108];
	char line[512];

	SKIP_IF(!in_sandbox(), "not on the host");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		CHECK(connect_un(SOCK_STREAM, paths[i], strlen(paths[i]) + 1) < 0);
		CHECK(connect_un(SOCK_DGRAM, paths[i], strlen(paths[i]) + 1) < 0);
	}
	for (size_t i = 0; i < sizeof(abstract) / sizeof(abstract[0]); i++) {
		name[0] = 0;
		memcpy(name + 1, abstract[i], strlen(abstract[i]));
		CHECK_ERR(connect_un(SOCK_STREAM, name, 1 + strlen(abstract[i])), ECONNREFUSED);
	}
	FILE *f = fopen("/proc/net/unix", "r");
	int lines = 0;
	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	CHECK(lines <= 1);
}

TEST(no_raw_network)
{
	SKIP_IF(!in_sandbox(), "not on the host");
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) < 0);
	CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) < 0);
	CHECK(socket(AF_ALG, SOCK_SEQPACKET, 0) < 0);
	CHECK(socket(AF_BLUETOOTH, SOCK_RAW, 0) < 0);
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT) < 0);
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER) < 0);
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) < 0);
}

/* Calls that change or open up a machine. Each must fail, whoever asks. */
TEST(no_power_over_the_machine)
{
	static char page[4096];

	SKIP_IF(!in_sandbox(), "not on the host");
	CHECK(syscall(SYS_init_module, page, sizeof(page), "") < 0);
	CHECK(syscall(SYS_finit_module, 0, "", 0) < 0);
	CHECK(syscall(SYS_delete_module, "ext4", 0) < 0);
	CHECK(syscall(SYS_kexec_load, 0, 0, NULL, 0) < 0);
	CHECK(syscall(SYS_bpf, 0, page, 64) < 0);
	CHECK(syscall(SYS_perf_event_open, page, 0, -1, -1, 0) < 0);
	CHECK(syscall(SYS_iopl, 3) < 0);
	CHECK(syscall(SYS_ioperm, 0x70, 2, 1) < 0);
	CHECK(syscall(SYS_swapon, "/etc/passwd", 0) < 0);
	CHECK(syscall(SYS_quotactl, 0, "/dev/sda", 0, page) < 0);
	CHECK(syscall(SYS_acct, "/tmp/acct") < 0);
	CHECK(syscall(SYS_open_by_handle_at, AT_FDCWD, page, O_RDONLY) < 0);
	CHECK(syscall(SYS_lookup_dcookie, 1L, page, 100L) < 0);
	CHECK(syscall(SYS_io_uring_setup, 8, page) < 0);
	CHECK(syscall(SYS_userfaultfd, 0) < 0);
	CHECK(syscall(SYS_syslog, 3, page, sizeof(page)) <= 0);
	CHECK(syscall(SYS_add_key, "user", "x", "y", 1, -3) < 0);
	CHECK(syscall(SYS_keyctl, 0, -3, 1) < 0);
	CHECK(syscall(SYS_request_key, "user", "x", NULL, -3) < 0);
}

TEST(no_namespaces_of_the_host)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY);

	SKIP_IF(!in_sandbox(), "not on the host");
	if (fd >= 0) {
		CHECK(setns(fd, 0) < 0 || open("/etc/shadow", O_RDONLY) < 0);
		close(fd);
	}
	CHECK(setns(-1, 0) < 0);
}

/* The name of the kernel, its command line and its log say nothing about the host. */
TEST(proc_is_our_own)
{
	static const char *const absent[] = { "/proc/kcore",
					      "/proc/kallsyms",
					      "/proc/iomem",
					      "/proc/ioports",
					      "/proc/kmsg",
					      "/proc/sysrq-trigger",
					      "/proc/acpi",
					      "/proc/bus",
					      "/proc/fb",
					      "/proc/scsi",
					      "/proc/slabinfo",
					      "/proc/timer_list",
					      "/proc/keys",
					      "/proc/kpagemap",
					      "/proc/self/pagemap",
					      "/sys/kernel/debug/tracing",
					      "/sys/firmware/dmi",
					      "/sys/class/dmi",
					      "/sys/fs/bpf",
					      "/sys/kernel/uevent_helper",
					      "/proc/sys/kernel/core_pattern/x" };
	char c;

	SKIP_IF(!in_sandbox(), "not on the host");
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		int fd = open(absent[i], O_RDONLY | O_NONBLOCK);
		if (fd >= 0 && read(fd, &c, 1) > 0)
			FAIL("%s can be read", absent[i]);
		close(fd);
	}
	/* What a container escape writes to: here it has no meaning outside. */
	static const char *const handles[] = { "/proc/sys/kernel/core_pattern",
					       "/proc/sys/kernel/modprobe",
					       "/proc/sys/fs/binfmt_misc/register",
					       "/proc/sys/vm/panic_on_oom",
					       "/sys/fs/cgroup/release_agent" };
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		int fd = open(handles[i], O_WRONLY);
		if (fd >= 0)
			(void)!write(fd, "|/tmp/pwned", 11);
		close(fd);
	}
	CHECK(reboot(0x1234) < 0);
	CHECK(swapoff("/dev/sda1") < 0);
}

T_MAIN

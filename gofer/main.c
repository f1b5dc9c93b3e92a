/*
 * Starting the gofer, and what it does first. The parent opens the roots of the exports, so that an
 * error is known before anything runs; the child inherits them and everything else is closed.
 */
#include <errno.h>
#include <string.h>

#include "gofer/gofer.h"
#include "gofer/serve.h"
#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/host/host.h"
#include "platform/host/host_path.h"
#include "platform/host/host_spawn.h"

#define EXIT_SETUP 125

/* Exports are numbered with 16 bits in a handle. */
#define EXPORT_MAX 4096

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		host_close(fds[i]);
}

static int open_roots(const struct gofer_config *cfg, int *fds)
{
	for (size_t i = 0; i < cfg->export_count; i++) {
		const char *path = cfg->exports[i].host_path;
		int fd = path[0] == '/' ? host_open_config_path(path, 0) : -EINVAL;
		/* Standard descriptors are replaced in the child: keep clear of them. */
		if (fd >= 0 && fd < 3) {
			int high = host_dup_cloexec(fd);
			host_close(fd);
			fd = high;
		}
		if (fd < 0) {
			log_error("cannot show %s inside: %s", path, strerror(-fd));
			close_all(fds, i);
			return -EINVAL;
		}
		fds[i] = fd;
	}
	return 0;
}

static void sort_ints(int *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		int x = v[i];
		size_t j = i;
		for (; j > 0 && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

/* fds: the roots, then the channel. Does not return. */
NORETURN static void gofer_main(const struct gofer_config *cfg, const int *fds, int parent_pid)
{
	static struct gofer g;
	size_t count = cfg->export_count + 1;
	int *keep = mem_alloc(count * sizeof(*keep));
	uint32_t fid_max;

	if (!keep)
		host_exit_now(EXIT_SETUP);
	memcpy(keep, fds, count * sizeof(*keep));
	sort_ints(keep, count);
	int err = isolate_process(keep, count, parent_pid, &fid_max);
	mem_free(keep);
	if (!err)
		err = gofer_init(&g, cfg, fds, fid_max);
	if (!err) {
		g.is_root = host_geteuid() == 0;
		err = isolate_rights(&g);
	}
	if (err) {
		log_error("gofer: cannot start: %s", strerror(-err));
		host_exit_now(EXIT_SETUP);
	}
	gofer_serve(&g, fds[cfg->export_count]);
	host_exit_now(0);
}

int gofer_start(const struct gofer_config *cfg, int *out_fd, int *out_pid)
{
	int pair[2], parent = host_getpid();

	if (cfg->export_count > EXPORT_MAX)
		return -EINVAL;
	/* One more for the channel. */
	int *fds = mem_calloc(cfg->export_count + 1, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	int err = open_roots(cfg, fds);
	if (err)
		goto out_free;
	err = host_seqpacket_pair(pair);
	if (err)
		goto out_close;
	fds[cfg->export_count] = pair[1];
	int pid = host_fork();
	if (pid == 0)
		gofer_main(cfg, fds, parent);
	host_close(pair[1]);
	if (pid < 0) {
		host_close(pair[0]);
		err = pid;
		goto out_close;
	}
	*out_fd = pair[0];
	*out_pid = pid;
out_close:
	close_all(fds, cfg->export_count);
out_free:
	mem_free(fds);
	return err;
}

/*
 * The stages in which the gofer gives up its rights.
 *
 *  1. isolate_process: it must die with the sandbox, share no terminal and no descriptor with
 * anybody but the channel, the roots and standard error. It must still be able to open its
 * configuration.
 *  2. (gofer_init resolves the hidden paths.)
 *  3. isolate_rights: it must not be able to gain rights, to open anything outside the exports
 * (Landlock, where the host has it) or to make a call that is not declared for it. From here it
 * answers requests.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include "gofer/serve.h"
#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/host/host_isolate.h"
#include "platform/host/host_path.h"
#include "platform/host/seccomp.h"

/* Descriptors for the process itself: channel, roots, temporary ones. */
#define FD_RESERVE 64

#define CAP_BIT(c) (1ull << (c))

int isolate_process(const int *keep, size_t count, int parent_pid, uint32_t *out_fid_max)
{
	uint32_t limit = 0;

	int err = host_detach(parent_pid);
	if (!err)
		err = host_close_others(keep, count);
	if (!err)
		err = host_raise_fd_limit(&limit);
	if (!err)
		err = host_enter_fd_dir();
	*out_fid_max = limit > FD_RESERVE * 2 ? limit - FD_RESERVE : FD_RESERVE;
	return err;
}

static bool any_writable(const struct gofer *g)
{
	for (size_t i = 0; i < g->root_count; i++)
		if (g->roots[i].writable)
			return true;
	return false;
}

static int apply_landlock(const struct gofer *g)
{
	int abi = host_landlock_abi();

	/* Version 1 forbids every rename between directories, also inside an export. */
	if (abi == 0 || (abi == 1 && any_writable(g)))
		return 0;
	struct host_landlock_rule *rules = mem_calloc(g->root_count, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < g->root_count; i++) {
		struct statx st;
		int err = host_statx_fd(g->roots[i].fd, &st);
		rules[i] = (struct host_landlock_rule){
			.fd = g->roots[i].fd,
			.is_dir = !err && S_ISDIR(st.stx_mode),
			.writable = g->roots[i].writable,
		};
	}
	int err = host_landlock(abi, rules, g->root_count);
	mem_free(rules);
	return err;
}

int isolate_rights(const struct gofer *g)
{
	/* Root sees and changes what root of the host sees and changes, below the exports; nothing
	 * else of root's power is of use to an opener of files. */
	uint64_t caps = CAP_BIT(CAP_DAC_READ_SEARCH);

	if (any_writable(g))
		caps |= CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_CHOWN) |
			CAP_BIT(CAP_FSETID);
	int err = host_keep_caps(caps);
	if (!err)
		err = host_no_new_privs();
	if (!err)
		err = apply_landlock(g);
	if (!err)
		err = host_confine(HOST_GOFER);
	if (err)
		log_error("gofer: cannot confine itself: error %d", -err);
	return err;
}

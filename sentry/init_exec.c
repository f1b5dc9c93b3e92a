/*
 * Executes the command of the spec as the first process: the search along PATH of execvp(3), its
 * fall-back to the shell for scripts without "#!", and the exit statuses of a shell when that
 * fails.
 */
#include "sentry/init_exec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/base/thread.h"
#include "sentry/onecpu.h"
#include "sentry/task.h"

#define STATUS_SETUP 125
#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND 127

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static const struct sandbox_spec *spec;
static int failure; /* written by the first task before it ends */

int init_exec_failure(void)
{
	return failure;
}

/* All strings of up to two vectors, back to back. */
static char *join(const char *const *a, const char *const *b, int skip_b, size_t *out_size,
		  int *out_count)
{
	const char *const *lists[] = { a, b ? b + skip_b : NULL };
	size_t size = 0;
	char *buf, *p;

	*out_count = 0;
	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; lists[l] && lists[l][i]; i++, (*out_count)++)
			size += strlen(lists[l][i]) + 1;
	buf = p = mem_alloc(size ? size : 1);
	for (size_t l = 0; buf && l < 2; l++)
		for (size_t i = 0; lists[l] && lists[l][i]; i++)
			p = stpcpy(p, lists[l][i]) + 1;
	*out_size = size;
	return buf;
}

static int exec_vector(struct task *t, const char *path, const char *const *head,
		       const char *const *argv, int skip)
{
	struct exec_request req = { .path = path, .lookup_flags = LOOKUP_FOLLOW };
	size_t arg_size, env_size;
	char *args = join(head, argv, skip, &arg_size, &req.argc);
	char *env = join(spec->envp, NULL, 0, &env_size, &req.envc);
	int err = -ENOMEM;

	if (args && env) {
		req.strings_size = arg_size + env_size;
		req.strings = mem_alloc(req.strings_size + 1);
	}
	if (req.strings) {
		memcpy(req.strings, args, arg_size);
		memcpy(req.strings + arg_size, env, env_size);
		err = task_exec(t, &req);
	}
	mem_free(req.strings);
	mem_free(args);
	mem_free(env);
	return err;
}

/* A file that is executable but no known format is a shell script. */
static int exec_path(struct task *t, const char *path)
{
	int err = exec_vector(t, path, NULL, spec->argv, 0);

	if (err == -ENOEXEC) {
		const char *const head[] = { "/bin/sh", path, NULL };
		err = exec_vector(t, "/bin/sh", head, spec->argv, 1);
	}
	return err;
}

static const char *search_path(void)
{
	for (size_t i = 0; spec->envp[i]; i++)
		if (strncmp(spec->envp[i], "PATH=", 5) == 0)
			return spec->envp[i] + 5;
	return DEFAULT_PATH;
}

static int exec_search(struct task *t)
{
	char path[PATH_LEN_MAX];
	const char *name = spec->argv[0];
	int result = -ENOENT;

	if (strchr(name, '/'))
		return exec_path(t, name);
	for (const char *dir = search_path(); *name; dir++) {
		size_t n = strcspn(dir, ":");
		/* An empty element is the working directory. */
		if (snprintf(path, sizeof(path), "%.*s%s%s", (int)n, dir, n ? "/" : "./", name) <
		    (int)sizeof(path)) {
			int err = exec_path(t, path);
			if (err != -ENOENT && err != -ENOTDIR && err != -EACCES)
				return err;
			if (err == -EACCES)
				result = err; /* remembered, as execvp(3) does */
		}
		dir += n;
		if (!*dir)
			break;
	}
	return result;
}

static int enter_cwd(struct task *t)
{
	const struct fs_lookup l = { .ctx = t->fs, .cred = t->cred };
	struct path p;
	int err = path_lookup(&l, spec->cwd, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &p);

	if (err) {
		log_error("working directory %s does not exist inside: %s (choose one with -w)",
			  spec->cwd, strerror(-err));
		return err;
	}
	mutex_lock(&t->fs->mu);
	struct path old = t->fs->cwd;
	t->fs->cwd = p;
	mutex_unlock(&t->fs->mu);
	path_put(old);
	return 0;
}

static int start_command(struct task *t)
{
	if (enter_cwd(t))
		return STATUS_SETUP;
	int err = exec_search(t);
	if (!err)
		return 0;
	log_error("%s: %s", spec->argv[0], err == -ENOENT ? "command not found" : strerror(-err));
	return err == -ENOENT || err == -ENOTDIR ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

static void *init_main(void *arg)
{
	struct task *t = arg;

	set_current_task(t);
	sleeper_set_self(&t->sleeper);
	onecpu_note(gettid());
	failure = start_command(t);
	if (failure)
		task_exit_group(t, failure << 8);
	arena_reset(&t->scratch);
	return task_main(t);
}

int init_exec_start(struct task *init, const struct sandbox_spec *s)
{
	pthread_t thread;

	spec = s;
	task_get(init);
	return thread_start(&thread, init_main, init);
}

/*
 * execve: find the program behind a path (through "#!" lines), build its complete address space
 * beside the old one, and only then pass the point of no return: end the other threads, close
 * descriptors, reset signals, change identity, and switch. Everything that can fail for want of
 * memory or because of a bad file fails before that point, with an errno; after it only death
 * remains.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>

#include "platform/base/alloc.h"
#include "sentry/exec_priv.h"
#include "sentry/exit.h"
#include "sentry/limits.h"
#include "sentry/onecpu.h"
#include "sentry/plat.h"
#include "sentry/stack.h"

#define REWRITES_MAX 5          /* "#!" files in a row */
#define EFLAGS_INITIAL 0x202ull /* interrupts on, and the bit that is always 1 */
#define USER_CS 0x33
#define USER_SS 0x2b
#define SECURE_STACK_LIMIT (8ull << 20)
/* Personality bits that a set-id program does not inherit (PER_CLEAR_ON_SETID). */
#define PERSONALITY_UNSAFE                                                                         \
	(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT | MMAP_PAGE_ZERO)

/* ---- "#!" ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *skip_blanks(char *p, char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

/* First blank or NUL in [p, end), or end. */
static char *word_end(char *p, char *end)
{
	while (p < end && *p && !is_blank(*p))
		p++;
	return p;
}

/* Splits the first line of a script: interpreter and its one optional argument
 * (fs/binfmt_script.c). x->head is changed. -ENOEXEC when there is no interpreter or its name is
 * cut off. */
static int parse_script(char *head, char **out_interp, char **out_arg)
{
	char *limit = head + EXEC_HEAD_SIZE - 1;
	char *end = memchr(head, '\n', EXEC_HEAD_SIZE);

	if (!end) {
		char *name = skip_blanks(head + 2, limit);
		/* Without a newline the name must end inside the buffer, else it may be longer. */
		if (name == limit || word_end(name, limit) == limit)
			return -ENOEXEC;
		end = limit;
	}
	while (end > head + 2 && is_blank(end[-1]))
		end--;
	char *name = skip_blanks(head + 2, end);
	if (name == end || *name == 0)
		return -ENOEXEC;
	char *sep = word_end(name, end);
	*out_arg = NULL;
	if (sep < end && *sep) {
		char *arg = skip_blanks(sep, end);
		if (arg < end && *arg)
			*out_arg = arg;
	}
	*end = 0;
	*sep = 0;
	*out_interp = name;
	return 0;
}

/* argv becomes: interpreter, its argument if any, the script's name, argv[1]… */
static int rewrite_argv(struct exec *x, const char *interp, const char *arg, const char *script)
{
	size_t first = x->argc ? strlen(x->strings) + 1 : 0;
	size_t rest = x->strings_size - first;
	size_t size = strlen(interp) + 1 + (arg ? strlen(arg) + 1 : 0) + strlen(script) + 1 + rest;
	char *n = mem_alloc(size), *p = n;

	if (!n)
		return -ENOMEM;
	p = stpcpy(p, interp) + 1;
	if (arg)
		p = stpcpy(p, arg) + 1;
	p = stpcpy(p, script) + 1;
	memcpy(p, x->strings + first, rest);
	if (x->strings != x->caller_strings)
		mem_free(x->strings);
	x->strings = n;
	x->strings_size = size;
	x->argc += (x->argc ? 0 : 1) + 1 + (arg ? 1 : 0);
	return 0;
}

static int follow_script(struct exec *x, char *script, size_t script_cap)
{
	char *interp, *arg;
	struct file *f;
	int err = parse_script(x->head, &interp, &arg);

	if (err)
		return err;
	if (x->name_vanishes)
		return -ENOENT;
	err = rewrite_argv(x, interp, arg, script);
	if (!err)
		err = exec_open(x->t, NULL, interp, LOOKUP_FOLLOW, &f);
	if (err)
		return err;
	exec_close(x->main.file);
	x->main.file = f;
	strncpy(script, interp, script_cap - 1);
	script[script_cap - 1] = 0;
	return 0;
}

/* Follows "#!" lines until x->main.file is no script. */
static int find_program(struct exec *x)
{
	char *script = mem_strdup(x->name);
	size_t cap = MAX(strlen(x->name) + 1, (size_t)EXEC_HEAD_SIZE);
	int err = script ? 0 : -ENOMEM;

	if (!err) {
		char *bigger = mem_realloc(script, cap);
		err = bigger ? 0 : -ENOMEM;
		script = bigger ? bigger : script;
	}
	for (int depth = 0; !err; depth++) {
		memset(x->head, 0, sizeof(x->head));
		ssize_t r = exec_read(x->main.file, x->head, sizeof(x->head), 0);
		if (r < 0)
			err = (int)r;
		else if (depth > REWRITES_MAX)
			err = -ELOOP;
		else if (x->head[0] != '#' || x->head[1] != '!')
			break;
		else
			err = follow_script(x, script, cap);
	}
	mem_free(script);
	return err;
}

/* ---- before the point of no return ----------------------------------------------------------- */

static int build_stack(struct exec *x)
{
	const struct exec_image *img = &x->main;
	struct stack_spec s = {
		.strings = x->strings,
		.strings_size = x->strings_size,
		.argc = x->argc,
		.envc = x->envc,
		.execfn = x->name,
		.exec_stack = img->elf.exec_stack,
		.randomize = x->randomize,
		.secure = x->secure,
		.cred = x->cred,
		.phdr = img->elf.phdr_addr ? img->elf.phdr_addr + img->bias : 0,
		.phnum = img->header.phnum,
		.base = x->interp.file ? x->interp.bias : 0,
		.entry = img->header.entry + img->bias,
		.top = x->stack_top,
		.rlimit = task_rlimit(x->t, RLIMIT_STACK),
	};

	return stack_build(x->mm, x->ctx, &s, &x->sp);
}

static int open_program(struct exec *x, const struct exec_request *req)
{
	if (req->nameless)
		return exec_open_nameless(x->t, req->nameless, &x->main.file);
	return exec_open(x->t, &req->dir, req->path, req->lookup_flags, &x->main.file);
}

static int prepare(struct exec *x, const struct exec_request *req)
{
	int err = open_program(x, req);

	if (!err)
		err = find_program(x);
	if (!err)
		err = exec_parse(&x->main, x->head, sizeof(x->head), -ENOEXEC);
	if (!err)
		err = exec_find_interp(x);
	if (!err)
		err = exec_new_cred(x);
	if (!err)
		err = exec_map(x);
	if (!err)
		err = build_stack(x);
	return err;
}

static void exec_fini(struct exec *x)
{
	exec_image_fini(&x->main);
	exec_image_fini(&x->interp);
	if (x->strings != x->caller_strings)
		mem_free(x->strings);
	cred_put(x->cred);
	if (x->ctx)
		plat->ctx_free(x->ctx);
	if (x->mm)
		mm_unuse(x->mm);
	mem_free(x);
}

/* ---- other threads -------------------------------------------------------------------------- */

/* Waits until t is the only live thread of its group. -EAGAIN when the group ends meanwhile. */
static int wait_alone(struct task *t) NO_LOCK_ANALYSIS
{
	struct group *g = t->group;
	int err = 0;

	mutex_lock(&tasks_mu);
	while (g->thread_count > 1 && !err) {
		if (!waitq_wait(&g->exit_wait, &tasks_mu, 0, DEADLINE_NEVER))
			continue;
		mutex_unlock(&tasks_mu);
		/* Ordinary signals wait until the new program can see them. */
		if (signal_fatal_pending(t))
			err = -EAGAIN;
		else
			sleeper_clear_interrupt(&t->sleeper);
		mutex_lock(&tasks_mu);
	}
	mutex_unlock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	signal_recalc_locked(t);
	mutex_unlock(&t->sighand->mu);
	return err;
}

/* t takes the place and the id of its dead leader, who is gone afterwards. */
static void become_leader(struct task *t)
{
	struct group *g = t->group;
	struct task *old;

	mutex_lock(&tasks_mu);
	old = g->leader;
	if (old == t) {
		mutex_unlock(&tasks_mu);
		return;
	}
	mutex_lock(&t->sighand->mu);
	pid_exchange_locked(t, old);
	g->leader = t;
	t->start_ns = old->start_ns;
	t->exit_code = 0;
	task_release_locked(old);
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	task_put(old);
}

static int de_thread(struct task *t)
{
	struct group *g = t->group;
	int err = 0;

	mutex_lock(&tasks_mu);
	mutex_lock(&t->sighand->mu);
	if (g->exiting || g->exec_task || t->kill_pending)
		err = -EAGAIN;
	else {
		g->exec_task = t;
		signal_zap_others_locked(g, t);
	}
	mutex_unlock(&t->sighand->mu);
	mutex_unlock(&tasks_mu);
	if (err)
		return err;
	err = wait_alone(t);
	if (!err)
		become_leader(t);
	mutex_lock(&t->sighand->mu);
	g->exec_task = NULL;
	mutex_unlock(&t->sighand->mu);
	return err;
}

/* ---- after it ------------------------------------------------------------------------------- */

static void switch_mm(struct exec *x)
{
	struct task *t = x->t;
	struct plat_ctx *old_ctx = t->ctx;
	struct mm *old_mm = t->mm;

	task_release_futexes(t);
	if (old_mm)
		task_times_fold(t);
	mutex_lock(&t->sighand->mu);
	t->ctx = x->ctx;
	mutex_unlock(&t->sighand->mu);
	mutex_lock(&t->mu);
	t->mm = x->mm;
	mutex_unlock(&t->mu);
	x->ctx = NULL;
	x->mm = NULL;
	/* The first process of the sandbox had none. */
	if (old_mm) {
		plat->ctx_free(old_ctx);
		mm_unuse(old_mm);
	}
	task_vfork_release(t);
	mutex_lock(&tasks_mu);
	t->group->did_exec = true;
	mutex_unlock(&tasks_mu);
}

static void set_identity(struct exec *x)
{
	struct task *t = x->t;
	const struct cred *n = x->cred;
	const char *slash = strrchr(x->name, '/');

	/* Who may only execute a program may not read it out of its memory either. */
	bool readable = inode_permission(file_inode(x->main.file), n, MAY_READ) == 0;
	t->mm->dumpable = readable && n->euid == n->uid && n->egid == n->gid && !x->secure;
	if (x->secure) {
		t->personality &= ~(uint64_t)PERSONALITY_UNSAFE;
		mutex_lock(&tasks_mu);
		t->pdeath_signal = 0;
		mutex_unlock(&tasks_mu);
	}
	mutex_lock(&t->sighand->mu);
	memset(t->comm, 0, sizeof(t->comm));
	strncpy(t->comm, slash ? slash + 1 : x->name, sizeof(t->comm) - 1);
	struct rlimit *stack = &t->group->rlim[RLIMIT_STACK];
	if (x->secure && stack->rlim_cur > SECURE_STACK_LIMIT)
		stack->rlim_cur = SECURE_STACK_LIMIT;
	mutex_unlock(&t->sighand->mu);
	t->securebits_keep_caps = false;
	x->cred = NULL;
	task_set_cred(t, n);
}

static void set_regs(struct exec *x)
{
	x->t->regs = (struct regs){
		.rip = x->entry,
		.rsp = x->sp,
		.eflags = EFLAGS_INITIAL,
		.cs = USER_CS,
		.ss = USER_SS,
		.orig_rax = UINT64_MAX,
	};
	x->t->regs_replaced = true;
}

/* The point of no return lies behind: an error means death. */
static int commit(struct exec *x)
{
	struct task *t = x->t;
	int err = task_unshare_files(t);

	if (err)
		return err;
	switch_mm(x);
	set_identity(x);
	fd_close_on_exec(t->files);
	signal_on_exec(t);
	set_regs(x);
	return 0;
}

static int check_size(struct exec *x)
{
	uint64_t limit = MIN(task_rlimit(x->t, RLIMIT_STACK) / 4, (uint64_t)(6u << 20));
	uint64_t vectors = ((uint64_t)x->argc + (uint64_t)x->envc) * 8;

	limit = MAX(limit, (uint64_t)ARG_STR_MAX);
	return x->strings_size + vectors > limit ? -E2BIG : 0;
}

int task_exec(struct task *t, struct exec_request *req)
{
	uint64_t old_personality = t->personality;
	struct exec *x = mem_zalloc(sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->t = t;
	x->name = req->name ? req->name : req->path;
	x->name_vanishes = req->name_vanishes;
	x->strings = x->caller_strings = req->strings;
	x->strings_size = req->strings_size;
	x->argc = req->argc;
	x->envc = req->envc;
	x->randomize = !(t->personality & ADDR_NO_RANDOMIZE);
	/* A 64-bit program starts without it, and its mappings are made now. */
	t->personality &= ~(uint64_t)READ_IMPLIES_EXEC;
	int err = check_size(x);
	/* Another program than the first one comes. */
	if (t->mm)
		onecpu_end();
	if (!err && req->check_only) {
		err = open_program(x, req);
		exec_fini(x);
		t->personality = old_personality;
		return err;
	}
	if (!err)
		err = prepare(x, req);
	if (!err)
		err = de_thread(t);
	bool dead = !err && commit(x);
	if (err)
		t->personality = old_personality;
	exec_fini(x);
	if (dead)
		task_exit_group(t, SIGKILL);
	return err;
}

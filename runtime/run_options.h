/*
 * The options of `pinfold run` as parsed, and what is made of them. The rows are in options.def.
 */
#pragma once

#include "runtime/cli.h"
#include "sentry/boot.h"

#define PIDS_DEFAULT 2048

/* Most trees that the command line can name. */
#define VIEWS_MAX 128

struct run_options {
	struct view views[VIEWS_MAX]; /* [0] is the root */
	size_t view_count;
	struct strings show; /* --show, absolute */
	struct strings env;  /* "NAME=VALUE" set by -e, later ones win; names passed by -e NAME are
				resolved */
	bool env_all;
	const char *workdir; /* -w or NULL */
	const char *platform;
	const char *hostname;
	uint64_t memory;
	uint64_t pids;
	uint64_t timeout_ns;
	int trace_fd;
	bool help; /* --help was seen */
};

void run_options_init(struct run_options *o);
/*
 * Parses argv[1..]; *out_first is the index of the command. 0, or EXIT_SETUP after an error line.
 */
int run_options_parse(struct run_options *o, int argc, char **argv, int *out_first) MUST_CHECK;
void run_options_print(void);

/* runtime/hidden.c: the host paths to hide; those that do not exist now come in *absent. 0 or
 * EXIT_SETUP after an error line. */
int hidden_paths(const struct run_options *o, const char *cwd, struct strings *out,
		 struct strings *absent) MUST_CHECK;
/* runtime/env.c: the environment of the first process; cwd becomes PWD. */
void build_environment(const struct run_options *o, const char *cwd, struct strings *out);

/*
 * Homes, read from the password file by ourselves: the binary is static, and name services would
 * load libraries of the host into it.
 */
#include "runtime/user.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"

#define FIRST_PERSON 1000u /* ids below belong to services (login.defs UID_MIN) */
#define NOBODY 65534u

/* Adds an absolute path without its last slashes; "/" and relative ones name no home. */
static void add_home(struct strings *l, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (path[0] != '/' || n < 2)
		return;
	char *copy = cli_printf("%.*s", (int)n, path);
	if (!strings_has(l, copy))
		strings_add(l, copy);
	char *real = realpath(copy, NULL);
	if (real && strcmp(real, "/") != 0 && !strings_has(l, real))
		strings_add(l, cli_strdup(real));
	free(real);
}

typedef void passwd_fn(struct strings *l, const struct strings *own, unsigned uid,
		       const char *home);

/* Calls fn for each well-formed line of the password file. */
static void for_each_passwd(passwd_fn *fn, struct strings *l, const struct strings *own)
{
	FILE *f = fopen("/etc/passwd", "re");
	char line[1024];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *field[7], *rest = line;
		size_t n = 0;
		while (n < ARRAY_SIZE(field) && rest)
			field[n++] = strsep(&rest, ":\n");
		uint64_t uid;
		if (n >= 6 && parse_count(field[2], UINT32_MAX, &uid))
			fn(l, own, (unsigned)uid, field[5]);
	}
	fclose(f);
}

static void add_if_mine(struct strings *l, const struct strings *own UNUSED, unsigned uid,
			const char *home)
{
	if (uid == getuid())
		add_home(l, home);
}

void user_own_homes(struct strings *out)
{
	const char *home = getenv("HOME");

	if (home)
		add_home(out, home);
	for_each_passwd(add_if_mine, out, NULL);
}

/* A home that holds one of the caller's own, or lies in it, cannot be hidden as somebody else's. */
static bool touches_own(const struct strings *own, const char *path)
{
	for (size_t i = 0; i < own->count; i++)
		if (path_is_below(own->item[i], path) || path_is_below(path, own->item[i]))
			return true;
	return false;
}

static void add_other(struct strings *l, const struct strings *own, const char *home)
{
	if (!touches_own(own, home))
		add_home(l, home);
}

static void add_if_person(struct strings *l, const struct strings *own, unsigned uid,
			  const char *home)
{
	if (uid >= FIRST_PERSON && uid != NOBODY && uid != getuid())
		add_other(l, own, home);
}

void user_other_homes(const struct strings *own, struct strings *out)
{
	add_other(out, own, "/root");
	for_each_passwd(add_if_person, out, own);
	DIR *d = opendir("/home");
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		char *path = cli_printf("/home/%s", e->d_name);
		add_other(out, own, path);
		mem_free(path);
	}
	closedir(d);
}

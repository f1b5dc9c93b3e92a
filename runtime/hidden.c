/*
 * Which host paths do not exist inside: the rows of hidden.def for the caller's homes, and other
 * people's homes as a whole. Both the path as written and the one with links resolved are hidden,
 * since a secret may be a link to elsewhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "runtime/run_options.h"
#include "runtime/user.h"

/* Names in a home that are worth a listing. */
#define LISTED_MAX 500

static const char *const home_rows[] = {
#define HIDDEN_HOME(path, what) path,
#define HIDDEN_ROOT(path, what)
#include "runtime/hidden.def"
#undef HIDDEN_HOME
#undef HIDDEN_ROOT
};

static const char *const root_rows[] = {
#define HIDDEN_HOME(path, what)
#define HIDDEN_ROOT(path, what) path,
#include "runtime/hidden.def"
#undef HIDDEN_HOME
#undef HIDDEN_ROOT
};

/* Most rows name nothing on a given machine; one call finds that out. What is a link exists. */
static bool is_absent(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       (errno == ENOENT || errno == ENOTDIR);
}

/* ---- what lies in a home --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a directory, sorted; false when it cannot be read or is so large that the rows are
 * looked for one by one. */
static bool list_names(const char *dir, struct strings *out)
{
	DIR *d = opendir(dir);
	bool all = d != NULL;

	for (struct dirent *e; all && (e = readdir(d));) {
		all = out->count < LISTED_MAX;
		strings_add(out, cli_strdup(e->d_name));
	}
	if (d)
		closedir(d);
	if (out->count > 1)
		qsort(out->item, out->count, sizeof(out->item[0]), compare_names);
	return all;
}

/* Is the first component of a row in the list? */
static bool is_listed(const struct strings *names, const char *row)
{
	char first[NAME_MAX + 1];
	const char *key = first;
	size_t n = strcspn(row, "/");

	if (n >= sizeof(first))
		return true;
	memcpy(first, row, n);
	first[n] = 0;
	return names->count &&
	       bsearch(&key, names->item, names->count, sizeof(names->item[0]), compare_names);
}

static void free_names(struct strings *names)
{
	for (size_t i = 0; i < names->count; i++)
		mem_free((void *)(uintptr_t)names->item[i]);
	mem_free(names->item);
}

/* Takes path. */
static void hide(struct strings *out, struct strings *absent, const struct strings *show,
		 char *path, bool known_absent)
{
	if (known_absent || is_absent(path)) {
		if (!strings_has(show, path))
			strings_add(absent, path);
		else
			mem_free(path);
		return;
	}
	char *real = realpath(path, NULL);

	/* --show names either form. */
	if (!strings_has(show, path) && !(real && strings_has(show, real))) {
		if (!strings_has(out, path))
			strings_add(out, cli_strdup(path));
		if (real && strcmp(real, "/") != 0 && !strings_has(out, real))
			strings_add(out, cli_strdup(real));
	}
	free(real);
	mem_free(path);
}

static bool holds_view(const struct run_options *o, const char *dir)
{
	for (size_t i = 0; i < o->view_count; i++)
		if (o->views[i].host && path_is_below(o->views[i].host, dir))
			return true;
	return false;
}

/*
 * Another's home that the caller works in or names (root in a user's tree, say) is treated as one
 * of his own: visible, its secrets hidden.
 */
static void sort_homes(const struct run_options *o, const char *cwd, struct strings *own,
		       struct strings *others)
{
	struct strings all = { 0 };

	user_own_homes(own);
	user_other_homes(own, &all);
	for (size_t i = 0; i < all.count; i++) {
		bool used = path_is_below(cwd, all.item[i]) || holds_view(o, all.item[i]) ||
			    strings_has(&o->show, all.item[i]);
		strings_add(used ? own : others, all.item[i]);
	}
	mem_free(all.item);
}

/* Asking for a tree that is hidden is a contradiction that the caller has to resolve. */
static int check_views(const struct run_options *o, const struct strings *hidden)
{
	for (size_t i = 1; i < o->view_count; i++)
		for (size_t j = 0; j < hidden->count; j++)
			if (path_is_below(o->views[i].host, hidden->item[j]))
				return cli_error(
					"%s is hidden by default; add --show %s to show it",
					o->views[i].host, hidden->item[j]);
	return 0;
}

/* One listing answers for most rows. */
static void hide_in_home(const struct run_options *o, const char *home, struct strings *out,
			 struct strings *absent)
{
	struct strings names = { 0 };
	bool all = list_names(home, &names);

	for (size_t r = 0; r < ARRAY_SIZE(home_rows); r++)
		hide(out, absent, &o->show, cli_printf("%s/%s", home, home_rows[r]),
		     all && !is_listed(&names, home_rows[r]));
	free_names(&names);
}

int hidden_paths(const struct run_options *o, const char *cwd, struct strings *out,
		 struct strings *absent)
{
	struct strings own = { 0 }, others = { 0 };

	sort_homes(o, cwd, &own, &others);
	for (size_t i = 0; i < own.count; i++)
		hide_in_home(o, own.item[i], out, absent);
	for (size_t i = 0; i < others.count; i++)
		hide(out, absent, &o->show, cli_strdup(others.item[i]), false);
	for (size_t r = 0; r < ARRAY_SIZE(root_rows); r++)
		hide(out, absent, &o->show, cli_strdup(root_rows[r]), false);
	mem_free(own.item);
	mem_free(others.item);
	int err = check_views(o, out);
	return err ? err : check_views(o, absent);
}

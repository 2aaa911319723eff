/*
 * run_tool: tune NAME becomes tune-NAME.  Ours come first, so that a stray tool in PATH can't stand
 * in for one.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/buf.h"
#include "libcommon/config.h"
#include "tools/tune/tune.h"

enum { NAMES_MAX = 256 };

struct names {
	const char *v[NAMES_MAX];
	char *own[NAMES_MAX];   /* those of v that were found in folders */
	size_t n, nown;
};

static void add_tools(struct names *l, const char *dir)
{
	DIR *d = opendir(*dir ? dir : ".");
	const struct dirent *e;
	struct err err;
	char *s;

	while (d && l->n < NAMES_MAX && (e = readdir(d)))
		if (!strncmp(e->d_name, "tune-", 5) && (s = mem_strdup(e->d_name + 5, &err)))
			l->v[l->n++] = l->own[l->nown++] = s;
	if (d)
		closedir(d);
}

static int unknown(const char *name)
{
	struct names l = {0};
	const char *path = getenv("PATH"), *near;
	char dir[4096];

	for (; tune_verbs[l.n]; l.n++)
		l.v[l.n] = tune_verbs[l.n];
	add_tools(&l, place_bin());
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (n < sizeof(dir)) {
			memcpy(dir, path, n);
			dir[n] = 0;
			add_tools(&l, dir);
		}
		path += n + (path[n] == ':');
	}
	near = nearest_name(name, l.v, l.n);
	if (near)
		fprintf(stderr, "tune: '%.64s' is not a tune command (did you mean '%s'?)\n", name, near);
	else
		fprintf(stderr, "tune: '%.64s' is not a tune command; see 'tune --help'\n", name);
	while (l.nown)
		free(l.own[--l.nown]);
	return 127;
}

int run_tool(int argc, char **argv)
{
	char name[256], path[8192];

	(void)argc;
	if (strchr(argv[0], '/') ||
		(size_t)snprintf(name, sizeof(name), "tune-%s", argv[0]) >= sizeof(name))
		return unknown("");
	snprintf(path, sizeof(path), "%s/%s", place_bin(), name);
	if (*place_bin() && !access(path, F_OK)) {
		execv(path, argv);
		fprintf(stderr, "tune: cannot run '%s': %s\n", path, strerror(errno));
		return 126;
	}
	execvp(name, argv);
	if (errno == ENOENT)
		return unknown(argv[0]);
	fprintf(stderr, "tune: cannot run '%s': %s\n", name, strerror(errno));
	return 126;
}

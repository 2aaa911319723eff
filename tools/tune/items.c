/* items: the recipes and configs that lie in the data folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/buf.h"
#include "libcommon/config.h"
#include "libcommon/file.h"
#include "tools/tune/tune.h"

enum { ITEMS_MAX = 1000, ABOUT_MAX = 256 };

static const struct kind { const char *dir, *suffix; bool recipe; } kinds[] = {
	{ "recipes", ".sh", true },
	{ "configs", ".yaml", false },
};

/*
 * The text of the first comment line that is no #! line; "" if there is none before something else.
 */
static char *about(const char *path, struct err *err)
{
	char line[ABOUT_MAX], *s = line;
	FILE *fp = fopen(path, "r");

	if (!fp) {
		err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
		return NULL;
	}
	*line = 0;
	while (fgets(line, sizeof(line), fp) && (!strncmp(line, "#!", 2) || *line == '\n'))
		;
	fclose(fp);
	line[strcspn(line, "\n")] = 0;
	if (*s != '#')
		*s = 0;
	s += strspn(s, "# ");
	return mem_strdup(s, err);
}

static int add(
	struct items *l, const struct kind *k, const char *dir, const char *name, struct err *err)
{
	struct item it = { .recipe = k->recipe };

	if (l->n == ITEMS_MAX)
		return err_set(err, EX_DATAERR, "more than %d files in '%s'", ITEMS_MAX, dir);
	if (grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v), err) < 0)
		return -1;
	it.name = mem_strdup(name, err);
	it.path = path_join(dir, name);
	it.about = it.path ? about(it.path, err) : NULL;
	l->v[l->n++] = it;   /* released with the list, whole or not */
	if (!it.path)
		return err_oom(err, strlen(name));
	return it.name && it.about ? 0 : -1;
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->recipe != y->recipe ? y->recipe - x->recipe : strcmp(x->name, y->name);
}

static int read_kind(struct items *l, const struct kind *k, const char *data, struct err *err)
{
	char *dir = path_join(data, k->dir);
	DIR *d = dir ? opendir(dir) : NULL;
	const struct dirent *e;
	int rc = -1;

	if (!dir) {
		err_oom(err, strlen(data));
		goto done;
	}
	if (!d && errno != ENOENT) {
		err_errno(err, EX_NOINPUT, "cannot open '%s'", dir);
		goto done;
	}
	while (d && (e = readdir(d)))
		if (has_suffix(e->d_name, k->suffix) && e->d_name[0] != '.' &&
			add(l, k, dir, e->d_name, err) < 0)
			goto done;
	rc = 0;
done:
	if (d)
		closedir(d);
	free(dir);
	return rc;
}

int items_read(struct items *l, struct err *err)
{
	const char *data = place_data(err);

	*l = (struct items){0};
	if (!data)
		return -1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (read_kind(l, &kinds[i], data, err) < 0)
			return -1;
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_kind_and_name);
	return 0;
}

void items_release(struct items *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].name);
		free(l->v[i].path);
		free(l->v[i].about);
	}
	free(l->v);
	*l = (struct items){0};
}

static bool is_named(const struct item *it, const char *name)
{
	const struct kind *k = &kinds[!it->recipe];
	size_t n = strlen(k->dir), stem = strlen(it->name) - strlen(k->suffix);

	if (!strncmp(name, k->dir, n) && name[n] == '/')
		name += n + 1;
	return !strcmp(name, it->name) || (strlen(name) == stem && !strncmp(name, it->name, stem));
}

const struct item *items_find(const struct items *l, const char *name, bool recipes, bool configs)
{
	for (size_t i = 0; i < l->n; i++)
		if ((l->v[i].recipe ? recipes : configs) && is_named(&l->v[i], name))
			return &l->v[i];
	return NULL;
}

const char *items_nearest(const struct items *l, const char *name, bool recipes, bool configs)
{
	const char *names[ITEMS_MAX];
	static char stems[ITEMS_MAX][64];   /* "sftt" is nearer to "sft" than to "sft.sh" */
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!(l->v[i].recipe ? recipes : configs))
			continue;
		snprintf(stems[n], sizeof(stems[n]), "%s", l->v[i].name);
		if (!strchr(name, '.'))
			*strrchr(stems[n], '.') = 0;
		names[n] = stems[n];
		n++;
	}
	near = nearest_name(path_base(name), names, n);
	return near;
}

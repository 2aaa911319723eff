/* items: the recipes and configs that lie in the data folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/buf.h"
#include "libcommon/config.h"
#include "libcommon/file.h"
#include "libcommon/json.h"
#include "tools/tune/tune.h"

enum { ITEMS_MAX = 1000, ABOUT_MAX = 256, CONFIG_MAX = 1 << 20 };

static const struct kind {
	const char *dir, *suffix, *shown;
	enum item_kind kind;
} kinds[] = {
	{ "recipes", ".sh", "recipes", ITEM_RECIPE },
	{ "configs", ".yaml", "configs", ITEM_CONFIG },
	{ "configs/models", "", "models", ITEM_MODEL },      /* folders with a config.json */
};

static const struct kind *kind_of(const struct item *it)
{
	const struct kind *k = kinds;

	while (k->kind != it->kind)
		k++;
	return k;
}

const char *item_folder(const struct item *it)
{
	return kind_of(it)->shown;
}

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

/* "llama, 16 layers, dim 2048" of a config.json. */
static char *sizes(const char *path, struct err *err)
{
	struct json_doc doc = {0};
	struct buf b = {0};
	const char *family = "";
	int64_t layers = 0, dim = 0;

	if (json_parse_file(&doc, path, CONFIG_MAX, err) < 0)
		return NULL;
	if (json_get_str(&doc.root, "model_type", &family, path, err) < 0 ||
		json_get_int(&doc.root, "num_hidden_layers", &layers, path, err) < 0 ||
		json_get_int(&doc.root, "hidden_size", &dim, path, err) < 0) {
		json_release(&doc);
		return NULL;
	}
	buf_printf(&b, "%s, %lld layers, dim %lld: a model to train from scratch (pretrain.sh)", family,
		(long long)layers, (long long)dim);
	json_release(&doc);
	return buf_detach(&b);
}

static int add(
	struct items *l, const struct kind *k, const char *dir, const char *name, struct err *err)
{
	struct item it = { .kind = k->kind };

	if (l->n == ITEMS_MAX)
		return err_set(err, EX_DATAERR, "more than %d files in '%s'", ITEMS_MAX, dir);
	if (grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v), err) < 0)
		return -1;
	it.name = mem_strdup(name, err);
	it.path = path_join(dir, name);
	if (k->kind == ITEM_MODEL && it.path) {
		char *config = path_join(it.path, "config.json");

		free(it.path);
		it.path = config;
	}
	it.about = !it.path ? NULL
		: k->kind == ITEM_MODEL ? sizes(it.path, err)
								: about(it.path, err);
	l->v[l->n++] = it;   /* released with the list, whole or not */
	if (!it.path)
		return err_oom(err, strlen(name));
	return it.name && it.about ? 0 : -1;
}

static int by_kind_and_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static bool is_model(const char *dir, const char *name)
{
	char *path = path_join(dir, name);
	bool yes = path && is_dir(path) && dir_has(path, "config.json");

	free(path);
	return yes;
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
			(k->kind != ITEM_MODEL || is_model(dir, e->d_name)) &&
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
	const struct kind *k = kind_of(it);
	const char *const folders[] = { k->dir, k->shown };
	size_t stem = strlen(it->name) - strlen(k->suffix);

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(folders[i]);

		if (!strncmp(name, folders[i], n) && name[n] == '/') {
			name += n + 1;
			break;
		}
	}
	return !strcmp(name, it->name) || (strlen(name) == stem && !strncmp(name, it->name, stem));
}

const struct item *items_find(const struct items *l, const char *name, unsigned of)
{
	for (size_t i = 0; i < l->n; i++)
		if ((l->v[i].kind & of) && is_named(&l->v[i], name))
			return &l->v[i];
	return NULL;
}

const char *items_nearest(const struct items *l, const char *name, unsigned of)
{
	const char *names[ITEMS_MAX];
	static char stems[ITEMS_MAX][64];   /* "sftt" is nearer to "sft" than to "sft.sh" */
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!(l->v[i].kind & of))
			continue;
		snprintf(stems[n], sizeof(stems[n]), "%s", l->v[i].name);
		if (!strchr(name, '.') && strrchr(stems[n], '.'))
			*strrchr(stems[n], '.') = 0;
		names[n] = stems[n];
		n++;
	}
	near = nearest_name(path_base(name), names, n);
	return near;
}

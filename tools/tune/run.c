/* tune run: a recipe with a config, each by name or path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/buf.h"
#include "libcommon/file.h"
#include "libcommon/tool.h"
#include "tools/tune/tune.h"

/* The tools beside this program come first in the recipe's PATH. */
static int put_path(struct err *err)
{
	const char *old = getenv("PATH");
	struct buf b = {0};
	int rc;

	buf_printf(&b, "%s%s%s", place_bin(), old ? ":" : "", old ? old : "");
	rc = buf_ok(&b, err);
	if (!rc && *place_bin() && setenv("PATH", b.p, 1) < 0)
		rc = err_errno(err, EX_OSERR, "cannot set PATH");
	buf_release(&b);
	return rc;
}

/* A path that is there, else a name of the list.  what: "recipe" or "config". */
static const char *find(const struct items *l, const char *name, bool recipe, struct err *err)
{
	const struct item *it;
	const char *near;

	if (is_file(name) || (strchr(name, '/') && file_exists(name)))
		return name;
	it = items_find(l, name, recipe ? ITEM_RECIPE : ITEM_CONFIG);
	if (it)
		return it->path;
	near = items_nearest(l, name, recipe ? ITEM_RECIPE : ITEM_CONFIG);
	if (near)
		err_set(err, EX_NOINPUT, "no %s '%s' (did you mean '%s'?)", recipe ? "recipe" : "config",
			name, near);
	else
		err_set(err, EX_NOINPUT, "no %s '%s'; see 'tune ls'", recipe ? "recipe" : "config", name);
	return NULL;
}

/* Only what reads as a config must be one: plot.sh takes a RUN, download.sh a name on a hub. */
static bool wants_config(const struct items *l, const char *arg)
{
	return *arg != '-' && !strchr(arg, '=') && !file_exists(arg) &&
		(has_suffix(arg, ".yaml") || (!strchr(arg, '/') && items_nearest(l, arg, ITEM_CONFIG)) ||
			items_find(l, arg, ITEM_CONFIG));
}

int verb_run(int argc, char **argv)
{
	struct tool t = { "tune run", "RECIPE [CONFIG] [KEY=VALUE]...",
		"Run a recipe with bash; RECIPE and CONFIG are names that 'tune ls' shows, or paths. All "
		"that follows RECIPE is its own.",
		NULL, .options_first = true };
	struct items l = {0};
	struct err err = {0};
	const char *recipe, *config;
	char **args = NULL;

	tool_init(&t, argc, argv);
	if (!t.argc) {
		err_set(&err, EX_USAGE, "needs a recipe; 'tune ls' shows them");
		goto done;
	}
	if ((items_read(&l, &err) < 0 && !is_file(t.argv[0])) ||
		!(recipe = find(&l, t.argv[0], true, &err)))
		goto done;
	err = (struct err){0};
	config = t.argc > 1 ? t.argv[1] : NULL;
	if (config && wants_config(&l, config) && !(config = find(&l, config, false, &err)))
		goto done;
	args = mem_zalloc((size_t)t.argc + 2, sizeof(*args), &err);
	if (!args || put_path(&err) < 0)
		goto done;
	args[0] = (char[]){ "bash" };
	args[1] = (char *)recipe;   /* execvp changes nothing */
	for (int i = 1; i < t.argc; i++)
		args[i + 1] = i == 1 ? (char *)config : t.argv[i];
	execvp("bash", args);
	err_errno(&err, 126, "cannot run bash");
done:
	free(args);
	items_release(&l);
	return tool_exit(&t, -1, &err);
}

/* tune ls: one line a recipe or config: its name and what it says of itself. */
#include <stdio.h>
#include <string.h>

#include "libcommon/json.h"
#include "libcommon/tool.h"
#include "tools/tune/tune.h"

static void print_table(const struct items *l)
{
	int width = 0;

	for (size_t i = 0; i < l->n; i++)
		if ((int)strlen(l->v[i].name) > width)
			width = (int)strlen(l->v[i].name);
	for (size_t i = 0; i < l->n; i++)
		printf("%s/%-*s  %s\n", item_folder(&l->v[i]),
			width + (int)(strlen("recipes") - strlen(item_folder(&l->v[i]))), l->v[i].name,
			l->v[i].about);
}

static int print_json(const struct items *l, struct err *err)
{
	struct buf b = {0};
	int rc;

	for (size_t i = 0; i < l->n; i++) {
		struct json_w w = { .out = &b };

		json_w_obj(&w);
		json_w_name(&w, "kind");
		json_w_str(&w,
			l->v[i].kind == ITEM_RECIPE       ? "recipe"
				: l->v[i].kind == ITEM_CONFIG ? "config"
											  : "model");
		json_w_name(&w, "name");
		json_w_str(&w, l->v[i].name);
		json_w_name(&w, "path");
		json_w_str(&w, l->v[i].path);
		json_w_name(&w, "about");
		json_w_str(&w, l->v[i].about);
		json_w_end(&w);
		buf_putc(&b, '\n');
	}
	rc = buf_ok(&b, err);
	if (!rc && b.n)
		fwrite(b.p, 1, b.n, stdout);   /* tool_exit looks at stdout */
	buf_release(&b);
	return rc;
}

int verb_ls(int argc, char **argv)
{
	struct tool t = { "tune ls", "", "List the recipes and configs.", NULL };
	struct items l = {0};
	struct err err = {0};
	int rc = -1;

	tool_init(&t, argc, argv);
	if (t.argc)
		err_set(&err, EX_USAGE, "takes no operand");
	else if (items_read(&l, &err) == 0 && !t.json)
		print_table(&l), rc = 0;
	else if (!err.code)
		rc = print_json(&l, &err);
	items_release(&l);
	return tool_exit(&t, rc, &err);
}

/* tune: runs tune-NAME, and keeps the few verbs that belong to no tool. */
#include <string.h>

#include "libcommon/tool.h"
#include "tools/tune/tune.h"

static const struct { const char *name; int (*run)(int argc, char **argv); } verbs[] = {
	{ "ls", verb_ls }, { "cp", verb_cp }, { "run", verb_run },
	{ "validate", verb_validate }, { "help", verb_help }, { "version", verb_version },
};
const char *const tune_verbs[] = { "ls", "cp", "run", "validate", "help", "version", NULL };

/*
 * One line a row: path, type, default, choices, least, most, help; the tests hold tune-config(5) to
 * it.
 */
static void print_schema(void)
{
	static const char *const types[] = { "string", "path", "int", "number", "bool", "choice",
		"size", "strings", "paths", "numbers", "map", "number or choice" };

	for (size_t i = 0; i < cfg_nrows; i++) {
		const struct cfg_row *r = &cfg_rows[i];

		printf("%s\t%s\t%s\t%s\t%.17g\t%.17g\t%s\n", r->path, types[r->type], r->def,
			r->choices ? r->choices : "", r->min, r->max, r->help);
	}
}

int main(int argc, char **argv)
{
	bool schema = false;
	const struct opt opts[] = { { 0, "schema", NULL, OPT_FLAG, &schema, NULL }, { 0 } };
	struct tool t = { "tune", "NAME [ARG]...\nls | cp | run | validate | help | version [ARG]...",
		"Run tune-NAME, or list, copy and run recipes and configs. 'tune help' shows the manual; "
		"'tune VERB --help' a verb's options.",
		opts, .options_first = true, .verbs = tune_verbs };
	struct err err = {0};

	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] != '-')
		return run_tool(argc - 1, argv + 1);
	if (argc == 2 && !strcmp(argv[1], "--schema"))
		t.verbs = NULL;
	tool_init(&t, argc, argv);
	if (t.verb)
		return tool_exit(&t,
			err_set(&err, EX_USAGE, "options follow the verb: tune %s [OPTION]...", t.verb), &err);
	if (schema)
		print_schema();
	return tool_exit(&t, 0, &err);
}

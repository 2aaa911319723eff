/* tune validate: is this a config?  All that is wrong with it at once. */
#include <stdio.h>

#include "libcommon/tool.h"
#include "tools/tune/tune.h"

int verb_validate(int argc, char **argv)
{
	struct tool t = { "tune validate", "[-c FILE]... [KEY=VALUE]... FILE...",
		"Check each config FILE by the whole schema, and say all that is wrong at once. "
		"--print-config shows how -c and settings combine.",
		NULL, .uses_config = true };
	struct err err = {0};

	tool_init(&t, argc, argv);
	if (!t.argc)
		err_set(&err, EX_USAGE, "needs a config file");
	for (int i = 0; i < t.argc; i++) {
		struct err e = {0};
		struct config *c;

		if (cfg_new(&c, &e) == 0 && cfg_read_file(c, t.argv[i], &e) == 0)
			printf("%s: ok\n", t.argv[i]);
		else
			err_add(&err, &e);
		cfg_free(c);
	}
	return tool_exit(&t, err.code ? -1 : 0, &err);
}

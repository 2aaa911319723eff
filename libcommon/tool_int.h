#ifndef TUNE_TOOL_INT_H
#define TUNE_TOOL_INT_H
/*
 * tool_int: what tool.c (the wiring), tool_opts.c (the parser) and tool_help.c (the texts) share.
 */
#include "libcommon/tool.h"

enum { TOOL_OPTS_MAX = 64, TOOL_CONFIGS_MAX = 64 };

/* One step of the command line that touches the config, kept until all -c files are read. */
struct tool_setting {
	const char *option, *path;   /* NULL for a KEY=VALUE operand */
	const char *value;
};

struct tool_parse {
	const struct opt *opts[TOOL_OPTS_MAX];   /* the tool's, then the common ones; NULL ends */
	const char *configs[TOOL_CONFIGS_MAX];
	size_t n_configs, n_settings;
	struct tool_setting *settings;           /* owned; room for argc */
	bool help, version, list_options, list_keys, print_config;
	const char *print_key;                   /* of --print-config=KEY */
	/* the first usage error; --help and its like are obeyed all the same */
	struct err err;
};

/* Sort argv into t and p.  Operands end up in t->argv, which is argv's own array from index 1. */
void tool_parse(struct tool *t, struct tool_parse *p, int argc, char **argv);
void tool_help(const struct tool *t, const struct tool_parse *p);
const char *tool_verb_list(const struct tool *t);   /* "a, b or c" in a buffer of its own */
void tool_list_options(const struct tool *t, const struct tool_parse *p);
#endif

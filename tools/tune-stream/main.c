/* tune-stream: check, cut, join, convert and index token streams. */
#include <string.h>

#include "verbs.h"

static struct args a = { .n = 10 };
static const struct opt opts[] = {
	{ 'n', "records", "N", OPT_U64, &a.n, "head: records to keep (10)", 0, NULL },
	{ 'o', "output", "FILE", OPT_STR, &a.output, "index: write here and leave the input as it is",
		0, NULL },
	{ 0, "force", NULL, OPT_FLAG, &a.force, "index: replace an existing FILE", 0, NULL },
	{ 0 }
};
static const char *const names[] = { "check", "head", "cat", "encode", "index", NULL };
static int (*const verbs[])(const struct args *a, struct err *err) = {
	verb_check, verb_head, verb_cat, verb_encode, verb_index
};

int main(int argc, char **argv)
{
	struct tool t = { .name = "tune-stream",
		.synopsis = "check [STREAM]... | head [-n N] [STREAM] | cat [--json] [STREAM]... | "
					"encode [FILE] | index [-o OUT] FILE",
		.summary = "Check, cut, join, convert and index token streams.",
		.opts = opts,
		.verbs = names };
	struct err err = {0};
	size_t i = 0;

	tool_init(&t, argc, argv);
	a.paths = (const char *const *)t.argv;
	a.npaths = (size_t)t.argc;
	a.json = t.json;
	a.quiet = t.quiet;
	while (strcmp(names[i], t.verb))
		i++;
	if (a.output && verbs[i] != verb_index)
		return tool_exit(&t,
			err_set(&err, EX_USAGE, "-o goes with index; '%s' writes to standard output", t.verb),
			&err);
	return tool_exit(&t, verbs[i](&a, &err), &err);
}

/* tune-stream: check, cut, join, convert and index token streams. */
#include <string.h>

#include "verbs.h"

enum { HEAD_RECORDS = 10 };
static struct args a = { .n = UINT64_MAX };
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

/* An option that a verb would pass over. */
static int check_options(const char *verb, struct err *err)
{
	const struct { bool given; const char *name, *verbs, *else_; } own[] = {
		{ a.n != UINT64_MAX, "-n", "head", "" },
		{ a.output != NULL, "-o", "index", "; the others write to standard output" },
		{ a.force, "--force", "index", "" },
		{ a.json, "--json", "cat and check", "" },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].given && !strstr(own[i].verbs, verb))
			return err_set(err, EX_USAGE, "%s goes with %s, not with %s%s", own[i].name,
				own[i].verbs, verb, own[i].else_);
	if (a.n == UINT64_MAX)
		a.n = HEAD_RECORDS;
	return 0;
}

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
	return tool_exit(&t, check_options(t.verb, &err) < 0 ? -1 : verbs[i](&a, &err), &err);
}

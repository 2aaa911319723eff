/* tune-ckpt: looks at model files, checks, converts, merges and compares them. */
#include <string.h>

#include "tools/tune-ckpt/ckpt.h"

enum { NO_MAX = 1 << 30 };
static const struct verb {
	const char *name;
	int (*run)(const struct tool *t, const struct args *a, struct err *err);
	int min, max;              /* operands */
	const char *needs, *takes; /* of the options below, by their letter */
} verbs[] = {
	{ "inspect", verb_inspect, 1, NO_MAX, "", "H" },
	{ "convert", verb_convert, 1, 1, "o", "tdomf" },
	{ "merge", verb_merge, 0, 0, "ao", "tdomaf" },
	{ "verify", verb_verify, 0, NO_MAX, "", "e" },
	{ "diff", verb_diff, 2, 2, "", "" },
};
static const char *const names[] = { "inspect", "convert", "merge", "verify", "diff", NULL };

static int usage(const struct tool *t, const struct args *a, const struct verb *v, struct err *err)
{
	const struct { char letter; const char *name; bool given; } opts[] = {
		{ 't', "--to", a->to }, { 'd', "--dtype", a->dtype }, { 'o', "-o", a->out },
		{ 'm', "-m", a->base }, { 'a', "-a", a->adapter },
		{ 'e', "--each", a->each }, { 'f', "--force", a->force }, { 'H', "--hash", a->hash },
	};

	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++) {
		if (opts[i].given && !strchr(v->takes, opts[i].letter))
			return err_set(err, EX_USAGE, "%s takes no %s", v->name, opts[i].name);
		if (!opts[i].given && strchr(v->needs, opts[i].letter))
			return err_set(err, EX_USAGE, "%s needs %s", v->name, opts[i].name);
	}
	if (t->argc < v->min || t->argc > v->max)
		return err_set(err, EX_USAGE, "%s takes %s, found %d", v->name,
			v->max == 0       ? "no operands"
				: v->max == 1 ? "one model"
				: v->max == 2 ? "two models"
							  : "at least one path",
			t->argc);
	return 0;
}

int main(int argc, char **argv)
{
	struct args a = {0};
	const struct opt opts[] = {
		{ 0, "to", "FORMAT", OPT_STR, &a.to, "hf or gguf (default: by the name of the output)" },
		{ 0, "dtype", "TYPE", OPT_STR, &a.dtype,
			"fp32, bf16, fp16; for GGUF also q8_0 (default: the source's)" },
		{ 'o', "output", "OUT", OPT_STR, &a.out, "the folder or .gguf file to write" },
		{ 'm', "model", "BASE", OPT_STR, &a.base,
			"the adapter's base model, if not where the adapter says" },
		{ 'a', "adapter", "ADAPTER", OPT_STR, &a.adapter,
			"PEFT folder, checkpoint or run to merge" },
		{ 0, "force", NULL, OPT_FLAG, &a.force, "replace an existing output" },
		{ 0, "hash", NULL, OPT_FLAG, &a.hash, "inspect: compute the identity (reads every byte)" },
		{ 0, "each", "-", OPT_STR, &a.each,
			"verify: the checkpoints of save events on standard input, which is passed on" },
		{ 0 }
	};
	struct tool t = { "tune-ckpt",
		"inspect [--hash] PATH...\nconvert [--to hf|gguf] [--dtype TYPE] [-m BASE] -o OUT MODEL\n"
		"merge [-m BASE] -a ADAPTER [--to hf|gguf] [--dtype TYPE] -o OUT\nverify PATH... | --each "
		"-\ndiff A B",
		"Look at model files, convert, merge, verify and compare them.", opts, .verbs = names };
	struct err err = {0};
	const struct verb *v = verbs;

	tool_init(&t, argc, argv);
	while (strcmp(v->name, t.verb))
		v++;
	return tool_exit(&t, usage(&t, &a, v, &err) < 0 ? -1 : v->run(&t, &a, &err), &err);
}

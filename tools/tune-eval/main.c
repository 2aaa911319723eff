/* tune-eval: a model + data -> loss, scores, answers. */
#include <math.h>
#include <string.h>

#include "eval.h"

static struct eval eval = { .o = { .min = NAN } };
static const struct opt opts[] = {
	{ 'm', "model", "MODEL", OPT_KEY, .help = "model to evaluate (model.path)",
		.key = "model.path" },
	{ 'a', "adapter", "DIR", OPT_KEY, .help = "PEFT adapter to apply (model.adapter)",
		.key = "model.adapter" },
	{ 'o', "output", "FILE", OPT_STR, &eval.o.output, "generate: write the answers to FILE" },
	{ 0, "force", NULL, OPT_FLAG, &eval.o.force, "replace an existing FILE" },
	{ 0, "per-row", NULL, OPT_FLAG, &eval.o.per_row, "loss, match: one JSON line a row" },
	{ 0, "scores", "FILE", OPT_STR, &eval.o.scores, "loss: write each token's log p as a stream" },
	{ 0, "each", "-", OPT_STR, &eval.o.each,
		"loss: score the checkpoints that save events on stdin name" },
	{ 0, "min", "X", OPT_NUM, &eval.o.min, "match: exit 1 below X percent" },
	{ 0, "system", "TEXT", OPT_STR, &eval.o.system, "chat: start with a system message" },
	{ 'j', "threads", "N", OPT_KEY, .help = "CPU threads (train.threads)", .key = "train.threads" },
	{ 0, "device", "D", OPT_KEY, .help = "auto, cpu or cuda (train.device)",
		.key = "train.device" },
	{ 0 }
};
static const char *const verbs[] = { "loss", "generate", "match", "chat", NULL };
static int (*const run[])(
	struct eval *, struct err *) = { verb_loss, verb_generate, verb_match, verb_chat };

/* An option of another verb would be lost without a word. */
static int check_options(const char *verb, const struct eval_opts *o, struct err *err)
{
	const struct { bool given; const char *name, *verbs; } own[] = {
		{ o->output != NULL, "-o", "generate" },
		{ o->per_row, "--per-row", "loss match" },
		{ o->scores != NULL, "--scores", "loss" },
		{ o->each != NULL, "--each", "loss" },
		{ !isnan(o->min), "--min", "match" },
		{ o->system != NULL, "--system", "chat" },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (own[i].given && !strstr(own[i].verbs, verb))
			return err_set(err, EX_USAGE, "%s is an option of %s, not of %s", own[i].name,
				own[i].verbs, verb);
	return 0;
}

int main(int argc, char **argv)
{
	struct tool t = { .name = "tune-eval",
		.synopsis = "loss|generate|match|chat [-c FILE]... [-m MODEL] [key=value]... [FILE]...",
		.summary = "Score a model on data, answer prompts, or talk to it.",
		.opts = opts,
		.uses_config = true,
		.verbs = verbs };
	struct err err = {0};
	int rc = -1, i = 0;

	tool_init(&t, argc, argv);
	while (strcmp(verbs[i], t.verb))
		i++;
	if (!check_options(t.verb, &eval.o, &err) && !eval_open(&eval, &t, &err))
		rc = run[i](&eval, &err);
	eval_close(&eval);
	return tool_exit(&t, rc, &err);
}

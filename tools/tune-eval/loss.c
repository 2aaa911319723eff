/*
 * tune-eval loss: token-exact loss and perplexity; each row's sum of log p; with --each, of every
 * checkpoint that a run saves.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval.h"

static void print(struct buf *b, bool newline)
{
	if (newline)
		buf_putc(b, '\n');
	fwrite(b->p ? b->p : "", 1, b->n, stdout);   /* errors show when stdout is closed */
	buf_release(b);
}

static void summary_json(
	const struct eval *e, const struct items *it, const struct score *t, struct json_w *w)
{
	double loss = t->tokens ? t->nll / (double)t->tokens : NAN;

	json_w_name(w, "loss"); json_w_num(w, loss);
	json_w_name(w, "perplexity"); json_w_num(w, exp(loss));
	json_w_name(w, "greedy");
	json_w_num(w, t->tokens ? (double)t->greedy / (double)t->tokens : NAN);
	json_w_name(w, "tokens"); json_w_int(w, (int64_t)t->tokens);
	json_w_name(w, "rows"); json_w_int(w, (int64_t)(it->rows - it->invalid));
	json_w_name(w, "cut"); json_w_int(w, (int64_t)it->cut);
	json_w_name(w, "invalid"); json_w_int(w, (int64_t)it->invalid);
	json_w_name(w, "skipped"); json_w_int(w, (int64_t)it->skipped);
	eval_settings_json(e, w);
}

static void print_rows(const struct items *it, const struct score *per_row)
{
	for (size_t i = 0; i < it->n; i++) {
		const struct item *o = &it->item[i];
		const struct score *s = &per_row[o->row];
		struct buf b = {0};
		struct json_w w = { .out = &b };

		if (i && it->item[i - 1].row == o->row)
			continue;   /* a further window of the same row */
		json_w_obj(&w);
		json_w_name(&w, "file"); json_w_str(&w, o->src < it->ninputs ? it->inputs[o->src] : "?");
		json_w_name(&w, "line"); json_w_int(&w, (int64_t)o->line);
		json_w_name(&w, "logp"); json_w_num(&w, -s->nll);
		json_w_name(&w, "tokens"); json_w_int(&w, (int64_t)s->tokens);
		json_w_name(&w, "greedy"); json_w_bool(&w, s->greedy == s->tokens);
		json_w_end(&w);
		print(&b, true);
	}
}

static void print_summary(const struct eval *e, const struct items *it, const struct score *t)
{
	struct buf b = {0};
	struct json_w w = { .out = &b };

	if (e->tool->json) {
		json_w_obj(&w);
		summary_json(e, it, t, &w);
		json_w_end(&w);
	} else {
		double loss = t->tokens ? t->nll / (double)t->tokens : NAN;

		buf_printf(&b, "loss %.6f  perplexity %.4f  greedy %.2f %%  tokens %llu  rows %llu", loss,
			exp(loss), t->tokens ? 100.0 * (double)t->greedy / (double)t->tokens : NAN,
			(unsigned long long)t->tokens, (unsigned long long)(it->rows - it->invalid));
	}
	print(&b, true);
}

static int score_all(struct eval *e, const struct items *it, struct score *total,
	struct score **per_row, struct err *err)
{
	*per_row = mem_zalloc(it->rows, sizeof(**per_row), err);
	if (!*per_row || eval_model(e, (long)it->longest, 0, 0, err) < 0)
		return -1;
	return score_items(e, it, total, *per_row, err);
}

/*
 * One checkpoint of a run that is being followed: its own event, and a warning if it can't be
 * scored.
 */
static int follow_one(
	struct eval *e, struct items *it, const char *path, const struct json *step, struct err *err)
{
	struct score total, *per_row = NULL;
	struct buf b = {0};
	struct json_w w = { .out = &b };
	/* rotated away, say: the run goes on, and so does this */
	bool gone = eval_load(e, path, err) < 0;
	int rc = 0;

	if (!gone && !it->n)      /* the rows become ids with the first checkpoint's tokenizer */
		rc = items_read(it, e, err);
	if (!rc && !gone)
		rc = score_all(e, it, &total, &per_row, err);
	if (!rc) {
		json_w_obj(&w);
		json_w_name(&w, "event"); json_w_str(&w, "eval");
		json_w_name(&w, "step");
		if (step)
			json_w_value(&w, step);
		else
			json_w_null(&w);
		json_w_name(&w, "path"); json_w_str(&w, path);
		if (gone) {
			tool_warn(e->tool, "%s is not scored: %s", path, err->msg);
			json_w_name(&w, "why"); json_w_str(&w, err->msg);
			*err = (struct err){0};
		} else {
			summary_json(e, it, &total, &w);
		}
		json_w_end(&w);
		print(&b, true);
		fflush(stdout);
	}
	free(per_row);
	eval_unload(e);
	return rc;
}

/* Pass every line of stdin on, and score what save events name. */
static int follow(struct eval *e, struct err *err)
{
	struct items it = {0};
	struct json_doc doc = {0};
	struct err no_json = {0};
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = getline(&line, &cap, stdin)) > 0) {
		const struct json *path;

		fwrite(line, 1, (size_t)n, stdout);
		fflush(stdout);
		/* A line that is no event is another program's: it passes. */
		if (json_parse(&doc, line, (size_t)n, "stdin", 1, &no_json) < 0 ||
			!json_str_eq(json_get(&doc.root, "event"), "save"))
			continue;
		path = json_get(&doc.root, "path");
		if (json_is(path, JSON_STR))
			rc = follow_one(e, &it, path->s, json_get(&doc.root, "step"), err);
	}
	if (!rc && ferror(stdin))
		rc = err_errno(err, EX_IOERR, "cannot read standard input");
	free(line);
	json_release(&doc);
	items_release(&it);
	return rc;
}

/* What would be found at the first save only, or never. */
static int check_each(const struct eval *e, struct err *err)
{
	if (strcmp(e->o.each, "-"))
		return err_set(err, EX_USAGE, "--each reads save events from standard input: --each -");
	if (e->o.per_row || e->o.scores)
		return err_set(err, EX_USAGE, "--each adds one event a checkpoint; %s is for one model",
			e->o.per_row ? "--per-row" : "--scores");
	for (int i = 0; i < e->tool->argc; i++) {
		if (!strcmp(e->tool->argv[i], "-"))
			return err_set(err, EX_USAGE,
				"--each needs the data as files or folders; standard input holds the events");
		if (access(e->tool->argv[i], R_OK) < 0)
			return err_errno(err, EX_NOINPUT, "cannot open '%s'", e->tool->argv[i]);
	}
	if (!e->tool->argc)
		return err_set(err, EX_USAGE,
			"--each needs the data as operands; standard input holds the events");
	return 0;
}

int verb_loss(struct eval *e, struct err *err)
{
	struct items it = {0};
	struct score total, *per_row = NULL;
	bool to_stdout = e->o.scores && !strcmp(e->o.scores, "-");
	int rc;

	if (e->o.each) {
		return check_each(e, err) < 0 ? -1 : follow(e, err);
	}
	if (to_stdout && e->o.per_row)
		return err_set(err, EX_USAGE, "--per-row and --scores - both need standard output");
	rc = eval_load(e, cfg_str(e->cfg, "model.path"), err);
	if (!rc)
		rc = items_read(&it, e, err);
	if (!rc)
		rc = score_all(e, &it, &total, &per_row, err);
	if (!rc && !total.tokens)
		rc = err_set(err, EX_DATAERR, "no token of the data is scored");
	if (!rc && e->o.per_row)
		print_rows(&it, per_row);
	if (!rc && !to_stdout && (!e->o.per_row || e->tool->json))
		print_summary(e, &it, &total);
	if (!rc && (to_stdout || (e->o.per_row && !e->tool->json)))
		tool_say(e->tool, "loss %.6f over %llu tokens", total.nll / (double)total.tokens,
			(unsigned long long)total.tokens);
	if (!rc && !isfinite(total.nll))
		rc = err_set(err, EX_DATAERR,
			"the loss is no number; tune-ckpt verify says whether the model's weights are");
	free(per_row);
	items_release(&it);
	return rc;
}

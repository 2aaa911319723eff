/* Validation loss over the whole validation set, and answers to the sample prompts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/generate.h"
#include "train.h"

/* Adds -log p and the counts of one batch of records. */
static int one_batch(struct run *r, uint64_t first, uint64_t n, double sums[2], struct err *err)
{
	struct batch b;
	uint64_t got;
	int rc;

	if (feed_load(r->val, &r->val_data, 0, 0, first, n, r->max_record, r->comm->rank, r->comm->size,
			&got, err) < 0)
		return -1;
	while ((rc = step_micro(&r->val_data, r->plan.micro_tokens, &b, err)) > 0) {
		if (grow(&r->val_logp, &r->val_logp_cap, (size_t)b.trained + 1, sizeof(float), err) < 0 ||
			grow(&r->val_greedy, &r->val_greedy_cap, (size_t)b.trained + 1, 1, err) < 0 ||
			model_forward(r->model, &b, FWD_ADAPTER, 0, err) < 0 ||
			head_forward(r->model, r->val_logp, r->val_greedy, err) < 0)
			return -1;
		for (long i = 0; i < b.trained; i++)
			sums[0] -= r->val_logp[i];
		sums[1] += (double)b.trained;
	}
	return rc;
}

int validate(struct run *r, double *loss, struct err *err)
{
	uint64_t total = feed_count(r->val);
	double sums[2] = { 0, 0 };
	struct json_w w;
	struct buf b;

	for (uint64_t i = 0; i < total; i += r->batch)
		if (one_batch(r, i, total - i < r->batch ? total - i : r->batch, sums, err) < 0)
			return -1;
	if (r->comm->all_reduce_host(r->comm, sums, 2, err) < 0)
		return -1;
	*loss = sums[1] > 0 ? sums[0] / sums[1] : NAN;
	progress_clear(&r->progress);
	tool_say(r->tool, "step %llu  validation loss %.4f over %.0f tokens",
		(unsigned long long)r->s.step, *loss, sums[1]);
	metrics_begin(&w, &b, "val");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step);
	json_w_name(&w, "loss"); json_w_num(&w, *loss);
	json_w_name(&w, "tokens"); json_w_int(&w, (int64_t)sums[1]);
	return metrics_end(&r->metrics, &w, &b, err);
}

/* Ids that the answer to a prompt starts from. */
static int prompt_ids(
	const struct run *r, struct encoder *e, const char *text, struct sample *s, struct err *err)
{
	struct message m = { ROLE_USER, text, strlen(text) };
	struct chat_opts o = chat_opts_config(r->cfg);

	return sample_prompt(s, e, r->tok, r->chat, &m, 1, &o, err);
}

int sample_room(const struct run *r, long *longest, struct err *err)
{
	struct encoder *e = NULL;
	struct sample s = {0};
	int rc = 0;

	*longest = 0;
	if (cfg_count(r->cfg, "eval.prompts") && encoder_new(&e, r->tok, err) < 0)
		return -1;
	for (size_t i = 0; !rc && i < cfg_count(r->cfg, "eval.prompts"); i++) {
		long room;

		rc = prompt_ids(r, e, cfg_item(r->cfg, "eval.prompts", i), &s, err);
		room = (long)s.n + (long)cfg_int(r->cfg, "generate.max_new_tokens");
		if (room > *longest)
			*longest = room;
	}
	sample_release(&s);
	encoder_free(e);
	return rc;
}

static int show_answer(
	struct run *r, const char *prompt, const struct gen_result *g, struct err *err)
{
	struct buf text = {0}, b;
	struct json_w w;
	size_t stops = cfg_count(r->cfg, "generate.stop");
	int rc = 0;

	for (size_t i = 0; !rc && i < g->n; i++)
		if (g->ids[i] < tokenizer_vocab(r->tok))   /* the others pad the embedding: no text */
			rc = decode(r->tok, &g->ids[i], 1, true, &text, err);
	buf_put(&text, "", 0);
	if (rc < 0 || buf_ok(&text, err) < 0) {
		buf_release(&text);
		return -1;
	}
	for (size_t i = 0; i < stops; i++) {
		const char *stop = cfg_item(r->cfg, "generate.stop", i);
		char *at = *stop ? memmem(text.p, text.n, stop, strlen(stop)) : NULL;

		if (at) {
			*at = 0;
			text.n = (size_t)(at - text.p);
		}
	}
	tool_say(r->tool, "step %llu  %s -> %s", (unsigned long long)r->s.step, prompt, text.p);
	metrics_begin(&w, &b, "sample");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step);
	json_w_name(&w, "prompt"); json_w_str(&w, prompt);
	json_w_name(&w, "text"); json_w_strn(&w, text.p, text.n);
	buf_release(&text);
	return metrics_end(&r->metrics, &w, &b, err);
}

static int answer(struct run *r, struct encoder *e, size_t i, struct err *err)
{
	const struct config *c = r->cfg;
	struct sampling how = { (long)cfg_int(c, "generate.max_new_tokens"),
		cfg_num(c, "generate.temperature"), (int)cfg_int(c, "generate.top_k"),
		cfg_num(c, "generate.top_p"), (uint64_t)cfg_int(c, "generate.seed") };
	const char *text = cfg_item(c, "eval.prompts", i);
	uint32_t stop[32];
	size_t nstop = tokenizer_stop_ids(r->tok, stop);
	struct sample s = {0};
	struct gen_prompt p;
	struct gen_result g = {0};
	int rc = prompt_ids(r, e, text, &s, err);

	p = (struct gen_prompt){ s.ids, s.n };
	if (!rc)
		rc = generate(r->model, &p, 1, &how, stop, nstop, NULL, NULL, &g, err);
	if (!rc)
		rc = show_answer(r, text, &g, err);
	free(g.ids);
	sample_release(&s);
	return rc;
}

int sample_answers(struct run *r, struct err *err)
{
	struct encoder *e = NULL;
	size_t n = cfg_count(r->cfg, "eval.prompts");
	int rc = n ? encoder_new(&e, r->tok, err) : 0;

	progress_clear(&r->progress);
	for (size_t i = 0; !rc && i < n; i++)
		rc = answer(r, e, i, err);
	encoder_free(e);
	return rc;
}

/* Answers to many prompts at once, in the order of the prompts. */
#include <stdlib.h>
#include <string.h>

#include "eval.h"

enum { SLOTS = 8, AT_ONCE = 64 };

int watch_add(struct watch *w, uint32_t id, struct err *err)
{
	const struct config *c = w->e->cfg;
	size_t before = w->text.n;

	if (id >= tokenizer_vocab(w->e->tok))
		return 0;   /* a row of the embedding that pads it: no text */
	if (decode(w->e->tok, &id, 1, true, &w->text, err) < 0)
		return -1;
	buf_put(&w->text, "", 0);
	if (buf_ok(&w->text, err) < 0)
		return -1;
	for (size_t i = 0; i < cfg_count(c, "generate.stop"); i++) {
		const char *stop = cfg_item(c, "generate.stop", i);
		size_t n = strlen(stop), from = before > n ? before - n : 0;
		char *at = n ? memmem(w->text.p + from, w->text.n - from, stop, n) : NULL;

		if (at) {
			w->text.n = (size_t)(at - w->text.p);
			*at = 0;
			return 1;
		}
	}
	return 0;
}

struct group { struct watch watch[AT_ONCE]; bool stopped[AT_ONCE]; struct err err; };

static int on_token(void *ctx, size_t prompt, uint32_t id)
{
	struct group *g = ctx;
	int rc = watch_add(&g->watch[prompt], id, &g->err);

	if (rc > 0)
		g->stopped[prompt] = true;
	return rc;
}

static int answer_group(struct eval *e, const struct prompts *p, size_t first, size_t n,
	struct group *g, answer_fn *done, void *ctx, struct err *err)
{
	struct gen_prompt prompts[AT_ONCE];
	struct gen_result results[AT_ONCE] = {{0}};
	struct sampling how = eval_sampling(e);
	int rc;

	for (size_t i = 0; i < n; i++) {
		prompts[i] = (struct gen_prompt){ p->p[first + i].ids, p->p[first + i].n };
		g->watch[i].e = e;
		buf_clear(&g->watch[i].text);
		g->stopped[i] = false;
	}
	how.first = first;
	g->err = (struct err){0};
	rc = generate(e->model, prompts, n, &how, e->stop, e->nstop, on_token, g, results, err);
	if (!rc && g->err.code) {
		*err = g->err;
		rc = -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (!rc)
			rc = done(ctx, first + i, g->watch[i].text.p ? g->watch[i].text.p : "",
				g->watch[i].text.n, results[i].stopped || g->stopped[i], err);
		free(results[i].ids);
	}
	return rc;
}

int answer_prompts(
	struct eval *e, const struct prompts *p, answer_fn *done, void *ctx, struct err *err)
{
	struct group *g = mem_zalloc(1, sizeof(*g), err);
	long room = (long)p->longest + (long)cfg_int(e->cfg, "generate.max_new_tokens");
	struct progress bar;
	int rc;

	if (!g)
		return -1;
	if (room > eval_window(e))
		room = eval_window(e);
	rc = eval_model(e, (long)p->longest, p->n < SLOTS ? (int)p->n : SLOTS, room, err);
	progress_start(&bar, "tune-eval", "answers", 0, p->n, e->tool->progress, e->tool->quiet);
	for (size_t i = 0; !rc && i < p->n; i += AT_ONCE) {
		rc = answer_group(e, p, i, p->n - i < AT_ONCE ? p->n - i : AT_ONCE, g, done, ctx, err);
		progress_update(&bar, i + AT_ONCE < p->n ? i + AT_ONCE : p->n, "");
	}
	progress_end(&bar);
	for (size_t i = 0; i < AT_ONCE; i++)
		buf_release(&g->watch[i].text);
	free(g);
	return rc;
}

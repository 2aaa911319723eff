#include "generate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/buf.h"
#include "libcommon/rng.h"

/* ---- one token ---- */

/* a before b: likelier, or the lower id of equals. */
static bool before(const float *logits, uint32_t a, uint32_t b)
{
	return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void sift(const float *logits, uint32_t *heap, long n, long i)
{
	uint32_t x = heap[i];
	long k;

	for (; (k = 2 * i + 1) < n; i = k) {
		if (k + 1 < n && before(logits, heap[k + 1], heap[k]))
			k++;
		if (!before(logits, heap[k], x))
			break;
		heap[i] = heap[k];
	}
	heap[i] = x;
}

/* Moves the n likeliest ids to the end of heap, likeliest last, and stops early when their weights
 * reach `enough`; returns how many. */
static long pop(const float *logits, uint32_t *heap, long v, long n, double top, double inv_t,
	double enough, double *sum)
{
	long i;

	for (i = v / 2 - 1; i >= 0; i--)
		sift(logits, heap, v, i);
	for (*sum = 0, i = 0; i < n && *sum < enough; i++) {
		uint32_t x = heap[0];

		heap[0] = heap[v - 1 - i];
		heap[v - 1 - i] = x;
		sift(logits, heap, v - 1 - i, 0);
		*sum += exp((logits[x] - top) * inv_t);
	}
	return i;
}

static uint32_t argmax(const float *logits, long v)
{
	uint32_t best = 0, i;

	for (i = 1; i < (uint32_t)v; i++)
		if (logits[i] > logits[best])
			best = i;
	return best;
}

uint32_t sample_token(const float *logits, long v, const struct sampling *s, uint64_t prompt,
	uint64_t n, uint32_t *scratch)
{
	uint32_t best = argmax(logits, v), key[2], w[4];
	const uint32_t ctr[4] = { (uint32_t)n, (uint32_t)prompt, 0, 0 };
	double top = logits[best], inv_t, total = 0, sum, u, run = 0;
	long k, i, kept;

	if (s->temperature <= 0)
		return best;
	inv_t = 1 / s->temperature;
	for (i = 0; i < v; i++)
		scratch[i] = (uint32_t)i;
	k = s->top_k > 0 && s->top_k < v ? s->top_k : v;
	rng_key(s->seed, RNG_SAMPLE, key);
	philox4x32(key, ctr, w);
	u = (double)rng_uniform(w[0]);
	if (k < v) {
		pop(logits, scratch, v, k, top, inv_t, INFINITY, &total);
	} else {
		for (i = 0; i < v; i++)
			total += exp((logits[i] - top) * inv_t);
	}
	/* The nucleus: likeliest first until top_p of the total; without one, no further than the
	 * draw needs. */
	kept = pop(logits, scratch, v, k, top, inv_t, s->top_p < 1 ? s->top_p * total : u * total,
		&sum);
	if (s->top_p >= 1)
		return kept ? scratch[v - kept] : best;
	for (i = 0; i < kept; i++) {
		run += exp((logits[scratch[v - 1 - i]] - top) * inv_t);
		if (run > u * sum)
			return scratch[v - 1 - i];
	}
	return kept ? scratch[v - kept] : best;
}

/* ---- many answers ---- */

struct answer { long prompt; uint32_t next; size_t cap; };     /* of a slot; prompt -1: idle */
struct gen {
	struct model *m;
	const struct gen_prompt *prompts; size_t n, begun;
	const struct sampling *s;
	const uint32_t *stop; size_t nstop;
	gen_token_fn *on_token; void *ctx;
	struct gen_result *results;
	int slots;
	struct answer *a;
	int *feed; int32_t *lens; uint32_t *ids; size_t ids_cap;
	float *logits; uint32_t *scratch;
};

static int check_prompts(const struct gen *g, struct err *err)
{
	long room = model_gen_len(g->m) - 1;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (!g->prompts[i].n)
			return err_set(err, EX_DATAERR, "prompt %zu is empty", i);
		if (g->prompts[i].n > (size_t)room)
			return err_set(err, EX_DATAERR,
				"prompt %zu has %zu tokens; with room for an answer at most %ld are possible",
				i, g->prompts[i].n, room);
	}
	return 0;
}

static bool is_stop(const struct gen *g, uint32_t id)
{
	size_t i;

	for (i = 0; i < g->nstop; i++)
		if (g->stop[i] == id)
			return true;
	return false;
}

/* Fill idle slots with new prompts and list what each busy slot is fed. Returns the number of
 * sequences, -1 on error. */
static int list_feed(struct gen *g, struct err *err)
{
	size_t t = 0;
	int i, nseq = 0;

	for (i = 0; i < g->slots; i++) {
		struct answer *a = &g->a[i];
		const uint32_t *ids = &a->next;
		size_t n = 1;

		if (a->prompt < 0) {
			if (g->begun == g->n)
				continue;
			a->prompt = (long)g->begun++;
			a->cap = 0;
			kv_reset(g->m, i);
			ids = g->prompts[a->prompt].ids;
			n = g->prompts[a->prompt].n;
		}
		if (grow(&g->ids, &g->ids_cap, t + n, sizeof(*g->ids), err) < 0)
			return -1;
		memcpy(g->ids + t, ids, n * sizeof(*ids));
		t += n;
		g->feed[nseq] = i;
		g->lens[nseq++] = (int32_t)n;
	}
	return nseq;
}

/* The next token of a slot's answer; the slot is idle after the last. */
static int advance(struct gen *g, int slot, const float *logits, struct err *err)
{
	struct answer *a = &g->a[slot];
	size_t prompt = (size_t)a->prompt;
	struct gen_result *r = &g->results[prompt];
	uint32_t id = sample_token(logits, model_arch(g->m)->vocab, g->s, g->s->first + prompt,
		r->n, g->scratch);

	if (!isfinite(logits[id]))   /* the largest is a number unless none is */
		return err_set(err, EX_DATAERR,
			"the model's logits are no numbers; tune-ckpt verify says whether its weights are");
	if (is_stop(g, id)) {
		r->stopped = true;
		a->prompt = -1;
		return 0;
	}
	if (grow(&r->ids, &a->cap, r->n + 1, sizeof(*r->ids), err) < 0)
		return -1;
	r->ids[r->n++] = a->next = id;
	if ((g->on_token && g->on_token(g->ctx, prompt, id)) ||
		(long)r->n >= g->s->max_new_tokens || kv_len(g->m, slot) >= model_gen_len(g->m))
		a->prompt = -1;
	return 0;
}

static int gen_alloc(struct gen *g, struct err *err)
{
	size_t slots = (size_t)g->slots, v = (size_t)model_arch(g->m)->vocab;
	size_t i;

	g->a = mem_zalloc(slots, sizeof(*g->a), err);
	g->feed = mem_zalloc(slots, sizeof(*g->feed), err);
	g->lens = mem_zalloc(slots, sizeof(*g->lens), err);
	g->logits = mem_zalloc(slots * v, sizeof(*g->logits), err);
	g->scratch = mem_zalloc(v, sizeof(*g->scratch), err);
	if (!g->a || !g->feed || !g->lens || !g->logits || !g->scratch)
		return -1;
	for (i = 0; i < slots; i++)
		g->a[i].prompt = -1;
	return 0;
}

static void gen_release(struct gen *g)
{
	free(g->a);
	free(g->feed);
	free(g->lens);
	free(g->ids);
	free(g->logits);
	free(g->scratch);
}

int generate(struct model *m, const struct gen_prompt *prompts, size_t n, const struct sampling *s,
	const uint32_t *stop, size_t nstop, gen_token_fn *on_token, void *ctx,
	struct gen_result *results, struct err *err)
{
	struct gen g = { .m = m,
		.prompts = prompts,
		.n = n,
		.s = s,
		.stop = stop,
		.nstop = nstop,
		.on_token = on_token,
		.ctx = ctx,
		.results = results,
		.slots = model_gen_slots(m) };
	int i, nseq, rc = -1;

	assert(g.slots > 0 && s->max_new_tokens > 0);
	memset(results, 0, n * sizeof(*results));
	if (check_prompts(&g, err) < 0 || gen_alloc(&g, err) < 0)
		goto done;
	while ((nseq = list_feed(&g, err)) > 0) {
		if (kv_feed(m, nseq, g.feed, g.lens, g.ids, g.logits, err) < 0)
			goto done;
		for (i = 0; i < nseq; i++)
			if (advance(&g, g.feed[i],
				    g.logits + (size_t)i * (size_t)model_arch(m)->vocab, err) < 0)
				goto done;
	}
	rc = nseq;
done:
	for (i = 0; rc < 0 && (size_t)i < n; i++) {
		free(results[i].ids);
		results[i] = (struct gen_result){0};
	}
	gen_release(&g);
	return rc;
}

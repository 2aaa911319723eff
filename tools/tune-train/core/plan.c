/*
 * plan: what a run takes, before anything is taken.
 *
 * A frame (model without memory) is measured at candidate sizes by the code that later hands out
 * the buffers.  micro_tokens is the largest of MICRO_TOKENS, its halves and the longest record that
 * fits; activations are kept where they fit with at least KEEP_TOKENS tokens (below, products are
 * small and recomputing costs less), else made again.  A micro-batch is never larger than a step.
 */
#include <stdio.h>

#include "frame.h"
#include "model.h"

enum { MICRO_TOKENS = 2048, KEEP_TOKENS = 512, FEED_TOKENS = 512 };
enum { HEAD_ELEMENTS = 1 << 26, HEAD_ROWS_MIN = 128, HEAD_ROWS_MAX = 2048 };

/* Refuse by name what block.c and head.c don't compute. */
static int check_arch(const struct arch *a, const struct model_opts *o, struct err *err)
{
	const struct { const char *name; bool bad; } no[] = {
		{ "query and key norms (qk_norm)", a->qk_norm },
		{ "soft caps of attention scores", a->attn_softcap > 0 },
		{ "soft caps of logits", a->head_softcap > 0 },
		{ "a scaled embedding", a->embed_scale != 0 && a->embed_scale != 1 },
		{ "scaled residuals", a->residual_scale != 0 && a->residual_scale != 1 },
		{ "scaled logits", a->logit_scale != 0 && a->logit_scale != 1 },
		{ "norms other than rmsnorm", a->norm != NORM_RMS },
		{ "an odd head_dim", a->head_dim % 2 },
		{ "a head_dim above 256", a->head_dim > ATTN_HEAD_DIM_MAX },
		{ "heads that are no multiple of kv_heads",
			a->kv_heads < 1 || a->heads % a->kv_heads },
	};
	size_t i;

	for (i = 0; i < sizeof(no) / sizeof(*no); i++)
		if (no[i].bad)
			return err_set(err, EX_CONFIG, "model family '%s': %s: not supported",
				a->family, no[i].name);
	if (o->dtype != DT_F32 && o->dtype != DT_BF16)
		return err_set(err, EX_CONFIG, "model.dtype: %s is not supported (fp32, bf16)",
			dtype_word(o->dtype));
	if (o->gen_slots && o->gen_len > INT32_MAX / o->gen_slots)
		return err_set(err, EX_CONFIG,
			"a cache of %d sequences of %ld tokens; at most %d tokens are possible in all",
			o->gen_slots, o->gen_len, INT32_MAX);
	return 0;
}

static size_t max_workspace(struct device *d, size_t ws, long t, long in, long out, bool train)
{
	const long s[3][3] = { { t, out, in }, { t, in, out }, { out, in, t } };
	int i;

	for (i = 0; i < (train ? 3 : 1); i++) {
		size_t w = d->workspace(d, s[i][0], s[i][1], s[i][2]);

		ws = w > ws ? w : ws;
	}
	return ws;
}

static uint64_t workspace(const struct model *m)
{
	const struct block *b = m->blocks;
	const struct linear *l[] = { &b->qkv, &b->o, &b->gu, &b->down };
	size_t ws = 0;
	int i;

	for (i = 0; i < 4; i++)
		ws = max_workspace(m->d, ws, m->plan.micro_tokens, l[i]->in, l[i]->out,
			m->opts.train);
	return max_workspace(m->d, ws, m->plan.head_rows, m->arch->dim, m->arch->vocab,
		m->opts.train);
}

static long pow2_floor(long n)
{
	long p = 1;

	while (p * 2 <= n)
		p *= 2;
	return p;
}

/* Logits of a chunk: about HEAD_ELEMENTS; a wider one saves passes over the head's gradient, and
 * costs memory. */
static long head_rows(const struct arch *a, long t)
{
	long r = pow2_floor(HEAD_ELEMENTS / a->vocab > HEAD_ROWS_MIN ? HEAD_ELEMENTS / a->vocab
								     : HEAD_ROWS_MIN);

	r = r < HEAD_ROWS_MAX ? r : HEAD_ROWS_MAX;
	return r < t ? r : t;
}

static uint64_t measure(struct model *m, long t, bool recompute)
{
	struct plan *p = &m->plan;
	const uint64_t *b = m->bytes;

	p->micro_tokens = t;
	p->recompute = recompute;
	p->head_rows = head_rows(m->arch, t);
	buffers_measure(m);
	p->weights = b[MEM_WEIGHTS];
	p->masters = b[MEM_MASTERS];
	p->grads = b[MEM_GRADS];
	p->moments = b[MEM_MOMENTS];
	p->activations = b[MEM_ACTIVATIONS];
	p->head = b[MEM_HEAD];
	p->kv = b[MEM_KV];
	p->workspace = b[MEM_WORKSPACE] + b[MEM_HOST] + workspace(m);
	p->total = p->weights + p->masters + p->grads + p->moments + p->activations + p->head +
		   p->kv + p->workspace;
	return p->total;
}

/* The largest micro_tokens that fits, or 0. */
static long largest(struct model *m, long max, bool recompute)
{
	long lo = 0, hi = max;

	while (lo < hi) {
		long mid = lo + (hi - lo + 1) / 2;

		if (measure(m, mid, recompute) <= m->plan.available)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* bytes as "1.2 GiB". */
static const char *size_text(uint64_t bytes, char text[32])
{
	const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	int i = 0;

	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	snprintf(text, 32, i ? "%.1f %s" : "%.0f %s", v, unit[i]);
	return text;
}

static int refuse(struct model *m, long t, long at_least, bool recompute, struct err *err)
{
	char need[32], have[32], weights[32], cache[32];
	long fits = largest(m, t - 1, recompute);

	size_text(measure(m, t, recompute), need);
	size_text(m->plan.weights, weights);
	size_text(m->plan.kv, cache);
	size_text(m->plan.available, have);
	if (!m->opts.train && !fits)
		return err_set(err, EX_OSERR,
			"the model needs %s (weights %s, cache %s), %s is available", need, weights,
			cache, have);
	if (!fits)
		return err_set(err, EX_OSERR,
			"micro_tokens=%ld needs %s, %s is available; no micro_tokens fits: weights, gradients "
			"and optimizer "
			"alone need more",
			t, need, have);
	if (!m->opts.train && fits < at_least)
		return err_set(err, EX_OSERR,
			"a row of %ld tokens needs %s, %s is available; the longest that fits has %ld", t, need,
			have, fits);
	if (fits < at_least)
		return err_set(err, EX_OSERR,
			"micro_tokens=%ld (the longest record) needs %s, %s is available; the largest "
			"micro_tokens that fits is %ld: "
			"make shards with shard.seq_len=%ld",
			t, need, have, fits, fits);
	return err_set(err, EX_OSERR,
		"micro_tokens=%ld needs %s, %s is available; the largest micro_tokens that fits is %ld",
		t, need, have, fits);
}

/* Fill the plan of m: the first of the candidates that fits. */
static int choose(struct model *m, struct err *err)
{
	const struct model_opts *o = &m->opts;
	bool both = o->train && o->recompute == RECOMPUTE_AUTO;
	bool last = o->train && o->recompute != RECOMPUTE_OFF;  /* when nothing else fits */
	long least = o->max_record > o->gen_slots ? o->max_record : o->gen_slots;
	long cap = o->train || o->max_record ? MICRO_TOKENS : FEED_TOKENS, t;

	least = least > 1 ? least : 1;
	cap = o->step_tokens && cap > o->step_tokens ? o->step_tokens : cap;
	cap = cap > least ? cap : least;
	if (o->micro_tokens) {
		t = o->micro_tokens > least ? o->micro_tokens : least;
		if ((both && measure(m, t, false) <= m->plan.available) ||
			measure(m, t, last) <= m->plan.available)
			return 0;
		return refuse(m, t, least, last, err);
	}
	for (t = cap; both && t >= least && (t >= KEEP_TOKENS || t == cap); t /= 2)
		if (measure(m, t, false) <= m->plan.available)
			return 0;
	for (t = cap; t > least; t /= 2)
		if (measure(m, t, last) <= m->plan.available)
			return 0;
	if (measure(m, least, last) <= m->plan.available)
		return 0;
	return refuse(m, least, least, last, err);
}

static void count(struct model *m)
{
	const struct arch *a = m->arch;
	struct plan *p = &m->plan;
	double tied_head = a->tied ? (double)a->vocab * a->dim : 0;
	double matrices = tied_head;
	double trained = 0;
	size_t i;

	p->params = p->trained_params = 0;
	for (i = 0; i < m->units.nparams; i++) {
		const struct param *q = &m->units.params[i];
		bool product = q->ndim == 2 && q->role != T_EMBED;

		p->params += q->n;
		p->trained_params += q->trained ? q->n : 0;
		matrices += product ? (double)q->n : 0;
		trained += product && q->trained ? (double)q->n : 0;
	}
	if (m->embed_trained)
		trained += tied_head;
	p->flops_per_token = m->opts.train ? 4 * matrices + 2 * trained : 2 * matrices;
	if (!m->opts.train)
		p->trained_params = 0;
}

int plan_make(struct plan *p, const struct arch *a, const struct model_opts *o, struct device *d,
	struct comm *c, struct err *err)
{
	struct model m = {0};
	int rc = -1;

	if (check_arch(a, o, err) < 0)
		return -1;
	if (frame_init(&m, a, o, d, c, err) == 0) {
		m.plan.available = o->memory ? o->memory : d->memory_free(d);
		count(&m);
		rc = choose(&m, err);
		*p = m.plan;
	}
	frame_release(&m);
	return rc;
}

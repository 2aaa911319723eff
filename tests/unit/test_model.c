/* Core on tiny random models: what must hold whatever the weights.  Fault ids: faults of peers that
 * these guard against. */
#include "core/state.h"
#include "tap.h"
#include "tiny.h"

static const char *path;

/* |x - y| / |x| of the worst tensor's gradients. */
static double grad_diff(const struct tiny *a, const struct tiny *b)
{
	double worst = 0;
	size_t i, k;

	for (i = 0; i < model_param_count(a->m); i++) {
		double diff = 0, norm = 1e-60;
		float *x, *y;

		if (!model_param(a->m, i)->trained)
			continue;
		x = tiny_read(a, i, PARAM_GRAD);
		y = tiny_read(b, i, PARAM_GRAD);
		for (k = 0; k < model_param(a->m, i)->n; k++) {
			diff += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
			norm += (double)x[k] * x[k];
		}
		if (!(sqrt(diff / norm) <= worst))
			worst = sqrt(diff / norm);
		free(x);
		free(y);
	}
	return worst;
}

static bool grads_same_bits(const struct tiny *a, const struct tiny *b)
{
	size_t na, nb;
	float *x = tiny_all_of(a, PARAM_GRAD, &na), *y = tiny_all_of(b, PARAM_GRAD, &nb);
	bool same = na == nb && same_bits(x, y, na);

	free(x);
	free(y);
	return same;
}

/* samples: 8 documents of 1..64 trained tokens; [from, to) of them as one micro-batch. */
static void sample_batch(struct tiny_batch *k, int from, int to)
{
	static const int trained[8] = { 1, 64, 7, 33, 12, 50, 2, 20 };
	int i;

	tiny_batch_init(k);
	for (i = from; i < to; i++)
		tiny_add(k, trained[i] + 5, trained[i], (uint32_t)i + 1, (uint32_t)i);
}

static double run_split(const struct tiny *t, int docs_each, double n)
{
	static struct tiny_batch k;
	double loss = 0;
	int i;

	model_zero_grads(t->m);
	for (i = 0; i < 8; i += docs_each) {
		sample_batch(&k, i, i + docs_each);
		tiny_pass(t, &k, n, &loss);
	}
	return loss;
}

static void test_accumulation(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny a, b;
	double la, lb, n = 189, d;

	tiny_random(&a, false, &o, 1);
	tiny_random(&b, false, &o, 1);
	la = run_split(&a, 8, n);
	lb = run_split(&b, 4, n);
	d = grad_diff(&a, &b);
	ok(fabs(la - lb) <= 1e-6 * la && d <= 1e-6,
		"MUST-1 L1: 8 samples as (8) and (4,4): loss %.2g, gradients %.2g",
		fabs(la - lb) / la, d);
	lb = run_split(&b, 1, n);
	d = grad_diff(&a, &b);
	ok(fabs(la - lb) <= 1e-6 * la && d <= 1e-6,
		"MUST-1 L1: 8 samples as (8) and 8 x (1): loss %.2g, gradients %.2g",
		fabs(la - lb) / la, d);
	tiny_batch_init(&k);
	tiny_add(&k, 12, 0, 99, 8);
	tiny_pass(&b, &k, n, &lb);
	ok(fabs(la - lb) <= 1e-6 * la && grad_diff(&a, &b) <= 1e-6,
		"MUST-1 L1: a micro-batch with no trained token adds nothing");
	/* L3: a short last window of two samples is divided by its own tokens: the same as that
	 * pair in one batch. */
	sample_batch(&k, 6, 8);
	model_zero_grads(a.m);
	la = lb = 0;
	tiny_pass(&a, &k, 22, &la);
	model_zero_grads(b.m);
	sample_batch(&k, 6, 7);
	tiny_pass(&b, &k, 22, &lb);
	sample_batch(&k, 7, 8);
	tiny_pass(&b, &k, 22, &lb);
	ok(grad_diff(&a, &b) <= 1e-6 && fabs(la - lb) <= 1e-6 * la,
		"L3: two samples in a short window: 2 x (1) is (2)");
	tiny_close(&a);
	tiny_close(&b);
}

static void test_packs(void)
{
	static struct tiny_batch ab, b, changed;
	struct model_opts o = tiny_opts();
	struct tiny t, u;
	float *x, *y, *z;
	double la = 0, lb = 0;
	size_t v = 512;

	tiny_random(&t, false, &o, 1);
	tiny_random(&u, false, &o, 1);
	tiny_batch_init(&ab);
	tiny_add(&ab, 7, 6, 1, 0);
	tiny_add(&ab, 9, 8, 2, 0);
	ab.off0[1] = 7;
	tiny_batch_init(&changed);
	tiny_add(&changed, 7, 6, 55, 0);
	tiny_add(&changed, 9, 8, 2, 0);
	tiny_batch_init(&b);
	tiny_add(&b, 9, 8, 2, 0);
	x = tiny_logits(&t, &ab, 0);
	y = tiny_logits(&t, &b, 0);
	z = tiny_logits(&t, &changed, 0);
	ok(max_diff(x + 7 * v, y, 9 * v) <= 1e-5,
		"MUST-6 P1: logits of B in the pack [A,B] are those of B alone");
	ok(same_bits(x + 7 * v, z + 7 * v, 9 * v) && !same_bits(x, z, 7 * v),
		"MUST-6 P1: other tokens in A leave B's logits bit for bit");
	ok(ab.b.trained == 14, "P2: a pack of 7 and 9 has 14 targets");
	model_zero_grads(t.m);
	tiny_pass(&t, &ab, 14, &la);
	ok(t.m->tok.nrows == 14, "P2: no row of the head crosses the boundary");
	tiny_batch_init(&b);
	tiny_add(&b, 7, 6, 1, 0);
	tiny_pass(&u, &b, 14, &lb);
	tiny_batch_init(&b);
	tiny_add(&b, 9, 8, 2, 0);
	tiny_pass(&u, &b, 14, &lb);
	ok(grad_diff(&t, &u) <= 1e-6 && fabs(la - lb) <= 1e-6 * la,
		"MUST-6 P1: gradients of a pack are the sum of its documents'");
	free(x);
	free(y);
	free(z);
	tiny_close(&t);
	tiny_close(&u);
}

static void test_lengths(void)
{
	static const int len[] = { 3, 1, 17, 32, 1 };
	static struct tiny_batch all, one;
	struct model_opts o = tiny_opts();
	struct tiny t;
	float *x, *y;
	double d = 0, loss = 0;
	size_t i, n;

	tiny_random(&t, false, &o, 1);
	tiny_batch_init(&all);
	for (i = 0; i < 5; i++)
		tiny_add(&all, len[i], len[i] - 1, (uint32_t)i, 0);
	x = tiny_logits(&t, &all, 0);
	for (i = 0; i < 5; i++) {
		tiny_batch_init(&one);
		tiny_add(&one, len[i], len[i] - 1, (uint32_t)i, 0);
		y = tiny_logits(&t, &one, 0);
		d = worst_of(d, max_diff(x + (size_t)all.cu[i] * 512, y, (size_t)len[i] * 512));
		free(y);
	}
	free(x);
	ok(d <= 1e-6, "P4 E2: lengths 3, 1, 17, 32, 1 in one batch and one by one: %.2g", d);
	tiny_pass(&t, &all, 49, &loss);
	x = tiny_all_of(&t, PARAM_GRAD, &n);
	ok(isfinite(loss) && isfinite(max_diff(x, x, n)),
		"O5: documents of one token give finite gradients");
	free(x);
	/* A batch of only a one-token document has nothing to train. */
	model_zero_grads(t.m);
	tiny_batch_init(&one);
	tiny_add(&one, 1, 0, 1, 0);
	loss = 0;
	tiny_pass(&t, &one, 1, &loss);
	x = tiny_all_of(&t, PARAM_GRAD, &n);
	ok(loss == 0 && max_abs(x, n) == 0,
		"O5: a lone one-token document gives no loss and no gradient");
	free(x);
	tiny_close(&t);
}

static void test_big_logits(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny t;
	size_t i, j, n;
	float *x;
	double loss = 0;

	tiny_random(&t, false, &o, 1);
	i = tiny_find(&t, "lm_head.weight");
	x = tiny_read(&t, i, PARAM_VALUE);
	for (j = 0; j < 512 * 64; j++)
		x[j] *= 1e4f;
	tiny_write(&t, i, PARAM_VALUE, x);
	free(x);
	tiny_batch_init(&k);
	tiny_add(&k, 20, 19, 1, 0);
	tiny_pass(&t, &k, 19, &loss);
	x = tiny_all_of(&t, PARAM_GRAD, &n);
	ok(isfinite(loss) && isfinite(max_diff(x, x, n)),
		"O5: logits of +-1e4 don't overflow (loss %.3g)", loss);
	free(x);
	tiny_close(&t);
}

static void test_bf16_adamw(void)
{
	struct model_opts o = tiny_opts();
	struct arch a = tiny_arch(false);
	struct adamw_opts adamw = { 0.9, 0.999, 1e-8, 0 };
	struct step_stats s = {0};
	struct err e = {0};
	struct tiny t;
	float one[64], *x;
	uint16_t stored[64];
	size_t i;
	double want = 1, m = 0, v = 0;
	int k;

	a.layers = 1;
	a.vocab = a.ffn_dim = 32;
	o.dtype = DT_BF16;
	tiny_open(&t, a, &o, 1);
	for (k = 0; k < 64; k++)
		one[k] = 1;
	i = tiny_find(&t, "model.norm.weight");
	tiny_write(&t, i, PARAM_VALUE, one);
	tiny_write(&t, i, PARAM_GRAD, one);
	for (k = 1; k <= 1000; k++) {
		if (model_step(t.m, 1e-5, 0, &adamw, &s, &e) < 0)
			tiny_die(&e, "model_step");
		m = 0.9 * m + 0.1;
		v = 0.999 * v + 0.001;
		want -= 1e-5 * (m / (1 - pow(0.9, k))) / (sqrt(v / (1 - pow(0.999, k))) + 1e-8);
	}
	x = tiny_read(&t, i, PARAM_VALUE);
	t.d->download(t.d, stored, units_value(&t.m->units, 2, T_FINAL_NORM, SLICE_BASE).p,
		sizeof(stored), &e);
	ok(fabs(x[0] - 0.99) <= 1e-4 && fabs(x[63] - want) <= 2e-5,
		"MUST-7 O1: bf16, 1000 steps of 1e-5: the master is %.7f (simulated %.7f)",
		(double)x[0], want);
	ok(bf16_f32(stored[0]) == 0.98828125f && bf16_f32(stored[63]) == 0.98828125f,
		"MUST-7 O1: the stored bf16 moved to 0.98828125 (%.8f)",
		(double)bf16_f32(stored[0]));
	ok(model_updates(t.m) == 1000 && fabs(s.grad_norm - 8) < 1e-6,
		"1000 updates; norm of 64 ones is 8");
	free(x);
	tiny_close(&t);
}

static void test_poison(float bad)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct adamw_opts adamw = { 0.9, 0.999, 1e-8, 0.1 };
	struct step_stats s = {0};
	struct err e = {0};
	struct tiny t;
	float *before[3], *after, *g;
	size_t i, n;
	double loss = 0;
	bool same = true;
	int w;
	static const enum param_what what[] = { PARAM_VALUE, PARAM_EXP_AVG, PARAM_EXP_AVG_SQ };

	tiny_random(&t, true, &o, 1);
	tiny_batch_init(&k);
	tiny_add(&k, 20, 19, 1, 0);
	for (i = 0; i < 4; i++) {
		model_zero_grads(t.m);
		tiny_pass(&t, &k, 19, &loss);
		model_step(t.m, 1e-3, 1, &adamw, &s, &e);
	}
	for (w = 0; w < 3; w++)
		before[w] = tiny_all_of(&t, what[w], &n);
	i = tiny_find(&t, "model.layers.1.mlp.up_proj.weight");
	g = tiny_read(&t, i, PARAM_GRAD);
	g[777] = bad;
	tiny_write(&t, i, PARAM_GRAD, g);
	model_step(t.m, 1e-3, 1, &adamw, &s, &e);
	for (w = 0; w < 3; w++) {
		after = tiny_all_of(&t, what[w], &n);
		same &= same_bits(before[w], after, n);
		free(before[w]);
		free(after);
	}
	ok(same && !s.finite && !isfinite(s.grad_norm) && model_updates(t.m) == 4,
		"O4: a gradient of %g changes no weight, no moment, no count", (double)bad);
	model_zero_grads(t.m);
	tiny_pass(&t, &k, 19, &loss);
	model_step(t.m, 1e-3, 1, &adamw, &s, &e);
	ok(s.finite && model_updates(t.m) == 5, "O4: the next good step goes on");
	free(g);
	tiny_close(&t);
}

/* B random, so that the adapter does something. */
static void random_b(const struct tiny *t)
{
	size_t i, k;

	for (i = 0; i < model_param_count(t->m); i++) {
		const struct param *p = model_param(t->m, i);
		float *x;

		if (p->src >= 0 || !strstr(p->name, "lora_B"))
			continue;
		x = tiny_read(t, i, PARAM_VALUE);
		for (k = 0; k < p->n; k++)
			x[k] = 0.1f * (float)sin(0.7 * (double)k + (double)i);
		tiny_write(t, i, PARAM_VALUE, x);
		free(x);
	}
}

/* Base weights of t with scale * B A added, into u. */
static int merge(const struct tiny *t, const struct tiny *u, double scale)
{
	size_t i;
	int changed = 0;

	for (i = 0; i < model_param_count(u->m); i++) {
		const struct param *p = model_param(u->m, i);
		int ia = units_find(&t->m->units, p->unit, p->role, SLICE_A),
		    ib = units_find(&t->m->units, p->unit, p->role, SLICE_B);
		float *w = tiny_read(t, tiny_find(t, p->name), PARAM_VALUE), *a, *b;
		uint64_t r, c, j, rank;

		if (ia >= 0) {
			a = tiny_read(t, (size_t)ia, PARAM_VALUE);
			b = tiny_read(t, (size_t)ib, PARAM_VALUE);
			rank = model_param(t->m, (size_t)ia)->shape[0];
			for (r = 0; r < p->shape[0]; r++) {
				for (c = 0; c < p->shape[1]; c++) {
					double sum = 0;

					for (j = 0; j < rank; j++)
						sum += (double)b[r * rank + j] *
						       a[j * p->shape[1] + c];
					w[r * p->shape[1] + c] += (float)(scale * sum);
				}
			}
			free(a);
			free(b);
			changed++;
		}
		tiny_write(u, i, PARAM_VALUE, w);
		free(w);
	}
	return changed;
}

static void test_lora(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_lora(4, 0), full = tiny_opts();
	struct tiny t, u;
	float *with, *without, *base, *merged;
	size_t n = 40 * 512;

	tiny_random(&t, false, &o, 1);
	tiny_random(&u, false, &full, 1);
	tiny_batch_init(&k);
	tiny_add(&k, 40, 39, 1, 0);
	base = tiny_logits(&u, &k, 0);
	with = tiny_logits(&t, &k, FWD_ADAPTER);
	ok(same_bits(base, with, n), "a fresh adapter (B = 0) changes nothing");
	free(with);
	random_b(&t);
	with = tiny_logits(&t, &k, FWD_ADAPTER);
	without = tiny_logits(&t, &k, 0);
	ok(same_bits(base, without, n) && max_diff(base, with, n) > 1e-2,
		"without FWD_ADAPTER the base runs, bit for bit");
	ok(merge(&t, &u, 2) == 14, "14 linears carry an adapter");
	merged = tiny_logits(&u, &k, 0);
	ok(max_diff(with, merged, n) <= 1e-5,
		"MUST-8 R1: merged weights give the adapter's logits: %.2g <= 1e-5",
		max_diff(with, merged, n));
	ok(t.p.trained_params == 2 * 4 * (64 + 64 + 64 + 32 + 64 + 32 + 64 + 64 + 3 * (64 + 96)),
		"only A and B are trained: %llu", (unsigned long long)t.p.trained_params);
	free(base);
	free(with);
	free(without);
	free(merged);
	tiny_close(&t);
	tiny_close(&u);
}

/* Directional derivative of the loss with the same dropout mask, against the gradient. */
static double loss_at(const struct tiny *t, const struct tiny_batch *k, float *x, const float *dir,
	size_t n, size_t at, double h)
{
	struct err e = {0};
	double sum = 0;
	float *y = malloc(n * sizeof(*y));
	size_t i;

	for (i = 0; i < n; i++)
		y[i] = x[i] + (float)(h * dir[i]);
	tiny_write(t, at, PARAM_VALUE, y);
	if (model_forward(t->m, &k->b, FWD_KEEP | FWD_ADAPTER, 0, &e) < 0 ||
		head_cross_entropy(t->m, 1, &sum, NULL, &e) < 0)
		tiny_die(&e, "loss_at");
	tiny_write(t, at, PARAM_VALUE, x);
	free(y);
	return sum;
}

static double slope_error(const struct tiny *t, const struct tiny_batch *k, const char *name)
{
	size_t i = tiny_find(t, name), n = model_param(t->m, i)->n, j;
	float *x = tiny_read(t, i, PARAM_VALUE), *g = tiny_read(t, i, PARAM_GRAD);
	double norm = 0, h = 2e-2, slope;

	for (j = 0; j < n; j++)
		norm += (double)g[j] * g[j];
	for (j = 0; j < n; j++)
		g[j] = (float)(g[j] / sqrt(norm));
	slope = (loss_at(t, k, x, g, n, i, h) - loss_at(t, k, x, g, n, i, -h)) / (2 * h);
	free(x);
	free(g);
	return fabs(slope - sqrt(norm)) / sqrt(norm);
}

static void test_dropout(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_lora(4, 0.5);
	struct tiny a, b;
	double la = 0, lb = 0, lc = 0;
	float *x, *y;
	int i;

	tiny_random(&a, false, &o, 1);
	o.recompute = RECOMPUTE_ON;
	tiny_random(&b, false, &o, 1);
	random_b(&a);
	random_b(&b);
	tiny_batch_init(&k);
	for (i = 0; i < 3; i++)
		tiny_add(&k, 20, 19, (uint32_t)i, (uint32_t)i / 2);
	k.off0[1] = 20;
	tiny_pass(&a, &k, 1, &la);
	tiny_pass(&b, &k, 1, &lb);
	ok(la == lb && grads_same_bits(&a, &b),
		"dropout: recompute draws the same masks, gradients bit for bit");
	x = tiny_logits(&a, &k, FWD_ADAPTER);
	y = tiny_logits(&a, &k, FWD_KEEP | FWD_ADAPTER);
	ok(max_diff(x, y, 60 * 512) > 1e-3, "dropout is for training passes only");
	free(x);
	free(y);
	ok(slope_error(&a, &k, "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight") <
				5e-3 &&
			slope_error(&a, &k,
				"base_model.model.model.layers.1.mlp.down_proj.lora_A.weight") <
				5e-3 &&
			slope_error(&a, &k,
				"base_model.model.model.layers.0.mlp.up_proj.lora_B.weight") < 5e-3,
		"dropout: gradients are slopes of the loss");
	/* Masks belong to a record and its tokens, not to a micro-batch. */
	model_zero_grads(b.m);
	for (i = 0; i < 3; i++) {
		tiny_batch_init(&k);
		tiny_add(&k, 20, 19, (uint32_t)i, (uint32_t)i / 2);
		k.off0[0] = i == 1 ? 20 : 0;
		tiny_pass(&b, &k, 1, &lc);
	}
	ok(fabs(la - lc) <= 1e-6 * la && grad_diff(&a, &b) <= 1e-6,
		"dropout: the same masks however the batch is cut");
	tiny_close(&a);
	tiny_close(&b);
}

static void test_tied(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny t, u;
	size_t i, j, n = 512 * 64;
	float *sum, *g, *w;
	double lt = 0, lu = 0, worst;

	tiny_random(&t, true, &o, 1);
	tiny_random(&u, false, &o, 1);
	for (i = 0; i < model_param_count(t.m); i++) {
		w = tiny_read(&t, i, PARAM_VALUE);
		tiny_write(&u, tiny_find(&u, model_param(t.m, i)->name), PARAM_VALUE, w);
		if (model_param(t.m, i)->role == T_EMBED)
			tiny_write(&u, tiny_find(&u, "lm_head.weight"), PARAM_VALUE, w);
		free(w);
	}
	tiny_batch_init(&k);
	tiny_add(&k, 50, 49, 1, 0);
	tiny_pass(&t, &k, 49, &lt);
	tiny_pass(&u, &k, 49, &lu);
	sum = tiny_read(&u, tiny_find(&u, "model.embed_tokens.weight"), PARAM_GRAD);
	g = tiny_read(&u, tiny_find(&u, "lm_head.weight"), PARAM_GRAD);
	for (j = 0; j < n; j++)
		sum[j] += g[j];
	free(g);
	g = tiny_read(&t, tiny_find(&t, "model.embed_tokens.weight"), PARAM_GRAD);
	worst = max_diff(g, sum, n) / max_abs(sum, n);
	ok(lt == lu && worst <= 1e-6, "C4: a tied tensor's gradient is the sum of both uses: %.2g",
		worst);
	ok(model_param_count(t.m) + 1 == model_param_count(u.m),
		"C4: a tied head is no parameter of its own");
	free(sum);
	free(g);
	tiny_close(&t);
	tiny_close(&u);
}

static void test_unused_rows(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny t;
	float *g;
	bool used[512] = {0}, right = true;
	double loss = 0;
	int i;

	tiny_random(&t, false, &o, 1);
	tiny_batch_init(&k);
	tiny_add(&k, 60, 59, 4, 0);
	tiny_pass(&t, &k, 59, &loss);
	for (i = 0; i < 60; i++)
		used[k.ids[i]] = true;
	g = tiny_read(&t, tiny_find(&t, "model.embed_tokens.weight"), PARAM_GRAD);
	used[k.ids[59]] = false;        /* the last token feeds no prediction */
	for (i = 0; i < 59; i++)
		used[k.ids[i]] = true;
	for (i = 0; i < 512 && right; i++)
		right = (max_abs(g + i * 64, 64) > 0) == used[i];
	ok(right, "K9: rows of ids that no trained token sees have exactly zero gradient");
	free(g);
	tiny_close(&t);
}

/* 100 steps on a pattern of text; the final weights. */
static float *train100(bool recompute, int threads, double *first, double *last, size_t *n)
{
	static const char text[] = "The quick brown fox jumps over the lazy dog; pack my box with five "
							   "dozen liquor jugs. How vexingly quick daft zebras jump! ";
	static struct tiny_batch k;
	struct init_opts init = { .seed = 11 };
	struct model_opts o = tiny_opts();
	struct adamw_opts adamw = { 0.9, 0.95, 1e-8, 0.1 };
	struct step_stats s;
	struct err e = {0};
	struct tiny t;
	float *w;
	int step, i, d;

	o.recompute = recompute ? RECOMPUTE_ON : RECOMPUTE_OFF;
	tiny_open(&t, tiny_arch(false), &o, threads);
	model_init_random(t.m, &init, &e);
	for (step = 0; step < 100; step++) {
		double loss = 0;

		tiny_batch_init(&k);
		for (d = 0; d < 2; d++) {
			int at = (step * 37 + d * 11) % 100;

			tiny_add(&k, 24, 23, 0, (uint32_t)d);
			for (i = 0; i < 24; i++)
				k.ids[d * 24 + i] =
					(uint8_t)text[(at + i) % (int)(sizeof(text) - 1)];
		}
		model_zero_grads(t.m);
		tiny_pass(&t, &k, (double)k.b.trained, &loss);
		model_step(t.m, 3e-3, 1, &adamw, &s, &e);
		if (step == 0)
			*first = loss;
		*last = loss;
		if (!isfinite(loss) || !s.finite)
			break;
	}
	w = tiny_all_of(&t, PARAM_VALUE, n);
	tiny_close(&t);
	return w;
}

static void test_training(void)
{
	double first, last, f2, l2;
	size_t n, n2;
	float *w = train100(false, 1, &first, &last, &n), *x;
	int threads;

	ok(isfinite(last) && last < 0.8 * first,
		"O6: 100 steps from random weights: loss %.4f -> %.4f", first, last);
	for (threads = 2; threads <= 3; threads++) {
		x = train100(threads == 3, threads, &f2, &l2, &n2);
		ok(n == n2 && same_bits(w, x, n) && last == l2,
			"O6: %d threads%s: the same weights bit for bit", threads,
			threads == 3 ? ", recompute" : "");
		free(x);
	}
	free(w);
}

static void test_bf16(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny f, a, b;
	double lf = 0, la = 0, lb = 0;
	size_t i;

	tiny_random(&f, true, &o, 1);
	o.dtype = DT_BF16;
	tiny_random(&a, true, &o, 1);
	o.recompute = RECOMPUTE_ON;
	tiny_random(&b, true, &o, 1);
	for (i = 0; i < model_param_count(f.m); i++) {      /* the same bf16 values everywhere */
		float *w = tiny_read(&f, i, PARAM_VALUE);
		uint64_t j;

		for (j = 0; j < model_param(f.m, i)->n; j++)
			w[j] = bf16_f32(f32_bf16(w[j]));
		tiny_write(&f, i, PARAM_VALUE, w);
		tiny_write(&a, i, PARAM_VALUE, w);
		tiny_write(&b, i, PARAM_VALUE, w);
		free(w);
	}
	tiny_batch_init(&k);
	tiny_add(&k, 60, 59, 1, 0);
	tiny_add(&k, 40, 39, 2, 1);
	tiny_pass(&f, &k, 98, &lf);
	tiny_pass(&a, &k, 98, &la);
	tiny_pass(&b, &k, 98, &lb);
	ok(fabs(lf - la) <= 5e-3 * lf && grad_diff(&f, &a) <= 5e-2,
		"bf16: loss within %.2g, gradients within %.2g of fp32's", fabs(lf - la) / lf,
		grad_diff(&f, &a));
	ok(la == lb && grads_same_bits(&a, &b),
		"bf16: recompute gives the same gradients bit for bit");
	tiny_close(&f);
	tiny_close(&a);
	tiny_close(&b);
}

static void test_head(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct tiny a, b;
	struct err e = {0};
	float coef[60], logp[60], logp2[60];
	int32_t ids[60];
	uint8_t greedy[60];
	double la = 0, lb = 0;
	long i, n = 59;

	tiny_random(&a, false, &o, 1);
	tiny_open(&b, tiny_arch(false), &o, 1);
	model_free(b.m);
	b.p.head_rows = 7;              /* nine chunks instead of one */
	if (model_new(&b.m, &b.a, &o, &b.p, b.d, b.c, &e) < 0 ||
		model_init_random(
			b.m, &(struct init_opts){ .std = 0.15, .embed = 0.5, .seed = 3 }, &e) < 0)
		tiny_die(&e, "model_new");
	tiny_batch_init(&k);
	tiny_add(&k, 60, 59, 1, 0);
	tiny_pass(&a, &k, 59, &la);
	tiny_pass(&b, &k, 59, &lb);
	ok(fabs(la - lb) <= 1e-9 * la && grad_diff(&a, &b) <= 1e-6,
		"head: the same in chunks of 7 rows: %.2g", grad_diff(&a, &b));
	model_zero_grads(b.m);
	for (i = 0; i < n; i++) {
		coef[i] = (float)(1.0 / 59);
		ids[i] = (int32_t)k.ids[i + 1];
	}
	if (model_forward(b.m, &k.b, FWD_KEEP, 0, &e) < 0 ||
		head_forward(b.m, logp, greedy, &e) < 0 ||
		head_backward(b.m, coef, NULL, ids, coef, 1, &e) < 0 || model_backward(b.m, &e) < 0)
		tiny_die(&e, "head_backward");
	lb = 0;
	for (i = 0; i < n; i++)
		lb -= logp[i] / 59.0;
	ok(fabs(la - lb) <= 1e-6 * la && grad_diff(&a, &b) <= 1e-6,
		"head: cross-entropy through the general backward pass");
	model_forward(a.m, &k.b, 0, 0, &e);
	ok(head_forward(a.m, logp2, NULL, &e) == 0 && max_diff(logp, logp2, 59) <= 1e-6,
		"head: scores without gradients");
	ok(head_cross_entropy(a.m, 1, &la, NULL, &e) < 0 && model_backward(a.m, &e) < 0,
		"a gradient needs a kept forward pass");
	tiny_close(&a);
	tiny_close(&b);
}

static void test_bad_batch(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_opts();
	struct err e = {0};
	struct tiny t;

	tiny_random(&t, false, &o, 1);
	tiny_batch_init(&k);
	tiny_add(&k, 10, 9, 1, 0);
	k.ids[3] = 512;
	ok(model_forward(t.m, &k.b, 0, 0, &e) < 0 && e.code == EX_DATAERR &&
			!strcmp(e.msg, "token id 512, but the model's vocabulary has 512"),
		"K5: %s", e.msg);
	tiny_batch_init(&k);
	tiny_add(&k, 257, 9, 1, 0);
	e = (struct err){0};
	ok(model_forward(t.m, &k.b, 0, 0, &e) < 0 && e.code == EX_SOFTWARE,
		"more tokens than planned are a bug: %s", e.msg);
	tiny_close(&t);
}

int main(void)
{
	const char *paths[4];
	int n = tiny_paths(paths), i;

	for (i = 0; i < n; i++) {
		path = paths[i];
		setenv("TUNE_CPU", path, 1);
		printf("# %s\n", path);
		test_accumulation();
		test_packs();
		test_lengths();
		test_big_logits();
		test_bf16_adamw();
		test_poison(NAN);
		test_poison(INFINITY);
		test_lora();
		test_dropout();
		test_tied();
		test_unused_rows();
		test_training();
		test_bf16();
		test_head();
		test_bad_batch();
	}
	return tap_done();
}

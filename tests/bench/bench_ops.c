/*
 * Attention beside the FMA peak, and what is bound by memory beside a copy, at SmolLM2-135M's
 * shapes: bench_ops [T [RUNS]].
 */
#include "bench.h"

enum { HEADS = 9, KV = 3, DIM = 64, C = 576, F = 1536, V = 49152, LAYERS_ADAM = 4 << 20 };

struct world {
	struct device *d;
	struct pool *p;
	long t;
	enum dtype type;
	struct attn a;
	struct dbuf o, d_o, grad, x, y, w, gu, dgu;
	struct dmem *lse, *delta, *rstd, *dw, *cs, *pos, *logits, *target, *logp, *greedy, *coef, *sc,
		*master, *g, *m, *v;
};

static void run_attn_fwd(struct world *w) { w->d->attn_fwd(w->d, &w->a, w->o, w->lse); }
static void run_attn_bwd(struct world *w)
{
	w->d->attn_bwd(w->d, &w->a, w->grad, dbuf_at(w->grad, HEADS * DIM),
		dbuf_at(w->grad, (HEADS + KV) * DIM), w->o, w->d_o, w->lse, w->delta);
}
static void run_norm_fwd(struct world *w)
{
	w->d->rmsnorm_fwd(w->d, w->y, DBUF_NONE, w->rstd, w->x, DBUF_NONE, w->w, 1e-5f, w->t, C);
}
static void run_norm_bwd(struct world *w)
{
	w->d->rmsnorm_bwd(w->d, w->y, true, w->dw, w->d_o, w->x, w->rstd, w->w, w->t, C);
}
static void run_rope(struct world *w)
{
	w->d->rope(w->d, w->a.q, w->a.ldq, HEADS + KV, DIM, w->cs, w->pos, w->t, false);
}
static void run_gated_fwd(struct world *w) { w->d->gated_fwd(w->d, w->y, w->gu, 0, w->t, F); }
static void run_gated_bwd(struct world *w)
{
	w->d->gated_bwd(w->d, w->dgu, w->y, w->gu, 0, w->t, F);
}
static void run_add(struct world *w) { w->d->add(w->d, w->y, w->x, w->d_o, (size_t)(w->t * C)); }
static void run_head_fwd(struct world *w)
{
	w->d->head_rows_fwd(w->d, w->logp, w->lse, w->greedy, w->logits, w->target, 256, V);
}
static void run_head_bwd(struct world *w)
{
	w->d->head_rows_bwd(w->d, w->logits, w->lse, w->coef, NULL, w->target, w->coef, 1, 256, V);
}
static void run_sumsq(struct world *w) { w->d->sumsq(w->d, w->sc, w->g, LAYERS_ADAM); }
static void run_adamw(struct world *w)
{
	w->d->adamw(
		w->d, w->sc, w->master, DBUF_NONE, w->g, w->m, w->v, 0.9, 0.999, 1e-8, 0.01, LAYERS_ADAM);
}
static void run_copy(struct world *w) { w->d->copy(w->d, w->m, w->g, LAYERS_ADAM * 4); }

/* unit: the work of one run, in GFLOP or GB. */
static void one(struct world *w, const char *name, void (*run)(struct world *), double unit,
	bool flops, int runs)
{
	double best = 1e30, peak = 0, now;

	for (int i = 0; i < runs; i++) {
		now = bench_now();
		run(w);
		now = bench_now() - now;
		best = now < best ? now : best;
		if (flops && i % 4 == 0)
			peak = (now = bench_peak(w->p, 1)) > peak ? now : peak;
	}
	printf("%-14s %-5s %8.3f ms %7.1f %s", name, w->type == DT_F32 ? "fp32" : "bf16", best * 1e3,
		unit / best, flops ? "GF/s" : "GB/s");
	if (flops)
		printf("   peak %6.1f   %5.1f %%", peak, 100 * unit / best / peak);
	putchar('\n');
	fflush(stdout);
}

static void fill(struct world *w)
{
	struct device *d = w->d;
	size_t t = (size_t)w->t, ld = (HEADS + 2 * KV) * DIM;
	int32_t cu[2] = { 0, (int32_t)w->t };

	w->a = (struct attn){ .t = w->t,
		.docs = 1,
		.max_q = (int)t,
		.max_k = (int)t,
		.heads = HEADS,
		.kv_heads = KV,
		.head_dim = DIM,
		.scale = 0.125f,
		.ldq = (long)ld,
		.ldk = (long)ld,
		.ldv = (long)ld };
	w->a.q = bench_buf(d, w->type, t * ld, 1);
	w->a.k = dbuf_at(w->a.q, HEADS * DIM);
	w->a.v = dbuf_at(w->a.q, (HEADS + KV) * DIM);
	w->a.cu_q = w->a.cu_k = bench_buf(d, DT_F32, 2, 0).p;
	d->upload(d, w->a.cu_q, cu, sizeof(cu));
	w->o = bench_buf(d, w->type, t * C, 0);
	w->d_o = bench_buf(d, w->type, t * C, 2);
	w->grad = bench_buf(d, w->type, t * ld, 0);
	w->x = bench_buf(d, w->type, t * C, 3);
	w->y = bench_buf(d, w->type, t * F, 4);
	w->w = bench_buf(d, w->type, C, 5);
	w->gu = bench_buf(d, w->type, t * 2 * F, 6);
	w->dgu = bench_buf(d, w->type, t * 2 * F, 0);
	w->lse = bench_buf(d, DT_F32, t * HEADS, 0).p;
	w->delta = bench_buf(d, DT_F32, t * HEADS, 0).p;
	w->rstd = bench_buf(d, DT_F32, t, 0).p;
	w->dw = bench_buf(d, DT_F32, C, 0).p;
	w->cs = bench_buf(d, DT_F32, t * DIM, 7).p;
	w->pos = bench_buf(d, DT_F32, t, 0).p;
	w->logits = bench_buf(d, DT_F32, 256 * V, 8).p;
	w->target = bench_buf(d, DT_F32, 256, 0).p;
	w->logp = bench_buf(d, DT_F32, 256, 0).p;
	w->greedy = bench_buf(d, DT_F32, 256, 0).p;
	w->coef = bench_buf(d, DT_F32, 256, 0).p;
	w->sc = bench_buf(d, DT_F32, 2 * SC_COUNT, 0).p;
	w->master = bench_buf(d, DT_F32, LAYERS_ADAM, 9).p;
	w->g = bench_buf(d, DT_F32, LAYERS_ADAM, 10).p;
	w->m = bench_buf(d, DT_F32, LAYERS_ADAM, 0).p;
	w->v = bench_buf(d, DT_F32, LAYERS_ADAM, 0).p;
}

int main(int argc, char **argv)
{
	long t = argc > 1 ? strtol(argv[1], NULL, 10) : 2048;
	int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 12;
	struct device *d = bench_device();
	struct pool *p;
	struct err err;
	double pairs = (double)t * (double)(t + 1) / 2 * HEADS * DIM * 2e-9, act = (double)t * 1e-9,
		one_scalar = 1;

	if (pool_new(&p, getenv("THREADS") ? (int)strtol(getenv("THREADS"), NULL, 10) : 0, &err) < 0)
		return 71;
	printf("%s, T=%ld\n", d->what, t);
	for (int i = 0; i < 2; i++) {
		struct world w = { .d = d, .p = p, .t = t, .type = i ? DT_BF16 : DT_F32 };
		double b = i ? 2 : 4;

		fill(&w);
		d->upload(d, dmem_at(w.sc, SC_GRAD_SCALE * 8), &one_scalar, 8);
		d->step_scalars(d, w.sc, 1e-4, 1, 0.9, 0.999);
		one(&w, "attention fwd", run_attn_fwd, 2 * pairs, true, runs);
		/* Five products; that we make scores twice isn't counted. */
		one(&w, "attention bwd", run_attn_bwd, 5 * pairs, true, runs);
		one(&w, "rmsnorm fwd", run_norm_fwd, act * C * 2 * b, false, runs);
		one(&w, "rmsnorm bwd", run_norm_bwd, act * C * 4 * b, false, runs);
		one(&w, "rope", run_rope, act * (HEADS + KV) * DIM * 2 * b, false, runs);
		one(&w, "silu*up fwd", run_gated_fwd, act * F * 3 * b, false, runs);
		one(&w, "silu*up bwd", run_gated_bwd, act * F * 5 * b, false, runs);
		one(&w, "add", run_add, act * C * 3 * b, false, runs);
		if (i)
			continue;
		one(&w, "head rows fwd", run_head_fwd, 256e-9 * V * 4, false, runs);
		one(&w, "head rows bwd", run_head_bwd, 256e-9 * V * 8, false, runs);
		one(&w, "sum of squares", run_sumsq, LAYERS_ADAM * 4e-9, false, runs);
		one(&w, "adamw", run_adamw, LAYERS_ADAM * 28e-9, false, runs);
		one(&w, "copy", run_copy, LAYERS_ADAM * 8e-9, false, runs);
	}
	pool_free(p);
	device_close(d);
	return 0;
}

/* Every other operation of a device, on every path, against double precision or exact bits. */
#include "device_test.h"
#include "libcommon/arch/arch.h"
#include "libcommon/rng.h"

static const enum dtype types[] = { DT_F32, DT_BF16 };
static const char *path;

/* Sizes with every kind of tail. */
static const long sizes[][2] = { { 1, 1 }, { 3, 7 }, { 5, 64 }, { 17, 100 }, { 130, 577 } };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static double act(int kind, double x, double *dx)
{
	const double k = 0.7978845608028654;
	double s = 1 / (1 + exp(-x)), u = tanh(k * (x + 0.044715 * x * x * x)),
		e = 0.5 * (1 + erf(x / sqrt(2)));

	if (kind == ACT_SILU) {
		*dx = s * (1 + x * (1 - s));
		return x * s;
	}
	if (kind == ACT_GELU_TANH) {
		*dx = 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * k * (1 + 3 * 0.044715 * x * x);
		return 0.5 * x * (1 + u);
	}
	*dx = e + x * exp(-0.5 * x * x) / sqrt(6.283185307179586);
	return x * e;
}

static void test_gated(struct device *d, long t, long f, enum dtype type, int kind)
{
	double *gu, *dy, *want = test_array((size_t)(t * f)), *dwant = test_array((size_t)(2 * t * f));
	struct dbuf bgu = test_random(d, type, (size_t)(2 * t * f), 3, &gu),
		bdy = test_random(d, type, (size_t)(t * f), 1, &dy),
		y = test_buf(d, type, (size_t)(t * f));

	for (long i = 0; i < t; i++)
		for (long c = 0; c < f; c++) {
			double dx, a = act(kind, gu[2 * i * f + c], &dx), u = gu[(2 * i + 1) * f + c];

			want[i * f + c] = a * u;
			dwant[2 * i * f + c] = dy[i * f + c] * u * dx;
			dwant[(2 * i + 1) * f + c] = dy[i * f + c] * a;
		}
	d->gated_fwd(d, y, bgu, kind, t, f);
	ok(test_error(d, y, want, (size_t)(t * f), 1e-5) <= 1, "%s: activation %d, %ld x %ld, type %d",
		path, kind, t, f, type);
	d->gated_bwd(d, bgu, bdy, bgu, kind, t, f);
	ok(test_error(d, bgu, dwant, (size_t)(2 * t * f), 1e-5) <= 1, "%s: its gradient, in place",
		path);
}

static void test_norm(struct device *d, long t, long c, enum dtype type, bool residual)
{
	size_t n = (size_t)(t * c);
	double *x, *r, *w, *dy, *old, *y = test_array(n), *rs = test_array((size_t)t),
		*h = test_array(n), *dx = test_array(n),
		*dw = test_array((size_t)c);
	struct dbuf bx = test_random(d, type, n, 2, &x), br = test_random(d, type, n, 1, &r),
		bw = test_random(d, type, (size_t)c, 1, &w), by = test_buf(d, type, n);
	struct dbuf rstd = test_buf(d, DT_F32, (size_t)t), bdy = test_random(d, type, n, 1, &dy),
		bdx = test_random(d, DT_F32, n, 1, &old), bdw = test_buf(d, DT_F32, (size_t)c);

	d->rmsnorm_fwd(
		d, by, residual ? bx : DBUF_NONE, rstd.p, bx, residual ? br : DBUF_NONE, bw, 1e-5f, t, c);
	for (size_t i = 0; i < n; i++)   /* h is rounded as it is stored, and y follows from that */
		h[i] = !residual	  ? x[i]
			: type == DT_BF16 ? (double)bf16_f32(f32_bf16((float)x[i] + (float)r[i]))
							  : (double)((float)x[i] + (float)r[i]);
	for (long i = 0; i < t; i++) {
		double s = 0, k = 0;

		for (long j = 0; j < c; j++)
			s += h[i * c + j] * h[i * c + j];
		rs[i] = 1 / sqrt(s / (double)c + 1e-5);
		for (long j = 0; j < c; j++) {
			y[i * c + j] = h[i * c + j] * rs[i] * w[j];
			k += w[j] * dy[i * c + j] * h[i * c + j];
			dw[j] += dy[i * c + j] * h[i * c + j] * rs[i];
		}
		for (long j = 0; j < c; j++)
			dx[i * c + j] = old[i * c + j] +
				rs[i] * (w[j] * dy[i * c + j] - h[i * c + j] * rs[i] * rs[i] / (double)c * k);
	}
	ok(test_error(d, by, y, n, 1e-5) <= 1, "%s: rmsnorm %ld x %ld, type %d%s", path, t, c, type,
		residual ? ", residual in place" : "");
	ok(test_error(d, rstd, rs, (size_t)t, 1e-5) <= 1 &&
			(!residual || test_error(d, bx, h, n, 1e-7) <= 1),
		"%s: its statistics and h", path);
	d->rmsnorm_bwd(d, bdx, true, bdw.p, bdy, bx, rstd.p, bw, t, c);
	ok(test_error(d, bdx, dx, n, 3e-5) <= 1, "%s: its gradient, added", path);
	ok(test_error(d, bdw, dw, (size_t)c, 1e-5 * sqrt((double)t)) <= 1, "%s: its weight's gradient",
		path);
	d->rmsnorm_bwd(d, bdy, false, NULL, bdy, bx, rstd.p, bw, t, c);
	for (size_t i = 0; i < n; i++)
		dx[i] -= old[i];
	ok(test_error(d, bdy, dx, n, 3e-5) <= 1, "%s: the same over dy, weight frozen", path);
}

static void test_rope(struct device *d, int heads, int dim, enum dtype type)
{
	enum { T = 9, POSITIONS = 20 };
	long ld = (long)(heads + 1) * dim + 3;
	size_t n = (size_t)(T * ld);
	int32_t pos[T];
	double *x, *cs = test_array((size_t)(POSITIONS * dim)), *want = test_array(n);
	struct dbuf bx = test_random(d, type, n, 1, &x),
		bcs = test_buf(d, DT_F32, (size_t)(POSITIONS * dim));
	struct dmem *bpos;

	for (int p = 0; p < POSITIONS; p++)
		for (int i = 0; i < dim / 2; i++) {
			cs[p * dim + i] = cos(p * pow(1e4, -2. * i / dim));
			cs[p * dim + dim / 2 + i] = sin(p * pow(1e4, -2. * i / dim));
		}
	test_put(d, bcs, cs, (size_t)(POSITIONS * dim));
	for (int t = 0; t < T; t++)
		pos[t] = (t * 7) % POSITIONS;
	bpos = test_i32(d, pos, T);
	memcpy(want, x, n * sizeof(*x));
	for (int t = 0; t < T; t++)
		for (int h = 0; h < heads; h++)
			for (int i = 0; i < dim / 2; i++) {
				double *a = want + t * ld + h * dim + i, *b = a + dim / 2, c = cs[pos[t] * dim + i],
					s = cs[pos[t] * dim + dim / 2 + i], a0 = *a;

				*a = a0 * c - *b * s;
				*b = *b * c + a0 * s;
			}
	d->rope(d, bx, ld, heads, dim, bcs.p, bpos, T, false);
	ok(test_error(d, bx, want, n, 1e-6) <= 1,
		"%s: rope, %d heads of %d, type %d; other columns stay", path, heads, dim, type);
	d->rope(d, bx, ld, heads, dim, bcs.p, bpos, T, true);
	ok(test_error(d, bx, x, n, type == DT_BF16 ? 0.03 : 1e-5) <= 1, "%s: its inverse", path);
}

static void test_flat(struct device *d, long t, long c, enum dtype type)
{
	size_t n = (size_t)(t * c);
	double *a, *b, *db, *sum = test_array(n), *want = test_array((size_t)c);
	struct dbuf ba = test_random(d, type, n, 1, &a), bb = test_random(d, DT_F32, n, 1, &b),
		bdb = test_random(d, DT_F32, (size_t)c, 1, &db);
	struct dbuf half = test_buf(d, DT_BF16, n), back = test_buf(d, DT_F32, n);
	float nan = NAN;
	uint16_t nan16;

	d->cast(d, half, bb, n);
	d->cast(d, back, half, n);
	for (size_t i = 0; i < n; i++)
		sum[i] = (double)bf16_f32(f32_bf16((float)b[i]));
	ok(test_error(d, back, sum, n, 1e-30) <= 0,
		"%s: cast to bf16 and back rounds as f32_bf16, %ld elements", path, (long)n);
	d->upload(d, dmem_at(back.p, (n - 1) * 4), &nan, 4);
	d->cast(d, half, back, n);
	d->download(d, &nan16, dmem_at(half.p, (n - 1) * 2), 2, &test_err);
	ok(nan16 == f32_bf16(nan), "%s: cast keeps NaN", path);
	for (size_t i = 0; i < n; i++)
		sum[i] = a[i] + b[i];
	for (long j = 0; j < c; j++) {
		want[j] = db[j];
		for (long i = 0; i < t; i++)
			want[j] += a[i * c + j];
	}
	d->bias_bwd(d, bdb.p, ba, c, t, c);
	ok(test_error(d, bdb, want, (size_t)c, 1e-5 * sqrt((double)t)) <= 1,
		"%s: bias gradient %ld x %ld, type %d", path, t, c, type);
	d->add(d, ba, ba, bb, n);
	ok(test_error(d, ba, sum, n, 1e-7) <= 1, "%s: add in place", path);
}

static void test_rows(struct device *d, long c, enum dtype type)
{
	enum { T = 300, N = 40 };
	static const int32_t some[5] = { 7, 0, 39, 12, 3 };
	int32_t ids[T], order[T];
	double *w, *dy, *dw, *src, *want = test_array((size_t)(T * c));
	struct dbuf bw = test_random(d, type, (size_t)(N * c), 1, &w),
		y = test_buf(d, DT_BF16, (size_t)(T * c)),
		bdy = test_random(d, type, (size_t)(T * c), 1, &dy);
	struct dbuf bdw = test_random(d, DT_F32, (size_t)(N * c), 1, &dw),
		bsrc = test_random(d, type, (size_t)(5 * c), 1, &src),
		few = test_buf(d, DT_F32, (size_t)(5 * c));
	struct dbuf cache = test_buf(d, type, (size_t)(N * (c + 2)));
	struct dmem *bids, *rows = test_i32(d, some, 5);
	int n = 0;
	bool right = true;

	for (int t = 0; t < T; t++)   /* one id has most tokens: its run crosses the tasks' ranges */
		ids[t] = t % 3 ? 11 : (int32_t)(test_uniform() * N);
	for (int id = 0; id < N; id++)
		for (int t = 0; t < T; t++)
			if (ids[t] == id)
				order[n++] = t;
	bids = test_i32(d, ids, T);
	for (long t = 0; t < T; t++)
		for (long j = 0; j < c; j++) {
			want[t * c + j] = w[ids[t] * c + j];
			dw[ids[t] * c + j] += dy[t * c + j];
		}
	d->embed_fwd(d, y, bw, bids, T, c);
	ok(test_error(d, y, want, (size_t)(T * c), 1e-7) <= 1, "%s: embedding, %ld wide, type %d", path,
		c, type);
	d->embed_bwd(d, bdw.p, bdy, bids, test_i32(d, order, T), T, c);
	ok(test_error(d, bdw, dw, (size_t)(N * c), 3e-5) <= 1, "%s: its gradient", path);
	d->gather_rows(d, few, bw, rows, 5, c);
	for (int i = 0; i < 5; i++)
		memcpy(want + i * c, w + some[i] * c, (size_t)c * sizeof(*w));
	ok(test_error(d, few, want, (size_t)(5 * c), 1e-30) <= 0, "%s: gather", path);
	d->scatter_add_rows(d, bw, bsrc, rows, 5, c);
	for (int i = 0; i < 5; i++)
		for (long j = 0; j < c; j++)
			w[some[i] * c + j] += src[i * c + j];
	ok(test_error(d, bw, w, (size_t)(N * c), 1e-7) <= 1, "%s: scatter", path);
	d->put_rows(d, cache, c + 2, bsrc, c, rows, 5, c);
	for (int i = 0; i < 5; i++)
		right = right &&
			test_error(
				d, dbuf_at(cache, (size_t)(some[i] * (c + 2))), src + i * c, (size_t)c, 1e-30) <= 0;
	test_get(d, cache, want, (size_t)(N * (c + 2)));
	ok(right && want[7 * (c + 2) + c] == 0, "%s: rows into a cache, and nothing beside them", path);
}

static void test_dropout(struct device *d, long c, enum dtype type)
{
	enum { T = 6 };
	static const uint32_t rec[T] = { 0, 0, 3, 3, 3, 9 }, off[T] = { 0, 1, 0, 1, 70000, 5 };
	double *x, *want = test_array((size_t)(T * c));
	struct dbuf bx = test_random(d, type, (size_t)(T * c), 1, &x);
	struct dmem *brec = test_i32(d, (const int32_t *)rec, T),
		*boff = test_i32(d, (const int32_t *)off, T);
	uint32_t key[2], word[4];
	long kept = 0;

	rng_key(77, RNG_DROPOUT, key);
	for (long t = 0; t < T; t++)
		for (long j = 0; j < c; j++) {
			uint64_t e = (uint64_t)off[t] * (uint64_t)c + (uint64_t)j;
			uint32_t ctr[4] = { 5, rec[t], 2, (uint32_t)(e / 4) };

			philox4x32(key, ctr, word);
			want[t * c + j] = (double)rng_uniform(word[e % 4]) >= 0.25 ? x[t * c + j] / 0.75 : 0;
			kept += want[t * c + j] != 0;
		}
	d->dropout(d, bx, bx, 0.25f, 77, 5, 2, brec, boff, T, c);
	ok(test_error(d, bx, want, (size_t)(T * c), 1e-7) <= 1,
		"%s: dropout %ld wide, type %d, is Philox's", path, c, type);
	if (c > 500)
		ok(fabs((double)kept / (double)(T * c) - 0.75) < 0.03, "%s: and keeps 1 - p", path);
}

static void test_head(struct device *d, long r, long v, double big)
{
	enum { J = 2 };
	size_t n = (size_t)(r * v);
	double *x, *a, *u, *w, *lse = test_array((size_t)r), *logp = test_array((size_t)r),
		*dx = test_array(n);
	struct dbuf bx = test_random(d, DT_F32, n, big, &x), blse = test_buf(d, DT_F32, (size_t)r),
		blogp = test_buf(d, DT_F32, (size_t)r), bgreedy = test_buf(d, DT_U8, (size_t)r);
	struct dbuf ba = test_random(d, DT_F32, (size_t)r, 1, &a),
		bu = test_random(d, DT_F32, (size_t)r, 1, &u),
		bw = test_random(d, DT_F32, (size_t)(r * J), 1, &w);
	int32_t *target = (int32_t *)test_array((size_t)r),
		*ids = (int32_t *)test_array((size_t)(r * J));
	uint8_t *greedy = (uint8_t *)test_array((size_t)r);
	bool right = true;

	for (long i = 0; i < r; i++) {
		long best = 0;
		double s = 0;

		for (long j = 0; j < v; j++)
			best = x[i * v + j] > x[i * v + best] ? j : best;
		target[i] = i % 2 ? (int32_t)best : (int32_t)(test_uniform() * (double)v);
		for (long j = 0; j < v; j++)
			s += exp(x[i * v + j] - x[i * v + best]);
		lse[i] = x[i * v + best] + log(s);
		logp[i] = x[i * v + target[i]] - lse[i];
		for (long j = 0; j < v; j++)
			dx[i * v + j] = a[i] * exp(x[i * v + j] - lse[i]) - u[i];
		ids[i * J] = target[i];
		ids[i * J + 1] = i % 3 ? -1 : (int32_t)(v - 1);
		for (int j = 0; j < J; j++)
			if (ids[i * J + j] >= 0)
				dx[i * v + ids[i * J + j]] -= w[i * J + j];
	}
	d->head_rows_fwd(d, blogp.p, blse.p, bgreedy.p, bx.p, test_i32(d, target, (size_t)r), r, v);
	ok(test_error(d, blogp, logp, (size_t)r, 2e-6) <= 1 &&
			test_error(d, blse, lse, (size_t)r, 2e-6) <= 1,
		"%s: head %ld x %ld, logits of %g", path, r, v, big);
	d->download(d, greedy, bgreedy.p, (size_t)r, &test_err);
	for (long i = 0; i < r; i++) {
		long best = 0;

		for (long j = 0; j < v; j++)
			best = x[i * v + j] > x[i * v + best] ? j : best;
		right = right && greedy[i] == (target[i] == best);
	}
	ok(right, "%s: greedy", path);
	d->head_rows_bwd(d, bx.p, blse.p, ba.p, bu.p, test_i32(d, ids, (size_t)(r * J)), bw.p, J, r, v);
	/* With logits near 1e4 the exponent is a difference of floats with errors of 1e-3. */
	ok(test_error(d, bx, dx, n, big > 100 ? 1e-2 : 3e-6) <= 1, "%s: its gradient", path);
}

/* Equal logits: the first one is the greedy answer.  A NaN shows. */
static void test_head_ties(struct device *d)
{
	float x[20] = { 0, 1, 3, 3, 2, 0, 0, 3, 1, 0, /* second row */ 0, 1, NAN, 3, 2, 0, 0, 3, 1, 0 },
		logp[2];
	int32_t target[2] = { 3, 3 };
	uint8_t greedy[2];
	struct dbuf bx = test_buf(d, DT_F32, 20), blogp = test_buf(d, DT_F32, 2),
		blse = test_buf(d, DT_F32, 2), bgreedy = test_buf(d, DT_U8, 2);

	d->upload(d, bx.p, x, sizeof(x));
	d->head_rows_fwd(d, blogp.p, blse.p, bgreedy.p, bx.p, test_i32(d, target, 2), 2, 10);
	d->download(d, logp, blogp.p, sizeof(logp), &test_err);
	d->download(d, greedy, bgreedy.p, 2, &test_err);
	ok(greedy[0] == 0 && isnan(logp[1]), "%s: of equal logits the first is greedy; NaN gives NaN",
		path);
}

struct step { struct dbuf master, w, g, m, v; struct dmem *sc; };
static struct step step_new(struct device *d, size_t n)
{
	double one = 1;
	struct step s = { test_buf(d, DT_F32, n), test_buf(d, DT_BF16, n), test_buf(d, DT_F32, n),
		test_buf(d, DT_F32, n), test_buf(d, DT_F32, n), test_buf(d, DT_F32, 2 * SC_COUNT).p };

	d->upload(d, dmem_at(s.sc, SC_GRAD_SCALE * 8), &one, 8);
	return s;
}

static double scalar(struct device *d, const struct step *s, int which)
{
	double x = 0;

	d->download(d, &x, dmem_at(s->sc, (size_t)which * 8), 8, &test_err);
	return x;
}

static void step_once(
	struct device *d, struct step *s, size_t n, double lr, double clip, double decay)
{
	d->zero(d, dmem_at(s->sc, SC_SUMSQ * 8), 8);
	d->sumsq(d, s->sc, s->g.p, n);
	d->step_scalars(d, s->sc, lr, clip, 0.9, 0.999);
	d->adamw(d, s->sc, s->master.p, s->w, s->g.p, s->m.p, s->v.p, 0.9, 0.999, 1e-8, decay, n);
}

static void test_adamw(struct device *d)
{
	enum { N = 1003, STEPS = 5 };
	struct step s = step_new(d, N);
	double *p = test_array(N), *m = test_array(N), *v = test_array(N), *g = test_array(N), sum,
		norm, clip;

	for (int i = 0; i < N; i++)
		p[i] = test_normal();
	test_put(d, s.master, p, N);
	for (int k = 1; k <= STEPS; k++) {
		sum = 0;
		for (int i = 0; i < N; i++) {
			g[i] = (double)(float)(test_normal() * (k == 3 ? 10 : 0.01));
			sum += g[i] * g[i];
		}
		norm = sqrt(sum);
		clip = norm > 1 ? 1 / norm : 1;
		test_put(d, s.g, g, N);
		for (int i = 0; i < N; i++) {
			p[i] *= 1 - 1e-2 * 0.1;
			m[i] = 0.9 * m[i] + 0.1 * g[i] * clip;
			v[i] = 0.999 * v[i] + 0.001 * g[i] * clip * g[i] * clip;
			p[i] -= 1e-2 / (1 - pow(0.9, k)) * m[i] / (sqrt(v[i]) / sqrt(1 - pow(0.999, k)) + 1e-8);
		}
		step_once(d, &s, N, 1e-2, 1, 0.1);
		ok(fabs(scalar(d, &s, SC_NORM) / norm - 1) < 1e-12 &&
				fabs(scalar(d, &s, SC_CLIP) - clip) < 1e-12 && scalar(d, &s, SC_UPDATES) == k,
			"%s: step %d: norm and clip", path, k);
	}
	ok(test_error(d, s.master, p, N, 1e-6) <= 1 && test_error(d, s.m, m, N, 1e-7) <= 1 &&
			test_error(d, s.v, v, N, 1e-9) <= 1,
		"%s: AdamW after %d steps", path, STEPS);
	ok(test_error(d, s.w, p, N, 1e-6) <= 1, "%s: its bf16 copy", path);
}

/*
 * MUST-7 O1: a parameter of 1 with a constant gradient moves by 1e-5 a step: lost in bf16, kept in
 * the fp32 master.
 */
static void test_o1(struct device *d)
{
	struct step s = step_new(d, 1);
	double x = 1;

	test_put(d, s.master, &x, 1);
	test_put(d, s.g, &x, 1);
	for (int i = 0; i < 1000; i++)
		step_once(d, &s, 1, 1e-5, 0, 0);
	test_get(d, s.master, &x, 1);
	ok(fabs(x - 0.9899864) < 1e-4, "%s: MUST-7 O1: the master moved to %.7f", path, x);
	test_get(d, s.w, &x, 1);
	ok(x == 0.98828125, "%s: MUST-7 O1: its bf16 copy is %.8f", path, x);
}

/* O4: a gradient that is not finite changes nothing. */
static void test_o4(struct device *d, float bad)
{
	enum { N = 70001 };   /* more than a tile */
	struct step s = step_new(d, N), t = step_new(d, N);
	double *p, *one = test_array(N);
	struct dbuf start = test_random(d, DT_F32, N, 1, &p);

	for (int i = 0; i < N; i++)
		one[i] = 1e-3;
	test_put(d, s.g, one, N);
	d->copy(d, s.master.p, start.p, N * 4);
	step_once(d, &s, N, 1e-3, 1, 0.1);
	d->copy(d, t.master.p, s.master.p, N * 4);
	d->copy(d, t.m.p, s.m.p, N * 4);
	d->copy(d, t.v.p, s.v.p, N * 4);
	d->upload(d, dmem_at(s.g.p, 65540 * 4), &bad, 4);
	step_once(d, &s, N, 1e-3, 1, 0.1);
	ok(scalar(d, &s, SC_FINITE) == 0 && !isfinite(scalar(d, &s, SC_NORM)) &&
			scalar(d, &s, SC_UPDATES) == 1,
		"%s: O4: a gradient of %g is seen", path, (double)bad);
	ok(test_same(d, s.master.p, t.master.p, N * 4) && test_same(d, s.m.p, t.m.p, N * 4) &&
			test_same(d, s.v.p, t.v.p, N * 4),
		"%s: O4: and changes nothing", path);
}

static void test_sumsq(struct device *d)
{
	enum { N = 300001 };
	struct device *one = test_open(path, 1);
	double *g, sum = 0;
	struct dbuf b = test_random(d, DT_F32, N, 1e3, &g);
	struct step s = step_new(d, 1), s1 = step_new(d, 1);

	for (int i = 0; i < N; i++)
		sum += g[i] * g[i];
	d->sumsq(d, s.sc, b.p, N);
	ok(fabs(scalar(d, &s, SC_SUMSQ) / sum - 1) < 1e-12, "%s: sum of squares", path);
	one->sumsq(one, s1.sc, b.p, N);
	ok(scalar(d, &s, SC_SUMSQ) == scalar(d, &s1, SC_SUMSQ), "%s: its bits on 1 and 3 threads",
		path);
	device_close(one);
}

static void all(struct device *d)
{
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < SIZES; k++) {
			for (int kind = ACT_SILU; kind <= ACT_GELU; kind++)
				test_gated(d, sizes[k][0], sizes[k][1], types[i], kind);
			test_norm(d, sizes[k][0], sizes[k][1], types[i], k % 2);
			test_flat(d, sizes[k][0], sizes[k][1], types[i]);
		}
		test_norm(d, 4, 64, types[i], true);
		test_rope(d, 3, 64, types[i]);
		test_rope(d, 1, 10, types[i]);
		test_rows(d, 50, types[i]);
		test_rows(d, 576, types[i]);
		test_dropout(d, 576, types[i]);
		test_dropout(d, 7, types[i]);
	}
	test_head(d, 7, 1003, 4);
	test_head(d, 2, 49152, 2);
	test_head(d, 3, 5, 1);
	test_head(d, 4, 300, 1e4);   /* O5 */
	test_head_ties(d);
	test_adamw(d);
	test_o1(d);
	test_o4(d, NAN);
	test_o4(d, -INFINITY);
	test_sumsq(d);
}

static void test_opening(void)
{
	struct device *d = NULL;

	setenv("TUNE_CPU", "mmx", 1);
	ok(device_open(&d, "cpu", 1, &test_err) < 0 && test_err.code == EX_USAGE && !d &&
			strstr(test_err.msg, "TUNE_CPU=mmx: this build has the paths plain"),
		"an unknown path: %s", test_err.msg);
	setenv("TUNE_CPU", "", 1);
	ok(device_open(&d, "cuda", 1, &test_err) < 0 && test_err.code == EX_NODEVICE &&
			strstr(test_err.msg, "no CUDA"),
		"no CUDA: %s", test_err.msg);
	ok(device_open(&d, "tpu", 1, &test_err) < 0 && test_err.code == EX_USAGE,
		"an unknown device: %s", test_err.msg);
	ok(device_open(&d, "auto", 2, &test_err) == 0 && strstr(d->what, "2 threads"), "auto: %s",
		d->what);
	ok(d->memory_free(d) > 1 << 20, "memory that is left");
	device_close(d);
}

int main(void)
{
	test_opening();
	for (int p = 0; p < TEST_PATHS; p++) {
		struct device *d = test_open(path = test_paths[p], 3);

		if (!d)
			continue;
		all(d);
		device_close(d);
		test_forget();
	}
	return tap_done();
}

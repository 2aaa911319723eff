/*
 * Attention on every path against a double-precision reference; isolation of documents; decoding
 * against the whole pass.
 */
#include "device_test.h"

struct attn_case {
	int docs;
	int q[6], k[6];
	int heads, kv_heads, dim, window;
	float softcap;
	enum dtype t;
	int page;
	double big;
};

static const struct attn_case cases[] = {
	{ 1, { 1 }, { 1 }, 1, 1, 8, 0, 0, DT_F32, 0, 1 },
	{ 3, { 7, 1, 30 }, { 7, 1, 30 }, 2, 1, 10, 0, 0, DT_F32, 0, 1 },
	{ 2, { 250, 131 }, { 250, 131 }, 3, 1, 64, 0, 0, DT_F32, 0, 1 },
	{ 2, { 250, 131 }, { 250, 131 }, 6, 2, 64, 0, 0, DT_BF16, 0, 1 },
	{ 2, { 210, 97 }, { 210, 97 }, 4, 4, 128, 0, 0, DT_F32, 0, 1 },
	{ 1, { 201 }, { 201 }, 2, 1, 256, 0, 0, DT_F32, 0, 1 },
	{ 2, { 230, 5 }, { 230, 5 }, 4, 2, 20, 33, 0, DT_F32, 0, 1 },
	{ 2, { 230, 5 }, { 230, 5 }, 4, 2, 18, 1, 0, DT_F32, 0, 1 },
	{ 1, { 120 }, { 120 }, 14, 1, 16, 0, 5, DT_F32, 0, 1 },
	{ 2, { 150, 40 }, { 150, 40 }, 2, 2, 32, 50, 20, DT_BF16, 0, 1 },
	{ 1, { 100 }, { 100 }, 2, 1, 64, 0, 0, DT_F32, 0, 100 },      /* scores of +-1e4 (O5) */
	{ 3, { 1, 1, 1 }, { 5, 300, 97 }, 6, 2, 64, 0, 0, DT_F32, 16, 1 },
	{ 2, { 3, 40 }, { 200, 45 }, 4, 2, 64, 0, 0, DT_BF16, 10, 1 },
	{ 2, { 1, 9 }, { 250, 99 }, 4, 1, 16, 40, 0, DT_F32, 7, 1 },
};

struct operands {
	struct attn a;
	double *q, *k, *v, *d_o, *o, *lse, *dq, *dk, *dv;   /* host */
	int32_t cu_q[7], cu_k[7], *pages;
	long rows;                                          /* rows of k and v, pages counted */
};

/* q, k, v lie as they do in a block: [q|k|v] a row where there are no pages. */
static void make(struct device *d, const struct attn_case *c, struct operands *x)
{
	struct attn *a = &x->a;
	long nq = c->heads * c->dim, nk = c->kv_heads * c->dim, ld = nq + 2 * nk, used = 0;

	memset(x, 0, sizeof(*x));
	for (int i = 0; i < c->docs; i++) {
		x->cu_q[i + 1] = x->cu_q[i] + c->q[i];
		x->cu_k[i + 1] = x->cu_k[i] + c->k[i];
		a->max_q = c->q[i] > a->max_q ? c->q[i] : a->max_q;
		a->max_k = c->k[i] > a->max_k ? c->k[i] : a->max_k;
	}
	a->t = x->cu_q[c->docs];
	a->docs = c->docs;
	a->heads = c->heads;
	a->kv_heads = c->kv_heads;
	a->head_dim = c->dim;
	a->scale = 1.f / sqrtf((float)c->dim);
	a->window = c->window;
	a->softcap = c->softcap;
	a->cu_q = test_i32(d, x->cu_q, (size_t)c->docs + 1);
	a->cu_k = test_i32(d, x->cu_k, (size_t)c->docs + 1);
	if (!c->page) {
		x->rows = a->t;
		a->q = test_random(d, c->t, (size_t)(a->t * ld), c->big, &x->q);
		a->k = dbuf_at(a->q, (size_t)nq);
		a->v = dbuf_at(a->q, (size_t)(nq + nk));
		x->k = x->q + nq;
		x->v = x->q + nq + nk;
		a->ldq = a->ldk = a->ldv = ld;
		return;
	}
	a->page = c->page;
	a->pages_stride = a->max_k / c->page + 2;
	x->pages = (int32_t *)test_array((size_t)(c->docs * a->pages_stride));
	/* Pages from the end of the pool back, of all documents in turn. */
	for (int i = 0; i < c->docs; i++)
		for (int p = 0; p < a->pages_stride; p++)
			x->pages[i * a->pages_stride + p] = c->docs * a->pages_stride - 1 - (int)used++;
	x->rows = (long)c->docs * a->pages_stride * c->page;
	a->pages = test_i32(d, x->pages, (size_t)(c->docs * a->pages_stride));
	a->q = test_random(d, c->t, (size_t)(a->t * (nq + 5)), c->big, &x->q);
	a->k = test_random(d, c->t, (size_t)(x->rows * (nk + 1)), c->big, &x->k);
	a->v = test_random(d, c->t, (size_t)(x->rows * (nk + 2)), c->big, &x->v);
	a->ldq = nq + 5;
	a->ldk = nk + 1;
	a->ldv = nk + 2;
}

/*
 * The definition, in double: o, lse, and (without pages) dq, dk, dv as [T, heads or kv_heads, dim].
 */
static void reference(struct operands *x, bool backward)
{
	const struct attn *a = &x->a;
	long dim = a->head_dim, T = a->t;
	double *p = test_array((size_t)a->max_k), *ds = test_array((size_t)a->max_k),
		*slope = test_array((size_t)a->max_k);

	x->o = test_array((size_t)(T * a->heads * dim));
	x->lse = test_array((size_t)(T * a->heads));
	x->dq = test_array((size_t)(T * a->heads * dim));
	x->dk = test_array((size_t)(x->rows * a->kv_heads * dim));
	x->dv = test_array((size_t)(x->rows * a->kv_heads * dim));
	for (int d = 0; d < a->docs; d++)
		for (long t = x->cu_q[d]; t < x->cu_q[d + 1]; t++)
			for (long h = 0; h < a->heads; h++) {
				long g = h / (a->heads / a->kv_heads), klen = x->cu_k[d + 1] - x->cu_k[d];
				long last = t - x->cu_q[d] + klen - (x->cu_q[d + 1] - x->cu_q[d]),
					first = a->window && last >= a->window ? last - a->window + 1 : 0;
				double m = -INFINITY, sum = 0, delta = 0, *o = x->o + (t * a->heads + h) * dim,
					*d_o = backward ? x->d_o + (t * a->heads + h) * dim : NULL;
				const double *q = x->q + t * a->ldq + h * dim;

#define ROW(j)                                                                                     \
	(a->pages ? (long)x->pages[d * a->pages_stride + (j) / a->page] * a->page + (j) % a->page      \
			  : x->cu_k[d] + (j))
				for (long j = first; j <= last; j++) {
					double s = 0;

					for (long c = 0; c < dim; c++)
						s += q[c] * x->k[ROW(j) * a->ldk + g * dim + c];
					s *= (double)a->scale;
					slope[j] = 1;
					if (a->softcap != 0) {
						s = tanh(s / (double)a->softcap);
						slope[j] = 1 - s * s;
						s *= (double)a->softcap;
					}
					p[j] = s;
					m = s > m ? s : m;
				}
				for (long j = first; j <= last; j++)
					sum += p[j] = exp(p[j] - m);
				x->lse[h * T + t] = m + log(sum);
				for (long j = first; j <= last; j++) {
					p[j] /= sum;
					for (long c = 0; c < dim; c++)
						o[c] += p[j] * x->v[ROW(j) * a->ldv + g * dim + c];
				}
				for (long c = 0; c < dim && backward; c++)
					delta += o[c] * d_o[c];
				for (long j = first; j <= last && backward; j++) {
					double dp = 0;

					for (long c = 0; c < dim; c++)
						dp += d_o[c] * x->v[ROW(j) * a->ldv + g * dim + c];
					ds[j] = p[j] * (dp - delta) * slope[j] * (double)a->scale;
					for (long c = 0; c < dim; c++) {
						x->dq[(t * a->heads + h) * dim + c] +=
							ds[j] * x->k[ROW(j) * a->ldk + g * dim + c];
						x->dk[(ROW(j) * a->kv_heads + g) * dim + c] += ds[j] * q[c];
						x->dv[(ROW(j) * a->kv_heads + g) * dim + c] += p[j] * d_o[c];
					}
				}
			}
}

/* A strided gradient against a dense reference, one row at a time. */
static double rows_error(struct device *d, struct dbuf got, long ld, const double *want, long rows,
	long width, double bound)
{
	double worst = 0, e;

	for (long i = 0; i < rows; i++) {
		e = test_error(d, dbuf_at(got, (size_t)(i * ld)), want + i * width, (size_t)width, bound);
		worst = e > worst || isnan(e) ? e : worst;
	}
	return worst;
}

static void check(struct device *d, const char *path, const struct attn_case *c, int index)
{
	struct operands x;
	struct dbuf o, d_o, grad, lse, delta;
	long nq = c->heads * c->dim, nk = c->kv_heads * c->dim;
	/* bf16: o and d_o are rounded, and delta is made of them. */
	double scale, bound = c->t == DT_BF16 ? 4e-3 : 2e-5;

	make(d, c, &x);
	o = test_buf(d, c->t, (size_t)(x.a.t * nq));
	lse = test_buf(d, DT_F32, (size_t)(x.a.t * c->heads));
	delta = test_buf(d, DT_F32, (size_t)(x.a.t * c->heads));
	d_o = test_random(d, c->t, (size_t)(x.a.t * nq), 1, &x.d_o);
	reference(&x, !c->page);
	d->attn_fwd(d, &x.a, o, lse.p);
	ok(test_error(d, o, x.o, (size_t)(x.a.t * nq), 2e-5 * c->big * c->big) <= 1, "%s: case %d: o",
		path, index);
	ok(test_error(d, lse, x.lse, (size_t)(x.a.t * c->heads), 2e-5 * c->big) <= 1,
		"%s: case %d: log-sum-exp", path, index);
	if (c->page)
		return;
	grad = test_buf(d, c->t, (size_t)(x.a.t * x.a.ldq));
	d->attn_bwd(d, &x.a, grad, dbuf_at(grad, (size_t)nq), dbuf_at(grad, (size_t)(nq + nk)), o, d_o,
		lse.p, delta.p);
	scale = c->big * c->big;
	ok(rows_error(d, grad, x.a.ldq, x.dq, x.a.t, nq, bound * scale * sqrt(c->q[0])) <= 1,
		"%s: case %d: dq", path, index);
	ok(rows_error(d, dbuf_at(grad, (size_t)nq), x.a.ldq, x.dk, x.a.t, nk,
		   bound * scale * sqrt(c->q[0])) <= 1,
		"%s: case %d: dk", path, index);
	ok(rows_error(d, dbuf_at(grad, (size_t)(nq + nk)), x.a.ldq, x.dv, x.a.t, nk,
		   bound * scale * sqrt(c->q[0])) <= 1,
		"%s: case %d: dv", path, index);
}

/*
 * o and all gradients of documents of lengths len, from rows that begin at `first` of one fixed
 * array; 1 + 2 arrays of [T, 5 heads * 16].
 */
enum { HEADS = 3, WIDTH = HEADS * 16, LD = WIDTH + 32 };
static struct dbuf run_docs(struct device *d, struct dbuf qkv, struct dbuf d_o, long first,
	const int32_t *len, int docs, struct dbuf *grad)
{
	int32_t cu[4] = {0};
	struct attn a = { .docs = docs,
		.heads = HEADS,
		.kv_heads = 1,
		.head_dim = 16,
		.scale = 0.25f,
		.ldq = LD,
		.ldk = LD,
		.ldv = LD };
	struct dbuf o, lse, delta;

	for (int i = 0; i < docs; i++) {
		cu[i + 1] = cu[i] + len[i];
		a.max_q = a.max_k = len[i] > a.max_q ? len[i] : a.max_q;
	}
	a.t = cu[docs];
	a.cu_q = a.cu_k = test_i32(d, cu, (size_t)docs + 1);
	a.q = dbuf_at(qkv, (size_t)(first * LD));
	a.k = dbuf_at(a.q, WIDTH);
	a.v = dbuf_at(a.q, WIDTH + 16);
	o = test_buf(d, DT_F32, (size_t)(a.t * WIDTH));
	lse = test_buf(d, DT_F32, (size_t)(a.t * HEADS));
	delta = test_buf(d, DT_F32, (size_t)(a.t * HEADS));
	*grad = test_buf(d, DT_F32, (size_t)(a.t * LD));
	d->attn_fwd(d, &a, o, lse.p);
	d->attn_bwd(d, &a, *grad, dbuf_at(*grad, WIDTH), dbuf_at(*grad, WIDTH + 16), o,
		dbuf_at(d_o, (size_t)(first * WIDTH)), lse.p, delta.p);
	return o;
}

static void check_isolation(const char *path)
{
	struct device *d1 = test_open(path, 1), *d3 = test_open(path, 3);
	const int32_t len[3] = { 37, 1, 229 };
	double *x, *y;
	struct dbuf qkv = test_random(d1, DT_F32, 267 * LD, 1, &x),
		d_o = test_random(d1, DT_F32, 267 * WIDTH, 1, &y), grad, grad1;
	struct dbuf all = run_docs(d3, qkv, d_o, 0, len, 3, &grad),
		one = run_docs(d1, qkv, d_o, 38, len + 2, 1, &grad1);

	ok(test_same(d1, dbuf_at(all, 38 * WIDTH).p, one.p, sizeof(float) * 229 * WIDTH),
		"%s: P1 a document in a pack has the bits that it has alone", path);
	ok(test_same(d1, dbuf_at(grad, 38 * LD).p, grad1.p, sizeof(float) * 229 * LD),
		"%s: P1 and so have its gradients", path);
	one = run_docs(d1, qkv, d_o, 0, len, 3, &grad1);
	ok(test_same(d1, all.p, one.p, sizeof(float) * 267 * WIDTH) &&
			test_same(d1, grad.p, grad1.p, sizeof(float) * 267 * LD),
		"%s: the same bits on 1 and 3 threads", path);
	/* Token by token with the keys before it: decoding. */
	{
		int32_t cu_q[2] = { 0, 1 }, cu_k[2] = { 0, 0 };
		struct attn a = { .docs = 1,
			.t = 1,
			.max_q = 1,
			.heads = HEADS,
			.kv_heads = 1,
			.head_dim = 16,
			.scale = 0.25f,
			.ldq = LD,
			.ldk = LD,
			.ldv = LD };
		bool same = true;

		a.k = dbuf_at(qkv, 38 * LD + WIDTH);
		a.v = dbuf_at(qkv, 38 * LD + WIDTH + 16);
		for (int t = 0; t < 229; t++) {
			struct dbuf o = test_buf(d1, DT_F32, WIDTH);

			cu_k[1] = a.max_k = t + 1;
			a.cu_q = test_i32(d1, cu_q, 2);
			a.cu_k = test_i32(d1, cu_k, 2);
			a.q = dbuf_at(qkv, (size_t)(38 + t) * LD);
			d1->attn_fwd(d1, &a, o, NULL);
			same = same &&
				test_same(d1, o.p, dbuf_at(all, (size_t)(38 + t) * WIDTH).p, sizeof(float) * WIDTH);
		}
		ok(same, "%s: decoding token by token has the bits of the whole pass", path);
	}
	device_close(d1);
	device_close(d3);
}

int main(void)
{
	for (int p = 0; p < TEST_PATHS; p++) {
		struct device *d = test_open(test_paths[p], 3);

		if (!d)
			continue;
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			check(d, test_paths[p], &cases[i], (int)i);
		check_isolation(test_paths[p]);
		device_close(d);
		test_forget();
	}
	return tap_done();
}

/*
 * attention: varlen causal attention with grouped heads, forward and backward, in tiles of packed panels (panel.c).
 *
 * A task is a block of QB queries of one document and one key head, with all query heads that share it, or, for dk and dv, a block of
 * KB keys.  Blocks are counted from the document's start, so that a row's sums depend on its own document only; what a row of a tile
 * does not see has weight 0, which adds nothing.  Forward: online softmax over key blocks (Milakov & Gimelshein 2018; Dao et al. 2022).
 * Backward, from p = exp(s - lse) and delta = sum_d o * do:  ds = p * (do.v - delta) * slope * scale;  dq = ds k, dk = ds^T q, dv = p^T do.
 * dq and dk, dv are two passes that each make the scores again: no sum crosses tasks.
 */
#include "each.h"

enum { QB = 8 * MR, KB = 64 };

struct attn_run {
	const struct attn *a;
	struct dbuf o, d_o, dq, dk, dv;
	float *lse, *delta;
	long blocks;                  /* a document's blocks at most */
	int at_once;                  /* heads that fit the worker's memory */
	char *own; size_t own_bytes;
};

/* One tile: nq queries from row t0, of nh heads from h0, against nk keys from k0. */
struct tile {
	const struct attn_run *x;
	const struct attn *a;
	int doc, g, h0, nh;
	long t0, i0, nq, rows_h, rows;    /* rows_h: rows of one head, a multiple of MR; rows of all */
	long shift;                       /* a query's own key is its index + shift */
	long k0, nk;
	long d, dp;                       /* head_dim, and rounded up to NR */
	float *mem, *end;                 /* the worker's memory, taken from */
};

static float *take(struct tile *t, long n)
{
	float *p = t->mem;

	t->mem += round_up(n, 16);
	assert(t->mem <= t->end);
	return p;
}

static long q_len(const struct attn *a, int doc) { return i32(a->cu_q)[doc + 1] - i32(a->cu_q)[doc]; }
static long k_len(const struct attn *a, int doc) { return i32(a->cu_k)[doc + 1] - i32(a->cu_k)[doc]; }

/* Document, key head and block of a task; false if the document is shorter. */
static bool tile_of(const struct attn_run *x, long task, int worker, struct tile *t, long *block)
{
	const struct attn *a = x->a;

	*t = (struct tile){ .x = x, .a = a, .d = a->head_dim, .dp = round_up(a->head_dim, NR) };
	*block = x->blocks - 1 - task % x->blocks;      /* the longest first */
	t->g = (int)(task / x->blocks % a->kv_heads);
	t->doc = (int)(task / x->blocks / a->kv_heads);
	t->shift = k_len(a, t->doc) - q_len(a, t->doc);
	t->mem = (float *)(void *)(x->own + (size_t)worker * x->own_bytes);
	t->end = t->mem + x->own_bytes / 4;
	return true;
}

static bool queries(struct tile *t, long block)
{
	long n = q_len(t->a, t->doc), i0 = block * QB;

	if (i0 >= n)
		return false;
	t->i0 = i0;
	t->t0 = i32(t->a->cu_q)[t->doc] + i0;
	t->nq = n - i0 < QB ? n - i0 : QB;
	t->rows_h = round_up(t->nq, MR);
	t->rows = t->rows_h * t->nh;
	return true;
}

static void heads(struct tile *t, int h0)
{
	int group = t->a->heads / t->a->kv_heads, left = (t->g + 1) * group - h0;

	t->h0 = h0;
	t->nh = left < t->x->at_once ? left : t->x->at_once;
	t->rows = t->rows_h * t->nh;
}

/* First key of the block's first query, last key of its last one. */
static long first_key(const struct attn *a, long own) { return a->window > 0 && own - a->window + 1 > 0 ? own - a->window + 1 : 0; }

/* Left panels of the tile's query rows of a [T, heads * d] buffer. */
static float *left(struct tile *t, struct dbuf b, long ld)
{
	float *p = take(t, t->rows * t->d);

	for (int h = 0; h < t->nh; h++)
		pack(p + h * t->rows_h * t->d, &(struct view){ b, ld, false }, t->t0, t->nq, (t->h0 + h) * t->d, t->d, MR);
	return p;
}

static long key_row(const struct attn *a, int doc, long r)
{
	return a->pages ? (long)i32(a->pages)[(long)doc * a->pages_stride + r / a->page] * a->page + r % a->page : i32(a->cu_k)[doc] + r;
}

/* Right panels of the tile's keys: across = false for products with q or do (summed over d), true for products summed over keys. */
static void right(const struct tile *t, struct dbuf b, long ld, bool across, float *dst, float *rows)
{
	const struct attn *a = t->a;
	struct view v = { b, ld, across };
	long r0 = key_row(a, t->doc, t->k0), c0 = t->g * t->d;

	/* Keys that cross a page are gathered first. */
	if (a->pages && t->k0 / a->page != (t->k0 + t->nk - 1) / a->page) {
		for (long i = 0; i < t->nk; i++)
			EACH_VEC(j, n, 0, t->d)
				put((struct dbuf){ (struct dmem *)rows, DT_F32 }, i * t->d + j, get(b, key_row(a, t->doc, t->k0 + i) * ld + c0 + j, (int)n), (int)n);
		v = (struct view){ { (struct dmem *)rows, DT_F32 }, t->d, across };
		r0 = c0 = 0;
	}
	if (across)
		pack(dst, &v, c0, t->d, r0, t->nk, NR);
	else
		pack(dst, &v, r0, t->nk, c0, t->d, NR);
}

static void product(long k, const float *l, long rows, const float *r, long columns, float *c, long ldc, bool add)
{
	for (long j = 0; j < columns; j += NR)
		for (long i = 0; i < rows; i += MR)
			micro(k, l + i * k, r + j * k, c + i * ldc + j, ldc, add);
}

/* Scores of VW keys from j of query row i: scaled, capped, -inf where the row does not see the key. */
VINLINE vf scores(const struct tile *t, const float *s, long i, long j, vf *slope)
{
	const struct attn *a = t->a;
	long own = t->i0 + i + t->shift - t->k0, first = first_key(a, own + t->k0) - t->k0;
	vf v = vload(s + j) * a->scale;
	float lane[VW];

	*slope = vset(1);
	if (a->softcap != 0) {
		vf c = vtanh(v / a->softcap);

		*slope = 1.f - c * c;
		v = a->softcap * c;
	}
	if (j + VW - 1 > own || j < first) {
		vstore(lane, v);
		for (int k = 0; k < VW; k++)
			if (j + k > own || j + k < first)
				lane[k] = -INFINITY;
		v = vload(lane);
	}
	return v;
}

/* One row of scores becomes weights exp(s - m); the row's m and sum move on; returns the factor for what was summed before. */
static float soften(const struct tile *t, float *s, long i, float *m, float *sum)
{
	vf top = vset(-INFINITY), total = vset(0), slope;
	float m2, w;

	for (long j = 0; j < t->nk; j += VW) {
		vf v = scores(t, s, i, j, &slope);

		vstore(s + j, v);
		top = vmax(top, v);
	}
	m2 = vmax_lane(top);
	m2 = m2 > *m ? m2 : *m;
	w = m2 == -INFINITY || *m == m2 ? 1 : expf(*m - m2);
	for (long j = 0; j < t->nk; j += VW) {
		vf e = m2 == -INFINITY ? vset(0) : vexp(vload(s + j) - m2);

		vstore(s + j, e);
		total += e;
	}
	*sum = *sum * w + vsum(total);
	*m = m2;
	return w;
}

static void fwd_heads(struct tile *t, long last)
{
	const struct attn *a = t->a;
	float *const mem = t->mem;
	const float *q = left(t, a->q, a->ldq);
	float *k = take(t, KB * t->d), *v = take(t, KB * t->dp), *gather = take(t, KB * t->d), *s = take(t, t->rows * KB), *p = take(t, t->rows * KB);
	float *acc = take(t, t->rows * t->dp), *m = take(t, t->rows), *sum = take(t, t->rows);

	memset(acc, 0, (size_t)(t->rows * t->dp) * 4);
	for (long r = 0; r < t->rows; r++) {
		m[r] = -INFINITY;
		sum[r] = 0;
	}
	for (t->k0 = first_key(a, t->i0 + t->shift) / KB * KB; t->k0 <= last; t->k0 += KB) {
		t->nk = last + 1 - t->k0 < KB ? last + 1 - t->k0 : KB;
		right(t, a->k, a->ldk, false, k, gather);
		right(t, a->v, a->ldv, true, v, gather);
		product(t->d, q, t->rows, k, round_up(t->nk, NR), s, KB, false);
		for (long r = 0; r < t->rows; r++) {
			float w = soften(t, s + r * KB, r % t->rows_h, &m[r], &sum[r]);

			if (w != 1)
				for (long c = 0; c < t->dp; c += VW)
					vstore(acc + r * t->dp + c, vload(acc + r * t->dp + c) * w);
		}
		pack(p, &(struct view){ { (struct dmem *)s, DT_F32 }, KB, false }, 0, t->rows, 0, t->nk, MR);
		product(t->nk, p, t->rows, v, t->dp, acc, t->dp, true);
	}
	for (int h = 0; h < t->nh; h++)
		for (long i = 0; i < t->nq; i++) {
			long r = h * t->rows_h + i, head = t->h0 + h;

			EACH_VEC(c, n, 0, t->d)
				put(t->x->o, ((t->t0 + i) * a->heads + head) * t->d + c, vload(acc + r * t->dp + c) / sum[r], (int)n);
			if (t->x->lse)
				t->x->lse[head * a->t + t->t0 + i] = m[r] + logf(sum[r]);
		}
	t->mem = mem;
}

static void attn_fwd_task(void *ctx, long task, int worker)
{
	struct tile t;
	long block;
	int group;

	if (!tile_of(ctx, task, worker, &t, &block) || !queries(&t, block))
		return;
	group = t.a->heads / t.a->kv_heads;
	for (int h = t.g * group; h < (t.g + 1) * group; h += t.nh) {
		heads(&t, h);
		fwd_heads(&t, t.i0 + t.nq - 1 + t.shift);
	}
}

/* s becomes p, dp becomes ds, over all rows of a tile. */
static void grads(const struct tile *t, float *s, float *dp)
{
	const struct attn *a = t->a;

	for (long r = 0; r < t->rows; r++) {
		long i = r % t->rows_h, at = (t->h0 + r / t->rows_h) * a->t + t->t0 + i;
		float lse = i < t->nq ? t->x->lse[at] : INFINITY, delta = i < t->nq ? t->x->delta[at] : 0;   /* rows that do not exist: p = 0 */

		for (long j = 0; j < t->nk; j += VW) {
			vf slope, v = scores(t, s + r * KB, i, j, &slope), p = vexp(v - lse);

			vstore(s + r * KB + j, p);
			vstore(dp + r * KB + j, p * (vload(dp + r * KB + j) - delta) * slope * a->scale);
		}
	}
}

/* delta of the tile's rows. */
static void deltas(const struct tile *t)
{
	const struct attn *a = t->a;

	for (int h = t->h0; h < t->h0 + t->nh; h++)
		for (long i = t->t0; i < t->t0 + t->nq; i++) {
			vf sum = vset(0);

			EACH_VEC(c, n, 0, t->d)
				sum = vfma(get(t->x->o, (i * a->heads + h) * t->d + c, (int)n), get(t->x->d_o, (i * a->heads + h) * t->d + c, (int)n), sum);
			t->x->delta[h * a->t + i] = vsum(sum);
		}
}

static void dq_heads(struct tile *t, long last)
{
	const struct attn *a = t->a;
	float *const mem = t->mem;
	const float *q = left(t, a->q, a->ldq), *d_o = left(t, t->x->d_o, a->heads * t->d);
	float *k = take(t, KB * t->d), *v = take(t, KB * t->d), *kx = take(t, KB * t->dp);
	float *s = take(t, t->rows * KB), *ds = take(t, t->rows * KB), *acc = take(t, t->rows * t->dp);

	memset(acc, 0, (size_t)(t->rows * t->dp) * 4);
	deltas(t);
	for (t->k0 = first_key(a, t->i0) / KB * KB; t->k0 <= last; t->k0 += KB) {
		t->nk = last + 1 - t->k0 < KB ? last + 1 - t->k0 : KB;
		right(t, a->k, a->ldk, false, k, NULL);
		right(t, a->v, a->ldv, false, v, NULL);
		right(t, a->k, a->ldk, true, kx, NULL);
		product(t->d, q, t->rows, k, round_up(t->nk, NR), s, KB, false);
		product(t->d, d_o, t->rows, v, round_up(t->nk, NR), ds, KB, false);
		grads(t, s, ds);
		pack(s, &(struct view){ { (struct dmem *)ds, DT_F32 }, KB, false }, 0, t->rows, 0, t->nk, MR);
		product(t->nk, s, t->rows, kx, t->dp, acc, t->dp, true);
	}
	for (int h = 0; h < t->nh; h++)
		for (long i = 0; i < t->nq; i++)
			EACH_VEC(c, n, 0, t->d)
				put(t->x->dq, (t->t0 + i) * a->ldq + (t->h0 + h) * t->d + c, vload(acc + (h * t->rows_h + i) * t->dp + c), (int)n);
	t->mem = mem;
}

static void attn_dq_task(void *ctx, long task, int worker)
{
	struct tile t;
	long block;
	int group;

	if (!tile_of(ctx, task, worker, &t, &block) || !queries(&t, block))
		return;
	group = t.a->heads / t.a->kv_heads;
	for (int h = t.g * group; h < (t.g + 1) * group; h += t.nh) {
		heads(&t, h);
		dq_heads(&t, t.i0 + t.nq - 1);
	}
}

/* What one block of queries adds to the dk and dv of the tile's keys. */
static void dkv_block(struct tile *t, const float *k, const float *v, float *dk, float *dv)
{
	const struct attn *a = t->a;
	float *const mem = t->mem;
	const float *q = left(t, a->q, a->ldq), *d_o = left(t, t->x->d_o, a->heads * t->d);
	float *s = take(t, t->rows * KB), *ds = take(t, t->rows * KB), *l = take(t, round_up(KB, MR) * t->rows), *r = take(t, t->rows * t->dp);
	long keys = round_up(t->nk, MR);

	product(t->d, q, t->rows, k, round_up(t->nk, NR), s, KB, false);
	product(t->d, d_o, t->rows, v, round_up(t->nk, NR), ds, KB, false);
	grads(t, s, ds);
	pack(l, &(struct view){ { (struct dmem *)s, DT_F32 }, KB, true }, 0, t->nk, 0, t->nq, MR);
	pack(r, &(struct view){ t->x->d_o, a->heads * t->d, true }, t->h0 * t->d, t->d, t->t0, t->nq, NR);
	product(t->nq, l, keys, r, t->dp, dv, t->dp, true);
	pack(l, &(struct view){ { (struct dmem *)ds, DT_F32 }, KB, true }, 0, t->nk, 0, t->nq, MR);
	pack(r, &(struct view){ a->q, a->ldq, true }, t->h0 * t->d, t->d, t->t0, t->nq, NR);
	product(t->nq, l, keys, r, t->dp, dk, t->dp, true);
	t->mem = mem;
}

static void attn_dkv_task(void *ctx, long task, int worker)
{
	const struct attn_run *x = ctx;
	struct tile t;
	long block, row0;
	float *k, *v, *dk, *dv;
	int group;

	if (!tile_of(x, task, worker, &t, &block) || block * KB >= k_len(x->a, t.doc))
		return;
	t.k0 = block * KB;
	t.nk = k_len(x->a, t.doc) - t.k0 < KB ? k_len(x->a, t.doc) - t.k0 : KB;
	k = take(&t, KB * t.d);
	v = take(&t, KB * t.d);
	dk = take(&t, round_up(KB, MR) * t.dp);
	dv = take(&t, round_up(KB, MR) * t.dp);
	memset(dk, 0, (size_t)(round_up(KB, MR) * t.dp) * 4);
	memset(dv, 0, (size_t)(round_up(KB, MR) * t.dp) * 4);
	right(&t, x->a->k, x->a->ldk, false, k, NULL);
	right(&t, x->a->v, x->a->ldv, false, v, NULL);
	group = x->a->heads / x->a->kv_heads;
	t.nh = 1;
	for (t.h0 = t.g * group; t.h0 < (t.g + 1) * group; t.h0++)
		for (block = t.k0 / QB; queries(&t, block); block++) {
			if (first_key(x->a, t.i0) >= t.k0 + t.nk)       /* the window has moved past these keys */
				break;
			dkv_block(&t, k, v, dk, dv);
		}
	row0 = i32(x->a->cu_k)[t.doc] + t.k0;
	for (long i = 0; i < t.nk; i++)
		EACH_VEC(c, n, 0, t.d) {
			put(x->dk, (row0 + i) * x->a->ldk + t.g * t.d + c, vload(dk + i * t.dp + c), (int)n);
			put(x->dv, (row0 + i) * x->a->ldv + t.g * t.d + c, vload(dv + i * t.dp + c), (int)n);
		}
}

/* Memory of one head's share of a tile in the hungriest task (dq), and what does not depend on heads, in floats. */
static long per_head(long d) { return QB * (2 * d + 2 * KB + round_up(d, NR)) + 5 * 16; }
static long beside_heads(long d) { return 4 * KB * round_up(d, NR) + 12 * 16; }

static struct attn_run attn_begin(struct device *d, const struct attn *a, long len, long block)
{
	const struct cpu *c = d->impl;
	struct attn_run x = { .a = a, .own = (char *)c->space + shared_bytes(), .own_bytes = own_bytes(), .blocks = (len + block - 1) / block };
	long room = (long)(x.own_bytes / 4) - beside_heads(a->head_dim), n = room / per_head(a->head_dim);

	assert(n > 0);
	x.at_once = (int)(n < 4 ? n : 4);
	return x;
}

static void op_attn_fwd(struct device *d, const struct attn *a, struct dbuf o, struct dmem *lse)
{
	struct cpu *c = d->impl;
	struct attn_run x = attn_begin(d, a, a->max_q, QB);

	x.o = o;
	x.lse = lse ? f32(lse) : NULL;
	pool_run(c->pool, x.blocks * a->kv_heads * a->docs, attn_fwd_task, &x);
}

static void op_attn_bwd(struct device *d, const struct attn *a, struct dbuf dq, struct dbuf dk, struct dbuf dv, struct dbuf o, struct dbuf d_o,
	struct dmem *lse, struct dmem *delta)
{
	struct cpu *c = d->impl;
	struct attn_run x = attn_begin(d, a, a->max_q, QB);

	assert(!a->pages);
	x.o = o;
	x.d_o = d_o;
	x.dq = dq;
	x.dk = dk;
	x.dv = dv;
	x.lse = f32(lse);
	x.delta = f32(delta);
	pool_run(c->pool, x.blocks * a->kv_heads * a->docs, attn_dq_task, &x);
	x.blocks = (a->max_k + KB - 1) / KB;
	pool_run(c->pool, x.blocks * a->kv_heads * a->docs, attn_dkv_task, &x);
}

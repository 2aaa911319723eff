/*
 * attention: varlen causal attention with grouped heads, in tiles, forward and backward (Dao et al.
 * 2022, in our own layout).
 *
 * Scores are made transposed.  In the forward pass and for dq, queries are lanes: S^T [keys,
 * queries] comes out of the micro-kernel in the layout that its right operand has, so that softmax
 * runs along keys without touching lanes, and O^T = V^T P^T needs no repacking of P.  For dk and dv
 * keys are lanes and queries run along.  Each output has one task, which adds in the order of the
 * document: no sums across threads, and nothing depends on other documents or on the cut into tasks
 * (tiles of keys, or of queries in the second backward pass, begin at multiples of TILE_ROWS of
 * their document).
 */
#include "each.h"

enum {
	LANES = 12 * NR,        /* queries (or keys) of a task at most */
	TILE_ROWS = 16 * MR     /* keys (or queries) that run along in one go */
};

struct attn_run {
	const struct attn *a;
	struct dbuf o, d_o, dq, dk, dv;
	float *lse, *delta;
	const int32_t *cu_q, *cu_k;
	long block;             /* tokens of a task */
	int heads, parts;       /* heads of a task; tasks of a group of heads */
	long tasks;
	char *own; size_t own_bytes;
};

/*
 * The lanes of a task: `sets` runs of n lanes, each run from a new panel on.  A run is the task's
 * tokens of one head; where there is only one token (decoding) all heads together are one run.
 */
struct lanes {
	int doc, kv, head, heads;
	long token, n, sets;              /* first token (row of q), lanes a run, runs */
	long pos, step;                   /* position of the first lane, positions from lane to lane */
	long qlen, klen, panels;          /* panels of a run */
};

static long panel_count(long n) { return (n + NR - 1) / NR; }

static long attn_blocks(const int32_t *cu, int docs, long block)
{
	long n = 0;

	for (int d = 0; d < docs; d++)
		n += (cu[d + 1] - cu[d] + block - 1) / block;
	return n;
}

/*
 * What task i is: blocks of all documents, the last first (it has most keys), times kv heads, times
 * parts of the group.
 */
static struct lanes attn_lanes(const struct attn_run *r, long task)
{
	const struct attn *a = r->a;
	int per = a->kv_heads * r->parts, sub = (int)(task % per), group = a->heads / a->kv_heads,
		d = 0;
	long at = r->tasks / per - 1 - task / per, blocks;
	struct lanes l = { .kv = sub / r->parts };

	while (at >= (blocks = (r->cu_q[d + 1] - r->cu_q[d] + r->block - 1) / r->block)) {
		at -= blocks;
		d++;
	}
	l.doc = d;
	l.qlen = r->cu_q[d + 1] - r->cu_q[d];
	l.klen = r->cu_k[d + 1] - r->cu_k[d];
	assert(l.klen >= l.qlen);
	l.token = r->cu_q[d] + at * r->block;
	l.pos = at * r->block + l.klen - l.qlen;
	l.n = l.klen - l.pos < r->block ? l.klen - l.pos : r->block;
	l.head = l.kv * group + sub % r->parts * r->heads;
	l.heads = (l.kv + 1) * group - l.head < r->heads ? (l.kv + 1) * group - l.head : r->heads;
	l.sets = l.heads;
	l.step = 1;
	if (l.n == 1) {
		l.n = l.heads;
		l.sets = 1;
		l.step = 0;
	}
	l.panels = panel_count(l.n);
	return l;
}

/* A worker's memory, handed out in order. */
static float *take(float **p, long n)
{
	float *mine = *p;

	*p += round_up(n, 16);
	return mine;
}

static void scale_panel(float *p, long n, float x)
{
	struct dbuf b = { (struct dmem *)p, DT_F32 };

	EACH_VEC(i, w, 0, n)
		put(b, i, get(b, i, (int)w) * x, (int)w);
}

/* All lanes of a buffer of queries (row stride ld), packed along head_dim. */
static void pack_lanes(float *dst, const struct lanes *l, struct dbuf b, long ld, long head_dim)
{
	for (long s = 0; s < l->sets; s++) {
		struct view v = { dbuf_at(b, (size_t)(l->token * ld + (l->head + s) * head_dim)),
			l->step ? ld : head_dim, false };

		pack(dst + s * l->panels * NR * head_dim, &v, 0, l->n, 0, head_dim, NR);
	}
}

/* Lane i of the panels acc [round_up(head_dim, MR)][NR], times factor[i], into row i of `to`. */
static void unpack_lanes(
	struct dbuf to, long ld, const float *acc, long n, long head_dim, const float *factor)
{
	float row[ATTN_HEAD_DIM_MAX];
	struct dbuf from = { (struct dmem *)row, DT_F32 };
	long size = round_up(head_dim, MR) * NR;

	for (long i = 0; i < n; i++) {
		for (long c = 0; c < head_dim; c++)
			row[c] = acc[i / NR * size + c * NR + i % NR] * factor[i];
		EACH_VEC(c, w, 0, head_dim)
			put(to, i * ld + c, get(from, c, (int)w), (int)w);
	}
}

static void store_lanes(struct dbuf b, long ld, const struct lanes *l, const float *acc,
	long head_dim, const float *factor)
{
	long size = l->panels * round_up(head_dim, MR) * NR;

	for (long s = 0; s < l->sets; s++)
		unpack_lanes(dbuf_at(b, (size_t)(l->token * ld + (l->head + s) * head_dim)),
			l->step ? ld : head_dim, acc + s * size, l->n, head_dim, factor + s * l->panels * NR);
}

/* Row of lse and delta that lane i of run s has. */
static long stat_at(const struct attn *a, const struct lanes *l, long s, long i)
{
	return l->step ? (l->head + s) * a->t + l->token + i : (l->head + i) * a->t + l->token;
}

/*
 * Keys (or values) from..from+n-1 of a document as a view; those in pages are gathered into tmp
 * first.
 */
static struct view key_view(const struct attn_run *r, const struct lanes *l, struct dbuf b, long ld,
	long from, long n, float *tmp, bool across)
{
	const struct attn *a = r->a;
	const int32_t *page = a->pages ? i32(a->pages) + (long)l->doc * a->pages_stride : NULL;
	struct dbuf head = dbuf_at(b, (size_t)(l->kv * a->head_dim)),
		to = { (struct dmem *)tmp, DT_F32 };

	if (!page)
		return (struct view){ dbuf_at(head, (size_t)((r->cu_k[l->doc] + from) * ld)), ld, across };
	for (long i = 0; i < n; i++) {
		long row = page[(from + i) / a->page] * (long)a->page + (from + i) % a->page;

		EACH_VEC(c, w, 0, a->head_dim)
			put(to, i * a->head_dim + c, get(head, row * ld + c, (int)w), (int)w);
	}
	return (struct view){ to, a->head_dim, across };
}

/* ---- scores of n rows along by NR lanes; what is masked is -inf ---- */

/* s[n][NR]: rows are keys key..key+n-1, lanes are queries at pos + i * step. */
static void mask_queries(float *s, long n, long key, long pos, long step, long window)
{
	for (long j = 0; j < n; j++, s += NR)
		for (long i = 0; i < NR; i++)
			if (key + j > pos + i * step || (window > 0 && key + j <= pos + i * step - window))
				s[i] = -INFINITY;
}

static void softcap_panel(float *s, long n, float cap)
{
	for (long i = 0; i < n * NR; i += VW)
		vstore(s + i, cap * vtanh(vload(s + i) * (1.f / cap)));
}

/* x W^T for one panel of lanes: s[n][NR] = rows (packed in MR panels) times lanes. */
static void score_panel(float *s, long n, const float *rows, const float *lanes, long head_dim)
{
	for (long j = 0; j < n; j += MR)
		micro(head_dim, rows + j * head_dim, lanes, s + j * NR, NR, false);
}

/*
 * acc[head_dim][NR] += across [n, head_dim] (packed in MR panels of `stride` rows along, beginning
 * at row `from`) times s[n][NR].
 */
static void add_panel(
	float *acc, const float *across, long stride, long from, const float *s, long n, long head_dim)
{
	for (long c = 0; c < head_dim; c += MR)
		micro(n, across + c * stride + from * MR, s, acc + c * NR, NR, true);
}

/*
 * The keys of a tile from `key` (n of them) that a panel of queries at lo..hi sees: how many, from
 * the first; 0: none.
 */
static long keys_seen(long key, long n, long lo, long hi, long window)
{
	if (key > hi || (window > 0 && key + n <= lo - window + 1))
		return 0;
	return hi - key + 1 < n ? hi - key + 1 : n;
}

/* Scores of one panel of queries, capped and masked; returns how many keys they see. */
static long query_scores(const struct attn *a, const struct lanes *l, float *s, long panel,
	const float *keys, const float *q, long key, long n)
{
	long lo = l->pos + panel * NR * l->step,
		last = l->n - 1 < panel * NR + NR - 1 ? l->n - 1 : panel * NR + NR - 1,
		hi = l->pos + last * l->step;
	long seen = keys_seen(key, n, lo, hi, a->window);

	if (seen == 0)
		return 0;
	score_panel(s, seen, keys, q, a->head_dim);
	if (a->softcap != 0)
		softcap_panel(s, seen, a->softcap);
	if (key + seen - 1 > lo || (a->window > 0 && key <= hi - a->window))
		mask_queries(s, seen, key, lo, l->step, a->window);
	return seen;
}

/*
 * One more tile of keys for a panel: p = exp(s - m) in place; m (running maximum), sum and acc
 * follow.
 */
static void softmax_panel(float *s, long n, float *m, float *sum, float *acc, long head_dim)
{
	vf top[2] = { vload(m), vload(m + VW) }, add[2] = { vset(0), vset(0) }, shrink[2];

	for (long j = 0; j < n; j++) {
		top[0] = vmax(vload(s + j * NR), top[0]);
		top[1] = vmax(vload(s + j * NR + VW), top[1]);
	}
	shrink[0] = vexp(vload(m) - top[0]);
	shrink[1] = vexp(vload(m + VW) - top[1]);
	for (long j = 0; j < n; j++) {
		vf p0 = vexp(vload(s + j * NR) - top[0]), p1 = vexp(vload(s + j * NR + VW) - top[1]);

		vstore(s + j * NR, p0);
		vstore(s + j * NR + VW, p1);
		add[0] += p0;
		add[1] += p1;
	}
	for (int h = 0; h < 2; h++) {
		vstore(m + h * VW, top[h]);
		vstore(sum + h * VW, vload(sum + h * VW) * shrink[h] + add[h]);
	}
	for (long c = 0; c < head_dim; c++) {
		vstore(acc + c * NR, vload(acc + c * NR) * shrink[0]);
		vstore(acc + c * NR + VW, vload(acc + c * NR + VW) * shrink[1]);
	}
}

static void attn_fwd_task(void *ctx, long task, int worker)
{
	const struct attn_run *r = ctx;
	const struct attn *a = r->a;
	struct lanes l = attn_lanes(r, task);
	float *mem = (float *)(void *)(r->own + (size_t)worker * r->own_bytes), m[LANES], sum[LANES];
	long dim = a->head_dim, size = round_up(dim, MR) * NR, all = l.sets * l.panels,
		last = l.pos + (l.step ? l.n - 1 : 0);
	float *q = take(&mem, all * NR * dim), *acc = take(&mem, all * size),
		*s = take(&mem, TILE_ROWS * NR);
	float *keys = take(&mem, TILE_ROWS * dim), *values = take(&mem, TILE_ROWS * size / NR),
		*tmp = take(&mem, TILE_ROWS * dim);
	long key = a->window > 0 && l.pos - a->window + 1 > 0
		? (l.pos - a->window + 1) / TILE_ROWS * TILE_ROWS
		: 0;

	pack_lanes(q, &l, a->q, a->ldq, dim);
	scale_panel(q, all * NR * dim, a->scale);
	memset(acc, 0, (size_t)(all * size) * 4);
	memset(sum, 0, sizeof(sum));
	for (long i = 0; i < LANES; i++)
		m[i] = -3e38f;   /* finite, so that -inf (masked) less it is no NaN */
	for (; key <= last; key += TILE_ROWS) {
		long n = l.klen - key < TILE_ROWS ? l.klen - key : TILE_ROWS;
		struct view v = key_view(r, &l, a->k, a->ldk, key, n, tmp, false);

		pack(keys, &v, 0, n, 0, dim, MR);
		v = key_view(r, &l, a->v, a->ldv, key, n, tmp, true);
		pack(values, &v, 0, dim, 0, n, MR);
		for (long p = 0; p < all; p++) {
			long seen = query_scores(a, &l, s, p % l.panels, keys, q + p * NR * dim, key, n);

			if (seen == 0)
				continue;
			softmax_panel(s, seen, m + p * NR, sum + p * NR, acc + p * size, dim);
			add_panel(acc + p * size, values, n, 0, s, seen, dim);
		}
	}
	for (long p = 0; p < l.sets; p++)
		for (long i = 0; i < l.n; i++) {
			long lane = p * l.panels * NR + i;

			if (r->lse)
				r->lse[stat_at(a, &l, p, i)] = (float)((double)m[lane] + log((double)sum[lane]));
			sum[lane] = 1.f / sum[lane];
		}
	store_lanes(r->o, (long)a->heads * dim, &l, acc, dim, sum);
}

/* Cut the work: lanes of a task, heads of a group that share packed keys. */
static struct attn_run attn_plan(struct device *d, const struct attn *a, long longest)
{
	struct cpu *c = d->impl;
	int group = a->heads / a->kv_heads, most = LANES / NR;
	struct attn_run r = { .a = a,
		.cu_q = i32(a->cu_q),
		.cu_k = i32(a->cu_k),
		.own = (char *)c->space + shared_bytes(),
		.own_bytes = own_bytes() };

	assert(is_float(a->q) && is_float(a->k) && is_float(a->v) && a->heads % a->kv_heads == 0 &&
		a->head_dim <= ATTN_HEAD_DIM_MAX);
	r.heads = group < most ? group : most;
	r.parts = (group + r.heads - 1) / r.heads;
	r.block = LANES / r.heads / NR * NR;
	if (longest == 1)
		r.block = 1;
	r.tasks = attn_blocks(r.cu_q, a->docs, r.block) * a->kv_heads * r.parts;
	return r;
}

static void op_attn_fwd(struct device *d, const struct attn *a, struct dbuf o, struct dmem *lse)
{
	struct attn_run r = attn_plan(d, a, a->max_q);

	assert(is_float(o));
	r.o = o;
	r.lse = lse ? f32(lse) : NULL;
	if (r.tasks > 0)
		pool_run(((struct cpu *)d->impl)->pool, r.tasks, attn_fwd_task, &r);
}

/* ---- backward: dq, with queries as lanes ---- */

/* dp (in t) -> ds (in s): ds = p * (dp - delta) * cap'(s), p = exp(s - lse). */
static void ds_panel(
	float *s, const float *t, long n, const float *lse, const float *delta, float softcap)
{
	vf slope = vset(1), k = vset(softcap != 0 ? 1.f / softcap : 0);

	for (long j = 0; j < n; j++)
		for (int h = 0; h < NR; h += VW) {
			vf x = vload(s + j * NR + h), p = vexp(x - vload(lse + h));

			if (softcap != 0)
				slope = 1.f - x * k * (x * k);
			/* A masked pair (p = 0, x = -inf) has no slope. */
			vstore(s + j * NR + h,
				vpick(p == 0.f, vset(0), p * (vload(t + j * NR + h) - vload(delta + h)) * slope));
		}
}

/* delta = sum o * d_o of each lane; kept for dk and dv. */
static void load_stats(const struct attn_run *r, const struct lanes *l, float *lse, float *delta)
{
	const struct attn *a = r->a;

	for (long s = 0; s < l->sets; s++)
		for (long i = 0; i < l->n; i++) {
			long at = stat_at(a, l, s, i), row = ((at % a->t) * a->heads + at / a->t) * a->head_dim;
			vf x = vset(0);

			EACH_VEC(c, w, 0, a->head_dim)
				x = vfma(get(r->o, row + c, (int)w), get(r->d_o, row + c, (int)w), x);
			lse[s * l->panels * NR + i] = r->lse[at];
			delta[s * l->panels * NR + i] = r->delta[at] = vsum(x);
		}
}

static void attn_dq_task(void *ctx, long task, int worker)
{
	const struct attn_run *r = ctx;
	const struct attn *a = r->a;
	struct lanes l = attn_lanes(r, task);
	float *mem = (float *)(void *)(r->own + (size_t)worker * r->own_bytes), lse[LANES] = { 0 },
		delta[LANES] = { 0 };
	long dim = a->head_dim, size = round_up(dim, MR) * NR, all = l.sets * l.panels,
		last = l.pos + (l.step ? l.n - 1 : 0);
	float *q = take(&mem, all * NR * dim), *d_o = take(&mem, all * NR * dim),
		*acc = take(&mem, all * size);
	float *s = take(&mem, TILE_ROWS * NR), *t = take(&mem, TILE_ROWS * NR);
	float *keys = take(&mem, TILE_ROWS * dim), *across = take(&mem, TILE_ROWS * size / NR),
		*values = take(&mem, TILE_ROWS * dim);
	long key = a->window > 0 && l.pos - a->window + 1 > 0
		? (l.pos - a->window + 1) / TILE_ROWS * TILE_ROWS
		: 0;

	pack_lanes(q, &l, a->q, a->ldq, dim);
	scale_panel(q, all * NR * dim, a->scale);
	pack_lanes(d_o, &l, r->d_o, (long)a->heads * dim, dim);
	memset(acc, 0, (size_t)(all * size) * 4);
	load_stats(r, &l, lse, delta);
	for (; key <= last; key += TILE_ROWS) {
		long n = l.klen - key < TILE_ROWS ? l.klen - key : TILE_ROWS;
		struct view v = key_view(r, &l, a->k, a->ldk, key, n, NULL, false);

		pack(keys, &v, 0, n, 0, dim, MR);
		v.across = true;
		pack(across, &v, 0, dim, 0, n, MR);
		v = key_view(r, &l, a->v, a->ldv, key, n, NULL, false);
		pack(values, &v, 0, n, 0, dim, MR);
		for (long p = 0; p < all; p++) {
			long seen = query_scores(a, &l, s, p % l.panels, keys, q + p * NR * dim, key, n);

			if (seen == 0)
				continue;
			score_panel(t, seen, values, d_o + p * NR * dim, dim);
			ds_panel(s, t, seen, lse + p * NR, delta + p * NR, a->softcap);
			add_panel(acc + p * size, across, n, 0, s, seen, dim);
		}
	}
	for (long i = 0; i < LANES; i++)
		lse[i] = a->scale;
	store_lanes(r->dq, a->ldq, &l, acc, dim, lse);
}

/* ---- backward: dk and dv, with keys as lanes ---- */

/* s[n][NR]: rows are queries pos.., lanes are keys key..; scores become p, t becomes ds. */
static void p_ds_panel(
	float *s, float *t, long n, const float *lse, const float *delta, float softcap)
{
	vf slope = vset(1), k = vset(softcap != 0 ? 1.f / softcap : 0);

	for (long j = 0; j < n; j++)
		for (int h = 0; h < NR; h += VW) {
			vf x = vload(s + j * NR + h), p = vexp(x - lse[j]);

			if (softcap != 0)
				slope = 1.f - x * k * (x * k);
			vstore(s + j * NR + h, p);
			vstore(t + j * NR + h,
				vpick(p == 0.f, vset(0), p * (vload(t + j * NR + h) - delta[j]) * slope));
		}
}

static void mask_keys(float *s, long n, long pos, long key, long window)
{
	for (long j = 0; j < n; j++, s += NR)
		for (long i = 0; i < NR; i++)
			if (key + i > pos + j || (window > 0 && key + i <= pos + j - window))
				s[i] = -INFINITY;
}

/*
 * What a tile of queries needs: packed along head_dim (q, d_o) and along the queries (q_across,
 * d_o_across).
 */
struct query_tile {
	float *q, *d_o, *q_across, *d_o_across;
	const float *lse, *delta;
	long pos, n;
};

static void pack_queries(const struct attn_run *r, struct query_tile *t, long token, int head)
{
	const struct attn *a = r->a;
	long dim = a->head_dim, ldo = (long)a->heads * dim;
	struct view v = { dbuf_at(a->q, (size_t)(token * a->ldq + head * dim)), a->ldq, false };
	struct view w = { dbuf_at(r->d_o, (size_t)(token * ldo + head * dim)), ldo, false };

	pack(t->q, &v, 0, t->n, 0, dim, MR);
	scale_panel(t->q, round_up(t->n, MR) * dim, a->scale);
	pack(t->d_o, &w, 0, t->n, 0, dim, MR);
	v.across = w.across = true;
	pack(t->q_across, &v, 0, dim, 0, t->n, MR);
	pack(t->d_o_across, &w, 0, dim, 0, t->n, MR);
	t->lse = r->lse + head * a->t + token;
	t->delta = r->delta + head * a->t + token;
}

/* One panel of keys from `key` with one tile of queries. */
static void key_panel(const struct attn *a, const struct query_tile *q, float *s, float *t,
	const float *k, const float *v, float *dk, float *dv, long key)
{
	long from = key > q->pos ? (key - q->pos) / MR * MR : 0, n = q->n - from, pos = q->pos + from,
		dim = a->head_dim;

	if (n <= 0 || (a->window > 0 && pos >= key + NR - 1 + a->window))
		return;
	score_panel(s, n, q->q + from * dim, k, dim);
	if (a->softcap != 0)
		softcap_panel(s, n, a->softcap);
	if (key + NR - 1 > pos || (a->window > 0 && key <= pos + n - 1 - a->window))
		mask_keys(s, n, pos, key, a->window);
	score_panel(t, n, q->d_o + from * dim, v, dim);
	p_ds_panel(s, t, n, q->lse + from, q->delta + from, a->softcap);
	add_panel(dv, q->d_o_across, q->n, from, s, n, dim);
	add_panel(dk, q->q_across, q->n, from, t, n, dim);
}

static void attn_dkv_task(void *ctx, long task, int worker)
{
	const struct attn_run *r = ctx;
	const struct attn *a = r->a;
	struct lanes l = attn_lanes(r, task);   /* of which the place of the keys is used */
	float *mem = (float *)(void *)(r->own + (size_t)worker * r->own_bytes), ones[LANES];
	long dim = a->head_dim, size = round_up(dim, MR) * NR,
		n = l.klen - l.pos < r->block ? l.klen - l.pos : r->block, panels = panel_count(n);
	float *k = take(&mem, panels * NR * dim), *v = take(&mem, panels * NR * dim),
		*dk = take(&mem, panels * size), *dv = take(&mem, panels * size);
	float *s = take(&mem, TILE_ROWS * NR), *t = take(&mem, TILE_ROWS * NR);
	struct query_tile q = { .q = take(&mem, TILE_ROWS * dim),
		.d_o = take(&mem, TILE_ROWS * dim),
		.q_across = take(&mem, TILE_ROWS * size / NR),
		.d_o_across = take(&mem, TILE_ROWS * size / NR) };
	struct view kv = key_view(r, &l, a->k, a->ldk, l.pos, n, NULL, false),
		vv = key_view(r, &l, a->v, a->ldv, l.pos, n, NULL, false);

	pack(k, &kv, 0, n, 0, dim, NR);
	pack(v, &vv, 0, n, 0, dim, NR);
	memset(dk, 0, (size_t)(panels * size) * 4);
	memset(dv, 0, (size_t)(panels * size) * 4);
	for (int h = l.kv * (a->heads / a->kv_heads); h < (l.kv + 1) * (a->heads / a->kv_heads); h++)
		for (q.pos = l.pos / TILE_ROWS * TILE_ROWS; q.pos < l.qlen; q.pos += TILE_ROWS) {
			if (a->window > 0 && q.pos >= l.pos + n - 1 + a->window)
				break;
			q.n = l.qlen - q.pos < TILE_ROWS ? l.qlen - q.pos : TILE_ROWS;
			pack_queries(r, &q, r->cu_q[l.doc] + q.pos, h);
			for (long p = 0; p < panels; p++)
				key_panel(a, &q, s, t, k + p * NR * dim, v + p * NR * dim, dk + p * size,
					dv + p * size, l.pos + p * NR);
		}
	for (long i = 0; i < LANES; i++)
		ones[i] = 1;
	unpack_lanes(dbuf_at(r->dv, (size_t)((r->cu_k[l.doc] + l.pos) * a->ldv + l.kv * dim)), a->ldv,
		dv, n, dim, ones);
	for (long i = 0; i < LANES; i++)
		ones[i] = a->scale;
	unpack_lanes(dbuf_at(r->dk, (size_t)((r->cu_k[l.doc] + l.pos) * a->ldk + l.kv * dim)), a->ldk,
		dk, n, dim, ones);
}

static void op_attn_bwd(struct device *d, const struct attn *a, struct dbuf dq, struct dbuf dk,
	struct dbuf dv, struct dbuf o, struct dbuf d_o, struct dmem *lse, struct dmem *delta)
{
	struct pool *pool = ((struct cpu *)d->impl)->pool;
	struct attn_run r = attn_plan(d, a, a->max_q);

	assert(
		!a->pages && is_float(dq) && is_float(dk) && is_float(dv) && is_float(o) && is_float(d_o));
	r.o = o;
	r.d_o = d_o;
	r.dq = dq;
	r.dk = dk;
	r.dv = dv;
	r.lse = f32(lse);
	r.delta = f32(delta);
	if (r.tasks == 0)
		return;
	pool_run(pool, r.tasks, attn_dq_task, &r);
	r.block = a->head_dim > 128 ? LANES / 2 : LANES;
	r.heads = a->heads / a->kv_heads;
	r.parts = 1;
	r.tasks = attn_blocks(r.cu_q, a->docs, r.block) * a->kv_heads;
	pool_run(pool, r.tasks, attn_dkv_task, &r);
}

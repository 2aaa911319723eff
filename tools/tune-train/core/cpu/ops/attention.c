/* attention: varlen causal attention with grouped heads, forward and backward. */
#include "each.h"

/* Element i of a buffer as a float. */
static inline float at(struct dbuf b, long i) { return b.t == DT_F32 ? f32(b.p)[i] : bf16_f32(((const uint16_t *)(const void *)b.p)[i]); }

struct attn_args { const struct attn *a; struct dbuf o, d_o, dq, dk, dv; float *lse, *delta; };

static long key_row(const struct attn *a, int doc, long r)
{
	return a->pages ? (long)i32(a->pages)[(long)doc * a->pages_stride + r / a->page] * a->page + r % a->page : i32(a->cu_k)[doc] + r;
}

static float dot(struct dbuf x, long i, struct dbuf y, long j, int n)
{
	float s = 0;

	for (int k = 0; k < n; k++)
		s += at(x, i + k) * at(y, j + k);
	return s;
}

/* Score of query row t (head h) and key row kr; *slope = d score / d (q.k * scale). */
static float score(const struct attn *a, long t, int h, long kr, float *slope)
{
	float s = a->scale * dot(a->q, t * a->ldq + (long)h * a->head_dim, a->k, kr * a->ldk + (long)(h / (a->heads / a->kv_heads)) * a->head_dim, a->head_dim);
	float c;

	*slope = 1;
	if (a->softcap == 0)
		return s;
	c = tanhf(s / a->softcap);
	*slope = 1 - c * c;
	return a->softcap * c;
}

static void set(struct dbuf b, long i, float v)
{
	if (b.t == DT_F32)
		f32(b.p)[i] = v;
	else
		((uint16_t *)(void *)b.p)[i] = f32_bf16(v);
}

static int doc_of(const struct attn *a, long t)
{
	int d = 0;

	while (i32(a->cu_q)[d + 1] <= t)
		d++;
	return d;
}

/* Keys first..last that query row t of document d sees. */
static void seen(const struct attn *a, int d, long t, long *first, long *last)
{
	const int32_t *cq = i32(a->cu_q), *ck = i32(a->cu_k);

	*last = t - cq[d] + (ck[d + 1] - ck[d]) - (cq[d + 1] - cq[d]);
	*first = a->window > 0 && *last - a->window + 1 > 0 ? *last - a->window + 1 : 0;
}

static void attn_fwd_range(const void *p, long lo, long hi)
{
	const struct attn_args *x = p;
	const struct attn *a = x->a;

	for (long i = lo; i < hi; i++) {
		long t = i / a->heads, first, last;
		int h = (int)(i % a->heads), d = doc_of(a, t), g = h / (a->heads / a->kv_heads);
		float m = -INFINITY, sum = 0, slope, acc[1024] = {0};

		seen(a, d, t, &first, &last);
		for (long j = first; j <= last; j++) {
			long kr = key_row(a, d, j);
			float s = score(a, t, h, kr, &slope), m2 = s > m || s != s ? s : m, w = expf(m - m2), e = expf(s - m2);

			sum = sum * w + e;
			for (int c = 0; c < a->head_dim; c++)
				acc[c] = acc[c] * w + e * at(a->v, kr * a->ldv + (long)g * a->head_dim + c);
			m = m2;
		}
		for (int c = 0; c < a->head_dim; c++)
			set(x->o, i * a->head_dim + c, acc[c] / sum);
		if (x->lse)
			x->lse[h * a->t + t] = m + logf(sum);
	}
}

static void op_attn_fwd(struct device *d, const struct attn *a, struct dbuf o, struct dmem *lse)
{
	struct attn_args x = { .a = a, .o = o, .lse = lse ? f32(lse) : NULL };

	assert(a->head_dim <= 1024);
	each(d, a->t * a->heads, 16, attn_fwd_range, &x);
}

/* p and ds of one (query, key) pair. */
static float pair(const struct attn_args *x, long t, int h, long kr, float *ds)
{
	const struct attn *a = x->a;
	int g = h / (a->heads / a->kv_heads);
	float slope, s = score(a, t, h, kr, &slope), p = expf(s - x->lse[h * a->t + t]);
	float dp = dot(x->d_o, (t * a->heads + h) * a->head_dim, a->v, kr * a->ldv + (long)g * a->head_dim, a->head_dim);

	*ds = p * (dp - x->delta[h * a->t + t]) * slope * a->scale;
	return p;
}

static void attn_dq_range(const void *p, long lo, long hi)
{
	const struct attn_args *x = p;
	const struct attn *a = x->a;

	for (long i = lo; i < hi; i++) {
		long t = i / a->heads, first, last;
		int h = (int)(i % a->heads), d = doc_of(a, t), g = h / (a->heads / a->kv_heads);
		float ds, acc[1024] = {0};

		seen(a, d, t, &first, &last);
		x->delta[h * a->t + t] = dot(x->o, i * a->head_dim, x->d_o, i * a->head_dim, a->head_dim);
		for (long j = first; j <= last; j++) {
			long kr = key_row(a, d, j);

			pair(x, t, h, kr, &ds);
			for (int c = 0; c < a->head_dim; c++)
				acc[c] += ds * at(a->k, kr * a->ldk + (long)g * a->head_dim + c);
		}
		for (int c = 0; c < a->head_dim; c++)
			set(x->dq, t * a->ldq + (long)h * a->head_dim + c, acc[c]);
	}
}

static void attn_dkv_range(const void *p, long lo, long hi)
{
	const struct attn_args *x = p;
	const struct attn *a = x->a;
	int group = a->heads / a->kv_heads;

	for (long i = lo; i < hi; i++) {
		long kr = i / a->kv_heads, first, last;
		int g = (int)(i % a->kv_heads), d = doc_of(a, kr);
		float ds, pr, dk[1024] = {0}, dv[1024] = {0};

		for (int h = g * group; h < (g + 1) * group; h++)
			for (long t = kr; t < i32(a->cu_q)[d + 1]; t++) {
				seen(a, d, t, &first, &last);
				if (kr - i32(a->cu_k)[d] < first)
					break;
				pr = pair(x, t, h, kr, &ds);
				for (int c = 0; c < a->head_dim; c++) {
					dk[c] += ds * at(a->q, t * a->ldq + (long)h * a->head_dim + c);
					dv[c] += pr * at(x->d_o, (t * a->heads + h) * a->head_dim + c);
				}
			}
		for (int c = 0; c < a->head_dim; c++) {
			set(x->dk, kr * a->ldk + (long)g * a->head_dim + c, dk[c]);
			set(x->dv, kr * a->ldv + (long)g * a->head_dim + c, dv[c]);
		}
	}
}

static void op_attn_bwd(struct device *d, const struct attn *a, struct dbuf dq, struct dbuf dk, struct dbuf dv, struct dbuf o, struct dbuf d_o,
	struct dmem *lse, struct dmem *delta)
{
	struct attn_args x = { .a = a, .o = o, .d_o = d_o, .dq = dq, .dk = dk, .dv = dv, .lse = f32(lse), .delta = f32(delta) };

	assert(!a->pages && a->head_dim <= 1024);
	each(d, a->t * a->heads, 16, attn_dq_range, &x);
	each(d, a->t * a->kv_heads, 16, attn_dkv_range, &x);
}

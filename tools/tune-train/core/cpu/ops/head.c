/*
 * head: a row's log-probability of its target from its logits, and the gradient of the logits from
 * the loss's coefficients.
 */
#include "each.h"

/* logits are changed in place by the backward pass; the rest is read. */
struct head_args {
	float *logits, *lse, *logp, *a, *u, *w;
	uint8_t *greedy;
	const int32_t *target, *ids;
	int j;
	long v;
};

/* sum exp(x[i] - m): floats within 512 elements, doubles beyond. */
static double sum_exp(const float *x, long v, float m)
{
	struct dbuf b = { (struct dmem *)x, DT_F32 };
	double sum = 0;

	for (long i = 0; i < v; i += 512) {
		long end = i + 512 < v ? i + 512 : v;
		vf s = {0};

		EACH_VEC(k, n, i, end) {
			vf e = vexp(get(b, k, (int)n) - m);

			for (int l = (int)n; l < VW; l++)
				e[l] = 0;
			s += e;
		}
		sum += (double)vsum(s);
	}
	return sum;
}

static float row_max(const float *x, long v)
{
	vf m = vset(-INFINITY);
	float best;
	long i;

	for (i = 0; i + VW <= v; i += VW)
		m = vmax(vload(x + i), m);
	best = vmax_lane(m);
	for (; i < v; i++)
		best = x[i] > best ? x[i] : best;
	return best;
}

static bool is_first_max(const float *x, long target, float m)
{
	long i = 0;

	if (x[target] != m)
		return false;
	while (x[i] != m)
		i++;
	return i == target;
}

static void head_fwd_range(const void *p, long lo, long hi)
{
	const struct head_args h_ = *(const struct head_args *)p, *const h = &h_;

	for (long i = lo; i < hi; i++) {
		const float *x = h->logits + i * h->v;
		float m = row_max(x, h->v);
		double log_sum = log(sum_exp(x, h->v, m));

		assert(h->target[i] >= 0 && h->target[i] < h->v);
		h->lse[i] = (float)((double)m + log_sum);
		h->logp[i] = (float)((double)x[h->target[i]] - (double)m - log_sum);
		h->greedy[i] = is_first_max(x, h->target[i], m);
	}
}

static void op_head_rows_fwd(struct device *d, struct dmem *logp, struct dmem *lse,
	struct dmem *greedy, struct dmem *logits, struct dmem *target, long r, long v)
{
	struct head_args h = { .logits = f32(logits),
		.lse = f32(lse),
		.logp = f32(logp),
		.greedy = (uint8_t *)(void *)greedy,
		.target = i32(target),
		.v = v };

	each(d, r, row_block(v), head_fwd_range, &h);
}

static void head_bwd_range(const void *p, long lo, long hi)
{
	const struct head_args h_ = *(const struct head_args *)p, *const h = &h_;

	for (long i = lo; i < hi; i++) {
		float *x = h->logits + i * h->v, u = h->u ? h->u[i] : 0.f;
		struct dbuf b = { (struct dmem *)x, DT_F32 };

		EACH_VEC(k, n, 0, h->v)
			put(b, k, h->a[i] * vexp(get(b, k, (int)n) - h->lse[i]) - u, (int)n);
		for (int j = 0; j < h->j; j++) {
			long id = h->ids[i * h->j + j];

			assert(id < h->v);
			if (id >= 0)
				x[id] -= h->w[i * h->j + j];
		}
	}
}

static void op_head_rows_bwd(struct device *d, struct dmem *logits, struct dmem *lse,
	struct dmem *a, struct dmem *u, struct dmem *ids, struct dmem *w, int j, long r, long v)
{
	struct head_args h = { .logits = f32(logits),
		.lse = f32(lse),
		.a = f32(a),
		.u = u ? f32(u) : NULL,
		.ids = i32(ids),
		.w = f32(w),
		.j = j,
		.v = v };

	each(d, r, row_block(v), head_bwd_range, &h);
}

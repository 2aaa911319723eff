/* norm: RMSNorm with the residual added in front, and its gradient. */
#include "each.h"

struct norm_args {
	struct dbuf y, h, x, r, w, dy;
	float *rstd, *dw;
	float eps;
	bool accumulate;
	long t, c;
};

static void rmsnorm_fwd_range(const void *p, long lo, long hi)
{
	const struct norm_args a_ = *(const struct norm_args *)p, *const a = &a_;

	for (long t = lo; t < hi; t++) {
		long at = t * a->c;
		struct dbuf h = a->r.p ? a->h : a->x;
		vf s = {0};

		/* The sum goes over h as stored: what the backward pass will read. */
		EACH_VEC(i, n, 0, a->c) {
			vf v;

			if (a->r.p)
				put(a->h, at + i, get(a->x, at + i, (int)n) + get(a->r, at + i, (int)n), (int)n);
			v = get(h, at + i, (int)n);
			s = vfma(v, v, s);
		}
		a->rstd[t] = 1.f / sqrtf(vsum(s) / (float)a->c + a->eps);
		EACH_VEC(i, n, 0, a->c)
			put(a->y, at + i, get(h, at + i, (int)n) * a->rstd[t] * get(a->w, i, (int)n), (int)n);
	}
}

static void op_rmsnorm_fwd(struct device *d, struct dbuf y, struct dbuf h, struct dmem *rstd,
	struct dbuf x, struct dbuf r, struct dbuf w, float eps, long t, long c)
{
	struct norm_args a = {
		.y = y, .h = h, .x = x, .r = r, .w = w, .rstd = f32(rstd), .eps = eps, .c = c
	};

	assert(
		is_float(y) && is_float(x) && is_float(w) && (!r.p || (h.p && is_float(h) && is_float(r))));
	each(d, t, row_block(c), rmsnorm_fwd_range, &a);
}

/* dx = rstd * (w*dy - x * rstd^2 / C * sum_k w[k]*dy[k]*x[k]) */
static void rmsnorm_bwd_range(const void *p, long lo, long hi)
{
	const struct norm_args a_ = *(const struct norm_args *)p, *const a = &a_;

	for (long t = lo; t < hi; t++) {
		long at = t * a->c;
		float r = a->rstd[t], k;
		vf s = {0};

		EACH_VEC(i, n, 0, a->c)
			s = vfma(
				get(a->w, i, (int)n) * get(a->dy, at + i, (int)n), get(a->x, at + i, (int)n), s);
		k = vsum(s) / (float)a->c * r * r;
		EACH_VEC(i, n, 0, a->c) {
			vf g = r *
				(get(a->w, i, (int)n) * get(a->dy, at + i, (int)n) - get(a->x, at + i, (int)n) * k);

			if (a->accumulate)
				g += get(a->y, at + i, (int)n);
			put(a->y, at + i, g, (int)n);
		}
	}
}

enum { NORM_COLUMNS = 64 };
static void rmsnorm_dw_range(const void *p, long lo, long hi)
{
	const struct norm_args a_ = *(const struct norm_args *)p, *const a = &a_;
	struct dbuf dw = { (struct dmem *)a->dw, DT_F32 };

	EACH_VEC(i, n, lo, hi) {
		vf s = {0};

		for (long t = 0; t < a->t; t++)
			s = vfma(
				get(a->dy, t * a->c + i, (int)n) * a->rstd[t], get(a->x, t * a->c + i, (int)n), s);
		put(dw, i, get(dw, i, (int)n) + s, (int)n);
	}
}

static void op_rmsnorm_bwd(struct device *d, struct dbuf dx, bool accumulate, struct dmem *dw,
	struct dbuf dy, struct dbuf x, struct dmem *rstd, struct dbuf w, long t, long c)
{
	struct norm_args a = { .y = dx,
		.x = x,
		.w = w,
		.dy = dy,
		.rstd = f32(rstd),
		.dw = dw ? f32(dw) : NULL,
		.accumulate = accumulate,
		.t = t,
		.c = c };

	assert(is_float(dx) && is_float(dy) && is_float(x) && is_float(w));
	if (dw)   /* first: dx may alias dy */
		each(d, c, NORM_COLUMNS, rmsnorm_dw_range, &a);
	each(d, t, row_block(c), rmsnorm_bwd_range, &a);
}

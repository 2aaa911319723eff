/* optim: gradient norm, the step's scalars, AdamW. */
#include "each.h"

/* ---- sum of squares in doubles: fixed tiles, added in order ---- */
enum { TILE = 65536, TILES = 512 };   /* elements a tile; tiles between two additions */
struct sumsq_args { const float *g; long n; double *tiles; };

static void sumsq_range(const void *p, long lo, long hi)
{
	const struct sumsq_args a_ = *(const struct sumsq_args *)p, *const a = &a_;

	for (long t = lo; t < hi; t++) {
		const float *g = a->g + t * TILE;
		long n = a->n - t * TILE < TILE ? a->n - t * TILE : TILE, i;
		double s[8] = {0};

		for (i = 0; i + 8 <= n; i += 8)
			for (int j = 0; j < 8; j++)
				s[j] += (double)g[i + j] * (double)g[i + j];
		for (; i < n; i++)
			s[i % 8] += (double)g[i] * (double)g[i];
		a->tiles[t] = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
	}
}

static void op_sumsq(struct device *d, struct dmem *sc, struct dmem *g, size_t n)
{
	double tiles[TILES], *sum = (double *)(void *)sc + SC_SUMSQ;

	for (size_t at = 0; at < n; at += (size_t)TILE * TILES) {
		long rest = n - at < (size_t)TILE * TILES ? (long)(n - at) : (long)TILE * TILES,
			count = (rest + TILE - 1) / TILE;
		struct sumsq_args a = { f32(g) + at, rest, tiles };

		each(d, count, 1, sumsq_range, &a);
		for (long t = 0; t < count; t++)
			*sum += tiles[t];
	}
}

static void op_step_scalars(
	struct device *d, struct dmem *sc, double lr, double grad_clip, double beta1, double beta2)
{
	double *s = (double *)(void *)sc;

	(void)d;
	s[SC_LR] = lr;
	s[SC_NORM] = sqrt(s[SC_SUMSQ]) * s[SC_GRAD_SCALE];
	s[SC_FINITE] = isfinite(s[SC_NORM]) ? 1 : 0;
	s[SC_CLIP] = 1;
	if (grad_clip > 0 && s[SC_NORM] > grad_clip)
		s[SC_CLIP] = grad_clip / s[SC_NORM];
	if (s[SC_FINITE] == 0)
		return;
	s[SC_UPDATES]++;
	s[SC_BIAS1] = 1 - pow(beta1, s[SC_UPDATES]);
	s[SC_BIAS2] = 1 - pow(beta2, s[SC_UPDATES]);
}

/* ---- AdamW ---- */
struct adamw_args {
	struct dbuf p, g, m, v, w;
	float grad_scale, decay, beta1c, beta2, beta2c, bias2_root, eps, step_size;
};

static void adamw_range(const void *ptr, long lo, long hi)
{
	const struct adamw_args a_ = *(const struct adamw_args *)ptr, *const a = &a_;

	EACH_VEC(i, n, lo, hi) {
		vf g = get(a->g, i, (int)n) * a->grad_scale, m = get(a->m, i, (int)n),
			v = get(a->v, i, (int)n);
		vf p = get(a->p, i, (int)n) * a->decay;

		m += (g - m) * a->beta1c;
		v = v * a->beta2 + a->beta2c * g * g;
		p -= a->step_size * (m / (vsqrt(v) / a->bias2_root + a->eps));
		put(a->m, i, m, (int)n);
		put(a->v, i, v, (int)n);
		put(a->p, i, p, (int)n);
		if (a->w.p)
			put(a->w, i, p, (int)n);
	}
}

static void op_adamw(struct device *d, struct dmem *sc, struct dmem *master, struct dbuf w,
	struct dmem *grad, struct dmem *m, struct dmem *v, double beta1, double beta2, double eps,
		double weight_decay, size_t n)
{
	const double *s = (const double *)(const void *)sc;
	struct adamw_args a = { .p = floats(master),
		.g = floats(grad),
		.m = floats(m),
		.v = floats(v),
		.w = w,
		.grad_scale = (float)(s[SC_CLIP] * s[SC_GRAD_SCALE]),
		.decay = (float)(1 - s[SC_LR] * weight_decay),
		.beta1c = (float)(1 - beta1),
		.beta2 = (float)beta2,
		.beta2c = (float)(1 - beta2),
		.bias2_root = (float)sqrt(s[SC_BIAS2]),
		.eps = (float)eps,
		.step_size = (float)(s[SC_LR] / s[SC_BIAS1]) };

	if (s[SC_FINITE] != 0)
		each(d, (long)n, 16384, adamw_range, &a);
}

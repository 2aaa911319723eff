/* elementwise: cast, add, gated activations, rope, dropout, and the bias gradient. */
#include "each.h"
#include "libcommon/arch/arch.h"
#include "libcommon/rng.h"

enum { FLAT_BLOCK = 16384 };   /* elements a task of the flat operations */

struct flat_args { struct dbuf y, a, b; };

static void cast_range(const void *p, long lo, long hi)
{
	const struct flat_args f_ = *(const struct flat_args *)p, *const f = &f_;

	EACH_VEC(i, n, lo, hi)
		put(f->y, i, get(f->a, i, (int)n), (int)n);
}

static void op_cast(struct device *d, struct dbuf dst, struct dbuf src, size_t n)
{
	struct flat_args f = { .y = dst, .a = src };

	assert(is_float(dst) && is_float(src));
	each(d, (long)n, FLAT_BLOCK, cast_range, &f);
}

static void add_range(const void *p, long lo, long hi)
{
	const struct flat_args f_ = *(const struct flat_args *)p, *const f = &f_;

	EACH_VEC(i, n, lo, hi)
		put(f->y, i, get(f->a, i, (int)n) + get(f->b, i, (int)n), (int)n);
}

static void op_add(struct device *d, struct dbuf y, struct dbuf a, struct dbuf b, size_t n)
{
	struct flat_args f = { y, a, b };

	assert(is_float(y) && is_float(a) && is_float(b));
	each(d, (long)n, FLAT_BLOCK, add_range, &f);
}

/* ---- gated activations: y = act(g) * u ---- */
struct gated_args { struct dbuf y, dy, gu, dgu; int act; long f; };

/* act(x), and its derivative in *dx. */
VINLINE vf activation(int act, vf x, vf *dx)
{
	const float k = 0.7978845608028654f;   /* sqrt(2 / pi) */
	vf s, t, e;

	if (act == ACT_SILU) {
		s = vsigmoid(x);
		*dx = s * (1.f + x * (1.f - s));
		return x * s;
	}
	if (act == ACT_GELU_TANH) {
		/*
		 * 0.5 * (1 + tanh(z)) = e / (e + 1) = t with e = exp(2z); the derivative of tanh is made of
		 * t and 1 - t, neither by a difference that cancels.
		 */
		e = vexp(2.f * k * (x + 0.044715f * x * x * x));
		s = 1.f / (e + 1.f);
		t = e * s;
		*dx = t + 2.f * x * t * s * k * (1.f + 3.f * 0.044715f * x * x);
		return x * t;
	}
	for (int i = 0; i < VW; i++)
		t[i] = 0.5f * (1.f + erff(x[i] * 0.70710678f));
	*dx = t + x * 0.3989422804f * vexp(-0.5f * x * x);
	return x * t;
}

VINLINE void gated_fwd_rows(struct gated_args a, long lo, long hi)
{
	vf dx;

	for (long t = lo; t < hi; t++)
		EACH_VEC(i, n, 0, a.f) {
			vf g = get(a.gu, 2 * t * a.f + i, (int)n), u = get(a.gu, (2 * t + 1) * a.f + i, (int)n);

			put(a.y, t * a.f + i, activation(a.act, g, &dx) * u, (int)n);
		}
}

/* The usual cases with constants for what the loop would branch on. */
static void gated_fwd_range(const void *p, long lo, long hi)
{
	struct gated_args a = *(const struct gated_args *)p;

	if (a.act == ACT_SILU && a.y.t == a.gu.t && a.y.t == DT_F32) {
		a.y.t = a.gu.t = DT_F32;
		gated_fwd_rows(a, lo, hi);
	} else if (a.act == ACT_SILU && a.y.t == a.gu.t) {
		a.y.t = a.gu.t = DT_BF16;
		gated_fwd_rows(a, lo, hi);
	} else {
		gated_fwd_rows(a, lo, hi);
	}
}

static void op_gated_fwd(struct device *d, struct dbuf y, struct dbuf gu, int act, long t, long f)
{
	struct gated_args a = { .y = y, .gu = gu, .act = act, .f = f };

	assert(is_float(y) && is_float(gu));
	each(d, t, row_block(f), gated_fwd_range, &a);
}

VINLINE void gated_bwd_rows(struct gated_args a, long lo, long hi)
{
	vf dx;

	for (long t = lo; t < hi; t++)
		EACH_VEC(i, n, 0, a.f) {
			long at = 2 * t * a.f + i;
			vf g = get(a.gu, at, (int)n), u = get(a.gu, at + a.f, (int)n),
				dy = get(a.dy, t * a.f + i, (int)n);
			vf y = activation(a.act, g, &dx);

			put(a.dgu, at, dy * u * dx, (int)n);
			put(a.dgu, at + a.f, dy * y, (int)n);
		}
}

static void gated_bwd_range(const void *p, long lo, long hi)
{
	struct gated_args a = *(const struct gated_args *)p;
	bool same = a.dy.t == a.gu.t && a.dgu.t == a.gu.t;

	if (a.act == ACT_SILU && same && a.gu.t == DT_F32) {
		a.dy.t = a.dgu.t = a.gu.t = DT_F32;
		gated_bwd_rows(a, lo, hi);
	} else if (a.act == ACT_SILU && same) {
		a.dy.t = a.dgu.t = a.gu.t = DT_BF16;
		gated_bwd_rows(a, lo, hi);
	} else {
		gated_bwd_rows(a, lo, hi);
	}
}

static void op_gated_bwd(
	struct device *d, struct dbuf dgu, struct dbuf dy, struct dbuf gu, int act, long t, long f)
{
	struct gated_args a = { .dy = dy, .gu = gu, .dgu = dgu, .act = act, .f = f };

	assert(is_float(dgu) && is_float(dy) && is_float(gu));
	each(d, t, row_block(f), gated_bwd_range, &a);
}

/* ---- rope ---- */
struct rope_args {
	struct dbuf x;
	long ld;
	int heads, head_dim;
	const float *cs;
	const int32_t *pos;
	bool inverse;
};

static void rope_range(const void *p, long lo, long hi)
{
	const struct rope_args a_ = *(const struct rope_args *)p, *const a = &a_;
	long half = a->head_dim / 2;

	for (long t = lo; t < hi; t++) {
		struct dbuf cs = { (struct dmem *)(a->cs + a->pos[t] * a->head_dim), DT_F32 };

		for (int h = 0; h < a->heads; h++)
			EACH_VEC(i, n, 0, half) {
				long at = t * a->ld + (long)h * a->head_dim + i;
				vf x1 = get(a->x, at, (int)n), x2 = get(a->x, at + half, (int)n);
				vf c = get(cs, i, (int)n), s = get(cs, half + i, (int)n);

				s = a->inverse ? -s : s;
				put(a->x, at, x1 * c - x2 * s, (int)n);
				put(a->x, at + half, x2 * c + x1 * s, (int)n);
			}
	}
}

static void op_rope(struct device *d, struct dbuf x, long ld, int heads, int head_dim,
	struct dmem *cs, struct dmem *pos, long t, bool inverse)
{
	struct rope_args a = { x, ld, heads, head_dim, f32(cs), i32(pos), inverse };

	assert(is_float(x) && head_dim % 2 == 0 && (long)heads * head_dim <= ld);
	each(d, t, row_block((long)heads * head_dim), rope_range, &a);
}

/* ---- dropout: one Philox block for each four elements of the record ---- */
struct dropout_args {
	struct dbuf y, x;
	float p;
	uint32_t key[2], step, layer;
	const uint32_t *rec, *off;
	long c;
};

static void dropout_range(const void *ptr, long lo, long hi)
{
	const struct dropout_args a_ = *(const struct dropout_args *)ptr, *const a = &a_;
	float scale = 1.f / (1.f - a->p);
	uint32_t word[4] = {0};

	for (long t = lo; t < hi; t++) {
		uint64_t first = (uint64_t)a->off[t] * (uint64_t)a->c;

		EACH_VEC(i, n, 0, a->c) {
			vf keep = {0};

			for (int j = 0; j < n; j++) {
				uint64_t e = first + (uint64_t)(i + j);
				uint32_t ctr[4] = { a->step, a->rec[t], a->layer, (uint32_t)(e / 4) };

				if ((i + j == 0) || e % 4 == 0)
					philox4x32(a->key, ctr, word);
				keep[j] = rng_uniform(word[e % 4]) >= a->p ? scale : 0.f;
			}
			put(a->y, t * a->c + i, get(a->x, t * a->c + i, (int)n) * keep, (int)n);
		}
	}
}

static void op_dropout(struct device *d, struct dbuf y, struct dbuf x, float p, uint64_t seed,
	uint32_t step, uint32_t layer, struct dmem *rec, struct dmem *off, long t, long c)
{
	struct dropout_args a = { .y = y, .x = x, .p = p, .step = step, .layer = layer,
		.rec = (const uint32_t *)(void *)rec, .off = (const uint32_t *)(void *)off, .c = c };

	assert(is_float(y) && is_float(x) && p >= 0 && p < 1);
	rng_key(seed, RNG_DROPOUT, a.key);
	each(d, t, row_block(c), dropout_range, &a);
}

/* ---- db[n] += sum_t dy[t, n]: columns are shared out, so that each sum runs in row order ---- */
enum { COLUMN_BLOCK = 64 };
struct bias_args { float *db; struct dbuf dy; long ld, t; };

static void bias_bwd_range(const void *p, long lo, long hi)
{
	const struct bias_args a_ = *(const struct bias_args *)p, *const a = &a_;
	struct dbuf db = { (struct dmem *)a->db, DT_F32 };

	EACH_VEC(i, n, lo, hi) {
		vf s = {0};

		for (long t = 0; t < a->t; t++)
			s += get(a->dy, t * a->ld + i, (int)n);
		put(db, i, get(db, i, (int)n) + s, (int)n);
	}
}

static void op_bias_bwd(struct device *d, struct dmem *db, struct dbuf dy, long ld, long t, long n)
{
	struct bias_args a = { f32(db), dy, ld, t };

	assert(is_float(dy) && n <= ld);
	each(d, n, COLUMN_BLOCK, bias_bwd_range, &a);
}

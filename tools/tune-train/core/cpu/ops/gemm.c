/* gemm: C (+)= alpha * op(A) op(B) (+ bias). */
#include "each.h"

/* Element i of a buffer as a float. */
static inline float at(struct dbuf b, long i) { return b.t == DT_F32 ? f32(b.p)[i] : bf16_f32(((const uint16_t *)(const void *)b.p)[i]); }

static void gemm_range(const void *p, long lo, long hi)
{
	const struct gemm *g = p;

	for (long i = lo; i < hi; i++)
		for (long j = 0; j < g->n; j++) {
			float s = 0;

			for (long k = 0; k < g->k; k++)
				s += at(g->a, g->op == GEMM_TN ? k * g->lda + i : i * g->lda + k) * at(g->b, g->op == GEMM_NT ? j * g->ldb + k : k * g->ldb + j);
			s = g->alpha * s + (g->bias.p ? at(g->bias, j) : 0.f) + (g->accumulate ? at(g->c, i * g->ldc + j) : 0.f);
			if (g->c.t == DT_F32)
				f32(g->c.p)[i * g->ldc + j] = s;
			else
				((uint16_t *)(void *)g->c.p)[i * g->ldc + j] = f32_bf16(s);
		}
}

static void op_gemm(struct device *d, const struct gemm *g)
{
	assert(is_float(g->a) && is_float(g->b) && is_float(g->c) && !(g->bias.p && g->accumulate));
	each(d, g->m, 8, gemm_range, g);
}

static size_t op_workspace(struct device *d, long max_m, long max_n, long max_k)
{
	(void)d, (void)max_m, (void)max_n, (void)max_k;
	return 0;
}

/*
 * gemv: C = alpha * A B^T for a few rows of A, as in decoding: bound by reading B once.
 *
 * Blocks of 8 rows of B are transposed in registers and used at once; nothing is packed.  Each
 * element is still the chain over k of the micro-kernel, cut into the same blocks, so its bits are
 * those of the packed path.
 */
#include "each.h"

#if defined(__AVX2__)
enum { GEMV_ROWS = 4, GEMV_COLUMNS = 32 };

struct gemv { const struct gemm *g; const float *x; long ks; };

/* out[i][j] (+)= chain over kc of x[i][k] * w[j][k], m rows by `groups` times 8 columns. */
VINLINE void gemv_chain(const int m, const int groups, const bool bf, const char *w, long ld,
	const float *x, long ldx, long kc, float *out, bool add)
{
	const long size = bf ? 2 : 4, step = ld * size;
	/* The next columns, which usually lie next: so many rows are no stream to the hardware. */
	const char *ahead = w + GEMV_COLUMNS * step;
	vf s[GEMV_ROWS][GEMV_COLUMNS / 8];

#pragma GCC unroll 4
	for (int i = 0; i < m; i++)
#pragma GCC unroll 4
		for (int j = 0; j < groups; j++)
			s[i][j] = vset(0);
	for (long k = 0; k < kc; k += 8)
#pragma GCC unroll 4
		for (int j = 0; j < groups; j++) {
			const char *p = w + k * size + j * 8 * step, *row[8];
			vf r[8];

			__asm__("" : "+r"(p));   /* one base: not 32 addresses that do not fit the registers */
#pragma GCC unroll 8
			for (int i = 0; i < 8; i++)
				row[i] = p + i * step;
#pragma GCC unroll 4
			for (int i = 0; i < 8 * size * 8 / 64; i++, ahead += 64)
				__builtin_prefetch(ahead, 0, 2);
			load_transposed(row, 0, bf, r);
#pragma GCC unroll 8
			for (int i = 0; i < 8; i++)
#pragma GCC unroll 4
				for (int n = 0; n < m; n++)
					s[n][j] = vfma(vset(x[n * ldx + k + i]), r[i], s[n][j]);
		}
#pragma GCC unroll 4
	for (int i = 0; i < m; i++)
#pragma GCC unroll 4
		for (int j = 0; j < groups; j++) {
			float *o = out + i * GEMV_COLUMNS + j * 8;

			vstore(o, add ? vload(o) + s[i][j] : s[i][j]);
		}
}

/* All 32 columns; more rows leave registers for fewer columns at once. */
VINLINE void gemv_chains(long m, const bool bf, const char *w, long ld, const float *x, long ldx,
	long kc, float *out, bool add)
{
	const long half = GEMV_COLUMNS / 2 * ld * (bf ? 2 : 4);

	if (m == 1) {
		gemv_chain(1, 4, bf, w, ld, x, ldx, kc, out, add);
	} else if (m == 2) {
		gemv_chain(2, 2, bf, w, ld, x, ldx, kc, out, add);
		gemv_chain(2, 2, bf, w + half, ld, x, ldx, kc, out + 16, add);
	} else if (m == 3) {
		gemv_chain(3, 2, bf, w, ld, x, ldx, kc, out, add);
		gemv_chain(3, 2, bf, w + half, ld, x, ldx, kc, out + 16, add);
	} else {
		gemv_chain(4, 2, bf, w, ld, x, ldx, kc, out, add);
		gemv_chain(4, 2, bf, w + half, ld, x, ldx, kc, out + 16, add);
	}
}

static void gemv_columns(const struct gemv *v, long col)
{
	const struct gemm *g = v->g;
	float out[GEMV_ROWS * GEMV_COLUMNS], sum[GEMV_ROWS * GEMV_COLUMNS];

	for (long k0 = 0; k0 < g->k; k0 += v->ks) {
		long ks = g->k - k0 < v->ks ? g->k - k0 : v->ks, block = even(ks, KC, 8);

		for (long k = 0; k < ks; k += block) {
			long kc = ks - k < block ? ks - k : block, at = col * g->ldb + k0 + k;

			if (g->b.t == DT_BF16)
				gemv_chains(g->m, true, (const char *)g->b.p + at * 2, g->ldb, v->x + k0 + k, g->k,
					kc, out, k > 0);
			else
				gemv_chains(g->m, false, (const char *)g->b.p + at * 4, g->ldb, v->x + k0 + k, g->k,
					kc, out, k > 0);
		}
		for (long i = 0; i < g->m; i++) {
			struct dbuf c = dbuf_at(g->c, (size_t)(i * g->ldc + col)), add = DBUF_NONE,
				part = { (struct dmem *)(sum + i * GEMV_COLUMNS), DT_F32 };

			if (k0 > 0)
				add = part;
			else if (g->accumulate)
				add = c;
			else if (g->bias.p)
				add = dbuf_at(g->bias, (size_t)col);
			store_row(
				k0 + v->ks < g->k ? part : c, out + i * GEMV_COLUMNS, g->alpha, add, GEMV_COLUMNS);
		}
	}
}

static void gemv_range(const void *p, long lo, long hi)
{
	for (long i = lo; i < hi; i++)
		gemv_columns(p, i * GEMV_COLUMNS);
}

/* The columns that it does, from the first on: whole groups, where all is in eights. */
static long gemv(struct device *d, const struct gemm *g)
{
	float *x = ((struct cpu *)d->impl)->space;
	struct gemv v = { .g = g, .x = x, .ks = even(g->k, KS, 8) };

	if (g->op != GEMM_NT || g->m > GEMV_ROWS || g->k % 8 != 0 || g->k > KS * MS / GEMV_ROWS ||
		g->n < GEMV_COLUMNS)
		return 0;
	for (long i = 0; i < g->m; i++)
		EACH_VEC(k, w, 0, g->k)
			put((struct dbuf){ (struct dmem *)x, DT_F32 }, i * g->k + k,
				get(g->a, i * g->lda + k, (int)w), (int)w);
	each(d, g->n / GEMV_COLUMNS, 1 + 65536 / (GEMV_COLUMNS * g->k), gemv_range, &v);
	return g->n / GEMV_COLUMNS * GEMV_COLUMNS;
}
#else
static long gemv(struct device *d, const struct gemm *g)
{
	(void)d, (void)g;
	return 0;
}
#endif

/* The whole operation: what gemv can do, and the rest packed. */
static void gemm_packed(struct device *d, const struct gemm *g)
{
	struct cpu *c = d->impl;
	struct gemm_run r = { .g = g,
		.a = { g->a, g->lda, g->op == GEMM_TN },
		.b = { g->b, g->ldb, g->op != GEMM_NT },
		.panels = c->space,
		.own = (char *)c->space + shared_bytes(),
		.own_bytes = own_bytes() };
	bool part = g->c.t != DT_F32 && g->k > KS;
	long ms = even(g->m, MS, MR), ns = part ? NS : g->n;

	r.part = part ? r.panels + MS * KS : NULL;
	for (r.m0 = 0; r.m0 < g->m; r.m0 += ms)
		for (r.n0 = 0; r.n0 < g->n; r.n0 += ns) {
			r.m = g->m - r.m0 < ms ? g->m - r.m0 : ms;
			r.n = g->n - r.n0 < ns ? g->n - r.n0 : ns;
			gemm_block(c, &r);
		}
}

static void op_gemm(struct device *d, const struct gemm *g)
{
	struct gemm rest = *g;
	long done;

	assert(is_float(g->a) && is_float(g->b) && is_float(g->c) && !(g->bias.p && g->accumulate) &&
		g->k > 0);
	if (g->m == 0 || g->n == 0)
		return;
	done = gemv(d, g);
	if (done == g->n)
		return;
	rest.n -= done;
	rest.b = dbuf_at(g->b, (size_t)(done * (g->op == GEMM_NT ? g->ldb : 1)));
	rest.c = dbuf_at(g->c, (size_t)done);
	if (g->bias.p)
		rest.bias = dbuf_at(g->bias, (size_t)done);
	gemm_packed(d, &rest);
}

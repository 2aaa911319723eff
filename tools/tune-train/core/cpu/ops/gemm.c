/*
 * gemm: C (+)= alpha * op(A) op(B) (+ bias), over packed panels.
 *
 * K is cut into superblocks (at most KS) and these into blocks (at most KC), both functions of K
 * alone; an element is the sum over blocks, in order, of one chain a block.  So its bits depend on
 * its row of A, its column of B and K: not on M, N, threads or tiles.
 *
 * For each superblock all threads pack A (shared), then take tasks: some columns times some rows.
 * A task packs its part of B, small enough for the L2 cache, and goes down the rows in steps of MC,
 * with a panel of B in the L1 cache.  A tile of C is summed in floats and written once: with alpha,
 * bias, the old C, and the rounding to bf16.
 */

#include "each.h"

enum {
	MC = 20 * MR,       /* rows of a tile */
	NC = 12 * NR,       /* most columns of a task */
	KC = 256, KS = 8 * KC,
	MS = 20 * MC,       /* most rows that are packed at once */
	NS = 2048           /* columns at once where a bf16 C needs float partial sums */
};

/* One superblock of one block of C. */
struct gemm_run {
	const struct gemm *g;
	struct view a, b;
	long m0, m, n0, n, k0, k, kc;         /* this block of C, this superblock, its blocks */
	bool first, last;                     /* superblock */
	long rows, row_tasks, columns;        /* a task */
	float *panels, *part; /* packed A; partial sums [m, n] for a bf16 C, else NULL */
	char *own; size_t own_bytes;          /* a worker's own memory: panels of B, tile of C */
};

static long round_up(long x, long unit) { return (x + unit - 1) / unit * unit; }
/* x in equal parts of at most `most`, in multiples of unit. */
static long even(long x, long most, long unit)
{
	return round_up((x + (x + most - 1) / most - 1) / ((x + most - 1) / most), unit);
}

/* ---- memory: one reservation at open, touched as needed ---- */
static size_t own_bytes(void) { return (size_t)(NC * KS + MC * NC) * 4; }
static size_t shared_bytes(void) { return (size_t)(MS * KS + MS * NS) * 4; }

static void gemm_pack_a(void *ctx, long task, int worker)
{
	const struct gemm_run *r = ctx;
	long row = task * MC, rows = r->m - row < MC ? r->m - row : MC, all = round_up(r->m, MR);

	(void)worker;
	for (long k = 0; k < r->k; k += r->kc) {
		long kc = r->k - k < r->kc ? r->k - k : r->kc;

		pack(r->panels + k * all + row * kc, &r->a, r->m0 + row, rows, r->k0 + k, kc, MR);
	}
}

/* out[i] = alpha * x[i] (+ add[i]), n of them.  x may be read up to the end of its last vector. */
VINLINE void finish_row(struct dbuf out, const float *x, float alpha, struct dbuf add, long n)
{
	EACH_VEC(j, w, 0, n) {
		vf v = vload(x + j) * alpha;

		if (add.p)
			v += get(add, j, (int)w);
		put(out, j, v, (int)w);
	}
}

/* The same with the types as constants, so that the loop has no branches. */
static void store_row(struct dbuf out, const float *x, float alpha, struct dbuf add, long n)
{
	const struct dbuf none = DBUF_NONE, floats_out = { out.p, DT_F32 },
		halves_out = { out.p, DT_BF16 };

	if (!add.p && out.t == DT_F32)
		finish_row(floats_out, x, alpha, none, n);
	else if (!add.p)
		finish_row(halves_out, x, alpha, none, n);
	else if (add.t == DT_F32 && out.t == DT_F32)
		finish_row(floats_out, x, alpha, (struct dbuf){ add.p, DT_F32 }, n);
	else if (add.t == DT_F32)
		finish_row(halves_out, x, alpha, (struct dbuf){ add.p, DT_F32 }, n);
	else if (out.t == DT_F32)
		finish_row(floats_out, x, alpha, (struct dbuf){ add.p, DT_BF16 }, n);
	else
		finish_row(halves_out, x, alpha, (struct dbuf){ add.p, DT_BF16 }, n);
}

/*
 * The finished sums of a tile (row stride ldt) go into C, or into the partial sums; with what is
 * there, or the bias.
 */
static void gemm_store(const struct gemm_run *r, const float *tile, long ldt, long row, long rows,
	long col, long columns)
{
	const struct gemm *g = r->g;

	for (long i = 0; i < rows; i++) {
		struct dbuf c = dbuf_at(g->c, (size_t)((r->m0 + row + i) * g->ldc + r->n0 + col)),
			add = DBUF_NONE;
		struct dbuf part = { r->part ? (struct dmem *)(r->part + (row + i) * r->n + col) : NULL,
			DT_F32 };

		if (!r->first)
			add = r->part ? part : c;
		else if (g->accumulate)
			add = c;
		else if (g->bias.p)
			add = dbuf_at(g->bias, (size_t)(r->n0 + col));
		store_row(r->part && !r->last ? part : c, tile + i * ldt, g->alpha, add, columns);
	}
}

static void gemm_tile(
	const struct gemm_run *r, const float *b, float *tile, long row, long rows, long columns)
{
	long all = round_up(r->m, MR), ldt = round_up(columns, NR);

	for (long k = 0; k < r->k; k += r->kc) {
		long kc = r->k - k < r->kc ? r->k - k : r->kc;
		const float *pa = r->panels + k * all + row * kc, *pb = b + k * ldt;

		for (long j = 0; j < ldt; j += NR)
			for (long i = 0; i < rows; i += MR)
				micro(kc, pa + i * kc, pb + j * kc, tile + i * ldt + j, ldt, k > 0);
	}
}

static void gemm_task(void *ctx, long task, int worker)
{
	const struct gemm_run *r = ctx;
	float *b = (float *)(void *)(r->own + (size_t)worker * r->own_bytes), *tile = b + NC * KS;
	long col = task / r->row_tasks * r->columns,
		columns = r->n - col < r->columns ? r->n - col : r->columns;
	long row = task % r->row_tasks * r->rows, end = row + r->rows < r->m ? row + r->rows : r->m;

	for (long k = 0; k < r->k; k += r->kc) {
		long kc = r->k - k < r->kc ? r->k - k : r->kc;

		pack(b + k * round_up(columns, NR), &r->b, r->n0 + col, columns, r->k0 + k, kc, NR);
	}
	for (; row < end; row += MC) {
		long rows = end - row < MC ? end - row : MC;

		gemm_tile(r, b, tile, row, rows, columns);
		gemm_store(r, tile, round_up(columns, NR), row, rows, col, columns);
	}
}

/*
 * Tasks: at least 4 a thread if there is enough work, columns first (each column is then packed
 * once).
 */
static void gemm_split(struct gemm_run *r, int threads)
{
	long want = threads == 1 ? 1 : 4L * threads, columns, parts;

	columns = r->n / want / NR * NR;
	r->columns = columns < 2 * NR ? 2 * NR : columns > NC ? NC : columns;
	parts = (r->n + r->columns - 1) / r->columns;
	r->row_tasks = (want + parts - 1) / parts;
	if (r->row_tasks > (r->m + 2 * MC - 1) / (2 * MC))
		r->row_tasks = (r->m + 2 * MC - 1) / (2 * MC);
	r->rows = round_up((r->m + r->row_tasks - 1) / r->row_tasks, MR);
	r->row_tasks = (r->m + r->rows - 1) / r->rows;
}

static void gemm_block(struct cpu *c, struct gemm_run *r)
{
	long ks = even(r->g->k, KS, 8);

	gemm_split(r, c->threads);
	for (r->k0 = 0; r->k0 < r->g->k; r->k0 += ks) {
		r->k = r->g->k - r->k0 < ks ? r->g->k - r->k0 : ks;
		r->kc = even(r->k, KC, 8);
		r->first = r->k0 == 0;
		r->last = r->k0 + ks >= r->g->k;
		if (r->n0 == 0 || !(r->first && r->last))
			pool_run(c->pool, (r->m + MC - 1) / MC, gemm_pack_a, r);
		pool_run(c->pool, (r->n + r->columns - 1) / r->columns * r->row_tasks, gemm_task, r);
	}
}

static long least(long a, long b) { return a < b ? a : b; }

static size_t op_workspace(struct device *d, long max_m, long max_n, long max_k)
{
	const struct cpu *c = d->impl;
	size_t bytes = (size_t)(least(max_m, MS) * least(max_k, KS) +
		(max_k > KS ? least(max_m, MS) * least(max_n, NS) : 0)) *
		4;

	return bytes + (size_t)c->threads * own_bytes();
}

/* rows: moving rows: embedding, gather, scatter, the KV cache's new rows. */
#include "each.h"

struct rows_args { struct dbuf dst, src; const int32_t *rows, *order; long ldd, lds, t, c; };

static void copy_row(struct dbuf dst, long i, struct dbuf src, long j, long c)
{
	if (dst.t == src.t)
		memcpy((char *)dst.p + (size_t)i * bytes_of(dst.t),
			(char *)src.p + (size_t)j * bytes_of(src.t), (size_t)c * bytes_of(dst.t));
	else
		EACH_VEC(k, n, 0, c)
			put(dst, i + k, get(src, j + k, (int)n), (int)n);
}

static void add_row(struct dbuf dst, long i, struct dbuf src, long j, long c)
{
	EACH_VEC(k, n, 0, c)
		put(dst, i + k, get(dst, i + k, (int)n) + get(src, j + k, (int)n), (int)n);
}

static void gather_range(const void *p, long lo, long hi)
{
	const struct rows_args a_ = *(const struct rows_args *)p, *const a = &a_;

	for (long i = lo; i < hi; i++)
		copy_row(a->dst, i * a->c, a->src, a->rows[i] * a->c, a->c);
}

static void op_gather_rows(
	struct device *d, struct dbuf dst, struct dbuf src, struct dmem *rows, long r, long c)
{
	struct rows_args a = { .dst = dst, .src = src, .rows = i32(rows), .c = c };

	assert(is_float(dst) && is_float(src));
	each(d, r, row_block(c), gather_range, &a);
}

static void op_embed_fwd(
	struct device *d, struct dbuf y, struct dbuf w, struct dmem *ids, long t, long c)
{
	op_gather_rows(d, y, w, ids, t, c);
}

static void scatter_range(const void *p, long lo, long hi)
{
	const struct rows_args a_ = *(const struct rows_args *)p, *const a = &a_;

	for (long i = lo; i < hi; i++)
		add_row(a->dst, a->rows[i] * a->c, a->src, i * a->c, a->c);
}

static void op_scatter_add_rows(
	struct device *d, struct dbuf dst, struct dbuf src, struct dmem *rows, long r, long c)
{
	struct rows_args a = { .dst = dst, .src = src, .rows = i32(rows), .c = c };

	assert(is_float(dst) && is_float(src));
	each(d, r, row_block(c), scatter_range, &a);
}

static void put_range(const void *p, long lo, long hi)
{
	const struct rows_args a_ = *(const struct rows_args *)p, *const a = &a_;

	for (long i = lo; i < hi; i++)
		copy_row(a->dst, a->rows[i] * a->ldd, a->src, i * a->lds, a->c);
}

static void op_put_rows(struct device *d, struct dbuf dst, long ldd, struct dbuf src, long lds,
	struct dmem *rows, long r, long c)
{
	struct rows_args a = {
		.dst = dst, .src = src, .rows = i32(rows), .ldd = ldd, .lds = lds, .c = c
	};

	assert(is_float(dst) && dst.t == src.t);
	each(d, r, row_block(c), put_range, &a);
}

/*
 * A range of `order` owns the runs of equal ids that begin in it: it skips one that began before
 * and goes past its end to finish the last, so that each row of dw has one writer.
 */
static void embed_bwd_range(const void *p, long lo, long hi)
{
	const struct rows_args a_ = *(const struct rows_args *)p, *const a = &a_;
	const int32_t *id = a->rows, *o = a->order;
	long i = lo;

	if (i > 0)
		while (i < hi && id[o[i]] == id[o[i - 1]])
			i++;
	if (i == hi)
		return;
	for (; i < a->t && (i < hi || id[o[i]] == id[o[i - 1]]); i++)
		add_row(a->dst, id[o[i]] * a->c, a->src, o[i] * a->c, a->c);
}

static void op_embed_bwd(struct device *d, struct dmem *dw, struct dbuf dy, struct dmem *ids,
	struct dmem *order, long t, long c)
{
	struct rows_args a = {
		.dst = floats(dw), .src = dy, .rows = i32(ids), .order = i32(order), .t = t, .c = c
	};

	assert(is_float(dy));
	each(d, t, row_block(c), embed_bwd_range, &a);
}

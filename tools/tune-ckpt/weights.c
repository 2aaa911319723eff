/* A model's tensors, converted, reordered and merged in chunks of a few MiB. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/pool.h"
#include "tools/tune-ckpt/ckpt.h"

/* elements, or one row (one head of rows) if that is more; of a look at the numbers */
enum { CHUNK = 1 << 20, LOOK = 1 << 14 };

int tensor_finite(const struct tensor *t, struct err *err)
{
	size_t block = (size_t)dtype_info[t->dtype].block, size = (size_t)dtype_info[t->dtype].bytes,
		   n = t->bytes / size * block;
	uint64_t bad = 0;
	float x[LOOK];

	if (!dtype_is_float(t->dtype) && block == 1)
		return 0;
	for (size_t at = 0; at < n; at += LOOK) {
		size_t k = n - at < LOOK ? n - at : LOOK;

		dtype_to_f32(t->dtype, t->data + at / block * size, k, x);
		for (size_t i = 0; i < k; i++)
			bad += !isfinite(x[i]);
	}
	if (bad)
		return err_set(err, EX_DATAERR, "%s: tensor '%s' holds %llu numbers that are NaN or Inf",
			t->file, t->name, (unsigned long long)bad);
	return 0;
}

int weights_init(struct weights *w, const struct modelfile *m, const struct adapter *ad, bool gguf,
	struct err *err)
{
	*w = (struct weights){ .m = m, .ad = ad, .gguf = gguf };
	return ad ? pool_new(&w->pool, 0, err) : 0;
}

void weights_release(struct weights *w)
{
	if (w->pool)
		pool_free(w->pool);
	free(w->x);
	free(w->y);
	*w = (struct weights){0};
}

static int make_room(struct weights *w, size_t n, struct err *err)
{
	if (n <= w->cap)
		return 0;
	free(w->x);
	free(w->y);
	w->cap = 0;
	w->x = mem_zalloc(n, sizeof(*w->x), err);
	w->y = mem_zalloc(n, sizeof(*w->x), err);
	if (!w->x || !w->y)
		return -1;
	w->cap = n;
	return 0;
}

/*
 * v to fp32, rounded to odd: the last bit says that something was cut off.  Rounding that to a
 * narrower type is then the same as rounding v itself once.
 */
static float round_odd(double v)
{
	float f = (float)v;
	uint32_t u;

	if ((double)f == v || isnan(v))
		return f;
	memcpy(&u, &f, 4);
	u = (u - (fabs((double)f) > fabs(v))) | 1;
	memcpy(&f, &u, 4);
	return f;
}

/* x[rows][width] += scale * B[row0..][rank] * A[rank][width], row by row on the threads. */
struct delta {
	float *x, *a, *b;
	double *sum;           /* width a worker */
	uint64_t width, row0;
	int rank;
	double scale;
	bool narrow;           /* what follows is a narrower type */
};

static void add_row(void *ctx, long row, int worker)
{
	const struct delta *d = ctx;
	double *sum = d->sum + (uint64_t)worker * d->width;
	float *x = d->x + (uint64_t)row * d->width;
	const float *b = d->b + (d->row0 + (uint64_t)row) * (uint64_t)d->rank;

	memset(sum, 0, d->width * sizeof(*sum));
	for (int k = 0; k < d->rank; k++) {
		const float *a = d->a + (uint64_t)k * d->width;
		double bk = (double)b[k];

		for (uint64_t c = 0; c < d->width; c++)
			sum[c] += bk * (double)a[c];
	}
	for (uint64_t c = 0; c < d->width; c++) {
		double v = (double)x[c] + d->scale * sum[c];

		x[c] = d->narrow ? round_odd(v) : (float)v;
	}
}

static int read_delta(
	struct delta *d, const struct weights *w, const struct lora *l, enum dtype t, struct err *err)
{
	*d = (struct delta){ .width = l->a->shape[1],
		.rank = w->ad->peft.rank,
		.scale = w->ad->scale,
		.narrow = t == DT_BF16 || t == DT_F16 };
	d->a = mem_zalloc(tensor_count(l->a), sizeof(*d->a), err);
	d->b = mem_zalloc(tensor_count(l->b), sizeof(*d->b), err);
	d->sum = mem_zalloc(d->width * (uint64_t)pool_threads(w->pool), sizeof(*d->sum), err);
	if (!d->a || !d->b || !d->sum)
		return -1;
	/* float types: adapter_open has looked */
	dtype_to_f32(l->a->dtype, l->a->data, tensor_count(l->a), d->a);
	dtype_to_f32(l->b->dtype, l->b->data, tensor_count(l->b), d->b);
	return 0;
}

static void release_delta(struct delta *d)
{
	free(d->a);
	free(d->b);
	free(d->sum);
}

/*
 * Rows of whole heads from Hugging Face's half-split order to GGUF's; gguf_row is the map within
 * each head.
 */
static void permute(const float *x, float *y, uint64_t rows, uint64_t width, uint64_t head_dim)
{
	for (uint64_t r = 0; r < rows; r++)
		memcpy(y + (r / head_dim * head_dim + gguf_row(r % head_dim, 1, head_dim)) * width,
			x + r * width, width * sizeof(*x));
}

static int check_range(
	const struct weights *w, size_t i, enum dtype t, const float *x, size_t n, struct err *err)
{
	for (size_t k = 0; t == DT_F16 && k < n; k++)
		if (fabsf(x[k]) >= 65520 && isfinite(x[k]))
			return err_set(err, EX_DATAERR,
				"%s: tensor '%s' holds %g, which fp16 can't; use bf16 or fp32", w->m->path,
				w->m->tensors[i].name, (double)x[k]);
	return 0;
}

static int put_rows(struct weights *w, size_t i, uint64_t row0, uint64_t rows, enum dtype t,
	struct delta *d, put_fn *put, void *ctx, struct err *err)
{
	const struct arch_tensor *at = &w->m->tensors[i];
	const struct tensor *full = w->ad ? w->ad->at[i].full : NULL;
	uint64_t width = at->ndim == 2 ? at->shape[1] : 1, n = rows * width;
	float *x = w->x;

	if (full)
		dtype_to_f32(full->dtype, full->data + row0 * dtype_bytes(full->dtype, width), n, x);
	else if (modelfile_read_f32(w->m, i, row0, rows, x, err) < 0)
		return -1;
	if (d) {
		d->x = x;
		d->row0 = row0;
		pool_run(w->pool, (long)rows, add_row, d);
	}
	if (w->gguf && at->gguf_heads) {
		permute(x, w->y, rows, width, at->shape[0] / (uint64_t)at->gguf_heads);
		memcpy(x, w->y, n * sizeof(*x));
	}
	if (check_range(w, i, t, x, n, err) < 0)
		return -1;
	if (dtype_from_f32(t, x, n, w->y) < 0)
		return err_set(err, EX_DATAERR,
			"%s: tensor '%s' holds numbers that %s can't (NaN, Inf or too large)", w->m->path,
			at->name, dtype_word(t));
	return put(ctx, w->y, dtype_bytes(t, n), err);
}

int weights_put(struct weights *w, size_t i, enum dtype t, put_fn *put, void *ctx, struct err *err)
{
	const struct arch_tensor *at = &w->m->tensors[i];
	const struct tensor *src = w->m->src[i];
	const struct lora *l = w->ad ? &w->ad->at[i] : NULL;
	uint64_t width = at->ndim == 2 ? at->shape[1] : 1, step = CHUNK / width ? CHUNK / width : 1, n;
	uint64_t head_dim = at->gguf_heads ? at->shape[0] / (uint64_t)at->gguf_heads : 1;
	bool same_order = w->gguf == (w->m->gguf != NULL) || !at->gguf_heads;
	struct delta d = {0};
	int rc = -1;

	if (src->dtype == t && same_order && !(l && (l->a || l->full)))
		return put(ctx, src->data, src->bytes, err);
	step = step < head_dim ? head_dim : step / head_dim * head_dim;
	if (step > at->shape[0])
		step = at->shape[0];
	if (make_room(w, step * width, err) < 0 || (l && l->a && read_delta(&d, w, l, t, err) < 0))
		goto done;
	for (uint64_t row = 0; row < at->shape[0]; row += n) {
		n = at->shape[0] - row < step ? at->shape[0] - row : step;
		if (put_rows(w, i, row, n, t, d.a ? &d : NULL, put, ctx, err) < 0)
			goto done;
	}
	rc = 0;
done:
	release_delta(&d);
	return rc;
}

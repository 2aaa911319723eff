/*
 * head: final norm, logits and their gradients for chunks of head_rows trained rows; full logits
 * are never stored (contracts.md 8). The rows of the residual stream are gathered first, so that
 * norm and product run over trained rows only.
 */
#include <assert.h>

#include "state.h"

void head_wire(struct model *m)
{
	const struct units *us = &m->units;
	int unit = m->arch->tied ? 0 : us->n - 1;
	enum tensor_role role = m->arch->tied ? T_EMBED : T_HEAD;

	m->head.w = units_value(us, unit, role, SLICE_BASE);
	m->head.dw = units_grad(us, unit, role, SLICE_BASE);
	m->head.norm = units_value(us, us->n - 1, T_FINAL_NORM, SLICE_BASE);
	m->head.dnorm = units_grad(us, us->n - 1, T_FINAL_NORM, SLICE_BASE);
}

static struct dbuf f32(struct dmem *p)
{
	return (struct dbuf){ p, DT_F32 };
}

static struct dmem *row4(struct dmem *p, long row)
{
	return dmem_at(p, (size_t)row * 4);
}

void head_chunk(struct model *m, struct dmem *rows, long r)
{
	struct head *h = &m->head;
	struct device *d = m->d;
	long c = m->arch->dim, v = m->arch->vocab;
	struct gemm g = { GEMM_NT, r, v, c, h->hn, h->w, f32(h->logits), c, c, v, false, 1,
		DBUF_NONE };

	assert(r <= m->plan.head_rows);
	d->gather_rows(d, h->h, m->hl, rows, r, c);
	d->rmsnorm_fwd(d, h->hn, DBUF_NONE, h->rstd, h->h, DBUF_NONE, h->norm,
		(float)m->arch->norm_eps, r, c);
	d->gemm(d, &g);
}

/* logits hold dlogits: gradients of head, final norm and the rows of the residual stream. */
static void chunk_bwd(struct model *m, struct dmem *rows, long r)
{
	struct head *h = &m->head;
	struct device *d = m->d;
	long c = m->arch->dim, v = m->arch->vocab;
	struct gemm g = { GEMM_TN, v, c, r, f32(h->logits), h->hn, f32(h->dw), v, c, c, true, 1,
		DBUF_NONE };

	if (h->dw)
		d->gemm(d, &g);
	g = (struct gemm){ GEMM_NN, r, c, v, f32(h->logits), h->w, h->hn, v, c, c, false, 1,
		DBUF_NONE };
	d->gemm(d, &g);
	d->rmsnorm_bwd(d, h->dh, false, h->dnorm, h->hn, h->h, h->rstd, h->norm, r, c);
	d->scatter_add_rows(d, m->dres, h->dh, rows, r, c);
}

static long chunk_rows(const struct model *m, long at)
{
	long left = m->tok.nrows - at;

	return left < m->plan.head_rows ? left : m->plan.head_rows;
}

/* Logits of the chunk of trained rows from at, and what their targets got. */
static void chunk_fwd(struct model *m, long at, long r)
{
	struct tokens *k = &m->tok;

	head_chunk(m, row4(k->rows, at), r);
	m->d->head_rows_fwd(m->d, row4(k->logp, at), row4(k->lse, at),
		dmem_at(k->greedy, (size_t)at), m->head.logits, row4(k->target, at), r,
		m->arch->vocab);
}

static int start_bwd(struct model *m, struct err *err)
{
	if (!m->kept)
		return err_set(err, EX_SOFTWARE,
			"a gradient of the head without a kept forward pass");
	m->d->zero(m->d, m->dres.p,
		dtype_bytes(m->dres.t, (size_t)m->tok.t * (size_t)m->arch->dim));
	m->dres_ready = true;
	return 0;
}

int head_forward(struct model *m, float *logp, uint8_t *greedy, struct err *err)
{
	struct tokens *k = &m->tok;
	long at, r;

	for (at = 0; at < k->nrows; at += r) {
		r = chunk_rows(m, at);
		chunk_fwd(m, at, r);
	}
	if (logp && m->d->download(m->d, logp, k->logp, (size_t)k->nrows * 4, err) < 0)
		return -1;
	return greedy ? m->d->download(m->d, greedy, k->greedy, (size_t)k->nrows, err) : 0;
}

int head_cross_entropy(struct model *m, double weight, double *loss_sum, float *logp,
	struct err *err)
{
	struct tokens *k = &m->tok;
	struct head *h = &m->head;
	long at, r, i;

	if (start_bwd(m, err) < 0)
		return -1;
	for (i = 0; i < chunk_rows(m, 0); i++)
		h->h_a[i] = (float)weight;
	m->d->upload(m->d, h->a, h->h_a, (size_t)chunk_rows(m, 0) * 4);
	for (at = 0; at < k->nrows; at += r) {
		r = chunk_rows(m, at);
		chunk_fwd(m, at, r);
		m->d->head_rows_bwd(m->d, h->logits, row4(k->lse, at), h->a, NULL,
			row4(k->target, at), h->a, 1, r, m->arch->vocab);
		chunk_bwd(m, row4(k->rows, at), r);
	}
	if (!logp)
		logp = k->h_logp;
	if (m->d->download(m->d, logp, k->logp, (size_t)k->nrows * 4, err) < 0)
		return -1;
	for (i = 0; i < k->nrows; i++)
		*loss_sum -= logp[i];
	return 0;
}

int head_backward(struct model *m, const float *a, const float *u, const int32_t *ids,
	const float *w, int j, struct err *err)
{
	struct tokens *k = &m->tok;
	struct head *h = &m->head;
	struct device *d = m->d;
	long at, r;

	assert(j >= 1 && j <= HEAD_LIST_MAX);
	if (start_bwd(m, err) < 0)
		return -1;
	for (at = 0; at < k->nrows; at += r) {
		r = chunk_rows(m, at);
		chunk_fwd(m, at, r);
		d->upload(d, h->a, a + at, (size_t)r * 4);
		if (u)
			d->upload(d, h->u, u + at, (size_t)r * 4);
		d->upload(d, h->ids, ids + at * j, (size_t)(r * j) * 4);
		d->upload(d, h->weights, w + at * j, (size_t)(r * j) * 4);
		d->head_rows_bwd(d, h->logits, row4(k->lse, at), h->a, u ? h->u : NULL, h->ids,
			h->weights, j, r, m->arch->vocab);
		chunk_bwd(m, row4(k->rows, at), r);
	}
	return 0;
}

int head_logits(struct model *m, const int32_t *rows, long nrows, float *out, struct err *err)
{
	struct head *h = &m->head;
	size_t v = (size_t)m->arch->vocab;
	long at, r;

	for (at = 0; at < nrows; at += r) {
		r = nrows - at < m->plan.head_rows ? nrows - at : m->plan.head_rows;
		m->d->upload(m->d, h->sel, rows + at, (size_t)r * 4);
		head_chunk(m, h->sel, r);
		if (m->d->download(m->d, out + (size_t)at * v, h->logits, (size_t)r * v * 4, err) <
			0)
			return -1;
	}
	return 0;
}

#include "linear.h"

static struct dbuf f32(struct dmem *p)
{
	return (struct dbuf){ p, DT_F32 };
}

static bool adapted(const struct linear *l, const struct linear_run *r)
{
	return r->adapters && l->nparts > 0;
}

static void drop(const struct linear *l, const struct linear_run *r, struct dbuf y, struct dbuf x)
{
	r->d->dropout(r->d, y, x, r->dropout, r->seed, r->step, l->key, r->rec, r->off, r->t,
		l->in);
}

void linear_inner(const struct linear *l, const struct linear_run *r, struct dbuf x, struct dbuf xa)
{
	long ra = (long)l->nparts * l->rank;
	struct gemm g;

	if (!adapted(l, r))
		return;
	if (r->dropout > 0) {
		drop(l, r, r->xd, x);
		x = r->xd;
	}
	g = (struct gemm){ GEMM_NT, r->t, ra, l->in, x, l->a, xa, l->in, l->in, ra, false, 1,
		DBUF_NONE };
	r->d->gemm(r->d, &g);
}

void linear_fwd(const struct linear *l, const struct linear_run *r, struct dbuf y, struct dbuf x,
	struct dbuf xa)
{
	struct gemm g = { GEMM_NT, r->t, l->out, l->in, x, l->w, y, l->in, l->in, l->out, false, 1,
		l->bias };
	long ra = (long)l->nparts * l->rank;
	int p;

	r->d->gemm(r->d, &g);
	linear_inner(l, r, x, xa);
	for (p = 0; p < l->nparts && adapted(l, r); p++) {
		const struct linear_part *q = &l->part[p];

		g = (struct gemm){ GEMM_NT, r->t, q->out, l->rank,
			dbuf_at(xa, (size_t)p * (size_t)l->rank), q->b, dbuf_at(y, (size_t)q->out0),
			ra, l->rank, l->out, true, l->scale, DBUF_NONE };
		r->d->gemm(r->d, &g);
	}
}

/* dB_p += scale * dy_p^T xa_p;  dxa_p = scale * dy_p B_p;  dA += dxa^T drop(x). */
static void adapters_bwd_w(const struct linear *l, const struct linear_run *r, struct dbuf dy,
	struct dbuf x, struct dbuf xa)
{
	long ra = (long)l->nparts * l->rank;
	struct gemm g;
	int p;

	for (p = 0; p < l->nparts; p++) {
		const struct linear_part *q = &l->part[p];
		struct dbuf dyp = dbuf_at(dy, (size_t)q->out0);
		size_t col = (size_t)p * (size_t)l->rank;

		g = (struct gemm){ GEMM_TN, q->out, l->rank, r->t, dyp, dbuf_at(xa, col),
			f32(q->db), l->out, ra, l->rank, true, l->scale, DBUF_NONE };
		r->d->gemm(r->d, &g);
		g = (struct gemm){ GEMM_NN, r->t, l->rank, q->out, dyp, q->b, dbuf_at(r->dxa, col),
			l->out, l->rank, ra, false, l->scale, DBUF_NONE };
		r->d->gemm(r->d, &g);
	}
	if (r->dropout > 0) {
		drop(l, r, r->xd, x);
		x = r->xd;
	}
	g = (struct gemm){ GEMM_TN, ra, l->in, r->t, r->dxa, x, f32(l->da), ra, l->in, l->in, true,
		1, DBUF_NONE };
	r->d->gemm(r->d, &g);
}

void linear_bwd_w(const struct linear *l, const struct linear_run *r, struct dbuf dy, struct dbuf x,
	struct dbuf xa)
{
	struct gemm g = { GEMM_TN, l->out, l->in, r->t, dy, x, f32(l->dw), l->out, l->in, l->in,
		true, 1, DBUF_NONE };

	if (l->dw)
		r->d->gemm(r->d, &g);
	if (l->dbias)
		r->d->bias_bwd(r->d, l->dbias, dy, l->out, r->t, l->out);
	if (adapted(l, r))
		adapters_bwd_w(l, r, dy, x, xa);
}

void linear_bwd_x(const struct linear *l, const struct linear_run *r, struct dbuf dx,
	struct dbuf dy)
{
	struct gemm g = { GEMM_NN, r->t, l->in, l->out, dy, l->w, dx, l->out, l->in, l->in, false,
		1, DBUF_NONE };
	long ra = (long)l->nparts * l->rank;
	bool dropped = r->dropout > 0;

	r->d->gemm(r->d, &g);
	if (!adapted(l, r))
		return;
	g = (struct gemm){ GEMM_NN, r->t, l->in, ra, r->dxa, l->a, dropped ? r->xd : dx, ra, l->in,
		l->in, !dropped, 1, DBUF_NONE };
	r->d->gemm(r->d, &g);
	if (dropped) {
		drop(l, r, r->xd, r->xd);
		r->d->add(r->d, dx, dx, r->xd, (size_t)r->t * (size_t)l->in);
	}
}

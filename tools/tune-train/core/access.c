/* access: parameters, gradients and optimizer state from and to the host, as fp32. */
#include <assert.h>
#include <string.h>

#include "state.h"

/* Where what of parameter p lies; DT_F32 but for values without a master. p NULL: there is none. */
static struct dbuf place(const struct model *m, const struct param *p, enum param_what what)
{
	const struct unit *u = &m->units.u[p->unit];
	struct dmem *f[] = { u->master, u->grad, u->exp_avg, u->exp_avg_sq };
	struct dbuf b = { p->trained ? f[what] : NULL, DT_F32 };

	if (!b.p && what == PARAM_VALUE)
		b = u->w[p->trained ? TRAINED : FROZEN];
	return b.p ? dbuf_at(b, p->offset) : b;
}

static int find(const struct model *m, size_t i, enum param_what what, uint64_t first, uint64_t n,
	struct dbuf *b, struct err *err)
{
	const struct param *p = model_param(m, i);

	assert(first <= p->n && n <= p->n - first);
	*b = place(m, p, what);
	if (!b->p)
		return err_set(err, EX_SOFTWARE,
			"parameter '%s' is not trained and has no gradient or moments", p->name);
	*b = dbuf_at(*b, first);
	return 0;
}

int model_read(struct model *m, size_t i, enum param_what what, uint64_t first, uint64_t n,
	float *dst, struct err *err)
{
	struct dbuf b;
	uint64_t at, k;

	if (find(m, i, what, first, n, &b, err) < 0)
		return -1;
	if (b.t == DT_F32)
		return m->d->download(m->d, dst, b.p, n * sizeof(float), err);
	for (at = 0; at < n; at += k) {
		k = n - at < m->nstage ? n - at : m->nstage;
		if (m->d->download(m->d, m->stage, dbuf_at(b, at).p, dtype_bytes(b.t, k), err) < 0)
			return -1;
		dtype_to_f32(b.t, m->stage, k, dst + at);
	}
	return 0;
}

static void put(struct model *m, struct dbuf b, uint64_t n, const float *src)
{
	uint64_t at, k;

	if (b.t == DT_F32) {
		m->d->upload(m->d, b.p, src, n * sizeof(float));
		return;
	}
	for (at = 0; at < n; at += k) {
		k = n - at < m->nstage ? n - at : m->nstage;
		dtype_from_f32(b.t, src + at, k, m->stage);
		m->d->upload(m->d, dbuf_at(b, at).p, m->stage, dtype_bytes(b.t, k));
	}
}

int model_write(struct model *m, size_t i, enum param_what what, uint64_t first, uint64_t n,
	const float *src, struct err *err)
{
	const struct param *p = model_param(m, i);
	const struct unit *u = &m->units.u[p->unit];
	struct dbuf b;

	if (find(m, i, what, first, n, &b, err) < 0)
		return -1;
	put(m, b, n, src);
	if (what == PARAM_VALUE && p->trained && u->master)
		put(m, dbuf_at(u->w[TRAINED], p->offset + first), n, src);
	return 0;
}

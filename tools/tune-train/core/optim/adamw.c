/*
 * adamw: the step: global gradient norm, clipping and AdamW (Loshchilov & Hutter 2019, in
 * torch.optim.AdamW's order).
 *
 * All scalars of the step live on the device; one readback tells the norm and whether it was
 * finite.  A step whose norm is not finite changes no weight, no moment and no count.
 */
#include "core/state.h"

/* Each slice with its own decay; gaps and padding are no slice. */
static void update(struct model *m, const struct adamw_opts *o)
{
	struct device *d = m->d;
	size_t i;

	for (i = 0; i < m->units.nparams; i++) {
		const struct param *p = &m->units.params[i];
		const struct unit *u = &m->units.u[p->unit];
		size_t at = p->offset * sizeof(float);
		struct dbuf w = dbuf_at(u->w[TRAINED], p->offset);
		struct dmem *master = u->master ? dmem_at(u->master, at) : w.p;

		if (!p->trained)
			continue;
		d->adamw(d, m->sc, master, u->master ? w : DBUF_NONE, dmem_at(u->grad, at),
			dmem_at(u->exp_avg, at), dmem_at(u->exp_avg_sq, at), o->beta1, o->beta2,
			o->eps, p->decay ? o->weight_decay : 0, p->n);
	}
}

int model_step(struct model *m, double lr, double grad_clip, const struct adamw_opts *o,
	struct step_stats *s, struct err *err)
{
	struct device *d = m->d;
	double sc[SC_COUNT];
	int i;

	d->zero(d, dmem_at(m->sc, SC_SUMSQ * sizeof(double)), sizeof(double));
	for (i = 0; i < m->units.n; i++) {
		const struct unit *u = &m->units.u[i];

		if (!u->grad)
			continue;
		if (m->c->all_reduce(m->c, u->grad, u->n[TRAINED], DT_F32, err) < 0)
			return -1;
		d->sumsq(d, m->sc, u->grad, u->n[TRAINED]);
	}
	d->step_scalars(d, m->sc, lr, grad_clip, o->beta1, o->beta2);
	update(m, o);
	if (d->download(d, sc, m->sc, sizeof(sc), err) < 0)
		return -1;
	s->grad_norm = sc[SC_NORM];
	s->finite = sc[SC_FINITE] != 0;
	m->updates = (uint64_t)sc[SC_UPDATES];
	return 0;
}

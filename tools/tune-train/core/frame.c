#include "frame.h"

#include <stdlib.h>

#include "libcommon/buf.h"

int frame_init(struct model *m, const struct arch *a, const struct model_opts *o, struct device *d,
	struct comm *c, struct err *err)
{
	size_t layers = (size_t)a->layers;
	int i;

	m->arch_copy = *a;
	m->arch = &m->arch_copy;
	m->opts = *o;
	m->d = d;
	m->c = c;
	if (units_layout(&m->units, a, o, c->size, err) < 0)
		return -1;
	m->blocks = mem_zalloc(layers, sizeof(*m->blocks), err);
	m->acts = mem_zalloc(layers, sizeof(*m->acts), err);
	m->h0 = mem_zalloc(layers, sizeof(*m->h0), err);
	m->kv.cache = mem_zalloc(layers, sizeof(*m->kv.cache), err);
	if (!m->blocks || !m->acts || !m->h0 || !m->kv.cache)
		return -1;
	blocks_wire(m);         /* no addresses yet, but shapes and adapters */
	i = units_find(&m->units, 0, T_EMBED, SLICE_BASE);
	m->embed_trained = o->train && m->units.params[i].trained;
	return 0;
}

void frame_release(struct model *m)
{
	units_release(&m->units);
	free(m->blocks);
	free(m->acts);
	free(m->h0);
	free(m->kv.cache);
}

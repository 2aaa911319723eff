#include "model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "libcommon/buf.h"
#include "state.h"

/* cos | sin of each position: angles in fp32, as transformers computes them. */
static void rope_table(struct model *m)
{
	const struct arch *a = m->arch;
	long positions =
		m->plan.micro_tokens > m->opts.gen_len ? m->plan.micro_tokens : m->opts.gen_len;
	int half = a->head_dim / 2, i;
	float *inv = m->stage, *row = m->stage + half;
	long p;

	if (a->rope == ROPE_NONE)
		return;
	assert((size_t)half * 3 <= m->nstage);
	arch_rope_inv_freq(a, inv);
	for (p = 0; p < positions; p++) {
		for (i = 0; i < half; i++) {
			float angle = (float)p * inv[i];

			row[i] = (float)cos(angle);
			row[half + i] = (float)sin(angle);
		}
		m->d->upload(m->d, dmem_at(m->cs, (size_t)p * (size_t)a->head_dim * 4), row,
			(size_t)a->head_dim * 4);
	}
}

int model_new(struct model **out, const struct arch *a, const struct model_opts *o,
	const struct plan *p, struct device *d, struct comm *c, struct err *err)
{
	struct model *m = mem_zalloc(1, sizeof(*m), err);
	double sc[SC_COUNT] = {0};

	*out = NULL;
	if (!m)
		return -1;
	m->plan = *p;
	if (frame_init(m, a, o, d, c, err) < 0 || buffers_alloc(m, err) < 0) {
		model_free(m);
		return -1;
	}
	blocks_wire(m);
	head_wire(m);
	m->run.d = d;
	m->run.seed = o->seed;
	m->run.rec = m->tok.rec;
	m->run.off = m->tok.off;
	sc[SC_GRAD_SCALE] = 1;
	d->upload(d, m->sc, sc, sizeof(sc));
	rope_table(m);
	*out = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	buffers_release(m);
	frame_release(m);
	free(m);
}

const struct arch *model_arch(const struct model *m) { return m->arch; }
const struct plan *model_plan(const struct model *m) { return &m->plan; }
struct device *model_device(const struct model *m) { return m->d; }
struct comm *model_comm(const struct model *m) { return m->c; }
size_t model_param_count(const struct model *m) { return m->units.nparams; }
int model_gen_slots(const struct model *m) { return m->opts.gen_slots; }
long model_gen_len(const struct model *m) { return m->opts.gen_len; }
uint64_t model_updates(const struct model *m) { return m->updates; }

const struct param *model_param(const struct model *m, size_t i)
{
	assert(i < m->units.nparams);
	return &m->units.params[i];
}

void model_set_updates(struct model *m, uint64_t n)
{
	double v = (double)n;

	m->updates = n;
	m->d->upload(m->d, dmem_at(m->sc, SC_UPDATES * sizeof(double)), &v, sizeof(v));
}

void model_zero_grads(struct model *m)
{
	int i;

	for (i = 0; i < m->units.n; i++)
		if (m->units.u[i].grad)
			m->d->zero(m->d, m->units.u[i].grad,
				m->units.u[i].n[TRAINED] * sizeof(float));
}

/* ---- a micro-batch onto the device ---- */

static int check_batch(const struct model *m, const struct batch *b, struct err *err)
{
	long docs = m->opts.max_docs ? m->opts.max_docs : m->plan.micro_tokens;
	long i;

	if (b->t < 1 || b->t > m->plan.micro_tokens || b->docs < 1 || b->docs > docs)
		return err_set(err, EX_SOFTWARE,
			"a micro-batch of %ld tokens in %d documents; planned were %ld in %ld",
			b->t, b->docs, m->plan.micro_tokens, docs);
	if (b->cu[0] != 0 || b->cu[b->docs] != b->t)
		return err_set(err, EX_SOFTWARE,
			"a micro-batch whose documents don't cover its tokens");
	for (i = 0; i < b->docs; i++)
		if (b->cu[i + 1] <= b->cu[i])
			return err_set(err, EX_SOFTWARE, "a micro-batch with an empty document");
	for (i = 0; i < b->t; i++)
		if (b->ids[i] >= (uint32_t)m->arch->vocab)
			return err_set(err, EX_DATAERR,
				"token id %u, but the model's vocabulary has %d", b->ids[i],
				m->arch->vocab);
	return 0;
}

/* Trained rows: position t with a trained token after it in its document.  Returns their number. */
static long trained_rows(struct tokens *k, const struct batch *b)
{
	long n = 0;
	int doc, t;

	for (doc = 0; doc < b->docs; doc++) {
		for (t = b->cu[doc]; t + 1 < b->cu[doc + 1]; t++) {
			if (b->mask[t + 1]) {
				k->h_rows[n] = t;
				k->h_target[n++] = (int32_t)b->ids[t + 1];
			}
		}
	}
	return n;
}

/* order: token indices sorted by id, equal ids by index: a counting sort. */
static void upload_order(struct model *m, const struct batch *b)
{
	struct tokens *k = &m->tok;
	int32_t *at = k->h_count;
	long i;

	memset(at, 0, ((size_t)m->arch->vocab + 1) * sizeof(*at));
	for (i = 0; i < b->t; i++)
		at[b->ids[i] + 1]++;
	for (i = 0; i < m->arch->vocab; i++)
		at[i + 1] += at[i];
	for (i = 0; i < b->t; i++)
		k->h_i32[at[b->ids[i]]++] = (int32_t)i;
	m->d->upload(m->d, k->order, k->h_i32, (size_t)b->t * 4);
}

static void upload_batch(struct model *m, const struct batch *b)
{
	struct tokens *k = &m->tok;
	struct device *d = m->d;
	int doc, t;

	k->t = b->t;
	k->docs = b->docs;
	k->max_len = 0;
	for (doc = 0; doc < b->docs; doc++) {
		int len = b->cu[doc + 1] - b->cu[doc];

		k->max_len = len > k->max_len ? len : k->max_len;
		for (t = 0; t < len; t++)
			k->h_i32[b->cu[doc] + t] = t;
	}
	d->upload(d, k->pos, k->h_i32, (size_t)b->t * 4);
	d->upload(d, k->ids, b->ids, (size_t)b->t * 4);
	d->upload(d, k->cu, b->cu, ((size_t)b->docs + 1) * 4);
	k->nrows = trained_rows(k, b);
	d->upload(d, k->rows, k->h_rows, (size_t)k->nrows * 4);
	d->upload(d, k->target, k->h_target, (size_t)k->nrows * 4);
	if (m->embed_trained)
		upload_order(m, b);
}

/* Dropout's counter of each token: its record, and its index within it. */
static void upload_dropout(struct model *m, const struct batch *b)
{
	struct tokens *k = &m->tok;
	int doc, t;

	for (doc = 0; doc < b->docs; doc++)
		for (t = b->cu[doc]; t < b->cu[doc + 1]; t++)
			k->h_i32[t] = (int32_t)b->rec[doc];
	m->d->upload(m->d, k->rec, k->h_i32, (size_t)b->t * 4);
	for (doc = 0; doc < b->docs; doc++)
		for (t = b->cu[doc]; t < b->cu[doc + 1]; t++)
			k->h_i32[t] = (int32_t)(b->off0[doc] + (uint32_t)(t - b->cu[doc]));
	m->d->upload(m->d, k->off, k->h_i32, (size_t)b->t * 4);
}

void model_run_blocks(struct model *m)
{
	struct device *d = m->d;
	struct dbuf x = m->h0[0], r = DBUF_NONE;
	int i;

	m->run.t = m->tok.t;
	d->embed_fwd(d, x, units_value(&m->units, 0, T_EMBED, SLICE_BASE), m->tok.ids, m->tok.t,
		m->arch->dim);
	for (i = 0; i < m->arch->layers; i++) {
		block_fwd(m, i, x, r);
		x = block_acts(m, i)->h1;
		r = m->s;
	}
	d->add(d, m->hl, x, r, (size_t)m->tok.t * (size_t)m->arch->dim);
}

int model_forward(struct model *m, const struct batch *b, int flags, uint64_t step, struct err *err)
{
	const struct lora_opts *l = &m->opts.lora;

	if (check_batch(m, b, err) < 0)
		return -1;
	if (l->rank && l->nmodules && !(flags & FWD_ADAPTER))
		return err_set(err, EX_CONFIG,
			"the base model can't be run beside lora.modules_to_save: it is trained in place");
	assert(!(flags & FWD_KEEP) || m->opts.train);
	upload_batch(m, b);
	m->run.adapters = l->rank && flags & FWD_ADAPTER;
	m->run.dropout = m->run.adapters && flags & FWD_KEEP ? (float)l->dropout : 0;
	m->run.step = (uint32_t)step;
	if (m->run.dropout > 0)
		upload_dropout(m, b);
	m->kept = flags & FWD_KEEP;
	m->dres_ready = false;
	m->kv.on = false;
	model_run_blocks(m);
	return 0;
}

int model_backward(struct model *m, struct err *err)
{
	int i;

	if (!m->kept || !m->dres_ready)
		return err_set(err, EX_SOFTWARE,
			"a backward pass without a kept forward pass and a head's gradient");
	m->kept = m->dres_ready = false;
	if (!m->tok.nrows)
		return 0;
	for (i = m->arch->layers - 1; i >= 0; i--)
		block_bwd(m, i);
	if (m->embed_trained)
		m->d->embed_bwd(m->d, units_grad(&m->units, 0, T_EMBED, SLICE_BASE), m->dres,
			m->tok.ids, m->tok.order, m->tok.t, m->arch->dim);
	return 0;
}

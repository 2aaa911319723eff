/* buffers: each buffer of a model, declared once: measured for the plan, then handed out of one
 * allocation a kind. */
#include <stdlib.h>

#include "libcommon/buf.h"
#include "state.h"

struct carve { struct model *m; bool give; };

static void *take(struct carve *c, enum mem_kind kind, uint64_t bytes)
{
	struct model *m = c->m;
	uint64_t at = m->bytes[kind];

	m->bytes[kind] += (bytes + 255) / 256 * 256;
	if (!c->give)
		return NULL;
	return kind == MEM_HOST ? (void *)((char *)m->host + at)
				: (void *)dmem_at(m->mem[kind], at);
}

static struct dbuf take_act(struct carve *c, enum mem_kind kind, long rows, long cols)
{
	enum dtype t = c->m->opts.dtype;

	return (struct dbuf){ take(c, kind, dtype_bytes(t, (size_t)rows * (size_t)cols)), t };
}

static struct dmem *take4(struct carve *c, enum mem_kind kind, long n)
{
	return take(c, kind, (uint64_t)n * 4);
}

static void units_buffers(struct carve *c)
{
	struct model *m = c->m;
	int i;

	for (i = 0; i < m->units.n; i++) {
		struct unit *u = &m->units.u[i];
		long n = (long)u->n[TRAINED];

		u->w[FROZEN] = take_act(c, MEM_WEIGHTS, 1, (long)u->n[FROZEN]);
		u->w[TRAINED] = take_act(c, MEM_WEIGHTS, 1, n);
		if (!m->opts.train || !n)
			continue;
		if (m->opts.dtype != DT_F32)
			u->master = take4(c, MEM_MASTERS, n);
		u->grad = take4(c, MEM_GRADS, n);
		u->exp_avg = take4(c, MEM_MOMENTS, n);
		u->exp_avg_sq = take4(c, MEM_MOMENTS, n);
	}
}

static void token_buffers(struct carve *c)
{
	struct model *m = c->m;
	struct tokens *k = &m->tok;
	long t = m->plan.micro_tokens, docs = m->opts.max_docs ? m->opts.max_docs : t;

	if (docs < m->opts.gen_slots)
		docs = m->opts.gen_slots;
	k->ids = take4(c, MEM_WORKSPACE, t);
	k->pos = take4(c, MEM_WORKSPACE, t);
	k->cu = take4(c, MEM_WORKSPACE, docs + 1);
	k->rows = take4(c, MEM_WORKSPACE, t);
	k->target = take4(c, MEM_WORKSPACE, t);
	k->logp = take4(c, MEM_WORKSPACE, t);
	k->lse = take4(c, MEM_WORKSPACE, t);
	k->greedy = take(c, MEM_WORKSPACE, (uint64_t)t);
	if (m->embed_trained)
		k->order = take4(c, MEM_WORKSPACE, t);
	if (m->opts.train && m->opts.lora.rank && m->opts.lora.dropout > 0) {
		k->rec = take4(c, MEM_WORKSPACE, t);
		k->off = take4(c, MEM_WORKSPACE, t);
	}
	m->sc = take(c, MEM_WORKSPACE, SC_COUNT * sizeof(double));
	m->cs = take4(c, MEM_WORKSPACE,
		(t > m->opts.gen_len ? t : m->opts.gen_len) * m->arch->head_dim);
	k->h_i32 = take(c, MEM_HOST, (uint64_t)(t > docs ? t + 1 : docs + 1) * 4);
	k->h_rows = take(c, MEM_HOST, (uint64_t)t * 4);
	k->h_target = take(c, MEM_HOST, (uint64_t)t * 4);
	k->h_logp = take(c, MEM_HOST, (uint64_t)t * 4);
	if (m->embed_trained)
		k->h_count = take(c, MEM_HOST, ((uint64_t)m->arch->vocab + 1) * 4);
	m->nstage = 1 << 16;
	m->stage = take(c, MEM_HOST, m->nstage * 4);
}

static void acts_buffers(struct carve *c, struct acts *s)
{
	struct model *m = c->m;
	const struct arch *a = m->arch;
	long t = m->plan.micro_tokens;
	const struct linear *l[4] = { &m->blocks->qkv, &m->blocks->o, &m->blocks->gu,
		&m->blocks->down };
	int i;

	s->qkv = take_act(c, MEM_ACTIVATIONS, t, qkv_dim(a));
	s->o = take_act(c, MEM_ACTIVATIONS, t, q_dim(a));
	s->h1 = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	s->gu = take_act(c, MEM_ACTIVATIONS, t, 2L * a->ffn_dim);
	for (i = 0; i < 4; i++)
		if (l[i]->nparts)
			s->xa[i] = take_act(c, MEM_ACTIVATIONS, t, (long)l[i]->nparts * l[i]->rank);
	s->rstd1 = take4(c, MEM_ACTIVATIONS, t);
	s->rstd2 = take4(c, MEM_ACTIVATIONS, t);
	if (m->opts.train)
		s->lse = take4(c, MEM_ACTIVATIONS, t * a->heads);
}

static long max3(long x, long y, long z)
{
	long m = x > y ? x : y;

	return m > z ? m : z;
}

static void pass_buffers(struct carve *c)
{
	struct model *m = c->m;
	const struct arch *a = m->arch;
	long t = m->plan.micro_tokens;
	bool train = m->opts.train;
	int i;

	for (i = 0; i < (train ? a->layers : 1); i++)
		m->h0[i] = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	for (i = 0; i < (train && !m->plan.recompute ? a->layers : 1); i++)
		acts_buffers(c, &m->acts[i]);
	m->hl = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	m->n = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	m->y = take_act(c, MEM_ACTIVATIONS, t, max3(a->ffn_dim, q_dim(a), 0));
	m->s = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	if (!train)
		return;
	m->dy = take_act(c, MEM_ACTIVATIONS, t, max3(a->ffn_dim, qkv_dim(a), 0));
	m->dres = take_act(c, MEM_ACTIVATIONS, t, a->dim);
	m->delta = take4(c, MEM_ACTIVATIONS, t * a->heads);
	if (m->opts.lora.rank)
		m->run.dxa =
			take_act(c, MEM_ACTIVATIONS, t, (long)LINEAR_PARTS * m->opts.lora.rank);
	if (m->opts.lora.rank && m->opts.lora.dropout > 0)
		m->run.xd = take_act(c, MEM_ACTIVATIONS, t, max3(a->ffn_dim, q_dim(a), a->dim));
}

static void head_buffers(struct carve *c)
{
	struct model *m = c->m;
	struct head *h = &m->head;
	long r = m->plan.head_rows;

	h->h = take_act(c, MEM_HEAD, r, m->arch->dim);
	h->hn = take_act(c, MEM_HEAD, r, m->arch->dim);
	h->rstd = take4(c, MEM_HEAD, r);
	h->logits = take4(c, MEM_HEAD, r * m->arch->vocab);
	h->sel = take4(c, MEM_HEAD, r);
	if (!m->opts.train)
		return;
	h->dh = take_act(c, MEM_HEAD, r, m->arch->dim);
	h->a = take4(c, MEM_HEAD, r);
	h->u = take4(c, MEM_HEAD, r);
	h->ids = take4(c, MEM_HEAD, r * HEAD_LIST_MAX);
	h->weights = take4(c, MEM_HEAD, r * HEAD_LIST_MAX);
	h->h_a = take(c, MEM_HOST, (uint64_t)r * 4);
}

static void kv_buffers(struct carve *c)
{
	struct model *m = c->m;
	long slots = m->opts.gen_slots;
	int i;

	if (!slots)
		return;
	for (i = 0; i < m->arch->layers; i++)
		m->kv.cache[i] = take_act(c, MEM_KV, slots * m->opts.gen_len,
			2L * m->arch->kv_heads * m->arch->head_dim);
	m->kv.rows = take4(c, MEM_KV, m->plan.micro_tokens);
	m->kv.pages = take4(c, MEM_KV, slots);
	m->kv.cu_k = take4(c, MEM_KV, slots + 1);
	m->kv.len = take(c, MEM_HOST, (uint64_t)slots * sizeof(*m->kv.len));
	m->kv.take = take(c, MEM_HOST, (uint64_t)slots * 4);
	m->kv.last = take(c, MEM_HOST, (uint64_t)slots * 4);
}

static void carve(struct model *m, bool give)
{
	struct carve c = { m, give };
	int k;

	for (k = 0; k < MEM_KINDS; k++)
		m->bytes[k] = 0;
	units_buffers(&c);
	token_buffers(&c);
	pass_buffers(&c);
	head_buffers(&c);
	kv_buffers(&c);
}

void buffers_measure(struct model *m)
{
	carve(m, false);
}

int buffers_alloc(struct model *m, struct err *err)
{
	int k;

	carve(m, false);
	for (k = 0; k < MEM_HOST; k++)
		if (m->bytes[k] && m->d->alloc(m->d, m->bytes[k], &m->mem[k], err) < 0)
			return -1;
	m->host = mem_zalloc(1, m->bytes[MEM_HOST], err);
	if (!m->host)
		return -1;
	carve(m, true);
	return 0;
}

void buffers_release(struct model *m)
{
	int k;

	for (k = 0; k < MEM_HOST; k++)
		if (m->mem[k])
			m->d->release(m->d, m->mem[k], m->bytes[k]);
	free(m->host);
}

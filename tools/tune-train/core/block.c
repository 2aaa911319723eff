/*
 * block: one pre-norm decoder block, both directions, in terms of device.h and linear.h.
 *
 *   n1 = rmsnorm(h0);  qkv = rope(W_qkv n1);  o = attention(qkv);  h1 = h0 + W_o o
 *   n2 = rmsnorm(h1);  gu = W_gu n2;  y = act(gate) * up;          output = h1 + W_down y
 *
 * n1, n2 and y are made again in the backward pass: they cost little beside a matrix product and a
 * third of the memory.
 */
#include "state.h"

#include <assert.h>
#include <math.h>

static void wire_part(struct model *m, struct linear *l, int unit, enum tensor_role role, long out0)
{
	const struct units *us = &m->units;
	int i = units_find(us, unit, role, SLICE_B);

	if (i < 0)
		return;
	if (!l->nparts) {
		l->a = units_value(us, unit, role, SLICE_A);
		l->da = units_grad(us, unit, role, SLICE_A);
	}
	l->part[l->nparts++] = (struct linear_part){ units_value(us, unit, role, SLICE_B),
		units_grad(us, unit, role, SLICE_B), out0, (long)us->params[i].shape[0] };
}

static struct linear wire(struct model *m, int unit, enum tensor_role w, enum tensor_role bias,
	long out, long in, uint32_t key)
{
	const struct lora_opts *o = &m->opts.lora;
	struct linear l = { .in = in, .out = out, .rank = o->rank, .key = key };

	l.w = units_value(&m->units, unit, w, SLICE_BASE);
	l.dw = units_grad(&m->units, unit, w, SLICE_BASE);
	l.bias = units_value(&m->units, unit, bias, SLICE_BASE);
	l.dbias = units_grad(&m->units, unit, bias, SLICE_BASE);
	if (o->rank)
		l.scale = (float)(o->rslora ? o->alpha / sqrt(o->rank) : o->alpha / o->rank);
	return l;
}

void blocks_wire(struct model *m)
{
	const struct arch *a = m->arch;
	long q = q_dim(a), kv = (long)a->kv_heads * a->head_dim;
	int i;

	for (i = 0; i < a->layers; i++) {
		struct block *b = &m->blocks[i];
		uint32_t key = (uint32_t)i * 4;
		int u = i + 1;

		b->qkv = wire(m, u, T_Q, T_Q_BIAS, q + 2 * kv, a->dim, key);
		wire_part(m, &b->qkv, u, T_Q, 0);
		wire_part(m, &b->qkv, u, T_K, q);
		wire_part(m, &b->qkv, u, T_V, q + kv);
		b->o = wire(m, u, T_O, T_O_BIAS, a->dim, q, key + 1);
		wire_part(m, &b->o, u, T_O, 0);
		b->gu = wire(m, u, T_GATE, T_GATE_BIAS, 2L * a->ffn_dim, a->dim, key + 2);
		wire_part(m, &b->gu, u, T_GATE, 0);
		wire_part(m, &b->gu, u, T_UP, a->ffn_dim);
		b->down = wire(m, u, T_DOWN, T_DOWN_BIAS, a->dim, a->ffn_dim, key + 3);
		wire_part(m, &b->down, u, T_DOWN, 0);
		b->norm1 = units_value(&m->units, u, T_ATTN_NORM, SLICE_BASE);
		b->dnorm1 = units_grad(&m->units, u, T_ATTN_NORM, SLICE_BASE);
		b->norm2 = units_value(&m->units, u, T_MLP_NORM, SLICE_BASE);
		b->dnorm2 = units_grad(&m->units, u, T_MLP_NORM, SLICE_BASE);
		b->window = a->layer_window ? a->layer_window[i] : a->window;
	}
}

struct acts *block_acts(const struct model *m, int i)
{
	return &m->acts[m->opts.train && !m->plan.recompute ? i : 0];
}

static struct dbuf block_input(const struct model *m, int i)
{
	return m->h0[m->opts.train ? i : 0];
}

static void norm(struct model *m, struct dbuf h, struct dmem *rstd, struct dbuf x, struct dbuf r,
	struct dbuf w)
{
	m->d->rmsnorm_fwd(
		m->d, m->n, h, rstd, x, r, w, (float)m->arch->norm_eps, m->tok.t, m->arch->dim);
}

static struct attn attention(const struct model *m, int i)
{
	const struct arch *a = m->arch;
	const struct tokens *k = &m->tok;
	long q = q_dim(a), kv = (long)a->kv_heads * a->head_dim;
	struct dbuf qkv = block_acts(m, i)->qkv;
	struct attn t = { .t = k->t, .docs = k->docs, .max_q = k->max_len, .max_k = k->max_len,
		.cu_q = k->cu, .cu_k = k->cu,
		.heads = a->heads, .kv_heads = a->kv_heads, .head_dim = a->head_dim,
		.window = m->blocks[i].window,
		.q = qkv, .k = dbuf_at(qkv, (size_t)q), .v = dbuf_at(qkv, (size_t)(q + kv)) };

	t.scale = (float)(a->attn_scale > 0 ? a->attn_scale : 1 / sqrt(a->head_dim));
	t.ldq = t.ldk = t.ldv = q + 2 * kv;
	if (m->kv.on) {         /* a slot is a page: its rows are contiguous, slots lie anywhere */
		t.cu_k = m->kv.cu_k;
		t.max_k = m->kv.max_k;
		t.pages = m->kv.pages;
		t.page = (int)m->opts.gen_len;
		t.pages_stride = 1;
		t.k = m->kv.cache[i];
		t.v = dbuf_at(m->kv.cache[i], (size_t)kv);
		t.ldk = t.ldv = 2 * kv;
	}
	return t;
}

/* Up to gu: all that the backward pass needs. */
static void block_up(struct model *m, int i, struct dbuf x, struct dbuf r)
{
	const struct arch *a = m->arch;
	const struct block *b = &m->blocks[i];
	struct acts *s = block_acts(m, i);
	struct dbuf h0 = block_input(m, i);
	struct device *d = m->d;
	struct attn t = attention(m, i);

	norm(m, r.p ? h0 : DBUF_NONE, s->rstd1, x, r, b->norm1);
	linear_fwd(&b->qkv, &m->run, s->qkv, m->n, s->xa[0]);
	if (a->rope != ROPE_NONE)
		d->rope(d, s->qkv, qkv_dim(a), a->heads + a->kv_heads, a->head_dim, m->cs,
			m->tok.pos, m->tok.t, false);
	if (m->kv.on)
		d->put_rows(d, m->kv.cache[i], t.ldk, dbuf_at(s->qkv, (size_t)q_dim(a)), qkv_dim(a),
			m->kv.rows, m->tok.t, t.ldk);
	d->attn_fwd(d, &t, s->o, s->lse);
	linear_fwd(&b->o, &m->run, m->s, s->o, s->xa[1]);
	norm(m, s->h1, s->rstd2, h0, m->s, b->norm2);
	linear_fwd(&b->gu, &m->run, s->gu, m->n, s->xa[2]);
}

void block_fwd(struct model *m, int i, struct dbuf x, struct dbuf r)
{
	struct acts *s = block_acts(m, i);

	block_up(m, i, x, r);
	m->d->gated_fwd(m->d, m->y, s->gu, m->arch->act, m->tok.t, m->arch->ffn_dim);
	linear_fwd(&m->blocks[i].down, &m->run, m->s, m->y, s->xa[3]);
}

static void mlp_bwd(struct model *m, int i)
{
	const struct block *b = &m->blocks[i];
	struct acts *s = block_acts(m, i);
	struct device *d = m->d;
	long t = m->tok.t, f = m->arch->ffn_dim, c = m->arch->dim;

	d->gated_fwd(d, m->y, s->gu, m->arch->act, t, f);
	if (m->plan.recompute)
		linear_inner(&b->down, &m->run, m->y, s->xa[3]);
	linear_bwd_w(&b->down, &m->run, m->dres, m->y, s->xa[3]);
	linear_bwd_x(&b->down, &m->run, m->dy, m->dres);
	d->gated_bwd(d, s->gu, m->dy, s->gu, m->arch->act, t, f);
	norm(m, DBUF_NONE, s->rstd2, s->h1, DBUF_NONE, b->norm2);
	linear_bwd_w(&b->gu, &m->run, s->gu, m->n, s->xa[2]);
	linear_bwd_x(&b->gu, &m->run, m->n, s->gu);
	d->rmsnorm_bwd(d, m->dres, true, b->dnorm2, m->n, s->h1, s->rstd2, b->norm2, t, c);
}

static void attn_bwd(struct model *m, int i)
{
	const struct arch *a = m->arch;
	const struct block *b = &m->blocks[i];
	struct acts *s = block_acts(m, i);
	struct device *d = m->d;
	struct attn t = attention(m, i);
	long q = q_dim(a), kv = (long)a->kv_heads * a->head_dim;

	linear_bwd_w(&b->o, &m->run, m->dres, s->o, s->xa[1]);
	linear_bwd_x(&b->o, &m->run, m->y, m->dres);
	d->attn_bwd(d, &t, m->dy, dbuf_at(m->dy, (size_t)q), dbuf_at(m->dy, (size_t)(q + kv)), s->o,
		m->y, s->lse, m->delta);
	if (a->rope != ROPE_NONE)
		d->rope(d, m->dy, qkv_dim(a), a->heads + a->kv_heads, a->head_dim, m->cs,
			m->tok.pos, m->tok.t, true);
	norm(m, DBUF_NONE, s->rstd1, block_input(m, i), DBUF_NONE, b->norm1);
	linear_bwd_w(&b->qkv, &m->run, m->dy, m->n, s->xa[0]);
	if (i == 0 && !m->embed_trained && !b->dnorm1)
		return;         /* nothing below wants a gradient */
	linear_bwd_x(&b->qkv, &m->run, m->n, m->dy);
	d->rmsnorm_bwd(d, m->dres, true, b->dnorm1, m->n, block_input(m, i), s->rstd1, b->norm1,
		m->tok.t, a->dim);
}

void block_bwd(struct model *m, int i)
{
	assert(m->opts.train && !m->kv.on);
	if (m->plan.recompute && i < m->arch->layers - 1) /* the last block's are still there */
		block_up(m, i, m->h0[i], DBUF_NONE);
	mlp_bwd(m, i);
	attn_bwd(m, i);
}

/*
 * kv: the key and value cache, and feeding it.
 *
 * A slot holds gen_len rows of [k | v] a layer.  New tokens of several sequences, long prompts and
 * single answers alike, run as one varlen batch of at most micro_tokens; attention reads the slots
 * through a page table of one page a slot.
 */
#include <assert.h>
#include <string.h>

#include "state.h"

void kv_reset(struct model *m, int slot)
{
	assert(slot >= 0 && slot < m->opts.gen_slots);
	m->kv.len[slot] = 0;
}

long kv_len(const struct model *m, int slot)
{
	assert(slot >= 0 && slot < m->opts.gen_slots);
	return m->kv.len[slot];
}

/* One pass: a run of sequences, first..first+docs-1; take[i] new tokens of each, which lie one
 * after another in ids from id0. */
struct pass { int first, docs; const int *slots; const int32_t *take; long id0, t; };

static void up(struct model *m, struct dmem *dst, long n)
{
	m->d->upload(m->d, dst, m->tok.h_i32, (size_t)n * 4);
}

static long doc_len(const struct model *m, const struct pass *p, int i)
{
	return m->kv.len[p->slots[p->first + i]];
}

static void upload_positions(struct model *m, const struct pass *p)
{
	int32_t *h = m->tok.h_i32;
	long t = 0;
	int i, k;

	for (i = 0; i < p->docs; i++)
		for (k = 0; k < p->take[i]; k++)
			h[t++] = (int32_t)doc_len(m, p, i) + k;
	up(m, m->tok.pos, t);
	for (i = 0, t = 0; i < p->docs; i++)
		for (k = 0; k < p->take[i]; k++)
			h[t++] = (int32_t)(p->slots[p->first + i] * m->opts.gen_len +
					   doc_len(m, p, i) + k);
	up(m, m->kv.rows, t);
}

static void upload_docs(struct model *m, const struct pass *p)
{
	int32_t *h = m->tok.h_i32;
	struct tokens *k = &m->tok;
	int i;

	k->t = p->t;
	k->docs = p->docs;
	k->max_len = m->kv.max_k = 0;
	for (h[0] = 0, i = 0; i < p->docs; i++) {
		h[i + 1] = h[i] + p->take[i];
		k->max_len = p->take[i] > k->max_len ? p->take[i] : k->max_len;
	}
	up(m, k->cu, p->docs + 1);
	for (h[0] = 0, i = 0; i < p->docs; i++) {
		int len = (int)doc_len(m, p, i) + p->take[i];

		h[i + 1] = h[i] + len;
		m->kv.max_k = len > m->kv.max_k ? len : m->kv.max_k;
	}
	up(m, m->kv.cu_k, p->docs + 1);
	for (i = 0; i < p->docs; i++)
		h[i] = p->slots[p->first + i];
	up(m, m->kv.pages, p->docs);
}

static void run_pass(struct model *m, const struct pass *p, const uint32_t *ids)
{
	int i;

	upload_positions(m, p);
	upload_docs(m, p);
	m->d->upload(m->d, m->tok.ids, ids + p->id0, (size_t)p->t * 4);
	m->kept = m->dres_ready = false;
	m->run.adapters = m->opts.lora.rank > 0;
	m->run.dropout = 0;
	m->kv.on = true;
	model_run_blocks(m);
	m->kv.on = false;
	for (i = 0; i < p->docs; i++)
		m->kv.len[p->slots[p->first + i]] += p->take[i];
}

static int check_feed(const struct model *m, int nseq, const int *slots, const int32_t *lens,
	const uint32_t *ids, struct err *err)
{
	long t = 0, k;
	int i, j;

	if (nseq < 1 || nseq > m->opts.gen_slots)
		return err_set(err, EX_SOFTWARE, "%d sequences at once; planned were %d", nseq,
			m->opts.gen_slots);
	for (i = 0; i < nseq; i++) {
		for (j = 0; j < i; j++)
			assert(slots[i] != slots[j]);
		assert(slots[i] >= 0 && slots[i] < m->opts.gen_slots && lens[i] > 0);
		if (lens[i] > m->opts.gen_len - m->kv.len[slots[i]])
			return err_set(err, EX_DATAERR,
				"a sequence of %ld tokens; planned were %ld",
				m->kv.len[slots[i]] + lens[i], m->opts.gen_len);
		t += lens[i];
	}
	for (k = 0; k < t; k++)
		if (ids[k] >= (uint32_t)m->arch->vocab)
			return err_set(err, EX_DATAERR,
				"token id %u, but the model's vocabulary has %d", ids[k],
				m->arch->vocab);
	return 0;
}

/* Logits after the sequences that the pass completes: all, but perhaps the last. */
static int take_logits(struct model *m, const struct pass *p, int done, float *logits,
	struct err *err)
{
	int32_t *rows = m->kv.last, row = -1;
	int i;

	for (i = 0; i < done; i++) {
		row += p->take[i];
		rows[i] = row;
	}
	return head_logits(m, rows, done, logits + (size_t)p->first * (size_t)m->arch->vocab, err);
}

int kv_feed(struct model *m, int nseq, const int *slots, const int32_t *lens, const uint32_t *ids,
	float *logits, struct err *err)
{
	struct pass p = { .slots = slots, .take = m->kv.take };
	int32_t fed = 0;        /* tokens of the first sequence that earlier passes took */

	if (check_feed(m, nseq, slots, lens, ids, err) < 0)
		return -1;
	while (p.first < nseq) {
		int done = 0;

		for (p.docs = 0, p.t = 0; p.first + p.docs < nseq && p.t < m->plan.micro_tokens;
			p.docs++) {
			int32_t left = lens[p.first + p.docs] - (p.docs ? 0 : fed),
				room = (int32_t)(m->plan.micro_tokens - p.t);

			m->kv.take[p.docs] = left < room ? left : room;
			p.t += m->kv.take[p.docs];
			done += left <= room;
		}
		run_pass(m, &p, ids);
		if (take_logits(m, &p, done, logits, err) < 0)
			return -1;
		fed = done < p.docs ? m->kv.take[p.docs - 1] + (p.docs == 1 ? fed : 0) : 0;
		p.id0 += p.t;
		p.first += done;
	}
	return 0;
}

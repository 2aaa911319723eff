#include "pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

struct bin {
	uint32_t room;
	uint32_t below;               /* next pack with the same room */
	uint32_t first, last;         /* its documents, in the order of the window */
};

struct packer {
	uint32_t seq_len;
	pack_fn *fn;
	void *ctx;
	struct arena arena;           /* ids and masks of the window */
	struct doc *docs;
	uint32_t *order, *bin_of, *next;   /* by document: sorted; its pack; the next of its pack */
	uint32_t ndocs;
	uint64_t ntokens;
	struct bin *bins;
	uint32_t nbins;
	uint32_t *with_room;          /* [seq_len + 1]: a pack with this much room, or NONE */
	/* bit r: with_room[r] is not NONE; bit w of any: word w of some is not 0 */
	uint64_t *some, *any;
	/* one pack, as it is handed out */
	uint32_t *ids, *lens, *srcs;
	uint8_t *mask;
	uint64_t *seqs, *lines;
};

static size_t words(size_t bits)
{
	return bits / 64 + 1;
}

int packer_new(struct packer **out, uint32_t seq_len, pack_fn *fn, void *ctx, struct err *err)
{
	struct packer *p = mem_zalloc(1, sizeof(*p), err);
	size_t most = seq_len < WINDOW_DOCS ? seq_len : WINDOW_DOCS;   /* documents of a pack */

	*out = p;
	if (!p)
		return -1;
	p->seq_len = seq_len;
	p->fn = fn;
	p->ctx = ctx;
	if (!(p->docs = mem_zalloc(WINDOW_DOCS, sizeof(*p->docs), err)) ||
		!(p->order = mem_zalloc(WINDOW_DOCS, sizeof(*p->order), err)) ||
		!(p->bin_of = mem_zalloc(WINDOW_DOCS, sizeof(*p->bin_of), err)) ||
		!(p->next = mem_zalloc(WINDOW_DOCS, sizeof(*p->next), err)) ||
		!(p->bins = mem_zalloc(WINDOW_DOCS, sizeof(*p->bins), err)) ||
		!(p->with_room = mem_zalloc((size_t)seq_len + 1, sizeof(*p->with_room), err)) ||
		!(p->some = mem_zalloc(words(seq_len), sizeof(*p->some), err)) ||
		!(p->any = mem_zalloc(words(words(seq_len)), sizeof(*p->any), err)) ||
		!(p->ids = mem_zalloc(seq_len, sizeof(*p->ids), err)) ||
		!(p->mask = mem_zalloc(seq_len, 1, err)) ||
		!(p->lens = mem_zalloc(most, sizeof(*p->lens), err)) ||
		!(p->srcs = mem_zalloc(most, sizeof(*p->srcs), err)) ||
		!(p->seqs = mem_zalloc(most, sizeof(*p->seqs), err)) ||
		!(p->lines = mem_zalloc(most, sizeof(*p->lines), err)))
		return -1;
	memset(p->with_room, 0xff, ((size_t)seq_len + 1) * sizeof(*p->with_room));
	return 0;
}

void packer_free(struct packer *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	free(p->docs);
	free(p->order);
	free(p->bin_of);
	free(p->next);
	free(p->bins);
	free(p->with_room);
	free(p->some);
	free(p->any);
	free(p->ids);
	free(p->mask);
	free(p->lens);
	free(p->srcs);
	free(p->seqs);
	free(p->lines);
	free(p);
}

/* ---- packs by the room they have ---- */

static void room_add(struct packer *p, uint32_t bin)
{
	uint32_t r = p->bins[bin].room;

	p->bins[bin].below = p->with_room[r];
	p->with_room[r] = bin;
	p->some[r / 64] |= UINT64_C(1) << r % 64;
	p->any[r / 4096] |= UINT64_C(1) << r / 64 % 64;
}

static uint32_t room_take(struct packer *p, uint32_t r)
{
	uint32_t bin = p->with_room[r];

	p->with_room[r] = p->bins[bin].below;
	if (p->with_room[r] == NONE && !(p->some[r / 64] &= ~(UINT64_C(1) << r % 64)))
		p->any[r / 4096] &= ~(UINT64_C(1) << r / 64 % 64);
	return bin;
}

/*
 * The lowest set bit of set[0..n) at or above `from`, or SIZE_MAX; only the words that a scan must
 * see are seen.
 */
static size_t next_bit(const uint64_t *set, size_t n, size_t from)
{
	size_t w = from / 64;
	uint64_t m = w < n ? set[w] & ~UINT64_C(0) << from % 64 : 0;

	while (!m && ++w < n)
		m = set[w];
	return m ? w * 64 + (size_t)__builtin_ctzll(m) : SIZE_MAX;
}

/* The least room >= n that a pack has, or NONE. */
static uint32_t room_find(const struct packer *p, uint32_t n)
{
	size_t w = n / 64;
	uint64_t m = p->some[w] & ~UINT64_C(0) << n % 64;

	if (!m) {
		w = next_bit(p->any, words(words(p->seq_len)), w + 1);
		if (w == SIZE_MAX)
			return NONE;
		m = p->some[w];
	}
	return (uint32_t)(w * 64 + (size_t)__builtin_ctzll(m));
}

/* ---- a window ---- */

static int by_length(const void *a, const void *b, void *ctx)
{
	const struct packer *p = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (p->docs[i].n != p->docs[k].n)
		return p->docs[i].n > p->docs[k].n ? -1 : 1;
	return i < k ? -1 : i > k;
}

static void fit(struct packer *p)
{
	uint32_t i, r, bin;

	p->nbins = 0;
	for (i = 0; i < p->ndocs; i++)
		p->order[i] = i;
	qsort_r(p->order, p->ndocs, sizeof(*p->order), by_length, p);
	for (i = 0; i < p->ndocs; i++) {
		uint32_t n = p->docs[p->order[i]].n;

		r = room_find(p, n);
		if (r == NONE) {
			bin = p->nbins++;
			p->bins[bin] = (struct bin){ .room = p->seq_len, .first = NONE };
		} else {
			bin = room_take(p, r);
		}
		p->bins[bin].room -= n;
		p->bin_of[p->order[i]] = bin;
		room_add(p, bin);
	}
	for (i = 0; i < p->nbins; i++)   /* empty the lists for the next window */
		while (p->with_room[p->bins[i].room] != NONE)
			room_take(p, p->bins[i].room);
}

/* Thread the documents of each pack together in the order of the window. */
static void thread(struct packer *p)
{
	uint32_t i;

	for (i = 0; i < p->ndocs; i++) {
		struct bin *b = &p->bins[p->bin_of[i]];

		p->next[i] = NONE;
		if (b->first == NONE)
			b->first = i;
		else
			p->next[b->last] = i;
		b->last = i;
	}
}

static int emit(struct packer *p, const struct bin *b, struct err *err)
{
	struct rec_pack r = { .ids = p->ids,
		.mask = p->mask,
		.lens = p->lens,
		.docs = p->seqs,
		.srcs = p->srcs,
		.lines = p->lines };
	uint32_t i;

	for (i = b->first; i != NONE; i = p->next[i]) {
		const struct doc *d = &p->docs[i];

		memcpy(p->ids + r.n, d->ids, (size_t)d->n * 4);
		memcpy(p->mask + r.n, d->mask, d->n);
		p->lens[r.ndocs] = d->n;
		p->seqs[r.ndocs] = d->seq;
		p->srcs[r.ndocs] = d->src;
		p->lines[r.ndocs] = d->line;
		r.n += d->n;
		r.ndocs++;
	}
	return p->fn(p->ctx, &r, err);
}

int packer_flush(struct packer *p, struct err *err)
{
	uint32_t i;
	int rc = 0;

	fit(p);
	thread(p);
	for (i = 0; rc == 0 && i < p->ndocs; i++)
		if (p->bins[p->bin_of[i]].first == i)
			rc = emit(p, &p->bins[p->bin_of[i]], err);
	p->ndocs = 0;
	p->ntokens = 0;
	arena_reset(&p->arena);
	return rc;
}

int packer_add(struct packer *p, const struct doc *d, struct err *err)
{
	struct doc *to;
	uint32_t *ids;
	uint8_t *mask;

	assert(d->n && d->n <= p->seq_len);
	if ((p->ndocs == WINDOW_DOCS || (p->ndocs && p->ntokens + d->n > WINDOW_TOKENS)) &&
		packer_flush(p, err) < 0)
		return -1;
	ids = arena_alloc(&p->arena, (size_t)d->n * 4);
	mask = arena_alloc(&p->arena, d->n);
	if (!ids || !mask)
		return err_oom(err, (unsigned long long)d->n * 5);
	memcpy(ids, d->ids, (size_t)d->n * 4);
	memcpy(mask, d->mask, d->n);
	to = &p->docs[p->ndocs++];
	*to = *d;
	to->ids = ids;
	to->mask = mask;
	p->ntokens += d->n;
	return 0;
}

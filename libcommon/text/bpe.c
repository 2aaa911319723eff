/*
 * bpe: pieces -> ids.
 *
 * Merging copies Hugging Face's order to the letter (models/bpe/word.rs): a heap of (rank, place);
 * a popped entry counts if the pair that stands at its place now makes the same token, even if it
 * is another pair.  Short pieces and their ids are kept in a cache of fixed size; what it holds
 * never changes a result.
 */
#include <endian.h>
#include <string.h>

#include "libcommon/text/encoder.h"

enum { BATCH = 128 };
struct piece {
	uint32_t begin, end;
	uint64_t key[2];
	struct cache_slot *set;
};

static inline uint64_t load_le(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline void make_key(struct piece *p, const char *text, size_t limit)
{
	uint64_t n = p->end - p->begin;
	char last[16] = {0};
	const char *s = text + p->begin;

	if (limit - p->begin < 16) {
		memcpy(last, s, n);
		s = last;
	}
	p->key[0] = load_le(s);
	p->key[1] = load_le(s + 8);
	if (n < 8)
		p->key[0] &= ((uint64_t)1 << 8 * n) - 1;
	if (n > 8)
		p->key[1] &= ((uint64_t)1 << 8 * (n - 8)) - 1;
	else
		p->key[1] = 0;
	p->key[1] |= n << 56;
}

/* 16 bits: CACHE_SETS_MAX. */
static inline size_t key_set(const uint64_t key[2])
{
	uint64_t h = (key[0] ^ (key[1] * 0x9E3779B97F4A7C15u)) * 0xD6E8FEB86659FD93u;

	h ^= h >> 32;
	return (size_t)(h * 0xD6E8FEB86659FD93u >> 48);
}

static void sift_down(uint64_t *h, size_t n, size_t i)
{
	uint64_t x = h[i];
	size_t c;

	while ((c = 2 * i + 1) < n) {
		if (c + 1 < n && h[c + 1] < h[c])
			c++;
		if (x <= h[c])
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = x;
}

static void heap_push(uint64_t *h, size_t *n, uint64_t x)
{
	size_t i = (*n)++;

	for (; i && h[(i - 1) / 2] > x; i = (i - 1) / 2)
		h[i] = h[(i - 1) / 2];
	h[i] = x;
}

/* Queue the pair that begins at place a, if it merges. */
static inline void queue(
    const struct tokenizer *t, const struct symbol *s, uint32_t a, uint64_t *heap, size_t *n)
{
	uint32_t rank = tok_pair(t, s[a].id, s[s[a].next].id);

	if (rank != TOK_NONE)
		heap_push(heap, n, (uint64_t)rank << 32 | a);
}

/* Merge the n symbols s; queued pairs stand in the heap, which has room for 2 n. */
static void merge_all(const struct tokenizer *t, struct symbol *s, uint64_t *heap, size_t queued)
{
	size_t i;
	uint32_t rank;

	for (i = queued / 2; i-- > 0; )
		sift_down(heap, queued, i);
	while (queued) {
		const struct merge *m = &t->merges[heap[0] >> 32];
		uint32_t at = (uint32_t)heap[0], right;

		heap[0] = heap[--queued];
		if (queued)
			sift_down(heap, queued, 0);
		if (s[at].id == TOK_NONE || s[at].next == TOK_NONE)
			continue;
		right = s[at].next;
		if (s[at].id != m->left || s[right].id != m->right) {
			rank = tok_pair(t, s[at].id, s[right].id);
			if (rank == TOK_NONE || t->merges[rank].made != m->made)
				continue;
		}
		s[at].id = m->made;
		s[at].end = s[right].end;
		s[at].next = s[right].next;
		s[right].id = TOK_NONE;
		if (s[at].next != TOK_NONE)
			s[s[at].next].prev = at;
		if (s[at].prev != TOK_NONE)
			queue(t, s, s[at].prev, heap, &queued);
		if (s[at].next != TOK_NONE)
			queue(t, s, at, heap, &queued);
	}
}

/*
 * The piece's bytes as symbols, and the pairs that merge onto the heap.  A byte without a token is
 * unk_token, or left out where there is none, and its neighbours then meet.
 */
static size_t to_symbols(
    struct encoder *e, const char *text, uint32_t begin, uint32_t end, size_t *queued)
{
	const struct tokenizer *t = e->t;
	struct symbol *s = e->symbols;
	uint32_t i, n = 0, id, rank = TOK_NONE;
	int last = -1; /* the byte that is the last symbol; -1: none, or unk */

	*queued = 0;
	for (i = begin; i < end; i++) {
		uint8_t b = (uint8_t)text[i];

		id = t->byte_id[b];
		if (id == TOK_NONE && t->unk < 0) {
			e->dropped++;
			continue;
		}
		if (id == TOK_NONE && n && last < 0 && t->fuse_unk) {
			s[n - 1].end = i + 1;
			continue;
		}
		if (id != TOK_NONE && last >= 0)
			rank = t->byte_pair[last << 8 | b];
		last = id == TOK_NONE ? -1 : b;
		id = id == TOK_NONE ? (uint32_t)t->unk : id;
		if (n && (last < 0 || s[n - 1].id == t->unk))
			rank = tok_pair(t, s[n - 1].id, id);
		if (n && rank != TOK_NONE)
			e->heap[(*queued)++] = (uint64_t)rank << 32 | (n - 1);
		/* The first prev wraps to TOK_NONE. */
		s[n] = (struct symbol){ id, i, i + 1, n - 1, n + 1 };
		n++;
	}
	if (n)
		s[n - 1].next = TOK_NONE;
	return n;
}

static int encode_piece(
    struct encoder *e, const char *text, uint32_t begin, uint32_t end, struct err *err)
{
	const struct tokenizer *t = e->t;
	size_t n = end - begin, queued;
	uint32_t i;

	if (encoder_room(e, n, err) < 0)
		return -1;
	if (t->ignore_merges) {
		i = tok_lookup_bytes(t, text + begin, n);
		if (i != TOK_NONE && t->tok[i].kind != TOKEN_SPECIAL) {
			encoder_put(e, i, begin, end);
			return 0;
		}
	}
	if (grow(&e->symbols, &e->symbols_cap, n, sizeof(*e->symbols), err) < 0 ||
	    grow(&e->heap, &e->heap_cap, 2 * n, sizeof(*e->heap), err) < 0)
		return -1;
	if (!to_symbols(e, text, begin, end, &queued))
		return 0;
	merge_all(t, e->symbols, e->heap, queued);
	for (i = 0; i != TOK_NONE; i = e->symbols[i].next)
		encoder_put(e, e->symbols[i].id, e->symbols[i].begin, e->symbols[i].end);
	return 0;
}

/* Keep the ids that the piece was given, if they are few and cover it. */
static void keep(struct encoder *e, const struct piece *p, size_t from)
{
	size_t n = e->n - from, i, bytes = 0;

	if (n < 1 || n > CACHE_IDS)
		return;
	for (i = 0; i < n; i++)
		bytes += e->t->tok[e->ids[from + i]].n;
	if (bytes != p->end - p->begin)
		return;
	p->set[1] = p->set[0];
	memcpy(p->set[0].key, p->key, sizeof(p->key));
	memcpy(p->set[0].ids, e->ids + from, n * sizeof(uint32_t));
	p->set[0].ids[0] |= (uint32_t)n << 28;
}

static inline bool hit(struct encoder *e, const struct cache_slot *s, const struct piece *p)
{
	uint32_t id = s->ids[0] & 0x0FFFFFFF, n = s->ids[0] >> 28, i, at = p->begin, to;

	if (s->key[0] != p->key[0] || s->key[1] != p->key[1])
		return false;
	if (n == 1) {
		encoder_put(e, id, p->begin, p->end);
		return true;
	}
	for (i = 0; i < n; i++, at = to) {
		id = i ? s->ids[i] : id;
		to = at + e->t->tok[id].n;
		encoder_put(e, id, at, to);
	}
	return true;
}

int bpe_encode(
    struct encoder *e, const char *text, size_t b, size_t end, size_t limit, struct err *err)
{
	const char *(*next)(const char *, const char *) = e->t->pretok->piece;
	struct piece batch[BATCH], *p;
	size_t n, i, from;

	while (b < end) {
		for (n = 0; n < BATCH && b < end; n++) {
			p = &batch[n];
			p->begin = (uint32_t)b;
			b = (size_t)(next(text + b, text + end) - text);
			p->end = (uint32_t)b;
			p->set = NULL;
			if (p->end - p->begin > CACHE_KEY_BYTES)
				continue;
			make_key(p, text, limit);
			p->set = e->cache + 2 * (key_set(p->key) & e->cache_mask);
			__builtin_prefetch(p->set);
		}
		if (encoder_room(e, n * CACHE_IDS, err) < 0)
			return -1;
		for (i = 0; i < n; i++) {
			p = &batch[i];
			if (p->set && (hit(e, p->set, p) || hit(e, p->set + 1, p)))
				continue;
			from = e->n;
			if (encode_piece(e, text, p->begin, p->end, err) < 0 ||
			    encoder_room(e, (n - i) * CACHE_IDS, err) < 0)
				return -1;
			if (p->set)
				keep(e, p, from);
		}
	}
	return 0;
}

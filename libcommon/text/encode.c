/*
 * encode: text -> added tokens and the stretches between -> normalizer -> added tokens again
 * -> pieces -> ids.
 */
#include <stdlib.h>
#include <string.h>

#include "libcommon/text/encoder.h"
#include "libcommon/text/unicode_tables.h"
#include "libcommon/utf8.h"

/* What is matched against: the input, or a normalised stretch of it that began at base. */
struct view {
	const char *text;
	size_t n;
	const uint8_t *allowed; /* of the input; NULL: special tokens may stand anywhere */
	bool specials;
	const struct nfc *nfc; /* NULL: text is the input */
	size_t base;
};

int encoder_new(struct encoder **out, const struct tokenizer *t, struct err *err)
{
	struct encoder *e = mem_zalloc(1, sizeof(*e), err);
	size_t sets = CACHE_SETS_MIN;

	*out = NULL;
	if (!e)
		return -1;
	e->t = t;
	while (sets < t->vocab && sets < CACHE_SETS_MAX)
		sets *= 2;
	e->cache_mask = sets - 1;
	if (!(e->cache = tok_alloc(2 * sets, sizeof(*e->cache), err))) {
		encoder_free(e);
		return -1;
	}
	*out = e;
	return 0;
}

void encoder_free(struct encoder *e)
{
	if (!e)
		return;
	free(e->cache);
	free(e->ids);
	free(e->spans);
	free(e->symbols);
	free(e->heap);
	nfc_release(&e->nfc);
	free(e);
}

int encoder_room(struct encoder *e, size_t n, struct err *err)
{
	if (grow(&e->ids, &e->ids_cap, e->n + n, sizeof(*e->ids), err) < 0)
		return -1;
	return grow(&e->spans, &e->spans_cap, e->n + n, sizeof(*e->spans), err);
}

static bool may_stand(const struct view *v, size_t from, size_t to)
{
	size_t hint = 0;

	if (!v->specials || !v->allowed)
		return v->specials;
	if (v->nfc) {
		from = v->base + nfc_source(v->nfc, (uint32_t)from, false, &hint);
		to = v->base + nfc_source(v->nfc, (uint32_t)to, true, &hint);
	}
	return !memchr(v->allowed + from, 0, to - from);
}

/* The longest added token at text[p..end) that may stand there; NULL if there is none. */
static const struct added *match_at(
    const struct tokenizer *t, const struct trie *x, const struct view *v, size_t p, size_t end)
{
	const struct added *best = NULL, *a;
	uint32_t at = x->first[(uint8_t)v->text[p]];
	size_t q = p + 1;

	while (at != TOK_NONE) {
		if (x->nodes[at].added != TOK_NONE) {
			a = &t->added[x->nodes[at].added];
			if (!a->special || may_stand(v, p, q))
				best = a;
		}
		if (q == end)
			break;
		for (at = x->nodes[at].child;
		     at != TOK_NONE && x->nodes[at].byte != (uint8_t)v->text[q];)
			at = x->nodes[at].next;
		q++;
	}
	return best;
}

/* The first added token in text[*p..end); *p is where it begins. */
static const struct added *match(
    const struct tokenizer *t, const struct trie *x, const struct view *v, size_t *p, size_t end)
{
	const struct added *a;
	const char *q;

	if (x->only < 0)
		return NULL;
	for (; *p < end; ++*p) {
		if (x->only < 256) {
			if (!(q = memchr(v->text + *p, x->only, end - *p)))
				return NULL;
			*p = (size_t)(q - v->text);
		}
		if (x->first[(uint8_t)v->text[*p]] != TOK_NONE && (a = match_at(t, x, v, *p, end)))
			return a;
	}
	return NULL;
}

/*
 * Where the white space that ends at p begins, not before `from`; where that which begins at p
 * ends.
 */
static size_t space_before(const char *text, size_t from, size_t p)
{
	size_t q;
	uint32_t n;

	while (p > from) {
		for (q = p - 1; q > from && ((uint8_t)text[q] & 0xC0) == 0x80; )
			q--;
		if (uni_class(uni_at(text + q, &n)) != UNI_SPACE)
			break;
		p = q;
	}
	return p;
}

static size_t space_after(const char *text, size_t p, size_t end)
{
	uint32_t n;

	while (p < end && uni_class(uni_at(text + p, &n)) == UNI_SPACE)
		p += n;
	return p;
}

static int encode_normalised(
    struct encoder *e, const struct view *v, size_t b, size_t end, struct err *err);

/*
 * Split text[b..end) at the added tokens of trie k: 0 on the input, whose stretches are then
 * normalised; 1 after that.
 */
static int split(
    struct encoder *e, int k, const struct view *v, size_t b, size_t end, struct err *err)
{
	const struct tokenizer *t = e->t;
	const struct added *a;
	size_t p = b, from, to;

	for (;;) {
		a = match(t, &t->trie[k], v, &p, end);
		from = a ? p : end;
		to = a ? p + a->n : end;
		if (a && a->lstrip)
			from = space_before(v->text, b, from);
		if (a && a->rstrip)
			to = space_after(v->text, to, end);
		if (from > b &&
		    (k ? bpe_encode(e, v->text, b, from, v->n, err)
		       : encode_normalised(e, v, b, from, err)) < 0)
			return -1;
		if (!a)
			return 0;
		if (encoder_room(e, 1, err) < 0)
			return -1;
		encoder_put(e, a->id, from, to);
		b = p = to;
	}
}

static int encode_normalised(
    struct encoder *e, const struct view *v, size_t b, size_t end, struct err *err)
{
	struct view w = *v;
	size_t first = e->n, i, hint = 0;
	int changed = e->t->nfc ? nfc(&e->nfc, v->text + b, end - b, err) : 0;

	if (changed < 0)
		return -1;
	if (!changed)
		return split(e, 1, v, b, end, err);
	w.text = e->nfc.out.p;
	w.n = e->nfc.out.n;
	w.nfc = &e->nfc;
	w.base = b;
	if (split(e, 1, &w, 0, w.n, err) < 0)
		return -1;
	for (i = first; i < e->n; i++) {
		e->spans[i].begin =
		    (uint32_t)b + nfc_source(&e->nfc, e->spans[i].begin, false, &hint);
		e->spans[i].end = (uint32_t)b + nfc_source(&e->nfc, e->spans[i].end, true, &hint);
	}
	return 0;
}

/* Bytes of text that are UTF-8. */
static size_t valid_bytes(const char *text, size_t n)
{
	size_t p = 0, len;
	uint64_t w;

	while (p < n) {
		if (n - p >= 8) {
			memcpy(&w, text + p, 8);
			if (!(w & 0x8080808080808080u)) {
				p += 8;
				continue;
			}
		}
		if (!(len = utf8_len(text + p, text + n)))
			break;
		p += len;
	}
	return p;
}

static int encode_view(
    struct encoder *e, const struct view *v, struct encoding *out, struct err *err)
{
	size_t good;

	e->n = e->dropped = 0;
	*out = (struct encoding){0};
	if (v->n > 1u << 30) /* NFC may make it three times as long, and spans are 32 bits */
		return err_set(err, EX_DATAERR, "a text of %zu bytes; the limit is 1 GiB", v->n);
	if ((good = valid_bytes(v->text, v->n)) < v->n)
		return err_set(err, EX_DATAERR, "byte %zu of the text is not UTF-8", good);
	if (encoder_room(e, 1, err) < 0 || split(e, 0, v, 0, v->n, err) < 0)
		return -1;
	*out = (struct encoding){ e->ids, e->spans, e->n, e->dropped };
	return 0;
}

int encode(struct encoder *e, const char *text, size_t n, bool specials, struct encoding *out,
    struct err *err)
{
	return encode_view(e, &(struct view){ text, n, NULL, specials, NULL, 0 }, out, err);
}

int encode_masked(struct encoder *e, const char *text, size_t n, const uint8_t *allowed,
    struct encoding *out, struct err *err)
{
	return encode_view(e, &(struct view){ text, n, allowed, true, NULL, 0 }, out, err);
}

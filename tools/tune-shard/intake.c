#include "intake.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/rng.h"

int intake_kind(const struct stream_header *h, const char *name, struct err *err)
{
	switch (h->kind) {
	case KIND_TOKS:
		return 0;
	case KIND_PACK:
		return err_set(err, EX_DATAERR,
			"%s: kind 'pack': these documents are packed already; give the token streams they came "
			"from, or the packs to tune-train",
			name);
	case KIND_PAIR:
		return err_set(err, EX_DATAERR,
			"%s: kind 'pair': pairs are not packed; give the stream to tune-train as it is", name);
	default:
		return err_set(err, EX_DATAERR,
			"%s: kind '%s' is not packed; tune-shard reads kind 'toks', as tune-tokenize makes it",
			name, stream_kind_name(h->kind));
	}
}

static uint64_t count_trained(const uint8_t *mask, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += mask[i];
	return sum;
}

/*
 * By a hash of the prompt, the ids before the first trained one, so that equal prompts are never on
 * both sides.  Where no more than one stands there (text, whose first token can't be trained) or
 * nothing is trained, the document is its own prompt.
 */
static enum split split_of(const struct settings *s, const struct doc *d)
{
	const uint8_t *first = memchr(d->mask, 1, d->n);
	size_t n = first && first - d->mask > 1 ? (size_t)(first - d->mask) : d->n;
	uint32_t key[2], ctr[4] = {0}, out[4];
	uint64_t h, u;

	if (!(s->val_fraction > 0))
		return TRAIN;
	h = hash64(d->ids, n * 4);
	rng_key(s->seed, RNG_SPLIT, key);
	ctr[0] = (uint32_t)h;
	ctr[1] = (uint32_t)(h >> 32);
	philox4x32(key, ctr, out);
	u = (uint64_t)out[1] << 32 | out[0];
	return (double)(u >> 11) * 0x1p-53 < s->val_fraction ? VAL : TRAIN;
}

static int keep(struct intake *in, const struct doc *d, enum split split, struct err *err)
{
	return in->fn(in->ctx, d, split, in->kept++, err);
}

static int truncate_doc(
	struct intake *in, const struct doc *d, uint64_t trained, enum split split, struct err *err)
{
	struct doc cut = *d;
	uint64_t left = count_trained(d->mask, in->set->seq_len);

	if (left < in->set->min_trained || (trained && !left)) {
		drops_add(&in->drops, DROP_CUT, d);
		return 0;
	}
	drops_add(&in->drops, KEPT_CUT, d);
	cut.n = in->set->seq_len;
	return keep(in, &cut, split, err);
}

/* The first token of a piece has no predecessor in it: it is not trained. */
static int split_doc(struct intake *in, const struct doc *d, enum split split, struct err *err)
{
	uint32_t at, n;

	drops_add(&in->drops, KEPT_SPLIT, d);
	if (grow(&in->mask, &in->mask_cap, in->set->seq_len, 1, err) < 0)
		return -1;
	for (at = 0; at < d->n; at += n) {
		struct doc piece = *d;

		n = d->n - at < in->set->seq_len ? d->n - at : in->set->seq_len;
		memcpy(in->mask, d->mask + at, n);
		in->mask[0] = 0;
		piece.n = n;
		piece.ids = d->ids + at;
		piece.mask = in->mask;
		if (count_trained(piece.mask, n) < in->set->min_trained)
			drops_add(&in->drops, DROP_PIECE, &piece);
		else if (keep(in, &piece, split, err) < 0)
			return -1;
	}
	return 0;
}

int intake_record(struct intake *in, const struct record *r, const char *name, struct err *err)
{
	struct doc d = { r->toks.seq, r->toks.line, r->toks.src, r->toks.n, r->toks.ids, r->toks.mask };
	enum split split;

	if (rec_optional(r)) {
		if (!in->said_other)
			tool_warn(in->tool, "%s: record %llu: packs carry no '%s' records: these are left out",
				name, (unsigned long long)r->index, r->tag);
		in->said_other = true;
		return 0;
	}
	if (r->toks.extra && !in->said_extra) {
		tool_warn(in->tool,
			"%s: record %llu: packs have no place for its further keys: these are left out", name,
			(unsigned long long)r->index);
		in->said_extra = true;
	}
	in->docs_in++;
	in->tokens_in += d.n;
	if (r->trained < in->set->min_trained) {
		drops_add(&in->drops, DROP_UNTRAINED, &d);
		return 0;
	}
	split = split_of(in->set, &d);
	if (d.n <= in->set->seq_len)
		return keep(in, &d, split, err);
	switch (in->set->overlong) {
	case LONG_TRUNCATE:
		return truncate_doc(in, &d, r->trained, split, err);
	case LONG_SPLIT:
		return split_doc(in, &d, split, err);
	default:   /* LONG_ERROR too: the job fails at the end, when all such rows are known */
		drops_add(&in->drops, DROP_LONG, &d);
		return 0;
	}
}

void intake_release(struct intake *in)
{
	free(in->mask);
}

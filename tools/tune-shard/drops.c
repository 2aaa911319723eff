#include "drops.h"

void drops_add(struct drops *d, enum reason why, const struct doc *doc)
{
	struct drop *x = &d->by[why];

	if (x->n < DROP_ROWS) {
		x->rows[x->n].src = doc->src;
		x->rows[x->n].line = doc->line;
		x->rows[x->n].n = doc->n;
	}
	x->n++;
	x->tokens += doc->n;
}

bool drops_kept(enum reason why)
{
	return why == KEPT_CUT || why == KEPT_SPLIT;
}

static void describe(enum reason why, const struct settings *s, struct buf *out)
{
	unsigned long long trained = s->min_trained;

	switch (why) {
	case DROP_UNTRAINED:
		if (trained > 1)
			buf_printf(out, "with fewer trained tokens than shard.min_trained %llu", trained);
		else
			buf_puts(out, "without a trained token");
		break;
	case DROP_LONG:
		buf_printf(out, "longer than shard.seq_len %u", s->seq_len);
		break;
	case DROP_CUT:
		buf_printf(out, "left with %s trained %s when cut to shard.seq_len %u",
			trained > 1 ? "too few" : "no", trained > 1 ? "tokens" : "token", s->seq_len);
		break;
	case DROP_PIECE:
		buf_printf(out, "pieces of split documents with %s trained %s",
			trained > 1 ? "too few" : "no", trained > 1 ? "tokens" : "token");
		break;
	case DROP_WEIGHT:
		buf_puts(out, "of weight 0 in shard.mix");
		break;
	case DROP_MIX:
		buf_puts(out, "left over when a source of shard.mix was used up");
		break;
	case KEPT_CUT:
		buf_printf(out, "truncated to shard.seq_len %u", s->seq_len);
		break;
	case KEPT_SPLIT:
		buf_printf(out, "split into pieces of shard.seq_len %u", s->seq_len);
		break;
	case REASONS:
		break;
	}
}

bool drops_text(const struct drops *d, enum reason why, const struct settings *s,
	const struct stream_header *h, struct buf *out)
{
	const struct drop *x = &d->by[why];
	uint64_t i;

	if (!x->n)
		return false;
	buf_printf(out, "%llu ", (unsigned long long)x->n);
	describe(why, s, out);
	if (why == DROP_MIX)
		return true;
	for (i = 0; i < x->n && i < DROP_ROWS; i++) {
		buf_printf(out, "%s%s:%llu", i ? ", " : " (",
			x->rows[i].src < h->ninputs ? h->inputs[x->rows[i].src] : "?",
			(unsigned long long)x->rows[i].line);
		if (why == DROP_LONG)
			buf_printf(out, " has %u", x->rows[i].n);
	}
	buf_puts(out, x->n > DROP_ROWS ? ", ...)" : ")");
	return true;
}

#ifndef TUNE_SHARD_DROPS_H
#define TUNE_SHARD_DROPS_H
/*
 * drops: what happened to documents that did not go through whole, counted by reason, with the
 * first few rows of each.
 */
#include "shard.h"

enum reason {
	DROP_UNTRAINED,   /* fewer trained tokens than shard.min_trained */
	DROP_LONG,        /* longer than shard.seq_len, policy drop or error */
	DROP_CUT,         /* no trained token left after the cut, or too few */
	DROP_PIECE,       /* a piece of a split document with too few */
	DROP_WEIGHT,      /* from an input of weight 0 */
	DROP_MIX,         /* left when another input of the mix was used up */
	KEPT_CUT,         /* truncated and kept */
	KEPT_SPLIT,       /* split; its pieces are documents */
	REASONS
};
enum { DROP_ROWS = 5 };

struct drops {
	struct drop {
		uint64_t n, tokens;
		struct {
			uint32_t src;
			uint64_t line;
			uint32_t n;
		} rows[DROP_ROWS];
	} by[REASONS];
};

void drops_add(struct drops *d, enum reason why, const struct doc *doc);
/* "3 longer than shard.seq_len 32 (a.jsonl:3, a.jsonl:7, ...)"; false if there were none. */
bool drops_text(const struct drops *d, enum reason why, const struct settings *s,
	const struct stream_header *h, struct buf *out);
bool drops_kept(enum reason why);   /* not a loss */
#endif

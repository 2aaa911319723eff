#ifndef TUNE_SHARD_MIX_H
#define TUNE_SHARD_MIX_H
/*
 * mix: which input gives the next document, so that at every moment each has given its share of the
 * tokens as nearly as whole documents allow: the one that lacks most goes next (the first of
 * equals).  The mixture ends when the one whose turn it is has no more: what the others still hold
 * is left.
 */
#include "shard.h"
#include "store.h"

struct mix {
	struct mix_source {
		struct store *store;     /* NULL: weight 0, or no document yet */
		double weight;           /* their sum is 1 */
		uint64_t docs, tokens;   /* drawn */
		uint64_t held_docs, held_tokens;
	} *sources;                      /* by src */
	size_t n;
	uint64_t tokens;
	size_t ended_by;                 /* the one that was used up */
};
/*
 * The weights from shard.mix for the inputs of h; EX_CONFIG if a name fits no input or several, or
 * an input has no weight.
 */
int mix_init(
	struct mix *m, const struct config *cfg, const struct stream_header *h, struct err *err);
/* The next document's blob.  0: the mixture ends. */
int mix_next(struct mix *m, const void **blob, struct err *err);
void mix_drawn(struct mix *m, const struct doc *d);
void mix_release(struct mix *m);
#endif

#ifndef TUNE_SHARD_MIX_H
#define TUNE_SHARD_MIX_H
/*
 * mix: which source gives the next document, so that at every moment each has given its share of
 * the tokens as nearly as whole documents allow: the one that lacks most goes next (the first of
 * equals).  The mixture ends when the one whose turn it is has no more: what the others still hold
 * is left.
 */
#include "shard.h"
#include "store.h"

struct mix {
	struct mix_source {
		struct store *store;     /* NULL: weight 0, or no document yet */
		const char *name;        /* the config's */
		double weight;           /* their sum is 1 */
		uint64_t docs, tokens;   /* drawn */
		uint64_t held_docs, held_tokens;
	} *sources;                      /* as shard.mix lists them */
	size_t n, ninputs, turn;         /* turn: the source of the last blob */
	size_t *of;                      /* [stream * ninputs + src]: the source of a document */
	uint64_t tokens;
	size_t ended_by;                 /* the one that was used up */
};
/*
 * The weights from shard.mix, for streams, folders of them and the inputs that documents were made
 * from; EX_CONFIG if a name fits none or several, or a document would have no weight.
 */
int mix_init(struct mix *m, const struct config *cfg, const struct stream_merge *in,
	char *const *paths, size_t npaths, struct err *err);
/* Of a document of this stream; NULL: an input that no first header listed. */
struct mix_source *mix_source(const struct mix *m, size_t stream, uint32_t src);
/* The next document's blob.  0: the mixture ends. */
int mix_next(struct mix *m, const void **blob, struct err *err);
void mix_drawn(struct mix *m, const struct doc *d);
void mix_release(struct mix *m);
#endif

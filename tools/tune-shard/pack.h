#ifndef TUNE_SHARD_PACK_H
#define TUNE_SHARD_PACK_H
/*
 * pack: documents into packs of at most seq_len tokens, none cut.
 *
 * Best-fit decreasing over a window: the longest document first, each into the pack with the least
 * room that still holds it. A window is WINDOW_DOCS documents or WINDOW_TOKENS tokens, whichever
 * comes first; both are fixed, so that the packs depend on the documents and seq_len alone.
 * Documents keep their order within a pack; the packs of a window come in the order of their first
 * documents.
 */
#include "shard.h"

enum { WINDOW_DOCS = 16384, WINDOW_TOKENS = 16 << 20 };

/* Takes a finished pack (seq is 0), which is valid during the call. */
typedef int pack_fn(void *ctx, const struct rec_pack *p, struct err *err);

struct packer;
int packer_new(struct packer **p, uint32_t seq_len, pack_fn *fn, void *ctx, struct err *err);
/* d->n <= seq_len; d is copied */
int packer_add(struct packer *p, const struct doc *d, struct err *err);
int packer_flush(struct packer *p, struct err *err);                      /* pack what waits */
void packer_free(struct packer *p);
#endif

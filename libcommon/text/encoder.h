#ifndef TUNE_ENCODER_H
#define TUNE_ENCODER_H
/* encoder: what one thread needs to encode; encode.c walks the text, bpe.c makes ids of pieces. */
#include "libcommon/text/nfc.h"
#include "libcommon/text/tok.h"

/*
 * A short piece and its ids.  key: the bytes, zeros, and their number in the last byte (0: empty
 * slot); ids[0] holds the count in its top 4 bits.
 */
struct cache_slot { uint64_t key[2]; uint32_t ids[4]; };
/* Two slots a set, about a set a token of the vocabulary: at most 4 MiB. */
enum { CACHE_SETS_MIN = 1 << 8, CACHE_SETS_MAX = 1 << 16, CACHE_KEY_BYTES = 15, CACHE_IDS = 4 };

struct symbol { uint32_t id, begin, end, prev, next; };   /* id TOK_NONE: merged away */
struct encoder {
	const struct tokenizer *t;
	uint32_t *ids; struct span *spans;
	size_t n, ids_cap, spans_cap, dropped;
	struct cache_slot *cache; size_t cache_mask;
	struct symbol *symbols; size_t symbols_cap;
	uint64_t *heap; size_t heap_cap;             /* rank << 32 | place */
	struct nfc nfc;
};

/*
 * Append the ids of text[b..e), pieces of the pre-tokenizer; text is readable up to limit.  Spans
 * are places in text.
 */
int bpe_encode(struct encoder *e, const char *text, size_t b, size_t end, size_t limit,
    struct err *err);
int encoder_room(struct encoder *e, size_t n, struct err *err);
static inline void encoder_put(struct encoder *e, uint32_t id, size_t begin, size_t end)
{
	e->ids[e->n] = id;
	e->spans[e->n++] = (struct span){ (uint32_t)begin, (uint32_t)end };
}
#endif

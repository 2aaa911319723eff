#ifndef TUNE_TOK_H
#define TUNE_TOK_H
/*
 * tok: the inside of a tokenizer, for the files that fill it (tokenizer_hf.c, tokenizer_gguf.c) and
 * those that encode (encode.c, bpe.c, added.c).
 *
 * Filling: tok_token() for every id of the model, tok_index(), tok_merge() for every merge,
 * tok_added(), then tok_finish().
 */
#include "libcommon/arena.h"
#include "libcommon/text/pretok.h"
#include "libcommon/text/tokenizer.h"

enum { TOK_IDS_MAX = 1 << 22, TOK_ADDED_BYTES_MAX = 1024, TOK_STOPS_MAX = 32 };
enum { TOK_NONE = UINT32_MAX };

struct tok {
	uint32_t at, n;      /* bytes: t->bytes.p + at */
	uint8_t kind;        /* enum token_kind */
	bool model;          /* in the model's vocabulary, so that merges and pieces may name it */
	bool raw;            /* spelled as its bytes, not in the byte-level alphabet */
	bool merged;         /* a merge names or makes it */
};
struct added {
	uint32_t id, n;
	const char *text;
	bool special, normalized, lstrip, rstrip;
};
struct merge { uint32_t left, right, made; };

/* Added tokens of one kind, as a trie over bytes.  TOK_NONE: no such node, or no token. */
struct trie_node { uint32_t child, next, added; uint8_t byte; };
struct trie {
	struct trie_node *nodes; size_t n, cap;
	uint32_t first[256];
	int only;            /* the one first byte; -1: no token, 256: several */
};

struct tokenizer {
	char *source;                     /* owned, as the chat template */
	const struct pretok *pretok;
	bool nfc, ignore_merges, fuse_unk, add_bos, add_eos;
	int64_t bos, eos, pad, unk;       /* unk: BPE's unk_token, -1 none */
	uint32_t vocab;
	struct tok *tok; size_t tok_cap;
	struct buf bytes;
	/* Model tokens by their bytes: top half of the hash, id + 1; 0: empty. */
	uint64_t *by_bytes; size_t by_bytes_mask;
	uint32_t byte_id[256];            /* TOK_NONE: the vocabulary lacks it */
	struct merge *merges; size_t nmerges, merges_cap;
	/* Merges by their pair: half of its hash, rank; UINT64_MAX: empty. */
	uint64_t *pairs; unsigned pairs_shift;
	/* A bit a hash: tells of most pairs that they don't merge, from a small table. */
	uint64_t *pair_bits; unsigned bits_shift;
	uint32_t *byte_pair;              /* [256][256]: the rank of the merge of two bytes */
	struct added *added; size_t nadded, added_cap;
	struct trie trie[2];              /* matched before and after the normalizer */
	uint32_t stops[TOK_STOPS_MAX]; size_t nstops;
	char *chat_template;
	char sha256[SHA256_HEX];
	struct arena arena;               /* texts of added tokens */
};

/* A cleared table for random reads (large ones in huge pages, where there are any); free() it. */
void *tok_alloc(size_t n, size_t size, struct err *err);
/*
 * Add the token of the model's vocabulary (model) or an added one under id.  text: its spelling.
 * where: for messages.  EX_DATAERR if the id is taken or too large.
 */
int tok_token(struct tokenizer *t, uint32_t id, const char *text, size_t n, enum token_kind kind,
    bool model, const char *where, struct err *err);
int tok_index(struct tokenizer *t, struct err *err);
/* The id of a model token by its spelling; TOK_NONE. */
uint32_t tok_lookup(const struct tokenizer *t, const char *text, size_t n);
/* The same by bytes: a token that BPE may make. */
uint32_t tok_lookup_bytes(const struct tokenizer *t, const char *p, size_t n);
/* The next merge: two spellings; both and their concatenation must be tokens. */
int tok_merge(struct tokenizer *t, const char *left, size_t nl, const char *right, size_t nr,
    const char *where, struct err *err);
/*
 * Match a in text; its id is that of tok_token() or of a model token, whose kind it changes.  A
 * second token of the same text is ignored.  The bytes of an added token are its text: EX_DATAERR
 * if it is a model token that BPE makes and that stands for other bytes.
 */
int tok_added(struct tokenizer *t, const struct added *a, const char *where, struct err *err);
const struct added *tok_find_added(const struct tokenizer *t, const char *text, size_t n);
/* An id that ends an answer; twice is fine. */
int tok_stop(struct tokenizer *t, int64_t id, const char *where, struct err *err);
int tok_finish(struct tokenizer *t, struct err *err);

int tokenizer_open_hf(struct tokenizer *t, const char *dir, const char *json, struct err *err);
int tokenizer_open_gguf(struct tokenizer *t, const char *path, struct err *err);

/* The byte that a character of GPT-2's alphabet stands for, -1 none; the character of a byte. */
int alphabet_byte(uint32_t c);
uint32_t alphabet_char(uint8_t b);

int trie_add(struct trie *x, const char *text, size_t n, uint32_t added, struct err *err);
void trie_release(struct trie *x);

/*
 * The rank of the merge of left and right, TOK_NONE if they don't merge.  Most pairs asked for
 * don't, so a slot is 8 bytes: half a hash and the rank, whose entry in the merges tells the rest.
 */
static inline uint32_t tok_pair(const struct tokenizer *t, uint32_t left, uint32_t right)
{
	uint64_t h = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u, s;
	size_t mask = ((size_t)1 << (64 - t->pairs_shift)) - 1, i = h >> t->pairs_shift;
	const struct merge *m;

	if (!(t->pair_bits[h >> t->bits_shift >> 6] >> (h >> t->bits_shift & 63) & 1))
		return TOK_NONE;
	for (; (s = t->pairs[i]) != UINT64_MAX; i = (i + 1) & mask) {
		m = &t->merges[(uint32_t)s];
		if (s >> 32 == (uint32_t)h && m->left == left && m->right == right)
			return (uint32_t)s;
	}
	return TOK_NONE;
}
#endif

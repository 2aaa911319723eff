#ifndef TUNE_TOKENIZER_H
#define TUNE_TOKENIZER_H
/*
 * tokenizer: text <-> ids, exactly as the model's own tokenizer.json (or GGUF) says.
 *
 * Byte-level BPE with the gpt2, llama3, qwen2 and smollm2 pre-tokenizers; normalizers none and NFC;
 * others are refused by name (EX_DATAERR with the JSON path).  A tokenizer is immutable after open;
 * encoding needs a struct encoder a thread (scratch, cache).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcommon/buf.h"
#include "libcommon/hash.h"

/* ADDED: matched in text, not special */
enum token_kind { TOKEN_NORMAL, TOKEN_ADDED, TOKEN_SPECIAL, TOKEN_UNUSED };

struct tokenizer;
/*
 * path: a model folder (tokenizer.json, tokenizer_config.json, generation_config.json, config.json,
 * chat_template.jinja), a tokenizer.json, or a .gguf.  Which file was used is in
 * tokenizer_source().
 */
int tokenizer_open(struct tokenizer **t, const char *path, struct err *err);
void tokenizer_close(struct tokenizer *t);

uint32_t tokenizer_vocab(const struct tokenizer *t);                /* ids are below this */
/* path of the file it came from */
const char *tokenizer_source(const struct tokenizer *t);
const char *tokenizer_pretokenizer(const struct tokenizer *t);      /* "llama3", ... */
/* The tokenizer.ggml.pre that says the same; NULL if none does. */
const char *tokenizer_gguf_pre(const struct tokenizer *t);
/* contracts.md 4, tune-stream(5) */
const char *tokenizer_sha256(const struct tokenizer *t);
int64_t tokenizer_bos(const struct tokenizer *t);                   /* -1 = none */
int64_t tokenizer_pad(const struct tokenizer *t);
bool tokenizer_add_bos(const struct tokenizer *t);                  /* raw text starts with BOS */
bool tokenizer_add_eos(const struct tokenizer *t);
/* the tokenizer's own eos (ends text rows) */
int64_t tokenizer_eos(const struct tokenizer *t);
/*
 * Every id that ends an answer: the union of config, generation_config, tokenizer eos and eot (E4).
 * ids must hold 32; returns the count.
 */
size_t tokenizer_stop_ids(const struct tokenizer *t, uint32_t ids[32]);
const char *tokenizer_chat_template(const struct tokenizer *t);     /* source text, or NULL */
/* The bytes of id, and its kind; NULL and n = 0 for an unused id. */
const char *tokenizer_token(
	const struct tokenizer *t, uint32_t id, uint32_t *n, enum token_kind *kind);
/* an added or special token by its text; -1 */
int64_t tokenizer_find(const struct tokenizer *t, const char *token);
/* For GGUF export: merges by rank as pairs of ids. */
size_t tokenizer_merge_count(const struct tokenizer *t);
void tokenizer_merge(const struct tokenizer *t, size_t rank, uint32_t *left, uint32_t *right);
/*
 * The byte-level spelling of a token (bytes as GPT-2's printable characters; added tokens as they
 * are), appended to out.
 */
void tokenizer_spelling(const struct tokenizer *t, uint32_t id, struct buf *out);
/*
 * Write tokenizer.json and tokenizer_config.json (with the chat template) into the folder dir;
 * other programs give the same ids with them.
 */
int tokenizer_write_hf(const struct tokenizer *t, const char *dir, struct err *err);

struct encoder;
int encoder_new(struct encoder **e, const struct tokenizer *t, struct err *err);
void encoder_free(struct encoder *e);
/*
 * The bytes of the input that a token stands for.  Spans follow each other without gap or overlap,
 * but where the normalizer changed characters: a token that begins or ends within such a place has
 * the whole of what the place was made from.
 */
struct span { uint32_t begin, end; };
/*
 * Append the ids of text[0..n) to the encoder's arrays, valid until the next call of encode.  No
 * BOS, no EOS are added. specials: match added tokens flagged special in the text (false: their
 * strings are plain text; added tokens that are not special always match).  text must be UTF-8
 * (EX_DATAERR otherwise, with the byte offset).
 */
struct encoding {
	const uint32_t *ids; const struct span *spans; size_t n;
	size_t dropped;    /* bytes without a token; left out, as the tokenizer's own program does */
};
int encode(struct encoder *e, const char *text, size_t n, bool specials, struct encoding *out,
	struct err *err);
/*
 * As encode, with special tokens matched only where allowed[i] is 1 for all of their bytes:
 * template text yes, user text no (D8).
 */
int encode_masked(struct encoder *e, const char *text, size_t n, const uint8_t *allowed,
	struct encoding *out, struct err *err);
/*
 * Append the bytes of the ids; skip_special leaves special tokens out.  -1 EX_DATAERR if an id is
 * >= vocab.
 */
int decode(const struct tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
	struct buf *out, struct err *err);
#endif

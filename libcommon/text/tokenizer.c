#include "libcommon/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/formats/gguf.h"
#include "libcommon/text/tok.h"

int tokenizer_open(struct tokenizer **out, const char *path, struct err *err)
{
	struct tokenizer *t = mem_zalloc(1, sizeof(*t), err);
	char *dir = NULL, *json = NULL;
	int rc = -1;

	*out = NULL;
	if (!t)
		return -1;
	t->bos = t->eos = t->pad = t->unk = -1;
	t->trie[0].only = t->trie[1].only = -1;
	if (is_gguf(path)) {
		if (!(t->source = mem_strdup(path, err)) || tokenizer_open_gguf(t, path, err) < 0)
			goto done;
	} else {
		dir = is_dir(path) ? mem_strdup(path, err) : path_dir(path);
		json = is_dir(path) ? path_join(path, "tokenizer.json") : mem_strdup(path, err);
		if (!dir || !json) {
			err_oom(err, strlen(path));
			goto done;
		}
		if (!(t->source = mem_strdup(json, err)) ||
		    tokenizer_open_hf(t, dir, json, err) < 0)
			goto done;
	}
	if (tok_finish(t, err) < 0)
		goto done;
	*out = t;
	t = NULL;
	rc = 0;
done:
	tokenizer_close(t);
	free(dir);
	free(json);
	return rc;
}

void tokenizer_close(struct tokenizer *t)
{
	if (!t)
		return;
	trie_release(&t->trie[0]);
	trie_release(&t->trie[1]);
	buf_release(&t->bytes);
	arena_release(&t->arena);
	free(t->tok);
	free(t->by_bytes);
	free(t->merges);
	free(t->pairs);
	free(t->pair_bits);
	free(t->byte_pair);
	free(t->added);
	free(t->source);
	free(t->chat_template);
	free(t);
}

uint32_t tokenizer_vocab(const struct tokenizer *t)
{
	return t->vocab;
}

const char *tokenizer_source(const struct tokenizer *t)
{
	return t->source;
}

const char *tokenizer_pretokenizer(const struct tokenizer *t)
{
	return t->pretok->name;
}

const char *tokenizer_gguf_pre(const struct tokenizer *t)
{
	const struct pretok_gguf *g;

	for (g = pretok_ggufs; g->pre; g++)
		if (!strcmp(g->name, t->pretok->name) && g->nfc == t->nfc &&
		    g->ignore_merges == t->ignore_merges)
			return g->pre;
	return NULL;
}

const char *tokenizer_sha256(const struct tokenizer *t)
{
	return t->sha256;
}

int64_t tokenizer_bos(const struct tokenizer *t)
{
	return t->bos;
}

int64_t tokenizer_pad(const struct tokenizer *t)
{
	return t->pad;
}

int64_t tokenizer_eos(const struct tokenizer *t)
{
	return t->eos;
}

bool tokenizer_add_bos(const struct tokenizer *t)
{
	return t->add_bos && t->bos >= 0;
}

bool tokenizer_add_eos(const struct tokenizer *t)
{
	return t->add_eos && t->eos >= 0;
}

size_t tokenizer_stop_ids(const struct tokenizer *t, uint32_t ids[32])
{
	memcpy(ids, t->stops, t->nstops * sizeof(*ids));
	return t->nstops;
}

const char *tokenizer_chat_template(const struct tokenizer *t)
{
	return t->chat_template;
}

const char *tokenizer_token(
    const struct tokenizer *t, uint32_t id, uint32_t *n, enum token_kind *kind)
{
	bool used = id < t->vocab && t->tok[id].kind != TOKEN_UNUSED;

	*n = used ? t->tok[id].n : 0;
	if (kind)
		*kind = used ? (enum token_kind)t->tok[id].kind : TOKEN_UNUSED;
	return used ? t->bytes.p + t->tok[id].at : NULL;
}

int64_t tokenizer_find(const struct tokenizer *t, const char *token)
{
	const struct added *a = tok_find_added(t, token, strlen(token));

	return a ? (int64_t)a->id : -1;
}

size_t tokenizer_merge_count(const struct tokenizer *t)
{
	return t->nmerges;
}

void tokenizer_merge(const struct tokenizer *t, size_t rank, uint32_t *left, uint32_t *right)
{
	*left = t->merges[rank].left;
	*right = t->merges[rank].right;
}

void tokenizer_spelling(const struct tokenizer *t, uint32_t id, struct buf *out)
{
	uint32_t i, c;

	if (id >= t->vocab || t->tok[id].kind == TOKEN_UNUSED)
		return;
	if (t->tok[id].raw) {
		buf_put(out, t->bytes.p + t->tok[id].at, t->tok[id].n);
		return;
	}
	for (i = 0; i < t->tok[id].n; i++) {
		c = alphabet_char((uint8_t)t->bytes.p[t->tok[id].at + i]);
		if (c >= 0x80) /* never above U+0143 */
			buf_putc(out, (int)(0xC0u | c >> 6));
		buf_putc(out, (int)(c < 0x80 ? c : (0x80u | (c & 63))));
	}
}

int decode(const struct tokenizer *t, const uint32_t *ids, size_t n, bool skip_special,
    struct buf *out, struct err *err)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (ids[i] >= t->vocab)
			return err_set(err, EX_DATAERR,
			    "id %lu at place %zu is not below the vocabulary's size %lu",
			    (unsigned long)ids[i], i, (unsigned long)t->vocab);
		if (t->tok[ids[i]].kind != TOKEN_UNUSED &&
		    !(skip_special && t->tok[ids[i]].kind == TOKEN_SPECIAL))
			buf_put(out, t->bytes.p + t->tok[ids[i]].at, t->tok[ids[i]].n);
	}
	return buf_ok(out, err);
}

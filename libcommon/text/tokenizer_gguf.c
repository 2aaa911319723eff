/*
 * tokenizer_gguf: the tokenizer.ggml.* keys -> tokenizer.
 *
 * A GGUF does not say whether an added token is special in Hugging Face's sense: CONTROL is taken
 * as special, USER_DEFINED as added.  Names of pre-tokenizers are llama.cpp's; what they imply is
 * in pretok.c.
 */
#include <string.h>

#include "libcommon/formats/gguf.h"
#include "libcommon/text/tok.h"
#include "libcommon/utf8.h"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };
static const char tokens_key[] = "tokenizer.ggml.tokens";
static const char types_key[] = "tokenizer.ggml.token_type";
static const char merges_key[] = "tokenizer.ggml.merges";

static bool str_eq(struct gguf_str a, const char *b)
{
	return a.n == strlen(b) && !memcmp(a.s, b, a.n);
}

static int read_pre(struct tokenizer *t, const struct gguf *g, struct err *err)
{
	struct gguf_str model, pre;
	const struct pretok_gguf *p;
	int has;

	if ((has = gguf_get_str(g, "tokenizer.ggml.model", &model, err)) < 0)
		return -1;
	if (!has)
		return err_set(
		    err, EX_DATAERR, "%s: has no tokenizer (tokenizer.ggml.model)", t->source);
	if (!str_eq(model, "gpt2"))
		return err_set(err, EX_DATAERR,
		    "%s: tokenizer.ggml.model: '%.*s' is not gpt2 (byte-level BPE)", t->source,
		    (int)(model.n < 100 ? model.n : 100), model.s);
	if ((has = gguf_get_str(g, "tokenizer.ggml.pre", &pre, err)) < 0)
		return -1;
	if (!has)
		return err_set(err, EX_DATAERR,
		    "%s: tokenizer.ggml.pre is missing, so its pre-tokenizer is not known: convert "
		    "the model again with a current program, or name its tokenizer.json "
		    "(model.tokenizer=)",
		    t->source);
	for (p = pretok_ggufs; p->pre && !str_eq(pre, p->pre); p++)
		;
	if (!p->pre)
		return err_set(err, EX_DATAERR,
		    "%s: tokenizer.ggml.pre: '%.*s' is not one of gpt-2, llama-bpe, qwen2, smollm; "
		    "name the model's tokenizer.json if it is one of these (model.tokenizer=)",
		    t->source, (int)(pre.n < 100 ? pre.n : 100), pre.s);
	t->pretok = pretok_find(p->name);
	t->nfc = p->nfc;
	t->ignore_merges = p->ignore_merges;
	t->add_bos = p->add_bos;
	return 0;
}

static bool valid(struct gguf_str s, bool *ascii)
{
	size_t i, len;

	*ascii = true;
	for (i = 0; i < s.n; i += len) {
		if (!(len = utf8_len(s.s + i, s.s + s.n)))
			return false;
		*ascii = *ascii && len == 1;
	}
	return true;
}

static int read_token(
    struct tokenizer *t, uint32_t id, struct gguf_str s, int64_t type, struct err *err)
{
	enum token_kind kind = TOKEN_SPECIAL;
	char where[4300];
	bool ascii;

	if (type == TYPE_UNUSED)
		return 0;
	if (type == TYPE_NORMAL || type == TYPE_USER_DEFINED)
		kind = type == TYPE_NORMAL ? TOKEN_NORMAL : TOKEN_ADDED;
	snprintf(where, sizeof(where), "%s: %s", t->source, tokens_key);
	if (type < TYPE_NORMAL || type > TYPE_UNUSED)
		return err_set(err, EX_DATAERR,
		    "%s: %s[%lu]: type %lld does not occur in byte-level BPE", t->source, types_key,
		    (unsigned long)id, (long long)type);
	if (!valid(s, &ascii))
		return err_set(err, EX_DATAERR, "%s[%lu]: is not UTF-8", where, (unsigned long)id);
	/*
	 * Others are written as they are, not in the byte-level alphabet; for ASCII the two agree,
	 * and merges may name them.
	 */
	return tok_token(t, id, s.s, (size_t)s.n, kind, kind == TOKEN_NORMAL || ascii, where, err);
}

static int read_tokens(struct tokenizer *t, const struct gguf *g, struct err *err)
{
	enum gguf_type type, ttype = GGUF_I32;
	uint64_t n, ntypes = 0, i;
	int has, typed;

	if ((has = gguf_get_arr(g, tokens_key, &type, &n, err)) < 0 ||
	    (typed = gguf_get_arr(g, types_key, &ttype, &ntypes, err)) < 0)
		return -1;
	if (!has || type != GGUF_STR || n > TOK_IDS_MAX)
		return err_set(err, EX_DATAERR, "%s: %s: must be an array of at most %d strings",
		    t->source, tokens_key, TOK_IDS_MAX);
	if (typed && ((ttype != GGUF_I32 && ttype != GGUF_U32) || ntypes != n))
		return err_set(err, EX_DATAERR, "%s: %s: must be an array of %llu numbers",
		    t->source, types_key, (unsigned long long)n);
	for (i = 0; i < n; i++)
		if (read_token(t, (uint32_t)i, gguf_arr_str(g, tokens_key, i),
		        typed ? gguf_arr_int(g, types_key, i) : TYPE_NORMAL, err) < 0)
			return -1;
	if (tok_index(t, err) < 0)
		return -1;
	for (i = 0; i < t->vocab; i++) {
		const struct tok *x = &t->tok[i];
		struct added a = { .id = (uint32_t)i, .special = x->kind == TOKEN_SPECIAL };
		struct gguf_str s;

		if (x->kind == TOKEN_NORMAL || x->kind == TOKEN_UNUSED)
			continue;
		s = gguf_arr_str(g, tokens_key, i);
		a.text = s.s;
		a.n = (uint32_t)s.n;
		if (tok_added(t, &a, t->source, err) < 0)
			return -1;
	}
	return 0;
}

static int read_merges(struct tokenizer *t, const struct gguf *g, struct err *err)
{
	enum gguf_type type;
	uint64_t n, i;
	int has = gguf_get_arr(g, merges_key, &type, &n, err);
	char where[4300];
	bool ascii;

	if (has < 0)
		return -1;
	if (!has || type != GGUF_STR)
		return err_set(err, EX_DATAERR,
		    "%s: %s: must be an array of strings: the file's converter left the merges out",
		    t->source, merges_key);
	snprintf(where, sizeof(where), "%s: %s", t->source, merges_key);
	for (i = 0; i < n; i++) {
		struct gguf_str s = gguf_arr_str(g, merges_key, i);
		const char *space = s.n > 1 ? memchr(s.s + 1, ' ', (size_t)s.n - 1) : NULL;

		if (!space || !valid(s, &ascii))
			return err_set(err, EX_DATAERR,
			    "%s[%llu]: must be two tokens and a space between", where,
			    (unsigned long long)i);
		if (tok_merge(t, s.s, (size_t)(space - s.s), space + 1,
		        (size_t)s.n - (size_t)(space + 1 - s.s), where, err) < 0)
			return -1;
	}
	return 0;
}

/* A key that names an id: *id, checked; stays -1 if there is none. */
static int read_id(
    const struct tokenizer *t, const struct gguf *g, const char *key, int64_t *id, struct err *err)
{
	int has = gguf_get_int(g, key, id, err);

	if (has > 0 && (*id < 0 || *id >= (int64_t)t->vocab || t->tok[*id].kind == TOKEN_UNUSED))
		return err_set(err, EX_DATAERR, "%s: %s: %lld is not the id of a token", t->source,
		    key, (long long)*id);
	return has;
}

static int read_ids(struct tokenizer *t, const struct gguf *g, struct err *err)
{
	static const char *const ends[] = { "tokenizer.ggml.eos_token_id",
		"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id" };
	struct gguf_str s;
	int64_t id;
	size_t i;
	int has;

	if (read_id(t, g, "tokenizer.ggml.bos_token_id", &t->bos, err) < 0 ||
	    read_id(t, g, "tokenizer.ggml.eos_token_id", &t->eos, err) < 0 ||
	    read_id(t, g, "tokenizer.ggml.padding_token_id", &t->pad, err) < 0 ||
	    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &t->add_bos, err) < 0 ||
	    gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &t->add_eos, err) < 0)
		return -1;
	for (i = 0; i < 3; i++) {
		id = -1;
		if ((has = read_id(t, g, ends[i], &id, err)) < 0 ||
		    (has && tok_stop(t, id, ends[i], err) < 0))
			return -1;
	}
	if ((has = gguf_get_str(g, "tokenizer.chat_template", &s, err)) < 0)
		return -1;
	if (has && memchr(s.s, 0, (size_t)s.n))
		return err_set(
		    err, EX_DATAERR, "%s: tokenizer.chat_template holds a NUL", t->source);
	if (has && !(t->chat_template = mem_strndup(s.s, (size_t)s.n, err)))
		return -1;
	return 0;
}

int tokenizer_open_gguf(struct tokenizer *t, const char *path, struct err *err)
{
	struct gguf *g = NULL;
	int rc = -1;

	if (gguf_open(&g, path, err) < 0)
		return -1;
	if (read_pre(t, g, err) == 0 && read_tokens(t, g, err) == 0 && read_merges(t, g, err) == 0)
		rc = read_ids(t, g, err);
	gguf_close(g);
	return rc;
}

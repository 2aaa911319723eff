/*
 * The tokenizer as GGUF keys: every id, merges, special ids, BOS and EOS rules, the chat template
 * (K8, R10).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/text/tokenizer.h"
#include "tools/tune-ckpt/ckpt.h"

/* llama.cpp's token types. */
enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_UNUSED = 5 };

/* Strings that are collected in one buf, then pointed into. */
struct strings { struct buf text; uint64_t *end; size_t n; };

static int put_strs(struct gguf_w *w, const char *key, const struct strings *s, struct err *err)
{
	struct gguf_str *v = mem_zalloc(s->n, sizeof(*v), err);

	if (!v || buf_ok(&s->text, err) < 0) {
		free(v);
		return -1;
	}
	for (size_t i = 0; i < s->n; i++) {
		uint64_t from = i ? s->end[i - 1] : 0;

		v[i] = (struct gguf_str){ s->text.p + from, s->end[i] - from };
	}
	gguf_w_strs(w, key, v, s->n);
	free(v);
	return 0;
}

/* An entry for each row of the embedding: rows without a token get an unused one (K5). */
static int put_tokens(struct gguf_w *w, const struct tokenizer *t, size_t rows, struct err *err)
{
	struct strings s = { .end = mem_zalloc(rows, sizeof(*s.end), err) };
	int32_t *types = mem_zalloc(rows, sizeof(*types), err);
	int rc = -1;

	if (!s.end || !types)
		goto done;
	for (; s.n < rows; s.n++) {
		enum token_kind kind = TOKEN_UNUSED;
		uint32_t n;

		if (s.n < tokenizer_vocab(t))
			tokenizer_token(t, (uint32_t)s.n, &n, &kind);
		if (kind == TOKEN_UNUSED)
			buf_printf(&s.text, "[PAD%zu]", s.n);
		else
			tokenizer_spelling(t, (uint32_t)s.n, &s.text);
		types[s.n] = kind == TOKEN_NORMAL ? TYPE_NORMAL
			: kind == TOKEN_SPECIAL       ? TYPE_CONTROL
			: kind == TOKEN_ADDED         ? TYPE_USER_DEFINED
										  : TYPE_UNUSED;
		s.end[s.n] = s.text.n;
	}
	rc = put_strs(w, "tokenizer.ggml.tokens", &s, err);
	if (rc == 0)
		gguf_w_i32s(w, "tokenizer.ggml.token_type", types, rows);
done:
	buf_release(&s.text);
	free(s.end);
	free(types);
	return rc;
}

static int put_merges(struct gguf_w *w, const struct tokenizer *t, struct err *err)
{
	size_t n = tokenizer_merge_count(t);
	struct strings s = { .end = mem_zalloc(n, sizeof(*s.end), err) };
	int rc;

	if (!s.end)
		return -1;
	for (; s.n < n; s.n++) {
		uint32_t left, right;

		tokenizer_merge(t, s.n, &left, &right);
		tokenizer_spelling(t, left, &s.text);
		buf_putc(&s.text, ' ');
		tokenizer_spelling(t, right, &s.text);
		s.end[s.n] = s.text.n;
	}
	rc = put_strs(w, "tokenizer.ggml.merges", &s, err);
	buf_release(&s.text);
	free(s.end);
	return rc;
}

/*
 * Of the ids that end an answer GGUF names the end of text (eos), of a turn (eot) and of a message
 * (eom).  eos is the tokenizer's own; what is left of the list goes to eot, first a token that is
 * known as one.
 */
static void put_stops(struct gguf_w *w, const struct job *j, const struct tokenizer *t)
{
	static const char *const turns[] = { "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>",
		"<|endoftext|>" };
	uint32_t stops[32];
	size_t n = tokenizer_stop_ids(t, stops), left = 0;
	int64_t eos = tokenizer_eos(t), eom = tokenizer_find(t, "<|eom_id|>"), eot = -1;
	bool has_eom = false;

	if (eos < 0 && n)
		eos = stops[0];
	for (size_t k = 0; k < sizeof(turns) / sizeof(turns[0]) && eot < 0; k++)
		for (size_t i = 0; i < n; i++)
			if (stops[i] != eos && tokenizer_find(t, turns[k]) == stops[i])
				eot = stops[i];
	for (size_t i = 0; i < n; i++) {
		has_eom = has_eom || stops[i] == eom;
		if (stops[i] == eos || stops[i] == eot || stops[i] == eom)
			continue;
		if (eot < 0)
			eot = stops[i];
		else
			left++;
	}
	if (eos >= 0)
		gguf_w_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos);
	if (eot >= 0)
		gguf_w_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)eot);
	if (has_eom && eom != eos && eom != eot)
		gguf_w_u32(w, "tokenizer.ggml.eom_token_id", (uint32_t)eom);
	if (left)
		tool_warn(
			j->tool, "%zu of the %zu ids that end an answer have no place in a GGUF file", left, n);
}

/* The tokenizer that goes along: the adapter's own, if it has one. */
static int open_tokenizer(struct tokenizer **t, const struct job *j, struct err *err)
{
	if (j->ad && dir_has(j->m.adapter_dir, "tokenizer.json"))
		return tokenizer_open(t, j->m.adapter_dir, err);
	return tokenizer_open(t, j->m.gguf_path ? j->m.gguf_path : j->m.dir, err);
}

int gguf_tokenizer(struct gguf_w *w, const struct job *j, struct err *err)
{
	uint32_t rows = (uint32_t)j->m.arch.vocab;
	struct tokenizer *t;
	const char *pre, *chat;
	int rc = -1;

	if (open_tokenizer(&t, j, err) < 0)
		return -1;
	pre = tokenizer_gguf_pre(t);
	chat = tokenizer_chat_template(t);
	if (!pre) {
		err_set(err, EX_DATAERR, "%s: GGUF has no name for the pre-tokenizer '%s'",
			tokenizer_source(t), tokenizer_pretokenizer(t));
		goto done;
	}
	if (tokenizer_vocab(t) > rows) {
		err_set(err, EX_DATAERR,
			"%s: the tokenizer has %u ids, but the model's embedding only %u rows",
			tokenizer_source(t), tokenizer_vocab(t), rows);
		goto done;
	}
	gguf_w_str(w, "tokenizer.ggml.model", "gpt2", 4);
	gguf_w_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
	if (put_tokens(w, t, rows, err) < 0 || put_merges(w, t, err) < 0)
		goto done;
	if (tokenizer_bos(t) >= 0)
		gguf_w_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)tokenizer_bos(t));
	put_stops(w, j, t);
	if (tokenizer_pad(t) >= 0)
		gguf_w_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)tokenizer_pad(t));
	gguf_w_bool(w, "tokenizer.ggml.add_bos_token", tokenizer_add_bos(t));
	gguf_w_bool(w, "tokenizer.ggml.add_eos_token", tokenizer_add_eos(t));
	if (chat)
		gguf_w_str(w, "tokenizer.chat_template", chat, strlen(chat));
	rc = 0;
done:
	tokenizer_close(t);
	return rc;
}

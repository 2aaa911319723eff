/* tokenizer_json: writes a tokenizer as the files of a Hugging Face folder. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/json.h"
#include "libcommon/outfile.h"
#include "libcommon/file.h"
#include "libcommon/text/tok.h"

static void name_str(struct json_w *w, const char *name, const char *s)
{
	json_w_name(w, name);
	json_w_str(w, s);
}

static void name_bool(struct json_w *w, const char *name, bool v)
{
	json_w_name(w, name);
	json_w_bool(w, v);
}

static void name_null(struct json_w *w, const char *name)
{
	json_w_name(w, name);
	json_w_null(w);
}

/* The text of a token as other programs name it: an added token's content, else its spelling. */
static void token_name(
    struct json_w *w, const struct tokenizer *t, uint32_t id, struct buf *scratch)
{
	buf_clear(scratch);
	tokenizer_spelling(t, id, scratch);
	json_w_strn(w, scratch->p ? scratch->p : "", scratch->n);
}

static void write_added(struct json_w *w, const struct tokenizer *t)
{
	struct buf s = {0};
	uint32_t id;
	size_t i;

	json_w_name(w, "added_tokens");
	json_w_arr(w);
	for (id = 0; id < t->vocab; id++)
		for (i = 0; i < t->nadded && t->tok[id].kind != TOKEN_NORMAL; i++) {
			const struct added *a = &t->added[i];

			if (a->id != id)
				continue;
			json_w_obj(w);
			json_w_name(w, "id");
			json_w_int(w, id);
			json_w_name(w, "content");
			token_name(w, t, id, &s);
			name_bool(w, "single_word", false);
			name_bool(w, "lstrip", a->lstrip);
			name_bool(w, "rstrip", a->rstrip);
			name_bool(w, "normalized", a->normalized);
			name_bool(w, "special", a->special);
			json_w_end(w);
		}
	json_w_end(w);
	buf_release(&s);
}

static void write_byte_level(struct json_w *w, bool use_regex)
{
	json_w_obj(w);
	name_str(w, "type", "ByteLevel");
	name_bool(w, "add_prefix_space", false);
	name_bool(w, "trim_offsets", true);
	name_bool(w, "use_regex", use_regex);
	json_w_end(w);
}

static void write_pre_tokenizer(struct json_w *w, const struct tokenizer *t)
{
	bool digits = !strcmp(t->pretok->name, "smollm2");

	json_w_name(w, "pre_tokenizer");
	if (!strcmp(t->pretok->name, "gpt2")) {
		write_byte_level(w, true);
		return;
	}
	json_w_obj(w);
	name_str(w, "type", "Sequence");
	json_w_name(w, "pretokenizers");
	json_w_arr(w);
	json_w_obj(w);
	if (digits) {
		name_str(w, "type", "Digits");
		name_bool(w, "individual_digits", true);
	} else {
		name_str(w, "type", "Split");
		json_w_name(w, "pattern");
		json_w_obj(w);
		name_str(w, "Regex", t->pretok->regex);
		json_w_end(w);
		name_str(w, "behavior", "Isolated");
		name_bool(w, "invert", false);
	}
	json_w_end(w);
	write_byte_level(w, digits);
	json_w_end(w);
	json_w_end(w);
}

static void special_piece(struct json_w *w, const struct tokenizer *t, int64_t id, struct buf *s)
{
	json_w_obj(w);
	json_w_name(w, "SpecialToken");
	json_w_obj(w);
	json_w_name(w, "id");
	token_name(w, t, (uint32_t)id, s);
	json_w_name(w, "type_id");
	json_w_int(w, 0);
	json_w_end(w);
	json_w_end(w);
}

static void sequence_piece(struct json_w *w, const char *id, int type_id)
{
	json_w_obj(w);
	json_w_name(w, "Sequence");
	json_w_obj(w);
	name_str(w, "id", id);
	json_w_name(w, "type_id");
	json_w_int(w, type_id);
	json_w_end(w);
	json_w_end(w);
}

/* ByteLevel, or a template with BOS and EOS where the tokenizer adds them to text. */
static void write_post_processor(struct json_w *w, const struct tokenizer *t)
{
	struct buf s = {0};
	bool bos = tokenizer_add_bos(t), eos = tokenizer_add_eos(t);
	int64_t ids[2] = { bos ? t->bos : -1, eos && !(bos && t->eos == t->bos) ? t->eos : -1 };
	int i;

	json_w_name(w, "post_processor");
	if (!bos && !eos) {
		write_byte_level(w, true);
		return;
	}
	json_w_obj(w);
	name_str(w, "type", "TemplateProcessing");
	for (i = 0; i < 2; i++) {
		json_w_name(w, i ? "pair" : "single");
		json_w_arr(w);
		if (bos)
			special_piece(w, t, t->bos, &s);
		sequence_piece(w, "A", 0);
		if (i)
			sequence_piece(w, "B", 1);
		if (eos)
			special_piece(w, t, t->eos, &s);
		json_w_end(w);
	}
	json_w_name(w, "special_tokens");
	json_w_obj(w);
	for (i = 0; i < 2; i++) {
		if (ids[i] < 0)
			continue;
		buf_clear(&s);
		tokenizer_spelling(t, (uint32_t)ids[i], &s);
		json_w_namen(w, s.p, s.n);
		json_w_obj(w);
		json_w_name(w, "id");
		token_name(w, t, (uint32_t)ids[i], &s);
		json_w_name(w, "ids");
		json_w_arr(w);
		json_w_int(w, ids[i]);
		json_w_end(w);
		json_w_name(w, "tokens");
		json_w_arr(w);
		token_name(w, t, (uint32_t)ids[i], &s);
		json_w_end(w);
		json_w_end(w);
	}
	json_w_end(w);
	json_w_end(w);
	buf_release(&s);
}

/*
 * Every token is in the vocabulary, added ones too: Hugging Face numbers those that are not by
 * itself, which would not give these ids back. Spellings must differ for that.
 */
static int write_model(struct json_w *w, const struct tokenizer *t, struct err *err)
{
	struct buf s = {0};
	uint32_t id;
	size_t i;

	json_w_name(w, "model");
	json_w_obj(w);
	name_str(w, "type", "BPE");
	name_null(w, "dropout");
	json_w_name(w, "unk_token");
	if (t->unk >= 0)
		token_name(w, t, (uint32_t)t->unk, &s);
	else
		json_w_null(w);
	name_null(w, "continuing_subword_prefix");
	name_null(w, "end_of_word_suffix");
	name_bool(w, "fuse_unk", t->fuse_unk);
	name_bool(w, "byte_fallback", false);
	name_bool(w, "ignore_merges", t->ignore_merges);
	json_w_name(w, "vocab");
	json_w_obj(w);
	for (id = 0; id < t->vocab; id++) {
		if (t->tok[id].kind == TOKEN_UNUSED)
			continue;
		buf_clear(&s);
		tokenizer_spelling(t, id, &s);
		if (!t->tok[id].model && s.p && tok_lookup(t, s.p, s.n) != TOK_NONE) {
			err_set(err, EX_DATAERR,
			    "token %lu ('%s') and another are spelled the same in tokenizer.json",
			    (unsigned long)id, s.p);
			buf_release(&s);
			return -1;
		}
		json_w_namen(w, s.p ? s.p : "", s.n);
		json_w_int(w, id);
	}
	json_w_end(w);
	json_w_name(w, "merges");
	json_w_arr(w);
	for (i = 0; i < t->nmerges; i++) {
		json_w_arr(w);
		token_name(w, t, t->merges[i].left, &s);
		token_name(w, t, t->merges[i].right, &s);
		json_w_end(w);
	}
	json_w_end(w);
	json_w_end(w);
	buf_release(&s);
	return 0;
}

static int write_tokenizer(struct buf *out, const struct tokenizer *t, struct err *err)
{
	struct json_w w = { .out = out };

	json_w_obj(&w);
	name_str(&w, "version", "1.0");
	name_null(&w, "truncation");
	name_null(&w, "padding");
	write_added(&w, t);
	json_w_name(&w, "normalizer");
	if (t->nfc) {
		json_w_obj(&w);
		name_str(&w, "type", "NFC");
		json_w_end(&w);
	} else {
		json_w_null(&w);
	}
	write_pre_tokenizer(&w, t);
	write_post_processor(&w, t);
	json_w_name(&w, "decoder");
	write_byte_level(&w, true);
	if (write_model(&w, t, err) < 0)
		return -1;
	json_w_end(&w);
	buf_putc(out, '\n');
	return buf_ok(out, err);
}

static int write_config(struct buf *out, const struct tokenizer *t, struct err *err)
{
	static const char *const names[] = { "bos_token", "eos_token", "pad_token" };
	const int64_t ids[] = { t->bos, t->eos, t->pad };
	struct json_w w = { .out = out, .indent = 2 };
	struct buf s = {0};
	size_t i;

	json_w_obj(&w);
	name_str(&w, "tokenizer_class", "PreTrainedTokenizerFast");
	name_bool(&w, "add_bos_token", tokenizer_add_bos(t));
	name_bool(&w, "add_eos_token", tokenizer_add_eos(t));
	name_bool(&w, "clean_up_tokenization_spaces", false);
	for (i = 0; i < 3; i++) {
		json_w_name(&w, names[i]);
		if (ids[i] >= 0)
			token_name(&w, t, (uint32_t)ids[i], &s);
		else
			json_w_null(&w);
	}
	if (t->chat_template)
		name_str(&w, "chat_template", t->chat_template);
	json_w_end(&w);
	buf_putc(out, '\n');
	buf_release(&s);
	return buf_ok(out, err);
}

static int write_file(const char *dir, const char *name, const struct buf *b, struct err *err)
{
	struct outfile f = {0};
	char *path = path_join(dir, name);
	int rc = -1;

	if (!path)
		return err_oom(err, strlen(dir));
	if (outfile_open(&f, path, true, err) < 0)
		goto done;
	if (fwrite(b->p, 1, b->n, f.fp) != b->n) {
		err_errno(err, EX_IOERR, "cannot write '%s'", path);
		goto done;
	}
	rc = outfile_commit(&f, err);
done:
	outfile_abort(&f);
	free(path);
	return rc;
}

int tokenizer_write_hf(const struct tokenizer *t, const char *dir, struct err *err)
{
	struct buf json = {0}, config = {0};
	int rc = -1;

	if (write_tokenizer(&json, t, err) == 0 && write_config(&config, t, err) == 0 &&
	    write_file(dir, "tokenizer.json", &json, err) == 0)
		rc = write_file(dir, "tokenizer_config.json", &config, err);
	buf_release(&json);
	buf_release(&config);
	return rc;
}

/* Tokenizers: Hugging Face's ids, the same from tokenizer.json and GGUF, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/formats/gguf.h"
#include "libcommon/json.h"
#include "libcommon/outfile.h"
#include "libcommon/text/tokenizer.h"
#include "tap.h"

static const char *const kinds[] = { "gpt2", "llama3", "qwen2", "smollm2" };
static char dir[64]; /* for files of tests */
static const char *top;

static const char *path_of(const char *folder, const char *name)
{
	static char path[8][1024];
	static int k;

	snprintf(path[k = (k + 1) % 8], sizeof(path[0]), "%s/%s", folder, name);
	return path[k];
}

static const char *golden(const char *name)
{
	static char folder[512];

	snprintf(folder, sizeof(folder), "%s/tests/golden/tokenizers", top);
	return path_of(folder, name);
}

static struct tokenizer *must_open(const char *path)
{
	struct tokenizer *t;
	struct err err = {0};

	if (tokenizer_open(&t, path, &err) < 0) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	return t;
}

static struct encoder *must_encoder(const struct tokenizer *t)
{
	struct encoder *e;
	struct err err = {0};

	if (encoder_new(&e, t, &err) < 0)
		abort();
	return e;
}

static void put_file(const char *name, const char *text)
{
	struct outfile f = {0};
	struct err err = {0};

	if (outfile_open(&f, path_of(dir, name), true, &err) < 0 || fputs(text, f.fp) < 0 ||
	    outfile_commit(&f, &err) < 0) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
}

static bool same_ids(const struct json *row, const struct encoding *o)
{
	const struct json *ids = json_get(row, "ids");
	char hex[SHA256_HEX];
	struct sha256 *h;
	struct err err = {0};
	size_t i;

	if (!ids) {
		h = sha256_new(&err);
		for (i = 0; i < o->n; i++)
			sha256_add_u32(h, o->ids[i]);
		sha256_end(h, hex);
		return (int64_t)o->n == json_get(row, "count")->i &&
		    json_str_eq(json_get(row, "sha256"), hex);
	}
	for (i = 0; i < o->n && i < ids->n && ids->items[i].i == o->ids[i]; i++)
		;
	return i == o->n && i == ids->n;
}

/* Spans follow each other over the whole text; each is as long as its token. */
static bool exact_spans(const struct tokenizer *t, const struct encoding *o, size_t n)
{
	uint32_t at = 0, len;
	size_t i;

	for (i = 0; i < o->n; i++) {
		tokenizer_token(t, o->ids[i], &len, NULL);
		if (o->spans[i].begin != at || o->spans[i].end != at + len)
			return false;
		at += len;
	}
	return at == n;
}

struct tally {
	int rows, ids, decoded, spans;
};

static void golden_row(
    const struct tokenizer *t, struct encoder *e, const struct json *row, bool nfc, struct tally *y)
{
	const struct json *text = json_get(row, "text"), *times = json_get(row, "times");
	struct buf whole = {0}, back = {0};
	struct encoding o;
	struct err err = {0};
	int64_t i;
	bool lossy = json_get(row, "lossy") != NULL;

	for (i = 0; i < (times ? times->i : 1); i++)
		buf_put(&whole, text->s, text->n);
	y->rows++;
	if (encode(e, whole.p, whole.n, json_get(row, "specials")->b, &o, &err) < 0 ||
	    decode(t, o.ids, o.n, false, &back, &err) < 0) {
		printf("# %s\n", err.msg);
		goto done;
	}
	y->ids += same_ids(row, &o);
	if (!same_ids(row, &o))
		printf("# differs: %.100s\n", text->s);
	y->decoded +=
	    lossy != (back.n == whole.n && (!whole.n || !memcmp(back.p, whole.p, whole.n)));
	y->spans += (nfc && lossy) || o.dropped || exact_spans(t, &o, whole.n);
done:
	buf_release(&whole);
	buf_release(&back);
}

/* All golden rows of a kind, twice, so that the second time finds its pieces in the cache. */
static struct tally golden_rows(const struct tokenizer *t, const char *kind)
{
	struct encoder *e = must_encoder(t);
	struct json_doc doc = {0};
	struct tally y = {0};
	struct buf b = {0};
	struct err err = {0};
	char name[64], *p, *nl;
	int pass;

	snprintf(name, sizeof(name), "%s.jsonl", kind);
	if (file_read(golden(name), 64 << 20, &b, &err) < 0)
		printf("# %s\n", err.msg);
	for (pass = 0; pass < 2; pass++)
		for (p = b.p; p < b.p + b.n && (nl = memchr(p, '\n', (size_t)(b.p + b.n - p)));
		     p = nl + 1)
			if (json_parse(&doc, p, (size_t)(nl - p), name, 1, &err) < 0)
				printf("# %s\n", err.msg);
			else
				golden_row(t, e, &doc.root, !strcmp(kind, "qwen2"), &y);
	json_release(&doc);
	buf_release(&b);
	encoder_free(e);
	return y;
}

static void test_golden(const char *kind, const char *file, const char *what)
{
	struct tokenizer *t = must_open(file);
	struct tally y = golden_rows(t, kind);

	ok(!strcmp(tokenizer_pretokenizer(t), kind), "%s: the pre-tokenizer of %s is recognised",
	    kind, what);
	ok(y.rows > 1900 && y.ids == y.rows,
	    "MUST-5 K1 K2 %s: %d of %d rows of ids equal Hugging Face's (%s)", kind, y.ids, y.rows,
	    what);
	ok(y.decoded == y.rows,
	    "K1 %s: decoding gives the bytes back, or fails to where Hugging Face fails", kind);
	ok(y.spans == y.rows, "%s: spans are the bytes of the text, one after the other", kind);
	tokenizer_close(t);
}

static bool same_vocabulary(const struct tokenizer *a, const struct tokenizer *b)
{
	uint32_t id, na, nb;
	enum token_kind ka, kb;

	for (id = 0; id < tokenizer_vocab(a); id++) {
		const char *x = tokenizer_token(a, id, &na, &ka),
		           *y = tokenizer_token(b, id, &nb, &kb);

		if (na != nb || memcmp(x, y, na) || ka != kb)
			return false;
	}
	return tokenizer_vocab(a) == tokenizer_vocab(b) &&
	    tokenizer_merge_count(a) == tokenizer_merge_count(b) &&
	    tokenizer_bos(a) == tokenizer_bos(b) && tokenizer_eos(a) == tokenizer_eos(b) &&
	    tokenizer_pad(a) == tokenizer_pad(b) && tokenizer_add_bos(a) == tokenizer_add_bos(b);
}

static void test_identity(const char *kind)
{
	struct tokenizer *json = must_open(golden(kind)), *gguf, *written;
	struct err err = {0};
	const char *a, *b;
	char name[64];

	snprintf(name, sizeof(name), "%s.gguf", kind);
	gguf = must_open(golden(name));
	ok(!strcmp(tokenizer_sha256(json), tokenizer_sha256(gguf)),
	    "%s: one identity from tokenizer.json and GGUF (%.12s, %.12s)", kind,
	    tokenizer_sha256(json), tokenizer_sha256(gguf));
	ok(same_vocabulary(json, gguf),
		"K5 K8 %s: the same tokens, kinds, special ids and add_bos; unused rows of the GGUF are no "
		"tokens",
		kind);
	ok(!tokenizer_write_hf(gguf, dir, &err),
	    "%s: the GGUF's tokenizer is written as tokenizer.json", kind);
	written = must_open(dir);
	ok(!strcmp(tokenizer_sha256(json), tokenizer_sha256(written)) &&
	        same_vocabulary(json, written),
	    "%s: and read back the same", kind);
	a = tokenizer_chat_template(json);
	b = tokenizer_chat_template(written);
	ok(a ? b && !strcmp(a, b) : !b, "%s: with its chat template", kind);
	ok(tokenizer_gguf_pre(json) && !strcmp(tokenizer_gguf_pre(json), tokenizer_gguf_pre(gguf)),
	    "%s: is %s in a GGUF", kind, tokenizer_gguf_pre(json));
	tokenizer_close(json);
	tokenizer_close(gguf);
	tokenizer_close(written);
}

static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"</s>\":3,\"<x>\":4,\"<y>\":5,\"<z>\":6}";
static const char byte_level[] =
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}";

struct parts {
	const char *normalizer, *pre, *model, *merges, *decoder, *added;
};

static void put_tokenizer(struct parts p)
{
	struct buf b = {0};

	buf_printf(&b,
		"{\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":null,"
		"\"decoder\":%s,"
		"\"model\":{\"type\":%s,\"vocab\":%s,\"merges\":%s}}",
		p.added ? p.added : "", p.normalizer ? p.normalizer : "null", p.pre ? p.pre : byte_level,
		p.decoder ? p.decoder : byte_level, p.model ? p.model : "\"BPE\"", vocab,
		p.merges ? p.merges : "[\"a b\"]");
	put_file("tokenizer.json", b.p);
	buf_release(&b);
}

/* Opening path fails with code 65 and a message that holds all of `want`. */
static void refused(const char *path, const char *want, const char *what)
{
	struct tokenizer *t = NULL;
	struct err err = {0};
	int rc = tokenizer_open(&t, path, &err);

	ok(rc < 0 && !t && err.code == EX_DATAERR && strstr(err.msg, want), "K2 refused: %s", what);
	if (rc == 0 || !strstr(err.msg, want))
		printf("# got: %s\n", rc ? err.msg : "opened");
	tokenizer_close(t);
}

static void test_refusals(void)
{
	static const struct {
		struct parts p;
		const char *want;
	} t[] = {
		{ { .pre = "{\"type\":\"Whitespace\"}" },
			"tokenizer.json: pre_tokenizer.type: 'Whitespace' is not one of ByteLevel, Sequence" },
		{ { .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
				   "\"Regex\":\"\\\\d+\"},\"behavior\":\"Isolated\"},{}]}" },
			"pre_tokenizer.pretokenizers[0].pattern.Regex: regex '\\d+' is not one of" },
		{ { .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
				   "\"String\":\" \"},\"behavior\":\"Isolated\"},{}]}" },
			"pre_tokenizer.pretokenizers[0].pattern" },
		{ { .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_"
				   "digits\":false},{}]}" },
			"pre_tokenizer.pretokenizers[0].individual_digits: false" },
		{ { .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}" },
			"pre_tokenizer.add_prefix_space: true" },
		{ { .pre = "null" }, "pre_tokenizer" },
		{ { .normalizer = "{\"type\":\"Lowercase\"}" },
			"normalizer.type: 'Lowercase' is not one of NFC" },
		{ { .normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"}]}" },
			"normalizer.normalizers[0].type: 'NFKC'" },
		{ { .decoder = "{\"type\":\"Metaspace\"}" },
			"decoder.type: 'Metaspace' is not one of ByteLevel" },
		{ { .model = "\"Unigram\"" }, "model.type: 'Unigram' is not one of BPE" },
		{ { .model = "\"BPE\",\"dropout\":0.1" }, "model.dropout" },
		{ { .model = "\"BPE\",\"byte_fallback\":true" }, "model.byte_fallback: true" },
		{ { .model = "\"BPE\",\"end_of_word_suffix\":\"</w>\"" }, "model.end_of_word_suffix" },
		{ { .merges = "[\"a b\",\"a q\"]" }, "model.merges[1]: 'a' and 'q'" },
		{ { .merges = "[7]" }, "model.merges[0]: must be" },
		{ { .merges = "[\"b a\"]" }, "model.merges[0]: 'b' and 'a'" },
		{ { .added = "{\"id\":9,\"content\":\"<new>\"}" },
			"added_tokens[0]: '<new>' has id 9 here and 7 by its place" },
		{ { .added = "{\"id\":3,\"content\":\"<x>\"}" },
			"added_tokens[0]: '<x>' has id 3 here and 4 elsewhere" },
		{ { .added = "{\"id\":4,\"content\":\"<x>\",\"single_word\":true}" },
			"added_tokens[0].single_word: true" },
		{ { .added = "{\"id\":4}" }, "added_tokens[0].content: must be a string" },
	};
	struct buf b = {0};
	struct err err = {0};
	size_t i, n;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		put_tokenizer(t[i].p);
		refused(dir, t[i].want, t[i].want);
	}
	put_file("tokenizer.json", "[]");
	refused(dir, "must be an object, found an array", "an array");
	if (file_read(golden("llama3/tokenizer.json"), 1 << 24, &b, &err) == 0)
		for (n = 0; n < 5; n++) { /* the last byte is white space or the closing brace */
			b.p[b.n - 1 - n * b.n / 5] = 0;
			put_file("tokenizer.json", b.p);
			refused(dir, "tokenizer.json", "a cut tokenizer.json");
		}
	buf_release(&b);
}

/* A GGUF with the vocabulary above; model or pre NULL: without that key. */
static const char *put_gguf(const char *model, const char *pre, const char *merge, int types)
{
	static const char *const tokens[] = { "a", "b", "ab", "</s>", "<x>" };
	static const int32_t kind[] = { 1, 1, 1, 3, 4 };
	struct gguf_str s[5], m = { merge, strlen(merge) };
	struct outfile f = {0};
	struct gguf_w *w;
	struct err err = {0};
	size_t i;

	for (i = 0; i < 5; i++)
		s[i] = (struct gguf_str){ tokens[i], strlen(tokens[i]) };
	if (gguf_w_new(&w, &err) < 0)
		abort();
	gguf_w_str(w, "general.architecture", "llama", 5);
	if (model)
		gguf_w_str(w, "tokenizer.ggml.model", model, strlen(model));
	if (pre)
		gguf_w_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
	gguf_w_strs(w, "tokenizer.ggml.tokens", s, 5);
	if (types)
		gguf_w_i32s(w, "tokenizer.ggml.token_type", kind, (uint64_t)types);
	gguf_w_strs(w, "tokenizer.ggml.merges", &m, 1);
	gguf_w_u32(w, "tokenizer.ggml.eos_token_id", 3);
	gguf_w_u32(w, "tokenizer.ggml.eot_token_id", 4);
	if (outfile_open(&f, path_of(dir, "t.gguf"), true, &err) < 0 ||
	    gguf_w_begin(w, f.fp, "t.gguf", &err) < 0 || gguf_w_finish(w, &err) < 0 ||
	    outfile_commit(&f, &err) < 0)
		printf("# %s\n", err.msg);
	gguf_w_free(w);
	return path_of(dir, "t.gguf");
}

static void test_gguf(void)
{
	struct tokenizer *t;
	uint32_t stops[32];

	refused(put_gguf("llama", "default", "a b", 5), "tokenizer.ggml.model: 'llama' is not gpt2",
	    "a GGUF of another model");
	refused(put_gguf("gpt2", NULL, "a b", 5),
	    "model.tokenizer=", "K2 a GGUF without pre names the way out");
	refused(put_gguf("gpt2", "dbrx", "a b", 5), "tokenizer.ggml.pre: 'dbrx' is not one of",
	    "a GGUF of an unknown pre");
	refused(put_gguf(NULL, "gpt-2", "a b", 5), "tokenizer.ggml.model",
	    "a GGUF without a tokenizer");
	refused(put_gguf("gpt2", "gpt-2", "ab", 5), "merges[0]", "a merge without a space");
	refused(put_gguf("gpt2", "gpt-2", "b b", 5), "merges[0]: 'b' and 'b'",
	    "a merge that makes no token");
	refused(put_gguf("gpt2", "gpt-2", "a b", 4), "token_type", "fewer types than tokens");
	t = must_open(put_gguf("gpt2", "llama-bpe", "a b", 5));
	ok(tokenizer_stop_ids(t, stops) == 2 && stops[0] == 3 && stops[1] == 4,
	    "E4 MUST-2 a GGUF's eos and eot both end an answer");
	ok(tokenizer_find(t, "</s>") == 3 && tokenizer_find(t, "<x>") == 4 &&
	        tokenizer_find(t, "ab") == -1,
	    "added tokens are found by text");
	ok(!tokenizer_add_bos(t), "add_bos without a BOS is none");
	tokenizer_close(t);
}

static bool stops_are(const struct tokenizer *t, size_t n, const uint32_t *want)
{
	uint32_t ids[32];
	size_t i, have = tokenizer_stop_ids(t, ids);

	for (i = 0; i < have && i < n && ids[i] == want[i]; i++)
		;
	return i == n && have == n;
}

static void test_configs(void)
{
	struct tokenizer *t;
	struct err err = {0};

	put_tokenizer((struct parts){ .added = "{\"id\":4,\"content\":\"<x>\",\"special\":true},{"
										   "\"id\":7,\"content\":\"<|im_end|>\",\"special\":true},"
										   "{\"id\":8,\"content\":\"<new>\",\"special\":false}" });
	t = must_open(dir);
	ok(tokenizer_vocab(t) == 9 && tokenizer_eos(t) == -1 && stops_are(t, 0, NULL),
	    "without configs there is no eos");
	tokenizer_close(t);
	put_file("tokenizer_config.json",
		"{\"eos_token\":{\"content\":\"</s>\"},\"bos_token\":\"<x>\",\"add_bos_token\":true,"
		"\"chat_template\":[{\"name\":\"tool\",\"template\":\"T\"},{\"name\":\"default\","
		"\"template\":\"D\"}],"
		"\"added_tokens_decoder\":{\"9\":{\"content\":\"<late>\",\"special\":true}}}");
	put_file("generation_config.json", "{\"eos_token_id\":[2,6]}");
	put_file("config.json", "{\"eos_token_id\":2,\"pad_token_id\":5}");
	t = must_open(path_of(dir, "tokenizer.json"));
	ok(stops_are(t, 3, (uint32_t[]){ 3, 2, 6 }),
	    "E4 MUST-2 stops are the union of tokenizer_config, generation_config and config");
	ok(tokenizer_eos(t) == 3 && tokenizer_bos(t) == 4 && tokenizer_pad(t) == 5 &&
	        tokenizer_add_bos(t),
	    "named tokens and ids are found");
	ok(tokenizer_find(t, "</s>") == 3,
	    "an eos that only the vocabulary has is a special token");
	ok(tokenizer_find(t, "<late>") == 9 && tokenizer_vocab(t) == 10,
	    "K5 a token of added_tokens_decoder counts");
	ok(!strcmp(tokenizer_chat_template(t), "D"), "of several templates the default one");
	tokenizer_close(t);
	put_file("chat_template.jinja", "x <|im_end|> y");
	t = must_open(dir);
	ok(!strcmp(tokenizer_chat_template(t), "x <|im_end|> y"), "chat_template.jinja goes first");
	ok(stops_are(t, 4, (uint32_t[]){ 3, 2, 6, 7 }),
	    "E4 an end of turn that the template writes ends an answer");
	tokenizer_close(t);
	put_file("tokenizer_config.json", "{\"eos_token\":\"<gone>\"}");
	refused(dir, "tokenizer_config.json: eos_token: '<gone>' is not a token",
	    "an eos token that is none");
	put_file("tokenizer_config.json", "{\"add_prefix_space\":true}");
	refused(dir, "tokenizer_config.json: add_prefix_space: true", "add_prefix_space");
	put_file("tokenizer_config.json", "{}");
	put_file("config.json", "{\"eos_token_id\":99}");
	refused(dir, "config.json: eos_token_id: id 99 is not below",
	    "K5 an eos beyond the vocabulary");
	ok(tokenizer_open(&t, path_of(dir, "nowhere"), &err) < 0 && err.code == EX_NOINPUT && !t,
	    "a path that is not there is 66");
	unlink(path_of(dir, "chat_template.jinja"));
	unlink(path_of(dir, "config.json"));
	unlink(path_of(dir, "generation_config.json"));
	unlink(path_of(dir, "tokenizer_config.json"));
}

/* encode_masked() of text where `user` marks bytes that may not be control tokens with 'u'. */
static bool masked_is(
    struct encoder *e, const char *text, const char *user, size_t n, const uint32_t *want)
{
	uint8_t allowed[64];
	struct encoding o;
	struct err err = {0};
	size_t i;

	for (i = 0; text[i]; i++)
		allowed[i] = user[i] != 'u';
	if (encode_masked(e, text, i, allowed, &o, &err) < 0)
		return false;
	for (i = 0; i < n && i < o.n && o.ids[i] == want[i]; i++)
		;
	return i == n && o.n == n;
}

static size_t plain_ids(struct encoder *e, const char *text, uint32_t *ids)
{
	struct encoding o;
	struct err err = {0};

	if (encode(e, text, strlen(text), false, &o, &err) < 0)
		abort();
	memcpy(ids, o.ids, o.n * sizeof(*ids));
	return o.n;
}

static void test_masked(void)
{
	struct tokenizer *t = must_open(golden("llama3")), *q = must_open(golden("qwen2"));
	struct encoder *e = must_encoder(t), *eq = must_encoder(q);
	uint32_t eot = (uint32_t)tokenizer_find(t, "<|eot_id|>"),
	         think = (uint32_t)tokenizer_find(q, "<think>"), ids[64];
	size_t n = plain_ids(e, "<|eot_id|>", ids + 1), x;

	ids[0] = eot;
	ok(masked_is(e, "<|eot_id|><|eot_id|>", "ttttttttttuuuuuuuuuu", 1 + n, ids),
	    "D8 a special token in user text is text, the template's is not");
	n = plain_ids(e, "<|eot_id|>", ids);
	ok(masked_is(e, "<|eot_id|>", "tttttuuuuu", n, ids),
	    "D8 one that the template begins and the user ends is text");
	ids[0] = eot;
	x = plain_ids(e, "x", ids + 1);
	ok(masked_is(e, "<|eot_id|>x", "ttttttttttu", 1 + x, ids),
	    "D8 user text can't turn the template's token into a longer one");
	ids[0] = (uint32_t)tokenizer_find(t, "<|eot_id|>x");
	ok(masked_is(e, "<|eot_id|>x", "ttttttttttt", 1, ids),
	    "the longest token that may stand there is taken");
	ok(masked_is(eq, "<think>", "uuuuuuu", 1, &think),
	    "an added token that is not special matches in user text too");
	encoder_free(e);
	encoder_free(eq);
	tokenizer_close(t);
	tokenizer_close(q);
}

static void test_nfc_spans(void)
{
	static const char text[] = "ab caf"
	                           "e\xCC\x81"
	                           " \xE2\x84\xAB"
	                           "x"; /* e + U+0301, U+212B */
	struct tokenizer *t = must_open(golden("qwen2"));
	struct encoder *e = must_encoder(t);
	struct encoding o;
	struct err err = {0};
	struct buf back = {0};
	size_t i;
	uint32_t at = 0;
	bool good = true;

	if (encode(e, text, strlen(text), false, &o, &err) < 0 ||
	    decode(t, o.ids, o.n, false, &back, &err) < 0)
		abort();
	ok(!strcmp(back.p, "ab caf\xC3\xA9 \xC3\x85x"), "NFC composes before BPE");
	for (i = 0; i < o.n; i++) {
		/* Within a place that changed tokens share its source; else each begins where the
		 * last ended. */
		good = good && o.spans[i].end > o.spans[i].begin && o.spans[i].begin <= at &&
		    o.spans[i].end >= at;
		at = o.spans[i].end;
	}
	ok(good && at == strlen(text), "spans of normalised text cover the source");
	ok(o.spans[o.n - 1].end == strlen(text) && text[o.spans[o.n - 1].end - 1] == 'x',
	    "and end in step with it");
	buf_release(&back);
	encoder_free(e);
	tokenizer_close(t);
}

static void test_errors_and_size(void)
{
	struct tokenizer *t = must_open(golden("smollm2"));
	struct encoder *e = must_encoder(t), *fresh;
	struct encoding o;
	struct err err = {0};
	struct buf b = {0}, out = {0};
	uint32_t big[2] = { 0, tokenizer_vocab(t) }, kept[64],
	         skipped = (uint32_t)tokenizer_find(t, "<|im_end|>");
	size_t i, n;

	ok(encode(e,
	       "ab\xFF"
	       "c",
	       4, false, &o, &err) < 0 &&
	        err.code == EX_DATAERR && strstr(err.msg, "byte 2 of the text is not UTF-8"),
	    "K1 bytes that are not UTF-8 are refused with their place");
	ok(encode(e, "12345678\xED\xA0\x80", 11, false, &o, &err) < 0 && strstr(err.msg, "byte 8"),
	    "so is a surrogate");
	ok(decode(t, big, 2, false, &out, &err) < 0 && err.code == EX_DATAERR &&
	        strstr(err.msg, "place 1"),
	    "K4 an id that is too large is refused");
	buf_clear(&out);
	ok(!decode(t, (uint32_t[]){ skipped, skipped }, 2, true, &out, &err) && out.n == 0,
	    "skip_special leaves special tokens out");
	ok(!encode(e,
	       "a\xF4\x8F\xBF\xBF"
	       "b",
	       6, false, &o, &err) &&
	        o.dropped > 0,
	    "bytes that the vocabulary lacks are counted");
	for (i = 0; i < 1000000; i++)
		buf_putc(&b, 'a');
	ok(!encode(e, b.p, b.n, false, &o, &err) && o.n > 1000 && o.spans[o.n - 1].end == 1000000,
	    "a million letters without a space are one piece");
	/* More distinct pieces than the cache has slots, then a text whose pieces they may have
	 * pushed out. */
	buf_clear(&b);
	for (i = 0; i < 300000; i++)
		buf_printf(&b, " %zx.", i * 7919);
	n = plain_ids(e, "the cat said: don't eat 12 figs", kept);
	ok(!encode(e, b.p, b.n, false, &o, &err) && exact_spans(t, &o, b.n),
	    "a text of 300000 different words");
	fresh = must_encoder(t);
	ok(plain_ids(e, "the cat said: don't eat 12 figs", kept + 32) == n &&
	        !memcmp(kept, kept + 32, n * 4) &&
	        plain_ids(fresh, "the cat said: don't eat 12 figs", kept + 32) == n &&
	        !memcmp(kept, kept + 32, n * 4),
	    "ids don't depend on what the cache holds");
	buf_release(&b);
	buf_release(&out);
	encoder_free(e);
	encoder_free(fresh);
	tokenizer_close(t);
}

int main(void)
{
	struct err err = {0};
	char file[64];
	size_t i;

	top = getenv("TUNE_TOP") ? getenv("TUNE_TOP") : ".";
	snprintf(dir, sizeof(dir), "/tmp/test_tokenizer.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	for (i = 0; i < 4; i++) {
		test_golden(kinds[i], golden(kinds[i]), "tokenizer.json");
		snprintf(file, sizeof(file), "%s.gguf", kinds[i]);
		test_golden(kinds[i], golden(file), "GGUF");
		test_identity(kinds[i]);
		unlink(path_of(dir, "tokenizer_config.json"));
	}
	test_refusals();
	test_gguf();
	test_configs();
	test_masked();
	test_nfc_spans();
	test_errors_and_size();
	if (remove_tree(dir, &err) < 0)
		printf("# %s\n", err.msg);
	return tap_done();
}

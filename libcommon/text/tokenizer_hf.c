/*
 * tokenizer_hf: a Hugging Face folder -> tokenizer.  What would change ids and is not known here is
 * refused by its JSON path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/json.h"
#include "libcommon/text/tok.h"

enum { TOKENIZER_BYTES_MAX = 1 << 30, CONFIG_BYTES_MAX = 64 << 20, TEMPLATE_BYTES_MAX = 4 << 20 };
static const char remedy[] =
    "tune reads byte-level BPE tokenizers of the gpt2, llama3, qwen2 and smollm2 kind";

static bool absent(const struct json *v)
{
	return !v || v->type == JSON_NULL;
}

static bool empty(const struct json *v)
{
	return absent(v) || (v->type == JSON_STR && !v->n);
}

/* Refuse the part of tokenizer.json at path for its "type" (or its JSON type). */
static int refuse_type(const struct tokenizer *t, const char *path, const struct json *v,
    const char *known, struct err *err)
{
	const struct json *type = json_get(v, "type");

	if (json_is(type, JSON_STR))
		return err_set(err, EX_DATAERR, "%s: %s.type: '%s' is not one of %s; %s", t->source,
		    path, type->s, known, remedy);
	return err_set(err, EX_DATAERR, "%s: %s: must be an object with a type of %s, found %s",
	    t->source, path, known, v ? json_type_name(v->type) : "nothing");
}

/* obj's flag `name` must be `want`; absent is as `missing`. */
static int flag_is(const struct tokenizer *t, const char *path, const struct json *obj,
    const char *name, bool missing, bool want, struct err *err)
{
	bool v = missing;
	char where[4300];

	snprintf(where, sizeof(where), "%s: %s", t->source, path);
	if (!absent(json_get(obj, name)) && json_get_bool(obj, name, &v, where, err) < 0)
		return -1;
	if (v != want)
		return err_set(err, EX_DATAERR, "%s: %s.%s: %s is not supported; %s", t->source,
		    path, name, v ? "true" : "false", remedy);
	return 0;
}

static int read_normalizer(
    struct tokenizer *t, const char *path, const struct json *v, struct err *err)
{
	const struct json *list = json_get(v, "normalizers");
	uint32_t i;
	char at[128];

	if (absent(v))
		return 0;
	if (json_str_eq(json_get(v, "type"), "NFC")) {
		t->nfc = true;
		return 0;
	}
	if (!json_str_eq(json_get(v, "type"), "Sequence") || !json_is(list, JSON_ARR) ||
	    strlen(path) > 64)
		return refuse_type(t, path, v, "NFC, Sequence", err);
	for (i = 0; i < list->n; i++) {
		snprintf(at, sizeof(at), "%s.normalizers[%u]", path, i);
		if (read_normalizer(t, at, &list->items[i], err) < 0)
			return -1;
	}
	return 0;
}

static int read_byte_level(const struct tokenizer *t, const char *path, const struct json *v,
    bool use_regex, struct err *err)
{
	if (!json_str_eq(json_get(v, "type"), "ByteLevel"))
		return refuse_type(t, path, v, "ByteLevel", err);
	if (flag_is(t, path, v, "add_prefix_space", true, false, err) < 0)
		return -1;
	return flag_is(t, path, v, "use_regex", true, use_regex, err);
}

static int read_split(struct tokenizer *t, const char *path, const struct json *v, struct err *err)
{
	const struct json *pattern = json_get(v, "pattern"), *regex = json_get(pattern, "Regex"),
	                  *behavior = json_get(v, "behavior");
	const struct pretok *p;

	if (!json_str_eq(behavior, "Isolated"))
		return err_set(err, EX_DATAERR, "%s: %s.behavior: '%s' is not Isolated; %s",
		    t->source, path, json_is(behavior, JSON_STR) ? behavior->s : "", remedy);
	if (flag_is(t, path, v, "invert", false, false, err) < 0)
		return -1;
	if (!json_is(regex, JSON_STR))
		return err_set(err, EX_DATAERR, "%s: %s.pattern: must be {\"Regex\": \"...\"}; %s",
		    t->source, path, remedy);
	for (p = pretoks; p->name; p++)
		if (p->regex && json_str_eq(regex, p->regex)) {
			t->pretok = p;
			return 0;
		}
	return err_set(err, EX_DATAERR,
	    "%s: %s.pattern.Regex: regex '%s' is not one of gpt2's, llama3's, qwen2's", t->source,
	    path, regex->s);
}

static int read_pre_tokenizer(struct tokenizer *t, const struct json *v, struct err *err)
{
	const struct json *list = json_get(v, "pretokenizers"), *first;

	if (json_str_eq(json_get(v, "type"), "ByteLevel")) {
		t->pretok = pretok_find("gpt2");
		return read_byte_level(t, "pre_tokenizer", v, true, err);
	}
	if (!json_str_eq(json_get(v, "type"), "Sequence"))
		return refuse_type(t, "pre_tokenizer", v, "ByteLevel, Sequence", err);
	if (!json_is(list, JSON_ARR) || list->n != 2)
		return err_set(err, EX_DATAERR,
		    "%s: pre_tokenizer.pretokenizers: must be Split or Digits, then ByteLevel; %s",
		    t->source, remedy);
	first = &list->items[0];
	if (json_str_eq(json_get(first, "type"), "Digits")) {
		t->pretok = pretok_find("smollm2");
		if (flag_is(t, "pre_tokenizer.pretokenizers[0]", first, "individual_digits", false,
		        true, err) < 0)
			return -1;
		return read_byte_level(
		    t, "pre_tokenizer.pretokenizers[1]", &list->items[1], true, err);
	}
	if (!json_str_eq(json_get(first, "type"), "Split"))
		return refuse_type(
		    t, "pre_tokenizer.pretokenizers[0]", first, "Split, Digits", err);
	if (read_split(t, "pre_tokenizer.pretokenizers[0]", first, err) < 0)
		return -1;
	return read_byte_level(t, "pre_tokenizer.pretokenizers[1]", &list->items[1], false, err);
}

/* "x" or {"content": "x"}; NULL for null or nothing. */
static const struct json *token_text(const struct json *v)
{
	if (json_is(v, JSON_OBJ))
		v = json_get(v, "content");
	return json_is(v, JSON_STR) ? v : NULL;
}

/*
 * The id of a token that a config names; one that only the model's vocabulary has becomes a special
 * token, as in transformers.
 */
static int named_token(
    struct tokenizer *t, const struct json *v, int64_t *id, const char *where, struct err *err)
{
	const struct json *s = token_text(v);
	const struct added *a;
	uint32_t i;

	if (absent(v) || empty(s))
		return 0;
	if ((a = tok_find_added(t, s->s, s->n))) {
		*id = a->id;
		return 0;
	}
	if ((i = tok_lookup(t, s->s, s->n)) == TOK_NONE)
		return err_set(
		    err, EX_DATAERR, "%s: '%s' is not a token of %s", where, s->s, t->source);
	*id = i;
	return tok_added(
	    t, &(struct added){ .id = i, .text = s->s, .n = s->n, .special = true }, where, err);
}

/* TemplateProcessing: a token before the text is BOS, one after it EOS; all else is refused. */
static int read_template_processing(
    struct tokenizer *t, const char *path, const struct json *v, struct err *err)
{
	const struct json *single = json_get(v, "single"), *special;
	uint32_t i;
	bool text = false, bad = false, *adds;
	int64_t *id;
	char where[4300];

	snprintf(where, sizeof(where), "%s: %s.single", t->source, path);
	for (i = 0; json_is(single, JSON_ARR) && i < single->n && !bad; i++) {
		special = json_get(&single->items[i], "SpecialToken");
		if (!special) {
			bad = text || !json_get(&single->items[i], "Sequence");
			text = true;
			continue;
		}
		adds = text ? &t->add_eos : &t->add_bos;
		id = text ? &t->eos : &t->bos;
		bad = *adds;
		*adds = true;
		if (!bad && named_token(t, json_get(special, "id"), id, where, err) < 0)
			return -1;
	}
	if (!text || bad)
		return err_set(err, EX_DATAERR,
		    "%s: must be at most one token, the text, at most one token", where);
	return 0;
}

static int read_post_processor(
    struct tokenizer *t, const char *path, const struct json *v, struct err *err)
{
	const struct json *list = json_get(v, "processors"), *type = json_get(v, "type");
	uint32_t i;
	char at[128];

	if (absent(v) || json_str_eq(type, "ByteLevel"))
		return 0;
	if (json_str_eq(type, "TemplateProcessing"))
		return read_template_processing(t, path, v, err);
	if (!json_str_eq(type, "Sequence") || !json_is(list, JSON_ARR) || strlen(path) > 64)
		return refuse_type(t, path, v, "ByteLevel, TemplateProcessing, Sequence", err);
	for (i = 0; i < list->n; i++) {
		snprintf(at, sizeof(at), "%s.processors[%u]", path, i);
		if (read_post_processor(t, at, &list->items[i], err) < 0)
			return -1;
	}
	return 0;
}

static int read_merges(
    struct tokenizer *t, const struct json *list, const char *where, struct err *err)
{
	const struct json *m, *l, *r;
	const char *space;
	uint32_t i;

	if (!json_is(list, JSON_ARR))
		return err_set(err, EX_DATAERR, "%s: must be an array", where);
	for (i = 0; i < list->n; i++) {
		m = &list->items[i];
		if (m->type == JSON_STR && (space = memchr(m->s, ' ', m->n))) {
			if (tok_merge(t, m->s, (size_t)(space - m->s), space + 1,
			        m->n - (size_t)(space + 1 - m->s), where, err) < 0)
				return -1;
			continue;
		}
		l = m->type == JSON_ARR && m->n == 2 ? &m->items[0] : NULL;
		r = l ? &m->items[1] : NULL;
		if (!json_is(l, JSON_STR) || !json_is(r, JSON_STR))
			return err_set(
			    err, EX_DATAERR, "%s[%u]: must be \"a b\" or [\"a\", \"b\"]", where, i);
		if (tok_merge(t, l->s, l->n, r->s, r->n, where, err) < 0)
			return -1;
	}
	return 0;
}

static int read_vocab(
    struct tokenizer *t, const struct json *vocab, const char *where, struct err *err)
{
	uint32_t i;

	if (!json_is(vocab, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: must be an object", where);
	for (i = 0; i < vocab->n; i++) {
		const struct json *name = &vocab->members[i].name, *id = &vocab->members[i].value;

		if (id->type != JSON_INT || id->i < 0 || id->i >= TOK_IDS_MAX)
			return err_set(err, EX_DATAERR,
			    "%s: the id of '%s' must be a whole number from 0 to %d", where,
			    name->s, TOK_IDS_MAX - 1);
		if (tok_token(
		        t, (uint32_t)id->i, name->s, name->n, TOKEN_NORMAL, true, where, err) < 0)
			return -1;
	}
	return tok_index(t, err);
}

static int read_model(struct tokenizer *t, const struct json *m, struct err *err)
{
	const struct json *type = json_get(m, "type"), *dropout = json_get(m, "dropout"),
	                  *unk = json_get(m, "unk_token");
	char where[4300];
	uint32_t id;

	if (!json_is(m, JSON_OBJ) || (type ? !json_str_eq(type, "BPE") : !json_get(m, "merges")))
		return refuse_type(t, "model", m, "BPE", err);
	if (!absent(dropout) && !(dropout->type == JSON_NUM && dropout->d == 0) &&
	    !(dropout->type == JSON_INT && dropout->i == 0))
		return err_set(err, EX_DATAERR,
		    "%s: model.dropout: must be null, as ids would be random", t->source);
	if (!empty(json_get(m, "continuing_subword_prefix")) ||
	    !empty(json_get(m, "end_of_word_suffix")))
		return err_set(err, EX_DATAERR, "%s: model.%s: is not supported; %s", t->source,
		    empty(json_get(m, "continuing_subword_prefix")) ? "end_of_word_suffix"
		                                                    : "continuing_subword_prefix",
		    remedy);
	snprintf(where, sizeof(where), "%s: model", t->source);
	if (flag_is(t, "model", m, "byte_fallback", false, false, err) < 0 ||
	    (!absent(json_get(m, "fuse_unk")) &&
	        json_get_bool(m, "fuse_unk", &t->fuse_unk, where, err) < 0) ||
	    (!absent(json_get(m, "ignore_merges")) &&
	        json_get_bool(m, "ignore_merges", &t->ignore_merges, where, err) < 0))
		return -1;
	snprintf(where, sizeof(where), "%s: model.vocab", t->source);
	if (read_vocab(t, json_get(m, "vocab"), where, err) < 0)
		return -1;
	if (!empty(unk)) {
		if (unk->type != JSON_STR || (id = tok_lookup(t, unk->s, unk->n)) == TOK_NONE)
			return err_set(err, EX_DATAERR,
			    "%s: model.unk_token: must be a token of model.vocab", t->source);
		t->unk = id;
	}
	snprintf(where, sizeof(where), "%s: model.merges", t->source);
	return read_merges(t, json_get(m, "merges"), where, err);
}

/*
 * One entry of added_tokens or added_tokens_decoder.  Hugging Face numbers tokens that the
 * vocabulary lacks itself, one after the other, and disregards the id that is written: where the
 * two differ ids would depend on the program, so that is refused.
 */
static int read_added(struct tokenizer *t, const struct json *v, int64_t id, uint32_t *next,
    const char *where, struct err *err)
{
	const struct json *s = json_get(v, "content");
	struct added a = { .normalized = true };
	bool word = false;
	uint32_t have;
	const struct added *known;

	if (!json_is(s, JSON_STR))
		return err_set(err, EX_DATAERR, "%s.content: must be a string", where);
	a.text = s->s;
	a.n = s->n;
	if (json_get_bool(v, "special", &a.special, where, err) < 0 ||
	    json_get_bool(v, "lstrip", &a.lstrip, where, err) < 0 ||
	    json_get_bool(v, "rstrip", &a.rstrip, where, err) < 0 ||
	    json_get_bool(v, "single_word", &word, where, err) < 0)
		return -1;
	a.normalized = !a.special;
	if (json_get_bool(v, "normalized", &a.normalized, where, err) < 0)
		return -1;
	if (word)
		return err_set(err, EX_DATAERR, "%s.single_word: true is not supported", where);
	have = (known = tok_find_added(t, s->s, s->n)) ? known->id : tok_lookup(t, s->s, s->n);
	if (have != TOK_NONE ? have != id : *next != id)
		return err_set(err, EX_DATAERR, "%s: '%s' has id %lld here and %lu %s", where, s->s,
		    (long long)id, (unsigned long)(have != TOK_NONE ? have : *next),
		    have != TOK_NONE ? "elsewhere" : "by its place, as other programs number it");
	a.id = (uint32_t)id;
	if (have == TOK_NONE && tok_token(t, a.id, s->s, s->n, TOKEN_ADDED, false, where, err) < 0)
		return -1;
	if (a.id >= *next)
		*next = a.id + 1;
	return tok_added(t, &a, where, err);
}

static int read_added_tokens(
    struct tokenizer *t, const struct json *list, uint32_t *next, struct err *err)
{
	uint32_t i;
	int64_t id;
	char where[4300];

	if (absent(list))
		return 0;
	if (list->type != JSON_ARR)
		return err_set(err, EX_DATAERR, "%s: added_tokens: must be an array", t->source);
	for (i = 0; i < list->n; i++) {
		snprintf(where, sizeof(where), "%s: added_tokens[%u]", t->source, i);
		id = -1;
		if (json_get_int(&list->items[i], "id", &id, where, err) < 0 ||
		    read_added(t, &list->items[i], id, next, where, err) < 0)
			return -1;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* tokenizer_config.json's added_tokens_decoder: {"0": {...}, ...}, taken in the order of ids. */
static int read_added_decoder(
    struct tokenizer *t, const char *path, const struct json *obj, uint32_t *next, struct err *err)
{
	struct entry {
		int64_t id;
		uint32_t at;
	} *e;
	uint32_t i;
	char where[4300], *end;
	int rc = -1;

	if (!json_is(obj, JSON_OBJ))
		return 0;
	if (!(e = mem_zalloc(obj->n, sizeof(*e), err)))
		return -1;
	for (i = 0; i < obj->n; i++) {
		e[i] = (struct entry){ strtoll(obj->members[i].name.s, &end, 10), i };
		if (*end || end == obj->members[i].name.s) {
			err_set(err, EX_DATAERR, "%s: added_tokens_decoder: '%s' is not an id",
			    path, obj->members[i].name.s);
			goto done;
		}
	}
	qsort(e, obj->n, sizeof(*e), by_id);
	for (i = 0; i < obj->n; i++) {
		snprintf(where, sizeof(where), "%s: added_tokens_decoder.%lld", path,
		    (long long)e[i].id);
		if (read_added(t, &obj->members[e[i].at].value, e[i].id, next, where, err) < 0)
			goto done;
	}
	rc = 0;
done:
	free(e);
	return rc;
}

static int set_template(
    struct tokenizer *t, const char *s, size_t n, const char *where, struct err *err)
{
	if (memchr(s, 0, n))
		return err_set(err, EX_DATAERR, "%s: the chat template holds a NUL", where);
	free(t->chat_template);
	t->chat_template = mem_strndup(s, n, err);
	return t->chat_template ? 0 : -1;
}

/* A string, or an array of {name, template} of which "default" counts. */
static int read_template(
    struct tokenizer *t, const char *path, const struct json *v, struct err *err)
{
	uint32_t i;

	for (i = 0; json_is(v, JSON_ARR) && i < v->n; i++)
		if (json_str_eq(json_get(&v->items[i], "name"), "default"))
			return read_template(t, path, json_get(&v->items[i], "template"), err);
	return json_is(v, JSON_STR) ? set_template(t, v->s, v->n, path, err) : 0;
}

/* Parse dir/name if it is there: 1, else 0. */
static int parse_optional(
    const char *dir, const char *name, struct json_doc *doc, char **path, struct err *err)
{
	free(*path);
	if (!(*path = path_join(dir, name)))
		return err_oom(err, strlen(dir));
	if (!is_file(*path))
		return 0;
	return json_parse_file(doc, *path, CONFIG_BYTES_MAX, err) < 0 ? -1 : 1;
}

static int read_tokenizer_config(
    struct tokenizer *t, const char *path, const struct json *c, uint32_t next, struct err *err)
{
	static const char *const names[] = { "bos_token", "eos_token", "pad_token" };
	int64_t *const ids[] = { &t->bos, &t->eos, &t->pad };
	char where[4300];
	size_t i;

	if (read_added_decoder(t, path, json_get(c, "added_tokens_decoder"), &next, err) < 0)
		return -1;
	for (i = 0; i < 3; i++) {
		snprintf(where, sizeof(where), "%s: %s", path, names[i]);
		if (named_token(t, json_get(c, names[i]), ids[i], where, err) < 0)
			return -1;
	}
	if (json_is(json_get(c, "add_prefix_space"), JSON_BOOL) &&
	    json_get(c, "add_prefix_space")->b)
		return err_set(err, EX_DATAERR, "%s: add_prefix_space: true is not supported; %s",
		    path, remedy);
	if ((!absent(json_get(c, "add_bos_token")) &&
	        json_get_bool(c, "add_bos_token", &t->add_bos, path, err) < 0) ||
	    (!absent(json_get(c, "add_eos_token")) &&
	        json_get_bool(c, "add_eos_token", &t->add_eos, path, err) < 0))
		return -1;
	return read_template(t, path, json_get(c, "chat_template"), err);
}

/*
 * eos_token_id of a config: a number or an array of numbers; all end an answer.  *first: the first
 * of them, if it was -1.
 */
static int read_stops(
    struct tokenizer *t, const char *path, const struct json *v, int64_t *first, struct err *err)
{
	const struct json *id;
	char where[4300];
	uint32_t i, n = json_is(v, JSON_ARR) ? v->n : !absent(v);

	snprintf(where, sizeof(where), "%s: eos_token_id", path);
	for (i = 0; i < n; i++) {
		id = v->type == JSON_ARR ? &v->items[i] : v;
		if (id->type != JSON_INT)
			return err_set(err, EX_DATAERR,
			    "%s: must be a whole number or an array of them, found %s", where,
			    json_type_name(id->type));
		if (id->i == -1) /* how some write "none" */
			continue;
		if (tok_stop(t, id->i, where, err) < 0)
			return -1;
		if (*first < 0)
			*first = id->i;
	}
	return 0;
}

/* A token id that config.json gives where tokenizer_config.json does not. */
static void fallback_id(const struct tokenizer *t, const struct json *v, int64_t *id)
{
	if (*id < 0 && json_is(v, JSON_INT) && v->i >= 0 && v->i < (int64_t)t->vocab)
		*id = v->i;
}

static int read_configs(struct tokenizer *t, const char *dir, uint32_t next, struct err *err)
{
	struct json_doc doc = {0};
	struct buf text = {0};
	char *path = NULL;
	int rc = -1, has;

	if ((has = parse_optional(dir, "tokenizer_config.json", &doc, &path, err)) < 0 ||
	    (has && read_tokenizer_config(t, path, &doc.root, next, err) < 0))
		goto done;
	if (t->eos >= 0 && tok_stop(t, t->eos, path, err) < 0)
		goto done;
	if ((has = parse_optional(dir, "generation_config.json", &doc, &path, err)) < 0 ||
	    (has && read_stops(t, path, json_get(&doc.root, "eos_token_id"), &t->eos, err) < 0))
		goto done;
	if ((has = parse_optional(dir, "config.json", &doc, &path, err)) < 0 ||
	    (has && read_stops(t, path, json_get(&doc.root, "eos_token_id"), &t->eos, err) < 0))
		goto done;
	if (has) {
		fallback_id(t, json_get(&doc.root, "bos_token_id"), &t->bos);
		fallback_id(t, json_get(&doc.root, "pad_token_id"), &t->pad);
	}
	free(path);
	if (!(path = path_join(dir, "chat_template.jinja"))) {
		err_oom(err, strlen(dir));
		goto done;
	}
	if (is_file(path) &&
	    (file_read(path, TEMPLATE_BYTES_MAX, &text, err) < 0 || buf_ok(&text, err) < 0 ||
	        set_template(t, text.p ? text.p : "", text.n, path, err) < 0))
		goto done;
	rc = 0;
done:
	json_release(&doc);
	buf_release(&text);
	free(path);
	return rc;
}

static int read_tokenizer(
    struct tokenizer *t, const struct json *j, uint32_t *next, struct err *err)
{
	const struct json *decoder = json_get(j, "decoder");

	if (!json_is(j, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: must be an object, found %s", t->source,
		    json_type_name(j->type));
	if (read_model(t, json_get(j, "model"), err) < 0 ||
	    read_normalizer(t, "normalizer", json_get(j, "normalizer"), err) < 0 ||
	    read_pre_tokenizer(t, json_get(j, "pre_tokenizer"), err) < 0)
		return -1;
	if (!absent(decoder) && !json_str_eq(json_get(decoder, "type"), "ByteLevel"))
		return refuse_type(t, "decoder", decoder, "ByteLevel", err);
	*next = json_get(json_get(j, "model"), "vocab")->n;
	if (read_added_tokens(t, json_get(j, "added_tokens"), next, err) < 0)
		return -1;
	return read_post_processor(t, "post_processor", json_get(j, "post_processor"), err);
}

int tokenizer_open_hf(struct tokenizer *t, const char *dir, const char *json, struct err *err)
{
	struct json_doc doc = {0};
	uint32_t next = 0;
	int rc = -1;

	if (!is_file(json)) {
		char *spm = path_join(dir, "tokenizer.model");

		err_set(err, EX_NOINPUT, "cannot find '%s'%s", json,
		    spm && is_file(spm)
		        ? "; tokenizer.model is not read: save it as tokenizer.json"
		        : "; model.tokenizer names one elsewhere");
		free(spm);
		return -1;
	}
	if (json_parse_file(&doc, json, TOKENIZER_BYTES_MAX, err) == 0 &&
	    read_tokenizer(t, &doc.root, &next, err) == 0)
		rc = read_configs(t, dir, next, err);
	json_release(&doc);
	return rc;
}

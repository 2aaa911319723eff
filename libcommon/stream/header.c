#include "libcommon/stream/internal.h"

#include <stdlib.h>
#include <string.h>

enum { EOS_MAX = 4096, INPUTS_MAX = 1 << 16 };

static void extra_release(struct stream_extra *x)
{
	buf_release(&x->kv);
	x->n = 0;
}

void stream_header_release(struct stream_header *h)
{
	size_t i;

	for (i = 0; i < h->ninputs; i++)
		free(h->inputs[i]);
	free(h->inputs);
	free(h->tok.name);
	free(h->tok.eos);
	buf_release(&h->prov);
	extra_release(&h->extra);
	extra_release(&h->tok_extra);
	*h = (struct stream_header){0};
}

/* A str of at most `limit` bytes as a C string that the caller frees.  A NUL inside is refused. */
static char *get_str(const msgpack_object *o, const char *name, size_t limit, struct err *err)
{
	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size > limit ||
		memchr(o->via.str.ptr, 0, o->via.str.size)) {
		err_set(err, EX_DATAERR, "'%s' must be a string of at most %zu bytes without NULs", name,
			limit);
		return NULL;
	}
	return mem_strndup(o->via.str.ptr, o->via.str.size, err);
}

static int get_sha256(
	const msgpack_object *o, const char *name, char hex[SHA256_HEX], struct err *err)
{
	uint32_t i;

	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size != SHA256_HEX - 1)
		goto bad;
	for (i = 0; i < SHA256_HEX - 1; i++)
		if (!strchr("0123456789abcdef", o->via.str.ptr[i]) || !o->via.str.ptr[i])
			goto bad;
	memcpy(hex, o->via.str.ptr, SHA256_HEX - 1);
	hex[SHA256_HEX - 1] = 0;
	return 0;
bad:
	return err_set(err, EX_DATAERR, "'%s' must be %d lower-case hex digits", name, SHA256_HEX - 1);
}

static int get_id(
	const msgpack_object *o, const char *name, uint32_t vocab, int64_t *id, struct err *err)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 >= vocab)
		return err_set(err, EX_DATAERR, "'%s' must be an id below vocab %u", name, vocab);
	*id = (int64_t)o->via.u64;
	return 0;
}

static int get_eos(struct stream_tok *t, const msgpack_object *o, struct err *err)
{
	const msgpack_object *ids = o;
	uint32_t i, n = 1;

	if (o->type == MSGPACK_OBJECT_ARRAY) {
		n = o->via.array.size;
		ids = o->via.array.ptr;
	}
	if (n > EOS_MAX)
		return err_set(err, EX_DATAERR, "'eos' has more than %d ids", EOS_MAX);
	if (!(t->eos = mem_zalloc(n, sizeof(*t->eos), err)))
		return -1;
	for (i = 0; i < n; i++) {
		int64_t id = 0;

		if (get_id(&ids[i], "eos", t->vocab, &id, err) < 0)
			return -1;
		t->eos[i] = (uint32_t)id;
	}
	t->neos = n;
	return 0;
}

static int keep_extra(struct stream_extra *x, const msgpack_object_kv *kv, struct err *err)
{
	msgpack_packer pk;

	msg_packer(&pk, &x->kv);
	msgpack_pack_object(&pk, kv->key);
	msgpack_pack_object(&pk, kv->val);
	x->n++;
	return buf_ok(&x->kv, err);
}

static int tok_decode(struct stream_header *h, const msgpack_object *map, struct err *err)
{
	struct stream_tok *t = &h->tok;
	const msgpack_object *v;
	uint32_t i;

	if (map->type != MSGPACK_OBJECT_MAP || !(v = msg_get(map, "vocab")) ||
		v->type != MSGPACK_OBJECT_POSITIVE_INTEGER || !v->via.u64 || v->via.u64 > UINT32_MAX)
		return err_set(err, EX_DATAERR, "'tok' must be a map with 'vocab', a whole number above 0");
	t->vocab = (uint32_t)v->via.u64;
	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];
		int rc = 0;

		if (msg_is(&kv->key, "sha256"))
			rc = get_sha256(&kv->val, "sha256", t->sha256, err);
		else if (msg_is(&kv->key, "template_sha256"))
			rc = get_sha256(&kv->val, "template_sha256", t->template_sha256, err);
		else if (msg_is(&kv->key, "name") && !t->name)
			rc = (t->name = get_str(&kv->val, "name", 4096, err)) ? 0 : -1;
		else if (msg_is(&kv->key, "bos"))
			rc = get_id(&kv->val, "bos", t->vocab, &t->bos, err);
		else if (msg_is(&kv->key, "pad"))
			rc = get_id(&kv->val, "pad", t->vocab, &t->pad, err);
		else if (msg_is(&kv->key, "eos") && !t->eos)
			rc = get_eos(t, &kv->val, err);
		else if (!msg_is(&kv->key, "vocab"))
			rc = keep_extra(&h->tok_extra, kv, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int inputs_decode(struct stream_header *h, const msgpack_object *o, struct err *err)
{
	uint32_t i;

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > INPUTS_MAX)
		return err_set(err, EX_DATAERR, "'inputs' must be a list of at most %d names", INPUTS_MAX);
	if (h->inputs || !o->via.array.size)
		return 0;
	if (!(h->inputs = mem_zalloc(o->via.array.size, sizeof(*h->inputs), err)))
		return -1;
	for (i = 0; i < o->via.array.size; i++, h->ninputs++)
		if (!(h->inputs[i] = get_str(&o->via.array.ptr[i], "inputs", 4096, err)))
			return -1;
	return 0;
}

static int version_decode(struct stream_header *h, const msgpack_object *v, struct err *err)
{
	const msgpack_object *p = v ? v->via.array.ptr : NULL;

	if (!v || v->type != MSGPACK_OBJECT_ARRAY || v->via.array.size != 2 ||
		p[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		p[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER || p[0].via.u64 > 1000000 ||
		p[1].via.u64 > 1000000)
		return err_set(err, EX_DATAERR, "TUNE: 'v' must be [major, minor]");
	h->major = (int)p[0].via.u64;
	h->minor = (int)p[1].via.u64;
	if (h->major != STREAM_MAJOR)
		return err_set(err, EX_DATAERR, "stream version %d.%d, but this program reads %d.x",
			h->major, h->minor, STREAM_MAJOR);
	return 0;
}

static int kind_decode(struct stream_header *h, const msgpack_object *v, struct err *err)
{
	int k;

	for (k = 0; v && k < KIND_COUNT; k++)
		if (msg_is(v, kind_rows[k].name)) {
			h->kind = (enum stream_kind)k;
			return 0;
		}
	if (v && v->type == MSGPACK_OBJECT_STR)
		return err_set(err, EX_DATAERR, "TUNE: unknown kind '%.*s'",
			v->via.str.size > 20 ? 20 : (int)v->via.str.size, v->via.str.ptr);
	return err_set(err, EX_DATAERR, "TUNE: 'kind' must be a string");
}

static int prov_decode(struct stream_header *h, const msgpack_object *v, struct err *err)
{
	msgpack_packer pk;

	if (v->type != MSGPACK_OBJECT_ARRAY)
		return err_set(err, EX_DATAERR, "'prov' must be a list");
	buf_clear(&h->prov);
	msg_packer(&pk, &h->prov);
	msgpack_pack_object(&pk, *v);
	return buf_ok(&h->prov, err);
}

int header_decode(struct stream_header *h, const msgpack_object *map, struct err *err)
{
	const msgpack_object *tok = msg_get(map, "tok");
	uint32_t i;

	*h = (struct stream_header){ .tok = { .bos = -1, .pad = -1 } };
	if (version_decode(h, msg_get(map, "v"), err) < 0 ||
		kind_decode(h, msg_get(map, "kind"), err) < 0)
		return -1;
	if (!tok)
		return err_set(err, EX_DATAERR, "TUNE: no 'tok'");
	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];
		int rc = 0;

		if (&kv->val == tok)
			rc = tok_decode(h, tok, err);
		else if (msg_is(&kv->key, "inputs"))
			rc = inputs_decode(h, &kv->val, err);
		else if (msg_is(&kv->key, "prov"))
			rc = prov_decode(h, &kv->val, err);
		else if (!msg_is(&kv->key, "v") && !msg_is(&kv->key, "kind") && !msg_is(&kv->key, "tok"))
			rc = keep_extra(&h->extra, kv, err);
		if (rc < 0)
			return err_prefix(err, "TUNE: "), stream_header_release(h), -1;
	}
	if (h->ninputs)
		return 0;
	if (!(h->inputs = mem_zalloc(1, sizeof(*h->inputs), err)) ||
		!(h->inputs[0] = mem_strdup("?", err)))
		return -1;
	h->ninputs = 1;
	return 0;
}

static void tok_encode(msgpack_packer *pk, struct buf *out, const struct stream_header *h)
{
	const struct stream_tok *t = &h->tok;
	size_t i,
		n = 1 + !!*t->sha256 + !!*t->template_sha256 + !!t->name + (t->bos >= 0) + (t->pad >= 0) +
		!!t->neos;

	msg_put_str(pk, "tok");
	msgpack_pack_map(pk, n + h->tok_extra.n);
	if (*t->sha256) {
		msg_put_str(pk, "sha256");
		msg_put_str(pk, t->sha256);
	}
	msg_put_str(pk, "vocab");
	msgpack_pack_uint32(pk, t->vocab);
	if (t->name) {
		msg_put_str(pk, "name");
		msg_put_str(pk, t->name);
	}
	if (t->bos >= 0) {
		msg_put_str(pk, "bos");
		msgpack_pack_uint64(pk, (uint64_t)t->bos);
	}
	if (t->neos) {
		msg_put_str(pk, "eos");
		msgpack_pack_array(pk, t->neos);
		for (i = 0; i < t->neos; i++)
			msgpack_pack_uint32(pk, t->eos[i]);
	}
	if (t->pad >= 0) {
		msg_put_str(pk, "pad");
		msgpack_pack_uint64(pk, (uint64_t)t->pad);
	}
	if (*t->template_sha256) {
		msg_put_str(pk, "template_sha256");
		msg_put_str(pk, t->template_sha256);
	}
	buf_put(out, h->tok_extra.kv.p, h->tok_extra.kv.n);
}

int header_encode(const struct stream_header *h, struct buf *out, struct err *err)
{
	msgpack_packer pk;
	size_t i, start = out->n;

	msg_packer(&pk, out);
	msg_begin(&pk, "TUNE", 3 + (h->ninputs > 0) + (h->prov.n > 0) + h->extra.n);
	msg_put_str(&pk, "v");
	msgpack_pack_array(&pk, 2);
	msgpack_pack_int(&pk, STREAM_MAJOR);
	msgpack_pack_int(&pk, STREAM_MINOR);
	msg_put_str(&pk, "kind");
	msg_put_str(&pk, stream_kind_name(h->kind));
	tok_encode(&pk, out, h);
	if (h->ninputs) {
		msg_put_str(&pk, "inputs");
		msgpack_pack_array(&pk, h->ninputs);
		for (i = 0; i < h->ninputs; i++)
			msg_put_str(&pk, h->inputs[i]);
	}
	if (h->prov.n) {
		msg_put_str(&pk, "prov");
		buf_put(out, h->prov.p, h->prov.n);
	}
	buf_put(out, h->extra.kv.p, h->extra.kv.n);
	if (out->n - start > STREAM_HEADER_MAX)
		return err_set(err, EX_DATAERR,
			"the header has %zu bytes, the limit is %d (too many inputs?)", out->n - start,
			STREAM_HEADER_MAX);
	return buf_ok(out, err);
}

/* A copy is what a reader makes of what a writer wrote: no field can be forgotten. */
int stream_header_copy(struct stream_header *to, const struct stream_header *from, struct err *err)
{
	struct buf b = {0};
	msgpack_unpacked u = {0};
	const msgpack_object *map;
	char tag[5];
	int rc = -1;

	*to = (struct stream_header){0};
	if (header_encode(from, &b, err) == 0 &&
	    msg_parse(&u, (uint8_t *)b.p, b.n, STREAM_HEADER_MAX, tag, &map, err) == 0)
		rc = header_decode(to, map, err);
	msgpack_unpacked_destroy(&u);
	buf_release(&b);
	return rc;
}

/*
 * Linear search: inputs are files that a person named; a folder of thousands costs milliseconds a
 * segment.
 */
int header_union(struct stream_header *to, const struct stream_header *from, uint32_t **map,
	bool *same, struct err *err)
{
	size_t i, k;
	char **grown;

	*same = true;
	if (!(*map = mem_zalloc(from->ninputs, sizeof(**map), err)))
		return -1;
	for (i = 0; i < from->ninputs; i++) {
		for (k = 0; k < to->ninputs && strcmp(to->inputs[k], from->inputs[i]); k++)
			;
		if (k == to->ninputs) {
			if (k == INPUTS_MAX)
				return err_set(err, EX_DATAERR, "more than %d inputs", INPUTS_MAX);
			if (!(grown = realloc(to->inputs, (k + 1) * sizeof(*grown))))
				return err_oom(err, (k + 1) * sizeof(*grown));
			to->inputs = grown;
			if (!(to->inputs[k] = mem_strdup(from->inputs[i], err)))
				return -1;
			to->ninputs++;
		}
		(*map)[i] = (uint32_t)k;
		*same = *same && k == i;
	}
	return 0;
}

/* "'smollm2' (vocab 49152, sha256 0123456789ab)", as far as it is known. */
static void tok_text(const struct stream_tok *t, char out[128])
{
	int n = snprintf(out, 128, t->name ? "'%.60s' (" : "%s(", t->name ? t->name : "");

	n += snprintf(out + n, 128 - (size_t)n, "vocab %u", t->vocab);
	if (*t->sha256)
		n += snprintf(out + n, 128 - (size_t)n, ", sha256 %.12s", t->sha256);
	snprintf(out + n, 128 - (size_t)n, ")");
}

int stream_same_tokenizer(const struct stream_tok *a, const char *a_name,
	const struct stream_tok *b, const char *b_name, struct err *err)
{
	char a_text[128], b_text[128];

	if (*a->sha256 && *b->sha256 ? !strcmp(a->sha256, b->sha256) : a->vocab == b->vocab)
		return 0;
	tok_text(a, a_text);
	tok_text(b, b_text);
	return err_set(err, EX_DATAERR, "the tokenizers differ: that of %s is %s, that of %s %s",
		a_name, a_text, b_name, b_text);
}

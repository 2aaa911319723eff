#include "libcommon/stream/internal.h"

#include <string.h>

const struct kind_row kind_rows[KIND_COUNT] = {
	{ "toks", "TOKS", { { "seq", F_SEQ }, { "src", F_SRC }, { "line", F_UINT }, { "ids", F_IDS },
		{ "mask", F_MASK } } },
	{ "pack", "PACK", { { "seq", F_SEQ }, { "ids", F_IDS }, { "mask", F_MASK }, { "lens", F_U32S },
		{ "docs", F_UINTS }, { "srcs", F_SRCS }, { "lines", F_UINTS } } },
	{ "pair", "PAIR", { { "seq", F_SEQ }, { "src", F_SRC }, { "line", F_UINT },
		{ "chosen", F_MASKED }, { "rejected", F_MASKED } } },
	{ "topk", "TOPK", { { "seq", F_SEQ }, { "k", F_U32 }, { "ids", F_IDS }, { "logp", F_F32 } } },
	{ "scor", "SCOR", { { "seq", F_SEQ }, { "logp", F_F32 }, { "greedy", F_FLAGS } } },
	{ "roll", "ROLL", { { "seq", F_SEQ }, { "group", F_UINT }, { "prompt", F_IDS },
		{ "ids", F_IDS }, { "mask", F_FLAGS }, { "logp", F_F32 }, { "reward", F_F32 } } },
	{ "tens", "TENS", { { "name", F_STR }, { "dtype", F_STR }, { "shape", F_ARRAY },
		{ "off", F_UINT }, { "data", F_BIN } } },
};
const struct field masked_fields[] = { { "ids", F_IDS }, { "mask", F_MASK }, { NULL, 0 } };

const char *stream_kind_name(enum stream_kind k)
{
	return kind_rows[k].name;
}

const char *stream_kind_tag(enum stream_kind k)
{
	return kind_rows[k].tag;
}

bool rec_is(const struct record *r, const char *tag)
{
	return !memcmp(r->tag, tag, 4);
}

bool rec_optional(const struct record *r)
{
	return r->tag[0] >= 'a';
}

const struct field *field_find(const struct field *fields, const char *name, size_t n)
{
	const struct field *f;

	for (f = fields; f->name; f++)
		if (strlen(f->name) == n && !memcmp(f->name, name, n))
			return f;
	return NULL;
}

/*
 * A decoded field: u for a number, p[0..n) for the others; aligned, in the decoder's arena where it
 * had to be copied.
 */
struct value { bool seen; uint64_t u; const void *p; uint32_t n; };

static int bin_copy(struct decoder *d, const struct field *f, const msgpack_object *o,
	struct value *v, struct err *err)
{
	void *p;

	if (o->via.bin.size % 4)
		return err_set(
			err, EX_DATAERR, "'%s' has %u bytes, not a multiple of 4", f->name, o->via.bin.size);
	if (!(p = arena_alloc(&d->arena, o->via.bin.size + 1)))
		return err_oom(err, o->via.bin.size);
	if (o->via.bin.size)
		memcpy(p, o->via.bin.ptr, o->via.bin.size);
	v->p = p;
	v->n = o->via.bin.size / 4;
	return 0;
}

static int check_ids(
	const uint32_t *ids, uint32_t n, uint32_t vocab, const char *name, struct err *err)
{
	uint32_t i, bad = 0;

	for (i = 0; i < n; i++)
		bad |= ids[i] >= vocab;
	for (i = 0; bad && i < n; i++)
		if (ids[i] >= vocab)
			return err_set(
				err, EX_DATAERR, "'%s'[%u] is %u, not below vocab %u", name, i, ids[i], vocab);
	return 0;
}

/* All bytes 0 or 1; *ones is their sum. */
static int check_flags(
	const uint8_t *m, uint32_t n, const char *name, uint64_t *ones, struct err *err)
{
	uint64_t w, bad = 0, sum = 0;
	uint32_t i = 0;

	for (; i + 8 <= n; i += 8) {
		memcpy(&w, m + i, 8);
		bad |= w & ~UINT64_C(0x0101010101010101);
		sum += w * UINT64_C(0x0101010101010101) >> 56;
	}
	for (; i < n; i++) {
		bad |= m[i] > 1;
		sum += m[i];
	}
	for (i = 0; bad && i < n; i++)
		if (m[i] > 1)
			return err_set(err, EX_DATAERR, "'%s'[%u] is %u, not 0 or 1", name, i, m[i]);
	*ones = sum;
	return 0;
}

static int want_uint(
	const msgpack_object *o, const char *name, uint64_t end, uint64_t *out, struct err *err)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 >= end)
		return err_set(err, EX_DATAERR, "'%s' must be a whole number below %llu", name,
			(unsigned long long)end);
	*out = o->via.u64;
	return 0;
}

static int want_src(const struct decoder *d, const msgpack_object *o, const char *name,
	uint64_t *src, struct err *err)
{
	if (want_uint(o, name, UINT32_MAX, src, err) < 0)
		return -1;
	if (*src >= d->ninputs)
		return err_set(err, EX_DATAERR, "'%s' is %llu, but TUNE lists %zu inputs", name,
			(unsigned long long)*src, d->ninputs);
	if (d->src_map)
		*src = d->src_map[*src];
	return 0;
}

static int array_copy(struct decoder *d, const struct field *f, const msgpack_object *o,
	struct value *v, struct err *err)
{
	bool wide = f->type == F_UINTS;
	uint64_t u, end = wide ? UINT64_C(1) << 53 : UINT64_C(1) << 32;
	uint32_t i, n, *p32;
	uint64_t *p64;

	if (o->type != MSGPACK_OBJECT_ARRAY)
		return err_set(err, EX_DATAERR, "'%s' must be a list", f->name);
	n = o->via.array.size;
	if (!(p64 = arena_alloc(&d->arena, (size_t)n * 8 + 1)))
		return err_oom(err, (size_t)n * 8);
	p32 = (uint32_t *)p64;
	for (i = 0; i < n; i++) {
		const msgpack_object *e = &o->via.array.ptr[i];

		if ((f->type == F_SRCS ? want_src(d, e, f->name, &u, err)
							   : want_uint(e, f->name, end, &u, err)) < 0)
			return -1;
		if (wide)
			p64[i] = u;
		else
			p32[i] = (uint32_t)u;
	}
	v->p = p64;
	v->n = n;
	return 0;
}

static int decode_field(struct decoder *d, const struct field *f, const msgpack_object *o,
	struct record *r, struct value *v, struct err *err);

/* {ids, mask} of a pair. */
static int decode_masked(struct decoder *d, const struct field *f, const msgpack_object *o,
	struct record *r, struct err *err)
{
	struct value v[2] = {0};
	int i;

	if (o->type != MSGPACK_OBJECT_MAP)
		return err_set(err, EX_DATAERR, "'%s' must be a map", f->name);
	for (i = 0; i < 2; i++) {
		const msgpack_object *m = msg_get(o, masked_fields[i].name);

		if (!m)
			return err_set(err, EX_DATAERR, "'%s' has no '%s'", f->name, masked_fields[i].name);
		if (decode_field(d, &masked_fields[i], m, r, &v[i], err) < 0)
			return -1;
	}
	if (v[0].n != v[1].n)
		return err_set(
			err, EX_DATAERR, "'%s' has %u ids and %u mask bytes", f->name, v[0].n, v[1].n);
	return 0;
}

static int want_seq(struct decoder *d, const msgpack_object *o, uint64_t *seq, struct err *err)
{
	if (want_uint(o, "seq", (UINT64_C(1) << 53) - d->seq_base, seq, err) < 0)
		return -1;
	*seq += d->seq_base;
	d->seq_end = *seq >= d->seq_end ? *seq + 1 : d->seq_end;
	return 0;
}

static int decode_field(struct decoder *d, const struct field *f, const msgpack_object *o,
	struct record *r, struct value *v, struct err *err)
{
	uint64_t ones = 0;

	v->seen = true;
	switch (f->type) {
	case F_SEQ:
		return want_seq(d, o, &v->u, err);
	case F_UINT:
		return want_uint(o, f->name, UINT64_C(1) << 53, &v->u, err);
	case F_U32:
		return want_uint(o, f->name, UINT64_C(1) << 32, &v->u, err);
	case F_SRC:
		return want_src(d, o, f->name, &v->u, err);
	case F_SRCS:
	case F_U32S:
	case F_UINTS:
		return array_copy(d, f, o, v, err);
	case F_MASKED:
		return decode_masked(d, f, o, r, err);
	case F_STR:
		return o->type == MSGPACK_OBJECT_STR
			? 0
			: err_set(err, EX_DATAERR, "'%s' must be a string", f->name);
	case F_ARRAY:
		return o->type == MSGPACK_OBJECT_ARRAY
			? 0
			: err_set(err, EX_DATAERR, "'%s' must be a list", f->name);
	default:
		break;
	}
	if (o->type != MSGPACK_OBJECT_BIN)
		return err_set(err, EX_DATAERR, "'%s' must be a bin", f->name);
	if (f->type == F_IDS || f->type == F_F32) {
		if (bin_copy(d, f, o, v, err) < 0 ||
			(f->type == F_IDS && check_ids(v->p, v->n, d->vocab, f->name, err) < 0))
			return -1;
		if (f->type == F_IDS && strcmp(f->name, "prompt"))
			r->tokens += v->n;
		return 0;
	}
	v->p = o->via.bin.ptr;
	v->n = o->via.bin.size;
	if (f->type == F_BIN)
		return 0;
	if (check_flags(v->p, v->n, f->name, &ones, err) < 0)
		return -1;
	if (!strcmp(f->name, "mask"))
		r->trained += ones;
	if (f->type == F_MASK && v->n && *(const uint8_t *)v->p)
		return err_set(err, EX_DATAERR,
			"'%s'[0] is 1, but the first token of a document is never a target", f->name);
	return 0;
}

static int same_length(
	uint32_t a, const char *a_name, uint32_t b, const char *b_name, struct err *err)
{
	return a == b ? 0 : err_set(err, EX_DATAERR, "%u %s but %u %s", a, a_name, b, b_name);
}

static int finish_toks(struct record *r, const struct value *v, bool extra, struct err *err)
{
	r->toks = (struct rec_toks){ .seq = v[0].u,
		.src = (uint32_t)v[1].u,
		.line = v[2].u,
		.n = v[3].n,
		.ids = v[3].p,
		.mask = v[4].p,
		.extra = extra };
	if (!r->toks.n)
		return err_set(err, EX_DATAERR, "no tokens");
	return same_length(v[3].n, "ids", v[4].n, "mask bytes", err);
}

static int finish_pack(struct record *r, const struct value *v, struct err *err)
{
	struct rec_pack *p = &r->pack;
	uint64_t sum = 0;
	uint32_t i;

	*p = (struct rec_pack){ .seq = v[0].u,
		.n = v[1].n,
		.ids = v[1].p,
		.mask = v[2].p,
		.ndocs = v[3].n,
		.lens = v[3].p,
		.docs = v[4].p,
		.srcs = v[5].p,
		.lines = v[6].p };
	if (same_length(v[1].n, "ids", v[2].n, "mask bytes", err) < 0 ||
		same_length(v[3].n, "lens", v[4].n, "docs", err) < 0 ||
		same_length(v[3].n, "lens", v[5].n, "srcs", err) < 0 ||
		same_length(v[3].n, "lens", v[6].n, "lines", err) < 0)
		return -1;
	for (i = 0; i < p->ndocs; i++) {
		if (!p->lens[i])
			return err_set(err, EX_DATAERR, "'lens'[%u] is 0", i);
		if (sum < p->n && p->mask[sum])
			return err_set(err, EX_DATAERR,
				"'mask'[%llu] is 1, but the first token of a document is never a target",
				(unsigned long long)sum);
		sum += p->lens[i];
	}
	if (sum != p->n || !p->n)
		return err_set(err, EX_DATAERR, "'lens' add up to %llu, but there are %u ids",
			(unsigned long long)sum, p->n);
	return 0;
}

/* The checks that are between fields; the tokens of kinds without documents. */
static int finish(struct record *r, const struct value *v, bool extra, struct err *err)
{
	switch (r->kind) {
	case KIND_TOKS:
		return finish_toks(r, v, extra, err);
	case KIND_PACK:
		return finish_pack(r, v, err);
	case KIND_SCOR:
		r->scor = (struct rec_scor){ .seq = v[0].u, .n = v[1].n, .logp = v[1].p, .greedy = v[2].p };
		r->tokens = v[1].n;
		return same_length(v[1].n, "logp", v[2].n, "greedy", err);
	case KIND_TOPK:
		if (!v[1].u || v[2].n % v[1].u)
			return err_set(err, EX_DATAERR, "%u ids are not rows of k = %llu", v[2].n,
				(unsigned long long)v[1].u);
		r->tokens = v[2].n / v[1].u;
		return same_length(v[2].n, "ids", v[3].n, "logp", err);
	case KIND_ROLL:
		return same_length(v[3].n, "ids", v[4].n, "mask bytes", err) < 0 ||
			same_length(v[3].n, "ids", v[5].n, "logp", err) < 0 ? -1 : 0;
	default:
		return 0;
	}
}

/* Make r->raw anew with the new numbers of the record and its inputs. */
static int rewrite(struct decoder *d, const msgpack_object *map, struct record *r, struct err *err)
{
	msgpack_packer pk;
	uint32_t i, k;

	buf_clear(&d->rewritten);
	msg_packer(&pk, &d->rewritten);
	msg_begin(&pk, r->tag, map->via.map.size);
	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		msgpack_pack_object(&pk, kv->key);
		if (d->seq_base && msg_is(&kv->key, "seq")) {
			msgpack_pack_uint64(&pk, kv->val.via.u64 + d->seq_base);
		} else if (d->src_map && msg_is(&kv->key, "src") &&
			kv->val.type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
			msgpack_pack_uint32(&pk, d->src_map[kv->val.via.u64]);
		} else if (d->src_map && msg_is(&kv->key, "srcs") && kv->val.type == MSGPACK_OBJECT_ARRAY) {
			msgpack_pack_array(&pk, kv->val.via.array.size);
			for (k = 0; k < kv->val.via.array.size; k++)
				msgpack_pack_uint32(&pk, d->src_map[kv->val.via.array.ptr[k].via.u64]);
		} else {
			msgpack_pack_object(&pk, kv->val);
		}
	}
	r->raw = (uint8_t *)d->rewritten.p;
	r->len = d->rewritten.n;
	return buf_ok(&d->rewritten, err);
}

int decode_record(struct decoder *d, const msgpack_object *map, struct record *r, struct err *err)
{
	const struct field *fields = kind_rows[d->kind].fields;
	struct value v[FIELDS_MAX] = {0};
	bool extra = false;
	uint32_t i;

	arena_reset(&d->arena);
	r->kind = d->kind;
	r->tokens = r->trained = 0;
	if (rec_optional(r))
		return 0;
	if (!rec_is(r, kind_rows[d->kind].tag))
		return err_set(err, EX_DATAERR, "a '%s' record has no place in a stream of kind '%s'",
			r->tag, kind_rows[d->kind].name);
	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];
		const struct field *f = kv->key.type == MSGPACK_OBJECT_STR ?
			field_find(fields, kv->key.via.str.ptr, kv->key.via.str.size) : NULL;

		if (!f) {
			extra = true;
			continue;
		}
		if (v[f - fields].seen)
			return err_set(err, EX_DATAERR, "'%s' stands twice", f->name);
		if (decode_field(d, f, &kv->val, r, &v[f - fields], err) < 0)
			return -1;
	}
	for (i = 0; fields[i].name; i++)
		if (!v[i].seen)
			return err_set(err, EX_DATAERR, "no '%s'", fields[i].name);
	r->seq = v[0].u;
	if (finish(r, v, extra, err) < 0)
		return -1;
	return d->kind != KIND_TENS && (d->src_map || d->seq_base) ? rewrite(d, map, r, err) : 0;
}

void decoder_release(struct decoder *d)
{
	arena_release(&d->arena);
	buf_release(&d->rewritten);
}

#include "libcommon/stream/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libcommon/utf8.h"

static void put_float(struct json_w *w, double v)
{
	if (isfinite(v))
		json_w_num(w, v);
	else
		json_w_str(w, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

/* {"$bin": "base64"} and its siblings. */
static int put_base64(struct json_w *w, const char *name, const void *p, size_t n, struct err *err)
{
	struct buf text = {0};
	int rc;

	base64_encode(p, n, &text);
	rc = buf_ok(&text, err);
	json_w_obj(w);
	json_w_name(w, name);
	json_w_strn(w, text.p ? text.p : "", text.n);
	json_w_end(w);
	buf_release(&text);
	return rc;
}

static bool is_utf8(const char *p, size_t n)
{
	const char *end = p + n;
	size_t k;

	for (; p < end; p += k)
		if (!(k = utf8_len(p, end)))
			return false;
	return true;
}

static int put_str(struct json_w *w, const msgpack_object *o, struct err *err)
{
	if (!is_utf8(o->via.str.ptr, o->via.str.size))
		return put_base64(w, "$str", o->via.str.ptr, o->via.str.size, err);
	json_w_strn(w, o->via.str.ptr, o->via.str.size);
	return 0;
}

static int put_ext(struct json_w *w, const msgpack_object *o, struct err *err)
{
	struct buf text = {0};
	int rc;

	base64_encode(o->via.ext.ptr, o->via.ext.size, &text);
	rc = buf_ok(&text, err);
	json_w_obj(w);
	json_w_name(w, "$ext");
	json_w_arr(w);
	json_w_int(w, o->via.ext.type);
	json_w_strn(w, text.p ? text.p : "", text.n);
	json_w_end(w);
	json_w_end(w);
	buf_release(&text);
	return rc;
}

/* Beyond 2^53 programs that read JSON round: {"$int": "18446744073709551615"}. */
static void put_int(struct json_w *w, const msgpack_object *o)
{
	bool negative = o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;
	char text[24];

	if (negative ? o->via.i64 >= -(INT64_C(1) << 53) : o->via.u64 <= UINT64_C(1) << 53) {
		json_w_int(w, o->via.i64);
		return;
	}
	if (negative)
		snprintf(text, sizeof(text), "%lld", (long long)o->via.i64);
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long)o->via.u64);
	json_w_obj(w);
	json_w_name(w, "$int");
	json_w_str(w, text);
	json_w_end(w);
}

static int put_map(
	struct json_w *w, const msgpack_object *map, const struct field *fields, struct err *err);

/* A value of a field that no table knows. */
static int put_any(struct json_w *w, const msgpack_object *o, struct err *err)
{
	uint32_t i;

	switch (o->type) {
	case MSGPACK_OBJECT_NIL:
		json_w_null(w);
		return 0;
	case MSGPACK_OBJECT_BOOLEAN:
		json_w_bool(w, o->via.boolean);
		return 0;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		put_int(w, o);
		return 0;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		put_float(w, o->via.f64);
		return 0;
	case MSGPACK_OBJECT_STR:
		return put_str(w, o, err);
	case MSGPACK_OBJECT_BIN:
		return put_base64(w, "$bin", o->via.bin.ptr, o->via.bin.size, err);
	case MSGPACK_OBJECT_EXT:
		return put_ext(w, o, err);
	case MSGPACK_OBJECT_MAP:
		json_w_obj(w);
		if (put_map(w, o, NULL, err) < 0)
			return -1;
		json_w_end(w);
		return 0;
	case MSGPACK_OBJECT_ARRAY:
		json_w_arr(w);
		for (i = 0; i < o->via.array.size; i++)
			if (put_any(w, &o->via.array.ptr[i], err) < 0)
				return -1;
		json_w_end(w);
		return 0;
	}
	return err_set(err, EX_DATAERR, "a msgpack type that the JSON form doesn't have");
}

/* A bin whose element type is known, as numbers. */
static void put_numbers(struct json_w *w, enum field_type type, const char *p, uint32_t n)
{
	uint32_t i, u;
	float f;

	json_w_arr(w);
	for (i = 0; type == F_IDS && i < n / 4; i++) {
		memcpy(&u, p + i * 4, 4);
		json_w_int(w, u);
	}
	for (i = 0; type == F_F32 && i < n / 4; i++) {
		memcpy(&f, p + i * 4, 4);
		put_float(w, f);
	}
	for (i = 0; (type == F_MASK || type == F_FLAGS) && i < n; i++)
		json_w_int(w, (uint8_t)p[i]);
	json_w_end(w);
}

static int put_field(
	struct json_w *w, const struct field *f, const msgpack_object *o, struct err *err)
{
	bool numbers =
		f && (f->type == F_IDS || f->type == F_MASK || f->type == F_FLAGS || f->type == F_F32);

	if (numbers && o->type == MSGPACK_OBJECT_BIN) {
		put_numbers(w, f->type, o->via.bin.ptr, o->via.bin.size);
		return 0;
	}
	if (!f || f->type != F_MASKED || o->type != MSGPACK_OBJECT_MAP)
		return put_any(w, o, err);
	json_w_obj(w);
	if (put_map(w, o, masked_fields, err) < 0)
		return -1;
	json_w_end(w);
	return 0;
}

/* The pairs of a map, between the caller's braces. */
static int put_map(
	struct json_w *w, const msgpack_object *map, const struct field *fields, struct err *err)
{
	uint32_t i;

	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object *k = &map->via.map.ptr[i].key;
		const msgpack_object_str s = k->via.str;

		if (k->type != MSGPACK_OBJECT_STR || !is_utf8(s.ptr, s.size))
			return err_set(err, EX_DATAERR, "a key that is no UTF-8 string has no JSON form");
		if (s.size && s.ptr[0] == '$')
			return err_set(err, EX_DATAERR,
				"key '%.*s': the JSON form keeps names with '$' for itself",
				s.size > 40 ? 40 : (int)s.size, s.ptr);
		if (fields && msg_is(k, "tag"))
			return err_set(err, EX_DATAERR, "a field named 'tag' has no JSON form");
		json_w_namen(w, s.ptr, s.size);
		if (put_field(w, fields ? field_find(fields, s.ptr, s.size) : NULL,
				&map->via.map.ptr[i].val, err) < 0)
			return -1;
	}
	return 0;
}

static const struct field no_fields[] = { { NULL, 0 } };

static int line(
	const char *raw, size_t n, const struct field *fields, struct buf *out, struct err *err)
{
	struct json_w w = { .out = out };
	msgpack_unpacked u = {0};
	const msgpack_object *map;
	char tag[5];
	int rc = -1;

	if (msg_parse(&u, (const uint8_t *)raw, n, STREAM_RECORD_MAX, tag, &map, err) < 0)
		goto done;
	json_w_obj(&w);
	json_w_name(&w, "tag");
	json_w_str(&w, tag);
	if (put_map(&w, map, fields, err) < 0)
		goto done;
	json_w_end(&w);
	rc = buf_ok(out, err);
done:
	msgpack_unpacked_destroy(&u);
	return rc;
}

int stream_record_json(const struct record *r, struct buf *out, struct err *err)
{
	return line((const char *)r->raw, r->len,
		rec_optional(r) ? no_fields : kind_rows[r->kind].fields, out, err);
}

int stream_header_json(const struct stream_header *h, struct buf *out, struct err *err)
{
	struct buf b = {0};
	int rc = header_encode(h, &b, err) < 0 ? -1 : line(b.p, b.n, no_fields, out, err);

	buf_release(&b);
	return rc;
}

int stream_totals_json(const struct stream_totals *t, struct buf *out, struct err *err)
{
	struct buf b = {0};
	int rc = end_encode(t, NULL, 0, &b, err) < 0 ? -1 : line(b.p, b.n, no_fields, out, err);

	buf_release(&b);
	return rc;
}

#include "libcommon/stream/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* levels around a merged prov: the record, its map, prov, the entry, in */
enum { PROV_OUTSIDE = 5 };

static int put_any(msgpack_packer *pk, const struct json *v, struct err *err);

/* "nan", "inf", "-inf" and null where a float stands; jq writes null for what it can't. */
static bool get_float(const struct json *v, double *d)
{
	if (v->type == JSON_INT)
		*d = (double)v->i;
	else if (v->type == JSON_NUM)
		*d = v->d;
	else if (v->type == JSON_NULL || json_str_eq(v, "nan"))
		*d = NAN;
	else if (json_str_eq(v, "inf"))
		*d = INFINITY;
	else if (json_str_eq(v, "-inf"))
		*d = -INFINITY;
	else
		return false;
	return true;
}

static int put_base64(
	msgpack_packer *pk, const char *form, const struct json *text, int type, struct err *err)
{
	struct buf b = {0};
	int rc = -1;

	if (!json_is(text, JSON_STR)) {
		err_set(err, EX_DATAERR, "'%s' must hold base64 text", form);
	} else if (base64_decode(text->s, text->n, &b, err) == 0) {
		rc = 0;
		if (!strcmp(form, "$bin"))
			msg_put_bin(pk, b.p, b.n);
		else if (!strcmp(form, "$str"))
			msgpack_pack_str_with_body(pk, b.n ? b.p : "", b.n);
		else
			msgpack_pack_ext_with_body(pk, b.n ? b.p : "", b.n, (int8_t)type);
	}
	buf_release(&b);
	return rc;
}

static int put_int(msgpack_packer *pk, const struct json *text, struct err *err)
{
	const char *s = json_is(text, JSON_STR) ? text->s : "";
	char *end;

	errno = 0;
	if (s[0] == '-' && s[1] >= '0' && s[1] <= '9')
		msgpack_pack_int64(pk, strtoll(s, &end, 10));
	else if (s[0] >= '0' && s[0] <= '9')
		msgpack_pack_uint64(pk, strtoull(s, &end, 10));
	else
		errno = EINVAL;
	if (errno || (size_t)(end - s) != text->n)
		return err_set(
			err, EX_DATAERR, "'$int' must hold the digits of a whole number of at most 64 bits");
	return 0;
}

/* An object with one name that begins with '$'. */
static int put_special(msgpack_packer *pk, const struct json_member *m, struct err *err)
{
	const char *form = m->name.s;
	const struct json *v = &m->value;

	if (!strcmp(form, "$bin") || !strcmp(form, "$str"))
		return put_base64(pk, form, v, 0, err);
	if (!strcmp(form, "$ext") && v->type == JSON_ARR && v->n == 2 && v->items[0].type == JSON_INT &&
	    v->items[0].i >= -128 && v->items[0].i <= 127)
		return put_base64(pk, form, &v->items[1], (int)v->items[0].i, err);
	if (!strcmp(form, "$int"))
		return put_int(pk, v, err);
	return err_set(err, EX_DATAERR,
		"'%.40s' is not one of \"$bin\", \"$str\", \"$int\", \"$ext\": [type, base64]", form);
}

static int put_members(msgpack_packer *pk, const struct json *obj, const struct field *fields,
	bool skip_tag, struct err *err);

static int put_any(msgpack_packer *pk, const struct json *v, struct err *err)
{
	uint32_t i;

	switch (v->type) {
	case JSON_NULL:
		msgpack_pack_nil(pk);
		return 0;
	case JSON_BOOL:
		if (v->b)
			msgpack_pack_true(pk);
		else
			msgpack_pack_false(pk);
		return 0;
	case JSON_INT:
		msgpack_pack_int64(pk, v->i);
		return 0;
	case JSON_NUM:
		msgpack_pack_double(pk, v->d);
		return 0;
	case JSON_STR:
		msgpack_pack_str_with_body(pk, v->s, v->n);
		return 0;
	case JSON_ARR:
		msgpack_pack_array(pk, v->n);
		for (i = 0; i < v->n; i++)
			if (put_any(pk, &v->items[i], err) < 0)
				return -1;
		return 0;
	case JSON_OBJ:
		if (v->n == 1 && v->members[0].name.n && v->members[0].name.s[0] == '$')
			return put_special(pk, &v->members[0], err);
		return put_members(pk, v, NULL, false, err);
	}
	return -1;
}

static int put_numbers(
	msgpack_packer *pk, const struct field *f, const struct json *v, struct err *err)
{
	bool bytes = f->type == F_MASK || f->type == F_FLAGS;
	uint32_t i, u;
	struct buf *out = pk->data;
	double d;
	float x;

	msgpack_pack_bin(pk, (size_t)v->n * (bytes ? 1 : 4));
	for (i = 0; i < v->n; i++) {
		const struct json *e = &v->items[i];

		if (f->type == F_F32) {
			if (!get_float(e, &d))
				return err_set(err, EX_DATAERR, "'%s'[%u] must be a number, found %s", f->name, i,
					json_type_name(e->type));
			x = (float)d;
			buf_put(out, &x, 4);
			continue;
		}
		if (e->type != JSON_INT || e->i < 0 || e->i > (bytes ? 255 : UINT32_MAX))
			return err_set(err, EX_DATAERR, "'%s'[%u] must be a whole number from 0 to %u", f->name,
				i, bytes ? 255 : UINT32_MAX);
		u = (uint32_t)e->i;
		buf_put(out, &u, bytes ? 1 : 4);
	}
	return 0;
}

static int put_field(
	msgpack_packer *pk, const struct field *f, const struct json *v, struct err *err)
{
	bool numbers =
		f && (f->type == F_IDS || f->type == F_MASK || f->type == F_FLAGS || f->type == F_F32);

	if (numbers && v->type == JSON_ARR)
		return put_numbers(pk, f, v, err);
	if (numbers)
		return err_set(
			err, EX_DATAERR, "'%s' must be a list, found %s", f->name, json_type_name(v->type));
	if (f && f->type == F_MASKED && v->type == JSON_OBJ)
		return put_members(pk, v, masked_fields, false, err);
	return put_any(pk, v, err);
}

static int put_members(msgpack_packer *pk, const struct json *obj, const struct field *fields,
	bool skip_tag, struct err *err)
{
	uint32_t i, n = 0;

	for (i = 0; i < obj->n; i++)
		n += !skip_tag || !json_str_eq(&obj->members[i].name, "tag");
	msgpack_pack_map(pk, n);
	for (i = 0; i < obj->n; i++) {
		const struct json_member *m = &obj->members[i];

		if (skip_tag && json_str_eq(&m->name, "tag"))
			continue;
		msgpack_pack_str_with_body(pk, m->name.s, m->name.n);
		if (put_field(
				pk, fields ? field_find(fields, m->name.s, m->name.n) : NULL, &m->value, err) < 0)
			return -1;
	}
	return 0;
}

int json_to_record(const struct json *line, enum stream_kind kind, struct buf *out, struct err *err)
{
	static const struct field none[] = { { NULL, 0 } };
	const struct json *tag = json_get(line, "tag");
	msgpack_packer pk;

	if (!json_is(tag, JSON_STR) || tag->n != 4)
		return err_set(err, EX_DATAERR, "a record is an object with a \"tag\" of four letters");
	msg_packer(&pk, out);
	msgpack_pack_array(&pk, 2);
	msg_put_str(&pk, tag->s);
	if (put_members(&pk, line, strcmp(tag->s, kind_rows[kind].tag) ? none : kind_rows[kind].fields,
			true, err) < 0)
		return -1;
	return buf_ok(out, err);
}

int stream_header_from_json(struct stream_header *h, const struct json *line, struct err *err)
{
	struct buf b = {0};
	msgpack_unpacked u = {0};
	const msgpack_object *map;
	char tag[5];
	int rc = -1;

	*h = (struct stream_header){0};
	if (json_to_record(line, KIND_TOKS, &b, err) == 0 &&
	    msg_parse(&u, (uint8_t *)b.p, b.n, STREAM_HEADER_MAX, tag, &map, err) == 0)
		rc = strcmp(tag, "TUNE") ? err_set(err, EX_DATAERR, "'%s' where TUNE must stand", tag)
								 : header_decode(h, map, err);
	msgpack_unpacked_destroy(&u);
	buf_release(&b);
	return rc;
}

/*
 * One prov array with what is in h->prov and one entry more: its elements follow the head, which is
 * of one to five bytes.
 */
static int prov_head(const struct buf *prov, size_t *count, size_t *skip, struct err *err)
{
	msgpack_unpacked u = {0};
	size_t off = 0;

	*count = *skip = 0;
	if (!prov->n)
		return 0;
	if (msgpack_unpack_next(&u, prov->p, prov->n, &off) != MSGPACK_UNPACK_SUCCESS ||
		u.data.type != MSGPACK_OBJECT_ARRAY) {
		msgpack_unpacked_destroy(&u);
		return err_set(err, EX_SOFTWARE, "prov is not a list");
	}
	*count = u.data.via.array.size;
	*skip = (uint8_t)prov->p[0] < 0xa0 ? 1 : (uint8_t)prov->p[0] == 0xdc ? 3 : 5;
	msgpack_unpacked_destroy(&u);
	return 0;
}

static int depth_of(const msgpack_object *o)
{
	int most = 0, d;
	uint32_t i;

	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (i = 0; i < o->via.array.size; i++)
			most = (d = depth_of(&o->via.array.ptr[i])) > most ? d : most;
	else if (o->type == MSGPACK_OBJECT_MAP)
		for (i = 0; i < o->via.map.size; i++)
			most = (d = depth_of(&o->via.map.ptr[i].val)) > most ? d : most;
	else
		return 0;
	return most + 1;
}

/*
 * What has been merged again and again is nested deeper than a record may be: its history begins
 * anew then.
 */
static bool prov_fits(const struct buf *prov)
{
	msgpack_unpacked u = {0};
	size_t off = 0;
	bool fits = msgpack_unpack_next(&u, prov->p, prov->n, &off) == MSGPACK_UNPACK_SUCCESS &&
		depth_of(&u.data) + PROV_OUTSIDE <= STREAM_DEPTH_MAX;

	msgpack_unpacked_destroy(&u);
	return fits;
}

int stream_add_prov(struct stream_header *h, const char *prog, const char *version,
	const char *set_json, const struct buf *merged, size_t nmerged, struct err *err)
{
	struct json_doc set = {0};
	struct buf out = {0};
	msgpack_packer pk;
	size_t i, count, skip;
	int rc = -1;

	if (prov_head(&h->prov, &count, &skip, err) < 0)
		return -1;
	if (set_json && json_parse(&set, set_json, strlen(set_json), "prov", 1, err) < 0)
		goto done;
	msg_packer(&pk, &out);
	msgpack_pack_array(&pk, count + 1);
	buf_put(&out, h->prov.p + skip, h->prov.n - skip);
	msgpack_pack_map(&pk, 2 + (set_json != NULL) + (nmerged > 0));
	msg_put_str(&pk, "prog");
	msg_put_str(&pk, prog);
	msg_put_str(&pk, "version");
	msg_put_str(&pk, version);
	if (set_json) {
		msg_put_str(&pk, "set");
		if (put_any(&pk, &set.root, err) < 0)
			goto done;
	}
	if (nmerged) {
		msg_put_str(&pk, "in");
		msgpack_pack_array(&pk, nmerged);
	}
	for (i = 0; i < nmerged; i++)
		if (merged[i].n && prov_fits(&merged[i]))
			buf_put(&out, merged[i].p, merged[i].n);
		else
			msgpack_pack_array(&pk, 0);
	if (buf_ok(&out, err) < 0)
		goto done;
	buf_release(&h->prov);
	h->prov = out;
	out = (struct buf){0};
	rc = 0;
done:
	buf_release(&out);
	json_release(&set);
	return rc;
}

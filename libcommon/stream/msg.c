#include "libcommon/stream/internal.h"

#include <string.h>

bool msg_is(const msgpack_object *o, const char *s)
{
	size_t n = strlen(s);

	return o->type == MSGPACK_OBJECT_STR && o->via.str.size == n && !memcmp(o->via.str.ptr, s, n);
}

const msgpack_object *msg_get(const msgpack_object *map, const char *name)
{
	uint32_t i;

	for (i = 0; i < map->via.map.size; i++)
		if (msg_is(&map->via.map.ptr[i].key, name))
			return &map->via.map.ptr[i].val;
	return NULL;
}

/* Four letters of one case. */
static bool good_tag(const char *s)
{
	bool low = s[0] >= 'a';
	int i;

	for (i = 0; i < 4; i++)
		if (s[i] < (low ? 'a' : 'A') || s[i] > (low ? 'z' : 'Z'))
			return false;
	return true;
}

int msg_record(msgpack_unpacked *u, const uint8_t *p, size_t n, char tag[5],
	const msgpack_object **map, struct err *err)
{
	size_t off = 0;
	const msgpack_object *v = NULL;

	switch (msgpack_unpack_next(u, (const char *)p, n, &off)) {
	case MSGPACK_UNPACK_SUCCESS:
	case MSGPACK_UNPACK_EXTRA_BYTES:
		break;
	case MSGPACK_UNPACK_NOMEM_ERROR:
		return err_oom(err, n);
	default:
		return err_set(err, EX_DATAERR, "not msgpack");
	}
	if (u->data.type == MSGPACK_OBJECT_ARRAY && u->data.via.array.size == 2)
		v = u->data.via.array.ptr;
	if (!v || v[0].type != MSGPACK_OBJECT_STR || v[0].via.str.size != 4 ||
		!good_tag(v[0].via.str.ptr) || v[1].type != MSGPACK_OBJECT_MAP)
		return err_set(err, EX_DATAERR, "not a record: [four-letter tag, map] is wanted");
	memcpy(tag, v[0].via.str.ptr, 4);
	tag[4] = 0;
	*map = &v[1];
	return 0;
}

int msg_parse(msgpack_unpacked *u, const uint8_t *p, size_t n, size_t limit, char tag[5],
	const msgpack_object **map, struct err *err)
{
	struct scan s;
	size_t need;
	enum scan_result r;

	scan_init(&s);
	r = scan_value(&s, p, n, limit, &need);
	return r == SCAN_DONE ? msg_record(u, p, s.pos, tag, map, err) : scan_error(r, limit, err);
}

static int write_buf(void *b, const char *p, size_t n)
{
	buf_put(b, p, n);
	return 0;
}

void msg_packer(msgpack_packer *pk, struct buf *b)
{
	msgpack_packer_init(pk, b, write_buf);
}

void msg_put_str(msgpack_packer *pk, const char *s)
{
	msgpack_pack_str_with_body(pk, s, strlen(s));
}

void msg_put_bin(msgpack_packer *pk, const void *p, size_t n)
{
	msgpack_pack_bin(pk, n);
	if (n)
		msgpack_pack_bin_body(pk, p, n);
}

void msg_begin(msgpack_packer *pk, const char *tag, size_t fields)
{
	msgpack_pack_array(pk, 2);
	msg_put_str(pk, tag);
	msgpack_pack_map(pk, fields);
}
